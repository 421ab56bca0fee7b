"""A step in one call: a circuit whose nodes all work on tables, as one program for the kernel.

To take a step node by node costs Python a microsecond or so for each, which is most of a small step.  Where every node
of a root works on words (:mod:`syndicate.flow.word_tables`), what each does is known once the shapes of its batches
are: columns to keep in a store, stores to join, batches to give out; functions that only rearrange are but other names
of columns.  The kernel then does the same by the same functions, and all of it, or nothing: where a node would have to
take rows, the step is taken node by node.

Source: ``docs/design/flow.md``, "Rows, columns and what they cost".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from syndicate.flow.arrangement import Arrangement
from syndicate.flow.element import Element
from syndicate.flow.node import Carries, Kind, Node, Port
from syndicate.flow.shape import ByRows, Shape, joined_shape, leaves, normal, rearranging, several, traced, united
from syndicate.flow.word_state import ArrangedRows, KeptRows, StateRows, SummedRows
from syndicate.flow.word_tables import Stages, TableZSet, Texts, WordShape
from syndicate.flow.zset import ZSet

if TYPE_CHECKING:
    from syndicate.flow.scope import Scope

STAGED: Final = frozenset(
    {"source", "constant", "sink", "map", "flat_map", "plus", "index_with", "keys", "values", "pairs", "forward"}
    | {"join", "distinct", "aggregate"}
)
"""What a circuit consists of that can be one call: it only rearranges, or keeps what it does in words."""


class PlacedRows(NamedTuple):
    """What a stream carries: the place of its rows, what its elements look like, and whether none recurs."""

    place: int
    shape: Shape
    once: bool


class Pipeline:
    """A step in one call, of a circuit of :data:`STAGED` operators whose streams all carry tables.

    ``passing`` are sources that sinks alone read: what comes of these is what was given, and no table.
    ``stages`` is the program: None before all nodes have begun, and after a step by nodes, which may change what is
    kept in words.  What has had nothing so far, as its sources have not, is left out.
    """

    __slots__ = (
        "_batches",
        "_idle",
        "_keepers",
        "_passing",
        "_scope",
        "_silent",
        "_sinks",
        "_sources",
        "_texts",
        "_works",
        "stages",
    )

    def __init__(
        self,
        scope: Scope,
        texts: Texts,
        sources: Mapping[int, Shape],
        keepers: Sequence[tuple[Node, KeptRows]],
        passing: Mapping[int, Sequence[str]],
    ) -> None:
        self._scope = scope
        self._texts = texts
        self._sources = sources
        self._keepers = keepers
        self._passing = passing
        self._works = True  # false where shapes show that a node does not work on words
        self._sinks: list[tuple[str, WordShape]] = []  # what a sink's elements look like
        self._batches: dict[int, PlacedRows] = {}
        self._idle: set[int] = set()  # the places of nodes that have had nothing
        self._silent = -1  # of how many sources that is known
        self.stages: Stages | None = None

    def run(self, batches: list[tuple[int, Element]], outputs: dict[str, Element]) -> bool:
        """Take a step with such batches, each in its cell; false, and nothing is changed, where it is one for nodes."""
        stages, self.stages = self.stages, None
        if self._scope.engine.measures is not None:
            return False
        stages = stages or self._program()
        if stages is None or (self._idle and not self._idle.isdisjoint([slot for slot, _ in batches])):
            return False
        passing = self._passing
        self._scope.undo.append((stages.take_back, stages.versions()))
        tables = stages.run([each for each in batches if each[0] not in passing] if passing else batches)
        if tables is None:
            return False
        self.stages = stages
        for (name, shape), table in zip(self._sinks, tables, strict=True):
            if table is not None:
                outputs[name] = TableZSet.lazily(self._texts, table, shape)
        if passing:
            for slot, batch in batches:
                for name in passing.get(slot, ()):
                    outputs[name] = ZSet.adopt(batch)
        return True

    # ---------------------------------------------------------------------------------------------------- building

    def _program(self) -> Stages | None:
        """The program, once all nodes have begun; what they kept in dictionaries until now is in words from now on."""
        if not self._works:
            return None
        scope, idle = self._scope, self._find_idle()
        for node, keeper in self._keepers:
            is_idle = scope.slots[Port(node.id)] in idle
            if keeper.is_new() != is_idle or not (is_idle or keeper.in_words):
                return None  # it has not begun, or has what a snapshot brought
        states = {node: keeper for node, keeper in self._keepers if isinstance(keeper, StateRows)}
        stages = self._texts.words.pipeline(len(scope.cells))
        self._sinks.clear()
        self._batches.clear()
        try:
            for at, node in enumerate(scope.nodes):
                if at in self._passing or at in idle:
                    continue
                if node.kind is Kind.SINK:
                    self._show(stages, node)
                    continue
                batch = self._batches[at] = (
                    PlacedRows(at, self._sources[at], once=True) if node.kind is Kind.SOURCE
                    else self._batch(stages, at, node, states.get(node))
                )  # fmt: skip
                if scope.takers[at] is not None:
                    self._keep(stages, batch, self._arranged(at), at)
        except (ByRows, OverflowError):
            self._works = False
            return None
        return stages

    def _find_idle(self) -> set[int]:
        """The places of nodes that have had nothing, as what they read has not; of a join one side is enough."""
        idle, silent = self._idle, sum([shape is None for shape in self._sources.values()])
        if silent == self._silent:
            return idle
        self._silent = silent
        idle.clear()
        for at, node in enumerate(self._scope.nodes):
            enough = any if node.op == "join" else all
            if (
                at in self._sources and self._sources[at] is None if node.kind is Kind.SOURCE
                else enough(slot in idle for slot in self._scope.inputs(node))
            ):  # fmt: skip
                idle.add(at)
        return idle

    def _batch(self, stages: Stages, at: int, node: Node, state: StateRows | None) -> PlacedRows:
        """What a node gives, and how it comes to it."""
        slots = self._scope.inputs(node)
        if node.op == "join":
            one, other = map(self._arranged, slots)
            shape, whole = joined_shape(node.params["function"], one.shape, other.shape)
            assert one.store is not None
            assert other.store is not None
            stages.join(one.store, other.store, at)
            return PlacedRows(at, shape, once=whole)
        if node.op == "plus":
            batches = [self._batches[slot] for slot in slots if slot not in self._idle]
            return self._gather(stages, [(each.place, each.shape) for each in batches], at)
        batch = self._batches[slots[0]]
        if node.op == "flat_map":
            shapes = several(node.params["function"], batch.shape)
            return self._gather(stages, [(batch.place, shape) for shape in shapes], at)
        if state is not None:
            self._keep(stages, batch, state, at)
            return PlacedRows(at, state.result(), once=True)
        function = rearranging(node.op, node.params)
        if function is None:
            raise ByRows
        shape = traced(function, batch.shape)
        same_columns = len(set(leaves(shape))) == len(set(leaves(batch.shape)))
        return PlacedRows(batch.place, shape, once=batch.once and same_columns)

    def _gather(self, stages: Stages, parts: Sequence[tuple[int, Shape]], at: int) -> PlacedRows:
        columns, shape = united([shape for _, shape in parts])
        stages.gather([(place, each) for (place, _), each in zip(parts, columns, strict=True)], at)
        return PlacedRows(at, shape, once=False)

    def _keep(self, stages: Stages, batch: PlacedRows, keeper: KeptRows, to: int) -> None:
        columns = keeper.columns(batch.shape)
        keeper.start()
        value = keeper.value if isinstance(keeper, SummedRows) else None
        stages.keep(batch.place, columns, batch.once, keeper.store, to, value)

    def _arranged(self, slot: int) -> ArrangedRows:
        taker = self._scope.takers[slot]
        words = taker.words if isinstance(taker, Arrangement) else None
        if not isinstance(words, ArrangedRows):
            raise ByRows
        return words

    def _show(self, stages: Stages, node: Node) -> None:
        slots = self._scope.inputs(node)
        if len(slots) == 1 and slots[0] in self._passing:
            return
        batches = [self._batches[slot] for slot in slots]
        if len(batches) != 1 or node.circuit.carries(node.inputs[0]) is Carries.INDEXED:
            raise ByRows
        (batch,) = batches
        columns, shape = (None, batch.shape) if batch.once else normal(batch.shape)
        stages.show(batch.place, columns, shape)
        self._sinks.append((node.name, self._texts.shape(shape)))
