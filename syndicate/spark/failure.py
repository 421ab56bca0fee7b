"""Failures of Spark, in a sentence.

Spark's errors come wrapped in those of the query, the job, the task and the thread that met them, each with its own
stack, in two languages.  One sentence among them says what is wrong; it is looked for here.

>>> explained("Box", lambda: 1 + 1)
2
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from syndicate.errors import SourceError

P = ParamSpec("P")
T = TypeVar("T")


def explained(name: str, fn: Callable[P, T], /, *args: P.args, **named: P.kwargs) -> T:
    """Call *fn*; raise :class:`SourceError`, about the rows of *name*, if it fails by an error of Spark's.

    Other errors pass as they are.
    """
    try:
        return fn(*args, **named)
    except Exception as error:
        reason = _reason(error)
        if reason is None:
            raise
    raise SourceError(f"Spark could not deliver the rows of {name}: {reason}")


def _reason(error: Exception) -> str | None:
    """What Spark says went wrong, in a line; None if it is not Spark's error."""
    module = type(error).__module__.partition(".")[0]
    if module not in ("py4j", "pyspark") or isinstance(error, ImportError):
        return None
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        return _line(str(error)) if module == "pyspark" else "its session has ended"
    said = []
    while java is not None:
        said.append(_line(java.getMessage() or java.toString()))
        java = java.getCause()
    # The cause is wrapped in errors of the query, the job, the task and the thread; Spark's own errors start with a
    # name.
    wrappers = ("[STREAM_FAILED]", "[FOREACH_BATCH_USER_FUNCTION_ERROR]")
    return next((text for text in said if text.startswith("[") and not text.startswith(wrappers)), said[-1])


def _line(text: str) -> str:
    return text.strip().partition("\n")[0].partition(" SQLSTATE: ")[0].rstrip(".")
