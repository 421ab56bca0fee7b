// A value as text in colours, and as a tree that opens: text nodes only, whatever a peer has said.

import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { Dict, parse, Rec, SetOf, show, type Value } from "../client/index.js"
import { visible } from "./text.js"

const TOKEN = /"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|#:\[[^\]]*\]?|#x[d]?"[^"]*"?|[^\s<>[\]{}"']+|[<>[\]{}]|\s+/g
const MOST = 300

function kind(token: string, before: string): string {
  const c = token[0]!
  if ("<>[]{}".includes(c)) return "soft"
  if (c === '"') return "string"
  if (/^-?\d/.test(token) || token === "#t" || token === "#f") return "numeral"
  if (token.startsWith("#:")) return "reference"
  if (before === "<") return "label"
  return ""
}

/** A text of Preserves in colours. */
export function Coloured({ text }: { text: string }): ComponentChildren {
  const parts: ComponentChildren[] = []
  let [before, at] = ["", 0]
  TOKEN.lastIndex = 0
  for (let match = TOKEN.exec(text); match && parts.length < MOST; match = TOKEN.exec(text)) {
    const [token] = match
    const name = kind(token, before)
    parts.push(name ? <i class={name}>{visible(token)}</i> : visible(token))
    before = token
    at = TOKEN.lastIndex
  }
  if (at < text.length) parts.push(visible(text.slice(at)))
  return parts
}

/** A text that is cut until somebody asks for the rest. */
export function Long({ text, most = 300 }: { text: string; most?: number }): ComponentChildren {
  const [whole, set] = useState(false)
  if (text.length <= most) return <span class="text"><Coloured text={text} /></span>
  return (
    <span class="text">
      {whole ? visible(text) : <Coloured text={text.slice(0, most)} />}
      {" "}<button class="small" onClick={() => set(!whole)}>{whole ? "less" : `${(text.length - most).toLocaleString("en")} more`}</button>
    </span>
  )
}

/** A value as a tree; what is no whole value stays text. */
export function Tree({ text }: { text: string }): ComponentChildren {
  let value: Value
  try {
    value = parse(text)
  } catch {
    return <Long text={text} most={2000} />
  }
  return <div class="tree text"><Node value={value} open={2} /></div>
}

function parts(value: Value): { head: string; items: [string, Value][] } | null {
  if (value instanceof Rec) return { head: show(value.label), items: value.fields.map((each, i) => [String(i + 1), each]) }
  if (value instanceof SetOf) return { head: "set", items: [...value].map((each) => ["", each]) }
  if (value instanceof Dict) return { head: "dictionary", items: [...value].map(([key, each]) => [show(key), each]) }
  if (Array.isArray(value)) return { head: "sequence", items: (value as Value[]).map((each, i) => [String(i), each]) }
  return null
}

function Node({ value, name = "", open }: { value: Value; name?: string; open: number }): ComponentChildren {
  const inner = parts(value)
  const title = name && <i class="soft">{visible(name)} </i>
  if (!inner?.items.length) return <div>{title}<Long text={show(value)} /></div>
  const shown = inner.items.slice(0, MOST)
  return (
    <details open={open > 0}>
      <summary>{title}<i class="label">{visible(inner.head)}</i> <i class="soft">{inner.items.length}</i></summary>
      {shown.map(([key, each]) => <Node value={each} name={key} open={open - 1} />)}
      {inner.items.length > MOST && <div class="soft">and {inner.items.length - MOST} more</div>}
    </details>
  )
}

/** A button that copies a text. */
export function Copy({ text, title = "copy" }: { text: string; title?: string }): ComponentChildren {
  const [said, set] = useState("")
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(() => set("copied"), () => set("not allowed"))
    setTimeout(() => set(""), 1500)
  }
  return <button class="small" onClick={copy} title={visible(text.slice(0, 200))}>{said || title}</button>
}

/** A line for the terminal that does the same as a page. */
export function Command({ line }: { line: string }): ComponentChildren {
  return <p class="command"><code>{visible(line)}</code> <Copy text={line} /></p>
}
