"""Collections: keys, columns, deletion, what is given from outside (Bud's tc_collections), renewed at each tick."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from syndicate.bloom import (
    Bloom,
    bloom,
    bootstrap,
    channel,
    coll_expr,
    file_reader,
    import_module,
    loopback,
    periodic,
    scratch,
    stdio,
    table,
    temp,
    values,
)
from syndicate.errors import BloomDeclaration, IllegalRule, KeyConflict, RowMisfit, SyndicateError
from tests.syndicate.bloom.bud.renewed import tick


class Kinds(Bloom):
    """A table and scratches, with rows of bootstrap and of the next tick."""

    passing, alone = scratch(["a", "b"], ["c", "d"]), scratch(["a", "b"])
    lasting = table(["a", "b"], ["c", "d"])
    keys_of, values_of = scratch(), scratch()

    @bootstrap
    def begin(self) -> None:
        """Some for each."""
        self.passing <= [("p", "q", 1, 2), ("p", "r", 3, 4)]
        self.alone <= [("p", "q")]
        self.lasting <= [("p", "q", 1, 2), ("x", "y", 9, 8)]

    @bloom
    def rules(self) -> None:
        """One comes, one goes."""
        self.passing < +values(("s", "t", 5, 6))
        self.lasting < +values(("s", "t", 5, 6))
        self.lasting < -values(("p", "q", 1, 2))
        self.keys_of <= self.lasting.keys()
        self.values_of <= self.lasting.values()


def test_what_lasts_and_what_does_not() -> None:
    """A scratch is emptied, a table keeps what is not deleted; rows are found by their key, and have columns."""
    p = Kinds()
    tick(p)
    assert (len(p.alone), set(p.alone)) == (1, {("p", "q")})
    row = p.passing["p", "q"]
    assert row is not None
    assert (row.a, row.c, row.d) == ("p", 1, 2)
    tick(p)
    assert list(p.passing) == [("s", "t", 5, 6)]
    assert list(p.alone) == []
    assert sorted(p.lasting) == [("s", "t", 5, 6), ("x", "y", 9, 8)]
    assert sorted(p.lasting, reverse=True) == [("x", "y", 9, 8), ("s", "t", 5, 6)]
    assert (sorted(p.keys_of), sorted(p.values_of)) == ([("s", "t"), ("x", "y")], [(5, 6), (9, 8)])


def redeclared() -> None:
    """A collection of another kind under the same name."""

    class Twice(Bloom):
        one = table()
        one = scratch()  # noqa: PIE794  # the mistake

    Twice()


def two_columns() -> None:
    """Of one name."""
    scratch(["same", "same"])


def hidden() -> None:
    """What every program has."""

    class Taken(Bloom):
        run = scratch(["x"])  # type: ignore[assignment]  # the mistake

    Taken()


def location() -> None:
    """Of what is not sent."""
    scratch(["@a"], ["b"])


MISDECLARED = [redeclared, two_columns, hidden, location]


@pytest.mark.parametrize("declare", MISDECLARED, ids=lambda declare: declare.__name__)
def test_what_cannot_be_declared(declare: Any) -> None:
    """It is reported when the class is written or made, with the line."""
    with pytest.raises(BloomDeclaration, match=r"test_collections\.py:\d+"):
        declare()


def test_two_rows_of_one_key() -> None:
    """Of two rules in one tick, of columns that another collection has by its schema, of a table without a key."""

    class Presidents(Bloom):
        year = scratch(["year"], ["name"])
        copied = scratch(*year.schema)
        pairs = scratch(["a", "b"])
        both = scratch(["year"])
        one = table([], ["a", "b"])

        @bloom
        def rules(self) -> None:
            self.year <= self.both.map(lambda r: (r.year, "one"))
            self.year <= self.both.map(lambda r: (r.year, "other"))
            self.copied <= self.pairs
            self.one <= self.one

    p = Presidents()
    assert p.copied.schema == (("year",), ("name",)) == p.year.schema
    with pytest.raises(KeyConflict, match="year: two rows"):
        tick(p, both=[(2000,)])
    p.discard()
    with pytest.raises(KeyConflict, match="copied: two rows"):
        tick(p, pairs=[(5, 10), (5, 11)])
    p.discard()
    assert not p.one.has_key()
    for _ in range(2):
        tick(p, one=[("x", 6)])
    assert p.one.has_key()
    assert ("x", 6) in p.one
    assert ("x", 7) not in p.one
    with pytest.raises(KeyConflict, match="one: two rows"):
        tick(p, one=[("y", 2)])
    assert list(p.one) == [("x", 6)]


def test_lines_of_a_file(tmp_path: Path) -> None:
    """They are there for a program that runs by itself, numbered from 0."""
    path = tmp_path / "text"
    path.write_text("a line\nthe Bloom of it\n\nanother\n")

    class Grep(Bloom):
        text = file_reader(path)
        matches, all_of_it = table(["n", "text"]), table(["n", "text"])

        @bloom
        def rules(self) -> None:
            self.all_of_it <= self.text
            self.matches <= self.text.filter(lambda line: "bloom" in line.text.lower())

    p = Grep()
    results: SimpleQueue[Any] = SimpleQueue()
    p.callback("matches", results.put)
    p.run_bg()
    assert results.get() == [(1, "the Bloom of it")]
    p.stop()
    assert len(p.all_of_it) == 4


def test_deletion_is_of_whole_rows() -> None:
    """A row of the same key and other values is left; so is what a function filters out; None is a value."""

    class Deleting(Bloom):
        t, gone = table(["k"], ["v"]), table(["k", "v"])
        loose, short = table(["a", "b"]), table(["a", "b"])

        @bootstrap
        def begin(self) -> None:
            self.t <= [(5, 10), (3, 4)]
            self.loose <= [((5, None),), (5, 10)]

        @bloom
        def rules(self) -> None:
            self.t < -self.gone.filter(lambda r: r.v != 4)
            self.loose < -self.short.map(lambda r: (r.a,))

    p = Deleting()
    tick(p)
    for row in ((5, 11), (3, 4)):
        tick(p, gone=[row])
        tick(p)
        assert sorted(p.t) == [(3, 4), (5, 10)]
    tick(p, gone=[(5, 10)])
    assert len(p.t) == 2
    tick(p)
    assert list(p.t) == [(3, 4)]
    tick(p, short=[((5, None), None)])
    assert len(p.loose) == 2
    tick(p)
    assert list(p.loose) == [(5, 10)]


def test_membership() -> None:
    """A row as a whole, or its key, is looked for in another table; a row has its columns, and no more."""

    class Members(Bloom):
        t1, t2 = table(["k"], ["v"]), table(["k"], ["v"])
        same, same_key = table(["k"], ["v"]), table(["k"], ["v"])

        @bloom
        def rules(self) -> None:
            self.same <= self.t1.exists(self.t2)
            self.same_key <= self.t1.exists(self.t2, "k")

    p = Members()
    tick(p, t1=[(5, 10), (6, 11)], t2=[(5, 10), (6, 15), (7, 12)])
    assert (set(p.same), set(p.same_key)) == ({(5, 10)}, {(5, 10), (6, 11)})
    assert [row for row in p.same_key if row == (5, 10, 15)] == []
    tick(p, t2=[(8, 1)], t1=[(8, 1)])
    assert set(p.same) == {(5, 10), (8, 1)}


@pytest.mark.parametrize("inputs", [True, [1, 2, 3], ["some", "text"], "text", 7, [(1, 2, 3)]])
@pytest.mark.parametrize("operator", ["<=", "<-"])
def test_what_is_no_row(inputs: Any, operator: str) -> None:
    """It is refused in a rule and from outside; a mapping is its pairs."""

    class Table(Bloom):
        t = table()

        @bloom
        def rules(self) -> None:
            if operator == "<=":
                self.t <= inputs
            else:
                self.t < -values(*inputs)

    with pytest.raises((SyndicateError, TypeError)):
        Table()

    class Outside(Bloom):
        t, s = table(), scratch(["v"])
        line = stdio()

        @bootstrap
        def begin(self) -> None:
            self.t <= {1: "a", 2: "b"}

        @bloom
        def rules(self) -> None:
            self.line < ~self.s.map(lambda s: "no row" if s.v else (1, 2, 3))

    p = Outside()
    with pytest.raises(RowMisfit):
        p.t <= inputs
    p.tick()
    assert set(p.t) == {(1, "a"), (2, "b")}
    for v in (True, False):
        with pytest.raises(RowMisfit, match=r"test_collections\.py:\d+"):
            tick(p, s=[(v,)])
        p.discard()


class Chained(Bloom):
    """What follows from a table in each tick."""

    t1, t2, t3 = table(), scratch(), scratch()
    s1, s2, s3 = scratch(["a", "b"]), scratch(["c", "d"]), scratch(["e", "f"])

    @bootstrap
    def begin(self) -> None:
        """One row."""
        self.t1 <= [(5, 10)]
        self.s1 <= [(1, 1)]

    @bloom
    def rules(self) -> None:
        """A step each; columns of other names go by their place."""
        self.t2 <= self.t1.map(lambda t: (t.key + 1, t.val + 1))
        self.t3 <= self.t2.map(lambda t: (t.key + 1, t.val + 1))
        self.s2 <= self.s1
        self.s3 <= self.s2


def test_derived_in_each_tick() -> None:
    """Scratches of a lasting table have their rows in each tick, by hand and in a program that runs by itself."""
    p = Chained()
    tick(p)
    assert set(p.s1) == set(p.s2) == set(p.s3) == {(1, 1)}
    tick(p)
    assert set(p.s3) == set()
    p.run_bg()
    for _ in range(2):
        assert p.sync_do(lambda: (list(p.t2), list(p.t3))) == ([(6, 11)], [(7, 12)])
    p.stop()


@pytest.mark.parametrize("name", ["timer", "lines"])
@pytest.mark.parametrize("op", ["<=", "<+", "<-", "<~"])
def test_what_nobody_writes(name: str, op: str) -> None:
    """A timer, and a terminal but by ``<~``, neither from outside nor in a rule."""

    class Writes(Bloom):
        timer, lines = periodic(), stdio()

    def write(p: Any) -> None:
        one, rows = p.collection(name), values(("a", 1)) if name == "timer" else values(("a",))
        {
            "<=": lambda: one <= rows,
            "<+": lambda: one < +rows,
            "<-": lambda: one < -rows,
            "<~": lambda: one < ~rows,
        }[op]()

    p = Writes()
    if (name, op) in (("lines", "<~"), ("lines", "<=")):  # a line that is given has been typed
        return
    with pytest.raises(IllegalRule, match=r"test_collections\.py:\d+"):
        write(p)
    with pytest.raises(IllegalRule, match=r"test_collections\.py:\d+"):
        type("Ruled", (Writes,), {"rules": bloom(write)})()


def test_other_names_of_columns() -> None:
    """Those of a rename are known to functions after it; a temp of it has a name of its own."""

    class Renamed(Bloom):
        t1, t2 = table(), temp()

        @bootstrap
        def begin(self) -> None:
            self.t1 <= [(1, 1), (1000, 1000)]

        @bloom
        def rules(self) -> None:
            self.t2 <= self.t1.rename(key="a", val="b").filter(lambda t: t.a < 1000)

    p = Renamed()
    tick(p)
    assert (p.t2.tabname, p.t2.cols, list(p.t2)) == ("t2", ("a", "b"), [(1, 1)])


def test_rows_are_tuples() -> None:
    """They are put together, compared, ordered and hashed as such."""

    class Longer(Bloom):
        t1, t3 = table(), table()
        t2, t4 = table(["a", "b", "c"]), table(["a", "b", "c", "d"])

        @bloom
        def rules(self) -> None:
            self.t2 <= self.t1.map(lambda t: (*t, 5))
            self.t2 <= self.t1.map(lambda t: (9, *t))
            self.t4 <= (self.t1 * self.t3).pairs(lambda x, y: x + y)

    p = Longer()
    tick(p, t1=[(5, 10), (6, 12)], t3=[(7, 8)])
    assert set(p.t2) == {(5, 10, 5), (6, 12, 5), (9, 5, 10), (9, 6, 12)}
    assert set(p.t4) == {(5, 10, 7, 8), (6, 12, 7, 8)}
    one, other = sorted(p.t1)
    assert one < other
    assert {one: 1, (5, 10): 2} == {one: 2}
    assert sorted([other, one]) == [(5, 10), (6, 12)]


def test_payloads_in_any_order() -> None:
    """The address may stand anywhere."""

    class Payloads(Bloom):
        last, middle = channel(["a", "b", "@to"]), channel(["a", "@to", "b"])
        t1, t2 = table(), table()

        @bloom
        def rules(self) -> None:
            self.t1 <= self.last.payloads()
            self.t2 <= self.middle.payloads()

    p = Payloads()
    p.run_bg()
    assert p.ask("last", [("x", "y", p.address)], "t1") == [("x", "y")]
    assert p.ask("middle", [("v", p.address, "w")], "t2") == [("v", "w")]
    p.stop()


def test_rows_of_another_length() -> None:
    """Too many columns are refused, from outside and from a function; what is missing is None."""

    class Lengths(Bloom):
        t, s = table(), scratch()
        one, two = scratch(["v"]), scratch(["v", "w"])

        @bloom
        def rules(self) -> None:
            self.t < +self.s.map(lambda s: (s.key,) * s.val)
            self.two <= self.one

    p = Lengths()
    with pytest.raises(RowMisfit, match=r"test_collections\.py:\d+"):
        p.t <= [(1, 5), (1, 2, 3)]
    with pytest.raises(RowMisfit, match=r"test_collections\.py:\d+"):
        tick(p, s=[(10, 3)])
    p.discard()
    tick(p, one=[(5,)], s=[(10, 1)])
    assert list(p.two) == [(5, None)]
    tick(p)
    assert list(p.t) == [(10, None)]

    class Wide(Lengths):
        @bloom
        def more(self) -> None:
            self.t <= self.s.map(lambda s: (s.key, s.key, s.val))

    with pytest.raises(IllegalRule, match="3 columns"):  # which is plain when the program is made
        Wide()


def test_the_tick_as_a_row() -> None:
    """A literal of each tick, and a function that is called in each."""

    class Clocks(Bloom):
        called, by_rule = table(["n"], ["text"]), table(["n"], ["text"])
        numbers = coll_expr(lambda: [(next(count), "hi")], ["n"], ["text"])

        @bloom
        def rules(self) -> None:
            self.called <= self.numbers
            self.by_rule <= self.now.map(lambda now: (now.tick, "hi"))

    count = iter(range(9))
    p = Clocks()
    p.tick(3)
    assert sorted(p.called) == sorted(p.by_rule) == [(0, "hi"), (1, "hi"), (2, "hi")]


def test_a_semijoin_over_ticks() -> None:
    """What comes late to both sides is found, and its text is of this tick."""

    class Sides(Bloom):
        l, r, res, text = scratch(), scratch(), scratch(), scratch(["v"])  # noqa: E741
        lefts, rights = table(), table()

        @bloom
        def rules(self) -> None:
            self.lefts <= self.l
            self.rights <= self.r
            self.res <= (self.lefts * self.rights).lefts("val")
            self.text <= self.res.inspected()

    p = Sides()
    assert {p.stratum(name) for name in ("l", "r", "lefts", "rights", "res", "text")} == {0}
    tick(p)
    tick(p, l=[(1, 2)], r=[(1, 2)])
    assert list(p.text) == [("(key=1, val=2)",)]
    tick(p)
    assert list(p.text) == [("(key=1, val=2)",)]


def test_numbered_rows() -> None:
    """With a function and without; outside, Python's own functions do it, and see the rows of this tick."""

    class Numbered(Bloom):
        s = scratch(["v"])
        nested, moved = table(["row", "at"]), table(["v", "at"])

        @bloom
        def rules(self) -> None:
            self.nested <= self.s.each_with_index()
            self.moved <= self.s.each_with_index(lambda row, at: (row.v, at + 100))

    p = Numbered()
    for v in (8, 9):
        tick(p, s=[(v,)])
        assert list(enumerate(p.s)) == [(0, (v,))]
    p.s <= [(12,)]  # is not there before the tick
    assert [row.v + 1 for row in p.s] == [10]
    assert set(p.nested) == {((8,), 0), ((9,), 0)}
    assert set(p.moved) == {(8, 100), (9, 100)}
    p.discard()
    tick(p, s=[(6,), (4,), (5,)])
    assert {row for row in p.nested if row.row[0] <= 6} == {((4,), 0), ((5,), 1), ((6,), 2)}
    assert {row for row in p.moved if row.v <= 6} == {(4, 100), (5, 101), (6, 102)}


def test_replaced_rows() -> None:
    """Both spellings replace the row of a key in the next tick."""

    class Replaced(Bloom):
        one, other, given = table(), table(), scratch()

        @bloom
        def rules(self) -> None:
            self.one < +-self.given
            self.other < -+self.given

    p = Replaced()
    tick(p, one=[(1, "a"), (2, "b")], other=[(1, "a")], given=[(1, "c")])
    assert (set(p.one), set(p.other)) == ({(1, "a"), (2, "b")}, {(1, "a")})
    tick(p)
    assert (set(p.one), set(p.other)) == ({(1, "c"), (2, "b")}, {(1, "c")})


def test_a_schema_of_another() -> None:
    """Columns are had from a collection of the class, of an ancestor, of an imported program; a temp has none yet."""

    class Links(Bloom):
        link = table(["from", "to"], ["cost"])
        wire = channel(["@to", "n"], ["v"])

    class Others(Links):
        imported = import_module(Links)
        path = table(*Links.link.schema)
        kept = scratch(*imported.wire.schema)
        mixed = table(path.key_cols, imported.wire.val_cols)
        beat = periodic()
        log = table(*beat.schema)
        loop = loopback(*log.schema)

    p = Others()
    assert p.path.schema == (("from", "to"), ("cost",))
    assert p.kept.schema == (("to", "n"), ("v",))
    assert p.mixed.schema == (("from", "to"), ("v",))
    assert p.loop.schema == (("key",), ("val",)) == p.log.schema
    with pytest.raises(BloomDeclaration, match=r"test_collections\.py:\d+: a temp without columns"):
        table(*temp().schema)
    with pytest.raises(BloomDeclaration, match=r"test_collections\.py:\d+: Links declares no collection lnk"):
        import_module(Links).lnk  # noqa: B018  # asked for
