"""Logging as a test found it: what a test does to structlog and to ``logging`` ends with the test, doctests too.

Even ``structlog.testing.capture_logs`` leaves structlog configured, so that log lines of later tests went to stdout.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import structlog


@contextmanager
def isolated() -> Iterator[None]:
    """Put back what is configured, whatever happens within."""
    configured, config = structlog.is_configured(), structlog.get_config()
    processors = list(config["processors"])  # capture_logs changes the list itself
    least = logging.root.manager.disable
    loggers = [
        (each, each.level, each.propagate, each.disabled, list(each.handlers), list(each.filters))
        for each in [logging.root, *logging.root.manager.loggerDict.values()]
        if isinstance(each, logging.Logger)
    ]
    try:
        yield
    finally:
        structlog.reset_defaults()
        if configured:
            structlog.configure(**{**config, "processors": processors})
        structlog.contextvars.clear_contextvars()
        logging.disable(least)
        for logger, level, propagate, disabled, handlers, filters in loggers:
            if logger.level != level:
                logger.setLevel(level)  # which forgets what all loggers have cached
            logger.propagate, logger.disabled = propagate, disabled
            logger.handlers[:], logger.filters[:] = handlers, filters


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield
