// What tests of the console share: a real Chromium, pages that note what goes wrong, and waiting for what is shown.
// A script that imports it is called with CHROMIUM ADDRESS FOLDER.  It says what it does, a line each, and waits for a line where the test acts.
import { createInterface } from "node:readline"
import { createRequire } from "node:module"
const { chromium } = createRequire(new URL("../../../relay/web/package.json", import.meta.url))("playwright-core")

export const [executablePath, address, folder] = process.argv.slice(2)
export const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] })
export const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
export const wrong = []

export async function open(options = {}, page = address) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 660 }, ...options })
  const tab = await context.newPage()
  tab.on("console", (message) => message.type() === "error" && !/WebSocket connection/.test(message.text()) && wrong.push(message.text()))
  tab.on("pageerror", (error) => wrong.push(String(error)))
  tab.on("request", (request) => {
    const { host, protocol } = new URL(request.url())
    if (host !== new URL(page).host && !["data:", "blob:"].includes(protocol)) wrong.push(request.url())
  })
  await tab.goto(page)
  return tab
}
/** Wait until *f* says so in the page: polled from outside, which a strict policy allows. */
export async function until(tab, f, argument) {
  for (const end = Date.now() + 800_000; ;) {
    const value = await tab.evaluate(f, argument)
    if (value) return value
    if (Date.now() > end) throw new Error(`waited in vain for ${argument ?? f} in: ${await tab.evaluate(() => document.body.innerText)}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
export const shows = (tab, text) => until(tab, (wanted) => document.querySelector("main")?.innerText.includes(wanted), text)
export const state = (tab, wanted) => until(tab, (wanted) => document.querySelector(".state")?.textContent.startsWith(wanted), wanted)
export const say = (word) => console.log(word)
export const picture = (tab, name) => tab.screenshot({ path: `${folder}/console-${name}.png` })

export const go = (tab, hash) => tab.evaluate((hash) => (location.hash = hash), hash)
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
/** Say what went wrong, and end. */
export async function end() {
  say(JSON.stringify(wrong))
  await browser.close()
  process.exit(0)
}
