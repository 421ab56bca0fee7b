"""A streaming query of Spark's, followed from a task: started, watched, and stopped within seconds.

The callback runs in a thread of Spark's.  What it hands over goes through a channel of capacity zero, whose other end
a task reads; the thread goes on when that task has taken the batch *and* has come back for more.  Closing that end is
how the task says that it has stopped.

Contract: a query that ends on its own is a failure, unless its trigger says that it ends; when :meth:`Query.follow`
has returned or raised, no callback goes on, and the query is being stopped.

Source: ``docs/design/spark.md``, "The path of a batch".
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import trio
from attrs import define, field
from trio.lowlevel import TrioToken

from syndicate.errors import SourceError
from syndicate.outside import outside
from syndicate.spark.errors import explained
from syndicate.spark.spark_connect import is_stopped
from syndicate.spark.threads import in_thread, running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

B = TypeVar("B")

LOOK: Final = 1
"""Seconds from one look to the next whether the query's session is still there: Spark does not tell of its end."""

STOPPING: Final = 5.0
"""Seconds that the end of a query is waited for; it goes on ending without us."""


_numbers: Final = itertools.count(1)


class _Closed(Exception):
    """The source has stopped: the callback must not say that it dealt with its micro-batch."""


def trigger_of(trigger: object) -> dict[str, str | bool]:
    """When micro-batches are made, if that is anything that Spark knows; raises :class:`SourceError` if not.

    >>> trigger_of({"processingTime": "5 seconds"})
    {'processingTime': '5 seconds'}
    """
    if trigger is None or trigger == {}:
        return {}
    if isinstance(trigger, Mapping) and len(trigger) == 1:
        ((name, value),) = trigger.items()
        if name in ("availableNow", "once") and value is True:
            return {name: True}
        if name == "processingTime" and isinstance(value, str) and value.strip():
            return {name: value}
    raise SourceError(
        f'trigger= takes {{"processingTime": "5 seconds"}}, or {{"availableNow": True}} for a stream that ends, not '
        f"{trigger!r}"
    )


def _is_news(entry: logging.LogRecord) -> bool:
    """Whether a log entry of py4j tells what the source does not tell, too: that a callback failed, or nobody answers.

    (py4j writes the latter to the root of all loggers.)
    """
    if entry.name == "root" and entry.module not in ("clientserver", "java_gateway"):
        return True
    known_errors = (_Closed, SourceError, ConnectionError, EOFError)
    error = entry.exc_info[1] if entry.exc_info else None
    return not (
        isinstance(error, known_errors) or isinstance(getattr(error, "__context__", None), (ConnectionError, EOFError))
    )


@define(eq=False)
class Query(Generic[B]):
    """How to follow the rows of *name*: when Spark makes micro-batches, in which output mode, and where it notes them.

    ``checkpoint`` is kept; without one there is a temporary directory.
    """

    name: str
    trigger: Mapping[str, str | bool]
    mode: str
    checkpoint: str | None = None
    limiter: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(2))
    failure: Exception | None = None

    @property
    def bounded(self) -> bool:
        """Whether the query ends when all that is there was read."""
        return bool(self.trigger.get("availableNow") or self.trigger.get("once"))

    async def follow(
        self,
        frame: DataFrame,
        plan: Callable[[DataFrame, int], B | None],
        take: Callable[[B], Awaitable[None]],
        through: Callable[[], Awaitable[None]],
    ) -> None:
        """Start the query, and until it ends call *plan* for each micro-batch in Spark's thread, and *take* with the
        answer, unless it is None, in this task; and *through* once all that was there has been taken.

        Raises:
            SourceError: the query failed, was stopped by somebody, or lost its session.
        """
        send, receive = trio.open_memory_channel[B | None](0)
        checkpoint = self.checkpoint or tempfile.mkdtemp(prefix="syndicate-checkpoint-")
        query: StreamingQuery | None = None
        try:
            token = trio.lowlevel.current_trio_token()
            start = functools.partial(self._start, frame, checkpoint, plan, send, token)
            query = await in_thread(start, limiter=self.limiter, abandon=False)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_take_all, receive, take)
                try:
                    await self._watch(frame.sparkSession, query, through)
                except Exception as error:  # a nursery would wrap it
                    self.failure = error
                nursery.cancel_scope.cancel()
        finally:
            receive.close()
            with trio.move_on_after(STOPPING, shield=True):
                end = functools.partial(_end, query, None if self.checkpoint else checkpoint)
                await in_thread(end, limiter=self.limiter)
        if self.failure is not None:
            raise self.failure
        await through()

    def _start(
        self,
        frame: DataFrame,
        checkpoint: str,
        plan: Callable[[DataFrame, int], B | None],
        send: trio.MemorySendChannel[B | None],
        token: TrioToken,
    ) -> StreamingQuery:
        here = outside()

        def called(batch: DataFrame, number: int) -> None:
            try:
                with running():
                    planned = plan(batch, number)
                if planned is not None:
                    here.back(send.send, planned, token=token)
                    # The task takes this, and we go on, only when it has dealt with the other.
                    here.back(send.send, None, token=token)
            except (trio.BrokenResourceError, trio.RunFinishedError, trio.Cancelled):
                raise _Closed from None
            except Exception as error:
                self.failure = error
                raise

        for name in ("py4j.clientserver", None):
            logging.getLogger(name).addFilter(_is_news)
        stream = frame.writeStream.foreachBatch(called).outputMode(self.mode).option("checkpointLocation", checkpoint)
        # So it is found in Spark's pages and its progress; two queries of a session cannot have one name.
        stream = stream.queryName(f"syndicate: {self.name} ({next(_numbers)})")

        def begin() -> StreamingQuery:  # the trigger, too, is Spark's to refuse
            if self.trigger:
                stream.trigger(**self.trigger)  # type: ignore[arg-type]  # trigger_of has looked
            return stream.start()

        return explained(self.name, begin)

    async def _watch(
        self, session: SparkSession, query: StreamingQuery, through: Callable[[], Awaitable[None]]
    ) -> None:
        """Wait for the end of the query."""
        caught_up = functools.partial(explained, self.name, _caught_up, query)
        waiting = False
        look = functools.partial(explained, self.name, _ended, session, query)
        ended: bool | None = False
        try:
            while ended is False:
                ended = await in_thread(look, limiter=self.limiter, calls=True)
                if ended is False and not waiting:
                    waiting = await in_thread(caught_up, limiter=self.limiter)
                    if waiting:
                        await through()
        except SourceError:
            if self.failure is None:
                raise
        if self.failure is not None:
            return  # the callback knows better what was wrong
        if ended is None:
            raise SourceError(f"Spark could not deliver the rows of {self.name}: its session was stopped")
        if not self.bounded:
            raise SourceError(
                f"the query for the rows of {self.name} has ended by itself: somebody has stopped it; a stream that "
                'ends is one with trigger={"availableNow": True}'
            )


async def _take_all(receive: trio.MemoryReceiveChannel[B | None], take: Callable[[B], Awaitable[None]]) -> None:
    async for planned in receive:
        if planned is not None:
            await take(planned)


def _ended(session: SparkSession, query: StreamingQuery) -> bool | None:
    """Whether the query has ended, after waiting for it a little; None if its session has."""
    return None if is_stopped(session) else query.awaitTermination(LOOK)


def _caught_up(query: StreamingQuery) -> bool:
    """Whether the query has taken all that its stream had: it waits for more, or came to the latest offsets."""
    if query.status["message"] == "Waiting for data to arrive":
        return True
    progress = query.lastProgress
    sources = [] if progress is None else progress["sources"]
    return bool(sources) and all(each["latestOffset"] and each["latestOffset"] == each["endOffset"] for each in sources)


def _end(query: StreamingQuery | None, checkpoint: str | None) -> None:
    """Stop the query."""
    if query is not None:
        with contextlib.suppress(Exception):  # what it has to say about its end is not news any more
            query.stop()
    if checkpoint is not None:
        shutil.rmtree(checkpoint, ignore_errors=True)
