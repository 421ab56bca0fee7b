// Each page of the console beside a program in which everything is hostile: node hostile.mjs CHROMIUM ADDRESS FOLDER
import { end, go, open, pause, say, shows, state, until, wrong } from "./browser.mjs"

const tab = await open()
await state(tab, "connected")
const dialogs = []
tab.on("dialog", (dialog) => (dialogs.push(dialog.message()), dialog.dismiss()))
/** What a page may not become, whatever it shows. */
async function harmless(where) {
  await pause(700)
  const page = await tab.evaluate(() => ({
    images: document.images.length,
    scripts: document.scripts.length,
    links: [...document.links].filter((link) => link.protocol === "javascript:").length,
    title: document.title,
    text: document.body.innerText,
    wide: document.documentElement.scrollWidth > innerWidth,
    long: Math.max(0, ...[...document.querySelectorAll("body *")].filter((each) => !each.childElementCount).map((each) => each.textContent.length)),
  }))
  if (page.images || page.links || page.scripts !== 1) wrong.push(`${where}: a value became markup`)
  if (!page.title.endsWith("syndicate console")) wrong.push(`${where}: the title is ${page.title}`)
  if (/[\u0000-\u0008\u000b-\u001f\u200e\u200f\u2028\u202a-\u202e\u2066-\u2069]/.test(page.text)) wrong.push(`${where}: what controls a text is not written out`)
  if (page.wide) wrong.push(`${where}: it is wider than its window`)
  if (page.long > 5_000) wrong.push(`${where}: ${page.long} characters in one element`)
  if (dialogs.length) wrong.push(`${where}: a dialog: ${dialogs}`)
}

const labels = await (async () => {
  await go(tab, "#page=assertions")
  await shows(tab, "<img src=x onerror=alert(1)>")
  await harmless("labels")
  return tab.evaluate(() => [...document.querySelectorAll(".room .row a, .room .row")].map((each) => each.getAttribute("href")).filter(Boolean))
})()
for (const label of labels) {
  await go(tab, label)
  await until(tab, () => document.querySelectorAll(".room .row").length || document.querySelector("main").innerText.includes("Nothing with this label"))
  await harmless(label.slice(0, 100))
  // Each of its values, opened, with why it is there.
  const rows = Math.min(8, await tab.evaluate(() => document.querySelectorAll(".room .row").length))
  for (let i = 0; i < rows; i++) {
    await tab.evaluate((i) => document.querySelectorAll(".room .row")[i]?.click(), i)
    await tab.evaluate(() => [...document.querySelectorAll(".drawer button")].find((each) => each.textContent === "why?")?.click())
    await harmless(`${label.slice(0, 100)}, value ${i}`)
  }
}
for (const [page, wanted] of [["overview", "Worth a look"], ["interests", "<Absent "], ["tail", "<Says "], ["sessions", "127.0.0.1"], ["actors", "<img src=x onerror=alert(1)>"]]) {
  await go(tab, `#page=${page}`)
  await shows(tab, wanted)
  await harmless(page)
  for (let i = 0; i < 6; i++) {
    await tab.evaluate((i) => document.querySelectorAll(".room .row.opens, .line.opens")[i]?.click(), i)
    await harmless(`${page}, row ${i}`)
  }
}
await go(tab, "#page=rules")
await until(tab, () => document.querySelectorAll(".box").length)
await tab.click(".box:has-text('busy')")
await shows(tab, "busy('<img src=x onerror=alert(1)>')")
await tab.click("[role=listitem]:has-text('onerror')")
await shows(tab, "Why is it there?")
await harmless("rules")
await go(tab, "#page=causes")
await tab.click("button.primary")
await until(tab, () => document.querySelectorAll(".turn").length > 20)
await tab.evaluate(() => [...document.querySelectorAll(".turn")].at(-1).dispatchEvent(new MouseEvent("click", { bubbles: true })))
await harmless("causes")
const seen = await tab.evaluate(() => [...document.querySelectorAll("select.space option")].map((each) => each.textContent))
if (!seen.some((each) => each.includes("\\u202e"))) wrong.push(`the names of dataspaces are ${seen}`)
say("seen")
await end()
