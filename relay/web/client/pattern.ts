// Patterns: values with holes.  `ANY` matches anything; `capture()` hands what it matches to the handler, in order of
// reading; `capture("int")` only integers; `capture(pattern)` what the pattern matches.  The published patterns know
// no classes of atoms, so these are looked at here, on arrival.
// Source: Syndicate schemas, `dataspacePatterns`.

import { Dict, DoubleValue, Rec, Ref, SetOf, Sym, sym, type Value } from "./value.js"

const CLASSES = {
  bool: (v: Value) => typeof v === "boolean",
  float: (v: Value) => v instanceof DoubleValue || (typeof v === "number" && !Number.isInteger(v)),
  int: (v: Value) => typeof v === "bigint" || Number.isInteger(v),
  str: (v: Value) => typeof v === "string",
  bytes: (v: Value) => v instanceof Uint8Array,
  symbol: (v: Value) => v instanceof Sym,
  ref: (v: Value) => v instanceof Ref,
  list: (v: Value) => Array.isArray(v),
  set: (v: Value) => v instanceof SetOf,
  dict: (v: Value) => v instanceof Dict,
  record: (v: Value) => v instanceof Rec,
} as const

export type AtomClass = keyof typeof CLASSES

export class Any {}
export class Capture {
  constructor(readonly pattern: Pattern | AtomClass) {}
}

/** A pattern is written as a value with `ANY` and `capture()` in it. */
export type Pattern = Value | Any | Capture | readonly Pattern[]

/** Matches anything. */
export const ANY: any = Object.freeze(new Any())

/** A hole whose content goes to the handler; *pattern*, or the name of a class of values, restricts it.
 *  A string that is no class is an error, so that a wrong class is not taken for a text.
 */
export function capture(pattern: unknown = ANY): any {
  if (typeof pattern === "string" && !(pattern in CLASSES))
    throw new TypeError(`there is no class ${JSON.stringify(pattern)}: take one of ${Object.keys(CLASSES).join(", ")}`)
  return Object.freeze(new Capture(pattern as Pattern))
}

/** A pattern as it is published, and what its captures have to be. */
export interface Compiled {
  readonly form: Value
  passes(captures: Value): readonly Value[] | null
}

const [REC, ARR, DICT, LIT, BIND, GROUP] = ["rec", "arr", "dict", "lit", "bind", "group"].map(sym) as [Sym, Sym, Sym, Sym, Sym, Sym]
const DISCARD = new Rec(sym("_"), [])

/** The published form of *pattern*. */
export function compile(pattern: Pattern): Compiled {
  const checks: (((v: Value) => boolean) | null)[] = []
  const group = (kind: Rec, entries: [Value, Pattern][]): Value =>
    new Rec(GROUP, [kind, new Dict(entries.map(([k, p]): [Value, Value] => [k, form(p)]))])
  const placed = (items: readonly Pattern[]): [Value, Pattern][] => items.map((each, i) => [i, each])
  const form = (p: Pattern): Value => {
    if (p instanceof Any) return DISCARD
    if (p instanceof Capture) {
      const kind = typeof p.pattern === "string" ? CLASSES[p.pattern as AtomClass] : null
      checks.push(kind)
      return new Rec(BIND, [kind ? DISCARD : form(p.pattern)])
    }
    if (p instanceof Rec) return group(new Rec(REC, [p.label]), placed(p.fields as readonly Pattern[]))
    if (Array.isArray(p)) return group(new Rec(ARR, []), placed(p as readonly Pattern[]))
    // The other side captures in the total order of the keys.
    if (p instanceof Dict) return group(new Rec(DICT, []), ([...p] as [Value, Pattern][]).sort(([a], [b]) => order(a, b)))
    if (p instanceof SetOf) throw new TypeError("a set is no pattern: capture it whole")
    return new Rec(LIT, [p as Value])
  }
  const published = form(pattern)
  return {
    form: published,
    passes(captures) {
      if (!Array.isArray(captures) || captures.length !== checks.length) return null
      return checks.every((check, i) => !check || check(captures[i] as Value)) ? (captures as Value[]) : null
    },
  }
}

const RANKS = ["bool", "float", "int", "str", "bytes", "symbol"] as const

/** The total order of atoms; keys of patterns are atoms. */
function order(a: Value, b: Value): number {
  const [i, j] = [rank(a), rank(b)]
  if (i !== j) return i - j
  if (i < 3) {
    const [x, y] = [a, b].map((v) => (typeof v === "bigint" ? v : Number(v))) as [number, number]
    return x < y ? -1 : x > y ? 1 : 0
  }
  const [x, y] = [letters(a), letters(b)]
  for (let k = 0; k < x.length && k < y.length; k++) if (x[k] !== y[k]) return x[k]! - y[k]!
  return x.length - y.length
}

function rank(value: Value): number {
  const place = RANKS.findIndex((name) => CLASSES[name](value))
  if (place < 0) throw new TypeError("a key in a pattern is a boolean, a number, a string, bytes or a symbol")
  return place
}

function letters(value: Value): Uint8Array {
  return value instanceof Uint8Array ? value : new TextEncoder().encode(value instanceof Sym ? value.name : (value as string))
}
