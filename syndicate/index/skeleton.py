"""From a pattern to its skeleton: shape, constant map, capture map.

>>> from syndicate.values.pattern import ANY, capture
>>> from syndicate.values.value import Record
>>> p = Record("x", [Record("y", [3, 4]), capture(), Record("z", [ANY, Record("w"), ANY]), ANY])
>>> skeleton, constants = analyse(p)
>>> [(path, label.name) for path, label in skeleton.shape]
[((), 'x'), ((0,), 'y'), ((2,), 'z'), ((2, 1), 'w')]
>>> dict(zip(skeleton.places, constants)), [path for path, _ in skeleton.checks], skeleton.captures
({(0, 0): 3, (0, 1): 4}, [(2, 0), (2, 2), (3,)], ((1,),))

Equal skeletons are one object, so that an observer costs its constants and not its structure.

Source: Garnock-Jones 2018, "Skeletons" (``shape``, ``constantmap``, ``constantchecks``, ``capturemap``).
"""

from __future__ import annotations

from typing import Final, TypeAlias
from weakref import WeakValueDictionary

from attrs import define

from syndicate.errors import NotAValue, PatternError
from syndicate.index.path import Key, Path, Step
from syndicate.values.pattern import ANY, Capture, Discard, Group, Kind, Literal, Pattern, encode, pattern_of
from syndicate.values.value import (
    DICT,
    MAX_DEPTH,
    SEQ,
    Frozen,
    Value,
    freeze,
    order,
    thaw,
)

Check: TypeAlias = tuple[Path, str | None]
"""A place that must exist, or must hold an atom of the named class."""

Constants: TypeAlias = Frozen
"""The frozen forms that a pattern demands at its skeleton's places: bare if there is one place, otherwise a tuple."""

_ROOM: Final = 8
_DEEPEST: Final = MAX_DEPTH - _ROOM
"""The deepest nesting of a pattern *as data*, its labels and keys included, so that whoever observes observers gets a
value.
"""

_WIDEST: Final = 256
"""The most records, sequences and dictionaries in one pattern: the index follows one after the other, each on
Python's stack.
"""


@define(eq=False, weakref_slot=True)
class Skeleton:
    """What one pattern's structure demands of a value.  Interned: see :func:`analyse`."""

    shape: tuple[tuple[Path, Frozen], ...]
    places: tuple[Path, ...]
    checks: tuple[Check, ...]
    captures: tuple[Path, ...]


_skeletons: WeakValueDictionary[tuple[Value, ...], Skeleton] = WeakValueDictionary()


def analyse(written: Value) -> tuple[Skeleton, Constants]:
    """The skeleton of a pattern and the constants for its places; raises :class:`PatternError`.

    >>> analyse([1, 2])[0] is analyse([3, 4])[0], analyse([1, 2])[1], analyse([1])[1]
    (True, (1, 2), 1)
    """
    shape: list[tuple[Path, Frozen]] = []
    constants: list[tuple[Path, Frozen]] = []
    checks: list[Check] = []
    captures: list[Path] = []

    def walk(pattern: Pattern, path: Path, depth: int) -> None:
        if depth > _DEEPEST:
            raise _too_deep()
        match pattern:
            case Discard():
                checks.append((path, None))
            case Capture(inner):
                captures.append(path)
                if inner != ANY:
                    walk(inner, path, depth + 1)
            case Literal(value):
                constants.append((path, _form(value, depth)))
            case Kind(name):
                checks.append((path, name))
            case Group(kind, label, entries):
                shape.append((path, _form(label, depth + 1) if kind == "rec" else SEQ if kind == "arr" else DICT))
                if len(shape) > _WIDEST:
                    raise PatternError(
                        f"a pattern with more than {_WIDEST} records, sequences and dictionaries in it: split it"
                    )
                for key, entry in entries:
                    walk(entry, (*path, _step(kind, key, depth + 1)), depth + 2)
            case _:
                raise PatternError("unquote() has a meaning only inside quote()")

    pattern = pattern_of(written)
    walk(pattern, (), 0)
    places = tuple([path for path, _ in constants])
    structure = (tuple(shape), places, tuple(checks), tuple(captures))
    skeleton = _skeletons.get(structure)
    if skeleton is None:
        if not _evidently_small(*structure[:3]):
            _expect_value(pattern)
        skeleton = _skeletons.setdefault(structure, Skeleton(*structure))
    forms = tuple([form for _, form in constants])
    return skeleton, forms[0] if len(forms) == 1 else forms


def _step(kind: str, key: Value, depth: int) -> Step:
    return key if kind != "dict" and type(key) is int and key >= 0 else Key(_form(key, depth))


def _evidently_small(
    shape: tuple[tuple[Path, Frozen], ...], places: tuple[Path, ...], checks: tuple[Check, ...]
) -> bool:
    """Whether there are few places, and no compounds among the labels and keys."""
    paths = [*places, *[path for path, _ in shape], *[path for path, _ in checks]]
    compound = any(type(label) is tuple for _, label in shape) or any(
        type(step) is Key and type(step.form) is tuple for path in paths for step in path
    )
    return len(paths) <= _WIDEST and not compound


def _expect_value(pattern: Pattern) -> None:
    """Refuse a pattern that is too large as data: nobody could observe who observes."""
    try:
        freeze(encode(pattern), _ROOM)
    except NotAValue as error:
        raise PatternError(f"a pattern that is no value as data: {error}") from None


def _form(value: Value, depth: int) -> Frozen:
    """The frozen form of a value in what is at *depth* of a pattern."""
    try:
        return freeze(value, depth + _ROOM)
    except NotAValue:
        freeze(value)  # if it is not a value itself, this says why
        raise _too_deep() from None


def _too_deep() -> PatternError:
    return PatternError(f"a pattern nested deeper than {_DEEPEST} levels (a group counts as two): capture a part whole")


def synthesise(skeleton: Skeleton, constants: Constants) -> Pattern:
    """The pattern of a skeleton and its constants: the inverse of :func:`analyse`.

    >>> from syndicate.values.pattern import capture
    >>> synthesise(*analyse([capture(int), 2])) == pattern_of([capture(int), 2])
    True
    """
    forms = (constants,) if len(skeleton.places) == 1 else constants
    leaves: dict[Path, Pattern] = {path: Literal(thaw(form)) for path, form in zip(skeleton.places, forms, strict=True)}
    leaves |= {path: Kind(name) if name else ANY for path, name in skeleton.checks}
    heads = dict(skeleton.shape)
    below: dict[Path, list[Path]] = {}
    for path in sorted({*leaves, *heads, *skeleton.captures} - {()}, key=_by_keys):
        below.setdefault(path[:-1], []).append(path)

    def build(path: Path) -> Pattern:
        inner: Pattern = leaves[path] if path in leaves else ANY  # noqa: SIM401  # ANY has a value's type
        if path in heads:
            head = heads[path]
            entries = tuple([(_key(p[-1]), build(p)) for p in below.get(path, ())])
            inner = (
                Group("arr", None, entries)
                if head is SEQ
                else Group("dict", None, entries)
                if head is DICT
                else Group("rec", thaw(head), entries)
            )
        for _ in range(skeleton.captures.count(path)):  # a capture may hold nothing but a capture
            inner = Capture(inner)
        return inner

    return build(())


def _key(step: Step) -> Value:
    return step if isinstance(step, int) else thaw(step.form)


def _by_keys(path: Path) -> list[tuple[Value, ...]]:
    return [order(step if isinstance(step, int) else step.form) for step in path]
