"""What a test does to logging ends with it: each way that there is to configure it, in a test and before a doctest."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
import structlog.testing

from syndicate import log
from tests.isolation import isolated

ONE = logging.getLogger("tests.one")


def captures() -> None:
    """Leaves structlog configured."""
    with structlog.testing.capture_logs():
        pass


LEAKS: list[Callable[[], object]] = [
    structlog.configure,
    captures,
    lambda: structlog.configure(processors=[]),
    lambda: structlog.get_config()["processors"].pop(0),
    lambda: structlog.contextvars.bind_contextvars(a=1),
    lambda: log.configure("json", "error"),
    lambda: logging.basicConfig(level="DEBUG", stream=sys.stdout, force=True),
    lambda: logging.root.setLevel("ERROR"),
    lambda: logging.disable(logging.CRITICAL),
    lambda: ONE.addHandler(logging.StreamHandler(sys.stdout)),
    lambda: ONE.addFilter(lambda record: False),
    lambda: ONE.setLevel("ERROR"),
    lambda: setattr(ONE, "propagate", False),
    lambda: setattr(ONE, "disabled", True),
]


def state() -> Any:
    """All that is configured."""
    loggers = [
        (each.level, each.propagate, each.handlers[:], each.filters[:], each.isEnabledFor(logging.WARNING))
        for each in (logging.root, ONE)
    ]
    config = {**structlog.get_config(), "processors": structlog.get_config()["processors"][:]}
    return structlog.is_configured(), config, structlog.contextvars.get_contextvars(), loggers


@pytest.mark.parametrize("before", [None, captures, log.configure])
@pytest.mark.parametrize("leak", LEAKS)
def test_it_is_as_it_was(leak: Callable[[], object], before: Callable[[], object] | None) -> None:
    """However it was configured before."""
    if before is not None:
        before()
    there = state()
    with isolated():
        leak()
        assert state() != there or (leak in LEAKS[:2] and before is not None)  # which was so already
    assert state() == there


TESTS = '''
import structlog

def in_a_doctest():
    """
    >>> structlog.configure()
    """

def test_one():
    assert not structlog.is_configured()
    structlog.configure()

def test_two():
    """
    >>> structlog.is_configured()
    False
    """
    assert not structlog.is_configured()
'''


def test_for_all_tests_and_doctests(tmp_path: Path) -> None:
    """Those of a directory that knows nothing of it, since the plugin is loaded."""
    (tmp_path / "test_all.py").write_text(TESTS)
    options = ["-q", "-p", "tests.isolation", "-p", "no:cacheprovider", "--doctest-modules", "-c", "/dev/null"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_one_process_runs_all_of_spark(request: pytest.FixtureRequest) -> None:
    """Else each of the processes opens a session of its own."""
    if not request.config.getoption("loadgroup", default=False):
        pytest.skip("this is one process")
    tests = [one for one in request.session.items if isinstance(one, pytest.Function) and "spark" in one.fixturenames]
    assert [test.nodeid for test in tests if not test.nodeid.endswith("@spark")] == []
