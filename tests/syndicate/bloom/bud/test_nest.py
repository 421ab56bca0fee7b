"""Collections as column values: rows in a row, taken apart and put together (Bud's tc_nest)."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random
from typing import Any

import pytest

from syndicate.bloom import Bloom, agg, bloom, bootstrap, lmax, scratch, table, values
from syndicate.errors import SyndicateError, Unstratifiable


class Clubs(Bloom):
    """Members with their hobbies, as one row each and as a row for each hobby; and a catalogue of the tables."""

    member = table(["id"], ["name", "hobbies"])
    club = table(["hobby"], ["place"])
    single = scratch(["id", "name", "hobby"], [])
    again = scratch(["id", "name"], ["hobbies"])
    pairs = scratch(["id"], ["hobbies"])
    catalogue = scratch(["name"], ["rows"])
    found = scratch(["name", "hobbies"], [])

    @bloom
    def apart_and_together(self) -> None:
        """A row for each hobby; of these, one row for each member again."""
        self.single <= self.member.flat_map(lambda m: [(m.id, m.name, h) for h in m.hobbies])
        self.again <= self.single.group(["id", "name"], agg.accum("hobby"))
        self.pairs <= self.single.group(["id"], agg.accum("name", "hobby"))

    @bloom
    def whole(self) -> None:
        """Whole collections in rows, and their rows looked for there."""
        self.catalogue <= [("member", self.member), ("club", self.club)]
        self.found <= self.catalogue.filter(lambda c: c.name == "member").flat_map(
            lambda c: [(name, hobbies) for _, name, hobbies in c.rows]
        )


def test_nest_and_unnest() -> None:
    """A list in a column is taken apart and put together; a collection in a column has its rows."""
    p = Clubs()
    p.member <= [(7, "ida", ["chess", "tea"]), (8, "kai", ["tea"])]
    p.club <= [("tea", "north")]
    p.tick()
    assert set(p.single) == {(7, "ida", "chess"), (7, "ida", "tea"), (8, "kai", "tea")}
    assert set(p.again) == {(7, "ida", frozenset({"chess", "tea"})), (8, "kai", frozenset({"tea"}))}
    assert set(p.pairs) == {
        (7, frozenset({("ida", "chess"), ("ida", "tea")})), (8, frozenset({("kai", "tea")})),
    }  # fmt: skip
    assert set(p.found) == {("ida", ("chess", "tea")), ("kai", ("tea",))}
    assert p.catalogue["club"] == ("club", frozenset({("tea", "north")}))


def test_the_rows_follow() -> None:
    """What is nested is what the collection is in that tick, also when it is empty."""
    p, rows, draw = Clubs(), set[tuple[int, str]](), random.Random(3)
    for _ in range(40):
        row = (draw.randrange(6), "x")
        (p.club.delete if row in rows else p.club.insert)([row])
        rows ^= {row}
        p.tick()
        assert p.catalogue["club"] == ("club", frozenset(rows))


def test_nested_in_a_join() -> None:
    """One row of one column, which is joined like any other; twice nested, too."""

    class Sizes(Bloom):
        a = table(["x"], ["y"])
        asked = scratch(["n"], [])
        size = scratch(["n", "size"], [])
        deep = scratch(["all"], [])

        @bloom
        def rules(self) -> None:
            self.size <= (self.asked * self.a.nested()).pairs(lambda q, all_: (q.n, len(all_.rows)))
            self.deep <= self.a.filter(lambda r: r.x > 1).nested().nested()

    p = Sizes()
    p.asked <= [(1,)]
    p.tick()
    assert (list(p.size), list(p.deep)) == ([(1, 0)], [(frozenset({(frozenset(),)}),)])
    p.asked <= [(1,)]
    p.a <= [(1, "p"), (2, True), (3, 1)]
    p.tick()
    assert (list(p.size), list(p.deep)) == ([(1, 3)], [(frozenset({(frozenset({(2, True), (3, 1)}),)}),)])


def test_a_lattice_in_a_literal_row() -> None:
    """A row that holds a variable follows what that is: Bud's ``t <= [["m1", m1]]``, which is monotone."""

    class Held(Bloom):
        n = scratch(["n"], [])
        even, odd = lmax(), lmax()
        t = table(["name"], ["most"])
        over = scratch(["name"], ["yes"])

        @bloom
        def rules(self) -> None:
            self.t <= [("even", self.even), ("odd", self.odd)]
            self.over <= values(("even", self.even.gt(10)), ("odd", 1))
            self.even <= self.n.map(lambda r: r.n if r.n % 2 == 0 else None)
            self.odd <= self.n.map(lambda r: r.n if r.n % 2 else None)

    p = Held()
    assert {p.stratum(name) for name in ("n", "even", "odd", "t")} == {0}
    for inputs, even, odd in (([5, 10, 7, 13], 10, 13), ([1, 2], 10, 13), ([15, 16, 17], 16, 17)):
        p.n <= [(n,) for n in inputs]
        p.tick()
        assert {row.name: row.most.reveal() for row in p.t} == {"even": even, "odd": odd}
        assert {row.name: getattr(row.yes, "reveal", lambda: 1)() for row in p.over} == {"even": even > 10, "odd": 1}


class Wrong(Bloom):
    """What a collection cannot be put into."""

    a = table(["x"], ["y"])
    t = table(["x"], ["y"])


def _from_outside(p: Wrong) -> None:
    p.t <= [(1, p.a)]


def _in_bootstrap(p: Wrong) -> None:
    class Booted(Wrong):
        @bootstrap
        def start(self) -> None:
            self.t <= [(1, self.a)]

    Booted()


def _in_a_function(p: Wrong) -> None:
    class Mapped(Wrong):
        @bloom
        def rules(self) -> None:
            self.t <= self.a.map(lambda r: (r.x, self.a))

    instance = Mapped()
    instance.a <= [(1, 2)]
    instance.tick()


@pytest.mark.parametrize("mistake", [_from_outside, _in_bootstrap, _in_a_function])
def test_where_it_cannot_follow(mistake: Any) -> None:
    """A collection is no value: where no rule follows it, it is refused, with the place and the remedy."""
    with pytest.raises(SyndicateError, match=r"cannot be an element .* write frozenset\(\.\.\.\)") as caught:
        mistake(Wrong())
    assert f"{__file__}:" in str(caught.value)


def test_a_collection_in_itself() -> None:
    """Is a cycle that is not monotone."""

    class Snake(Wrong):
        @bloom
        def rules(self) -> None:
            self.t <= [(1, self.t)]

    with pytest.raises(Unstratifiable, match="t depends on itself"):
        Snake()


def test_why_a_row_with_rows_is_there() -> None:
    """Asked by its key, though the row is one that no dictionary tells apart by itself."""
    p = Clubs()
    p.club <= [("tea", True)]
    p.tick()
    assert p.why("catalogue", ("club",)).rule is p.statements[3]
    assert p.why("club", ("tea",)).how == "outside"
