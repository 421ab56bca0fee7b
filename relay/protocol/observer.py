"""Observers across the relay: what our ``Observe`` looks like to a peer, and what may come back.

Two things differ from an ``Observe`` within one process.  The published pattern language knows no classes of atoms,
so that ``capture(int)`` goes out as ``<bind <_>>``, and what is no integer is filtered out here, on arrival.  And what
comes back is made by somebody else: a handler that expects two captures must not be called with three, or with none,
because a peer, or a peer's peer, sends nonsense.  So an observer of ours crosses as an :class:`Observer`, which lets
pass only what its pattern can have captured.

>>> from syndicate.values.pattern import capture
>>> from syndicate.index.interest import interest
>>> form, observer = publish(interest(["age", capture(int)], Ref(None, None)))
>>> from syndicate.values.text import unparse_form
>>> unparse_form(form[1])
'<group <arr> {0: <lit "age"> 1: <bind <_>>}>'
>>> observer.entity.passes((SEQ, 5)), observer.entity.passes((SEQ, "five")), observer.entity.passes((SEQ,))
((SEQ, 5), None, None)

Source: Syndicate schemas, ``dataspacePatterns``; ``docs/design/protocol.md``, "Observers at a peer".
"""

from __future__ import annotations

from typing import ClassVar, Final

from syndicate.actors.turn import Entity
from syndicate.index.interest import OBSERVE
from syndicate.index.matching import is_of_class
from syndicate.index.skeleton import synthesise
from syndicate.values.pattern import ANY, Capture, Group, Kind, Pattern, encode
from syndicate.values.value import SEQ, Assertion, Frozen, Ref, freeze, thaw


def publish(form: Frozen) -> tuple[Frozen, Ref]:
    """The published form of the compact ``Observe`` *form*, and the :class:`Observer` in it."""
    _, skeleton, constants, observer = form
    widened = _Widened()
    pattern = widened.widen(synthesise(skeleton, constants))
    stand_in = Ref(observer.facet, Observer(observer, widened), True)
    return (OBSERVE, freeze(encode(pattern)), stand_in), stand_in


class _Widened:
    """A pattern without classes, and the classes by the place of their captures; what was not a class is extra."""

    def __init__(self) -> None:
        self.count = 0
        self.classes: list[tuple[int, str]] = []
        self.extra: set[int] = set()

    def widen(self, pattern: Pattern) -> Pattern:
        match pattern:
            case Capture(inner):
                place = self._next()
                if isinstance(inner, Kind):
                    self.classes.append((place, inner.name))
                    return Capture(ANY)
                return Capture(self.widen(inner))
            case Kind(name):
                place = self._next()
                self.classes.append((place, name))
                self.extra.add(place)
                return Capture(ANY)
            case Group(kind, label, entries):
                return Group(kind, label, tuple([(key, self.widen(entry)) for key, entry in entries]))
        return pattern

    def _next(self) -> int:
        self.count += 1
        return self.count - 1


def heard(target: Ref, form: Frozen) -> bool:
    """Whether *target* can be meant by a peer with *form*: if it is a handler's, only with what it has asked for.

    Whoever observes observers knows them, and could else make a handler fail.
    """
    asked = getattr(target.entity, "asked", None)  # a dataspace has none
    if asked is None:
        return True
    if type(form) is not tuple or form[0] is not SEQ or len(form) != len(asked.captures) + 1:
        return False
    classes = dict(asked.checks)
    return all(not classes.get(path) or is_of_class(form[i], classes[path]) for i, path in enumerate(asked.captures, 1))


class _Alike:
    """Assertions that have the same captures: how many, and the handle by which the observer knows them."""

    __slots__ = ("count", "handle")

    def __init__(self, handle: Assertion) -> None:
        self.handle = handle
        self.count = 1


class Observer(Entity):
    """An observer of ours as its peers see it.  Hands on to it what its pattern can have captured.

    Where the wide pattern captures more than the original, several of its captures are one to the observer: it is
    notified of the first, and of the end of the last.
    """

    raw: ClassVar[bool] = True

    def __init__(self, observer: Ref, widened: _Widened) -> None:
        self.observer = observer
        self.count: Final = widened.count
        self.classes: Final = widened.classes
        self.original: Final = [i for i in range(widened.count) if i not in widened.extra] if widened.extra else None
        self._captures: dict[Assertion, Frozen] = {}
        self._alike: dict[Frozen, _Alike] = {}

    def passes(self, form: Frozen) -> Frozen | None:
        """The captures that the observer gets, or None if it cannot be meant."""
        if type(form) is not tuple or form[0] is not SEQ or len(form) != self.count + 1:
            return None
        for place, name in self.classes:
            if not is_of_class(form[place + 1], name):
                return None
        return form if self.original is None else (SEQ, *[form[place + 1] for place in self.original])

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """Tell the observer, if it is the first with these captures."""
        captures = self.passes(form)
        if captures is None:
            return
        self._captures[handle] = captures
        if self.original is None:
            self._hand_on(captures, handle)
            return
        alike = self._alike.get(captures)
        if alike is None:
            self._alike[captures] = _Alike(handle)
            self._hand_on(captures, handle)
        else:
            alike.count += 1

    def _hand_on(self, captures: Frozen, handle: Assertion) -> None:
        self.observer.entity.assert_(captures if self.observer.raw else thaw(captures), handle)

    def retract(self, handle: Assertion) -> None:
        """Tell the observer, if it was the last."""
        captures = self._captures.pop(handle, None)
        if captures is None:
            return
        if self.original is not None:
            alike = self._alike[captures]
            alike.count -= 1
            if alike.count:
                return
            del self._alike[captures]
            handle = alike.handle
        self.observer.entity.retract(handle)

    def message(self, form: Frozen) -> None:
        """Tell the observer."""
        captures = self.passes(form)
        if captures is not None:
            self.observer.entity.message(captures if self.observer.raw else thaw(captures))

    def sync(self, peer: Ref) -> None:
        """Let the observer answer."""
        self.observer.entity.sync(peer)
