// Turns and facets: what a program does, and what of it ends together.
//
// Handlers run inside a turn, and the verbs act on the current turn and facet.  What a turn does leaves as one packet
// when it is over; if a handler throws, the turn is undone, nothing of it leaves, and the connection's program ends
// with all that it had asserted, as an actor does that crashes.

import { encode, NotAValue } from "./codec.js"
import { compile, type Pattern } from "./pattern.js"
import { Rec, Ref, same, sym, type Entity, type Value } from "./value.js"

/** A verb was called outside a turn. */
export class NotInTurn extends Error {}

const [A, R, M, S, OBSERVE] = ["A", "R", "M", "S", "Observe"].map(sym) as [Value, Value, Value, Value, Value]
const DISPOSE: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose")
const MOST_RUNS = 10_000

/** Events for the other side: the oid that each is for, and its bytes. */
export type Entries = [number, Uint8Array][]

interface Turn {
  readonly program: Program
  facet: Facet
  block: Block | null
  readonly entries: Entries
  readonly undo: (() => void)[]
  readonly due: Set<Block>
  readonly changed: Set<Field<any>>
}

let turn: Turn | null = null

function inTurn(verb: string): Turn {
  if (turn) return turn
  throw new NotInTurn(`${verb} works in a turn only: after an await, or in an event of the page, use facet.enter(() => ..)`)
}

interface Export {
  readonly entity: Entity
  readonly facet: Facet
  holders: number
}

/** What runs on one connection, from its beginning to its end. */
export class Program {
  readonly root = new Facet(null, this)
  readonly exports = new Map<number, Export>()
  alive = true
  #ending = false
  #oid = 0
  #handle = 0

  constructor(
    readonly leave: (entries: Entries) => void,
    readonly crashed: (error: unknown) => void,
  ) {}

  /** Run *f* in a turn of *facet*; within a turn, right after it. */
  run(facet: Facet, f: () => unknown): void {
    if (turn) return queueMicrotask(() => this.run(facet, f))
    if (!this.alive || !facet.alive) return
    const mine: Turn = { program: this, facet, block: null, entries: [], undo: [], due: new Set(), changed: new Set() }
    turn = mine
    try {
      this.within(facet, f)
      let runs = 0
      for (const block of mine.due) {
        mine.due.delete(block)
        if (++runs > MOST_RUNS) throw new Error("dataflow that changes what it reads, without end")
        block.run()
      }
    } catch (error) {
      turn = null
      for (const back of mine.undo.reverse()) back()
      this.crash(error)
      return
    }
    turn = null
    if (mine.entries.length) this.leave(mine.entries)
    for (const each of mine.changed) each.tell()
  }

  /** Call *f* in *facet*, in the turn that runs. */
  within(facet: Facet, f: () => unknown): void {
    if (!facet.alive) return
    const mine = inTurn("a handler")
    const [before, block] = [mine.facet, mine.block]
    mine.facet = facet
    mine.block = null
    try {
      const result = f()
      if (result instanceof Promise) result.catch((error) => this.crash(error))
    } finally {
      mine.facet = before
      mine.block = block
    }
  }

  crash(error: unknown): void {
    if (!this.alive) return
    this.crashed(error)
    this.end()
    this.alive = false
  }

  /** The connection is gone: stop handlers run, and nothing leaves any more. */
  end(): void {
    if (!this.alive || this.#ending) return
    this.#ending = true
    this.run(this.root, () => this.root.stop())
    this.alive = false
  }

  export(entity: Entity, facet: Facet): Ref {
    const oid = ++this.#oid
    this.exports.set(oid, { entity, facet, holders: 0 })
    facet.exports.push(oid)
    return new Ref(this, oid, entity)
  }

  event(target: Ref, event: Rec, pins: number[] | null): void {
    const mine = inTurn("this")
    if (target.home !== mine.program || target.entity)
      throw new TypeError("not a reference of this connection's other side: after a reconnection there are new ones")
    const bytes = encode(event, (ref) => {
      if (ref.home !== this) throw new NotAValue("a reference of another connection cannot be sent here")
      if (!ref.entity) return [1, ref.oid]
      if (!pins && !this.exports.get(ref.oid)?.holders)
        throw new NotAValue("a message cannot introduce a reference: assert something that holds it first")
      pins?.push(ref.oid)
      return [0, ref.oid]
    })
    mine.entries.push([target.oid, bytes])
  }

  assert(target: Ref, value: Value): Assertion {
    const assertion = { target, handle: ++this.#handle, pins: [] as number[] }
    this.event(target, new Rec(A, [value, assertion.handle]), assertion.pins)
    for (const oid of assertion.pins) this.#pin(oid, 1)
    return assertion
  }

  retract({ target, handle, pins }: Assertion): void {
    this.event(target, new Rec(R, [handle]), null)
    for (const oid of pins) this.#pin(oid, -1)
  }

  #pin(oid: number, by: number): void {
    const held = this.exports.get(oid)
    if (held) held.holders += by
  }

  /** Events of the other side, in one turn. */
  arrived(entries: [number, Rec][]): void {
    this.run(this.root, () => {
      for (const [oid, event] of entries) {
        const { fields } = event
        const there = this.exports.get(oid)
        if (event.label === S) {
          if (fields[0] instanceof Ref && !fields[0].entity) this.event(fields[0], new Rec(M, [true]), null)
        } else if (there) {
          const { entity, facet } = there
          if (event.label === A) this.within(facet, () => entity.assert?.(fields[0]!, fields[1] as number))
          else if (event.label === R) this.within(facet, () => entity.retract?.(fields[0] as number))
          else if (event.label === M) this.within(facet, () => entity.message?.(fields[0]!))
        }
      }
    })
  }
}

interface Assertion {
  readonly target: Ref
  readonly handle: number
  readonly pins: number[]
}

/** What begins and ends together: assertions, handlers, fields' blocks, and the facets within. */
export class Facet {
  alive = true
  readonly exports: number[] = []
  readonly #children = new Set<Facet>()
  readonly #handles = new Set<Handle>()
  readonly #stops: (() => unknown)[] = []
  #abort: AbortController | null = null
  #stopping = false

  /** @internal */
  constructor(
    readonly parent: Facet | null,
    readonly program: Program,
  ) {
    parent?.contain(this)
  }

  /** Run *f* in a turn of this facet: from an event of the page, a timer, or after an `await`. */
  enter(f: () => unknown): void {
    this.program.run(this, f)
  }
  /** Aborted when the facet stops: for `fetch`, `addEventListener` and the like. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    if (!this.alive) this.#abort.abort()
    return this.#abort.signal
  }
  /** Stop: the facets within first, then the stop handlers, then what was asserted here is retracted. */
  stop(): void {
    if (!this.alive || this.#stopping) return
    if (!turn) return this.program.run(this, () => this.stop())
    this.#stopping = true
    for (const each of this.#children) each.stop()
    for (const each of this.#stops) this.program.within(this.parent ?? this, each)
    for (const each of this.#handles) each.retract()
    this.alive = false
    for (const oid of this.exports) this.program.exports.delete(oid)
    this.parent?.release(this)
    this.#abort?.abort()
  }
  [DISPOSE](): void {
    this.stop()
  }
  /** @internal */
  contain(facet: Facet): void {
    this.#children.add(facet)
  }
  /** @internal */
  release(facet: Facet): void {
    this.#children.delete(facet)
  }
  /** @internal */
  hold(handle: Handle): void {
    this.#handles.add(handle)
  }
  /** @internal */
  drop(handle: Handle): void {
    this.#handles.delete(handle)
  }
  /** @internal */
  stopping(f: () => unknown): void {
    this.#stops.push(f)
  }
}

/** An assertion of ours. */
export class Handle {
  #assertion: Assertion | null = null
  #value: Value | undefined
  #block: Block | null = null
  #live = true

  /** @internal */
  constructor(
    readonly target: Ref,
    readonly facet: Facet,
  ) {
    facet.hold(this)
  }
  /** Assert *value*, or what the function says, in place of what is asserted: first the new one, then the old one goes. */
  replace(value: Value | (() => Value | null | undefined)): this {
    inTurn("replace")
    if (!this.#live) throw new TypeError("what was retracted cannot be replaced: assert it again")
    this.#block?.end()
    this.#block = null
    if (typeof value === "function") {
      this.#block = new Block(this.facet, () => this.#show(value() ?? undefined))
      this.#block.run()
    } else this.#show(value)
    return this
  }
  #show(value: Value | undefined): void {
    const before = this.#assertion
    if (before && value !== undefined && same(value, this.#value!)) return
    this.#assertion = value === undefined ? null : this.facet.program.assert(this.target, value)
    this.#value = value
    if (before) this.facet.program.retract(before)
  }
  /** Take it back. */
  retract(): void {
    if (!this.#live) return
    if (!turn) return this.facet.enter(() => this.retract())
    this.#live = false
    this.#block?.end()
    this.#show(undefined)
    this.facet.drop(this)
  }
  [DISPOSE](): void {
    this.retract()
  }
}

/** A function that runs again when a field that it has read changes. */
class Block {
  readonly #read = new Set<Field<any>>()
  #live = true
  constructor(
    readonly facet: Facet,
    readonly f: () => void,
  ) {}
  run(): void {
    this.#forget()
    if (!this.#live || !this.facet.alive) return
    const mine = inTurn("dataflow")
    this.facet.program.within(this.facet, () => {
      mine.block = this
      this.f()
    })
  }
  reads(field: Field<any>): void {
    this.#read.add(field)
    field.readers.add(this)
  }
  #forget(): void {
    for (const each of this.#read) each.readers.delete(this)
    this.#read.clear()
  }
  end(): void {
    this.#live = false
    this.#forget()
  }
}

/** A variable that knows who reads it. */
export class Field<T> {
  /** @internal */
  readonly readers = new Set<Block>()
  readonly #subscribers = new Set<() => void>()
  #value: T
  constructor(value: T) {
    this.#value = value
  }
  get value(): T {
    turn?.block?.reads(this)
    return this.#value
  }
  set value(value: T) {
    const mine = inTurn("setting a field")
    const before = this.#value
    if (Object.is(before, value)) return
    mine.undo.push(() => (this.#value = before))
    this.#value = value
    for (const each of this.readers) mine.due.add(each)
    mine.changed.add(this)
  }
  /** Call *f* after each turn that has changed it; returns what ends that.  For libraries that draw. */
  subscribe(f: () => void): () => void {
    this.#subscribers.add(f)
    return () => this.#subscribers.delete(f)
  }
  /** @internal */
  tell(): void {
    for (const each of this.#subscribers) each()
  }
}

// ---------------------------------------------------------------------------------------------------------- verbs

/** Assert *value*, or what a function of fields says (`undefined`: nothing), at *target* until the facet stops. */
export function assert(target: Ref, value: Value | (() => Value | null | undefined)): Handle {
  const handle = new Handle(target, inTurn("assert").facet)
  handle.replace(value)
  return handle
}

/** Send the message *value* to *target*. */
export function send(target: Ref, value: Value): void {
  inTurn("send").program.event(target, new Rec(M, [value]), null)
}

/** Call *then* once *target* has handled all that was done before. */
export function sync(target: Ref, then: () => unknown): void {
  const { program, facet } = inTurn("sync")
  const reply = program.export({
    message() {
      program.exports.delete(reply.oid)
      return then()
    },
  }, facet)
  program.event(target, new Rec(S, [reply]), [])
}

/** A promise for that: outside a turn. Rejected when the connection ends before. */
export function synced(target: Ref): Promise<void> {
  const program = target.home as Program
  return new Promise((resolve, reject) => {
    const ended = (): void => reject(new Error("the connection ended before the answer came"))
    if (!program.alive) return ended()
    program.run(program.root, () => {
      const facet = new Facet(program.root, program)
      facet.stopping(ended)
      program.within(facet, () => sync(target, () => {
        resolve()
        facet.stop()
      }))
    })
  })
}

/** A reference to an entity of ours, which lives as long as the facet. */
export function ref(entity: Entity): Ref {
  const { program, facet } = inTurn("ref")
  return program.export(entity, facet)
}

/** Call *f* in a facet within the current one; with *signal*, it stops when that is aborted. */
export function react(f: () => unknown, { signal }: { signal?: AbortSignal } = {}): Facet {
  const { program, facet: parent } = inTurn("react")
  const facet = new Facet(parent, program)
  if (signal?.aborted) {
    facet.stop()
    return facet
  }
  signal?.addEventListener("abort", () => facet.stop(), { signal: facet.signal })
  program.within(facet, f)
  return facet
}

/** Stop *facet*, or the current one. */
export function stop(facet?: Facet): void {
  (facet ?? inTurn("stop").facet).stop()
}

/** The facet that runs. */
export function currentFacet(): Facet {
  return inTurn("currentFacet").facet
}

/** Call *f* when the current facet stops, or its connection ends. */
export function onStop(f: () => unknown): void {
  inTurn("onStop").facet.stopping(f)
}

export function field<T>(value: T): Field<T> {
  return new Field(value)
}

/** Call *f* now, and again whenever a field that it has read changes. */
export function dataflow(f: () => void): void {
  const { facet } = inTurn("dataflow")
  const block = new Block(facet, f)
  facet.stopping(() => block.end())
  block.run()
}

type Handler = (...captures: any[]) => unknown

function observe(ds: Ref, pattern: Pattern, entity: (passes: (v: Value) => readonly Value[] | null) => Entity): void {
  const { form, passes } = compile(pattern)
  assert(ds, new Rec(OBSERVE, [form, ref(entity(passes))]))
}

/** Call *f* with the captures of each assertion that comes, and of those that are there. */
export function onAsserted(ds: Ref, pattern: Pattern, f: Handler): void {
  observe(ds, pattern, (passes) => ({
    assert(value) {
      const captures = passes(value)
      return captures && f(...captures)
    },
  }))
}

/** Call *f* with the captures of each assertion that goes. */
export function onRetracted(ds: Ref, pattern: Pattern, f: Handler): void {
  observe(ds, pattern, (passes) => {
    const there = new Map<number, readonly Value[]>()
    return {
      assert(value, handle) {
        const captures = passes(value)
        if (captures) there.set(handle, captures)
      },
      retract(handle) {
        const captures = there.get(handle)
        return there.delete(handle) && f(...captures!)
      },
    }
  })
}

/** Call *f* with the captures of each message. */
export function onMessage(ds: Ref, pattern: Pattern, f: Handler): void {
  observe(ds, pattern, (passes) => ({
    message(value) {
      const captures = passes(value)
      return captures && f(...captures)
    },
  }))
}

/** Call *f* with the captures of each assertion, in a facet that lives as long as that is there. */
export function during(ds: Ref, pattern: Pattern, f: Handler): void {
  observe(ds, pattern, (passes) => {
    const there = new Map<number, Facet>()
    return {
      assert(value, handle) {
        const captures = passes(value)
        if (captures) there.set(handle, react(() => f(...captures)))
      },
      retract(handle) {
        there.get(handle)?.stop()
        there.delete(handle)
      },
    }
  })
}

/** A field with the captures of all that is asserted, a list for each. */
export function querySet(ds: Ref, pattern: Pattern): Field<readonly (readonly Value[])[]> {
  const rows = field<readonly (readonly Value[])[]>([])
  during(ds, pattern, (...captures: Value[]) => {
    const row = Object.freeze(captures)
    rows.value = [...rows.value, row]
    onStop(() => (rows.value = rows.value.filter((each) => each !== row)))
  })
  return rows
}

/** A field with the first capture of what is asserted, the newest if there are several, else *orElse*. */
export function queryValue<T>(ds: Ref, pattern: Pattern, orElse: T): Field<Value | T> {
  const value = field<Value | T>(orElse)
  const rows = querySet(ds, pattern)
  dataflow(() => (value.value = rows.value.at(-1)?.[0] ?? orElse))
  return value
}
