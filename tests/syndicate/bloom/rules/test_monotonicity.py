"""What a function of a rule must see whole of the lattice values that it is given, and what it makes of them."""

# functions are read at once

from __future__ import annotations

import functools
import operator
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from syndicate.bloom.rules.abstract_value import Unseen
from syndicate.bloom.rules.monotonicity import Purpose, reading, row_of
from syndicate.lattice import Bool, Map, Max, Min, Set, monotone, non_monotone

ROW = row_of(("k", "v", "s", "p"), ("k", "v", "s", "p"), {"v": Max, "s": Set, "p": "perhaps"})
ONE, MANY, TEST, BARE = Purpose(), Purpose(many=True), Purpose(test=True), Purpose(bare=True)
LIMITS = {"low": Max(2)}


def shrinks(x: Any, limit: int = 3) -> Any:
    """Not monotone."""
    return x.lt_eq(limit)


def grows(x: Any, limit: int = 3) -> Any:
    """A threshold."""
    return x.gt_eq(limit)


@monotone
def trusted(x: Any) -> Max:
    """As its author says."""
    return Max(x.reveal())


@non_monotone
def distrusted(x: Any) -> Max:
    """As its author says."""
    return Max(-x.reveal())


class Judging:
    """Methods, properties, and what is called as a function."""

    limit = 3

    def __call__(self, x: Any) -> Any:
        return x.lt_eq(self.limit)

    def method(self, x: Any) -> Any:
        """Reads what another does."""
        return shrinks(x, self.limit)

    @property
    def own(self) -> Callable[[Any], Any]:
        """A function that is computed."""
        return shrinks

    @staticmethod
    def fixed(x: Any) -> Any:
        """As a function."""
        return grows(x)


judging = Judging()


def early(r: Any) -> Any:
    """A row once the test has passed."""
    if r.v.gt_eq(3).content:
        return (r.k,)
    return None


def early_turned(r: Any) -> Any:
    """The same, the other way about."""
    if not r.v.gt_eq(3).content:
        return None
    return (r.k,)


def late(r: Any) -> Any:
    """A row as long as the test has not passed."""
    if r.v.gt_eq(3).content:
        return None
    return (r.k,)


def counting(r: Any) -> Any:
    """Looks at no element, and tells how many there are."""
    number = 0
    for _ in r.s.reveal():
        number += 1
    return (r.k, number)


def first(r: Any) -> Any:
    """One of the elements, whichever comes first."""
    for x in r.s.reveal():
        return (x,)
    return None


def carried(r: Any) -> Any:
    """What is looked at in a round was made in the round before."""
    a, b = Max(1), r.v
    result: Bool | None = None
    for _ in range(3):
        result = a.lt_eq(2)
        a = b
    assert result is not None
    return result.when_true(lambda: (r.k,))


def caught(r: Any) -> Any:
    """Sees by an exception that something is not there yet."""
    try:
        return (r.k, r.s.at(3))
    except AttributeError:
        return (r.k, 0)


def endless(r: Any) -> Any:
    """Calls itself."""
    return endless(r) if r.v.gt_eq(3).content else (r.k,)


def given(r: Any) -> Iterator[Any]:
    """Rows by and by."""
    yield (r.k, r.v)
    yield from ()


SEEN: dict[str, tuple[Callable[..., Any], Purpose, dict[str, str]]] = {
    "as it is": (lambda r: (r.k, r.v), ONE, {}),
    "all of the row": (lambda r: r, ONE, {}),
    "a part of the row": (lambda r: r[1:], ONE, {}),
    "spread": (lambda r: (*r, r.k), ONE, {}),
    "a morphism": (lambda r: (r.k, r.v + 1, r.s.project(lambda e: e + 1)), ONE, {}),
    "threshold": (lambda r: r.v.gt_eq(5).when_true(lambda: (r.k,)), ONE, {}),
    "threshold in a flat_map": (lambda r: r.v.gt_eq(5).when_true(lambda: [(r.k,)]) or [], MANY, {}),
    "its content": (lambda r: (r.k,) if r.v.gt_eq(5).content else None, ONE, {}),
    "its value": (lambda r: (r.k,) if r.v.gt_eq(5).reveal() else None, ONE, {}),
    "the order": (lambda r: r.v >= Max(3), TEST, {}),
    "the order, turned": (lambda r: r.v <= Max(3), TEST, {"v": "<="}),
    "equality": (lambda r: r.v == Max(3), TEST, {"v": "=="}),
    "its value compared": (lambda r: r.v.reveal() > 3, TEST, {}),
    "its value compared, turned": (lambda r: r.v.reveal() < 3, TEST, {"v": "reveal()"}),
    "not monotone": (lambda r: r.v.lt_eq(5).when_true(lambda: (r.k,)), ONE, {"v": "lt_eq()"}),
    "revealed": (lambda r: (r.k, r.v.reveal()), ONE, {"v": "reveal()"}),
    "the content": (lambda r: (r.k, r.v.content), ONE, {"v": "reveal()"}),
    "a test": (lambda r: r.v.gt_eq(2), TEST, {}),
    "a test and another": (lambda r: r.v.gt_eq(2).content and r.s.contains(1).content and r.k > 3, TEST, {}),
    "a test or another": (lambda r: r.v.gt_eq(2).content or r.s.contains(1).content, TEST, {}),
    "a test denied": (lambda r: not r.v.gt_eq(2).content, TEST, {"v": "test"}),
    "a test denied twice": (lambda r: bool(r.v.gt_eq(2).content), TEST, {}),
    "either row": (lambda r: (r.k, 1 if r.v.gt_eq(2).content else 0), ONE, {"v": "test"}),
    "a member": (lambda r: r.k in r.s.reveal(), TEST, {}),
    "no member": (lambda r: r.k not in r.s.reveal(), TEST, {"s": "test"}),
    "elements": (lambda r: [(r.k, x) for x in r.s.reveal()], MANY, {}),
    "some elements": (lambda r: [(r.k, x) for x in r.s.reveal() if x > r.k], MANY, {}),
    "a sum": (lambda r: (r.k, sum(x for x in r.s.reveal())), ONE, {"s": "test"}),
    "a length": (lambda r: (r.k, len(r.s.reveal())), ONE, {"s": "reveal()"}),
    "a list": (lambda r: (r.k, sorted(r.s.reveal())), ONE, {"s": "reveal()"}),
    "in a text": (lambda r: (r.k, f"{r.v}"), ONE, {"v": "a text"}),
    "to a builtin": (lambda r: (r.k, max(r.v, 1)), ONE, {"v": "max()"}),
    "a helper": (lambda r: shrinks(r.v).when_true(lambda: (r.k,)), ONE, {"v": "lt_eq()"}),
    "a helper that is monotone": (lambda r: grows(r.v, limit=r.k).when_true(lambda: (r.k,)), ONE, {}),
    "a default": (lambda r, f=shrinks: f(r.v).when_true(lambda: (r.k,)), ONE, {"v": "lt_eq()"}),
    "partial": (lambda r: functools.partial(shrinks, r.v)().when_true(lambda: (r.k,)), ONE, {"v": "lt_eq()"}),
    "getattr": (lambda r: getattr(r.v, "lt_eq")(3).when_true(lambda: (r.k,)), ONE, {"v": "lt_eq()"}),  # noqa: B009
    "a name that is computed": (lambda r: getattr(r.v, "lt_" + r.k)(3), TEST, {"v": "getattr()"}),
    "a function at once": (lambda r: (lambda q: q.lt_eq(1))(r.v), TEST, {"v": "lt_eq()"}),  # noqa: PLC3002
    "an object that is called": (lambda r: judging(r.v), TEST, {"v": "lt_eq()"}),
    "a method": (lambda r: judging.method(r.v), TEST, {"v": "lt_eq()"}),
    "a static method": (lambda r: judging.fixed(r.v), TEST, {}),
    "a property": (lambda r: judging.own(r.v), TEST, {"v": "lt_eq()"}),
    "a function in a table": (lambda r: {"f": shrinks}["f"](r.v), TEST, {"v": "lt_eq()"}),
    "what is there": (lambda r: LIMITS["low"].lt_eq(r.k), TEST, {}),
    "trusted": (lambda r: (r.k, trusted(r.v)), ONE, {}),
    "distrusted": (lambda r: (r.k, distrusted(r.v)), ONE, {"v": "distrusted()"}),
    "within a function that a method is given": (
        lambda r: r.s.filter(lambda e: r.v.lt_eq(e + 0)).contains(3),
        *(TEST, {"v": "lt_eq()"}),
    ),
    "monotone within it": (lambda r: r.s.filter(lambda e: r.v.gt_eq(e + 0)).contains(3), TEST, {}),
    "a method that a method is given": (lambda r: r.s.filter(r.v.lt_eq).contains(3), TEST, {"v": "lt_eq()"}),
    "a monotone one": (lambda r: r.s.filter(r.v.gt_eq).contains(3), TEST, {}),
    "for each of some": (lambda r: [(n, r.v) for n in range(3) if r.v.gt_eq(n).content], MANY, {}),
    "for each of some, denied": (lambda r: [(n,) for n in range(3) if not r.v.gt_eq(n).content], MANY, {"v": "test"}),
    "a map's value": (lambda r: {r.k: r.v}, BARE, {}),
    "a map": (lambda r: (r.k, Map({r.k: r.v})), ONE, {}),
    "an element of a set": (lambda r: (r.k, Set([r.v])), ONE, {"v": "Set()"}),
    "revealed into another": (lambda r: Max(r.v.reveal() + 1), BARE, {"v": "reveal()"}),
    "a plain column": (lambda r: (r.p + 1, str(r.p), r.p == 3, -r.p), ONE, {}),
    "a plain column as if it were none": (lambda r: (r.p.reveal(),), ONE, {"p": "reveal()"}),
    "early": (early, ONE, {}),
    "early, turned": (early_turned, ONE, {}),
    "late": (late, ONE, {"v": "test"}),
    "given by and by": (given, MANY, {"v": "given()", "s": "given()"}),
    "counting": (counting, ONE, {"v": "counting()", "s": "counting()"}),
    "first": (first, ONE, {"v": "first()", "s": "first()"}),
    "carried": (carried, ONE, {"v": "carried()", "s": "carried()"}),
    "caught": (caught, ONE, {"v": "caught()", "s": "caught()"}),
    "endless": (endless, ONE, {"v": "endless()", "s": "endless()"}),
}


class Overriding:
    """Has operators of its own, which decide what one of a lattice means beside it."""

    def __add__(self, other: Any) -> Any:
        return other.reveal() % 2

    __radd__ = __add__

    def __le__(self, other: Any) -> bool:
        return bool(Max(other).lt_eq(3).content)

    __ge__ = __eq__ = __le__

    def __hash__(self) -> int:
        return 1


class Wrapped(NamedTuple):
    """A tuple that looks into what it holds."""

    of: Any

    @property
    def is_low(self) -> bool:
        """Not monotone."""
        return bool(self.of.lt_eq(3).content)


overriding = Overriding()


def appended(r: Any) -> Any:
    """A list of its own, which is another one once a test has passed."""
    results: list[int] = []
    results.append(1) if r.v.gt_eq(3).content else None
    return (r.k,) if not results else None


def appended_as_a_function(r: Any) -> Any:
    """The same, by the class's function."""
    results: list[int] = []
    if r.v.gt_eq(3).content:
        list.append(results, 1)
    return (r.k,) if not results else None


def added_in_place(r: Any) -> Any:
    """The same, by an operator, under another name."""
    results: list[int] = []
    other = results
    if r.v.gt_eq(3).content:
        results += [1]
    return (r.k,) if not other else None


def added_by_a_function(r: Any) -> Any:
    """The same, by what is no method."""
    results: list[int] = []
    if r.v.gt_eq(3).content:
        operator.setitem(results, slice(0, 0), [1])
    return (r.k,) if not results else None


def taken_out_within(r: Any) -> Any:
    """The same, within a function that a lattice calls."""
    results = [1]

    def clear() -> None:
        results.clear()

    r.v.gt_eq(3).when_true(clear)
    return (r.k,) if results else None


def updated(r: Any) -> Any:
    """The same, of a dictionary within a tuple."""
    results: Any = ({},)
    if r.v.gt_eq(3).content:
        results[0].update(a=1)
    return (r.k,) if not results[0] else None


def counted(r: Any) -> Any:
    """A list of its own, with all that was seen."""
    seen: list[Any] = []
    [seen.insert(0, x) for x in r.s.reveal()]  # type: ignore[func-returns-value]
    return None if seen else (r.k,)


def outside(r: Any) -> Any:
    """A name of the function around."""
    number = 0

    def change() -> None:
        nonlocal number
        number = 1

    r.v.gt_eq(3).when_true(change)
    return (r.k,) if number == 0 else None


def numbered(r: Any) -> Any:
    """Numbers elements as they come."""
    number = 0
    return [(number := number + 1, x) for x in r.s.reveal()]


def flagged(r: Any) -> Iterator[Any]:
    """The first element alone."""
    done = False
    for x in r.s.reveal():
        if not done:
            yield (x,)
        done = True


HIDDEN: list[tuple[Callable[..., Any], Purpose]] = [
    *((one, ONE) for one in (appended, appended_as_a_function, added_in_place, added_by_a_function, updated)),
    *((one, ONE) for one in (taken_out_within, counted, outside)),
    *((numbered, MANY), (flagged, MANY)),
    (lambda r: (r.k, overriding + r.v), ONE),
    (lambda r: (r.k, r.v + overriding), ONE),
    (lambda r: overriding <= r.v, TEST),
    (lambda r: r.v.reveal() >= overriding, TEST),
    (lambda r: overriding in r.s.reveal(), TEST),
    (lambda r: Overriding() <= r.v, TEST),
    (lambda r: Wrapped(r.v).is_low, TEST),
    (lambda r: (r.k,) if Wrapped(r.v).is_low is True else None, ONE),
    (lambda r: (r.k,) if not r.v.reveal().numerator else None, ONE),
    (lambda r: locals()["r"].v.lt_eq(3), TEST),
    (lambda r: eval("r.v.lt_eq(3)"), TEST),
    (lambda r: (r.k,) if vars()["r"].v.lt_eq(3).content else None, ONE),
]


@pytest.mark.parametrize(("function", "purpose"), HIDDEN)
def test_what_hides_is_found(function: Callable[..., Any], purpose: Purpose) -> None:
    """What is not monotone by what a function does to things of its own, or by what others have overridden."""
    assert {"v", "s"} & reading(function, [ROW], purpose).offences.keys()


@pytest.mark.parametrize("name", SEEN)
def test_what_is_seen(name: str) -> None:
    """Each form in which a function may come by a lattice value, and what it may do with it."""
    function, purpose, offences = SEEN[name]
    assert dict(reading(function, [ROW], purpose).offences) == offences


def test_what_nobody_sees_is_said_to_be_so() -> None:
    """It may be monotone: that is another thing than what is known not to be."""
    assert isinstance(reading(lambda r: (r.k, max(r.v, 1)), [ROW]).offences["v"], Unseen)
    assert isinstance(reading(carried, [ROW]).offences["v"], Unseen)
    assert not isinstance(reading(lambda r: (r.k, r.v.reveal()), [ROW]).offences["v"], Unseen)
    both = reading(lambda r: (max(r.v, 1), r.v.lt_eq(1)), [ROW]).offences["v"]
    assert both == "lt_eq()"
    assert not isinstance(both, Unseen)


def test_columns() -> None:
    """What comes out, and where lattice values are in it."""
    assert reading(lambda r: (1, r.v, r.s.size(), Min(3)), [ROW]).columns == {1: Max, 2: Max, 3: Min}
    assert reading(lambda r: (r.v.gt_eq(3), r.k), [ROW]).columns == {0: Bool, 1: "perhaps"}


# ------------------------------------------------------------------------------------------------------------- random


def random_function(rng: random.Random) -> tuple[str, Purpose]:
    """The text of a function of a row, made of methods, tests and operators of all kinds."""

    def lattice(depth: int) -> str:
        forms = ["r.v", "r.w", f"(r.v + {rng.randrange(3)})", "r.s.size()", f"Max({rng.randrange(4)})"]
        if depth:
            forms += [f"{lattice(depth - 1)}.merge({lattice(depth - 1)})", f"{lattice(depth - 1)}.min_of(2)"]
            forms += [f"r.s.filter(lambda e: {test(depth - 1)}).size()"]
        return rng.choice(forms)

    def test(depth: int) -> str:
        method, n = rng.choice(["gt_eq", "gt_eq", "gt", "lt_eq"]), rng.randrange(4)
        forms = [f"{lattice(depth)}.{method}({n}).content", f"({lattice(depth)} >= Max({n}))", f"({n} in r.s.reveal())"]
        forms += [f"(r.k > {n})", f"({lattice(depth)} <= {lattice(depth)})", f"({lattice(depth)}.reveal() >= {n})"]
        if depth:
            forms += [f"(not {test(depth - 1)})", f"({test(depth - 1)} and {test(depth - 1)})"]
            forms += [f"({test(depth - 1)} or {test(depth - 1)})"]
            forms += [f"any([{test(depth - 1)} for x in r.s.reveal()])"]
        return rng.choice(forms)

    def row(depth: int) -> str:
        forms = ["(r.k,)", f"(r.k, {lattice(depth)})", f"({rng.randrange(2)},)", f"(r.k, {test(depth)})"]
        forms += [f"(r.k, [{lattice(depth)}][0])", f"(r.k, sum([1 for x in r.s.reveal() if {test(0)}]))"]
        if depth:
            forms += [f"({row(depth - 1)} if {test(depth)} else None)", f"({row(depth - 1)} if {test(depth)} else ())"]
            forms += [f"({row(depth - 1)} if {test(depth)} else {row(depth - 1)})"]
            forms += [f"{lattice(depth)}.gt_eq({rng.randrange(4)}).when_true(lambda: {row(depth - 1)})"]
            forms += [f"(lambda q: {row(depth - 1)})({lattice(depth)})"]
        return rng.choice(forms)

    match rng.randrange(4):
        case 0:
            return f"lambda r: {test(2)}", TEST
        case 1:
            return f"lambda r: [{row(1)} for x in r.s.reveal() if {test(1)}]", MANY
        case 2:
            return f"lambda r: {lattice(2)}", BARE
    return f"lambda r: {row(2)}", ONE


class Row(tuple[Any, ...]):
    """A row with names."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return self[("k", "v", "w", "s").index(name)]


def says_all(small: Any, great: Any, purpose: Purpose) -> bool:
    """Whether what a function gives for something greater is at least what it gave for something smaller."""
    if purpose.test:
        return bool(great) or not bool(small)
    if purpose.bare:
        return bool(small <= great)
    rows = (small or [], great or []) if purpose.many else ([small], [great])
    return all(
        row in (None, ()) or any(_covers(row, other) for other in rows[1] if other not in (None, ())) for row in rows[0]
    )


def _covers(row: Any, other: Any) -> bool:
    if len(row) != len(other):
        return False
    return all(
        a <= b if isinstance(a, Max) and isinstance(b, Max) else type(a) is type(b) and a == b
        for a, b in zip(row, other, strict=True)
    )


def differs(text: str, purpose: Purpose, rng: random.Random, tries: int, names: dict[str, Any] | None = None) -> bool:
    """Whether a function does not say all of it of something greater."""
    function = eval(text, {"Max": Max, "Set": Set, **(names or {})})  # of our own
    for _ in range(tries):
        row = Row((rng.randrange(3), Max(rng.randrange(4)), Max(rng.randrange(4)), Set(rng.sample(range(4), 2))))
        more = Row(
            (
                row[0],
                row[1].merge(Max(rng.randrange(4))),
                row[2].merge(Max(rng.randrange(4))),
                row[3].merge(Set(rng.sample(range(4), 2))),
            )
        )
        if not says_all(function(row), function(more), purpose):
            return True
    return False


KINDS = {"v": Max, "w": Max, "s": Set}


@pytest.mark.parametrize("part", range(4))
def test_functions_without_offence_are_monotone(part: int) -> None:
    """Functions at random, called with rows and with greater rows: who is said to be monotone is so."""
    rng = random.Random(part)
    row = row_of(("k", "v", "w", "s"), ("k", "v", "w", "s"), KINDS)
    clean = 0
    for _ in range(150):
        text, purpose = random_function(rng)
        function = eval(text, {"Max": Max, "Set": Set})  # of our own
        if not reading(function, [row], purpose).offences:
            clean += 1
            assert not differs(text, purpose, rng, 60), text
    assert clean > 20


def random_statements(rng: random.Random) -> str:
    """The text of a function with assignments, branches, loops and early returns."""
    lines = ["def f(r):", "    x = r.v", "    y = r.w", "    n = 0", "    box = []", "    other = box"]

    def value() -> str:
        return rng.choice(["r.v", "r.w", "(r.v + 1)", "x", "y", "r.s.size()"])

    def test() -> str:
        method, limit = rng.choice(["gt_eq", "gt_eq", "gt", "lt_eq"]), rng.randrange(4)
        forms = [
            f"{value()}.{method}({limit}).content",
            f"not {value()}.{method}({limit}).content",
            "x >= y",
            "n > 1",
            "not other",
            "box",
        ]
        return rng.choice([*forms, f"r.k > {limit}", f"{limit} in r.s.reveal()", f"{value()}.reveal() >= {limit}"])

    def block(depth: int, indent: str) -> None:
        for _ in range(rng.randrange(1, 3)):
            simple = [f"n = {rng.randrange(3)}", f"x = {value()}", f"y = x.merge({value()})", "n += 1"]
            if rng.random() < 0.2:
                simple += ["box.append(1)", "box += [1]", "box.clear()", "[n := q for q in r.s.reveal()]"]
            simple += [f"n = [q for q in r.s.reveal() if {test()}] and 1 or 0", f"return {row()}"]
            loops = [f"for i in range({rng.randrange(3)}):", "for i in (1, 2):", "for i in r.s.reveal():"]
            if depth and rng.random() < 0.5:
                lines.append(indent + rng.choice([f"if {test()}:", f"if {test()}:", *loops]))
                block(depth - 1, indent + "    ")
            else:
                lines.append(indent + rng.choice(simple))

    def row() -> str:
        return rng.choice(["(r.k,)", "(r.k, x)", "(r.k, n)", "(n,)", "None", "None", "(r.k, r.v)", "(1,)"])

    block(3, "    ")
    return "\n".join([*lines, f"    return {row()}"])


@pytest.mark.parametrize("part", range(2))
def test_statements_without_offence_are_monotone(part: int) -> None:
    """The same of functions with branches and loops."""
    rng = random.Random(part)
    row = row_of(("k", "v", "w", "s"), ("k", "v", "w", "s"), KINDS)
    clean = 0
    for _ in range(200):
        text, scope = random_statements(rng), dict[str, Any]()
        exec(text, scope)  # of our own
        if not reading(scope["f"], [row]).offences:
            clean += 1
            assert not differs("f", ONE, rng, 40, scope), text
    assert clean > 20
