"""What a source and a circuit on a stream have in common: batches go into the dataspace, and what waits goes aside.

Source: ``docs/design/spark.md``, "The path of a batch".
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import trio
from attrs import define, field, frozen

from syndicate.errors import SourceError
from syndicate.log import logger
from syndicate.outside import outside
from syndicate.spark.delivery import Delivery, Move
from syndicate.spark.errors import explained
from syndicate.spark.metrics import OF_A_SOURCE, Gauges, describe, gauges
from syndicate.spark.progress import SparkProgress, SparkSource
from syndicate.spark.session import open_session
from syndicate.spark.spark_connect import is_connect, is_stopped
from syndicate.spark.threads import in_thread, note

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from structlog.typing import FilteringBoundLogger

T = TypeVar("T")

_opening: Final = threading.Lock()


def check_call(frame: object, session: object, parameter: str = "frame") -> None:
    """Raise :class:`SourceError` unless a frame can be made: what is seen at the call."""
    if not callable(frame):
        raise SourceError(
            f"{parameter}= takes a function from a session to a DataFrame, not the {type(frame).__name__} itself: "
            f"{parameter}=lambda session: ..."
        )
    if session is not None and not is_connect(session) and getattr(session, "sparkContext", None) is None:
        raise SourceError(f"session= takes a Spark session, not {_shown(session)}")


@frozen
class MicroBatch:
    """What is sent at a time: the steps, its number, how many rows it was, and when it began."""

    moves: Sequence[Move]
    number: int
    rows: int
    began: float


@define(eq=False)
class Follower:
    """What follows the rows of *name* into a dataspace, and says there how far it has come if *progress* is asked."""

    delivery: Delivery
    name: str
    progress: bool
    counted: int = field(default=0, init=False)
    asserted: int = field(default=0, init=False)
    retracted: int = field(default=0, init=False)
    announced: bool = field(default=False, init=False)
    gauges: Gauges | None = field(default=None, init=False)
    # Of its own: what waits for Spark takes a thread all the time, and trio's usual threads are forty.
    limiter: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(2), init=False)

    def begin(self) -> None:
        """Say, in the turn that starts it, that what is there is yet to be asserted."""
        self.delivery.place(SparkSource(self.name, standing=False))

    async def caught_up(self) -> None:
        """What was there at the start has been asserted: say so once."""
        if not self.announced:
            self.announced = True
            await self.delivery.show(SparkSource(self.name, standing=True))

    @property
    def log(self) -> FilteringBoundLogger:
        """Where to say what nobody has to act upon at once."""
        return logger(actor=self.delivery.facet.actor.name)

    async def opened(self, session: SparkSession | None) -> SparkSession:
        """The session that was given, or the one of this process, with gauges for what comes from it."""
        opened = session if session is not None else await self.in_thread(_open)
        note(opened)
        self.gauges = await self.in_thread(gauges, opened, self.name, OF_A_SOURCE)
        return opened

    def describe(self, frame: DataFrame, number: int) -> None:
        """Let Spark's pages say how far we are, at the jobs of a micro-batch; in Spark's thread."""
        describe(
            frame.sparkSession,
            f"syndicate: {self.name}, batch {number}; before it {self.counted:,} rows, {self.asserted:,} asserted, "
            f"{self.retracted:,} retracted",
        )

    def frame_of(self, make: Callable[[SparkSession], DataFrame], session: SparkSession) -> DataFrame:
        """The frame; raises :class:`SourceError` if there is none."""
        if is_stopped(session):
            raise SourceError(f"Spark could not deliver the rows of {self.name}: its session was stopped")
        frame = make(session)
        if not hasattr(frame, "isStreaming"):
            result: object = frame
            remedy = "return the DataFrame" if result is None else "session.createDataFrame makes one of a table"
            raise SourceError(
                f"the frame of {self.name} must be a function from a session to a DataFrame, but it made "
                f"{_shown(result)}: {remedy}"
            )
        return frame

    async def deliver(self, batch: MicroBatch) -> None:
        """Bring the batch into the dataspace, and say so there."""
        await self.delivery.batch(batch.moves)
        lag = round(outside().elapsed() - batch.began, 3)
        self.counted += batch.rows
        self.asserted += sum(len(move.adds) + len(move.bulk or ()) for move in batch.moves)
        self.retracted += sum(len(move.removes) for move in batch.moves)
        if self.gauges is not None:
            now = (batch.number, self.counted, self.asserted, self.retracted, round(lag * 1000))
            await self.in_thread(self.gauges.show, dict(zip(OF_A_SOURCE, now, strict=True)))
        if self.progress:
            await self.delivery.show(SparkProgress(self.name, batch.number, self.counted, lag))

    async def in_thread(self, fn: Callable[..., T], *args: object, abandon: bool = True) -> T:
        """Run what waits for Spark or the disk; *abandon* says that it may be left alone when the actor stops."""
        call = functools.partial(explained, self.name, fn, *args)
        return await in_thread(call, limiter=self.limiter, abandon=abandon, calls=True)


def _shown(item: object) -> str:
    """What something is, in a line."""
    text = repr(item)
    return text if len(text) < 60 and "\n" not in text else f"a {type(item).__module__}.{type(item).__qualname__}"


def _open() -> SparkSession:
    with _opening:
        return open_session()
