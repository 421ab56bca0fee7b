"""A portal: where what is not an actor calls into a system, and is answered.

Threads (:mod:`syndicate.thread`) and tasks of asyncio (:mod:`syndicate.asyncio`) use the same one.  Each call is an
attempt (:mod:`~syndicate.actors.pending_call`) in one actor, the *host*.  What calls have left in it, assertions,
interests and tasks, lasts until later calls take it away, or the system ends.  A handler that a call has installed and
that raises crashes the host, as any actor; what the calls had left is gone with it, which the log says, and the calls
after that have a new host.

Contract: each call is answered once: with its result, with its error, or with :class:`SystemStopped` or
:class:`ActorCrashed` if the host ends first.  All methods are for the thread of the system.

Source: ``docs/design/hosts.md``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Literal, Protocol, TypeAlias, TypeVar, cast

from attrs import frozen

from syndicate.actors.actor import Actor
from syndicate.actors.during import observe
from syndicate.actors.facet import Facet
from syndicate.actors.field import Field
from syndicate.actors.pending_call import PendingCall
from syndicate.actors.query import query_set
from syndicate.actors.relay_loading import of_the_relay
from syndicate.actors.system import System
from syndicate.actors.turn import Entity
from syndicate.actors.verbs import current_facet, prevent_inert_check, stop, sync_sent
from syndicate.errors import ActorCrashed, SystemStopped, TargetEnded
from syndicate.index.event import ENTER
from syndicate.values.value import Assertion, Ref, Value, ValueSet

T = TypeVar("T")

Answer: TypeAlias = Callable[[T | None, BaseException | None], None]
"""Is called with the result of a call, or its error."""

ENDED: Final = "the actor system has ended, so that nothing can be called in it any more: open another one"


class Portal:
    """The entrance into one system."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._host: Actor | None = None
        self._waiting: dict[object, Answer[object]] = {}

    def call(self, fn: Callable[[], T], answer: Answer[T]) -> None:
        """Let *fn* be called in a turn, soon, and then *answer*."""
        if self.system.stopped:
            answer(None, SystemStopped(ENDED))
            return
        host = self._host
        if host is None or not host.running:
            host = self._begin()
        key = object()

        def answered(result: T | None, error: BaseException | None) -> None:
            del self._waiting[key]
            answer(result, error)

        self._waiting[key] = partial(answer, None)
        self.system.schedule(host, (ENTER, host.root, PendingCall(fn, answered), None))

    def _begin(self) -> Actor:
        host = self._host = self.system.spawn(lambda: None, name="host")
        host.root.preventers = 1
        host.watchers.append(self._ended)
        return host

    def _ended(self, host: Actor) -> None:
        """Nobody will answer those that wait."""
        error: BaseException
        if host.error is not None and not self.system.stopped:
            error = ActorCrashed(
                f"the actor in which calls run has crashed by {host.error!r}; what calls had left there is gone"
            )
            error.__cause__ = host.error
        else:
            error = SystemStopped(ENDED)
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            answer(error)  # type: ignore[call-arg]  # as in call


@frozen
class Happening:
    """An event of a dataspace, as it leaves the system: what is captured of an assertion that came (``+``) or went
    (``-``), or of a message (``!``).  ``overflow``: so many were dropped before this one, because nobody took them.

    >>> Happening("+", ("Alice",))
    Happening(kind='+', captures=('Alice',), overflow=0)
    """

    kind: Literal["+", "-", "!"]
    captures: tuple[Value, ...]
    overflow: int = 0


class EventBuffer(Entity):
    """Holds events until somebody outside takes them, at most *limit*; *wake* is called when there is something."""

    def __init__(self, limit: int, wake: Callable[[], object]) -> None:
        self.held: deque[Happening] = deque()
        self.facet: Facet
        self._limit = limit
        self._wake = wake
        self._lost = 0
        self._captures: dict[Assertion, tuple[Value, ...]] = {}

    def observe(self, ds: Ref, pattern: Value) -> None:
        """In a turn: begin, in the current facet."""
        self.facet = current_facet()
        observe("events", ds, pattern, self)

    def assert_(self, value: Value, handle: Assertion) -> None:
        """It came."""
        self._captures[handle] = value
        self._hold("+", value)

    def retract(self, handle: Assertion) -> None:
        """It went."""
        self._hold("-", self._captures.pop(handle))

    def message(self, value: Value) -> None:
        """It was sent."""
        self._hold("!", value)

    def _hold(self, kind: Literal["+", "-", "!"], captures: tuple[Value, ...]) -> None:
        if len(self.held) >= self._limit:
            self._lost += 1
            return
        self.held.append(Happening(kind, captures, self._lost))
        self._lost = 0
        self._wake()


def once(ds: Ref, follow: Callable[[], T], answer: Answer[T]) -> None:
    """In a turn, in a facet of its own, which then ends: call *follow*, and answer with what it returned when *ds* has
    notified of all that is there, everything that this actor did before included, but for what could not go over a
    connection.
    """
    facet = current_facet()
    prevent_inert_check()
    followed = follow()

    def on_synced() -> None:
        answer(followed, None)
        stop(facet)

    def lost() -> None:
        answer(None, TargetEnded(f"{ds!r} has ended, or its connection is lost, so that nothing is known of it"))
        stop(facet)

    sync_sent(ds, on_synced, lost)


def snapshot(ds: Ref, pattern: Value, answer: Answer[list[Value]]) -> None:
    """In a turn: answer with what matches *pattern*, as :func:`once` does."""

    def follow() -> Field[ValueSet]:
        return query_set(ds, pattern)

    def on_values(followed: Field[ValueSet] | None, error: BaseException | None) -> None:
        answer(None if followed is None else list(followed.value), error)

    once(ds, follow, on_values)


def ask(
    portal: Portal, begin: Callable[[Callable[[T | None, BaseException | None], None]], object], answer: Answer[T]
) -> None:
    """Call *begin*, which is to answer later, once, or at once by raising."""

    def begun(_: object, error: BaseException | None) -> None:
        if error is not None:
            answer(None, error)

    portal.call(partial(begin, answer), begun)


class Remote(Protocol):
    """A dataspace of another process: the same reference for ever, and whether there is a connection."""

    @property
    def ds(self) -> Ref:
        """The dataspace."""

    @property
    def state(self) -> Field[Value]:
        """How the connection is."""


class Opener(Protocol):
    """What makes a connection, in a turn."""

    def __call__(self, address: str, cap: str | None = None) -> Remote:
        """Begin to connect, in the current facet."""


def opener() -> Opener:
    """That of the relay."""
    return cast("Opener", of_the_relay("remote:open_remote"))
