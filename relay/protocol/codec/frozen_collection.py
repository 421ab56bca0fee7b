"""Collections from a peer: the frozen forms of sets and dictionaries, made without letting the peer choose the price.

Three prices are not in proportion to a frame.  *Colliding hashes*: those of strings, bytes and symbols are keyed by
secrets of the process, but that of a tuple is a public function of its items, so that a peer can make thousands of
records with one hash, and a set of them takes quadratic time (:func:`flooded`).  *Sets in sets*: Python hashes a tuple
again each time, so that each level costs all that is inside; what is in such sets is therefore counted once a level
(``Limits.keyed``).  *Sorting*: the order of :func:`syndicate.values.value.order` costs a call an item; here atoms are
sorted
by kind, as they are.

>>> from syndicate.values.value import SEQ
>>> ordered([(SEQ, 2), "b", (SEQ, 1), 7, "a"])
[7, 'a', 'b', (SEQ, 1), (SEQ, 2)]

Contract: the same forms as :func:`syndicate.values.value.freeze` makes.

Source: Preserves, on total order; ``docs/design/values.md``, "Hashes"; ``docs/design/protocol.md``, "Decoders and their
limits".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Final, TypeAlias, TypeVar

from relay.protocol.limits import Limits
from relay.protocol.packets import WireRef
from syndicate.errors import ProtocolError
from syndicate.native import kernel
from syndicate.values.value import BIG, BOOL, DICT, DOUBLE, MINUS_TWO, SET, Frozen, Symbol, Value, order, thaw

T = TypeVar("T")

FEW: Final = 512
"""So many members may have one hash: comparing each with each takes some milliseconds.

By chance no two have, but hash(-1) == hash(-2), so that of points around 0 in nine dimensions 512 collide.
"""

MEMBERS: Final = 512
"""The members or keys that are looked at, or sorted, at a stretch: some tenths of a millisecond."""

MORE: Final[Frozen] = ()
"""In place of a packet: others are to have their turns before more is read."""

Parts: TypeAlias = Generator[Frozen, None, T]
"""What is made in parts: :data:`MORE` between two of them, and it in the end."""

_COMPOUND: Final = frozenset({tuple, WireRef})
_KEY: Final = itemgetter(0)


@kernel
def sealed(form: T, /) -> T:
    """*form*, a compound.  One that leads to nothing but atoms is of no interest to the collector, which need not look
    at it again and again.
    """
    return form


def flooded(keys: Collection[Frozen]) -> bool:
    """Whether so many of *keys*, distinct values, have one hash that it was meant: do not make a set of them.

    It costs the hash of each, if there are more than may be alike, and no comparison.

    >>> flooded([("point", x, y) for x in (-1, -2, 5) for y in range(-300, 300)])
    False
    >>> flooded([(-1 - n % 2, -1 - n // 2 % 2, *[-1 - (n >> k) % 2 for k in range(2, 10)]) for n in range(1024)])
    True
    """
    if len(keys) <= FEW:
        return False
    hashes = [*map(hash, keys)]
    return len({*hashes}) < len(hashes) and max(Counter(hashes).values()) > FEW


def weight(forms: Iterable[Frozen], most: int) -> int:
    """The nodes inside of those of *forms*, members or keys, that are compound; no more than *most* are counted.

    >>> weight(["a", ("point", 1, 2)], 100), weight(["a", "b"], 100)
    (3, 0)
    """
    count = 0
    pending = [form for form in forms if type(form) in _COMPOUND]
    while pending and count <= most:
        form = pending.pop()
        if type(form) is WireRef:
            form = (form.whose, form.oid, *form.caveats)
        count += len(form)
        pending += [item for item in form if type(item) in _COMPOUND]
    return count


def collects(items: Sequence[Frozen]) -> bool:
    """Whether these, of which the first says what it is to become, are a set or a dictionary."""
    return bool(items) and (items[0] is SET or items[0] is DICT)


class Collections:
    """The sets and dictionaries of one packet: call :meth:`begin` before each."""

    __slots__ = ("_keyed", "_limits")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._keyed = 0

    def begin(self) -> None:
        """Nothing has been hashed yet."""
        self._keyed = 0

    def parts(self, items: list[Frozen]) -> Parts[Frozen]:
        """The set or dictionary of *items*, of which the first is its mark; raises :class:`ProtocolError`."""
        return self._set(items[1:]) if items[0] is SET else self._dictionary(items[1:])

    def _set(self, members: list[Frozen]) -> Parts[Frozen]:
        if not members or (len(members) == 1 and type(members[0]) not in _COMPOUND):
            return sealed((SET, *members))
        yield from self._check(members, len(members), "a set")
        distinct: set[Frozen] = set()
        yield from _each_stretch(members, distinct.update)
        if len(distinct) < len(members):
            raise ProtocolError("a set with a duplicate member")
        return sealed((SET, *(yield from _ordered(members))))

    def _dictionary(self, items: list[Frozen]) -> Parts[Frozen]:
        if not items:
            return (DICT, (), ())
        keys, values = items[::2], items[1::2]
        if len(keys) > len(values):
            raise ProtocolError("a dictionary with a key without a value")
        if len(keys) == 1 and type(keys[0]) not in _COMPOUND:
            return sealed((DICT, sealed((keys[0],)), sealed((values[0],))))
        yield from self._check(keys, len(items), "a dictionary")
        pairs: dict[Frozen, Frozen] = {}
        yield from _each_stretch([*zip(keys, values, strict=True)], pairs.update)
        if len(pairs) < len(keys):
            raise ProtocolError("a dictionary with a duplicate key")
        keys = yield from _ordered(keys)
        return sealed((DICT, sealed(tuple(keys)), sealed(tuple([pairs[key] for key in keys]))))

    def _weigh(self, keys: Sequence[Frozen]) -> None:
        most = self._limits.keyed
        self._keyed += weight(keys, most)
        if self._keyed > most:
            raise ProtocolError(f"more than {most} values inside of members of sets, or of keys")

    def _check(self, keys: list[Frozen], size: int, what: str) -> Parts[None]:
        limits = self._limits
        if size > limits.entries:
            raise ProtocolError(f"{what} of {size} members, keys and values: at most {limits.entries} are allowed")
        if _COMPOUND.isdisjoint(map(type, keys)):
            return
        yield from _each_stretch(keys, self._weigh)
        if flooded(keys):
            raise ProtocolError(f"{what} of {len(keys)} members that are duplicates, or whose hashes collide")


def _each_stretch(items: Sequence[T], look: Callable[[Sequence[T]], None]) -> Parts[None]:
    for part in _stretches(items):
        look(part)
        if len(items) > MEMBERS:
            yield MORE


def whole(parts: Parts[T]) -> T:
    """What is made in parts, made at a stretch."""
    while True:
        try:
            next(parts)
        except StopIteration as end:
            result: T = end.value
            return result


def ordered(forms: Collection[Frozen]) -> list[Frozen]:
    """*forms*, distinct, in the order of :func:`syndicate.values.value.order`."""
    return whole(_ordered(forms))


def _ordered(forms: Collection[Frozen]) -> Parts[list[Frozen]]:
    """The same in parts."""
    if len(forms) < 2:
        return [*forms]
    kinds = {*map(type, forms)}
    if len(kinds) == 1:
        return (yield from _sorted([*forms], _SORTED_BY[kinds.pop()]))
    places: list[list[Frozen]] = [[] for _ in range(9)]
    for form in forms:
        places[_PLACES.get(type(form)) or _place(form)].append(form)
    result: list[Frozen] = []
    for alike in places:
        if alike:
            numbers = alike is places[2] and MINUS_TWO in alike
            result += yield from _sorted(alike, thaw if numbers else _SORTED_BY[type(alike[0])])
    return result


def _sorted(alike: list[Frozen], key: Callable[[Frozen], Value] | None) -> Parts[list[Frozen]]:
    """*alike* by *key*: in runs, and then two and two of these as one, which takes no more than a look at each."""
    if len(alike) <= MEMBERS:
        return sorted(alike, key=key)
    runs: list[list[Value]] = []
    for part in _stretches(alike):
        runs.append(sorted(part) if key is None else sorted(zip(map(key, part), part, strict=True), key=_KEY))
        yield MORE
    while len(runs) > 1:
        merged: list[list[Value]] = []
        for at in range(0, len(runs), 2):
            merged.append(sorted(chain.from_iterable(runs[at : at + 2]), key=None if key is None else _KEY))
            yield MORE
        runs = merged
    return runs[0] if key is None else [form for _, form in runs[0]]


def _stretches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[at : at + MEMBERS] for at in range(0, len(items), MEMBERS))


def _place(form: Frozen) -> int:
    """Where a tuple is among atoms: large integers on both sides of the small ones."""
    head = form[0]
    if head is BIG:
        return 2 if form == MINUS_TWO else 1 if form[1][0] > 127 else 3
    return 0 if head is BOOL or head is DOUBLE else 7


_PLACES: Final[dict[type, int]] = {int: 2, str: 4, bytes: 5, Symbol: 6, WireRef: 8}
_SORTED_BY: Final[dict[type, Callable[[Value], Value] | None]] = {
    int: None,
    str: None,
    bytes: None,
    Symbol: attrgetter("name"),
    WireRef: id,
    tuple: order,
}
