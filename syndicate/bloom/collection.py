"""Collections: in a block of rules, what is written and read; outside, rows that are there after the last tick.

The same object is both.  While a program is made, operators record rules; afterwards ``t <= rows`` and
``t.insert(rows)`` give rows to the next tick, and ``sorted(t)``, ``len(t)``, ``row in t`` look.

Rows of terms, as rules make them, ``coll <= self.votes.to_collection(f)``, ``done.when_true(lambda: [row])``.

>>> from syndicate.lattice import Map, Max, Set
>>> rows_of(Set(["ann", ("bob", 2)])), rows_of(Map({"k": Max(1)})), rows_of(Max(3)), rows_of(None)
([('ann',), ('bob', 2)], [('k', Max(1))], [(Max(3),)], [])

A list of rows is those rows; a tuple is one row, and so is a list that holds no row (the paper's
``when_true { [ADDR] }``); any other single value is a row of one column.

Source: Conway et al. 2012, figure 1 (``when_true``); ``docs/design/bloom.md``, "Lattices in programs".

Schemas: what the class of a program says of its collections, ``table(["key"], ["val"])``.

A declaration is a class attribute of a program; each instance of the program makes a
:class:`~syndicate.bloom.collection.Collection` of it.  Columns before the arrow (the first list) are the key and
determine those of the second list.

>>> channel(["@dst", "src"], ["payload"]).location, table([], ["x"]).keys, table().columns
(0, 0, ('key', 'val'))
>>> channel(["dst", "src"])  # doctest: +ELLIPSIS
Traceback (most recent call last):
syndicate.errors.BloomDeclaration: ...a channel has one column marked @, its location, but this has none: ...

A value column may hold lattice values, which are merged where keys are equal.  To name the lattice of a column,
``table(["from", "to"], ["cost"], cost=lmin)``, is to have plain values made such, and others refused.

Source: Alvaro et al. 2011a, "State in Bloom"; ``docs/design/bloom.md``, "Collections and operators".

Lattices in declarations: ``votes = lset()``, for the built-in ones and for any that a user defines.

A lattice that is declared is a variable of a program: at its bottom first, and growing from tick to tick.

>>> from syndicate.bloom import Bloom, bloom, lbool, lmax, lset, scratch
>>> class Quorum(Bloom):
...     vote = scratch(["voter"], []); voters = lset(); count = lmax(); done = lbool()
...     @bloom
...     def rules(self):
...         self.voters <= self.vote.map(lambda v: v.voter)
...         self.count <= self.voters.size()
...         self.done <= self.count.gt_eq(2)
>>> p = Quorum(); p.vote <= [("ann",), ("bob",)]; p.tick(); p.count.reveal(), p.done.reveal()
(2, True)

A lattice of your own, ``class Longest(Lattice)`` with ``wrapper_name = "llongest"``, is declared by
``lattice(Longest)``, or by the function of its keyword, ``from syndicate.bloom import llongest``.  Let
``assert_laws(Longest, [values])`` of :mod:`syndicate.lattice` look for a counterexample first.

Source: Conway et al. 2012, "Language concepts" and "User-defined lattices" (``wrapper_name``);
``docs/design/lattice.md``, "The built-in lattices".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import evolve

from syndicate import plan
from syndicate.bloom.declaration import (
    SENT,
    TABLES,
    Declaration,
    Kind,
    Names,
    Recorded,
    Row,
    check_operator,
    fitted_all,
    here,
    is_row,
    place,
    row_type,
)
from syndicate.bloom.rules.expression import (
    ComputedRows,
    Expression,
    JoinedSides,
    body_of,
    computed_rows,
    literal_of,
    to_expression,
)
from syndicate.bloom.rules.function import coerced_row, failure, lattice_columns, takes
from syndicate.bloom.rules.monotonicity import of_elements
from syndicate.bloom.rules.symbols import Factor, Head, Owner, Side, factor_of, is_merging, redirect
from syndicate.bloom.rules.term import (
    CompletedTerm,
    Term,
    TermExpression,
    called,
    conversions,
    has_entries,
    lattice_of,
    plan_of,
)
from syndicate.errors import BloomDeclaration, IllegalRule, RowMisfit, SyndicateError
from syndicate.flow.element import ATOMS, Key, in_order, key_of, natural
from syndicate.lattice import Bag, Bool, Clock, DomPair, LastWriter, Map, Max, Min, Pair, PosSet, Set, to_collection
from syndicate.lattice.lattice import LATTICES, Lattice
from syndicate.plan.algebra import listed, meant
from syndicate.values.value import Value

if TYPE_CHECKING:
    from syndicate.bloom.rules.term import LatticeTerm


# ---------------------------------------------------------------------------------------------------------- collections


class Collection(Head, Expression):
    """Rows of a program under a name.  Made by :func:`table` and the other declarations."""

    def __init__(self, name: str, declaration: Declaration, owner: Owner) -> None:
        """Of a declaration; programs make them."""
        self._name, self._declaration, self._owner = name, declaration, owner
        self._kind: Kind = declaration.kind
        self._columns: Names = ()
        self._keys = 0
        self._location = declaration.location
        self._computed = None
        self._site = declaration.site
        if declaration.columns or self._kind is not Kind.TEMP:
            self._schema(declaration.columns, declaration.keys)

    def _schema(self, columns: Names, keys: int) -> None:
        self._columns, self._keys = columns, keys
        address = self._location if self._kind in SENT else 0
        side = Side(self, self._name, columns, columns, address)
        self._factor = Factor(plan.Relation(self._name, columns), (side,))

    def _resolved(self) -> Factor:
        if not self._columns and self._kind is Kind.TEMP:
            raise IllegalRule(
                f"{here()}: {self._name} is read before a rule has given it columns: declare them, as in "
                "temp(['a', 'b']), or let the rule that writes it come first"
            )
        return self._factor

    # --------------------------------------------------------------------------------------------------- rules

    def _take(self, op: str, content: object, site: str) -> None:
        check_operator(op, self._name, self._kind, site)
        rows = content if op == "<=" else _literal_rows(content, site)
        {"<=": self.insert, "<+": self.insert, "<-": self.delete, "<+-": self.upsert, "<~": self.post}[op](rows)

    def define(self, body: object) -> Recorded:
        """Bud's ``=``: the rows of *body* are all that there is of a scratch; no other rule may write it."""
        if not self._owner.collecting:
            raise IllegalRule(f"{here()}: define() makes a rule: call it in a block marked @bloom")
        return self._rule("=", body)

    def _right(self, right: object, site: str) -> plan.Expression:
        expression = lifted_rows(right, None, None, site) if isinstance(right, Term) else to_expression(right, site)
        if self._kind is Kind.TEMP and (not self._columns or len(self._factor.sides) > 1):
            expression = self._shaped(expression)
        return body_of(expression, self._columns, self._name, site, self)

    def _shaped(self, expression: Expression) -> Expression:
        """The rows of a temp without columns of its own, which are those that the first rule gives it, a join too."""
        sides = expression._resolved().sides
        if len(sides) > 1:
            expression = expression.flatten()
        if not self._columns:
            columns = expression._resolved().sides[0].columns
            self._schema(columns, len(columns))
            if len(sides) > 1:
                rest = iter(columns)
                joined = [evolve(side, attributes=tuple(islice(rest, len(side.columns)))) for side in sides]
                self._factor = Factor(self._factor.rows, tuple(joined))
        return expression

    # --------------------------------------------------------------------------------------------------- from outside

    def insert(self, rows: object) -> None:
        """Give rows to the next tick, in which those of a channel have arrived.

        Raises :class:`RowMisfit`, :class:`IllegalRule` for what nobody may write.
        """
        if self._kind in (Kind.CONST, Kind.FILE, Kind.CALLED):
            raise IllegalRule(f"{here()}: {self._name} is a {self._kind.value}, which nobody may write")
        self._owner.give(self._name, "inserted", self._taken(rows))

    def delete(self, rows: object) -> None:
        """Let rows be gone in the next tick, if no rule derives them; a row counts if all of its columns are equal."""
        taken = self._taken(rows)
        self._check_table("delete")
        self._owner.give(self._name, "deleted", taken)

    def upsert(self, rows: object) -> None:
        """Replace the rows of the same keys in the next tick."""
        taken = self._taken(rows)
        self._check_table("upsert")
        self._owner.give(self._name, "upserted", taken)

    def post(self, rows: object) -> None:
        """Send rows with the next tick, as ``<~`` does in a rule: a channel to its address, a terminal to the screen.

        Rows of one key go out one after the other; raises as :meth:`insert`, and for what is not sent.
        """
        check_operator("<~", self._name, self._kind, here())
        self._owner.give(self._name, "posted", self._taken(rows))

    def _check_table(self, what: str) -> None:
        if self._kind not in TABLES:
            raise IllegalRule(f"{here()}: {what}() is for tables, and {self._name} is a {self._kind.value}")

    def _taken(self, rows: object, where: str = "") -> Mapping[Key, None]:
        if self._owner.collecting:
            raise IllegalRule(f"{here()}: a block makes rules: write {self._name} <= values(...), or use @bootstrap")
        where = where or f"{here()}: {self._name}"
        fitted_rows = fitted_all(_literal_rows(rows, where), self._columns, where)
        lattices = self._declaration.lattices
        if lattices:
            fitted_rows = [coerced_row(row, self._columns, lattices, where) for row in fitted_rows]
        try:
            keys = dict.fromkeys(map(key_of, fitted_rows))
        except SyndicateError as error:
            place(error, where)
            raise
        self._notice(keys, where)
        return keys

    def _notice(self, keys: Iterable[Key], where: str = "") -> None:
        """Tell the engine of rows that hold lattice values; raises :class:`LatticeAsKey`."""
        for key in keys:
            row = natural(key)
            if not ATOMS.issuperset(map(type, row)):
                columns = lattice_columns(row, self._columns, self._keys, where)
                if columns and not is_merging(self):
                    self._owner.notice(self._name, columns)

    def _now(self) -> Mapping[Key, None]:
        if self._owner.collecting:
            raise IllegalRule(
                f"{here()}: {self._name} has no rows while a program is made: use filter(), group() or notin()"
            )
        if self._owner.in_rule():
            raise IllegalRule(
                f"{here()}: a function in a rule cannot look into {self._name}: it would not be called again when that "
                f"changes. Join with it, or use exists() or notin()"
            )
        return self._owner.rows(self._name)

    def __iter__(self) -> Iterator[Row]:
        """The rows that there are, in the total order of values; to sort *n* of them costs *n* log *n*."""
        kind = row_type(self._columns)
        return iter([tuple.__new__(kind, natural(row)) for row in in_order(self._now())])

    def __len__(self) -> int:
        return len(self._now())

    def __contains__(self, row: Value) -> bool:
        rows = self._now()
        try:
            return key_of(fitted_all([row], self._columns, "")[0]) in rows
        except (RowMisfit, IndexError):
            return False

    def __getitem__(self, key: Value) -> Row | None:
        """The row that has a key, a tuple if it is of several columns; None if there is none."""
        self._now()
        wanted = tuple(key) if isinstance(key, (tuple, list)) else (key,)
        if len(wanted) != self._keys:
            if self._keys != 1:
                raise IllegalRule(f"{here()}: {self._name} has {self._keys} columns in its key, not {len(wanted)}")
            wanted = (wanted,)  # a tuple that is the column
        row = self._owner.row(self._name, wanted)
        return None if row is None else tuple.__new__(row_type(self._columns), natural(row))

    def __bool__(self) -> bool:
        return bool(len(self)) if not self._owner.collecting else super().__bool__()

    @property
    def key_cols(self) -> Names:
        """The names of the columns that are the key."""
        return self._columns[: self._keys]

    @property
    def val_cols(self) -> Names:
        """The names of the other columns."""
        return self._columns[self._keys :]

    @property
    def schema(self) -> tuple[Names, Names]:
        """The names of the columns: those of the key, and the others."""
        return self.key_cols, self.val_cols

    def keys(self) -> Expression:
        """The columns of the key."""
        return self._columns_of(range(self._keys))

    def values(self) -> Expression:
        """The columns that are not the key."""
        return self._columns_of(range(self._keys, len(self._columns)))

    def _columns_of(self, places: Iterable[int]) -> Expression:
        rows = self._resolved().rows
        return Expression(factor_of(plan.Projection(rows, [self._columns[at] for at in places]), self._name))

    def has_key(self, *key: Value) -> bool | Expression:
        """Outside, whether a row has this key; in a rule, that row, if it is there."""
        if not self._owner.collecting:
            return self[key] is not None
        if len(key) != self._keys:
            raise IllegalRule(f"{here()}: {self._name} has {self._keys} columns in its key, not {len(key)}")
        asked = [plan.Compare(name, "==", plan.Const(value)) for name, value in zip(self._columns, key, strict=False)]
        factor = self._resolved()
        return Expression(Factor(plan.Selection(factor.rows, *asked), factor.sides))

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{self._kind.value} {self._name}({', '.join(self._columns)})>"


def _literal_rows(rows: object, site: str) -> object:
    """Rows given from outside, as literals or any iterable."""
    if isinstance(rows, Collection):
        return list(rows)
    if isinstance(rows, (Expression, JoinedSides)):
        literal = literal_of(rows, site)
        if literal is None:
            raise IllegalRule(f"{site}: outside of a block of rules only values(...) can be given with this operator")
        return literal
    return rows


# What the modules of Bloom ask of a collection: a method would hide the column of its name.


def taken_rows(one: Collection, rows: object, where: str = "") -> Mapping[Key, None]:
    """Rows that somebody gives, as they are kept; raises :class:`RowMisfit`, :class:`LatticeAsKey`, ..."""
    return one._taken(rows, where)


def notice(one: Collection, rows: Iterable[Key]) -> None:
    """Let the program know which columns of rows that are given hold lattice values."""
    one._notice(rows)


def two_in_one(reads: Collection, writes: Collection) -> Collection:
    """What a class that overrides an interface sees under its name: one that is read, and another that is written.

    No subclass: Python would ask the right side of ``t <= interface`` first if it were one.
    """
    joint = object.__new__(Collection)
    joint.__dict__.update(reads.__dict__)
    joint._factor = Factor(reads._factor.rows, (Side(joint, reads.tabname, reads.cols, reads.cols),))
    redirect(joint, writes)
    return joint


# --------------------------------------------------------- rows of terms, as rules make them, ``coll <= self.votes.to_c


def rows_of(value: Value) -> list[Value]:
    """What a term returns, as rows."""
    if value is None:
        return []
    if isinstance(value, (Set, Map)):
        return to_collection(value)
    if isinstance(value, Mapping):
        return list(value.items())
    if type(value) is tuple or isinstance(value, (Lattice, str, bytes)) or not hasattr(value, "__iter__"):
        return [value if type(value) is tuple else (value,)]
    items = list(value)
    if type(value) is list and items and not any(map(is_row, items)):
        return [tuple(items)]
    return [item if is_row(item) else (item,) for item in items]


def lifted_rows(
    term: Term, function: Callable[..., Value] | None, columns: Iterable[str] | None, site: str
) -> Expression:
    """The rows of a term, which *function* makes of each of its elements."""
    cls = lattice_of(term)
    pairs = has_entries(term)
    counted = cls is not None and not issubclass(cls, (Set, Map)) and hasattr(cls, "_missing")
    if counted:  # how often something is there may change, so that the rows are no set that only grows
        term, pairs = called(term, "reveal", (), {}), True
    if function is not None:
        takes(function, 1 + pairs, "a key and a value" if pairs else "an element", site)
        why = next(iter(of_elements(function, cls, rows=True).values()), "")
        term = CompletedTerm(term, why) if why else term

    def rows(value: Value) -> list[Value]:
        lifted = rows_of(value)
        if function is None:
            return [(row,) for row in lifted]
        try:
            if pairs:
                made_of = [function(*row) for row in lifted]
            else:
                made_of = [function(row[0] if type(row) is tuple and len(row) == 1 else row) for row in lifted]
        except Exception as error:
            raise failure(site, error, value) from error
        return [(row,) for row in made_of if row is not None]

    factor = factor_of(TermExpression(plan_of(term), term, ("row",), rows), str(term))
    return computed_rows(factor, ComputedRows(lambda row: row[0], False, None), site, columns)


conversions.rows = lifted_rows


# -------------------------------------------------------------------------------------------------------------- schemas


class Schema(Declaration):
    """The declaration of a collection of rows."""

    if TYPE_CHECKING:  # an instance has the collection in its place

        def __get__(self, instance: object, owner: type) -> Collection: ...


_NONE: Final[Mapping[str, object]] = {}
ColumnNames: TypeAlias = Sequence[str] | None


def _declared(kind: Kind, keys: Value, values: Value, lattices: Mapping[str, object] = _NONE, **more: Value) -> Schema:
    site = here()
    if isinstance(keys, str) or isinstance(values, str):
        raise BloomDeclaration(f"{site}: columns are lists of names: {kind.name.lower()}(['key'], ['val'])")
    first = ["key"] if keys is None and values is None else list(keys or ())
    second = ["val"] if keys is None and values is None else list(values or ())
    marked = [at for at, name in enumerate([*first, *second]) if isinstance(name, str) and name.startswith("@")]
    names = [name[1:] if isinstance(name, str) and name.startswith("@") else name for name in [*first, *second]]
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
            raise BloomDeclaration(
                f"{site}: a column's name is an identifier without a leading underscore, not {name!r}"
            )
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise BloomDeclaration(f"{site}: the column {twice[0]!r} is there twice: rename one of the two")
    if kind is Kind.CHANNEL and len(marked) != 1:
        count = "none" if not marked else f"{len(marked)}"
        raise BloomDeclaration(
            f"{site}: a channel has one column marked @, its location, but this has {count}: "
            f"the columns are {listed(names)}. Mark the address: channel(['@{names[0] if names else 'to'}', ...])"
        )
    if kind is not Kind.CHANNEL and marked:
        raise BloomDeclaration(f"{site}: @{names[marked[0]]}: only a channel's column is a location: leave out the @")
    held = dict(_lattice_of(name, value, names, len(first), site) for name, value in lattices.items())
    at = marked[0] if marked else None
    return Schema(kind, tuple(names), len(first), at, site=site, lattices=held, **more)


def _lattice_of(name: str, value: object, names: Sequence[str], keys: int, site: str) -> tuple[str, type[Lattice]]:
    """A column with its lattice, which is given as a class, or as what declares it."""
    column = name[:-1] if name not in names and name.endswith("_") else name
    cls = getattr(value, "lattice", value)
    if column not in names:
        raise BloomDeclaration(f"{site}: there is no column {name!r}{meant(name, names)}; there are {listed(names)}")
    if not isinstance(cls, type) or not issubclass(cls, Lattice):
        raise BloomDeclaration(f"{site}: {name}= takes a lattice, such as lmin or a subclass of Lattice, not {value!r}")
    if names.index(column) < keys:
        raise BloomDeclaration(
            f"{site}: the column {name!r} belongs to the key, and a lattice value, which grows, cannot: put it into "
            "the second list"
        )
    return column, cls


def table(keys: ColumnNames = None, values: ColumnNames = None, **lattices: object) -> Schema:
    """Rows that stay until they are deleted."""
    return _declared(Kind.TABLE, keys, values, lattices)


def durable(keys: ColumnNames = None, values: ColumnNames = None, **lattices: object) -> Schema:
    """A table in the file of ``Program(state=path)``: its rows are there again after the first tick of the next run.

    >>> from syndicate.bloom import Bloom
    >>> class Ledger(Bloom):
    ...     paid = durable(["bill"], ["amount"])
    >>> ledger = Ledger(state=":memory:")
    >>> ledger.paid.insert([("rent", 100)])
    >>> ledger.tick(); print(sorted(ledger.paid))
    [(bill='rent', amount=100)]
    """
    return _declared(Kind.DURABLE, keys, values, lattices)


def scratch(keys: ColumnNames = None, values: ColumnNames = None, **lattices: object) -> Schema:
    """Rows that are there for one tick."""
    return _declared(Kind.SCRATCH, keys, values, lattices)


def temp(keys: ColumnNames = None, values: ColumnNames = None, **lattices: object) -> Schema:
    """A scratch; without columns it has those of the first rule that writes it.

    >>> from syndicate.bloom import Bloom, bloom
    >>> class Doubles(Bloom):
    ...     numbers = scratch(["n"])
    ...     doubled = temp()
    ...     @bloom
    ...     def rules(self):
    ...         self.doubled <= self.numbers.map(lambda row: (2 * row.n,))
    >>> program = Doubles()
    >>> program.numbers.insert([(21,)])
    >>> program.tick(); print(sorted(program.doubled))
    [(c0=42)]
    """
    declared = _declared(Kind.TEMP, keys, values, lattices)
    return declared if keys is not None or values is not None else Schema(Kind.TEMP, site=declared.site)


def interface(direction: str, keys: ColumnNames = None, values: ColumnNames = None, **lattices: object) -> Schema:
    """A scratch by which modules meet: ``"input"`` is written from outside, ``"output"`` read there."""
    kinds = {"input": Kind.INPUT, "output": Kind.OUTPUT}
    if direction not in kinds:
        raise BloomDeclaration(f"{here()}: an interface is 'input' or 'output', not {direction!r}")
    return _declared(kinds[direction], keys, values, lattices)


def channel(keys: ColumnNames = None, values: ColumnNames = None, **lattices: object) -> Schema:
    """Rows that are sent to the address in the column marked ``@``, and are there for one tick when they arrive.

    Without columns it has ``address`` and ``val``, both of the key, so that messages do not contradict each other.

    >>> from syndicate.bloom import Bloom, Network, bloom, table
    >>> class Greeter(Bloom):
    ...     friends = table(["who"])
    ...     hello = channel(["@to", "text"])
    ...     heard = table(["to", "text"])
    ...     @bloom
    ...     def rules(self):
    ...         self.hello <~ self.friends.map(lambda friend: (friend.who, "hello"))
    ...         self.heard <= self.hello
    >>> alice, bob = Greeter(address="alice"), Greeter(address="bob")
    >>> alice.friends.insert([("bob",)])
    >>> Network(alice, bob).run()
    >>> sorted(bob.heard)
    [(to='bob', text='hello')]
    """
    return _declared(Kind.CHANNEL, ["@address", "val"] if keys is None and values is None else keys, values, lattices)


def loopback(keys: ColumnNames = None, values: ColumnNames = None, **lattices: object) -> Schema:
    """A channel to the program itself: never in the same tick.

    >>> from syndicate.bloom import Bloom, bloom, table
    >>> class Later(Bloom):
    ...     numbers = table(["n"])
    ...     soon = loopback(["n"])
    ...     @bloom
    ...     def rules(self):
    ...         self.soon <~ self.numbers
    >>> program = Later()
    >>> program.numbers.insert([(1,)])
    >>> program.tick(); print(sorted(program.soon))
    []
    >>> program.tick(); print(sorted(program.soon))
    [(n=1)]
    """
    return _declared(Kind.LOOPBACK, keys, values, lattices)


def stdio(*, read: bool = False) -> Schema:
    """Lines of a terminal: written by ``<~``; with *read*, where the program runs, standard input's are ``(line,)``.

    >>> from syndicate.bloom import Bloom, bloom, table
    >>> class Hello(Bloom):
    ...     words = table(["text"])
    ...     out = stdio()
    ...     @bloom
    ...     def rules(self):
    ...         self.out <~ self.words
    >>> program = Hello(write=print)
    >>> program.words.insert([("hello",)])
    >>> program.tick()
    hello
    """
    return _declared(Kind.STDIO, ["line"], [], reads=read)


def periodic(period: object = 1.0) -> Schema:
    """A row ``(key, val)``, a number and the time, about every *period* seconds.

    >>> from syndicate.bloom import Bloom
    >>> class Clock(Bloom):
    ...     each = periodic(10)
    >>> clock = Clock(clock=lambda: 0.0)
    >>> clock.tick(); print(len(clock.each))
    0
    """
    if not isinstance(period, (int, float)) or isinstance(period, bool) or period <= 0:
        raise BloomDeclaration(f"{here()}: a period is a number of seconds above 0, not {period!r}")
    return _declared(Kind.PERIODIC, ["key"], ["val"], period=float(period))


def file_reader(path: str | Path) -> Schema:
    """The lines of a file, ``(lineno, text)`` from 0, read again when it has changed.

    >>> import tempfile
    >>> from syndicate.bloom import Bloom
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     print("hello", file=file, flush=True)
    ...     class Lines(Bloom):
    ...         lines = file_reader(file.name)
    ...     program = Lines()
    ...     program.tick()
    ...     print(sorted(program.lines))
    [(lineno=0, text='hello')]
    """
    return _declared(Kind.FILE, ["lineno"], ["text"], path=Path(path))


def const(keys: ColumnNames = None, values: ColumnNames = None, *, rows: Iterable[Value] = ()) -> Schema:
    """Rows that are always there and that nobody may write.

    >>> from syndicate.bloom import Bloom
    >>> class Days(Bloom):
    ...     weekend = const(["day"], rows=[("Saturday",), ("Sunday",)])
    >>> days = Days(); days.tick(); print(sorted(days.weekend))
    [(day='Saturday'), (day='Sunday')]
    """
    return _declared(Kind.CONST, keys, values, rows=tuple(rows))


def coll_expr(function: Callable[[], Iterable[Value]], keys: ColumnNames = None, values: ColumnNames = None) -> Schema:
    """Rows that *function* gives, which is called at the start of each tick.

    >>> from syndicate.bloom import Bloom
    >>> class Clock(Bloom):
    ...     hour = coll_expr(lambda: [("noon",)], ["time"])
    >>> clock = Clock(); clock.tick(); print(sorted(clock.hour))
    [(time='noon')]
    """
    if not callable(function):
        raise BloomDeclaration(f"{here()}: coll_expr takes a function without arguments, not {function!r}")
    return _declared(Kind.CALLED, keys, values, call=function)


# --------------------------------------------------------------------------------------------- lattices in declarations


class LatticeDeclaration(Declaration):
    """The declaration of a lattice."""

    if TYPE_CHECKING:  # an instance has the variable in its place

        def __get__(self, instance: object, owner: type) -> LatticeTerm: ...


class Declaring:
    """Declares variables of one lattice: ``lset()``; as ``cost=lset`` it names the lattice of a column."""

    def __init__(self, lattice: type[Lattice]) -> None:
        """Of a lattice."""
        self.lattice = lattice

    def __call__(self, *values: object) -> LatticeDeclaration:
        """A variable, to be an attribute of a program's class; raises :class:`BloomDeclaration` for *values*."""
        if values:
            raise BloomDeclaration(
                f"{here()}: {self}() takes no value, since a lattice begins at its bottom: merge one in a method "
                "marked @bootstrap, or from outside: p.x <= value"
            )
        return LatticeDeclaration(Kind.LATTICE, ("value",), 0, lattices={"value": self.lattice}, site=here())

    def __repr__(self) -> str:
        return self.lattice.wrapper_name


lbool, lmax, lmin, lset, lpset = Declaring(Bool), Declaring(Max), Declaring(Min), Declaring(Set), Declaring(PosSet)
lbag, lmap, lpair, ldom = Declaring(Bag), Declaring(Map), Declaring(Pair), Declaring(DomPair)
lclock, llww = Declaring(Clock), Declaring(LastWriter)


def lattice(lattice_class: object) -> LatticeDeclaration:
    """A variable of a lattice, which is given by its class or by its keyword.

    Raises :class:`BloomDeclaration` for what is not a lattice.

    >>> lattice("lset").lattices["value"].__name__
    'Set'
    """
    cls = LATTICES.get(lattice_class) if isinstance(lattice_class, str) else lattice_class
    if not isinstance(cls, type) or not issubclass(cls, Lattice) or not hasattr(cls, "wrapper_name"):
        raise BloomDeclaration(
            f"{here()}: {lattice_class!r} is no lattice{meant(lattice_class, LATTICES)}: give a subclass of "
            f"Lattice, or one of {listed(sorted(LATTICES))}"
        )
    return Declaring(cls)()


def declaring(keyword: str) -> Declaring | None:
    """What declares the lattice of a keyword; None if there is no such lattice."""
    cls = LATTICES.get(keyword)
    return None if cls is None else Declaring(cls)
