"""What a step on Spark gives: the change of each sink, in the driver if it is small, else in files.

Source: ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from syndicate.errors import UnknownStream
from syndicate.flow.element import Element
from syndicate.flow.node import Carries
from syndicate.flow.zset import IndexedZSet, ZSet
from syndicate.spark.engine.batch import Batch
from syndicate.spark.engine.context import collected
from syndicate.spark.engine.rows import items_of
from syndicate.spark.engine.shape import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Delta:
    """The change of one stream in one step.

    Iterating gives elements and weights and brings all of them to the driver; :attr:`frame` leaves them where they are.
    A large change is in files, which stay until the second step after this one.
    """

    def __init__(self, batch: Batch | None, carries: Carries, session: SparkSession) -> None:
        self._batch = batch
        self._carries = carries
        self._session = session

    @property
    def frame(self) -> DataFrame:
        """A DataFrame: the columns ``e0, e1, ...`` of the element, before them ``k0, ...`` of the key if it is indexed,
        and the weight ``w``.  A column of elements of no common type holds canonical bytes.
        """
        if self._batch is None:
            return self._session.createDataFrame([], "w BIGINT")
        return self._batch.frame

    @property
    def layout(self) -> Layout | None:
        """What the columns hold; None for an empty change."""
        return None if self._batch is None else self._batch.layout

    def to_zset(self) -> ZSet | IndexedZSet:
        """All of it in the driver, as a :class:`ZSet`, or an :class:`IndexedZSet`."""
        items = list(self)
        return ZSet(items) if self._carries is Carries.ZSET else IndexedZSet(items)

    def __iter__(self) -> Iterator[tuple[Element, int]]:
        if self._batch is None:
            return iter(())
        return iter(items_of(collected(self._batch), self._batch.layout))

    def __len__(self) -> int:
        return 0 if self._batch is None else self._batch.rows or 0

    def __repr__(self) -> str:
        return f"<Delta of {len(self)} elements>"


class SinkChanges(Mapping[str, Any]):
    """The changes by sink: all sinks are there, empty ones too; a tuple where a sink has several streams.

    *repeated* says that the epoch had been committed before, and nothing was done.
    """

    def __init__(self, deltas: dict[str, Any], epoch: int, *, repeated: bool = False) -> None:
        self._deltas = deltas
        self.epoch = epoch
        self.repeated = repeated

    def __getitem__(self, name: str) -> Any:
        if name not in self._deltas:
            raise UnknownStream(f"the circuit has no sink {name!r}; its sinks are {sorted(self._deltas)}")
        return self._deltas[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._deltas)

    def __len__(self) -> int:
        return len(self._deltas)

    def __repr__(self) -> str:
        return f"<Changes of epoch {self.epoch}: {self._deltas!r}>"
