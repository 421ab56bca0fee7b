"""What is likely to be written wrongly in a program is reported with its file and line, what it is about, and a
remedy.
"""

# ruff: noqa: B015, F821  # the mistakes are the point
# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import syndicate
from syndicate.bloom import Bloom, agg, bloom, bootstrap, channel, lmax, lset, scratch, table, temp
from syndicate.errors import BloomDeclaration, SyndicateError
from syndicate.lattice import Max, Set


class Collections(Bloom):
    """Some of each kind."""

    a = table(["k", "v"], [])
    b = table(["k", "w"], [])
    t = table(["x", "y"], [])
    s = scratch(["x"], [])
    kv = table(["k"], ["v"])
    held = table(["k"], ["v"], v=lmax)
    wire = channel(["@to", "x"], [])
    free = temp()
    top = lmax()
    some = lset()


def run(block: Callable[[Any], object]) -> None:
    """Make a program with this block of rules, and let it tick."""
    program = type("Mistaken", (Collections,), {"rules": bloom(block)})()
    program.a.insert([(1, 2), (1, 3)])
    program.tick()


def failure(block: Callable[[Any], object]) -> str:
    """What is said about it."""
    with pytest.raises(SyndicateError) as caught:
        run(block)
    return str(caught.value)


def assigned(p: Any) -> None:
    """Instead of a rule."""
    p.t = p.a


def augmented(p: Any) -> None:
    """Instead of a rule."""
    p.t += p.a


def endless(p: Any) -> None:
    """Each row makes another."""
    p.t <= p.a.map(lambda r: (r.k, r.v + 1))
    p.a <= p.t


async def waiting(row: Any) -> Any:
    """Nobody would wait for it."""


def asked(p: Any) -> None:
    """Not a rule: Python decides it once."""
    if p.a.k == 3:
        p.t <= p.a


MISTAKES: list[tuple[Callable[[Any], object], list[str]]] = [
    (lambda p: p.t <= p.a.map(lambda r: (r.k, r.v, 1)), ["3 columns", "more than t has 2: x, y"]),
    (lambda p: p.s <= p.a, ["2 columns (k, v)", "more than s has 1: x"]),
    (lambda p: p.t <= (p.a * p.b).pairs(("k", "q")), ["no column 'q'", "'k', 'v', 'k', 'w'"]),
    (lambda p: p.t <= p.a.map(lambda r: (r.q, 1)), ["a has no column 'q'", "'k', 'v'"]),
    (lambda p: p.t <= p.a.notin(p.t), ["t depends on itself", "negation of t", "Break the cycle"]),
    (lambda p: p.t <= p.a.map(lambda r: (r.k / 0, 1)), ["ZeroDivisionError", "(k=1, v=2)"]),
    (lambda p: p.t <= p.a.map(lambda r: (r.k, Max(r.v))), ["t: the column y belongs to the key", "second list"]),
    (lambda p: p.t <= p.a.map(lambda r: (r.k, {1: 2})), ["t: a dict cannot be", "Remedy", "did not happen"]),
    (lambda p: p.wire <= p.a, ["wire is a channel", "<~"]),
    (lambda p: p.t < ~p.a, ["t is a table", "<=: in this tick", "<-: deleted"]),
    (lambda p: p.t < +p.a * +p.b, ["the sign + of <+ stands before the first factor"]),
    (lambda p: p.t < +p.a + p.b, ["no + of collections", "a rule for each"]),
    (lambda p: p.t <= p.a | p.b, ["no | of collections", "a rule for each"]),
    (lambda p: p.t <= p.a - p.b, ["no - of collections", "a.notin(b)"]),
    (lambda p: p.t << p.a, ["no << of collections", "<="]),
    (lambda p: t <= p.a, ["there is no t", "write self.t"]),
    (lambda p: p.tt <= p.a, ["there is no tt (did you mean 't'?)"]),
    (lambda p: p.t <= (p.a * p.b).pairs, ["pairs is a method", "call it"]),
    (lambda p: p.t <= p.a.payloads, ["payloads is a method", "call it"]),
    (assigned, ["t = ...", "t <= ... for a rule"]),
    (augmented, ["no + of collections", "a rule for each"]),
    (asked, ["a.k == 3", "a.filter(lambda row: row.k == 3)"]),
    (lambda p: p.t < p.a, ["t < is no operator", "<="]),
    (lambda p: p.t <= p.a.group(["k"], agg.count), ["agg.count is a function: call it"]),
    (lambda p: p.t <= p.a.map(lambda r: (r.k, "x" * r.v)).group(["c0"], agg.sum("c1")), ["t: its aggregate raised"]),
    (lambda p: p.held <= p.a.map(lambda r: (r.k, "x" * r.v)).group(["c0"], agg.sum("c1")), ["held: its aggregate"]),
    (lambda p: p.kv <= p.a, ["kv: two rows have the key k = 1", "<+-"]),
    (lambda p: p.s <= p.a.k, ["a.k is a column", "map(lambda row: (row.k,))"]),
    (endless, ["a and t did not come to rest within 10000 rounds", "bound them by a filter()"]),
    (lambda p: p.tick(), ["tick() is for a program that is made"]),
    (lambda p: p.t <= 3, ["3 holds no rows", "values((1, 2), ...)"]),
    (lambda p: p.t <= p.a <= p.b, ["a rule has no truth", "a statement of its own"]),
    (lambda p: p.top <= p.some, ["top is of the lattice lmax", "lset"]),
    (lambda p: p.top <= p.a.map(lambda r: Set([r.k])), ["top: cannot merge", "of one lattice"]),
    (lambda p: p.t <= (p.a * p.b).pairs("k", lambda r: (r.k, r.w)), ["takes (r)", "called with 2 rows, of a and b"]),
    (lambda p: p.t <= (p.a * p.b).pairs("k", lambda a, b, c: (1, 2)), ["takes (a, b, c)", "with 2 rows, of a and b"]),
    (lambda p: p.t <= (p.a * p.b).outer("k", lambda: (1, 2)), ["takes ()", "called with 2 rows, of a and b"]),
    (lambda p: p.t <= p.a.map(lambda a, *, z: (1, 2)), ["takes (a, *, z)", "called with a row of a"]),
    (lambda p: p.t <= p.a.map(tuple).map(lambda a, b: (a, b)), ["takes (a, b)", "called with a row"]),
    (lambda p: p.t <= p.a.map(tuple).map(lambda r: (r.c0, r.c7)), ["raised AttributeError", "c7", "(c0=1, c1=2)"]),
    (lambda p: p.s <= p.a.reduce([(0,)], lambda m: m), ["takes (m)", "called with a memo and a row"]),
    (lambda p: p.t <= p.a.each_with_index(lambda a: (a.k, 1)), ["takes (a)", "called with a row and its index"]),
    (lambda p: p.t <= p.a.each_with_index(key=lambda: 1), ["takes ()", "called with a row"]),
    (lambda p: p.s <= p.some.to_collection(lambda a, b: (a,)), ["takes (a, b)", "called with an element"]),
    (lambda p: p.t <= p.a.map(waiting), ["waiting is async"]),
    (lambda p: p.t <= p.a.filter(lambda r: r.v == p.top), ["compares top by ==", "gt_eq()"]),
    (lambda p: p.free <= p.a.rename(k="v"), ["the attribute 'v' is there twice"]),
    (lambda p: p.t <= p.a.map(lambda r: (1, 2), columns=["x", "x"]), ["the attribute 'x' is there twice"]),
    (lambda p: p.t <= p.a.map(lambda r: (1, 2), columns=["x", 3]), ["an attribute's name is a string"]),
    (lambda p: p.t <= p.free, ["free is read before a rule has given it columns"]),
    (lambda p: p.t <= [(1, p.a.k)], ["a Column cannot be an element", "a.k", "write a value"]),
    (lambda p: p.t <= [(1, p.a * p.b)], ["nested() is for one collection", "flatten()"]),
    (lambda p: p.t <= [(1, {})], ["a dict cannot be an element"]),
    (lambda p: p.t <= (p.a * p.b).pairs(p.a.k == p.b.k and "v"), ["a.k == b.k has no truth here"]),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes(number: int) -> None:
    """Each message has the place in this file, and what else it must say."""
    block, wanted = MISTAKES[number]
    text = failure(block)
    assert f"{__file__}:" in text
    assert [part for part in wanted if part not in text] == [], text


def subclasses(cls: type) -> Iterator[type]:
    """It, and all below it that say no more than a text."""
    if not issubclass(cls, ImportError):  # which is about what is installed, and no mistake in a block
        yield cls
    for one in cls.__subclasses__():
        yield from subclasses(one)


@pytest.mark.parametrize("mark", [bloom, bootstrap])
@pytest.mark.parametrize("cls", dict.fromkeys(subclasses(SyndicateError)), ids=lambda cls: cls.__name__)
def test_each_error_has_its_place_once(cls: type, mark: Any) -> None:
    """Whatever error the machinery raises in a block, in however deep a call, it names the user's own line."""
    inner: dict[str, Any] = {"cls": cls}
    source = "def fail():\n    raise cls('it cannot be')"
    exec(compile(source, f"{syndicate.__path__[0]}/plan/algebra.py", "exec"), inner)

    def block(p: Any) -> None:
        inner["fail"]()

    try:
        wanted = str(cls("it cannot be"))
    except Exception:
        pytest.skip("made of something else than a text")
    with pytest.raises(cls) as caught:
        type("Mistaken", (Collections,), {"rules": mark(block)})()
    line = block.__code__.co_firstlineno + 1
    assert str(caught.value) == f"{__file__}:{line}: {wanted}"


def test_rows_from_outside() -> None:
    """One row where several are wanted, and a collection overwritten."""
    program = Collections()
    with pytest.raises(SyndicateError, match=r"test_mistakes.py:\d+: a: \(1, 2\) is one row: give a list of rows"):
        program.a.insert((1, 2))
    with pytest.raises(SyndicateError, match=r"a.insert\(rows\) for rows from outside"):
        program.a = [(1, 2)]


def test_names_that_change_in_a_block() -> None:
    """A function sees the last value of a loop's name, whatever it was when the rule was made: it is reported."""

    def loop(p: Any) -> None:
        for n in (1, 2):
            p.t <= p.a.map(lambda r: (n, r.v + 0))  # noqa: B023  # the mistake

    def meant(p: Any) -> None:
        for n in (1, 2):
            p.t <= p.a.map(lambda r, n=n: (n, r.v + 0))
        for some in (p.a, p.b):
            sizes = [size, -1]
            p.s <= some.filter(lambda r: r.k in sizes).map(lambda r: (r.k,))  # noqa: B023  # the same list, made again

    size = 1
    text = failure(loop)
    assert f"{__file__}:" in text
    assert "uses n, which is another thing later in the block" in text
    assert "lambda row, n=n: ..." in text
    program = type("Meant", (Collections,), {"rules": bloom(meant)})()
    program.a.insert([(1, 2)])
    program.tick()
    assert (sorted(program.t), sorted(program.s)) == ([(1, 2), (2, 2)], [(1,)])


def test_methods_as_functions() -> None:
    """A method's first parameter is what it is bound to, and no row."""

    class Methods(Collections):
        factor = 10

        @bloom
        def rules(self) -> None:
            self.t <= (self.a * self.b).pairs("k", self.scaled)
            self.t <= (self.a * self.b).pairs("k", self.moved)

        def scaled(self, pair: Any) -> Any:
            return (pair[0].k, self.factor * pair[1].w)

        def moved(self, pair: Any) -> Any:
            return pair[0]

    program = Methods()
    program.a.insert([(1, 2)])
    program.b.insert([(1, 3)])
    program.tick()
    assert sorted(program.t) == [(1, 2), (1, 30)]


def test_a_constructor_that_makes_no_program() -> None:
    """It is reported when the program is used, and a lattice's first value where it is declared."""

    class Own(Collections):
        def __init__(self, n: int) -> None:
            self.n = n

    with pytest.raises(SyndicateError, match=r"Own is not made: its __init__ must call super\(\).__init__"):
        Own(3).tick()
    with pytest.raises(SyndicateError, match=r"test_mistakes.py:\d+: lmax\(\) takes no value.* @bootstrap"):
        lmax(0)


def test_a_class_that_is_no_program() -> None:
    """What a class declares that is not derived from Bloom is there for nobody: that is said where it is used."""

    class Forgotten:
        a = table(["x"], [])
        top = lmax()

        @bloom
        def rules(self) -> None:
            """No rules."""

    for use in (lambda: Forgotten().a, lambda: Forgotten().top, Forgotten().rules):
        with pytest.raises(BloomDeclaration, match=r"test_mistakes.py:\d+: Forgotten is no program"):
            use()
    assert Forgotten.a.columns == ("x",)

    class Derived(Forgotten, Bloom):
        """A program, with what the other declares."""

    program = Derived()
    program.a.insert([(1,)])
    program.tick()
    assert list(program.a) == [(1,)]

    class Early(Collections):
        def __init__(self) -> None:
            self.a.insert([(1, 2)])
            super().__init__()

    with pytest.raises(BloomDeclaration, match=r"Early is not made"):
        Early()


def test_keys_of_another_length() -> None:
    """They are no keys that nobody has; a tuple may be the value of a column."""

    class Keys(Bloom):
        one = table(["k"], ["v"])
        two = table(["j", "k"], ["v"])

    p = Keys()
    p.one <= [(("a", 1), 2)]
    p.two <= [("a", 1, 2)]
    p.tick()
    assert (p.one["a", 1].v, p.two["a", 1].v, p.one["a"], p.two["a", 2]) == (2, 2, None, None)
    for key in ("a", ("a", 1, 2)):
        with pytest.raises(SyndicateError, match=r"test_mistakes.py:\d+: two has 2 columns in its key, not [13]"):
            p.two[key]


def test_channels_without_an_address() -> None:
    """The remedy is in the message."""
    with pytest.raises(SyndicateError, match=r"test_mistakes.py:\d+: .* this has none.* channel\(\['@to', \.\.\.\]\)"):
        channel(["to", "x"])
    with pytest.raises(SyndicateError, match="leave out the @"):
        table(["@to"])


def test_blocks_that_would_not_run() -> None:
    """A block that waits, yields, or takes more than the program is reported where it is marked."""
    with pytest.raises(SyndicateError, match=r"test_mistakes.py:\d+: waits is marked @bloom and is async: leave that"):

        @bloom
        async def waits(self: Any) -> None:
            self.t <= self.a

    with pytest.raises(SyndicateError, match=r"test_mistakes.py:\d+: yields is marked @bloom and has a yield"):

        @bloom
        def yields(self: Any) -> Any:
            yield self.t <= self.a

    with pytest.raises(SyndicateError, match=r"selfless is marked @bootstrap and takes \(\): it takes self, and"):

        @bootstrap
        def selfless() -> None:
            """No program."""


def test_one_text_is_not_several() -> None:
    """Where an ancestor has a tuple: what is in parentheses without a comma is no tuple of one."""

    class Group(Bloom):
        members = ("a", "b")
        name = "some"

    class One(Group):
        members = ("a",)
        name = "another"

    assert One().members == ("a",)
    with pytest.raises(SyndicateError, match=r"test_mistakes.py:\d+: members is one text.*write \('a',\)"):

        class Wrong(One):
            members = "a"
