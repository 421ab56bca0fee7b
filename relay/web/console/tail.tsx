// What happens, event by event: pause, search, keep as a file, and go through a file with what stood at each event.

import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { ask, type Page } from "./questions.js"
import { clock, visible } from "./text.js"

type Event = readonly [seconds: number, mark: string, text: string]

const KEPT = 100_000
const SHOWN = 300
const CREDIT = 5_000

const CLASS: Readonly<Record<string, string>> = { "+": "good", "-": "bad", "!": "warn" }

/** The last events, at most KEPT of them. */
class Ring {
  readonly #events: Event[] = []
  missed = 0
  total = 0

  take({ total, matched, rows }: Page): void {
    this.total += total
    this.missed += matched
    for (const [seconds, mark, text] of rows) this.#events.push([Number(seconds), String(mark), String(text)])
    if (this.#events.length > KEPT * 1.1) this.#events.splice(0, this.#events.length - KEPT)
  }
  /** The last ones with *part* in their text, in order. */
  last(part: string): Event[] {
    const found: Event[] = []
    for (let i = this.#events.length - 1; i >= 0 && found.length < SHOWN; i--)
      if (this.#events[i]![2].includes(part)) found.push(this.#events[i]!)
    return found.reverse()
  }
  lines(): string {
    return this.#events.map((each) => `${JSON.stringify(each)}\n`).join("")
  }
}

function List({ events }: { events: readonly Event[] }): ComponentChildren {
  return events.map(([seconds, mark, text]) => (
    <div><span class="soft">{clock(seconds)}</span><b class={CLASS[mark] ?? ""}>{mark}</b><span class="text">{visible(text)}</span></div>
  ))
}

export function Tail(): ComponentChildren {
  const ring = useRef(new Ring())
  const [part, setPart] = useState("")
  const [paused, setPaused] = useState(false)
  const [recording, setRecording] = useState<Event[] | null>(null)
  const [problem, setProblem] = useState("")
  const [, draw] = useState(0)
  const box = useRef<HTMLDivElement>(null)

  useEffect(() => {
    if (paused) return
    let frame = 0
    const end = ask("tail", ["", CREDIT], (answer) => {
      if (typeof answer === "string") return setProblem(answer)
      ring.current.take(answer)
      frame ||= requestAnimationFrame(() => {
        frame = 0
        draw((n) => n + 1)
      })
    })
    return () => (end(), cancelAnimationFrame(frame))
  }, [paused])
  useEffect(() => {
    if (!paused && box.current) box.current.scrollTop = box.current.scrollHeight
  })

  const load = async (file: File | undefined): Promise<void> => {
    if (!file) return
    try {
      const lines = (await file.text()).split("\n").filter(Boolean)
      setRecording(lines.map((line) => JSON.parse(line) as Event))
      setProblem("")
    } catch (error) {
      setProblem(`${file.name} is no recording of a tail: ${String(error)}`)
    }
  }
  if (recording) return <Replay events={recording} close={() => setRecording(null)} />
  const { missed, total } = ring.current
  const events = ring.current.last(part)
  return (
    <>
      <div class="bar">
        <input type="search" placeholder="part of the text" aria-label="filter" value={part}
          onInput={(event) => setPart(event.currentTarget.value)} />
        <button onClick={() => setPaused(!paused)}>{paused ? "go on" : "pause"}</button>
        <button onClick={() => keep(ring.current.lines())}>keep as a file</button>
        <label>open a file <input type="file" accept=".jsonl" onChange={(event) => void load(event.currentTarget.files?.[0])} /></label>
        <span class="count">{total.toLocaleString()} events{paused ? ", paused" : ""}</span>
        {missed > 0 && <span class="warn">{missed.toLocaleString()} came too fast, and are left out</span>}
      </div>
      {problem && <p class="bad">{visible(problem)}</p>}
      <div class="tail" ref={box} tabIndex={0}>
        {events.length ? <List events={events} />
          : <p class="soft">{total ? "The filter lets nothing through." : "Nothing has happened since this page was opened."}</p>}
      </div>
    </>
  )
}

/** A recording, with what stands at an event of it. */
function Replay({ events, close }: { events: readonly Event[]; close(): void }): ComponentChildren {
  const [at, setAt] = useState(events.length)
  return (
    <>
      <div class="bar">
        <button onClick={close}>back to what happens now</button>
        <button onClick={() => setAt(Math.max(0, at - 1))}>one back</button>
        <input type="range" aria-label="event" min={0} max={events.length} value={at} onInput={(event) => setAt(Number(event.currentTarget.value))} />
        <button onClick={() => setAt(Math.min(events.length, at + 1))}>one on</button>
        <span class="count">event {at.toLocaleString()} of {events.length.toLocaleString()}</span>
      </div>
      <h2>What has come since the recording began, and stands</h2>
      {standing(events, at).map(([text, copies]) => <div class="text">{visible(text)}{copies > 1 ? ` (${copies} times)` : ""}</div>)}
      <h2>Before it</h2>
      <div class="tail"><List events={events.slice(Math.max(0, at - SHOWN), at)} /></div>
    </>
  )
}

/** What the first *count* events leave standing, and how often. */
export function standing(events: readonly Event[], count: number): [string, number][] {
  const copies = new Map<string, number>()
  for (const [, mark, text] of events.slice(0, count)) {
    if (mark === "!") continue
    const now = (copies.get(text) ?? 0) + (mark === "+" ? 1 : -1)
    if (now > 0) copies.set(text, now)
    else copies.delete(text)
  }
  return [...copies]
}

function keep(lines: string): void {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(new Blob([lines], { type: "application/jsonl" }))
  link.download = `tail-${new Date().toISOString().replace(/[:.]/g, "-")}.jsonl`
  link.click()
  URL.revokeObjectURL(link.href)
}
