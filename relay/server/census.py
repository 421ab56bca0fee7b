"""The census: what a broker knows of itself, as plain numbers and as assertions.

The numbers are kept as they come and cost an addition each; metrics and health are read from them.  The same is
asserted in a dataspace of its own, the *admin* dataspace, so that a console, or a program, observes the broker as it
observes everything else:

* ``<listener "tcp://127.0.0.1:8001">`` for each open door,
* ``<peer "127.0.0.1:5123" "tcp://127.0.0.1:8001" "2026-01-01T00:00:00+00:00">`` for each connection: since when,
* ``<session "127.0.0.1:5123" {..}>``, its counts, a second old at most, and only while somebody observes them; with
  them ``bytes-in-rate`` and the like, a second's, ``held``, the bytes that we hold for it, and ``capabilities``: what
  each is of that it has shown, by the name that it is revoked by,
* ``<overload "queued" 300000000 268435456>`` while there is too much of something: how much, and how much may be,
* ``<draining>`` while the broker ends,
* messages ``<limit-hit "127.0.0.1:5123" "why">`` when a peer loses its session by what it did.

Nobody else asserts there: see :mod:`relay.server.operators`.

Source: ``docs/design/commands.md``, "A broker that can be watched".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

import trio
from attrs import define, field, fields

from relay.capabilities.guess_limits import Guesses
from relay.capabilities.sturdy import SturdyRef, revocation
from relay.server.quotas import Account
from relay.server.throttle import Tap, Traffic
from relay.session.backlog import ENTRY
from relay.session.session import Session
from relay.session.statistics import Statistics
from syndicate.actors.dataspace import dataspace
from syndicate.actors.during import during
from syndicate.actors.facet import Facet
from syndicate.actors.system import System, system_of
from syndicate.actors.timer import every
from syndicate.actors.turn import Handle
from syndicate.actors.verbs import assert_, current_facet, react, send, spawn, stop
from syndicate.index.interest import INTEREST
from syndicate.outside import outside
from syndicate.values.pattern import ANY, capture
from syndicate.values.record import record
from syndicate.values.value import Frozen, Record, Ref, Symbol, Value, thaw

REFRESH: Final = 1.0
"""Seconds between two looks at the sessions' counts, while somebody observes them."""

_COUNTS: Final = {each.name.replace("_", "-"): each.name for each in fields(Statistics) if each.name != "exceeded"}

_SHOWN: Final = ("bytes-in", "bytes-out", "events-in", "events-out", "handles")
"""The counts that a table of sessions has."""

_FLOWS: Final = ("bytes-in", "bytes-out", "events-in", "events-out")
"""The counts that are shown as rates, too."""

WAITING: Final = frozenset({"handles", "exports", "imports", "waiting-entries", "waiting-bytes", "debt"})
"""The counts that go down again; the others only grow."""


@record("listener")
class OpenListener:
    """An open door."""

    address: str


@record("peer")
class PeerThere:
    """A connection, through the door *listener*, *since* when (ISO 8601)."""

    name: str
    listener: str
    since: str


@record("session")
class SessionCounts:
    """What has passed, what passes in a second and what waits, by symbols; and the capabilities that were shown."""

    name: str
    counts: Value


@record("overload")
class Overloaded:
    """There is *amount* of *what*, and *limit* is what may be."""

    what: str
    amount: int
    limit: int


@record("draining")
class Draining:
    """The broker lets nobody in, and ends."""


@record("limit-hit")
class LimitHit:
    """A message: the peer *name* lost its session because of *what*."""

    name: str
    what: str


@define(eq=False)
class SpaceThere:
    """A dataspace that is served, and the account of what those who have got it since it had a quota hold there."""

    ref: Ref
    account: Account

    def values(self) -> tuple[int, int]:
        """How many distinct assertions there are, and how many of them are interests."""
        index = getattr(self.ref.entity, "index", None)
        if index is None:  # not a dataspace of ours
            return 0, 0
        return index.values(), len(index.bags.get(INTEREST, ()))

    def events(self) -> dict[str, int]:
        """How many assertions, retractions and messages have come to it so far, whoever they were of."""
        index = getattr(self.ref.entity, "index", None)
        return {} if index is None else dict(zip(("assert", "retract", "message"), index.gate.counts, strict=True))


@lru_cache(1)
def _moment(second: int) -> str:
    """A second since 1970, as a date and a time: many come in the same one."""
    return datetime.fromtimestamp(second, UTC).isoformat()


@define(eq=False)
class Peer:
    """One connection.  *session* is there once its actor has begun; *counted* is what the census has counted of what it
    holds; *spaces* are the dataspaces with a quota that it has been given; *shown* the signatures of the capabilities
    that it has shown, and what each is of; *certified* what it was given for its certificate.
    """

    tap: Tap
    listener: str
    session: Session | None = None
    counted: int = 0
    spaces: tuple[SpaceThere, ...] = ()
    guesses: int = 0
    shown: tuple[tuple[bytes, Frozen], ...] = ()
    certified: tuple[tuple[Frozen, SturdyRef], ...] = ()
    began: float = field(factory=lambda: outside().time_of_day())

    @property
    def since(self) -> str:
        """The date and the time at which it came (ISO 8601)."""
        return _moment(int(self.began))

    @property
    def name(self) -> str:
        """As the session's logs have it."""
        return self.tap.name

    @property
    def capabilities(self) -> dict[str, Frozen]:
        """The names of the capabilities that it has shown, as they are revoked by, and what each is of."""
        return {revocation(sig): oid for sig, oid in self.shown}

    @property
    def waiting(self) -> int:
        """Bytes that it has not taken yet, about."""
        session = self.session
        return 0 if session is None else session.outbox.waiting + session.backlog.size

    @property
    def held(self) -> int:
        """Bytes that we hold for it, about: what it has sent and asserted, what it sees and what waits for it."""
        session = self.session
        return 0 if session is None else session.held + session.debt + ENTRY * session.notified

    def cut(self, limit: str, why: str) -> None:
        """End its session, which gets the reason."""
        if self.session is not None:
            self.session.cut(limit, why)

    def counts(self) -> dict[str, int]:
        """What has passed and what waits, by name."""
        if self.session is None:
            return {}
        statistics = self.session.statistics()
        return {name: getattr(statistics, attribute) for name, attribute in _COUNTS.items()}


@define(eq=False)
class Census:
    """The numbers.  Only the broker writes them; ``held`` are the bytes that :meth:`account` has counted."""

    listeners: list[str] = field(factory=list)
    peers: dict[Tap, Peer] = field(factory=dict)
    traffic: Traffic = field(factory=Traffic)
    held: int = 0
    spaces: dict[str, SpaceThere] = field(factory=dict)
    guesses: Guesses = field(factory=lambda: Guesses(trio.current_time))
    accepted: int = 0
    lost: Counter[str] = field(factory=Counter)
    overload: tuple[Overloaded, ...] = ()
    draining: bool = False
    system: System | None = None
    admin: Ref | None = None
    _past: Counter[str] = field(factory=Counter)

    # ------------------------------------------------------------------------------------------------ what happens

    def open(self) -> Ref:
        """Begin, in a turn; returns the admin dataspace."""
        self.system = system_of(current_facet().actor)
        self.admin = dataspace("admin")
        spawn(self._refresher, self.admin, name="census", daemon=True)
        return self.admin

    def sessions(self) -> list[list[Value]]:
        """``[name door since bytes-in bytes-out events-in events-out handles waiting held]`` of each session."""
        return [
            [
                peer.name,
                peer.listener,
                peer.since,
                *(peer.counts().get(name, 0) for name in _SHOWN),
                peer.waiting,
                peer.held,
            ]
            for peer in self.peers.values()
        ]

    def figures(self) -> list[list[Value]]:
        """``[name number]``: what health is, for a page."""
        return [
            ["sessions", len(self.peers)],
            ["sessions so far", self.accepted],
            ["bytes held", self.held],
            *([f"overload: {each.what}", each.amount] for each in self.overload),
        ]

    def arrived(self, peer: Peer) -> None:
        """In the first turn of its session."""
        self.accepted += 1
        self.peers[peer.tap] = peer
        if self.admin is not None:
            assert_(self.admin, PeerThere(peer.name, peer.listener, peer.since))

    def left(self, peer: Peer) -> None:
        """In the last turn of its session."""
        if self.peers.pop(peer.tap, None) is None:
            return
        self.held -= peer.counted
        self._past.update({name: count for name, count in peer.counts().items() if name not in WAITING})

    def hit(self, peer: Peer, kind: str, why: str) -> None:
        """A peer lost its session by what it did, or was refused what it asked for."""
        self.lost[kind] += 1
        if self.admin is not None:
            send(self.admin, LimitHit(peer.name, why))

    # ------------------------------------------------------------------------------------------------ what is asked

    def totals(self) -> Counter[str]:
        """The counts of all sessions together, with those that have ended; what waits is that of the living."""
        totals = Counter({**dict.fromkeys(_COUNTS, 0), **self._past})
        for peer in self.peers.values():
            totals.update(peer.counts())
        return totals

    def queued(self) -> int:
        """Bytes that wait for all peers together."""
        return sum(peer.waiting for peer in self.peers.values())

    def pressing(self) -> int:
        """The same, without what nobody has begun to send: it costs nothing for those who are idle."""
        peers = self.peers
        return sum(peers[tap].waiting for tap in self.traffic.sending if tap in peers)

    def account(self) -> int:
        """Bytes that we hold for all peers together, about.  Only those are looked at through whose connections
        something goes, or has gone until a moment ago: it costs nothing for those who are idle.
        """
        traffic = self.traffic
        for tap in [*traffic.heard.union(traffic.sending)]:
            peer = self.peers.get(tap)
            if peer is None:
                traffic.settled(tap)
                continue
            held = peer.held
            if held == peer.counted:
                traffic.settled(tap)
            self.held += held - peer.counted
            peer.counted = held
        return self.held

    # ------------------------------------------------------------------------------------------------ as assertions

    def _refresher(self, admin: Ref) -> None:
        """Keep the counts up to date while somebody observes them."""
        here = current_facet()
        watching: list[Facet] = []
        interests = Counter[str]()

        @during(admin, Record("Observe", [capture(), ANY]))
        def interest(pattern: Value) -> Callable[[], None] | None:
            if not _may_be_counts(pattern):
                return None
            interests["counts"] += 1
            if not watching:
                here.enter(begin)
            return end

        def begin() -> None:
            if interests["counts"] and not watching:
                watching.append(react(lambda: _Counts(self, admin).start()))

        def end() -> None:
            interests["counts"] -= 1
            if not interests["counts"] and watching:
                stop(watching.pop())


class _Counts:
    """The assertions of what has passed, in the facet that is current when it starts."""

    def __init__(self, census: Census, admin: Ref) -> None:
        self._census = census
        self._admin = admin
        self._shown: dict[Tap, tuple[dict[str, int], dict[Value, Value], Handle]] = {}

    def start(self) -> None:
        """Now, and again each second."""
        self._refresh()
        every(REFRESH, self._refresh)

    def _refresh(self) -> None:
        peers = self._census.peers
        for tap in [tap for tap in self._shown if tap not in peers]:
            self._shown.pop(tap)[2].retract()
        for tap, peer in peers.items():
            counts = peer.counts()
            before = self._shown.get(tap)
            shown = _shown(peer, counts, counts if before is None else before[0])
            if before is not None and before[1] == shown:
                continue
            handle = assert_(self._admin, SessionCounts(peer.name, shown))
            if before is not None:
                before[2].retract()
            self._shown[tap] = counts, shown, handle


def _shown(peer: Peer, counts: dict[str, int], before: dict[str, int]) -> dict[Value, Value]:
    """What is said of a session whose counts were others a moment ago."""
    shown: dict[Value, Value] = {Symbol(name): count for name, count in counts.items()}
    shown |= {
        Symbol(f"{name}-rate"): round((counts[name] - before[name]) / REFRESH) for name in _FLOWS if name in counts
    }
    shown[Symbol("held")] = peer.held
    shown[Symbol("capabilities")] = {name: thaw(oid) for name, oid in peer.capabilities.items()}
    return shown


def _may_be_counts(pattern: Value) -> bool:
    """Whether something that *pattern* matches may be a ``<session ..>``."""
    while isinstance(pattern, Record) and pattern.label == Symbol("bind") and pattern.fields:
        pattern = pattern.fields[0]
    if not isinstance(pattern, Record):
        return False
    if pattern.label == Symbol("group") and pattern.fields:
        return bool(pattern.fields[0] == Record("rec", [Symbol("session")]))
    return bool(pattern.label == Symbol("_"))
