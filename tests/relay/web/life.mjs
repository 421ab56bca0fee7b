// The life of a connection: node life.mjs ADDRESS; reads lines of what to do, writes one line for each thing that happens.
import { createInterface } from "node:readline"
import * as s from "../../../relay/web/dist/syndicate.js"

const say = (...words) => console.log(words.join(" "))
const Present = s.record("Present", ["who"])
const count = s.field(0)
const abort = new AbortController()

const c = s.connect(process.argv[2], { onState: (state) => say("state", state), onError: (e) => say("error", e.message) }, (ds) => {
  s.assert(ds, Present("js"))
  s.assert(ds, () => (count.value ? new s.Rec(s.sym("Count"), [count.value]) : undefined))
  s.during(ds, Present(s.capture()), (who) => {
    say("+", who)
    s.onStop(() => say("-", who))
  })
  s.react(() => s.assert(ds, Present("aborted")), { signal: abort.signal })
  s.onMessage(ds, new s.Rec(s.sym("Do"), [s.capture("str")]), (what) => {
    if (what === "throw") {
      count.value = 99
      s.assert(ds, Present("never"))
      throw new Error("thrown")
    }
    if (what === "later") {
      return Promise.resolve().then(() => {
        try { s.send(ds, 1) } catch (error) { say("later", error.constructor === s.NotInTurn) }
        s.sync(ds, () => say("never"))
      })
    }
    if (what === "count") count.value += 1
    if (what === "abort") abort.abort()
    if (what === "close") c.close()
    if (what === "introduce") {
      try { s.send(ds, [s.ref({})]) } catch (error) { say("introduce", error.constructor === s.NotAValue) }
    }
    if (what === "using") {
      const f = s.react(() => s.assert(ds, Present("brief")))
      f.signal.addEventListener("abort", () => say("signal"))
      f[Symbol.dispose ?? Symbol.for("Symbol.dispose")]()
    }
    s.sync(ds, () => say("done", what))
  })
  s.sync(ds, () => say("ready"))
})
createInterface({ input: process.stdin }).on("close", () => c.close())
