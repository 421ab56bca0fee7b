// A table of any length: rows of one height, those in view are asked for and drawn, the rest is room to scroll through.

import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import type { Value } from "../client/index.js"
import { move, type Place } from "./place.js"
import { ask, type Page, type Row } from "./questions.js"
import { figure, visible } from "./text.js"

const HEIGHT = 30
const WINDOW = 200
const MARGIN = 60
/** Higher than this browsers draw no element. */
const TALLEST = 8_000_000

export interface Column {
  readonly title: string
  readonly width: string
  readonly number?: boolean
  /** Left out where there is little room. */
  readonly wide?: boolean
  /** The number of the column by which the other side sorts, from 1 on. */
  readonly sort?: number
  readonly hint?: string
  show?(row: Row): ComponentChildren
}

interface Props {
  readonly question: string
  readonly fields?: readonly Value[]
  columns(rows: readonly Row[]): readonly Column[]
  readonly place: Place
  readonly empty: ComponentChildren
  readonly filtered?: boolean
  readonly hint?: string
  readonly children?: ComponentChildren
  /** Which column says which row is which. */
  readonly chosen?: Row | null
  onOpen?(row: Row): void
  onAnswer?(answer: Page): void
}

export function Grid({ question, fields = [], columns, place, empty, filtered = true, hint = "part of the text", children, chosen, onOpen, onAnswer }: Props): ComponentChildren {
  const [answer, setAnswer] = useState<{ from: number; page: Page } | string | null>(null)
  const [from, setFrom] = useState(0)
  const [top, setTop] = useState(0)
  const [cursor, setCursor] = useState(-1)
  const box = useRef<HTMLDivElement>(null)
  const filter = place["filter"] ?? ""
  const order = Number(place["order"] ?? 0)
  const room = box.current?.clientHeight ?? 600

  useEffect(() => {
    setAnswer(null)
    setFrom(0)
    setTop(0)
    setCursor(-1)
    box.current?.scrollTo(0, 0)
  }, [question, filter, order, ...fields])
  useEffect(() => {
    const asked = [...fields, ...(filtered ? [filter] : []), from, WINDOW, ...(order ? [order] : [])]
    return ask(question, asked, (page) => {
      setAnswer(typeof page === "string" ? page : { from, page })
      if (typeof page !== "string") onAnswer?.(page)
    })
  }, [question, filter, order, from, ...fields])

  const page = answer && typeof answer === "object" ? answer.page : null
  const matched = page?.matched ?? 0
  const count = Math.min(matched, Math.floor(TALLEST / HEIGHT))
  const first = Math.max(0, Math.floor(top / HEIGHT) - 5)
  const last = Math.min(count, Math.ceil((top + room) / HEIGHT) + 5)
  useEffect(() => {
    // As long as what is in view is within the window, nothing new is asked.
    if (!page || (first >= from && last <= from + WINDOW) || count <= WINDOW) return
    const timer = setTimeout(() => setFrom(Math.max(0, first - MARGIN)), 40)
    return () => clearTimeout(timer)
  }, [first, last, from, page])

  const shown = page ? columns(page.rows) : []
  const template = { gridTemplateColumns: shown.map(({ width }) => width).join(" ") }
  const narrow = { "--narrow": shown.filter(({ wide }) => !wide).map(({ width }) => width).join(" ") }
  const style = { ...template, ...narrow }
  const key = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 }[event.key]
    if (step) {
      event.preventDefault()
      const to = Math.max(0, Math.min(count - 1, cursor + step))
      setCursor(to)
      const at = to * HEIGHT
      if (box.current && (at < top || at > top + room - 2 * HEIGHT)) box.current.scrollTop = Math.max(0, at - room / 2)
    } else if (event.key === "Enter" && cursor >= 0) {
      const row = rowAt(cursor)
      if (row) onOpen?.(row)
    }
  }
  const rowAt = (i: number): Row | undefined => answer && typeof answer === "object" ? answer.page.rows[i - answer.from] : undefined
  const rows: ComponentChildren[] = []
  for (let i = first; i < last; i++) {
    const row = rowAt(i)
    const on = i === cursor || (chosen && row && chosen[0] === row[0])
    rows.push(
      <div key={i} role="row" aria-rowindex={i + 2} class={`row ${on ? "on" : ""} ${onOpen ? "opens" : ""}`}
        style={{ ...style, transform: `translateY(${i * HEIGHT}px)` }}
        onClick={() => (setCursor(i), row && getSelection()?.isCollapsed !== false && onOpen?.(row))}>
        {shown.map((each) => (
          <div role="gridcell" class={`${each.number ? "number" : "text"} ${each.wide ? "wide" : ""}`}>
            {row ? (each.show ? each.show(row) : "") : <span class="soft">·</span>}
          </div>
        ))}
      </div>,
    )
  }
  const sort = ({ sort, number }: Column): void => {
    if (!sort) return
    const down = number ? -sort : sort
    move({ ...place, order: String(order === down ? -down : order === -down ? 0 : down).replace(/^0$/, "") })
  }
  return (
    <>
      <div class="bar">
        {filtered && (
          <input type="search" placeholder={hint} aria-label="filter" value={filter}
            onInput={(event) => move({ ...place, filter: event.currentTarget.value })} />
        )}
        <span class="count" role="status">
          {page ? matched === page.total ? figure(matched) : `${figure(matched)} of ${figure(page.total)}` : ""}
          {page && count < matched ? `, the first ${figure(count)} shown` : ""}
        </span>
        {children}
      </div>
      {answer === null ? <p class="soft">asking ..</p> : typeof answer === "string" ? <p class="bad">{visible(answer)}</p>
        : matched === 0 ? <p class="empty">{answer.page.total ? "The filter lets nothing through." : empty}</p>
        : (
          <div class="grid" role="grid" aria-rowcount={matched + 1}>
            <div class="row head" role="row" style={style}>
              {shown.map((each) => (
                <div role="columnheader" class={`${each.number ? "number" : ""} ${each.wide ? "wide" : ""}`} title={each.hint ?? ""}
                  aria-sort={each.sort && Math.abs(order) === each.sort ? (order > 0 ? "ascending" : "descending") : "none"}>
                  {each.sort ? <button class="plain" onClick={() => sort(each)}>{each.title}{Math.abs(order) === each.sort ? (order > 0 ? " ↑" : " ↓") : ""}</button> : each.title}
                </div>
              ))}
            </div>
            <div class="scroll" ref={box} tabIndex={0} aria-label="rows" onKeyDown={key}
              onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
              <div class="room" style={{ height: `${count * HEIGHT}px` }}>{rows}</div>
            </div>
          </div>
        )}
    </>
  )
}
