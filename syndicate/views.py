"""Views: a circuit, or a program of rules, as an actor: assertions in, conclusions out.

Patterns name the circuit's inputs, record classes its outputs.  What the dataspace tells in one turn, of all inputs, is
one step of the circuit, made at the end of that turn; what the step concludes is asserted, and what no longer follows
is retracted, in the same turn.

>>> from syndicate import assert_, capture, dataspace, react, record, stop
>>> from syndicate.flow import Circuit
>>> from syndicate.testing import settled, watch
>>> @record
... class Present:
...     who: str
...     room: str
>>> @record
... class Visited:
...     room: str
>>> c = Circuit(); c.sink("visited", c.source("present").map(lambda e: e[1]))
>>> def boot():
...     ds = dataspace()
...     heard.append(watch(ds, capture(Visited)))
...     react(view(ds, c, inputs={"present": Present}, outputs={"visited": Visited}))
...     facets.append(react(lambda: assert_(ds, Present("Alice", "hall"))))
...     facets.append(react(lambda: assert_(ds, Present("Bob", "hall"))))
>>> heard, facets = [], []
>>> system = settled(boot); heard
[[('+', Visited(room='hall'))]]
>>> facets[0].enter(stop); system.drain(); heard
[[('+', Visited(room='hall'))]]
>>> facets[1].enter(stop); system.drain(); heard
[[('+', Visited(room='hall')), ('-', Visited(room='hall'))]]

**Elements.**  A pattern gives the tuple of its captures, or what it captures if that is one thing.  A record class
stands for the pattern that captures all its fields, and, as an output, makes a record of such an element.  So a
class of two or more fields stands for tuples, a class of one field for bare values.  ``capture(Present)`` gives whole
records; an output None takes its elements as the values to assert.  Of a program of :mod:`syndicate.plan`, whose facts
are tuples, a class of one field stands for tuples of one as well.

**Messages** are elements for one step: the next step takes them away again.  If nothing else makes a next step, the
view does, in a turn of its own right after; so what follows from a message is asserted for one turn.

Contract: what an observer knows of a view's outputs, at the end of each of its turns, is what the circuit makes of the
inputs as they stood after some turn of the dataspace, and later ones follow in order: never half a turn.

* An element is asserted while its weight is above 0; new conclusions, output by output in the order of ``outputs``,
  come before old ones go.
* Each start makes a new engine, so that a view that is supervised begins afresh, and a circuit may serve several views.
* What strangers assert or send cannot end a view: an element with which the circuit raises, or of whose conclusions no
  value can be made, is refused and logged, and so is the end of one that the circuit cannot do without
  (:mod:`~syndicate.quarantine`).  A refused assertion counts for nothing as long as it stands.  A circuit that raises
  without any of them crashes the actor, with an error that names the node; all that the view concluded is retracted.
* None in an element is :data:`~syndicate.absent.ABSENT` in a value, both ways.
* A view of another view's outputs is one turn behind it.  Who looks at both may see one ahead of the other; what must
  hold together belongs in one circuit.
* Views in a cycle go on until nothing changes, and for ever if the rules always find something new.  What they
  conclude from each other stays when the first reason for it has gone: each is the other's reason.  Recursion belongs
  within a circuit (``circuit.recursive``), where this cannot happen.

Source: Budiu et al. 2023 (integrate, distinct); ``docs/design/values.md``, "Absent" and "Quarantine".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from syndicate.absent import form_of, inward
from syndicate.during import _observe
from syndicate.errors import (
    CircuitError,
    EndlessLoop,
    NotAValue,
    PatternError,
    StepFailed,
    SyndicateError,
    UnknownStream,
)
from syndicate.flow.circuit import Circuit
from syndicate.flow.element import Key, collect, natural
from syndicate.flow.local import LocalEngine, Outputs
from syndicate.flow.node import Carries
from syndicate.flow.zset import ZSet
from syndicate.pattern import ANY, Capture, Group
from syndicate.plan import Plan
from syndicate.quarantine import Refusals, sift
from syndicate.skeleton.analysis import analyse
from syndicate.turn import Entity, Handle, Turn, current, expect_ref
from syndicate.values import Frozen, Ref, Value


def view(
    ds: Ref,
    circuit: Circuit | Plan,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, type | None],
    messages: Mapping[str, Any] | None = None,
) -> Callable[[], None]:
    """A boot function, for ``spawn`` and ``react``: keep in *ds* what *circuit* concludes from what is in *ds*.

    Args:
        ds: the dataspace.
        circuit: any circuit, or what ``program.plan()`` gives; it is not changed, and its own ``step`` is not used.
        inputs: for each source a pattern of assertions, or a record class.
        outputs: for each sink whose elements are asserted a record class, or None if they are values already.
        messages: for each source that is no input a pattern of messages, or a record class.

    Raises:
        UnknownStream: a name is no source, or no sink, of the circuit.
        CircuitError: a source has no pattern or two, or has a key; a sink has no ZSet.
        PatternError: a pattern is none.
        NotAValue, StepFailed, EndlessLoop: (by the actor, which crashes with it) without anything of strangers the
            circuit raises, or gives what is no such record, or no value.

    Example::

        rooms = Circuit()
        rooms.sink("rooms", rooms.source("present").index_with(lambda e: e[1]).aggregate(aggregates.count))
        spawn(view(ds, rooms, inputs={"present": Present}, outputs={"rooms": Occupied}))
    """
    expect_ref("view", ds)
    tuples = isinstance(circuit, Plan)
    if isinstance(circuit, Plan):
        circuit = circuit.circuit
    if not isinstance(circuit, Circuit):
        raise CircuitError(f"view() needs a circuit or a plan, not {circuit!r}")
    asserted = {name: _pattern(name, written) for name, written in inputs.items()}
    sent = {name: _pattern(name, written) for name, written in (messages or {}).items()}
    _check_sources(circuit, asserted, sent)
    for name, cls in outputs.items():
        check_sink(circuit, name, cls)

    def start() -> None:
        made = _View(current("view"), ds, LocalEngine(circuit), outputs, tuples=tuples)
        for name, pattern in asserted.items():
            made.observe(_Asserted, name, pattern)
        for name, pattern in sent.items():
            made.observe(_Sent, name, pattern)

    start.__name__ = "view"
    return start


# --------------------------------------------------------------------------------------------------- how it is wired


def _pattern(name: str, written: Any) -> Any:
    """What is observed for a source; a class stands for all its fields."""
    if isinstance(written, type) and hasattr(written, "__label__"):
        places = range(len(attrs.fields(written)))
        written = Group("rec", written.__label__, tuple([(place, Capture(ANY)) for place in places]))
    try:
        analyse(written)
    except PatternError as error:
        raise PatternError(f"the source {name!r} of a view: {error}") from None
    return written


def _check_sources(circuit: Circuit, asserted: Mapping[str, Any], sent: Mapping[str, Any]) -> None:
    for name in (*asserted, *sent):
        if name not in circuit.sources:
            known = ", ".join(map(repr, sorted(circuit.sources))) or "none"
            raise UnknownStream(f"the circuit has no source {name!r}; its sources are {known}")
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


def check_sink(circuit: Circuit, name: str, cls: Any) -> None:
    """Raise :class:`UnknownStream` or :class:`CircuitError` unless a sink can be asserted as what *cls* says."""
    node = circuit.sinks.get(name)
    if node is None:
        known = ", ".join(map(repr, sorted(circuit.sinks))) or "none"
        raise UnknownStream(f"the circuit has no sink {name!r}; its sinks are {known}")
    if [circuit.nodes[port.node].carries[port.output] for port in node.inputs] != [Carries.ZSET]:
        raise CircuitError(f"the sink {name!r} cannot be asserted: let it have one stream of ZSets, such as pairs()")
    if cls is not None and not (isinstance(cls, type) and hasattr(cls, "__label__")):
        raise CircuitError(f"the output {name!r} needs a class made by @record, or None for plain values, not {cls!r}")


# --------------------------------------------------------------------------------------------------- what comes in


@attrs.frozen(eq=False)
class _Change:
    """One element that came or went, for *port*; *handle* is that of its assertion, or None for a message."""

    port: _Input
    handle: Any
    element: Value
    weight: int


class _Input(Entity):
    """What has come for one source since the last step: handles, elements and their weights."""

    def __init__(self, view: _View, name: str, *, bare: bool) -> None:
        self.view = view
        self.name = name
        self.bare = bare
        self.handles: list[Any] = []
        self.elements: list[Value] = []
        self.weights: list[int] = []
        self.counts: dict[Key, int] | None = {} if "unique" in view.engine.circuit.sources[name].params else None
        """How many there are of each, for a source that is a set: an element is in it while there is one."""
        self.changed: dict[Key, int] = {}

    def note(self, handle: Any, element: Value, weight: int) -> None:
        """Add to the delta, and let the view make a step at the end of this turn."""
        self.handles.append(handle)
        self.elements.append(element)
        self.weights.append(weight)
        self.view.turn.damaged[self.view.block] = None

    def element(self, captured: Value) -> Value:
        """The element that a pattern has captured."""
        return inward(captured[0] if self.bare else captured)

    def delta(self, elements: list[Value], weights: list[int]) -> ZSet:
        """What some changes are to the source; of a set, what there is then and was not, and the other way round."""
        given = ZSet.adopt(collect(elements, weights))
        if self.counts is None:
            return given
        self.changed = {key: self.counts.get(key, 0) + change for key, change in given.batch.items()}
        shown = [
            (key, 1 if n > 0 else -1) for key, n in self.changed.items() if (n > 0) != (self.counts.get(key, 0) > 0)
        ]
        return ZSet.adopt(type(given.batch)(shown))

    def clear(self) -> None:
        """Begin the next delta."""
        self.handles, self.elements, self.weights = [], [], []

    def changes(self) -> list[_Change]:
        """The delta, one by one; what came and went since the last step is left out."""
        ended = {handle for handle, weight in zip(self.handles, self.weights, strict=True) if weight < 0}
        passed = ended.intersection(h for h, weight in zip(self.handles, self.weights, strict=True) if weight > 0)
        return [
            _Change(self, handle, element, weight)
            for handle, element, weight in zip(self.handles, self.elements, self.weights, strict=True)
            if handle is None or handle not in passed
        ]

    def done(self, elements: Sequence[Value], weights: Sequence[int]) -> None:
        """A step with these has happened."""
        if self.counts is not None:
            self.counts.update(self.changed)
            for key in [key for key, count in self.changed.items() if not count]:
                del self.counts[key]

    def refused(self, change: _Change) -> None:
        """A step with this one cannot happen."""


class _Asserted(_Input):
    """Elements that come and go."""

    def __init__(self, view: _View, name: str, *, bare: bool) -> None:
        super().__init__(view, name, bare=bare)
        self.known: dict[Any, Value] = {}

    def assert_(self, value: Any, handle: Any) -> None:
        element = self.known[handle] = self.element(value)
        self.note(handle, element, 1)

    def retract(self, handle: Any) -> None:
        if handle in self.known:
            self.note(handle, self.known.pop(handle), -1)

    def refused(self, change: _Change) -> None:
        self.known.pop(change.handle, None)


class _Sent(_Input):
    """Messages: elements for one step, which the next delta takes away."""

    def message(self, value: Any) -> None:
        self.note(None, self.element(value), 1)

    def done(self, elements: Sequence[Value], weights: Sequence[int]) -> None:
        super().done(elements, weights)
        passing = [element for element, weight in zip(elements, weights, strict=True) if weight > 0]
        self.handles += [None] * len(passing)
        self.elements += passing
        self.weights += [-1] * len(passing)


class _View:
    """One running view: its inputs, the engine, what stands of each output.

    The step is a dataflow block, and so runs once at the end of each turn that noted something, before the commit.
    """

    def __init__(
        self, turn: Turn, ds: Ref, engine: LocalEngine, outputs: Mapping[str, type | None], *, tuples: bool
    ) -> None:
        self.turn = turn
        self.ds = ds
        self.facet = turn.facet
        self.engine = engine
        self.inputs: list[_Input] = []
        self.outputs = {name: _Output(name, cls, tuples=tuples) for name, cls in outputs.items()}
        self.tuples = tuples
        self.refusals = Refusals(self.facet.actor.name)
        engine.inspect = self.inspect
        self.block = self.facet.block(self.step)
        turn.damaged[self.block] = None  # what follows from constants alone is there from the start

    def observe(self, kind: type[_Input], name: str, pattern: Any) -> None:
        """Let what matches a pattern be the input of a source."""
        made = kind(self, name, bare=len(analyse(pattern)[0].captures) == 1 and not self.tuples)
        self.inputs.append(made)
        _observe("view", self.ds, pattern, made)

    def step(self) -> None:
        """Let the circuit see what has come in this turn, and assert and retract what changed."""
        deltas = {each: (each.elements, each.weights) for each in self.inputs if each.elements}
        gone: list[Handle] = []
        error = self.attempt(deltas, gone)
        if error is not None:
            changes = [change for each in deltas for change in each.changes()]
            for each in deltas:
                each.clear()
            own = self.attempt({}, gone)
            if own is not None:
                raise own
            sift(changes, lambda some: self.attempt(_by_input(some), gone), self.refuse)
        if any(each.elements for each in self.inputs):
            self.facet.enter(self.forget)
        for handle in gone:
            self.turn.retract(handle)

    def attempt(
        self, deltas: Mapping[_Input, tuple[list[Value], list[int]]], gone: list[Handle]
    ) -> SyndicateError | None:
        """Make a step, and assert what is new; answer what it raised, if it has not happened, and add to *gone* the
        handles of what is no more.
        """
        turn, facet, ds = self.turn, self.facet, self.ds
        try:
            changed = self.engine.step(
                {each.name: each.delta(elements, weights) for each, (elements, weights) in deltas.items()}
            )
        except (StepFailed, EndlessLoop, NotAValue) as error:
            return error
        for each, (elements, weights) in deltas.items():
            if each.elements is elements:
                each.clear()
            each.done(elements, weights)
        for name, output in self.outputs.items():
            delta = changed.get(name)
            if delta is not None:
                standing, forms = output.standing, output.forms
                for key in output.change(delta, gone):
                    standing[key] = turn.assert_form(facet, ds, forms[key])
                forms.clear()
        return None

    def inspect(self, changed: Outputs) -> None:
        """Make the values of what a step gives before it has happened; raises :class:`NotAValue`."""
        for name, output in self.outputs.items():
            delta = changed.get(name)
            if delta is not None:
                output.prepare(delta)

    def refuse(self, change: _Change, error: Exception) -> None:
        """Leave out what a step fails with."""
        change.port.refused(change)
        which = "the end of " if change.weight < 0 else ""
        self.refusals.log(f"{which}{_short(change.element)} makes the circuit raise: {error}", source=change.port.name)

    def forget(self) -> None:
        """Make a step for the messages of the last one to go, unless one has been made since."""
        if any(each.elements for each in self.inputs):
            self.turn.damaged[self.block] = None


def _by_input(changes: Sequence[_Change]) -> dict[_Input, tuple[list[Value], list[int]]]:
    deltas: dict[_Input, tuple[list[Value], list[int]]] = {}
    for change in changes:
        elements, weights = deltas.setdefault(change.port, ([], []))
        elements.append(change.element)
        weights.append(change.weight)
    return deltas


def _short(element: object) -> str:
    text = repr(element)
    return text if len(text) <= 80 else text[:77] + "..."


# --------------------------------------------------------------------------------------------------- what goes out


class _Output:
    """What stands of one sink, and those weights behind it that are neither 0 nor 1."""

    def __init__(self, name: str, cls: type | None, *, tuples: bool) -> None:
        self.name = name
        self.cls = cls
        self.tuples = tuples
        self.fields = 0 if cls is None else len(attrs.fields(cls))
        self.weights: dict[Key, int] = {}
        self.standing: dict[Key, Handle] = {}
        self.forms: dict[Key, Frozen] = {}

    def prepare(self, delta: ZSet) -> None:
        """Make the forms of what a delta may bring; raises :class:`NotAValue`."""
        standing, form = self.standing, self.form
        self.forms = {
            key: form(natural(key)) for key, change in delta.batch.items() if change > 0 and key not in standing
        }

    def change(self, delta: ZSet, gone: list[Handle]) -> list[Key]:
        """Add a delta; answer what is there now and was not, and add to *gone* the handles of what is no more."""
        weights, standing, added = self.weights, self.standing, []
        for key, change in delta.batch.items():
            handle = standing.get(key)
            weight = change + weights.pop(key, 0 if handle is None else 1)
            if not 0 <= weight <= 1:
                weights[key] = weight
            if weight > 0:
                if handle is None:
                    added.append(key)
            elif handle is not None:
                del standing[key]
                gone.append(handle)
        return added

    def form(self, element: Any) -> Frozen:
        """The frozen form of the value that an element stands for."""
        cls = self.cls
        try:
            if cls is None or type(element) is cls:
                return form_of(element)
            if self.fields == 1 and not self.tuples:
                return form_of(cls(element))
            if type(element) is tuple and len(element) == self.fields:
                return form_of(cls(*element))
        except NotAValue as error:
            raise NotAValue(f"the output {self.name!r} gave {element!r}: {error}") from None
        raise misfit(self.name, element, cls)


def misfit(name: str, element: Any, cls: Any) -> NotAValue:
    """The error of an output whose elements are other than its record class."""
    names = [field.name for field in attrs.fields(cls)]
    return NotAValue(
        f"the output {name!r} gave {element!r}, which is no {cls.__name__}({', '.join(names)}): let it give tuples of "
        f"{len(names)}, or use another class"
    )
