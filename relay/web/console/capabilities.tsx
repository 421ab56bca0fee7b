// Capabilities: have one minted by its name, narrow it here, see what it allows.

import type { ComponentChildren } from "preact"
import { useLayoutEffect, useState } from "preact/hooks"
import { assert, attenuate, connect, type Connection, Dict, type Handle, parse, Rec, type Ref, ref, show, Sym, sym, type Value } from "../client/index.js"
import { Entry } from "./drawer.js"
import { minting, RELAY, writing } from "./questions.js"
import { visible } from "./text.js"
import { Command, Copy } from "./value.js"

const rec = (label: string, ...fields: Value[]): Rec => new Rec(sym(label), fields)

let target: Ref | null = null
let connection: Connection | null = null
const listeners = new Set<() => void>()
function minter(): Connection {
  return connection ??= connect(RELAY, { cap: minting! }, (there) => {
    target = there
    queueMicrotask(() => listeners.forEach((f) => f()))
  })
}
/** Ask what mints, once: its answer as fields. */
function asked(question: string, fields: readonly Value[], hear: (fields: readonly Value[]) => void): void {
  minter().facet?.enter(() => {
    const handle: Handle = assert(target!, new Rec(sym(question), [...fields, ref({
      message(value) {
        if (value instanceof Rec) hear(value.fields)
        handle.retract()
      },
    })]))
  })
}

/** A value with `_` and `$name` for anything, as a pattern of a caveat. */
function pattern(value: Value): Value {
  if (value instanceof Sym && /^(_|\$.*)$/.test(value.name)) return rec("_")
  if (value instanceof Rec) return rec("rec", value.label, value.fields.map(pattern))
  if (value instanceof Dict) return rec("dict", new Dict([...value].map(([key, each]): [Value, Value] => [key, pattern(each)])))
  if (Array.isArray(value)) return rec("arr", (value as Value[]).map(pattern))
  return rec("lit", value)
}
/** Interest in records of a label, as patterns of a caveat. */
function interest(label: string): Value[] {
  const group = rec("rec", sym("group"), [rec("rec", sym("rec"), [rec("lit", sym(label))]), rec("_")])
  return [group, rec("rec", sym("bind"), [group])].map((each) => rec("rec", sym("Observe"), [each, rec("_")]))
}

/** What a caveat does, a line for each alternative. */
function described(caveat: Value): string[] {
  if (caveat instanceof Rec && caveat.label instanceof Sym) {
    const { label: { name }, fields: [first, second] } = caveat
    if (name === "not-after") return [`ends ${new Date(Number(first) * 1000).toLocaleString()}`]
    if (name === "reject" && first !== undefined) return [`drops ${show(first)}`]
    const alternatives = name === "or" && Array.isArray(first) ? (first as Rec[]).map((each) => each.fields) : name === "rewrite" ? [[first, second]] : null
    if (alternatives) return [...alternatives.map(([from, to]) => from instanceof Rec && show(from.label) === "bind" && show(to!) === "<ref 0>" ? `lets pass ${show(from.fields[0]!)}` : `turns ${show(from!)} into ${show(to!)}`), "drops all else"]
  }
  return ["drops everything, because it is not understood"]
}

function Allows({ text }: { text: string }): ComponentChildren {
  let said: Value | undefined
  try {
    const value = parse(text)
    said = value instanceof Rec ? value.fields[0] : undefined
  } catch {
    said = undefined
  }
  if (!(said instanceof Dict)) return <p class="bad">This is no capability.</p>
  const caveats = (said.get(sym("caveats")) as readonly Value[] | undefined) ?? []
  return (
    <>
      <Entry name="of">{visible(show(said.get(sym("oid")) ?? ""))}</Entry>
      <Entry name="allows">
        {caveats.length ? [...caveats].reverse().map((each) => <ol class="plain">{described(each).map((line) => <li class="text">{visible(line)}</li>)}</ol>) : "everything: to observe all, to assert and send anything"}
      </Entry>
    </>
  )
}

export function Capabilities(): ComponentChildren {
  const [names, setNames] = useState<readonly string[]>([])
  const [base, setBase] = useState(writing ?? "")
  const [name, setName] = useState("syndicate")
  const [only, setOnly] = useState("")
  const [watch, setWatch] = useState("")
  const [hours, setHours] = useState("")
  const [problem, setProblem] = useState("")
  const [narrowed, setNarrowed] = useState("")
  const [shown, show_] = useState(false)
  const [, draw] = useState(0)
  useLayoutEffect(() => {
    const look = (): void => {
      draw((n) => n + 1)
      if (minting) asked("names", [], ([all]) => setNames((all as Value[]).map(String)))
    }
    listeners.add(look)
    if (minting) minter()
    look()
    return () => void listeners.delete(look)
  }, [])
  const narrow = (): void => {
    try {
      const alternatives = [
        ...only.split("\n").filter((line) => line.trim()).map((line) => pattern(parse(line))),
        ...watch.split(/[\s,]+/).filter(Boolean).flatMap(interest),
      ]
      const caveats: Value[] = []
      if (alternatives.length) caveats.push(rec("or", alternatives.map((alternative) => rec("rewrite", rec("bind", alternative), rec("ref", 0)))))
      if (hours) caveats.push(rec("not-after", Math.floor(Date.now() / 1000 + Number(hours) * 3600)))
      setNarrowed(attenuate(base, ...caveats))
      setProblem("")
    } catch (error) {
      setNarrowed("")
      setProblem(error instanceof Error ? error.message : String(error))
    }
  }
  return (
    <>
      <p class="soft">A capability is a text: whoever has it may do what it allows, until it is revoked or ends. It can be narrowed by anybody, and widened by nobody.</p>
      {minting && (
        <section>
          <h2>1. Have one made</h2>
          <div class="bar">
            <select aria-label="name" value={name} onChange={(event) => setName(event.currentTarget.value)}>{names.map((each) => <option>{visible(each)}</option>)}</select>
            <button class="primary" onClick={() => asked("mint", [name], ([text]) => (setBase(String(text)), setNarrowed("")))}>mint</button>
          </div>
        </section>
      )}
      <section>
        <h2>{minting ? "2. " : ""}Narrow it</h2>
        <label class="field">the capability <input class="wide" type={shown ? "text" : "password"} autocomplete="off" spellcheck={false} value={base} onInput={(event) => setBase(event.currentTarget.value)} /></label>
        <button class="small" onClick={() => show_(!shown)}>{shown ? "hide" : "show"}</button> <Copy text={base} />
        {base && <Allows text={base} />}
        <label class="field">may assert and send only <textarea rows={2} spellcheck={false} placeholder={'<Says "alice" _>'} value={only} onInput={(event) => setOnly(event.currentTarget.value)} /></label>
        <label class="field">may observe only these labels <input spellcheck={false} placeholder="Says Present" value={watch} onInput={(event) => setWatch(event.currentTarget.value)} /></label>
        <label class="field">ends after hours <input type="number" min="0" step="any" value={hours} onInput={(event) => setHours(event.currentTarget.value)} /></label>
        <div class="bar"><button class="primary" onClick={narrow}>narrow</button></div>
        {problem && <p class="bad">{visible(problem)}</p>}
      </section>
      {narrowed && (
        <section>
          <h2>The narrowed one</h2>
          <p class="text narrowed">{visible(narrowed)} <Copy text={narrowed} /></p>
          <Allows text={narrowed} />
        </section>
      )}
      <Command line={`syndicate cap attenuate - ${only ? `--only '${only.split("\n")[0]}' ` : ""}${watch ? `--watch ${watch.split(/[\s,]+/)[0]} ` : ""}<capability`} />
    </>
  )
}
