"""Connecting: ``@connect(address)`` hands you a dataspace of another process, again and again if need be.

The decorated function runs in a facet that lives while the connection does.  When it is lost, the facet stops, and
with it all that was asserted and observed through it; when there is a new one, the function runs again, and so all of
that is there again.  Assertions thus agree with the other side once more after each reconnection.  Messages are sent at
most once: what was on its way when the connection was lost is lost too.

The connection is an actor of its own, linked to the facet that asked for it, so that what you send just before you stop
still goes out, and what a peer does wrong does not end you.

Source: the reference, sections 5.5 (py reconnects for ever) and 5.9; the project's contract.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

import trio

from relay.codec import Msgpack
from relay.gatekeeper import Accepted, Rejected, Resolve
from relay.link import open_link
from relay.session import Session
from relay.sturdy import DEFAULT, SturdyRef, parse_ref
from relay.transport import Address, Stream, open_stream
from syndicate.errors import ConnectError
from syndicate.facet import Facet
from syndicate.log import logger
from syndicate.text import unparse
from syndicate.turn import Entity, Handle, current
from syndicate.values import Ref, Value
from syndicate.verbs import current_facet, linked_task, on_stop_or_crash, react, ref, send, spawn

F = TypeVar("F", bound=Callable[[Ref], object])

_SHORTEST: Final = 0.1
_LONGEST: Final = 30.0
"""Seconds between attempts, the first and the longest; each is twice the one before, and random by half."""


def connect(
    address: str, cap: str | SturdyRef = DEFAULT, *, attempts: int | None = None, reconnect: bool = True
) -> Callable[[F], F]:
    """Call the decorated function with the remote dataspace that *cap* stands for, whenever there is a connection.

    Within a turn::

        @connect("tcp://127.0.0.1:8001")
        def on_connected(ds):
            assert_(ds, Present("Alice"))
            on_message(ds, Says(capture(), capture()))(print)

    For ever, by default; one line in the log tells of each outage.  *attempts* bounds how often it is tried to get a
    first connection, and without *reconnect* the first is the only one: then a :class:`~syndicate.errors.ConnectError`
    is raised in the calling actor.

    Raises :class:`~syndicate.errors.AddressError` and :class:`~syndicate.errors.TextError` (for *cap*) at once.
    """
    where = Address.parse(address)
    what = parse_ref(cap) if isinstance(cap, str) else cap

    def install(fn: F) -> F:
        arrival = ref(_Arrivals(fn))
        spawn(_keep, where, what, arrival, attempts, reconnect, name=f"relay {where}", linked=True)
        return fn

    return install


class _Arrivals(Entity):
    """In the facet that wants it: what it wants, while it is there."""

    def __init__(self, fn: Callable[[Ref], object]) -> None:
        self._fn = fn
        self._facets: dict[Any, Facet] = {}

    def assert_(self, value: Value, handle: Any) -> None:
        turn = current("connect")
        facet = self._facets[handle] = Facet(turn.actor, turn.facet)
        facet.preventers = 1  # it lasts as long as the connection, even with nothing in it
        facet.run(turn, partial(self._fn, value))

    def retract(self, handle: Any) -> None:
        self._facets.pop(handle).stop(current("connect"))

    def message(self, value: Value) -> None:
        raise ConnectError(value)


def _keep(address: Address, cap: SturdyRef, arrival: Ref, attempts: int | None, reconnect: bool) -> None:
    keeper = _Keeper(current_facet(), address, cap, arrival)
    linked_task(keeper.run, attempts, reconnect)


class _Keeper:
    """Gets a connection, and another one when it is lost."""

    def __init__(self, facet: Facet, address: Address, cap: SturdyRef, arrival: Ref) -> None:
        self.facet = facet
        self.address = address
        self.cap = cap
        self.arrival = arrival
        self.ever = False
        self._failures = 0
        self._log = logger(peer=str(address))

    async def run(self, attempts: int | None, reconnect: bool) -> None:
        while True:
            attempt = _Attempt(self)
            try:
                await attempt.run()
            except ConnectError as e:
                attempt.reason = str(e)
            if not self.facet.alive:
                return
            self._failures += 1
            if not (reconnect if self.ever else attempts is None or self._failures < attempts):
                self.facet.enter(partial(send, self.arrival, attempt.reason))
                await trio.sleep_forever()  # until the actor that asked has ended by that, and so this one
            if self._failures == 1 and (self.ever or attempts is None):
                self._log.warning("no connection, trying again until there is one", reason=attempt.reason)
            wait = min(_LONGEST, _SHORTEST * 2.0 ** min(self._failures - 1, 20))
            await trio.sleep(wait * random.uniform(0.5, 1.5))

    def arrived(self) -> None:
        """There is a connection."""
        if self._failures:
            self._log.info("connected" + " again" * self.ever)
        self._failures = 0
        self.ever = True


class _Attempt(Entity):
    """One connection, from its beginning to its end; the observer of the gatekeeper's answer."""

    def __init__(self, keeper: _Keeper) -> None:
        self.reason = ""
        self._keeper = keeper
        self._session: Session | None = None
        self._over = trio.Event()
        self._given: dict[Any, Handle] = {}

    async def run(self) -> None:
        keeper = self._keeper
        stream = await open_stream(keeper.address)
        try:
            keeper.facet.enter(lambda: react(partial(self._begin, stream)))
            await self._over.wait()
        finally:
            if self._session is None:
                await stream.close()
        self.reason = (self._session and self._session.reason) or f"{keeper.address} has closed the connection"

    def _begin(self, stream: Stream) -> None:
        on_stop_or_crash(self._over.set)
        self._session = open_link(stream, codec=Msgpack())
        gatekeeper = self._session.membrane.expect(0)
        current("connect").assert_(gatekeeper, Resolve(self._keeper.cap, ref(self)))

    def assert_(self, value: Value, handle: Any) -> None:
        turn = current("connect")
        match value:
            case Accepted(Ref() as ds):
                self._keeper.arrived()
                self._given[handle] = turn.assert_(self._keeper.arrival, ds)
            case Rejected(detail) if self._session is not None:
                self._session.end(
                    f"{self._keeper.address} refuses the capability ({unparse(detail)}): use one that the server prints"
                )

    def retract(self, handle: Any) -> None:
        given = self._given.pop(handle, None)
        if given is not None:
            given.retract()
