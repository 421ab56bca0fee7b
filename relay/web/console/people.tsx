// Names of actors, each a link to what is known of it.

import type { ComponentChildren } from "preact"
import type { Value } from "../client/index.js"
import { address } from "./place.js"
import { visible } from "./text.js"

/** `[[id name times] ..]` as links, with the first few names. */
export function People({ who, most = 3 }: { who: Value; most?: number }): ComponentChildren {
  const all = who as readonly (readonly Value[])[]
  return (
    <>
      {all.slice(0, most).map(([id, name, times], i) => (
        <>{i > 0 && ", "}<a href={address({ page: "actors", actor: String(id) })} title={visible(String(name))}>{visible(String(name))}</a>
          {times === 0 ? <i class="soft"> among many</i> : Number(times) > 1 ? <i class="soft"> {String(times)} times</i> : ""}</>
      ))}
      {all.length > most && <i class="soft"> and {all.length === 20 ? "more" : all.length - most}</i>}
    </>
  )
}
