"""Reacting to a dataspace: ``on_message``, ``on_asserted``, ``on_retracted``, ``during``, ``stop_when``.

Each asserts an ``Observe`` in the current facet and calls the handler in a turn of this actor, captures as positional
arguments. What is there already counts as just asserted.  All of them are decorators that return the function itself.

>>> from syndicate import assert_, capture, dataspace, run, send
>>> def boot():
...     ds = dataspace()
...     @during(ds, ["lit", capture()])
...     def lit(room):
...         print(room, "is lit")
...         return lambda: print(room, "is dark")
...     hall = assert_(ds, ["lit", "hall"])
...     on_message(ds, "put it out")(hall.retract)
...     send(ds, "put it out")
>>> run(boot)
hall is lit
hall is dark

Source: ``docs/design/actors.md``, "Reacting to a dataspace"; Garnock-Jones 2018, footnote 2 (closures compare by
identity).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal, TypeVar

from syndicate.actors.actor import Actor
from syndicate.actors.arguments import expect_function, expect_ref
from syndicate.actors.facet import Facet
from syndicate.actors.link import Lifeline
from syndicate.actors.turn import Entity, Turn, current, decorator
from syndicate.errors import ArgumentError
from syndicate.index.interest import interest
from syndicate.values.value import TRUE, Assertion, Ref, Value

F = TypeVar("F", bound=Callable[..., object])


class OnMessage(Entity):
    """Calls a function with what is captured of each message."""

    __slots__ = ("asked", "fn")

    def __init__(self, fn: Callable[..., Value]) -> None:
        self.fn = fn

    def message(self, value: Value) -> None:
        """Call it."""
        self.fn(*value)


class OnAsserted(Entity):
    """Calls a function with what is captured of each assertion."""

    __slots__ = ("asked", "fn")

    def __init__(self, fn: Callable[..., Value]) -> None:
        self.fn = fn

    def assert_(self, value: Value, handle: Assertion) -> None:
        """Call it."""
        self.fn(*value)


class _OnRetracted(Entity):
    __slots__ = ("asked", "captures", "fn")

    def __init__(self, fn: Callable[..., Value]) -> None:
        self.fn = fn
        self.captures: dict[Assertion, Value] = {}

    def assert_(self, value: Value, handle: Assertion) -> None:
        self.captures[handle] = value

    def retract(self, handle: Assertion) -> None:
        self.fn(*self.captures.pop(handle))


class _During(Entity):
    __slots__ = ("asked", "fn", "instances", "turn")

    def __init__(self, turn: Turn, fn: Callable[..., Value]) -> None:
        self.turn = turn
        self.fn = fn
        self.instances: dict[Assertion, Facet] = {}

    def assert_(self, value: Value, handle: Assertion) -> None:
        turn = self.turn
        facet = self.instances[handle] = Facet(turn.actor, turn.facet)
        facet.lasting = True  # as long as the assertion, even with nothing in it
        facet.run(turn, functools.partial(self.begin, facet, value))

    def begin(self, facet: Facet, value: Value) -> None:
        undo = self.fn(*value)
        if callable(undo):
            facet.hooks.append((undo, False))

    def retract(self, handle: Assertion) -> None:
        self.instances.pop(handle).stop(self.turn)


class _DuringSpawn(_During):
    __slots__ = ("name",)

    def __init__(self, turn: Turn, fn: Callable[..., Value], name: str) -> None:
        super().__init__(turn, fn)
        self.name = name

    def begin(self, facet: Facet, value: Value) -> None:
        actor = Actor(self.turn.actor.system, self.name)
        actor.boot(self.turn, lambda: _During.begin(self, self.turn.facet, value))
        # The actor stops with the facet, but the facet outlives the actor: a crashed instance is not restarted.
        self.turn.assert_form(facet, Ref(actor.root, Lifeline(actor.root)), TRUE)


def observe(what: str, ds: Ref, pattern: Value, entity: Entity, *fns: Callable[..., object] | None) -> None:
    """Notify an entity of what matches *pattern*, as long as the current facet lives.

    *what* is how errors name it, and *fns* are to take what is captured.
    """
    turn = current(what)
    facet: Facet = turn.facet
    expect_ref(what, ds)
    form = interest(pattern, Ref(facet, entity, entity.raw))
    for fn in fns:
        if fn is not None:
            expect_function(what, fn, len(form[1].captures), pattern)
    entity.asked = form[1]  # type: ignore[misc]  # each class of those that observe has a place for it
    turn.assert_form(facet, ds, form)


def on_message(ds: Ref, pattern: Value) -> Callable[[F], F]:
    """Call the decorated function for each message that matches *pattern*; raises
    :class:`~syndicate.errors.PatternError`.
    """

    def install(fn: F) -> F:
        observe("on_message", ds, pattern, OnMessage(fn), fn)
        return fn

    return decorator("on_message", install)


def on_asserted(ds: Ref, pattern: Value) -> Callable[[F], F]:
    """Call the decorated function once for each distinct tuple of captures that appears, or is there already.

    >>> from syndicate import assert_, capture, dataspace, run
    >>> def boot():
    ...     ds = dataspace()
    ...     on_asserted(ds, ["present", capture()])(lambda who: print(who, "came"))
    ...     assert_(ds, ["present", "Alice"])
    >>> run(boot)
    Alice came
    """

    def install(fn: F) -> F:
        observe("on_asserted", ds, pattern, OnAsserted(fn), fn)
        return fn

    return decorator("on_asserted", install)


def on_retracted(ds: Ref, pattern: Value) -> Callable[[F], F]:
    """Call the decorated function once for each distinct tuple of captures that disappears.

    >>> from syndicate import assert_, capture, dataspace, run, sync
    >>> def boot():
    ...     ds = dataspace()
    ...     on_retracted(ds, ["present", capture()])(lambda who: print(who, "went"))
    ...     handle = assert_(ds, ["present", "Alice"])
    ...     sync(ds, handle.retract)
    >>> run(boot)
    Alice went
    """

    def install(fn: F) -> F:
        observe("on_retracted", ds, pattern, _OnRetracted(fn), fn)
        return fn

    return decorator("on_retracted", install)


def during(ds: Ref, pattern: Value, *, spawn: bool = False, name: str | None = None) -> Callable[[F], F]:
    """Run the decorated function in a facet of its own for each distinct tuple of captures, for as long as that is
    asserted.

    With *spawn* each runs in an actor of its own (*name* names them), so that a crash of one leaves the others alone.
    A function that it returns runs when that facet stops, as with :func:`~syndicate.actors.verbs.on_stop`.
    """

    def install(fn: F) -> F:
        turn = current("during")
        entity = _DuringSpawn(turn, fn, name or str(getattr(fn, "__name__", "during"))) if spawn else _During(turn, fn)
        observe("during", ds, pattern, entity, fn)
        return fn

    return decorator("during", install)


def stop_when(
    ds: Ref, pattern: Value, *, on: Literal["asserted", "retracted", "message"] = "asserted"
) -> Callable[[F], F]:
    """Stop the current facet at the first such event, and run the decorated function last, in the parent's context.

    ``stop_when(ds, pattern)(lambda *captures: None)`` merely stops.

    >>> from syndicate import capture, dataspace, on_message, react, run, send
    >>> def boot():
    ...     ds = dataspace()
    ...     @react
    ...     def listening():
    ...         on_message(ds, ["say", capture()])(print)
    ...         stop_when(ds, "enough", on="message")(lambda: print("no more"))
    ...     for value in (["say", "one"], "enough", ["say", "two"]):
    ...         send(ds, value)
    >>> run(boot)
    one
    no more
    """
    entity_of = {"asserted": OnAsserted, "retracted": _OnRetracted, "message": OnMessage}.get(on)
    if entity_of is None:
        raise ArgumentError(f'stop_when() takes on="asserted", on="retracted" or on="message", and not {on!r}')

    def install(fn: F) -> F:
        facet: Facet = current("stop_when").facet

        def stopping(*captures: Value) -> None:
            facet.stop(current("stop_when"), functools.partial(fn, *captures))

        observe("stop_when", ds, pattern, entity_of(stopping), fn)
        return fn

    return decorator("stop_when", install)
