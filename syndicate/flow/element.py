"""Elements: what a Z-set may hold, and how a dictionary distinguishes them.

Python's ``==`` confuses ``1``, ``1.0`` and ``True``, so no Z-set may key on raw values.  But nearly all elements of
real circuits are tuples of strings and integers, on which Python's own identity is the right one, and user functions
want to see these tuples, not frozen forms.  So an element has a **key**: itself if it is *plain*, and otherwise a
:class:`Typed`, which holds the element and compares by a typed form.

* plain: ``str``, ``bytes``, ``int``, ``None``, symbols, references, floats that equal no integer and not themselves
  unequal (``2.5``, not ``2.0``, ``-0.0`` or ``nan``), and tuples of plain values, all of exactly these types; values of
  classes whose ``==`` is identity of values by itself (``own_identity``), as lattices'
* typed: ``bool``, other floats, records, frozen sets, dictionaries of :mod:`syndicate.values.value` (with ``None`` in
  them,
  too); any other hashable object, distinguished by its class and its own ``==``, also of a subclass of ``str`` or
  ``tuple``; tuples that hold such
* refused: what cannot be hashed (a ``list``, a ``dict``)

A plain element costs one dictionary operation.  Whether elements are plain is asked once a batch, where a user's
function has made new ones, by ``set(map(type, ...))``: 25 ns for each atom (measured), against 400 for freezing a
tuple and 115 for a dictionary operation with a :class:`Typed`.  A batch that holds a :class:`Typed` is a
:class:`Mixed`, so that one type test tells an operator whether it must unwrap.

Contract: equal values have equal keys, and ``natural(key_of(x))`` is ``x``.

>>> len({key_of(x) for x in (1, 1.0, True, float("nan"), float("nan"), 0.0, -0.0)})
6

Source: ``docs/design/values.md``, "Identity"; ``docs/design/flow.md``, "What comparisons mean" and "Rows, columns and
what they cost".
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from operator import is_, itemgetter
from typing import Any, Final, TypeAlias, TypeVar

from syndicate.errors import NotAValue, PatternError, SyndicateError, UnhashableElement, short
from syndicate.values.value import (
    MAX_DEPTH,
    Dictionary,
    Record,
    Ref,
    Symbol,
    fields_of,
    freeze,
    is_record,
    label_of,
    order,
)

Element: TypeAlias = Any
"""What a user puts in and gets out."""

Key: TypeAlias = Any
"""What a dictionary is keyed by: a plain element, or a :class:`Typed`."""

F = TypeVar("F")

ATOMS: Final = frozenset({str, bytes, int, type(None), Symbol, Ref})
ATOMS_AND_FLOATS: Final = ATOMS | {float}
_TUPLE: Final = frozenset({tuple})
_NUMBERS: Final = frozenset({bool, float})
_FROZEN: Final = object()


class Typed:
    """The key of an element that is not plain."""

    __slots__ = ("form", "hashed", "value")

    def __init__(self, value: Element, form: object) -> None:
        self.value = value
        self.form = form
        self.hashed = hash(form)

    def __hash__(self) -> int:
        return self.hashed

    def __eq__(self, other: object) -> bool:
        if type(other) is not Typed or self.hashed != other.hashed:
            return False
        if self.form is not other.form:
            if not self.form == other.form:
                return False
            other.form = self.form  # what was equal once is not compared again: see meet()
        return True

    def __repr__(self) -> str:
        return repr(self.value)


def meet(keys: Iterable[Key], *tables: Collection[Key]) -> None:
    """Look typed keys up, so that an ``__eq__`` of a user's class raises before anything is changed, not midway."""
    for table in tables:
        deque(map(table.__contains__, keys), maxlen=0)


class Mixed(dict[Key, int]):
    """A batch that holds, or may hold, typed keys."""

    __slots__ = ()


class Rows(list[tuple[Key, Key, int]]):
    """A batch of an indexed stream, ``(key, value, weight)``, that holds no typed keys.  Not consolidated."""

    __slots__ = ()


class MixedRows(Rows):
    """The same, where there may be typed keys."""

    __slots__ = ()


Batch: TypeAlias = dict[Key, int] | Rows
"""What a stream carries in a tick: weights by key, or the rows of an indexed stream."""


def rearranges(function: F) -> F:
    """Mark a function that makes its results of nothing but its arguments' parts: plain in, plain out, no check.

    It must not ask for the type of a part: a columnar step calls it once, on the names of columns in place of values.
    ``operator.itemgetter`` needs no mark.

    >>> swap = rearranges(lambda pair: (pair[1], pair[0])); swap((1, 2))
    (2, 1)
    """
    function.rearranges = True  # type: ignore[attr-defined]  # a function takes attributes, which its type does not say
    return function


def is_rearranging(function: object) -> bool:
    """Whether *function* was marked, or is an ``itemgetter``."""
    return type(function) is itemgetter or getattr(function, "rearranges", False) is True


def natural(key: Key) -> Element:
    """The element of a key."""
    return key.value if type(key) is Typed else key


def naturals(keys: Iterable[Key]) -> list[Element]:
    """The elements of keys."""
    return [key.value if type(key) is Typed else key for key in keys]


def all_plain(elements: Iterable[Element]) -> bool:
    """Whether each of *elements*, which can be walked twice, is plain: the test of a batch, at C speed."""
    kinds = set(map(type, elements))
    if kinds <= ATOMS:
        return True
    for _ in range(MAX_DEPTH):
        if float in kinds and not _plain_floats(elements):
            return False
        if tuple not in kinds:
            return _are_plain(kinds)
        if len(kinds) > 1:
            if not _are_plain(kinds - _TUPLE):
                return False
            elements = [item for item in elements if type(item) is tuple]
        elements = list(chain.from_iterable(elements))
        kinds = set(map(type, elements))
        if kinds <= ATOMS:
            return True
    raise UnhashableElement(f"an element nested deeper than {MAX_DEPTH} levels: flatten it")


def _are_plain(kinds: set[type]) -> bool:
    return kinds <= ATOMS_AND_FLOATS or all(map(_has_own_identity, kinds - ATOMS_AND_FLOATS))


def _has_own_identity(kind: type) -> bool:
    return getattr(kind, "own_identity", False)


def _plain_floats(elements: Iterable[Element]) -> bool:
    floats = [item for item in elements if type(item) is float]
    return not any(map(float.is_integer, floats)) and not any(item != item for item in floats)  # noqa: PLR0124  # nan


def key_of(element: Element) -> Key:
    """The key of one element; raises :class:`UnhashableElement`."""
    kind = type(element)
    if kind in ATOMS or (kind is tuple and ATOMS.issuperset(map(type, element))):  # as nearly all are
        return element
    form = _form(element, 0)
    return element if form is element else Typed(element, form)


def keys_of(elements: list[Element]) -> tuple[list[Key], bool]:
    """The keys of *elements*, and whether there are typed ones among them.

    >>> keys_of([(1, "a"), (True, "a")])
    ([(1, 'a'), (True, 'a')], True)
    """
    if all_plain(elements):
        return elements, False
    return [key_of(element) for element in elements], True


def _form(element: Element, depth: int) -> Key:
    """A hashable with the right identity: *element* itself if it is plain."""
    kind = type(element)
    if kind in ATOMS:
        return element
    if depth > MAX_DEPTH:
        raise UnhashableElement(f"an element nested deeper than {MAX_DEPTH} levels: flatten it")
    if kind is tuple:
        forms = [item if type(item) in ATOMS else _form(item, depth + 1) for item in element]
        return element if all(map(is_, forms, element)) else tuple(forms)
    if kind is float and not element.is_integer() and element == element:  # noqa: PLR0124  # nan
        return element
    if kind in (list, dict, set, bytearray):
        raise UnhashableElement(_REFUSED.format(kind=kind.__name__, element=short(element), remedy=_REMEDIES[kind]))
    if getattr(kind, "own_identity", False):  # to freeze a large one in each batch would cost all of it
        return element
    if isinstance(element, tuple) and not is_record(element):  # a named tuple
        return (kind, tuple([_form(item, depth + 1) for item in element]))
    subclass = isinstance(element, (str, bytes, int, float)) and kind not in _NUMBERS  # is not what it is made of
    try:
        return (kind if subclass else _FROZEN, freeze(element))
    except (NotAValue, PatternError):
        pass
    if kind is frozenset:
        return (kind, frozenset([_form(item, depth + 1) for item in element]))
    if kind is Dictionary:  # with None in it, as rules see what is absent
        return (kind, frozenset([(_form(key, depth + 1), _form(item, depth + 1)) for key, item in element.items()]))
    if is_record(element):
        return (Record, _form(label_of(element), depth + 1), *[_form(item, depth + 1) for item in fields_of(element)])
    remedy = getattr(kind, "no_element", None)  # a placeholder for rows or values that are not there yet
    if remedy is not None:
        raise UnhashableElement(_REFUSED.format(kind=kind.__name__, element=short(element), remedy=remedy))
    try:
        hash(element)
    except (TypeError, SyndicateError):
        remedy = "give its class __hash__ and __eq__"
        raise UnhashableElement(_REFUSED.format(kind=kind.__name__, element=short(element), remedy=remedy)) from None
    return (kind, element)


_REFUSED: Final = "a {kind} cannot be an element of a Z-set, nor a part of one: {element}. Remedy: {remedy}."
_REMEDIES: Final[dict[type, str]] = {
    list: "write a tuple",
    dict: "write a record, a tuple, or syndicate.Dictionary(...)",
    set: "write a frozenset",
    bytearray: "write bytes(...)",
}


# ------------------------------------------------------------------------------------------------------------- batches


def collect(elements: list[Element], weights: Iterable[int]) -> dict[Key, int]:
    """The canonical batch of *elements*, new ones, and their weights, of which none is 0: equal elements are added."""
    if all_plain(elements):
        return collect_keys(elements, weights)
    return mixed(zip(map(key_of, elements), weights, strict=True))


def collect_keys(keys: list[Key], weights: Iterable[int]) -> dict[Key, int]:
    """The same for elements that are known to be plain."""
    if len(keys) < 2:
        return dict(zip(keys, weights, strict=True))
    weights = list(weights)
    batch = dict(zip(keys, weights, strict=True))
    if len(batch) == len(keys):
        return batch
    if weights.count(1) == len(weights):
        return dict(Counter(keys))  # counts in C
    return add_up({}, zip(keys, weights, strict=True))


def mixed(pairs: Iterable[tuple[Key, int]]) -> dict[Key, int]:
    """The canonical batch of keys and weights, some of them typed."""
    return add_up(Mixed(), pairs)


B = TypeVar("B", bound=dict[Key, int])


def add_up(batch: B, pairs: Iterable[tuple[Key, int]]) -> B:
    """Add weights into *batch*, which stays canonical."""
    get = batch.get
    for key, weight in pairs:
        total = get(key, 0) + weight
        if total:
            batch[key] = total
        elif key in batch:
            del batch[key]
    return batch


def plus(a: dict[Key, int], b: dict[Key, int]) -> dict[Key, int]:
    """The sum of two batches; neither is changed, either may be returned."""
    if not a:
        return b
    if not b:
        return a
    if len(a) < len(b):
        a, b = b, a
    total = Mixed(a) if type(a) is Mixed or type(b) is Mixed else dict(a)
    return add_up(total, b.items())


def negated(batch: dict[Key, int]) -> dict[Key, int]:
    """The batch with each weight negated."""
    negative = {key: -weight for key, weight in batch.items()}
    return Mixed(negative) if type(batch) is Mixed else negative


def rank(element: Element) -> tuple[Element, ...]:
    """A sort key: the total order of :mod:`syndicate.values.value`, with ``None`` first and what is no value last.

    >>> sorted(["b", 2, True, None, (0,), 1.5], key=rank)
    [None, True, 1.5, 2, 'b', (0,)]
    """
    if element is None:
        return (-1,)
    if type(element) is Typed:
        element = element.value
    if type(element) is tuple:
        return (7, [rank(item) for item in element])
    try:
        return order(freeze(element))
    except (NotAValue, PatternError):
        text = repr(element)
        return (11, type(element).__qualname__, "" if text == object.__repr__(element) else text)  # no address


def in_order(keys: Iterable[Key]) -> Iterator[Key]:
    """Keys by the total order of their elements."""
    keys = list(keys)
    try:
        return iter(sorted(keys) if _are_alike(keys) else sorted(keys, key=rank))
    except TypeError:  # two of them were of different kinds
        return iter(sorted(keys, key=rank))


def ordered(batch: Mapping[Key, int]) -> Mapping[Key, int]:
    """The same batch by the total order of its elements, as programs see it.

    In which order the rows of a batch come is chance: each engine, and each kernel, has one of its own.  *n* elements
    cost *n* log *n* comparisons of Python's own where they are numbers or strings, or tuples of such, four times as
    much otherwise.

    >>> ordered({("b", 1): 1, ("a", 2): -1})
    {('a', 2): -1, ('b', 1): 1}
    """
    if len(batch) < 2:
        return batch
    if type(batch) is Mixed:
        return Mixed((key, batch[key]) for key in in_order(batch))
    try:
        return dict(sorted(batch.items(), key=itemgetter(0)) if _are_alike(batch) else _ranked(batch))
    except TypeError:
        return dict(_ranked(batch))


def _ranked(batch: Mapping[Key, int]) -> list[tuple[Key, int]]:
    return sorted(batch.items(), key=lambda row: rank(row[0]))


_ALIKE: Final = (frozenset({int, str}), frozenset({int, bytes}))
"""Kinds of which Python compares no two, or compares them as the total order has it: of floats it does not compare NaN,
and for text with bytes it can be told to warn.
"""


def _are_alike(keys: Collection[Key]) -> bool:
    """Whether Python compares any two of *keys* as the total order has it, or not at all: atoms, and tuples of such."""
    kinds = set(map(type, keys))
    if kinds == _TUPLE:
        kinds = set(map(type, chain.from_iterable(keys)))
    return any(map(kinds.issubset, _ALIKE))
