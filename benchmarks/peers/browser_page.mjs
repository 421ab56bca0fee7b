// What the console's page does under load: node browser_page.mjs CHROMIUM ADDRESS SECONDS, figures as JSON.
import { createRequire } from "node:module"
const { chromium } = createRequire(new URL("../../relay/web/package.json", import.meta.url))("playwright-core")

const [executablePath, address, seconds] = process.argv.slice(2)
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--enable-precise-memory-info"] })
const tab = await (await browser.newContext()).newPage()
const shows = async (text) => {
  while (!(await tab.evaluate((wanted) => document.querySelector("main")?.innerText.includes(wanted), text)))
    await new Promise((resolve) => setTimeout(resolve, 10))
}
await tab.goto(address)
await shows("events a second")

const begin = Date.now()
await tab.evaluate(() => (location.hash = "#page=assertions&label=Lit"))
await shows("100,000")
const first = Date.now() - begin
// Two and a half windows a second down the table, and a jump to another place each second.
const scrolled = await tab.evaluate((seconds) => new Promise((resolve) => {
  const box = document.querySelector(".scroll")
  const gaps = []
  let [last, filled] = [performance.now(), 0]
  const end = last + seconds * 1000
  const frame = (now) => {
    gaps.push(now - last)
    last = now
    box.scrollTop = gaps.length % 60 ? box.scrollTop + 30 : Math.random() * box.scrollHeight
    const { top, bottom } = box.getBoundingClientRect()
    if ([...document.querySelectorAll(".room .row")].some((row) => { const at = row.getBoundingClientRect(); return at.bottom > top && at.top < bottom })) filled++
    if (now < end) requestAnimationFrame(frame)
    else resolve({ rolled: gaps.length / seconds, rolledLate: gaps.filter((gap) => gap > 34).length, rolledLongest: Math.max(...gaps), filled: filled / gaps.length })
  }
  requestAnimationFrame(frame)
}), 5)
const filtering = Date.now()
await tab.evaluate(() => (location.hash = "#page=assertions&label=Lit&filter=room+99999"))
await shows("1 of 100,000")
const filtered = Date.now() - filtering

await tab.evaluate(() => (location.hash = "#page=tail"))
await shows("!")
const count = () => tab.evaluate(() => [".count", ".warn"].map((name) => Number((document.querySelector(`.bar ${name}`)?.textContent ?? "0").replace(/\D/g, ""))))
const [from] = await count()
const figures = await tab.evaluate((seconds) => new Promise((resolve) => {
  const gaps = []
  let last = performance.now()
  const end = last + seconds * 1000
  const frame = (now) => {
    gaps.push(now - last)
    last = now
    if (now < end) requestAnimationFrame(frame)
    else resolve({ frames: gaps.length, longest: Math.max(...gaps), late: gaps.filter((gap) => gap > 34).length, heap: performance.memory.usedJSHeapSize })
  }
  requestAnimationFrame(frame)
}), Number(seconds))
const [to, missed] = await count()
console.log(JSON.stringify({ ...figures, ...scrolled, first, filtered, events: (to - from) / Number(seconds), missed }))
await browser.close()
