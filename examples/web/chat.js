// A chat: each window asserts that its user is here, and observes who else is.  There is no code for leaving: what a
// window has asserted goes with it.
import { assert, capabilityOfPage, capture, connect, during, onMessage, onStop, record, send } from "../../relay/web/dist/syndicate.js"

const Present = record("Present", ["who"])
const Says = record("Says", ["who", "what"])

const [state, log, here, form, what, me] = ["state", "log", "here", "form", "what", "me"].map((id) => document.getElementById(id))
const query = new URLSearchParams(location.search)
const name = query.get("name") || `Guest ${100 + Math.floor(Math.random() * 900)}`
me.textContent = name

/** A text without signs that control it: with those of direction, `exe.png` may be written `gnp.exe`. */
function plain(text) {
  return String(text).replace(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)
}

/** A new element; what peers say is only ever text. */
function add(parent, tag, ...parts) {
  const element = document.createElement(tag)
  for (const [kind, text] of parts) {
    const part = document.createElement("span")
    part.className = kind
    part.textContent = plain(text)
    element.append(part)
  }
  parent.append(element)
  return element
}

function line(...parts) {
  const following = log.scrollHeight - log.scrollTop - log.clientHeight < 40
  add(log, "p", ...parts)
  while (log.childElementCount > 1000) log.firstElementChild.remove()
  if (following) log.scrollTop = log.scrollHeight
}

const cap = capabilityOfPage()
const connection = connect(query.get("server") || "ws://127.0.0.1:8080", {
  ...(cap ? { cap } : {}),
  onState: (now, { reason }) => {
    state.className = now
    state.textContent = reason && now !== "connected" ? `${now}: ${reason}` : now
  },
}, (ds) => {
  assert(ds, Present(name))
  during(ds, Present(capture("str")), (who) => {
    const item = add(here, "li", ["who", who])
    line(["note", `${who} is here`])
    onStop(() => {
      item.remove()
      line(["note", `${who} has left`])
    })
  })
  onMessage(ds, Says(capture("str"), capture("str")), (who, text) => line(["who", who], ["what", text]))
  form.onsubmit = (event) => {
    event.preventDefault()
    const text = what.value.trim()
    if (!text || !connection.facet) return
    connection.facet.enter(() => send(ds, Says(name, text)))
    what.value = ""
  }
})
what.focus()
