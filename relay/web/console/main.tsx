// The console: pages about a running broker or program, each with an address of its own.

import { type ComponentChildren, render } from "preact"
import { useEffect, useLayoutEffect, useState } from "preact/hooks"
import { Actors } from "./actors.js"
import { Assertions } from "./assertions.js"
import { Capabilities } from "./capabilities.js"
import { Causes } from "./causes.js"
import { eachSecond, latest } from "./health.js"
import { Interests } from "./interests.js"
import { Overview } from "./overview.js"
import { address, move, type Place, usePlace } from "./place.js"
import { Publish } from "./publish.js"
import { link, look, minting, spaces, watch, writing } from "./questions.js"
import { Rules } from "./rules.js"
import { Sessions } from "./sessions.js"
import { Tail } from "./tail.js"
import { figure, visible } from "./text.js"

interface Kind {
  readonly page: (at: { place: Place }) => ComponentChildren
  readonly about: string
}
const PAGES: Readonly<Record<string, Kind>> = {
  overview: { page: Overview, about: "is it alive, how much is there, how fast does it go" },
  assertions: { page: Assertions, about: "what is asserted, by whom, and who observes it" },
  interests: { page: Interests, about: "who observes what, and what matches" },
  tail: { page: Tail, about: "what happens, event by event" },
  sessions: { page: Sessions, about: "who is connected" },
  actors: { page: Actors, about: "what each actor does, costs and holds" },
  rules: { page: Rules, about: "circuits and programs of rules, with what each part holds and costs" },
  causes: { page: Causes, about: "what led to what, turn by turn" },
  ...(writing === null ? {} : { publish: { page: Publish, about: "assert and send" } }),
  ...(writing === null && minting === null ? {} : { capabilities: { page: Capabilities, about: "make, narrow and understand capabilities" } }),
}
const NAMES = Object.keys(PAGES)
const KEYS: readonly (readonly [string, string])[] = [
  ["1 .. 9, 0", "go to a page"], ["/", "filter"], ["↑ ↓ Enter", "choose a row, open it"], ["Esc", "close what is open"],
  ["p", "pause the tail"], ["?", "this list"],
]

const SCHEMES = ["light dark", "light", "dark"] as const
const SAID: Readonly<Record<string, string>> = { "light dark": "as the system", light: "light", dark: "dark" }
function scheme(next = false): string {
  let now = localStorage.getItem("syndicate-scheme") ?? "light dark"
  if (next) {
    now = SCHEMES[(SCHEMES.indexOf(now as "light") + 1) % SCHEMES.length]!
    localStorage.setItem("syndicate-scheme", now)
  }
  document.documentElement.style.colorScheme = now
  return now
}

function State(): ComponentChildren {
  const [, draw] = useState(0)
  const [now, setScheme] = useState(() => scheme())
  useLayoutEffect(() => {
    const ends = [watch(() => draw((n) => n + 1)), eachSecond(() => draw((n) => n + 1))]
    return () => ends.forEach((end) => end())
  }, [])
  const connected = link.state === "connected"
  return (
    <div class="foot">
      <span class={`state ${connected ? "connected" : "lost"}`} role="status" title={visible(link.reason)}>
        <i class="lamp" />{link.state}{!connected && link.reason ? `: ${visible(link.reason)}` : ""}
      </span>
      {connected && <span class="soft">{figure(latest("events a second"))} events/s</span>}
      <span class="soft">{writing === null ? "read only" : "may write"}</span>
      <button class="plain soft" onClick={() => setScheme(scheme(true))} title="colours">{SAID[now]}</button>
      <button class="plain soft keys" onClick={() => help(true)} title="keys">keys ?</button>
    </div>
  )
}

/** Which dataspace is looked at, where there are several. */
function Space({ place }: { place: Place }): ComponentChildren {
  const [, draw] = useState(0)
  useLayoutEffect(() => watch(() => draw((n) => n + 1)), [])
  if (spaces.rows.length < 2) return null
  return (
    <select class="space" aria-label="dataspace" title="the dataspace that is shown" value={String(spaces.at ?? spaces.rows[0]![0])} onChange={(event) => move({ page: place["page"] ?? "overview", space: event.currentTarget.value })}>
      {spaces.rows.map(([id, name], i) => <option value={String(id)}>{visible(String(name))}{spaces.rows.findIndex((each) => each[1] === name) < i ? ` ${String(id)}` : ""}</option>)}
    </select>
  )
}

let help: (on: boolean) => void = () => {}
function Help(): ComponentChildren {
  const [on, set] = useState(false)
  help = set
  useLayoutEffect(() => {
    if (!on) return
    const key = (event: KeyboardEvent): void => void (event.key === "Escape" && set(false))
    addEventListener("keydown", key)
    return () => removeEventListener("keydown", key)
  }, [on])
  if (!on) return null
  return (
    <div class="veil" onClick={() => set(false)}>
      <div class="help" role="dialog" aria-label="keys">
        <h2>Keys</h2>
        {KEYS.map(([key, what]) => <div class="entry"><kbd>{key}</kbd><div>{what}</div></div>)}
        <button onClick={() => set(false)}>close</button>
      </div>
    </div>
  )
}

function Console(): ComponentChildren {
  const place = usePlace()
  const name = place["page"] !== undefined && NAMES.includes(place["page"]) ? place["page"] : "overview"
  const { page: Page, about } = PAGES[name]!
  const space = place["space"] ?? ""
  look(/^\d+$/.test(space) ? Number(space) : null)
  useEffect(() => document.querySelector("nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" }), [name])
  useEffect(() => void (document.title = `${name} - syndicate console`), [name])
  return (
    <>
      <header>
        <b class="brand">syndicate</b>
        <Space place={place} />
        <nav aria-label="pages">
          {NAMES.map((each, i) => <a href={address({ page: each })} aria-current={each === name ? "page" : undefined} title={PAGES[each]!.about}>{each}<kbd>{(i + 1) % 10}</kbd></a>)}
        </nav>
        <State />
      </header>
      <main class={`page-${name}`}>
        <h1>{name} <small>{about}</small></h1>
        <Page key={`${name} ${space}`} place={place} />
      </main>
      <Help />
    </>
  )
}

addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLSelectElement
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return
  const page = /^\d$/.test(event.key) ? NAMES[(Number(event.key) + 9) % 10] : undefined
  if (page !== undefined) location.hash = address({ page })
  if (event.key === "?") help(true)
  if (event.key === "/") {
    event.preventDefault()
    document.querySelector<HTMLInputElement>("main input[type=search]")?.focus()
  }
})
scheme()
render(<Console />, document.body)
