// A client of dataspaces, for browsers and Node: the same verbs and the same meaning as in Python.

export { NotAValue, ProtocolError } from "./codec.js"
export {
  assert, currentFacet, dataflow, during, Facet, Field, field, Handle, NotInTurn, onAsserted, onMessage, onRetracted, onStop,
  querySet, queryValue, react, ref, send, stop, sync, synced,
} from "./facet.js"
export { capabilityOfPage, connect, Connection, DEFAULT_CAP, type Options, type State } from "./link.js"
export { ANY, capture, type AtomClass, type Pattern } from "./pattern.js"
export { attenuate } from "./sturdy.js"
export { parse, show, TextError } from "./text.js"
export {
  Dict, Double, DoubleValue, key, Rec, record, Ref, same, SetOf, Sym, sym, type Entity, type RecordClass, type Value,
} from "./value.js"
