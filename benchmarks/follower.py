"""A consumer in a process of its own, so that it can be stopped: ``python -m benchmarks.follower PORT``.

It follows what :mod:`benchmarks.stopped` publishes, as a peer on another machine: with small buffers.  On its standard
input it gets, a line of JSON each, from which version on it has caught up, and what it is to have in the end.  It
says when it had that, once it has kept it for a while.
"""

from __future__ import annotations

import json
import select
import sys
from time import perf_counter
from typing import Any, Final

from benchmarks.figure import Broken
from benchmarks.load import PATIENCE, Peer, Unpacking, pattern

_STEADY: Final = 0.3
"""Seconds for which what is right must stay so."""


class Following(Unpacking):
    """What it was notified of, by handle; ``newest`` is the latest version among it."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[int, tuple[int, int]] = {}
        self.newest = -1

    def turn(self, packet: Any, now: float) -> None:
        """``[A [key version padding] handle]`` or ``[R handle]``."""
        for entry in packet[1:]:
            event = entry[2]
            if event[0] == b"A":
                _, key, version, _ = event[1]
                self.values[event[2]] = key, version
                self.newest = max(self.newest, version)
            else:
                del self.values[event[1]]


def follow(port: int) -> None:
    """Follow until it was said whether all is right."""
    peer, state = Peer(("127.0.0.1", port), distant=True), Following()
    peer.observe(pattern("key", None, None, None))
    _say("ready")
    wanted: dict[str, Any] = {}
    caught_up = right = deadline = float("inf")
    while True:
        readable, _, _ = select.select([peer.sock, sys.stdin], [], [], 0.05)
        now = perf_counter()
        if peer.sock in readable:
            data = peer.sock.recv(1 << 16)
            if not data:
                raise Broken("the broker hung up")
            state(data, now)
            right = float("inf")
        if sys.stdin in readable:
            wanted |= json.loads(sys.stdin.readline())
        if state.newest >= wanted.get("mark", float("inf")):
            caught_up = min(caught_up, now)
        if "expected" in wanted:
            deadline = min(deadline, now + PATIENCE)
            if right == float("inf") and _is(state, wanted["expected"]):
                right = now
            elif now > right + _STEADY:
                _say("is right", **{"at": right, "caught up": caught_up})
                return
            elif now > deadline:
                raise Broken(f"{len(state.values)} values, not {len(wanted['expected'])}, or others")


def _is(state: Following, expected: list[list[int]]) -> bool:
    return len(state.values) == len(expected) and sorted(map(list, state.values.values())) == expected


def _say(what: str, **more: float) -> None:
    print(json.dumps({"said": what, **more}), flush=True)


if __name__ == "__main__":
    try:
        follow(int(sys.argv[1]))
    except Broken as e:
        _say(str(e))
        sys.exit(1)
