"""Abstract values: what is known of a value while a function is read instead of called.

What matters is where lattices come in.  Such a value is a :class:`LatticeElement`, made of variables and columns by
monotone methods alone; a :class:`LatticeContent`, the plain content of one; a :class:`Test`, whether something of it is
true, which may come true later and then stays so; :class:`Items`, what was built of others, a row too; a
:class:`KnownObject`, which is there already, as a global is; a :class:`Closure`, a :class:`Partial` or a
:class:`BoundMethod`; or :class:`Plain`, any other value.

``of`` names what one comes from: the attributes of the rows that the function is given, of which a variable that is
mentioned has one of its own.

Results: what a method of a lattice returns, as its mark and its annotation say.

Where the class of the receiver is not known, a method counts as what the worst of all lattices that have it says, so
that nothing is taken for monotone that may not be.

>>> from syndicate.lattice import Max, Min, Set
>>> kinds(Max, "lt_eq")[0].value, kinds(Min, "lt_eq")[0].value, kinds(None, "lt_eq")[0].value, kinds(Set, "lt_eq")
('non-monotone', 'morphism', 'non-monotone', None)
>>> result_lattice(Set, "size", ()), result_lattice(Set, "filter", ())
(<class 'syndicate.lattice.extremum.Max'>, <class 'syndicate.lattice.sets.Set'>)

Source: Conway et al. 2012, "Lattice methods"; ``docs/design/lattice.md``, "Marks and laws".

Captures: the lattices that a function in a rule mentions, ``lambda t: (t.key, self.votes)``.

In Bud, the name of a lattice in a block is its current value, and the block runs again when that grows.  Here, the
function's code says which variables it mentions; the rule then reads them as well, and while the function runs, each
stands for the value that the rule was given.  A variable that is reached in another way, through a helper function,
refuses to be read in a tick, since nobody would call the function again.

>>> captured(lambda row: row)
[]

Source: Conway et al. 2012, "Collections with embedded lattice values"; ``docs/design/bloom.md``, "Lattices in
programs".
"""

from __future__ import annotations

import dis
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import CellType, CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from attrs import evolve, field, frozen

from syndicate import plan
from syndicate.bloom.declaration import Namespace
from syndicate.lattice import Bool, Map, Set
from syndicate.lattice.lattice import LATTICES, Kind, Lattice
from syndicate.values.value import Value

if TYPE_CHECKING:
    from syndicate.bloom.rules.symbols import Factor


# -------------------------------------------------------------------------------------------------------------- results


ORDER: Final = (Kind.MORPHISM, Kind.MONOTONE, Kind.NON_MONOTONE)
"""From the best to the worst."""


def kinds(cls: type[Lattice] | None, name: str) -> tuple[Kind, Kind] | None:
    """How a method treats its receiver and its arguments; None if there is none."""
    classes = list(LATTICES.values()) if cls is None else [cls]
    methods = [method for one in classes if (method := one.methods().get(name)) is not None]
    if not methods:
        return None
    return (
        max((method.kind for method in methods), key=ORDER.index),
        max((method.argument for method in methods), key=ORDER.index),
    )


def result_lattice(cls: type[Lattice] | None, name: str, arguments: Sequence[Value]) -> type[Lattice] | None:
    """The lattice of what a method returns, as far as its annotation says."""
    if name == "merge":
        return cls
    function = getattr(cls, name, None) if cls is not None else None
    return None if function is None else annotated_lattice(function, cls, arguments)


def annotated_lattice(
    function: Callable[..., Value], cls: type[Lattice] | None, arguments: Sequence[Value]
) -> type[Lattice] | None:
    """The lattice that the annotation of a function names; *cls* is the receiver's."""
    said = getattr(function, "__annotations__", {}).get("return")
    if said == "Self":
        return cls
    if isinstance(said, str):
        global_value = getattr(function, "__globals__", {}).get(said)
        if isinstance(global_value, type) and issubclass(global_value, Lattice):
            return None if global_value is Lattice else global_value
        lattices = [one for one in arguments if isinstance(one, type) and issubclass(one, Lattice)]
        return lattices[0] if lattices and said == "L" else _named(said)
    return said if isinstance(said, type) and issubclass(said, Lattice) and said is not Lattice else None


def _named(said: str) -> type[Lattice] | None:
    return next((cls for cls in LATTICES.values() if cls.__name__ == said), None)


# ------------------------------------------------------------------------------------------------------------- captures


class Mentioned(ABC):
    """What stands for a value while a function runs that mentions it: a cell."""

    _held: Value = None
    _lattice: type[Lattice]

    @property
    @abstractmethod
    def tabname(self) -> str:
        """The name of its relation."""

    @abstractmethod
    def astray(self) -> str:
        """What is said where a function has come by it in a way that nobody saw."""


def held_value(variable: Mentioned) -> Value:
    """What a variable stands for; None while no function runs that mentions it."""
    return variable._held


def hold(variable: Mentioned, value: Value) -> None:
    """Let a variable stand for a value, until it stands for another."""
    variable._held = value


def lattice_of(variable: Mentioned) -> type[Lattice]:
    """The lattice of a variable."""
    return variable._lattice


def captured(function: object) -> list[Mentioned]:
    """The variables that a function mentions."""
    plain = getattr(function, "__func__", function)
    if not isinstance(plain, FunctionType):
        return []
    names = set(names_in(plain.__code__))
    reachable: list[object] = [cell.cell_contents for cell in plain.__closure__ or () if _is_full(cell)]
    reachable += plain.__defaults__ or ()
    reachable += [plain.__globals__[name] for name in names if name in plain.__globals__]
    mentions: dict[Mentioned, None] = {}
    seen: set[int] = set()
    while reachable:
        one = reachable.pop()
        if isinstance(one, Mentioned):
            mentions[one] = None
        elif isinstance(one, Namespace) and id(one) not in seen:
            seen.add(id(one))
            own = vars(one)
            reachable += [own[name] for name in sorted(names) if name in own]
    return list(mentions)


def mentioning(factor: Factor, function: object) -> tuple[Factor, list[Mentioned]]:
    """The rows with the values of the lattices that a function mentions, which its rows do not show."""
    cells = captured(function)
    values = [
        plan.Rename(plan.Relation(cell.tabname, ("value",)), {"value": f"value of {cell.tabname}"})
        for cell in cells
        if f"value of {cell.tabname}" not in factor.rows.heading
    ]
    return (evolve(factor, rows=plan.NaturalJoin(factor.rows, *values)) if values else factor), cells


def _is_full(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # not yet assigned
        return False


def names_in(code: CodeType) -> Iterator[str]:
    """The names of attributes and globals that the code of a function uses, inner functions included."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from names_in(inner)


def bound(
    function: Callable[..., Value], cells: Sequence[Mentioned], places: Sequence[int]
) -> Callable[[Value], Value]:
    """*function*, of a row, while each variable stands for what the row has at its place."""

    def call(row: Value) -> Value:
        held = [cell._held for cell in cells]
        for cell, place in zip(cells, places, strict=True):
            cell._held = row[place]
        try:
            return released(function(row))
        finally:
            for cell, old in zip(cells, held, strict=True):
                cell._held = old

    return call


def released(value: Value) -> Value:
    """The same with values in place of variables, and nothing left to be computed later."""
    if isinstance(value, Mentioned):
        return value._held
    if isinstance(value, (tuple, list)):
        return tuple([released(one) for one in value])
    if isinstance(value, dict):
        return {key: released(one) for key, one in value.items()}
    return [released(one) for one in value] if hasattr(value, "__next__") else value


# ------------------------------------------------------------------------------------------------------ abstract values


Of: TypeAlias = frozenset[str]
NOBODY: Final[Of] = frozenset()


@frozen(eq=False)
class Plain:
    """No lattice value.  If it is *of* something, it is one of the elements of what grows, whichever."""

    of: Of = NOBODY
    foreign: bool = False
    """Whether it may be an object of the user's, with operators of its own and methods that change it."""


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
    arguments: tuple[Abstract, ...]
    named: Mapping[str, Abstract]


Abstract: TypeAlias = (
    Plain | LatticeElement | LatticeContent | Test | Items | KnownObject | Closure | BoundMethod | Partial
)

NOTHING: Final = KnownObject(None)

Step: TypeAlias = tuple[object, Of, bool]
"""A test on the path, what it is of, and whether it was true."""

PathCondition: TypeAlias = tuple[Step, ...]
Outcome: TypeAlias = tuple[PathCondition, Abstract]


class Unseen(str):
    """Why something may be not monotone: nobody can see whether it is."""

    __slots__ = ()


class Unreadable(Exception):
    """A function does what a reader cannot follow."""


class Calls(Protocol):
    """What attributes, calls and operators give: :mod:`~syndicate.bloom.rules.abstract_operation`."""

    def attribute(self, abstract: Abstract, name: str, path: PathCondition, depth: int) -> list[Outcome]:
        """What an attribute gives."""

    def call(
        self,
        callee: Abstract,
        arguments: list[Abstract],
        named: dict[str, Abstract],
        path: PathCondition,
        depth: int,
    ) -> list[Outcome]:
        """What a call gives, on each path."""

    def operator(self, name: str, operands: Sequence[Abstract], path: PathCondition, depth: int) -> list[Outcome]:
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
            return of_all([abstract.callee, *abstract.arguments, *abstract.named.values()])
        case KnownObject(value):
            return _within(value)


@lru_cache(maxsize=1024)
def instructions_of(code: CodeType) -> tuple[dis.Instruction, ...]:
    """The byte code of a function, which all instances of a program have in common."""
    return tuple(dis.get_instructions(code))


def is_changeable(abstract: Abstract) -> bool:
    """Whether it is, or knows of, a list, a set or a dictionary that the function has made."""
    match abstract:
        case Items(kind=kind):
            return kind is not tuple or any(map(is_changeable, abstract.items))
        case BoundMethod():
            return is_changeable(abstract.receiver)
        case Closure():
            return any(map(is_changeable, (*abstract.free.values(), *abstract.defaults, *abstract.named.values())))
        case Partial():
            return any(map(is_changeable, (abstract.callee, *abstract.arguments, *abstract.named.values())))
    return False


def chosen(abstracts: Iterable[Abstract]) -> Of:
    """Of what plain values are that are one of several elements, whichever."""
    elements = NOBODY
    for abstract in abstracts:
        if isinstance(abstract, Plain):
            elements |= abstract.of
        elif isinstance(abstract, Items):
            elements |= chosen((*abstract.items, *abstract.keys))
    return elements


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
