"""A source that is killed, again and again: what is asserted is what an independent replay of the input says.

``SYNDICATE_SPARK_CRASHES=n`` runs n orders of all points without Spark, and all points with Spark (`make nightly`).
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from syndicate import ANY
from tests.syndicate.spark.crashing import POINTS, Box
from tests.syndicate.spark.killing import MANY, Case, States, crash_and_restart, journalled, make_input


def kept(directory: Path, states: States) -> int:
    """The journal holds what was asserted after its last batch."""
    last, view = journalled(directory)
    assert view == states[last + 1], f"after batch {last}"
    return last


SOURCE = Case("crashing", [Box(ANY, ANY)], set, kept)


@pytest.mark.timeout(900 + 60 * MANY)
@pytest.mark.parametrize("seed", range(max(1, MANY)))
async def test_killed_at_every_point(tmp_path: Path, seed: int) -> None:
    """Before and after each of plan, write, commit, send and ack, in a random order: nothing is lost or doubled."""
    points = random.Random(seed).sample(POINTS, len(POINTS))
    await crash_and_restart(SOURCE, tmp_path, "files", points, make_input(tmp_path, 12, seed))


@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not MANY, reason="opens a session for each point: `make nightly` runs it")
async def test_killed_with_spark(tmp_path: Path) -> None:
    """The same with Spark's stream."""
    await crash_and_restart(SOURCE, tmp_path, "spark", POINTS, make_input(tmp_path, 12, 7))
