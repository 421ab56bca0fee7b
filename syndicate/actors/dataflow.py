"""Dataflow: how a turn reaches a state in which no dataflow block is damaged, the lowest of them first.

Source: ``docs/design/dataflow.md``.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import Final

from syndicate.actors.facet import AbstractTurn, Block
from syndicate.errors import DataflowLoop

LIMIT: Final = 10_000
"""How often one block may run in one turn: longer than any sensible iteration to a fixpoint."""


class Settling:
    """How a turn reaches a state in which no block is damaged; ``total`` counts the blocks that this has run.

    As with turns, one object serves all of them: most run one block, and to make the object would take as long.
    """

    __slots__ = ("heights", "levels", "limit", "runs", "total", "turn")

    def __init__(self, turn: AbstractTurn) -> None:
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
