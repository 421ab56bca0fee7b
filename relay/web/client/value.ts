// Values: what may be asserted and sent, and which of them are the same.
//
// A string, a boolean and a Uint8Array are themselves, an array is a sequence.  An integer is a `number` while that is
// exact, else a `bigint`; `2` and `2n` are one value.  A `number` with a fraction is a double; one without is written
// `Double(2)`, for 2.0 is not 2.  Sets and dictionaries go by value, which JavaScript's own do not.

import { encode } from "./codec.js"

/** A symbol, made by `sym`: what Preserves writes without quotes.  Not JavaScript's `Symbol`. */
export class Sym {
  constructor(readonly name: string) {
    Object.freeze(this)
  }
  toString(): string {
    return this.name
  }
}

const symbols = new Map<string, Sym>()
const MOST_SYMBOLS = 4096

/** The symbol *name*.  Those that are used often are one object; compare them by `same` all the same. */
export function sym(name: string): Sym {
  const there = symbols.get(name)
  if (there) return there
  const symbol = new Sym(name)
  if (symbols.size < MOST_SYMBOLS) symbols.set(name, symbol)
  return symbol
}

/** A double that a `number` would not show: 1.0, -0.0, NaN, an infinity. */
export class DoubleValue {
  constructor(readonly value: number) {
    Object.freeze(this)
  }
  valueOf(): number {
    return this.value
  }
}

/** The double *value*, as a number where that says it. */
export function Double(value: number): number | DoubleValue {
  return Number.isFinite(value) && !Number.isInteger(value) ? value : new DoubleValue(value)
}

/** What can receive: a dataspace, or an entity, of ours or of the other side.  Only for as long as its connection. */
export class Ref {
  /** @internal */
  constructor(
    readonly home: object | null,
    readonly oid: number,
    readonly entity: Entity | null,
  ) {
    Object.freeze(this)
  }
}

/** What happens at a reference of ours; each is called in a turn. */
export interface Entity {
  assert?(value: Value, handle: number): unknown
  retract?(handle: number): unknown
  message?(value: Value): unknown
}

/** A record: a label, and fields in order. */
export class Rec {
  constructor(
    readonly label: Value,
    readonly fields: readonly Value[],
  ) {
    Object.freeze(this)
    Object.freeze(fields)
  }
}

/** A set of values: members are compared as values. */
export class SetOf implements Iterable<Value> {
  readonly #members = new Map<string, Value>()
  constructor(members: Iterable<Value> = []) {
    for (const each of members) this.#members.set(key(each), each)
  }
  get size(): number {
    return this.#members.size
  }
  has(value: Value): boolean {
    return this.#members.has(key(value))
  }
  [Symbol.iterator](): Iterator<Value> {
    return this.#members.values()
  }
}

/** A dictionary: keys are compared as values. */
export class Dict implements Iterable<[Value, Value]> {
  readonly #entries = new Map<string, [Value, Value]>()
  constructor(entries: Iterable<readonly [Value, Value]> = []) {
    for (const [k, v] of entries) this.#entries.set(key(k), [k, v])
  }
  get size(): number {
    return this.#entries.size
  }
  get(k: Value): Value | undefined {
    return this.#entries.get(key(k))?.[1]
  }
  has(k: Value): boolean {
    return this.#entries.has(key(k))
  }
  [Symbol.iterator](): Iterator<[Value, Value]> {
    return this.#entries.values()
  }
}

export type Value =
  | string | boolean | number | bigint | Uint8Array
  | Sym | DoubleValue | Ref | Rec | SetOf | Dict | readonly Value[]

/** What says whether two values are the same: canonical bytes, as text of one character a byte. */
export function key(value: Value): string {
  let text = ""
  for (const byte of encode(value, (ref) => [ref.entity ? 0 : 1, ref.oid])) text += String.fromCharCode(byte)
  return text
}

/** Whether *a* and *b* are one value: `same(2, 2n)`, `!same(2, Double(2))`. */
export function same(a: Value, b: Value): boolean {
  return a === b ? typeof a !== "number" || a === a : key(a) === key(b)
}

type Named<F extends readonly string[]> = Rec & { readonly [K in F[number]]: Value }

/** A class of records: applied to values it makes one, applied to patterns it makes a pattern. */
export interface RecordClass<F extends readonly string[]> {
  (...fields: { [K in keyof F]: Value }): Named<F>
  (...fields: { [K in keyof F]: unknown }): Rec
  is(value: unknown): value is Named<F>
  readonly label: Value
  readonly names: F
}

const classes = new Map<string, (fields: Value[]) => Rec>()

/** The class of the records `<label ..>` whose fields have these names.
 *
 *     const Says = record("Says", ["who", "what"])
 *     Says("ann", "hi").who      // "ann"
 */
export function record<const F extends readonly string[]>(label: string, names: F): RecordClass<F> {
  const head = sym(label)
  class Made extends Rec {}
  names.forEach((name, i) => {
    if (name in Rec.prototype || name === "label" || name === "fields")
      throw new TypeError(`a field of a record cannot be called ${JSON.stringify(name)}: take another name`)
    Object.defineProperty(Made.prototype, name, { get(this: Rec) { return this.fields[i] } })
  })
  const make = (...fields: Value[]): Rec => {
    if (fields.length !== names.length)
      throw new TypeError(`${label} has ${names.length} fields (${names.join(", ")}), not ${fields.length}`)
    return new Made(head, fields)
  }
  const is = (value: unknown): boolean =>
    value instanceof Rec && value.fields.length === names.length && value.label instanceof Sym && value.label.name === label
  classes.set(`${names.length} ${label}`, (fields) => new Made(head, fields))
  return Object.assign(make, { is, label: head, names }) as unknown as RecordClass<F>
}

/** The record with this label and these fields, of the class that was last declared for it, if any. */
export function recordOf(label: Value, fields: Value[]): Rec {
  const make = label instanceof Sym ? classes.get(`${fields.length} ${label.name}`) : undefined
  return make ? make(fields) : new Rec(label, fields)
}
