"""The fixpoint of lattices: the part of a tick in which they, and rows with lattice values, grow until nothing does.

Rules are run level by level, the strata of the whole program, until nothing at a level grows; then the circuit is given
what grew that it reads, and what comes out of it may let the level grow again.  So at each level all that lies below is
complete before it is read.

Lattices and tables keep what they have.  A scratch with lattice values is made again in a tick in which anything that
it depends on may have gone; otherwise what is new is merged into what there was.

Contract: :meth:`undo` takes a tick back.

Source: Conway et al. 2012, "Lattice methods" and on evaluation; ``docs/design/bloom.md``, "Lattices in programs".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from syndicate.bloom.declaration import Rule, placed
from syndicate.bloom.rules.function import LatticeFound
from syndicate.bloom.rules.term import Term, place_of
from syndicate.bloom.state.keyed_rows import KeyedRows
from syndicate.bloom.state.state import CellState, Merged, ScratchState, State, TableState
from syndicate.bloom.tick.lattice_term import BodyEvaluation, TermEvaluation
from syndicate.bloom.tick.wiring import LatticeRule, SplitProgram
from syndicate.errors import RuleFailed, SyndicateError
from syndicate.flow.circuit import MAX_ITERATIONS
from syndicate.flow.element import Key, key_of, natural
from syndicate.garbage_collector import CollectorPause
from syndicate.lattice import from_collection
from syndicate.lattice.lattice import Lattice, grew, join
from syndicate.values.value import Value

Deltas = Mapping[str, Mapping[Key, int]]
Settle = Callable[[dict[str, dict[Key, int]]], object]


class RuleEvaluation:
    """A growing rule that runs."""

    def __init__(self, lattice_rule: LatticeRule, fixpoint: LatticeFixpoint) -> None:
        """Of a rule."""
        self.rule, self.level, self.fixpoint = lattice_rule.rule, lattice_rule.level, fixpoint
        self.evaluation: TermEvaluation | None = None
        self.body: BodyEvaluation | None = None
        self.cell = fixpoint.cells.get(self.rule.head)
        self.contents = fixpoint.contents.get(self.rule.head)
        """What it merges into: the rows of a collection, if it is not a variable."""
        if lattice_rule.term is not None:
            self.evaluation = fixpoint.evaluation(lattice_rule.term)
        else:
            assert lattice_rule.body is not None
            self.body = BodyEvaluation(lattice_rule.body, fixpoint.held)

    def moved(self) -> bool:
        """Whether it has anything to do."""
        return self.evaluation.moved() if self.evaluation is not None else self.body is not None and self.body.moved()

    def restart(self) -> None:
        """Do all again."""
        if self.evaluation is not None:
            self.evaluation.restart()
        elif self.body is not None:
            self.body.restart()

    def run(self) -> None:
        """Merge what is new."""
        site, cell = self.rule.site, self.cell
        if self.contents is not None:
            assert self.body is not None
            absorb = self.contents.absorb
            for _ in range(MAX_ITERATIONS):
                rows = self.body.pull()
                if not rows:
                    return
                absorb(rows, site)  # and again, as long as it feeds itself
            raise restless([self.rule])
        assert cell is not None
        if self.body is not None:
            rows = self.body.pull()
            if not rows:
                return
            value: Value = self._folded([row[0] for row in rows], cell)
        else:
            assert self.evaluation is not None
            value = self.evaluation.pull(site)
            if value is None:
                return
            if not isinstance(value, Lattice):
                value = self._folded([value], cell)
        try:
            if self.rule.op == "<=":
                self.fixpoint.grow(cell, value)
            else:
                cell.defer(value)
        except SyndicateError as error:
            raise placed(error, f"{site}: {self.rule.head}") from error

    def _folded(self, values: list[Value], state: CellState) -> Lattice:
        cls = state.lattice
        try:
            folded = from_collection(cls, [value for value in values if not isinstance(value, Lattice)])
            for value in values:
                if isinstance(value, Lattice):
                    folded = join(folded, value)
        except SyndicateError as error:
            raise placed(error, f"{self.rule.site}: {self.rule.head}") from error
        return folded


class TermRelation:
    """A term whose rows are read."""

    def __init__(
        self,
        name: str,
        evaluation: TermEvaluation,
        rows: Callable[[Value], list[Value]] | None,
        level: int,
        held: KeyedRows,
    ) -> None:
        """Of an evaluation; *rows* makes rows of what comes out."""
        self.name, self.evaluation, self.rows, self.level, self.held = name, evaluation, rows, level, held

    def run(self) -> None:
        """Give what is new."""
        value = self.evaluation.pull(place_of(self.evaluation.term))
        if self.rows is None:
            if value is not None:
                previous = self.held.rows.get(())
                if previous is not None and not self.evaluation.nonmonotone and isinstance(value, Lattice):
                    value = join(previous[0], value)
                self.held.put({(): (value,)})
            return
        new_rows = self.rows(value)
        rows = {key_of(row): row for row in new_rows}
        if self.evaluation.nonmonotone:
            self.held.drop([key for key in self.held.rows if key not in rows])
        self.held.put({key: row for key, row in rows.items() if key not in self.held.rows})


class LatticeFixpoint:
    """What grows of a program."""

    def __init__(
        self, partition: SplitProgram, states: Mapping[str, State], read: frozenset[str], *, naive: bool = False
    ) -> None:
        """*read* are the relations that the circuit reads; *naive* applies methods to whole values each time."""
        self.partition, self.states, self.naive = partition, states, naive
        self.cells = {name: state for name, state in states.items() if isinstance(state, CellState)}
        self.merged = {name: states[name] for name in partition.merged}
        self.tables = {name: state for name, state in self.merged.items() if isinstance(state, TableState)}
        self.scratches = {name: state for name, state in self.merged.items() if isinstance(state, ScratchState)}
        self.contents = {name: rows for name, one in self.merged.items() if isinstance(rows := one.contents, Merged)}
        self.held: dict[str, KeyedRows] = {}
        for name, contents in self.contents.items():
            contents.held.detach()
            self.held[name] = contents.held
        self.evaluations: list[TermEvaluation] = []
        self.grown: dict[str, list[TermEvaluation]] = {}
        self.cell_rows = {name: KeyedRows() for name in self.cells}
        self.held |= self.cell_rows
        for name, state in self.cells.items():
            self.cell_rows[name].put({(): (state.value,)})
            self.cell_rows[name].commit()
        inputs = {one.name for rule in partition.lattice_rules if rule.body is not None for one in rule.body.inputs}
        self.terms: list[TermRelation] = []
        for name, (expression, level) in partition.term_relations.items():
            held = self.held[name] = KeyedRows()
            self.terms.append(TermRelation(name, self.evaluation(expression.term), expression.rows, level, held))
        self.plain = {name: KeyedRows() for name in inputs if name not in self.held}
        self.held |= self.plain
        for name, held in self.plain.items():
            if name in states:
                held.put({row: natural(row) for row in states[name].contents.rows})
                held.commit()
        self.runs = [RuleEvaluation(rule, self) for rule in partition.lattice_rules]
        self.fed = [name for name in self.held if name in read and name not in self.plain]
        for name in self.fed:
            self.held[name].follow()
        tops = [*(run.level for run in self.runs), *(term.level for term in self.terms)]
        self.levels = [
            (
                [run for run in self.runs if run.level == level],
                [one for one in self.terms if one.level == level],
            )
            for level in range(max(tops, default=-1) + 1)
        ]
        self.once = self.untouched = True

    def evaluation(self, term: Term) -> TermEvaluation:
        """A term that is notified when its variables grow."""
        evaluation = TermEvaluation(term, self.cells, naive=self.naive)
        self.evaluations.append(evaluation)
        for name in evaluation.leaves:
            self.grown.setdefault(name, []).append(evaluation)
        return evaluation

    def grow(self, state: CellState, value: Lattice) -> None:
        """Merge into a variable."""
        state.value.same_lattice(value)
        fresh = value.beyond(state.value)
        merged = join(state.value, fresh)
        if not grew(state.value, merged):
            return
        state.grow(merged)
        for evaluation in self.grown.get(state.name, ()):
            for leaf in evaluation.leaves[state.name]:
                leaf.grow(fresh)
        held = self.cell_rows[state.name]
        if held.readers or held.baseline is not None:
            held.put({(): (merged,)})

    # --------------------------------------------------------------------------------------------------- a tick

    def begin(self, fed: Mapping[str, Mapping[Key, int]]) -> dict[str, dict[Key, int]]:
        """Merge what is given from outside; what of it is to be given to the circuit, with the rest."""
        try:
            self._begin(fed)
        except (SyndicateError, LatticeFound):
            raise
        except Exception as error:
            raise RuleFailed(_foreign("what is given from outside", error)) from error
        return self._untold()

    def _begin(self, fed: Mapping[str, Mapping[Key, int]]) -> None:
        shrunk = {name for name, delta in fed.items() if any(weight < 0 for weight in delta.values())}
        leaving = {name: state.leaving for name, state in self.tables.items() if state.leaving}
        shrunk.update(leaving)
        for name, table in self.tables.items():
            self._begin_table(table, self.contents[name], fed.get(name, {}))
        recomputed = [name for name in self.scratches if self._is_recomputed(name, shrunk)]
        for name in recomputed:
            self.held[name].drop(list(self.held[name].rows))
        for name, state in self.scratches.items():
            delta = fed.get(name, {})
            now = state.present() if name in recomputed else [row for row, weight in delta.items() if weight > 0]
            if now:
                self.contents[name].absorb([natural(row) for row in now], f"a row given to {name}")
        for run in self.runs:
            if run.rule.head in leaving or run.rule.head in recomputed:
                run.restart()
        for cell in self.cells.values():
            for value in cell.taken():
                self.grow(cell, value)

    def _begin_table(self, state: TableState, contents: Merged, delta: Mapping[Key, int]) -> None:
        gone = {contents.key(row) for row in state.leaving if row in contents.rows}
        contents.held.drop(gone)
        arriving = [natural(row) for row, weight in delta.items() if weight > 0]
        if gone:  # what is inserted in each tick is so after deletions
            deferred = (*state.next.rows, *state.replacing.rows)
            arriving += [natural(row) for row in deferred if contents.key(row) in gone]
        if arriving:
            contents.absorb(arriving, f"a row given to {contents.name}")

    def _is_recomputed(self, name: str, shrunk: set[str]) -> bool:
        upstream = self.partition.upstream[name]
        return name in self.partition.shaky or self.once or not shrunk.isdisjoint(upstream)

    def take_changes(self, deltas: Deltas) -> None:
        """What changed elsewhere."""
        for name, delta in deltas.items():
            held = self.plain.get(name)
            if held is not None:
                held.drop([row for row, weight in delta.items() if weight < 0])
                held.put({row: natural(row) for row, weight in delta.items() if weight > 0})

    def _untold(self) -> dict[str, dict[Key, int]]:
        return {name: delta for name in self.fed if (delta := self.held[name].untold())}

    def run(self, settle: Settle) -> None:
        """To the fixed point; *settle* gives the circuit what is new."""
        self.once = False
        with CollectorPause():
            self._run(settle)

    def _run(self, settle: Settle) -> None:
        for runs, terms in self.levels:
            # What a negation within one body reads of a revealed value lies on the same level as the body itself.
            for term in [term for term in terms if term.evaluation.moved()]:
                term.run()
            if deltas := self._untold():
                settle(deltas)
            for _ in range(MAX_ITERATIONS):
                busy = [run for run in runs if run.moved()]
                for run in busy:
                    try:
                        run.run()
                    except (SyndicateError, LatticeFound):
                        raise
                    except Exception as error:
                        rule = run.rule
                        text = _foreign(f"{rule.site}: {rule.head}", error)
                        raise RuleFailed(text, sites=[rule.site], relations=[rule.head]) from error
                open_ = [one for one in terms if one.evaluation.moved()]
                for term in open_:
                    term.run()
                if busy or open_:
                    continue
                deltas = self._untold()
                if not deltas:
                    break
                settle(deltas)
            else:
                raise restless([run.rule for run in runs if run.moved()] or [run.rule for run in runs])

    def replay(self, settle: Settle) -> None:
        """Tell the circuit, which is new, all that there is; rules do not run."""
        for term in self.terms:
            term.run()
        for name in self.fed:
            self.held[name].baseline = None
        settle({name: {key_of(row): 1 for row in self.held[name].rows.values()} for name in self.fed})
        for held in self.held.values():
            held.commit()
            for reader in held.readers:
                reader.clear()
        for name in self.fed:
            self.held[name].baseline = {}
        self.untouched = False

    def changes(self, name: str) -> Mapping[Key, int]:
        """What has changed of a merged collection in this tick."""
        return self.held[name].changes()

    def later(self) -> dict[str, Callable[[], Mapping[Key, int]]]:
        """What can be asked after this tick, until the next, of what has changed in it."""
        changes: dict[str, Callable[[], Mapping[Key, int]]] = {
            name: partial(held.since, held.before) for name in self.merged if (held := self.held[name]).before
        }
        for name, state in self.cells.items():
            if state.before is not None:
                changes[name] = partial(_grown, state.before, state.value)
        return changes

    def commit(self) -> None:
        """The tick happened."""
        self.untouched = False
        for held in self.held.values():
            held.commit()

    def undo(self) -> None:
        """The tick did not happen."""
        for state in self.cells.values():
            state.undo()
        for held in self.held.values():
            held.undo()
        for name, state in self.cells.items():
            if self.cell_rows[name].rows.get((), (None,))[0] is not state.value:
                self.cell_rows[name].put({(): (state.value,)})
                self.cell_rows[name].commit()
        for evaluation in self.evaluations:
            evaluation.restart()
        for name in self.fed if self.untouched else ():
            self.held[name].follow()
        self.once = True


def restless(rules: Sequence[Rule]) -> RuleFailed:
    """What is said of rules that grow for ever."""
    places = dict.fromkeys((rule.site, rule.head) for rule in rules)
    return RuleFailed(
        f"{', '.join(f'{site}: {head}' for site, head in places)} did not come to rest within {MAX_ITERATIONS} rounds, "
        "since what grows makes it grow again: bound it, as by min_of() or a filter(), or let each tick take one step, "
        "by <+. The tick did not happen",
        sites=[site for site, _ in places],
        relations=[*dict.fromkeys(head for _, head in places)],
    )


def _foreign(where: str, error: Exception) -> str:
    """What a method of a user's lattice raised."""
    return f"{where}: a lattice raised {type(error).__name__}: {error}. The tick did not happen"


def _grown(before: Lattice, value: Lattice) -> dict[Key, int]:
    return {key_of((before,)): -1, key_of((value,)): 1}
