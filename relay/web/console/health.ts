// What the page keeps of the last ten minutes: a look a second, as long as it is open.

import { ask, type Page, watch } from "./questions.js"

const KEPT = 600
const PERIOD = 1000

const past = new Map<string, number[]>()
const now = new Map<string, number>()
const listeners = new Set<() => void>()

function take(answer: Page | string): void {
  if (typeof answer !== "string") for (const [name, number] of answer.rows) now.set(String(name), Number(number))
}
ask("health", [], take)
ask("figures", ["", 0, 100], take)

let [handled, at] = [-1, 0]
setInterval(() => {
  if (!now.size) return
  const [events, time] = [now.get("events handled") ?? 0, performance.now()]
  if (handled >= 0) now.set("events a second", Math.max(0, Math.round(((events - handled) * 1000) / (time - at))))
  ;[handled, at] = [events, time]
  for (const [name, value] of now) {
    const values = past.get(name) ?? past.set(name, []).get(name)!
    values.push(value)
    if (values.length > KEPT) values.splice(0, values.length - KEPT)
  }
  for (const listener of listeners) listener()
}, PERIOD)
watch(() => void (handled = -1))

/** A figure's last ten minutes, the newest last. */
export const history = (name: string): readonly number[] => past.get(name) ?? []
export const names = (): string[] => [...now.keys()]
export const latest = (name: string): number => now.get(name) ?? 0
export function eachSecond(f: () => void): () => void {
  listeners.add(f)
  return () => void listeners.delete(f)
}
