"""Circuits: query plans over changing collections, as data.

A circuit is built by methods (see :mod:`syndicate.flow.stream`) and executed by an engine: :meth:`Circuit.step` by the
local one, ``SparkEngine(circuit, session)`` on Spark.  No execution happens here, and nothing of an engine is kept in
the nodes, so that both engines, the oracle of the tests, graphs and rewrites read the same object.

A loop is a child circuit, in which a feedback carries each iteration's result to the next, until nothing changes any
more.  What a loop needs from outside enters by import nodes: at iteration 0 of each epoch, and only then (delta0),
since the sum over the iterations is the collection.  What it gives is the sum of its changes over all iterations.

>>> c = Circuit(); edges = c.source("edges")
>>> steps = edges.index_with(lambda e: e[0])
>>> longer = lambda paths: paths.index_with(lambda p: p[1]).join(steps, lambda k, p, e: (p[0], e[1]))
>>> c.sink("paths", c.recursive(lambda paths: edges + longer(paths)))
>>> c.step({"edges": {("a", "b"): 1, ("b", "c"): 1}})["paths"]
ZSet({('a', 'b'): 1, ('b', 'c'): 1, ('a', 'c'): 1})
>>> c.step({"edges": {("b", "c"): -1}})["paths"]
ZSet({('b', 'c'): -1, ('a', 'c'): -1})

Source: PomoFlow, 2.6 to 2.8; ``docs/design/flow.md``, "Loops".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from syndicate.drawing import fenced
from syndicate.errors import CircuitError, SyndicateError
from syndicate.flow.columns import Columns
from syndicate.flow.contents import integral
from syndicate.flow.element import Element
from syndicate.flow.graph import explain, graph
from syndicate.flow.local_engine import LocalEngine, Outputs
from syndicate.flow.node import Carries, Kind, Node, Port
from syndicate.flow.profile import Profile, profile
from syndicate.flow.snapshot import restored, snapshot
from syndicate.flow.stream import Stream, StreamNetlist, outside_root
from syndicate.flow.trace import Trace
from syndicate.flow.zset import Given, IndexedZSet, ZSet
from syndicate.values.value import Ref

MAX_ITERATIONS: Final = 10_000
"""How many iterations a loop may take in one step before it is called endless."""


class Circuit(StreamNetlist):
    """A directed graph of nodes: the root, or the inside of a child node.

    >>> from syndicate.flow import ZSet
    >>> circuit = Circuit()
    >>> circuit.sink("even", circuit.source("numbers").filter(lambda number: number % 2 == 0))
    >>> circuit.step({"numbers": ZSet({1: 1, 2: 1})})["even"]
    ZSet({2: 1})
    """

    above: Circuit | None

    def __init__(self, *, above: Circuit | None = None, node: Node | None = None) -> None:
        """An empty circuit; the arguments are for children, see :meth:`child`."""
        super().__init__(above=above, child_node=node, path=() if node is None else node.global_id)
        self._building: list[Circuit] = [self] if above is None else above._building
        self._engine: LocalEngine | None = None
        self._watched = False

    # --------------------------------------------------------------------------------------------------- ends

    def source(self, name: str, *, key: Callable[[Element], Element] | None = None, unique: bool = False) -> Stream:
        """Input from outside: the deltas given to a step under this name.

        With *key*, a map by primary key: a step gives the new elements (the old one of the same key goes), or
        ``{key: element}``, where None deletes.  With *unique*, a set: to insert what is there, and to delete what is
        not, changes nothing, whatever the weights.

        >>> c = Circuit(); c.sink("out", c.source("facts", unique=True)); _ = c.step({"facts": ["a", "a"]})
        >>> c.step({"facts": ["a", "b"]})["out"], c.step({"facts": {"a": -1, "x": -1}})["out"]
        (ZSet({'b': 1}), ZSet({'a': -1}))
        """
        if self.above is not None:
            raise outside_root("source")
        if unique and key is not None:
            raise CircuitError(f"the source {name!r} has a key, and so is a set already: leave unique= out")
        if key is not None and not callable(key):
            raise CircuitError(f"the key of the source {name!r} is a function of its elements, not {key!r}")
        if name in self.sources:
            raise CircuitError(f"the circuit has a source {name!r} already: use the stream that source({name!r}) gave")
        params: dict[str, Element] = {"key": key} if key else {"unique": True} if unique else {}
        node = self.add(Kind.SOURCE, "source", [], [Carries.ZSET], params, share=False)
        node.name = name
        self.sources[name] = node
        return Stream(self, Port(node.id))

    def constant(
        self, zset: ZSet | Mapping[Element, int] | Iterable[tuple[Element, int]], *, name: str = "constant"
    ) -> Stream:
        """A collection that is there from the first step on: a ZSet, or ``{element: weight}``.

        >>> c = Circuit(); c.sink("all", c.constant({"a": 1}) + c.source("more")); c.step()["all"], c.step()["all"]
        (ZSet({'a': 1}), ZSet({}))
        """
        if self.above is not None:
            raise outside_root("constant")
        node = self.add(Kind.SOURCE, "constant", [], [Carries.ZSET], {"zset": ZSet(zset)}, share=False)
        node.name = name
        return Stream(self, Port(node.id))

    def sink(self, name: str, *streams: Stream) -> None:
        """Output to outside: what changed in a step, under this name; a tuple of that for several streams."""
        if self.above is not None:
            raise outside_root("sink")
        if name in self.sinks:
            raise CircuitError(f"the circuit has a sink {name!r} already: choose another name")
        if not streams:
            raise CircuitError(f"the sink {name!r} needs a stream")
        for stream in streams:
            if not isinstance(stream, Stream):
                raise CircuitError(f"the sink {name!r} needs a stream, not {stream!r}")
            if stream.circuit is not self:
                raise CircuitError(
                    f"the sink {name!r} needs a stream of this circuit, but {stream.node} belongs to another circuit, "
                    "or to a loop: export() it from there"
                )
            stream.need("sink", Carries.ZSET, Carries.INDEXED)
        node = self.add(Kind.SINK, "sink", [stream.port for stream in streams], [], {}, share=False)
        node.name = name
        self.sinks[name] = node

    # --------------------------------------------------------------------------------------------------- loops

    def recursive(self, body: Callable[[Stream], Stream], *, name: str = "", limit: int = MAX_ITERATIONS) -> Stream:
        """The least fixed point of ``r = distinct(body(r))``, kept up to date under insertions and deletions.

        While a source has elements of negative weight (something was deleted that is not there yet), ``r`` may differ
        from what iterating the body would give; it is right again when they have come.

        Raises :class:`EndlessLoop` at a step that takes more than *limit* iterations.
        """
        return self.recursive_many([name or "loop"], lambda r: dict.fromkeys(r, body(*r.values())), limit=limit)[
            name or "loop"
        ]

    def recursive_many(
        self,
        names: Iterable[str],
        bodies: Callable[[dict[str, Stream]], Mapping[str, Stream]],
        *,
        limit: int = MAX_ITERATIONS,
        sets: Collection[str] = (),
    ) -> dict[str, Stream]:
        """Several collections that depend on each other: from a stream for each name to a body for each name.

        A body gets a ``distinct``, unless *sets* says that it is a set as it is, as what ends in an aggregate.

        >>> c = Circuit(); start = c.source("start")
        >>> both = c.recursive_many(["even", "odd"], lambda r: {
        ...     "even": start + r["odd"].map(lambda n: n + 1).filter(lambda n: n < 6),
        ...     "odd": r["even"].map(lambda n: n + 1).filter(lambda n: n < 6)})
        >>> c.sink("odd", both["odd"]); c.step({"start": {0: 1}})["odd"]
        ZSet({1: 1, 3: 1, 5: 1})
        """
        names = list(names)
        child = self.child(", ".join(names), limit=limit)
        loops = {name: child.feedback().named(name) for name in names}
        try:
            return self._recursion(child, loops, bodies, sets)
        except BaseException:
            for loop in loops.values():  # an empty loop, so that the circuit is still good for another try
                if not loop.node.inputs:
                    loop.connect(loop)
            raise

    def _recursion(
        self,
        child: Circuit,
        loops: dict[str, Stream],
        bodies: Callable[[dict[str, Stream]], Mapping[str, Stream]],
        sets: Collection[str],
    ) -> dict[str, Stream]:
        child._building.append(child)
        try:
            streams = bodies(dict(loops))
        finally:
            child._building.pop()
        if set(streams) != set(loops):
            raise CircuitError(f"a recursion over {sorted(loops)} needs a body for each, but got {sorted(streams)}")
        results = {}
        for name, loop in loops.items():
            inner = child.bring(streams[name], "recursive")
            inner.need("recursive", Carries.ZSET)
            if name in sets:
                stream = inner
            else:
                node = child.add(Kind.OPERATOR, "distinct", [inner.port], [Carries.ZSET], {}, share=False)
                stream = Stream(child, Port(node.id))
            stream.named(name)
            loop.connect(stream)
            results[name] = child.export(stream)
        return results

    def child(self, name: str = "loop", *, limit: int = MAX_ITERATIONS) -> Circuit:
        """An empty loop, to be wired by hand with ``feedback``, ``connect`` and ``export``; imports are made as needed.

        Within the body of a recursion it is a loop in that loop.
        """
        if type(limit) is not int or limit < 1:
            raise CircuitError(f"the limit of a loop is how many iterations it may take, 1 or more, not {limit!r}")
        above = self._building[-1] if self.above is None else self
        node = above.add(Kind.CHILD, "loop", [], [], {"limit": limit}, share=False)
        node.name = name
        node.child = child = Circuit(above=above, node=node)
        return child

    def export(self, stream: Stream) -> Stream:
        """A stream of this loop in the circuit around it: the sum of its batches over all iterations."""
        if self.above is None or self.child_node is None:
            raise CircuitError("export() is for loops; a stream of the root circuit ends in a sink()")
        brought = self.bring(stream, "export")
        brought.need("export", Carries.ZSET, Carries.INDEXED)
        if brought.port not in self.exports:
            self.check_changeable()
            self.exports.append(brought.port)
            self.child_node.carries.append(brought.carries)
        return Stream(self.above, Port(self.child_node.id, self.exports.index(brought.port)))

    # --------------------------------------------------------------------------------------------------- running

    @property
    def root(self) -> Circuit:
        """The outermost circuit."""
        return self if self.above is None else self.above.root

    def check_changeable(self) -> None:
        """Raise :class:`CircuitError` once the circuit runs."""
        root = self._building[0]
        if root._engine is not None:
            raise CircuitError("the circuit is running: add nodes before the first step, or build another circuit")

    @property
    def engine(self) -> LocalEngine:
        """The local engine of this circuit, made at first use; from then on the circuit cannot be changed."""
        if self._engine is None:
            if self.above is not None:
                raise outside_root("step")
            self._engine = LocalEngine(self)
            if self._watched:
                self._engine.watch()
        return self._engine

    def step(self, deltas: Mapping[str, Given | Columns] | None = None) -> Outputs:
        """One epoch on the local engine: deltas of sources in, changes of sinks out.

        Raises :class:`UnknownStream` for a name that is no source, :class:`StepFailed` if a function of the circuit
        raised, :class:`EndlessLoop`; the circuit is then as it was before.
        """
        engine = self._engine
        try:
            return (self.engine if engine is None else engine).step({} if deltas is None else deltas)
        except SyndicateError:
            if engine is None:
                self._engine = None  # it may still be changed, by what the error says
            raise

    def __host__(
        self,
        ds: Ref,
        *,
        inputs: Mapping[str, object],
        outputs: Mapping[str, type | None],
        messages: Mapping[str, object],
        tuples: bool = False,
        plan: object = None,
    ) -> Callable[[], None]:
        """A view: see :func:`syndicate.hosting.host` and :mod:`syndicate.views`.

        With *tuples*, a class of one field means tuples of one, and not bare values.  *plan* is what it was made of, by
        which its rows can be explained.
        """
        from syndicate.flow.view import view_of  # only then are there actors

        return view_of(ds, self, inputs, outputs, messages, tuples=tuples, plan=plan)

    # --------------------------------------------------------------------------------------------------- looking in

    def watch(self, *, on: bool = True) -> None:
        """Measure each node from the next step on, or stop; :meth:`profile` and :meth:`graph` show it.

        The circuit may not be complete yet.
        """
        if self.above is not None:
            raise outside_root("watch")
        self._watched = on
        if self._engine is not None:
            self._engine.watch(on=on)

    def profile(self) -> Profile:
        """What each node keeps, and has cost since :meth:`watch`: prints as a table, ``lines`` are data."""
        return profile(self.engine)

    def state(self, what: str | Stream) -> ZSet | IndexedZSet | Trace:
        """The collection that the changes of a stream add up to, if something in the circuit keeps it.

        *what* is a stream or the name of a sink, a source or a node.  Raises :class:`CircuitError` where nothing does:
        so of ``integrate``, which gives the whole collection in each step, ask for the stream that it reads.

        >>> c = Circuit(); c.sink("seen", c.source("visits").distinct())
        >>> _ = c.step({"visits": {"ann": 2}}), c.step({"visits": {"bob": 1}})
        >>> c.state("seen"), c.state("visits")
        (ZSet({'ann': 1, 'bob': 1}), ZSet({'ann': 2, 'bob': 1}))
        """
        with self.root.engine.settled():
            return integral(self.root.engine, self, what)

    def graph(self, form: str = "mermaid") -> str:
        """The circuit as a drawing: text in the language of ``mermaid``, of ``dot`` (Graphviz), or as ``json``.

        While it is watched, nodes have their entries and the times of the last step, edges their rows.
        """
        return graph(self, form, self.running)

    def _repr_markdown_(self) -> str:
        return fenced(self.graph())

    def explain(self) -> str:
        """The nodes in the order in which they run, as a table in text."""
        return explain(self)

    @property
    def running(self) -> LocalEngine | None:
        """The local engine, if there is one yet."""
        return self.root._engine

    def snapshot(self) -> bytes:
        """All that the running circuit keeps, as bytes: see :mod:`syndicate.flow.snapshot`.

        Raises :class:`UnwritableElement` for an element of a type that snapshots do not know.
        """
        with self.engine.settled():
            return snapshot(self.engine)

    def restore(self, data: bytes) -> None:
        """Go on from a snapshot of a circuit that was built like this one, whatever has happened in this one.

        Raises :class:`SnapshotDamaged` or :class:`SnapshotMismatch`; the circuit is then as it was before.
        """
        if self.above is not None:
            raise outside_root("restore")
        engine = restored(self, data)
        if self._watched:
            engine.watch()
        self._engine = engine

    def __repr__(self) -> str:
        where = ".".join(map(str, self.path))
        return f"<Circuit{' ' + where if where else ''} of {len(self.nodes)} nodes>"
