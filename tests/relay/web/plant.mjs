// A person who knows nothing of the program looks for two answers, by clicks alone: node plant.mjs CHROMIUM ADDRESS FOLDER
// Which worker holds job 7?  Why is the alarm on?  Then all pages about a program that is no broker.
import { address, end, go, open, pause, picture, say, shows, state, until, wrong } from "./browser.mjs"

const tab = await open()
await state(tab, "connected")
const clicks = []
const click = async (what) => {
  clicks.push(what)
  await tab.click(`text="${what}"`)
}
await click("assertions")
await shows(tab, "claim")
await click("claim")
await shows(tab, '"job 7"')
const holder = await tab.evaluate(() => [...document.querySelectorAll(".room .row")].find((row) => row.innerText.includes('"job 7"')).innerText)
say(`holder ${clicks.length} ${holder.split("\n").join(" ")}`)

clicks.length = 0
await click("assertions")
await shows(tab, "alarm")
await click("alarm")
await click('"boiler"')
await shows(tab, "asserted by")
await click("why?")
await shows(tab, '<reading "sensor 0" 93.5>')
say(`why ${clicks.length} ${await tab.evaluate(() => document.querySelector(".why").innerText.split("\n").join(" "))}`)
await picture(tab, "why")

// Another dataspace of the same program; what is chosen stays in the address.
await tab.selectOption("select.space", { label: "workshop" })
await go(tab, "#page=assertions&label=tool&space=" + (await tab.inputValue("select.space")))
await shows(tab, '"hammer"')
await tab.reload()
await shows(tab, '"hammer"')
await tab.selectOption("select.space", { label: "plant" })

await go(tab, "#page=actors")
await shows(tab, "alarms")
await tab.click('text="sensors"')
await shows(tab, '<room-of "sensor 0" "boiler">')
await shows(tab, "that it reaches")
await pause(2200)
await picture(tab, "actors")

await go(tab, "#page=rules")
await until(tab, () => document.querySelectorAll(".box").length >= 5)
await shows(tab, "steps since this page looks")
await until(tab, () => [...document.querySelectorAll(".box .small")].some((each) => / ms$/.test(each.textContent)))
await picture(tab, "circuit")
const programs = await tab.evaluate(() => [...document.querySelectorAll("main option")].map((each) => [each.value, each.textContent]))
if (programs.length !== 3) wrong.push(`not three programs of rules: ${programs}`)
for (const [value, name] of programs) {
  await tab.selectOption("main select", value)
  await until(tab, () => document.querySelectorAll(".box").length)
  if (!name.includes("in stats")) continue
  await shows(tab, "a point of order")
  await until(tab, () => document.querySelectorAll(".edge.order").length)
  await until(tab, () => [...document.querySelectorAll(".box")].some((box) => /^claim\d+/.test(box.textContent)))
  await tab.click(".box:has-text('load')")
  await shows(tab, "may depend on the order")
  await picture(tab, "rules")
  // A row that the rules have made, and why it is there.
  await tab.fill("input[aria-label=rows]", "worker 1")
  await tab.click("[role=listitem]:has-text(\"'worker 1'\")")
  await shows(tab, "Why is it there?")
  await shows(tab, "claim('job 7', 'worker 1')")
  await shows(tab, "plant.py:")
  await tab.evaluate(() => document.querySelector(".why").scrollIntoView())
  await picture(tab, "reason")
}

await go(tab, "#page=causes")
await shows(tab, "Nothing is followed")
await tab.click("button.primary")
await until(tab, () => document.querySelectorAll(".turn").length > 60)
await tab.click("button:text-is('pause')")
// Some turn of a worker that claims: its past leads to who asked for the job.
await tab.evaluate(() => {
  const turns = [...document.querySelectorAll(".turn")]
  const claims = turns.filter((turn) => /^worker \d: .*assert/.test(turn.textContent))
  claims.at(-1).dispatchEvent(new MouseEvent("click", { bubbles: true }))
})
await until(tab, () => document.querySelectorAll(".arrow.near").length)
await shows(tab, "was notified of")
await picture(tab, "causes")
await go(tab, "#page=interests")
await tab.click('.row:has-text("invoice")')
await tab.click("text=why not?")
await until(tab, () => document.querySelector(".why .branch, .why .soft"))
await go(tab, "#page=causes") // of what nobody observes, too
await tab.fill("[aria-label='what is missing']", "<nobody-says-this _>")
await tab.click("text=why not?")
await shows(tab, "nothing matches <nobody-says-this _>")
await shows(tab, "no handler that was seen says the like")
await end()
