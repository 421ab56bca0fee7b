// The console of a broker: node console.mjs CHROMIUM ADDRESS FOLDER
import { readFileSync } from "node:fs"
import { address, end, folder, go, lines, open, pause, picture, say, shows, state, until, wrong } from "./browser.mjs"

const tab = await open()
await state(tab, "connected")
if (await tab.evaluate(() => location.hash.includes("cap"))) wrong.push("the capability is still in the address")
await shows(tab, "events a second")
await pause(3000)
await shows(tab, "waiting for what nobody asserts")
await shows(tab, "that nobody observes")
await picture(tab, "overview")

await tab.keyboard.press("2")
await shows(tab, "Temperature")
await picture(tab, "labels")
await tab.click("text=Temperature")
await shows(tab, "1,000")
await shows(tab, '"room 3"')
await tab.keyboard.press("/")
await tab.keyboard.type("room 77")
await shows(tab, '"room 77"')
await shows(tab, "of 1,000")
await until(tab, () => !document.querySelector("main").innerText.includes('"room 3"'))
await picture(tab, "assertions")
if (!(await tab.evaluate(() => location.hash)).includes("filter=room+77")) wrong.push("the view has no address")
await tab.fill("input[type=search]", "")
await shows(tab, '"room 3"')
await tab.evaluate(() => document.querySelector(".scroll").scrollTo(0, 700 * 30))
await shows(tab, '"room 705"')
const drawn = await tab.evaluate(() => document.querySelectorAll(".room .row").length)
if (drawn > 80) wrong.push(`${drawn} rows are drawn of those in view`)

await tab.click("text=all labels")
await tab.click("text=Hostile")
await shows(tab, "<img src=x onerror=alert(1)>")
await shows(tab, "\\u202egnp.exe")
await tab.click(".row:has-text('xxxx')")
await shows(tab, "more")
if (await tab.evaluate(() => document.images.length || !document.title.endsWith("syndicate console"))) wrong.push("a value became markup")
await tab.keyboard.press("Escape")
await until(tab, () => !document.querySelector(".drawer"))
/** Open what *selector* says by *click*, and press Escape as soon as it is drawn, before the page has shown a frame. */
const closes = (click, selector) => tab.evaluate(async ([click, selector]) => {
  const drawn = new Promise((resolve) => new MutationObserver((_, observer) => document.querySelector(selector) && (observer.disconnect(), resolve())).observe(document.body, { childList: true, subtree: true }))
  document.querySelector(click).click()
  await drawn
  dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }))
}, [click, selector])
for (const [click, selector] of [[".room .row", ".drawer"], ["button.keys", ".help"]]) {
  await closes(click, selector)
  await until(tab, (selector) => !document.querySelector(selector), selector)
}

await tab.keyboard.press("3")
await shows(tab, "<Absent ")
await shows(tab, "nothing, 1,000 near") // <Temperature 7 _>: another type than any
await tab.click(".row:has-text('Temperature')")
await shows(tab, "comes near")
await picture(tab, "interests")
await tab.keyboard.press("5")
await shows(tab, "127.0.0.1")
await picture(tab, "sessions")
await tab.keyboard.press("6")
await shows(tab, "census")
await tab.click(".row:has-text('census')")
await shows(tab, "Facets")
await shows(tab, "that it reaches")

await tab.keyboard.press("7")
await shows(tab, "No circuit")
await tab.keyboard.press("4")
await shows(tab, "Nothing has happened")
say("tail")
await shows(tab, '<Tick 7>')
await shows(tab, "-")
await pause(2500)
await tab.keyboard.press("p")
await shows(tab, "paused")
await picture(tab, "tail")
const [download] = await Promise.all([tab.waitForEvent("download"), tab.click("text=keep as a file")])
const recording = await download.path()
const [first, ...events] = readFileSync(recording, "utf8").trim().split("\n").map(JSON.parse)
if (first.recording !== "syndicate") wrong.push("it is no recording")
if (!events.some(({ event, value }) => event === "-" && value === "<Tick 7>")) wrong.push("the file has not what happened")
say(`recording ${recording}`)
await lines.next() // Python has read it
await tab.setInputFiles("input[type=file]", { name: "tail.jsonl", mimeType: "application/jsonl", buffer: readFileSync(recording) })
await shows(tab, `event ${events.length} of ${events.length}`)
await tab.click("text=one back")
await shows(tab, `event ${events.length - 1} of`)
// At 25 moments, what is asserted is what the events up to there leave.
for (let i = 0; i < 25; i++) {
  const [at, there] = await tab.evaluate((share) => {
    const slider = document.querySelector("input.time")
    slider.value = share
    slider.dispatchEvent(new Event("input", { bubbles: true }))
    return new Promise((resolve) => setTimeout(() => resolve([
      Number(/event ([\d,]+) of/.exec(document.querySelector(".count").textContent)[1].replace(",", "")),
      [...document.querySelectorAll(".halves section:first-child .list > .text")].map((each) => each.textContent.replace(/ \d+ times$/, "")),
    ]), 60))
  }, String(i * 41))
  const copies = new Map()
  for (const { event, value } of events.slice(0, at))
    if (event !== "!") copies.set(value, (copies.get(value) ?? 0) + (event === "+" ? 1 : -1))
  const wanted = [...copies].filter(([, number]) => number > 0).map(([value]) => value)
  if (JSON.stringify(wanted.sort()) !== JSON.stringify(there.sort())) wrong.push(`at event ${at} ${there} is asserted, and not ${wanted}`)
}
await picture(tab, "replay")
await tab.evaluate(() => {
  const slider = document.querySelector("input.time")
  slider.value = "0"
  slider.dispatchEvent(new Event("input", { bubbles: true }))
})
await tab.click("text=× 1")
await shows(tab, "stop")
await tab.click("text=back to what happens now")
const why = ["/srv/shop.py:3 sell in till of shop"]
const caused = [first, { at: 0.1, event: "!", value: "<Sold 7>", why }].map((line) => `${JSON.stringify(line)}\n`).join("")
await tab.setInputFiles("input[type=file]", { name: "why.jsonl", mimeType: "application/jsonl", buffer: Buffer.from(caused) })
await shows(tab, "by shop.py:3 sell in till of shop") // what led to it, where the recording has that
await tab.click("text=back to what happens now")
await tab.setInputFiles("input[type=file]", { name: "other.jsonl", mimeType: "application/jsonl", buffer: Buffer.from("{}\n") })
await shows(tab, "other.jsonl is no recording")

await tab.keyboard.press("9")
await tab.fill("input[aria-label=value]", "<Note")
await shows(tab, "the text ends too early")
await tab.click("button:text-is('assert')")
await shows(tab, "This is no value")
await tab.fill("input[aria-label=value]", '<Note "hello">')
await tab.click("button:text-is('assert')")
await shows(tab, 'asserted: <Note "hello">')
await tab.click("button:text-is('send')")
await shows(tab, "sent:")
await picture(tab, "publish")
await tab.click("button:text-is('replace')")
await tab.fill("input[aria-label=value]", '<Note "bye">')
await tab.click("button.primary:text-is('replace')")
await shows(tab, 'asserted: <Note "bye">')
await tab.click("button:text-is('retract')")
await shows(tab, "Nothing.")

await go(tab, "#page=capabilities")
await until(tab, () => document.querySelectorAll("option").length)
await tab.click("text=mint")
await tab.fill("textarea", '<Note "allowed">')
await tab.click("button:text-is('narrow')")
await shows(tab, 'lets pass <rec Note [<lit "allowed">]>')
await tab.evaluate(() => document.querySelector(".narrowed").scrollIntoView())
await picture(tab, "capabilities")
say(`narrowed ${await tab.evaluate(() => document.querySelector(".narrowed").firstChild.textContent)}`)
await lines.next() // Python has used it

const narrow = await open({ viewport: { width: 400, height: 720 }, colorScheme: "dark" })
await state(narrow, "connected")
for (const page of await narrow.evaluate(() => [...document.querySelectorAll("nav a")].map((a) => a.getAttribute("href")))) {
  await go(narrow, page)
  await pause(300)
  if (await narrow.evaluate(() => document.documentElement.scrollWidth > innerWidth)) wrong.push(`${page} is wider than 400 pixels`)
}
await go(narrow, "#page=assertions&label=Temperature")
await shows(narrow, "1,000")
if (await narrow.evaluate(() => document.documentElement.scrollWidth > innerWidth)) wrong.push("a table is wider than 400 pixels")
await picture(narrow, "narrow-dark")
const dark = await open({ colorScheme: "dark" })
await state(dark, "connected")
await pause(3500)
await picture(dark, "dark")
say("seen")
await lines.next() // the server is killed
for (const each of [tab, narrow]) await until(each, () => document.querySelector(".state.lost"))
say("lost")
await lines.next() // and there is another one at its place, with the same keys
await go(tab, "#page=assertions")
await until(tab, () => document.querySelector(".state.connected"))
await shows(tab, "Again")
await end()
