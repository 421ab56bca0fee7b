// The text syntax of Preserves, for people: capabilities in addresses, what is typed in, what is shown.

import { Dict, Double, DoubleValue, Rec, Ref, SetOf, Sym, recordOf, sym, type Value } from "./value.js"

/** What is wrong with a text, and where. */
export class TextError extends SyntaxError {}

const DEPTH = 128
const BARE = /^[-a-zA-Z0-9~!$%^&*?_=+/.|]+$/
const NUMBER = /^[+-]?\d+$/
const DOUBLE = /^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$/

/** The value that *text* writes.  Throws `TextError`. */
export function parse(text: string): Value {
  let at = 0
  const wrong = (what: string): never => {
    throw new TextError(`${what}, at character ${at + 1} of ${text.length > 60 ? text.slice(0, 57) + "..." : text}`)
  }
  const space = (): void => {
    for (;;) {
      const blank = /[\s,]*(#(?=[ \n!]|$)[^\n]*)?/y
      blank.lastIndex = at
      const size = blank.exec(text)![0].length
      if (!size) return
      at += size
    }
  }
  const items = (end: string, depth: number): Value[] => {
    const values: Value[] = []
    for (space(); !text.startsWith(end, at); space()) {
      if (at >= text.length) wrong("the text ends too early")
      values.push(value(depth + 1))
    }
    at += end.length
    return values
  }
  const quoted = (mark: string): string => {
    let out = ""
    for (;;) {
      const c = text[at++]
      if (c === undefined) return wrong("a quotation without an end")
      if (c === mark) return out
      if (c !== "\\") {
        out += c
        continue
      }
      const escape = text[at++]!
      const plain = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }[escape]
      if (plain) out += plain
      else if (escape === "u" && /^[0-9a-f]{4}$/i.test(text.slice(at, at + 4))) {
        out += String.fromCharCode(parseInt(text.slice(at, at + 4), 16))
        at += 4
      } else if (escape === "x" && /^[0-9a-f]{2}$/i.test(text.slice(at, at + 2))) {
        out += String.fromCharCode(parseInt(text.slice(at, at + 2), 16))
        at += 2
      } else if (escape === mark || escape === "\\" || escape === "/") out += escape
      else wrong("an unknown escape")
    }
  }
  const letters = (s: string): Uint8Array => Uint8Array.from(s, (c) => c.charCodeAt(0))
  const hex = (s: string): Uint8Array => {
    const digits = s.replace(/\s/g, "")
    if (digits.length % 2 || /[^0-9a-f]/i.test(digits)) wrong("an odd hexadecimal number")
    return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16))
  }
  const hashed = (depth: number): Value => {
    const next = text.slice(at, at + 2)
    if (/^[tf](?![\w-])/.test(text.slice(at, at + 2) + " ")) return text[at++] === "t"
    if (next.startsWith("{")) return (at++, new SetOf(items("}", depth)))
    if (next.startsWith('"')) return (at++, letters(quoted('"')))
    if (next === 'x"') return (at += 2, hex(quoted('"')))
    if (next === "xd" && text.startsWith('xd"', at)) {
      at += 3
      return Double(new DataView(hex(quoted('"')).buffer).getFloat64(0))
    }
    if (next.startsWith("[")) {
      const end = text.indexOf("]", at)
      if (end < 0) wrong("bytes without an end")
      const coded = text.slice(at + 1, end).replace(/\s/g, "").replace(/-/g, "+").replace(/_/g, "/")
      at = end + 1
      return letters(atob(coded))
    }
    return wrong(next.startsWith(":") ? "a reference cannot be written here" : "an unknown sign after #")
  }
  const value = (depth = 0): Value => {
    if (depth > DEPTH) wrong("nested too deeply")
    space()
    const c = text[at]
    if (c === undefined) return wrong("the text ends too early")
    at++
    if (c === "<") {
      const [label, ...fields] = items(">", depth)
      return label === undefined ? wrong("a record without a label") : recordOf(label, fields)
    }
    if (c === "[") return Object.freeze(items("]", depth))
    if (c === "{") {
      const entries: [Value, Value][] = []
      for (space(); text[at] !== "}"; space()) {
        const k = value(depth + 1)
        space()
        if (text[at++] !== ":") wrong("a key without a colon")
        entries.push([k, value(depth + 1)])
      }
      at++
      return new Dict(entries)
    }
    if (c === '"') return quoted('"')
    if (c === "'") return sym(quoted(c))
    if (c === "#") return hashed(depth)
    const word = /[^\s,<>[\]{}"'#:@;]*/y
    word.lastIndex = at - 1
    const w = word.exec(text)![0]
    if (!w) wrong(`${JSON.stringify(c)} begins no value`)
    at += w.length - 1
    if (NUMBER.test(w)) {
      const n = Number(w)
      return Number.isSafeInteger(n) ? n + 0 || 0 : BigInt(w.replace(/^\+/, ""))
    }
    return DOUBLE.test(w) ? Double(Number(w)) : sym(w)
  }
  const result = value()
  space()
  if (at < text.length) wrong("something after the value")
  return result
}

/** *value* as text.  What a terminal or a page might take for a sign of its own (control, direction) is escaped. */
export function show(value: Value): string {
  if (typeof value === "string") return quote(value, '"')
  if (typeof value === "boolean") return value ? "#t" : "#f"
  if (typeof value === "bigint") return String(value)
  if (typeof value === "number") return String(value).replace(/^(-?\d+)e/, "$1.0e")
  if (value instanceof DoubleValue) return double(value.value)
  if (value instanceof Uint8Array) return `#x"${Array.from(value, (b) => b.toString(16).padStart(2, "0")).join("")}"`
  if (value instanceof Sym) {
    return BARE.test(value.name) && !DOUBLE.test(value.name) ? value.name : quote(value.name, "'")
  }
  if (value instanceof Rec) return `<${[value.label, ...value.fields].map(show).join(" ")}>`
  if (value instanceof SetOf) return `#{${Array.from(value, show).join(" ")}}`
  if (value instanceof Dict) return `{${Array.from(value, ([k, v]) => `${show(k)}: ${show(v)}`).join(" ")}}`
  if (value instanceof Ref) return `#:${value.entity ? "ours" : "theirs"}-${value.oid}`
  return `[${value.map(show).join(" ")}]`
}

function double(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e21) return (Object.is(value, -0) ? "-0" : String(value)) + ".0"
  if (Number.isFinite(value)) return String(value).replace(/^(-?\d+)e/, "$1.0e")
  const bits = new DataView(new ArrayBuffer(8))
  bits.setFloat64(0, value)
  return `#xd"${bits.getBigUint64(0).toString(16).padStart(16, "0")}"`
}

function quote(text: string, mark: string): string {
  const inner = text.replace(/[\\"'\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => {
    if (c === "\\" || c === mark) return "\\" + c
    if (c === '"' || c === "'") return c
    return Array.from({ length: c.length }, (_, i) => "\\u" + c.charCodeAt(i).toString(16).padStart(4, "0")).join("")
  })
  return mark + inner + mark
}
