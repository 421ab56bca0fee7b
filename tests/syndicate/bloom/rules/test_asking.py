"""What is asked of rows, and the rest of the methods of rows (``docs/design/bloom.md``, "Methods of rows")."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random
from typing import Any

import pytest

from syndicate.bloom import Bloom, agg, bloom, coll_expr, scratch, table
from syndicate.errors import BloomDeclaration, IllegalRule, RowMisfit, RuleFailed, StepFailed


def made(block: Any, **declared: Any) -> Any:
    """A program of one block."""

    def rules(self: Any) -> None:
        block(self)

    return type("P", (Bloom,), {**declared, "rules_": bloom(rules)})()


def test_questions() -> None:
    """Each has one row as long as it holds, also when rows go."""
    names = ("length", "empty", "any", "big", "none", "all", "one", "member", "called", "has")

    def block(self: Any) -> None:
        t = self.t
        self.length <= t.length()
        self.empty <= t.empty()
        self.any <= t.any()
        self.big <= t.any(lambda r: r.v > 5)
        self.none <= t.none(lambda r: r.v > 5)
        self.all <= t.all(lambda r: r.v > 5)
        self.one <= t.one(lambda r: r.v > 5)
        self.member <= t.member("a", 1).map(lambda r: (r.k,))
        self.called <= t.on_include(("a", 1), lambda r: (r.v,))
        self.has <= t.has_key("b").map(lambda r: (r.v,))

    p = made(block, t=scratch(["k"], ["v"]), **{name: scratch(["x"], []) for name in names})
    rng = random.Random(1)
    for _ in range(30):
        rows = {(rng.choice("abc"), rng.randrange(10)) for _ in range(rng.randrange(4))}
        rows = set(dict(rows).items())
        p.t <= sorted(rows)
        p.tick()
        big = [row for row in rows if row[1] > 5]
        results = {name: {row[0] for row in p.collection(name)} for name in names}
        assert results == {
            "length": {len(rows)},
            "empty": {True} if not rows else set(),
            "any": {True} if rows else set(),
            "big": {True} if big else set(),
            "none": {True} if not big else set(),
            "all": {True} if len(big) == len(rows) else set(),
            "one": {True} if len(big) == 1 else set(),
            "member": {"a"} & {row[0] for row in rows if row == ("a", 1)},
            "called": {1} & {row[1] for row in rows if row == ("a", 1)},
            "has": {row[1] for row in rows if row[0] == "b"},
        }
        assert p.t.has_key("b") == any(row[0] == "b" for row in rows)


def test_columns_as_rows_and_as_names() -> None:
    """Keys, values, and what a schema is called; other names for the same methods."""

    def block(self: Any) -> None:
        self.keys_of <= self.t.keys()
        self.values_of <= self.t.values()
        self.projected <= self.t.pro(lambda r: (r.c, r.a))
        self.injected <= self.t.inject(set(), lambda memo, r: memo | {(r.c,)})

    p = made(
        block,
        t=table(["a", "b"], ["c"]),
        keys_of=scratch(["a", "b"], []),
        values_of=scratch(["c"], []),
        projected=scratch(["c", "a"], []),
        injected=scratch(["c"], []),
    )
    p.t <= [(1, 2, 3), (4, 5, 3)]
    p.tick()
    assert (sorted(p.keys_of), list(p.values_of)) == ([(1, 2), (4, 5)], [(3,)])
    assert (sorted(p.projected), list(p.injected)) == ([(3, 1), (3, 4)], [(3,)])
    assert (p.t.tabname, p.t.cols, p.t.key_cols, p.t.val_cols) == ("t", ("a", "b", "c"), ("a", "b"), ("c",))
    assert p.t.schema == (("a", "b"), ("c",))
    with pytest.raises(IllegalRule, match=r"test_asking.py:\d+: t has 2 columns in its key"):
        made(lambda self: self.s <= self.t.has_key(1), t=table(["a", "b"], []), s=scratch(["a", "b"], []))


def test_a_function_called_in_each_tick() -> None:
    """Its rows are there for that tick; nobody may write them; if it raises, the tick did not happen."""
    numbers: Any = iter([[(1, "a")], [(2, None)], []])
    p = made(
        lambda self: self.seen <= self.now_and_then,
        now_and_then=coll_expr(lambda: next(numbers), ["n"], ["v"]),
        seen=scratch(["n"], ["v"]),
    )
    seen = []
    for _ in range(3):
        p.tick()
        seen.append(list(p.seen))
    assert seen == [[(1, "a")], [(2, None)], []]
    with pytest.raises(RuleFailed, match=r"test_asking.py:\d+: now_and_then raised StopIteration"):
        p.tick()
    with pytest.raises(IllegalRule, match="coll_expr"):
        p.now_and_then <= [(1, 2)]
    with pytest.raises(BloomDeclaration, match="a function without arguments"):
        coll_expr([(1, 2)])  # type: ignore[arg-type]


def test_chosen_at_random_by_a_seed() -> None:
    """The same seed chooses the same of the same rows, whatever their order; others choose others."""

    def chosen(seed: int, rows: list[tuple[int, int]]) -> tuple[Any, Any]:
        def block(self: Any) -> None:
            self.value <= self.t.group(["k"], agg.choose_rand("v", seed=seed))
            self.row <= self.t.argagg(lambda column: agg.choose_rand(column, seed=seed), ["k"], "v")

        p = made(block, t=table(["k", "v"], []), value=scratch(["k"], ["v"]), row=scratch(["k", "v"], []))
        for some in rows:
            p.t <= [some]
            p.tick()
        assert sorted(p.value) == sorted(p.row)
        return tuple(sorted(p.value))

    rows = [(k, v) for k in range(2) for v in range(6)]
    for seed in range(5):
        assert chosen(seed, rows) == chosen(seed, rows[::-1])
    assert len({chosen(seed, rows) for seed in range(8)}) > 3


def test_a_users_choice_of_rows() -> None:
    """``trans`` says what is chosen; ties are kept by ``argagg``, and ``group`` takes the first."""

    def longest(column: Any) -> Any:
        def trans(best: str, word: str) -> str:
            return "replace" if len(word) > len(best) else "keep" if len(word) == len(best) else "ignore"

        return agg.exemplary(column, trans)

    def block(self: Any) -> None:
        self.rows <= self.t.argagg(longest, ["k"], "word")
        self.first <= self.t.group(["k"], longest("word"), agg.count())

    p = made(block, t=table(["k", "word"], []), rows=scratch(["k", "word"], []), first=scratch(["k"], ["word", "n"]))
    p.t <= [(1, "a"), (1, "bb"), (1, "cc"), (2, "ddd")]
    p.tick()
    assert (sorted(p.rows), sorted(p.first)) == ([(1, "bb"), (1, "cc"), (2, "ddd")], [(1, "bb", 3), (2, "ddd", 1)])
    p.t <= [(1, "eee")]
    p.tick()
    assert sorted(p.rows) == [(1, "eee"), (2, "ddd")]
    q = made(
        lambda self: self.s <= self.t.group([], agg.exemplary("a", lambda *_: "maybe")),
        t=table(["a"], []),
        s=scratch(["a"], []),
    )
    q.t <= [(1,), (2,)]
    with pytest.raises((RowMisfit, StepFailed), match="'ignore', 'keep' or 'replace', not 'maybe'"):
        q.tick()
