// The console in a real Chromium: node console.mjs CHROMIUM ADDRESS FOLDER
// It says what it does, a line each, and waits for a line where the test acts.
import { readFileSync } from "node:fs"
import { createInterface } from "node:readline"
import { createRequire } from "node:module"
const { chromium } = createRequire(new URL("../../../relay/web/package.json", import.meta.url))("playwright-core")

const [executablePath, address, folder] = process.argv.slice(2)
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] })
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const wrong = []

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1000, height: 620 }, ...options })
  const tab = await context.newPage()
  tab.on("console", (message) => message.type() === "error" && !/WebSocket connection/.test(message.text()) && wrong.push(message.text()))
  tab.on("pageerror", (error) => wrong.push(String(error)))
  tab.on("request", (request) => {
    const { host, protocol } = new URL(request.url())
    if (host !== new URL(address).host && !["data:", "blob:"].includes(protocol)) wrong.push(request.url())
  })
  await tab.goto(address)
  return tab
}
/** Wait until *f* says so in the page: polled from outside, which a strict policy allows. */
async function until(tab, f, argument) {
  for (;;) {
    const value = await tab.evaluate(f, argument)
    if (value) return value
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
const shows = (tab, text) => until(tab, (wanted) => document.querySelector("main")?.innerText.includes(wanted), text)
const state = (tab, wanted) => until(tab, (wanted) => document.querySelector(".state")?.textContent.startsWith(wanted), wanted)
const say = (word) => console.log(word)
const picture = (tab, name) => tab.screenshot({ path: `${folder}/console-${name}.png` })

const tab = await open()
await state(tab, "connected")
if (await tab.evaluate(() => location.hash.includes("cap"))) wrong.push("the capability is still in the address")
await shows(tab, "events a second")
await new Promise((resolve) => setTimeout(resolve, 3000))
await picture(tab, "overview")

await tab.keyboard.press("2")
await shows(tab, "Temperature")
await picture(tab, "labels")
await tab.click("text=Temperature")
await shows(tab, "1 to 100 of 1,000")
await tab.keyboard.press("/")
await tab.keyboard.type("room 77")
await shows(tab, '<Temperature "room 77" 77>')
await shows(tab, "of 1,000")
await picture(tab, "assertions")
if (!(await tab.evaluate(() => location.hash)).includes("filter=room+77")) wrong.push("the view has no address")

await tab.click("text=all labels")
await tab.click("text=Hostile")
await shows(tab, "<img src=x onerror=alert(1)>")
await shows(tab, "\\u202egnp.exe")
await shows(tab, "more")
if (await tab.evaluate(() => document.images.length || document.title !== "syndicate console")) wrong.push("a value became markup")

await tab.keyboard.press("4")
await shows(tab, "<Absent ")
await shows(tab, "nothing")
await picture(tab, "interests")
await tab.keyboard.press("5")
await shows(tab, "127.0.0.1")
await picture(tab, "sessions")
await tab.keyboard.press("6")
await shows(tab, "census")
await picture(tab, "actors")
await tab.click("td a")
await shows(tab, "within")

await tab.keyboard.press("3")
await shows(tab, "Nothing has happened")
say("tail")
await shows(tab, '<Tick 7>')
await shows(tab, "-")
await tab.click("text=pause")
await shows(tab, "paused")
await picture(tab, "tail")
const [download] = await Promise.all([tab.waitForEvent("download"), tab.click("text=keep as a file")])
const recording = await download.path()
const events = readFileSync(recording, "utf8").trim().split("\n").map(JSON.parse)
if (!events.some(([, mark, text]) => mark === "-" && text === "<Tick 7>")) wrong.push("the file has not what happened")
await tab.setInputFiles("input[type=file]", { name: "tail.jsonl", mimeType: "application/jsonl", buffer: readFileSync(recording) })
await shows(tab, `event ${events.length} of ${events.length}`)
await tab.click("text=one back")
await shows(tab, `event ${events.length - 1} of`)
await picture(tab, "replay")
await tab.click("text=back to what happens now")

await tab.keyboard.press("7")
await tab.fill("input[aria-label=value]", "<Note")
await tab.click("button:text-is('assert')")
await shows(tab, "This is no value")
await tab.fill("input[aria-label=value]", '<Note "hello">')
await tab.click("button:text-is('assert')")
await shows(tab, 'asserted: <Note "hello">')
await tab.click("button:text-is('send')")
await shows(tab, "sent:")
await picture(tab, "publish")
await tab.click("text=retract")
await shows(tab, "Nothing.")
await tab.keyboard.press("Escape")
await tab.evaluate(() => document.activeElement.blur())
await tab.keyboard.press("2")
const narrow = await open({ viewport: { width: 400, height: 720 }, colorScheme: "dark" })
await state(narrow, "connected")
await narrow.evaluate(() => (location.hash = "#page=assertions&label=Temperature"))
await shows(narrow, "of 1,000")
if (await narrow.evaluate(() => document.documentElement.scrollWidth > innerWidth)) wrong.push("it is wider than 400 pixels")
await picture(narrow, "narrow-dark")
say("seen")
await lines.next() // the server is killed
for (const each of [tab, narrow]) await until(each, () => !document.querySelector(".state.connected"))
say(wrong.length ? JSON.stringify(wrong) : "[]")
await browser.close()
process.exit(0)
