"""Patterns: which assertions one is interested in, and which parts of them one wants.

Written as values with holes: ``Says("Alice", capture())``, ``[capture(int), ANY]``, ``{"key": capture()}``.
``capture()`` hands the part over, ``ANY`` matches and ignores it, ``capture(pattern)`` and ``capture(int)`` hand it
over only if it matches.  Records, lists and dictionaries in a pattern are *at least*: the value may have more fields,
items or entries.  Atoms are literals.

:func:`match` is the specification: it is naive on purpose, and the skeleton index must agree with it on every input.

>>> match([1, capture([capture(), ANY]), ANY], [1, [2, 3], 4])
([2, 3], 2)
>>> match([1, capture([capture(), ANY]), ANY], [1, [2], 5]) is None
True

Source: Garnock-Jones 2018, "Patterns"; Syndicate schemas, ``dataspacePatterns``, which :func:`encode` and
:func:`decode` translate to and from; ``docs/design/skeleton.md``, "Patterns".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias, TypeVar, overload
from typing import Literal as OneOf

from attrs import field, fields, frozen

from syndicate.errors import NotAValue, PatternError
from syndicate.values.value import (
    Dictionary,
    Frozen,
    Record,
    Ref,
    Symbol,
    Value,
    ValueSet,
    conversions,
    fields_of,
    freeze,
    freeze_as,
    identical,
    is_record,
    label_of,
    order,
    plain,
)

T = TypeVar("T")


@frozen
class Discard:
    """Matches anything and captures nothing."""

    def __repr__(self) -> str:
        return "ANY"


@frozen
class Capture:
    """Captures what its pattern matches; *name* is how text wrote it, and means nothing."""

    pattern: Pattern
    name: str = field(default="", eq=False)

    def __repr__(self) -> str:
        return f"capture({'' if self.pattern == ANY else repr(self.pattern)})"


@frozen
class Literal:
    """Matches one atom or reference."""

    value: Value = field(eq=freeze)


@frozen
class Kind:
    """Matches all atoms of one class.  Written as the Python class inside ``capture``."""

    name: str


@frozen
class Group:
    """Matches a compound: *kind* ``"rec"`` (with its label), ``"arr"`` or ``"dict"``, and a pattern for each listed
    key.

    Keys are places from 0 in records and sequences; entries are in the total order of their keys, hence captures in
    pre-order.
    """

    kind: OneOf["rec", "arr", "dict"]
    label: Value = field(eq=lambda label: label if label is None else freeze(label))
    entries: tuple[tuple[Value, Pattern], ...] = field(eq=lambda entries: [(freeze(key), p) for key, p in entries])


@frozen
class Unquote:
    """A hole in a quoted pattern: see :func:`quote`."""

    pattern: Value


Pattern: TypeAlias = Discard | Capture | Literal | Kind | Group | Unquote

ANY: Final[Value] = Discard()

_KINDS: Final[dict[type, Kind]] = {
    bool: Kind("Boolean"),
    float: Kind("Double"),
    int: Kind("SignedInteger"),
    str: Kind("String"),
    bytes: Kind("ByteString"),
    Symbol: Kind("Symbol"),
    Ref: Kind("Embedded"),
    set: Kind("Set"),
    frozenset: Kind("Set"),
    ValueSet: Kind("Set"),
}
KINDS: Final = {kind.name: kind for kind in _KINDS.values()}
_SEQUENCE: Final = Group("arr", None, ())
_DICTIONARY: Final = Group("dict", None, ())
_REC, _ARR, _DICT = Symbol("rec"), Symbol("arr"), Symbol("dict")


def _refuse(pattern: Pattern, depth: int) -> Frozen:
    raise NotAValue(f"{pattern!r} belongs in a pattern: it is not a value, and cannot be asserted or sent")


for _kind in (Discard, Capture, Literal, Kind, Group, Unquote):
    freeze_as(_kind, _refuse)


@overload
def capture() -> Value: ...
@overload
def capture(pattern: type[T]) -> T: ...
@overload
def capture(pattern: Value) -> Value: ...
def capture(pattern: Value = ANY) -> Value:
    """A hole whose content goes to the handler; *pattern* (a pattern or a class) restricts it.

    To who checks types, ``capture(int)`` is an int: ``At(capture(int))`` is refused where the field is a str.

    >>> capture(), capture(int), match(capture(int), True)
    (capture(), capture(Kind(name='SignedInteger')), None)
    """
    if isinstance(pattern, type):
        if pattern in _KINDS:
            return Capture(_KINDS[pattern])
        if pattern in (list, tuple):
            return Capture(_SEQUENCE)
        if issubclass(pattern, dict):
            return Capture(_DICTIONARY)
        if hasattr(pattern, "__label__"):
            places = tuple([(i, ANY) for i in range(len(fields(pattern)))])  # type: ignore[arg-type]  # attrs made it
            return Capture(Group("rec", pattern.__label__, places))
        if pattern in conversions:
            conversion = conversions[pattern]
            return Capture(Group("rec", conversion.label, tuple([(i, ANY) for i in range(conversion.fields)])))
        raise PatternError(
            f"capture({pattern.__qualname__}) is not possible: the classes of values are bool, int, float, str, bytes, "
            "Symbol, Ref, list, tuple, dict, set and @record classes"
        )
    return Capture(pattern_of(pattern))


def pattern_of(written: Value) -> Pattern:
    """The pattern that *written* means; raises :class:`PatternError` where it has a set, a class or no value in
    it.

    >>> pattern_of(["a", ANY]).entries
    ((0, Literal(value='a')), (1, ANY))
    """
    try:
        return _pattern_of(written)
    except RecursionError:
        raise PatternError("a pattern that is cyclic, or nested too deeply: flatten it") from None


def _pattern_of(written: Value) -> Pattern:
    if isinstance(written, (Discard, Capture, Literal, Kind, Group, Unquote)):
        return written
    written = plain(written)
    if is_record(written):
        return Group("rec", label_of(written), _places(fields_of(written)))
    if isinstance(written, (list, tuple)):
        return Group("arr", None, _places(written))
    if isinstance(written, Mapping):
        try:
            keys = sorted(written, key=lambda key: order(freeze(key)))
        except NotAValue as e:
            raise PatternError(f"a key of a dictionary pattern must be a value: {e}") from e
        return Group("dict", None, tuple([(key, _pattern_of(written[key])) for key in keys]))
    if isinstance(written, AbstractSet):
        raise PatternError(
            f"a set cannot be matched by its members: {written!r}. Capture it whole with capture(set) and "
            "look inside in the handler."
        )
    if isinstance(written, type):
        raise PatternError(
            f"the class {written.__qualname__} is not a pattern: write capture({written.__qualname__}), or an instance"
        )
    if callable(written):
        raise PatternError(
            f"a function cannot stand in a pattern: {getattr(written, '__name__', written)!r}. Write capture() or ANY, "
            "and look at the value in the handler"
        )
    try:
        freeze(written)
    except NotAValue as e:
        raise PatternError(f"not a pattern: {e}") from e
    return Literal(written)


def capture_names(pattern: Pattern) -> tuple[str, ...]:
    """The names of the captures of a pattern, in pre-order: "" for those without one.

    >>> capture_names(Group("arr", None, ((0, Capture(ANY, "who")), (1, Capture(ANY)))))
    ('who', '')
    """
    if isinstance(pattern, Capture):
        return (pattern.name, *capture_names(pattern.pattern))
    if isinstance(pattern, Group):
        return tuple([name for _, entry in pattern.entries for name in capture_names(entry)])
    return ()


def _places(items: Iterable[Value]) -> tuple[tuple[int, Pattern], ...]:
    return tuple([(i, _pattern_of(item)) for i, item in enumerate(items)])


# ---------------------------------------------------------------------------------------------------- the specification


def match(pattern: Value, value: Value) -> tuple[Value, ...] | None:
    """The captures of *pattern* in *value*, in pre-order, or None if it does not match.

    >>> match({"a": capture(), 1: ANY}, {1: 0, "a": 5, "b": 6}), match(1, True)
    ((5,), None)
    """
    captures: list[Value] = []
    return tuple(captures) if _matches(pattern_of(pattern), value, captures) else None


def _matches(pattern: Pattern, value: Value, captures: list[Value]) -> bool:
    if isinstance(pattern, Discard):
        return True
    if isinstance(pattern, Capture):
        captures.append(value)
        return _matches(pattern.pattern, value, captures)
    if isinstance(pattern, Literal):
        return identical(pattern.value, value)
    if isinstance(pattern, Kind):
        return kind_of(value) == pattern.name
    if isinstance(pattern, Unquote):
        raise PatternError("unquote() has a meaning only inside quote()")
    if pattern.kind == "dict":
        return isinstance(value, Mapping) and all(
            any(identical(key, k) and _matches(p, v, captures) for k, v in value.items()) for key, p in pattern.entries
        )
    if pattern.kind == "rec":
        value = plain(value)
        if not is_record(value) or not identical(label_of(value), pattern.label):
            return False
        value = fields_of(value)
    return isinstance(value, (list, tuple)) and all(
        type(i) is int and 0 <= i < len(value) and _matches(p, value[i], captures) for i, p in pattern.entries
    )


def kind_of(value: Value) -> str | None:
    """The class name of an atom (``SignedInteger``, ``String``...), or None for a compound."""
    for cls in (bool, int, float, str, bytes, Symbol, Ref):  # bool first: it is an int to Python
        if isinstance(value, cls):
            return _KINDS[cls].name
    return "Set" if isinstance(value, AbstractSet) else None


# ------------------------------------------------------------------------------------------------- patterns as values


def quote(written: Value) -> Value:
    """A pattern as data, to observe observers: ``Observe(quote(Present(unquote(capture()))), ANY)``.

    ``quote(p)`` is the value (in the published schema) that an ``Observe`` of *p* carries; ``unquote(q)`` inside
    makes a hole in it.

    >>> match(quote(Record("present", [unquote(capture())])), quote(Record("present", [capture()])))
    (Record(Symbol('bind'), [Record(Symbol('_'), [])]),)
    """
    return encode(pattern_of(written))


def unquote(pattern: Value) -> Value:
    """A hole in :func:`quote`, to be matched by *pattern* itself.

    >>> from syndicate import capture, Observe, quote
    >>> interest = quote(["say", unquote(capture())])   # a pattern of patterns: who wants to hear what anybody says
    """
    return Unquote(pattern)


def encode(pattern: Pattern) -> Value:
    """The value of a pattern in the published schema; a :class:`Kind` becomes its class symbol.

    >>> encode(pattern_of([capture()]))
    Record(Symbol('group'), [Record(Symbol('arr'), []), {0: Record(Symbol('bind'), [Record(Symbol('_'), [])])}])
    """
    if isinstance(pattern, Discard):
        return Record("_")
    if isinstance(pattern, Capture):
        return Record("bind", [encode(pattern.pattern)])
    if isinstance(pattern, Literal):
        return Record("lit", [pattern.value])
    if isinstance(pattern, Kind):
        return Symbol(pattern.name)
    if isinstance(pattern, Unquote):
        return pattern.pattern
    kind = Record(pattern.kind, [pattern.label] if pattern.kind == "rec" else [])
    entries = [(key, encode(p)) for key, p in pattern.entries]
    # Keys may differ only by value identity (1 and True), unless they are all places.
    places = pattern.kind != "dict" and all(type(key) is int for key, _ in entries)
    return Record("group", [kind, dict(entries) if places else Dictionary(entries)])


def decode(value: Value) -> Pattern:
    """The pattern that a value of the published schema means; raises :class:`PatternError` if it is not one.

    >>> decode(encode(pattern_of(["x", ANY]))) == pattern_of(["x", ANY])
    True
    """
    pattern = decoded(value)
    if pattern is None:
        raise PatternError(f"not a pattern of the dataspacePatterns schema: {value!r}")
    return pattern


def decoded(value: Value) -> Pattern | None:
    """The same; None for a value that is evidently none, such as nearly all that programs write as a pattern.

    >>> decoded(["x", ANY]) is None
    True
    """
    if isinstance(value, Symbol):
        return KINDS.get(value.name)
    if is_record(value) and isinstance(label := label_of(value), Symbol):
        parts = fields_of(value)
        decoder = _decoders.get((label.name, len(parts)))
        if decoder is not None:
            return decoder(*parts)
    return None


def _decode_literal(value: Value) -> Pattern:
    if kind_of(value) in (None, "Set"):
        raise PatternError(f"<lit> holds an atom or a reference, not {value!r}: write a group")
    return Literal(value)


def _decode_group(kind: Value, entries: Value) -> Pattern:
    if not isinstance(entries, Mapping):
        raise PatternError(f"the entries of a group must be a dictionary: {entries!r}")
    pairs = tuple([(key, decode(entries[key])) for key in sorted(entries, key=lambda key: order(freeze(key)))])
    label, args = (label_of(kind), fields_of(kind)) if is_record(kind) else (None, ())
    if label == _REC and len(args) == 1:
        return Group("rec", args[0], pairs)
    if label == _ARR and not args:
        return Group("arr", None, pairs)
    if label == _DICT and not args:
        return Group("dict", None, pairs)
    raise PatternError(f"a group is of <rec label>, <arr> or <dict>, not {kind!r}")


_decoders: Final[dict[tuple[str, int], Callable[..., Pattern]]] = {
    ("_", 0): lambda: ANY,
    ("bind", 1): lambda p: Capture(decode(p)),
    ("lit", 1): _decode_literal,
    ("group", 2): _decode_group,
}
