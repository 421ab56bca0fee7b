"""How often a job is tried, and when again.

>>> policy = Retry(times=4, first=1.0, factor=2.0, most=3.0, jitter=False)
>>> [policy.delay(attempt) for attempt in (1, 2, 3)]
[1.0, 2.0, 3.0]

Times of schedules, in the notation of cron: ``minute hour day month weekday``, in UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime

from attrs import frozen

from syndicate.errors import ArgumentError, QueueMisuse
from syndicate.outside import outside

# ----------------------------------------------------------------------------- how often a job is tried, and when again


@frozen
class Retry:
    """At most *times* attempts.  After a failure the next one waits *first* seconds, after each further one *factor*
    times as long, at most *most*; with *jitter* any part of the upper half of that, so that many do not come at once.

    Raises:
        ArgumentError: *times* is below 1, or a number is negative.
    """

    times: int = 5
    first: float = 1.0
    factor: float = 2.0
    most: float = 300.0
    jitter: bool = True

    def __attrs_post_init__(self) -> None:
        if self.times < 1 or min(self.first, self.factor, self.most) < 0:
            raise ArgumentError(f"Retry needs times of at least 1 and no negative number, not {self!r}")

    def delay(self, attempt: int) -> float:
        """Seconds between the failure of this attempt, counted from 1, and the next."""
        exponent = min(attempt - 1, 64)
        wait = min(self.most, self.first * self.factor**exponent)
        return outside().uniform(wait / 2, wait) if self.jitter else wait


# -------------------------------------------------------------------------- times of schedules, in the notation of cron


def next_slot(cron: str) -> float:
    """Seconds since 1970 of the first time after now that fits *cron*.

    >>> next_slot("0 4 * * *") % 86400 / 3600
    4.0

    Raises:
        QueueMisuse: *cron* is no such expression, or nothing ever fits it; or cronsim is not installed.
    """
    try:
        from cronsim import CronSim, CronSimError
    except ImportError:
        raise QueueMisuse("schedules need cronsim: pip install 'syndicate-dataspace[work]'") from None
    try:
        return float(next(CronSim(cron, datetime.fromtimestamp(outside().time_of_day(), UTC))).timestamp())
    except (CronSimError, StopIteration) as error:
        raise QueueMisuse(
            f'"{cron}" is no time that comes: write minute, hour, day, month and weekday, as in "*/5 * * * *" ({error})'
        ) from None
