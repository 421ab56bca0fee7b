"""``Observe``: interest in assertions, itself an assertion.

An ``Observe`` can be observed like anything else, and then looks as the published schema says: ``<Observe <group ..>
#:observer>``. Nearly always nobody looks, so its frozen form is compact: ``(INTEREST, skeleton, constants,
observer)``.  :func:`expand` gives the long form when the index meets somebody who does look.

>>> from syndicate.values.pattern import capture
>>> from syndicate.values.value import Record
>>> ref = Ref.unbound()
>>> form = freeze(Observe([1, capture()], ref)); form[2], form[3] is ref
(1, True)
>>> thaw(form).pattern.label, thaw(form).observer is ref
(Symbol('group'), True)
>>> freeze(thaw(form)) == form == freeze(Record("Observe", [thaw(form).pattern, ref]))
True
"""

from __future__ import annotations

from typing import Final

from syndicate.errors import PatternError
from syndicate.index.skeleton import analyse, synthesise
from syndicate.values.pattern import decode, decoded, encode
from syndicate.values.record import record
from syndicate.values.value import Frozen, Ref, Symbol, Tag, Value, compact_as, freeze, freeze_as, thaw

OBSERVE: Final = Symbol("Observe")


@record("Observe")
class Observe:
    """Interest of *observer* (a :class:`~syndicate.values.value.Ref`) in what *pattern* matches.

    The observer's entity gets an event for each distinct tuple of captures: asserted, retracted, or a message.
    *pattern* is written as for :func:`~syndicate.actors.during.on_message`, or is data of the published schema.

    >>> from syndicate import assert_, capture, dataspace, on_asserted, on_message, run
    >>> def boot():
    ...     ds = dataspace()
    ...     on_asserted(ds, Observe(capture(), capture()))(lambda pattern, who: print("somebody is interested"))
    >>> run(boot)
    somebody is interested
    """

    pattern: Value
    observer: Value


def expand(form: Frozen, depth: int = 0) -> Frozen:
    """The long frozen form of a compact one: the record that other observers see, at *depth* of a value."""
    _, skeleton, constants, observer = form
    return (OBSERVE, freeze(encode(synthesise(skeleton, constants)), depth + 1), observer)


INTEREST: Final = Tag("INTEREST", 6, expand)


def interest(pattern: Value, observer: Ref) -> Frozen:
    """The compact frozen form of ``Observe(pattern, observer)``; raises :class:`PatternError`."""
    skeleton, constants = analyse(pattern)
    return (INTEREST, skeleton, constants, observer)


def _freeze_observe(value: Observe, depth: int) -> Frozen:
    if not isinstance(value.observer, Ref):
        return (OBSERVE, freeze(value.pattern, depth + 1), freeze(value.observer, depth + 1))
    try:
        pattern = decoded(value.pattern)
    except PatternError:
        pattern = None
    form = interest(value.pattern if pattern is None else pattern, value.observer)
    return expand(form, depth) if depth else form  # within another value it is data, which patterns look into


def compact(form: Frozen) -> Frozen | None:
    """The compact form of a long one; None where its pattern is malformed."""
    if len(form) != 3 or type(form[2]) is not Ref:
        return None
    try:
        return interest(decode(thaw(form[1])), form[2])
    except PatternError:
        return None


def _compact(form: Frozen) -> Frozen:
    """The same, or the long one itself: then it stays a plain assertion."""
    return compact(form) or form


freeze_as(Observe, _freeze_observe)
compact_as(OBSERVE, _compact)
