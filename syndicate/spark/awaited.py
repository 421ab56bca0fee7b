"""Sources that a sink waits for at its start: until they stand, what is missing has not gone.

Each source and view of Spark's says in the dataspace whether it has asserted what stood
(:class:`~syndicate.spark.progress.SparkSource`).  Those that are there and do not stand yet are waited for, for as long
as they need: they come to stand, or end.  One that comes late can be waited for by its name.

Contract: what a source asserted before it says that it is caught up, the sink was notified of before this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import trio

from syndicate.actors.turn import Entity, current
from syndicate.actors.verbs import current_facet, ref
from syndicate.errors import SinkError
from syndicate.index.interest import interest
from syndicate.spark.progress import SparkSource
from syndicate.values.pattern import capture, pattern_of
from syndicate.values.value import Assertion, Ref, Value, thaw


def names_of(sources: Sequence[type | str]) -> list[str]:
    """The names of sources that were given as record classes or as names; raises :class:`SinkError`.

    >>> names_of([SparkSource, "readings"])
    ['SparkSource', 'readings']
    """
    if isinstance(sources, str | type) or not all(isinstance(each, str | type) for each in sources):
        raise SinkError(f"sources= takes a list of record classes or names of sources, not {sources!r}")
    return [each if isinstance(each, str) else each.__name__ for each in sources]


class Awaited(Entity):
    """The sources in a dataspace, and those *named*, whether they are there or not."""

    raw = True

    def __init__(self, named: Iterable[str]) -> None:
        self.named = list(named)
        self.sources: dict[Assertion, tuple[str, bool]] = {}
        self.changed = trio.Event()

    def watch(self, ds: Ref) -> None:
        """Observe the sources in *ds*, from the turn that is."""
        pattern = pattern_of(SparkSource(capture(), capture()))
        current("spark_sink").assert_form(current_facet(), ds, interest(pattern, ref(self)))

    def assert_(self, value: Value, handle: Assertion) -> None:
        """A source says what it is."""
        name, standing = thaw(value)
        self.sources[handle] = (name, bool(standing))
        self._tell()

    def retract(self, handle: Assertion) -> None:
        """It says so no more."""
        self.sources.pop(handle, None)
        self._tell()

    def _tell(self) -> None:
        self.changed.set()
        self.changed = trio.Event()

    def absent(self) -> list[str]:
        """The names of those that do not stand yet."""
        here = Counter(self.sources.values())
        starting = {name for name, standing in here if not standing}
        return sorted(starting | {name for name in self.named if (name, True) not in here})

    async def asserted(self) -> None:
        """Wait until all stand."""
        while self.absent():
            await self.changed.wait()
