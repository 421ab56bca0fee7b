// Connections: to a server, again and again if need be.
//
// Across a reconnection, assertions converge and messages are at most once: the boot function runs again, and so all it
// asserts and observes is there again.  Between attempts it waits a random time below a bound that doubles from 0.2 to
// 30 seconds, and not at all when the browser is online again or its page is shown again.
//
// A page sends nothing to stay alive, for browsers slow the timers of hidden pages: it relies on what the server says
// every few seconds, and connects again if that stays away.

import { encode, Incomplete, ProtocolError, Reader } from "./codec.js"
import { Program, type Entries, type Facet } from "./facet.js"
import { parse, show } from "./text.js"
import { Rec, Ref, sym, type Value } from "./value.js"

/** The capability that a server gives out which was started without a key. */
export const DEFAULT_CAP = '<ref {oid: "syndicate" sig: #x"69ca300c1dbfa08fba692102dd82311a"}>'

/** What a connection is: `waiting` for its next attempt, `refused` by the gatekeeper, `crashed` by a handler of ours. */
export type State = "connecting" | "connected" | "waiting" | "refused" | "crashed" | "closed"

export interface Options {
  /** The capability as text.  By default that in the address's fragment (`ws://host/#<ref ..>`), else the public one. */
  cap?: string
  /** Called at each change of `state`. */
  onState?: (state: State, connection: Connection) => void
  /** Called with what a handler has thrown, or why the gatekeeper refuses.  By default it is written to the console. */
  onError?: (error: unknown) => void
  /** Closes the connection when aborted. */
  signal?: AbortSignal
  /** Bytes that may wait to be sent before messages are dropped, and counted in `dropped`. */
  most?: number
}

interface Transport {
  send(bytes: Uint8Array): unknown
  close(): void
  waiting(): number
}

interface Ear {
  opened(transport: Transport): void
  heard(bytes: Uint8Array): void
  closed(why: string): void
}

const [SHORTEST, LONGEST, STEADY, OPENING, SILENCE] = [200, 30_000, 5_000, 10_000, 30_000]
const MOST = 8 << 20
const FRAME = 4 << 20
const MOST_EVENTS = 1024
const DISPOSE: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose")

/** Call *boot* with the dataspace that the capability stands for, whenever there is a connection to *url*.
 *
 *     const c = connect("ws://127.0.0.1:8001", {}, (ds) => {
 *       assert(ds, Present("ann"))
 *       onMessage(ds, Says(capture(), capture()), (who, what) => show(who, what))
 *     })
 *     c.close()
 *
 *  In a browser *url* begins with `ws:` or `wss:`; in Node also with `tcp:`, `tls:` or `unix:`.
 */
export function connect(url: string, options: Options, boot: (ds: Ref) => unknown): Connection {
  return new Connection(url, options, boot)
}

/** The capability in the address of this page (`#cap=..`), which is taken from there at once, and kept for this tab. */
export function capabilityOfPage(): string | undefined {
  const text = new URLSearchParams(location.hash.slice(1)).get("cap")
  if (text !== null) {
    history.replaceState(null, "", location.pathname + location.search)
    sessionStorage.setItem("syndicate-cap", text)
  }
  return text ?? sessionStorage.getItem("syndicate-cap") ?? undefined
}

export class Connection {
  state: State = "connecting"
  /** Why it is not connected, in a line. */
  reason = ""
  /** Messages that were dropped because too much waited. */
  dropped = 0
  readonly url: string
  readonly #cap: Value
  readonly #most: number
  readonly #over = new AbortController()
  #attempt: Attempt | null = null
  #bound = SHORTEST
  #timer: ReturnType<typeof setTimeout> | undefined

  /** @internal */
  constructor(
    url: string,
    readonly options: Options,
    readonly boot: (ds: Ref) => unknown,
  ) {
    const hash = url.indexOf("#")
    this.url = hash < 0 ? url : url.slice(0, hash)
    const said = options.cap ?? (hash < 0 ? "" : decodeURIComponent(url.slice(hash + 1)).replace(/^cap=/, ""))
    this.#cap = parse(said || DEFAULT_CAP)
    this.#most = options.most ?? MOST
    const signal = this.#over.signal
    if (typeof addEventListener === "function" && typeof document === "object") {
      const now = (): void => this.#now()
      addEventListener("online", now, { signal })
      addEventListener("pageshow", now, { signal })
      document.addEventListener("visibilitychange", () => document.hidden || now(), { signal })
      addEventListener("pagehide", () => this.#lost("the page is hidden"), { signal })
    }
    options.signal?.addEventListener("abort", () => this.close(), { signal })
    if (options.signal?.aborted) this.close()
    else this.#dial()
  }

  /** The facet of the present connection, if there is one: `c.facet?.enter(() => send(..))`. */
  get facet(): Facet | null {
    return this.state === "connected" ? this.#attempt!.program.root : null
  }
  /** Bytes that wait to be sent. */
  get waiting(): number {
    return this.#attempt?.waiting() ?? 0
  }
  /** End it; what it has asserted goes at once. */
  close(): void {
    this.#finish("closed", "closed here")
  }
  [DISPOSE](): void {
    this.close()
  }

  #set(state: State, reason = ""): void {
    this.state = state
    this.reason = reason
    this.options.onState?.(state, this)
  }
  #finish(state: "closed" | "refused" | "crashed", reason: string): void {
    if (["closed", "refused", "crashed"].includes(this.state)) return
    this.#over.abort()
    clearTimeout(this.#timer)
    const attempt = this.#attempt
    this.#attempt = null
    this.#set(state, reason)
    attempt?.end()
  }
  #error(error: unknown): void {
    if (this.options.onError) this.options.onError(error)
    else console.error(error)
  }
  #dial(): void {
    clearTimeout(this.#timer)
    this.#set("connecting", this.reason)
    const attempt: Attempt = new Attempt(this.url, this.#cap, this.#most, {
      accepted: (ds) => {
        setTimeout(() => this.#attempt === attempt && (this.#bound = SHORTEST), STEADY)
        this.#set("connected")
        attempt.program.run(attempt.program.root, () => this.boot(ds))
      },
      refused: (why) => {
        this.#error(new Error(`${this.url} refuses the capability: ${why}`))
        this.#finish("refused", why)
      },
      crashed: (error) => {
        this.#error(error)
        this.#finish("crashed", String(error))
      },
      lost: (why) => {
        if (this.#attempt === attempt) this.#lost(why)
      },
      dropped: () => this.dropped++,
    })
    this.#attempt = attempt
    attempt.begin()
  }
  #lost(why: string): void {
    if (this.#over.signal.aborted) return
    const attempt = this.#attempt
    this.#attempt = null
    attempt?.end()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#dial(), Math.random() * this.#bound)
    this.#bound = Math.min(this.#bound * 2, LONGEST)
    this.#set("waiting", why)
  }
  /** The page is back: try at once, or see whether what was silent still lives. */
  #now(): void {
    if (this.state === "waiting") this.#dial()
    else this.#attempt?.look()
  }
}

interface Fate {
  accepted(ds: Ref): void
  refused(why: string): void
  crashed(error: unknown): void
  lost(why: string): void
  dropped(): void
}

/** One connection, from its beginning to its end. */
class Attempt implements Ear {
  readonly program: Program
  #transport: Transport | null = null
  #rest: Uint8Array = new Uint8Array(0)
  #over = false
  #accepted = false
  #last = Date.now()
  #looked = Date.now()
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(
    readonly url: string,
    readonly cap: Value,
    readonly most: number,
    readonly fate: Fate,
  ) {
    this.program = new Program((entries) => this.#leave(entries), fate.crashed)
  }

  begin(): void {
    this.#timer = setInterval(() => this.#tick(), SILENCE / 6)
    open(this.url, this).catch((error: unknown) => this.closed(error instanceof Error ? error.message : String(error)))
  }
  waiting(): number {
    return this.#transport?.waiting() ?? 0
  }
  end(): void {
    if (this.#over) return
    this.program.end()
    this.#over = true
    clearInterval(this.#timer)
    this.#transport?.close()
  }
  #tick(): void {
    // After a time in which no timer ran, what has come meanwhile is handled first.
    const late = Date.now() - this.#looked > SILENCE / 2
    this.#looked = Date.now()
    if (!late) this.look()
  }
  look(): void {
    const quiet = Date.now() - this.#last
    if (quiet > (this.#accepted ? SILENCE : OPENING)) this.closed(`nothing was heard for ${Math.round(quiet / 1000)} s`)
  }

  opened(transport: Transport): void {
    this.#transport = transport
    if (this.#over) return transport.close()
    this.#last = Date.now()
    const { program } = this
    const gatekeeper = new Ref(program, 0, null)
    program.run(program.root, () => {
      const answer = program.export({
        assert: (value) => {
          if (this.#accepted) return
          if (!(value instanceof Rec)) throw new ProtocolError("the gatekeeper's answer is no record")
          const [first] = value.fields
          if (["accepted", "ok"].includes(show(value.label)) && first instanceof Ref) {
            this.#accepted = true
            queueMicrotask(() => this.#over || this.fate.accepted(first))
          } else queueMicrotask(() => this.fate.refused(value.fields.map(show).join(" ")))
        },
      }, program.root)
      program.assert(gatekeeper, new Rec(sym("resolve"), [this.cap, answer]))
    })
  }
  heard(bytes: Uint8Array): void {
    if (this.#over) return
    this.#last = Date.now()
    try {
      this.#read(this.#rest.length ? joined(this.#rest, bytes) : bytes)
    } catch (error) {
      this.closed(error instanceof Error ? error.message : String(error))
    }
  }
  #read(bytes: Uint8Array): void {
    const { program } = this
    const reader = new Reader(bytes, (whose, oid, caveats) => {
      const ours = whose === 1 ? program.exports.get(oid) : undefined
      // What comes home narrowed must not be as wide as it went out.
      if (whose === 1 && (!ours || caveats)) return new Ref(null, oid, {})
      return new Ref(program, oid, ours?.entity ?? null)
    })
    let at = 0
    try {
      while (!reader.done && !this.#over) {
        const packet = reader.value()
        at = reader.at
        this.#packet(packet)
      }
      this.#rest = new Uint8Array(0)
    } catch (error) {
      if (!(error instanceof Incomplete)) throw error
      this.#rest = bytes.slice(at)
      if (this.#rest.length > FRAME) throw new ProtocolError("a packet that is too long")
    }
  }
  #packet(packet: Value): void {
    if (Array.isArray(packet)) this.program.arrived((packet as Value[]).map(entry))
    else if (packet instanceof Rec) {
      if (show(packet.label) === "error") this.closed(`the server ends it: ${packet.fields.map(show).join(" ")}`)
    } else if (packet !== false) throw new ProtocolError("not a packet")
  }
  closed(why: string): void {
    if (!this.#over) this.fate.lost(why)
  }

  #leave(entries: Entries): void {
    if (this.#over || !this.#transport) return
    let sent = entries
    if (this.#transport.waiting() > this.most) {
      sent = entries.filter(([, event]) => !message(event))
      for (let i = sent.length; i < entries.length; i++) this.fate.dropped()
    }
    for (let i = 0; i < sent.length; i += MOST_EVENTS) this.#transport.send(packet(sent.slice(i, i + MOST_EVENTS)))
  }
}

/** Whether an event is `<M ..>`: a record whose label is that symbol. */
function message(event: Uint8Array): boolean {
  return event[1] === 0xb3 && event[2] === 1 && event[3] === 0x4d
}

function packet(entries: Entries): Uint8Array {
  let size = 2
  const heads = entries.map(([oid, event]) => {
    const head = encode(oid, () => [0, 0])
    size += head.length + event.length + 2
    return head
  })
  const bytes = new Uint8Array(size)
  let at = 0
  bytes[at++] = 0xb5
  entries.forEach(([, event], i) => {
    bytes[at++] = 0xb5
    bytes.set(heads[i]!, at)
    at += heads[i]!.length
    bytes.set(event, at)
    at += event.length
    bytes[at++] = 0x84
  })
  bytes[at] = 0x84
  return bytes
}

function entry(item: Value): [number, Rec] {
  if (Array.isArray(item)) {
    const [oid, event] = item as Value[]
    if (item.length === 2 && typeof oid === "number" && event instanceof Rec && event.fields.length) return [oid, event]
  }
  throw new ProtocolError("an entry of a turn is [oid event]")
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length)
  both.set(a)
  both.set(b, a.length)
  return both
}

// ------------------------------------------------------------------------------------------------------ transports

async function open(url: string, ear: Ear): Promise<void> {
  const scheme = url.slice(0, url.indexOf(":"))
  if (scheme === "ws" || scheme === "wss") return web(url, ear)
  if (["tcp", "tls", "unix"].includes(scheme)) return node(scheme, url, ear)
  throw new TypeError(`${url} is no address: it begins with ws:, wss:, or in Node with tcp:, tls:, unix:`)
}

function web(url: string, ear: Ear): void {
  if (typeof WebSocket !== "function")
    throw new TypeError("this Node has no WebSocket: take Node 22 or newer, or a tcp: address")
  const socket = new WebSocket(url)
  socket.binaryType = "arraybuffer"
  socket.onopen = () =>
    ear.opened({
      send: (bytes) => socket.readyState === WebSocket.OPEN && socket.send(bytes as Uint8Array<ArrayBuffer>),
      close: () => socket.close(1000),
      waiting: () => socket.bufferedAmount,
    })
  socket.onmessage = ({ data }) =>
    typeof data === "string" ? ear.closed("text came where bytes were expected") : ear.heard(new Uint8Array(data as ArrayBuffer))
  socket.onclose = ({ code, reason }) => ear.closed(reason || `the connection ended (${code})`)
}

async function node(scheme: string, url: string, ear: Ear): Promise<void> {
  const place = scheme === "unix" ? null : new URL(url.replace(/^\w+/, "http"))
  const host = place?.hostname.replace(/^\[|\]$/g, "") ?? ""
  const to = place ? { host, port: Number(place.port || 80) } : { path: url.replace(/^unix:(\/\/)?/, "") }
  const socket =
    scheme === "tls"
      ? (await import("node:tls")).connect({ ...to, servername: host })
      : (await import("node:net")).connect(to as { host: string; port: number })
  socket.once(scheme === "tls" ? "secureConnect" : "connect", () =>
    ear.opened({
      send: (bytes) => socket.writable && socket.write(bytes),
      close: () => void socket.end(),
      waiting: () => socket.writableLength,
    }),
  )
  socket.on("data", (bytes: Uint8Array) => ear.heard(bytes))
  socket.on("error", (error: Error) => ear.closed(error.message))
  socket.on("close", () => ear.closed("the connection ended"))
}
