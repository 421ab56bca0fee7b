"""Resending: rules that send, each time that a timer fires, rows that are there.

In ``gossip <~ (timer * peer * kv).combos(lambda t, p, k: (p.addr, k.key, k.version))`` the timer says when a row goes,
and not which.  As long as it fires again, all rows of ``kv`` come to all peers, and of those that grow the greatest.

>>> from syndicate.plan import Attr, NaturalJoin, Projection, Relation, Rename
>>> timer, kv = Relation("timer", ("key", "val")), Relation("kv", ("k", "v"))
>>> both = NaturalJoin(timer, kv)
>>> [says_when(one, {"timer"}) for one in (Projection(both, ("k", "v")), Projection(both, ("k", "val")))]
[True, False]
>>> says_when(NaturalJoin(Rename(timer, {"key": "k"}), kv), {"timer"})
False

Contract: without the timer, the same expression has the same rows, and all of them at each moment.

Source: Demers et al. 1987 (anti-entropy); ``docs/design/bloom.md``, "Timers that send again".
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from syndicate import plan
from syndicate.bloom.rules.function import Bare, Fitting, Testing, origin_of
from syndicate.bloom.rules.monotonicity import Purpose, read_origin
from syndicate.bloom.rules.term import TermExpression


class _Depends(Exception):
    """Rows depend on what a timer's rows say."""


def says_when(body: plan.Expression, timers: AbstractSet[str]) -> bool:
    """Whether the rows of *timers* say when *body* has its rows, and neither which nor what."""
    try:
        return not _timed(body, timers)
    except _Depends:
        return False


def _timed(this: plan.Expression, timers: AbstractSet[str]) -> frozenset[str]:
    """The attributes that say what is in a timer's rows; raises :class:`_Depends`."""
    match this:
        case plan.Relation():
            return frozenset(this.heading) if this.name in timers else frozenset()
        case plan.Literal() | TermExpression():
            return frozenset()
    parts = [(part, _timed(part, timers)) for part in this.parts()]
    attributes = frozenset[str]().union(*(of for _, of in parts))
    match this:
        case plan.Rename():
            new = dict(this.renaming)
            return frozenset(new.get(name, name) for name in attributes)
        case plan.Projection():
            return frozenset(name for name, scalar in this.columns if attributes.intersection(scalar.attributes()))
        case plan.NonMonotone() | plan.Union():
            return attributes
        case plan.Selection():
            for condition in this.conditions:
                _free(condition, attributes)
            return attributes
        case plan.FlatMap() if attributes:
            _called(this.function, attributes, Purpose(many=getattr(this.function, "many", False)))
            return frozenset()
        case plan.NaturalJoin() | plan.SemiJoin():
            for part, of in parts:
                if any(of.intersection(other.heading) for other, _ in parts if other is not part):
                    raise _Depends
            return attributes.intersection(this.heading)
    if attributes or _reads(this, timers):
        raise _Depends
    return attributes


def _reads(this: plan.Expression, timers: Iterable[str]) -> bool:
    return any(one.name in timers for one in plan.occurrences(this))


def _free(condition: plan.Condition, attributes: frozenset[str]) -> None:
    if isinstance(condition, plan.Holds) and isinstance(condition.function, Testing):
        _called(condition.function, attributes, Purpose(test=True))
    elif attributes.intersection(condition.attributes()):
        raise _Depends


def _called(call: object, attributes: frozenset[str], purpose: Purpose) -> None:
    """Raise :class:`_Depends` if a function looks into what a timer's rows say."""
    origin = origin_of(call) if isinstance(call, (Fitting, Bare, Testing)) else None
    if origin is None:
        raise _Depends
    monotonicity = read_origin(origin, dict.fromkeys(attributes), purpose)
    if attributes & (monotonicity.offences.keys() | monotonicity.of):
        raise _Depends
