"""What a step is given: one reading of it, whoever reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

import pytest

from syndicate.errors import CircuitError, FactError, SyndicateError
from syndicate.flow import Circuit, IndexedZSet, TimedZSet, Trace, ZSet
from syndicate.plan import Program, evaluate

EDGES = [(1, 2), (3, 4)]


def by_circuit(inputs: Any) -> Any:
    """A plain source."""
    c = Circuit()
    c.sink("out", c.source("e"))
    return c.step({"e": inputs})["out"]


def by_key(inputs: Any) -> Any:
    """A source with a key."""
    c = Circuit()
    c.sink("out", c.source("e", key=itemgetter(0)))
    return c.step({"e": inputs})["out"]


def by_plan(inputs: Any) -> Any:
    """A relation."""
    program = Program()
    program.rule("out", program.edb("e", "a", "b", bag=True))
    return program.plan(bag=True).step({"e": inputs})["out"]


def by_evaluation(inputs: Any) -> Any:
    """A relation, once."""
    program = Program()
    program.rule("out", program.edb("e", "a", "b"))
    return ZSet.of(*evaluate(program, {"e": inputs})["out"])


READERS: tuple[Callable[[Any], Any], ...] = (by_circuit, by_key, by_plan, by_evaluation)
FORMS: dict[str, Callable[[Iterable[Any]], Any]] = {
    "list": list,
    "set": set,
    "frozenset": frozenset,
    "keys": lambda edges: dict.fromkeys(edges).keys(),
    "iterator": iter,
    "generator": lambda edges: (edge for edge in edges),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_a_collection_holds_elements(reader: Callable[[Any], Any], form: str) -> None:
    """Pairs, too, are elements, each of weight 1, and no elements with weights."""
    assert reader(FORMS[form](EDGES)) == ZSet.of(*EDGES)


@pytest.mark.parametrize("reader", [by_circuit, by_plan], ids=lambda reader: reader.__name__)
def test_what_is_listed_twice_counts_twice(reader: Callable[[Any], Any]) -> None:
    """Each occurrence is once more; weights of one's own are a mapping or a ZSet."""
    assert reader([*EDGES, (1, 2)]) == reader({(1, 2): 2, (3, 4): 1}) == reader(ZSet([((1, 2), 2), ((3, 4), 1)]))
    assert reader({(1, 2): 2, (3, 4): 1}) == ZSet({(1, 2): 2, (3, 4): 1})


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.parametrize(
    "inputs", [None, 3, "ab", b"ab", (1, 2), IndexedZSet({(1, 2): 1}), TimedZSet({}), Trace()], ids=repr
)
def test_what_is_no_change_is_refused(reader: Callable[[Any], Any], inputs: Any) -> None:
    """Nothing else is taken for elements: a tuple is one, and so is a text."""
    with pytest.raises((CircuitError, FactError), match="takes"):
        reader(inputs)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_lists_within_a_list_are_refused(reader: Callable[[Any], Any]) -> None:
    """With the remedy."""
    with pytest.raises(SyndicateError, match="tuple"):
        reader([[1, 2]])
