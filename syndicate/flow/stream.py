"""Streams: the edges of a circuit, and the methods that add nodes to it.

A stream is one output of a node; nothing runs when a method is called.  The methods have PomoFlow's names.
``join``, ``distinct`` and ``aggregate`` are incremental: they take the changes of collections and give the changes of
the result.  Their ``_stream`` forms work on what one tick brings and remember nothing: they are for circuits over whole
collections (see :mod:`syndicate.flow.incremental`) and for events.

A binary method may mix streams of a loop with streams of the circuits around it: those are imported.  A method on a
stream of an outer circuit adds its node there, where it runs once and not once an iteration.  The same method with the
same function on the same stream gives the same node, so that two joins on one index share its trace.

Source: PomoFlow, 2.7 and 2.9; ``docs/design/flow.md``, "Where PomoFlow is corrected".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeVar

from attrs import define, field, frozen

from syndicate.errors import CircuitError
from syndicate.flow.aggregates import Aggregate, aggregate_of
from syndicate.flow.element import Element, rearranges
from syndicate.flow.node import Carries, Kind, Netlist, Node, Port

if TYPE_CHECKING:
    from syndicate.flow.zset import IndexedZSet, ZSet

F = TypeVar("F", bound=Callable[..., object])
JoinFunction = Callable[[Element, Element, Element], Element]

_HINTS: Final = {
    (Carries.ZSET, Carries.INDEXED): "call index_with(key) first",
    (Carries.ZSET, Carries.TRACE): "call trace_append() first",
    (Carries.INDEXED, Carries.ZSET): "call pairs() or values() first",
    (Carries.INDEXED, Carries.TRACE): "call trace_append() first",
    (Carries.TRACE, Carries.ZSET): "call consolidate() first",
    (Carries.TRACE, Carries.INDEXED): "call consolidate() and index_with(key) first",
}
ZSETS: Final = (Carries.ZSET, Carries.INDEXED)


@rearranges
def both(key: Element, left: Element, right: Element) -> Element:
    """The default of joins: ``(key, (left, right))``."""
    return (key, (left, right))


@rearranges
def key_and_left(key: Element, left: Element, right: Element) -> Element:
    """A join that only asks whether there is a match."""
    return (key, left)


@rearranges
def second(pair: Element) -> Element:
    """The value of a pair ``(key, value)``."""
    return pair[1]


@rearranges
def itself(element: Element) -> Element:
    """The element as its own key."""
    return element


@rearranges
def nothing(element: Element) -> None:
    """No value: for an index of which only the keys count."""


@rearranges
def unit(element: Element) -> tuple[()]:
    """The one key of a product."""
    return ()


class Padded:
    """The function of an outer join for a row without a partner: the other side is None."""

    __slots__ = ("function", "left")

    def __init__(self, function: JoinFunction, *, left: bool) -> None:
        self.function = function
        self.left = left

    def __call__(self, pair: Element) -> Element:
        """The padded row."""
        key, value = pair
        return self.function(key, value, None) if self.left else self.function(key, None, value)


@frozen
class Stream:
    """One output of a node.

    >>> from syndicate.flow import Circuit, ZSet
    >>> from syndicate.flow.aggregates import count
    >>> circuit = Circuit()
    >>> words = circuit.source("words")
    >>> circuit.sink("lengths", words.index_with(len).aggregate(count))
    >>> circuit.step({"words": ZSet({"a": 1, "of": 1, "to": 1})})["lengths"] == ZSet({(1, 1): 1, (2, 2): 1})
    True
    """

    circuit: StreamNetlist
    port: Port

    @property
    def node(self) -> Node:
        """The node that feeds the stream."""
        return self.circuit.nodes[self.port.node]

    @property
    def carries(self) -> Carries:
        """What its values are."""
        return self.circuit.nodes[self.port.node].carries[self.port.output]

    def named(self, name: str) -> Stream:
        """The same stream; messages, graphs and profiles call its node by this name."""
        self.node.name = name
        return self

    # --------------------------------------------------------------------------------------------------- linear

    def map(self, function: Callable[[Element], Element]) -> Stream:
        """``function(element)`` for each element; weights of equal results are added."""
        return self._operator("map", self.need("map", Carries.ZSET), function=_callable("map", function))

    def filter(self, predicate: Callable[[Element], object]) -> Stream:
        """The elements for which *predicate* is true, with their weights."""
        stream = self.need("filter", Carries.ZSET)
        return self._operator("filter", stream, function=_callable("filter", predicate))

    def flat_map(self, function: Callable[[Element], Iterable[Element]]) -> Stream:
        """All elements of ``function(element)`` for each element."""
        stream = self.need("flat_map", Carries.ZSET)
        return self._operator("flat_map", stream, function=_callable("flat_map", function))

    def index_with(
        self, key: Callable[[Element], Element], value: Callable[[Element], Element] | None = None
    ) -> Stream:
        """Pairs ``(key(element), element)``, found by key; ``value(element)`` is kept in place of the element."""
        stream = self.need("index_with", Carries.ZSET)
        _callable("index_with", key)
        if value is not None:
            _callable("index_with", value)
        return self._operator("index_with", stream, Carries.INDEXED, key=key, value=value)

    def negate(self) -> Stream:
        """Opposite weights."""
        self.need("negate", *ZSETS)
        return self._operator("negate", self, self.carries)

    def plus(self, *others: Stream) -> Stream:
        """The sum: the union of bags.  Also written ``a + b``."""
        total = self
        for other in others:
            total = total._binary("plus", other)
        return total

    def minus(self, other: Stream) -> Stream:
        """The difference of weights.  Also written ``a - b``; the difference of sets is :meth:`antijoin`."""
        return self._binary("minus", other)

    def _binary(self, op: str, other: Stream) -> Stream:
        left, right = _together(op, self, other)
        left.need(op, *ZSETS)
        right.need(op, left.carries)
        return left._operator(op, left, left.carries, right)

    def __add__(self, other: Stream) -> Stream:
        return self.plus(other)

    def __sub__(self, other: Stream) -> Stream:
        return self.minus(other)

    def __neg__(self) -> Stream:
        return self.negate()

    def inspect(self, callback: Callable[[ZSet | IndexedZSet], object]) -> Stream:
        """The same stream; *callback* gets each tick's batch, also an empty one.  Its result is ignored."""
        self.need("inspect", *ZSETS)
        return self._operator("inspect", self, self.carries, share=False, callback=_callable("inspect", callback))

    def pairs(self) -> Stream:
        """An Indexed ZSet as a ZSet of ``(key, value)``."""
        return self._operator("pairs", self.need("pairs", Carries.INDEXED))

    def keys(self) -> Stream:
        """The keys of an Indexed ZSet, with the sum of the weights under each."""
        return self._operator("keys", self.need("keys", Carries.INDEXED))

    def values(self) -> Stream:
        """The values of an Indexed ZSet, without the keys."""
        return self._operator("values", self.need("values", Carries.INDEXED))

    # --------------------------------------------------------------------------------------------------- joins

    def join(self, other: Stream, function: JoinFunction = both) -> Stream:
        """``function(key, left, right)`` for each two values under one key; weights are multiplied.

        Incremental.  Both streams are indexed; the default gives ``(key, (left, right))``.
        """
        left, right = self._two_indexed("join", other)
        return left._operator("join", left, Carries.ZSET, right, function=_callable("join", function))

    def join_stream(self, other: Stream, function: JoinFunction = both) -> Stream:
        """The join of what the two streams bring in the same tick; remembers nothing."""
        left, right = self._two_indexed("join_stream", other)
        return left._operator("join_stream", left, Carries.ZSET, right, function=_callable("join_stream", function))

    def join_trace(self, trace: Stream, function: JoinFunction = both) -> Stream:
        """The join of this tick's batch with a trace (PomoFlow 2.9.13)."""
        left, right = _together("join_trace", self, trace)
        left.need("join_trace", Carries.INDEXED)
        right.need("join_trace", Carries.TRACE)
        return left._operator("join_trace", left, Carries.ZSET, right, function=_callable("join_trace", function))

    def product(self, other: Stream, function: Callable[[Element, Element], Element] | None = None) -> Stream:
        """``function(left, right)`` for all pairs of elements; the default gives ``(left, right)``."""
        left = self.need("product", Carries.ZSET).index_with(unit)
        right = _stream("product", other).need("product", Carries.ZSET).index_with(unit)
        if function is None:
            return left.join(right).map(second)
        return left.join(right).map(second).map(Spread(_callable("product", function)))

    def semijoin(self, other: Stream) -> Stream:
        """What has a partner: the values whose key is among the keys of *other*.

        A ZSet counts as indexed by its elements, on either side.  A key counts as present where the weights under it
        add up to more than 0; weights of the result are those of this stream.
        """
        return self._matching("semijoin", other).map(second)

    def antijoin(self, other: Stream) -> Stream:
        """What has no partner: the values whose key is not among the keys of *other*.  See :meth:`semijoin`."""
        return self._unmatched("antijoin", other).map(second)

    def left_join(self, other: Stream, function: JoinFunction = both) -> Stream:
        """The join, and ``function(key, left, None)`` for what has no partner."""
        unmatched = self._unmatched("left_join", other).map(Padded(function, left=True))
        return self.join(other, function).plus(unmatched)

    def right_join(self, other: Stream, function: JoinFunction = both) -> Stream:
        """The join, and ``function(key, None, right)`` for what has no partner."""
        unmatched = _stream("right_join", other)._unmatched("right_join", self).map(Padded(function, left=False))
        return self.join(other, function).plus(unmatched)

    def full_join(self, other: Stream, function: JoinFunction = both) -> Stream:
        """The join, and what has no partner on either side, padded with None."""
        unmatched = _stream("full_join", other)._unmatched("full_join", self).map(Padded(function, left=False))
        return self.left_join(other, function).plus(unmatched)

    def _matching(self, op: str, other: Stream) -> Stream:
        """The pairs ``(key, value)`` whose key is in *other*."""
        left, right = self._by_key(op), _stream(op, other)._by_key(op)
        return left.join(right.keys().distinct().index_with(itself, nothing), key_and_left)

    def _unmatched(self, op: str, other: Stream) -> Stream:
        """The pairs whose key is not in *other*: a difference that is known to take away a part."""
        matching = self._matching(op, other)
        pairs = matching.circuit.bring(self._by_key(op), op).pairs()
        return pairs._operator("minus", pairs, Carries.ZSET, matching, part=True)

    def _by_key(self, op: str) -> Stream:
        self.need(op, *ZSETS)
        return self if self.carries is Carries.INDEXED else self.index_with(itself)

    def _two_indexed(self, op: str, other: Stream) -> tuple[Stream, Stream]:
        left, right = _together(op, self, other)
        return left.need(op, Carries.INDEXED), right.need(op, Carries.INDEXED)

    # --------------------------------------------------------------------------------------------------- sets, groups

    def distinct(self) -> Stream:
        """Incremental: the change of the set of elements whose weight is above 0."""
        self.need("distinct", *ZSETS)
        return self._operator("distinct", self, self.carries)

    def distinct_stream(self) -> Stream:
        """Weight 1 for each element of positive weight in this tick's batch (PomoFlow 2.9.3)."""
        self.need("distinct_stream", *ZSETS)
        return self._operator("distinct_stream", self, self.carries)

    def distinct_incremental(self, trace: Stream) -> Stream:
        """The change of the distinct elements, given the trace of all earlier ticks (PomoFlow 2.9.18; root only)."""
        return self._with_trace("distinct_incremental", trace, Carries.ZSET)

    def distinct_trace(self, trace: Stream) -> Stream:
        """The same by product-order times, right in loops too (PomoFlow 2.9.11)."""
        return self._with_trace("distinct_trace", trace, Carries.ZSET)

    def aggregate(self, aggregate: Aggregate | Callable[[Element], Element], *, grows: bool = False) -> Stream:
        """Incremental: the change of ``(key, result)`` for each group of an indexed stream.

        *aggregate* is one of :mod:`syndicate.flow.aggregates`, or a function of a group, a mapping of values to
        weights.  *grows* says of a fold into a lattice in a loop that all that reads it there is monotone: then rows
        that greater ones have replaced may stay in the loop, which costs less; what is exported has the last alone.
        """
        stream = self.need("aggregate", Carries.INDEXED)
        return self._operator("aggregate", stream, aggregate=aggregate_of(aggregate), grows=grows or None)

    def aggregate_stream(self, aggregate: Aggregate | Callable[[Element], Element]) -> Stream:
        """The aggregate of this tick's batch (PomoFlow 2.9.1)."""
        stream = self.need("aggregate_stream", Carries.INDEXED)
        return self._operator("aggregate_stream", stream, aggregate=aggregate_of(aggregate))

    # --------------------------------------------------------------------------------------------------- time

    def z1(self) -> Stream:
        """The previous tick's batch.  In a loop it is emptied at the start of each epoch."""
        self.need("z1", *ZSETS)
        return self._operator("z1", self, self.carries, kind=Kind.FEEDBACK, share=False)

    def z1_trace(self) -> Stream:
        """The trace as it was in the previous tick.  In a loop it keeps past epochs."""
        self.need("z1_trace", Carries.TRACE)
        return self._operator("z1_trace", self, Carries.TRACE, kind=Kind.FEEDBACK, share=False)

    def integrate(self) -> Stream:
        """The sum of all batches so far, each tick."""
        self.need("integrate", *ZSETS)
        return self._operator("integrate", self, self.carries)

    def differentiate(self) -> Stream:
        """This tick's batch less the previous one."""
        self.need("differentiate", *ZSETS)
        return self._operator("differentiate", self, self.carries)

    def trace_append(self, trace: Stream | None = None) -> Stream:
        """The trace with this tick's batch added at the current time.

        Without *trace*, it is the node's own output of the previous tick: the sum of all batches so far.
        """
        return self._append("trace_append", trace)

    def untimed_trace_append(self, trace: Stream | None = None) -> Stream:
        """The same without times: all entries are at time 0."""
        return self._append("untimed_trace_append", trace)

    def consolidate(self) -> Stream:
        """All deltas of a trace in one ZSet: of its elements, or of ``(key, value)``."""
        return self._operator("consolidate", self.need("consolidate", Carries.TRACE))

    def _append(self, op: str, trace: Stream | None) -> Stream:
        if trace is not None:
            return self._with_trace(op, trace, Carries.TRACE)
        self.need(op, *ZSETS)
        feedback = self.circuit.feedback(Carries.TRACE)
        appended = self._with_trace(op, feedback, Carries.TRACE)
        self.circuit.connect(feedback, appended)
        return appended

    def _with_trace(self, op: str, trace: Stream, carries: Carries) -> Stream:
        left, right = _together(op, self, trace)
        left.need(op, *ZSETS)
        right.need(op, Carries.TRACE)
        return left._operator(op, left, carries, right)

    # --------------------------------------------------------------------------------------------------- building

    def connect(self, stream: Stream) -> None:
        """Feed a :meth:`~syndicate.flow.circuit.Circuit.feedback` or ``forward`` from *stream*, once."""
        self.circuit.connect(self, stream)

    def need(self, op: str, *kinds: Carries) -> Stream:
        """The stream itself; raises :class:`CircuitError` unless it carries one of *kinds*."""
        if self.carries in kinds:
            return self
        wanted = " or ".join(f"a stream of {kind.value}s" for kind in kinds)
        raise CircuitError(
            f"{op} needs {wanted}, but {self.node} carries a {self.carries.value}: {_HINTS[self.carries, kinds[0]]}"
        )

    def _operator(
        self,
        op: str,
        first: Stream,
        carries: Carries = Carries.ZSET,
        *others: Stream,
        kind: Kind = Kind.OPERATOR,
        share: bool = True,
        **params: Element,
    ) -> Stream:
        ports = [first.port, *[other.port for other in others]]
        node = first.circuit.add(kind, op, ports, [carries], params, share=share)
        return Stream(first.circuit, Port(node.id))


def outside_root(what: str) -> CircuitError:
    """The error for what only the root of a circuit has."""
    return CircuitError(f"a {what} belongs to the root circuit: use export() to bring a stream out of a loop")


@define(eq=False, slots=False)
class StreamNetlist(Netlist):
    """A circuit whose streams are connected: what :class:`~syndicate.flow.circuit.Circuit` is built with."""

    above: StreamNetlist | None = None
    _shared: dict[Element, Node] = field(factory=dict, init=False)
    _imported: dict[Port, Node] = field(factory=dict, init=False)

    def check_changeable(self) -> None:
        """Raise :class:`CircuitError` if nodes can no longer be added."""

    def add(
        self,
        kind: Kind,
        op: str,
        inputs: list[Port],
        carries: list[Carries],
        params: dict[str, Element],
        *,
        share: bool,
    ) -> Node:
        """A new node, or with *share* the node that has the same operator, inputs and functions."""
        alike = (op, tuple(inputs), tuple((name, id(value)) for name, value in params.items()))
        if share and alike in self._shared:
            return self._shared[alike]
        self.check_changeable()
        node = Node(self, len(self.nodes), kind, op, inputs, carries, params)
        self.nodes.append(node)
        if share:
            self._shared[alike] = node
        return node

    def feedback(self, carries: Carries = Carries.ZSET) -> Stream:
        """A stream that will be what another was one tick earlier: ``connect`` it."""
        op = "z1_trace" if carries is Carries.TRACE else "z1"
        return Stream(self, Port(self.add(Kind.FEEDBACK, op, [], [carries], {}, share=False).id))

    def forward(self, carries: Carries = Carries.ZSET) -> Stream:
        """A stream that will be what another is in the same tick: ``connect`` it.  For building out of order."""
        return Stream(self, Port(self.add(Kind.OPERATOR, "forward", [], [carries], {}, share=False).id))

    def connect(self, end: Stream, stream: Stream) -> None:
        """Feed *end*, a feedback or forward of this circuit, from *stream*."""
        node = end.node
        if node.op not in ("z1", "z1_trace", "forward"):
            raise CircuitError(f"{node} cannot be connected: only what feedback() and forward() gave can")
        if node.inputs:
            raise CircuitError(f"{node} is connected already")
        brought = self.bring(stream, "connect")
        brought.need("connect", end.carries)
        self.check_changeable()
        node.inputs.append(brought.port)

    def bring(self, stream: Stream, what: str = "import") -> Stream:
        """*stream* in this circuit: imported if it belongs to one around it."""
        if not isinstance(stream, Stream):
            raise CircuitError(f"{what} needs a stream, not {stream!r}")
        if stream.circuit is self:
            return stream
        if self.above is None or len(stream.circuit.path) >= len(self.path):
            raise CircuitError(
                f"{what} cannot use {stream.node}: it belongs to another circuit or loop; export() it from there"
            )
        outer = self.above.bring(stream, what)
        outer.need("import", Carries.ZSET, Carries.INDEXED)
        port = self._imported.get(outer.port)
        if port is None:
            port = self.add(Kind.IMPORT, "import", [outer.port], [outer.carries], {}, share=False)
            port.name = outer.node.name
            self._imported[outer.port] = port
            self.imports.append(port)
        return Stream(self, Port(port.id))


class Spread:
    """A function of two arguments as one of a pair."""

    __slots__ = ("function", "rearranges")

    def __init__(self, function: Callable[[Element, Element], Element]) -> None:
        self.function = function
        self.rearranges = getattr(function, "rearranges", False)

    def __call__(self, pair: Element) -> Element:
        """The function of both."""
        return self.function(pair[0], pair[1])


def _callable(op: str, function: F) -> F:
    if not callable(function):
        raise CircuitError(f"{op} needs a function, not {function!r}")
    return function


def _stream(op: str, stream: object) -> Stream:
    if isinstance(stream, Stream):
        return stream
    raise CircuitError(f"{op} needs a stream, not {stream!r}")


def _together(op: str, left: Stream, right: object) -> tuple[Stream, Stream]:
    """Two streams, imported into the inner one of their circuits."""
    if isinstance(right, Stream) and right.circuit is left.circuit:
        return left, right
    other = _stream(op, right)
    inner = left.circuit if len(left.circuit.path) >= len(other.circuit.path) else other.circuit
    return inner.bring(left, op), inner.bring(other, op)
