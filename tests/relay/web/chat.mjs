// Two windows of the chat in a real Chromium: node chat.mjs CHROMIUM PAGE SERVER FOLDER
// It says what it does, a line each, and waits for a line where the test acts.
import { createInterface } from "node:readline"
import { createRequire } from "node:module"
const { chromium } = createRequire(new URL("../../../relay/web/package.json", import.meta.url))("playwright-core")

const [executablePath, page, server, folder] = process.argv.slice(2)
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] })
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const wrong = []

async function open(name, options = {}) {
  const context = await browser.newContext({ viewport: { width: 900, height: 560 }, ...options })
  const tab = await context.newPage()
  tab.on("console", (message) => message.type() === "error" && !/WebSocket connection/.test(message.text()) && wrong.push(message.text()))
  tab.on("pageerror", (error) => wrong.push(String(error)))
  tab.on("request", (request) => new URL(request.url()).origin !== new URL(page).origin && wrong.push(request.url()))
  await tab.goto(`${page}?${new URLSearchParams({ name, server })}#cap=${encodeURIComponent('<ref {oid: "syndicate" sig: #x"69ca300c1dbfa08fba692102dd82311a"}>')}`)
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
const here = (tab, names) => until(tab, (wanted) => {
  const there = [...document.querySelectorAll("#here li")].map((each) => each.textContent).sort()
  return JSON.stringify(there) === JSON.stringify(wanted)
}, names)
const heard = (tab, text) => until(tab, (wanted) => [...document.querySelectorAll("#log .what")].some((each) => each.textContent === wanted), text)
const say = async (word) => console.log(word)

const ann = await open("Ann")
const bob = await open("Bob", { viewport: { width: 400, height: 700 }, colorScheme: "dark" })
await say("open")
await here(ann, ["Ann", "Bob", "Cleo", "Dora"])
await here(bob, ["Ann", "Bob", "Cleo", "Dora"])
if (await ann.evaluate(() => location.hash)) wrong.push("the capability is still in the address")
await ann.fill("#what", "Good morning, everybody")
await ann.keyboard.press("Enter")
await heard(bob, "Good morning, everybody")
await heard(bob, "Good evening") // typed in a terminal
await heard(ann, "Good evening")
const hostile = "<img src=x onerror=alert(1)><script>document.title='taken'</script>"
await bob.fill("#what", hostile)
await bob.keyboard.press("Enter")
await heard(ann, hostile)
if (await ann.evaluate(() => document.images.length || document.title !== "Chat")) wrong.push("a value became markup")
await heard(ann, "x".repeat(1_000_000))
await heard(ann, "\\u202egnp.exe")
await ann.evaluate(() => document.querySelectorAll("#log p").forEach((each) => each.textContent.length > 1000 && each.remove()))
await bob.evaluate(() => document.querySelectorAll("#log p").forEach((each) => each.textContent.length > 1000 && each.remove()))
await ann.screenshot({ path: `${folder}/chat.png` })
await bob.screenshot({ path: `${folder}/chat-narrow-dark.png` })
await say("said")
await lines.next() // the server is killed
await until(ann, () => document.querySelector("#state").className !== "connected")
await here(ann, [])
await say("lost")
await lines.next() // there is another one
await here(ann, ["Ann", "Bob"])
await say("back")
await bob.close()
await here(ann, ["Ann"])
await say(JSON.stringify(wrong))
await browser.close()
process.exit(0)
