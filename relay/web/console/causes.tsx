// What happened, in space and time: a line for each actor, a dot for each turn, an arrow from what caused it.

import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { Drawer, Entry } from "./drawer.js"
import { move, type Place } from "./place.js"
import { ask, follow, followed, type Row, watch } from "./questions.js"
import { brief, clock, figure, visible } from "./text.js"
import { Coloured, Command, Long } from "./value.js"
import { Following, Why } from "./why.js"

interface Step {
  readonly number: number
  readonly kind: string
  readonly text: string
  readonly place: string
  readonly causes: readonly number[]
  readonly acts: readonly Row[]
}
interface Turn {
  readonly number: number
  readonly time: number
  readonly actor: string
  readonly steps: Step[]
  readonly causes: Set<number>
}

const KEPT = 3_000
const SHOWN = 160
const LANES = 30
const CREDIT = 1_000
const [COLUMN, LANE] = [24, 30]

const KINDS: Readonly<Record<string, string>> = { message: "was sent", assert: "was notified of", retract: "was notified of the end of", enter: "ran", sync: "was asked whether all is handled", dataflow: "computed", packet: "got a packet", crash: "crashed" }

/** The last turns, each with the turns that caused it. */
class Turns {
  readonly all: Turn[] = []
  readonly #of = new Map<number, Turn>()
  missed = 0

  take(rows: readonly Row[]): void {
    for (const [number, turn, time, actor, kind, text, place, causes, acts] of rows) {
      let there = this.all.at(-1)
      if (there?.number !== Number(turn)) {
        there = { number: Number(turn), time: Number(time), actor: String(actor), steps: [], causes: new Set() }
        this.all.push(there)
      }
      there.steps.push({ number: Number(number), kind: String(kind), text: text === '""' ? "" : String(text), place: String(place), causes: causes as number[], acts: acts as Row[] })
      this.#of.set(Number(number), there)
      for (const cause of causes as number[]) {
        const before = this.#of.get(cause)
        if (before && before !== there) there.causes.add(before.number)
      }
    }
    for (const old of this.all.splice(0, Math.max(0, this.all.length - KEPT))) for (const step of old.steps) this.#of.delete(step.number)
  }
  /** All turns that led to one, that one too. */
  past(number: number): Set<number> {
    const by = new Map(this.all.map((turn) => [turn.number, turn]))
    const past = new Set<number>()
    const pending = [number]
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if (past.has(next)) continue
      past.add(next)
      pending.push(...(by.get(next)?.causes ?? []))
    }
    return past
  }
}

const said = (turn: Turn): string => `${turn.actor} ${turn.steps.map((step) => `${step.text} ${step.place} ${step.acts.map((act) => String(act[2])).join(" ")}`).join(" ")}`

function Diagram({ turns, chosen, past, part, choose }: { turns: readonly Turn[]; chosen: number; past: Set<number>; part: string; choose(turn: Turn): void }): ComponentChildren {
  const actors = [...new Set(turns.map(({ actor }) => actor))]
  const lane = new Map(actors.map((actor, i) => [actor, Math.min(i, LANES)]))
  const at = new Map(turns.map((turn, i) => [turn.number, [i * COLUMN + COLUMN, lane.get(turn.actor)! * LANE + LANE / 2 + 6] as const]))
  const lanes = Math.min(actors.length, LANES + 1)
  const [width, height] = [turns.length * COLUMN + 2 * COLUMN, lanes * LANE + 12]
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (!box.current) return
    const to = chosen ? (at.get(chosen)?.[0] ?? 0) - box.current.clientWidth / 2 : box.current.scrollWidth
    box.current.scrollLeft = to
  }, [chosen, chosen ? 0 : turns.at(-1)?.number])
  const dim = (turn: Turn): boolean => (chosen ? !past.has(turn.number) : part !== "" && !said(turn).includes(part))
  return (
    <div class="spacetime">
      <div class="lanes">
        {Array.from({ length: lanes }, (_, i) => <div class="text one" title={visible(actors[i]!)}>{i === LANES ? `${actors.length - LANES} others` : visible(actors[i]!)}</div>)}
      </div>
      <div class="drawing" ref={box} tabIndex={0} aria-label="turns">
        <svg width={width} height={height} role="group">
          <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
          {Array.from({ length: lanes }, (_, i) => <line class="lane" x1={0} x2={width} y1={i * LANE + LANE / 2 + 6} y2={i * LANE + LANE / 2 + 6} />)}
          {turns.map((turn) => [...turn.causes].map((cause) => {
            const [from, to] = [at.get(cause), at.get(turn.number)!]
            if (!from) return null
            const [[x1, y1], [x2, y2]] = [from, to]
            const near = chosen !== 0 && past.has(cause) && past.has(turn.number)
            const path = y1 === y2 ? `M${x1} ${y1 - 5}Q${(x1 + x2) / 2} ${y1 - 18} ${x2} ${y2 - 6}` : `M${x1} ${y1}L${x2 - 4} ${y2 + (y1 < y2 ? -6 : 6)}`
            return <path class={`arrow ${near ? "near" : ""} ${dim(turn) ? "dim" : ""}`} d={path} marker-end="url(#tip)" />
          }))}
          {turns.map((turn) => {
            const [x, y] = at.get(turn.number)!
            const crashed = turn.steps.some(({ kind }) => kind === "crash")
            return (
              <circle class={`turn ${dim(turn) ? "dim" : ""} ${turn.number === chosen ? "on" : ""} ${crashed ? "bad" : ""}`} cx={x} cy={y} r={Math.min(9, 4 + Math.sqrt(turn.steps.length))}
                tabIndex={0} role="button" aria-label={`turn ${turn.number} of ${visible(turn.actor)}`}
                onClick={() => choose(turn)} onKeyDown={(event) => event.key === "Enter" && choose(turn)}>
                <title>{visible(`${turn.actor}: ${turn.steps.map(({ kind, text }) => `${kind} ${text.slice(0, 80)}`).slice(0, 5).join("; ")}`)}</title>
              </circle>
            )
          })}
        </svg>
      </div>
    </div>
  )
}

function Detail({ turn, close }: { turn: Turn; close(): void }): ComponentChildren {
  const act = turn.steps.flatMap(({ acts }) => acts).find(([verb]) => verb === "assert" || verb === "message")
  return (
    <Drawer title={`turn ${turn.number}`} close={close}>
      <Entry name="actor">{visible(turn.actor)}</Entry>
      <Entry name="when">{clock(turn.time)}</Entry>
      {turn.steps.slice(0, 30).map((step) => (
        <section class="step">
          <div><span class="soft">{KINDS[step.kind] ?? step.kind}</span> {step.text && <Long text={step.text} most={200} />}</div>
          {step.place && <div class="soft because" title={visible(step.place)}>{visible(brief(step.place))}</div>}
          {step.acts.map(([verb, actor, text]) => (
            <div class="said"><b>{visible(String(verb))}</b> <span class="text"><Coloured text={String(text).slice(0, 200)} /></span> <i class="soft">to {visible(String(actor))}</i></div>
          ))}
        </section>
      ))}
      {turn.steps.length > 30 && <p class="soft">and {turn.steps.length - 30} more</p>}
      {act && <Why text={String(act[2])} />}
    </Drawer>
  )
}

export function Causes({ place }: { place: Place }): ComponentChildren {
  const turns = useRef(new Turns())
  const [paused, setPaused] = useState(false)
  const [end, setEnd] = useState(0)
  const [turn, open] = useState<Turn | null>(null)
  const [problem, setProblem] = useState("")
  const [, draw] = useState(0)
  const [part, missing] = [place["filter"] ?? "", place["missing"] ?? ""]
  const on = followed.on
  useLayoutEffect(() => watch(() => draw((n) => n + 1)), [])
  useEffect(() => {
    if (!on || paused) return
    let frame = 0
    const stop = ask("happened", ["", CREDIT], (answer) => {
      if (typeof answer === "string") return setProblem(answer)
      turns.current.take(answer.rows)
      turns.current.missed += answer.matched
      frame ||= requestAnimationFrame(() => ((frame = 0), draw((n) => n + 1)))
    })
    return () => (stop(), cancelAnimationFrame(frame))
  }, [on, paused])
  const { all, missed } = turns.current
  const last = paused && end ? end : all.length
  const shown = all.slice(Math.max(0, last - SHOWN), last)
  const chosen = turn?.number ?? 0
  const past = chosen ? turns.current.past(chosen) : new Set<number>()
  const choose = (one: Turn): void => (setPaused(true), open(one.number === chosen ? null : one))
  return (
    <div class="beside">
      <div class="main">
        <div class="bar">
          <input type="search" placeholder="part of a name or value" aria-label="filter" value={part} onInput={(event) => move({ ...place, filter: event.currentTarget.value })} />
          <Following />
          {on && <button class={paused ? "primary" : ""} onClick={() => (setPaused(!paused), setEnd(0), open(null))}>{paused ? "go on" : "pause"}</button>}
          {on && <span class="count">{figure(all.length)} turns</span>}
          {missed > 0 && <span class="warn">{figure(missed)} steps came too fast, and are left out</span>}
        </div>
        <div class="bar">
          <input type="search" placeholder='what is missing: <Ready "bob" _>' aria-label="what is missing" value={missing} onInput={(event) => move({ ...place, missing: event.currentTarget.value })} />
        </div>
        {missing && <Why key={missing} text={missing} negative />}
        {problem && <p class="bad">{visible(problem)}</p>}
        {!on ? (
          <div class="empty">
            <p>Nothing is followed. As long as it is, each turn is kept with what caused it, and takes five to eight times as long.</p>
            <button class="primary" onClick={() => follow(true)}>follow what happens</button>
          </div>
        ) : shown.length ? (
          <>
            <Diagram turns={shown} chosen={chosen} past={past} part={part} choose={choose} />
            {paused && all.length > SHOWN && (
              <input class="time" type="range" aria-label="last turn" min={SHOWN} max={all.length} value={last} onInput={(event) => setEnd(Number(event.currentTarget.value))} />
            )}
            <p class="soft">A dot is a turn, an arrow leads from what caused it. Click a dot to see all that led to it.</p>
          </>
        ) : <p class="empty">Nothing has happened since.</p>}
        <Command line="syndicate-server --chronicle FILE; syndicate why FILE PATTERN" />
      </div>
      {turn && <Detail key={chosen} turn={turn} close={() => open(null)} />}
    </div>
  )
}
