"""Seals: what a program promises of its input lifts points of order, and a broken promise ends the tick."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from syndicate.bloom import Bloom, agg, bloom, channel, const, lset, scratch, seal, table
from syndicate.errors import BloomDeclaration, RowMisfit

Form = Callable[[Any], Any]
BY_DAY = ("day", "day")
FORMS: dict[str, Form] = {
    "a sum": lambda p: (p.sales * p.closed).lefts(BY_DAY).group(["day"], agg.sum("price")),
    "a sum by more": lambda p: (p.sales * p.closed).lefts(BY_DAY).group(["day", "number"], agg.sum("price")),
    "a sum by another column": lambda p: (p.sales * p.closed).lefts(BY_DAY).group(["number"], agg.sum("price")),
    "a sum of all": lambda p: (p.sales * p.closed).lefts(BY_DAY).group([], agg.count()),
    "a sum that nothing seals": lambda p: p.sales.group(["day"], agg.sum("price")),
    "the greatest": lambda p: (p.sales * p.closed).lefts(BY_DAY).argmax(["day"], "price"),
    "by a message": lambda p: (p.sales * p.closing).lefts(BY_DAY).group(["day"], agg.sum("price")),
    "as pairs": lambda p: (
        (p.sales * p.closed).pairs(BY_DAY, lambda s, c: (c.day, s.price)).group(["day"], agg.sum("price"))
    ),
    "some": lambda p: (p.sales * p.closed).lefts(BY_DAY).filter(lambda s: s.price > 1).group(["day"], agg.sum("price")),
    "the wrong column": lambda p: (p.sales * p.closed).lefts(("number", "day")).group(["day"], agg.sum("price")),
    "not sold": lambda p: (p.wanted * p.closed).lefts(BY_DAY).notin(p.sales, BY_DAY),
    "not sold at this price": lambda p: (p.wanted * p.closed).lefts(BY_DAY).notin(p.sales, BY_DAY, ("price", "price")),
    "not sold at this price on any day": lambda p: (
        (p.wanted * p.closed).lefts(BY_DAY).notin(p.sales, ("price", "price"))
    ),
    "not sold, never sealed": lambda p: p.wanted.notin(p.sales, BY_DAY),
    "not sold, by a message": lambda p: (p.wanted * p.closing).lefts(BY_DAY).notin(p.sales, BY_DAY),
    "sold and not wanted": lambda p: (p.sales * p.closed).lefts(BY_DAY).notin(p.wanted, BY_DAY),
    "with what is fixed": lambda p: (
        ((p.sales * p.closed).lefts(BY_DAY) * p.rates).lefts(("day", "day")).group(["day"], agg.sum("price"))
    ),
    "with what grows": lambda p: (
        ((p.sales * p.closed).lefts(BY_DAY) * p.wanted).lefts(BY_DAY).group(["day"], agg.sum("price"))
    ),
    "rows as they pass": lambda p: (p.sales * p.closing).lefts(BY_DAY),
}
"""Rules over what is sealed and what is not."""
LIFTED = {
    *("a sum", "a sum by more", "the greatest", "by a message", "as pairs", "some", "not sold"),
    *("not sold at this price", "with what is fixed", "rows as they pass"),
}
"""Those that a seal by days makes confluent; the others must see more than the rows of one day."""


def shop(form: Form, *, sealed: bool) -> type[Bloom]:
    """A program with one rule; that what is closed is closed is promised, or it is not."""

    class Shop(Bloom):
        sold = channel(["@to", "day", "number"], ["price"])
        asked = channel(["@to", "day", "price"], [])
        closing = channel(["@to", "day"], [])
        sales = table(["day", "number"], ["price"])
        wanted = table(["day", "price"], [])
        closed = table(["day"], [])
        rates = const(["day"], [], rows=[(0,), (1,)])
        out = table(["a", "b", "c"], [])
        if sealed:
            by_row = seal(sales, closed)
            by_message = seal(sales, closing, ["day"])

        @bloom
        def rules(self) -> None:
            self.sales <= self.sold.payloads()
            self.wanted <= self.asked.payloads()
            self.closed <= self.closing.payloads()
            self.out <= form(self).map(lambda *row: (*row[0], None, None)[:3], columns=["a", "b", "c"])

    return Shop


def ended(kind: type[Bloom], seed: int, order: int) -> set[Any]:
    """What comes of the same messages in one order of many: of each day what is sold comes before it is closed."""
    rng = random.Random(seed)
    sold = [("sold", ("localhost", rng.randrange(3), number, rng.randrange(1, 4))) for number in range(6)]
    asked = [("asked", ("localhost", rng.randrange(3), rng.randrange(1, 4))) for _ in range(4)]
    rng = random.Random(order)
    coming = [*sold, *asked]
    coming += [one for one in coming if rng.random() < 0.3]
    rng.shuffle(coming)
    for day in range(3):
        last = max((at for at, (name, row) in enumerate(coming) if name == "sold" and row[1] == day), default=-1)
        for _ in range(rng.randrange(1, 3)):
            coming.insert(rng.randint(last + 1, len(coming)), ("closing", ("localhost", day)))
    program = kind()
    for name, row in coming:
        program.deliver(name, [row])
        if rng.random() < 0.6:
            program.tick()
    program.run()
    return set(program.collection("out"))


@pytest.mark.parametrize("name", FORMS)
def test_a_seal_lifts_what_must_see_all_of_a_day(name: str) -> None:
    """And nothing else: what is said to be confluent is so in all orders that keep the promise."""
    kind = shop(FORMS[name], sealed=True)
    verdict = kind().calm()["out"].verdict
    assert (verdict == "confluent") is (name in LIFTED)
    assert shop(FORMS[name], sealed=False)().calm()["out"].verdict == "diffluent"
    if name in LIFTED:
        for seed in range(8):
            assert len({frozenset(ended(kind, seed, order)) for order in range(12)}) == 1


def test_what_no_seal_lifts_does_differ() -> None:
    """The orders above are such that those differ; not each of them must."""
    differing = Counter[str]()
    for name in FORMS.keys() - LIFTED:
        kind = shop(FORMS[name], sealed=True)
        differing[name] += sum(
            len({frozenset(ended(kind, seed, order)) for order in range(8)}) > 1 for seed in range(6)
        )
    assert sum(1 for count in differing.values() if count) >= 6


def test_a_broken_seal() -> None:
    """Ends the tick, whether a row comes or goes; the rest is as before, and other days go on."""
    kind = shop(FORMS["a sum"], sealed=True)
    program = kind()
    program.deliver("sold", [("localhost", 0, 1, 5)])
    program.deliver("closing", [("localhost", 0)])
    program.tick()
    program.deliver("sold", [("localhost", 0, 2, 7)])
    with pytest.raises(RowMisfit, match=r"sales is sealed for day = 0, by closed, and \(0, 2, 7\) comes after that"):
        program.tick()
    program.discard()
    program.deliver("sold", [("localhost", 1, 2, 7), ("localhost", 0, 1, 5)])  # the same row again is no row more
    program.tick()
    assert set(program.collection("sales")) == {(0, 1, 5), (1, 2, 7)}
    program.collection("sales").delete([(0, 1, 5)])
    with pytest.raises(RowMisfit, match="goes after that"):
        program.tick()


def test_a_seal_of_the_whole_table() -> None:
    """Without columns, any row says that all is there."""

    class Census(Bloom):
        person = table(["name"], [])
        done = scratch(["why"], [])
        count = table(["many"], [])
        all_of_them = seal(person, done, [])

        @bloom
        def rules(self) -> None:
            self.count <= (self.person * self.done).lefts().group([], agg.count())

    census = Census()
    assert census.calm()["count"].verdict == "confluent"
    assert "person is complete once done says so" in str(census.calm())
    census.person <= [("ann",), ("bob",)]
    census.done <= [("night",)]
    census.tick()
    assert list(census.count) == [(2,)]
    census.person <= [("cid",)]
    with pytest.raises(RowMisfit, match="person is sealed, by done"):
        census.tick()


def test_a_rule_that_deletes_makes_a_seal_worthless() -> None:
    """To the analysis: rows of the table go by the program's own rules."""

    class Leaky(shop(FORMS["a sum"], sealed=True)):  # type: ignore[misc]
        @bloom
        def leak(self) -> None:
            self.sales < -self.wanted.map(lambda w: (w.day, 0, w.price))

    assert Leaky().calm()["out"].verdict == "diffluent"


@pytest.mark.parametrize(
    ("instance", "why"),
    [
        (lambda: seal(scratch(["a"]), table(["a"])), "what is sealed is a table"),
        (lambda: seal(table(["a"]), table(["b"])), "have no column of one name"),
        (lambda: seal(table(["a"]), table(["b"]), [("a", "c")]), "there is no column 'c'"),
        (lambda: seal(table(["a"], ["v"], v=lset), table(["a"])), "two collections of plain rows"),
        (lambda: seal(table(["a"]), "b"), "two collections of plain rows"),
    ],
)
def test_mistakes(instance: Callable[[], object], why: str) -> None:
    """Each names the line and what would do."""
    with pytest.raises(BloomDeclaration, match=why):
        instance()


def test_a_seal_of_another_class() -> None:
    """Is about nothing that the program has."""
    elsewhere = table(["a"])

    class Odd(Bloom):
        own = table(["a"])
        odd = seal(own, elsewhere)

    with pytest.raises(BloomDeclaration, match="its own class"):
        Odd()
