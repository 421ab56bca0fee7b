// Binary Preserves: the one encoding of this client.  Bounded, for what is decoded was written by somebody else.
// Source: Preserves, "Machine-oriented binary syntax" and "Canonical form".

import { Dict, Double, DoubleValue, Rec, Ref, SetOf, Sym, recordOf, sym, type Value } from "./value.js"

/** What no value is: the message names it, and the remedy. */
export class NotAValue extends TypeError {}

/** What the other side did that no peer may; it ends the session. */
export class ProtocolError extends Error {}

/** A reference as the wire has it: `[0 oid]`, of the sender, or `[1 oid]`, of the receiver. */
export type Outward = (ref: Ref) => [number, number]
export type Inward = (whose: number, oid: number, caveats: number) => Ref

const END = 0x84
const DEPTH = 128 + 8
const NODES = 200_000
const utf8 = new TextEncoder()
const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

class Writer {
  bytes = new Uint8Array(256)
  size = 0
  constructor(readonly outward: Outward) {}

  #room(more: number): void {
    if (this.size + more <= this.bytes.length) return
    const wider = new Uint8Array(Math.max(this.bytes.length * 2, this.size + more))
    wider.set(this.bytes.subarray(0, this.size))
    this.bytes = wider
  }
  byte(value: number): void {
    this.#room(1)
    this.bytes[this.size++] = value
  }
  raw(bytes: Uint8Array): void {
    this.#room(bytes.length)
    this.bytes.set(bytes, this.size)
    this.size += bytes.length
  }
  counted(tag: number, bytes: Uint8Array): void {
    this.byte(tag)
    let n = bytes.length
    while (n >= 128) {
      this.byte((n % 128) + 128)
      n = Math.floor(n / 128)
    }
    this.byte(n)
    this.raw(bytes)
  }
  string(tag: number, value: string): void {
    if (!wellFormed(value)) throw new NotAValue("a string with half of a surrogate pair is no value")
    this.counted(tag, utf8.encode(value))
  }
  integer(value: bigint): void {
    const bytes: number[] = []
    // As few bytes as show the sign.
    for (let rest = value; rest !== 0n && !(rest === -1n && bytes.length && bytes[0]! >= 128); ) {
      bytes.unshift(Number(BigInt.asUintN(8, rest)))
      rest >>= 8n
      if (rest === 0n && bytes[0]! >= 128) bytes.unshift(0)
    }
    this.counted(0xb0, Uint8Array.from(bytes))
  }
  double(value: number): void {
    this.byte(0x87)
    this.byte(8)
    const bytes = new Uint8Array(8)
    new DataView(bytes.buffer).setFloat64(0, value)
    this.raw(bytes)
  }
  compound(tag: number, items: Iterable<Value>, depth: number): void {
    this.byte(tag)
    for (const each of items) this.value(each, depth + 1)
    this.byte(END)
  }
  sorted(tag: number, items: Uint8Array[]): void {
    this.byte(tag)
    for (const each of items.sort(compared)) this.raw(each)
    this.byte(END)
  }
  value(value: Value, depth: number): void {
    if (depth > DEPTH) throw new NotAValue("a value nested this deeply cannot be sent")
    if (typeof value === "string") this.string(0xb1, value)
    else if (typeof value === "number") {
      if (Number.isSafeInteger(value) && !Object.is(value, -0)) {
        if (value >= 0 && value < 128) {
          this.raw(value === 0 ? Uint8Array.of(0xb0, 0) : Uint8Array.of(0xb0, 1, value))
        } else this.integer(BigInt(value))
      } else if (Number.isInteger(value) || !Number.isFinite(value)) {
        throw new NotAValue(`${Object.is(value, -0) ? "-0" : value} may be meant as an integer or as a double: write Double(..) or a bigint`)
      } else this.double(value)
    } else if (typeof value === "boolean") this.byte(value ? 0x81 : 0x80)
    else if (typeof value === "bigint") this.integer(value)
    else if (value instanceof Sym) this.string(0xb3, value.name)
    else if (value instanceof DoubleValue) this.double(value.value)
    else if (value instanceof Rec) this.compound(0xb4, [value.label, ...value.fields], depth)
    else if (Array.isArray(value)) this.compound(0xb5, value as Value[], depth)
    else if (value instanceof Uint8Array) this.counted(0xb2, value)
    else if (value instanceof SetOf) this.sorted(0xb6, Array.from(value, (each) => encode(each, this.outward, depth + 1)))
    else if (value instanceof Dict) {
      this.sorted(0xb7, Array.from(value, ([k, v]) => joined(encode(k, this.outward, depth + 1), encode(v, this.outward, depth + 1))))
    } else if (value instanceof Ref) {
      this.byte(0x86)
      this.compound(0xb5, this.outward(value), depth)
    } else throw new NotAValue(`${describe(value)} is not a value: use strings, numbers, booleans, Uint8Array, arrays, records, SetOf, Dict`)
  }
}

function describe(value: unknown): string {
  if (typeof value === "function") return "a function, or a record class without fields,"
  return value === null ? "null" : typeof value === "object" ? `a ${value.constructor?.name ?? "bare object"}` : typeof value
}

function wellFormed(value: string): boolean {
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i)
    if (code < 0xd800 || code > 0xdfff) continue
    const next = value.charCodeAt(++i)
    if (code > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) return false
  }
  return true
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length)
  both.set(a)
  both.set(b, a.length)
  return both
}

function compared(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < a.length && i < b.length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!
  return a.length - b.length
}

/** The canonical bytes of *value*.  Throws `NotAValue`. */
export function encode(value: Value, outward: Outward, depth = 0): Uint8Array {
  const writer = new Writer(outward)
  writer.value(value, depth)
  return writer.bytes.slice(0, writer.size)
}

/** More bytes are needed. */
export class Incomplete extends Error {}

/** Reads values from bytes that may end too early: then it throws `Incomplete`. */
export class Reader {
  #at = 0
  #nodes = 0
  constructor(
    readonly bytes: Uint8Array,
    readonly inward: Inward,
  ) {}

  get at(): number {
    return this.#at
  }
  get done(): boolean {
    return this.#at >= this.bytes.length
  }
  #byte(): number {
    if (this.#at >= this.bytes.length) throw new Incomplete()
    return this.bytes[this.#at++]!
  }
  #counted(): Uint8Array {
    let n = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = this.#byte()
      n += (byte % 128) * scale
      if (byte < 128) break
      if (scale > 1e9) throw new ProtocolError("a length that no packet has")
    }
    const end = this.#at + n
    if (end > this.bytes.length) throw new Incomplete()
    const part = this.bytes.subarray(this.#at, end)
    this.#at = end
    return part
  }
  #items(depth: number): Value[] {
    const items: Value[] = []
    for (;;) {
      if (this.#at >= this.bytes.length) throw new Incomplete()
      if (this.bytes[this.#at] === END) break
      items.push(this.#value(depth + 1))
    }
    this.#at++
    return items
  }
  #string(): string {
    try {
      return text.decode(this.#counted())
    } catch (error) {
      if (error instanceof Incomplete) throw error
      throw new ProtocolError("a string that is not UTF-8")
    }
  }
  #integer(): number | bigint {
    const bytes = this.#counted()
    if (bytes.length > 512) throw new ProtocolError("an integer of more than 512 bytes")
    if (bytes.length === 0) return 0
    if (bytes.length <= 6) {
      let value = bytes[0]! >= 128 ? bytes[0]! - 256 : bytes[0]!
      for (let i = 1; i < bytes.length; i++) value = value * 256 + bytes[i]!
      return value
    }
    let hex = "0x"
    for (const byte of bytes) hex += byte.toString(16).padStart(2, "0")
    const value = BigInt.asIntN(bytes.length * 8, BigInt(hex))
    const small = Number(value)
    return Number.isSafeInteger(small) ? small : value
  }
  /** The next value. */
  value(): Value {
    this.#nodes = 0
    return this.#value(0)
  }
  #value(depth: number): Value {
    if (depth > DEPTH) throw new ProtocolError("a value nested too deeply")
    if (++this.#nodes > NODES) throw new ProtocolError("a packet of too many values")
    const tag = this.#byte()
    switch (tag) {
      case 0x80: return false
      case 0x81: return true
      case 0xb0: return this.#integer()
      case 0xb1: return this.#string()
      case 0xb2: return this.#counted().slice()
      case 0xb3: return sym(this.#string())
      case 0xb5: return Object.freeze(this.#items(depth))
      case 0x86: return this.#reference(this.#value(depth + 1))
      case 0x87: {
        const bytes = this.#counted()
        if (bytes.length !== 8) throw new ProtocolError("a double is of 8 bytes")
        return Double(new DataView(bytes.buffer, bytes.byteOffset, 8).getFloat64(0))
      }
      case 0xb4: {
        const [label, ...fields] = this.#items(depth)
        if (label === undefined) throw new ProtocolError("a record without a label")
        return recordOf(label, fields)
      }
      case 0xb6: {
        const items = this.#items(depth)
        const members = new SetOf(items)
        if (members.size !== items.length) throw new ProtocolError("a set with a member twice")
        return members
      }
      case 0xb7: {
        const items = this.#items(depth)
        const pairs: [Value, Value][] = []
        for (let i = 0; i < items.length; i += 2) pairs.push([items[i]!, items[i + 1]!])
        const entries = items.length % 2 ? undefined : new Dict(pairs)
        if (entries?.size !== pairs.length) throw new ProtocolError("a dictionary with a key twice, or without a value")
        return entries
      }
    }
    throw new ProtocolError(`no value begins with the byte ${tag}`)
  }
  #reference(value: Value): Ref {
    if (Array.isArray(value)) {
      const [whose, oid] = value as Value[]
      if ((whose === 0 || whose === 1) && typeof oid === "number" && oid >= 0) return this.inward(whose, oid, value.length - 2)
    }
    throw new ProtocolError("a reference is [0 oid] or [1 oid caveat ..]")
  }
}
