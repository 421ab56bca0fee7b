"""What the analysis says of the library's protocols: pinned, so that a rule that loses a guarantee is seen."""

from __future__ import annotations

import pytest

from syndicate.bloom import Bloom
from syndicate.bloom.library.causal import Causal
from syndicate.bloom.library.chord import Chord
from syndicate.bloom.library.commit import Commit
from syndicate.bloom.library.membership import Membership
from syndicate.bloom.library.multicast import CausalMulticast, ReliableMulticast
from syndicate.bloom.library.paxos import Synod
from syndicate.bloom.library.session import Session
from syndicate.bloom.library.three_phase import ThreePhase

CONFLUENT: list[tuple[type[Bloom], set[str]]] = [
    (ReliableMulticast, {"cast", "have", "heard"}),
    (CausalMulticast, set()),
    (Causal, set()),
    (Membership, set()),
    (Session, set()),
    (Chord, set()),
    (Synod, set()),
    (Commit, {"asked", "promise", "request", "vote"}),
    (ThreePhase, {"asked", "promise", "request", "vote"}),
]
"""By program, the outputs that no point of order reaches; all others are diffluent, and none is unknown."""


@pytest.mark.parametrize(("program", "confluent"), CONFLUENT, ids=[one.__name__ for one, _ in CONFLUENT])
def test_verdicts(program: type[Bloom], confluent: set[str]) -> None:
    """Said by the analysis of rules, for all inputs and orders; what is diffluent may differ, and need not."""
    if issubclass(program, (Commit, Synod)):
        program = type(program.__name__, (program,), {"voters": ("a", "b", "c")})
    report = program(address="a").calm()
    assert {one.name for one in report.outputs if one.verdict == "confluent"} == confluent
    assert {one.verdict for one in report.outputs} <= {"confluent", "diffluent"}
