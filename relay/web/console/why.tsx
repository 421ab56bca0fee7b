// Why something was asserted or sent, or why nothing like it is there: a tree of what led to it.

import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useState } from "preact/hooks"
import type { Value } from "../client/index.js"
import { ask, follow, followed, type Page, type Row, useAnswer, watch } from "./questions.js"
import { brief, visible } from "./text.js"
import { Coloured } from "./value.js"

/** Whether what happens is followed, and the switch for it. */
export function Following(): ComponentChildren {
  const [, draw] = useState(0)
  useLayoutEffect(() => watch(() => draw((n) => n + 1)), [])
  return (
    <label class="switch" title="a turn takes five to eight times as long meanwhile">
      <input type="checkbox" checked={followed.on} onChange={(event) => follow(event.currentTarget.checked)} /> follow what happens
      {followed.on && <span class="soft"> {followed.figures.get("steps kept") ?? 0} steps kept</span>}
    </label>
  )
}

/** Why the row of rules is there that *fields* ask for, as long as it is shown. */
export function Reason({ fields }: { fields: readonly Value[] }): ComponentChildren {
  const answer = useAnswer("reason", fields)
  return (
    <section class="why">
      <h2>Why is it there?</h2>
      {answer === null ? <p class="soft">looking ..</p>
        : typeof answer === "string" ? <p class="soft">{visible(answer)}</p>
        : <Branch rows={answer.rows} at={0} depth={0} seen={new Set()} />}
    </section>
  )
}

export function Why({ text, negative = false }: { text: string; negative?: boolean }): ComponentChildren {
  const [answer, set] = useState<Page | string | null>(null)
  const [asked, setAsked] = useState(0)
  useEffect(() => {
    set(null)
    if (!asked) return
    return ask(negative ? "why-not" : "why", [text], set)
  }, [text, asked, negative])
  return (
    <section class="why">
      <h2>{negative ? "Why does nothing match?" : "Why is it there?"}</h2>
      <div class="bar"><button onClick={() => setAsked((n) => n + 1)}>{asked ? "ask again" : negative ? "why not?" : "why?"}</button><Following /></div>
      {!asked ? null : answer === null ? <p class="soft">looking ..</p>
        : typeof answer === "string" ? <p class={answer === "nothing is followed" ? "soft" : "bad"}>{answer === "nothing is followed" ? "Nothing is followed yet: follow what happens, and ask about what comes from then on." : visible(answer)}</p>
        : answer.rows.length ? <Branch rows={answer.rows} at={0} depth={0} seen={new Set()} />
        : <p class="soft">{negative ? "Nothing that could have asserted it was seen." : "It is not asserted now, and was there before anything was followed, or what led to it is forgotten."}</p>}
    </section>
  )
}

function Branch({ rows, at, depth, seen }: { rows: readonly Row[]; at: number; depth: number; seen: Set<number> }): ComponentChildren {
  const row = rows[at]
  if (!row) return null
  const [title, because, place, premises, conditions] = row
  const [, verb, rest] = /^(\w+) (.*)$/s.exec(String(title)) ?? ["", "", String(title)]
  const head = (
    <>
      <i class="soft">{visible(verb!)} </i><span class="text"><Coloured text={rest!.slice(0, 300)} /></span>
      <div class="soft because" title={visible(String(because || place))}>{visible(brief(String(because || place)))}</div>
    </>
  )
  const below = (premises as number[]).filter((each) => each !== at)
  if (seen.has(at)) return <div class="branch">{head}<div class="soft">see above</div></div>
  seen.add(at)
  if (!below.length && !(conditions as Row).length) return <div class="branch leaf">{head}</div>
  return (
    <details class="branch" open={depth < 6}>
      <summary>{head}</summary>
      {below.map((each) => <Branch rows={rows} at={each} depth={depth + 1} seen={seen} />)}
      {(conditions as Row).map((each) => <div class="branch soft">{visible(String(each))}</div>)}
    </details>
  )
}
