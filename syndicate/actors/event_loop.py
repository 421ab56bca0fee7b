"""Loops: which event loop has this thread."""

from __future__ import annotations

import sys

import trio


def token() -> trio.lowlevel.TrioToken | None:
    """That of trio's run here, if there is one."""
    try:
        return trio.lowlevel.current_trio_token()
    except RuntimeError:
        return None


def asyncio_runs() -> bool:
    """Whether asyncio's loop has this thread."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None
