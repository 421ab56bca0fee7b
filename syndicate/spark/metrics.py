"""Our numbers among Spark's own: gauges of the driver, which its sinks of metrics and its pages show.

A gauge is an accumulator that Spark's ``LongAccumulatorSource`` has registered, the one way that Spark has for programs
beside the JVM: ``APPLICATION.driver.AccumulatorSource.syndicate.NAME.rows``, in ``/metrics/json`` of Spark's pages and
in whatever ``spark.metrics.conf`` names.  A session of Spark Connect has no driver here, and no gauges.

Contract: gauges of two that live at a time have different names; those of one that has ended are free for the next of
its name, and until then show its last numbers.  That Spark has gone is reported by what asks it for rows, and not here.

Source: ``docs/design/spark.md``, "Among Spark's metrics".
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from syndicate.errors import SourceError
from syndicate.spark.session import java_gateway
from syndicate.spark.spark_connect import is_connect, is_stopped, java_context

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener, StreamingQueryProgress

OF_A_SOURCE: Final = ("batch", "rows", "asserted", "retracted", "milliseconds")
"""The numbers of a source or a view: its last batch and how long that took, and what all of its run have brought."""

OF_A_QUERY: Final = ("batch", "rows", "offset", "behind", "milliseconds")
"""Those of any streaming query."""


class SparkAccumulator(Protocol):
    """A number of Spark's, in the JVM."""

    def setValue(self, number: int, /) -> None:  # noqa: N802  # the name is Spark's
        """Let it be *number*."""


class Gauges:
    """Some numbers under one name."""

    def __init__(self, accumulators: Mapping[str, SparkAccumulator]) -> None:
        self.accumulators = accumulators

    def show(self, numbers: Mapping[str, int]) -> None:
        """Let them be these; a call of the JVM each, some 0.2 ms."""
        with contextlib.suppress(Exception):  # see the contract
            for name, number in numbers.items():
                self.accumulators[name].setValue(number)


Registered: TypeAlias = "dict[str, tuple[Mapping[str, SparkAccumulator], weakref.ref[Gauges]]]"

_registered: Final[weakref.WeakKeyDictionary[SparkContext, Registered]] = weakref.WeakKeyDictionary()
_registering: Final = threading.Lock()


def gauges(session: SparkSession, name: str, numbers: Sequence[str]) -> Gauges | None:
    """Gauges for *numbers* under the first of *name*, *name*-2, .. that nothing uses; None where there can be none."""
    context = _context(session)
    if context is None or is_stopped(session):
        return None
    plain = re.sub(r"[^\w-]+", "_", name).strip("_")
    with _registering:
        there = _registered.setdefault(context, {})
        names = itertools.chain([plain], (f"{plain}-{number}" for number in itertools.count(2)))
        free = next(each for each in names if each not in there or _is_free(there[each], numbers))
        accumulators = there[free][0] if free in there else _register(session, free, numbers)
        result = Gauges(accumulators)
        there[free] = accumulators, weakref.ref(result)
    return result


def _is_free(registered: tuple[Mapping[str, SparkAccumulator], weakref.ref[Gauges]], numbers: Sequence[str]) -> bool:
    accumulators, user = registered
    return user() is None and tuple(accumulators) == tuple(numbers)


def describe(session: SparkSession, text: str) -> None:
    """Let Spark's pages say this of the jobs that this thread starts."""
    context = _context(session)
    if context is not None:
        context.setJobDescription(text)


def _context(session: SparkSession) -> SparkContext | None:
    """That of a classic session, which is in this process."""
    if is_connect(session):
        return None
    from pyspark import SparkContext

    context: object = session.sparkContext
    return context if isinstance(context, SparkContext) else None


def _register(session: SparkSession, name: str, numbers: Sequence[str]) -> dict[str, SparkAccumulator]:
    jvm, context = java_gateway().jvm, java_context(session)
    assert context is not None
    scala = context.sc()
    accumulators = {number: scala.longAccumulator(f"syndicate.{name}.{number}") for number in numbers}
    named = {f"syndicate.{name}.{number}": accumulator for number, accumulator in accumulators.items()}
    source = getattr(jvm.org.apache.spark.metrics.source, "LongAccumulatorSource$")  # an object of Scala's
    getattr(source, "MODULE$").register(scala, jvm.PythonUtils.toScalaMap(named))
    return accumulators


# ---------------------------------------------------------------------------------------------------------- any query


def query_metrics(session: SparkSession) -> StreamingQueryListener:
    """Keep gauges of each streaming query that *session* starts from now on, by a listener, which is returned.

    For queries that nothing here follows: those that read or write ``format("syndicate")``, and those of
    :func:`spark_stream`.  ``syndicate.query_NAME.batch``, ``.rows`` (all that came in), ``.offset`` (the sum of the
    numbers in the end offsets: for ``format("syndicate")`` the number of the batch in its log, for Kafka the messages),
    ``.behind`` (of the latest offsets, where a source tells them) and ``.milliseconds`` (of the last batch).
    ``session.streams.removeListener`` ends it.

    Raises:
        SourceError: *session* is one of Spark Connect, whose listeners run elsewhere.

    Example::

        query_metrics(session)
        changes.writeStream.format("syndicate").options(**broker).queryName("warm").start()
        # http://localhost:4040/metrics/json has ...driver.AccumulatorSource.syndicate.query_warm.rows
    """
    if _context(session) is None:
        raise SourceError(
            "query_metrics() needs a classic session, as open_session() gives one: with Spark Connect listeners run in "
            "a process of their own, without Spark's metrics"
        )
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryListener,
    )

    class QueryMetrics(StreamingQueryListener):
        def __init__(self) -> None:
            self.gauges: dict[object, Gauges] = {}
            self.rows: dict[object, int] = {}

        def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # the names are Spark's
            own = gauges(session, f"query_{event.name or event.id}", OF_A_QUERY)
            if own is not None:
                self.gauges[event.runId] = own
                self.rows[event.runId] = 0

        def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
            run = event.progress.runId
            if run in self.gauges:
                self.rows[run] += event.progress.numInputRows
                self.gauges[run].show(numbers_of(event.progress) | {"rows": self.rows[run]})

        def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
            self.gauges.pop(event.runId, None)
            self.rows.pop(event.runId, None)

    listener = QueryMetrics()
    session.streams.addListener(listener)
    return listener


def numbers_of(progress: StreamingQueryProgress) -> dict[str, int]:
    """What a query's progress says of one batch."""
    ends = [(_total(source.endOffset), source) for source in progress.sources]
    behind = [_total(source.latestOffset) - end for end, source in ends if source.latestOffset]
    return {
        "batch": progress.batchId,
        "offset": sum(end for end, _ in ends),
        "behind": max(0, sum(behind)),
        "milliseconds": progress.batchDuration,
    }


def _total(offset: str | None) -> int:
    """The sum of the numbers in an offset, which is JSON of any shape.

    >>> _total('{"orders": {"0": 12, "1": 30}}'), _total('{"batch": 7}'), _total(None), _total("17")
    (42, 7, 0, 17)
    """
    try:
        return sum(_integers(json.loads(offset or "0")))
    except ValueError:
        return 0


def _integers(item: object) -> Iterator[int]:
    if isinstance(item, Mapping):
        item = list(item.values())
    if isinstance(item, list):
        for each in item:
            yield from _integers(each)
    elif type(item) is int:
        yield item
