"""What one assertion, or one observer, takes: ``python footprint_side.py KIND COUNT`` prints bytes.

It uses what the checkouts of long ago have, too, and nothing of the other benchmarks.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from syndicate import Entity, Observe, assert_, capture, dataspace, on_asserted, record, ref, run, stop_actor, sync


@record("speak")
class Speak:
    """What is asserted."""

    topic: object
    text: object


def memory(kind: str, count: int) -> float:
    """Bytes of the process that one of so many takes, whoever has asked the system for them."""
    figures: list[int] = []

    def look() -> None:
        figures.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))

    def boot() -> None:
        ds = dataspace()
        if kind == "assertion-told":
            on_asserted(ds, Speak(capture(), "x"))(lambda topic: None)
        listener = ref(Entity())

        def fill(start: int, size: int) -> None:
            for topic in range(start, start + size):
                if kind == "observer":
                    assert_(ds, Observe(Speak(topic, capture()), listener))
                else:
                    assert_(ds, Speak(topic, "x"))

        def more(start: int) -> None:
            if start in (count // 10, count + count // 10):  # the first tenth is not counted: what all share is there
                look()
            if start < count + count // 10:
                fill(start, count // 10)
                sync(ds, lambda: sync(ds, lambda: more(start + count // 10)))
            else:
                stop_actor()

        more(0)

    run(boot)
    return (figures[1] - figures[0]) / count


if __name__ == "__main__":
    print(memory(sys.argv[1], int(sys.argv[2])))
