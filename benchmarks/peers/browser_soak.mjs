// An hour of the console: node browser_soak.mjs CHROMIUM ADDRESS SECONDS; a line of JSON each minute.
// One tab shows the tail all the time, another goes through all pages again and again.
import { readFileSync, readdirSync } from "node:fs"
import { createRequire } from "node:module"
const { chromium } = createRequire(new URL("../../relay/web/package.json", import.meta.url))("playwright-core")

const [executablePath, address, seconds] = process.argv.slice(2)
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--enable-precise-memory-info"] })
const context = await browser.newContext()
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function open(hash) {
  const tab = await context.newPage()
  tab.on("pageerror", (error) => console.log(JSON.stringify({ error: String(error) })))
  await tab.goto(address)
  await sleep(1000)
  await tab.evaluate((hash) => (location.hash = hash), hash)
  return { tab, session: await context.newCDPSession(tab) }
}
/** Bytes that only the renderers of this browser have, the largest last. */
function renderers() {
  const sizes = []
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8")
      if (!command.includes("--type=renderer")) continue
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8")
      const kilobytes = [...rollup.matchAll(/^Private_\w+: +(\d+)/gm)].reduce((sum, [, size]) => sum + Number(size), 0)
      sizes.push(kilobytes * 1024)
    } catch {
      continue // it has ended
    }
  }
  return sizes.sort((a, b) => a - b)
}
async function heap({ tab, session }) {
  await session.send("HeapProfiler.collectGarbage")
  const { metrics } = await session.send("Performance.getMetrics")
  const of = (name) => metrics.find((each) => each.name === name)?.value
  return { heap: of("JSHeapUsedSize"), nodes: of("Nodes"), listeners: of("JSEventListeners"), text: await tab.evaluate(() => document.querySelector(".count")?.textContent ?? "") }
}
const tail = await open("#page=tail")
const tour = await open("#page=overview")
for (const each of [tail, tour]) await each.session.send("Performance.enable")
const pages = await tour.tab.evaluate(() => [...document.querySelectorAll("nav a")].map((a) => a.getAttribute("href")))
const begun = Date.now()
let next = begun + 60_000
let at = 0
while (Date.now() - begun < Number(seconds) * 1000) {
  await tour.tab.evaluate((hash) => (location.hash = hash), pages[at++ % pages.length])
  await sleep(5000)
  if (Date.now() < next) continue
  next += 60_000
  console.log(JSON.stringify({ minute: Math.round((Date.now() - begun) / 60_000), tail: await heap(tail), tour: await heap(tour), renderers: renderers() }))
}
await browser.close()
