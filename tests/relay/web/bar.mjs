// The page of the tutorial in a real Chromium: node bar.mjs CHROMIUM PAGE.  It says what it sees, a line each.
import { createInterface } from "node:readline"
import { createRequire } from "node:module"
const { chromium } = createRequire(new URL("../../../relay/web/package.json", import.meta.url))("playwright-core")

const [executablePath, page] = process.argv.slice(2)
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] })
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const tab = await browser.newPage()
await tab.goto(page)
const orders = () => tab.locator("#orders li").allTextContents()
async function until(count) {
  while ((await orders()).length !== count) await new Promise((resolve) => setTimeout(resolve, 50))
  console.log(JSON.stringify(await orders()))
}
await until(1)
await tab.click("#order")
await until(2)
await lines.next() // the server ends
await until(0)
await browser.close()
process.exit(0)
