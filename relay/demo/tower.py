"""The actors of the demo: what is asserted in the dataspace, who watches it, and what they conclude.

The source asserts :class:`Airborne` for each flight in the air.  A view, which is a circuit, counts them, and shows
the numbers of each carrier and each airport as :class:`InTheAir`.  The watcher follows these numbers.  It sends
:class:`Crowded` when too many flights of an airport are in the air; the alarm actor reacts to that with an
:class:`Alarm`, which is asserted until it has sent :class:`Eased`.  When the stream is :class:`Over` and all is
:class:`Final`, the watcher asserts a :class:`Peak` of each carrier and airport, the alarm actor its :class:`Alarms`,
and the clerk, who has counted departures, once all are there has the result.

No actor knows another one.  The source makes one turn of each minute, and the view one step of each turn; so the
numbers are those at the end of each minute, as in Spark's reckoning.  The view is a turn behind the source.  So the
watcher learns from the view, too, what day the numbers are of, and when they are the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from operator import itemgetter

from relay.demo.flights import Count, Timetable
from syndicate import (
    Ref,
    assert_,
    capture,
    dataflow,
    on_asserted,
    on_message,
    query_hash,
    query_set,
    query_value,
    record,
    send,
    spawn,
)
from syndicate.actors.turn import Handle
from syndicate.actors.verbs import Computed
from syndicate.flow import Circuit, aggregates, rearranges
from syndicate.views import view


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
class AsOf:
    """The day of which the numbers are."""

    date: str


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
class Final:
    """The numbers take in all of the stream; asserted for one turn."""


@record
class Peak:
    """The most flights at a time that there were, and the day of that."""

    kind: str
    name: str
    peak: int
    peak_day: str


@record
class Alarms:
    """How many alarms there were for an airport."""

    airport: str
    number: int


def tower(ds: Ref, timetable: Timetable, limit: int, done: Callable[[list[Count]], object]) -> None:
    """Start all actors, linked to the current facet; *done* gets the counts when the stream is over."""
    kinds = {"all": ["flights"], "carrier": timetable.carriers, "airport": timetable.airports}
    counted = [(kind, name) for kind, names in kinds.items() for name in names]
    inputs = {"airborne": Airborne, "today": Today}
    outputs = {"as of": AsOf, "in the air": InTheAir, "final": Final}
    spawn(view(ds, counts(counted), inputs, outputs, messages={"over": Over()}), name="counts", linked=True)
    spawn(watcher, ds, counted, limit, name="watcher", linked=True)
    spawn(alarm, ds, name="alarm", linked=True)
    spawn(clerk, ds, timetable, done, name="clerk", linked=True)


def counts(places_known: list[tuple[str, str]]) -> Circuit:
    """How many flights are in the air; a known place adds nothing, to have a number when there are none.

    All of it only rearranges columns or adds them up, so that where kernels run a step is one call.
    """
    circuit = Circuit()
    places_alone = circuit.constant({(*place, 0): 1 for place in places_known})
    counted = circuit.source("airborne").flat_map(places) + places_alone
    numbers = counted.index_with(itemgetter(0, 1), itemgetter(2)).aggregate(aggregates.sum)
    circuit.sink("in the air", numbers.map(rearranges(lambda row: (*row[0], row[1]))))
    circuit.sink("as of", circuit.source("today"))
    circuit.sink("final", circuit.source("over"))
    return circuit


@rearranges
def places(flight: tuple[str, int, str, str, str]) -> list[tuple[str, str, int]]:
    """Where a flight counts, as kinds and names, and as how many."""
    carrier, _, _, origin, dest = flight
    return [("all", "flights", 1), ("carrier", carrier, 1), ("airport", origin, 1), ("airport", dest, 1)]


def watcher(ds: Ref, counted: list[tuple[str, str]], limit: int) -> None:
    """Follow all numbers; send messages when that of an airport passes *limit*."""
    peaks = dict.fromkeys(counted, (0, ""))
    crowded: set[str] = set()
    day = query_value(ds, AsOf(capture()), "")

    @on_asserted(ds, InTheAir(capture(), capture(), capture()))
    def watch(kind: str, name: str, count: int) -> None:
        if count > peaks[kind, name][0]:
            peaks[kind, name] = count, day.value
        if kind == "airport" and (count > limit) is not (name in crowded):
            crowded.symmetric_difference_update([name])
            send(ds, Crowded(name, count, day.value) if count > limit else Eased(name))

    @on_asserted(ds, Final())
    def final() -> None:
        for (kind, name), (peak, peak_day) in peaks.items():
            assert_(ds, Peak(kind, name, peak, peak_day))


def alarm(ds: Ref) -> None:
    """Raise an alarm while an airport is crowded."""
    alarms: dict[str, Handle | Computed] = {}
    number: Counter[str] = Counter()

    @on_message(ds, Crowded(capture(), capture(), capture()))
    def raise_alarm(airport: str, count: int, date: str) -> None:
        number[airport] += 1
        alarms[airport] = assert_(ds, Alarm(airport, count, date))

    @on_message(ds, Eased(capture()))
    def cancel(airport: str) -> None:
        alarms.pop(airport).retract()

    @on_asserted(ds, Peak("airport", capture(), capture(), capture()))
    def report(airport: str, *_: object) -> None:  # all messages of this airport came before its tally
        assert_(ds, Alarms(airport, number[airport]))


def clerk(ds: Ref, timetable: Timetable, done: Callable[[list[Count]], object]) -> None:
    """Count departures, and gather the tallies and the numbers of alarms; when none is missing, hand all over."""
    c = capture()
    tallies, alarms = query_set(ds, Peak(c, c, c, c)), query_hash(ds, Alarms(c, c))
    counted, airports = len(timetable.carriers) + len(timetable.airports) + 1, len(timetable.airports)
    routes: Counter[tuple[str, str, str]] = Counter()

    @on_asserted(ds, Airborne(c, c, c, c, c))
    def departed(carrier: str, _: int, __: str, origin: str, dest: str) -> None:
        routes[carrier, origin, dest] += 1

    @dataflow
    def complete() -> None:
        if (len(tallies.value), len(alarms.value)) == (counted, airports):
            crowded = {("airport", airport): number for airport, number in alarms.value.items()}
            flights: Counter[tuple[str, str]] = Counter()
            for (carrier, origin, dest), number in routes.items():
                for kind, name, one in places((carrier, 0, "", origin, dest)):
                    flights[kind, name] += one * number
            done(
                [
                    Count(kind, name, flights[kind, name], peak, day, crowded.get((kind, name), 0))
                    for kind, name, peak, day in tallies.value
                ]
            )
