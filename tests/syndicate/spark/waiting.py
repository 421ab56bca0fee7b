"""To wait for what happens in other threads, in other processes, and in Spark."""

from __future__ import annotations

from collections.abc import Callable

import trio


async def until(condition: Callable[[], object]) -> None:
    """Look again and again whether it is so."""
    while not condition():  # noqa: ASYNC110  # none of these tells an event of ours
        await trio.sleep(0.003)
