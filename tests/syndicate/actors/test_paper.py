"""Examples, lemmas and claims of "Efficient, Imperative Dataspaces for Conversational Concurrency" (Garnock-Jones)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate import ANY, Entity, Record, Ref, assert_, capture, dataspace, on_message, send
from syndicate.index.event import ASSERT, MESSAGE, RETRACT
from syndicate.index.index import Index
from syndicate.index.path import MISSING, class_of, move, project
from syndicate.index.skeleton import analyse
from syndicate.testing import Seen, settled, watch
from syndicate.values.value import freeze
from tests.strategies import examples

OBSERVERS = [Ref.unbound(Entity()) for _ in range(6)]
A, B, C, X, Y, Z, W = (Record(name, []).label for name in "abcxyzw")


def rec(label: Any, *fields: Any) -> Record:
    """A record, as the paper writes ``x(c, ...)``."""
    return Record(label, list(fields))


PATTERN = rec(X, rec(Y, 3, 4), capture(), rec(Z, ANY, rec(W), ANY), ANY)


def test_the_skeleton_of_the_example() -> None:
    """`p = x(y(3, 4), $v, z(_, w(), _), _)`: shape, constant map, capture map, and the visit of its shape."""
    skeleton, constants = analyse(PATTERN)
    assert skeleton.shape == (((), X), ((0,), Y), ((2,), Z), ((2, 1), W))
    assert dict(zip(skeleton.places, constants, strict=True)) == {(0, 0): 3, (0, 1): 4}
    assert skeleton.checks == (((2, 0), None), ((2, 2), None), ((3,), None))
    assert skeleton.captures == ((1,),)
    assert visit([path for path, _ in skeleton.shape]) == [(0, ()), (0, (0,)), (1, (2,)), (0, (1,))]


PRESENT, SPEAK = rec("present").label, rec("speak").label
INTERESTS = {
    "any user's presence": rec(PRESENT, ANY),
    "every time Alice speaks": rec(SPEAK, "Alice", ANY),
    "each present user": rec(PRESENT, capture()),
    "the things Alice says": rec(SPEAK, "Alice", capture()),
    "who says what": rec(SPEAK, capture(), capture()),
    "who speaks": rec(SPEAK, capture(), ANY),
}


def test_the_interests_of_the_examples() -> None:
    """Discard tells of existence alone, once; capture of each distinct content; of a message each hears each time."""
    seen: dict[str, Seen] = {}

    def boot() -> None:
        ds = dataspace()
        seen.update({name: watch(ds, pattern) for name, pattern in INTERESTS.items()})
        alice = assert_(ds, rec(PRESENT, "Alice"))
        assert_(ds, rec(PRESENT, "Bob"))
        for who, what in (("Alice", "Hello!"), ("Bob", "Hi"), ("Alice", "Hello!")):
            send(ds, rec(SPEAK, who, what))
        alice.retract()

    settled(boot)
    assert {name: list(heard) for name, heard in seen.items()} == {
        "any user's presence": [("+",)],
        "every time Alice speaks": [("!",), ("!",)],
        "each present user": [("+", "Alice"), ("+", "Bob"), ("-", "Alice")],
        "the things Alice says": [("!", "Hello!"), ("!", "Hello!")],
        "who says what": [("!", "Alice", "Hello!"), ("!", "Bob", "Hi"), ("!", "Alice", "Hello!")],
        "who speaks": [("!", "Alice"), ("!", "Bob"), ("!", "Alice")],
    }


@pytest.mark.parametrize("backwards", [False, True])
def test_a_patch_has_no_glitch(backwards: bool) -> None:
    """`[3]` replaced by `[4]` under a subscription to `[_]`: no glitch, in either order."""
    seen: list[Seen] = []

    def boot() -> None:
        ds = dataspace()
        seen.extend([watch(ds, [ANY]), watch(ds, [capture()])])
        three = assert_(ds, [3])

        def replace() -> None:
            if backwards:
                three.retract()
            assert_(ds, [4])
            if not backwards:
                three.retract()

        on_message(ds, "now")(replace)
        send(ds, "now")

    settled(boot)
    assert [list(one) for one in seen] == [[("+",)], [("+", 3), ("+", 4), ("-", 3)]]


# ---------------------------------------------------------------------------------------------------- moves, visits

Paths = list[tuple[int, ...]]


def visit(paths: Paths) -> list[Any]:
    """`absToRel`: from each path to the next."""
    return [move(start, end) for start, end in zip([(), *paths], paths, strict=False)]


def apart(moves: list[Any]) -> Paths:
    """`relToAbs`, by the operator that applies a move: go up, then down."""
    results: Paths = []
    here: tuple[int, ...] = ()
    for up, down in moves:
        here = (*here[: len(here) - up], *down)
        results.append(here)
    return results


def terms(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Terms of few constructors over some leaves."""
    labels = st.sampled_from([A, B, C])
    return st.recursive(leaf, lambda inner: st.builds(Record, labels, st.lists(inner, max_size=3)), max_leaves=6)


PATTERNS = terms(st.sampled_from([1, 2, ANY, ANY]) | st.builds(capture))
VALUES = terms(st.sampled_from([1, 2, 3]))


@given(st.lists(st.lists(st.integers(0, 2), max_size=4).map(tuple)))
def test_visits_are_interconvertible(paths: Paths) -> None:
    """Absolute and relative visits say the same."""
    assert apart(visit(paths)) == paths


def holes(pattern: Any) -> bool:
    """Whether a term is a pattern with something open in it, and not a constant."""
    return any(map(holes, pattern.fields)) if isinstance(pattern, Record) else not isinstance(pattern, int)


def interior(pattern: Any, path: tuple[int, ...] = ()) -> dict[tuple[int, ...], Any]:
    """The constructors of a pattern with their places; a constant is a leaf, as in the paper's `shape h v`."""
    if not isinstance(pattern, Record) or not holes(pattern):
        return {}
    results = {path: freeze(pattern.label)}
    for at, entry in enumerate(pattern.fields):
        results |= interior(entry, (*path, at))
    return results


@given(PATTERNS)
def test_the_lemmas_on_shapes(pattern: Any) -> None:
    """A shape has all and only the interior nodes; in its visit each move but the first goes one step down."""
    shape = analyse(pattern)[0].shape
    if isinstance(pattern, Record) and holes(pattern):
        assert {path for path, _ in shape} >= set(interior(pattern))
    paths = [path for path, _ in shape]
    assert paths == sorted(paths)
    for path in paths:
        assert not path or path[:-1] in paths
    moves = visit([tuple(path) for path in paths])  # type: ignore[arg-type]
    assert moves[:1] in ([], [(0, ())])
    assert all(len(down) == 1 for _, down in moves[1:])


def test_projections_are_partial() -> None:
    """`project` fails where there is no place, `classof` where there is no record."""
    form = freeze(rec(X, 1, rec(Y, 2)))
    assert [project(form, path) for path in ((), (0,), (1, 0), (2,), (0, 0))] == [form, 1, 2, MISSING, MISSING]
    assert (class_of(form), class_of(freeze(3))) == (X, MISSING)


# ------------------------------------------------------------------------------------------------- the index, as it is


class Papers:
    """The paper's index, procedure by procedure: `extend`, `addHandler`, `modify`, `adjustAssertion`."""

    def __init__(self) -> None:
        self.bag: Counter[Any] = Counter()
        self.root = self.node(())
        self.heard: list[tuple[str, Any, Any]] = []

    @staticmethod
    def node(cache: Any) -> dict[str, Any]:
        """A node with its continuation."""
        return {"cache": set(cache), "table": {}, "moves": {}}

    def extend(self, shape: Any) -> dict[str, Any]:
        """The node at the end of a shape."""
        node, here = self.root, ()
        for path, label in shape:
            classes = node["moves"].setdefault(move(here, path), {})
            if label not in classes:
                cache = {v for v in node["cache"] if class_of(project(v, path)) == label}
                classes[label] = self.node(cache)
            node, here = classes[label], path
        return node

    def add_handler(self, pattern: Any, name: Any) -> None:
        """Install a callback, which hears of what is there."""
        skeleton, constants = analyse(pattern)
        values = constants if len(skeleton.places) != 1 else (constants,)
        node = self.extend(skeleton.shape)
        checks = tuple(path for path, _ in skeleton.checks)
        under = (skeleton.places, checks)
        if under not in node["table"]:
            node["table"][under] = {}
            for form in node["cache"]:
                if (key := self.key(form, under)) is not None:
                    node["table"][under].setdefault(key, [set(), {}])[0].add(form)
        cache, handlers = node["table"][under].setdefault(tuple(values), [set(), {}])
        if skeleton.captures not in handlers:
            seen: Counter[Any] = Counter()
            for form in cache:
                if (one := self.many(form, skeleton.captures)) is not None:
                    seen[one] += 1
            handlers[skeleton.captures] = (seen, set())
        bag, callbacks = handlers[skeleton.captures]
        callbacks.add(name)
        self.heard += [("+", name, one) for one in bag]

    @staticmethod
    def many(form: Any, paths: Any) -> Any:
        """`projectMany`."""
        captures = tuple(project(form, path) for path in paths)
        return None if any(one is MISSING for one in captures) else captures

    def key(self, form: Any, under: Any) -> Any:
        """The constants of a value, if it passes the checks."""
        places, checks = under
        return None if self.many(form, checks) is None else self.many(form, places)

    def modify(self, mark: str, form: Any) -> None:
        """The traversal for a change or a message."""

        def at(node: dict[str, Any], places: Any) -> None:
            if mark != "!":
                (node["cache"].add if mark == "+" else node["cache"].discard)(form)
            for under, leaves in node["table"].items():
                if (key := self.key(form, under)) is not None and (mark == "+" or key in leaves):
                    self.at_leaf(mark, form, leaves.setdefault(key, [set(), {}]))
            for (up, down), classes in node["moves"].items():
                path = (*places[-1 - up], *down)
                if (further := classes.get(class_of(project(form, path)))) is not None:
                    at(further, [*places[: len(places) - up], path])

        at(self.root, [()])

    def at_leaf(self, mark: str, form: Any, leaf: Any) -> None:
        """Bags of captures, and who hears of their beginnings and ends."""
        if mark != "!":
            (leaf[0].add if mark == "+" else leaf[0].discard)(form)
        for paths, (bag, callbacks) in leaf[1].items():
            if (result := self.many(form, paths)) is None:
                continue
            before = bag[result]
            bag[result] += {"+": 1, "-": -1, "!": 0}[mark]
            if mark == "!" or bool(before) != bool(bag[result]):
                self.heard += [(mark, name, result) for name in callbacks]
            bag += Counter()
            if not bag[result]:
                del bag[result]

    def adjust(self, form: Any, by: int) -> None:
        """Copies of a value."""
        was = self.bag[form] > 0
        self.bag[form] += by
        if was != (self.bag[form] > 0):
            self.modify("+" if by > 0 else "-", form)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(PATTERNS, min_size=1, max_size=4), st.lists(VALUES, min_size=1, max_size=4), st.data())
def test_the_index_is_the_papers(patterns: list[Any], values: list[Any], data: st.DataObject) -> None:
    """Handlers, assertions with their copies and messages in any order: ours tells what the paper's procedures tell."""
    heard: list[tuple[str, Any, Any]] = []
    names: dict[int, int] = {}

    def tell(kind: int, handler: Any, captures: Any, values: Any, notice: Any) -> None:
        mark = {ASSERT: "+", RETRACT: "-", MESSAGE: "!"}[kind]
        observers = handler.observers if isinstance(handler.observers, dict) else [handler.observers]
        heard.extend((mark, names[id(one)], captures) for one in observers)

    ours, papers = Index(tell), Papers()
    copies: Counter[int] = Counter()
    for _ in range(data.draw(st.integers(1, 14))):
        heard.clear()
        papers.heard.clear()
        action = data.draw(st.sampled_from("hamd"))
        if action == "h" and len(names) < len(OBSERVERS):
            pattern = data.draw(st.sampled_from(patterns))
            number = len(names)
            names[id(OBSERVERS[number])] = number
            skeleton, constants = analyse(pattern)
            heard += [
                ("+", number, message.captures) for message in ours.observe(skeleton, constants, OBSERVERS[number])
            ]
            papers.add_handler(pattern, number)
        else:
            at = data.draw(st.integers(0, len(values) - 1))
            form = freeze(values[at])
            if action == "m":
                ours.send(form)
                papers.modify("!", form)
            elif action == "a" or not copies[at]:
                copies[at] += 1
                ours.add(form)
                papers.adjust(form, 1)
            else:
                copies[at] -= 1
                ours.remove(form)
                papers.adjust(form, -1)
        assert Counter(heard) == Counter(papers.heard)
