"""A token ring: three stations share a line, and who has the token may use it.

The rules are a Dedalus program, ``token_ring.ded``.  Each of its locations is an actor, for which a timestep is 5 ms.
The token goes round as messages in the dataspace, so that the stations might as well be processes at a server:

    syndicate dedalus live examples/token_ring.ded --at a --connect tcp://127.0.0.1:8001 --every 1 --specification clash

A caller asserts ``Wants(station, name)``; the station asserts ``Holds(station, name)`` while it is the caller's turn.
When the wish has gone, the token goes on to the next station: so Carol comes before Adam, who has waited longer at A.

    $ python examples/token_ring.py
    Abel at a speaks
    Bob at b speaks
    Carol at c speaks
    Adam at a speaks
    all have spoken
"""

from pathlib import Path

from syndicate import Ref, after, assert_, dataspace, on_asserted, react, record, run, spawn, stop, stop_when
from syndicate.dedalus import Agent, Program

CALLERS = [("a", "Abel"), ("a", "Adam"), ("b", "Bob"), ("c", "Carol")]


@record("wants")
class Wants:
    """Asserted by a caller: the wish to use the line."""

    station: str
    name: str


@record("holds")
class Holds:
    """Asserted by a station: it is this caller's turn."""

    station: str
    name: str


def caller(ds: Ref, station: str, name: str) -> None:
    """Speak when it is the turn, and for a while."""
    wish = react(lambda: assert_(ds, Wants(station, name)))

    @on_asserted(ds, Holds(station, name))
    def speak() -> None:
        print(f"{name} at {station} speaks")
        after(0.05, lambda: wish.enter(stop))

    stop_when(ds, Holds(station, name), on="retracted")(lambda: None)


def boot() -> None:
    """The callers come first, and then the stations."""
    ds = dataspace()
    program = Program.load(Path(__file__).with_name("token_ring.ded"))
    for station, name in CALLERS:
        spawn(caller, ds, station, name)
    for station in ("a", "b", "c"):
        agent = Agent(
            program,
            station,
            inputs={"ring_want": Wants},
            outputs={"ring_hold": Holds},
            specification=["clash"],
            every=0.005,
        )
        spawn(agent, ds, daemon=True)


if __name__ == "__main__":
    run(boot)
    print("all have spoken")
