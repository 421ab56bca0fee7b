"""Where log lines go: to structlog as the program configured it, or else plainly to stderr.

structlog's own default prints to stdout, where it would mix with a program's output.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import structlog
from structlog.typing import FilteringBoundLogger, Processor, WrappedLogger

from syndicate.errors import shown
from syndicate.outside import outside


class _Enduring:
    """A logger that raises nothing: a disk that is full, a stream that is closed, or an error that cannot be shown, is
    no reason for what is logged to end.  A line that cannot be made is made again of what can be shown; one that cannot
    be written is lost.
    """

    __slots__ = ("_inner",)

    def __init__(self, inner: FilteringBoundLogger) -> None:
        self._inner = inner

    def bind(self, **context: object) -> _Enduring:
        """A logger with this in each of its lines, too."""
        return _Enduring(self._inner.bind(**context))

    def debug(self, event: str, **values: object) -> None:
        """Log something for who looks for a mistake."""
        self._write(self._inner.debug, event, values)

    def info(self, event: str, **values: object) -> None:
        """Log something that is as it should be."""
        self._write(self._inner.info, event, values)

    def warning(self, event: str, **values: object) -> None:
        """Log something that may be as it should be."""
        self._write(self._inner.warning, event, values)

    def error(self, event: str, **values: object) -> None:
        """Log something that is not as it should be."""
        self._write(self._inner.error, event, values)

    def _write(self, write: Callable[..., object], event: str, values: dict[str, object]) -> None:
        try:
            write(event, **values)
        except Exception:
            with suppress(Exception):
                texts = {"error" if name == "exc_info" else name: shown(value) for name, value in values.items()}
                write(event, **texts)


def logger(**context: object) -> FilteringBoundLogger:
    """A bound structlog logger, whose lines raise nothing."""
    bound: FilteringBoundLogger
    taken = outside().log
    if taken is not None:
        added = structlog.processors.add_log_level
        bound = structlog.wrap_logger(None, processors=[added, taken]).bind(**context)
        return bound
    if structlog.is_configured():
        bound = structlog.get_logger(**context)
    else:
        plain = _writers()()
        bound = structlog.wrap_logger(plain, processors=_processors(_on_terminal())).bind(**context)
    return cast(FilteringBoundLogger, _Enduring(bound))


def _writers() -> Callable[..., WrappedLogger]:
    """What makes that to which lines go: nobody, in a process without stderr, for which structlog would take stdout."""
    return structlog.ReturnLoggerFactory() if sys.stderr is None else structlog.PrintLoggerFactory(sys.stderr)


def _on_terminal() -> bool:
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def configure(style: str = "auto", level: str = "debug") -> None:
    """Log to stderr for a whole program: ``"json"``, ``"pretty"``, or ``"auto"``, pretty on a terminal and JSON
    elsewhere; what is below *level* (``"info"``, ``"warning"``, ..) not at all.
    """
    pretty = style == "pretty" or (style == "auto" and _on_terminal())
    structlog.configure(
        processors=_processors(_on_terminal()) if pretty else _json(),
        logger_factory=_writers(),
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
