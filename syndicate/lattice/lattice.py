"""Lattices: kinds of values that only grow, each with a least value and a merge.

A **lattice** here is a bounded join semilattice: a class, whose instances are its elements, with a bottom and a least
upper bound, :meth:`Lattice.merge`, that is associative, commutative and idempotent.  Whatever is computed by merging,
and by monotone methods on what was merged, comes out the same in whatever order and how often the inputs arrive.

To define one, subclass :class:`Lattice`, name the keyword that declares it (``wrapper_name``), check and hold the
content in ``__init__`` (without an argument: the bottom), and write ``merge``.  The rest has defaults.  Then let
:func:`syndicate.lattice.assert_laws` look for a counterexample.

>>> class Longest(Lattice):
...     wrapper_name = "llongest"
...     def __init__(self, content: str | None = None) -> None:
...         if content is not None and type(content) is not str:
...             raise self.illegal(content, "a str")
...         super().__init__(content)
...     def merge(self, other: Longest) -> Longest:
...         return max(self, other, key=lambda each: (len(each.content or ""), each.content or ""))
>>> a = Longest("ab").merge(Longest("c")); a, a.reveal(), Longest() <= a, Longest("ab") == a
(Longest('ab'), 'ab', True, True)
>>> Longest(3)
Traceback (most recent call last):
syndicate.errors.LatticeValue: Longest (llongest) cannot hold 3: it takes a str.

Contract: elements are immutable, equal by value identity (``Max(1) != Max(1.0)``) and hashable; ``a <= b`` is
``a.merge(b) == b``; of built-in lattices ``a.merge(b) is a`` if b adds nothing.  An element has no truth: ``if done:``
would read it before it is complete.

In a dataspace an element is the record ``<wrapper_name revealed>``, and the bottom ``<wrapper_name>``;
:func:`revive` makes an element of such a record again, and refuses what a peer made up.

Source: Conway et al. 2012, "Definitions" and "User-defined lattices"; ``docs/design/lattice.md``, "Marks and laws".

What a lattice says about its methods: morphism, monotone, or neither; in the receiver, and in lattice arguments.

Monotonicity is read by two parties: evaluation, which gives a morphism only what is new, and the analysis of where a
program needs coordination.  Both ask the *type* of the receiver.  (Bud asks the method's name alone, so that a name
used by two lattices decides for both.)  The word is the author's; :mod:`syndicate.lattice.laws` puts it to the test.

An operator has two operands, and may be well-behaved in one only: ``a - b`` grows with ``a`` and shrinks as ``b``
grows.  So a method has a kind for its receiver and one, ``argument``, for arguments that are lattice values.

Source: Conway et al. 2012, "Lattice methods"; ``docs/design/lattice.md``, "Marks and laws".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeAlias, TypeVar, overload

from attrs import frozen

from syndicate.errors import LatticeAsKey, LatticeDefinition, LatticeMismatch, LatticeValue, short
from syndicate.flow.element import ATOMS_AND_FLOATS, Element, Key, Typed, key_of, natural
from syndicate.flow.encoding import register
from syndicate.values.value import Dictionary, Frozen, Symbol, Value, fields_of, freeze, freeze_as, is_record, label_of

# -------------------------------------------------------------------------------- what a lattice says about its methods


F = TypeVar("F", bound=Callable[..., Value])

Tries: TypeAlias = Callable[[Sequence[Value]], Iterable[tuple[Value, ...]]]
"""From some values of the lattice to argument tuples with which the law checker calls a method."""

OPERATORS: Final = {"__add__": "+", "__sub__": "-"}


class Kind(enum.Enum):
    """What is known of a function from one lattice to another."""

    MORPHISM = "morphism"
    """``f(a merge b) == f(a) merge f(b)``: it can be applied to what is new alone."""

    MONOTONE = "monotone"
    """``a <= b`` implies ``f(a) <= f(b)``: it must see the whole value."""

    NON_MONOTONE = "non-monotone"
    """Nothing: its input must be complete first, a point of order."""

    @property
    def is_monotone(self) -> bool:
        """Whether growing inputs give growing outputs; every morphism is monotone."""
        return self is not Kind.NON_MONOTONE


@frozen
class Method:
    """A method of a lattice, as evaluation and analysis see it.

    ``name`` is the attribute (``__add__`` for ``+``), ``kind`` says how it treats its receiver, ``argument`` how it
    treats arguments that are lattice values, ``tries`` makes arguments for the law checker.
    """

    name: str
    kind: Kind
    argument: Kind
    tries: Tries | None = None

    @property
    def symbol(self) -> str:
        """How the method is written in a rule: ``+`` for ``__add__``."""
        return OPERATORS.get(self.name, self.name)


@frozen
class MethodMark:
    """What a decorator noted on a function."""

    kind: Kind
    argument: Kind
    tries: Tries | None


def mark_of(function: object) -> MethodMark | None:
    """The mark of a function, if it has one."""
    mark = getattr(function, "__lattice__", None)
    return mark if isinstance(mark, MethodMark) else None


def _decorator(kind: Kind, function: F | None, argument: Kind | None, tries: Tries | None) -> F | Callable[[F], F]:
    mark = MethodMark(kind, Kind.NON_MONOTONE if argument is None else argument, tries)

    def note(marked: F) -> F:
        marked.__lattice__ = mark  # type: ignore[attr-defined]  # any function takes attributes
        return marked

    return note if function is None else note(function)


@overload
def morph(function: F) -> F: ...
@overload
def morph(*, argument: Kind | None = None, tries: Tries | None = None) -> Callable[[F], F]: ...
def morph(
    function: F | None = None, *, argument: Kind | None = None, tries: Tries | None = None
) -> F | Callable[[F], F]:
    """Mark a method as a morphism in its receiver, and as *argument* in arguments that are lattice values.

    >>> @morph
    ... def first(self): ...
    >>> mark_of(first).kind
    <Kind.MORPHISM: 'morphism'>
    """
    return _decorator(Kind.MORPHISM, function, argument, tries)


@overload
def monotone(function: F) -> F: ...
@overload
def monotone(*, argument: Kind | None = None, tries: Tries | None = None) -> Callable[[F], F]: ...
def monotone(
    function: F | None = None, *, argument: Kind | None = None, tries: Tries | None = None
) -> F | Callable[[F], F]:
    """Mark a method as monotone in its receiver, though no morphism."""
    return _decorator(Kind.MONOTONE, function, argument, tries)


@overload
def non_monotone(function: F) -> F: ...
@overload
def non_monotone(*, argument: Kind | None = None, tries: Tries | None = None) -> Callable[[F], F]: ...
def non_monotone(
    function: F | None = None, *, argument: Kind | None = None, tries: Tries | None = None
) -> F | Callable[[F], F]:
    """Mark a method as neither; *argument* may still say that it is monotone in its argument, as ``lt_eq`` is."""
    return _decorator(Kind.NON_MONOTONE, function, argument, tries)


# ------------------------------------------------------------------------------------------------------------- lattices


R = TypeVar("R")

LATTICES: Final[dict[str, type[Lattice]]] = {}
"""The lattices by ``wrapper_name``: what Bloom's declarations, and :func:`revive`, look up."""


class Lattice:
    """An element of a lattice; see the module for how to define one."""

    __slots__ = ("__weakref__", "_hash", "content")

    wrapper_name: ClassVar[str]
    """The keyword that declares the lattice in a program, and its label in a dataspace."""

    label: ClassVar[Symbol]
    """The same as a symbol.  It must not be made again for each form: symbols are interned weakly, a hash is kept."""

    own_identity: ClassVar[bool] = True
    """A Z-set tells elements apart by our ``==`` and ``hash``, without freezing them."""

    if TYPE_CHECKING:
        _known: ClassVar[Mapping[str, Method]]
        content: Value
        _hash: int | None

    def __init__(self, content: Value = None) -> None:
        """Hold *content*, an immutable value; None is the bottom.  Raises :class:`LatticeValue` for a mutable one."""
        if content is not None and type(content) in _MUTABLE:
            raise self.illegal(content, f"something immutable: {_MUTABLE[type(content)]}")
        _set_content(self, content)
        _set_hash(self, None)

    def __init_subclass__(cls, *, family: bool = False, **options: object) -> None:
        super().__init_subclass__(**options)
        if family:  # not a lattice itself, but what several have in common
            return
        name = cls.__dict__.get("wrapper_name")
        if not isinstance(name, str) or not name.isidentifier():
            raise LatticeDefinition(
                f"{cls.__qualname__} needs a keyword of its own, an identifier: "
                f'wrapper_name = "l{cls.__name__.lower()}"'
            )
        if cls.merge is Lattice.merge:
            raise LatticeDefinition(f"{cls.__qualname__} needs merge(self, other): the least upper bound of the two")
        old = LATTICES.get(name)
        if old is not None and _place(old) != _place(cls):
            raise LatticeDefinition(f'wrapper_name "{name}" of {_place(cls)} is taken by {_place(old)}: choose another')
        if old is not None:  # defined again, as a reload does: the name in a snapshot is the new class's
            register(old, f"lattice:{name}:{id(old)}", old._written, partial(_read, old))
        LATTICES[name] = cls
        cls.label = Symbol(name)
        freeze_as(cls, _freeze)
        register(cls, f"lattice:{name}", cls._written, partial(_read, cls))

    # ------------------------------------------------------------------------------------------- to be defined

    def merge(self, other: Self) -> Self:
        """The least upper bound of the two; raises :class:`LatticeMismatch` if *other* is of another class."""
        raise NotImplementedError

    def reveal(self) -> Value:
        """The plain value: not monotone, since nothing holds back what is then done with it."""
        return self.content

    @classmethod
    def of(cls, element: Element) -> Self:
        """The lattice element of one element of a collection: what a fold merges."""
        return cls(element)

    def beyond(self, known: Self) -> Self:
        """What of this is new to *known*: merged with *known*, it gives the same as this would."""
        return self.bottom() if self <= known else self

    def identity(self) -> Key:
        """What tells this element from others of its class: hashable."""
        return key_of(self.content)

    # ------------------------------------------------------------------------------------------- what follows

    @classmethod
    def bottom(cls) -> Self:
        """The least element."""
        return cls()

    @property
    def is_bottom(self) -> bool:
        """Whether this is the least element (not monotone)."""
        return self.content is None or bool(self == self.bottom())

    @classmethod
    def methods(cls) -> Mapping[str, Method]:
        """The methods that a rule may call, by name, each with its kind; an operator under its special name.

        >>> from syndicate.lattice import Set
        >>> {name: method.kind.value for name, method in Set.methods().items() if name in ("size", "filter", "reveal")}
        {'reveal': 'non-monotone', 'filter': 'morphism', 'size': 'monotone'}
        """
        methods = cls.__dict__.get("_known")
        if methods is None:
            methods = cls._known = _methods(cls)
        return methods

    @classmethod
    def illegal(cls, value: object, wanted: str) -> LatticeValue:
        """The error that *value* cannot be held, or taken by a method: to be raised by constructors and methods."""
        return LatticeValue(f"{cls.__name__} ({cls.wrapper_name}) cannot hold {short(value)}: it takes {wanted}.")

    def same_lattice(self, other: object, verb: str = "merge") -> None:
        """Raise :class:`LatticeMismatch` if *other* is not of this class."""
        if type(other) is not type(self):
            remedy = f"make it one: {type(self).__name__}(...)"
            if isinstance(other, Lattice):
                remedy = "both sides must be of one lattice"
            raise LatticeMismatch(f"cannot {verb} {short(self)} and {short(other)}: {remedy}.")

    def _written(self) -> tuple[Value, ...]:
        """Arguments of ``_rebuilt``: elements that a snapshot can hold."""
        return () if self.content is None else (self.content,)

    @classmethod
    def _rebuilt(cls, *parts: Value) -> Self:
        return cls(*parts)

    # ------------------------------------------------------------------------------------------------ as values

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self):
            return NotImplemented
        return bool(self.identity() == other.identity())

    def __hash__(self) -> int:
        hashed = self._hash
        if hashed is None:
            hashed = hash((type(self), self.identity()))
            _set_hash(self, hashed)
        return hashed

    def __le__(self, other: Self) -> bool:
        self.same_lattice(other, "compare")
        return self.merge(other) == other

    def __lt__(self, other: Self) -> bool:
        return self <= other and self != other

    def __ge__(self, other: Self) -> bool:
        self.same_lattice(other, "compare")
        return other <= self

    def __gt__(self, other: Self) -> bool:
        return self >= other and self != other

    def __bool__(self) -> bool:
        raise LatticeValue(
            f"{short(self)} has no truth in an if: it may still grow. Use when_true(), a threshold such as gt_eq(), "
            "or, if it is complete, reveal()."
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"a lattice value cannot be changed: {type(self).__name__}.{name}. Merge makes a new one; in __init__ call "
            "super().__init__(content) and use self.content."
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a lattice value cannot be changed: {type(self).__name__}.{name}")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[..., Lattice], tuple[type[Lattice], tuple[Value, ...]]]:
        return _read, (type(self), self._written())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.content is None else repr(self.reveal())})"


_OURS: Final = "syndicate.lattice."
_set_content = vars(Lattice)["content"].__set__
_set_hash = vars(Lattice)["_hash"].__set__
_MUTABLE: Final[dict[type, str]] = {
    list: "write a tuple",
    dict: "write a syndicate.Dictionary",
    set: "write a frozenset",
    bytearray: "write bytes",
}
L = TypeVar("L", bound=Lattice)


def with_content(cls: type[L], content: Value) -> L:
    """An element of *cls* with this content, which is known to be right: without its ``__init__``."""
    element = object.__new__(cls)
    _set_content(element, content)
    _set_hash(element, None)
    return element


def _read(cls: type[L], parts: tuple[Value, ...]) -> L:
    return cls._rebuilt(*parts)


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _methods(cls: type[Lattice]) -> Mapping[str, Method]:
    methods = {
        "merge": Method("merge", Kind.MORPHISM, Kind.MORPHISM, lambda values: [(value,) for value in values]),
        "reveal": Method("reveal", Kind.NON_MONOTONE, Kind.NON_MONOTONE),
    }
    for base in reversed(cls.__mro__):
        for name, attribute in vars(base).items():
            mark = mark_of(attribute)
            if mark is not None:
                methods[name] = Method(name, mark.kind, mark.argument, mark.tries)
            elif name in methods and name not in ("merge", "reveal"):
                del methods[name]  # overridden by a method that says nothing
    return MappingProxyType(methods)


def join(a: L, b: L) -> L:
    """``a.merge(b)``, with both sides and the result held to be of one lattice: for a merge that is not ours.

    Raises :class:`LatticeMismatch`.
    """
    a.same_lattice(b)
    merged = a.merge(b)
    if type(merged) is not type(a):
        raise LatticeMismatch(
            f"{type(a).__qualname__}.merge must return a {type(a).__name__}, and returned {short(merged)} for "
            f"{short(a)} and {short(b)}"
        )
    return merged


def grew(old: L, merged: L) -> bool:
    """Whether a merge into *old*, which gave *merged*, added anything."""
    if merged is old:
        return False
    # Ours return themselves when nothing is new, and comparing with what has grown would cost a copy.
    return type(old).__module__.startswith(_OURS) or merged != old


def holds_lattice(element: Element) -> bool:
    """Whether *element* is a lattice value or a tuple that holds one."""
    if isinstance(element, Typed):
        element = natural(element)
    return isinstance(element, Lattice) or (type(element) is tuple and any(map(holds_lattice, element)))


def hold_lattices(elements: Collection[Element]) -> bool:
    """Whether any of *elements* holds a lattice value; of atoms, and of tuples of atoms, at C speed."""
    kinds = set(map(type, elements))
    if kinds == {tuple}:
        kinds = set(map(type, chain.from_iterable(elements)))
    return not kinds <= ATOMS_AND_FLOATS and any(map(holds_lattice, elements))


def no_lattice(element: Element, where: str) -> None:
    """Raise :class:`LatticeAsKey` if *element* holds a lattice value; *where* names the place."""
    if holds_lattice(element):
        raise LatticeAsKey(
            f"{short(element)} cannot be {where}: a lattice value may grow. Put it into a value column or into the "
            "values of an lmap, or reveal() it if it is complete."
        )


# -------------------------------------------------------------------------------------------------------- in dataspaces


def _freeze(element: Lattice, depth: int) -> Frozen:
    return (element.label,) if element.is_bottom else (element.label, freeze(element.reveal(), depth + 1))


def revive(value: Value) -> Value:
    """*value* with each record that a lattice value becomes in a dataspace made a lattice value again, also in tuples.

    Raises :class:`LatticeValue` (or what the lattice's constructor raises) for a record with the name of a lattice
    and illegal content.

    >>> from syndicate import Record
    >>> from syndicate.lattice import Max
    >>> from syndicate.values.value import freeze, thaw
    >>> thaw(freeze(("key", Max(3)))), revive(thaw(freeze(("key", Max(3)))))
    (('key', Record(Symbol('lmax'), [3])), ('key', Max(3)))
    """
    if type(value) is tuple:
        return tuple(map(revive, value))
    if not is_record(value):
        return value
    label = label_of(value)
    cls = LATTICES.get(label.name) if type(label) is Symbol else None
    fields = fields_of(value)
    if cls is None or len(fields) > 1:
        return value
    if not fields:
        return cls()
    payload = fields[0]
    if isinstance(payload, Mapping):
        payload = Dictionary([(revive(key), revive(item)) for key, item in payload.items()])
    return cls(revive(payload))
