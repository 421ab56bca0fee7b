"""A durable broker for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.relay.spark.brokers import Broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """It listens, and ends with the test."""
    server = Broker(tmp_path / "state")
    server.start()
    yield server
    server.kill()
