"""Ports: where the collections of a program meet the assertions and messages of a dataspace.

* **inputs**: a collection has a row for each assertion that matches a pattern, until that is retracted: a table by
  insertion and deletion, a scratch or an input interface by a row in each tick.
* **messages**: a row for each message that matches, in one tick; a table keeps the last of each key.
* **outputs**: each row is asserted for as long as it is there.
* **sends**: each row is sent as a message in each tick in which it is there.

A row is what a pattern captures, in order.  A record class stands for the pattern that captures all its fields; going
out, it, or any function, makes a value of the columns.

What comes in is the data of untrusted peers.  A row of another length, or one that makes a rule raise, is refused, and
the log says so.  So is, as long as it lasts, a second assertion of one key: the row of the first stays.

What goes out is made by the program's own functions.  One that fails for an untrusted peer's row has that row refused,
if it has made a value of any other; one that has never made any is the program's mistake, and reported as such.

Packets: a row of a channel on its way through a dataspace.

A row to the address *to* is the message ``<bloom-packet to channel [column ...]>``.  Who has that address observes all
that begins so, whichever program, process or person sent it.  Columns are values as they are, but for two that a
dataspace does not have: None is :data:`~syndicate.values.absent.ABSENT`, and a lattice value is the record that it
always
becomes there.

>>> revived((ABSENT, ("a", 1)))
(None, ('a', 1))
>>> arrived(["a", 1], ("k", "v"), 1)
Traceback (most recent call last):
syndicate.errors.RowMisfit: ['a', 1] is no sequence of columns
>>> arrived(("a",), ("k", "v"), 1)
Traceback (most recent call last):
syndicate.errors.RowMisfit: ('a',) has 1 columns, but there are 2: k, v

Contract: what :func:`arrived` returns can be an element of a circuit; whatever else a peer sends raises
:class:`RowMisfit`, and nothing else.

Quarantine: rows of untrusted peers, sent or asserted, as what can be given to the next tick, and taken back.

A tick that raises with such rows is attempted without them, and then with parts of them
(:mod:`~syndicate.hosting`): the rows that it can do with are there in ticks of their own, in their order, as
if they had been longer on the way.

Only the tick in which a row comes can refuse it.  What one that was taken leads to later, by ``<+`` or when a timer
fires, is the program's own; but rows that replace each other by ``<+-`` do so in ticks of their own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol

from attrs import frozen

from syndicate.actors.turn import Turn
from syndicate.bloom.collection import Collection, notice
from syndicate.bloom.declaration import SCRATCHES, TABLES, Kind, Names, here, raised_at, site_of
from syndicate.bloom.rules.function import takes
from syndicate.bloom.rules.symbols import kind_of
from syndicate.bloom.state.state import RowState, State
from syndicate.bloom.tick.runtime import Instance, Runtime
from syndicate.errors import BloomDeclaration, IllegalRule, PatternError, RowMisfit, RuleFailed, short
from syndicate.flow.element import ATOMS, Key, key_of, natural
from syndicate.hosting import Asserted, Host, Output, Sent, pattern_for, reason, width
from syndicate.lattice.lattice import Lattice, revive
from syndicate.values.absent import ABSENT, inward
from syndicate.values.record import record
from syndicate.values.value import Ref, Value, is_record, thaw

# -------------------------------------------------------------------------------------------------------------- packets


@record("bloom-packet")
class Packet:
    """Sent: a *row* of the *channel* of the program whose address is *to*."""

    to: Value
    channel: str
    row: tuple[Value, ...]


def revived(value: Value) -> Value:
    """A value as a part of a row, as :func:`~syndicate.values.absent.inward` has it, with lattice values."""
    if type(value) is tuple:
        return tuple([revived(part) for part in value])
    return revive(value) if is_record(value) else inward(value)


def arrived(value: Value, columns: Names, keys: int) -> Key:
    """The key of the row that somebody sent, for some columns of which the first *keys* are the key."""
    if type(value) is not tuple:
        raise RowMisfit(f"{short(value)} is no sequence of columns")
    if len(value) != len(columns):
        raise RowMisfit(f"{short(value)} has {len(value)} columns, but there are {len(columns)}: {', '.join(columns)}")
    if ATOMS.issuperset(map(type, value)) and ABSENT not in value:
        return value
    try:
        row = revived(value)
        key = key_of(row)
    except Exception as error:  # a constructor of a user's lattice refuses what a peer made up, in its own way
        raise RowMisfit(f"{short(value)} holds what no row can: {error}") from error
    for name, part in zip(columns[:keys], row, strict=False):
        if isinstance(part, Lattice):
            raise RowMisfit(f"{short(value)} has a lattice value in the key column {name}")
    return key


# ----------------------------------------------------------------------------------------------------------- quarantine


class AssertionPort(Protocol):
    """The port of an assertion."""

    def refused(self, row: Key) -> None:
        """Let a row count for nothing as long as it is asserted."""


@frozen(eq=False)
class UntrustedRow:
    """A row for the next tick, in *pending* of its collection's state: ``inserted``, ``upserted``, ``deleted``, or in
    ``wanted``, which says whether it is *there* from now on; *port* is that of its assertion.
    """

    one: Collection
    state: RowState
    pending: str
    row: Key
    there: bool | None = None
    port: AssertionPort | None = None

    def _waiting(self) -> dict[Key, bool | None]:
        rows: dict[Key, bool | None] = getattr(self.state, self.pending)
        return rows

    def give(self) -> None:
        """Let it be in the next tick."""
        self._waiting()[self.row] = self.there
        notice(self.one, [self.row])

    def drop(self) -> None:
        """Let it not be."""
        self._waiting().pop(self.row, None)

    def ends(self) -> bool:
        """Whether it is about a row that goes."""
        return self.pending == "deleted" or self.there is False


def deferred(sent: Mapping[str, Mapping[Key, int]]) -> dict[str, dict[Key, int]]:
    """The new rows of ``<+`` and ``<+-``, by collection.

    >>> deferred({"t <+": {("a",): 1}, "t <+-": {("b",): 1, ("c",): -1}, "t <-": {("d",): 1}})
    {'t': {('a',): 1, ('b',): 1}}
    """
    rows: dict[str, dict[Key, int]] = {}
    for sink, delta in sent.items():
        name, _, operator = sink.partition(" ")
        if operator in ("<+", "<+-"):
            rows.setdefault(name, {}).update({row: 1 for row, weight in delta.items() if weight > 0})
    return rows


def take_back(runtime: Runtime, rows: Sequence[UntrustedRow]) -> None:
    """Let rows not be in the next tick."""
    for one in rows:
        one.drop()
    for collection, state in {one.one: one.state for one in rows}.items():
        runtime.engine.noticed.pop(collection.tabname, None)
        notice(collection, [*state.inserted, *getattr(state, "upserted", ())])


# ---------------------------------------------------------------------------------------------------------------- ports


class Receiver(Host):
    """The agent of a program, as its ports know it: it takes rows in."""

    runtime: Runtime
    shown: dict[tuple[str, Key], UntrustedRow]
    """What is asserted, and is no longer, since the last tick."""

    @abstractmethod
    def checked(self, one: Collection, row: Value) -> Key:
        """What somebody gave, as a row of a collection; raises a :class:`SyndicateError` if it is not one."""

    @abstractmethod
    def take(self, one: Collection, row: Key) -> None:
        """Let a row that somebody sent be there in the next tick."""


def check(what: str, one: Collection, written: Value, site: str) -> Value:
    """The pattern, or the function, that *written* stands for; raises :class:`BloomDeclaration`."""
    name, kind = one.tabname, kind_of(one)
    if what in ("outputs", "sends"):
        if not callable(written):
            raise BloomDeclaration(
                f"{site}: {what}={{{name!r}: ...}} takes a record class, or a function of {', '.join(one.cols)}, "
                f"not {written!r}"
            )
        fields = width(written, len(one.cols))
        if fields != len(one.cols):
            raise BloomDeclaration(
                f"{site}: {written.__name__} has {fields} fields, but {name} has {len(one.cols)} columns: "
                f"{', '.join(one.cols)}"
            )
        try:
            takes(written, len(one.cols), f"the columns of {name}, {', '.join(one.cols)}", site)
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
    try:
        written, captures = pattern_for(written)
    except PatternError as error:
        raise BloomDeclaration(
            f"{site}: {what}={{{name!r}: ...}} takes a pattern, or a record class: {error}"
        ) from None
    if captures != len(one.cols):
        raise BloomDeclaration(
            f"{site}: the pattern of {name} captures {captures} values, but there are {len(one.cols)} columns: "
            f"{', '.join(one.cols)}"
        )
    return written


def check_ports(
    instance: Instance, ds: Ref | None, written: Mapping[str, Mapping[str, Value] | None]
) -> dict[str, dict[str, Value]]:
    """What is given as ``inputs=``, ``messages=``, ``outputs=`` and ``sends=``; raises :class:`BloomDeclaration`."""
    site = here()
    what = next((what for what, some in written.items() if some), None)
    if ds is None and what is not None:
        name = instance.runtime.name
        raise BloomDeclaration(f"{site}: {what}= needs a dataspace: {name}(ds, {what}=...)")
    ports = {
        what: {name: check(what, instance.collection(name), one, site) for name, one in (some or {}).items()}
        for what, some in written.items()
    }
    twice = sorted(ports["inputs"].keys() & ports["messages"].keys())
    if twice:
        raise BloomDeclaration(f"{site}: {twice[0]} is in inputs= and in messages=: make two collections of it")
    return ports


class RowsSent(Sent[Receiver]):
    """Rows of messages, each there in one tick."""

    def __init__(self, agent: Receiver, one: Collection) -> None:
        """For a collection."""
        super().__init__(agent, one.tabname)
        self.one = one

    def take(self, captures: Value, handle: Hashable) -> Key:
        """It is there in one tick."""
        row = self.host.checked(self.one, captures)
        self.host.take(self.one, row)
        return row


class RowsAsserted(Asserted[Receiver]):
    """Rows of assertions: the first of each key counts, the others wait for its end."""

    def __init__(self, agent: Receiver, one: Collection) -> None:
        """For a collection."""
        super().__init__(agent, one.tabname)
        self.one = one
        self.state = agent.runtime.row_state(one.tabname)
        self.queues: dict[Key, dict[Key, dict[Hashable, None]]] = {}
        """By key, the rows in the order in which they came, with the handles of their assertions."""

    def take(self, captures: Value, handle: Hashable) -> Key:
        """It is there from the next tick on, unless another of its key is."""
        row = self.host.checked(self.one, captures)
        key = self.state.contents.key(row)
        queue = self.queues.get(key)
        if queue is None:
            self.queues[key] = {row: {handle: None}}
            self._show(row, True)
        elif row in queue:
            queue[row][handle] = None
        else:
            queue[row] = {handle: None}
            first = natural(next(iter(queue)))
            self.host.refuse(self.name, f"{natural(row)!r} has the key of {first!r}, and waits for its end")
        return row

    def leave(self, row: Key, handle: Hashable) -> None:
        """It is gone from the next tick on, and the next of its key is there."""
        key = self.state.contents.key(row)
        handles = self.queues[key][row]
        del handles[handle]
        if not handles:
            self._leave(key, row, shown=True)

    def refused(self, row: Key) -> None:
        """It counts for nothing as long as it is asserted."""
        key = self.state.contents.key(row)
        for handle in self.queues[key][row]:
            del self.rows[handle]
        self._leave(key, row, shown=False)

    def _leave(self, key: Key, row: Key, *, shown: bool) -> None:
        queue = self.queues[key]
        first = next(iter(queue)) == row
        del queue[row]
        if first and shown:
            self._show(row, False)
        if not queue:
            del self.queues[key]
        elif first:
            self._show(next(iter(queue)), True)

    def _show(self, row: Key, there: bool) -> None:
        one, shown = self.one, self.host.shown
        before = shown.pop((self.name, row), None)
        if before is not None:  # the opposite, and no tick since
            before.drop()
        else:
            pending = "wanted" if kind_of(one) not in TABLES else "upserted" if there else "deleted"
            shown[self.name, row] = change = UntrustedRow(one, self.state, pending, row, there, self)
            change.give()
        self.host.wake()


class Unmade(RuleFailed):
    """No value can be made of a row that is to go out."""

    output: AssertedRows


class AssertedRows(Output):
    """The rows of a collection as values that are asserted."""

    def __init__(self, what: str, state: State, make: Callable[..., Value]) -> None:
        """By a function of the columns, given as *what*, ``outputs=`` or ``sends=``, of the rows that a state has."""
        super().__init__(state.contents.name, lambda row: make(*natural(row)))
        self.what, self.state, self.site = what, state, site_of(make)

    def failure(self, row: Key, error: Exception) -> Unmade:
        """The error that names the function's place."""
        where = raised_at(error, self.site)
        failure = Unmade(
            f"{where}: {self.what} of {self.name} cannot make a value of {natural(row)!r}: {reason(error)}"
        )
        failure.output = self
        return failure


class Sends(AssertedRows):
    """The rows of a collection as messages, in each tick in which they are there."""

    def show(self, turn: Turn, delta: Mapping[Key, int]) -> None:
        """Send what is there."""
        forms, self.forms = self.forms, {}
        for row in list(self.state.contents.rows):
            turn.send(self.ds, thaw(forms[row] if row in forms else self.form(row)))
