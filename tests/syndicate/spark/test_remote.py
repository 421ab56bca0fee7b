"""A source into a dataspace of another process: through the relay, to a real syndicate-server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from relay import connect
from syndicate import ANY, Ref, capture, open_system, record, spawn, stop_actor
from syndicate.spark import SparkProgress, spark_source
from syndicate.testing import watch
from tests.syndicate.spark.microbatches import Session, Stream
from tests.syndicate.spark.test_journalled import drop
from tests.waiting import until
from tests.work import PATIENCE

MANY = 3000


@record
class Bin:
    name: str
    size: int


@asynccontextmanager
async def server() -> AsyncIterator[str]:
    """A syndicate-server in a process of its own; its address."""
    command = [str(Path(sys.executable).with_name("syndicate-server")), "--listen", "tcp://127.0.0.1:0"]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    try:
        said = ""
        while (result := re.search(r"listening on\S* +(?:\S+=)?(tcp://\S+)", said)) is None:
            chunk = await process.stdout.receive_some()
            assert chunk, said
            said += chunk.decode()
        yield result[1]
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def console(address: str) -> str:
    """What a real syndicate-console shows of the progress first."""
    program = str(Path(sys.executable).with_name("syndicate-console"))
    command = [program, "--pattern", "<SparkProgress _ _ _ _>", "--count", "1", address]
    return (await trio.run_process(command, capture_stdout=True)).stdout.decode()


async def test_through_the_relay(tmp_path: Path) -> None:
    """What a source asserts through one connection is seen through another: steps in order, many rows, progress; when
    the source stops, all of it is gone.
    """
    drop(tmp_path, 1, *[("many", size, 1) for size in range(MANY)])
    drop(tmp_path, 2, ("many", 0, -1), ("late", 0, 1))
    objects: dict[str, Any] = {}
    session: Any = Session()

    def frame(_: object) -> Any:
        return Stream(session, tmp_path)

    with trio.fail_after(PATIENCE):
        async with server() as address:

            def boot() -> None:
                @connect(address)
                def observing(ds: Ref) -> None:
                    objects["seen"] = watch(ds, capture(Bin(ANY, ANY)))
                    objects["progress"] = watch(ds, capture(SparkProgress("Bin", ANY, ANY, ANY)))

                def source() -> None:
                    @connect(address)
                    def sourcing(ds: Ref) -> None:
                        spark_source(
                            ds,
                            frame,
                            Bin,
                            weight="w",
                            session=session,
                        )()

                objects["source"] = spawn(source)

            async with open_system(boot):
                await until(lambda: len(objects.get("seen", ())) == MANY + 2)
                assert objects["seen"][-2:] == [("+", Bin("late", 0)), ("-", Bin("many", 0))]
                await until(lambda: len(objects["progress"]) == 3)
                assert f'<SparkProgress "Bin" 1 {MANY + 2} ' in await console(address)
                assert objects["progress"][1][1].rows == MANY + 2
                objects["source"].root.enter(stop_actor)
                await until(lambda: sum(1 if mark == "+" else -1 for mark, _ in objects["seen"]) == 0)
