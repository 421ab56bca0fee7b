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
samples (:mod:`syndicate.lattice.samples`), smallest first, and a counterexample is shrunk by trying smaller ones.

What cannot be called, because nobody said with which arguments, is reported as unchecked: never as correct.

Source: Conway et al. 2012, "Definitions"; ``docs/design/lattice.md``, "Marks and laws".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict, Unpack, cast

from attrs import field, frozen

from syndicate.errors import LatticeMismatch, LatticeValue, LawBroken, UnhashableElement, short
from syndicate.lattice.lattice import Lattice
from syndicate.lattice.law import LAWS, PURE, Law, Text, method_laws
from syndicate.lattice.samples import seeds, tuples, weight, with_merges
from syndicate.values.value import Value

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy  # which users need not have

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


class Options(TypedDict, total=False):
    """What :func:`check` takes besides."""

    arguments: Mapping[str, Iterable[tuple[Value, ...]]] | None
    examples: int
    seed: int


@frozen
class Broken:
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
    broken: tuple[Broken, ...]
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
        values: some of its values, or a hypothesis strategy of them; by default ``lattice.samples()``, or what its
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
    broken: dict[str, Broken] = {}
    for group in groups:
        counterexample = (
            _search(group, pool, examples, random) if strategy is None else _falsify(group, strategy, examples)
        )
        if counterexample is not None:
            broken.setdefault(group[0].name, _explained(*counterexample))
    checked = [PURE.name, *dict.fromkeys(group[0].name for group in groups)]
    return Report(lattice, tuple(checked), tuple(broken.values()), tuple(unchecked), len(pool))


def assert_laws(lattice: type[Lattice], values: Values = None, **options: Unpack[Options]) -> None:
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


def _explained(law: Law, values: Sequence[Value]) -> Broken:
    names = [(name, short(value)) for name, value in zip("abc", values, strict=False)]
    try:
        shown = law.test(*values) or []
    except Exception as error:
        shown = [("raised", Text(f"{type(error).__name__}: {error}"))]
    return Broken(law.name, law.statement, tuple(names), tuple([(name, short(value)) for name, value in shown]))
