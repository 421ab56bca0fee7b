"""A program that is no broker, to be looked at in its console: jobs and workers, sensors and an alarm, rules."""

from __future__ import annotations

from itertools import count

from syndicate import (
    Record,
    Ref,
    after,
    assert_,
    capture,
    dataspace,
    during,
    every,
    on_asserted,
    record,
    run,
    send,
    spawn,
)
from syndicate.bloom import Bloom, agg, bloom, scratch, table
from syndicate.dedalus import Program
from syndicate.flow import Circuit
from syndicate.hosting import host
from syndicate.views import view


@record("job")
class Job:
    """What is to be done."""

    id: str
    kind: str


@record("claim")
class Claim:
    """Who does it."""

    job: str
    worker: str


@record("reading")
class Reading:
    """What a sensor says."""

    sensor: str
    celsius: float


@record("alarm")
class Alarm:
    """Something is wrong in a room."""

    room: str
    text: str


@record("room-of")
class RoomOf:
    """Where a sensor is."""

    sensor: str
    room: str


class Stats(Bloom):
    """How many jobs each worker holds."""

    claim = table(["job"], ["worker"])
    load = scratch(["worker"], ["n"])
    busiest = scratch(["n"], [])

    @bloom
    def rules(self) -> None:
        """Totals, which are points of order."""
        self.load <= self.claim.group(["worker"], agg.count())  # noqa: B015 - a rule
        self.busiest <= self.load.group([], agg.max("n"))  # noqa: B015 - a rule


GOSSIP = """
    persist[know, 2];
    know(N, F) :- tell(N, F);
    know(M, F)@async :- know(N, F), link(N, M);
    quiet(N) :- link(N, _), !know(N, "news");
"""


def worker(ds: Ref, number: int) -> None:
    """Takes each fifth job."""

    @during(ds, Job(capture(str), capture()))
    def job(id: str, kind: str) -> None:  # noqa: A002 - the field is called so
        if int(id.split()[1]) % 5 == (number + 1) % 5:
            assert_(ds, Claim(id, f"worker {number}"))


def alarms(ds: Ref) -> None:
    """An alarm for each room in which it is too hot."""

    @during(ds, Reading(capture(str), capture(float)))
    def reading(sensor: str, celsius: float) -> None:
        if celsius > 80:

            @during(ds, RoomOf(sensor, capture()))
            def room(name: str) -> None:
                assert_(ds, Alarm(name, f"{sensor} reads {celsius}"))


def sensors(ds: Ref) -> None:
    """Six of them, of which one reads too much."""
    numbers = count()
    for number in range(6):
        assert_(ds, RoomOf(f"sensor {number}", ["boiler", "hall", "attic"][number % 3]))
    assert_(ds, Reading("sensor 0", 93.5))

    def tick() -> None:
        number = next(numbers)
        after(2, assert_(ds, Reading(f"sensor {1 + number % 5}", 60.5 + number % 19)).retract)

    every(0.3, tick)


def jobs(ds: Ref) -> None:
    """Some that stay, and some that come and go."""
    numbers = count(100)
    for number in range(30):
        assert_(ds, Job(f"job {number}", "render"))

    def tick() -> None:
        number = next(numbers)
        after(3, assert_(ds, Job(f"job {number}", ["render", "mail", "index"][number % 3])).retract)
        send(ds, Record("beat", [number]))

    every(0.2, tick)


def billing(ds: Ref) -> None:
    """Waits for what nobody says."""
    on_asserted(ds, Record("invoice", [capture(), capture()]))(lambda customer, amount: None)


def boot() -> None:
    """All of it."""
    ds = dataspace("plant")
    for number in range(5):
        spawn(worker, ds, number, name=f"worker {number}")
    spawn(alarms, ds, name="alarms")
    spawn(lambda: during(ds, Alarm(capture(), capture()))(lambda room, text: None), name="siren")
    spawn(billing, ds, name="billing")
    spawn(sensors, ds, name="sensors")
    spawn(jobs, ds, name="jobs")
    circuit = Circuit()
    claims, work = circuit.source("claim"), circuit.source("job")
    both = work.index_with(lambda job: job[0]).join(
        claims.index_with(lambda claim: claim[0]), lambda job, what, who: (what[1], who[1])
    )
    circuit.sink("kinds", both.distinct())
    spawn(view(ds, circuit, inputs={"claim": Claim, "job": Job}, outputs={"kinds": None}), name="kinds by worker")
    spawn(host(Stats, ds, inputs={"claim": Claim}), name="stats")
    spawn(host(Program.parse(GOSSIP), ds, location="a", messages={"tell": ["tell", "a", capture()]}), name="gossip")
    assert_(dataspace("workshop"), Record("tool", ["hammer"]))


if __name__ == "__main__":
    run(boot, console=True)
