"""The parts of a simulation: trio's private names, the clock, tapes, histories, properties, disks."""

from __future__ import annotations

import time
from random import Random

import pytest
import trio
from trio._core import _run

from syndicate.errors import ScenarioMisuse, TapeLeft
from syndicate.simulation.clock import VirtualClock, deterministic
from syndicate.simulation.disk import SimulatedDisk
from syndicate.simulation.history import History
from syndicate.simulation.properties import Properties
from syndicate.simulation.tape import Tape
from syndicate.storage.disk import Commit, StoredRow


def test_the_private_names_of_trio_are_there() -> None:
    """A new version of trio without them must fail here, and not be a little less deterministic."""
    assert isinstance(_run._ALLOW_DETERMINISTIC_SCHEDULING, bool)
    assert isinstance(_run._r, Random)
    before = _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r
    order = Random(1)
    with deterministic(order):
        assert (_run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r) == (True, order)
    assert (_run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r) == before


def test_a_seed_orders_tasks() -> None:
    """The same seed in the same way, and some seed in another."""

    def order(seed: int) -> list[int]:
        done: list[int] = []

        async def task(number: int) -> None:
            for _ in range(3):
                await trio.sleep(0.1)
                done.append(number)

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                for number in range(5):
                    nursery.start_soon(task, number)

        with deterministic(Random(seed)):
            trio.run(main, clock=VirtualClock())
        return done

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(10)}) > 5


def test_virtual_time_costs_none() -> None:
    """A year of deadlines, each exactly at its time."""

    async def main() -> list[float]:
        times = []
        for _ in range(365):
            await trio.sleep(86_400)
            times.append(trio.current_time())
        return times

    began = time.process_time()
    assert trio.run(main, clock=VirtualClock()) == [86_400.0 * day for day in range(1, 366)]
    assert time.process_time() - began < 86_400


def test_labels_of_a_tape_do_not_disturb_each_other() -> None:
    """One draw more with one label leaves the others as they were."""
    one, other = Tape(5), Tape(5)
    other.draw("a", 10)
    assert [one.draw("b", 1000) for _ in range(20)] == [other.draw("b", 1000) for _ in range(20)]
    assert all(0 <= value < bound for _, bound, value in one.draws)
    played = Tape.played(one.draws)
    with pytest.raises(TapeLeft, match="which was 1000"):
        played.draw("b", 999)


def test_a_history_has_no_addresses_and_one_line_for_each_entry() -> None:
    """They would differ between two processes."""
    history = History()
    history.note(1.0, "p", "logs", object(), "two\nlines")
    (line,) = history.lines()
    assert "0x.." in line
    assert "two\\nlines" in line


def test_when_properties_are_asked() -> None:
    """``eventually`` only after healing, and late only after its bound."""
    asked: list[str] = []

    def never_true() -> bool:
        asked.append("e")
        return False

    def true() -> bool:
        asked.append("s")
        return True

    properties = Properties()
    properties.eventually("e", never_true, 5.0)
    properties.sometimes("s", true)
    assert properties.look(1.0, healed=False) is None
    assert asked == ["s"]
    assert properties.look(2.0, healed=True) is None
    assert asked == ["s", "e"]
    assert properties.late(6.9, 2.0) is None
    assert "eventually e" in str(properties.late(7.0, 2.0))
    with pytest.raises(ScenarioMisuse, match="two properties"):
        properties.never("e", lambda: False)


def test_a_crash_keeps_a_beginning_of_what_was_not_synced() -> None:
    """And all that was."""
    commits: list[Commit | int] = [Commit(turn, turn, [StoredRow(turn, turn, b"x")], []) for turn in range(1, 4)]
    for survivors in range(3):
        disk = SimulatedDisk([commits[0]], commits[1:])
        disk.crash(survivors)
        assert list(disk.contents()[0]) == [1, 2, 3][: 1 + survivors]


def test_of_a_torn_commit_nothing_is_there() -> None:
    """Some of its rows are on the disk, and not its end: who loads drops it, and the next is written in its place."""
    rows = [StoredRow(number, 2, b"x") for number in (2, 3)]
    first, second = Commit(1, 1, [StoredRow(1, 1, b"x")], []), Commit(2, 3, rows, [1])
    for parts in range(8):
        disk = SimulatedDisk([first], [second])
        disk.crash(0, parts)
        torn = disk.torn
        assert (torn is None) == (not parts)
        if torn is not None:
            assert len(torn.added) + len(torn.removed) == parts.bit_count()
        disk.open()
        assert [number for number, _ in disk.load(lambda data: data.decode()).values] == [1]
        assert disk.torn is None
        disk.commit(second)
        assert list(disk.contents()[0]) == [2, 3]
