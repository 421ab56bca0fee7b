"""What an actor can do: the functions that act on the current turn and facet.

All of them raise :class:`~syndicate.errors.NotInTurn` outside a turn.

>>> import trio
>>> from syndicate import run
>>> def boot():
...     facet = current_facet()
...     async def later():
...         await trio.sleep(0.01)
...         facet.enter(lambda: print("in a turn again"))
...     linked_task(later)  # its end is the end of the facet
...     on_stop(lambda: print("stopped"))
>>> run(boot)
in a turn again
stopped

Source: ``docs/design/actors.md``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import overload

from syndicate.actors.actor import Actor, Task
from syndicate.actors.arguments import expect_function, expect_ref
from syndicate.actors.facet import ABOVE_ALL, AbstractTurn, Facet, unmake
from syndicate.actors.link import link
from syndicate.actors.system import system_of
from syndicate.actors.turn import UNSENT, Entity, Handle, Turn, current, foreign, here
from syndicate.errors import ArgumentError, NotCallable, NotInTurn, NotSent, TargetEnded, WrongActor
from syndicate.index.event import ASSERT, MESSAGE, Event
from syndicate.native import kernel
from syndicate.values.value import Frozen, Ref, Value, freeze, freezers, thaw

# ---------------------------------------------------------------------------------------------------- sending


@kernel
def send(target: Ref, value: Value) -> None:
    """Send *value* as a message to a dataspace (or any entity); raises :class:`~syndicate.errors.NotAValue`."""
    try:  # the body of Turn.send without its calls and checks: a message costs little more than a microsecond in all
        form = freezers[type(value)](value, 0)
        actor = target.facet.actor
        turn = here.turn
        pending = turn.pending  # type: ignore[union-attr]  # None is caught below
        event = (MESSAGE, target, form if target.raw or type(form) is not tuple else thaw(form), None)
    except (AttributeError, KeyError):  # no turn, no reference, or a value of a rarer class: find out which
        current("send").send(expect_ref("send", target), value)
        return
    if actor in pending:
        pending[actor].append(event)
    else:
        if actor.system is not turn.system:  # type: ignore[union-attr]  # not None: caught above
            raise foreign(actor)
        pending[actor] = [event]


@overload
def assert_(target: Ref, value: Callable[[], Value | None]) -> Computed: ...
@overload
def assert_(target: Ref, value: Value) -> Handle: ...
@kernel
def assert_(target: Ref, value: Value | Callable[[], Value | None]) -> Handle | Computed:
    """Assert *value* for as long as the current facet lives, or until the returned handle is retracted.

    A function is called now, and again whenever a field that it read has changed: its new value replaces the old one
    without a gap, and None means no assertion.  Raises :class:`~syndicate.errors.NotAValue`.
    """
    turn = here.turn
    if turn is None:
        raise NotInTurn("assert_")
    if type(target) is not Ref:
        target = expect_ref("assert_", target)
    kind = type(value)
    if kind in freezers:
        return turn.assert_form(turn.facet, target, freezers[kind](value, 0))
    if callable(value) and not isinstance(value, type):
        return Computed(target, value)
    return turn.assert_form(turn.facet, target, freeze(value))


class Computed:
    """The handle of an assertion that a function computes from fields."""

    __slots__ = ("block", "early", "facet", "fn", "handle", "target")

    def __init__(self, target: Ref, fn: Callable[[], Value | None]) -> None:
        turn = current("assert_")
        self.facet: Facet = turn.facet
        self.target = target
        self.fn: Callable[[], Value | None] | None = fn
        self.handle: Handle | None = None
        self.early: tuple[list[Event], int] | None = None  # where it is noted, if that was before this turn settled
        self.block = self.facet.block(self._renew, ABOVE_ALL)
        self.block.begin(turn)

    def _renew(self) -> None:
        if self.fn is not None:
            self._show(self.fn())

    def _show(self, value: Value | None) -> None:
        turn = current("assert_")
        old = self.handle
        if turn.journal is not None:
            turn.journal.note(self._as_it_is())
        if value is None:
            self.handle = None
        else:
            form = freeze(value)
            if old is not None and old in self.facet.handles and self.target.facet.alive:  # old.live, without a call
                if form == old.form:
                    return
                if self.early is not None and self._amend(turn, old, form):
                    return
            self.handle = turn.assert_form(self.facet, self.target, form)
            if self.block.unordered and self.handle.live:
                events = turn.pending[self.target.facet.actor]
                self.early = events, len(events) - 1
                turn.suspects[self] = None
        if old is not None:
            turn.retract(old)

    def _amend(self, turn: Turn, handle: Handle, form: Frozen) -> bool:
        """Let a value that this turn noted before it had settled never have been; whether it is still to be seen."""
        assert self.early is not None
        events, place = self.early
        if turn.pending.get(self.target.facet.actor) is not events or events[place][3] is not handle:
            return False
        handle.form = form
        events[place] = (ASSERT, self.target, form if self.target.raw else thaw(form), handle)
        return True

    def look(self, turn: AbstractTurn) -> None:
        """The turn has settled: what is noted takes effect."""
        self.early = None

    def _as_it_is(self) -> Callable[[], None]:
        """What lets it be again as it is now."""
        fn, handle = self.fn, self.handle

        def restore() -> None:
            self.fn, self.handle, self.early = fn, handle, None

        return restore

    def _own(self, what: str) -> Turn:
        turn = current("replace" if what == "replaced" else "retract")
        if self.facet.actor is not turn.actor:
            raise WrongActor(
                f"an assertion of {self.facet.actor!r} can be {what} by that actor only: send it a message"
            )
        return turn

    @property
    def live(self) -> bool:
        """Whether something is asserted now."""
        return self.handle is not None and self.handle.live

    def retract(self) -> None:
        """Take it back, and compute it no more."""
        turn = self._own("retracted")
        if turn.journal is not None:
            turn.journal.note(partial(turn.damaged.setdefault, self.block))  # it knows its fields again when it has run
            turn.journal.note(self._as_it_is())
        if self.early is not None:
            self.early = None
            turn.suspects.pop(self, None)
        self.fn = None
        self.block.forget()
        if self.handle is not None:
            self.handle.retract()

    def replace(self, value: Value | Callable[[], Value | None] | None) -> Computed:
        """Assert *value*, or compute it by another function, in its place without a gap."""
        turn = self._own("replaced")
        if turn.journal is not None:
            turn.journal.note(partial(turn.damaged.setdefault, self.block))
            turn.journal.note(self._as_it_is())
        if callable(value) and not isinstance(value, type):
            self.fn = value
        else:
            self.fn = None
            self._show(value)
        self.block.begin(turn)
        return self


def sync(target: Ref, then: Callable[[], object], otherwise: Callable[[], object] | None = None) -> None:
    """Call *then*, in the current facet, once *target* has handled everything that this actor did before.

    If *target* has ended, or ends before it can reply, *otherwise* is called; without it the actor crashes with a
    :class:`~syndicate.errors.TargetEnded`.  The same, with a :class:`~syndicate.errors.NotSent`, if *target* is beyond
    a connection, and this actor asserts something there that is too large for it, or text without an encoding; of such
    messages there is only a line in the log.

    >>> from syndicate import assert_, dataspace, query_set, capture, run
    >>> def boot():
    ...     ds = dataspace()
    ...     present = query_set(ds, ["present", capture()])
    ...     assert_(ds, ["present", "Alice"])
    ...     sync(ds, lambda: print(sorted(present.value)))
    >>> run(boot)
    ['Alice']
    """
    turn = current("sync")
    expect_function("sync", then)
    if otherwise is not None:
        expect_function("sync", otherwise)
    turn.sync(expect_ref("sync", target), Ref(turn.facet, SyncReply(target, then, otherwise)))


def sync_sent(target: Ref, then: Callable[[], object], otherwise: Callable[[], object]) -> None:
    """As :func:`sync`, of what has gone out: what could not go over a connection is no failure."""
    turn = current("sync")
    turn.sync(expect_ref("sync", target), Ref(turn.facet, SyncReply(target, then, otherwise, unsent=then)))


class SyncReply(Entity):
    """Awaits the reply to a sync: True, or False from what has ended.  *unsent* is called where what this actor asserts
    could not go over a connection; as a rule that is *otherwise*.
    """

    def __init__(
        self,
        target: Ref,
        then: Callable[[], object],
        otherwise: Callable[[], object] | None = None,
        unsent: Callable[[], object] | None = None,
    ) -> None:
        self.target = target
        self.then = then
        self.otherwise = otherwise
        self.unsent = unsent or otherwise
        self.replied = False

    def message(self, value: Value) -> None:
        """The reply has come; only the first counts."""
        if self.replied:
            return
        self.replied = True
        if value is UNSENT:
            if self.unsent is None:
                raise NotSent(
                    f"sync() asked {self.target!r}, and what this actor asserts there could not go over the "
                    "connection: it is too large, or has no encoding, as the log says. Assert less, or say what to do "
                    "then: sync(ds, then, otherwise)"
                )
            self.unsent()
        elif value is not False:
            self.then()
        elif self.otherwise is not None:
            self.otherwise()
        else:
            raise TargetEnded(
                f"sync() waited for {self.target!r}, which has ended: its connection is lost, or its facet "
                "has stopped. Ask within what ends with it, or say what to do then: sync(ds, then, otherwise)"
            )


def ref(entity: Entity) -> Ref:
    """A reference to *entity* in the current facet: others can assert and send to it.

    >>> from syndicate import Entity, run, send
    >>> class Printer(Entity):
    ...     def message(self, value):
    ...         print(value)
    >>> def boot():
    ...     release = prevent_inert_check()   # a reference alone does not keep a facet
    ...     printer = ref(Printer())
    ...     send(printer, "hello")
    ...     sync(printer, release)
    >>> run(boot)
    hello
    """
    turn = current("ref")
    if not hasattr(entity, "message"):
        raise ArgumentError(f"ref() needs an entity, an instance of a subclass of Entity, and not {entity!r}")
    return Ref(turn.facet, entity, getattr(entity, "raw", False))


# ---------------------------------------------------------------------------------------------------- facets


def react(fn: Callable[[], object]) -> Facet:
    """Start a facet inside the current one and run *fn* in it.  Usable as a decorator; returns the facet.

    >>> from syndicate import field, run
    >>> def boot():
    ...     conversation = react(lambda: on_stop(lambda: print("it is over")))
    ...     stop(conversation, then=lambda: print("and the next begins"))
    >>> run(boot)
    it is over
    and the next begins
    """
    turn = current("react")
    expect_function("react", fn)
    parent: Facet = turn.facet
    if not parent.alive:  # nothing can start in a facet that has stopped
        dead = Facet(turn.actor, None)
        dead.alive, dead.stopping = False, True
        return dead
    facet = Facet(turn.actor, parent)
    if turn.journal is not None:
        turn.journal.note(partial(unmake, facet))
    facet.boot(turn, fn)
    return facet


def stop(facet: Facet | None = None, then: Callable[[], object] | None = None) -> None:
    """Stop *facet* (the current one by default); *then* runs last, in the parent's context, before the facet's
    retractions.

    >>> from syndicate import run
    >>> def boot():
    ...     @react
    ...     def conversation():
    ...         on_stop(lambda: print("stopped"))
    ...         stop(then=lambda: print("last"))
    >>> run(boot)
    stopped
    last
    """
    turn = current("stop")
    chosen: Facet = turn.facet if facet is None else facet
    if not isinstance(chosen, Facet):
        raise ArgumentError(f"stop() takes a facet first, such as react() returns, not {chosen!r}: write stop(then=fn)")
    if then is not None:
        expect_function("stop", then)
    if chosen.actor is not turn.actor:
        raise WrongActor(f"{chosen!r} belongs to another actor: use facet.enter(stop) to stop it from outside")
    chosen.stop(turn, then)


def stop_actor() -> None:
    """Stop the current actor in order, all stop handlers included.

    >>> from syndicate import run
    >>> def boot():
    ...     on_stop(lambda: print("in order"))
    ...     stop_actor()
    >>> run(boot)
    in order
    """
    turn = current("stop_actor")
    turn.actor.root.stop(turn)


def on_stop(fn: Callable[[], object]) -> Callable[[], object]:
    """Run *fn* when the current facet stops in order: in the parent's context, before the facet's retractions."""
    expect_function("on_stop", fn)
    _hook("on_stop", fn, False)
    return fn


def on_stop_or_crash(fn: Callable[[], object]) -> Callable[[], object]:
    """As :func:`on_stop`, and also when the actor crashes.

    >>> from syndicate import run
    >>> def boot():
    ...     on_stop_or_crash(lambda: print("the file is closed"))
    >>> run(boot)
    the file is closed
    """
    expect_function("on_stop_or_crash", fn)
    _hook("on_stop_or_crash", fn, True)
    return fn


def _hook(what: str, fn: Callable[[], object], on_crash: bool) -> None:
    turn = current(what)
    hook, hooks = (fn, on_crash), turn.facet.hooks
    hooks.append(hook)
    if turn.journal is not None:
        turn.journal.note(partial(hooks.remove, hook))


def prevent_inert_check() -> Callable[[], None]:
    """Keep the current facet although nothing seems left to happen in it; call the result to end that.

    Say so where something will enter the facet from outside: another thread, a callback.

    >>> from syndicate import after, current_facet, run
    >>> def boot():
    ...     release = prevent_inert_check()   # else the facet would end here: nothing is left to happen in it
    ...     on_stop(lambda: print("stopped"))
    ...     release()
    >>> run(boot)
    stopped
    """
    turn = current("prevent_inert_check")
    facet: Facet = turn.facet
    facet.preventers += 1
    if turn.journal is not None:
        turn.journal.note(partial(_prevent, facet, -1))

    armed = True

    def disarm() -> None:
        nonlocal armed
        if not armed:
            return
        armed = False
        facet.preventers -= 1
        if here.turn is not None and here.turn.journal is not None:
            here.turn.journal.note(partial(_prevent, facet, 1))
        if here.turn is None:  # by a thread, which nobody else may notice
            facet.enter_from_thread(lambda: None)

    return disarm


def _prevent(facet: Facet, by: int) -> None:
    facet.preventers += by


def current_facet() -> Facet:
    """The facet that is running.

    >>> from syndicate import run
    >>> run(lambda: print(current_facet().alive))
    True
    """
    return current("current_facet").facet


# ---------------------------------------------------------------------------------------------------- actors


def spawn(
    boot: Callable[..., object],
    *args: object,
    name: str | None = None,
    daemon: bool = False,
    linked: bool = False,
    assertions: Iterable[Handle] = (),
) -> Actor:
    """Start an actor that runs ``boot(*args)``, once this turn has committed.

    A *daemon* does not keep the system running.  A *linked* actor and the current facet stop each other
    (:func:`link`).
    *assertions* are handles of this actor whose ownership passes to the new one, without a retraction in between.
    """
    turn = current("spawn")
    expect_function("spawn", boot, len(args))
    actor = Actor(turn.actor.system, name or str(getattr(boot, "__name__", "actor")), daemon)
    handles = list(dict.fromkeys(assertions))
    for handle in handles:
        if type(handle) is not Handle:
            raise ArgumentError(f"{handle!r} cannot be handed over: it is not the handle of a value asserted once")
        if handle not in handle.facet.handles or handle.facet.actor is not turn.actor:
            raise ArgumentError(f"{handle!r} is not a live assertion of this actor, so that it cannot be handed over")
    for handle in handles:
        handle.pass_to(actor.root)

    def begin() -> None:
        # The boot facet takes over, since the root's own assertions do not keep it from being inert.
        facet = current("spawn").facet
        for handle in handles:
            handle.pass_to(facet)
        boot(*args)

    actor.boot(turn, begin if handles else partial(boot, *args))
    if linked:
        link(actor)
    return actor


def current_turn(facet: Facet) -> Turn:
    """The turn object of the system that *facet* belongs to."""
    return system_of(facet.actor).turn


def linked_task(fn: Callable[..., Awaitable[object]], *args: object) -> Task:
    """Run an async function as a task that is cancelled when the current facet ends: of trio, or, in a system of
    :mod:`syndicate.asyncio`, of asyncio.

    Its end stops the facet, unless it returns True; an exception in it crashes the actor.  Inside it use
    ``facet.enter(fn)`` to act.
    """
    return _task("linked_task", fn, args, system_of(current("linked_task").actor).task)


def trio_task(fn: Callable[..., Awaitable[object]], *args: object) -> Task:
    """As :func:`linked_task`, for a function that is written for trio: where the system runs in another loop, trio runs
    as its guest.
    """
    return _task("trio_task", fn, args, Task)


def _task(what: str, fn: Callable[..., Awaitable[object]], args: tuple[object, ...], kind: type[Task]) -> Task:
    turn = current(what)
    if not callable(fn):
        raise NotCallable(
            f"linked_task() needs an async function, and not {fn!r}: name it without calling it, linked_task(f, x) and "
            "not linked_task(f(x))"
        )
    return begin_task(kind(turn.facet, fn, args))


def begin_task(task: Task) -> Task:
    """Let *task* belong to its facet, and start when the turn has committed."""
    turn = current("begin_task")
    tasks = task.facet.tasks
    tasks[task] = None
    turn.afterwards.append(task.start)
    if turn.journal is not None:
        turn.journal.note(task.abort)
        turn.journal.note(partial(tasks.pop, task, None))
    return task
