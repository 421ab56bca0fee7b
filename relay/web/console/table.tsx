// A window of a table that is on the other side: its rows, a filter, pages.

import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import type { Value } from "../client/index.js"
import { move, type Place } from "./place.js"
import { ask, type Page } from "./questions.js"
import { visible } from "./text.js"

export const WINDOW = 100

/** The current answer to a question, asked while it is shown. */
export function useAnswer(name: string, ...fields: Value[]): Page | string | null {
  const [answer, set] = useState<Page | string | null>(null)
  useEffect(() => {
    set(null)
    return ask(name, fields, set)
  }, [name, ...fields])
  return answer
}

export interface Column {
  readonly title: string
  readonly number?: boolean
  show?(value: Value, row: readonly Value[]): ComponentChildren
}

interface Shown {
  readonly question: string
  readonly fields?: readonly Value[]
  readonly columns: readonly Column[]
  readonly place: Place
  readonly empty: string
  readonly filtered?: boolean
}

/** A table with a filter and pages, which are in the address. */
export function Table({ question, fields = [], columns, place, empty, filtered = true }: Shown): ComponentChildren {
  const from = Number(place["from"] ?? 0)
  const asked = filtered ? [...fields, place["filter"] ?? "", from, WINDOW] : [...fields, from, WINDOW]
  const answer = useAnswer(question, ...asked)
  return (
    <>
      <div class="bar">
        {filtered && (
          <input type="search" placeholder="part of the text" aria-label="filter" value={place["filter"] ?? ""}
            onInput={(event) => move({ ...place, filter: event.currentTarget.value, from: "" })} />
        )}
        {typeof answer === "object" && answer && <Pages answer={answer} place={place} from={from} />}
      </div>
      {answer === null ? <p class="soft">asking ..</p> : typeof answer === "string" ? <p class="bad">{visible(answer)}</p>
        : answer.rows.length === 0 ? <p class="soft">{answer.total ? "The filter lets nothing through." : empty}</p>
        : <Rows columns={columns} rows={answer.rows} />}
    </>
  )
}

function Pages({ answer, place, from }: { answer: Page; place: Place; from: number }): ComponentChildren {
  const { matched, total, rows } = answer
  const go = (to: number): void => move({ ...place, from: to > 0 ? String(to) : "" })
  return (
    <>
      <span class="count">
        {rows.length && matched > rows.length ? `${(from + 1).toLocaleString()} to ${(from + rows.length).toLocaleString()} of ` : ""}
        {matched.toLocaleString()}{matched === total ? "" : ` of ${total.toLocaleString()}`}
      </span>
      {from > 0 && <button onClick={() => go(from - WINDOW)}>before</button>}
      {from + rows.length < matched && <button onClick={() => go(from + WINDOW)}>next</button>}
    </>
  )
}

export function Rows({ columns, rows }: { columns: readonly Column[]; rows: readonly (readonly Value[])[] }): ComponentChildren {
  return (
    <div class="scroll">
      <table>
        <thead><tr>{columns.map((each) => <th class={each.number ? "number" : ""}>{each.title}</th>)}</tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {columns.map((each, i) => (
                <td class={each.number ? "number" : "text"}>
                  {each.show ? each.show(row[i]!, row) : each.number ? Number(row[i]).toLocaleString() : visible(String(row[i]))}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
