"""Errors as data: each can be pickled and copied with its fields, and those of a step say what its message says."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterator

import pytest

from syndicate import errors
from syndicate.bloom import Bloom, bloom, table
from syndicate.dedalus import Program
from syndicate.errors import (
    ConfigError,
    DedalusArithmetic,
    DedalusEndless,
    DedalusRejected,
    EndlessLoop,
    NotInTurn,
    RuleFailed,
    StepFailed,
    SyndicateError,
    UnhashableElement,
)
from syndicate.flow import Circuit, Stream


def every_class(root: type[SyndicateError] = SyndicateError) -> Iterator[type[SyndicateError]]:
    """The public errors."""
    for one in vars(errors).values():
        if inspect.isclass(one) and issubclass(one, root):
            yield one


def filled(cls: type[SyndicateError]) -> SyndicateError:
    """An error with a value for each argument that it takes."""
    samples: dict[str, object] = {
        "what": "publish",
        "problems": ["a.toml:3: no", "a.toml:4: no"],
        "cycle": [("p", "q", "negation", "p.ded:1")],
        "diagnostics": ["d"],
        "partial": {"states": 3},
    }
    numbers = ("line", "column", "iterations", "time")
    if cls.__init__ in (Exception.__init__, OSError.__init__, ImportError.__init__) or cls.__init__ is object.__init__:
        return cls("a text: with a place")
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return cls("a text: with a place")
    values = {
        one.name: samples.get(one.name, 7 if one.name in numbers else f"the {one.name}")
        if one.name not in ("sites", "relations")
        else ["a.py:1", "b.py:2"]
        for one in parameters
    }
    keywords = {one.name: values[one.name] for one in parameters if one.kind is one.KEYWORD_ONLY}
    return cls(*[values[one.name] for one in parameters if one.name not in keywords], **keywords)


@pytest.mark.parametrize("cls", list(every_class()), ids=lambda cls: cls.__name__)
def test_an_error_is_pickled_and_copied_with_its_fields(cls: type[SyndicateError]) -> None:
    """The text and all fields are what they were, for each class and each protocol."""
    error = filled(cls)
    error.add_note("seen in a test")
    others = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for other in [*others, copy.copy(error), copy.deepcopy(error)]:
        assert type(other) is cls
        assert str(other) == str(error)
        assert other.args == error.args
        assert vars(other) == vars(error)


def test_fields_are_filled() -> None:
    """The samples above reach the classes that have fields: else the test above would show nothing."""
    kinds = (StepFailed, EndlessLoop, RuleFailed, UnhashableElement, DedalusArithmetic, DedalusEndless)
    for cls in (*kinds, ConfigError, NotInTurn, DedalusRejected):
        assert vars(filled(cls)), cls


def test_a_step_that_failed_says_where() -> None:
    """The operation, the name and the arguments, which stand in the message, too."""
    circuit = Circuit()
    circuit.sink("out", circuit.source("in").map(lambda x: 1 // x).named("inverse"))
    with pytest.raises(StepFailed) as caught:
        circuit.step({"in": {0: 1}})
    error = caught.value
    assert (error.operator, error.label, error.element) == ("map", "inverse", "0")
    assert error.reason.startswith("ZeroDivisionError: ")
    assert f'{error.operator} "{error.label}" ' in str(error)
    assert f"raised {error.reason} at {error.element}." in str(error)


def test_an_element_without_identity_says_where() -> None:
    """The node, as for any other failure."""
    circuit = Circuit()
    circuit.sink("out", circuit.source("in").map(lambda x: [x]).named("boxed"))
    with pytest.raises(UnhashableElement) as caught:
        circuit.step({"in": {0: 1}})
    assert (caught.value.operator, caught.value.label) == ("map", "boxed")
    assert str(caught.value).endswith(f": {caught.value.reason}")


def test_a_loop_without_end_says_how_long_it_ran() -> None:
    """Its name and its bound."""
    circuit = Circuit()
    numbers = circuit.source("in")

    def body(loop: Stream) -> Stream:
        return numbers.plus(loop.map(lambda n: n + 1))

    circuit.sink("out", circuit.recursive(body, name="counting", limit=40))
    with pytest.raises(EndlessLoop) as caught:
        circuit.step({"in": {0: 1}})
    assert (caught.value.label, caught.value.iterations) == ("counting", 40)


class Halving(Bloom):
    """A rule whose function fails at zero, and one that never rests."""

    given = table(["n"])
    halves = table(["n"])

    @bloom
    def rules(self) -> None:
        """Both."""
        self.halves <= self.given.map(lambda row: (1 // row.n,))  # noqa: B015


def test_a_rule_that_failed_says_which() -> None:
    """Its file and line."""
    program = Halving()
    program.given.insert([(0,)])
    with pytest.raises(RuleFailed) as caught:
        program.tick()
    site = caught.value.site
    assert str(caught.value).startswith(f"{site}: ")
    assert site.rpartition(":")[0] == __file__
    assert int(site.rpartition(":")[2]) > 100


def test_arithmetic_says_which_rule_and_when() -> None:
    """The rule's text and place, and the timestep."""
    with pytest.raises(DedalusArithmetic) as caught:
        Program.parse("p(0)@3;\nq(X / X) :- p(X);").run(until=5)
    error = caught.value
    assert (error.time, error.rule) == (3, "q(X / X) :- p(X);")
    assert error.site == "program:2:1"
    assert str(error).startswith(f"{error.site}: at time 3: ")
