// The hook for React and the element of the examples, a window each: node frameworks.mjs CHROMIUM PAGE FOLDER SERVER REACT
// It says what it does, a line each, and waits for a line where the test acts.
import { end, lines, open, say, until, wrong } from "./browser.mjs"

const [server, react] = process.argv.slice(5)
const here = (tab, names) => until(tab, (wanted) => {
  const there = [...document.querySelectorAll("li")].map((each) => each.textContent).sort()
  return JSON.stringify(there) === JSON.stringify(wanted) && !document.images.length
}, names)
const HOSTILE = "<img src=x onerror=alert(1)>"

const element = await open()
await element.evaluate(([server]) => {
  const element = document.createElement("who-is-here")
  element.setAttribute("server", server)
  element.setAttribute("name", "Ann")
  document.body.append(element)
}, [server])
const page = await open({}, `${react}?server=${encodeURIComponent(server)}`)
for (const tab of [element, page]) await here(tab, [HOSTILE, "Ann", "Dora", "Eve", "Flo"])
await page.click("button")
for (const tab of [element, page]) await here(tab, [HOSTILE, "Ann", "Dora", "Eve"])
await page.click("button")
for (const tab of [element, page]) await here(tab, [HOSTILE, "Ann", "Dora", "Eve", "Flo"])
await element.evaluate(() => document.querySelector("who-is-here").remove())
await here(page, [HOSTILE, "Dora", "Eve", "Flo"])
say("gone")
await lines.next() // the program has seen it, and has ended
await here(page, ["Dora", "Eve", "Flo"])
say("alone")
await lines.next() // the server is killed
await here(page, [])
say("lost")
await lines.next() // there is another one
await here(page, ["Dora", "Eve", "Flo"])
if (wrong.length) say(wrong.join(" "))
await end()
