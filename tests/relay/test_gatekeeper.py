"""The gatekeeper: who gets in, and what the others learn."""

from __future__ import annotations

from typing import Any

import pytest

from relay.gatekeeper import Accepted, Gatekeeper, Rejected, Resolve
from relay.sturdy import OID, SIG, SturdyRef, mint
from syndicate import Dictionary, Entity, Record, Ref, Symbol, assert_, current_facet, prevent_inert_check, ref
from syndicate.facet import Facet
from syndicate.system import System
from syndicate.testing import settled
from tests.strategies import REFS

KEY = b"sixteen bytes!!!"
FAILED = Rejected(Record("sturdyref-failed-validation"))


class Observer(Entity):
    """Notes the answers that stand."""

    def __init__(self) -> None:
        self.answers: dict[Any, Any] = {}

    def assert_(self, value: Any, handle: Any) -> None:
        self.answers[handle] = value

    def retract(self, handle: Any) -> None:
        del self.answers[handle]


class Gate:
    """A gatekeeper with one name, and somebody who asks."""

    def __init__(self) -> None:
        self.observer = Observer()
        self.system: System = settled(self._boot)

    def _boot(self) -> None:
        self.target = ref(Entity())
        self.gatekeeper = ref(Gatekeeper({"ds": (KEY, self.target)}))
        self.me = ref(self.observer)
        self.facet: Facet = current_facet()
        prevent_inert_check()

    def ask(self, value: Any) -> Any:
        """Assert something to the gatekeeper; the handle."""
        handles: list[Any] = []
        self.facet.enter(lambda: handles.append(assert_(self.gatekeeper, value)))
        self.system.drain()
        return handles[0]

    @property
    def answers(self) -> list[Any]:
        return list(self.observer.answers.values())


@pytest.fixture
def gate() -> Gate:
    """A gatekeeper."""
    return Gate()


def test_a_valid_reference(gate: Gate) -> None:
    """It is answered by the live reference, for as long as the question stands."""
    handle = gate.ask(Resolve(mint("ds", KEY), gate.me))
    assert gate.answers == [Accepted(gate.target)]
    gate.facet.enter(handle.retract)
    gate.system.drain()
    assert gate.answers == []


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        (mint("ds", b""), FAILED),
        (mint("unknown", KEY), FAILED),
        (mint("unknown", b""), FAILED),
        (SturdyRef(Dictionary([(OID, REFS[0]), (SIG, b"x" * 16)])), FAILED),
        (SturdyRef(Dictionary([(OID, "ds")])), FAILED),
        (SturdyRef(1), Rejected(Symbol("invalid"))),
        (SturdyRef(Dictionary()), Rejected(Symbol("invalid"))),
        (Record("noise", [1]), Rejected(Symbol("unsupported"))),
        (5, Rejected(Symbol("unsupported"))),
    ],
)
def test_all_others(gate: Gate, step: Any, answer: Any) -> None:
    """They are refused; whether a name is unknown or a signature wrong looks the same."""
    gate.ask(Resolve(step, gate.me))
    assert gate.answers == [answer]


@pytest.mark.parametrize("value", [1, Resolve(mint("ds", KEY), 5), Record("resolve", [1]), Record("bind", [1, 2, 3])])
def test_what_is_no_question(gate: Gate, value: Any) -> None:
    """It is ignored, and so is its end."""
    handle = gate.ask(value)
    gate.facet.enter(handle.retract)
    gate.system.drain()
    assert gate.answers == []
    assert gate.facet.alive


def test_a_reference_to_nothing_in_particular(gate: Gate) -> None:
    """The observer may be any reference, the gatekeeper's own included."""
    gate.ask(Resolve(mint("ds", KEY), gate.gatekeeper))
    gate.ask(Resolve(mint("ds", KEY), Ref(gate.facet, Entity())))
    assert gate.facet.alive
