"""Matching: whether a value has what a skeleton checks, the types of captures among it, and what is at its places.

This is the specification of what hot tables do in generated code (:mod:`~syndicate.index.compiled`).  The meaning of
whole patterns is :func:`~syndicate.values.pattern.match`.

Source: Garnock-Jones 2018, "Matching atom classes" (classes of atoms are checks, too).
"""

from __future__ import annotations

from typing import Final

from syndicate.index.path import MISSING, Path, project
from syndicate.index.skeleton import Check
from syndicate.values.value import BIG, BOOL, DOUBLE, SET, Frozen, Ref, Symbol, Tag, Value, thaw

_TAGS: Final[dict[str, Tag]] = {"Boolean": BOOL, "Double": DOUBLE, "Set": SET, "SignedInteger": BIG}
_TYPES: Final[dict[str, type]] = {
    "String": str,
    "ByteString": bytes,
    "Symbol": Symbol,
    "Embedded": Ref,
    "SignedInteger": int,
}


def is_of_class(form: Frozen, name: str) -> bool:
    """Whether a frozen form is an atom of the named class.

    >>> from syndicate.values.value import freeze
    >>> is_of_class(freeze(True), "SignedInteger"), is_of_class(freeze(2**80), "SignedInteger")
    (False, True)
    """
    if type(form) is tuple:
        return form[0] is _TAGS.get(name)
    return type(form) is _TYPES.get(name)


def signs(name: str) -> tuple[type | None, Tag | None]:
    """What kernels know an atom of the named class by: the type of a plain one, and the tag of a compound."""
    return _TYPES.get(name), _TAGS.get(name)


def interpret(form: Frozen, paths: tuple[Path, ...], checks: tuple[Check, ...] = ()) -> Frozen:
    """What is at *paths* as a tuple, or MISSING if a path or a check fails: the specification of what is generated.

    >>> from syndicate.values.value import freeze
    >>> form = freeze(["a", "b", "c"])
    >>> interpret(form, ((1,),), (((2,), None),)), interpret(form, ((3,),))
    (('b',), MISSING)
    """
    for path, kind in checks:
        part = project(form, path)
        if part is MISSING or (kind is not None and not is_of_class(part, kind)):
            return MISSING
    forms = []
    for path in paths:
        part = project(form, path)
        if part is MISSING:
            return MISSING
        forms.append(part)
    return tuple(forms)


def values_of(captures: tuple[Frozen, ...]) -> tuple[Value, ...]:
    """The captured values; the very tuple if all of them are their own frozen forms."""
    for form in captures:
        if type(form) is tuple:
            return tuple([thaw(form) for form in captures])
    return captures
