"""The soak, for a moment: that it does what it says, and that it finds what is wrong."""

from __future__ import annotations

import pytest
import trio

from relay.tools.bench import Tally
from tests.relay.soak import MIB, Row, Talk, complaints, soak


def test_a_short_one(capsys: pytest.CaptureFixture[str]) -> None:
    """All messages come, and at the end the server is as it was."""
    assert trio.run(soak, 4.0, 2.0, 0.02, 1.0)
    assert capsys.readouterr().out.count("\n| 0 |") == 2


@pytest.mark.parametrize(
    ("memory", "lost", "after", "why"),
    [
        ([50, 60, 60, 61], 0, (9, 5, 0), ""),
        ([50, 60, 64, 68], 0, (9, 5, 0), "the memory has grown by 8.0 MiB in 20 minutes"),
        ([60, 60, 60, 60], 1, (9, 5, 0), "1 messages came twice or out of their order"),
        ([60, 60, 60, 60], 0, (10, 5, 0), "10 descriptors are left, and there were 9 at first"),
        ([60, 60, 60, 60], 0, (9, 5, 1), "1 sessions are left"),
    ],
)
def test_what_it_finds(memory: list[int], lost: int, after: tuple[int, int, int], why: str) -> None:
    """Each of its promises can be broken."""
    rows = [Row(10.0 * n, size * MIB, (9, 5, 3), 0.5, Tally("")) for n, size in enumerate(memory)]
    talk = Talk(wrong=lost)
    result = complaints(rows, talk, (9, 5, 0), after)
    assert len(result) == bool(why)
    assert why in "".join(result)
