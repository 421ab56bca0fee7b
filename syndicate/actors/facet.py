"""Facets: the tree of conversations that an actor is made of.

A facet owns assertions (its interests among them), dataflow blocks, linked tasks, stop handlers and further facets;
when it stops, all that goes with it.  Order of a stop: the children, each in this way; the stop handlers, *in the
parent's context*; the facet's own retractions; then the parent, if it has become inert.  Others see of all that first
what is new and then what goes, as of every turn.

A facet is inert when nothing can ever happen in it: no children, assertions, tasks, timers, preventers.  Inert facets
stop.  This is looked at before the commit of turns that booted a facet or ended something in it.

Source: ``docs/design/actors.md``, "Facets".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Protocol
from weakref import ref

from syndicate.actors.block import ABOVE_ALL, Block, Settling
from syndicate.actors.turn import Handle, Turn, expect_function, here
from syndicate.errors import EndlessStop, FacetEnded
from syndicate.index.event import ENTER

if TYPE_CHECKING:
    from syndicate.actors.actor import Actor


class Cancellable(Protocol):
    """What ends with a facet without being asked."""

    def cancel(self) -> None:
        """Its facet has ended."""


_ROUNDS: Final = 10_000
"""How often stopping facets may start further facets in one turn, before we say that they do so without end."""


class Facet:
    """One conversation.  Made by :func:`~syndicate.actors.verbs.react`, :func:`~syndicate.actors.during.during` and
    ``spawn``.

    >>> from syndicate import prevent_inert_check, react, run, stop
    >>> def boot():
    ...     facet = react(lambda: prevent_inert_check())
    ...     stop(facet)
    ...     print(facet.alive)
    >>> run(boot)
    False
    """

    __slots__ = (
        "actor",
        "alive",
        "blocks",
        "children",
        "handles",
        "hooks",
        "lasting",
        "parent",
        "preventers",
        "stopping",
        "tasks",
        "vital",
    )

    def __init__(self, actor: Actor, parent: Facet | None) -> None:
        self.actor = actor
        self.parent = parent
        self.alive = True
        self.stopping = False
        self.preventers = 0
        self.lasting = False  # if it lives until it is stopped, inert or not; unlike a preventer it holds up no end
        self.vital = False  # if it is all that its parent is there for, so that what fails in it fails there
        self.children: dict[Facet, None] = {}
        self.handles: dict[Handle, None] = {}
        self.blocks: dict[ref[Block], None] = {}  # the fields that they read keep them
        self.hooks: list[tuple[Callable[[], object], bool]] = []
        self.tasks: dict[Cancellable, None] = {}
        if parent is not None:
            parent.children[self] = None

    # ------------------------------------------------------------------------------------------------ from boot to stop

    def boot(self, turn: Turn, fn: Callable[[], object]) -> None:
        """Run *fn* in this facet; at the turn's end the facet stops if it is inert."""
        self.run(turn, fn)
        turn.suspects[self] = None

    def run(self, turn: Turn, fn: Callable[[], object]) -> None:
        """Run *fn* with this facet as the current one."""
        outer, outer_block = turn.facet, turn.block  # what it reads is its own affair; what it sets, the block's
        turn.facet, turn.block = self, None
        try:
            fn()
        finally:
            turn.facet, turn.block = outer, outer_block

    @property
    def inert(self) -> bool:
        """Whether nothing can happen in it any more.  The root's own assertions (links) do not count."""
        return not (
            self.children or self.tasks or self.preventers or self.lasting or (self.handles and self.parent is not None)
        )

    def look(self, turn: Turn) -> None:
        """Stop if it has become inert."""
        if self.alive and not self.stopping and self.inert:
            self.stop(turn)

    def stop(self, turn: Turn, then: Callable[[], object] | None = None) -> None:
        """Stop in order; *then* runs as the last stop handler.

        No effect on a facet that has stopped or is stopping.
        """
        if self.stopping:
            return
        ending = [self._end(turn, then)]  # no recursion, for a tree may be deeper than Python's stack
        while ending:
            child = next(ending[-1], None)
            if child is None:
                ending.pop()
            else:
                ending.append(child._end(turn, None))

    def _end(self, turn: Turn, then: Callable[[], object] | None) -> Iterator[Facet]:
        """The steps of a stop; each child that it yields must have ended before it goes on."""
        if turn.writer is not None:
            self._show_last(turn)
        if turn.journal is not None:
            turn.journal.note(self._as_it_is(turn))
        self.stopping = True
        if self.children:
            yield from self._ending_children()
        context = self.parent or self
        for _ in range(len(self.hooks)):
            hook, _ = self.hooks.pop(0)  # one by one, so that the crash, if one raises, still finds the others
            context.run(turn, hook)
        if then is not None:
            context.run(turn, then)
        if self.children:  # the root's own stop handlers run in the root itself
            yield from self._ending_children()
        self.alive = False
        for handle in list(self.handles):
            turn.retract(handle)
        self.release()
        if self.parent is not None:
            del self.parent.children[self]
            turn.suspects[self.parent] = None
        else:
            self.actor.ended(turn)

    def _as_it_is(self, turn: Turn) -> Callable[[], None]:
        """What lets the facet be again as it is now; the assertions apart, which the turn has noted."""
        hooks, blocks = list(self.hooks), [block for each in self.blocks if (block := each()) is not None]

        def restore() -> None:
            self.alive, self.stopping, self.hooks = True, False, hooks
            self.blocks = {ref(block, self.blocks.pop): None for block in blocks}
            turn.damaged.update(dict.fromkeys(blocks))  # they know their fields again when they have run
            if self.parent is not None:
                self.parent.children[self] = None

        return restore

    def _show_last(self, turn: Turn) -> None:
        """Let computed assertions follow the fields once more: a dataflow block stops the facet, and they come last."""
        for each in list(self.blocks):
            block = each()
            if block is not None and block.height == ABOVE_ALL and (block.queued or block in turn.damaged):
                block.refresh(turn)

    def _ending_children(self) -> Iterator[Facet]:
        rounds = 0
        # One that is stopping already has called us, by a stop handler: it ends when that returns.
        while children := [child for child in self.children if not child.stopping]:
            for child in children:
                if not child.stopping:  # a stop handler of another may have stopped it
                    yield child
            rounds += 1
            if rounds > _ROUNDS:
                raise EndlessStop(f"the stop handlers in {self!r} make facets without end while it stops")

    def block(self, fn: Callable[[], object], height: int = 0) -> Block:
        """A new dataflow block in this facet, yet to be run; it never runs if the facet has stopped."""
        block = Block(self, fn, height)
        if self.alive:
            self.blocks[ref(block, self.blocks.pop)] = None
            journal = self.actor.system.turn.journal
            if journal is not None:
                journal.note(block.forget)
        return block

    def release(self) -> None:
        """Cancel the tasks and forget the blocks of a facet that is dead."""
        for task in list(self.tasks):
            task.cancel()
        blocks, self.blocks = self.blocks, {}
        for each in list(blocks):  # forgetting one may be the end of others
            block = each()
            if block is not None:
                block.forget()

    def fail(self, turn: Turn, error: BaseException | None) -> None:
        """Stop in order, because an actor that it is linked to has ended, by *error* if by any.

        Where that leaves nothing of what the actor is there for, it is the actor's failure.  A daemon ends after all
        others when the system does, so that it still serves what their stop handlers do.
        """
        if self.actor.daemon and self.actor.system.ending_others:
            return
        facet = self
        while error is not None and facet.vital and facet.parent is not None:
            facet = facet.parent
        if error is not None and (facet.parent is None or facet.parent.parent is None):  # the root, or the boot facet
            self.actor.failure = error
        facet.stop(turn)

    def below(self) -> list[Facet]:
        """This facet and all below it, children first."""
        facets: list[Facet] = []
        to_come = [self]
        while to_come:  # no recursion, for a tree may be deeper than Python's stack
            facet = to_come.pop()
            facets.append(facet)
            to_come.extend(facet.children)
        return facets[::-1]

    # ------------------------------------------------------------------------------------------------ from outside

    def enter(self, fn: Callable[[], object]) -> None:
        """Run *fn* in this facet, in a turn of its own, soon.

        For other trio tasks of the same thread, and for turns of other actors; no effect once it is dead.
        """
        expect_function("enter", fn)
        turn = here.turn
        if turn is not None and turn.actor is not None and turn.actor.system is self.actor.system:  # type: ignore[redundant-expr]  # between turns it is None
            turn.enqueue(self.actor, (ENTER, self, fn, None))  # an action like any other: not if this turn fails
        else:
            self.actor.system.schedule(self.actor, (ENTER, self, fn, None))

    def enter_from_thread(self, fn: Callable[[], object]) -> None:
        """As :meth:`enter`, from any thread; raises :class:`FacetEnded` if the facet, or its system, has ended.

        What ends while *fn* waits for its turn takes *fn* with it: who must know that it has run lets *fn* say so.
        """
        expect_function("enter_from_thread", fn)
        if not (self.alive and self.actor.system.schedule_from_thread(self.actor, (ENTER, self, fn, None))):
            raise FacetEnded(
                f"{self!r} has ended, so that nothing runs in it any more: in @connect, take the facet of the new "
                "connection, current_facet(), each time that the function is called"
            )

    def __repr__(self) -> str:
        depth, facet = 0, self
        while facet.parent is not None:
            depth, facet = depth + 1, facet.parent
        return f"<facet at depth {depth} of {self.actor.name}>"


def unmake(facet: Facet) -> None:
    """Let a facet never have been, after a turn that has started it and is undone."""
    for each in facet.below():
        each.alive, each.stopping = False, True
        each.handles.clear()
        each.release()
    if facet.parent is not None:
        facet.parent.children.pop(facet, None)


def settle_facets(turn: Turn) -> None:
    """Run damaged dataflow blocks and stop the facets that turned out to be inert, until neither is left to do."""
    settling = turn.settling
    ran = rounds = limit = 0
    settling.total = 0
    while turn.damaged or turn.suspects:
        if turn.damaged:
            settling.settle()
        if turn.suspects:
            suspects, turn.suspects = turn.suspects, {}
            for suspect in suspects:
                suspect.look(turn)
        if settling.total > ran:  # those with blocks are bounded by these
            ran = settling.total
            continue
        rounds += 1
        if rounds > _ROUNDS:  # each facet that is there may need a round, in a chain of facets that become inert
            limit = limit or rounds + len(turn.actor.root.below())
            if rounds > limit:
                raise EndlessStop(f"stop handlers in {turn.actor!r} make facets without end in one turn")
    if settling.runs:
        turn.settling = Settling(turn)
