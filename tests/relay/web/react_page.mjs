// A page of React with the hook of the examples: who is here, and somebody who comes and goes by a button.
import { createElement as h, useState } from "react"
import { createRoot } from "react-dom/client"
import { capture, record } from "syndicate-dataspace"
import { Dataspace, useAssertion, useMatches } from "../../../examples/web/use-dataspace.js"

const Present = record("Present", ["who"])
const ANYBODY = Present(capture("str"))
const [DORA, EVE] = [Present("Dora"), Present("Eve")]

function Guest({ who }) {
  useAssertion(who)
  return h("i", null, who.who)
}
function Here() {
  return h("ul", null, useMatches(ANYBODY).map(([who]) => h("li", { key: who }, who)))
}
function Page() {
  const [there, set] = useState(true)
  return h(Dataspace, { url: new URLSearchParams(location.search).get("server") },
    h(Guest, { who: DORA }), h(Guest, { who: EVE }), h(Here),
    there && h(Guest, { who: Present("Flo") }), h("button", { onClick: () => set(!there) }, "come and go"))
}
createRoot(document.querySelector("#root")).render(h(Page))
