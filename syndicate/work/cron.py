"""Times of schedules, in the notation of cron: ``minute hour day month weekday``, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from syndicate.errors import QueueMisuse
from syndicate.outside import outside


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
