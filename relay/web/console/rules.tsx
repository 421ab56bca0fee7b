// Rules at work: circuits, Bloom programs, locations of Dedalus programs, as graphs with what each part holds and costs.

import type { ComponentChildren } from "preact"
import { useEffect, useMemo, useState } from "preact/hooks"
import { Entry } from "./drawer.js"
import type { Asked, Placed } from "./layout.js"
import { address, move, type Place } from "./place.js"
import { type Row, useAnswer } from "./questions.js"
import { figure, visible } from "./text.js"
import { Reason } from "./why.js"

interface Box {
  readonly name: string
  readonly title: string
  readonly kind: string
  readonly inside: string
  readonly note: string
  readonly order: boolean
}
interface Edge {
  readonly tail: string
  readonly head: string
  readonly kind: string
  readonly why: string
}
interface Load {
  readonly entries: number
  readonly last: number
  readonly all: number
  readonly output: number
}
/** Beyond so many boxes, what is within loops is folded. */
const MOST = 100
const HEIGHT = 46

const width = (title: string): number => Math.max(90, Math.min(260, 24 + title.length * 7.3))
const short = (title: string): string => (title.length > 32 ? `${title.slice(0, 31)}…` : title)

let policy: { createScriptURL(url: string): unknown } | undefined
/** The worker of this package's own, and nothing else: what a policy of Trusted Types lets through. */
function worker(): Worker {
  const types = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: object): typeof policy } }).trustedTypes
  policy ??= types ? types.createPolicy("console", { createScriptURL: () => "layout.js" })! : { createScriptURL: () => "layout.js" }
  return new Worker(policy!.createScriptURL("") as string)
}

function usePlaces(asked: Asked): Placed | null {
  const [placed, set] = useState<Placed | null>(null)
  const key = JSON.stringify(asked)
  useEffect(() => {
    set(null)
    if (!asked.nodes.length) return
    const one = worker()
    one.onmessage = ({ data }: MessageEvent<Placed>) => (set(data), one.terminate())
    one.postMessage(asked)
    return () => one.terminate()
  }, [key])
  return placed
}

function structure(rows: readonly Row[]): { boxes: Box[]; edges: Edge[]; folded: number } {
  let boxes = rows.filter(([what]) => what === "box").map(([, name, title, kind, inside, note, order]): Box => ({
    name: String(name), title: String(title), kind: String(kind), inside: String(inside), note: String(note), order: Boolean(order),
  }))
  let edges = rows.filter(([what]) => what === "line").map(([, tail, head, kind, why]): Edge => ({
    tail: String(tail), head: String(head), kind: String(kind), why: String(why),
  }))
  const before = boxes.length
  if (boxes.length > MOST) {
    const by = new Map(boxes.map((box) => [box.name, box]))
    const outer = (name: string): string => {
      let box = by.get(name)
      while (box && by.has(box.inside)) box = by.get(box.inside)
      return box?.name ?? name
    }
    edges = edges.map((edge) => ({ ...edge, tail: outer(edge.tail), head: outer(edge.head) })).filter(({ tail, head }) => tail !== head)
    boxes = boxes.filter((box) => !by.has(box.inside))
  }
  const names = new Set(boxes.map(({ name }) => name))
  return { boxes, edges: edges.filter(({ tail, head }) => names.has(tail) && names.has(head)), folded: before - boxes.length }
}

function Drawn({ rows, loads, metric, chosen, choose }: {
  rows: readonly Row[]; loads: ReadonlyMap<string, Load>; metric: "entries" | "all"; chosen: string; choose(name: string): void
}): ComponentChildren {
  const { boxes, edges, folded } = useMemo(() => structure(rows), [rows])
  const asked = useMemo((): Asked => ({
    nodes: boxes.map(({ name, title }) => ({ name, width: width(short(title)), height: HEIGHT })),
    edges: edges.map(({ tail, head }) => [tail, head]),
  }), [boxes, edges])
  const placed = usePlaces(asked)
  if (!placed) return <p class="soft">drawing {boxes.length} boxes ..</p>
  const at = new Map(placed.nodes.map(([name, x, y]) => [name, [x, y] as const]))
  const most = Math.max(1e-9, ...boxes.map(({ name }) => loads.get(name)?.[metric] ?? 0))
  return (
    <>
      {folded > 0 && <p class="soft">{folded} boxes within loops are folded.</p>}
      <div class="drawing" tabIndex={0} aria-label="graph">
        <svg width={placed.width} height={placed.height} viewBox={`0 0 ${placed.width} ${placed.height}`} role="group">
          <defs>
            <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" /></marker>
            <marker id="warned" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" class="order" /></marker>
          </defs>
          {edges.map(({ tail, head, kind, why }, i) => {
            const points = placed.edges[i] ?? []
            const middle = points[Math.floor(points.length / 2)]
            const near = chosen === tail || chosen === head
            return (
              <g class={`edge ${kind} ${why ? "order" : ""} ${near ? "near" : ""}`}>
                <path d={`M${points.map(({ x, y }) => `${x} ${y}`).join("L")}`} marker-end={`url(#${why ? "warned" : "tip"})`} />
                {(why || kind === "sent") && middle && <text x={middle.x + 5} y={middle.y}>{visible(why || "sent")}</text>}
              </g>
            )
          })}
          {boxes.map((box) => {
            const [x, y] = at.get(box.name) ?? [0, 0]
            const w = width(short(box.title))
            const load = loads.get(box.name)
            const share = (load?.[metric] ?? 0) / most
            return (
              <g class={`box ${box.kind.replace(/\W/g, "-")} ${box.order ? "order" : ""} ${chosen === box.name ? "on" : ""}`} transform={`translate(${x - w / 2} ${y - HEIGHT / 2})`}
                tabIndex={0} role="button" aria-label={visible(box.title)} onClick={() => choose(box.name)} onKeyDown={(event) => event.key === "Enter" && choose(box.name)}>
                <rect width={w} height={HEIGHT} rx={box.kind === "table" || box.kind === "source" ? 12 : 5} />
                <rect class="heat" width={Math.max(0, w * share)} height={4} y={HEIGHT - 4} />
                <text x={w / 2} y={18}>{visible(short(box.title))}</text>
                <text x={w / 2} y={34} class="small">{load ? `${figure(load.entries)}${load.all ? ` · ${figure(Number(load.all.toPrecision(3)))} ms` : ""}` : box.kind}</text>
              </g>
            )
          })}
        </svg>
      </div>
    </>
  )
}

const FEW = 50
/** The rows that a box holds, and why the one that was chosen is there. */
function Held({ id, view, box }: { id: number; view: string; box: string }): ComponentChildren {
  const [part, search] = useState("")
  const [chosen, choose] = useState("")
  const answer = useAnswer("held", [id, view, box, part, 0, FEW], true)
  if (answer === null || typeof answer === "string" || !(answer.total || part)) return null
  return (
    <>
      <div class="bar">
        <input type="search" aria-label="rows" placeholder="part of a row" value={part} onInput={(event) => search(event.currentTarget.value)} />
        <span class="count">{answer.matched > answer.rows.length ? `${answer.rows.length} of ` : ""}{figure(answer.matched)} rows</span>
      </div>
      <div class="rows" role="list">
        {answer.rows.map(([, text]) => (
          <button role="listitem" class={`plain text one ${text === chosen ? "on" : ""}`} onClick={() => choose(text === chosen ? "" : String(text))}>{visible(String(text).slice(0, 300))}</button>
        ))}
      </div>
      {chosen && <Reason key={chosen} fields={[id, view, box, chosen]} />}
    </>
  )
}

function Host({ place, rows }: { place: Place; rows: readonly Row[] }): ComponentChildren {
  const row = rows.find(([id]) => String(id) === place["host"]) ?? rows[0]!
  const [id, actor, name, what, views] = row
  const view = place["view"] && (views as string[]).includes(place["view"]) ? place["view"] : String((views as string[])[0])
  const metric = place["by"] === "entries" ? "entries" : "all"
  const drawing = useAnswer("drawing", [Number(id), view, 0, 500])
  const answer = useAnswer("loads", [Number(id), view, 0, 500], true)
  const [chosen, choose] = useState("")
  const loads = new Map<string, Load>()
  for (const [box, entries, last, all, output] of answer && typeof answer === "object" ? answer.rows : [])
    loads.set(String(box), { entries: Number(entries), last: Number(last), all: Number(all), output: Number(output) })
  const whole = loads.get("")
  const page = drawing && typeof drawing === "object" ? drawing : null
  const box = page?.rows.find((each) => each[0] === "box" && each[1] === chosen)
  const load = loads.get(chosen)
  return (
    <>
      <div class="bar">
        <select aria-label="program" value={String(id)} onChange={(event) => move({ page: "rules", host: event.currentTarget.value })}>
          {rows.map(([each, , in_, program]) => <option value={String(each)}>{visible(`${String(program)} in ${String(in_)}`)}</option>)}
        </select>
        {(views as string[]).length > 1 && (views as string[]).map((each) => <button class={each === view ? "primary" : ""} onClick={() => move({ ...place, host: String(id), view: each })}>{visible(each)}</button>)}
        <span class="soft">bars by</span>
        {(["all", "entries"] as const).map((each) => <button class={each === metric ? "primary" : ""} onClick={() => move({ ...place, host: String(id), by: each })}>{each === "all" ? "time" : "rows"}</button>)}
        {whole && <span class="count">{figure(whole.entries)} steps since this page looks, the last took {figure(Number(whole.last.toPrecision(2)))} ms</span>}
      </div>
      <p class="soft">{visible(String(what))} lives in <a href={address({ page: "actors", actor: String(actor) })}>{visible(String(name))}</a>.
        {page?.rows.some((each) => each[0] === "box" && each[6]) && <> What is <b class="bad">red</b> depends on the order in which things come: a point of order.</>}
        {page && page.total > page.rows.length && <> The first {page.rows.length} of {figure(page.total)} parts are shown.</>}
      </p>
      {page ? <Drawn rows={page.rows} loads={loads} metric={metric} chosen={chosen} choose={choose} /> : <p class="soft">{typeof drawing === "string" ? drawing : "asking .."}</p>}
      {box && (
        <section class="below">
          <h2>{visible(String(box[2]))}</h2>
          <Entry name="kind">{visible(String(box[3]))}</Entry>
          {box[5] ? <Entry name="more">{visible(String(box[5]))}</Entry> : null}
          {box[6] ? <Entry name="order"><span class="bad">what it holds may depend on the order of what comes</span></Entry> : null}
          {load && <Entry name="holds">{figure(load.entries)} rows</Entry>}
          {load?.all ? <Entry name="time">{figure(Number(load.all.toPrecision(3)))} ms in all, {figure(Number(load.last.toPrecision(3)))} ms in the last step, in which it gave {figure(load.output)} rows</Entry> : null}
          <Held key={`${String(id)} ${view} ${chosen}`} id={Number(id)} view={view} box={chosen} />
        </section>
      )}
    </>
  )
}

export function Rules({ place }: { place: Place }): ComponentChildren {
  const answer = useAnswer("hosts", ["", 0, 200])
  if (answer === null) return <p class="soft">asking ..</p>
  if (typeof answer === "string") return <p class="bad">{visible(answer)}</p>
  if (!answer.rows.length) return <p class="empty">No circuit, Bloom program or Dedalus program runs in this process. Those of programs that are connected are shown by their own consoles.</p>
  return <Host place={place} rows={answer.rows} />
}
