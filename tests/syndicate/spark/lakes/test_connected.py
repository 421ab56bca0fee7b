"""Tables of a lake through Spark Connect: a real server, and a program that has no other session."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from syndicate.spark import Lake
from tests.syndicate.spark.connect_server import connect_server
from tests.syndicate.spark.lakes.conftest import settings
from tests.syndicate.spark.lakes.test_kept import others
from tests.work import PATIENCE


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_kept_and_followed(kind: str, tmp_path: Path) -> None:
    """A sink and a source with a journal, each with a session beside the one given: each row comes and goes once,
    another program's commit is seen by both, and the table is in the end what is asserted.
    """
    table = f"{tmp_path}/table" if kind == "delta" else "warehouse.db.crates"
    with connect_server(tmp_path, settings(tmp_path / "warehouse")) as address:
        module = "tests.syndicate.spark.lakes.connecting"
        command = [sys.executable, "-W", "ignore", "-m", module, address, kind, table, str(tmp_path / "journal")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10 * PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    rows = [("a", 1), ("b", 3), ("c", 4)]
    assert others(Lake(kind, table), tmp_path / "warehouse") == rows  # type: ignore[arg-type]  # one of both
    events = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    assert sorted(events) == sorted(
        [("+", "b", 2), ("-", "b", 2), ("+", "strange", 9), ("-", "strange", 9), *[("+", *row) for row in rows]]
    )
