"""Facets: the tree of conversations that an actor is made of, with their dataflow blocks.

A facet owns assertions (its interests among them), dataflow blocks, linked tasks, stop handlers and further facets;
when it stops, all that goes with it.  Order of a stop: the children, each in this way; the stop handlers, *in the
parent's context*; the facet's own retractions; then the parent, if it has become inert.  Others see of all that first
what is new and then what goes, as of every turn.

A facet is inert when nothing can ever happen in it: no children, assertions, tasks, timers, preventers.  Inert facets
stop.  This is looked at before the commit of turns that booted a facet or ended something in it.

A dataflow block is a function that runs again when fields that it read change, in an order without glitches.  A block
that sets fields comes before the blocks that read them: each block has a *height* above those whose fields it reads,
and of the damaged blocks the lowest runs first.  So a block sees the fields of one moment, never a new one beside one
that is yet to follow from it.  Blocks that are above all others compute assertions: these show what is settled.

What reads and sets what is learnt as it happens.  When that contradicts the heights, those that are too low rise, and
what depends on them; a block that reads a field which a damaged block sets, though it did not come after that one,
lets that one run first (as when a block is new: it runs at once).  In a cycle there is no such order; its blocks run
until they settle, and :class:`DataflowLoop` says which do not.

Facets are below everything else that runs: they know their actor, its system and the running turn as
:class:`AbstractActor`, :class:`AbstractSystem` and :class:`AbstractTurn`.

Source: Acar et al. 2002; Hammer et al. 2014; Incremental, for heights that follow the edges; Pearce and Kelly 2006;
``docs/design/dataflow.md``; ``docs/design/actors.md``, "Facets"; ``docs/design/hosts.md``, "A call is an attempt".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from heapq import heappop, heappush
from typing import Final, Protocol
from weakref import WeakSet, ref

from syndicate.actors.arguments import expect_function
from syndicate.errors import EndlessStop, FacetEnded
from syndicate.index.event import ENTER, Event
from syndicate.values.value import Assertion, HomeActor, Ref, Value

ABOVE_ALL: Final = 1 << 62
"""The height of blocks that only show what others have settled: computed assertions."""

ROUNDS: Final = 10_000
"""How often stopping facets may start further facets in one turn, before we say that they do so without end."""


class Cancellable(Protocol):
    """What ends with a facet without being asked."""

    def cancel(self) -> None:
        """Its facet has ended."""


# ------------------------------------------------------------------------------ what a facet knows of what is around it


class Owned(Assertion, Protocol):
    """An assertion of a facet: its :class:`~syndicate.actors.turn.Handle`."""

    facet: Facet
    target: Ref


class AbstractTimer(Protocol):
    """What systems know of a timer: :class:`~syndicate.actors.actor.Timer`."""

    facet: Facet

    @property
    def live(self) -> bool:
        """Whether it may still fire."""

    def fire(self, deadline: float) -> None:
        """In a turn of its facet: run, and go on or end."""


class AbstractSystem(Protocol):
    """What actors know of their system: :class:`~syndicate.actors.system.System`, which explains each of these."""

    ending_others: bool
    interrupt: BaseException | None
    stopwatch: Callable[[], float] | None

    @property
    def turn(self) -> AbstractTurn:
        """The object that is all its turns."""

    @property
    def interleaves(self) -> bool:
        """Whether others are looked at between two pieces of long work."""

    def now(self) -> float:
        """Seconds of its clock."""

    def enter(self, actor: HomeActor, event: Event) -> None:
        """Let *event* happen soon, whether a turn runs or not."""

    def schedule(self, actor: HomeActor, event: Event) -> None:
        """The same, outside any turn."""

    def schedule_here(self, actor: HomeActor, event: Event) -> None:
        """The same, in the thread of the system."""

    def schedule_from_thread(self, actor: HomeActor, event: Event) -> bool:
        """The same, in any thread; False once the system has ended."""

    def postpone(self, actor: HomeActor, event: Event, cost: float = 1) -> None:
        """Let *event* happen when there is nothing else to do."""

    def postpone_steps(self, actor: HomeActor, events: list[Event], cost: float = 1) -> None:
        """The same, for a turn of several events, between which others have theirs."""

    def after_slice(self, fn: Callable[[], None]) -> None:
        """Call *fn* when this slice of turns is over."""

    def set_timer(self, deadline: float, timer: AbstractTimer) -> None:
        """Let *timer* fire at *deadline*."""

    def start_task(self, run: Callable[[], Awaitable[None]], *, counts: bool = True) -> None:
        """Run a linked task."""

    def expect(self, count: int) -> None:
        """There are so many things more that may yet wake the system."""

    def trace(self, actor: AbstractActor, item: Value) -> None:
        """Tell who listens."""

    def born(self, actor: AbstractActor) -> None:
        """An actor has begun."""

    def left(self, actor: AbstractActor) -> None:
        """An actor has ended."""

    def crashed(self, actor: AbstractActor, error: BaseException) -> None:
        """An actor has ended by *error*."""


class AbstractActor(HomeActor, Protocol):
    """What facets and turns know of an actor: :class:`~syndicate.actors.actor.Actor`."""

    daemon: bool
    looks_on: bool
    running: bool
    error: BaseException | None
    failure: BaseException | None

    @property
    def system(self) -> AbstractSystem:
        """That of its turns."""

    @property
    def root(self) -> Facet:
        """The facet around all others."""

    def ended(self, turn: AbstractTurn) -> None:
        """Its root has stopped."""


class AbstractSettling(Protocol):
    """What blocks know of those that wait: :class:`~syndicate.actors.dataflow.Settling`."""

    heights: list[int]


class AbstractTurn(Protocol):
    """What facets and blocks know of the running turn: :class:`~syndicate.actors.turn.Turn`."""

    actor: AbstractActor
    facet: Facet
    block: Block | None
    writer: Block | None
    damaged: dict[Block, None]
    suspects: dict[Suspect, None]
    journal: UndoLog | None
    afterwards: list[Callable[[], None]]

    @property
    def settling(self) -> AbstractSettling:
        """Those of its damaged blocks that have their place in the order."""

    def retract(self, handle: Owned) -> None:
        """Retract an assertion, if it is still asserted."""


class Suspect(Protocol):
    """What must be looked at before a turn ends."""

    def look(self, turn: AbstractTurn) -> None:
        """Act on it, or raise."""


class UndoLog(ABC):
    """What the running turn did to its actor, each thing as a function that takes it back.

    What a turn says to others is only noted until it commits.  What it does to its own actor happens at once: fields
    are set, facets start and stop.  A turn that may be undone while its actor lives on
    (:mod:`~syndicate.actors.pending_call`) has one; whatever changes the actor notes there how it is taken back.  All
    other turns have none, since the crash of their actor takes everything back.
    """

    __slots__ = ("notes",)

    def __init__(self) -> None:
        self.notes: list[Callable[[], Value]] = []

    def note(self, back: Callable[[], Value]) -> None:
        """Something was done which *back* takes back, once all that was done later has been."""
        self.notes.append(back)

    @abstractmethod
    def commit(self) -> None:
        """The turn has committed."""

    @abstractmethod
    def undo(self, error: Exception) -> None:
        """The turn has raised *error*: let it never have been.  Raises what the actor is to crash by."""


# -------------------------------------------------------------------------------------------------------------- blocks


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

    def begin(self, turn: AbstractTurn) -> None:
        """Run it now, although it may not be its turn."""
        self.unordered = True
        try:
            self.run(turn)
        finally:
            self.unordered = False

    def run(self, turn: AbstractTurn) -> None:
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

    def await_writer(self, writer: Block, turn: AbstractTurn) -> None:
        """Let a block run that should have run before this one, which is about to read what it sets."""
        if writer is self or writer.running or self.leads_to(writer):
            return  # a cycle, in which none is first
        if turn.damaged or turn.settling.heights:
            writer.refresh(turn)
        if writer.height >= self.height:
            self.rise(writer.height + 1)
            self.unordered = True  # for the rest of this run

    def refresh(self, turn: AbstractTurn) -> None:
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


# -------------------------------------------------------------------------------------------------------------- facets


_NO_BLOCKS: Final[dict[ref[Block], None]] = {}
"""What most facets have of blocks; nobody adds to it."""


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

    def __init__(self, actor: AbstractActor, parent: Facet | None) -> None:
        self.actor = actor
        self.parent = parent
        self.alive = True
        self.stopping = False
        self.preventers = 0
        self.lasting = False  # if it lives until it is stopped, inert or not; unlike a preventer it holds up no end
        self.vital = False  # if it is all that its parent is there for, so that what fails in it fails there
        self.children: dict[Facet, None] = {}
        self.handles: dict[Owned, None] = {}
        self.blocks: dict[ref[Block], None] = _NO_BLOCKS  # the fields that they read keep them
        self.hooks: list[tuple[Callable[[], object], bool]] = []
        self.tasks: dict[Cancellable, None] = {}
        if parent is not None:
            parent.children[self] = None

    # ------------------------------------------------------------------------------------------------ from boot to stop

    def boot(self, turn: AbstractTurn, fn: Callable[[], object]) -> None:
        """Run *fn* in this facet; at the turn's end the facet stops if it is inert."""
        self.run(turn, fn)
        turn.suspects[self] = None

    def run(self, turn: AbstractTurn, fn: Callable[[], object]) -> None:
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

    def look(self, turn: AbstractTurn) -> None:
        """Stop if it has become inert."""
        if self.alive and not self.stopping and self.inert:
            self.stop(turn)

    def stop(self, turn: AbstractTurn, then: Callable[[], object] | None = None) -> None:
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

    def _end(self, turn: AbstractTurn, then: Callable[[], object] | None) -> Iterator[Facet]:
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

    def _as_it_is(self, turn: AbstractTurn) -> Callable[[], None]:
        """What lets the facet be again as it is now; the assertions apart, which the turn has noted."""
        hooks, blocks = list(self.hooks), [block for each in self.blocks if (block := each()) is not None]

        def restore() -> None:
            self.alive, self.stopping, self.hooks = True, False, hooks
            self.blocks = {ref(block, self.blocks.pop): None for block in blocks}
            turn.damaged.update(dict.fromkeys(blocks))  # they know their fields again when they have run
            if self.parent is not None:
                self.parent.children[self] = None

        return restore

    def _show_last(self, turn: AbstractTurn) -> None:
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
            if rounds > ROUNDS:
                raise EndlessStop(f"the stop handlers in {self!r} make facets without end while it stops")

    def block(self, fn: Callable[[], object], height: int = 0) -> Block:
        """A new dataflow block in this facet, yet to be run; it never runs if the facet has stopped."""
        block = Block(self, fn, height)
        if self.alive:
            if self.blocks is _NO_BLOCKS:
                self.blocks = {}
            self.blocks[ref(block, self.blocks.pop)] = None
            journal = self.actor.system.turn.journal
            if journal is not None:
                journal.note(block.forget)
        return block

    def release(self) -> None:
        """Cancel the tasks and forget the blocks of a facet that is dead."""
        for task in list(self.tasks):
            task.cancel()
        blocks, self.blocks = self.blocks, _NO_BLOCKS
        for each in list(blocks):  # forgetting one may be the end of others
            block = each()
            if block is not None:
                block.forget()

    def fail(self, turn: AbstractTurn, error: BaseException | None) -> None:
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
        self.actor.system.enter(self.actor, (ENTER, self, fn, None))

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
