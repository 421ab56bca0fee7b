"""How long the paths through the code are: the files and functions that a reader meets on the commonest of them.

Each is what is entered the second time, when what is made once, is made.  They are the same with native kernels: tables
of machine words are made where there is much, and the commonest is little.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from syndicate.bloom import Bloom, bloom, scratch, table
from syndicate.dedalus import Program
from tests.work import entered

DEDALUS = """
p(1)@1;
q(X) :- p(X);
p(X)@next :- p(X);
"""


def make() -> Bloom:
    """A class of one rule, and a program of it."""

    class Copy(Bloom):
        given = scratch(["a", "b"])
        kept = table(["a", "b"])

        @bloom
        def rules(self) -> None:
            self.kept <= self.given.map(lambda row: (row.a, row.b))  # noqa: B015

    return Copy()


def tick() -> dict[str, set[str]]:
    """A tick with a new row, of a program that has ticked before."""
    program = make()
    for row in range(4):
        program.collection("given").insert([(row, row)])
        program.tick()
    program.collection("given").insert([(4, 4)])
    return entered(program.tick)


def wiring() -> dict[str, set[str]]:
    """From a class body to a program that can tick."""
    make()
    return entered(make)


def dedalus() -> dict[str, set[str]]:
    """A run of a program that was read before."""
    Program.parse(DEDALUS).run(until=4)
    program = Program.parse(DEDALUS)
    return entered(lambda: program.run(until=4))


@pytest.mark.parametrize(
    ("path", "files", "functions"),
    [(tick, 9, 35), (wiring, 18, 135), (dedalus, 19, 114)],
)
def test_paths_are_no_longer_than(path: Callable[[], dict[str, set[str]]], files: int, functions: int) -> None:
    """The commonest paths: so many files and functions at most."""
    met = path()
    listed = "\n".join(f"{name}: {', '.join(sorted(names))}" for name, names in sorted(met.items()))
    assert len(met) <= files, listed
    assert sum(map(len, met.values())) <= functions, listed
