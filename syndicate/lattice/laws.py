"""The laws of a lattice as checks: what a program relies on when it says that order and repetition do not matter.

:func:`check` looks for counterexamples to all of them and :func:`assert_laws` is the same for a test suite.

>>> from syndicate.lattice import Lattice, morph, Max
>>> class Sum(Lattice):
...     wrapper_name = "lsum"
...     def __init__(self, content=None):
...         if content is not None and type(content) is not int: raise self.illegal(content, "an int")
...         super().__init__(content or 0)
...     def merge(self, other): return Sum(self.content + other.content)
>>> print(check(Sum))  # doctest: +ELLIPSIS
Sum (lsum): 3 of 14 laws broken
  idempotent: a merge a == a
    a = Sum(1)
    a merge a = Sum(2)
  ...

With hypothesis installed, *values* may be a strategy, and counterexamples are shrunk by it.  Otherwise values are
samples (:mod:`syndicate.lattice.laws`), smallest first, and a counterexample is shrunk by trying smaller ones.

What cannot be called, because nobody said with which arguments, is reported as unchecked: never as correct.

Source: Conway et al. 2012, "Definitions"; ``docs/design/lattice.md``, "Marks and laws".

Values to test laws with: small first, so that the first counterexample found is nearly the smallest.

A lattice may have a class method ``samples()`` that returns some of its values.  One that has none is tried with
plain values of many kinds, and whatever its constructor accepts is used: usually enough, since a law that breaks
breaks for small values.  Merges of samples are samples, too.

The laws themselves: what each says, as a test of a few values, and what a method's marks claim.

A test returns None, or what to show of a counterexample.  It uses nothing but what a lattice must offer, so that it
also speaks of lattices that are broken.

Source: Conway et al. 2012, "Definitions"; ``docs/design/lattice.md``, "Marks and laws".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict, Unpack, cast

from attrs import field, frozen

from syndicate.errors import (
    LatticeMismatch,
    LatticeValue,
    LawBroken,
    NotAValue,
    PatternError,
    SyndicateError,
    UnhashableElement,
    short,
)
from syndicate.flow.element import key_of
from syndicate.lattice.delta import combine
from syndicate.lattice.extremum import Bool, Max
from syndicate.lattice.lattice import Kind, Lattice, Method, revive
from syndicate.lattice.sets import Set
from syndicate.lattice.vector_clock import Clock
from syndicate.values.value import Symbol, Value, freeze, thaw

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


# --------------------------------------------------------------------------------------------- values to test laws with


PLAIN: Final[tuple[Value, ...]] = (
    *(0, 1, 2, 3, -1, 7),
    *(True, False, 0.5, 1.0, -0.0, "", "a", "b", "ab", b"a", Symbol("a")),
    *((), (1,), (1, 2), (2, 1), (2, 2), (3, 5), (1, "a"), (1, "b"), (2, "a")),
    *(("a",), ("b", "c"), ("a", "a"), (0.5, 1.5)),
    *(frozenset(), frozenset({1}), frozenset({2}), frozenset({1, 2}), frozenset({2, 3}), frozenset({"a", "b"})),
    *({"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 3}, {1: 1}),
    *({"a": Max(1), "b": Bool(True)}, {"a": Max(2)}, {"b": Bool(False)}, {"c": Set([1])}, {"c": Set([2])}),
    *((Max(1), Set([1])), (Max(2), Set([2])), (Max(1), Set([2])), (Max(3), Set())),
    *((Clock({"a": 1}), Set([1])), (Clock({"a": 2}), Set([2])), (Clock({"b": 1}), Set([3]))),
    *((Clock({"a": 2, "b": 1}), Set([4])), (Clock({"a": 1}), Set([5]))),
)
"""What constructors are tried with."""

REFUSALS: Final = (SyndicateError, TypeError, ValueError, AttributeError, LookupError)
"""What a constructor raises that does not take a value."""


def weight(value: Value) -> tuple[int, str]:
    """How large *value* is to a reader: the length of its text."""
    text = repr(value)
    return len(text), text


def distinct(values: Iterable[Value]) -> list[Value]:
    """The values, each once as its text tells, smallest first (by text: equality is under test)."""
    return sorted({repr(value): value for value in values}.values(), key=weight)


def seeds(cls: type[Lattice], values: Iterable[Value] | None) -> list[Value]:
    """Values of *cls*, smallest first: *values*, or its samples, or what its constructor accepts; and the bottom."""
    if values is not None:
        candidates = list(values)
    elif hasattr(cls, "samples"):
        candidates = list(cls.samples())
    else:
        candidates = list(accepted(cls, PLAIN))
    return distinct([*candidates, cls.bottom()])


def with_merges(values: Sequence[Value], random: Random) -> list[Value]:
    """The values and some merges of them, smallest first."""
    return distinct([*values, *_merges(values, random)])


def accepted(cls: type[Lattice], contents: Iterable[Value]) -> Iterable[Lattice]:
    """Elements of *cls* made of those *contents* that its constructor takes."""
    for content in contents:
        try:
            element = cls(content)
            repr(element)
        except REFUSALS:
            continue
        yield element


def _merges(seeds: Sequence[Value], random: Random) -> Iterable[Lattice]:
    for _ in range(min(40, len(seeds) ** 2)):
        merged = random.choice(seeds)
        for _ in range(random.randint(1, 3)):
            try:
                merged = merged.merge(random.choice(seeds))
            except Exception:  # values that do not go together, or a merge that is broken: the laws will tell
                break
        if isinstance(merged, Lattice):
            yield merged


def tuples(values: Sequence[Value], size: int, examples: int, random: Random) -> Iterable[tuple[Value, ...]]:
    """Tuples of *values*, smallest first: all of the smallest few, then *examples* at random."""
    few = {1: len(values), 2: 14, 3: 7}[size]
    head = values[:few]
    everything: list[tuple[Value, ...]] = [()]
    for _ in range(size):
        everything = [(*chosen, value) for chosen in everything for value in head]
    yield from sorted(everything, key=lambda chosen: sum(weight(value)[0] for value in chosen))
    if size > 1 and len(values) > few:
        for _ in range(examples):
            yield tuple(random.choice(values) for _ in range(size))


# -------------------------------------------------------------------------------------------------- the laws themselves


Breach: TypeAlias = list[tuple[str, object]] | None
"""What is to be shown of values that break a law, each with a name; None if they keep it."""

Test: TypeAlias = Callable[..., Breach]
"""From some values to what is to be shown of them if they break the law."""


@frozen
class Law:
    """A law: its name, what it says, how many values it speaks of, and the test."""

    name: str
    statement: str
    size: int
    test: Test
    partial: bool = False
    """Whether a :class:`LatticeValue` says that it does not apply: ``+`` is for maxima of numbers."""


class Text(str):
    """Text that is shown as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


# ------------------------------------------------------------------------------------------------------------- the laws


def _bottom(a: Lattice) -> Breach:
    bottom = type(a).bottom()
    left, right = bottom.merge(a), a.merge(bottom)
    return None if left == a and right == a else [("bottom merge a", left), ("a merge bottom", right)]


def _idempotent(a: Lattice) -> Breach:
    merged = a.merge(a)
    return None if merged == a else [("a merge a", merged)]


def _commutative(a: Lattice, b: Lattice) -> Breach:
    one, other = a.merge(b), b.merge(a)
    return None if one == other else [("a merge b", one), ("b merge a", other)]


def _associative(a: Lattice, b: Lattice, c: Lattice) -> Breach:
    one, other = a.merge(b).merge(c), a.merge(b.merge(c))
    return None if one == other else [("(a merge b) merge c", one), ("a merge (b merge c)", other)]


def _upper(a: Lattice, b: Lattice) -> Breach:
    merged = a.merge(b)
    again, other = a.merge(merged), b.merge(merged)
    return (
        None
        if again == merged and other == merged
        else [("a merge b", merged), ("a merge that", again), ("b merge that", other)]
    )


def _closed(a: Lattice, b: Lattice) -> Breach:
    merged = a.merge(b)
    return None if type(merged) is type(a) else [("a merge b", merged)]


def _pure(a: Lattice, b: Lattice) -> Breach:
    a, b = _again(a), _again(b)  # so that those that are shown are as they were
    before = repr(a), repr(b), hash(a), hash(b)
    try:
        first = repr(a.merge(b))
    except Exception:  # a merge that raises breaks other laws
        return None
    if (repr(a), repr(b), hash(a), hash(b)) != before:
        return [("a after a merge b", a), ("b after a merge b", b)]
    second = a.merge(b)
    return None if repr(second) == first else [("a merge b", Text(first)), ("again", second)]


def _again(value: Lattice) -> Lattice:
    read, parts = value.__reduce__()
    return read(*parts)


def _ordered(a: Lattice, b: Lattice) -> Breach:
    said, follows = a <= b, a.merge(b) == b
    return None if said is follows else [("a <= b", said), ("a merge b == b", follows)]


def _antisymmetric(a: Lattice, b: Lattice) -> Breach:
    return [("a <= b", True), ("b <= a", True), ("a == b", False)] if a <= b <= a and a != b else None


def _transitive(a: Lattice, b: Lattice, c: Lattice) -> Breach:
    return [("a <= b", True), ("b <= c", True), ("a <= c", False)] if a <= b and b <= c and not a <= c else None


def _hashed(a: Lattice, b: Lattice) -> Breach:
    one, other = a.merge(b), b.merge(a)
    if one == other and hash(one) != hash(other):
        return [("a merge b", one), ("hash of it", hash(one)), ("hash of b merge a", hash(other))]
    if a == b and hash(a) != hash(b):
        return [("hash of a", hash(a)), ("hash of b", hash(b))]
    return None


def _beyond(a: Lattice, b: Lattice) -> Breach:
    fresh = a.beyond(b)
    whole, partly = b.merge(a), b.merge(fresh)
    return None if whole == partly else [("a.beyond(b)", fresh), ("b merge that", partly), ("b merge a", whole)]


def _asserted(a: Value) -> Breach:
    try:
        form = freeze(a)
    except (NotAValue, PatternError):
        return None  # what cannot be asserted is reported where somebody tries
    back = revive(thaw(form))
    return None if back == a else [("asserted and revived", back)]


PURE: Final = Law("pure", "a merge b changes neither, and is the same each time", 2, _pure)
"""What all others presuppose."""

LAWS: Final = (
    Law("closed", "a merge b is of the lattice", 2, _closed),
    Law("bottom", "bottom merge a == a == a merge bottom", 1, _bottom),
    Law("idempotent", "a merge a == a", 1, _idempotent),
    Law("commutative", "a merge b == b merge a", 2, _commutative),
    Law("associative", "(a merge b) merge c == a merge (b merge c)", 3, _associative),
    Law("upper bound", "a <= a merge b and b <= a merge b", 2, _upper),
    Law("order", "a <= b says the same as a merge b == b", 2, _ordered),
    Law("antisymmetric", "a <= b and b <= a implies a == b", 2, _antisymmetric),
    Law("transitive", "a <= b and b <= c implies a <= c", 3, _transitive),
    Law("hash", "equal values have equal hashes", 2, _hashed),
    Law("beyond", "b merge a.beyond(b) == b merge a", 2, _beyond),
    Law("asserted", "a comes back from a dataspace as it was", 1, _asserted),
)


# ---------------------------------------------------------------------------------------------------------- the methods


def method_laws(
    method: Method, pool: Sequence[Value], arguments: Iterable[tuple[Value, ...]] | None
) -> tuple[list[Law], list[Law], list[str]]:
    """What the marks of *method* claim of its receiver, and of lattice arguments, for some argument tuples each.

    The third is why they cannot be checked.
    """
    if not method.kind.is_monotone and not method.argument.is_monotone:
        return [], [], []
    few = pool[:: max(1, len(pool) // 12)]
    if arguments is not None:
        calls = list(arguments)
    elif method.tries is not None:
        calls = list(method.tries(few))
    else:
        calls = [()]
    usable: list[tuple[Value, ...]] = []
    problem: Exception | None = None
    for call in calls:
        taken = 0
        for value in pool:
            try:
                _call(method, value, call)
            except (TypeError, LatticeValue) as error:
                problem = error
            except Exception:  # it will be shown as a counterexample
                taken += 1
            else:
                taken += 1
        if taken > 1:
            usable.append(call)
    if not usable:
        remedy = f'give arguments={{"{method.name}": [(...), ...]}}'
        return (
            [],
            [],
            [f"{method.name} cannot be called ({short(str(problem)) if problem else 'no arguments'}): {remedy}"],
        )
    receiver = [_receiver_law(method, call) for call in usable] if method.kind.is_monotone else []
    argument = [
        _argument_law(method, call, place)
        for call in usable
        for place, each in enumerate(call)
        if method.argument.is_monotone and isinstance(each, Lattice)
    ]
    return receiver, argument, []


def _call(method: Method, receiver: Value, arguments: tuple[Value, ...]) -> Value:
    return getattr(receiver, method.name)(*arguments)


def _receiver_law(method: Method, call: tuple[Value, ...]) -> Law:
    return _law(method, method.kind, _written(method, "a", call), lambda value: _call(method, value, call))


def _argument_law(method: Method, call: tuple[Value, ...], place: int) -> Law:
    receiver = call[place]

    def apply(value: Value) -> Value:
        return _call(method, receiver, (*call[:place], value, *call[place + 1 :]))

    holes = (*call[:place], Text("a"), *call[place + 1 :])
    return _law(method, method.argument, _written(method, short(receiver), holes), apply)


def _law(method: Method, kind: Kind, text: str, apply: Callable[[Value], Value]) -> Law:
    """That ``f``, which *text* writes for ``a``, is what *kind* says."""

    def homomorphic(a: Value, b: Value) -> Value:
        whole, parts = apply(a.merge(b)), combine(apply(a), apply(b))
        agree = same(whole, parts)
        return (
            None
            if agree
            else [("f(a)", apply(a)), ("f(b)", apply(b)), ("f(a merge b)", whole), ("f(a) merge f(b)", parts)]
        )

    def growing(a: Value, b: Value) -> Value:
        merged = a.merge(b)
        low, high = apply(a), apply(merged)
        return None if _below(low, high) else [("a merge b", merged), ("f(a)", low), ("f(a merge b)", high)]

    if kind is Kind.MORPHISM:
        return Law(
            f"{method.symbol} is a morphism", f"f(a merge b) == f(a) merge f(b), f(a) = {text}", 2, homomorphic, True
        )
    return Law(f"{method.symbol} is monotone", f"f(a) <= f(a merge b), f(a) = {text}", 2, growing, True)


def _written(method: Method, receiver: str, arguments: Sequence[Value]) -> str:
    texts = [getattr(each, "__qualname__", None) if isinstance(each, type) else short(each) for each in arguments]
    if method.symbol != method.name:
        return f"{receiver} {method.symbol} {texts[0]}"
    return f"{receiver}.{method.name}({', '.join(map(str, texts))})"


def same(a: Value, b: Value) -> bool:
    """Whether two results of a method are the same: rows in any order and number."""
    if isinstance(a, list) and isinstance(b, list):
        return set(map(key_of, a)) == set(map(key_of, b))
    return type(a) is type(b) and bool(a == b)


def _below(low: Value, high: Value) -> bool:
    if low is None:
        return True
    if isinstance(low, list):
        return set(map(key_of, low)) <= set(map(key_of, high))
    if type(low) is bool:
        return not low or bool(high)
    return type(low) is type(high) and bool(low <= high)


# -------------------------------------------------------------------------------------- the laws of a lattice as checks


_REFUSALS: Final = (
    LatticeMismatch,
    LatticeValue,
    UnhashableElement,
    TypeError,
    ValueError,
    AttributeError,
    NotImplementedError,
)


Values: TypeAlias = "Iterable[Value] | SearchStrategy[Value] | None"
"""Values of a lattice, or a hypothesis strategy of them; None for its own samples."""


class LawOptions(TypedDict, total=False):
    """What :func:`check` takes besides."""

    arguments: Mapping[str, Iterable[tuple[Value, ...]]] | None
    examples: int
    seed: int


@frozen
class BrokenLaw:
    """A counterexample: the values, by name, and what was computed of them, as text."""

    law: str
    statement: str
    values: tuple[tuple[str, str], ...]
    shown: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        lines = [f"  {self.law}: {self.statement}"]
        lines += [f"    {name} = {text}" for name, text in (*self.values, *self.shown)]
        return "\n".join(lines)


@frozen
class Report:
    """What a check found; ``str()`` of it is for people, :meth:`as_data` for programs."""

    lattice: type[Lattice]
    checked: tuple[str, ...]
    broken: tuple[BrokenLaw, ...]
    unchecked: tuple[str, ...] = ()
    values: int = field(default=0, eq=False)

    @property
    def ok(self) -> bool:
        """Whether no law is known to be broken."""
        return not self.broken

    def as_data(self) -> dict[str, Value]:
        """The report as JSON has it."""
        return {
            "lattice": self.lattice.__name__,
            "wrapper_name": self.lattice.wrapper_name,
            "values": self.values,
            "checked": list(self.checked),
            "broken": [
                {"law": each.law, "statement": each.statement, **dict(each.values), "shown": dict(each.shown)}
                for each in self.broken
            ],
            "unchecked": list(self.unchecked),
        }

    def __str__(self) -> str:
        name = f"{self.lattice.__name__} ({self.lattice.wrapper_name})"
        if self.ok:
            lines = [f"{name}: {len(self.checked)} laws hold for {self.values} values and their combinations"]
        else:
            lines = [f"{name}: {len(self.broken)} of {len(self.checked)} laws broken", *map(str, self.broken)]
        if self.unchecked:
            lines.append(f"  unchecked: {'; '.join(self.unchecked)}")
        return "\n".join(lines)


def check(
    lattice: type[Lattice],
    values: Values = None,
    *,
    arguments: Mapping[str, Iterable[tuple[Value, ...]]] | None = None,
    examples: int = 150,
    seed: int = 0,
) -> Report:
    """Look for counterexamples to the laws of *lattice*.

    Args:
        lattice: the class.
        values: some of its values, or a hypothesis strategy of them; by default ``lattice.laws()``, or what its
            constructor makes of plain values.
        arguments: for a method's name, argument tuples to call it with, where the method's decorator has no ``tries``.
        examples: how many random combinations each law is tried with, beside all of the smallest.
        seed: of these; the same seed gives the same report.

    Raises:
        LatticeValue: if no value other than the bottom is known.
    """
    random = Random(seed)
    drawn = type(values).__module__.startswith("hypothesis.")
    strategy = cast("SearchStrategy[Value]", values) if drawn else None
    first: Exception | None = None
    try:
        pool = seeds(lattice, _drawn(strategy) if strategy is not None else cast("Iterable[Value] | None", values))
    except _REFUSALS as error:
        pool, first = [], error
    if len(pool) < 2:
        why = f" ({type(first).__name__}: {first})" if first is not None else ""
        raise LatticeValue(
            f"too few values of {lattice.__name__} to check any law{why}: give some, check({lattice.__name__}, "
            "values=[...]), a hypothesis strategy, or a class method samples()"
        )
    counterexample = _search([PURE], pool, examples, random)
    if counterexample is not None:  # then no value can be trusted to be what it was, and nothing else be said
        return Report(
            lattice, (PURE.name,), (_explained(*counterexample),), ("all other laws, until merge is pure",), len(pool)
        )
    pool = with_merges(pool, random)
    groups, unchecked = [[law] for law in LAWS], []
    for method in lattice.methods().values():
        receiver, argument, problem = method_laws(method, pool, (arguments or {}).get(method.name))
        groups += [group for group in (receiver, argument) if group]
        unchecked += problem
    broken: dict[str, BrokenLaw] = {}
    for group in groups:
        counterexample = (
            _search(group, pool, examples, random) if strategy is None else _falsify(group, strategy, examples)
        )
        if counterexample is not None:
            broken.setdefault(group[0].name, _explained(*counterexample))
    checked = [PURE.name, *dict.fromkeys(group[0].name for group in groups)]
    return Report(lattice, tuple(checked), tuple(broken.values()), tuple(unchecked), len(pool))


def assert_laws(lattice: type[Lattice], values: Values = None, **options: Unpack[LawOptions]) -> None:
    """:func:`check`, for a test suite: raises :class:`LawBroken` with the report if a law is broken."""
    report = check(lattice, values, **options)
    if not report.ok:
        raise LawBroken(str(report))


# ------------------------------------------------------------------------------------------------------------ searching


def _fails(law: Law, values: Sequence[Value]) -> bool:
    try:
        return law.test(*values) is not None
    except LatticeMismatch:
        return False  # values of one lattice may hold what cannot be merged: a number and a text
    except LatticeValue:
        return not law.partial
    except Exception:  # whatever a lattice of another's raises, it broke the law
        return True


def _search(
    group: Sequence[Law], pool: Sequence[Value], examples: int, random: Random
) -> tuple[Law, tuple[Value, ...]] | None:
    for law in group:
        for values in tuples(pool, law.size, examples, random):
            if _fails(law, values):
                return law, _shrunk(law, values, pool)
    return None


def _shrunk(law: Law, values: tuple[Value, ...], pool: Sequence[Value]) -> tuple[Value, ...]:
    """The same counterexample with each value as small as the known ones allow."""
    smaller = True
    while smaller:
        smaller = False
        for place, value in enumerate(values):
            for candidate in pool:
                if weight(candidate) >= weight(value):
                    break
                changed = (*values[:place], candidate, *values[place + 1 :])
                if _fails(law, changed):
                    values, smaller = changed, True
                    break
    return values


def _drawn(strategy: SearchStrategy[Value]) -> list[Value]:
    """Some values of a strategy, for the arguments of methods."""
    import hypothesis

    drawn: list[Value] = []

    @hypothesis.settings(
        max_examples=30,
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def draw(value: Value) -> None:
        drawn.append(value)

    draw()
    return drawn


def _falsify(
    group: Sequence[Law], strategy: SearchStrategy[Value], examples: int
) -> tuple[Law, tuple[Value, ...]] | None:
    import hypothesis
    from hypothesis import strategies

    last: list[tuple[Law, tuple[Value, ...]]] = []

    class Falsified(Exception):
        pass

    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=True,
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategies.sampled_from(group), strategies.tuples(*[strategy] * group[0].size))
    def holds(law: Law, values: tuple[Value, ...]) -> None:
        if _fails(law, values):
            last.append((law, values))
            raise Falsified

    try:
        holds()
    except Falsified:
        return last[-1]  # hypothesis runs the smallest one last
    return None


def _explained(law: Law, values: Sequence[Value]) -> BrokenLaw:
    names = [(name, short(value)) for name, value in zip("abc", values, strict=False)]
    try:
        shown = law.test(*values) or []
    except Exception as error:
        shown = [("raised", Text(f"{type(error).__name__}: {error}"))]
    return BrokenLaw(law.name, law.statement, tuple(names), tuple([(name, short(value)) for name, value in shown]))
