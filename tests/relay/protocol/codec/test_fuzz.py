"""20,000 mutated frames for each codec: see fuzz.py, which runs for longer by itself, and in `make nightly`."""

from __future__ import annotations

import pytest

from tests.relay.protocol.codec.fuzz import CODECS, fuzz

FRAMES = 20_000
SHARDS = 2


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("name", CODECS)
def test_mutated_frames_give_packets_or_protocol_errors(name: str, shard: int) -> None:
    """Nothing else escapes, no frame takes 50 ms, a cut changes nothing, and memory does not grow."""
    report = fuzz(name, shard, FRAMES // SHARDS)
    print(f"{name}, seed {shard}: {report}")
    assert report.frames == FRAMES // SHARDS
    assert report.refused > report.frames // 3  # the mutants are ill enough
    assert report.packets > report.frames // 20  # and well enough
    assert report.memory < 64 * 1024
