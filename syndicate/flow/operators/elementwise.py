"""Linear operators: each works on the batch of the tick alone, and is its own incremental version.

A maker gets the scope and the node, and returns the node's step: a function without arguments that reads the cells of
the node's inputs and returns the batch, which may be empty.  What it needs is bound once, in a closure.

Source: PomoFlow, 2.9.4 to 2.9.8, 2.9.14 and 2.9.15; ``docs/design/flow.md``, "Where PomoFlow is corrected".

Distinct: which elements have a weight above 0, as changes.

On a flat stream one number an element is enough: with its sum before and after the batch, the element appears, goes, or
neither (``H``; PomoFlow's prose about opposite signs is wrong).

In a loop the sum depends on the iteration too.  With ``S(e, i)`` the sum of an element's weights at all times before
``(e, i)`` in product order, the output is ``[S(e,i)>0] - [S(e,i-1)>0] - [S(e-1,i)>0] + [S(e-1,i-1)>0]``: the change
over both clocks.  Past epochs are merged, since only ``e0 < e`` counts.  An element can change at an iteration at
which nothing arrives, if it arrived at an earlier one in this epoch and there is an entry of a past epoch: it is
scheduled.

**Monotone loops** compute the same collection differently.  Where nothing in a loop but joins, unions and the like lies
behind a distinct, the result of the loop is the least set that is closed under its rules, whatever iteration an
element is said to enter at, as long as it then follows from elements that entered before.  So an element keeps its
iteration, though a shorter derivation has come up, and moves only when the derivations up to that iteration are gone.
An edge added to a graph then costs the paths that it makes possible, not all those that it shortens.

Contract of the monotone form: weights of the collections that enter the loop are not negative.  While some are, the
form still ends, which iterating need not, and it is right again when they have been made up for.

Source: PomoFlow, 2.9.3, 2.9.11 and 2.9.18, corrected; ``docs/design/flow.md``, "Distinct" and "Where PomoFlow is
corrected".
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from syndicate.flow.element import (
    Element,
    Key,
    Mixed,
    MixedRows,
    Rows,
    all_plain,
    collect,
    collect_keys,
    is_rearranging,
    key_of,
    keys_of,
    meet,
    mixed,
    natural,
    naturals,
    negated,
    plus,
)
from syndicate.flow.node import Carries, Node
from syndicate.flow.stream import itself, second
from syndicate.flow.undo import put_back
from syndicate.flow.zset import IndexedZSet, ZSet

if TYPE_CHECKING:
    from syndicate.flow.scope import Scope, Step


# ----------------------------------------------------------------------------------------------------- linear operators


def make_map(scope: Scope, node: Node) -> Step:
    """``map``: equal results are added."""
    cells, i, function = scope.cells, scope.inputs(node)[0], node.params["function"]
    check = collect_keys if is_rearranging(function) else collect
    if function is second:
        function = itemgetter(1)

    def step() -> object:
        batch = cells[i]
        if type(batch) is dict:
            return check(list(map(function, batch)), batch.values())
        return mixed(zip([key_of(function(element)) for element in naturals(batch)], batch.values(), strict=True))

    return step


def make_filter(scope: Scope, node: Node) -> Step:
    """``filter``: weights are kept, negative ones too."""
    cells, i, function = scope.cells, scope.inputs(node)[0], node.params["function"]

    def step() -> object:
        batch = cells[i]
        if type(batch) is dict:
            return {element: weight for element, weight in batch.items() if function(element)}
        return Mixed((key, weight) for key, weight in batch.items() if function(natural(key)))

    return step


def make_flat_map(scope: Scope, node: Node) -> Step:
    """``flat_map``: each element becomes as many as the function gives."""
    cells, i, function = scope.cells, scope.inputs(node)[0], node.params["function"]
    check = collect_keys if is_rearranging(function) else collect

    def step() -> object:
        elements: list[Element] = []
        weights: list[int] = []
        batch = cells[i]
        for key, weight in batch.items():
            start = len(elements)
            elements += function(natural(key))
            weights += [weight] * (len(elements) - start)
        return check(elements, weights) if type(batch) is dict else collect(elements, weights)

    return step


def make_index_with(scope: Scope, node: Node) -> Step:
    """``index_with``: rows ``(key, value, weight)``, not consolidated, since every consumer adds them up anyway."""
    cells, i = scope.cells, scope.inputs(node)[0]
    key, value = node.params["key"], node.params["value"]
    plain_key, plain_value = is_rearranging(key), value is None or is_rearranging(value)
    plain = plain_key and plain_value

    def step() -> object:
        batch = cells[i]
        if type(batch) is not dict:
            return typed(batch)
        if plain and len(batch) == 1:
            ((element, weight),) = batch.items()
            return Rows(((key(element), element if value is None else value(element), weight),))
        keys = batch if key is itself else list(map(key, batch))
        values = batch if value is None else list(map(value, batch))
        if (plain_key or all_plain(keys)) and (plain_value or all_plain(values)):
            return Rows(zip(keys, values, batch.values(), strict=True))
        return typed(batch)

    def typed(batch: dict[Element, int]) -> MixedRows:
        elements = naturals(batch)
        keys, _ = keys_of(list(map(key, elements)))
        values = list(batch) if value is None else keys_of(list(map(value, elements)))[0]
        return MixedRows(zip(keys, values, batch.values(), strict=True))

    return step


def make_negate(scope: Scope, node: Node) -> Step:
    """``negate``."""
    cells, i = scope.cells, scope.inputs(node)[0]
    if node.carries[0] is Carries.INDEXED:
        return lambda: negated_rows(cells[i])
    return lambda: negated(cells[i])


def negated_rows(rows: Rows) -> Rows:
    """Rows with opposite weights."""
    return type(rows)((key, value, -weight) for key, value, weight in rows)


def added_rows(a: Rows, b: Rows) -> Rows:
    """The sum of two batches of rows."""
    if not a:
        return b
    if not b:
        return a
    return (MixedRows if MixedRows in (type(a), type(b)) else Rows)([*a, *b])


def make_plus(scope: Scope, node: Node) -> Step:
    """``plus``; one side, if the other is empty."""
    cells, (i, j) = scope.cells, scope.inputs(node)
    if node.carries[0] is Carries.INDEXED:
        return lambda: added_rows(cells[i], cells[j])

    def step() -> object:
        one, other = cells[i], cells[j]
        return plus(one, other) if one and other else one or other

    return step


def make_minus(scope: Scope, node: Node) -> Step:
    """``minus``."""
    cells, (i, j) = scope.cells, scope.inputs(node)
    if node.carries[0] is Carries.INDEXED:
        return lambda: added_rows(cells[i], negated_rows(cells[j])) if cells[j] else cells[i]
    return lambda: plus(cells[i], negated(cells[j])) if cells[j] else cells[i]


def make_forward(scope: Scope, node: Node) -> Step:
    """``forward``: what it was connected to."""
    cells, i = scope.cells, scope.inputs(node)[0]
    return lambda: cells[i]


def make_pairs(scope: Scope, node: Node) -> Step:
    """``pairs``: rows as elements ``(key, value)``."""
    cells, i = scope.cells, scope.inputs(node)[0]

    def step() -> object:
        rows = cells[i]
        if type(rows) is Rows:
            return collect_keys([row[:2] for row in rows], [row[2] for row in rows])
        return mixed((key_of((natural(key), natural(value))), weight) for key, value, weight in rows)

    return step


def _column(scope: Scope, node: Node, column: int) -> Step:
    cells, i = scope.cells, scope.inputs(node)[0]

    def step() -> object:
        rows = cells[i]
        if type(rows) is Rows:
            return collect_keys([row[column] for row in rows], [row[2] for row in rows])
        return mixed((row[column], row[2]) for row in rows)

    return step


def make_keys(scope: Scope, node: Node) -> Step:
    """``keys``."""
    return _column(scope, node, 0)


def make_values(scope: Scope, node: Node) -> Step:
    """``values``."""
    return _column(scope, node, 1)


def make_inspect(scope: Scope, node: Node) -> Step:
    """``inspect``: runs in every tick, so that the callback sees empty batches too."""
    cells, i, callback = scope.cells, scope.inputs(node)[0], node.params["callback"]
    show = IndexedZSet.adopt if node.carries[0] is Carries.INDEXED else ZSet.adopt
    scope.run_always(node)
    scope.engine.is_inspected = True

    def step() -> object:
        callback(show(cells[i]))
        return cells[i]

    return step


# ------------------------------------------------------------------------------------------------------------- distinct


_NO_PROFILES: Final = (None,)
Profile: TypeAlias = tuple[int, ...]
"""The derivations of one element: iteration, weight, next iteration, weight, ...; a tuple, since there are many and
nearly all are alike."""


def paired(rows: dict[Key, int] | Rows) -> dict[Key, int]:
    """Rows as a canonical batch of pairs, for what must see each pair once."""
    if not isinstance(rows, list):
        return rows
    pairs, weights = [row[:2] for row in rows], [row[2] for row in rows]
    batch = collect_keys(pairs, weights)
    return Mixed(batch) if type(rows) is MixedRows else batch


def unpaired(batch: dict[Key, int]) -> Rows:
    """A batch of pairs as rows."""
    rows = ((key, value, weight) for (key, value), weight in batch.items())
    return MixedRows(rows) if type(batch) is Mixed else Rows(rows)


def whole(batch: dict[Key, int]) -> dict[Key, int]:
    """A batch of pairs as one of elements: whether a pair is typed is asked of the whole of it."""
    if type(batch) is not Mixed:
        return batch
    return Mixed((key_of((natural(key), natural(value))), weight) for (key, value), weight in batch.items())


def like(batch: dict[Key, int]) -> dict[Key, int]:
    """An empty batch of the same kind."""
    return Mixed() if type(batch) is Mixed else {}


def make_distinct_stream(scope: Scope, node: Node) -> Step:
    """``distinct_stream``: of this tick's batch."""
    cells, i = scope.cells, scope.inputs(node)[0]

    def step() -> object:
        batch = paired(cells[i])
        out = like(batch)
        out.update((key, 1) for key, weight in batch.items() if weight > 0)
        return out if batch is cells[i] else unpaired(out)

    return step


def make_flat_distinct(scope: Scope, node: Node) -> Step:
    """``distinct`` of a flat stream; gives pairs where the stream is indexed."""
    cells, i, undo = scope.cells, scope.inputs(node)[0], scope.undo
    state: dict[Key, int] = scope.state(node, {})

    def step() -> dict[Key, int]:
        batch = cells[i]
        if not isinstance(batch, dict):
            batch = paired(batch)
        out: dict[Key, int] = {}
        if type(batch) is Mixed:
            out = Mixed()
            meet(batch, state)
        olds = list(map(state.get, batch))  # as note() does: each tick comes by here
        undo.append((put_back, (state, batch, olds)))
        for (key, weight), old in zip(batch.items(), olds, strict=True):
            if old is None:
                state[key] = weight
                if weight > 0:
                    out[key] = 1
                continue
            new = old + weight
            if new:
                state[key] = new
            else:
                del state[key]
            if old <= 0:
                if new > 0:
                    out[key] = 1
            elif new <= 0:
                out[key] = -1
        return out

    return step if node.carries[0] is Carries.ZSET else lambda: unpaired(step())


def make_monotone_distinct(scope: Scope, node: Node) -> Step:  # noqa: C901  # one pass over the batch, the hottest of all
    """``distinct`` in a monotone loop; gives pairs where the stream is indexed."""
    cells, i, undo = scope.cells, scope.inputs(node)[0], scope.undo
    # An element's derivations by iteration, and the iteration at which it is in the set.
    derived: dict[Key, Profile] = scope.state(node, {})
    entered: dict[Key, int] = scope.state(node, {})
    wanted: dict[int, dict[Key, None]] = scope.put_aside(node)
    # In the set without any derivation, until the iteration comes at which they leave.
    orphans: set[Key] = scope.passing(set())
    typed = scope.flag(node)

    def step() -> object:
        now: int = scope.now
        batch = paired(cells[i])
        if len(batch) == 1 and not (wanted or orphans or typed.value) and type(batch) is dict:
            ((key, weight),) = batch.items()
            if weight > 0 and key not in derived:  # all there is to a step along a chain
                out: dict[Key, int] = {key: 1}
                undo.append((take_back, (batch, _NO_PROFILES, out, now)))
                derived[key] = (now, weight)
                entered[key] = now
                return out
        if type(batch) is Mixed:
            typed.value = True
            meet(batch, derived, entered, orphans)
        out = Mixed() if typed.value else {}
        later: dict[int, list[Key]] = {}
        look, since = derived.get, entered.get
        profiles: list[Profile | None] = []
        remember = profiles.append
        undo.append((take_back, (batch, profiles, out, now)))
        once = (now, 1)
        due = wanted.pop(now, {})
        for key, weight in batch.items():
            profile = look(key)
            remember(profile)
            if profile is None and key not in orphans:
                if weight > 0:
                    out[key] = 1
                    derived[key] = once if weight == 1 else (now, weight)
                    entered[key] = now
                else:
                    derived[key] = (now, weight)
                continue
            if profile and weight > 0 and profile[0] < now and profile[1] > 0 and key not in due:
                derived[key] = added(profile, now, weight)  # one derivation more of what is in the set
                continue
            at = since(key)
            new = added(profile, now, weight)
            if new:
                derived[key] = new
                if orphans:
                    orphans.discard(key)
            else:
                del derived[key]
                if at is not None and at > now:
                    orphans.add(key)
            if at is None or at == now:
                decide(key, new, at, now, out, later)
            elif weight < 0 and now < at:
                later.setdefault(at, []).append(key)
        for key in due:
            if key not in batch:
                at = since(key)
                if at is None or at == now:
                    decide(key, look(key, ()), at, now, out, later)
        for time, keys in later.items():
            wanted.setdefault(time, {}).update(dict.fromkeys(keys))
            scope.schedule(time, node)
        return out

    def decide(
        key: Key, profile: Profile, at: int | None, now: int, out: dict[Key, int], later: dict[int, list[Key]]
    ) -> None:
        total, following = 0, 0
        for n in range(0, len(profile), 2):
            if profile[n] > now:
                following = profile[n]
                break
            total += profile[n + 1]
        if total > 0:
            if at is None:
                out[key] = 1  # before the change: it notes what was there
                entered[key] = now
            return
        if at is not None:
            out[key] = -1
            del entered[key]
            orphans.discard(key)
        if following:
            later.setdefault(following, []).append(key)

    def take_back(what: tuple[dict[Key, int], Sequence[Profile | None], dict[Key, int], int]) -> None:
        batch, profiles, out, time = what
        for key, profile in zip(batch, profiles, strict=False):  # those that it came to
            if profile is None:
                derived.pop(key, None)
            else:
                derived[key] = profile
        for key, weight in out.items():  # what left had entered at this time
            if weight > 0:
                entered.pop(key, None)
            else:
                entered[key] = time

    return step


def added(profile: Profile | None, time: int, weight: int) -> Profile:
    """A profile with a weight added at a time; the empty one for nothing at all.

    >>> added((3, 1), 5, 2), added((3, 1, 5, 2), 3, -1), added((3, 1), 3, -1), added((5, 1), 3, 1)
    ((3, 1, 5, 2), (5, 2), (), (3, 1, 5, 1))
    """
    if not profile:
        return (time, weight)
    if time > profile[-2]:
        return (*profile, time, weight)
    n = 0
    while profile[n] < time:
        n += 2
    if profile[n] > time:
        return (*profile[:n], time, weight, *profile[n:])
    total = profile[n + 1] + weight
    return (*profile[:n], time, total, *profile[n + 2 :]) if total else (*profile[:n], *profile[n + 2 :])


def make_distinct_incremental(scope: Scope, node: Node) -> Step:
    """``distinct_incremental``: the batch against the totals of a trace that does not hold it yet."""
    cells, (i, j) = scope.cells, scope.inputs(node)

    def step() -> object:
        batch, view = paired(cells[i]), cells[j]
        indexed = batch is not cells[i]
        out = like(batch)
        for key, weight in batch.items():
            old = view.total(*key) if indexed else view.total(key)
            if old <= 0 < old + weight:
                out[key] = 1
            elif old + weight <= 0 < old:
                out[key] = -1
        return whole(out) if indexed else out

    return step
