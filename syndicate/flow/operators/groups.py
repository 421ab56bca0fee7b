"""Aggregates of an indexed stream, kept up to date: for each group that changed, the old row out, the new row in.

``count``, ``sum``, ``avg`` and ``linear`` keep a number or two a group, or the user's total.  All others keep the
group's values with their weights, since a retraction may make an older value the best again; of large groups the values
are also kept sorted (:class:`syndicate.flow.operators.ranking.Ranking`), so that neither the best nor its successor is
searched for.  A fold into a lattice merges what comes into the result.  What goes cannot be taken out of a merge: of a
small group the rest is merged again, of a large one what lies above the value in a tree of merges, which is made when
the first value goes (:class:`syndicate.flow.operators.ranking.Merges`).

Contract: a group whose result stays the same gives nothing; a group that lost its last value only retracts, and takes
no room any more.

Source: Budiu et al. 2023, on grouping and aggregation; PomoFlow, 2.9.1; ``docs/design/flow.md``, "Where PomoFlow is
corrected".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from syndicate.flow.aggregates import LINEAR, Aggregate, Fold, Total, shown
from syndicate.flow.arrangement import Index, add_rows, meet_rows
from syndicate.flow.comparison import same
from syndicate.flow.element import ATOMS, Element, Key, MixedRows, Rows, Typed, add_up, key_of, meet, mixed, natural
from syndicate.flow.node import Node
from syndicate.flow.operators.ranking import LARGE_GROUP, Merges, Ranking
from syndicate.flow.undo import note_groups

if TYPE_CHECKING:
    from syndicate.flow.scope import Cell, Scope, Step

C = TypeVar("C")


class GroupView(Mapping[Element, int]):
    """A group as the user's function sees it: natural values, distinguished by value identity."""

    __slots__ = ("weights",)

    def __init__(self, weights: dict[Key, int]) -> None:
        self.weights = weights

    def __getitem__(self, value: Element) -> int:
        return self.weights[key_of(value)]

    def __iter__(self) -> Iterator[Element]:
        return map(natural, self.weights)

    def __len__(self) -> int:
        return len(self.weights)


def by_key(rows: Rows) -> Index:
    """Rows as groups."""
    groups: Index = {}
    add_rows(groups, rows)
    return groups


def keyed_result(key: Key, result: Element) -> Key:
    """The key of the element ``(key, result)``."""
    return key_of((natural(key), result))


def make_flat_aggregate(scope: Scope, node: Node) -> Step:
    """``aggregate`` of a flat stream."""
    aggregate: Aggregate = node.params["aggregate"]
    if aggregate.form == "count":
        return _make_count(scope, node)
    if aggregate.fold is not None:
        return _make_folded(scope, node, aggregate.fold)
    if aggregate.form in LINEAR:
        return _make_linear(scope, node, aggregate)
    if aggregate.form == "lattice":
        return _make_lattice(scope, node, aggregate)
    return _make_grouped(scope, node, aggregate)


def make_aggregate_stream(scope: Scope, node: Node) -> Step:
    """``aggregate_stream``: of this tick's batch."""
    cells, i, aggregate = scope.cells, scope.inputs(node)[0], node.params["aggregate"]

    def step() -> object:
        results = ((key, aggregate.of(GroupView(group))) for key, group in by_key(cells[i]).items())
        return mixed((keyed_result(key, result), 1) for key, result in results if result is not None)

    return step


def changes(results: list[tuple[Key, Element, Element]]) -> dict[Key, int]:
    """The batch of ``(key, old result, new result)``, where None is no row."""
    plain = True
    for key, old, new in results:
        if type(key) is Typed or not (type(old) in ATOMS and type(new) in ATOMS):
            plain = False
            break
    if plain:
        results = [entry for entry in results if entry[1] != entry[2]]
        out = {(key, old): -1 for key, old, _ in results if old is not None}
        out.update({(key, new): 1 for key, _, new in results if new is not None})
        return out
    pairs: list[tuple[Key, int]] = []
    for key, old, new in results:
        gone = None if old is None else keyed_result(key, old)
        come = None if new is None else keyed_result(key, new)
        if gone != come:
            pairs += [(pair, weight) for pair, weight in ((gone, -1), (come, 1)) if pair is not None]
    return mixed(pairs)


def _restorer(state: dict[Key, Element]) -> Callable[[list[tuple[Key, Element]]], None]:
    def restore(saved: list[tuple[Key, Element]]) -> None:
        for key, old in reversed(saved):
            if old is None:
                state.pop(key, None)
            else:
                state[key] = old

    return restore


_INTEGERS: Final = {int}
_NOTHING: Final = (0, 0, None)


def _make_count(scope: Scope, node: Node) -> Step:
    cells, i, undo = scope.cells, scope.inputs(node)[0], scope.undo
    state: dict[Key, int] = scope.state(node, {})
    restore = _restorer(state)

    def step() -> object:
        rows = cells[i]
        change: dict[Key, int] = {}
        seen = change.get
        for key, _, weight in rows:
            change[key] = seen(key, 0) + weight
        saved: list[tuple[Key, int | None]] = []
        undo.append((restore, saved))
        if type(rows) is MixedRows:
            meet(change, state)
            results: list[tuple[Key, Element, Element]] = []
            for key, weight in change.items():
                if weight:
                    old = state.get(key)
                    saved.append((key, old))
                    new = (old or 0) + weight
                    if new:
                        state[key] = new
                        results.append((key, old, new))
                    else:
                        del state[key]
                        results.append((key, old, None))
            return changes(results)
        # Keys and results are plain, so the batch is made at once.
        count_of, save = state.get, saved.append
        out: dict[Key, int] = {}
        for key, weight in change.items():
            if weight:
                old = count_of(key)
                save((key, old))
                if old is None:
                    state[key] = weight
                    out[key, weight] = 1
                    continue
                out[key, old] = -1
                new = old + weight
                if new:
                    state[key] = new
                    out[key, new] = 1
                else:
                    del state[key]
        return out

    return step


def linear_result(entry: tuple[int, int, Total | None] | None, *, mean: bool) -> Element:
    """What ``sum`` or ``avg`` makes of what is kept of a group."""
    if entry is None or not entry[0]:
        return None
    number, whole, total = entry
    if total is None:
        return whole if not mean else Total.of(whole).mean(number)
    return total.plus(whole).mean(number) if mean else total.plus(whole).result()


def _make_linear(scope: Scope, node: Node, aggregate: Aggregate) -> Step:
    """``sum`` and ``avg``: the sum of the weights, the sum of all integers, and a Total of whatever else there is."""
    # One closure goes over the batch once: its parts share what they read, and calls would cost more than they do.
    cells, i, undo, by = scope.cells, scope.inputs(node)[0], scope.undo, aggregate.by
    state: dict[Key, tuple[int, int, Total | None]] = scope.state(node, {})
    restore = _restorer(state)
    mean = aggregate.form == "avg"
    result = partial(linear_result, mean=mean)

    def add_integers(changed: dict[Key, list[int]]) -> dict[Key, int]:
        saved: list[tuple[Key, Element]] = []
        undo.append((restore, saved))
        total_of, save = state.get, saved.append
        out: dict[Key, int] = {}
        others: list[tuple[Key, Element, Element]] = []
        for key, (more, added) in changed.items():
            old = total_of(key)
            save((key, old))
            number, whole, total = old or _NOTHING
            now, sum_now = number + more, whole + added
            if now or sum_now or total:
                state[key] = new = (now, sum_now, total)
            elif old is not None:
                del state[key]
                new = _NOTHING
            if total:
                others.append((key, result(old), result(new)))
            elif whole != sum_now or not (number and now):
                if number:
                    out[key, whole] = -1
                if now:
                    out[key, sum_now] = 1
        return mixed([*out.items(), *changes(others).items()]) if others else out

    def step() -> object:
        rows = cells[i]
        integers = None if mean or type(rows) is MixedRows else _integers(rows, by)
        if integers is not None:
            return add_integers(integers)
        groups: dict[Key, tuple[int, int, Total | None]] = {}
        typed = type(rows) is MixedRows
        for key, value, weight in rows:
            number = natural(value) if typed else value
            if by is not None:
                number = by(number)
            count, whole, total = groups.get(key) or (0, 0, None)
            if type(number) is int:
                groups[key] = (count + weight, whole + number * weight, total)
            else:
                total = total or Total()
                total.add(number, weight)
                groups[key] = (count + weight, whole, total)
        if typed:
            meet(groups, state)
        saved: list[tuple[Key, Element]] = []
        undo.append((restore, saved))
        results = []
        for key, change in groups.items():
            old = state.get(key)
            saved.append((key, old))
            new = change if old is None else _sum(old, change)
            if new[0] or new[1] or new[2]:
                state[key] = new
            elif old is not None:
                del state[key]
            results.append((key, result(old), result(new)))
        return changes(results)

    return step


def _make_folded(scope: Scope, node: Node, fold: Fold) -> Step:
    """``linear``: of each group the sum of its weights, and the user's total."""
    cells, i, undo = scope.cells, scope.inputs(node)[0], scope.undo
    state: dict[Key, tuple[int, Element]] = scope.state(node, {})
    restore = _restorer(state)
    nothing = (0, fold.zero)
    add, shown = fold.add, fold.shown

    def step() -> object:
        rows = cells[i]
        changed: dict[Key, tuple[int, Element]] = {}
        for key, value, weight in rows:
            entry = changed.get(key)
            if entry is None:
                entry = state.get(key, nothing)
            changed[key] = (entry[0] + weight, add(entry[1], natural(value), weight))
        if type(rows) is MixedRows:
            meet(changed, state)
        results = [(key, shown(*state.get(key, nothing)), shown(*entry)) for key, entry in changed.items()]
        gone = {key for key, entry in changed.items() if not entry[0] and same(entry[1], fold.zero)}
        batch = changes(results)
        undo.append((restore, [(key, state.get(key)) for key in changed]))
        for key, entry in changed.items():
            if key in gone:
                state.pop(key, None)
            else:
                state[key] = entry
        return batch

    return step


def _integers(rows: Rows, by: Callable[[Element], Element] | None) -> dict[Key, list[int]] | None:
    """By key the sum of the weights and of the values, without a call for each row; None if not all are integers."""
    values = [value for _, value, _ in rows] if by is None else [by(value) for _, value, _ in rows]
    if set(map(type, values)) != _INTEGERS:
        return None
    changed: dict[Key, list[int]] = {}
    entry_of = changed.get
    for (key, _, weight), value in zip(rows, values, strict=True):
        entry = entry_of(key)
        if entry is None:
            changed[key] = [weight, value * weight]
        else:
            entry[0] += weight
            entry[1] += value * weight
    return changed


def _sum(a: tuple[int, int, Total | None], b: tuple[int, int, Total | None]) -> tuple[int, int, Total | None]:
    if a[2] is None:
        total = b[2]
    elif b[2] is None:
        total = a[2]
    else:
        total = a[2].plus_total(b[2])
    return a[0] + b[0], a[1] + b[1], total or None


def _arrivals(
    scope: Scope, node: Node, groups: Index, results: dict[Key, Element], caches: dict[Key, C], typed: Cell
) -> Callable[[], tuple[Index, list[tuple[Key, Element]]]]:
    """What arrives, by key, with all that it meets noted in the log; and a list to note old results in.

    What the *caches* have of a key is forgotten when its change is taken back.
    """
    cells, i, undo, restore = scope.cells, scope.inputs(node)[0], scope.undo, _restorer(results)

    def arrive() -> tuple[Index, list[tuple[Key, Element]]]:
        rows = cells[i]
        if type(rows) is MixedRows:
            typed.value = True
        arrived = by_key(rows)
        if typed.value:
            meet_rows(arrived, groups)
            meet(arrived, results, caches)
        saved: list[tuple[Key, Element]] = []
        note_groups(undo, groups, arrived)
        undo.append((forget, arrived))
        undo.append((restore, saved))
        return arrived, saved

    def forget(arrived: Index) -> None:
        for key in arrived:
            caches.pop(key, None)

    return arrive


def _make_grouped(scope: Scope, node: Node, aggregate: Aggregate) -> Step:
    # One closure goes over the batch once: its parts share what they read, and calls would cost more than they do.
    groups: Index = scope.state(node, {})
    results: dict[Key, Element] = scope.state(node, {})
    rankings: dict[Key, Ranking] = scope.cache(node, {})
    ordered = aggregate.form != "user"
    typed = scope.flag(node)
    arrive = _arrivals(scope, node, groups, results, rankings, typed)

    def compute(key: Key, group: dict[Key, int], change: dict[Key, int]) -> Element:
        if not ordered:
            return aggregate.of(GroupView(group) if typed.value else MappingProxyType(group))
        ranking = rankings.get(key)
        if ranking is None:
            if len(group) <= LARGE_GROUP:
                return aggregate.of(GroupView(group) if typed.value else group)
            ranking = rankings[key] = Ranking(aggregate.place)
            change = group
        elif len(group) <= LARGE_GROUP // 4:
            del rankings[key]
            return aggregate.of(GroupView(group) if typed.value else group)
        for value in change:
            ranking.put(natural(value), value, present=group.get(value, 0) > 0)
        return ranking.result(aggregate)

    def step() -> object:
        arrived, saved = arrive()
        changed = []
        for key, change in arrived.items():
            group = groups.setdefault(key, {})
            add_up(group, change.items())
        for key, change in arrived.items():
            old = results.get(key)
            group = groups[key]
            if group:
                new = compute(key, group, change)
            else:
                new = None
                del groups[key]
                rankings.pop(key, None)
            if new is old and (new is None or type(new) in ATOMS):
                continue
            saved.append((key, old))
            if new is None:
                results.pop(key, None)
            else:
                results[key] = new
            changed.append((key, old, new))
        return changes(changed)

    return step


def _make_lattice(scope: Scope, node: Node, aggregate: Aggregate) -> Step:
    """A fold into a lattice: of each group the values with their weights, and the merge of those above 0."""
    # One closure goes over the batch once: its parts share what they read, and calls would cost more than they do.
    groups: Index = scope.state(node, {})
    results: dict[Key, Element] = scope.state(node, {})
    trees: dict[Key, Merges] = scope.cache(node, {})
    arrive = _arrivals(scope, node, groups, results, trees, scope.flag(node))
    merged, element = aggregate.merged, aggregate.element

    def compute(key: Key, old: Element, come: list[Key], gone: list[Key]) -> Element:
        tree = trees.get(key)
        if tree is None:
            if not gone:
                return merged(old, map(natural, come))
            group = groups[key]
            if len(group) <= LARGE_GROUP:
                return merged(None, [natural(value) for value, weight in group.items() if weight > 0])
            tree = trees[key] = Merges()
            come, gone = [value for value, weight in group.items() if weight > 0], []
        for value in gone:
            tree.drop(value)
        for value in come:
            tree.put(value, element(natural(value)))
        return tree.result()

    def step() -> object:
        arrived, saved = arrive()
        changed: list[tuple[Key, Element, Element]] = []
        for key, change in arrived.items():
            group = groups.setdefault(key, {})
            come = [
                value for value, weight in change.items() if group.get(value, 0) <= 0 < group.get(value, 0) + weight
            ]
            gone = [
                value for value, weight in change.items() if group.get(value, 0) + weight <= 0 < group.get(value, 0)
            ]
            add_up(group, change.items())
            old = results.get(key)
            new = compute(key, old, come, gone) if come or gone else old
            if len(group) <= LARGE_GROUP // 4:
                trees.pop(key, None)
            if not group:
                del groups[key]
            if new is not old and not same(old, new):
                saved.append((key, old))
                changed.append((key, old, new))
        for key, _, new in changed:
            if new is None:
                del results[key]
            else:
                results[key] = new
        return changes(
            changed if not aggregate.columns else [(key, shown(old), shown(new)) for key, old, new in changed]
        )

    return step
