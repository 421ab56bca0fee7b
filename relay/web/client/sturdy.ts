// Capabilities as text: narrowed by whoever holds them, without the key they were made with.
//
// The signature is a chain: HMAC-BLAKE2s-256, its first 16 bytes, over the canonical bytes of each caveat, with the
// signature before it as the key.  So a caveat can be added, and none taken away.
// Source: Syndicate schemas, `sturdy`; RFC 7693 (BLAKE2); RFC 2104 (HMAC).

import { encode } from "./codec.js"
import { parse, show } from "./text.js"
import { Dict, Rec, sym, type Value } from "./value.js"

const IV = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19]
/** The rows of the permutation, each as sixteen digits. */
const SIGMA = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
]
const [OID, SIG, CAVEATS, REF] = ["oid", "sig", "caveats", "ref"].map(sym) as [Value, Value, Value, Value]

/** BLAKE2s of *data*, 32 bytes. */
export function blake2s(data: Uint8Array): Uint8Array {
  const h = Uint32Array.from(IV)
  h[0]! ^= 0x01010020
  const blocks = Math.max(1, Math.ceil(data.length / 64))
  for (let block = 0; block < blocks; block++) {
    const last = block === blocks - 1
    const bytes = new Uint8Array(64)
    bytes.set(data.subarray(block * 64, block * 64 + 64))
    const view = new DataView(bytes.buffer)
    const m = Array.from({ length: 16 }, (_, i) => view.getUint32(i * 4, true))
    const v = Uint32Array.from([...h, ...IV])
    v[12]! ^= last ? data.length : (block + 1) * 64
    if (last) v[14]! ^= 0xffffffff
    const turn = (value: number, by: number): number => (value >>> by) | (value << (32 - by))
    const mix = (a: number, b: number, c: number, d: number, x: number, y: number): void => {
      v[a] = v[a]! + v[b]! + x
      v[d] = turn(v[d]! ^ v[a]!, 16)
      v[c] = v[c]! + v[d]!
      v[b] = turn(v[b]! ^ v[c]!, 12)
      v[a] = v[a]! + v[b]! + y
      v[d] = turn(v[d]! ^ v[a]!, 8)
      v[c] = v[c]! + v[d]!
      v[b] = turn(v[b]! ^ v[c]!, 7)
    }
    for (const row of SIGMA) {
      const s = (i: number): number => m[parseInt(row[i]!, 16)]!
      mix(0, 4, 8, 12, s(0), s(1))
      mix(1, 5, 9, 13, s(2), s(3))
      mix(2, 6, 10, 14, s(4), s(5))
      mix(3, 7, 11, 15, s(6), s(7))
      mix(0, 5, 10, 15, s(8), s(9))
      mix(1, 6, 11, 12, s(10), s(11))
      mix(2, 7, 8, 13, s(12), s(13))
      mix(3, 4, 9, 14, s(14), s(15))
    }
    for (let i = 0; i < 8; i++) h[i]! ^= v[i]! ^ v[i + 8]!
  }
  const out = new DataView(new ArrayBuffer(32))
  h.forEach((word, i) => out.setUint32(i * 4, word, true))
  return new Uint8Array(out.buffer)
}

function sign(key: Uint8Array, data: Uint8Array): Uint8Array {
  const padded = (byte: number): Uint8Array => Uint8Array.from({ length: 64 }, (_, i) => (key[i] ?? 0) ^ byte)
  const joined = (a: Uint8Array, b: Uint8Array): Uint8Array => Uint8Array.from([...a, ...b])
  return blake2s(joined(padded(0x5c), blake2s(joined(padded(0x36), data)))).slice(0, 16)
}

/** The capability that *text* writes, narrowed by *caveats*, each a value or its text; throws what is wrong with it.
 *
 *     attenuate(cap, '<reject <rec Says [<lit "bob"> <_>]>>')
 */
export function attenuate(text: string, ...caveats: (Value | string)[]): string {
  const ref = parse(text)
  const said = ref instanceof Rec && show(ref.label) === "ref" ? ref.fields[0] : undefined
  const sig = said instanceof Dict ? said.get(SIG) : undefined
  if (!(said instanceof Dict) || !(sig instanceof Uint8Array) || sig.length !== 16 || !said.has(OID))
    throw new TypeError("not a capability: it looks like <ref {oid: \"syndicate\" sig: #x\"..\"}>")
  const added = caveats.map((each) => (typeof each === "string" ? parse(each) : each))
  const data = (value: Value): Uint8Array => encode(value, () => {
    throw new TypeError("a caveat holds no live reference")
  })
  const now = added.reduce<Uint8Array>((key, caveat) => sign(key, data(caveat)), sig)
  const all = [...((said.get(CAVEATS) as readonly Value[] | undefined) ?? []), ...added]
  return show(new Rec(REF, [new Dict([[OID, said.get(OID)!], [SIG, now], ...(all.length ? [[CAVEATS, all] as [Value, Value]] : [])])]))
}
