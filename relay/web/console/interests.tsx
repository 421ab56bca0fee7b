// Who observes what: what matches, and what comes near where nothing does.

import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { Drawer, Entry } from "./drawer.js"
import { type Column, Grid } from "./grid.js"
import { People } from "./people.js"
import { address, type Place } from "./place.js"
import type { Row } from "./questions.js"
import { figure } from "./text.js"
import { Coloured, Command, Copy, Long } from "./value.js"
import { Why } from "./why.js"

function met(row: Row): ComponentChildren {
  if (Number(row[2])) return figure(Number(row[2]))
  return Number(row[4]) ? <span class="bad" title="values of this label have other fields">nothing, {figure(Number(row[4]))} near</span> : <span class="warn">nothing</span>
}
const COLUMNS: readonly Column[] = [
  { title: "pattern", width: "minmax(10rem, 3fr)", sort: 1, show: ([pattern]) => <Coloured text={String(pattern).slice(0, 300)} /> },
  { title: "matches", width: "8.5rem", number: true, sort: 3, show: met },
  { title: "observers", width: "6.5rem", number: true, sort: 2, wide: true, show: ([, count]) => figure(Number(count)) },
  { title: "who", width: "minmax(8rem, 2fr)", wide: true, show: ([, , , who]) => <People who={who!} /> },
]

function Detail({ row, close }: { row: Row; close(): void }): ComponentChildren {
  const [pattern, observers, matches, who, alike, example] = row
  const label = /^<([^\s<>]+)/.exec(String(pattern))?.[1]
  return (
    <Drawer title={<>Interest <Copy text={String(pattern)} /></>} close={close}>
      <Long text={String(pattern)} most={1000} />
      <Entry name="observers"><People who={who!} most={20} /> {Number(observers) > 1 && <span class="soft">({figure(Number(observers))} in all)</span>}</Entry>
      <Entry name="matches">{Number(matches) ? figure(Number(matches)) : <span class="warn">nothing now</span>}{label && <> <a href={address({ page: "assertions", label })}>values of this label</a></>}</Entry>
      {!Number(matches) && <Entry name="comes near">{Number(alike) ? <><Long text={String(example)} /> <span class="soft">{figure(Number(alike))} of this label, with other fields</span></> : "no value has this label"}</Entry>}
      {!Number(matches) && <Why text={String(pattern)} negative />}
    </Drawer>
  )
}

export function Interests({ place }: { place: Place }): ComponentChildren {
  const [row, open] = useState<Row | null>(null)
  return (
    <div class="beside">
      <div class="main">
        <Grid question="interests" columns={() => COLUMNS} place={place} empty="Nobody observes anything." chosen={row} onOpen={open} />
        <Command line="syndicate-console --pattern '<Observe $pattern _>'" />
      </div>
      {row && <Detail key={String(row[0])} row={row} close={() => open(null)} />}
    </div>
  )
}
