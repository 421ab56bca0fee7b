"""Retries: rows that a timer sends again until whoever has got them says so.

In ``pipe <~ (kept * timer).lefts()`` with ``kept <- (kept * ack).lefts("src", "dst", "ident")`` an acknowledgement
takes away the row that it meets; in ``pipe <~ (kept * timer).lefts().notin(taken, ..)`` with ``taken <= ack`` it only
keeps it from the timer.  Either way a row goes no more only when it has come.  So what comes through ``pipe`` in the
end are all rows that ``kept`` ever had, what meets its ``ack`` are the same, and that race decides nothing.

>>> from syndicate.bloom.library.delivery import Reliable
>>> from syndicate.bloom.tick.runtime import runtime_of
>>> runtime = runtime_of(Reliable(address="a"))
>>> for one in retries_of(runtime.wiring.rules, declarations_of(runtime.collections), "a"):
...     print(one, sorted({rule.head for rule in one.settled}))
pipe sends rows of send_buf again until ack has dst, src and ident of them ['pipe', 'pipe_sent', 'send_buf']

What is asked of the rules, since each of them can make the race decide:

* the acknowledgement is made of the row that came, of columns that the timer's rule has copied, and goes back to the
  program that has the row; no other rule makes one;
* what is done with rows that meet theirs, such as to note them in another table, goes by the same columns, and adds;
* it names the row: by all columns, or by the key, of rows that come from one collection that no rule writes, also by
  way of a module's interface; where who gets rows passes them on, of rows that came through the channel as well;
* what goes to each of a table that no rule writes is acknowledged by each, and stays;
* what else goes through the channel is the same row, when it is put there;
* rows that are taken away were put there by something that passes, and do not come back by being taken away.

Contract: with what :mod:`~syndicate.bloom.insight.calm` supposes, if nobody outside acknowledges what has not come, and
if rows from outside with one key are one row, wherever they are given (or, if the table's key has the own address too,
where they are given), and if what functions close over that is the address is so in each program, each row of the
table comes, and is acknowledged where it is, unless an address in it is nobody's, or another program's.

Source: Alvaro et al. 2011a (reliable delivery); ``docs/design/bloom.md``, "Rows that go until they are acknowledged".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from attrs import evolve, field, frozen

from syndicate import plan
from syndicate.bloom.declaration import SCRATCHES, TABLES, TAKING, Declaration, Kind, Rule
from syndicate.bloom.rules.function import Attribute, Fitting, Function, origin_of, picks
from syndicate.bloom.rules.symbols import Head, declaration_of
from syndicate.explain.derivation import named
from syndicate.graph import reached
from syndicate.values.value import Value

Columns: TypeAlias = Mapping[str, str]
"""For attributes of an expression, the columns of a collection that they are copies of."""


@frozen
class RetryLoop:
    """Rows of *table* go through *channel* when a timer fires, until *ack* has the values of *columns*."""

    table: str
    channel: str
    ack: str
    columns: tuple[str, ...]
    settled: tuple[Rule, ...]
    """The rules in which the race of rows with their acknowledgement decides nothing."""
    taken: bool
    """Whether a row that is acknowledged leaves the table."""

    def __str__(self) -> str:
        return f"{self.channel} sends rows of {self.table} again until {self.ack} has {named(self.columns)} of them"


@frozen
class _Copy:
    """An expression that has a row for each row of *table*, when one of *timers* fires.

    *columns* are copies, *fixed* the same in all rows, *own* depend on that row only.  If it is a row for each of the
    rows of other tables *by*, too, the columns of these are copies of ``table.column``.  Rows are left out whose
    *named* columns are in the relation *without*.
    """

    table: str
    columns: Columns
    own: frozenset[str]
    fixed: Mapping[str, plan.Const] = field(factory=dict)
    timers: frozenset[str] = frozenset()
    by: frozenset[str] = frozenset()
    without: str = ""
    named: tuple[tuple[str, str], ...] = ()


@frozen
class _Around(plan.Const):
    """A constant that a function finds around it, which may be another in another program."""


@frozen
class _Meeting:
    """An expression that has the rows of a table that have met one of *other*, by *pairs* of columns.

    *columns* are copies of the table's, *own* depend on that row only.
    """

    other: str
    pairs: tuple[tuple[str, str], ...]
    columns: Columns = field(factory=dict)
    own: frozenset[str] = frozenset()


def declarations_of(collections: Mapping[str, Head]) -> dict[str, Declaration]:
    """What was declared of each collection."""
    return {name: declaration_of(one) for name, one in collections.items()}


def retries_of(rules: Sequence[Rule], declarations: Mapping[str, Declaration], address: Value) -> list[RetryLoop]:
    """The retries of a program, which runs at an *address*."""
    return list(_Retries(rules, declarations, address).all())


class _Retries:
    """Looks for them."""

    def __init__(self, rules: Sequence[Rule], declarations: Mapping[str, Declaration], address: Value) -> None:
        self.rules, self.declarations, self.address = rules, declarations, address
        self.timers = frozenset(name for name, one in declarations.items() if one.kind is Kind.PERIODIC)

    def all(self) -> Iterator[RetryLoop]:
        """Each rule that sends rows of a table by a timer, if it is the rule of one."""
        for rule in self.rules:
            sent = self._copy(rule.body, self.timers) if self._is_channel(rule.head) else None
            if sent is None or len(sent.timers) != 1 or not self._is_table(sent.table):
                continue
            meeting = self._stop(sent) if sent.without else self._end(sent)
            if meeting is not None and self._is_acknowledged(rule, sent, meeting):
                columns = tuple(column for column, _ in meeting.pairs)
                also = self._writing(rule.head)  # what these send, if it meets who it is for, this one sends too
                settled = (*also, *([] if sent.without else self._settled(sent.table, meeting)))
                yield RetryLoop(sent.table, rule.head, meeting.other, columns, settled, not sent.without)

    def _settled(self, table: str, meeting: _Meeting) -> Iterator[Rule]:
        """The rules that have, of each row of the table that has met its acknowledgement, what depends on that row.

        By other pairs of columns rows meet other acknowledgements too, if they come in time.
        """
        for rule in self.rules:
            one = self._meeting(rule.body, table)
            if one is None or one.other != meeting.other or set(one.pairs) != set(meeting.pairs):
                continue
            if one.own.issuperset(rule.body.heading) and (rule.op not in TAKING or rule.head == table):
                yield rule

    # ----------------------------------------------------------------------------------------- what ends the sending

    def _end(self, sent: _Copy) -> _Meeting | None:
        """Rows that are acknowledged are taken away, and only those; nothing puts them there again."""
        if sent.by:  # who is the first to acknowledge would take it from the others
            return None
        taking = [rule for rule in self._writing(sent.table) if rule.op in TAKING]
        putting = [rule for rule in self._writing(sent.table) if rule.op not in TAKING]
        meeting = self._meeting(taking[0].body, sent.table) if len(taking) == 1 and taking[0].op == "<-" else None
        if meeting is None or any(meeting.columns.get(one) != one for one in self.declarations[sent.table].columns):
            return None
        back = any(sent.table in self._below(rule) or not self._passes(rule.body) for rule in putting)
        return None if back else meeting

    def _stop(self, sent: _Copy) -> _Meeting | None:
        """Rows that are acknowledged stay; a table has what was acknowledged."""
        writing = self._writing(sent.without)
        if not self._is_table(sent.without) or len(writing) != 1 or writing[0].op in TAKING:
            return None
        if any(rule.op in TAKING for rule in self._writing(sent.table)):
            return None
        noted = self._all(writing[0].body)
        if noted is None or any(by not in noted.columns for _, by in sent.named):
            return None
        return _Meeting(noted.table, tuple((column, noted.columns[by]) for column, by in sent.named))

    def _is_acknowledged(self, rule: Rule, sent: _Copy, meeting: _Meeting) -> bool:
        """Whether a row that has come is acknowledged where it is, and what is acknowledged has come."""
        ack = self.declarations[meeting.other]
        writing = self._writing(meeting.other)
        said = self._all(writing[0].body) if self._is_channel(meeting.other) and len(writing) == 1 else None
        if said is None or said.table != rule.head or ack.location is None:
            return False
        came_to = {
            name: _location(self.declarations[rule.head]) for name, one in said.fixed.items() if self._is_here(one)
        }
        columns = {**said.columns, **came_to}
        if any(sent.columns.get(columns.get(name, "")) != column for column, name in meeting.pairs):
            return False
        location = _location(ack)
        if sent.fixed:  # another program would send another row
            at_home = self._is_here(sent.fixed.get(columns.get(location, "")))
        else:
            at_home = location in dict(meeting.pairs).values()
        return at_home and self._is_named(rule, sent, frozenset(column for column, _ in meeting.pairs))

    def _is_named(self, rule: Rule, sent: _Copy, columns: frozenset[str]) -> bool:
        """Whether who has these *columns* of what was sent, has the row."""
        if {*sent.fixed, *sent.columns} != set(self.declarations[rule.head].columns):
            return False
        also = [one for one in self._writing(rule.head) if one is not rule]
        if not also and columns.issuperset(sent.columns.values()):
            return True
        table = self.declarations[sent.table]
        if not columns.issuperset([*table.key_cols, *(one for one in sent.columns.values() if "." in one)]):
            return False
        putting = [
            one
            for one in self._writing(sent.table)
            if one.op not in TAKING and not self._is_passed_on(one, rule.head, sent)
        ]
        source = self._copy(putting[0].body) if len(putting) == 1 else None
        if putting and (source is None or source.by or not self._is_given(source, frozenset(table.key_cols))):
            return False
        return all(source is not None and self._sends_the_same(one, sent, source) for one in also)

    def _is_passed_on(self, rule: Rule, channel: str, sent: _Copy) -> bool:
        """Whether a rule puts into the table what has come through the channel, just as it was in another's table."""
        come = self._all(rule.body)
        if come is None or come.table != channel:
            return False
        columns = self.declarations[sent.table].columns
        return all(sent.columns.get(come.columns.get(column, "")) == column for column in columns)

    def _is_given(self, source: _Copy, keys: AbstractSet[str], within: AbstractSet[str] = frozenset()) -> bool:
        """Whether *keys* of what is copied tell the row: it is of one collection that no rule writes, with its key.

        An interface of a module has what the importer's one rule copies.
        """
        origin = self.declarations[source.table]
        own = {name for name, one in source.fixed.items() if isinstance(one, _Around)}
        if origin.lattices or not own <= keys:  # another program would make another row of that key
            return False
        copied = {source.columns[name] for name in keys if name in source.columns}
        writing = self._writing(source.table)
        if not writing:
            return copied.issuperset(origin.key_cols)
        imported = origin.kind is Kind.INPUT and "." in source.table and source.table not in within
        rows = self._all(writing[0].body) if imported and len(writing) == 1 else None
        return rows is not None and self._is_given(rows, copied, within | {source.table})

    def _sends_the_same(self, rule: Rule, sent: _Copy, source: _Copy) -> bool:
        """Whether another rule sends at once what *sent* sends later, of the row that *source* puts into the table."""
        also = self._copy(rule.body)
        if also is None or also.without or (also.table, also.by) != (source.table, sent.by):
            return False
        put, said = {**source.fixed, **source.columns}, {**also.fixed, **also.columns}
        later = {name: column if "." in column else put.get(column) for name, column in sent.columns.items()}
        return {**sent.fixed, **later} == said

    # ------------------------------------------------------------------------------------------------- collections

    def _writing(self, name: str) -> list[Rule]:
        return [rule for rule in self.rules if rule.head == name]

    def _is_channel(self, name: str) -> bool:
        return self.declarations[name].kind is Kind.CHANNEL and not self.declarations[name].lattices

    def _is_table(self, name: str) -> bool:
        """One whose rows are not merged."""
        return self.declarations[name].kind in TABLES and not self.declarations[name].lattices

    def _is_written(self, one: _Copy) -> bool:
        """Whether it is anything but a table whose rows come from outside, and stay."""
        lasting = self._is_table(one.table) or self.declarations[one.table].kind is Kind.CONST
        return not lasting or bool(self._writing(one.table))

    def _below(self, rule: Rule) -> set[str]:
        """The collections that what a rule reads depends on."""
        return set(
            reached(
                [one.name for one in rule.reads()],
                lambda name: [read.name for one in self._writing(name) for read in one.reads()],
            )
        )

    def _passes(self, this: plan.Expression, within: frozenset[str] = frozenset()) -> bool:
        """Whether each row of an expression is there for a tick, because something has come in it."""
        match this:
            case plan.Relation():
                return self._comes(this.name, within)
            case plan.Rename() | plan.Projection() | plan.Selection() | plan.FlatMap():
                return self._passes(this.source, within)
            case plan.NaturalJoin() | plan.SemiJoin():
                return any(self._passes(one, within) for one in this.parts())
            case plan.AntiJoin():
                return self._passes(this.left, within)
            case plan.Union():
                return all(self._passes(one, within) for one in this.parts())
        return False

    def _comes(self, name: str, within: frozenset[str]) -> bool:
        """The same of a collection; what depends on itself may stay."""
        kind = self.declarations[name].kind
        if kind in (Kind.CHANNEL, Kind.PERIODIC):
            return True
        if kind not in SCRATCHES or name in within:
            return False
        return all(self._passes(rule.body, within | {name}) for rule in self._writing(name))

    def _is_here(self, one: plan.Const | None) -> bool:
        """Whether it is the address; what is written in a rule is the same in all programs, and would be by chance."""
        return isinstance(one, _Around) and self.address is not None and one.value == self.address

    # ------------------------------------------------------------------------------------------------- expressions

    def _all(self, this: plan.Expression) -> _Copy | None:
        """What an expression copies of all rows of a relation, in each tick."""
        one = self._copy(this)
        return None if one is None or one.without or one.by else one

    def _copy(self, this: plan.Expression, timers: AbstractSet[str] = frozenset()) -> _Copy | None:
        """What an expression copies: there is a row of it for each row of a relation, when some of *timers* fire."""
        match this:
            case plan.Relation():
                return _Copy(this.name, {name: name for name in this.heading}, frozenset(this.heading))
            case plan.NaturalJoin() | plan.SemiJoin():
                parts = [self._copy(part, timers) for part in this.parts()]
                return self._joined(this, [one for one in parts if one is not None], timers)
            case plan.AntiJoin():
                left, right = self._copy(this.left, timers), self._all(this.right)
                if left is None or right is None or left.without:
                    return None
                named = _pairs(this, left.columns, right.columns)
                return None if named is None else evolve(left, without=right.table, named=named)
        moved = _moved(this)
        source = None if moved is None else self._copy(this.parts()[0], timers)
        if moved is None or source is None:
            return None
        fixed = {
            name: one if isinstance(one, plan.Const) else source.fixed[one.name]
            for name, one in moved.items()
            if isinstance(one, plan.Const) or (isinstance(one, plan.Attr) and one.name in source.fixed)
        }
        return evolve(source, columns=_copied(moved, source.columns), own=_within(moved, source.own), fixed=fixed)

    def _joined(self, this: plan.Expression, parts: Sequence[_Copy], timers: AbstractSet[str]) -> _Copy | None:
        """Of a join, by nothing, with timers and tables that no rule writes: what it copies of these and the rest."""
        rows = [one for one in parts if one.table not in timers]
        rows = [one for one in rows if self._is_written(one)] or rows[:1]
        headings = [name for one in this.parts() for name in one.heading]
        if len(rows) != 1 or len(parts) != len(this.parts()) or len(headings) > len(set(headings)):
            return None
        (row,) = rows
        others = [one for one in parts if one is not row]
        if any(one.without or one.by for one in others):
            return None
        columns, fixed = dict(row.columns), dict(row.fixed)
        for one in others:
            if one.table not in timers:
                columns.update((name, f"{one.table}.{column}") for name, column in one.columns.items())
                fixed.update(one.fixed)
        return evolve(
            row,
            columns={name: column for name, column in columns.items() if name in this.heading},
            own=row.own.intersection(this.heading),
            fixed={name: value for name, value in fixed.items() if name in this.heading},
            timers=row.timers | (timers & {one.table for one in others}),
            by=row.by | ({one.table for one in others} - timers),
        )

    def _meeting(self, this: plan.Expression, table: str) -> _Meeting | None:
        """The rows of a *table* that meet another's, if an expression has these."""
        match this:
            case plan.NaturalJoin() | plan.SemiJoin() if len(this.parts()) == 2:
                left, right = (self._all(part) for part in this.parts())
                if left is None or right is None:
                    return None
                if right.table == table and isinstance(this, plan.NaturalJoin):
                    left, right = right, left
                pairs = _pairs(this, left.columns, right.columns)
                if pairs is None or left.table != table or right.table == table:
                    return None
                return _Meeting(right.table, pairs, left.columns, left.own)
            case plan.Selection():
                met = self._meeting(this.source, table)
                asked = {name for condition in this.conditions for name in condition.attributes()}
                return met if met is not None and asked <= met.own else None
        moved = _moved(this)
        met = None if moved is None else self._meeting(this.parts()[0], table)
        if moved is None or met is None:
            return None
        return evolve(met, columns=_copied(moved, met.columns), own=_within(moved, met.own))


def _location(channel: Declaration) -> str:
    return "" if channel.location is None else channel.columns[channel.location]


def _pairs(this: plan.Expression, left: Columns, right: Columns) -> tuple[tuple[str, str], ...] | None:
    """The pairs of columns by which two parts are joined; None where they are not all copies."""
    one, other = this.parts()
    shared = [name for name in one.heading if name in other.heading]
    if any(name not in left or name not in right for name in shared):
        return None
    return tuple((left[name], right[name]) for name in shared)


def _moved(this: plan.Expression) -> Mapping[str, plan.Scalar] | None:
    """What the attributes are of an expression that makes one row of each of its source's; None of any other."""
    match this:
        case plan.Rename():
            return {dict(this.renaming).get(name, name): plan.Attr(name) for name in this.source.heading}
        case plan.Projection():
            return dict(this.columns)
        case plan.FlatMap() if isinstance(this.function, Fitting) and not this.function.many:
            origin = origin_of(this.function)
            if origin is None or origin.then or not origin.spread:
                return None
            values = picks(origin.function, origin.sides, this.function.site, closed=True)
            if values is None or len(values) != len(this.heading):
                return None
            written = frozenset(_written(origin.function))
            scalars = [_scalar(one, written) for _, one in values]
            return dict(zip(this.heading, scalars, strict=True))
    return None


def _scalar(one: Value, written: AbstractSet[Value]) -> plan.Scalar:
    if isinstance(one, Attribute):
        return plan.Attr(str(one))
    return plan.Const(one) if one in written else _Around(one)


def _written(function: Function) -> Iterator[Value]:
    """The constants that stand in a function."""
    for one in function.__code__.co_consts:
        yield from one if type(one) is tuple else (one,)


def _copied(moved: Mapping[str, plan.Scalar], columns: Columns) -> Columns:
    return {
        name: columns[one.name] for name, one in moved.items() if isinstance(one, plan.Attr) and one.name in columns
    }


def _within(moved: Mapping[str, plan.Scalar], own: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name, one in moved.items() if own.issuperset(one.attributes()))
