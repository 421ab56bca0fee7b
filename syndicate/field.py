"""Fields: an actor's variables, whose readers run again when they change.

A *dataflow block* runs once at once, and notes which fields it reads.  When a turn has changed some of these, the
block runs again at the end of that turn, once however many changed; blocks may change fields, so this goes on until
nothing is damaged.

Contract: at a turn's end every block of a live facet has seen the latest value of each field it read, or the turn has
failed: with the block's own error, or with :class:`DataflowLoop` when one block ran more than ``LIMIT`` times without
settling.

>>> from syndicate import after, run
>>> def boot():
...     count = field(1)
...     dataflow(lambda: print("the count is", count.value))
...     after(0, lambda: count.set(2))
>>> run(boot)
the count is 1
the count is 2

Source: the reference, section 1.5 (the peers either loop without a bound or lose late changes; we do neither).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from syndicate.errors import DataflowLoop, NotAValue, NotInTurn, WrongActor
from syndicate.turn import Turn, current, expect_function, here
from syndicate.values import Symbol, freeze, freeze_as

if TYPE_CHECKING:
    from syndicate.facet import Facet

T = TypeVar("T")

LIMIT: Final = 10_000
"""How many rounds of blocks may follow each other in one turn: longer than any sensible chain of fields."""

_COMPARED: Final = frozenset({int, str, bytes, bool, Symbol, type(None)})
"""Types whose equal values are surely the same value; a change to anything else counts as one (a list may have
changed inside).
"""


class Field(Generic[T]):
    """A variable of one actor.  Read ``.value``, and set it or call :meth:`set`; made by :func:`field`."""

    __slots__ = ("_turn", "_value", "actor", "name", "readers")

    def __init__(self, turn: Turn, value: T, name: str | None) -> None:
        self._turn = turn  # the one object that serves all turns of the system
        self.actor = turn.actor
        self._value = value
        self.name = name or "field"
        self.readers: dict[Block, None] = {}

    @property
    def value(self) -> T:
        """The current value; a dataflow block that reads it runs again when it changes."""
        turn = self._turn
        if turn.actor is not self.actor and turn.actor is not None:
            self._refuse("read")
        block = turn.block
        if block is not None:
            block.reads[self] = None
            self.readers[block] = None
        return self._value

    @value.setter
    def value(self, value: T) -> None:
        if self._turn.actor is not self.actor:
            self._refuse("set")
        old = self._value
        self._value = value
        if type(value) is not type(old) or (
            freeze(value) != freeze(old) if type(old) is float else type(old) not in _COMPARED or value != old
        ):
            self.changed()

    def set(self, value: T) -> None:
        """As ``.value = value``, where only an expression may stand: ``after(1, lambda: shown.set(True))``."""
        self.value = value

    def changed(self) -> None:
        """Say that the value changed inside; its readers run again at the end of the turn."""
        if self._turn.actor is not self.actor:
            self._refuse("changed")
        if self.readers:
            self._turn.damaged.update(self.readers)

    def _refuse(self, what: str) -> None:
        if here.turn is None:
            raise NotInTurn(f"{self.name}.{what}")
        raise WrongActor(
            f"the field {self.name!r} belongs to {self.actor!r} and can only be {what} in a turn of it: "
            "use messages and assertions between actors"
        )

    def __repr__(self) -> str:
        return f"<Field {self.name} = {self._value!r}>"


def _refuse_field(field: Field[Any], depth: int) -> Any:
    raise NotAValue(f"{field!r} is a field, and not a value: give what is in it, assert_(ds, lambda: Box(field.value))")


freeze_as(Field, _refuse_field)


class Block:
    """A dataflow block: a function, the facet it runs in, and what it read last."""

    __slots__ = ("facet", "fn", "reads")

    def __init__(self, facet: Facet, fn: Callable[[], object]) -> None:
        self.facet = facet
        self.fn = fn
        self.reads: dict[Field[Any], None] = {}

    def run(self, turn: Turn) -> None:
        """Run it in its facet, noting what it reads anew; not if that has stopped."""
        facet = self.facet
        if not facet.alive:
            return
        if self.reads:
            self.forget()
        outer_block, outer_facet = turn.block, turn.facet
        turn.block, turn.facet = self, facet
        try:
            self.fn()
        finally:
            turn.block, turn.facet = outer_block, outer_facet
        if not self.facet.alive:  # it stopped itself, and may have read on
            self.forget()

    def forget(self) -> None:
        """Stop being run by what it read."""
        for read in self.reads:
            read.readers.pop(self, None)
        self.reads.clear()

    @property
    def names(self) -> str:
        """The names of the fields it read last."""
        return ", ".join(sorted(read.name for read in self.reads))

    def __repr__(self) -> str:
        return getattr(self.fn, "__qualname__", repr(self.fn))


def field(value: T, name: str | None = None) -> Field[T]:
    """A new field of the current actor; *name* appears in error messages.  Raises :class:`NotInTurn`.

    Any Python object may be in it; it becomes a value only where it is asserted.
    """
    return Field(current("field"), value, name)


def dataflow(fn: Callable[[], object]) -> Callable[[], object]:
    """Run *fn* now, and again in each turn that changed a field which it read.

    Usable as a decorator; raises :class:`NotInTurn`.
    """
    turn = current("dataflow")
    expect_function("dataflow", fn)
    facet: Facet = turn.facet
    facet.block(fn).run(turn)
    return fn


def settle(turn: Turn, rounds: int) -> int:
    """Run damaged blocks until none is left; raises :class:`DataflowLoop`.

    *rounds* is how many this turn has needed so far; the answer, how many by now.
    """
    while turn.damaged:
        damaged, turn.damaged = turn.damaged, {}
        rounds += 1
        if rounds > LIMIT:
            blocks = ", ".join(sorted({f"{block!r} (reads {block.names})" for block in damaged}))
            raise DataflowLoop(
                f"after {LIMIT} rounds in one turn, dataflow blocks still change what they read: {blocks}. Let a block "
                "set a field only when the value differs, and to something that it does not then change again."
            )
        for block in damaged:
            block.run(turn)
    return rounds
