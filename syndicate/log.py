"""Where log lines go: to structlog as the program configured it, or else plainly to stderr.

structlog's own default prints to stdout, where it would mix with a program's output.
"""

from __future__ import annotations

import sys

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from syndicate.outside import outside


def logger(**context: object) -> FilteringBoundLogger:
    """A bound structlog logger."""
    bound: FilteringBoundLogger
    taken = outside().log
    if taken is not None:
        added = structlog.processors.add_log_level
        bound = structlog.wrap_logger(None, processors=[added, taken]).bind(**context)
        return bound
    if structlog.is_configured():
        bound = structlog.get_logger(**context)
    else:
        plain = structlog.PrintLogger(sys.stderr)
        bound = structlog.wrap_logger(plain, processors=_processors(sys.stderr.isatty())).bind(**context)
    return bound


def configure(style: str = "auto", level: str = "debug") -> None:
    """Log to stderr for a whole program: ``"json"``, ``"pretty"``, or ``"auto"``, pretty on a terminal and JSON
    elsewhere; what is below *level* (``"info"``, ``"warning"``, ..) not at all.
    """
    pretty = style == "pretty" or (style == "auto" and sys.stderr.isatty())
    structlog.configure(
        processors=_processors(sys.stderr.isatty()) if pretty else _json(),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger(level),
    )


def _processors(colors: bool) -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
        structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback),
    ]


def _json() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(),
    ]
