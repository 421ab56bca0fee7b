// Questions that are asserted: asked again when the connection is back, answered in pages of data.

import { useEffect, useState } from "preact/hooks"
import { assert, capabilityOfPage, connect, type Facet, react, Rec, type Ref, ref, type State, sym, type Value } from "../client/index.js"

export type Row = readonly Value[]

/** The window of an answer: rows of texts and numbers, of *matched* of *total*. */
export interface Page {
  readonly total: number
  readonly matched: number
  readonly rows: readonly Row[]
}
type Hear = (answer: Page | string) => void

interface Question {
  readonly name: string
  readonly fields: readonly Value[]
  readonly hear: Hear
  facet: Facet | null
}

const questions = new Set<Question>()
const watchers = new Set<() => void>()
let target: Ref | null = null

/** A capability that the address had under *name*, which is kept for the tab. */
function capability(name: string): string | null {
  const text = new URLSearchParams(location.hash.slice(1)).get(name) ?? sessionStorage.getItem(`syndicate-${name}`)
  if (text !== null) sessionStorage.setItem(`syndicate-${name}`, text)
  return text
}
/** The capability to use the dataspace, and that to have others minted, if the address had them. */
export const writing = capability("write")
export const minting = capability("mint")
const cap = capabilityOfPage()

/** Where the console's socket is. */
export const RELAY = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/relay`

/** What the connection is, and why it is not there. */
export const link = { state: "connecting" as State | "no capability", reason: "" }

const connection = cap === undefined ? null : connect(
  RELAY,
  {
    cap,
    onState(state, { reason }) {
      Object.assign(link, { state, reason })
      if (state !== "connected") for (const each of questions) each.facet = null
      for (const watcher of watchers) watcher()
    },
  },
  (there) => {
    target = there
    questions.forEach(begin)
  },
)
if (!connection) Object.assign(link, { state: "no capability", reason: "open the address that the program printed, with #cap=" })

/** The dataspaces that may be asked about, `[id name values interests]` each; where there are several, and one was
 * chosen, what is asked is asked about that.
 */
export const spaces = { rows: [] as readonly Row[], at: null as number | null }

/** Look at another of them: all that is asked now is asked again. */
export function look(at: number | null): void {
  if (at === spaces.at) return
  spaces.at = at
  askAgain()
}
function askAgain(): void {
  connection?.facet?.enter(() => {
    for (const each of questions) {
      if (each.name === "spaces") continue
      each.facet?.stop()
      begin(each)
    }
  })
}

function begin(question: Question): void {
  question.facet = react(() => {
    const ear = ref({
      message(value) {
        if (!(value instanceof Rec) || !questions.has(question)) return
        const [total, matched, rows] = value.fields
        if (Array.isArray(rows)) question.hear({ total: Number(total), matched: Number(matched), rows: rows as Value[][] })
        else question.hear(String(total))
      },
    })
    const asked = new Rec(sym(question.name), [...question.fields, ear])
    assert(target!, spaces.at === null || question.name === "spaces" ? asked : new Rec(sym("within"), [spaces.at, asked]))
  })
}

/** Ask `<name fields.. o>` until the returned function is called; an answer that is a text says why there is none. */
export function ask(name: string, fields: readonly Value[], hear: Hear): () => void {
  const question: Question = { name, fields, hear, facet: null }
  questions.add(question)
  connection?.facet?.enter(() => questions.has(question) && !question.facet && begin(question))
  return () => {
    questions.delete(question)
    question.facet?.stop()
  }
}

/** Call *f* whenever `link` changes. */
export function watch(f: () => void): () => void {
  watchers.add(f)
  return () => void watchers.delete(f)
}

/** The current answer to a question, asked while it is shown; *keep* shows the last one until the next is there. */
export function useAnswer(name: string, fields: readonly Value[], keep = false): Page | string | null {
  const [answer, set] = useState<Page | string | null>(null)
  useEffect(() => {
    if (!keep) set(null)
    return ask(name, fields, set)
  }, [name, ...fields])
  return answer
}

/** What lasts until *end* is called: whether what happens is followed, which the whole page shares. */
export const followed = { on: false, figures: new Map<string, number>(), end: () => {} }
export function follow(on: boolean): void {
  followed.end()
  followed.on = on
  followed.figures.clear()
  followed.end = on ? ask("followed", [], (answer) => {
    if (typeof answer !== "string") for (const [name, number] of answer.rows) followed.figures.set(String(name), Number(number))
    for (const watcher of watchers) watcher()
  }) : () => {}
  for (const watcher of watchers) watcher()
}

ask("spaces", ["", 0, 500], (answer) => {
  if (typeof answer === "string") return
  const first = spaces.rows[0]?.[0]
  spaces.rows = answer.rows
  if (first === undefined && answer.rows.length) askAgain() // what could not be asked before there was one
  for (const watcher of watchers) watcher()
})
