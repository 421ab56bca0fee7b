"""Failures of Spark, in a sentence.

Spark's errors come wrapped in those of the query, the job, the task and the thread that met them, each with its own
stack, in two languages.  One sentence among them says what is wrong; it is looked for here.

>>> explained("Box", lambda: 1 + 1)
2

A table may also fail a reader for a reason that passes: it is being rewritten, so that files, the path or the table are
away; a disk, a network or a database does not answer; an executor or a worker was lost.  These are distinguished here,
by Spark's name of the error or by Java's class of a cause, as :class:`Interrupted`.  Everything else stays as it is
until somebody mends it: a column that is not there, a type that does not fit, a function that raises, a session that
ended.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, ParamSpec, TypeVar

from syndicate.errors import SourceError

P = ParamSpec("P")
T = TypeVar("T")


class Interrupted(SourceError):
    """The rows could not be had, for a reason that passes: to try again may help."""


def explained(name: str, fn: Callable[P, T], /, *args: P.args, **named: P.kwargs) -> T:
    """Call *fn*; raise :class:`SourceError`, about the rows of *name*, if it fails by an error of Spark's, and
    :class:`Interrupted` if the reason passes.

    Other errors pass as they are.
    """
    try:
        return fn(*args, **named)
    except Exception as error:
        said = _said(error)
        if said is None:
            raise
        reason = _telling([text for _, text in said])
        kind = Interrupted if reason != _ENDED and passes(said) else SourceError
    raise kind(f"Spark could not deliver the rows of {name}: {reason}")


def reason_of(error: Exception) -> str | None:
    """What Spark says went wrong, in a line; None if it is not Spark's error."""
    said = _said(error)
    return None if said is None else _telling([text for _, text in said])


def _said(error: Exception) -> list[tuple[str, str]] | None:
    """The class and the message of an error of Spark's and of its causes; None if it is not Spark's."""
    if isinstance(error, (ConnectionError, EOFError)):
        return [("", _ENDED)] if _met_by_py4j(error) else None
    module = type(error).__module__.partition(".")[0]
    if module not in ("py4j", "pyspark") or isinstance(error, ImportError):
        return None
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        return [("", _line(str(error)) if module == "pyspark" else _ENDED)]
    said = []
    try:
        while java is not None:
            said.append((java.getClass().getName(), java.getMessage() or java.toString()))
            java = java.getCause()
    except Exception as lost:
        if not _met_by_py4j(lost):
            raise
        return [("", _ENDED)]
    return said


def passes(said: Sequence[tuple[str, str]]) -> bool:
    """Whether an error with these classes and messages, each the cause of the one before, is of a reason that passes.

    >>> passes([("org.apache.spark.sql.AnalysisException", "[PATH_NOT_FOUND] Path does not exist: file:/t.")])
    True
    >>> passes([("org.apache.spark.SparkException", "Job aborted"), ("java.net.ConnectException", "refused")])
    True
    >>> passes([("org.apache.iceberg.exceptions.ValidationException", "Found conflicting files")])
    True
    >>> passes([("org.apache.spark.sql.AnalysisException", "[UNRESOLVED_COLUMN.WITH_SUGGESTION] `di`")])
    False
    >>> passes([("java.lang.NullPointerException", 'Cannot invoke "String.length()" because "<local1>" is null')])
    False
    """
    if any(_LASTING.search(text) for _, text in said):
        return False
    return any(_PASSING_CLASS.search(kind) or _PASSING.search(text) for kind, text in said)


_PASSING: Final = re.compile(
    r"\[(PATH_NOT_FOUND|TABLE_OR_VIEW_NOT_FOUND|UNABLE_TO_INFER_SCHEMA|FAILED_READ_FILE\.(FILE_NOT_EXIST|"
    r"CANNOT_READ_FILE_FOOTER)|CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND|DELTA_(PATH_DOES_NOT_EXIST|TABLE_NOT_FOUND|"
    r"FILE_NOT_FOUND(_DETAILED)?|CONCURRENT_\w+)|CONCURRENT_\w+)[\].]"
    r"|^(Found (new )?conflicting|Missing required files to delete|Cannot commit, )"
    r"|ExecutorLostFailure|Python worker exited unexpectedly|FileNotFoundException|NoSuchFileException"
    r'|^Cannot invoke "scala\.collection\.IterableOps\.map\(.*"scala\.Option\.get\(\)" is null$'
)
"""Spark's names of what passes, what Iceberg says after another commit, what is quoted from a task, and Kafka's reader.

That one, of Spark 4.1, reports after each micro-batch how far it is behind.  After one that a restart repeats nobody
has told it what there is, and it fails, although the micro-batch is done; the next start goes on behind it.
"""

_PASSING_CLASS: Final = re.compile(
    r"^java\.(io\.(\w*IOException|FileNotFoundException|EOFException)|net\.\w+Exception|nio\.file\.\w+Exception"
    r"|sql\.SQL(Transient\w*|Recoverable)Exception|util\.concurrent\.TimeoutException)$"
    r"|\.(NotFoundException|NoSuchTableException|Commit(Failed|StateUnknown)Exception|RuntimeIOException|ServiceUnavailableException)$"
)
"""Java's classes of it, and those of Iceberg and Hadoop's object stores."""

_LASTING: Final = re.compile(r"\[(PARQUET_|FAILED_READ_FILE\.PARQUET_|UNSUPPORTED_)|AccessControlException")
"""What comes in the same classes, and stays."""


def _telling(said: Sequence[str]) -> str:
    r"""The one of several messages, each the cause of the one before, that says what was wrong.

    >>> _telling(["[STREAM_FAILED] Query terminated", "Job aborted", "[DIVIDE_BY_ZERO] Division by zero", "stack"])
    '[DIVIDE_BY_ZERO] Division by zero'
    >>> _telling(["Job aborted: Lost task 0.0: ExecutorLostFailure (executor 1 exited caused by one of the tasks)"])
    'an executor was lost, and so was what it had computed (executor 1 exited caused by one of the tasks)'
    >>> _telling(["Error from python worker:\n  python3.9: not found\nPYTHONPATH was: ..."])
    'its Python workers do not start (python3.9: not found); those of syndicate.spark.open_session() run this Python'
    >>> _telling(["Job aborted", "[TASK_WRITE_FAILED] Task failed while writing rows to /t", "No space left on device"])
    'a disk is full: make room ([TASK_WRITE_FAILED] Task failed while writing rows to /t)'
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
    line = _line(next((text for text in said if text.startswith("[") and not text.startswith(wrappers)), said[-1]))
    return f"a disk is full: make room ({line})" if _FULL.search(whole) else line


_FULL: Final = re.compile("No space left on device|Disk quota exceeded")
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
