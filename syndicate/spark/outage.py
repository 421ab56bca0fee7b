"""An outage: the time from a look at a table that failed, for a reason that passes, to the next one that did not.

The delay doubles with each look that fails, from 0.1 to 30 seconds, and there are two lines in the log: at the
beginning and at the end.  A reason that does not pass after all so costs a look in half a minute, and a line.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from attrs import define

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

FIRST_DELAY: Final = 0.1
"""Seconds until a look is repeated for the first time."""

LONGEST_DELAY: Final = 30.0
"""Seconds until it is repeated for the tenth time and later."""


@define(eq=False)
class Outage:
    """The outages of the source *name*, of which there is one at most at a time.

    >>> import structlog
    >>> with structlog.testing.capture_logs() as log:
    ...     outage = Outage("Box", structlog.get_logger())
    ...     delays = [outage.delay(OSError("away")) for _ in range(10)]
    ...     outage.over()
    >>> delays[:3], delays[-1], len(log), outage.count
    ([0.1, 0.2, 0.4], 30.0, 2, 0)
    """

    name: str
    log: FilteringBoundLogger
    count: int = 0
    since: float = 0.0

    def delay(self, error: Exception) -> float:
        """Another look has failed: the seconds until the next one."""
        if not self.count:
            self.since = time.monotonic()
            self.log.warning(
                "a table cannot be read, and is tried again; what is asserted stays",
                source=self.name,
                reason=str(error),
            )
        self.count += 1
        return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(self.count - 1, 20))

    def over(self) -> None:
        """A look has succeeded."""
        if self.count:
            seconds = round(time.monotonic() - self.since, 1)
            self.log.warning("the table can be read again", source=self.name, looks=self.count, seconds=seconds)
        self.count = 0
