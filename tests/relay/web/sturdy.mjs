// Narrows capabilities: reads [[capability, caveat ..] ..], prints what becomes of each.
import { readFileSync } from "node:fs"
import { attenuate } from "../../../relay/web/dist/syndicate.js"

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(([cap, ...caveats]) => attenuate(cap, ...caveats))))
