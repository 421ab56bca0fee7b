"""A circuit as an actor: its inputs are deltas of assertions, its sinks are asserted.  See :mod:`syndicate.views`.

What the dataspace says in one turn, of all inputs, is one step of the circuit; what it says of one input is noted in
lists, and becomes one Z-set.  The values of a step's conclusions are made before the step has happened, by the engine's
*inspect*, so that a row of which no value can be made is refused as one with which the circuit raises.

Source: Budiu et al. 2023 (integrate, distinct); ``docs/design/hosting.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

from syndicate.drawing import Drawing, Load
from syndicate.errors import CircuitError, PatternError, SyndicateError, UnknownStream, short
from syndicate.flow.element import Element, Key, collect, key_of, natural, ordered
from syndicate.flow.graph import drawing, loads
from syndicate.flow.local_engine import LocalEngine, Outputs
from syndicate.flow.node import Carries, Netlist
from syndicate.flow.structure import identity
from syndicate.flow.zset import ZSet
from syndicate.hosting import Asserted, Host, Port, Records, Sent, WeightedRows, pattern_for, quarantine
from syndicate.values.absent import inward
from syndicate.values.record import is_record_class
from syndicate.values.value import Frozen, Ref, Value


def view_of(
    ds: Ref,
    circuit: Netlist,
    inputs: Mapping[str, object],
    outputs: Mapping[str, type | None],
    messages: Mapping[str, object],
    *,
    tuples: bool,
    plan: object = None,
) -> Callable[[], None]:
    """A boot function that keeps a circuit's sinks in *ds*; raises as :func:`syndicate.views.view` does.

    *plan* is what it was made of, if it was made of one.
    """
    asserted = {name: _pattern(name, written) for name, written in inputs.items()}
    sent = {name: _pattern(name, written) for name, written in messages.items()}
    _check_sources(circuit, asserted, sent)
    for name, cls in outputs.items():
        check_sink(circuit, name, cls)

    def start() -> None:
        view = View(ds, LocalEngine(circuit), outputs, tuples=tuples, plan=plan)
        for kind, ports in ((AssertedElements, asserted), (SentElements, sent)):
            for name, (pattern, captures) in ports.items():
                view.listen(kind(view, name, bare=captures == 1 and not tuples), pattern)

    start.__name__ = "view"
    return start


def _pattern(name: str, written: object) -> tuple[Element, int]:
    try:
        return pattern_for(written)
    except PatternError as error:
        raise PatternError(f"the source {name!r} of a view: {error}") from None


def _check_sources(circuit: Netlist, asserted: Mapping[str, object], sent: Mapping[str, object]) -> None:
    for name in (*asserted, *sent):
        if name not in circuit.sources:
            sources = ", ".join(map(repr, sorted(circuit.sources))) or "none"
            raise UnknownStream(f"the circuit has no source {name!r}; its sources are {sources}")
        if "key" in circuit.sources[name].params:
            raise CircuitError(
                f"the source {name!r} has a key, but assertions say themselves when they go: make it without key="
            )
    twice = sorted(asserted.keys() & sent.keys())
    if twice:
        raise CircuitError(
            f"the source {twice[0]!r} cannot be both in inputs= and in messages=: make two, and add them"
        )
    missing = sorted(circuit.sources.keys() - asserted.keys() - sent.keys())
    if missing:
        raise CircuitError(f"the source {missing[0]!r} would never get anything: give its pattern in inputs=")


def check_sink(circuit: Netlist, name: str, cls: object) -> None:
    """Raise :class:`UnknownStream` or :class:`CircuitError` unless a sink can be asserted as what *cls* says."""
    node = circuit.sinks.get(name)
    if node is None:
        sinks = ", ".join(map(repr, sorted(circuit.sinks))) or "none"
        raise UnknownStream(f"the circuit has no sink {name!r}; its sinks are {sinks}")
    if [circuit.carries(port) for port in node.inputs] != [Carries.ZSET]:
        raise CircuitError(f"the sink {name!r} cannot be asserted: let it have one stream of ZSets, such as pairs()")
    if cls is not None and not is_record_class(cls):
        raise CircuitError(f"the output {name!r} needs a class made by @record, or None for plain values, not {cls!r}")


# --------------------------------------------------------------------------------------------------- what comes in


Change: TypeAlias = "tuple[Elements, Hashable, Value, int]"
"""An element that came or went, with its weight: of which port, and the handle of its assertion, None for a message."""


class Elements(Port["View"]):
    """What has come for one source since the last step."""

    def __init__(self, view: View, name: str, *, bare: bool) -> None:
        """Of the source *name*; its elements are *bare* if they are not tuples of captures."""
        super().__init__(view, name)
        self.bare = bare
        self.changes: list[Change] = []
        self.counts: dict[Key, int] | None = {} if "unique" in view.engine.circuit.sources[name].params else None
        """How many there are of each, for a source that is a set: an element is in it while there is one."""
        self.changed: dict[Key, int] = {}

    def take(self, captures: Value, handle: Hashable) -> Value:
        """Add the element that was captured to the delta."""
        element = self.element(captures)
        self.note(handle, element, 1)
        self.host.wake()
        return element

    def element(self, captures: Value) -> Value:
        """What was captured, as the circuit sees it."""
        element: Value = inward(captures[0] if self.bare else captures)
        return element

    def note(self, handle: Hashable, element: Value, weight: int) -> None:
        """Add to the delta."""
        self.changes.append((self, handle, element, weight))

    def delta(self) -> ZSet:
        """What the changes are to the source; of a set, what there is then and was not, and the other way round."""
        changes = self.changes
        delta = ZSet.adopt(collect([change[2] for change in changes], [change[3] for change in changes]))
        if self.counts is None:
            return delta
        self.changed = {key: self.counts.get(key, 0) + change for key, change in delta.batch.items()}
        shown = [
            (key, 1 if n > 0 else -1) for key, n in self.changed.items() if (n > 0) != (self.counts.get(key, 0) > 0)
        ]
        return ZSet.adopt(type(delta.batch)(shown))

    def done(self) -> None:
        """A step with the delta has happened."""
        if self.counts is not None:
            self.counts.update(self.changed)
            for key in [key for key, count in self.changed.items() if not count]:
                del self.counts[key]
        self.changes = []

    def passing(self) -> None:
        """Begin the delta of the next step with the end of what was there for the last one only."""

    def refused(self, handle: Hashable, element: Value, weight: int) -> None:
        """No step with this change can happen."""


class AssertedElements(Elements, Asserted["View"]):
    """Elements that come and go."""

    def __init__(self, view: View, name: str, *, bare: bool) -> None:
        """Of the source *name*."""
        super().__init__(view, name, bare=bare)
        self.left: dict[Key, int] = {}
        """Those whose end was refused, and that nobody asserts: whoever asserts one again has it."""

    def take(self, captures: Value, handle: Hashable) -> Value:
        """Add the element to the delta, unless it has stayed."""
        if self.left and self._stayed(key_of(element := self.element(captures))):
            return element
        return super().take(captures, handle)

    def _stayed(self, key: Key) -> bool:
        count = self.left.pop(key, 0)
        if count > 1:
            self.left[key] = count - 1
        return count > 0

    def leave(self, row: Value, handle: Hashable) -> None:
        """Add to the delta."""
        self.note(handle, row, -1)
        self.host.wake()

    def refused(self, handle: Hashable, element: Value, weight: int) -> None:
        """It counts for nothing as long as it is asserted; an element that cannot go stays."""
        if weight > 0:
            self.rows.pop(handle, None)
        else:
            key = key_of(element)
            self.left[key] = self.left.get(key, 0) + 1


class SentElements(Elements, Sent["View"]):
    """Messages: elements for one step, which the next delta takes away."""

    def __init__(self, view: View, name: str, *, bare: bool) -> None:
        """Of the source *name*."""
        super().__init__(view, name, bare=bare)
        self.ending: list[Value] = []

    def done(self) -> None:
        """They have been there."""
        self.ending += [element for _, _, element, weight in self.changes if weight > 0]
        super().done()

    def passing(self) -> None:
        """They are no longer there."""
        for element in self.ending:
            self.note(None, element, -1)
        self.ending = []


# --------------------------------------------------------------------------------------------------- what goes out


class Sink(WeightedRows):
    """What is asserted of one sink."""

    def __init__(self, name: str, cls: type | None, *, tuples: bool) -> None:
        """As records of a class."""
        super().__init__(name, natural)
        self.records = Records(name, cls, tuples=tuples)

    def form(self, row: Key) -> Frozen:
        """The frozen form of an element's value; raises :class:`~syndicate.errors.NotAValue`."""
        return self.records.form(natural(row))


class View(Host):
    """One running view, in the current facet."""

    port = "source"

    def __init__(
        self,
        ds: Ref,
        engine: LocalEngine,
        outputs: Mapping[str, type | None],
        *,
        tuples: bool,
        plan: object = None,
    ) -> None:
        """Of the circuit that an engine runs, which *plan* was compiled to."""
        super().__init__("view")
        self.ds = ds
        self.plan = plan
        self.engine = engine
        self.ports: list[Elements] = []
        self.settle()
        self.outputs = {name: Sink(name, cls, tuples=tuples) for name, cls in outputs.items()}
        self.changes: dict[str, Mapping[Key, int]] = {}
        for output in self.outputs.values():
            output.begin(self.facet, ds)
        engine.inspect = self.inspect
        self.wake()  # what follows from constants alone is there from the start

    def listen(self, port: Elements, pattern: Value) -> None:
        """Let what matches a pattern be the input of a source."""
        self.ports.append(port)
        port.observe(self.ds, pattern)

    def advance(self) -> None:
        """Let the circuit see what has come in this turn, and assert and retract what changed."""
        error = self.probe()
        if error is not None:
            quarantine(self, error)
        for port in self.ports:
            port.passing()

    def waits(self) -> bool:
        """Whether messages of the last step are to go."""
        return any(port.changes for port in self.ports)

    def drawings(self) -> dict[str, Drawing]:
        """The circuit."""
        return {"circuit": drawing(self.engine.circuit)}

    def loads(self, view: str) -> dict[str, Load]:
        """Of each node."""
        return loads(self.engine)

    def held(self, view: str, box: str) -> dict[str, Iterable[Value]]:
        """Those of a source that assertions are the input of, and of a sink."""
        circuit = self.engine.circuit
        named = [(name, node) for nodes in (circuit.sources, circuit.sinks) for name, node in nodes.items()]
        return {name: self._rows(name) for name, node in named if identity(node) == box}

    def _rows(self, name: str) -> Iterable[Value]:
        if name in self.outputs:
            return map(natural, list(self.outputs[name].handles))
        return [row for port in self.ports if port.name == name for row in getattr(port, "rows", {}).values()]

    def showing(self) -> Iterable[Sink]:
        """Those of the sinks that are asserted."""
        return self.outputs.values()

    def planned(self) -> tuple[object, dict[str, Iterable[Value]]] | None:
        """The plan, and what is asserted."""
        return None if self.plan is None else (self.plan, {port.name: self._rows(port.name) for port in self.ports})

    def watch(self, *, on: bool) -> None:
        """Measure each node."""
        self.engine.watch(on=on)

    def probe(self) -> Exception | None:
        """Make a step with the deltas, and assert what is new."""
        changed_ports = [port for port in self.ports if port.changes]
        try:
            self.engine.step({port.name: port.delta() for port in changed_ports})
        except SyndicateError as error:
            return error
        for port in changed_ports:
            port.done()
        for name, delta in self.changes.items():
            self.outputs[name].show(self.turn, delta)
        return None

    def inspect(self, changed: Outputs) -> None:
        """Make the values of what a step gives before it has happened; raises :class:`NotAValue`."""
        self.changes = {name: ordered(changed[name].batch) for name in self.outputs if name in changed}
        for name, delta in self.changes.items():
            self.outputs[name].prepare(delta)

    def suspects(self) -> list[Change]:
        """All that has come, but for what came and went since the last step."""
        changes = [change for port in self.ports for change in port.changes]
        ended = {(port, handle) for port, handle, _, weight in changes if weight < 0 and handle is not None}
        passed = {(port, handle) for port, handle, _, weight in changes if weight > 0} & ended
        return [change for change in changes if change[:2] not in passed]

    def give(self, items: Sequence[Change]) -> None:
        """Add changes to the deltas."""
        for change in items:
            change[0].changes.append(change)

    def take_back(self, items: Sequence[Change]) -> None:
        """Empty the deltas."""
        for port in self.ports:
            port.changes = []

    def refused(self, item: Change, error: Exception) -> None:
        """Leave out what a step fails with."""
        port, handle, element, weight = item
        port.refused(handle, element, weight)
        text = f"{'the end of ' if weight < 0 else ''}{short(element)}"
        self.blame(port.name, text, error, "makes the circuit raise")
