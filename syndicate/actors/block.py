"""Dataflow blocks: functions that run again when fields that they read change, in an order without glitches.

A block that sets fields comes before the blocks that read them: each block has a *height* above those whose fields it
reads, and of the damaged blocks the lowest runs first.  So a block sees the fields of one moment, never a new one
beside one that is yet to follow from it.  Blocks that are above all others compute assertions: these show what is
settled.

What reads and sets what is learnt as it happens.  When that contradicts the heights, those that are too low rise, and
what depends on them; a block that reads a field which a damaged block sets, though it did not come after that one,
lets that one run first (as when a block is new: it runs at once).  In a cycle there is no such order; its blocks run
until they settle, and :class:`DataflowLoop` says which do not.

Source: Acar et al. 2002; Hammer et al. 2014; Incremental, for heights that follow the edges; Pearce and Kelly 2006;
``docs/design/dataflow.md``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakSet

from syndicate.errors import DataflowLoop

if TYPE_CHECKING:
    from syndicate.actors.facet import Facet
    from syndicate.actors.turn import Turn

LIMIT: Final = 10_000
"""How often one block may run in one turn: longer than any sensible iteration to a fixpoint."""

ABOVE_ALL: Final = 1 << 62
"""The height of blocks that only show what others have settled: computed assertions."""


class Source(Protocol):
    """What blocks read and set: a :class:`~syndicate.actors.field.Field`."""

    name: str
    readers: dict[Block, None]
    writers: dict[Block, None]


class Block:
    """A dataflow block: a function, the facet it runs in, what it read last, and what it ever set."""

    __slots__ = ("__weakref__", "facet", "fn", "height", "queued", "reads", "running", "unordered", "writes")

    def __init__(self, facet: Facet, fn: Callable[[], object], height: int = 0) -> None:
        self.facet = facet
        self.fn = fn
        self.height = height
        self.queued = False  # if it is damaged and has its place in the order of a settling
        self.running = False
        self.unordered = False  # if it runs when it was not its turn: it is new, or another needs it
        self.reads: dict[Source, None] = {}
        self.writes: WeakSet[Source] | None = None  # None: none yet, as with most

    # ------------------------------------------------------------------------------------------------ its runs

    def begin(self, turn: Turn) -> None:
        """Run it now, although it may not be its turn."""
        self.unordered = True
        try:
            self.run(turn)
        finally:
            self.unordered = False

    def run(self, turn: Turn) -> None:
        """Run it in its facet, noting what it reads again; not if that has stopped."""
        facet = self.facet
        self.queued = False
        if not facet.alive:
            return
        if self.reads:
            self.unread()
        outer_block, outer_writer, outer_facet = turn.block, turn.writer, turn.facet
        turn.block = turn.writer = self
        turn.facet = facet
        self.running = True
        try:
            self.fn()
        finally:
            self.running = False
            turn.block, turn.writer, turn.facet = outer_block, outer_writer, outer_facet
        if not self.facet.alive:  # it stopped itself, and may have read on
            self.forget()

    def unread(self) -> None:
        """Stop being run by what it read."""
        for read in self.reads:
            read.readers.pop(self, None)
        self.reads.clear()

    def forget(self) -> None:
        """It ends: no field knows it any more."""
        self.unread()
        if self.writes is not None:
            for written in self.writes:
                written.writers.pop(self, None)
            self.writes = None

    # ------------------------------------------------------------------------------------------------ its height

    def wrote(self, field: Source) -> None:
        """Note that it sets a field which it never set before: it comes before those who read that."""
        if self.writes is None:
            self.writes = WeakSet()
        self.writes.add(field)
        field.writers[self] = None
        sources = [writer.height for writer in self._sources() if writer is not self]
        if self.height == ABOVE_ALL:  # it does more than to show something
            self.height = max(sources, default=-1) + 1
        readers = [reader for reader in field.readers if reader is not self]
        lowest = min((reader.height for reader in readers), default=ABOVE_ALL)
        if lowest > self.height:
            return
        if all(height < lowest - 1 for height in sources):
            self.height = lowest - 1  # nothing holds it: it goes below, and nobody has to rise
            return
        for reader in readers:
            if reader.height <= self.height and not reader.leads_to(self):
                reader.rise(self.height + 1)

    def await_writer(self, writer: Block, turn: Turn) -> None:
        """Let a block run that should have run before this one, which is about to read what it sets."""
        if writer is self or writer.running or self.leads_to(writer):
            return  # a cycle, in which none is first
        if turn.damaged or turn.settling.heights:
            writer.refresh(turn)
        if writer.height >= self.height:
            self.rise(writer.height + 1)
            self.unordered = True  # for the rest of this run

    def refresh(self, turn: Turn) -> None:
        """Run what is damaged of this block and of those on which it depends, in their order."""
        seen = {self}
        path = [(self, self._sources())]
        while path:  # no recursion, for a chain may be longer than Python's stack
            block, sources = path[-1]
            source = next(sources, None)
            if source is None:
                path.pop()
                if (block.queued or block in turn.damaged) and not block.running:
                    turn.damaged.pop(block, None)
                    block.begin(turn)
            elif source not in seen:
                seen.add(source)
                path.append((source, source._sources()))

    def _sources(self) -> Iterator[Block]:
        return iter([writer for read in self.reads for writer in read.writers])

    def _dependents(self) -> list[Block]:
        return [reader for written in self.writes or () for reader in written.readers if reader is not self]

    def leads_to(self, other: Block) -> bool:
        """Whether *other* depends on what this block sets."""
        seen = {self}
        to_come = [self]
        while to_come:
            for reader in to_come.pop()._dependents():
                if reader is other:
                    return True
                if reader not in seen and reader.height <= other.height:
                    seen.add(reader)
                    to_come.append(reader)
        return False

    def rise(self, height: int) -> None:
        """Go up to *height*, and with it what depends on it, each block once.

        A dependent that is not above its source already is the last edge of a cycle, which cannot be satisfied.
        """
        needed = {self: height}
        rising = [(self.height, 0, self)]
        while rising:
            before, _, block = heappop(rising)
            block.height = height = needed[block]
            for reader in block._dependents():
                if before < reader.height <= height and needed.get(reader, 0) <= height:
                    if reader not in needed:
                        heappush(rising, (reader.height, len(needed), reader))
                    needed[reader] = height + 1

    # ------------------------------------------------------------------------------------------------ for messages

    @property
    def names(self) -> str:
        """The names of the fields it read last."""
        return ", ".join(sorted(read.name for read in self.reads))

    def __repr__(self) -> str:
        return getattr(self.fn, "__qualname__", repr(self.fn))


class Settling:
    """How a turn reaches a state in which no block is damaged; ``total`` counts the blocks that this has run.

    As with turns, one object serves all of them: most run one block, and to make the object would take as long.
    """

    __slots__ = ("heights", "levels", "limit", "runs", "total", "turn")

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.total = 0
        self.limit = LIMIT
        self.runs: dict[Block, int] = {}  # kept only after LIMIT runs of any blocks
        self.heights: list[int] = []  # of the levels with damaged blocks, a heap
        self.levels: dict[int, deque[Block]] = {}

    def settle(self) -> None:
        """Run damaged blocks, the lowest first, until none is left; raises :class:`DataflowLoop`."""
        turn = self.turn
        outer = turn.facet
        heights, levels = self.heights, self.levels
        while True:
            if turn.damaged:
                if len(turn.damaged) == 1 and not heights:
                    block, _ = turn.damaged.popitem()
                else:
                    damaged, turn.damaged = turn.damaged, {}
                    for block in damaged:
                        if not block.queued:
                            block.queued = True
                            if block.height not in levels:
                                levels[block.height] = deque()
                                heappush(heights, block.height)
                            levels[block.height].append(block)
                    continue
            elif heights:
                level = levels[heights[0]]
                if not level:
                    del levels[heappop(heights)]
                    continue
                block = level.popleft()
                if not block.queued:  # it was needed earlier
                    continue
                block.queued = False
                if block.height != heights[0]:
                    turn.damaged[block] = None
                    continue
            else:
                break
            self.total += 1
            if self.total > LIMIT:
                self._count(block)
            facet = block.facet
            if facet.alive:  # as Block.run, where nothing has to be restored: an error ends the actor
                if block.reads:
                    block.unread()
                turn.block = turn.writer = block
                turn.facet = facet
                block.running = True
                block.fn()
                block.running = block.unordered = False
                turn.block = turn.writer = None
                if not block.facet.alive:
                    block.forget()
        turn.facet = outer

    def _count(self, block: Block) -> None:
        """Refuse a block that runs without end."""
        count = self.runs[block] = self.runs.get(block, 0) + 1
        if count <= self.limit:
            return
        if self.limit == LIMIT:  # each facet that is there may stop, and change a field by that
            self.limit += 1 + len(block.facet.actor.root.below())
            return
        looping = (each for each, count in self.runs.items() if count > LIMIT // 2)
        blocks = ", ".join(sorted({f"{each!r} (reads {each.names})" for each in looping}))
        raise DataflowLoop(
            f"after {count} runs in one turn, dataflow blocks still change what they read: {blocks}. Let a block set a "
            "field only when the value differs, and to something that it does not then change again."
        )
