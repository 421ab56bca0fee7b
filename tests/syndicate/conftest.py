"""What holds for all tests of the packages: where kernels run, circuits go over to tables of words early or late."""

from __future__ import annotations

from zlib import crc32

import pytest

import syndicate.flow.local_engine
import syndicate.flow.loop
from syndicate.flow.local_engine import SOME_ROWS
from syndicate.flow.loop import FEW_DERIVED


@pytest.fixture(autouse=True)
def tables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, soon, or as ever, by the test's name: else the small circuits of tests would all take rows."""
    number = crc32(request.node.nodeid.encode())
    monkeypatch.setattr(syndicate.flow.local_engine, "SOME_ROWS", (-1, -1, 6, SOME_ROWS)[number % 4])
    monkeypatch.setattr(syndicate.flow.loop, "FEW_DERIVED", (0, 12, FEW_DERIVED)[number // 4 % 3])
