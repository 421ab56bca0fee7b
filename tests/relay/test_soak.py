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
    ("memory", "blocks", "lost", "after", "why"),
    [
        ([50, 60, 60, 61], [200, 300, 300, 305], 0, (9, 5, 0), ""),
        ([50, 60, 60, 70, 70, 71, 71], [300] * 7, 0, (9, 5, 0), ""),
        ([50, 60, 64, 68], [300] * 4, 0, (9, 5, 0), "the memory has grown by 8.0 MiB in 20 minutes"),
        ([60, 60, 60, 60], [200, 300, 310, 320], 0, (9, 5, 0), "20000 blocks more are held after 20 minutes"),
        ([60, 60, 60, 70, 70], [200, 300, 300, 340, 340], 0, (9, 5, 0), "48000 blocks more are held after 30 minutes"),
        ([60, 60, 60, 60], [300] * 4, 1, (9, 5, 0), "1 messages came twice or out of their order"),
        ([60, 60, 60, 60], [300] * 4, 0, (10, 5, 0), "10 descriptors are left, and there were 9 at first"),
        ([60, 60, 60, 60], [300] * 4, 0, (9, 5, 1), "1 sessions are left"),
    ],
)
def test_what_it_finds(memory: list[int], blocks: list[int], lost: int, after: tuple[int, int, int], why: str) -> None:
    """Each of its promises can be broken, and a step of the memory alone breaks none."""
    rows = [
        Row(10.0 * n, size * MIB, held * 1000, (9, 5, 3), 0.5, Tally(""))
        for n, (size, held) in enumerate(zip(memory, blocks, strict=True))
    ]
    talk = Talk(wrong=lost)
    result = complaints(rows, talk, (9, 5, 0), after)
    assert len(result) == bool(why)
    assert why in "".join(result)
