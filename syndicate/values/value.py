"""Values: what may be asserted and sent, when two are the same, and which comes first.

The data model is that of Preserves: booleans, doubles, integers, strings, bytes, symbols, records, sequences, sets,
dictionaries and embedded references.  Its identity is not Python's: ``1``, ``1.0`` and ``True`` are three values,
``nan`` equals itself, ``0.0`` and ``-0.0`` differ, the order of sets and dictionaries does not count.  No dictionary
may therefore be keyed by a raw Python value.

So each value has a **frozen form**: an immutable tree of exact tuples on which Python's own ``==`` and ``hash`` are
that identity. The edges (``send``, ``assert_``, a pattern's literals) freeze; the dataspace and its index see frozen
forms only; what a handler gets is thawed.  Freezing also validates and takes the snapshot that keeps a list changed
after ``send`` from changing the dataspace.

========================  ================================================================================
value                     frozen form
========================  ================================================================================
``str bytes Symbol Ref``  itself
``int``                   itself; ``(BIG, bytes)`` from 2**61 - 1 on, and for -2, whose hash is that of -1
``bool``, ``float``       ``(BOOL, "t")``, ``(DOUBLE, eight bytes)``
record                    ``(label, field, ...)``
sequence                  ``(SEQ, item, ...)``
set, dictionary           ``(SET, item, ...)``, ``(DICT, (key, ...), (value, ...))``, both sorted
========================  ================================================================================

Tuples beat a class with its own ``__hash__`` five to one as dictionary keys.  Strings, bytes, symbols and tags have
hashes that are keyed by secrets of the process; an integer that is itself in a form has a hash that no other such
integer has.  So no two lists of small numbers share a hash, as all lists of -1 and -2 do in Python; who makes 64-bit
integers for the purpose can still prepare collisions of tuples (`docs/design/values.md`).

>>> identical([1, 2], (1, 2)), identical(1, True), identical(0.0, -0.0), identical({1: 2, 3: 4}, {3: 4, 1: 2})
(True, False, False, True)

Source: Preserves, on equivalence and total order; Garnock-Jones 2018, "Constructing assertions";
``docs/design/values.md``, "Identity" and "Hashes".
"""

from __future__ import annotations

import struct
import weakref
from _weakref import _remove_dead_weakref  # type: ignore[attr-defined]  # as weakref does, in one step
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import count
from types import MappingProxyType
from typing import Any, ClassVar, Final, Protocol, TypeAlias

import attrs

from syndicate.errors import NotAValue, PatternError, RecordDefinition, short
from syndicate.native import kernel
from syndicate.values.depth import COUNTED, DEEPEST, counted, within

MAX_DEPTH: Final = DEEPEST

Value: TypeAlias = Any
"""Whatever :func:`freeze` accepts."""

Frozen: TypeAlias = Any
"""The frozen form of a value: see the table above."""


class Tag:
    """The head of a frozen form that is not a record.

    A tag with ``expand`` heads a compact form that stands for a larger one (an ``Observe``, see
    :mod:`syndicate.index.interest`).
    """

    __slots__ = ("expand", "name", "rank")

    def __init__(self, name: str, rank: int, expand: Callable[[Frozen], Frozen] | None = None) -> None:
        self.name = name
        self.rank = rank
        self.expand = expand

    def __repr__(self) -> str:
        return self.name


BOOL = Tag("BOOL", 0)
DOUBLE = Tag("DOUBLE", 1)
BIG = Tag("BIG", 2)
SEQ = Tag("SEQ", 7)
SET = Tag("SET", 8)
DICT = Tag("DICT", 9)

TRUE: Final = (BOOL, "t")
FALSE: Final = (BOOL, "f")
SMALL = 2**61 - 1
MINUS_TWO: Final = (BIG, b"\xfe")
"""The form of -2, of which there is one: CPython gives it the hash of -1, so that 4,096 lists of twelve such would have
one hash."""
_PACK = struct.Struct(">d")


class _Known(weakref.ref["Symbol"]):
    """A symbol that lasts as long as somebody else has it."""

    __slots__ = ("name",)
    name: str


_KNOWN: Final[dict[str, _Known]] = {}


def _forget(
    entry: weakref.ref[Symbol],
    table: dict[str, _Known] = _KNOWN,
    remove: Callable[[dict[str, _Known], str], object] = _remove_dead_weakref,
) -> None:
    """Nobody has it any more; where another thread has put one in its place meanwhile, that stays.  At the end of the
    interpreter names of modules are gone, and what is here as a default is not.
    """
    remove(table, entry.name)  # type: ignore[attr-defined]  # each is a _Known


class Symbol:
    """A name that is not a string: record labels, enumerations.  Interned, so that equality is identity.

    >>> Symbol("box") is Symbol("box"), Symbol("box") == "box"
    (True, False)
    """

    __slots__ = ("__weakref__", "name")
    _known: ClassVar[dict[str, _Known]] = _KNOWN
    name: str

    def __new__(cls, name: str) -> Symbol:  # noqa: PYI034  # nobody subclasses it: there is one for each name
        """The symbol of this name; raises :class:`NotAValue` if *name* is no string."""
        entry = _KNOWN.get(name)
        symbol = None if entry is None else entry()
        if symbol is None:
            if type(name) is not str:
                raise NotAValue(f"a symbol's name is a str, not {type(name).__name__}: {name!r}")
            symbol = object.__new__(cls)
            object.__setattr__(symbol, "name", name)
            # Weak, so that a broker fed with ever-new labels forgets them.
            fresh = _Known(symbol, _forget)
            fresh.name = name
            while (entry := _KNOWN.setdefault(name, fresh)) is not fresh:
                other = entry()
                if other is not None:  # another thread's
                    return other
                _forget(entry)
        return symbol

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a symbol cannot be changed: {self!r}")

    def __reduce__(self) -> tuple[type[Symbol], tuple[str]]:
        return Symbol, (self.name,)

    def __repr__(self) -> str:
        return f"Symbol({self.name!r})"

    def __str__(self) -> str:
        return self.name


class Assertion(Protocol):
    """What an entity knows an assertion by: its handle."""

    @property
    def form(self) -> Frozen:
        """What is asserted, frozen."""

    def __hash__(self) -> int: ...


class BoundEntity(Protocol):
    """What a reference stands for: an entity, as :class:`~syndicate.actors.turn.Entity` is one."""

    def assert_(self, value: Value, handle: Assertion, /) -> None:
        """*value* was asserted."""

    def retract(self, handle: Assertion, /) -> None:
        """What was asserted with *handle* is gone."""

    def message(self, value: Value, /) -> None:
        """*value* was sent."""

    def sync(self, peer: Ref, /) -> None:
        """All earlier events were handled."""


class HomeActor(Protocol):
    """What values know of an actor."""

    @property
    def name(self) -> str:
        """As it was named when it was spawned."""

    @property
    def system(self) -> object:
        """That of its turns."""


class HomeFacet(Protocol):
    """What values know of a facet."""

    @property
    def alive(self) -> bool:
        """Whether events still run in it."""

    @property
    def actor(self) -> HomeActor:
        """Whose facet it is."""

    def enter(self, fn: Callable[[], object]) -> None:
        """Run *fn* in it, in a turn of its own, soon."""


@attrs.define(eq=False, repr=False, weakref_slot=True)
class Ref:
    """A reference to an entity, bound to the facet in which the entity's events run.  Equal only to itself.

    ``raw`` says that the entity wants frozen forms (a dataspace, a relay's proxy) instead of values.

    >>> from syndicate import dataspace, run
    >>> run(lambda: print(dataspace() == dataspace()))
    False
    """

    facet: HomeFacet
    entity: BoundEntity
    raw: bool = False
    _place: int = attrs.field(init=False, factory=count().__next__)  # in the total order: the same in every run

    @classmethod
    def unbound(cls, entity: object = None) -> Ref:
        """A reference that no event can reach, as in a recording: it has an identity, and that is all."""
        return cls(None, entity)  # type: ignore[arg-type]  # nobody but who made it looks at what it is bound to

    def __repr__(self) -> str:
        return f"<Ref {type(self.entity).__name__} of {self.facet!r}>"


class Record:
    """A record whose label has no Python class here: ``Record(Symbol("present"), ["Alice"])``.

    >>> Record("present", ["Alice"]).fields
    ('Alice',)
    """

    __slots__ = ("fields", "label")
    label: Value
    fields: tuple[Value, ...]

    def __init__(self, label: Value, fields: Iterable[Value] = ()) -> None:
        object.__setattr__(self, "label", Symbol(label) if type(label) is str else label)
        object.__setattr__(self, "fields", tuple(fields))

    @classmethod
    def labelled(cls, label: Value, fields: Iterable[Value]) -> Record:
        """A record with this very label, be it a ``str``, which the class itself takes for a symbol's name."""
        record = object.__new__(cls)
        object.__setattr__(record, "label", label)
        object.__setattr__(record, "fields", tuple(fields))
        return record

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a record cannot be changed: {self!r}")

    def __eq__(self, other: object) -> bool:
        return same(self, other)

    def __hash__(self) -> int:
        return hash_of(self)

    def __reduce__(self) -> tuple[Callable[..., Record], tuple[Value, tuple[Value, ...]]]:
        return Record.labelled, (self.label, self.fields)

    def __repr__(self) -> str:
        return f"Record({self.label!r}, {list(self.fields)!r})"


class Dictionary(Mapping[Value, Value]):
    """An immutable dictionary keyed by value identity, so that it can hold both ``1`` and ``True``.

    >>> d = Dictionary([(1, "int"), (True, "bool")]); d[1], d[True], len(d)
    ('int', 'bool', 2)
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[Value, Value] | Iterable[tuple[Value, Value]] = ()) -> None:
        pairs = entries.items() if isinstance(entries, Mapping) else entries
        self._entries = {freeze(key): (key, value) for key, value in pairs}

    def __getitem__(self, key: Value) -> Value:
        try:
            return self._entries[freeze(key)][1]
        except NotAValue:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[Value]:
        return (key for key, _ in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return same(self, other) if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        return hash_of(self)

    def __reduce__(self) -> tuple[type[Dictionary], tuple[list[tuple[Value, Value]]]]:
        return Dictionary, (list(self.items()),)  # frozen forms, the keys inside, have an identity in this process only

    def __repr__(self) -> str:
        return f"Dictionary({list(self.items())!r})"


class ValueSet(AbstractSet[Value]):
    """An immutable set by value identity, so that it can hold both ``1`` and ``True``.

    >>> len(ValueSet([1, 1.0, True])), ValueSet([1, 2]) == {2, 1}
    (3, True)
    """

    __slots__ = ("_entries",)

    def __init__(self, items: Iterable[Value] = ()) -> None:
        self._entries = {freeze(item): item for item in items}

    def __contains__(self, item: object) -> bool:
        try:
            return freeze(item) in self._entries
        except NotAValue:
            return False

    def __iter__(self) -> Iterator[Value]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return same(self, other) if isinstance(other, AbstractSet) else NotImplemented

    def __hash__(self) -> int:
        return hash_of(self)

    def __reduce__(self) -> tuple[type[ValueSet], tuple[list[Value]]]:
        return ValueSet, (list(self),)

    def __repr__(self) -> str:
        return f"ValueSet({list(self)!r})"


# ---------------------------------------------------------------------------------------------------- records


def is_record(value: object) -> bool:
    """Whether *value* is an instance of a record class or of :class:`Record`."""
    return type(value) is Record or hasattr(type(value), "__label__")


def label_of(value: Value) -> Value:
    """The label of a record."""
    return value.label if type(value) is Record else type(value).__label__


def fields_of(value: Value) -> tuple[Value, ...]:
    """The fields of a record, in order.

    >>> fields_of(Record("pair", [1, 2]))
    (1, 2)
    """
    if type(value) is Record:
        return value.fields
    return tuple([getattr(value, a.name) for a in attrs.fields(type(value))])


# ---------------------------------------------------------------------------------------------------- freeze and thaw


@kernel
def freeze(value: Value, depth: int = 0) -> Frozen:
    """The frozen form of *value*; raises :class:`NotAValue` if it has none, is cyclic, too deep or too large.

    >>> freeze(["a", 1])
    (SEQ, 'a', 1)
    """
    freezer = freezers.get(type(value)) or _freezer_of_subclass(value)
    if depth >= COUNTED:
        if depth > MAX_DEPTH:
            raise NotAValue(f"a value nested deeper than {MAX_DEPTH} levels, or cyclic: flatten it, or send its parts")
        if type(depth) is int and type(value) not in _ATOMS:
            depth = counted(depth)
    return freezer(value, depth)


@kernel
def thaw(form: Frozen) -> Value:
    """The value of a frozen form: sequences as tuples, sets as :class:`ValueSet`, dictionaries as :class:`Dictionary`.

    A record becomes an instance of the record class with its label and number of fields, or else a :class:`Record`.

    >>> thaw(freeze({"a": [1, True]}))
    Dictionary([('a', (1, True))])
    """
    if type(form) is not tuple:
        return form
    head = form[0]
    if type(head) is Tag:
        return _thawers[head](form) if head.expand is None else thaw(head.expand(form))
    cls = _classes.get((head, len(form) - 1))
    if cls is None:
        conversion = _backs.get((head, len(form) - 1))
        return Record.labelled(thaw(head), map(thaw, form[1:])) if conversion is None else _back(conversion, form)
    instance = object.__new__(cls)
    for store, item in zip(cls.__setters__, form[1:], strict=True):
        store(instance, thaw(item) if type(item) is tuple else item)
    return instance


def record_fields(label: Frozen) -> list[tuple[str, ...]]:
    """The names of the fields of each record class that this process has for a label, in its frozen form."""
    return [tuple([a.name for a in attrs.fields(cls)]) for (head, _), cls in [*_classes.items()] if head == label]


def freeze_as(cls: type, freezer: Callable[[Value, int], Frozen]) -> None:
    """Let *freezer(instance, depth)* make the frozen forms of the instances of *cls*."""
    freezers[cls] = freezer


def thaw_as(cls: type, label: Symbol, fields: int) -> type | None:
    """Let records with this label and number of fields thaw to instances of *cls*; return the class that it replaces.

    ``cls.__setters__`` are functions of an instance and a value that store its fields, in order.
    """
    old, _classes[label, fields] = _classes.get((label, fields)), cls
    return old


@attrs.frozen(eq=False)
class Conversion:
    """How the instances of a class are records: with *label*, and the *fields* values that *to* returns."""

    label: Symbol
    fields: int
    to: Callable[[Value], tuple[Value, ...]]
    back: Callable[..., object]

    def freeze(self, value: Value, depth: int) -> Frozen:
        """The form of an instance."""
        return (self.label, *[freeze(item, depth + 1) for item in self.to(value)])


def convert_as(cls: type, conversion: Conversion) -> None:
    """Let *conversion* make the frozen forms of the instances of *cls*, and instances of such forms."""
    if freezers.get(cls) is not None and cls not in conversions:
        raise RecordDefinition(f"instances of {cls.__qualname__} are values already")
    conversions[cls] = conversion
    freeze_as(cls, conversion.freeze)
    _backs[conversion.label, conversion.fields] = conversion


def _back(conversion: Conversion, form: Frozen) -> Value:
    """The instance whose form this is; where there is none, it is a record as any other."""
    record = Record.labelled(conversion.label, map(thaw, form[1:]))
    try:
        value = conversion.back(*record.fields)
        return value if freeze(value) == form else record
    except Exception:  # what a peer has sent is no mistake of ours, and a program's own class may raise what it likes
        return record


def plain(value: Value) -> Value:
    """The :class:`Record` that an instance of a converted class stands for; any other value as it is."""
    conversion = conversions.get(type(value))
    return value if conversion is None else Record.labelled(conversion.label, conversion.to(value))


def compact_as(label: Symbol, compact: Callable[[Frozen], Frozen]) -> None:
    """Let *compact(form)* replace the frozen form of a :class:`Record` with this label: a value keeps one form."""
    _compactors[label] = compact


def _freeze_int(value: int, depth: int) -> Frozen:
    if -2 < value < SMALL or -SMALL < value < -2:
        return value
    if value == -2:
        return MINUS_TWO
    return (BIG, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def _freeze_items(value: Collection[Value], depth: int) -> Frozen:
    below = within(len(value), depth)
    return (SEQ, *[freeze(item, below) for item in value])


def _freeze_set(value: Collection[Value], depth: int) -> Frozen:
    below = within(len(value), depth)
    items = {freeze(item, below) for item in value}
    return (SET, *sorted(items, key=order))


def _freeze_dict(value: Mapping[Value, Value], depth: int) -> Frozen:
    below = within(len(value), depth)
    pairs = {freeze(key, below): freeze(item, below) for key, item in value.items()}
    keys = sorted(pairs, key=order)
    return (DICT, tuple(keys), tuple([pairs[key] for key in keys]))


def _freeze_record(value: Record, depth: int) -> Frozen:
    below = within(len(value.fields), depth)
    form = (freeze(value.label, below), *[freeze(item, below) for item in value.fields])
    compact = None if depth else _compactors.get(form[0])
    return form if compact is None else compact(form)


def _freeze_none(value: None, depth: int) -> Frozen:
    raise NotAValue("None is not a value: leave the assertion out, or say what is absent with ABSENT")


_classes: Final[dict[tuple[Frozen, int], type[Any]]] = {}
conversions: Final[dict[type, Conversion]] = {}
"""The classes whose instances are converted to records."""
_backs: Final[dict[tuple[Frozen, int], Conversion]] = {}
_compactors: dict[Frozen, Callable[[Frozen], Frozen]] = {}
PLAIN: Final = frozenset({str, bytes, Symbol, Ref})
_ATOMS: Final = PLAIN | {int, bool, float}
freezers: dict[type, Callable[[Value, int], Frozen]] = {
    **dict.fromkeys(PLAIN, lambda value, depth: value),
    int: _freeze_int,
    bool: lambda value, depth: TRUE if value else FALSE,
    float: lambda value, depth: (DOUBLE, _PACK.pack(value)),
    list: _freeze_items,
    tuple: _freeze_items,
    set: _freeze_set,
    frozenset: _freeze_set,
    ValueSet: _freeze_set,
    dict: _freeze_dict,
    MappingProxyType: _freeze_dict,
    Dictionary: _freeze_dict,
    Record: _freeze_record,
    bytearray: lambda value, depth: bytes(value),
    type(None): _freeze_none,
}
"""The exact type of a value -> a function of it and its depth: for the hottest callers, instead of :func:`freeze`."""
_thawers: dict[Tag, Callable[[Frozen], Value]] = {
    BOOL: lambda form: form is TRUE or form[1] == "t",
    DOUBLE: lambda form: _PACK.unpack(form[1])[0],
    BIG: lambda form: int.from_bytes(form[1], "big", signed=True),
    SEQ: lambda form: tuple([thaw(item) for item in form[1:]]),
    SET: lambda form: ValueSet(thaw(item) for item in form[1:]),
    DICT: lambda form: Dictionary((thaw(k), thaw(v)) for k, v in zip(form[1], form[2], strict=True)),
}
_SUBCLASSES: Final[list[tuple[type, Callable[[Value, int], Frozen]]]] = [
    (str, lambda value, depth: str.__str__(value)),
    (int, lambda value, depth: _freeze_int(int(value), depth)),
    (float, lambda value, depth: (DOUBLE, _PACK.pack(value))),
    (bytes, lambda value, depth: bytes(value)),
    (tuple, _freeze_items),
    (list, _freeze_items),
    (dict, _freeze_dict),
    (AbstractSet, _freeze_set),
    (Mapping, _freeze_dict),
]


def _freezer_of_subclass(value: Value) -> Callable[[Value, int], Frozen]:
    for base, freezer in _SUBCLASSES:
        if isinstance(value, base):
            return freezer
    for each in type(value).__mro__[1:]:
        if each in conversions:
            return conversions[each].freeze
    if hasattr(value, "item") and getattr(value, "shape", None) == () and hasattr(value, "dtype"):  # a numpy scalar
        return lambda value, depth: freeze(value.item(), depth)
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    hint = ""
    if isinstance(value, type):
        kind, hint = f"the class {value.__qualname__}", " (did you mean an instance of it?)"
    elif hasattr(value, "dtype"):
        hint = " (an array: convert it with .tolist())"
    elif callable(value):
        hint = " (a function may be asserted alone, to compute a value: assert_(ds, lambda: ...))"
    elif attrs.has(type(value)) or hasattr(value, "__dict__"):
        hint = " (decorate its class with @record)"
    raise NotAValue(
        f"{kind} is not a value{hint}: {short(value)}. Values are bool, int, float, str, bytes, Symbol, Ref, "
        "instances of @record classes, and lists, tuples, sets and dicts of values."
    )


# ------------------------------------------------------------------------------------------------- identity and order


def identical(a: Value, b: Value) -> bool:
    """Whether *a* and *b* are the same value.

    >>> identical(float("nan"), float("nan")), identical("a", Symbol("a"))
    (True, False)
    """
    return bool(freeze(a) == freeze(b))


def immutable(value: object) -> bool:
    """Whether *value* cannot change inside: an atom, or a tuple, record, set or dictionary of such that is frozen.

    >>> immutable((1, frozenset(["a"]))), immutable(([],)), immutable(print)
    (True, False, False)
    """
    to_come = [value]
    seen = set()
    while to_come:  # no recursion: it may be deeper than Python's stack
        part = to_come.pop()
        kind = type(part)
        if kind in _ATOMS or id(part) in seen:
            continue
        seen.add(id(part))
        if kind is tuple or kind is frozenset or kind is ValueSet:
            to_come.extend(part)  # type: ignore[arg-type]  # it is one of these
        elif kind is Dictionary:
            to_come.extend(each for item in part._entries.values() for each in item)  # type: ignore[attr-defined]  # it is a Dictionary
        elif is_record(part):
            to_come.append(label_of(part))
            to_come.extend(fields_of(part))
        else:
            return False
    return True


def same(self: object, other: object) -> bool:
    """``__eq__`` of all compounds of ours: equal are those that are the same value."""
    if self is other:
        return True
    if not (is_record(other) or isinstance(other, (Dictionary, ValueSet, Mapping, AbstractSet))):
        return NotImplemented  # type: ignore[no-any-return]  # as all __eq__ do
    try:
        return bool(freeze(self) == freeze(other))
    except (NotAValue, PatternError):  # a pattern, or a row with None: it holds what no value holds
        return type(self) is type(other) and bool(_parts(self) == _parts(other))


def hash_of(self: object) -> int:
    """``__hash__`` of all compounds of ours."""
    try:
        return hash(freeze(self))
    except (NotAValue, PatternError):
        return hash(fields_of(self) if is_record(self) else frozenset(_parts(self)))


def _parts(compound: Value) -> tuple[Value, ...] | dict[Frozen, Value]:
    """What tells a compound that is no value from others of its type."""
    return fields_of(compound) if is_record(compound) else dict(compound._entries)


def order(form: Frozen) -> tuple[Value, ...]:
    """A sort key of a frozen form: the total order of Preserves, with references last, whoever was made first.

    >>> [thaw(f) for f in sorted(map(freeze, ["b", 2, True, Symbol("a"), 1.5, [0]]), key=order)]
    [True, 1.5, 2, 'b', Symbol('a'), (0,)]
    """
    if type(form) is tuple:
        head = form[0]
        if type(head) is not Tag:
            return (6, order(head), [order(item) for item in form[1:]])
        if head is BOOL:
            return (0, form[1] == "t")
        if head is DOUBLE:  # IEEE total order: negative numbers backwards, before the positive ones
            bits = int.from_bytes(form[1], "big")
            return (1, ~bits & (2**64 - 1) if bits >> 63 else bits | 1 << 63)
        if head is BIG:
            return (2, thaw(form))
        if head is DICT:
            return (9, [(order(k), order(v)) for k, v in zip(form[1], form[2], strict=True)])
        if head.expand is not None:
            return order(head.expand(form))
        return (head.rank, [order(item) for item in form[1:]])
    if type(form) is int:
        return (2, form)
    if type(form) is str:
        return (3, form)
    if type(form) is bytes:
        return (4, form)
    if type(form) is Symbol:
        return (5, form.name)
    return (10, form._place)
