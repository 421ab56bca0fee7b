from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import strategies as st

from syndicate.errors import LatticeValue, LawBroken
from syndicate.lattice import Kind, Lattice, Map, Max, Set, assert_laws, check, monotone, morph, non_monotone
from syndicate.lattice.laws import LAWS, PURE
from tests.syndicate.lattice.strategies import STRATEGIES, nested

OURS = sorted(STRATEGIES, key=lambda cls: cls.wrapper_name)


class Numbers(Lattice):
    """A lawful lattice, each subclass of which breaks one thing: sets of numbers below 8, as bits."""

    wrapper_name = "tnumbers"

    def __init__(self, content: int | None = None) -> None:
        if content is not None and (type(content) is not int or not 0 <= content < 8):
            raise self.illegal(content, "bits")
        super().__init__(content or 0)

    @classmethod
    def samples(cls) -> Iterable[Any]:
        return map(cls, range(8))

    def merge(self, other: Any) -> Any:
        return type(self)(self.content | other.content)


class Adds(Numbers):
    wrapper_name = "tadds"

    def merge(self, other: Any) -> Any:
        return Adds((self.content + other.content) % 8)


class Subtracts(Numbers):
    wrapper_name = "tsubtracts"

    def merge(self, other: Any) -> Any:
        return Subtracts(max(0, self.content - other.content))


class FirstWins(Numbers):
    wrapper_name = "tfirst"

    def merge(self, other: Any) -> Any:
        return self if self.content else other

    def beyond(self, facts: Any) -> Any:
        return self


class Averages(Numbers):
    wrapper_name = "taverages"

    def merge(self, other: Any) -> Any:
        a, b = self.content, other.content
        return Averages(a or b if 0 in (a, b) else (a + b) // 2)


class OddBottom(Numbers):
    wrapper_name = "tbottom"

    def __init__(self, content: int | None = None) -> None:
        super().__init__(3 if content is None else content)


class Leaves(Numbers):
    wrapper_name = "tleaves"

    def merge(self, other: Any) -> Any:
        return self.content | other.content


class Mutates(Numbers):
    wrapper_name = "tmutates"

    def merge(self, other: Any) -> Any:
        Lattice.__dict__["content"].__set__(self, self.content | other.content)
        return self


class Disorders(Numbers):
    wrapper_name = "tdisorders"

    def __le__(self, other: Any) -> bool:
        return bool(self.content <= other.content)


class Hashes(Numbers):
    wrapper_name = "thashes"

    def __hash__(self) -> int:
        return id(self)


class Forgets(Numbers):
    wrapper_name = "tforgets"

    def beyond(self, facts: Any) -> Any:
        return self.bottom()


class Raises(Numbers):
    wrapper_name = "traises"

    def merge(self, other: Any) -> Any:
        return Raises(self.content // other.content)


class Equates(Numbers):
    """Values that say they are below each other, and different."""

    wrapper_name = "tequates"

    def __le__(self, other: Any) -> bool:
        return True


class Intransitive(Numbers):
    wrapper_name = "tintransitive"

    def __le__(self, other: Any) -> bool:
        return bool(abs(self.content - other.content) <= 1)


class Escapes(Numbers):
    """What is asserted of it is not what it is."""

    wrapper_name = "tescapes"

    def reveal(self) -> Any:
        return self.content & 1


class Marks(Numbers):
    """Methods with marks that they do not deserve, and one that does."""

    wrapper_name = "tmarks"

    @morph
    def count(self) -> Max:
        return Max(self.content.bit_count())

    @monotone
    def parity(self) -> Max:
        return Max(self.content % 2 - self.content // 4)

    @monotone
    def honest(self) -> Max:
        return Max(self.content.bit_count())

    @morph(argument=Kind.MORPHISM, tries=lambda values: [(value,) for value in values])
    def without(self, other: Any) -> Any:
        return Marks(self.content & ~other.content)

    @morph
    def needs(self, something: int) -> Max:
        return Max(something)

    @non_monotone
    def anything(self) -> int:
        return -int(self.content)


BROKEN: dict[type[Lattice], set[str]] = {
    Adds: {"idempotent", "upper bound"},
    Subtracts: {"bottom", "idempotent", "commutative", "associative"},
    FirstWins: {"commutative"},
    Averages: {"associative", "upper bound"},
    OddBottom: {"bottom"},
    Leaves: {"closed"},
    Mutates: {"pure"},
    Disorders: {"order"},
    Hashes: {"hash"},
    Forgets: {"beyond"},
    Raises: {"bottom", "idempotent"},
    Equates: {"antisymmetric", "order"},
    Intransitive: {"transitive"},
    Escapes: {"asserted"},
}


def laws_of(report: Any) -> set[str]:
    """The names of the laws that a report says are broken."""
    return {each.law for each in report.broken}


@pytest.mark.parametrize("cls", OURS, ids=lambda cls: cls.wrapper_name)
def test_ours_by_samples(cls: type[Lattice]) -> None:
    """All laws and marks of the built-in lattices hold for samples, and no method stays unchecked."""
    report = check(cls)
    assert report.ok, str(report)
    assert not report.unchecked


@pytest.mark.parametrize("cls", OURS, ids=lambda cls: cls.wrapper_name)
def test_ours_by_hypothesis(cls: type[Lattice]) -> None:
    """They hold for what hypothesis makes, with Python's look-alikes among it."""
    assert_laws(cls, STRATEGIES[cls], examples=25)


def test_maps_of_maps() -> None:
    """They hold for maps whose values are maps."""
    assert_laws(Map, nested, examples=12)


def test_every_law_has_its_breaker() -> None:
    """No law is in the list that the planted violations do not reach."""
    assert set().union(*BROKEN.values()) == {law.name for law in (PURE, *LAWS)}


@pytest.mark.parametrize(("cls", "expected"), BROKEN.items(), ids=[cls.wrapper_name for cls in BROKEN])
def test_planted(cls: type[Lattice], expected: set[str]) -> None:
    """A lattice broken on purpose is found out, by the law that it breaks."""
    assert expected <= laws_of(check(cls))


@pytest.mark.parametrize("cls", [Adds, FirstWins, Averages, Disorders], ids=lambda cls: cls.wrapper_name)
def test_planted_by_hypothesis(cls: type[Lattice]) -> None:
    """A strategy finds it, too, and shrinks it."""
    report = check(cls, st.integers(0, 7).map(cls), examples=120)
    assert BROKEN[cls] <= laws_of(report)


def test_lawful_control() -> None:
    """The lattice that they are made from breaks nothing: the checker can also be content."""
    assert check(Numbers).ok


def test_marks() -> None:
    """A morphism that is only monotone, and a monotone method that is not, are found; the honest one is not blamed."""
    report = check(Marks)
    assert laws_of(report) == {"count is a morphism", "parity is monotone", "without is a morphism"}
    assert [text.split()[0] for text in report.unchecked] == ["needs"]
    assert not check(Marks, arguments={"needs": [(1,)]}).unchecked


def test_counterexample_is_small_and_readable() -> None:
    """What a person reads is the smallest violation, with what was computed."""
    (text,) = [str(each) for each in check(Marks).broken if each.law.startswith("count")]
    assert text.splitlines() == [
        "  count is a morphism: f(a merge b) == f(a) merge f(b), f(a) = a.count()",
        "    a = Marks(1)",
        "    b = Marks(2)",
        "    f(a) = Max(1)",
        "    f(b) = Max(1)",
        "    f(a merge b) = Max(2)",
        "    f(a) merge f(b) = Max(1)",
    ]


def test_assert_laws_raises_the_report() -> None:
    """In a test suite the report is the message of an AssertionError."""
    with pytest.raises(LawBroken, match=r"Adds \(tadds\): \d+ of 1\d laws broken"):
        assert_laws(Adds)
    assert issubclass(LawBroken, AssertionError)


def test_same_seed_same_report() -> None:
    """The checker has no chance of its own."""
    assert check(Averages, seed=5).as_data() == check(Averages, seed=5).as_data()


def test_report_as_data() -> None:
    """A command can print it as JSON."""
    data = check(FirstWins).as_data()
    assert data["lattice"] == "FirstWins"
    assert data["broken"][0]["law"] == "commutative"
    assert data["broken"][0]["a"] == "FirstWins(1)"


def test_no_values_no_verdict() -> None:
    """A lattice of which no values are known is not called lawful: the remedy is said."""

    class Opaque(Lattice):
        wrapper_name = "topaque"

        def __init__(self, content: Any = None) -> None:
            if content is not None:
                raise self.illegal(content, "nothing that you would guess")
            super().__init__(None)

        def merge(self, other: Any) -> Any:
            return self

    with pytest.raises(LatticeValue, match=r"too few values of Opaque .* check\(Opaque, values=\[\.\.\.\]\)"):
        check(Opaque)


def test_without_hypothesis() -> None:
    """The checker itself does not import hypothesis."""
    import subprocess
    import sys

    program = (
        "import sys; from syndicate.lattice import Set, check; assert check(Set).ok; print('hypothesis' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_given_values() -> None:
    """A plain iterable of values will do."""
    assert check(Set, [Set([1]), Set([2, 3])]).ok
