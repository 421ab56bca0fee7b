"""What random systems of rules say, in the order in which they say it: for a comparison with another process.

Bloom programs, with lattices and without, locations of a Dedalus program, and views of circuits in a dataspace, each
made from its seed alone.  ``python -m tests.orders 0 20`` prints a line for each system.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any, Final

from syndicate import Ref, assert_, capture, current_facet, dataspace, prevent_inert_check, record, spawn
from syndicate.errors import SyndicateError, Unstratifiable
from syndicate.testing import Seen, settled, watch
from syndicate.views import view
from tests.syndicate.bloom import lattice_programs, programs, test_lattice_oracle, test_oracle
from tests.syndicate.dedalus.live.test_location import HEADS, live, world
from tests.syndicate.flow.test_columnar import circuit


@record
class Given:
    source: str
    one: Any
    other: Any


def _ticks(p: Any, inputs: Callable[[random.Random], dict[tuple[str, str], Any]], rng: random.Random) -> list[Any]:
    """What a Bloom program sends and holds, tick by tick."""
    said: list[Any] = []
    for _ in range(8):
        for (name, op), rows in inputs(rng).items():
            one = p.collection(name)
            {"<+": one.insert, "<-": one.delete, "<+-": one.upsert}[op](rows)
        try:
            p.tick()
        except SyndicateError as error:
            said.append(str(error))
            p.discard()
        said.append([row for _, _, row in p.sent])
        p.sent.clear()
        said.append([(name, list(p.collection(name))) for name in programs.KINDS if hasattr(p, name)])
    return said


def bloom(seed: int) -> list[Any]:
    """A Bloom program of collections."""
    rng = random.Random(seed)
    try:
        p = programs.program(programs.random_rules(rng))(address="elsewhere")
    except Unstratifiable as error:
        return [str(error)]
    return _ticks(p, test_oracle.random_input, rng)


def lattices(seed: int) -> list[Any]:
    """A Bloom program with lattices."""
    rng = random.Random(seed)
    try:
        p = lattice_programs.program(lattice_programs.random_rules(rng), declared=True)(address="elsewhere")
    except Unstratifiable as error:
        return [str(error)]
    return _ticks(p, test_lattice_oracle.random_input, rng)


def dedalus(seed: int) -> list[Any]:
    """Three locations of a Dedalus program: their messages, and what each has seen."""
    rng = random.Random(seed)
    program = world(rng.sample(HEADS, rng.randrange(2, 9)))
    return [log.to_json() for log in live(program, rng, 50)]


VALUES: Final = (("a", "b", "c", "d"), (0, 1, 2, 3), ("a", 1, 2.5, b"x", True), (0.0, -0.0, 2, "z"))


def views(seed: int) -> list[Any]:
    """A circuit in a dataspace: what an observer hears of its outputs, turn by turn."""
    rng = random.Random(seed)
    one = circuit(rng)
    facets: list[Any] = []
    heard: list[Seen] = []

    def boot() -> None:
        ds = dataspace()
        prevent_inert_check()
        facets.append((current_facet(), ds))
        heard.append(watch(ds, capture()))
        inputs = {name: Given(name, capture(), capture()) for name in one.sources}
        spawn(view(ds, one, inputs, dict.fromkeys(one.sinks)))

    def shown(ds: Ref) -> None:
        kind, many = rng.choice(VALUES), rng.choice((4, 4, 40))
        for _ in range(rng.randrange(many)):
            if held and rng.random() < 0.4:
                held.pop(rng.randrange(len(held))).retract()
            else:
                held.append(assert_(ds, Given(rng.choice("ab"), rng.choice(kind), rng.choice(kind))))

    held: list[Any] = []
    said: list[Any] = []
    system = settled(boot)
    (facet, ds) = facets[0]
    for _ in range(6):
        facet.enter(lambda: shown(ds))
        system.drain()
        said.append([(mark, value) for mark, value in heard[0] if not isinstance(value, Given)])
        heard[0].clear()
    return said


SYSTEMS: Final = (bloom, lattices, dedalus, views)


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:3])
    for system in SYSTEMS:
        for each in range(first, first + count):
            print(system.__name__, each, system(each))
