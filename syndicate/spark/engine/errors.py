"""Failures of a step on Spark, in a sentence.

Spark wraps what went wrong in errors of the task, the stage and the job, in two languages.  Our own workers leave a
mark in it that says which node failed at which element; the rest is said by Spark's own one sentence.

Source: ``docs/design/spark.md``, "The second engine" and "Reasons that pass".
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from syndicate.errors import EngineError, SyndicateError, UnshippableFunction
from syndicate.flow.circuit import Circuit
from syndicate.spark.engine.rows import OVERFLOW
from syndicate.spark.engine.shape import FALLBACK
from syndicate.spark.engine.workers import WorkerFailed, failure_in
from syndicate.spark.errors import reason_of
from syndicate.spark.spark_connect import java_context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_THE_DRIVER = frozenset({"source", "constant", "inspect"})
_OVERFLOW = ("ARITHMETIC_OVERFLOW", "BINARY_ARITHMETIC_OVERFLOW", "CAST_OVERFLOW")


@contextmanager
def explained(circuit: Circuit | None = None, session: SparkSession | None = None) -> Iterator[None]:
    """Let what Spark raises within be said in a sentence."""
    try:
        yield
    except (SyndicateError, KeyboardInterrupt):
        raise
    except Exception as error:
        explanation = ended() if is_stopped(session) else _translated(error, circuit)
        if explanation is None:
            raise
        inner = error.__cause__ if isinstance(error, WorkerFailed) else None  # it failed in the driver
        raise explanation from (inner or error)


def is_inexact(error: Exception) -> bool:
    """Whether Spark raised because a column expression would give another result than Python."""
    text = str(error)
    return FALLBACK in text or any(name in text for name in _OVERFLOW)


def _translated(error: Exception, circuit: Circuit | None) -> SyndicateError | None:
    text = str(error)
    failure = failure_in(text)
    if failure is not None:
        return failure.error()
    if any(name in text for name in _OVERFLOW):
        return EngineError(OVERFLOW)
    shipped = _unshippable(error, text, circuit)
    if shipped is not None:
        return shipped
    reason = reason_of(error)
    if reason is None:
        return None
    if _has_ended(text, reason):
        return ended()
    missing = re.search(r"ModuleNotFoundError: No module named '([^']+)'", text)
    if missing is not None:
        return UnshippableFunction(
            f"Spark's workers have no module {missing[1]!r}, which a function of the circuit comes from: install it "
            "where they run, or put it on their PYTHONPATH"
        )
    return EngineError(f"Spark could not do the step: {reason}. The engine is at the last committed epoch")


def ended() -> EngineError:
    """The session is gone."""
    return EngineError(
        "the Spark session of the engine has ended: open another one, and make the engine again on its state "
        "directory. It goes on from the last committed epoch"
    )


def is_stopped(session: SparkSession | None) -> bool:
    """Whether the context of a session is gone: what Python then raises is chance."""
    try:
        return session is not None and java_context(session) is None
    except Exception:
        return False  # a session without a context, of Spark Connect


def _has_ended(text: str, reason: str) -> bool:
    words = (
        "SparkContext was shut down",
        "CONTEXT_NOT_EXISTS",
        "stopped SparkContext",
        "its session has ended",
        "SparkContext has been shut",
    )
    return any(word in text or word in reason for word in words)


def _unshippable(error: Exception, text: str, circuit: Circuit | None) -> UnshippableFunction | None:
    if not isinstance(error, pickle.PicklingError) and "pickle" not in text[:400]:
        return None
    return unshippable(circuit) or UnshippableFunction(
        f"a function of the circuit cannot be sent to Spark's workers: {text.partition(chr(10))[0]}"
    )


def unshippable(circuit: Circuit | None) -> UnshippableFunction | None:
    """The error of the first function of a circuit that Spark's workers cannot get, if there is one."""
    from pyspark import cloudpickle

    for node in circuit.walk() if circuit is not None else ():
        for value in node.params.values() if node.op not in _OF_THE_DRIVER else ():
            try:
                cloudpickle.dumps(value)  # type: ignore[no-untyped-call]  # it has no types
            except Exception as reason:
                said = str(reason).strip().partition("\n")[0]
                return UnshippableFunction(
                    f"{node} has a function that cannot be sent to Spark's workers ({said}): let it make what it needs "
                    "itself, in the worker, or take it as an element"
                )
    return None
