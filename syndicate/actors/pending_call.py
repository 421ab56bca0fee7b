"""Pending calls: turns that are undone if they raise, and whose actor lives on.

A handler that raises crashes its actor, since nobody waits for it.  A *call* from outside has somebody who waits: a
thread, a task of asyncio.  It is a turn of its own, in a facet of its own inside the facet that is entered; if it
raises, the caller gets the error, and the turn is undone:

* what it sent, asserted, retracted, spawned and asked is not handed over: nobody else has seen anything of it;
* its actor is as before: the facets that it started are gone, those that it stopped live, with their assertions, tasks,
  timers and stop handlers; fields have their old values, and dataflow blocks that have seen others run again;
* ``on_stop_or_crash`` handlers of facets that it started run, so that a file which was opened is closed.

What it did to other Python objects stays done, and so does a change *inside* a field's value.

If it does not raise, its facet lasts as long as anything is in it, an assertion for example, and the handle of that can
be retracted by any later call.

>>> from syndicate import after, current_facet, field, run, stop_actor
>>> def boot():
...     after(0.01, stop_actor)
...     count = field(1)
...     def fail():
...         count.value = 2
...         raise ValueError("no")
...     facet = current_facet()
...     enter(facet, fail, lambda result, error: print(repr(error), count.value))
...     enter(facet, lambda: count.value + 1, lambda result, error: print(result, error))
>>> run(boot)
ValueError('no') 1
2 None

Contract: *answer* is called once, outside of the turn's handlers, after the turn has committed or was undone.

Source: ``docs/design/hosts.md``, "A call is an attempt".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import isawaitable, iscoroutine
from typing import Generic, TypeVar

from syndicate.actors.arguments import expect_function
from syndicate.actors.facet import Facet, UndoLog, unmake
from syndicate.actors.turn import Handle, Turn, current, settle_facets
from syndicate.errors import NotCallable
from syndicate.index.event import ASSERT, ENTER, RETRACT
from syndicate.log import logger

T = TypeVar("T")


class PendingCall(UndoLog, Generic[T]):
    """One function to be called in a turn of its own, and who learns what came of it: the result, or the error."""

    __slots__ = ("_answer", "_facet", "_fn", "_result", "_turn")

    def __init__(self, fn: Callable[[], T], answer: Callable[[T | None, Exception | None], None]) -> None:
        super().__init__()
        self._fn = fn
        self._answer = answer

    def __call__(self) -> None:
        """In the turn, in the facet that was entered."""
        turn = current("call")
        self._turn = turn
        turn.journal = self
        turn.afterwards.append(_nothing)  # so that the commit looks at the journal
        self._facet = Facet(turn.actor, turn.facet)
        self.note(partial(unmake, self._facet))
        self._facet.boot(turn, self._run)
        for events in turn.late.values():  # what one call has left, another one takes away
            for kind, _, _, handle in events:
                if kind == RETRACT:
                    turn.suspects[handle.facet] = None  # type: ignore[union-attr]  # of this kind, it has a handle

    def _run(self) -> None:
        result = self._fn()
        if isawaitable(result):
            if iscoroutine(result):
                result.close()
            raise NotCallable(
                f"a call has got {result!r} from its function, which would have to be awaited, and a turn never waits: "
                "call a plain function, and let that give what waits to linked_task()"
            )
        self._result = result

    def commit(self) -> None:
        """Answer with the result."""
        self._answer(self._result, None)

    def undo(self, error: Exception) -> None:
        """Take everything back, and answer with *error*."""
        turn = self._turn
        for block in (turn.block, turn.writer):
            if block is not None:
                block.running = block.unordered = False
        for level in turn.settling.levels.values():
            for block in level:
                block.queued = False
        asserted, retracted = self._events(turn)
        for handle in asserted:
            handle.facet.handles.pop(handle, None)
        for handle in retracted:
            if handle not in asserted:
                handle.facet.handles[handle] = None
        self._clean_up(turn)
        for back in reversed(self.notes):
            back()
        settle_facets(turn)
        turn.commit()
        self._answer(None, error)

    def _events(self, turn: Turn) -> tuple[dict[Handle, None], dict[Handle, None]]:
        """Forget what was noted for others; the handles that it has made, and those that it has retracted."""
        kinds: dict[int, dict[Handle, None]] = {ASSERT: {}, RETRACT: {}}
        for events in turn.discard().values():
            for kind, _, _, handle in events:
                if kind in kinds and isinstance(handle, Handle):
                    kinds[kind][handle] = None
        return kinds[ASSERT], kinds[RETRACT]

    def _clean_up(self, turn: Turn) -> None:
        """Run the ``on_stop_or_crash`` handlers of the facets that it has started."""
        for facet in self._facet.below():
            for hook, on_crash in facet.hooks:
                if on_crash:
                    try:
                        turn.actor.root.run(turn, hook)
                    except Exception as error:
                        logger(actor=turn.actor.name).error(
                            "a handler of on_stop_or_crash raised when a call was undone", exc_info=error
                        )


def _nothing() -> None:
    """What is to be done when an attempt commits."""


def enter(facet: Facet, fn: Callable[[], T], answer: Callable[[T | None, Exception | None], None]) -> None:
    """Call *fn* as an attempt in *facet*, soon, and then *answer* with its result or its error.

    As :meth:`Facet.enter <syndicate.actors.facet.Facet.enter>`, from the thread of the system.
    """
    expect_function("call", fn)
    system = facet.actor.system
    system.schedule(facet.actor, (ENTER, facet, PendingCall(fn, answer), None))
