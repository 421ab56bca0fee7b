// Where in the console one is: in the address's fragment, so that each view can be linked to.

import { useLayoutEffect, useState } from "preact/hooks"

export type Place = Readonly<Record<string, string>>

const here = (): Place => Object.fromEntries(new URLSearchParams(location.hash.slice(1)))

/** The address of a place; the dataspace that is looked at stays the same where it is not named. */
export function address(place: Place): string {
  const whole = { ...place, space: place["space"] ?? here()["space"] ?? "" }
  return `#${new URLSearchParams(Object.entries(whole).filter(([, value]) => value !== "")).toString()}`
}

/** Go there without a new entry in the history, as for each letter of a filter. */
export function move(place: Place): void {
  history.replaceState(null, "", address(place))
  dispatchEvent(new HashChangeEvent("hashchange"))
}

export function usePlace(): Place {
  const [place, set] = useState(here)
  // Before the next frame, as all that listens does here: what happens between drawing and an effect would be lost.
  useLayoutEffect(() => {
    const changed = (): void => set(here())
    addEventListener("hashchange", changed)
    return () => removeEventListener("hashchange", changed)
  }, [])
  return place
}
