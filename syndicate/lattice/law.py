"""The laws themselves: what each says, as a test of a few values, and what a method's marks claim.

A test returns None, or what to show of a counterexample.  It uses nothing but what a lattice must offer, so that it
also speaks of lattices that are broken.

Source: Conway et al. 2012, "Definitions"; ``docs/design/lattice.md``, "Marks and laws".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from attrs import frozen

from syndicate.errors import LatticeValue, NotAValue, PatternError, short
from syndicate.flow.element import key_of
from syndicate.lattice.delta import combine
from syndicate.lattice.lattice import Lattice, revive
from syndicate.lattice.method import Kind, Method
from syndicate.values.value import Value, freeze, thaw

Breach: TypeAlias = list[tuple[str, object]] | None
"""What is to be shown of values that break a law, each with a name; None if they keep it."""

Test: TypeAlias = Callable[..., Breach]
"""From some values to what is to be shown of them if they break the law."""


@frozen
class Law:
    """A law: its name, what it says, how many values it speaks of, and the test."""

    name: str
    statement: str
    size: int
    test: Test
    partial: bool = False
    """Whether a :class:`LatticeValue` says that it does not apply: ``+`` is for maxima of numbers."""


class Text(str):
    """Text that is shown as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


# ------------------------------------------------------------------------------------------------------------- the laws


def _bottom(a: Lattice) -> Breach:
    bottom = type(a).bottom()
    left, right = bottom.merge(a), a.merge(bottom)
    return None if left == a and right == a else [("bottom merge a", left), ("a merge bottom", right)]


def _idempotent(a: Lattice) -> Breach:
    merged = a.merge(a)
    return None if merged == a else [("a merge a", merged)]


def _commutative(a: Lattice, b: Lattice) -> Breach:
    one, other = a.merge(b), b.merge(a)
    return None if one == other else [("a merge b", one), ("b merge a", other)]


def _associative(a: Lattice, b: Lattice, c: Lattice) -> Breach:
    one, other = a.merge(b).merge(c), a.merge(b.merge(c))
    return None if one == other else [("(a merge b) merge c", one), ("a merge (b merge c)", other)]


def _upper(a: Lattice, b: Lattice) -> Breach:
    merged = a.merge(b)
    again, other = a.merge(merged), b.merge(merged)
    return (
        None
        if again == merged and other == merged
        else [("a merge b", merged), ("a merge that", again), ("b merge that", other)]
    )


def _closed(a: Lattice, b: Lattice) -> Breach:
    merged = a.merge(b)
    return None if type(merged) is type(a) else [("a merge b", merged)]


def _pure(a: Lattice, b: Lattice) -> Breach:
    a, b = _again(a), _again(b)  # so that those that are shown are as they were
    before = repr(a), repr(b), hash(a), hash(b)
    try:
        first = repr(a.merge(b))
    except Exception:  # a merge that raises breaks other laws
        return None
    if (repr(a), repr(b), hash(a), hash(b)) != before:
        return [("a after a merge b", a), ("b after a merge b", b)]
    second = a.merge(b)
    return None if repr(second) == first else [("a merge b", Text(first)), ("again", second)]


def _again(value: Lattice) -> Lattice:
    return type(value)._rebuilt(*value._written())


def _ordered(a: Lattice, b: Lattice) -> Breach:
    said, follows = a <= b, a.merge(b) == b
    return None if said is follows else [("a <= b", said), ("a merge b == b", follows)]


def _antisymmetric(a: Lattice, b: Lattice) -> Breach:
    return [("a <= b", True), ("b <= a", True), ("a == b", False)] if a <= b <= a and a != b else None


def _transitive(a: Lattice, b: Lattice, c: Lattice) -> Breach:
    return [("a <= b", True), ("b <= c", True), ("a <= c", False)] if a <= b and b <= c and not a <= c else None


def _hashed(a: Lattice, b: Lattice) -> Breach:
    one, other = a.merge(b), b.merge(a)
    if one == other and hash(one) != hash(other):
        return [("a merge b", one), ("hash of it", hash(one)), ("hash of b merge a", hash(other))]
    if a == b and hash(a) != hash(b):
        return [("hash of a", hash(a)), ("hash of b", hash(b))]
    return None


def _beyond(a: Lattice, b: Lattice) -> Breach:
    fresh = a.beyond(b)
    whole, partly = b.merge(a), b.merge(fresh)
    return None if whole == partly else [("a.beyond(b)", fresh), ("b merge that", partly), ("b merge a", whole)]


def _asserted(a: Value) -> Breach:
    try:
        form = freeze(a)
    except (NotAValue, PatternError):
        return None  # what cannot be asserted is told so where somebody tries
    back = revive(thaw(form))
    return None if back == a else [("asserted and revived", back)]


PURE: Final = Law("pure", "a merge b changes neither, and is the same each time", 2, _pure)
"""What all others presuppose."""

LAWS: Final = (
    Law("closed", "a merge b is of the lattice", 2, _closed),
    Law("bottom", "bottom merge a == a == a merge bottom", 1, _bottom),
    Law("idempotent", "a merge a == a", 1, _idempotent),
    Law("commutative", "a merge b == b merge a", 2, _commutative),
    Law("associative", "(a merge b) merge c == a merge (b merge c)", 3, _associative),
    Law("upper bound", "a <= a merge b and b <= a merge b", 2, _upper),
    Law("order", "a <= b says the same as a merge b == b", 2, _ordered),
    Law("antisymmetric", "a <= b and b <= a implies a == b", 2, _antisymmetric),
    Law("transitive", "a <= b and b <= c implies a <= c", 3, _transitive),
    Law("hash", "equal values have equal hashes", 2, _hashed),
    Law("beyond", "b merge a.beyond(b) == b merge a", 2, _beyond),
    Law("asserted", "a comes back from a dataspace as it was", 1, _asserted),
)


# ---------------------------------------------------------------------------------------------------------- the methods


def method_laws(
    method: Method, pool: Sequence[Value], arguments: Iterable[tuple[Value, ...]] | None
) -> tuple[list[Law], list[Law], list[str]]:
    """What the marks of *method* claim of its receiver, and of lattice arguments, for some argument tuples each.

    The third is why they cannot be checked.
    """
    if not method.kind.is_monotone and not method.argument.is_monotone:
        return [], [], []
    few = pool[:: max(1, len(pool) // 12)]
    if arguments is not None:
        calls = list(arguments)
    elif method.tries is not None:
        calls = list(method.tries(few))
    else:
        calls = [()]
    usable: list[tuple[Value, ...]] = []
    problem: Exception | None = None
    for call in calls:
        taken = 0
        for value in pool:
            try:
                _call(method, value, call)
            except (TypeError, LatticeValue) as error:
                problem = error
            except Exception:  # it will be shown as a counterexample
                taken += 1
            else:
                taken += 1
        if taken > 1:
            usable.append(call)
    if not usable:
        remedy = f'give arguments={{"{method.name}": [(...), ...]}}'
        return (
            [],
            [],
            [f"{method.name} cannot be called ({short(str(problem)) if problem else 'no arguments'}): {remedy}"],
        )
    receiver = [_receiver_law(method, call) for call in usable] if method.kind.is_monotone else []
    argument = [
        _argument_law(method, call, place)
        for call in usable
        for place, each in enumerate(call)
        if method.argument.is_monotone and isinstance(each, Lattice)
    ]
    return receiver, argument, []


def _call(method: Method, receiver: Value, arguments: tuple[Value, ...]) -> Value:
    return getattr(receiver, method.name)(*arguments)


def _receiver_law(method: Method, call: tuple[Value, ...]) -> Law:
    return _law(method, method.kind, _written(method, "a", call), lambda value: _call(method, value, call))


def _argument_law(method: Method, call: tuple[Value, ...], place: int) -> Law:
    receiver = call[place]

    def apply(value: Value) -> Value:
        return _call(method, receiver, (*call[:place], value, *call[place + 1 :]))

    holes = (*call[:place], Text("a"), *call[place + 1 :])
    return _law(method, method.argument, _written(method, short(receiver), holes), apply)


def _law(method: Method, kind: Kind, text: str, apply: Callable[[Value], Value]) -> Law:
    """That ``f``, which *text* writes for ``a``, is what *kind* says."""

    def homomorphic(a: Value, b: Value) -> Value:
        whole, parts = apply(a.merge(b)), combine(apply(a), apply(b))
        agree = same(whole, parts)
        return (
            None
            if agree
            else [("f(a)", apply(a)), ("f(b)", apply(b)), ("f(a merge b)", whole), ("f(a) merge f(b)", parts)]
        )

    def growing(a: Value, b: Value) -> Value:
        merged = a.merge(b)
        low, high = apply(a), apply(merged)
        return None if _below(low, high) else [("a merge b", merged), ("f(a)", low), ("f(a merge b)", high)]

    if kind is Kind.MORPHISM:
        return Law(
            f"{method.symbol} is a morphism", f"f(a merge b) == f(a) merge f(b), f(a) = {text}", 2, homomorphic, True
        )
    return Law(f"{method.symbol} is monotone", f"f(a) <= f(a merge b), f(a) = {text}", 2, growing, True)


def _written(method: Method, receiver: str, arguments: Sequence[Value]) -> str:
    texts = [getattr(each, "__qualname__", None) if isinstance(each, type) else short(each) for each in arguments]
    if method.symbol != method.name:
        return f"{receiver} {method.symbol} {texts[0]}"
    return f"{receiver}.{method.name}({', '.join(map(str, texts))})"


def same(a: Value, b: Value) -> bool:
    """Whether two results of a method are the same: rows in any order and number."""
    if isinstance(a, list) and isinstance(b, list):
        return set(map(key_of, a)) == set(map(key_of, b))
    return type(a) is type(b) and bool(a == b)


def _below(low: Value, high: Value) -> bool:
    if low is None:
        return True
    if isinstance(low, list):
        return set(map(key_of, low)) <= set(map(key_of, high))
    if type(low) is bool:
        return not low or bool(high)
    return type(low) is type(high) and bool(low <= high)
