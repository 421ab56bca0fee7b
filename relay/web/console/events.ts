// Events of a dataspace: the last ones, and what is asserted after any of them.

/** With what led to it, in a recording that has that. */
export type Happened = readonly [seconds: number, mark: string, text: string, why?: readonly string[]]

const KEPT = 100_000
const MOST_CHARACTERS = 32_000_000
const EVERY = 2_000

/** The last events: at most so many, and at most so long together. */
export class Ring {
  #events: Happened[] = []
  #size = 0
  missed = 0
  total = 0

  take(total: number, missed: number, events: readonly Happened[]): void {
    this.total += total
    this.missed += missed
    for (const event of events) {
      this.#events.push(event)
      this.#size += event[2].length
    }
    let out = this.#events.length > KEPT * 1.1 ? this.#events.length - KEPT : 0
    for (let i = 0; i < out; i++) this.#size -= this.#events[i]![2].length
    for (; this.#size > MOST_CHARACTERS && out < this.#events.length; out++) this.#size -= this.#events[out]![2].length
    if (out) this.#events = this.#events.slice(out)
  }
  get length(): number {
    return this.#events.length
  }
  /** Up to *most* of the last ones with *part* in their text, in order. */
  last(part: string, most: number): Happened[] {
    const events: Happened[] = []
    for (let i = this.#events.length - 1; i >= 0 && events.length < most; i--)
      if (!part || this.#events[i]![2].includes(part)) events.push(this.#events[i]!)
    return events.reverse()
  }
  all(): readonly Happened[] {
    return this.#events
  }
}

/** What is asserted after each event of a recording: kept at each 2,000th, computed from there. */
export class Moments {
  readonly #moments: Map<string, number>[] = [new Map()]
  constructor(readonly events: readonly Happened[]) {
    const now = new Map<string, number>()
    events.forEach((event, i) => {
      step(now, event)
      if ((i + 1) % EVERY === 0) this.#moments.push(new Map(now))
    })
  }
  /** What is asserted after the first *count* events, and how often. */
  after(count: number): Map<string, number> {
    const from = Math.floor(count / EVERY)
    const now = new Map(this.#moments[from])
    for (let i = from * EVERY; i < count; i++) step(now, this.events[i]!)
    return now
  }
}

function step(now: Map<string, number>, [, mark, text]: Happened): void {
  if (mark === "!") return
  const copies = (now.get(text) ?? 0) + (mark === "+" ? 1 : -1)
  if (copies > 0) now.set(text, copies)
  else now.delete(text)
}

/** The text of a recording, as `syndicate-console --record` writes it. */
export function written(events: readonly Happened[]): string {
  const begun = events[0]?.[0] ?? Date.now() / 1000
  const ids = new Map<string, number[]>()
  let next = 0
  const lines = events.map(([seconds, event, value]) => {
    const at = Math.round((seconds - begun) * 1e6) / 1e6
    if (event === "!") return JSON.stringify({ at, event, value })
    const open = ids.get(value) ?? ids.set(value, []).get(value)!
    if (event === "+") open.push(++next)
    const id = event === "+" ? next : open.shift()
    return id === undefined ? "" : JSON.stringify({ at, event, id, value })
  })
  const head = { recording: "syndicate", version: 1, started: new Date(begun * 1000).toISOString().replace("Z", "000+00:00"), address: location.origin }
  return [JSON.stringify(head), ...lines.filter(Boolean), ""].join("\n")
}

/** The events of a recording's text; throws what is wrong with it. */
export function read(text: string): Happened[] {
  const lines = text.split("\n").filter(Boolean)
  const head = JSON.parse(lines[0] ?? "null") as { recording?: string; version?: number; started?: string } | null
  if (head?.recording !== "syndicate" || head.version !== 1) throw new Error("its first line is not that of a recording")
  const begun = Date.parse(head.started ?? "") / 1000 || 0
  return lines.slice(1).map((line, i) => {
    try {
      const { at, event, value, why } = JSON.parse(line) as Record<string, unknown>
      if (typeof at === "number" && typeof value === "string" && ["+", "-", "!"].includes(String(event))) return [begun + at, String(event), value, Array.isArray(why) ? why.map(String) : []]
    } catch {
      // said below
    }
    throw new Error(`line ${i + 2} is no event`)
  })
}
