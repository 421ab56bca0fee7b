"""Random values and patterns: small alphabets, so that matches, collisions and look-alikes are the rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st

from syndicate import ANY, Dictionary, Record, Ref, Symbol, ValueSet, capture, record
from syndicate.values.pattern import Capture, Group, Kind, Literal, Pattern, kind_of, pattern_of
from syndicate.values.value import fields_of, freeze, is_record, label_of, order


def examples(number: int) -> int:
    """How many random examples a test with a number of its own draws: *number* at night, a share in `make test`.

    The share is that of the profile (`tests/conftest.py`), whose number of examples holds for tests without a number.
    A test of fewer than 20, and one that counts what it has drawn, says its number as it is.
    """
    return number * settings().max_examples // 100


MERSENNE: Final = 2**61 - 1
"""``hash(n * MERSENNE)`` is the same for all n."""


@record("p")
class P:
    """A record class whose label is also used without it."""

    x: Any


@record("p")
class PP:
    """The same label with another number of fields."""

    x: Any
    y: Any


@record("nothing")
class Nothing:
    """A record without fields."""


@record("q")
class Q:
    """A record with a default."""

    x: Any = 0
    y: Any = ""
    z: Any = False


class Subject:
    """What a reference in a value refers to: nothing that ever gets an event."""


REFS: Final = tuple(Ref.unbound(Subject()) for _ in range(2))

ATOMS: Final = (
    *(0, 1, -1, -2, 2, MERSENNE - 1, MERSENNE, -MERSENNE, 2 * MERSENNE, 3 * MERSENNE, 10**40),
    *(0.0, -0.0, 1.0, -1.0, 1e300, math.inf, -math.inf, math.nan),
    *(True, False),
    *("", "1", "a", "p", "True"),
    *(b"", b"1", b"a"),
    *(Symbol("a"), Symbol("p"), Symbol("1"), Symbol("")),
)
"""Every kind of atom, and for most of them a look-alike of another kind."""

LABELS: Final = (Symbol("p"), Symbol("q"), Symbol("nothing"), Symbol("Observe"), 1, True, 1.0, (1, "a"))


def atoms(*, refs: bool = True, wide: bool = False) -> st.SearchStrategy[Any]:
    """Atoms of the small alphabet; with *wide*, of the whole range too."""
    result = st.sampled_from(ATOMS + REFS if refs else ATOMS)
    if not wide:
        return result
    return (
        result
        | st.integers()
        | st.floats(width=64)
        | st.text(st.characters(exclude_categories=["Cs"]))
        | st.binary()
        | st.builds(Symbol, st.text(st.characters(exclude_categories=["Cs"])))
    )


def _compounds(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.lists(st.tuples(inner, inner), max_size=3).map(Dictionary),
        st.dictionaries(st.sampled_from(["a", "k", 1, b"a", Symbol("a")]), inner, max_size=3),
        st.lists(inner, max_size=3).map(ValueSet),
        st.builds(P, inner),
        st.builds(PP, inner, inner),
        st.builds(Q, inner, inner),
        st.just(Nothing()),
        st.builds(Record, st.sampled_from(LABELS), st.lists(inner, max_size=3)),
    )


def values(*, refs: bool = True, wide: bool = False, max_leaves: int = 8) -> st.SearchStrategy[Any]:
    """Values of every kind, nested."""
    return st.recursive(atoms(refs=refs, wide=wide), _compounds, max_leaves=max_leaves)


# --------------------------------------------------------------------------------------------------- patterns

_KEYS: Final = (0, 1, 2, 3, -1, True, 1.0, "a", "k", Symbol("a"), b"a", (1, "a"))
_KINDS: Final = tuple(
    Kind(name) for name in ("Boolean", "Double", "SignedInteger", "String", "ByteString", "Symbol", "Embedded", "Set")
)


def _groups(inner: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
    def group(kind: Any, label: Any, entries: list[tuple[Any, Pattern]]) -> Pattern:
        unique = Dictionary(entries)
        keys = sorted(unique, key=lambda key: order(freeze(key)))
        return Group(kind, label if kind == "rec" else None, tuple([(key, unique[key]) for key in keys]))

    entries = st.lists(st.tuples(st.sampled_from(_KEYS), inner), max_size=3)
    return st.builds(group, st.sampled_from(["rec", "arr", "dict"]), st.sampled_from(LABELS), entries)


def patterns(*, max_leaves: int = 6) -> st.SearchStrategy[Pattern]:
    """Any pattern of the published schema: sparse, with keys that never fit, with captures inside captures."""
    leaves = st.one_of(
        st.just(ANY),
        st.just(capture()),
        st.sampled_from(_KINDS),
        st.builds(Literal, atoms()),
        st.builds(Capture, st.sampled_from(_KINDS)),
    )
    return st.recursive(leaves, lambda inner: _groups(inner) | st.builds(Capture, inner), max_leaves=max_leaves)


@st.composite
def patterns_like(draw: Callable[[st.SearchStrategy[Any]], Any], value: Any) -> Pattern:
    """A pattern likely to match *value*: the value itself with holes in it, and now and then an alien part."""
    what = draw(st.sampled_from(("hole", "capture", "inside", "inside", "inside", "captured inside", "alien")))
    if what == "hole":
        discard: Pattern = ANY
        return discard
    if what == "capture":
        hole: Pattern = capture()
        return hole
    if what == "alien":
        alien: Pattern = draw(patterns(max_leaves=2))
        return alien
    inside: Pattern = draw(_inside(value))
    return Capture(inside) if what == "captured inside" else inside


@st.composite
def _inside(draw: Callable[[st.SearchStrategy[Any]], Any], value: Any) -> Pattern:
    def entries(pairs: Any) -> tuple[tuple[Any, Pattern], ...]:
        return tuple([(key, draw(patterns_like(part))) for key, part in pairs if draw(st.integers(0, 4))])

    if is_record(value):
        return Group("rec", label_of(value), entries(enumerate(fields_of(value))))
    if isinstance(value, (list, tuple)):
        return Group("arr", None, entries(enumerate(value)))
    if isinstance(value, (dict, Dictionary)):
        keys = sorted(value, key=lambda key: order(freeze(key)))
        return Group("dict", None, entries([(key, value[key]) for key in keys]))
    kind = kind_of(value)
    if kind == "Set" or (kind is not None and draw(st.booleans())):
        return Kind(kind)
    return pattern_of(value)
