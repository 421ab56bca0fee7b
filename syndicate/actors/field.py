"""Fields: an actor's variables, whose readers run again when they change.

A *dataflow block* runs once at once, and notes which fields it reads.  When a turn has changed some of these, the
block runs again at the end of that turn, once however many changed, and after the blocks that set what it reads (see
:mod:`syndicate.actors.facet`); this goes on until nothing is damaged.

Contract: at a turn's end every block of a live facet has seen the latest value of each field it read, or the turn has
failed: with the block's own error, or with :class:`~syndicate.errors.DataflowLoop` when one block ran more than
``dataflow.LIMIT`` times without settling.

>>> from syndicate import after, run
>>> def boot():
...     count = field(1)
...     dataflow(lambda: print("the count is", count.value))
...     after(0, lambda: count.set(2))
>>> run(boot)
the count is 1
the count is 2

Source: Garnock-Jones 2017, section 7.3; ``docs/design/dataflow.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from syndicate.actors.arguments import expect_function
from syndicate.actors.facet import Block
from syndicate.actors.turn import Turn, current, here
from syndicate.errors import NotAValue, NotInTurn, WrongActor
from syndicate.native import kernel
from syndicate.values.value import Frozen, Ref, Symbol, Value, freeze_as, identical, immutable

if TYPE_CHECKING:
    from syndicate.actors.facet import Facet

T = TypeVar("T")

_ATOMS: Final = frozenset({int, str, bytes, bool, Symbol, Ref, type(None)})
"""Types whose values are the same value if they are equal and of one type."""


@kernel
def read_field(field: Field[T]) -> T:
    """What ``field.value`` is; a dataflow block that reads it runs again when it changes."""
    turn = field._turn
    if turn.actor is not field.actor and turn.actor is not None:
        field._refuse("read")
    block = turn.block
    if block is not None:
        if field.writers:
            for writer in field.writers:
                if writer.height >= block.height or block.unordered:
                    for each in list(field.writers):
                        block.await_writer(each, turn)
                    break
        block.reads[field] = None
        field.readers[block] = None
    return field._value


@kernel
def write_field(field: Field[T], value: T) -> None:
    """What ``field.value = value`` does: an identical value that cannot have changed inside is no change."""
    turn = field._turn
    if turn.actor is not field.actor:
        field._refuse("set")
    old = field._value
    if turn.journal is not None:
        turn.journal.note(partial(field._take_back, turn, old))
    field._value = value
    writer = turn.writer
    if writer is not None and writer not in field.writers:
        writer.wrote(field)
    if field.readers:
        kind = type(value)
        if kind in _ATOMS:
            if kind is type(old) and value == old:
                return
        elif unchanged(old, value):
            return
        turn.damaged.update(field.readers)


class Field(Generic[T]):
    """A variable of one actor.  Read ``.value``, and set it or call :meth:`set`; made by :func:`field`.

    >>> from syndicate import dataflow, field, run
    >>> def boot():
    ...     count = field(0)
    ...     dataflow(lambda: print(count.value))
    ...     count.value += 1
    >>> run(boot)
    0
    1
    """

    __slots__ = ("__weakref__", "_turn", "_value", "actor", "name", "readers", "writers")

    def __init__(self, turn: Turn, value: T, name: str | None) -> None:
        self._turn = turn  # the one object that serves all turns of the system
        self.actor = turn.actor
        self._value = value
        self.name = name or "field"
        self.readers: dict[Block, None] = {}
        self.writers: dict[Block, None] = {}

    if TYPE_CHECKING:

        @property
        def value(self) -> T:
            """The current value; a dataflow block that reads it runs again when it changes."""

        @value.setter
        def value(self, value: T) -> None:
            """An identical value that cannot have changed inside is no change."""
    else:
        value = property(read_field, write_field, None, "The current value; a block that reads it follows it.")

    def _take_back(self, turn: Turn, value: T) -> None:
        """It was never set: blocks that have seen the other value run again."""
        self._value = value
        turn.damaged.update(self.readers)

    def set(self, value: T) -> None:
        """As ``.value = value``, where only an expression may stand: ``after(1, lambda: shown.set(True))``."""
        self.value = value

    def changed(self) -> None:
        """Say that the value changed inside; its readers run again at the end of the turn."""
        turn = self._turn
        if turn.actor is not self.actor:
            self._refuse("changed")
        if turn.writer is not None and turn.writer not in self.writers:
            turn.writer.wrote(self)
        if self.readers:
            turn.damaged.update(self.readers)

    def _refuse(self, what: str) -> None:
        if here.turn is None:
            raise NotInTurn(f"{self.name}.{what}")
        raise WrongActor(
            f"the field {self.name!r} belongs to {self.actor!r} and can only be {what} in a turn of it: "
            "use messages and assertions between actors"
        )

    def __repr__(self) -> str:
        return f"<Field {self.name} = {self._value!r}>"


def unchanged(old: object, new: object) -> bool:
    """Whether *new* is the same value as *old*, and neither can have changed inside: a list may have."""
    if type(new) in _ATOMS or type(old) in _ATOMS or not (immutable(old) and immutable(new)):
        return False
    try:
        return identical(old, new)
    except NotAValue:  # too deep, or too large: as one that may have changed
        return False


def _refuse_field(field: Field[Value], depth: int) -> Frozen:
    raise NotAValue(f"{field!r} is a field, and not a value: give what is in it, assert_(ds, lambda: Box(field.value))")


freeze_as(Field, _refuse_field)


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
    facet.block(fn).begin(turn)
    return fn
