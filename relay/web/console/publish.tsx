// Assert and send: what is asserted here lasts as long as this page is open, and its connection lives.

import type { ComponentChildren } from "preact"
import { useLayoutEffect, useState } from "preact/hooks"
import { assert, connect, type Connection, type Handle, parse, type Ref, send, show, type Value } from "../client/index.js"
import { RELAY, spaces, writing } from "./questions.js"
import { visible } from "./text.js"
import { Coloured, Command } from "./value.js"

interface Held {
  value: Value
  handle: Handle | null
}

const held = new Set<Held>()
let target: Ref | null = null
let connection: Connection | null = null
const drawers = new Set<() => void>()

function hold(each: Held): void {
  each.handle = assert(target!, each.value)
}

/** The connection that writes, begun when it is first needed. */
function writer(): Connection {
  return connection ??= connect(RELAY, { cap: writing!, onState: () => queueMicrotask(() => drawers.forEach((draw) => draw())) }, (ds) => {
    target = ds
    held.forEach(hold)
  })
}

function read(text: string): Value | Error {
  try {
    return parse(text)
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

export function Publish(): ComponentChildren {
  const [text, setText] = useState("")
  const [said, setSaid] = useState("")
  const [replaced, replace] = useState<Held | null>(null)
  const [, draw] = useState(0)
  useLayoutEffect(() => {
    const one = (): void => draw((n) => n + 1)
    drawers.add(one)
    return () => void drawers.delete(one)
  }, [])
  const { state, facet, reason } = writer()
  const value = text.trim() ? read(text) : null
  const act = (verb: "assert" | "send") => (): void => {
    if (value instanceof Error || value === null) return setSaid(value ? `This is no value: ${value.message}` : "Write a value first.")
    const now = writer().facet
    if (!now) return setSaid(`Not connected (${writer().state}): nothing was done.`)
    if (verb === "send") now.enter(() => send(target!, value))
    else if (replaced) {
      replaced.value = value
      now.enter(() => replaced.handle?.replace(value))
      replace(null)
    } else {
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
      <p class="soft">What is asserted here{spaces.rows.length > 1 ? ` is in the dataspace ${visible(String(spaces.rows[0]![1]))}, and` : ""} is there until you retract it, or this page is closed.</p>
      <div class="bar">
        <input class="wide" aria-label="value" placeholder={'<Says "ann" "hello">'} value={text} spellcheck={false} autocomplete="off"
          aria-invalid={value instanceof Error} onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && act(event.shiftKey ? "send" : "assert")()} />
        <button class="primary" onClick={act("assert")}>{replaced ? "replace" : "assert"}</button>
        <button onClick={act("send")}>send</button>
      </div>
      <p class="preview">
        {value instanceof Error ? <span class="bad">{visible(value.message)}</span> : value === null ? <span class="soft">A value in the text syntax of Preserves. Enter asserts, Shift+Enter sends.</span> : <span class="text"><Coloured text={show(value)} /></span>}
      </p>
      <p class={/^This|^Not|^Write/.test(said) ? "bad" : "soft"} role="status">{visible(said || (facet ? "" : `${state} ${reason}`))}</p>
      <h2>Asserted here</h2>
      {held.size ? [...held].map((each) => (
        <div class="bar held">
          <button onClick={() => retract(each)}>retract</button>
          <button onClick={() => (replace(each), setText(show(each.value)))}>{replaced === each ? "being replaced" : "replace"}</button>
          <span class="text"><Coloured text={show(each.value)} /></span>
        </div>
      )) : <p class="empty">Nothing.</p>}
      <Command line={`syndicate assert '${text && !(value instanceof Error) ? text : '<Says "ann" "hello">'}'`} />
    </>
  )
}
