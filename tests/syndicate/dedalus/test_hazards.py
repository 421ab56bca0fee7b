"""What is allowed and seldom meant is told, and nothing else."""

from __future__ import annotations

import pytest

from syndicate.dedalus import Program


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("p(X)@async :- d(X), notin q(X); q(X) :- p(X); d(1);", ["its own absence through a message into the past"]),
        ("n(count<X>)@async :- n(X); n(1)@1;", ["a total or a choice of itself through a message"]),
        ("p(X)@later :- d(X), notin p(X); d(1);", []),
        ("p(X)@next :- d(X), notin p(X); q(X)@async :- p(X); d(1);", []),
        ("p(X) :- d(X)@2; d(1)@2;", ["d is read at 2 at all times"]),
        ("post(X) :- d(X)@2; d(1)@2;", []),
    ],
)
def test_hazards(text: str, says: list[str]) -> None:
    """A cycle into the past and a constant time are told, each once; what cannot go wrong is not."""
    program = Program.parse(text)
    assert not program.check()
    found = [one.message for one in program.hazards()]
    assert len(found) == len(says)
    assert all(part in message for part, message in zip(says, found, strict=True))
