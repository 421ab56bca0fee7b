"""Failures of Spark, in a sentence.

Spark's errors come wrapped in those of the query, the job, the task and the thread that met them, each with its own
stack, in two languages.  One sentence among them says what is wrong; it is looked for here.

>>> explained("Box", lambda: 1 + 1)
2
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, ParamSpec, TypeVar

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
    if isinstance(error, (ConnectionError, EOFError)):
        return _ENDED if _met_by_py4j(error) else None
    module = type(error).__module__.partition(".")[0]
    if module not in ("py4j", "pyspark") or isinstance(error, ImportError):
        return None
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        return _line(str(error)) if module == "pyspark" else _ENDED
    said = []
    try:
        while java is not None:
            said.append(java.getMessage() or java.toString())
            java = java.getCause()
    except Exception as lost:
        if not _met_by_py4j(lost):
            raise
        return _ENDED
    return _telling(said)


def _telling(said: Sequence[str]) -> str:
    r"""The one of several messages, each the cause of the one before, that says what was wrong.

    >>> _telling(["[STREAM_FAILED] Query terminated", "Job aborted", "[DIVIDE_BY_ZERO] Division by zero", "stack"])
    '[DIVIDE_BY_ZERO] Division by zero'
    >>> _telling(["Job aborted: Lost task 0.0: ExecutorLostFailure (executor 1 exited caused by one of the tasks)"])
    'an executor was lost, and so was what it had computed (executor 1 exited caused by one of the tasks)'
    >>> _telling(["Error from python worker:\n  python3.9: not found\nPYTHONPATH was: ..."])
    'its Python workers do not start (python3.9: not found); those of syndicate.spark.open_session() run this Python'
    """
    whole = "\n".join(said)
    lost = re.search(r"ExecutorLostFailure \(([^\n]*)\)|\[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND\] ([^\n]*)", whole)
    if lost is not None:
        return f"an executor was lost, and so was what it had computed ({_line(lost[1] or lost[2])})"
    other = re.search(r"\[PYTHON_VERSION_MISMATCH\] [^\n.]*(?:\d\.\d+[^\n.]*)*", whole)
    if other is not None:
        return f"{other[0].rstrip(', ')}; the workers of syndicate.spark.open_session() run this very Python"
    worker = re.search(r"Error from python worker:\s*([^\n]*)", whole)
    if worker is not None:
        return f"its Python workers do not start ({worker[1]}); those of syndicate.spark.open_session() run this Python"
    if "Python worker exited unexpectedly" in whole:
        return "one of its Python workers was killed, as by the system when memory runs out, or crashed"
    if any(word in whole for word in _OF_THE_END):
        return _ENDED
    # The cause is wrapped in errors of the query, the job, the task and the thread; Spark's own errors start with a
    # name.
    wrappers = ("[STREAM_FAILED]", "[FOREACH_BATCH_USER_FUNCTION_ERROR]")
    return _line(next((text for text in said if text.startswith("[") and not text.startswith(wrappers)), said[-1]))


_ENDED: Final = "its session has ended"
_OF_THE_END: Final = (
    "SparkContext was shut down",
    "Cannot call methods on a stopped SparkContext",
    "SparkContext has been",
)


def _met_by_py4j(error: BaseException) -> bool:
    """Whether the error was raised beneath py4j, which lets errors of its sockets pass as they are."""
    if type(error).__module__.startswith("py4j"):
        return True
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_globals.get("__name__", "").startswith("py4j"):
            return True
        step = step.tb_next
    return False


def _line(text: str) -> str:
    return text.strip().partition("\n")[0].partition(" SQLSTATE: ")[0].rstrip(".")
