// The shared cases with the JavaScript client: node conformance.mjs ADDRESS CASES.json [CHROMIUM]; prints the traces as JSON.
// With a browser, ADDRESS is that of a console that may write, and they are played in its page, under its policy.
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import * as s from "../../../relay/web/dist/syndicate.js"
import { played } from "./played.mjs"

const [address, path, executablePath] = process.argv.slice(2)
const cases = JSON.parse(readFileSync(path, "utf8"))

async function inPage() {
  const { chromium } = createRequire(new URL("../../../relay/web/package.json", import.meta.url))("playwright-core")
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] })
  const tab = await browser.newPage()
  const url = new URL(address)
  const cap = new URLSearchParams(url.hash.slice(1)).get("write")
  await tab.goto(url.origin + url.pathname)
  const parameters = ["ws://" + url.host + "/relay", { cap }, cases].map((each) => JSON.stringify(each)).join(", ")
  const traces = await tab.evaluate(`import("/syndicate.js").then((s) => (${played})(s, ${parameters}))`)
  await browser.close()
  return traces
}
console.log(JSON.stringify(executablePath ? await inPage() : await played(s, address, {}, cases)))
process.exit(0)
