"""The log of a stream, against a model: random batches, restarts, and a Spark that asks for any span it may ask for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.spark.change_log import Change, FeedLog
from syndicate.errors import SourceError

steps = st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=30)


def summed(changes: list[Change]) -> Counter[object]:
    """What they change, whatever their order."""
    sums: Counter[object] = Counter()
    for row, weight in changes:
        sums[row] += weight
    return Counter({row: weight for row, weight in sums.items() if weight})


@given(
    batches=st.lists(st.sets(st.integers(0, 9), min_size=1), min_size=1, max_size=8),
    forgotten=st.integers(0, 8),
    restart=st.booleans(),
)
def test_each_span_is_what_was_put_in(batches: list[set[int]], forgotten: int, restart: bool) -> None:
    """A batch toggles rows; every span that may be asked for is the sum of its batches, from the beginning too."""
    forgotten = min(forgotten, len(batches))
    states = [set[int]()]
    with TemporaryDirectory() as directory:
        file = Path(directory, "log")
        log = FeedLog(file, "about")
        name = log.run
        for toggled in batches:
            states.append(states[-1] ^ toggled)
            log.append([((0, n), 1 if n in states[-1] else -1) for n in toggled])
        log.forget(forgotten)
        if restart:
            log.close()
            log = FeedLog(file, "about")
        assert (log.run, log.last, log.first) == (name, len(batches), forgotten)
        assert set(log.asserted()) == {(0, n) for n in states[-1]}
        for start in [0, *range(max(1, forgotten), len(batches) + 1)]:
            for end in range(max(start, forgotten), len(batches) + 1):
                expected = {n: (n in states[end]) - (n in states[start]) for n in states[start] | states[end]}
                assert summed(log.between(start, end)) == {(0, n): w for n, w in expected.items() if w}
        log.close()


def test_what_was_forgotten_or_never_was_is_no_span(tmp_path: Path) -> None:
    """A checkpoint that is older than the log, or newer, is another one's: that is said, with the remedy."""
    log = FeedLog(tmp_path / "log")
    for n in range(4):
        log.append([((n,), 1)])
    log.forget(3)
    for start, end in ((2, 4), (3, 5)):
        with pytest.raises(SourceError, match="checkpoint and log belong together"):
            log.between(start, end)
    log.close()


def test_one_log_for_one_stream(tmp_path: Path) -> None:
    """Two streams on one log, at once or one after the other, are refused, and nothing is changed."""
    log = FeedLog(tmp_path / "log", "assertions of <A $x>")
    with pytest.raises(SourceError, match=r"(?s)in use.*the option log"):
        FeedLog(tmp_path / "log", "assertions of <A $x>")
    log.append([(("a",), 1)])
    log.close()
    with pytest.raises(SourceError, match=r"is the log of another stream, assertions of <A \$x>"):
        FeedLog(tmp_path / "log", "assertions of <B $x>")
    again = FeedLog(tmp_path / "log", "assertions of <A $x>")
    assert again.between(0, 1) == [(("a",), 1)]
    again.close()


def test_messages_are_all_there(tmp_path: Path) -> None:
    """Equal messages are two rows, and none stands."""
    log = FeedLog(tmp_path / "log")
    log.append([(("a",), 1), (("a",), 1)], stand=False)
    log.append([(("a",), 1)], stand=False)
    log.close()
    log = FeedLog(tmp_path / "log")
    assert log.messages(0, 2) == [(("a",), 1)] * 3
    assert list(log.asserted()) == []
    log.forget(2)
    assert log.messages(0, 2) == []
    log.close()
