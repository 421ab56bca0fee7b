"""A source with its journal, and a sink, on a disk that gets full: ``python -m tests.syndicate.spark.filling PLACE``.

``PLACE/disk`` is a small file system of its own.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.syndicate.spark.microbatches import Session, Stream
from tests.syndicate.spark.test_journalled import Run, drop, sourced
from tests.syndicate.spark.test_sink import Jar, World, sunk

MANY = [(f"{number:0500}", number, 1) for number in range(1000)]


@asynccontextmanager
async def both(place: Path, *jars: Jar) -> AsyncIterator[tuple[Run, World]]:
    """A source, whose rows and checkpoint are elsewhere, and a sink of what is asserted."""
    kept: dict[str, Any] = {"journal": place / "disk" / "journal", "checkpoint": place / "checkpoint"}
    source = sourced(lambda _: Stream(session, place), session=(session := Session()), weight="w", **kept)
    async with source as run, sunk(place / "disk" / "table", *jars) as world:
        yield run, world


def fill(path: Path) -> None:
    """Write until there is no room."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1024))


async def main(place: Path) -> None:
    """Say how both end on the full disk, and what there is once there is room."""
    drop(place, 1, ("a", 1, 1))
    async with both(place, Jar("a", 1.0)) as (run, world):
        await run.until(len)
        await world.until(0)
        fill(place / "disk" / "filler")
        drop(place, 2, *MANY)
        print(await run.end())
        world.become(Jar("b", 2.0))
        print(await world.end())
    (place / "disk" / "filler").unlink()
    async with both(place, Jar("b", 2.0)) as (run, world):
        await run.until(lambda seen: len(seen) > len(MANY))
        await world.until(1)
        print([mark for mark, _ in run.seen].count("+"), len(run.seen), world.rows())


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
