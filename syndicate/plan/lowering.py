"""Programs: named relations, the rules that derive them, which of them are asked for, and their lowering to a circuit.

A relation is *given* (its rows, a set, come from outside as changes), *derived* by rules, or both: then the union.

>>> from syndicate.plan import NaturalJoin, Program, Rename
>>> p = Program()
>>> edge = p.edb("edge", "a", "b"); path = p.idb("path", "a", "b")
>>> _ = p.rule(path, edge)
>>> longer = NaturalJoin(Rename(path, {"b": "c"}), Rename(edge, {"a": "c"}))
>>> _ = p.rule(path, longer, origin="paths.ded:2")
>>> plan = p.plan()
>>> plan.step({"edge": {("x", "y"): 1, ("y", "z"): 1}})["path"]
ZSet({('x', 'y'): 1, ('y', 'z'): 1, ('x', 'z'): 1})

A relation is a set.  A rule's body has the attributes of its head, in any order; others are projected away.

Facts are tuples in the order of the heading, or records, whose fields are the attributes.

>>> from syndicate.plan import Projection, evaluate
>>> p = Program(); likes = p.edb("likes", "name", "food")
>>> _ = p.rule("food", Projection(likes, ("food",)))
>>> plan = p.plan()
>>> plan.step({"likes": [("ann", "ramen"), ("bob", "ramen")]})["food"]
ZSet({('ramen',): 1})
>>> plan.step({"likes": {("ann", "ramen"): -1}})["food"]
ZSet({})
>>> evaluate(p, {"likes": [("ann", "ramen")]})
{'food': frozenset({('ramen',)})}

Columns may hold lattice values: rows that agree on the other columns are then one row, whose values are merged.  A
relation of that kind may depend on itself, as the least costs of paths do; deletions are followed.

>>> from syndicate.lattice import Min
>>> from syndicate.plan import Arith, Attr
>>> p = Program(); edge = p.edb("edge", "a", "b", "cost")
>>> path = p.idb("path", "a", "b", "cost", lattices={"cost": Min})
>>> _ = p.rule(path, edge)
>>> longer = NaturalJoin(Rename(path, {"b": "x"}), Rename(edge, {"a": "x", "cost": "more"}))
>>> _ = p.rule(path, Projection(longer, ("a", "b", ("cost", Arith("+", "cost", Attr("more"))))))
>>> plan = p.plan(); _ = plan.step({"edge": [("x", "y", 1), ("y", "x", 1), ("y", "z", 2), ("x", "z", 7)]})
>>> plan.step({"edge": {("y", "z", 2): -1}})["path"]
ZSet({('y', 'z', Min(2)): -1, ('y', 'z', Min(8)): 1, ('x', 'z', Min(3)): -1, ('x', 'z', Min(7)): 1})

Source: PomoLogic; ``docs/design/plan.md``, "Relations and rules".

Lowering: from relations and rules to one circuit.

========================  ====================================================================================
selection                 ``filter``
projection, rename        nothing, where columns are only left out or renamed; else ``map``
union                     ``plus``
joins                     ``index_with`` on both sides, ``join``; the join's function makes just the columns needed
semijoin                  the same with the keys of the other side, each once; also a join that only filters
difference, antijoin      ``antijoin``
group by                  ``index_with``, ``aggregate``, and a join by key where there are several aggregates; those
                          that are lattices are one
a relation with lattices  ``index_with`` by its other columns, ``aggregate``
a recursive component     ``recursive_many``: a loop with one feedback and one distinct for each relation; none where
                          there is a fold, which makes sets
========================  ====================================================================================

**Columns.** What is lowered is a :class:`RowView`: a stream of wider rows, and where in them the attributes are.  So
columns that are left out or renamed cost nothing until a node makes new rows anyway.  A first pass says which
attributes of each expression are needed at all.

**Sets.** Weights above 1 do no harm within a rule: joins multiply them, and nothing but a sum, a count or an output
sees them.  So there is a ``distinct`` where a relation is complete, and before such an aggregate, and there only if
rows can be derived twice: a view knows which columns determine its rows (its *key*), and a projection that keeps these,
or a join of two such views, needs none.

**Sharing.** Equal expressions are lowered once, equal indexes are one node; what does not depend on a loop is lowered
outside of it.

Source: PomoLogic, section 3; ``docs/design/plan.md``, "From algebra to a circuit".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Final, Protocol, cast

from attrs import define, evolve, field, frozen

from syndicate.errors import CircuitError, FactError, PlanError
from syndicate.flow import Circuit, Stream, ZSet
from syndicate.flow.circuit import MAX_ITERATIONS
from syndicate.flow.element import Element
from syndicate.flow.stream import itself, nothing
from syndicate.flow.zset import Given, delta_of, elements_of
from syndicate.plan.algebra import (
    AntiJoin,
    Difference,
    Expression,
    Fixpoint,
    FlatMap,
    GroupBy,
    Heading,
    Literal,
    Map,
    NaturalJoin,
    NonMonotone,
    Projection,
    Relation,
    Rename,
    Selection,
    SemiJoin,
    ThetaJoin,
    Union,
    listed,
    meant,
    walk,
)
from syndicate.plan.rewrite import MOVING, Needs, Rewriting, folds_as_one
from syndicate.plan.rules import Rule, Rules, Stratum
from syndicate.plan.scalar import Attr, Compare, Condition, Const, RowFunctions, Scalar, substitute
from syndicate.values.value import Ref, fields_of, is_record

_KEY, _RESULT = itemgetter(0), itemgetter(1)
_NO_NAMES: Final = frozenset[str]()


@frozen
class RowView:
    """A stream of rows, and where in them attributes are: at a position, or everywhere the same.

    *key* are positions that determine a row, whose weight is 1 then; None if weights may be greater.
    """

    stream: Stream
    columns: Mapping[str, int | Const]
    width: int
    key: frozenset[int] | None

    @classmethod
    def of(cls, stream: Stream, heading: Sequence[str], key: Iterable[str] | None) -> RowView:
        """Of rows over a heading, determined by the attributes *key*."""
        columns = {name: i for i, name in enumerate(heading)}
        return cls(stream, columns, len(heading), None if key is None else frozenset(columns[name] for name in key))

    def places(self, row: str = "r") -> dict[str, str]:
        """The text of each attribute that differs from row to row."""
        return {name: f"{row}[{at}]" for name, at in self.columns.items() if isinstance(at, int)}

    def scalars(self, names: Iterable[str]) -> list[Scalar]:
        """Attributes, or the constants that they are."""
        return [Attr(name) if isinstance(at := self.columns[name], int) else at for name in names]

    def fixed(self) -> dict[str, Scalar]:
        """The attributes that are constants."""
        return {name: at for name, at in self.columns.items() if isinstance(at, Const)}

    def is_set(self, names: Iterable[str]) -> bool:
        """Whether the rows, reduced to some attributes, all differ."""
        return self.key is not None and self.key <= {at for name in names if isinstance(at := self.columns[name], int)}


@define(eq=False)
class NameScope:
    """The streams of the names in a circuit or a loop, and what has been lowered there."""

    names: dict[str, RowView]
    above: NameScope | None = None
    done: dict[Expression, RowView] = field(factory=dict)


class Lowering:
    """Builds the circuit of one program."""

    def __init__(self, program: Rules, *, bag: bool, limit: int) -> None:
        """*limit* bounds the iterations of each loop."""
        self.program = program
        self.bag = bag
        self.limit = limit
        self.circuit = Circuit()
        self.rows = RowFunctions()
        self.root = NameScope({})
        self.rule: Rule | None = None
        rewriting = Rewriting()
        self.bodies = {
            rule: rule.body if MOVING.isdisjoint(rule.body.operators) else rewriting.push(rule.body)
            for rule in program.rules
        }
        self.needs = Needs([(body, program[rule.head].heading) for rule, body in self.bodies.items()], bag=bag)

    def run(self) -> Circuit:
        """The circuit: a source for each given relation, a sink for each output."""
        strata = self.program.strata()
        for name, declared in self.program.declared.items():
            if declared.given:
                stream = self.circuit.source(name, unique=not (declared.bag or declared.exact))
                heading = declared.relation.heading
                counted = declared.bag and not self.bag
                stream = stream.distinct() if counted else stream
                key = None if declared.bag and self.bag else heading if declared.key is None else declared.key
                self.root.names[name] = RowView.of(stream, heading, key)
        wanted = self._wanted(strata)
        for stratum in strata:
            if stratum.recursive and wanted & set(stratum.relations):
                self._loop(stratum)
            elif stratum.relations[0] in wanted:
                self._relation(stratum.relations[0], stratum.rules)
        for name in self.program.outputs:
            heading = self.program[name].heading
            self.circuit.sink(name, self.as_rows(self.root.names[name], heading))
        return self.circuit

    def _wanted(self, strata: Sequence[Stratum]) -> set[str]:
        """The relations that outputs depend on."""
        wanted = set(self.program.outputs)
        for stratum in reversed(strata):
            if wanted.intersection(stratum.relations):
                wanted.update(stratum.relations)
                for rule in stratum.rules:
                    wanted |= self.needs.free[self.bodies[rule]]
        return wanted

    # --------------------------------------------------------------------------------------------------- relations

    def _relation(self, name: str, rules: Sequence[Rule]) -> None:
        if not rules and name in self.root.names and not self.program.declared[name].lattices:
            return
        heading = self.program[name].heading
        views = [self.root.names[name]] if name in self.root.names else []
        for rule in rules:
            self.rule = rule
            views.append(self.lower(self.bodies[rule], self.root))
        if not views:
            views.append(self.lower(Literal(heading, ()), self.root))
        self.rule = None
        view = self._sum(views, heading)
        if self.program.declared[name].lattices:
            view = self._folded(name, view)
        self.root.names[name] = self.as_set(view, heading, name)

    def _folded(self, name: str, view: RowView, *, grows: bool = False) -> RowView:
        """The rows of a relation with lattices, those that agree on what is no lattice value as one.

        *grows* says that it is read by what is monotone alone, before its export from a loop.
        """
        declared = self.program.declared[name]
        return self._grouped(declared.merged(declared.relation), view, grows=grows)

    def _loop(self, stratum: Stratum) -> None:
        names = stratum.relations
        headings = {name: self.program[name].heading for name in names}
        self._hoist([self.bodies[rule] for rule in stratum.rules], set(names), self.root)

        def bodies(loops: dict[str, Stream]) -> dict[str, Stream]:
            seen = {name: RowView.of(loops[name], headings[name], headings[name]) for name in names}
            inside = NameScope(seen, self.root)
            views_by_name = {}
            for name in names:
                views = [self.root.names[name]] if name in self.root.names else []
                for rule in stratum.rules:
                    if rule.head == name:
                        self.rule = rule
                        views.append(self.lower(self.bodies[rule], inside))
                self.rule = None
                view = self._sum(views, headings[name])
                if name in folds:
                    view = self._folded(name, view, grows=True)
                views_by_name[name] = self.as_rows(view, headings[name])
            return views_by_name

        folds = {name: lattices for name in names if (lattices := self.program.declared[name].lattices)}
        results = self.circuit.recursive_many(names, bodies, limit=self.limit, sets=folds)
        for name in names:
            lattices = self.program.declared[name].lattices
            key = [one for one in headings[name] if one not in lattices]
            self.root.names[name] = RowView.of(results[name], headings[name], key)

    def _hoist(self, bodies: Iterable[Expression], bound: set[str], scope: NameScope) -> None:
        """Lower the loops within *bodies* that do not depend on *bound*: a loop is made where it is lowered."""
        names: set[str] = set()
        at: NameScope | None = scope
        while at is not None:
            names |= at.names.keys()
            at = at.above
        for node in walk(*bodies):
            if isinstance(node, Fixpoint) and self.needs.free[node] <= names - bound:
                self.lower(node, scope)

    # --------------------------------------------------------------------------------------------------- views

    def as_rows(self, view: RowView, heading: Sequence[str]) -> Stream:
        """The stream of rows over exactly *heading*."""
        if [view.columns[name] for name in heading] == list(range(view.width)):
            return view.stream
        return view.stream.map(self.rows.row(view.scalars(heading), view.places()))

    def as_set(self, view: RowView, heading: Sequence[str], name: str = "") -> RowView:
        """The rows over *heading*, each with weight 1, unless bags are asked for."""
        if self.bag or view.is_set(heading):
            return view
        stream = self._named(self.as_rows(view, heading).distinct(), name)
        return RowView.of(stream, heading, heading)

    def _sum(self, views: Sequence[RowView], heading: Sequence[str]) -> RowView:
        if len(views) == 1:
            return views[0]
        first, *others = [self.as_rows(view, heading) for view in views]
        return RowView.of(first.plus(*others), heading, None)

    def _named(self, stream: Stream, name: str = "") -> Stream:
        """The stream; its node is called after the relation, or after the rule that it is part of."""
        node = stream.node
        if not node.name:
            node.name = name or (self.rule.label if self.rule else "")
        return stream

    # --------------------------------------------------------------------------------------------------- expressions

    def lower(self, expression: Expression, scope: NameScope) -> RowView:
        """The view of an expression: of all attributes that are needed of it, by anyone.  Its parts come first."""
        pending = [expression]
        while pending:
            this = pending[-1]
            home = self._home(this, scope)
            parts = () if isinstance(this, Fixpoint) or this in home.done else this.parts()
            missing = [part for part in parts if part not in self._home(part, scope).done]
            if missing:
                pending += missing
                continue
            if this not in home.done:
                home.done[this] = self._lower(this, home)
            pending.pop()
        return self._home(expression, scope).done[expression]

    def _home(self, expression: Expression, scope: NameScope) -> NameScope:
        """Where an expression is lowered: outside of all loops that it does not depend on."""
        free = self.needs.free.get(expression, _NO_NAMES)
        while scope.above is not None and free.isdisjoint(scope.names):
            scope = scope.above
        return scope

    def _lower(self, this: Expression, scope: NameScope) -> RowView:
        match this:
            case Relation():
                while this.name not in scope.names:
                    assert scope.above is not None
                    scope = scope.above
                return scope.names[this.name]
            case Literal():
                return self._literal(this)
            case Selection():
                return self._filtered(self.lower(this.source, scope), this.conditions)
            case Projection():
                return self._projection(this, self.lower(this.source, scope))
            case Rename():
                view = self.lower(this.source, scope)
                new = dict(this.renaming)
                return evolve(view, columns={new.get(name, name): at for name, at in view.columns.items()})
            case Map() | FlatMap():
                return self._mapped(this, self.lower(this.source, scope))
            case Union():
                names = self.needs.of(this)
                return self._sum([self.lower(source, scope) for source in this.sources], names)
            case NaturalJoin():
                left, right = (self.lower(source, scope) for source in this.sources)
                shared = [(name, name) for name in this.sources[0].heading if name in this.sources[1].heading]
                return self._joined(left, right, shared, self.needs.of(this))
            case ThetaJoin():
                return self._theta(this, self.lower(this.left, scope), self.lower(this.right, scope))
            case SemiJoin() | AntiJoin() | Difference():
                left, right = self.lower(this.left, scope), self.lower(this.right, scope)
                shared = [(name, name) for name in this.left.heading if name in this.right.heading]
                return (self._semijoin if isinstance(this, SemiJoin) else self._antijoin)(left, right, shared)
            case GroupBy():
                return self._grouped(this, self.lower(this.source, scope))
            case NonMonotone():
                return self.lower(this.source, scope)
            case Fixpoint():
                return self._fixpoint(this, scope)
        raise PlanError(f"{this!r} cannot be lowered: it is not an expression of the algebra")

    def _literal(self, this: Literal) -> RowView:
        stream = self.circuit.constant(ZSet.of(*this.rows), name=f"facts of {self.rule.head}" if self.rule else "facts")
        return RowView.of(stream, this.heading, this.heading)

    def _filtered(self, view: RowView, conditions: Iterable[Condition]) -> RowView:
        fixed = view.fixed()
        asked = [substitute(condition, fixed) if fixed else condition for condition in conditions]
        if not asked:
            return view
        return evolve(view, stream=self._named(view.stream.filter(self.rows.test(asked, view.places()))))

    def _projection(self, this: Projection, view: RowView) -> RowView:
        needed = set(self.needs.of(this))
        columns: dict[str, Scalar] = {name: scalar for name, scalar in this.columns if name in needed}
        if all(isinstance(scalar, (Attr, Const)) for scalar in columns.values()):
            moved = {n: view.columns[s.name] if isinstance(s, Attr) else cast(Const, s) for n, s in columns.items()}
            return evolve(view, columns=moved)
        fixed = view.fixed()
        columns = {name: substitute(scalar, fixed) for name, scalar in columns.items()}
        stream = self._named(view.stream.map(self.rows.row(list(columns.values()), view.places())))
        renamed = {view.columns[scalar.name]: name for name, scalar in columns.items() if isinstance(scalar, Attr)}
        key = [renamed[at] for at in view.key] if view.key is not None and view.key <= renamed.keys() else None
        return RowView.of(stream, list(columns), key)

    def _mapped(self, this: Map | FlatMap, view: RowView) -> RowView:
        rows = self.as_rows(view, this.source.heading)
        checked = _Checked(this.function, this.heading)
        mapped = rows.flat_map(checked.rows) if isinstance(this, FlatMap) else rows.map(checked.row)
        return RowView.of(self._named(mapped), this.heading, None)

    # --------------------------------------------------------------------------------------------------- joins

    def _index(self, view: RowView, names: Sequence[str]) -> Stream:
        return view.stream.index_with(self.rows.key(view.scalars(names), view.places(), view.width))

    def _theta(self, this: ThetaJoin, left: RowView, right: RowView) -> RowView:
        pairs, rest = [], []
        for condition in this.conditions:
            match condition:
                case Compare(Attr(a), "==", Attr(b)):
                    pairs.append((a, b) if a in this.left.heading else (b, a))
                case _:
                    rest.append(condition)
        wanted = dict.fromkeys([*self.needs.of(this), *(name for one in rest for name in one.attributes())])
        return self._filtered(self._joined(left, right, pairs, list(wanted)), rest)

    def _joined(self, left: RowView, right: RowView, on: Sequence[tuple[str, str]], wanted: Sequence[str]) -> RowView:
        """The join on pairs of attributes, with at least the columns *wanted*."""
        for this, other, pairs in ((left, right, on), (right, left, [(b, a) for a, b in on])):
            equal = {theirs: ours for ours, theirs in pairs}
            if not self.bag and all(
                name in this.columns or name in equal or isinstance(other.columns[name], Const) for name in wanted
            ):
                view = self._semijoin(this, other, pairs)
                more = {name: this.columns[ours] for name, ours in equal.items() if name not in this.columns}
                const = {name: at for name, at in other.columns.items() if isinstance(at, Const)}
                return evolve(view, columns={**const, **more, **view.columns})
        return self._pairs(left, right, on, wanted)

    def _pairs(self, left: RowView, right: RowView, on: Sequence[tuple[str, str]], wanted: Sequence[str]) -> RowView:
        columns: dict[str, int | Const] = {}
        out: dict[tuple[str, int], int] = {}
        equal = {b: a for a, b in on}
        for name in wanted:
            side, view, source = ("l", left, name) if name in left.columns else ("r", right, name)
            if side == "r" and name in equal:
                side, view, source = "l", left, equal[name]
            at = view.columns[source]
            columns[name] = at if isinstance(at, Const) else out.setdefault((side, at), len(out))
        texts = [f"{side}[{at}]" for side, at in out]
        function = self.rows.rearranging("k, l, r", f"({', '.join(texts)}{',' if len(texts) == 1 else ''})")
        stream = self._index(left, [a for a, _ in on]).join(self._index(right, [b for _, b in on]), function)
        return RowView(stream, columns, len(out), _joined_key(left, right, on, out))

    def _keys(self, view: RowView, names: Sequence[str]) -> Stream:
        """The keys that a view has, each once, indexed by themselves."""
        index = view.stream.index_with(self.rows.key(view.scalars(names), view.places(), view.width), nothing)
        return index if view.is_set(names) else index.keys().distinct().index_with(itself, nothing)

    def _semijoin(self, left: RowView, right: RowView, on: Sequence[tuple[str, str]]) -> RowView:
        keys = self._keys(right, [b for _, b in on])
        row = self.rows.rearranging("k, l, r", "l")
        return evolve(left, stream=self._index(left, [a for a, _ in on]).join(keys, row))

    def _antijoin(self, left: RowView, right: RowView, on: Sequence[tuple[str, str]]) -> RowView:
        keys = self.rows.key(right.scalars([b for _, b in on]), right.places(), right.width)
        without = self._index(left, [a for a, _ in on]).antijoin(right.stream.index_with(keys, nothing))
        return evolve(left, stream=without)

    # --------------------------------------------------------------------------------------------------- groups, loops

    def _grouped(self, this: GroupBy, view: RowView, *, grows: bool = False) -> RowView:
        if self.needs.counts_rows(this):
            view = self.as_set(view, this.source.heading)
        fixed, places = view.fixed(), view.places()
        key = self.rows.key(view.scalars(this.by), places, view.width)
        results: list[tuple[tuple[str, ...], Stream]] = []
        for names, agg in folds_as_one(this.aggregates):
            of = [substitute(scalar, fixed) for scalar in agg.of]
            value = self.rows.key(of, places, view.width) if of else nothing
            results.append(
                (names, self._named(view.stream.index_with(key, value).aggregate(agg.aggregate, grows=grows)))
            )
        (names, total), *others = results
        if not others and len(this.by) == len(names) == 1:
            return RowView.of(total, this.heading, this.by)
        for more, other in others:
            left, right = ("*" * (len(one) > 1) for one in (names, more))
            pair = self.rows.rearranging("k, l, r", f"(k, ({left}l, {right}r))")
            total = total.index_with(_KEY, _RESULT).join(other.index_with(_KEY, _RESULT), pair)
            names = (*names, *more)
        by = "e[0]," if len(this.by) == 1 else "*e[0],"
        flat = self.rows.rearranging("e", f"({by} {'*' * (len(names) > 1)}e[1],)")
        return RowView.of(total.map(flat), [*this.by, *names], this.by)

    def _fixpoint(self, this: Fixpoint, scope: NameScope) -> RowView:
        self._hoist([this.body], {this.name}, scope)

        def body(loop: Stream) -> Stream:
            inside = NameScope({this.name: RowView.of(loop, this.heading, this.heading)}, scope)
            return self.as_rows(self.lower(this.body, inside), this.heading)

        return RowView.of(self.circuit.recursive(body, name=this.name, limit=self.limit), this.heading, this.heading)


def _joined_key(
    left: RowView, right: RowView, on: Sequence[tuple[str, str]], out: Mapping[tuple[str, int], int]
) -> frozenset[int] | None:
    """The positions that determine a joined row, if what is put out does."""
    if left.key is None or right.key is None:
        return None
    positions = dict(out)
    ours: set[tuple[str, int]] = set()
    theirs: set[tuple[str, int]] = set()
    for a, b in on:
        p, q = left.columns[a], right.columns[b]
        if isinstance(p, int) and isinstance(q, int):
            ours.add(("l", p))
            theirs.add(("r", q))
            if ("l", p) in out:  # equal, so that it serves for the other
                positions[("r", q)] = out[("l", p)]
    lefts, rights = {("l", at) for at in left.key}, {("r", at) for at in right.key}
    # A row of one side determines what it is joined on, and with it that part of the other side's key.
    for wanted in (lefts | (rights - theirs), rights | (lefts - ours)):
        if wanted <= positions.keys():
            return frozenset(positions[one] for one in wanted)
    return None


class _Checked:
    """A user's function of a row whose results must be rows of the right width."""

    __slots__ = ("function", "heading")

    def __init__(self, function: Callable[..., Element], heading: Heading) -> None:
        self.function = function
        self.heading = heading

    def row(self, row: Element) -> Element:
        """The one row that is made."""
        result = self.function(row)
        if type(result) is not tuple or len(result) != len(self.heading):
            raise self._refusal(result)
        return result

    def rows(self, row: Element) -> Element:
        """The rows that are made."""
        results = list(self.function(row))
        width = len(self.heading)
        for one in results:
            if type(one) is not tuple or len(one) != width:
                raise self._refusal(one)
        return results

    def _refusal(self, result: Element) -> PlanError:
        name = getattr(self.function, "__name__", repr(self.function))
        return PlanError(f"{name} gave {result!r}, not a tuple of {len(self.heading)}: {', '.join(self.heading)}")


# ------------------------------------------------------------------------------------------------------------- programs


Facts = Given
"""Changes of a relation: facts with weights (1 inserts, -1 deletes), or facts alone, which are inserted."""

_ONLY_TUPLES: Final = frozenset({tuple})


class Change(Protocol):
    """What changed of an output, in an engine's own form."""

    def to_zset(self) -> ZSet:
        """As a Z-set in memory."""


class Engine(Protocol):
    """What runs a circuit in place of the local engine, such as :class:`syndicate.spark.SparkEngine`."""

    def step(self, deltas: Mapping[str, ZSet]) -> Mapping[str, Change]:
        """One epoch."""

    def close(self) -> None:
        """Let it go."""


@define(eq=False)
class Plan:
    """A program and its circuit, made by :meth:`Program.plan`.

    ``circuit`` is an ordinary circuit: its sources are the given relations, its sinks the outputs, its elements tuples.
    ``engine`` is what runs it, None for the local one.
    """

    program: Rules
    circuit: Circuit
    engine: Engine | None = None

    def step(self, changes: Mapping[str, Facts] | None = None) -> Mapping[str, ZSet]:
        """One epoch: changes of given relations in, changes of outputs out, as ZSets by name.

        Raises :class:`FactError` for what fits no given relation; what
        :meth:`syndicate.flow.circuit.Circuit.step` raises, where a user's function does.
        """
        return self.run({name: self.delta(name, facts) for name, facts in (changes or {}).items()})

    def run(self, deltas: Mapping[str, ZSet]) -> Mapping[str, ZSet]:
        """The same of changes that fit, as whoever made the relations may know."""
        if self.engine is None:
            return self.circuit.engine.step(deltas)
        changed = self.engine.step(deltas)
        return {name: change.to_zset() for name, change in changed.items()}

    def __host__(
        self,
        ds: Ref,
        *,
        inputs: Mapping[str, object],
        outputs: Mapping[str, type | None],
        messages: Mapping[str, object],
    ) -> Callable[[], None]:
        """A view of its circuit, whose elements are tuples: see :func:`syndicate.hosting.host`."""
        return self.circuit.__host__(ds, inputs=inputs, outputs=outputs, messages=messages, tuples=True, plan=self)

    def close(self) -> None:
        """Let the engine go."""
        if self.engine is not None:
            self.engine.close()

    def delta(self, name: str, facts: Facts) -> ZSet:
        """Facts as changes of a given relation; raises :class:`FactError` for what is no fact of it."""
        declared = self.program.declared.get(name)
        if declared is None or not declared.given:
            inputs = [each for each, one in self.program.declared.items() if one.given]
            what = "is derived by rules, not given" if declared is not None else "is not known"
            raise FactError(f"relation {name!r} {what}{meant(name, inputs)}; given are {listed(inputs)}")
        heading = declared.relation.heading
        try:
            rows = facts if isinstance(facts, (ZSet, Mapping)) else list(elements_of(facts, f"relation {name!r}"))
        except CircuitError as error:
            raise FactError(f"{name} takes facts: {error}") from None
        if not set(map(type, rows)) <= _ONLY_TUPLES:
            pairs = rows.items() if isinstance(rows, (ZSet, Mapping)) else [(row, 1) for row in rows]
            facts = [(fields_of(fact) if is_record(fact) else fact, weight) for fact, weight in pairs]
            _fit(name, heading, [fact for fact, _ in facts])
            return ZSet(facts)
        _fit(name, heading, rows)
        return delta_of(rows)


class Program(Rules):
    """Relations, rules and outputs, which a circuit can be made of."""

    def plan(
        self,
        *,
        bag: bool = False,
        limit: int = MAX_ITERATIONS,
        engine: Callable[[Circuit], Engine] | None = None,
    ) -> Plan:
        """The program as a circuit that can be stepped; see :class:`Plan`.

        With *bag*, weights are kept: a row has the weight that says how many derivations it has.  Loops give sets
        nevertheless, and a difference or an antijoin takes away a row with all of its weight.  No loop may take more
        than *limit* iterations in a step.  *engine* makes what runs the circuit:
        ``lambda circuit: SparkEngine(circuit, session)``; it is the local engine otherwise.
        """
        try:
            circuit = Lowering(self, bag=bag, limit=limit).run()
        except RecursionError:
            raise PlanError(
                "a rule's expression is nested too deeply to be compiled: give parts of it relations of their own "
                "(a NaturalJoin or Union takes any number of sources, and counts once)"
            ) from None
        return Plan(self, circuit, None if engine is None else engine(circuit))

    def circuit(self, *, bag: bool = False) -> Circuit:
        """The circuit alone: its sources are the given relations, its sinks the outputs, its elements tuples."""
        return self.plan(bag=bag).circuit


def _fit(name: str, heading: Heading, facts: Collection[Element]) -> None:
    if set(map(type, facts)) <= _ONLY_TUPLES and set(map(len, facts)) <= {len(heading)}:
        return
    for fact in facts:
        if type(fact) is not tuple or len(fact) != len(heading):
            raise FactError(
                f"{fact!r} is no fact of {name}: a tuple of {len(heading)} is needed, or a record of as many fields: "
                f"{', '.join(heading)}"
            )


def evaluate(program: Program, facts: Mapping[str, Facts] | None = None) -> dict[str, frozenset[tuple[Element, ...]]]:
    """The outputs of a program for some facts, once: rows by relation.  A fact that is given twice is there once.

    The sets of the result are Python's own, which confuse ``1`` and ``True``; a :class:`Plan` does not.
    """
    plan = program.plan()
    changed = plan.step(facts)
    return {name: frozenset(changed[name]) for name in program.outputs}
