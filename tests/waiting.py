"""To wait for what happens in other tasks and threads, in other systems and processes, and in Spark."""

from __future__ import annotations

from collections.abc import Callable

import trio

from tests.work import PATIENCE


async def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Look again and again whether it is so.  Each wait has a patience of its own: on a machine with much to do, a test
    of many may take hours.
    """
    with trio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110  # none of these tells an event of ours
            await trio.sleep(0.003)
