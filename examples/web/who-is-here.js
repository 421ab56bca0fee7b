// An element of HTML: <who-is-here server="ws://127.0.0.1:8080" name="Ann"></who-is-here> shows who is here, and says
// that Ann is, as long as it is in the page.  It needs no library but the client, and no build.
import { assert, capture, connect, during, onStop, record } from "../../relay/web/dist/syndicate.js"

const Present = record("Present", ["who"])

class WhoIsHere extends HTMLElement {
  #connection

  connectedCallback() {
    const list = this.appendChild(document.createElement("ul"))
    const [server, cap, name] = ["server", "cap", "name"].map((each) => this.getAttribute(each))
    this.#connection = connect(server, cap ? { cap } : {}, (ds) => {
      if (name) assert(ds, Present(name))
      during(ds, Present(capture("str")), (who) => {
        const item = list.appendChild(document.createElement("li"))
        item.textContent = who
        onStop(() => item.remove())
      })
    })
  }

  disconnectedCallback() {
    this.#connection.close() // and with it goes what was asserted
    this.replaceChildren()
  }
}

customElements.define("who-is-here", WhoIsHere)
