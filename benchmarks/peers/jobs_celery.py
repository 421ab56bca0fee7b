"""Jobs by Celery: a worker (``celery -A jobs_celery worker``), and a client (``python jobs_celery.py N``).

Run by the Python of ``.peers/celery``; ``REDIS`` is the port of the Redis that has the jobs and the results.
"""

import json
import os
import sys
import time

from celery import Celery

_REDIS = f"redis://127.0.0.1:{os.environ['REDIS']}"
app = Celery("jobs_celery", broker=f"{_REDIS}/0", backend=f"{_REDIS}/1")
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=16, broker_connection_retry_on_startup=True)


@app.task  # type: ignore[untyped-decorator]  # it ships no types
def job(body: int) -> int:
    """Gives back what it gets."""
    return body


def main() -> None:
    """Submit N jobs, wait for all outcomes, print the seconds."""
    count = int(sys.argv[1])
    begin = time.perf_counter()
    outcomes = [outcome.get() for outcome in [job.delay(body) for body in range(count)]]
    assert outcomes == list(range(count))
    print(json.dumps({"wall": time.perf_counter() - begin, "cpu": time.process_time()}))


if __name__ == "__main__":
    main()
