// What is asserted: the labels, the values of one in columns, and of one value who asserts it, who observes it, and why.

import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { Drawer, Entry } from "./drawer.js"
import { type Column, Grid } from "./grid.js"
import { People } from "./people.js"
import { address, type Place } from "./place.js"
import { type Row, useAnswer } from "./questions.js"
import { fieldsOf, figure, visible } from "./text.js"
import { Coloured, Command, Copy, Tree } from "./value.js"
import { Why } from "./why.js"

const NONE = "(no record)"

const observed: Column = {
  title: "observers", width: "6.5rem", number: true, wide: true,
  show: (row) => (Number(row[3]) ? figure(Number(row[3])) : <span class="warn">nobody</span>),
}
const asserted: Column = { title: "asserted by", width: "minmax(8rem, 1.2fr)", wide: true, show: (row) => <People who={row[2]!} /> }

const LABELS: readonly Column[] = [
  { title: "label", width: "minmax(8rem, 1fr)", sort: 1, show: ([name]) => <a href={address({ page: "assertions", label: String(name) || NONE })}>{visible(String(name) || NONE)}</a> },
  { title: "values", width: "6rem", number: true, sort: 2, show: ([, values]) => figure(Number(values)) },
  { title: "interests", width: "6rem", number: true, sort: 3, show: ([name, values, count]) => Number(count) ? figure(Number(count)) : Number(values) && name !== "Observe" ? <span class="warn">nobody</span> : "-" },
]

/** Columns by field, where all rows have as many; else the whole value. */
function columns(rows: readonly Row[], classes: readonly (readonly string[])[]): readonly Column[] {
  const parts = rows.slice(0, 50).map((row) => fieldsOf(String(row[0])))
  const arity = parts[0]?.length ?? 0
  if (arity < 2 || arity > 9 || parts.some((each) => each?.length !== arity))
    return [{ title: "value", width: "minmax(10rem, 4fr)", show: ([text]) => <Coloured text={String(text).slice(0, 300)} /> }, asserted, observed]
  const names = classes.find((each) => each.length === arity - 1)
  const lengths = Array.from({ length: arity - 1 }, (_, i) => Math.max(...parts.map((each) => Math.min(40, each![i + 1]!.length))))
  return [
    ...lengths.map((length, i): Column => ({
      title: visible(names?.[i] ?? `field ${i + 1}`), width: `minmax(${Math.min(8, length * 0.6 + 1)}rem, ${Math.max(1, length / 8).toFixed(1)}fr)`, wide: i > 2,
      show: ([text]) => {
        const part = fieldsOf(String(text))?.[i + 1]
        return part === undefined ? "" : <Coloured text={part.slice(0, 200)} />
      },
    })),
    asserted,
    observed,
  ]
}

function Detail({ row, label, close }: { row: Row; label: string; close(): void }): ComponentChildren {
  const [text, copies, who, observers] = [String(row[0]), Number(row[1]), row[2]!, Number(row[3])]
  return (
    <Drawer title={<>Assertion <Copy text={text} /></>} close={close}>
      <Tree text={text} />
      <Entry name="asserted by">
        {(who as Row).length ? <People who={who} most={20} /> : <span class="soft">not found: through a capability that rewrites, or gone by now</span>}
        {copies > 1 && <span class="soft"> ({figure(copies)} in all)</span>}
      </Entry>
      <Entry name="observers">
        {observers ? figure(observers) : <span class="warn">nobody</span>}{" "}
        <a href={address({ page: "interests", filter: label === NONE ? "" : `<${label}` })}>interests in this label</a>
      </Entry>
      <Why text={text} />
    </Drawer>
  )
}

export function Assertions({ place }: { place: Place }): ComponentChildren {
  const [row, open] = useState<Row | null>(null)
  const label = place["label"]
  useEffect(() => open(null), [label])
  const labels = useAnswer("labels", [label ?? "", 0, 50])
  const answer = labels && typeof labels === "object" ? labels.rows.find(([name]) => name === label) : undefined
  const classes = (answer?.[3] ?? []) as readonly (readonly string[])[]
  const list = <Grid question="labels" columns={() => LABELS} place={place} empty="Nothing is asserted." onOpen={([name]) => (location.hash = address({ page: "assertions", label: String(name) || NONE }))} />
  if (label === undefined) return list
  return (
    <>
      <p class="path"><a href={address({ page: "assertions" })}>all labels</a> / <b>{visible(label)}</b></p>
      <div class="beside">
        <div class="main">
          <Grid key={label} question="rows" fields={[label === NONE ? "" : label]} columns={(rows) => columns(rows, classes)} place={place} chosen={row}
            empty="Nothing with this label is asserted now." onOpen={open} />
          <Command line={`syndicate query '<${label} ...>'`} />
        </div>
        {row && <Detail key={String(row[0])} row={row} label={label} close={() => open(null)} />}
      </div>
    </>
  )
}
