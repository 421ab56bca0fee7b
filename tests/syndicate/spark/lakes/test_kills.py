"""A few kills of each program that follows a table; ``make matrix`` kills two hundred times."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.syndicate.spark.lakes.kills import SETTINGS, Chain, Setting

KILLS = int(os.environ.get("SYNDICATE_SPARK_CRASHES", "2"))


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.program)
def test_kills(setting: Setting, tmp_path: Path) -> None:
    """Beside the program, and of it: what it keeps goes from state to state, and comes to the last one.

    ``SYNDICATE_SPARK_CRASHES=n`` kills n times beside it.
    """
    reports: list[dict[str, Any]] = []
    Chain(setting, tmp_path, KILLS, reports.append, KILLS).run()
    (one,) = reports
    assert len(one["killed"]) == KILLS + 3
    assert not any(each["ended"] is False for each in one["killed"]), "a program without its JVM does not end"
