"""Spark Connect: a real server, and a client in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.relay.spark.brokers import Broker
from tests.syndicate.spark.connect_server import connect_server
from tests.work import PATIENCE

pytest.importorskip("grpc", reason="needs the extra connect: pip install 'syndicate-dataspace[connect]'")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a Spark Connect server, in a JVM of its own."""
    with connect_server(tmp_path) as address:
        yield address


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_connect_session(server: str, broker: Broker, tmp_path: Path) -> None:
    """The format in both directions, views and a stream; a circuit as a stream; a session beside it; a table and a feed
    as sources, a sink and its readers; what needs a classic session refuses with the reason.
    """
    command = [sys.executable, "-W", "ignore", "-m", "tests.relay.spark.connecting", server, broker.address]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    assert results["source"] == [[["b", 2]], [["a", 2], ["b", 3]]]
    assert results["streamed"] == [[["a", 3, 1], ["b", 5, 1]], [["a", 2, 1]]]
    cloned = {"another": True, "options": ["1", None], "views": [True, False], "rows": 1}
    assert results["beside"] == cloned
    assert results["table"] == [[["a", 1], ["b", 3], ["g", 1]], [["a", 1], ["b", 1], ["g", 1]]]
    stream, view, engine = results["refused"]
    assert "the stream of Box needs a classic session" in stream
    assert "needs a classic session" in view
    assert engine.startswith("SparkEngine needs a classic session")
