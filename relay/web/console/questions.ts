// Questions that stand: asked again when the connection is back, answered in pages of data.

import { assert, capabilityOfPage, connect, type Facet, react, Rec, type Ref, ref, type State, sym, type Value } from "../client/index.js"

/** The window of an answer: rows of texts and numbers, of *matched* of *total*. */
export interface Page {
  readonly total: number
  readonly matched: number
  readonly rows: readonly (readonly Value[])[]
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

/** The capability to use the dataspace, if the address had one. */
export const writing = new URLSearchParams(location.hash.slice(1)).get("write") ?? sessionStorage.getItem("syndicate-write")
if (writing !== null) sessionStorage.setItem("syndicate-write", writing)
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

function begin(question: Question): void {
  question.facet = react(() => {
    const ear = ref({
      message(value) {
        if (!(value instanceof Rec)) return
        const [total, matched, rows] = value.fields
        if (Array.isArray(rows)) question.hear({ total: Number(total), matched: Number(matched), rows: rows as Value[][] })
        else question.hear(String(total))
      },
    })
    assert(target!, new Rec(sym(question.name), [...question.fields, ear]))
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
