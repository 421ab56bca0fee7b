"""Fixtures for all tests: the project's own, and one Spark session for the whole run: opening one takes seconds."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["syndicate.testing", "tests.isolation"]

# The suite draws the same examples each time, so that a change is judged by what it changes, and few, for the ordinary
# mistake; `make nightly` draws new ones, and all (`tests.strategies.examples`), for the rare one.  There is no
# deadline: the machine may have other things to do.  A mutant is killed by any failure, be it small or not.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("search", deadline=None, print_blob=True, max_examples=100)
settings.register_profile(
    "mutation", deadline=None, derandomize=True, max_examples=25, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("suite")

# Who runs the suite by `nohup` has SIGHUP ignored, and SIGINT who runs it in the background of a script; so would all
# that the tests start, and those that send it would wait for ever.
for number, handler in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def even_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice of a long turn has as many events as may be, however busy the machine is."""
    monkeypatch.setattr("syndicate.actors.turn_slices.thread_time", lambda: 0.0)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A real local Spark session.  Without Java the tests fail; `-m "not spark"` leaves them out."""
    from syndicate.spark import open_session

    pages: dict[str, Any] = {"spark.ui.enabled": True, "spark.ui.port": 0}  # a test asks them
    session = open_session("tests", memory="1g", **pages)
    yield session
    session.stop()


SHARED = ("spark", "standing", "failing")
"""Fixtures that cost seconds: one process runs all tests that use one."""


@pytest.hookimpl(tryfirst=True)  # else xdist has read the groups already, and each process opens a session
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test that uses the Spark session, so that nobody has to remember to, and those for one process."""
    for item in items:
        names = item.fixturenames if isinstance(item, pytest.Function) else []
        if "spark" in names:
            item.add_marker("spark")
        for name in SHARED:
            if name in names:
                item.add_marker(pytest.mark.xdist_group(name))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Call a test by its name alone, where all reports come together: xdist adds that of its group, by which those that
    failed would not be found again.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        report.nodeid = re.sub(r"@\w+$", "", report.nodeid)


def pytest_collection_finish() -> None:
    """Leave what thousands of tests are made of out of each collection of garbage: it was most of what some cost."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def thawed() -> Iterator[None]:
    """With nothing set aside from the collector, as in a program that begins."""
    gc.unfreeze()
    gc.collect()  # else what other tests have left may go meanwhile
    yield
    gc.unfreeze()
    gc.freeze()
