"""Ports: where the collections of a program meet the assertions and messages of a dataspace.

* **inputs**: a collection has a row for each assertion that matches a pattern, for as long as it stands: a table by
  insertion and deletion, a scratch or an input interface by a row in each tick.
* **messages**: a row for each message that matches, in one tick; a table keeps the last of each key.
* **outputs**: each row is asserted for as long as it is there.
* **sends**: each row is sent as a message in each tick in which it is there.

A row is what a pattern captures, in order.  A record class stands for the pattern that captures all its fields; going
out, it, or any function, makes a value of the columns.

What comes in is the data of strangers.  A row of another length, or one that makes a rule raise, is refused, and the
log says so.  So is, as long as it lasts, a second assertion of one key: the row of the first stays.

What goes out is made by the program's own functions.  One that fails for a stranger's row has that row refused, if it
has made a value of any other; one that has never made any is the program's mistake, and told as such.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from syndicate.actors.during import observe
from syndicate.actors.turn import Entity, Handle, Turn
from syndicate.bloom.agent.strangers import Stranger
from syndicate.bloom.declaration import SCRATCHES, TABLES, Kind
from syndicate.bloom.rules.function import takes
from syndicate.bloom.site import raised_at, site_of
from syndicate.errors import BloomDeclaration, IllegalRule, NotAValue, PatternError, RuleFailed
from syndicate.flow.element import Key, natural
from syndicate.index.analysis import analyse
from syndicate.values.absent import form_of
from syndicate.values.pattern import capture
from syndicate.values.value import Frozen, Ref, Value, thaw

if TYPE_CHECKING:
    from syndicate.bloom.agent.agent import Agent
    from syndicate.bloom.collection import Collection


def check(what: str, one: Collection, written: Any, site: str) -> Any:
    """The pattern, or the function, that *written* stands for; raises :class:`BloomDeclaration`."""
    name, kind = one._name, one._kind
    if what in ("outputs", "sends"):
        if not callable(written):
            raise BloomDeclaration(
                f"{site}: {what}={{{name!r}: ...}} takes a record class, or a function of {', '.join(one._columns)}, "
                f"not {written!r}"
            )
        fields = len(attrs.fields(written)) if hasattr(written, "__label__") else len(one._columns)
        if fields != len(one._columns):
            raise BloomDeclaration(
                f"{site}: {written.__name__} has {fields} fields, but {name} has {len(one._columns)} columns: "
                f"{', '.join(one._columns)}"
            )
        try:
            takes(written, len(one._columns), f"the columns of {name}, {', '.join(one._columns)}", site)
        except IllegalRule as error:
            raise BloomDeclaration(f"{error}, as {what}=") from None
        return written
    if what == "inputs" and kind is Kind.DURABLE:
        raise BloomDeclaration(
            f"{site}: {name} is a durable table, and inputs= are there while an assertion is: give messages=, or let a "
            "rule keep the rows"
        )
    if kind not in TABLES and kind not in SCRATCHES:
        raise BloomDeclaration(
            f"{site}: {name} is a {kind.value}, and {what}= are for tables, scratches and input interfaces"
        )
    if isinstance(written, type) and hasattr(written, "__label__"):
        written = written(*[capture() for _ in attrs.fields(written)])
    try:
        captures = len(analyse(written)[0].captures)
    except PatternError as error:
        raise BloomDeclaration(
            f"{site}: {what}={{{name!r}: ...}} takes a pattern, or a record class: {error}"
        ) from None
    if captures != len(one._columns):
        raise BloomDeclaration(
            f"{site}: the pattern of {name} captures {captures} values, but there are {len(one._columns)} columns: "
            f"{', '.join(one._columns)}"
        )
    return written


class Sent(Entity):
    """Rows of messages."""

    def __init__(self, agent: Agent, one: Collection) -> None:
        """For a collection."""
        self.agent, self.one = agent, one

    def observe(self, ds: Ref, pattern: Any) -> None:
        """Ask for what matches."""
        observe("Program", ds, pattern, self)

    def message(self, value: Value) -> None:
        """It is there in one tick."""
        self.agent.take(self.one, tuple(value))


class Standing(Entity):
    """Rows of assertions: the first of each key counts, the others wait for its end."""

    def __init__(self, agent: Agent, one: Collection) -> None:
        """For a collection."""
        self.agent, self.one = agent, one
        self.state = one._program._state_of(one)
        self.known: dict[Any, Key] = {}
        self.queues: dict[Key, dict[Key, int]] = {}

    def observe(self, ds: Ref, pattern: Any) -> None:
        """Ask for what matches."""
        observe("Program", ds, pattern, self)

    def assert_(self, value: Value, handle: Any) -> None:
        """It is there from the next tick on."""
        agent, one = self.agent, self.one
        row = agent.checked(one, tuple(value))
        if row is None:
            return
        self.known[handle] = row
        queue = self.queues.setdefault(self.state.contents.key(row), {})
        queue[row] = queue.get(row, 0) + 1
        if len(queue) == 1:
            self._show(row, True)
        elif queue[row] == 1:
            first = natural(next(iter(queue)))
            agent.refuse(one._name, f"{natural(row)!r} has the key of {first!r}, and waits for its end")

    def retract(self, handle: Any) -> None:
        """It is gone from the next tick on."""
        row = self.known.pop(handle, None)
        if row is None:
            return
        key = self.state.contents.key(row)
        queue = self.queues[key]
        queue[row] -= 1
        if queue[row]:
            return
        first = next(iter(queue)) == row
        del queue[row]
        if first:
            self._show(row, False)
            if queue:
                self._show(next(iter(queue)), True)
        if not queue:
            del self.queues[key]

    def _show(self, row: Key, there: bool) -> None:
        one, shown = self.one, self.agent.shown
        pending = "wanted" if one._kind not in TABLES else "upserted" if there else "deleted"
        before = shown.get((one._name, row))
        if before is not None:  # the opposite, and no tick since
            before.drop()
        shown[one._name, row] = stranger = Stranger(one, pending, row, there)
        stranger.give()
        self.agent.wake()


class Unmade(RuleFailed):
    """No value can be made of a row that is to go out."""

    output: Output


class Output:
    """The rows of a collection as values."""

    def __init__(self, what: str, one: Collection, make: Callable[..., Value]) -> None:
        """By a function of the columns, given as *what*, ``outputs=`` or ``sends=``."""
        self.what, self.one, self.make, self.site = what, one, make, site_of(make)
        self.works = False
        """Whether it has ever made a value: if not, it is no stranger's row that is wrong."""
        self.handles: dict[Key, Handle] = {}

    def form(self, row: Key) -> Frozen:
        """The frozen form of a row's value; raises :class:`Unmade`."""
        try:
            form = form_of(self.make(*natural(row)))
        except Exception as error:
            where = raised_at(error, self.site)
            why = str(error) if isinstance(error, NotAValue) else f"{type(error).__name__}: {error}"
            name = self.one._name
            made = Unmade(f"{where}: {self.what} of {name} cannot make a value of {natural(row)!r}: {why}")
            made.output = self
            raise made from error
        self.works = True
        return form

    def show(self, turn: Turn, ds: Ref, delta: Mapping[Key, int]) -> list[Handle]:
        """Assert what is new; answer the handles of what is gone."""
        for row, weight in delta.items():
            if weight > 0 and row not in self.handles:
                self.handles[row] = turn.assert_form(turn.facet, ds, self.form(row))
        return [self.handles.pop(row) for row, weight in delta.items() if weight < 0 and row in self.handles]

    def send(self, turn: Turn, ds: Ref) -> None:
        """Send what is there."""
        for row in list(self.one._program._state_of(self.one).contents.rows):
            turn.send(ds, thaw(self.form(row)))
