"""Connecting: ``@connect(address)`` hands you a dataspace of another process, again and again if need be.

The decorated function runs in a facet that lives while the connection does.  When it is lost, the facet stops, and
with it all that was asserted and observed through it; when there is a new one, the function runs again, and so all of
that is there again.

**Across a reconnection, assertions converge and messages are at most once.**  What is asserted agrees with the other
side once more after each reconnection.  A message that was on its way when the connection was lost is lost too, and
none arrives twice.

The connection is an actor of its own, linked to the facet that asked for it, so that what you send just before you stop
still goes out, and what a peer does wrong does not end you.

Contract: between attempts it waits a random time, below a bound that doubles from 0.2 to 30 seconds (full jitter), so
that the many clients of a server that comes back do not come back at once.  The bound falls back only after a
connection that has lasted: a server that lets everybody in and then drops them is not asked without pause.

Source: ``docs/design/relay.md``, "Transports" and "What ends with a connection"; ``docs/design/protocol.md``, "Packets
and events".
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, Final, Literal, TypedDict, TypeVar

import trio
from attrs import frozen

from relay.capabilities.certificate import Capability, parse_capability
from relay.capabilities.gatekeeper import answered, resolve
from relay.capabilities.sturdy import DEFAULT
from relay.protocol.codec import Codec, Msgpack
from relay.protocol.limits import DEFAULT as DEFAULT_LIMITS
from relay.protocol.limits import Limits
from relay.session.link import open_link
from relay.session.session import Session
from relay.transport import Address, Connection, Tls, open_stream, silent
from syndicate.actors.arguments import expect_function
from syndicate.actors.facet import Facet
from syndicate.actors.turn import Entity, Handle, current, decorator
from syndicate.actors.verbs import current_facet, on_stop_or_crash, react, ref, send, spawn, trio_task
from syndicate.errors import AddressError, ConnectError
from syndicate.log import logger
from syndicate.outside import outside, time_of_day
from syndicate.values.record import record
from syndicate.values.text import unparse_form
from syndicate.values.value import Assertion, Frozen, Ref, Value

F = TypeVar("F", bound=Callable[[Ref], object])

Encoding = Literal["msgpack", "preserves", "text"]
"""The bytes that a client speaks: ours, or those of other Syndicate programs, binary or as text."""

FOUND_OUT: Final[tuple[Encoding, ...]] = ("msgpack", "preserves")
"""What is tried, in this order, with a peer of which nobody has said what it speaks."""

_SHORTEST: Final = 0.2
_LONGEST: Final = 30.0
"""Bounds on the seconds between attempts, the first and the longest; each is twice the one before."""

_STEADY: Final = 5.0
"""Seconds after which a connection counts as one that has lasted."""


class ConnectOptions(TypedDict, total=False):
    """What :func:`connect` takes about a connection, for those who pass it on.

    Example::

        def dial(address: str, **options: Unpack[ConnectOptions]) -> None:
            connect(address, **options)(on_connected)
    """

    attempts: int | None
    reconnect: bool
    encoding: Encoding | None
    tls: Tls | None
    limits: Limits


def connect(
    address: str,
    cap: str | Capability | None = DEFAULT,
    *,
    attempts: int | None = None,
    reconnect: bool = True,
    encoding: Encoding | None = None,
    tls: Tls | None = None,
    limits: Limits = DEFAULT_LIMITS,
    told: Callable[[ConnectionState], object] | None = None,
) -> Callable[[F], F]:
    """Call the decorated function with the remote dataspace that *cap* stands for, whenever there is a connection.

    Within a turn::

        @connect("tcp://127.0.0.1:8001")
        def on_connected(ds):
            assert_(ds, Present("Alice"))
            on_message(ds, Says(capture(), capture()))(print)

    Without a *cap*, it is called with what the other side publishes under number 0 itself, as a child does that serves
    one entity over its standard streams: ``connect("stdio:python -m my_service", None)``.

    For ever, by default; one line in the log tells of each outage.  *attempts* bounds how often it is tried to get a
    first connection, and without *reconnect* the first is the only one: then a :class:`~syndicate.errors.ConnectError`
    is raised in the calling actor.  *tls* says whom to trust, for ``tls://`` and ``wss://``: by default the system's
    CAs.  The server has ``limits.opening`` seconds for its first answer, and is given up within twice ``limits.idle``
    seconds of its last word: ``limits=Limits(idle=2)`` finds out sooner that it does not run any more.  *encoding* is
    found out, if it is not given: ours is tried first, and Preserves, which the published servers speak, where a peer
    does not understand that.

    *told* is called with each new :class:`ConnectionState`, in the turn in which what came over the connection comes or
    goes; the first one, ``connecting``, is understood.  :func:`~relay.remote.open_remote` has it as a field.

    Raises :class:`~syndicate.errors.AddressError`, :class:`~syndicate.errors.TextError` (for *cap*) and
    :class:`~syndicate.errors.CertificateError` (for *tls*) at once.
    """
    if not isinstance(address, str):
        raise AddressError(
            f'connect() needs an address first, as in @connect("tcp://127.0.0.1:8001"), and not {address!r}'
        )
    where = Address.parse(address)
    if where.scheme == "stdio" and not where.path:
        raise AddressError(
            f"{address!r} names no command to start: write stdio:COMMAND, as in stdio:python -m my_service"
        )
    what = parse_capability(cap) if isinstance(cap, str) else cap
    encodings = FOUND_OUT if encoding is None else (encoding,)
    for each in encodings:
        _codec(each, limits)
    context = (tls or Tls()).client_context() if where.secure else None

    def install(fn: F) -> F:
        current("connect")
        expect_function("connect", fn, 1)
        wanted = _Wanted(where, what, encodings, context, limits, ref(_Arrivals(fn)), ref(_States(told)))
        # A daemon ends after all others: what their stop handlers say still goes out.
        spawn(_keep, wanted, attempts, reconnect, name=f"relay {where}", daemon=True, linked=True)
        return fn

    return decorator("connect", install)


def _codec(encoding: Encoding, limits: Limits) -> Codec:
    if encoding == "msgpack":
        return Msgpack(limits)
    if encoding == "preserves":
        from relay.protocol.codec.preserves import Preserves

        return Preserves(limits)
    if encoding == "text":
        from relay.protocol.codec.preserves_text import PreservesText

        return PreservesText(limits)
    raise AddressError(f"there is no encoding {encoding!r}: it is 'msgpack', 'preserves' or 'text'")


@record("connection-state")
class ConnectionState:
    """How a connection is: ``connecting``, ``connected``, ``lost`` or ``refused``; *reason* says in words why it is not
    there, and *since* when that began, in seconds since 1970.

    >>> ConnectionState("connected").connected
    True
    >>> ConnectionState("lost", "the peer has gone", 1764000000.0).connected
    False
    """

    name: str
    reason: str = ""
    since: float = 0.0

    @property
    def connected(self) -> bool:
        """Whether it is there."""
        return self.name == "connected"


@frozen
class _Wanted:
    """What was asked for; *arrival* is notified when it is there."""

    address: Address
    cap: Capability | None
    encodings: Sequence[Encoding]
    tls: ssl.SSLContext | None
    limits: Limits
    arrival: Ref
    states: Ref


class _Arrivals(Entity):
    """In the facet that wants it: what it wants, while it is there."""

    def __init__(self, fn: Callable[[Ref], object]) -> None:
        self._fn = fn
        self._facets: dict[Assertion, Facet] = {}

    def assert_(self, value: Value, handle: Assertion) -> None:
        turn = current("connect")
        facet = self._facets[handle] = Facet(turn.actor, turn.facet)
        facet.preventers = 1  # it lasts as long as the connection, even with nothing in it
        facet.vital = True
        facet.run(turn, partial(self._fn, value))

    def retract(self, handle: Assertion) -> None:
        self._facets.pop(handle).stop(current("connect"))

    def message(self, value: Value) -> None:
        raise ConnectError(value)


class _States(Entity):
    """In the facet that wants it: whether it is there."""

    def __init__(self, listener: Callable[[ConnectionState], object] | None) -> None:
        self._listener = listener

    def message(self, value: Value) -> None:
        if self._listener is not None:
            self._listener(value)


def _keep(wanted: _Wanted, attempts: int | None, reconnect: bool) -> None:
    keeper = _Keeper(current_facet(), wanted)
    trio_task(keeper.run, attempts, reconnect)


class _Keeper:
    """Gets a connection, and another one when it is lost."""

    def __init__(self, facet: Facet, wanted: _Wanted) -> None:
        self.facet = facet
        self.wanted = wanted
        self.ever = False
        self.lost = False
        self.encodings = wanted.encodings
        self._failures = 0
        self._reported = False
        self._log = logger(peer=str(wanted.address))

    async def run(self, attempts: int | None, reconnect: bool) -> None:
        while True:
            attempt = await self._attempt()
            if not self.facet.alive:
                return
            self._failures = 1 if attempt.lasted >= _STEADY else self._failures + 1
            again = attempts is None or (self._failures < attempts and not attempt.silent)  # it would be silent again
            if not (reconnect if self.ever else again):
                self.facet.enter(partial(send, self.wanted.arrival, attempt.reason))
                await trio.sleep_forever()  # until the actor that asked has ended by that, and so this one
            if not self.lost:  # that was said when it happened
                self.tell("refused" if attempt.refused else "connecting", attempt.reason)
            if not self._reported and (self.ever or attempts is None):
                self._reported = True
                self._log.warning("no connection, trying again until there is one", reason=attempt.reason)
            await trio.sleep(outside().uniform(0, min(_LONGEST, _SHORTEST * 2.0 ** min(self._failures - 1, 20))))

    async def _attempt(self) -> _Attempt:
        """Try to connect, in each encoding that may be the peer's; the first one's reason is that of all."""
        first = None
        for encoding in self.encodings:
            attempt = _Attempt(self, encoding)
            try:
                await attempt.run()
            except ConnectError as e:
                attempt.reason = str(e)
            if attempt.understood:
                self.encodings = (encoding,)
                return attempt
            first = first or attempt
            if not attempt.mute or not self.facet.alive:
                break
        assert first is not None
        return first

    def tell(self, name: str, reason: str = "") -> None:
        """Let who wants the connection know how it is."""
        self.facet.enter(partial(self.say, name, reason))

    def say(self, name: str, reason: str = "") -> None:
        """The same in a turn."""
        self.lost = name == "lost"
        send(self.wanted.states, ConnectionState(name, reason, time_of_day()))

    def arrived(self) -> None:
        """There is a connection."""
        self.say("connected")
        if self._reported:
            self._log.info("connected" + " again" * self.ever)
        self._reported = False
        self.ever = True


_NOT_VALID: Final = ("<sturdyref-failed-validation>", "expired", "revoked")
"""Why a server refuses a reference where another one helps; other reasons are no fault of the reference's."""


class _Attempt(Entity):
    """One connection, from its beginning to its end; the observer of the gatekeeper's answer."""

    raw: ClassVar[bool] = True

    def __init__(self, keeper: _Keeper, encoding: Encoding) -> None:
        self.reason = ""
        self.encoding = encoding
        self.mute = False
        self.silent = False
        self.refused = False
        self._since: float | None = None
        self._keeper = keeper
        self._session: Session | None = None
        self._heard = self._left = False
        self._news = trio.Event()
        self._over = trio.Event()
        self._granted: dict[Assertion | None, Handle] = {}

    async def run(self) -> None:
        keeper, wanted = self._keeper, self._keeper.wanted
        stream = await open_stream(wanted.address, tls=wanted.tls, limits=wanted.limits)
        try:
            keeper.facet.enter(lambda: react(partial(self._begin, stream)))
            with trio.move_on_after(wanted.limits.opening):
                await self._news.wait()
            if not self._news.is_set():
                self.silent = True
                keeper.facet.enter(partial(self._give_up, silent(wanted.address, wanted.limits)))
            await self._over.wait()
        finally:
            if self._session is None:
                await stream.close()
        ended = (self._session and self._session.reason) or ""
        reason = f"{wanted.address}: {stream.ending}" if stream.ending else ""
        # Before its first word, the stream knows best who does not answer; after it, the session.
        first, second = (ended, reason) if self._heard else (reason, ended)
        self.reason = first or second or f"{wanted.address} has closed the connection"
        self.mute = not (self.understood or reason)

    @property
    def understood(self) -> bool:
        """Whether the peer has said something that we could read."""
        return self._session is not None and self._session.packets_in > 0

    @property
    def lasted(self) -> float:
        """Seconds since it was worth something."""
        return 0.0 if self._since is None else trio.current_time() - self._since

    def _begin(self, stream: Connection) -> None:
        wanted = self._keeper.wanted
        on_stop_or_crash(self._stopped)
        self._session = open_link(stream, codec=_codec(self.encoding, wanted.limits), limits=wanted.limits)
        self._session.leaving = partial(self._leave, stream)
        first, turn = self._session.membrane.expect(0), current("connect")
        if wanted.cap is not None:
            turn.assert_(first, resolve(wanted.cap, ref(self)))
        # A gatekeeper may rightly say nothing until there is what we ask for; any peer replies to this.
        turn.sync(first, ref(_Awake(self, first)))

    def _leave(self, stream: Connection) -> None:
        """What came over the connection goes."""
        if self._granted and not self._left and not self._keeper.facet.stopping:
            why = (self._session and self._session.reason) or stream.ending or "the connection was closed"
            self._keeper.say("lost", f"{self._keeper.wanted.address}: {why}")
            self._left = True

    def _stopped(self) -> None:
        self._news.set()
        self._over.set()

    def _hear(self) -> None:
        self._heard = True
        self._news.set()

    def _give_up(self, why: str) -> None:
        if self._session is not None:
            self._session.end(why)

    def awake(self, first: Ref) -> None:
        """The other side speaks the protocol."""
        self._hear()
        if self._keeper.wanted.cap is None:
            self._grant(None, first)

    def _grant(self, handle: Assertion | None, it: Ref) -> None:
        self._since = trio.current_time()
        self._keeper.arrived()
        self._granted[handle] = current("connect").assert_(self._keeper.wanted.arrival, it)

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        answer = answered(form)
        if answer is None:
            return
        self._hear()
        it, why = answer
        if it is not None:
            self._grant(handle, it)
        elif self._granted:  # it may come back
            logger(peer=str(self._keeper.wanted.address)).warning(
                "the capability was withdrawn", reason=unparse_form(why, str)
            )
        elif self._session is not None:
            self.refused = True
            reason = unparse_form(why, str)
            remedy = ": use one that the server prints" if reason in _NOT_VALID else ""
            self._session.end(f"{self._keeper.wanted.address} refuses the capability ({reason}){remedy}")

    def retract(self, handle: Assertion) -> None:
        grant = self._granted.pop(handle, None)
        if grant is not None:
            grant.retract()
            if not self._granted and not self._left:
                self._keeper.say("lost", "the capability was withdrawn")


class _Awake(Entity):
    """Hears that the other side has handled what we said."""

    raw: ClassVar[bool] = True

    def __init__(self, attempt: _Attempt, first: Ref) -> None:
        self._attempt = attempt
        self._first = first

    def message(self, form: Frozen) -> None:
        self._attempt.awake(self._first)
