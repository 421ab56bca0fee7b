// The actors: what waits for each, what each does and costs, and the tree of facets that it is made of.

import type { ComponentChildren } from "preact"
import { useRef, useState } from "preact/hooks"
import { Drawer, Entry } from "./drawer.js"
import { type Column, Grid } from "./grid.js"
import { address, move, type Place } from "./place.js"
import { type Page, type Row, useAnswer } from "./questions.js"
import { bytes, figure, visible } from "./text.js"
import { Long } from "./value.js"

/** What has changed a second, between the last two answers. */
class Rates {
  #before = new Map<string, [time: number, turns: number, ms: number]>()
  readonly of = new Map<string, [turns: number, share: number]>()
  take(page: Page): void {
    const now = performance.now()
    const next = new Map<string, [number, number, number]>()
    for (const row of page.rows) {
      const [id, turns, ms] = [String(row[0]), Number(row[7]), Number(row[9])]
      const before = this.#before.get(id)
      next.set(id, before && before[1] === turns && now - before[0] < 1500 ? before : [now, turns, ms])
      if (before && now > before[0]) {
        const seconds = (now - before[0]) / 1000
        this.of.set(id, [Math.max(0, turns - before[1]) / seconds, Math.max(0, ms - before[2]) / seconds / 1000])
      }
    }
    this.#before = next
  }
}

const columns = (rates: Rates): readonly Column[] => [
  { title: "actor", width: "minmax(9rem, 2fr)", sort: 2, show: ([, name, , , , , daemon]) => <>{visible(String(name))}{daemon ? <i class="soft"> daemon</i> : ""}</> },
  { title: "mailbox", width: "5.5rem", number: true, sort: 6, hint: "events that wait", show: (row) => (Number(row[5]) ? <span class="warn">{figure(Number(row[5]))}</span> : "0") },
  { title: "turns/s", width: "5.5rem", number: true, hint: "turns a second; of a busy system an estimate", show: ([id]) => figure(Math.round(rates.of.get(String(id))?.[0] ?? 0)) },
  { title: "time", width: "5rem", number: true, hint: "of one processor, now", show: ([id]) => `${figure(100 * Number((rates.of.get(String(id))?.[1] ?? 0).toFixed(4)))} %` },
  { title: "turns", width: "6rem", number: true, sort: 8, wide: true, hint: "since somebody looks", show: (row) => figure(Number(row[7])) },
  { title: "ms", width: "6rem", number: true, sort: 10, wide: true, hint: "since somebody looks", show: (row) => figure(Math.round(Number(row[9]) * 10) / 10) },
  { title: "facets", width: "5rem", number: true, sort: 3, wide: true, show: (row) => figure(Number(row[2])) },
  { title: "assertions", width: "6rem", number: true, sort: 4, wide: true, hint: "interests, too", show: (row) => figure(Number(row[3])) },
  { title: "tasks", width: "5rem", number: true, sort: 5, wide: true, show: (row) => figure(Number(row[4])) },
]

function Facets({ rows }: { rows: readonly Row[] }): ComponentChildren {
  const below = new Map<number, Row[]>()
  for (const row of rows) below.set(Number(row[1]), [...(below.get(Number(row[1])) ?? []), row])
  const branch = (row: Row, depth: number): ComponentChildren => {
    const [id, , handles, tasks, blocks, size, texts] = row
    const said = [[handles, "assertions"], [tasks, "tasks"], [blocks, "blocks"]].filter(([count]) => Number(count)).map(([count, name]) => `${figure(Number(count))} ${Number(count) === 1 ? String(name).slice(0, -1) : name}`)
    return (
      <details open={depth < 3} class="branch">
        <summary>{depth ? `facet ${id}` : "root"} <i class="soft">{[...said, bytes(Number(size))].join(", ")}</i></summary>
        {(texts as readonly string[]).map((text) => <div class="said"><Long text={text} most={120} /></div>)}
        {Number(handles) > (texts as Row).length && <div class="soft said">and {figure(Number(handles) - (texts as Row).length)} more</div>}
        {(below.get(Number(id)) ?? []).map((each) => branch(each, depth + 1))}
      </details>
    )
  }
  return <div class="tree">{(below.get(-1) ?? []).map((row) => branch(row, 0))}</div>
}

function Detail({ id, close }: { id: string; close(): void }): ComponentChildren {
  const actor = useAnswer("actors", ["", 0, 500])
  const answer = useAnswer("facets", [Number(id), 0, 500])
  const row = actor && typeof actor === "object" ? actor.rows.find((each) => String(each[0]) === id) : undefined
  const page = answer && typeof answer === "object" ? answer : null
  return (
    <Drawer title={row ? visible(String(row[1])) : `actor ${id}`} close={close}>
      {page && <Entry name="memory">{bytes(page.rows.reduce((sum, each) => sum + Number(each[5]), 0))} <span class="soft">that it reaches, at most</span></Entry>}
      {row && <Entry name="turns">{figure(Number(row[7]))} in {figure(Math.round(Number(row[9]) * 10) / 10)} ms <span class="soft">since this page looks</span></Entry>}
      {row && <Entry name="mailbox">{figure(Number(row[5]))} events</Entry>}
      <Entry name="what happens"><a href={address({ page: "causes", filter: row ? String(row[1]) : "" })}>its steps, as they happen</a></Entry>
      <h2>Facets {page && page.total > page.rows.length ? `(${page.rows.length} of ${figure(page.total)})` : ""}</h2>
      {page ? page.total ? <Facets rows={page.rows} /> : <p class="empty">This actor has ended.</p> : <p class="soft">{typeof answer === "string" ? answer : "asking .."}</p>}
    </Drawer>
  )
}

export function Actors({ place }: { place: Place }): ComponentChildren {
  const rates = useRef(new Rates())
  const [, draw] = useState(0)
  const actor = place["actor"]
  const to = (id: string): void => move({ ...place, actor: id })
  return (
    <div class="beside">
      <div class="main">
        <Grid question="actors" columns={() => columns(rates.current)} place={place} hint="part of the name" empty="There is no actor."
          onOpen={([id]) => to(String(id))} onAnswer={(page) => (rates.current.take(page), draw((n) => n + 1))} />
      </div>
      {actor !== undefined && <Detail key={actor} id={actor} close={() => to("")} />}
    </div>
  )
}
