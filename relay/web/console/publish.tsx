// Assert and send: what is asserted here stands as long as this page is open, and its connection lives.

import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { assert, connect, type Connection, type Handle, parse, type Ref, send, show, type Value } from "../client/index.js"
import { RELAY, writing } from "./questions.js"
import { visible } from "./text.js"

interface Held {
  readonly value: Value
  handle: Handle | null
}

const held = new Set<Held>()
let target: Ref | null = null
let connection: Connection | null = null

function hold(each: Held): void {
  each.handle = assert(target!, each.value)
}

/** The connection that writes, begun when it is first needed. */
function writer(): Connection {
  return connection ??= connect(RELAY, { cap: writing! }, (ds) => {
    target = ds
    held.forEach(hold)
  })
}

export function Publish(): ComponentChildren {
  const [text, setText] = useState("")
  const [said, setSaid] = useState("")
  const [, draw] = useState(0)
  const { state, facet } = writer()
  const act = (verb: "assert" | "send") => (): void => {
    let value: Value
    try {
      value = parse(text)
    } catch (error) {
      return setSaid(`This is no value: ${error instanceof Error ? error.message : String(error)}`)
    }
    const now = writer().facet
    if (!now) return setSaid(`Not connected (${writer().state}): nothing was done.`)
    if (verb === "send") now.enter(() => send(target!, value))
    else {
      const each: Held = { value, handle: null }
      held.add(each)
      now.enter(() => hold(each))
    }
    setSaid(`${verb === "send" ? "sent" : "asserted"}: ${show(value)}`)
  }
  const retract = (each: Held): void => {
    held.delete(each)
    writer().facet?.enter(() => each.handle?.retract())
    draw((n) => n + 1)
  }
  return (
    <>
      <div class="bar">
        <input type="search" aria-label="value" placeholder={'<Says "ann" "hello">'} value={text}
          onInput={(event) => setText(event.currentTarget.value)} />
        <button onClick={act("assert")}>assert</button>
        <button onClick={act("send")}>send</button>
      </div>
      <p class={/^This|^Not/.test(said) ? "bad" : "soft"}>{visible(said || (facet ? "" : state))}</p>
      <h2>Asserted here, until this page is closed</h2>
      {held.size ? [...held].map((each) => (
        <div class="bar"><button onClick={() => retract(each)}>retract</button><span class="text">{visible(show(each.value))}</span></div>
      )) : <p class="soft">Nothing.</p>}
    </>
  )
}
