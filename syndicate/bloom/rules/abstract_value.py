"""Abstract values: what is known of a value while a function is read instead of called.

What matters is where lattices come in.  Such a value is a :class:`LatticeElement`, made of variables and columns by
monotone methods alone; a :class:`LatticeContent`, the plain content of one; a :class:`Test`, whether something of it is
true, which may come true later and then stays so; :class:`Items`, what was built of others, a row too; a
:class:`KnownObject`, which is there already, as a global is; a :class:`Closure`, a :class:`Partial` or a
:class:`BoundMethod`; or :class:`Plain`, any other value.

``of`` names what one comes from: the attributes of the rows that the function is given, of which a variable that is
mentioned has one of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Final, Protocol, TypeAlias

from attrs import field, frozen

from syndicate.bloom.namespace import Namespace
from syndicate.bloom.rules.capture import Mentioned, captured, names_in
from syndicate.lattice import Bool, Map, Set
from syndicate.lattice.lattice import Lattice
from syndicate.values.value import Value

Of: TypeAlias = frozenset[str]
NOBODY: Final[Of] = frozenset()


@frozen(eq=False)
class Plain:
    """No lattice value.  If it is *of* something, it is one of the elements of what grows, whichever."""

    of: Of = NOBODY


@frozen
class LatticeElement:
    """An element of a lattice, of which class may be unknown; not *sure*: it may as well be a plain value."""

    of: Of
    lattice: type[Lattice] | None
    sure: bool = True


@frozen
class LatticeContent:
    """The content of an element."""

    of: Of
    lattice: type[Lattice] | None

    @property
    def many(self) -> bool:
        """Whether it has elements of its own, which only become more."""
        return self.lattice is not None and issubclass(self.lattice, (Set, Map))


@frozen
class Test:
    """Whether something is true that stays so; *turned*: whether it is not."""

    of: Of
    turned: bool = False


@frozen(eq=False)
class Items:
    """A tuple, a list, a set or a dictionary's values; a row has *names*, and *keys* are what a dictionary's are."""

    items: tuple[Abstract, ...]
    kind: type = tuple
    names: tuple[str, ...] = ()
    keys: tuple[Abstract, ...] = ()
    loose: bool = False
    """Whether there may be more of the same: a loop has made them."""


@frozen(eq=False)
class KnownObject:
    """An object that is there while the program is made."""

    value: Value


@frozen(eq=False)
class Closure:
    """A function that is made within the one that is read."""

    code: CodeType
    around: Mapping[str, Value]
    free: Mapping[str, Abstract]
    defaults: tuple[Abstract, ...] = ()
    named: Mapping[str, Abstract] = field(factory=dict)


@frozen(eq=False)
class BoundMethod:
    """A method that is about to be called."""

    receiver: Abstract
    name: str


@frozen(eq=False)
class Partial:
    """A function with some of its arguments."""

    callee: Abstract
    given: tuple[Abstract, ...]
    named: Mapping[str, Abstract]


Abstract: TypeAlias = (
    Plain | LatticeElement | LatticeContent | Test | Items | KnownObject | Closure | BoundMethod | Partial
)

NOTHING: Final = KnownObject(None)

Step: TypeAlias = tuple[object, Of, bool]
"""A test on the way, what it is of, and whether it was true."""

Way: TypeAlias = tuple[Step, ...]
Outcome: TypeAlias = tuple[Way, Abstract]


class Unseen(str):
    """Why something may be not monotone: nobody can see whether it is."""

    __slots__ = ()


class Unreadable(Exception):
    """A function does what a reader cannot follow."""


class Calls(Protocol):
    """What attributes, calls and operators give: :mod:`~syndicate.bloom.rules.meaning`."""

    def attribute(self, abstract: Abstract, name: str, way: Way, depth: int) -> list[Outcome]:
        """What an attribute gives."""

    def call(
        self,
        callee: Abstract,
        arguments: list[Abstract],
        named: dict[str, Abstract],
        way: Way,
        depth: int,
    ) -> list[Outcome]:
        """What a call gives, on each path."""

    def operator(self, name: str, operands: Sequence[Abstract], way: Way, depth: int) -> list[Outcome]:
        """What an operator gives."""

    def is_none(self, abstract: Abstract) -> Abstract:
        """Whether something is None."""

    def element(self, over: Abstract) -> tuple[Of, Abstract]:
        """What a loop goes over: what lets it grow, and an element."""

    def spread(self, abstract: Abstract) -> list[Abstract] | None:
        """The items of something, if they are known."""

    def unseen(self, parts: Sequence[Abstract], callee: Abstract | str) -> None:
        """Note that lattice values go where nobody sees what becomes of them."""


def variable_attribute(cell: Mentioned) -> str:
    """The attribute of a variable that a function mentions."""
    return f"value of {cell.tabname}"


def of(abstract: Abstract) -> Of:
    """All that an abstract value comes from."""
    match abstract:
        case Plain() | LatticeElement() | LatticeContent() | Test():
            return abstract.of
        case Items():
            return of_all((*abstract.items, *abstract.keys))
        case BoundMethod():
            return of(abstract.receiver)
        case Closure():
            return of_all([*abstract.free.values(), *abstract.defaults, *(abstract.named or {}).values()])
        case Partial():
            return of_all([abstract.callee, *abstract.given, *abstract.named.values()])
        case KnownObject(value):
            return _within(value)


def chosen(abstracts: Iterable[Abstract]) -> Of:
    """Of what plain values are that are one of several elements, whichever."""
    found = NOBODY
    for abstract in abstracts:
        if isinstance(abstract, Plain):
            found |= abstract.of
        elif isinstance(abstract, Items):
            found |= chosen((*abstract.items, *abstract.keys))
    return found


def of_all(abstracts: Iterable[Abstract]) -> Of:
    """All that some abstract values come from."""
    return NOBODY.union(*map(of, abstracts))


def _within(value: Value, depth: int = 3) -> Of:
    """The variables that an object gives away to whoever gets it: of a program, all."""
    if isinstance(value, Mentioned):
        return frozenset([variable_attribute(value)])
    if isinstance(value, Namespace):
        return frozenset(variable_attribute(one) for one in vars(value).values() if isinstance(one, Mentioned))
    if isinstance(value, (FunctionType, MethodType)):
        return frozenset(map(variable_attribute, captured(value)))
    if depth and type(value) in (tuple, list, set, frozenset, dict):
        inner = [*value.keys(), *value.values()] if type(value) is dict else list(value)
        return NOBODY.union(*[_within(one, depth - 1) for one in inner[:100]])
    return NOBODY


def _used(code: CodeType, abstract: Abstract) -> Of:
    """What the code of a function takes of what is around it: of a program, the variables that it names."""
    if isinstance(abstract, KnownObject) and isinstance(abstract.value, Namespace):
        own = vars(abstract.value)
        named = [own.get(name) for name in names_in(code)]
        return frozenset(variable_attribute(one) for one in named if isinstance(one, Mentioned))
    return of(abstract)


def is_growing(abstract: Abstract) -> bool:
    """Whether a lattice value is in it, or what was made of one."""
    match abstract:
        case LatticeElement():
            return abstract.sure
        case LatticeContent() | Test():
            return True
        case Items():
            return any(map(is_growing, (*abstract.items, *abstract.keys)))
        case BoundMethod():
            return is_growing(abstract.receiver)
        case Closure() | KnownObject() | Partial():
            return bool(of(abstract))
    return False


def of_growing(abstract: Abstract) -> Of:
    """What lattice values in it come from."""
    if isinstance(abstract, Items):
        return NOBODY.union(*map(of_growing, (*abstract.items, *abstract.keys)))
    return of(abstract) if is_growing(abstract) else NOBODY


def is_nothing(abstract: Abstract, *, many: bool, test: bool) -> bool:
    """Whether it is no row; of a *test*, for a failure."""
    if isinstance(abstract, KnownObject):
        return abstract.value is None or ((many or test) and not _filled(abstract.value))
    return many and isinstance(abstract, Items) and not abstract.items


def _filled(value: Value) -> bool:
    return value is True or (type(value) in (tuple, list, set, frozenset, dict, int, str) and bool(value))


def is_below(one: Abstract, other: Abstract, *, many: bool, test: bool) -> bool:
    """Whether *other* says all that *one* says."""
    if one is other or is_nothing(one, many=many, test=test):
        return True
    if test:
        return isinstance(other, KnownObject) and other.value is True
    if many and isinstance(one, Items) and isinstance(other, Items):
        rows = [row for row in one.items if not is_nothing(row, many=False, test=False)]
        return all(any(is_same(row, another) for another in other.items) for row in rows)
    return is_same(one, other)


def is_same(one: Abstract, other: Abstract) -> bool:
    """Whether two abstract values are of one value, whatever that is."""
    if isinstance(one, KnownObject) and isinstance(other, KnownObject):
        simple = type(one.value) is type(other.value) and type(one.value) in (int, str, bytes, bool)
        return one.value is other.value or (simple and bool(one.value == other.value))
    if isinstance(one, Items) and isinstance(other, Items) and not one.loose and not other.loose:
        alike = one.kind is other.kind and len(one.items) == len(other.items) and not one.keys and not other.keys
        return alike and all(map(is_same, one.items, other.items))
    return one is other


def may_show(shown: LatticeContent) -> bool:
    """Whether its truth stays, once it is true."""
    return shown.many or shown.lattice is Bool
