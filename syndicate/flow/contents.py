"""Contents: all that a running circuit keeps, node by node, in one form.

What a node keeps is nested dictionaries of some kind, or a batch.  This module says how each kind is looked at and put
back, for snapshots, which write all of it, for graphs and profiles, which count it, and for :func:`integral`, which
reads a collection out of it.

Contract: each class that is ever registered with :meth:`Scope.state` is in ``STATE_FORMATS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Final

from attrs import define, frozen

from syndicate.errors import CircuitError
from syndicate.flow.aggregates import Aggregate, shown
from syndicate.flow.arrangement import Arrangement, TimedArrangement
from syndicate.flow.element import Element, Mixed, MixedRows, Rows, add_up, is_rearranging
from syndicate.flow.local_engine import LocalEngine, Unique, Upserts
from syndicate.flow.loop import Integral, Loop, Restart
from syndicate.flow.node import Carries, Kind, Netlist, Node, Port
from syndicate.flow.operators.groups import GroupView, keyed_result, linear_result
from syndicate.flow.operators.growing import GrowingFold
from syndicate.flow.operators.nested_loops import SeenTimes
from syndicate.flow.scope import Cell, Scope
from syndicate.flow.trace import Trace, TraceView
from syndicate.flow.zset import IndexedZSet, ZSet

if TYPE_CHECKING:
    from syndicate.flow.node import GlobalId
    from syndicate.flow.stream import Stream


@define(eq=False)
class Delayed:
    """What a feedback of the root will emit."""

    root: Scope
    slot: int


Held = dict[tuple["GlobalId", int], Element]


def settled_state(engine: LocalEngine) -> Held:
    """All that a circuit keeps, by node and number; what is in columns becomes dictionaries first."""
    if engine.tables is not None:
        engine.tables.settle()
    if engine.readied is not None:
        engine.readied.settle()
    return held(engine)


def held(engine: LocalEngine) -> Held:
    """The same, without what is in columns."""
    states_by_place: Held = {}
    for path, states in sorted(engine.states.items()):
        states_by_place.update(((path, number), state) for number, state in enumerate(states))
    root = engine.root
    for slot in sorted(chain.from_iterable(root.absorbers.values())):
        states_by_place[root.nodes[slot].global_id, -1] = Delayed(root, slot)
    for scope in scopes(root):
        if isinstance(scope, Loop) and scope.restart is not None:
            states_by_place[scope.node.global_id, -2] = scope.restart
    return states_by_place


def scopes(scope: Scope) -> Iterator[Scope]:
    """A scope and all within it."""
    yield scope
    for child in scope.children:
        yield from scopes(child)


@frozen
class Content:
    """The entries of a state: nested dictionaries, or rows; *typed* where there are typed keys among them."""

    entries: Element
    typed: bool

    def batch(self) -> Element:
        """As a stream carries it."""
        if isinstance(self.entries, list):
            return MixedRows(self.entries) if self.typed else Rows(self.entries)
        return Mixed(self.entries) if self.typed else self.entries


@frozen
class StateFormat:
    """How a kind of state is written and read.

    *levels* has a letter for each column: ``k`` for keys, ``p`` for pairs of keys, ``v`` for values or none, ``t`` for
    times, ``w`` for integers, ``e`` for elements; the last is of the leaves of the nested dictionaries.
    """

    kind: str
    levels: Callable[[Element], str]
    entries: Callable[[Element], Element]
    put: Callable[[Element, Content, Element], None]
    note: Callable[[Element], Element] = lambda _: None


def _levels_of(entries: Mapping[Element, Element]) -> str:
    """Of a dictionary that may hold groups, integers or elements."""
    kinds = set(map(type, entries.values()))
    return "kkw" if kinds & {dict, Mixed} else "kw" if kinds <= {int} else "ke"


def _history_levels(history: SeenTimes[Element]) -> str:
    content = next(chain.from_iterable(map(dict.values, history.past.values())), 0)
    return "ktkw" if isinstance(content, dict) else "ktw"


def _put_arrangement(state: Arrangement | TimedArrangement, content: Content, note: Element) -> None:
    state.index = content.entries
    state.mixed = bool(note) or content.typed


def _put_history(state: SeenTimes[Element], content: Content, _: Element) -> None:
    state.past = content.entries


def _put_fold(state: GrowingFold, content: Content, _: Element) -> None:
    state.chains.update(content.entries)


def _put_trace(state: Trace, content: Content, _: Element) -> None:
    state.groups = content.entries


def _put_cell(state: Cell, content: Content, note: Element) -> None:
    state.value = content.batch() if note is None else bool(note)


def _put_upserts(state: Upserts, content: Content, _: Element) -> None:
    state.current = content.entries


def _put_unique(state: Unique, content: Content, _: Element) -> None:
    state.held = content.entries


def _put_integral(state: Integral, content: Content, _: Element) -> None:
    state.total = content.batch()


def _put_restart(state: Restart, _: Content, note: Element) -> None:
    state.rows_each = float(note)


def _put_delayed(state: Delayed, content: Content, _: Element) -> None:
    if content.entries:
        state.root.delayed[state.slot] = content.batch()


STATE_FORMATS: Final[dict[type, StateFormat]] = {
    dict: StateFormat("collection", _levels_of, lambda s: s, lambda s, content, _: s.update(content.entries)),
    Cell: StateFormat(
        "cell",
        lambda _: "kw",
        lambda s: {} if isinstance(s.value, bool) else s.value,
        _put_cell,
        lambda s: s.value if isinstance(s.value, bool) else None,
    ),
    Arrangement: StateFormat("index", lambda _: "kkw", lambda s: s.index, _put_arrangement, lambda s: s.mixed),
    TimedArrangement: StateFormat(
        "timed index", lambda _: "ktkw", lambda s: s.index, _put_arrangement, lambda s: s.mixed
    ),
    GrowingFold: StateFormat("growing fold", lambda _: "ke", lambda s: s.chains, _put_fold),
    SeenTimes: StateFormat("history", _history_levels, lambda s: s.past, _put_history),
    Trace: StateFormat("trace", lambda _: "kvtw", lambda s: s.groups, _put_trace),
    Unique: StateFormat("set", lambda _: "kw", lambda s: s.held, _put_unique),
    Upserts: StateFormat("table", lambda _: "kk", lambda s: s.current, _put_upserts),
    Integral: StateFormat("integral", lambda _: "kw", lambda s: s.total, _put_integral),
    Restart: StateFormat("cost", lambda _: "kw", lambda _: {}, _put_restart, lambda s: s.rows_each),
    Delayed: StateFormat(
        "batch",
        lambda s: "rows" if isinstance(s.root.delayed.get(s.slot), list) else "kw",
        lambda s: s.root.delayed.get(s.slot, {}),
        _put_delayed,
    ),
}

PAIRED: Final = frozenset({dict, Cell, SeenTimes, Integral})
"""Of an indexed stream, these are keyed by pairs."""


def size_of(state: Element) -> int:
    """How many entries a state has: pairs of an index, times of an element in a loop, groups of an aggregate."""
    state_format = STATE_FORMATS[type(state)]
    entries = state_format.entries(state)
    maps: list[Element] = [entries]
    for _ in state_format.levels(state)[1:-1] if isinstance(entries, dict) else ():
        maps = list(chain.from_iterable(map(dict.values, maps)))
    return sum(map(len, maps))


# ------------------------------------------------------------------------------------------------------------ integrals


def integral(engine: LocalEngine, circuit: Netlist, what: str | Stream) -> ZSet | IndexedZSet | Trace:
    """The collection that a stream's changes add up to, if something in the circuit keeps it.

    *what* is a stream, or the name of a sink, a source or a node.  Raises :class:`CircuitError` if nothing does.
    """
    port, inside = _named(circuit, what) if isinstance(what, str) else (what.port, what.circuit)
    if inside.root is not circuit.root:
        raise CircuitError(f"{what!r} is a stream of another circuit")
    contents = _integral(engine, inside, port)
    if contents is None:
        raise CircuitError(
            f"nothing keeps the collection of {inside.nodes[port.node]}: a circuit only keeps what it needs to follow "
            "changes. Ask for a stream behind distinct(), aggregate(), or index_with() where a join reads it; for what "
            "integrate() gives in each step, ask for the stream that it reads"
        )
    return contents


def _named(circuit: Netlist, name: str) -> tuple[Port, Netlist]:
    root = circuit.root
    if name in root.sinks:
        ports = root.sinks[name].inputs
        if len(ports) > 1:
            raise CircuitError(f"the sink {name!r} has {len(ports)} streams: ask for one of them by the stream itself")
        return ports[0], root
    if name in root.sources:
        return Port(root.sources[name].id), root
    matches = [node for node in root.walk() if node.name == name and (node.child is None or len(node.carries) == 1)]
    inner = [node for node in matches if node.op == "distinct"]  # a recursion names three nodes alike
    matches = inner if len(inner) == 1 else matches
    if len(matches) != 1:
        names = ", ".join(map(repr, sorted({node.name for node in root.walk() if node.name})))
        many = f"{len(matches)} nodes are" if matches else "no sink, source or node is"
        raise CircuitError(f"{many} called {name!r}; there are {names or 'no names'}")
    return Port(matches[0].id), matches[0].circuit


def _integral(engine: LocalEngine, circuit: Netlist, port: Port) -> ZSet | IndexedZSet | Trace | None:
    node = circuit.nodes[port.node]
    if node.child is not None:
        return _integral(engine, node.child, node.child.exports[port.output])
    if node.kind is Kind.IMPORT:
        assert circuit.above is not None
        return _integral(engine, circuit.above, node.inputs[0])
    if node.op == "forward":
        return _integral(engine, circuit, node.inputs[0])
    if node.op == "constant":
        constant: ZSet = node.params["zset"]
        return constant if engine.epoch else ZSet()
    scope = next(each for each in scopes(engine.root) if each.circuit is circuit)
    taker = scope.takers[scope.slots[port]]
    if taker is not None:
        return IndexedZSet.adopt(MixedRows(_rows(taker)))
    if node.carries[0] is Carries.TRACE:
        view: TraceView = scope.cells[scope.slots[port]]
        return view.base.copy()
    states = engine.states.get(node.global_id, [])
    read = _READ.get(node.op)
    batch = read(node, states) if read is not None and states else None
    if batch is None:
        batch = _integral_behind(engine, scope, port)
    if batch is None and node.op == "map" and is_rearranging(node.params["function"]):
        inner = _integral(engine, circuit, node.inputs[0])
        function = node.params["function"]
        return ZSet([(function(one), weight) for one, weight in inner.items()]) if isinstance(inner, ZSet) else None
    if batch is None:
        return None
    if node.carries[0] is Carries.INDEXED:
        return IndexedZSet.adopt(MixedRows((key, value, weight) for (key, value), weight in batch.items()))
    return ZSet.adopt(batch)


def _rows(taker: Arrangement | TimedArrangement) -> Iterator[tuple[Element, Element, int]]:
    index: dict[Element, Element] = taker.index
    for key, inside in index.items():
        groups = [inside] if isinstance(taker, Arrangement) else inside.values()
        yield from ((key, value, weight) for group in groups for value, weight in group.items())


def _integral_behind(engine: LocalEngine, scope: Scope, port: Port) -> Mixed | None:
    """What a node that reads the stream keeps of it."""
    for node in scope.circuit.nodes:
        states = engine.states.get(node.global_id, [])
        if node.child is not None:
            for imported in node.child.imports:
                behind = engine.states.get(imported.global_id, [])
                if imported.inputs[0] == port and behind and isinstance(behind[0], Integral):
                    return Mixed(behind[0].total)
        elif node.inputs == [port] and states:
            if node.op == "index_with" and node.params["value"] is None and isinstance(states[0], Arrangement):
                return add_up(Mixed(), ((value, weight) for _, value, weight in _rows(states[0])))
            if node.op == "distinct" and scope.is_flat(port):
                return Mixed(states[0])
            if node.op == "integrate" and not scope.depth:
                return Mixed(states[0].value)
    return None


def _read_distinct(_: Node, states: list[Element]) -> Mixed:
    if isinstance(states[0], SeenTimes):
        past = states[0].past.items()
        return Mixed((key, 1) for key, times in past if sum(times.values()) > 0)
    held = [state for state in states if isinstance(state, dict)]
    if len(held) == 2:  # in a monotone loop: the derivations, and what is in the set
        return Mixed(dict.fromkeys(held[1], 1))
    return Mixed((key, 1) for key, weight in held[0].items() if weight > 0)


def _read_aggregate(node: Node, states: list[Element]) -> Mixed:
    aggregate: Aggregate = node.params["aggregate"]
    held = [state for state in states if isinstance(state, dict)]
    results: Iterator[tuple[Element, Element]]
    if isinstance(states[0], GrowingFold):
        results = ((key, chain[-1]) for key, chain in states[0].chains.items())
    elif isinstance(states[0], SeenTimes):
        sums = ((key, _sum(times.values())) for key, times in states[0].past.items())
        results = ((key, aggregate.of(GroupView(group)) if group else None) for key, group in sums)
    elif aggregate.fold is not None:
        results = ((key, aggregate.fold.shown(*entry)) for key, entry in held[0].items())
    elif aggregate.form in ("sum", "avg"):
        results = ((key, linear_result(entry, mean=aggregate.form == "avg")) for key, entry in held[0].items())
    else:
        results = iter(held[-1].items())
    if aggregate.columns:
        results = ((key, shown(result)) for key, result in results)
    return Mixed((keyed_result(key, result), 1) for key, result in results if result is not None)


def _read_source(_: Node, states: list[Element]) -> Mixed:
    if isinstance(states[0], Unique):
        return Mixed(states[0].held)
    return add_up(Mixed(), ((element, 1) for element in states[0].current.values()))


def _sum(groups: Iterable[dict[Element, int]]) -> dict[Element, int]:
    return add_up({}, chain.from_iterable(map(dict.items, groups)))


_READ: Final[dict[str, Callable[[Node, list[Element]], Mixed | None]]] = {
    "distinct": _read_distinct,
    "aggregate": _read_aggregate,
    "source": _read_source,
}
