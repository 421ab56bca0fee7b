// The client's parts by themselves: node unit.mjs
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"
import * as s from "../../../relay/web/dist/syndicate.js"

const hex = (key) => Array.from(key, (c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join("")

test("canonical bytes", () => {
  const bytes = { "0": "b000", "-1": "b001ff", "127": "b0017f", "128": "b0020080", "-128": "b00180", "-129": "b002ff7f", "256": "b0020100",
    "-256": "b002ff00", "#t": "81", "\"a\"": "b10161", "a": "b30161", "0.5": "87083fe0000000000000", "<Says \"ann\" \"hi\">": "b4b30453617973b103616e6eb102686984",
    "#{b a}": "b6b30161b3016284", "{b: 1 a: 2}": "b7b30161b00102b30162b0010184" }
  for (const [text, wanted] of Object.entries(bytes)) assert.equal(hex(s.key(s.parse(text))), wanted, text)
})

test("integers of every size come back", async () => {
  for (let bits = 0n; bits < 140n; bits++)
    for (const n of [1n << bits, -(1n << bits), (1n << bits) - 1n, -(1n << bits) - 1n]) {
      const b = Buffer.from(s.key(n), "latin1")
      let back = BigInt("0x0" + b.subarray(2).toString("hex"))
      back = BigInt.asIntN(Number(b[1]) * 8, back)
      assert.equal(back, n)
      assert.equal(b[1], n === 0n ? 0 : Math.floor((n < 0n ? ~n : n).toString(2).replace(/^0$/, "").length / 8) + 1, `${n} is not the shortest`)
    }
})

test("values of other types, as Python writes them", () => {
  const cases = JSON.parse(readFileSync(new URL("conversions.json", import.meta.url), "utf8"))
  for (const { kind, text, canonical } of cases) {
    assert.equal(hex(s.key(s.parse(text))), canonical, `${kind}: ${text}`)
    assert.equal(s.show(s.parse(text)), text)
  }
})

test("what is the same", () => {
  assert.ok(s.same(2, 2n) && s.same(s.sym("a"), s.sym("a")) && s.same(s.Double(NaN), s.Double(NaN)))
  assert.ok(!s.same(2, s.Double(2)) && !s.same(s.Double(0), s.Double(-0)) && !s.same("a", s.sym("a")) && !s.same(1, true))
  assert.ok(s.same(new s.SetOf([1, 2, 1n]), new s.SetOf([2, 1])))
  assert.equal(new s.Dict([[[1], "x"]]).get([1n]), "x")
})

test("what is no value, with the remedy", () => {
  for (const wrong of [undefined, null, {}, () => 1, NaN, -0, 2 ** 60, "\ud800", new Map()]) assert.throws(() => s.key(wrong), s.NotAValue, String(wrong))
  let deep = []
  for (let i = 0; i < 100_000; i++) deep = [deep]
  assert.throws(() => s.key(deep), s.NotAValue)
})

test("records", () => {
  const Says = s.record("Says", ["who", "what"])
  const said = Says("ann", "hi")
  assert.deepEqual([said.who, said.what, Says.is(said), Says.is(s.parse("<Says 1>"))], ["ann", "hi", true, false])
  assert.equal(s.parse('<Says "bob" 1>').who, "bob")
  assert.throws(() => Says("ann"), /2 fields/)
  assert.throws(() => s.record("R", ["label"]), /cannot be called/)
  assert.throws(() => s.record("R", ["toString"]), /cannot be called/)
})

test("text there and back", () => {
  for (const text of ['<a "b" [1 -2 3.5] {c: #x"00ff"} #{1 2}>', "'a b'", "'1'", '"\\u202ehidden\\u0000"', "1.0", "-0.0", "1.0e+300", "123456789012345678901", '#xd"7ff0000000000000"'])
    assert.equal(s.show(s.parse(text)), text)
  for (const text of ["", "[1", "<", ">", '"a', "1 2", "#:1", "{a 1}", "{1:", "#q", "<>", '#x"0"', "[".repeat(1000)]) assert.throws(() => s.parse(text), s.TextError, text)
})

test("outside a turn, and wrong classes", () => {
  assert.throws(() => s.send(null, 1), s.NotInTurn)
  assert.throws(() => s.assert(null, 1), s.NotInTurn)
  assert.throws(() => (s.field(1).value = 2), s.NotInTurn)
  assert.throws(() => s.capture("integer"), /there is no class/)
})
