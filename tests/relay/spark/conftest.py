"""A durable broker for each test that asks for one, and one for those that only ask it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.relay.spark.brokers import Broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """It listens, and ends with the test."""
    yield from running(tmp_path)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One for all tests of a file that leave a broker as they find it."""
    yield from running(tmp_path_factory.mktemp("broker"))


def running(path: Path) -> Iterator[Broker]:
    """A broker that keeps its state there."""
    server = Broker(path / "state")
    server.start()
    yield server
    server.kill()
