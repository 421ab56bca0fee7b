"""The actors of the demo: what stands in the dataspace, who watches it, and what they conclude.

The source asserts :class:`Airborne` for each flight in the air.  One actor for each carrier and each airport counts
those that concern it with ``during``, and shows the number as :class:`InTheAir`.  An airport's actor sends
:class:`Crowded` when too many of its flights are in the air; the alarm actor reacts to that with an :class:`Alarm`,
which stands until the airport has sent :class:`Eased`.  When the stream is :class:`Over`, each counter asserts its
:class:`Tally`, the alarm actor its :class:`Alarms`, and the clerk, once all are there, has the result.

No actor knows another one.  A counter looks at its number at the end of each turn, and the source makes one turn of
each minute; so the numbers are those at the end of each minute, as in Spark's reckoning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from relay.demo.flights import Count, Schedule
from syndicate import (
    Ref,
    assert_,
    capture,
    dataflow,
    during,
    field,
    on_asserted,
    on_message,
    query_hash,
    query_set,
    query_value,
    record,
    send,
    spawn,
)
from syndicate.turn import Handle
from syndicate.verbs import Computed


@record
class Airborne:
    """A flight has departed and not landed."""

    carrier: str
    flight: int
    tailnum: str
    origin: str
    dest: str


@record
class Today:
    """The day, at New York, that the replay has come to."""

    date: str


@record
class InTheAir:
    """So many flights of a carrier, from or to an airport, or at all are in the air; *kind* is "carrier", "airport",
    "all".
    """

    kind: str
    name: str
    count: int


@record
class Crowded:
    """A message: more flights from or to an airport are in the air than the limit allows."""

    airport: str
    count: int
    date: str


@record
class Eased:
    """A message: an airport is within its limit again."""

    airport: str


@record
class Alarm:
    """An airport is crowded."""

    airport: str
    count: int
    date: str


@record
class Over:
    """A message: the stream has ended."""


@record
class Tally:
    """What a counter has counted: flights, the most at a time, and the day of that."""

    kind: str
    name: str
    flights: int
    peak: int
    peak_day: str


@record
class Alarms:
    """How many alarms there were for an airport."""

    airport: str
    number: int


def tower(ds: Ref, known: Schedule, limit: int, done: Callable[[list[Count]], object]) -> None:
    """Start all actors, linked to the current facet; *done* gets the counts when the stream is over."""
    spawn(counter, ds, "all", "flights", None, name="all flights", linked=True)
    for carrier in known.carriers:
        spawn(counter, ds, "carrier", carrier, None, name=f"carrier {carrier}", linked=True)
    for airport in known.airports:
        spawn(counter, ds, "airport", airport, limit, name=f"airport {airport}", linked=True)
    spawn(alarm, ds, name="alarm", linked=True)
    spawn(clerk, ds, known, done, name="clerk", linked=True)


def counter(ds: Ref, kind: str, name: str, limit: int | None) -> None:
    """Count the flights of a carrier, of an airport or all; send messages when they pass *limit*, if there is one."""
    count, flights, peak, peak_day, crowded = field(0, name="count"), 0, 0, "", False
    today = query_value(ds, Today(capture()), "")

    def flight(*_: object) -> Callable[[], None]:
        nonlocal flights
        flights += 1
        count.value += 1
        return landed

    def landed() -> None:
        count.value -= 1

    c = capture()
    patterns = {
        "all": [Airborne(c, c, c, c, c)],
        "carrier": [Airborne(name, c, c, c, c)],
        "airport": [Airborne(c, c, c, name, c), Airborne(c, c, c, c, name)],  # from there, and to there
    }
    for pattern in patterns[kind]:
        during(ds, pattern)(flight)

    assert_(ds, lambda: InTheAir(kind, name, count.value))

    @dataflow
    def watch() -> None:
        nonlocal peak, peak_day, crowded
        if count.value > peak:
            peak, peak_day = count.value, today.value
        if limit is not None and (count.value > limit) is not crowded:
            crowded = not crowded
            send(ds, Crowded(name, count.value, today.value) if crowded else Eased(name))

    @on_message(ds, Over())
    def over() -> None:
        assert_(ds, Tally(kind, name, flights, peak, peak_day))


def alarm(ds: Ref) -> None:
    """Raise an alarm while an airport is crowded."""
    standing: dict[str, Handle | Computed] = {}
    number: Counter[str] = Counter()

    @on_message(ds, Crowded(capture(), capture(), capture()))
    def raise_alarm(airport: str, count: int, date: str) -> None:
        number[airport] += 1
        standing[airport] = assert_(ds, Alarm(airport, count, date))

    @on_message(ds, Eased(capture()))
    def cancel(airport: str) -> None:
        standing.pop(airport).retract()

    @on_asserted(ds, Tally("airport", capture(), capture(), capture(), capture()))
    def report(airport: str, *_: object) -> None:  # all messages of this airport came before its tally
        assert_(ds, Alarms(airport, number[airport]))


def clerk(ds: Ref, known: Schedule, done: Callable[[list[Count]], object]) -> None:
    """Gather the tallies and the numbers of alarms; when none is missing, hand them over."""
    c = capture()
    tallies, alarms = query_set(ds, Tally(c, c, c, c, c)), query_hash(ds, Alarms(c, c))
    counters, airports = len(known.carriers) + len(known.airports) + 1, len(known.airports)

    @dataflow
    def complete() -> None:
        if (len(tallies.value), len(alarms.value)) == (counters, airports):
            crowded = {("airport", airport): number for airport, number in alarms.value.items()}
            done(
                [
                    Count(kind, name, flights, peak, day, crowded.get((kind, name), 0))
                    for kind, name, flights, peak, day in tallies.value
                ]
            )
