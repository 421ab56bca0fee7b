"""Operators that rules do not have: who writes one gets an error that says what to write, instead of what Python lacks.

Source: ``docs/design/bloom.md``, "Collections and operators".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from syndicate.bloom.site import here
from syndicate.errors import IllegalRule


def _refused(sign: str, remedy: str) -> Callable[[object, object], NoReturn]:
    def refuse(_: object, __: object) -> NoReturn:
        raise IllegalRule(f"{here()}: there is no {sign} of collections in a rule: {remedy}")

    return refuse


_BOTH = "for the rows of both, write a rule for each: t <= a; t <= b"


class Refusing:
    """What is used in a rule, and takes no operator but ``*`` and the signs."""

    no_element = (
        "in a rule, a literal row may hold a collection, t <= [(1, a)], and follows it, or join with a.nested(); "
        "outside of rules, write frozenset(...) of the rows that are meant"
    )

    __add__ = __radd__ = _refused("+", _BOTH)
    __or__ = __ror__ = _refused("|", _BOTH)
    __sub__ = _refused("-", "for the rows of a that are not in b, write a.notin(b)")
    __and__ = _refused("&", "for the rows that are in both, write (a * b).matches()")
    __lshift__ = _refused("<<", "insert from outside with t.insert(rows), and write a rule with <= or <+")
    __matmul__ = _refused("@", "join with *")
