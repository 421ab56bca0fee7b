// Is it alive, how much is there, how fast does it go, and what is worth a look.

import type { ComponentChildren } from "preact"
import { useLayoutEffect, useState } from "preact/hooks"
import { Chart } from "./chart.js"
import { eachSecond, history, latest, names } from "./health.js"
import { address, type Place } from "./place.js"
import { type Page, useAnswer } from "./questions.js"
import { bytes, figure, visible } from "./text.js"

const LARGE = ["events a second", "values"]

function say(name: string, value: number): string {
  return name.startsWith("bytes") ? bytes(value) : figure(value)
}

function Card({ name, large = false }: { name: string; large?: boolean }): ComponentChildren {
  return (
    <div class={`card ${large ? "large" : ""}`}>
      <span class="soft">{visible(name)}</span>
      <b>{say(name, latest(name))}</b>
      <Chart values={history(name)} height={large ? 90 : 30} axis={large} label={name} />
    </div>
  )
}

interface Remark {
  readonly count: string
  readonly text: string
  readonly place: Place
}

const PEEK = 500
function remarks(labels: Page | null, interests: Page | null): Remark[] {
  const list: Remark[] = []
  const counted = (rows: Page, what: (row: Page["rows"][number]) => boolean): [number, string] => {
    const count = rows.rows.filter(what).length
    return [count, count === PEEK && rows.matched > PEEK ? `${PEEK} or more` : String(count)]
  }
  if (interests) {
    const [count, text] = counted(interests, ([, , matches]) => matches === 0)
    const [near] = counted(interests, ([, , matches, , alike]) => matches === 0 && Number(alike) > 0)
    if (near) list.push({ count: String(near), text: near === 1 ? "interest misses values of its own label: a typing error?" : "interests miss values of their own label: a typing error?", place: { page: "interests", order: "3" } })
    if (count - near) list.push({ count: near ? String(count - near) : text, text: "waiting for what nobody asserts or has sent", place: { page: "interests", order: "3" } })
  }
  if (labels) {
    const [count, text] = counted(labels, ([name, values, observers]) => Number(values) > 0 && observers === 0 && name !== "Observe")
    if (count) list.push({ count: text, text: count === 1 ? "label is asserted that nobody observes" : "labels are asserted that nobody observes", place: { page: "assertions" } })
  }
  const waiting = latest("turns waiting")
  if (waiting > 1000) list.push({ count: figure(waiting), text: "turns wait: it does not keep up", place: { page: "actors", order: "-6" } })
  for (const name of names().filter((each) => each.startsWith("overload"))) list.push({ count: figure(latest(name)), text: name, place: { page: "sessions", order: "-9" } })
  return list
}

export function Overview(): ComponentChildren {
  const [, draw] = useState(0)
  useLayoutEffect(() => eachSecond(() => draw((n) => n + 1)), [])
  const labels = useAnswer("labels", ["", 0, PEEK, 3])
  const interests = useAnswer("interests", ["", 0, PEEK, 3])
  if (!names().length) return <p class="soft">asking ..</p>
  const page = (answer: Page | string | null): Page | null => (typeof answer === "object" ? answer : null)
  const list = remarks(page(labels), page(interests))
  return (
    <>
      <div class="cards large">{LARGE.map((name) => <Card name={name} large />)}</div>
      <div class="cards">{names().filter((name) => !LARGE.includes(name)).map((name) => <Card key={name} name={name} />)}</div>
      <h2>Worth a look</h2>
      {!labels || !interests ? <p class="soft">asking ..</p>
        : list.length ? <ul class="remarks">{list.map(({ count, text, place }) => <li><a href={address(place)}><b>{count}</b> {text}</a></li>)}</ul>
        : <p class="good">Nothing: each interest is met, and each assertion is observed.</p>}
    </>
  )
}
