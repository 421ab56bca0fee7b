"""Notions: what is known of a value while a function is read instead of called.

What matters is where lattices come in.  A notion is :class:`Grown`, an element made of variables and columns by
monotone methods alone; :class:`Shown`, the plain content of such; :class:`Test`, whether something of it is true, which
may come true later and then stays so; :class:`Items`, what was built of others, a row too; :class:`Thing`, an object
that is there already, as a global is; a :class:`Closure`, a :class:`Partial` or a :class:`Method`; or :class:`Plain`,
any other value.

``of`` names where a notion comes from: the attributes of the rows that the function is given, of which a variable that
is mentioned has one of its own.
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
class Grown:
    """An element of a lattice, of which class may be unknown; not *sure*: it may as well be a plain value."""

    of: Of
    lattice: type[Lattice] | None
    sure: bool = True


@frozen
class Shown:
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

    items: tuple[Notion, ...]
    kind: type = tuple
    names: tuple[str, ...] = ()
    keys: tuple[Notion, ...] = ()
    loose: bool = False
    """Whether there may be more of the same: a loop has made them."""


@frozen(eq=False)
class Thing:
    """An object that is there while the program is made."""

    value: Value


@frozen(eq=False)
class Closure:
    """A function that is made within the one that is read."""

    code: CodeType
    around: Mapping[str, Value]
    free: Mapping[str, Notion]
    defaults: tuple[Notion, ...] = ()
    named: Mapping[str, Notion] = field(factory=dict)


@frozen(eq=False)
class Method:
    """A method that is about to be called."""

    receiver: Notion
    name: str


@frozen(eq=False)
class Partial:
    """A function with some of its arguments."""

    callee: Notion
    given: tuple[Notion, ...]
    named: Mapping[str, Notion]


Notion: TypeAlias = Plain | Grown | Shown | Test | Items | Thing | Closure | Method | Partial

NOTHING: Final = Thing(None)

Step: TypeAlias = tuple[object, Of, bool]
"""A test on the way, what it is of, and whether it was true."""

Way: TypeAlias = tuple[Step, ...]
Outcome: TypeAlias = tuple[Way, Notion]


class Calls(Protocol):
    """What attributes, calls and operators give: :mod:`~syndicate.bloom.rules.meaning`."""

    def attribute(self, notion: Notion, name: str, way: Way, depth: int) -> list[Outcome]:
        """What an attribute gives."""

    def call(
        self, callee: Notion, arguments: list[Notion], named: dict[str, Notion], way: Way, depth: int
    ) -> list[Outcome]:
        """What a call gives, on each path."""

    def operator(self, name: str, operands: Sequence[Notion], way: Way, depth: int) -> list[Outcome]:
        """What an operator gives."""

    def is_none(self, notion: Notion) -> Notion:
        """Whether something is None."""

    def element(self, over: Notion) -> tuple[Of, Notion]:
        """What a loop goes over: what lets it grow, and an element."""

    def spread(self, notion: Notion) -> list[Notion] | None:
        """The items of something, if they are known."""

    def unseen(self, parts: Sequence[Notion], callee: Notion | str) -> None:
        """Note that lattice values go where nobody sees what becomes of them."""


def cell_attribute(cell: Mentioned) -> str:
    """The attribute of a variable that a function mentions."""
    return f"value of {cell.tabname}"


def of(notion: Notion) -> Of:
    """All that a notion comes from."""
    match notion:
        case Plain() | Grown() | Shown() | Test():
            return notion.of
        case Items():
            return of_all((*notion.items, *notion.keys))
        case Method():
            return of(notion.receiver)
        case Closure():
            return of_all([*notion.free.values(), *notion.defaults, *(notion.named or {}).values()])
        case Partial():
            return of_all([notion.callee, *notion.given, *notion.named.values()])
        case Thing(value):
            return _within(value)


def chosen(notions: Iterable[Notion]) -> Of:
    """Of what plain values are that are one of several elements, whichever."""
    found = NOBODY
    for notion in notions:
        if isinstance(notion, Plain):
            found |= notion.of
        elif isinstance(notion, Items):
            found |= chosen((*notion.items, *notion.keys))
    return found


def of_all(notions: Iterable[Notion]) -> Of:
    """All that some notions come from."""
    return NOBODY.union(*map(of, notions))


def _within(value: Value, depth: int = 3) -> Of:
    """The variables that an object gives away to whoever gets it: of a program, all."""
    if isinstance(value, Mentioned):
        return frozenset([cell_attribute(value)])
    if isinstance(value, Namespace):
        return frozenset(cell_attribute(one) for one in vars(value).values() if isinstance(one, Mentioned))
    if isinstance(value, (FunctionType, MethodType)):
        return frozenset(map(cell_attribute, captured(value)))
    if depth and type(value) in (tuple, list, set, frozenset, dict):
        inner = [*value.keys(), *value.values()] if type(value) is dict else list(value)
        return NOBODY.union(*[_within(one, depth - 1) for one in inner[:100]])
    return NOBODY


def _used(code: CodeType, notion: Notion) -> Of:
    """What the code of a function takes of what is around it: of a program, the variables that it names."""
    if isinstance(notion, Thing) and isinstance(notion.value, Namespace):
        own = vars(notion.value)
        named = [own.get(name) for name in names_in(code)]
        return frozenset(cell_attribute(one) for one in named if isinstance(one, Mentioned))
    return of(notion)


def is_growing(notion: Notion) -> bool:
    """Whether a lattice value is in it, or what was made of one."""
    match notion:
        case Grown():
            return notion.sure
        case Shown() | Test():
            return True
        case Items():
            return any(map(is_growing, (*notion.items, *notion.keys)))
        case Method():
            return is_growing(notion.receiver)
        case Closure() | Thing() | Partial():
            return bool(of(notion))
    return False


def of_growing(notion: Notion) -> Of:
    """What lattice values in it come from."""
    if isinstance(notion, Items):
        return NOBODY.union(*map(of_growing, (*notion.items, *notion.keys)))
    return of(notion) if is_growing(notion) else NOBODY


def is_nothing(notion: Notion, *, many: bool, test: bool) -> bool:
    """Whether it is no row; of a *test*, for a failure."""
    if isinstance(notion, Thing):
        return notion.value is None or ((many or test) and not _filled(notion.value))
    return many and isinstance(notion, Items) and not notion.items


def _filled(value: Value) -> bool:
    return value is True or (type(value) in (tuple, list, set, frozenset, dict, int, str) and bool(value))


def is_below(one: Notion, other: Notion, *, many: bool, test: bool) -> bool:
    """Whether *other* says all that *one* says."""
    if one is other or is_nothing(one, many=many, test=test):
        return True
    if test:
        return isinstance(other, Thing) and other.value is True
    if many and isinstance(one, Items) and isinstance(other, Items):
        rows = [row for row in one.items if not is_nothing(row, many=False, test=False)]
        return all(any(is_same(row, another) for another in other.items) for row in rows)
    return is_same(one, other)


def is_same(one: Notion, other: Notion) -> bool:
    """Whether two notions are of one value, whatever that is."""
    if isinstance(one, Thing) and isinstance(other, Thing):
        simple = type(one.value) is type(other.value) and type(one.value) in (int, str, bytes, bool)
        return one.value is other.value or (simple and bool(one.value == other.value))
    if isinstance(one, Items) and isinstance(other, Items) and not one.loose and not other.loose:
        alike = one.kind is other.kind and len(one.items) == len(other.items) and not one.keys and not other.keys
        return alike and all(map(is_same, one.items, other.items))
    return one is other


def may_show(shown: Shown) -> bool:
    """Whether its truth stays, once it is true."""
    return shown.many or shown.lattice is Bool
