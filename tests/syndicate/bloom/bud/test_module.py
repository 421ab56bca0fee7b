"""Modules: programs that are mixed in and imported (Bud's tc_module, tc_inheritance, tc_interface)."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import pytest

from syndicate.bloom import Bloom, bloom, bootstrap, import_module, interface, scratch, table, temp, values
from syndicate.errors import BloomDeclaration
from tests.syndicate.bloom.bud.renewed import tick


class Copies(Bloom):
    """One table is copied to another."""

    t1, t2 = table(), table()

    @bootstrap
    def begin(self) -> None:
        """A row of its own."""
        self.t1 <= [(5, 10)]

    @bloom
    def rules(self) -> None:
        """All of it."""
        self.t2 <= self.t1

    def total(self) -> int:
        """Of the values of the first table."""
        return sum(row.val for row in self.t1)


def test_an_imported_program() -> None:
    """Its bootstrap runs, the importer gives it rows, block and method names do not clash, methods can be called."""

    class Importer(Bloom):
        p = import_module(Copies)
        t3 = table(*p.t2.schema)

        @bootstrap
        def begin(self) -> None:
            self.p.t2 <= [(200, 400)]
            self.p.t1 <= [(500, 1000)]

        @bloom
        def rules(self) -> None:
            self.t3 <= self.p.t2

        def sum_of_it(self) -> int:
            total: int = self.p.total()
            return total

    p = Importer()
    tick(p)
    assert sorted(p.t3) == [(5, 10), (200, 400), (500, 1000)]
    assert p.sum_of_it() == 1010


def test_imported_within_an_imported_program() -> None:
    """One program, imported here and below, is two; what is below is reached by its path."""

    class Middle(Bloom):
        p = import_module(Copies)
        t1, t2 = table(), table()

        @bootstrap
        def begin(self) -> None:
            self.t1 <= [(1000, 2000)]

        @bloom
        def rules(self) -> None:
            self.t2 <= self.t1.map(lambda t: (t.key + 7, t.val + 7))

    class Top(Bloom):
        c, p = import_module(Middle), import_module(Copies)
        t6 = table(c.p.t1.key_cols, c.p.t2.val_cols)
        t7, t8 = table(), table()

        @bootstrap
        def begin(self) -> None:
            self.c.t2 <= [(0, 0)]

        @bloom
        def rules(self) -> None:
            self.t6 <= self.c.p.t1
            self.t7 <= self.p.t2.map(lambda r: (r.key + 20, r.val + 20))
            self.t8 <= self.c.t2

    p = Top()
    tick(p)
    assert (set(p.t6), set(p.t7), set(p.t8)) == ({(5, 10)}, {(25, 30)}, {(0, 0), (1007, 2007)})
    p.p.t1 <= [(1, 1)]
    tick(p)
    assert (set(p.t6), set(p.t7)) == ({(5, 10)}, {(25, 30), (21, 21)})


def test_interfaces_of_an_imported_program() -> None:
    """Rows of bootstrap go in, come out, and are a table's of the importer."""

    class Passing(Bloom):
        given, out = interface("input"), interface("output")

        @bloom
        def rules(self) -> None:
            self.out <= self.given

    class User(Bloom):
        m = import_module(Passing)
        t = table()

        @bootstrap
        def begin(self) -> None:
            self.m.given <= [(35, 45)]

        @bloom
        def rules(self) -> None:
            self.t <= self.m.out

    p = User()
    tick(p)
    tick(p)
    assert list(p.t) == [(35, 45)]
    assert list(p.m.out) == []


def test_blocks_of_what_is_mixed_in() -> None:
    """Blocks of two names both count, one of the same name overrides; also in an imported program."""

    class One(Bloom):
        t1, t2, t3 = table(), table(), table()

        @bootstrap
        def first(self) -> None:
            self.t2 <= [(400, 500)]

        @bloom
        def rules(self) -> None:
            self.t1 <= self.t2

    class Two(Bloom):
        t1, t3 = table(), table()

        @bootstrap
        def second(self) -> None:
            self.t3 <= [(100, 200)]

        @bloom
        def more(self) -> None:
            self.t1 <= self.t3

    class Both(One, Two):
        pass

    p = Both()
    tick(p)
    assert set(p.t1) == {(100, 200), (400, 500)}

    class Other(One):
        @bloom
        def rules(self) -> None:
            self.t3 <= self.t2

    class User(Bloom):
        m = import_module(Other)

    user = User()
    user.run_bg()
    assert user.sync_do(lambda: None) is None
    assert user.sync_do(lambda: (list(user.m.t1), list(user.m.t3))) == ([], [(400, 500)])
    user.stop()


def test_state_is_declared_in_the_order_of_ancestors() -> None:
    """A class has columns of what its ancestors declare, whoever imports it."""

    class A1(Bloom):
        t1 = table(["a"], ["b"])

    class A2(Bloom):
        t2 = table(["c", "d"])

    class B(A1):
        t3 = table(*A1.t1.schema)

    class C(B, A2):
        t4, t5 = table(*A2.t2.schema), table(*B.t1.schema)

    class User(Bloom):
        m = import_module(C)

    p = User()
    tick(p)
    assert [p.collection(f"m.t{n}").schema for n in range(1, 6)] == [
        (("a",), ("b",)), (("c", "d"), ()), (("a",), ("b",)), (("c", "d"), ()), (("a",), ("b",)),
    ]  # fmt: skip


def test_rules_that_write_into_an_imported_program() -> None:
    """Also through one that is imported in turn, and of a class within a class."""

    class Outer:
        class Kept(Bloom):
            t1 = table()

            @bootstrap
            def begin(self) -> None:
                self.t1 <= [(30, 40)]

    class Writing(Bloom):
        m = import_module(Outer.Kept)
        t2 = table(*m.t1.schema)

        @bloom
        def logic(self) -> None:
            self.m.t1 <= self.t2

    class User(Bloom):
        t = import_module(Writing)
        z = table()

        @bootstrap
        def begin(self) -> None:
            self.t.t2 <= [(35, 70), (45, 90)]

        @bloom
        def rules(self) -> None:
            self.z <= self.t.m.t1

    p = User()
    tick(p)
    assert set(p.t.m.t1) == set(p.z) == {(30, 40), (35, 70), (45, 90)}


def test_a_class_without_a_name() -> None:
    """A program may be made of a mapping."""

    def rules(self: Any) -> None:
        self.t <= self.s

    p: Any = type("", (Bloom,), {"t": table(), "s": scratch(), "rules": bloom(rules)})()
    p.run_bg()
    p.sync_do(lambda: p.s <= [(5, 10)])
    assert list(p.t) == [(5, 10)]
    p.stop()


def test_temps_and_methods_of_what_is_imported_twice() -> None:
    """A temp belongs to the instance, and a rule may call a method of its program."""

    class Moves(Bloom):
        t1, t2, t4 = table(), table(), table()
        t3 = temp()

        def one(self) -> int:
            """A constant."""
            return 1

        @bloom
        def rules(self) -> None:
            self.t3 <= self.t1.map(lambda t: (t.key + 20, t.val + 20))
            self.t2 <= self.t3.map(lambda t: (t[0] + 10, t[1] + 10))
            self.t4 <= [(self.one(), self.one() + 10)]

    class User(Bloom):
        m1, m2 = import_module(Moves), import_module(Moves)

        @bootstrap
        def begin(self) -> None:
            self.m1.t1 <= [(10, 10)]
            self.m2.t1 <= [(20, 20)]

    p = User()
    tick(p)
    assert (list(p.m1.t2), list(p.m2.t2)) == ([(40, 40)], [(50, 50)])
    assert (list(p.m1.t4), list(p.m2.t4)) == ([(1, 11)], [(1, 11)])


def collections() -> None:
    """Two under one name."""

    class C(Bloom):
        t = table(["a"])
        t = table(["b"])  # noqa: PIE794  # the mistake


def blocks() -> None:
    """The rules of the first would be gone."""

    class C(Bloom):
        @bloom
        def rules(self) -> None:
            """First."""

        @bloom  # type: ignore[no-redef]  # the mistake
        def rules(self) -> None:  # noqa: F811
            """Second."""


def boots() -> None:
    """So would the rows."""

    class C(Bloom):
        @bootstrap
        def begin(self) -> None:
            """First."""

        def begin(self) -> None:  # type: ignore[no-redef]  # noqa: F811
            """Second."""


def modules() -> None:
    """One after the other."""

    class C(Bloom):
        p = import_module(Copies)
        p = import_module(Copies)  # noqa: PIE794  # the mistake


def named() -> None:
    """By what gives it a name."""

    class C(Bloom):
        p = import_module(Copies)
        import_module(Copies, as_name="p")


def method() -> None:
    """A module in the place of a method."""

    class C(Bloom):
        def foo(self) -> None:
            """Something else."""

        foo = import_module(Copies)  # type: ignore[assignment]  # noqa: F811


def no_program() -> None:
    """A class without rules."""

    class Plain:
        """Is none."""

    import_module(Plain)


TWICE = [collections, blocks, boots, modules, named, method]


@pytest.mark.parametrize("write", TWICE, ids=lambda write: write.__name__)
def test_one_name_twice(write: Any) -> None:
    """It is reported where the second is written, and not found out when the first is missed."""
    with pytest.raises(BloomDeclaration, match=r"test_module\.py:\d+: \w+ is there already in this class"):
        write()
    with pytest.raises(BloomDeclaration, match="takes a class of rules"):
        no_program()


class Sized(Protocol):
    """What has a size."""

    def size(self) -> int:
        """Of it."""
        ...


def test_programs_that_are_abstract_and_follow_protocols() -> None:
    """As any class may: what is abstract makes no instance."""

    class Abstract(Bloom, Sized, ABC):
        t = table()

        @abstractmethod
        def size(self) -> int:
            """To be reported."""

    class Whole(Abstract):
        def size(self) -> int:
            return len(self.t)

    with pytest.raises(TypeError, match="abstract"):
        Abstract()  # type: ignore[abstract]  # the mistake
    p = Whole()
    tick(p, t=[(1, 2)])
    assert (p.size(), isinstance(p, Bloom), isinstance(3, Bloom)) == (1, True, False)


def test_methods_of_ancestors_of_ancestors() -> None:
    """Methods alone make a program that can be imported."""

    class Methods(Bloom):
        def double(self, n: int) -> int:
            """Of a number."""
            return 2 * n

    class Nearer(Methods):
        pass

    class User(Bloom):
        e = import_module(type("Nearest", (Nearer,), {}))
        t = table(["n"])

        @bloom
        def rules(self) -> None:
            self.t <= values((1,), (2,)).map(lambda r: (self.e.double(r.c0),))

    p = User()
    tick(p)
    assert set(p.t) == {(2,), (4,)}


class Root(Bloom):
    """A table."""

    t = table(["k"])


class Imports(Bloom):
    """Imports it."""

    r = import_module(Root)

    @bootstrap
    def first(self) -> None:
        """A row."""
        self.r.t <= [(5,)]


class Includes(Imports):
    """Has what its ancestor imports."""

    @bootstrap
    def second(self) -> None:
        """Another."""
        self.r.t <= [(10,)]


def test_what_an_ancestor_imports() -> None:
    """It is the class's own, under its name, also when that is imported."""

    class User(Includes):
        copy = table(*Includes.r.t.schema)

        @bootstrap
        def third(self) -> None:
            self.r.t <= [(15,)]

        @bloom
        def rules(self) -> None:
            self.copy <= self.r.t

    p = User()
    tick(p)
    assert set(p.copy) == {(5,), (10,), (15,)}

    class Via(Bloom):
        i = import_module(Includes)
        copy = table(*i.r.t.schema)

        @bootstrap
        def fourth(self) -> None:
            self.i.r.t <= [(25,)]

        @bloom
        def rules(self) -> None:
            self.copy <= self.i.r.t

    q = Via()
    tick(q)
    assert set(q.copy) == {(5,), (10,), (25,)}


def test_joins_in_an_imported_program_and_with_it() -> None:
    """Of three by qualified columns, of two in all forms, of a collection of ours and one below."""

    class Joining(Bloom):
        t1, t2, t3 = table(), table(), table()
        three = scratch(["a", "b", "c", "d", "e", "f"])
        sums, lefts, rights = table(), table(), table()

        @bloom
        def rules(self) -> None:
            t1, t2, t3 = self.t1, self.t2, self.t3
            self.three <= (t1 * t2 * t3).combos(t1.key == t2.val, t2.key == t3.val, lambda a, b, c: (*a, *b, *c))
            self.sums <= (t1 * t2).pairs("key", lambda x, y: (x.key, x.val + y.val))
            self.lefts <= (t1 * t2).lefts("key")
            self.rights <= (t1 * t2).rights("key")

    class User(Bloom):
        n = import_module(Joining)
        three = scratch(*n.three.schema)
        seen, mine, both, right = scratch(["what", "k", "v"]), table(), table(), table()

        @bloom
        def rules(self) -> None:
            self.three <= self.n.three
            self.seen <= self.n.sums.map(lambda r: ("sums", *r))
            self.seen <= self.n.lefts.map(lambda r: ("lefts", *r))
            self.seen <= self.n.rights.map(lambda r: ("rights", *r))
            self.both <= (self.mine * self.n.t1).pairs(("key", "key"), lambda a, b: (a.val, b.key))
            self.right <= (self.mine * self.n.t1).rights(("key", "key"), lambda b: (b.key, 3))

    p = User()
    inputs = {"t1": [(10, 20), (3, 4), (7, 8)], "t2": [(50, 10), (3, 11), (11, 20)], "t3": [(99, 50), (1, 4)]}
    for name, rows in inputs.items():
        p.collection(f"n.{name}").insert(rows)
    tick(p, mine=[(3, 10), (6, 11)])
    assert set(p.three) == {(10, 20, 50, 10, 99, 50)}
    assert set(p.seen) == {("sums", 3, 15), ("lefts", 3, 4), ("rights", 3, 11)}
    assert (set(p.both), set(p.right)) == ({(10, 3)}, {(3, 3)})
    p.n.t2.delete([(50, 10)])
    p.n.t1.delete([(3, 4)])
    tick(p)
    assert list(p.three) == []


def test_members_who_are_refused() -> None:
    """A protocol of interfaces, served by a class: an answer to each request, for one tick."""

    class Protocol(Bloom):
        add, result = interface("input", ["id"], ["name", "addr"]), interface("output", ["id"], ["ok"])
        member = table(["name"], ["addr"])

    class Selective(Protocol):
        bad = table(["name"])
        good = scratch(*Protocol.add.schema)

        @bootstrap
        def begin(self) -> None:
            self.bad <= [("foo",), ("bar",)]

        @bloom
        def rules(self) -> None:
            self.good <= self.add.notin(self.bad, "name")
            self.member <= self.good.map(lambda m: (m.name, m.addr))
            self.result <= self.good.map(lambda m: (m.id, True))
            self.result <= self.add.notin(self.good).map(lambda m: (m.id, False))

    p = Selective()
    seen = []
    for rows in ([(1, "quux", "a")], [], [(2, "foo", "a"), (3, "baz", "b")]):
        tick(p, add=rows)
        seen.append(set(p.result))
    assert seen == [{(1, True)}, set(), {(2, False), (3, True)}]
    assert set(p.member) == {("quux", "a"), ("baz", "b")}


def test_bootstraps_of_all_ancestors() -> None:
    """A block is overridden, a bootstrap is added to, of mixins as well."""

    class Mixed(Bloom):
        booted = table()

        @bootstrap
        def begin(self) -> None:
            self.booted <= [(25, 50)]

    class Parent(Mixed):
        t = table()

        @bootstrap
        def begin(self) -> None:
            self.booted <= [(5, 10)]

        @bloom
        def bundle(self) -> None:
            self.t <= [(2, "a")]

    class Child(Parent):
        @bootstrap
        def begin(self) -> None:
            self.booted <= [(10, 20)]

        @bloom
        def bundle(self) -> None:
            self.t <= [(2, "b")]

    for cls, letter, booted in ((Parent, "a", {(5, 10), (25, 50)}), (Child, "b", {(5, 10), (10, 20), (25, 50)})):
        p = cls()
        tick(p)
        assert (set(p.t), set(p.booted)) == ({(2, letter)}, booted)
