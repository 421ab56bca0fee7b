"""Programs made of others: overriding blocks, mixing in, importing."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import pytest

from syndicate.bloom import Bloom, bloom, bootstrap, import_module, interface, scratch, table
from syndicate.errors import BloomDeclaration


class Doubling(Bloom):
    """A module with an input and an output."""

    inp = interface("input", ["n"], [])
    out = interface("output", ["n"], [])

    @bloom
    def double(self) -> None:
        """Twice the number."""
        self.out <= self.inp.map(lambda r: (2 * r.n,))


def test_a_subclass_overrides_a_block() -> None:
    """A block of the same name replaces the ancestor's, an empty one removes it, super() adds to it."""

    class Tripling(Doubling):
        def double(self) -> None:
            self.out <= self.inp.map(lambda r: (3 * r.n,))

    class Nothing(Doubling):
        @bloom
        def double(self) -> None:
            pass

    class Both(Doubling):
        @bloom
        def double(self) -> None:
            super().double()
            self.out <= self.inp

    for cls, wanted in ((Doubling, [2]), (Tripling, [3]), (Nothing, []), (Both, [1, 2])):
        p = cls()
        p.inp <= [(1,)]
        p.tick()
        assert [row.n for row in sorted(p.out)] == wanted


def test_modules_within_modules() -> None:
    """Interfaces are where imported programs meet; the blocks of each keep to their own."""

    class Four(Bloom):
        inp = interface("input", ["n"], [])
        out = interface("output", ["n"], [])
        first = import_module(Doubling)
        second = import_module(Doubling)

        @bloom
        def double(self) -> None:
            self.first.inp <= self.inp
            self.second.inp <= self.first.out
            self.out <= self.second.out

    class Outer(Bloom):
        four = import_module(Four)

    p = Outer()
    p.four.inp <= [(5,)]
    p.tick()
    assert [row.n for row in p.four.out] == [20] == [row.n for row in p.collection("four.second.out")]
    assert [rule.block for rule in p.statements] == ["four.first.double", "four.second.double"] + ["four.double"] * 3
    with pytest.raises(BloomDeclaration, match="is for the program, not for its module four"):
        p.four.tick()


def test_all_bootstraps_run_ancestors_first() -> None:
    """A subclass's bootstrap does not replace its ancestor's."""

    class One(Bloom):
        t = table(["n"], [])

        @bootstrap
        def start(self) -> None:
            self.t <= [(1,)]

    class Two(One):
        @bootstrap
        def start(self) -> None:
            self.t <= [(2,)]

    p = Two()
    assert len(p.t) == 0
    p.tick()
    assert sorted(p.t) == [(1,), (2,)]


def test_refused_modules() -> None:
    """What has one name twice, or is no module, is refused."""
    with pytest.raises(BloomDeclaration, match="takes a class of rules"):
        import_module(int)

    class Clash(Doubling):
        out = table(["n"], [])

    with pytest.raises(BloomDeclaration, match="out is declared by Doubling already"):
        Clash()

    class Hidden(Doubling):
        def inp(self) -> None:  # type: ignore[override]
            """A method in place of a collection."""

    with pytest.raises(BloomDeclaration, match=r"Hidden\.inp hides the collection inp"):
        Hidden()

    class Taken(Bloom):
        tick = scratch(["n"], [])  # type: ignore[assignment]

    with pytest.raises(BloomDeclaration, match="cannot be called tick"):
        Taken()

    class Block(Bloom):
        @bloom
        def stratum(self) -> None:  # type: ignore[override]
            """A block in place of a method."""

    with pytest.raises(BloomDeclaration, match="block cannot be called stratum"):
        Block()

    class Attribute(Bloom):
        @bloom
        def send(self) -> None:  # type: ignore[override]
            """A block in place of what an instance has."""

    with pytest.raises(BloomDeclaration, match="block cannot be called send"):
        Attribute()


def test_an_interface_may_be_declared_again() -> None:
    """The same interface in a mixin and in the class is one."""

    class Same(Doubling):
        inp = interface("input", ["n"], [])

    p = Same()
    p.inp <= [(4,)]
    p.tick()
    assert list(p.out) == [(8,)]


def test_modules_share_the_clock_and_the_address() -> None:
    """`now`, `halt` and the address are those of the whole program."""

    class Ticker(Bloom):
        seen = table(["tick"], [])

        @bloom
        def watch(self) -> None:
            self.seen <= self.now.map(lambda n: (n.tick,))
            self.halt <= self.now.filter(lambda n: n.tick == 2).map(lambda n: ("done",))
            self.localtick < ~self.now.map(lambda n: (n.tick,))

    class Outer(Bloom):
        inner = import_module(Ticker)

    p = Outer(address="me")
    assert p.run() == 3
    assert sorted(row.tick for row in p.inner.seen) == [0, 1, 2]
    assert p.inner.address == "me"
    assert p.collection("halt") is p.inner.halt


class Checked(Doubling):
    """Puts itself before and after what it inherits."""

    inp = interface("input", ["n"], [])
    out = interface("output", ["n"], [])
    refused = table(["n"], [])

    @bloom
    def check(self) -> None:
        """Even numbers go in, and what comes out is sent with one more."""
        self.inp <= self.inp.filter(lambda r: r.n % 2 == 0)
        self.refused <= self.inp.filter(lambda r: r.n % 2)
        self.out <= self.out.map(lambda r: (r.n + 1,))


def ends(program: Bloom, *numbers: int) -> list[int]:
    """What comes out of an instance for what goes in."""
    program.collection("inp").insert([(n,) for n in numbers])
    program.tick()
    return [row.n for row in sorted(program.collection("out"))]


def test_logic_between_a_module_and_its_callers() -> None:
    """An input on the left, an output on the right are the ancestor's, where a class declares them again."""
    p = Checked()
    assert ends(p, 2, 3, 4) == [5, 9]
    assert sorted(p.refused) == [(3,)]
    assert sorted(p.collection("Doubling.inp")) == [(2,), (4,)]
    assert sorted(p.collection("Doubling.out")) == [(4,), (8,)]
    assert [(rule.head, [one.name for one in rule.reads()]) for rule in p.statements] == [
        ("Doubling.out", ["Doubling.inp"]),
        ("Doubling.inp", ["inp"]),
        ("refused", ["inp"]),
        ("out", ["Doubling.out"]),
    ]
    assert p.underspecified() == []


def test_each_class_between_sees_its_own() -> None:
    """A chain of classes, a block of an ancestor by super(), and one that is overridden without a mark."""

    class Negated(Checked):
        inp = interface("input", ["n"], [])

        def check(self) -> None:
            self.inp <= self.inp.map(lambda r: (-r.n,))

    class Twice(Checked):
        inp = interface("input", ["n"], [])
        seen = table(["n"], [])

        @bloom
        def check(self) -> None:
            super().check()
            self.inp <= self.inp.map(lambda r: (2 * r.n,))
            self.seen <= self.inp

    class User(Twice):
        heard = table(["n"], [])

        @bloom
        def use(self) -> None:
            self.heard <= self.inp

    p = Negated()
    assert ends(p, 3) == [-6]  # nothing of Checked is left, whose interfaces are those of Doubling then
    assert sorted(p.collection("Checked.inp")) == [(-3,)]
    q = User()
    assert ends(q, 3) == [13]
    assert (sorted(q.seen), sorted(q.heard)) == ([(3,)], [(3,)])
    assert sorted(q.collection("Checked.inp")) == sorted(q.collection("Doubling.inp")) == [(6,)]


def test_interposing_in_a_module() -> None:
    """An imported program's own interfaces are meant, and an importer that writes them interposes nothing."""

    class Outer(Bloom):
        inp = interface("input", ["n"], [])
        out = interface("output", ["n"], [])
        inner = import_module(Checked)

        @bloom
        def pass_on(self) -> None:
            self.inner.inp <= self.inp
            self.out <= self.inner.out

    p = Outer()
    assert ends(p, 2, 5) == [5]
    assert sorted(p.inner.inp) == [(2,), (5,)]
    assert sorted(p.collection("inner.Doubling.inp")) == [(2,)]
