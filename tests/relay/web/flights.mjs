// The flights of the demo, while they fly: node flights.mjs CHROMIUM ADDRESS FOLDER
import { end, go, open, say, shows, state } from "./browser.mjs"

const tab = await open()
await state(tab, "connected")
await go(tab, "#page=tail")
await shows(tab, "Nothing has happened")
say("open")
await shows(tab, "<Airborne ")
say("seen")
await end()
