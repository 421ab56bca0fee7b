"""Monotonicity: which lattice values a function of a rule must see whole, and what it makes of them.

In ``lambda m: self.mx.lt_eq(5).when_true(lambda: (m.k,))`` a row is given as long as ``mx`` is small: it must be known
to have grown no more.  In ``lambda m: (m.k,) if self.mx.gt_eq(5).content else None`` a row comes once, and stays.

>>> from syndicate.lattice import Max
>>> row = row_of(("k", "v"), ("k", "v"), {"v": Max})
>>> [dict(reading(f, [row]).offences) for f in (lambda r: (r.k, r.v + 1), lambda r: (r.k, r.v.reveal()))]
[{}, {'v': 'reveal()'}]
>>> reading(lambda r: (r.k, max(r.v, 1)), [row]).offences
{'v': 'max()'}
>>> reading(lambda r: (r.k,) if r.v.gt_eq(2).content else None, [row]).offences
{}
>>> reading(lambda r: (r.k, "high" if r.v.gt_eq(2).content else "low"), [row]).offences
{'v': 'test'}

Contract: an attribute of a row that is no offence is read so that what the function gives for a greater value says all
that it says for a smaller one; ``columns`` are those of what it gives that hold lattice values.

Source: Conway et al. 2012, "Lattice methods"; Alvaro et al. 2011a; ``docs/design/bloom.md``, "Functions that read
lattices".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from attrs import evolve, field, frozen

from syndicate.bloom.declaration import Names
from syndicate.bloom.rules.abstract_operation import Meaning, settled, width
from syndicate.bloom.rules.abstract_value import (
    NOBODY,
    Abstract,
    Items,
    KnownObject,
    LatticeContent,
    LatticeElement,
    Of,
    Outcome,
    Plain,
    Test,
    Unreadable,
    Unseen,
    is_below,
    is_growing,
    of_all,
    of_growing,
)
from syndicate.bloom.rules.bytecode import Reader
from syndicate.bloom.rules.symbols import Side
from syndicate.lattice import Set
from syndicate.lattice.lattice import Lattice
from syndicate.values.value import Value

ELEMENT: Final = "element"
"""The attribute that denotes an element that a lattice's method gives to a function."""

PERHAPS: Final = "perhaps"
"""In place of a lattice: a column that may hold lattice values, and of which nothing is known."""

MOST_CODES: Final = 20_000
FEW_CODES: Final = 2_000
"""How many byte codes are read of a function that is given lattice values, and of one that is perhaps."""

Kinds = Mapping[str, "type[Lattice] | str | None"]
"""Attributes that hold lattice values, with the lattice if it is known, or :data:`PERHAPS`."""

Function = Callable[..., Value]


@frozen(eq=False)
class After:
    """A function of each row that the one before gives; *many* says of that one that it gives many."""

    function: Function
    many: bool


@frozen(eq=False)
class RowFunction:
    """A function of the user's in a rule: whose rows it takes, each by itself or, if not *spread*, as one tuple.

    *then* is done with what it gives.
    """

    function: Function
    sides: Sequence[Side]
    spread: bool = True
    then: tuple[After, ...] = ()


def followed(origin: RowFunction, many: bool, function: Function) -> RowFunction:
    """The same, and *function* of each row that comes out."""
    return evolve(origin, then=(*origin.then, After(function, many)))


@frozen
class Monotonicity:
    """Which attributes are not read monotonically, and why; and what comes out.

    That is *of* some attributes, and has lattice values in its *columns*, of which None means that any may hold some.
    """

    offences: Mapping[str, str] = field(factory=dict)
    columns: Mapping[int, type[Lattice] | str | None] | None = field(factory=dict)
    of: frozenset[str] = frozenset()

    def kinds(self, heading: Names) -> dict[str, type[Lattice] | str | None]:
        """The same of rows over *heading*."""
        if self.columns is None:
            return dict.fromkeys(heading, PERHAPS)
        return {name: self.columns[at] for at, name in enumerate(heading) if at in self.columns}


@frozen
class Purpose:
    """What is made of what a function gives: a row, *many* rows, a *test*, a *bare* value, or an *inner* one."""

    many: bool = False
    test: bool = False
    bare: bool = False
    inner: bool = False


def row_of(columns: Names, attributes: Names, kinds: Kinds) -> Items:
    """A row, as it is read."""
    return Items(tuple(_column(attribute, kinds) for attribute in attributes), tuple, columns)


def _column(attribute: str, kinds: Kinds) -> Abstract:
    if attribute not in kinds:
        return Plain()
    kind = kinds[attribute]
    of_it = frozenset([attribute])
    return LatticeElement(of_it, None, sure=False) if isinstance(kind, str) else LatticeElement(of_it, kind)


def reading(
    function: Function, arguments: Sequence[Abstract], purpose: Purpose | None = None, then: Sequence[After] = ()
) -> Monotonicity:
    """What a function does that is called with *given*; *then* is done with what it gives."""
    purpose = purpose or Purpose()
    grown = NOBODY.union(*map(of_growing, [*arguments, KnownObject(function)]))
    mentioned = of_growing(KnownObject(function))
    meaning = Meaning(_inner, mentioned, MOST_CODES if grown else FEW_CODES)
    try:
        outcomes = meaning.call(KnownObject(function), list(arguments), {}, (), 0)
        for after in then:
            outcomes = _passed_on(meaning, outcomes, after)
        came = judge(meaning.reader, outcomes, purpose)
    except (Unreadable, RecursionError):
        return Monotonicity(dict.fromkeys(grown, Unseen(_said(function))), None, grown)
    return Monotonicity(meaning.reader.offences, _columns(outcomes, purpose), came)


def _said(function: Function) -> str:
    name = getattr(function, "__name__", "<lambda>")
    return "this function" if name == "<lambda>" else f"{name}()"


def _inner(reader: Reader, outcomes: Sequence[Outcome], test: bool) -> Of:
    """Of what a function is that a lattice's method is given."""
    return judge(reader, outcomes, Purpose(test=test, inner=not test))


def judge(reader: Reader, outcomes: Sequence[Outcome], purpose: Purpose) -> Of:
    """Note what is not monotone about what a function gives; of what it is."""
    ends = [end for outcome in outcomes for end in _ends(reader, outcome, purpose)]
    if not purpose.test:
        for _, abstract in ends:
            _check(reader, settled(abstract), purpose)
    tests: dict[object, tuple[Of, list[Abstract], list[Abstract]]] = {}
    for path, abstract in ends:
        for node, attributes, passed in path:
            _, after, before = tests.setdefault(node, (attributes, [], []))
            (after if passed else before).append(abstract)
    for attributes, after, before in tests.values():
        if not all(is_below(b, a, many=purpose.many, test=purpose.test) for b in before for a in after):
            reader.offend(attributes, "test")
    return of_all([abstract for _, abstract in ends if is_growing(abstract)]).union(
        *[of for of, _, _ in tests.values()]
    )


def _ends(reader: Reader, outcome: Outcome, purpose: Purpose) -> list[Outcome]:
    """An outcome, that of a test by its truth."""
    path, abstract = outcome[0], settled(outcome[1])
    if not purpose.test:
        return [(path, abstract)]
    truth = Test(abstract.of) if isinstance(abstract, LatticeElement) and abstract.sure else reader.truth(abstract)
    if isinstance(truth, Test):
        node = object()
        return [((*path, (node, truth.of, came is not truth.turned)), KnownObject(came)) for came in (True, False)]
    if isinstance(truth, bool):
        return [(path, KnownObject(truth))]
    _plain(reader, abstract)
    return [(path, Plain())]


def _plain(reader: Reader, abstract: Abstract) -> None:
    """Nothing of a lattice may be in it."""
    match abstract:
        case LatticeContent() | Test():
            reader.offend(abstract.of, "reveal()")
        case Plain():
            reader.offend(abstract.of, "iteration")
        case Items():
            for one in (*abstract.items, *abstract.keys):
                _plain(reader, settled(one))
        case _ if is_growing(abstract):
            reader.offend(of_growing(abstract), Unseen("this function"))


def _check(reader: Reader, abstract: Abstract, purpose: Purpose) -> None:
    if purpose.many:
        if isinstance(abstract, Items) and abstract.kind is not dict:
            for row in abstract.items:
                _check_row(reader, settled(row))
        elif not (isinstance(abstract, LatticeElement) or (isinstance(abstract, LatticeContent) and abstract.many)):
            _plain(reader, abstract)
    elif purpose.bare or purpose.inner:
        _check_bare(reader, abstract, inner=purpose.inner)
    else:
        _check_row(reader, abstract)


def _check_row(reader: Reader, row: Abstract) -> None:
    if isinstance(row, LatticeElement):  # as somebody says who has marked the function that gives it
        return
    if not isinstance(row, Items) or row.kind is dict:
        _plain(reader, row)
        return
    for one in row.items:
        column = settled(one)
        if not isinstance(column, LatticeElement):
            _plain(reader, column)


def _check_bare(reader: Reader, abstract: Abstract, *, inner: bool) -> None:
    """What a lattice merges: a value of its own, or entries of a map; elements hold no lattice values."""
    match abstract:
        case LatticeElement():
            pass
        case Items(kind=kind) if kind is dict or inner:
            for key in abstract.keys:
                _plain(reader, settled(key))
            for one in abstract.items:
                if not isinstance(settled(one), LatticeElement):
                    _plain(reader, settled(one))
        case Items(items=(one,), kind=kind) if kind is tuple:
            _check_bare(reader, settled(one), inner=inner)
        case _:
            _plain(reader, abstract)


def _columns(outcomes: Sequence[Outcome], purpose: Purpose) -> dict[int, type[Lattice] | str | None] | None:
    """Lattice values in the columns of rows; what is plain, as far as a reader can tell, may hold some."""
    lattices: dict[int, type[Lattice] | str | None] = {}
    for row in _rows(outcomes, many=purpose.many):
        if not isinstance(row, Items):
            return None
        for at, one in enumerate(row.items):
            column = settled(one)
            if isinstance(column, LatticeElement) and column.sure:
                other = lattices.get(at, column.lattice)
                lattices[at] = column.lattice if other in (column.lattice, PERHAPS) else None
            elif isinstance(column, Items) and is_growing(column):  # within a tuple
                lattices[at] = None
            elif not isinstance(column, KnownObject):
                lattices.setdefault(at, PERHAPS)
    return lattices


def _rows(outcomes: Sequence[Outcome], *, many: bool) -> list[Abstract]:
    rows = []
    for _, abstract in outcomes:
        if isinstance(abstract, KnownObject) and abstract.value is None:
            continue
        rows += list(abstract.items) if many and isinstance(abstract, Items) else [abstract]
    return rows


def read_origin(origin: RowFunction, kinds: Kinds, purpose: Purpose) -> Monotonicity:
    """What a function of a rule does, of whose source some attributes hold lattice values."""
    rows = [row_of(side.columns, side.attributes, kinds) for side in origin.sides]
    arguments: list[Abstract] = list(rows) if origin.spread else [Items(tuple(rows))]
    return reading(origin.function, arguments, purpose, origin.then)


def of_elements(
    function: Function, lattice: type[Lattice] | None, *, test: bool = False, rows: bool = False
) -> Mapping[str, str]:
    """What a function must see whole that is given elements of a lattice value; *rows* are made of them otherwise.

    Elements of a set hold no lattice values; what others are given may be some.
    """
    plain = lattice is not None and issubclass(lattice, Set)
    element: Abstract = Plain() if plain else LatticeElement(frozenset([ELEMENT]), None, sure=False)
    purpose = Purpose(test=test, inner=not test and not rows)
    return reading(function, [element] * width(KnownObject(function)), purpose).offences


def _passed_on(meaning: Meaning, outcomes: Sequence[Outcome], after: After) -> list[Outcome]:
    """What a further function gives, of each row."""
    judge(meaning.reader, outcomes, Purpose(many=after.many))
    results: list[Outcome] = []
    for path, abstract in outcomes:
        for row in _rows([(path, abstract)], many=after.many):
            items = meaning.spread(row)
            if items is None:
                raise Unreadable
            named = Items(tuple(items), tuple, tuple(f"c{at}" for at in range(len(items))))
            results += meaning.call(KnownObject(after.function), [named], {}, path, 0)
    return results
