// Who is connected, by which door, what has passed and what waits.

import type { ComponentChildren } from "preact"
import { type Column, Grid } from "./grid.js"
import { address, type Place } from "./place.js"
import { bytes, clock, figure, visible } from "./text.js"

const number = (title: string, sort: number, wide = false, size = false): Column => ({
  title, width: "5rem", number: true, sort, wide, show: (row) => (size ? bytes : figure)(Number(row[sort - 1])),
})
/** The time of day, or the day if it was another. */
function lately(since: string): string {
  const date = new Date(since)
  if (Number.isNaN(date.getTime())) return visible(since)
  return date.toDateString() === new Date().toDateString() ? clock(date.getTime() / 1000).slice(0, 8) : date.toISOString().slice(0, 10)
}

const COLUMNS: readonly Column[] = [
  { title: "peer", width: "minmax(9rem, 1.5fr)", sort: 1, show: ([name]) => <a href={address({ page: "actors", filter: `session ${String(name)}` })}>{visible(String(name))}</a> },
  { title: "by", width: "minmax(7rem, 1.5fr)", sort: 2, wide: true, show: ([, door]) => visible(String(door)) },
  { title: "since", width: "5rem", sort: 3, wide: true, show: ([, , since]) => <span title={visible(String(since))}>{lately(String(since))}</span> },
  number("in", 4, true, true), number("out", 5, true, true),
  number("events in", 6), number("events out", 7, true), number("assertions", 8),
  { title: "waiting", width: "5rem", number: true, sort: 9, show: (row) => (Number(row[8]) ? <span class="warn">{bytes(Number(row[8]))}</span> : "0") },
  number("held", 10, true, true),
]

export function Sessions({ place }: { place: Place }): ComponentChildren {
  return <Grid question="sessions" columns={() => COLUMNS} place={place} hint="part of the name" empty="Nobody is connected." />
}
