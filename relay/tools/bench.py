"""The bench: a broker measured from where its user is, with connections like any program's.

So many clients stand in a ring.  Each sends its neighbour messages, or asserts what its neighbour observes and retracts
it once that has been seen.  What is timed is the whole route: from ``send`` in one client, through both connections and
the broker, to the handler in the next.  Each client has at most *window* values on their way, so that the load is what
the broker takes and no queue grows; more of them at a time means a higher rate, and longer delays.

All clients are of this process, and it may be this process that is too slow: :attr:`LoadGenerator.busy` says so.

Contract: each value arrives once, unchanged, and those of one client in their order; whatever does not is counted.  It
is not a timeout that calls a value lost, but an order: when nothing comes any more, each client syncs with the broker,
and then each once more.  The first says that the broker has handled everything, the second that whatever became of it
has arrived.  At the end each client leaves an assertion behind with what it observes, and a witness sees all of it
disappear.

Source: NATS (``nats bench``); ``docs/design/commands.md``, "The bench".
"""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from time import perf_counter, process_time
from typing import Final

from attrs import define, field

from relay.capabilities.certificate import Capability
from relay.client import Encoding, connect
from relay.transport.tls import Tls
from syndicate.actors.facet import Facet
from syndicate.actors.timer import after, every
from syndicate.actors.turn import Entity, Handle, current
from syndicate.actors.verbs import assert_, current_facet, react, ref, send, stop, stop_actor, sync
from syndicate.index.interest import Observe
from syndicate.values.pattern import ANY, capture, quote, unquote
from syndicate.values.record import record
from syndicate.values.value import Assertion, Record, Ref, Value, freeze

TICK: Final = 0.1
"""Seconds between two reports of how far it is."""

_STILL: Final = 1.0
"""Seconds without anything coming, after which we ask whether anything will."""

LEAVING: Final = 10.0
"""Seconds in which the broker has to notice that the clients have gone."""

_LEFT: Final = -1
"""The number of what is left behind."""

Tell = Callable[[str, float, float], object]
"""Called with what is being done, how much of it is done, and of how much."""


@record
class Bench:
    """What the clients say: of this run, to this client, the so-manieth, with bytes to carry."""

    run: str
    to: int
    number: int
    load: bytes


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The least of them such that so large a *share* is not above it.

    >>> percentile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.5), percentile([1, 2], 0.99), percentile([], 0.5)
    (5, 2, None)
    """
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else None


@define(eq=False)
class Tally:
    """What became of the values of one kind.

    ``late`` are the seconds that each took, eight bytes for each that came; ``seconds`` are those from the first that
    went to the last that came.  ``settled``: no other can come, so that what is on its way is lost.
    """

    kind: str
    sent: int = 0
    arrived: int = 0
    disordered: int = 0
    repeated: int = 0
    changed: int = 0
    settled: bool = False
    began: float = field(factory=perf_counter)
    heard: float = field(factory=perf_counter)
    late: array[float] = field(factory=partial(array, "d"), repr=False)

    @property
    def on_their_way(self) -> int:
        """How many have been sent and have not arrived."""
        return self.sent - self.arrived

    @property
    def lost(self) -> int:
        """How many will never arrive."""
        return self.on_their_way if self.settled else 0

    @property
    def right(self) -> bool:
        """Whether each that should have come has, once, as it was, in its order."""
        return not (self.lost or self.disordered or self.repeated or self.changed)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.heard - self.began

    @property
    def rate(self) -> float | None:
        """How many arrived in a second."""
        return self.arrived / self.seconds if self.arrived else None

    def percentiles(self) -> dict[str, float | None]:
        """The seconds that they took: p50, p90, p99 and the most."""
        ordered = sorted(self.late)
        shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
        return {name: percentile(ordered, share) for name, share in shares.items()}


class Route:
    """The route from one client to the next, for the values of one kind: when those on it were sent."""

    __slots__ = ("last", "since", "tally")

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.since: dict[int, float] = {}
        self.last = -1

    def sent(self, number: int) -> None:
        """One more goes now."""
        self.tally.sent += 1
        self.since[number] = perf_counter()

    def came(self, number: int) -> bool:
        """One has come; whether it was on its way."""
        now, tally = perf_counter(), self.tally
        since = self.since.pop(number, None)
        if since is None:
            tally.repeated += 1
            return False
        tally.disordered += number < self.last
        self.last = max(number, self.last)
        tally.arrived += 1
        tally.late.append(now - since)
        tally.heard = now
        return True


class _Client:
    """One connection.  It sends when what it sent before has come."""

    def __init__(self, load: LoadGenerator, number: int) -> None:
        self.load = load
        self.number = number
        self.facet = current_facet()
        self.ds: Ref | None = None
        self._to = (number + 1) % load.clients
        self._routes: dict[str, Route] = {}
        self._handles: dict[int, Handle] = {}
        self._next = self._quota = 0

    def on_dataspace(self, ds: Ref) -> None:
        """There is the dataspace."""
        self.ds = ds
        assert_(ds, Observe(Bench(self.load.run, self.number, capture(), capture()), ref(_Ear(self))))
        sync(ds, self.load.ready)

    def begin(self, tallies: dict[str, Tally], quota: int) -> None:
        """Send up to so many."""
        self._routes = {kind: Route(tally) for kind, tally in tallies.items()}
        self._next, self._quota = 0, quota
        self._handles.clear()
        self.go()

    def go(self) -> None:
        """Send what may be sent now."""
        load, ds = self.load, self.ds
        assert ds is not None
        route = self._routes.get("messages")
        while self._next < self._quota and self._waiting < load.window and load.open:
            number, self._next = self._next, self._next + 1
            value = Bench(load.run, self._to, number, load.payload)
            if route is not None:
                route.sent(number)
                send(ds, value)
            else:
                self._routes["assertions"].sent(number)
                self._handles[number] = self.leave(value)

    @property
    def _waiting(self) -> int:
        return sum([len(route.since) for route in self._routes.values()])

    def leave(self, value: Bench) -> Handle:
        """Assert *value* for as long as the connection lasts, whoever's turn it is."""
        assert self.ds is not None
        return current("bench").assert_form(self.facet, self.ds, freeze(value))

    def came(self, kind: str, number: int, load: bytes) -> None:
        """The neighbour has got one of ours."""
        route = self._routes.get(kind)
        if route is None or number == _LEFT or not route.came(number):
            return
        route.tally.changed += load != self.load.payload
        if kind == "assertions":
            self._routes["retractions"].sent(number)
            self._handles.pop(number).retract()
        else:
            self.go()
            self.load.look()


class _Ear(Entity):
    """What a client hears, of what the one before it says."""

    def __init__(self, client: _Client) -> None:
        self._load = client.load
        self._from = (client.number - 1) % client.load.clients
        self._values: dict[Assertion, tuple[int, bytes]] = {}

    def message(self, value: Value) -> None:
        self._load.ring[self._from].came("messages", *value)

    def assert_(self, value: Value, handle: Assertion) -> None:
        self._values[handle] = value
        self._load.ring[self._from].came("assertions", *value)

    def retract(self, handle: Assertion) -> None:
        self._load.ring[self._from].came("retractions", *self._values.pop(handle))


class _Witness(Entity):
    """Sees what the clients leave behind, until it is gone."""

    def __init__(self, changed: Callable[[], object]) -> None:
        self.handles: set[Assertion] = set()
        self._changed = changed

    def assert_(self, value: Value, handle: Assertion) -> None:
        self.handles.add(handle)

    def retract(self, handle: Assertion) -> None:
        self.handles.remove(handle)
        self._changed()


class LoadGenerator:
    """A boot function, of the first actor: measures the broker at *address*, and ends.

    *kinds* are ``"messages"`` and ``"assertions"``, one after the other; of each, *count* values in all, or what is
    done in so many *seconds*.  *size* are the bytes that each value carries.  *encoding* and *tls* are options
    of :func:`~relay.client.connect`.

    ``tallies`` is what was measured, also while it runs.  Then ``stood`` says how many assertions and observers were
    left behind, and ``left`` how many of them are still there, which is None as long as nobody knows.

    A :class:`~syndicate.errors.ConnectError` crashes the actor: when there is no connection, or one is lost.
    """

    def __init__(
        self,
        address: str,
        cap: Capability,
        *,
        clients: int = 10,
        kinds: Sequence[str] = ("messages", "assertions"),
        count: int | None = None,
        seconds: float | None = None,
        size: int = 128,
        window: int = 1,
        tell: Tell = lambda what, done, of: None,
        encoding: Encoding | None = None,
        tls: Tls | None = None,
    ) -> None:
        self.clients = clients
        self.window = window
        self.run = secrets.token_hex(8)
        self.payload = secrets.token_bytes(size)
        self.ring: list[_Client] = []
        self.tallies: list[Tally] = []
        self.stood = 0
        self.left: int | None = None
        self.busy = 0.0
        self._connect = partial(connect, address, cap, attempts=3, reconnect=False, encoding=encoding, tls=tls)
        self._kinds = list(kinds)
        self._count = count
        self._seconds = seconds
        self._tell = tell
        self._ready = 0
        self._current: dict[str, Tally] = {}
        self._deadline = float("inf")
        self._asking = False
        self._spent = (0.0, 0.0)
        self._facet: Facet

    @property
    def right(self) -> bool:
        """Whether nothing was wrong, of what is known."""
        return not self.left and all(tally.right for tally in self.tallies)

    @property
    def finished(self) -> bool:
        """Whether it came to its end."""
        return self.left is not None

    def __call__(self) -> None:
        """Begin."""
        self._facet = current_facet()
        every(TICK, self._tick)
        for number in range(self.clients):
            react(partial(self._open, number))

    def _open(self, number: int) -> None:
        client = _Client(self, number)
        self.ring.append(client)
        self._connect()(client.on_dataspace)

    def ready(self) -> None:
        """One more client has its connection, and what it observes in place."""
        self._ready += 1
        if self._ready == self.clients:
            self._next()

    # ------------------------------------------------------------------------------------------------ the load

    @property
    def open(self) -> bool:
        """Whether there is still time to send."""
        return perf_counter() < self._deadline

    def _next(self) -> None:
        """Begin with the next kind."""
        if not self._kinds:
            self._part()
            return
        kind = self._kinds.pop(0)
        names = ["messages"] if kind == "messages" else ["assertions", "retractions"]
        self._current = {name: Tally(name) for name in names}
        self.tallies += self._current.values()
        wall, cpu = perf_counter(), process_time()
        self._spent = (wall, cpu)
        if self._seconds is not None:
            self._deadline = wall + self._seconds
        for client in self.ring:
            least, more = divmod(self._count, self.clients) if self._count is not None else (1 << 62, 0)
            client.begin(self._current, least + (client.number < more))
        self.look()

    def look(self) -> None:
        """Go on if nothing is on its way: nobody waits for what has come, so nobody has anything left to send."""
        if not any(tally.on_their_way for tally in self._current.values()):
            self._settle()

    def _settle(self) -> None:
        self._note_busy()
        for tally in self._current.values():
            tally.settled = True
        self._current = {}
        self._next()

    def _note_busy(self) -> None:
        wall, cpu = self._spent
        self.busy = max(self.busy, (process_time() - cpu) / (perf_counter() - wall))

    def _tick(self) -> None:
        if not self._current:
            self._tell("leaving" if self.tallies else "connecting", self._ready, self.clients)
            return
        tally = next(iter(self._current.values()))
        if self._seconds is not None:
            self._tell(tally.kind, min(perf_counter() - tally.began, self._seconds), self._seconds)
        else:
            self._tell(tally.kind, tally.arrived, self._count or 0)
        if perf_counter() - self._spent[0] > _STILL:
            self._note_busy()
        if not self._asking and perf_counter() - max([each.heard for each in self._current.values()]) > _STILL:
            self._asking = True
            came = self._came
            self._together(lambda: self._together(partial(self._judge, came)))

    @property
    def _came(self) -> int:
        return sum([tally.arrived for tally in self.tallies])

    def _judge(self, before: int) -> None:
        """What has not come by now is lost, unless some of it has meanwhile."""
        self._asking = False
        if self._current and before == self._came:
            self._settle()

    def _together(self, then: Callable[[], object]) -> None:
        """Call *then* when the broker has handled what each client has said, and each has heard so."""
        waiting = set(range(self.clients))

        def answered(number: int) -> None:
            waiting.remove(number)
            if not waiting:
                then()

        for client in self.ring:
            assert client.ds is not None
            sync(client.ds, partial(answered, client.number))

    # ------------------------------------------------------------------------------------------------ the end

    def _part(self) -> None:
        """Leave one assertion each, have that witnessed, and go."""
        for client in self.ring:
            client.leave(Bench(self.run, client.number, _LEFT, b""))
        # Not in the facet of a client, which is what happens to run now: that one will be gone.
        witness = partial(self._facet.run, current("bench"), lambda: react(lambda: self._connect()(self._witness)))
        self._together(witness)

    def _witness(self, ds: Ref) -> None:
        witness = _Witness(lambda: self._see(witness))
        seen = ref(witness)
        assert_(ds, Observe(Bench(self.run, capture(), _LEFT, ANY), seen))
        to = Record("lit", [capture()])  # what the witness observes itself has no such thing in it
        assert_(ds, Observe(Observe(quote(Bench(self.run, unquote(to), capture(), capture())), ANY), seen))
        sync(ds, partial(self._leave, witness))

    def _leave(self, witness: _Witness) -> None:
        self.stood = len(witness.handles)
        for client in self.ring:
            stop(client.facet)
        after(LEAVING, partial(self._end, witness))
        self._see(witness)

    def _see(self, witness: _Witness) -> None:
        if not witness.handles:
            self._end(witness)

    def _end(self, witness: _Witness) -> None:
        self.left = len(witness.handles)
        stop_actor()
