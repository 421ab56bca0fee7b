// The console: pages about a running broker or program, each with an address of its own.

import { type ComponentChildren, render } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import type { Value } from "../client/index.js"
import { address, type Place, usePlace } from "./place.js"
import { Publish } from "./publish.js"
import { link, watch, writing } from "./questions.js"
import { type Column, Table, useAnswer } from "./table.js"
import { Tail } from "./tail.js"
import { visible } from "./text.js"

const HISTORY = 120

const LABELS: readonly Column[] = [
  { title: "label", show: (name) => <a href={address({ page: "assertions", label: String(name) || "(none)" })}>{visible(String(name) || "(no record)")}</a> },
  { title: "values", number: true },
  { title: "interests", number: true, show: (count, row) => Number(count) ? Number(count).toLocaleString() : <span class="warn">{Number(row[1]) ? "nobody" : "0"}</span> },
]
const VALUES: readonly Column[] = [
  { title: "value", show: (text) => <Text text={String(text)} /> },
  { title: "times", number: true },
]
const INTERESTS: readonly Column[] = [
  { title: "pattern" },
  { title: "observers", number: true },
  { title: "matches", number: true, show: (count) => Number(count) ? Number(count).toLocaleString() : <span class="warn">nothing</span> },
  { title: "who", show: (names) => visible((names as Value[][]).map(([, name]) => String(name)).join(", ")) },
]
const ACTORS: readonly Column[] = [
  { title: "actor", number: true, show: (id) => <a href={address({ page: "actors", actor: String(id) })}>{String(id)}</a> },
  { title: "name" },
  ...["facets", "handles", "tasks", "events waiting"].map((title) => ({ title, number: true })),
  { title: "daemon", show: (value) => (value ? "yes" : "") },
]
const FACETS: readonly Column[] = [
  { title: "facet", number: true },
  { title: "within", number: true, show: (parent) => (Number(parent) < 0 ? "-" : String(parent)) },
  ...["handles", "tasks", "blocks"].map((title) => ({ title, number: true })),
]
const SESSIONS: readonly Column[] = [
  { title: "peer" }, { title: "by" }, { title: "since", show: (since) => String(since).slice(0, 19).replace("T", " ") },
  ...["bytes in", "bytes out", "events in", "events out", "assertions", "bytes waiting", "bytes held"].map((title) => ({ title, number: true })),
]

/** A value's text, cut until it is clicked. */
function Text({ text }: { text: string }): ComponentChildren {
  const [whole, set] = useState(false)
  return text.length <= 300 ? visible(text)
    : <>{visible(whole ? text : text.slice(0, 300))} <button onClick={() => set(!whole)}>{whole ? "less" : `${text.length - 300} more`}</button></>
}

function Card({ name, value }: { name: string; value: number }): ComponentChildren {
  const now = useRef(value)
  now.current = value
  const [past, setPast] = useState<readonly number[]>([])
  useEffect(() => {
    const timer = setInterval(() => setPast((values) => [...values.slice(-HISTORY), now.current]), 1000)
    return () => clearInterval(timer)
  }, [])
  const values = [...past, value]
  const [low, high] = [Math.min(...values), Math.max(...values)]
  const points = values.map((each, i) => `${(i * 100) / Math.max(1, values.length - 1)},${26 - ((each - low) * 24) / Math.max(1e-9, high - low)}`)
  return (
    <div class="card">
      <span class="soft">{visible(name)}</span><b>{value.toLocaleString()}</b>
      <svg viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true"><polyline points={points.join(" ")} /></svg>
    </div>
  )
}

function Overview(): ComponentChildren {
  const answer = useAnswer("health")
  const figures = useAnswer("figures", "", 0, 100)
  const last = useRef({ handled: 0, at: 0, rate: 0 })
  if (typeof answer !== "object" || !answer) return <p class="soft">{answer ?? "asking .."}</p>
  const rows = [...answer.rows, ...(typeof figures === "object" && figures ? figures.rows : [])]
  const handled = Number(answer.rows.find(([name]) => name === "events handled")?.[1] ?? 0)
  const now = performance.now()
  if (handled !== last.current.handled) {
    if (last.current.at) last.current.rate = Math.round(((handled - last.current.handled) * 1000) / (now - last.current.at))
    Object.assign(last.current, { handled, at: now })
  }
  return (
    <div class="cards">
      <Card name="events a second" value={last.current.rate} />
      {rows.map(([name, value]) => <Card key={String(name)} name={String(name)} value={Number(value)} />)}
    </div>
  )
}

function Assertions({ place }: { place: Place }): ComponentChildren {
  const label = place["label"]
  if (label === undefined) return <Table question="labels" columns={LABELS} place={place} empty="Nothing is asserted." />
  return (
    <>
      <p><a href={address({ page: "assertions" })}>all labels</a> / <code>{visible(label)}</code></p>
      <Table key={label} question="rows" fields={[label === "(none)" ? "" : label]} columns={VALUES} place={place} empty="Nothing with this label is asserted now." />
    </>
  )
}

function Actors({ place }: { place: Place }): ComponentChildren {
  const actor = place["actor"]
  if (actor === undefined) return <Table question="actors" columns={ACTORS} place={place} empty="There is no actor." />
  return (
    <>
      <p><a href={address({ page: "actors" })}>all actors</a> / {visible(actor)}</p>
      <Table question="facets" fields={[Number(actor)]} columns={FACETS} place={place} filtered={false} empty="This actor has ended." />
    </>
  )
}

const PAGES: Readonly<Record<string, (at: { place: Place }) => ComponentChildren>> = {
  overview: Overview,
  assertions: Assertions,
  tail: Tail,
  interests: ({ place }) => <Table question="interests" columns={INTERESTS} place={place} empty="Nobody observes anything." />,
  sessions: ({ place }) => <Table question="sessions" columns={SESSIONS} place={place} empty="Nobody is connected." />,
  actors: Actors,
  ...(writing === null ? {} : { publish: Publish }),
}

function Console(): ComponentChildren {
  const place = usePlace()
  const [, draw] = useState(0)
  useEffect(() => watch(() => draw((n) => n + 1)), [])
  const name = place["page"] !== undefined && place["page"] in PAGES ? place["page"] : "overview"
  const Page = PAGES[name]!
  return (
    <>
      <header>
        <b>syndicate</b>
        <nav>{Object.keys(PAGES).map((each) => <a href={address({ page: each })} aria-current={each === name ? "page" : undefined}>{each}</a>)}</nav>
        <span class={`state ${link.state === "connected" ? "connected" : "lost"}`} role="status">
          {link.state}{link.state !== "connected" && link.reason ? `: ${visible(link.reason)}` : ""}
        </span>
      </header>
      <main><h1>{name}</h1><Page key={name} place={place} /></main>
    </>
  )
}

addEventListener("keydown", (event) => {
  if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return
  const number = Number(event.key)
  const page = Object.keys(PAGES)[number - 1]
  if (page !== undefined) location.hash = address({ page })
  if (event.key === "/") {
    event.preventDefault()
    document.querySelector<HTMLInputElement>("input[type=search]")?.focus()
  }
})
render(<Console />, document.body)
