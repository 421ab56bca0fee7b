// What happens, event by event: pause, search, keep as a file, go through a file.

import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { Chart } from "./chart.js"
import { Drawer, Entry } from "./drawer.js"
import { type Happened, read, Ring, written } from "./events.js"
import { move, type Place } from "./place.js"
import { ask } from "./questions.js"
import { Replay } from "./replay.js"
import { clock, figure, visible } from "./text.js"
import { Coloured, Command, Copy, Tree } from "./value.js"
import { Why } from "./why.js"

const PAUSED = 1_000
const CREDIT = 8_000
const LINE = 22
const LARGEST = 1_000_000_000

export const CLASS: Readonly<Record<string, string>> = { "+": "good", "-": "bad", "!": "warn" }
export const MEANING: Readonly<Record<string, string>> = { "+": "asserted", "-": "retracted", "!": "sent" }

export function Line({ event, open }: { event: Happened; open?: (event: Happened) => void }): ComponentChildren {
  const [seconds, mark, text] = event
  return (
    <div class={`line ${open ? "opens" : ""}`} onClick={() => open?.(event)}>
      <span class="soft">{clock(seconds)}</span><b class={CLASS[mark] ?? ""} title={MEANING[mark]}>{mark}</b>
      <span class="text one"><Coloured text={text.slice(0, 400)} /></span>
    </div>
  )
}

function Detail({ event: [seconds, mark, text], close }: { event: Happened; close(): void }): ComponentChildren {
  return (
    <Drawer title={<><b class={CLASS[mark] ?? ""}>{mark}</b> {MEANING[mark]} <Copy text={text} /></>} close={close}>
      <Tree text={text} />
      <Entry name="when">{new Date(seconds * 1000).toLocaleString()}</Entry>
      {mark !== "-" && <Why text={text} />}
    </Drawer>
  )
}

export function Tail({ place }: { place: Place }): ComponentChildren {
  const ring = useRef(new Ring())
  const [paused, setPaused] = useState(false)
  const [recording, setRecording] = useState<Happened[] | null>(null)
  const [problem, setProblem] = useState("")
  const [event, open] = useState<Happened | null>(null)
  const [rates, setRates] = useState<number[]>([])
  const [, draw] = useState(0)
  const box = useRef<HTMLDivElement>(null)
  const file = useRef<HTMLInputElement>(null)
  const part = place["filter"] ?? ""

  useEffect(() => {
    if (paused) return
    let frame = 0
    const end = ask("tail", ["", CREDIT], (answer) => {
      if (typeof answer === "string") return setProblem(answer)
      ring.current.take(answer.total, answer.matched, answer.rows.map(([seconds, mark, text]): Happened => [Number(seconds), String(mark), String(text)]))
      frame ||= requestAnimationFrame(() => {
        frame = 0
        draw((n) => n + 1)
      })
    })
    let before = ring.current.total
    const timer = setInterval(() => {
      const { total } = ring.current
      setRates((values) => [...values.slice(-119), total - before])
      before = total
    }, 1000)
    return () => (end(), cancelAnimationFrame(frame), clearInterval(timer))
  }, [paused])
  useLayoutEffect(() => {
    const key = (pressed: KeyboardEvent): void => {
      if (pressed.key === "p" && !(pressed.target instanceof HTMLInputElement)) setPaused((before) => !before)
    }
    addEventListener("keydown", key)
    return () => removeEventListener("keydown", key)
  }, [])
  useEffect(() => {
    if (!paused && box.current) box.current.scrollTop = box.current.scrollHeight
  })

  const load = async (chosen: File | undefined): Promise<void> => {
    if (!chosen) return
    try {
      if (chosen.size > LARGEST) throw new Error("it is larger than 1 GB")
      setRecording(read(await chosen.text()))
      setProblem("")
    } catch (error) {
      setProblem(`${chosen.name} is no recording: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  if (recording) return <Replay events={recording} close={() => setRecording(null)} />
  const { missed, total } = ring.current
  // While it follows, no more lines are made than are seen.
  const room = Math.ceil((box.current?.clientHeight ?? 600) / LINE)
  const events = ring.current.last(part, paused ? PAUSED : room)
  return (
    <div class="beside">
      <div class="main">
        <div class="bar">
          <input type="search" placeholder="part of the text" aria-label="filter" value={part}
            onInput={({ currentTarget: { value } }) => move({ ...place, filter: value })} />
          <button class={paused ? "primary" : ""} onClick={() => setPaused(!paused)}>{paused ? "go on" : "pause"}</button>
          <button onClick={() => keep(written(ring.current.all()))}>keep as a file</button>
          <button onClick={() => file.current?.click()}>open a file</button>
          <button onClick={() => setRecording([...ring.current.all()])}>go back in time</button>
          <input type="file" hidden ref={file} accept=".jsonl,.rec" onChange={(chosen) => void load(chosen.currentTarget.files?.[0])} />
          <span class="count">{figure(total)} events{paused ? ", paused" : ""}</span>
          {missed > 0 && <span class="warn">{figure(missed)} came too fast, and are left out</span>}
        </div>
        {problem && <p class="bad">{visible(problem)}</p>}
        <Chart values={rates} height={44} axis label="events a second" />
        <div class={`tail ${paused ? "paused" : ""}`} ref={box} tabIndex={0} aria-label="events">
          {events.length ? events.map((each) => <Line event={each} open={open} />)
            : <p class="empty">{total ? "The filter lets nothing through." : "Nothing has happened since this page was opened."}</p>}
        </div>
        <Command line="syndicate-console --record FILE" />
      </div>
      {event && <Detail key={`${event[0]} ${event[2]}`} event={event} close={() => open(null)} />}
    </div>
  )
}

function keep(lines: string): void {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(new Blob([lines], { type: "application/jsonl" }))
  link.download = `recording-${new Date().toISOString().replace(/[:.]/g, "-")}.jsonl`
  link.click()
  URL.revokeObjectURL(link.href)
}
