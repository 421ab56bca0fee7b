"""Meaning: what attributes, calls and operators give, where a function is read (:mod:`syndicate.bloom.rules.bytecode`).

A method of a lattice means what its mark says, and so does a function that its author has marked: ``@monotone`` or
``@morph`` of :mod:`syndicate.lattice`.  Any other function in Python is read; what cannot be read, as it is of another
language, may do anything with the lattice values that it is given, and with nothing else.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections import deque, namedtuple
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Final

from syndicate.bloom.rules.abstract_value import (
    NOBODY,
    NOTHING,
    Abstract,
    BoundMethod,
    Closure,
    Items,
    KnownObject,
    LatticeContent,
    LatticeElement,
    Mentioned,
    Of,
    Outcome,
    Partial,
    PathCondition,
    Plain,
    Test,
    Unreadable,
    Unseen,
    annotated_lattice,
    chosen,
    is_changeable,
    is_growing,
    kinds,
    lattice_of,
    of,
    of_all,
    of_growing,
    result_lattice,
    variable_attribute,
)
from syndicate.bloom.rules.bytecode import Reader
from syndicate.lattice import DomPair, Map, Max, Min, Pair, Set
from syndicate.lattice.lattice import Lattice, mark_of
from syndicate.values.value import Value

NO_ATTRIBUTE: Final = object()
PLAIN_MODULES: Final = frozenset(
    {
        *("builtins", "re", "datetime", "decimal", "fractions", "uuid", "operator", "enum", "collections"),
        *("syndicate.values.value", "syndicate.flow.element"),
    }
)
"""Whose objects know of nothing but what they were made of, or are given."""

READING: Final = frozenset(
    {
        *("copy", "count", "difference", "get", "index", "intersection", "isdisjoint", "issubset", "issuperset"),
        *("items", "keys", "symmetric_difference", "union", "values"),
    }
)
"""Methods of lists, sets and dictionaries that leave them as they are."""

CHANGING: Final = frozenset({one for kind in (list, set, dict, bytearray, deque) for one in dir(kind)}) - frozenset(
    {one for kind in (tuple, frozenset, str, bytes) for one in dir(kind)} | READING
)
"""Methods that things have which can be changed, and no others."""

LOOKING: Final = (
    *(abs, all, any, bytes, callable, dict, enumerate, filter, float, format, frozenset, hash, id, int, isinstance),
    *(len, list, map, max, min, range, repr, reversed, round, set, sorted, str, sum, tuple, type, zip),
)
"""What changes nothing that it is given."""

WATCHING: Final = (eval, exec, locals)
WATCHING_MODULES: Final = frozenset({"sys", "inspect"})
"""What sees names that nobody gives it."""

SIGNS: Final = {"+": "__add__", "-": "__sub__"}
DOWN: Final = frozenset({"<=", "<"})
IN_PLACE: Final = frozenset(f"{one}=" for one in ("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"))


class Meaning:
    """What things mean; *judge* says what a function gives that a method is given."""

    def __init__(
        self, judge: Callable[[Reader, Sequence[Outcome], bool], Of], mentioned: Of = NOBODY, limit: int = 0
    ) -> None:
        """*judge* takes outcomes, and whether they are tests, and gives the attributes that they are of.

        *mentioned* are those of variables, which an object may know of that is there already; *limit* is the reader's.
        """
        self.reader = Reader(self, limit)
        self.mentioned = mentioned
        self.judge = judge

    def unseen(self, parts: Sequence[Abstract], callee: Abstract | str) -> None:
        """Note that lattice values go where nobody sees what becomes of them."""
        name = callee if isinstance(callee, str) else _name(callee)
        for part in parts:
            if is_strange(part):
                self.reader.offend(self.mentioned, Unseen(name))
            if isinstance(part, (LatticeContent, Test)):
                self.reader.offend(part.of, "reveal()")
            elif is_growing(part):
                self.reader.offend(of_growing(part), Unseen(name))

    # ------------------------------------------------------------------------------------------------- attributes

    def attribute(self, abstract: Abstract, name: str, path: PathCondition, depth: int) -> list[Outcome]:
        """What an attribute gives."""
        match abstract:
            case KnownObject(value):
                return self._of_object(abstract, value, name, path, depth)
            case Items(names=names) if name in names:
                return [(path, abstract.items[names.index(name)])]
            case Items(names=names) if name.endswith("_") and name[:-1] in names:
                return [(path, abstract.items[names.index(name[:-1])])]
            case LatticeElement(lattice=lattice):
                if name == "content" and abstract.sure:
                    return [(path, LatticeContent(abstract.of, lattice))]
                if kinds(lattice, name) is None and abstract.sure:
                    self.reader.offend(abstract.of, name)
                    return [(path, Plain())]
        return [(path, BoundMethod(abstract, name))]

    def _of_object(self, thing: KnownObject, value: Value, name: str, path: PathCondition, depth: int) -> list[Outcome]:
        if isinstance(value, Mentioned):
            if name == "value":
                return [(path, _grown(value))]
            if name.startswith("_"):
                raise Unreadable
            return self.attribute(_grown(value), name, path, depth)
        if isinstance(value, Lattice):
            return self.attribute(LatticeElement(NOBODY, type(value)), name, path, depth)
        attribute = _looked_up(value, name)
        if isinstance(attribute, property):
            if not isinstance(attribute.fget, FunctionType):
                raise Unreadable
            return self.call(KnownObject(attribute.fget), [thing], {}, path, depth)
        return [(path, BoundMethod(thing, name) if attribute is NO_ATTRIBUTE else KnownObject(attribute))]

    # ------------------------------------------------------------------------------------------------- calls

    def call(
        self,
        callee: Abstract,
        arguments: list[Abstract],
        named: dict[str, Abstract],
        path: PathCondition,
        depth: int,
    ) -> list[Outcome]:
        """What a call gives, on each path."""
        match callee:
            case BoundMethod(receiver=LatticeElement() as receiver, name=name):
                return self._method(receiver, name, [*arguments, *named.values()], path, depth)
            case Closure():
                return self.reader.read(callee, _bound(callee, arguments, named), path, depth + 1)
            case Partial():
                return self.call(callee.callee, [*callee.arguments, *arguments], {**callee.named, **named}, path, depth)
            case KnownObject(value):
                return self._call_object(value, arguments, named, path, depth)
        return self._opaque(callee, arguments, named, path)

    def _opaque(
        self, callee: Abstract, arguments: Sequence[Abstract], named: Mapping[str, Abstract], path: PathCondition
    ) -> list[Outcome]:
        parts = [callee, *arguments, *named.values()]
        if _changes(callee, parts[1:]):
            raise Unreadable
        self.unseen(parts, callee)
        return [(path, Plain(chosen(parts), foreign=any(map(is_foreign, parts))))]

    def _call_object(
        self, value: Value, arguments: list[Abstract], named: dict[str, Abstract], path: PathCondition, depth: int
    ) -> list[Outcome]:
        mark = mark_of(value)
        if mark is not None:
            return self._marked(value, arguments, named, path)
        if isinstance(value, MethodType):
            return self._call_object(value.__func__, [KnownObject(value.__self__), *arguments], named, path, depth)
        if isinstance(value, functools.partial):
            more = {name: KnownObject(one) for name, one in value.keywords.items()}
            return self._call_object(
                value.func, [*map(KnownObject, value.args), *arguments], {**more, **named}, path, depth
            )
        if isinstance(value, FunctionType):
            function = closure_of(value)
            try:
                return self.reader.read(function, _bound(function, arguments, named), path, depth + 1)
            except Unreadable:
                if (value.__module__ or "").partition(".")[0] not in sys.stdlib_module_names:
                    raise
                return self._opaque(KnownObject(value), arguments, named, path)
        if (
            any(value is one for one in WATCHING)
            or (value is vars and not arguments)
            or getattr(value, "__module__", None) in WATCHING_MODULES
        ):
            raise Unreadable
        if value is bool and len(arguments) == 1:
            truth = self.reader.truth(arguments[0])
            return [(path, truth if isinstance(truth, Test) else Plain(chosen(arguments)))]
        if value is functools.partial and arguments:
            return [(path, Partial(arguments[0], tuple(arguments[1:]), named))]
        if isinstance(value, type):
            return [(path, self._constructed(value, arguments, named))]
        if (
            value is getattr
            and len(arguments) in (2, 3)
            and isinstance(arguments[1], KnownObject)
            and type(arguments[1].value) is str
        ):
            return self.attribute(arguments[0], arguments[1].value, path, depth)
        call = inspect.getattr_static(type(value), "__call__", None)
        if isinstance(call, FunctionType):
            return self._call_object(call, [KnownObject(value), *arguments], named, path, depth)
        return self._opaque(KnownObject(value), arguments, named, path)

    def _marked(
        self, value: Value, arguments: list[Abstract], named: Mapping[str, Abstract], path: PathCondition
    ) -> list[Outcome]:
        """What a function gives whose author says how it treats lattice values, inside of whatever it is given."""
        parts = [*arguments, *named.values()]
        mark = mark_of(value)
        assert mark is not None
        if not mark.kind.is_monotone:
            self.reader.offend(of_all(parts), f"{value.__name__}()")
            return [(path, Plain())]
        return [(path, LatticeElement(of_all(parts), annotated_lattice(value, None, [])))]

    def _constructed(self, cls: type, arguments: Sequence[Abstract], named: Mapping[str, Abstract]) -> Abstract:
        parts = [*map(settled, arguments), *map(settled, named.values())]
        if issubclass(cls, Lattice):
            self._shown(parts)
            whole = not parts or all(isinstance(one, Items) and _fits(cls, one) for one in parts if is_growing(one))
            if not whole:
                self.unseen(parts, f"{cls.__name__}()")
            return LatticeElement(of_all(parts) if whole else NOBODY, cls)
        if cls in (tuple, list) and len(parts) == 1 and (items := self.spread(parts[0])) is not None:
            return Items(tuple(items), cls, loose=getattr(parts[0], "loose", False))
        if cls in (list, set, dict) and not parts:
            return Items((), cls)
        if issubclass(cls, tuple) and not named and _only_names(cls):
            names: tuple[str, ...] = getattr(cls, "_fields", ())
            return Items(tuple(parts), tuple, names) if len(parts) == len(names) else Plain()
        if _changes(KnownObject(cls), parts):
            raise Unreadable
        self.unseen(parts, KnownObject(cls))
        return Plain(chosen(parts), foreign=cls.__module__ not in PLAIN_MODULES)

    def _shown(self, parts: Sequence[Abstract]) -> None:
        """Contents that go into a lattice value, or a method: they may go back there."""
        for part in parts:
            if isinstance(part, (LatticeContent, Test)):
                self.reader.offend(part.of, "reveal()")
            elif isinstance(part, Items):
                self._shown((*part.items, *part.keys))

    def _method(
        self, receiver: LatticeElement, name: str, arguments_given: Sequence[Abstract], path: PathCondition, depth: int
    ) -> list[Outcome]:
        kind = kinds(receiver.lattice, name)
        if kind is None:  # of a plain value, if it is one
            self.unseen([receiver, *arguments_given], f"{name}()")
            return [(path, Plain())]
        functions = [one for one in arguments_given if _is_function(one)]
        others = [settled(one) for one in arguments_given if not _is_function(one)]
        if name == "when_true" and functions:
            node = object()
            passed = self.call(functions[0], [], {}, (*path, (node, receiver.of, True)), depth)
            return [*passed, ((*path, (node, receiver.of, False)), NOTHING)]
        if name == "reveal":
            return [(path, LatticeContent(receiver.of, receiver.lattice))]
        own, argument = kind
        self._shown(others)
        came: Of = NOBODY
        if not own.is_monotone:
            self.reader.offend(receiver.of, f"{name}()")
        else:
            came |= receiver.of
        if argument.is_monotone:
            came |= of_all([one for one in others if is_growing(one)])
        else:
            for one in others:
                if is_growing(one):
                    self.reader.offend(of(one), f"{name}()")
        for function in functions:
            came |= self._callback_origin(receiver, function, name, path, depth)
        arguments = [one.value if isinstance(one, KnownObject) else None for one in arguments_given]
        result = result_lattice(receiver.lattice, name, arguments)
        return [(path, LatticeElement(came, result, sure=receiver.sure))]

    def _callback_origin(
        self, receiver: LatticeElement, function: Abstract, name: str, path: PathCondition, depth: int
    ) -> Of:
        """What a function is of that a method calls with elements; lattices among them come from the receiver."""
        cls = receiver.lattice
        element: Abstract = (
            Plain() if cls is not None and issubclass(cls, Set) else LatticeElement(receiver.of, None, sure=False)
        )
        try:
            outcomes = self.call(function, [element] * width(function), {}, (), depth)
        except Unreadable:
            self.unseen([function, element], f"{name}()")
            return NOBODY
        return self.judge(self.reader, outcomes, name == "filter")

    # ------------------------------------------------------------------------------------------------- operators

    def operator(self, name: str, operands: Sequence[Abstract], path: PathCondition, depth: int) -> list[Outcome]:
        """What an operator gives."""
        some = [settled(one) for one in operands]
        left, right = some[0], some[-1]
        name = _in_place(name, left, right)
        if any(map(is_foreign, some)):
            self.unseen(some, name)
            return [(path, Plain(chosen(some), foreign=True))]
        match name, left, right:
            case ("+", Items(), Items()) if left.kind is right.kind and left.kind in (tuple, list):
                loose = left.loose or right.loose
                return [(path, Items((*left.items, *right.items), left.kind, loose=loose))]
            case ("+" | "-", LatticeElement(sure=True), _):
                return self._method(left, SIGNS[name], [right], path, depth)
            case ("+", _, LatticeElement(sure=True)):
                return self._method(right, SIGNS[name], [left], path, depth)
            case ("<=" | "<" | ">=" | ">", _, _) if isinstance(left, LatticeElement) or isinstance(
                right, LatticeElement
            ):
                if any(isinstance(one, LatticeElement) and one.sure for one in some):
                    return [(path, self._ordered(name, left, right))]
            case (">=" | ">" | "<=" | "<", LatticeContent(), _) if not is_growing(right):
                if left.lattice is {">": Max, "<": Min}[name[0]]:
                    return [(path, Test(left.of))]
            case ("in" | "not in", _, LatticeContent()) if right.many and not is_growing(left):
                return [(path, Test(right.of, name == "not in"))]
            case ("is" | "is not", _, KnownObject(None)):
                return [(path, self.is_none(left) if name == "is" else self._turned(self.is_none(left)))]
            case ("[]", KnownObject(_), KnownObject(_)):
                return [(path, _item(left.value, right.value))]
            case ("[]", Items(), KnownObject(_)) if not left.loose:
                return [(path, _part(left, right.value))]
            case ("==" | "!=", KnownObject(_), KnownObject(_)) if not of(left) and not of(right):
                return [(path, KnownObject((left.value == right.value) is (name == "==")))]
        for one in some:
            if isinstance(one, (LatticeContent, Test)):
                self.reader.offend(one.of, "reveal()")
            elif is_growing(one):
                self.reader.offend(of_growing(one), name)
            elif isinstance(one, LatticeElement) and any(map(is_growing, some)):
                self.reader.offend(one.of, name)
        return [(path, Plain(chosen(some)))]

    def _ordered(self, name: str, left: Abstract, right: Abstract) -> Abstract:
        """``a <= b`` stays true as b grows, and may become false as a does."""
        small, great = (left, right) if name in DOWN else (right, left)
        self.reader.offend(of(small), name)
        return Test(of(great))

    def is_none(self, abstract: Abstract) -> Abstract:
        """Whether something is None."""
        match abstract:
            case KnownObject(value):
                return KnownObject(value is None)
            case Items() | LatticeElement(sure=True) | Closure() | Test():
                return KnownObject(False)
            case LatticeContent():
                self.reader.offend(abstract.of, "reveal()")
            case BoundMethod():
                self.reader.truth(abstract)
        return Plain(chosen([abstract]))

    @staticmethod
    def _turned(abstract: Abstract) -> Abstract:
        return KnownObject(not abstract.value) if isinstance(abstract, KnownObject) else abstract

    def element(self, over: Abstract) -> tuple[Of, Abstract]:
        """What a loop goes over: what lets it grow, and an element."""
        over = settled(over)
        match over:
            case LatticeContent() if over.many:
                return over.of, Plain(over.of)
            case LatticeContent() | Test():
                self.reader.offend(over.of, "reveal()")
            case LatticeElement(sure=True):
                self.reader.offend(over.of, "iteration")
            case Items(items=items) if any(map(is_growing, items)):
                raise Unreadable
            case KnownObject() | Closure() | BoundMethod():
                self.unseen([over], "iteration")
        return NOBODY, Plain()

    def spread(self, abstract: Abstract) -> list[Abstract] | None:
        """The items of something, if they are known."""
        match settled(abstract):
            case Items(items=items, kind=kind, loose=False) if kind in (tuple, list):
                return list(items)
            case KnownObject(value) if type(value) in (tuple, list):
                return list(map(KnownObject, value))
            case other if not is_growing(other) and not isinstance(other, Items):
                return None
        return None


# ------------------------------------------------------------------------------------------------------------- things


def settled(abstract: Abstract) -> Abstract:
    """A variable as its value, an element of a lattice as what nothing lets grow."""
    if isinstance(abstract, KnownObject):
        if isinstance(abstract.value, Mentioned):
            return _grown(abstract.value)
        if isinstance(abstract.value, Lattice):
            return LatticeElement(NOBODY, type(abstract.value))
    return abstract


def _grown(cell: Mentioned) -> LatticeElement:
    return LatticeElement(frozenset([variable_attribute(cell)]), lattice_of(cell))


def is_strange(abstract: Abstract) -> bool:
    """Whether it is an object of which nobody knows what it knows of."""
    if isinstance(abstract, BoundMethod):
        return is_strange(abstract.receiver)
    if isinstance(abstract, Items):
        return any(map(is_strange, abstract.items))
    if not isinstance(abstract, KnownObject) or isinstance(abstract.value, (type, ModuleType, Lattice)):
        return False
    if type(abstract.value) in (tuple, list, set, frozenset, dict):
        return any(is_strange(KnownObject(one)) for one in abstract.value)
    return type(abstract.value).__module__ not in PLAIN_MODULES and not isinstance(abstract.value, Mentioned)


def is_foreign(abstract: Abstract) -> bool:
    """Whether it may be an object of the user's."""
    return abstract.foreign if isinstance(abstract, Plain) else is_strange(abstract)


def _changes(callee: Abstract, arguments: Sequence[Abstract]) -> bool:
    """Whether a call may change something that the function has made, under whatever name."""
    if isinstance(callee, BoundMethod):
        receiver = callee.receiver
        if isinstance(receiver, Items) and receiver.kind is not tuple:
            return callee.name not in READING
        if not isinstance(receiver, KnownObject) and (is_foreign(receiver) or callee.name in CHANGING):
            return True
        return any(map(is_changeable, arguments)) and not _is_plain(receiver)
    changeable = [one for one in arguments if is_changeable(one)]
    looks = isinstance(callee, KnownObject) and any(callee.value is one for one in LOOKING)
    return bool(changeable) and not (looks and all(isinstance(one, Items) for one in changeable))


def _in_place(name: str, left: Abstract, right: Abstract) -> str:
    """The operator without its ``=``; raises :class:`Unreadable` where what it changes may have other names."""
    if name not in IN_PLACE:
        return name
    if is_changeable(left) or (isinstance(left, Plain) and not _is_number(right)):
        raise Unreadable
    return name[:-1]


def _is_plain(abstract: Abstract) -> bool:
    """Whether it is a text or the like, whose methods change nothing."""
    return isinstance(abstract, KnownObject) and type(abstract.value) in (str, bytes, tuple, frozenset)


def _is_number(abstract: Abstract) -> bool:
    return isinstance(abstract, KnownObject) and type(abstract.value) in (int, float, bool)


@functools.cache
def _only_names(cls: type) -> bool:
    """Whether a class of tuples gives names to its items, and nothing else of its own."""
    fields = getattr(cls, "_fields", None)
    if fields is None:
        return False
    usual = {*vars(namedtuple("usual", "")), "__annotations__", "__orig_bases__"}  # noqa: PYI024  # to be looked at
    return cls.__bases__ == (tuple,) and vars(cls).keys() <= usual.union(fields)


def closure_of(function: FunctionType) -> Closure:
    """A function that is there, as one to be read."""
    free: dict[str, Abstract] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            free[name] = KnownObject(cell.cell_contents)
        except ValueError:  # not yet assigned
            continue
    named = {name: KnownObject(value) for name, value in (function.__kwdefaults__ or {}).items()}
    defaults = tuple(map(KnownObject, function.__defaults__ or ()))
    return Closure(function.__code__, function.__globals__, free, defaults, named)


def _bound(function: Closure, arguments: Sequence[Abstract], named: Mapping[str, Abstract]) -> dict[str, Abstract]:
    """The names of a call's arguments; raises :class:`Unreadable` where Python would raise."""
    code = function.code
    width = code.co_argcount
    places = code.co_varnames[: width + code.co_kwonlyargcount]
    bound: dict[str, Abstract] = dict(function.named)
    bound.update(zip(places[:width][width - len(function.defaults) :], function.defaults, strict=True))
    bound.update(zip(places[:width], arguments, strict=False))
    rest = len(places)
    if code.co_flags & inspect.CO_VARARGS:
        bound[code.co_varnames[rest]] = Items(tuple(arguments[width:]))
        rest += 1
    elif len(arguments) > width:
        raise Unreadable
    if code.co_flags & inspect.CO_VARKEYWORDS:
        others = {name: one for name, one in named.items() if name not in places}
        bound[code.co_varnames[rest]] = Items(tuple(others.values()), dict, (), tuple(map(KnownObject, others)))
    elif not named.keys() <= set(places):
        raise Unreadable
    bound.update((name, one) for name, one in named.items() if name in places)
    if not set(places) <= bound.keys():
        raise Unreadable
    return bound


def _looked_up(value: Value, name: str) -> Value:
    """An attribute that can be got without running anything; a property as such."""
    if isinstance(value, (type, ModuleType)):
        return getattr(value, name, NO_ATTRIBUTE)
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict) and name in own:
        return own[name]
    attribute = inspect.getattr_static(type(value), name, NO_ATTRIBUTE)
    if isinstance(attribute, FunctionType):
        return MethodType(attribute, value)
    if isinstance(attribute, (classmethod, staticmethod)):
        return getattr(value, name)
    if attribute is NO_ATTRIBUTE or isinstance(attribute, property) or not hasattr(type(attribute), "__get__"):
        return attribute
    if inspect.ismemberdescriptor(attribute):
        return getattr(value, name, NO_ATTRIBUTE)
    return NO_ATTRIBUTE


def _name(callee: Abstract) -> str:
    match callee:
        case BoundMethod(name=name):
            return f"{name}()"
        case KnownObject(value):
            return f"{getattr(value, '__name__', type(value).__name__)}()"
    return "a function"


def _is_function(abstract: Abstract) -> bool:
    if isinstance(abstract, KnownObject):
        return (
            callable(abstract.value)
            and not isinstance(abstract.value, type)
            and not isinstance(abstract.value, Mentioned)
        )
    return isinstance(abstract, (Closure, Partial, BoundMethod))


def width(function: Abstract) -> int:
    """How many arguments a function takes."""
    if isinstance(function, Closure):
        return function.code.co_argcount - len(function.defaults)
    value = function.value if isinstance(function, KnownObject) else None
    code = getattr(value, "__code__", None)
    return code.co_argcount - len(value.__defaults__ or ()) - isinstance(value, MethodType) if code and value else 1


def _fits(cls: type, parts: Items) -> bool:
    """Whether lattice values go where the lattice merges them."""
    if issubclass(cls, Map):
        return parts.kind is dict and not any(map(is_growing, parts.keys))
    return issubclass(cls, Pair) and not issubclass(cls, DomPair)


def _item(value: Value, at: Value) -> Abstract:
    if type(value) in (tuple, list, dict, str, bytes):
        try:
            return KnownObject(value[at])
        except (LookupError, TypeError):
            pass
    return Plain()


def _part(items: Items, at: Value) -> Abstract:
    if items.kind is dict:
        pairs = zip(items.keys, items.items, strict=True)
        by_key: dict[Value, Abstract] = {key.value: item for key, item in pairs if isinstance(key, KnownObject)}
        if len(by_key) == len(items.items) and at in by_key:
            return by_key[at]
        raise Unreadable
    if type(at) is int and -len(items.items) <= at < len(items.items):
        return items.items[at]
    if type(at) is slice:
        return Items(items.items[at], items.kind)
    raise Unreadable
