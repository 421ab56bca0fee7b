"""Collections: in a block of rules, what is written and read; outside, rows that are there after the last tick.

The same object is both.  While a program is made, operators record rules; afterwards ``t <= rows`` and
``t.insert(rows)`` give rows to the next tick, and ``sorted(t)``, ``len(t)``, ``row in t`` look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from attrs import evolve

from syndicate import plan
from syndicate.bloom.declaration import SENT, TABLES, Declaration, Kind
from syndicate.bloom.row import Names, Row, fitted_all, row_type
from syndicate.bloom.rule import Recorded, check_operator
from syndicate.bloom.rules.embedded import lattice_columns, made_lattices
from syndicate.bloom.rules.expression import Expression, Product, body_of, literal_of, made, to_expression
from syndicate.bloom.rules.head import Head, Owner, is_merging, redirect
from syndicate.bloom.rules.join import Factor
from syndicate.bloom.rules.side import Side
from syndicate.bloom.rules.term import Term
from syndicate.bloom.rules.term_rows import lifted_rows
from syndicate.bloom.site import here, place
from syndicate.errors import IllegalRule, RowMisfit, SyndicateError
from syndicate.flow.element import Key, Typed, key_of, natural
from syndicate.values.value import Value


class Collection(Head, Expression):
    """Rows of a program under a name."""

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

    def _known(self) -> Factor:
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
        if not self._making():
            raise IllegalRule(f"{here()}: define() makes a rule: call it in a block marked @bloom")
        return self._rule("=", body)

    def _right(self, right: object, site: str) -> plan.Expression:
        expression = lifted_rows(right, None, None, site) if isinstance(right, Term) else to_expression(right, site)
        if self._kind is Kind.TEMP and (not self._columns or len(self._factor.sides) > 1):
            expression = self._shaped(expression)
        return body_of(expression, self._columns, self._name, site, self)

    def _shaped(self, expression: Expression) -> Expression:
        """The rows of a temp without columns of its own, which are those that the first rule gives it, a join too."""
        sides = expression._known().sides
        if len(sides) > 1:
            expression = expression.flatten()
        if not self._columns:
            columns = expression._known().sides[0].columns
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
        if self._making():
            raise IllegalRule(f"{here()}: a block makes rules: write {self._name} <= values(...), or use @bootstrap")
        where = where or f"{here()}: {self._name}"
        fitted_rows = fitted_all(_literal_rows(rows, where), self._columns, where)
        lattices = self._declaration.lattices
        if lattices:
            fitted_rows = [made_lattices(row, self._columns, lattices, where) for row in fitted_rows]
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
            if type(key) is Typed:
                columns = lattice_columns(key.value, self._columns, self._keys, where)
                if columns and not is_merging(self):
                    self._owner.notice(self._name, columns)

    def _now(self) -> Mapping[Key, None]:
        if self._making():
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
        kind = row_type(self._columns)
        return iter([tuple.__new__(kind, natural(row)) for row in self._now()])

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
        return bool(len(self)) if not self._making() else super().__bool__()

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
        rows = self._known().rows
        return Expression(made(plan.Projection(rows, [self._columns[at] for at in places]), self._name))

    def has_key(self, *key: Value) -> bool | Expression:
        """Outside, whether a row has this key; in a rule, that row, if it is there."""
        if not self._making():
            return self[key] is not None
        if len(key) != self._keys:
            raise IllegalRule(f"{here()}: {self._name} has {self._keys} columns in its key, not {len(key)}")
        asked = [plan.Compare(name, "==", plan.Const(value)) for name, value in zip(self._columns, key, strict=False)]
        factor = self._known()
        return Expression(Factor(plan.Selection(factor.rows, *asked), factor.sides))

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{self._kind.value} {self._name}({', '.join(self._columns)})>"


def _literal_rows(rows: object, site: str) -> object:
    """Rows given from outside, as literals or any iterable."""
    if isinstance(rows, Collection):
        return list(rows)
    if isinstance(rows, (Expression, Product)):
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
