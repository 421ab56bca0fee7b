"""Jobs by NATS JetStream: a worker (``jobs_jetstream.py worker``), and a client (``jobs_jetstream.py N``).

Run by the Python of ``.peers/nats``; ``NATS`` is the port of a nats-server with ``-js``.  Jobs are in a stream from
which an acknowledgement removes them; an outcome is written into a second stream before its job is acknowledged.
"""

import asyncio
import json
import os
import sys
import time

import nats
from nats.aio.msg import Msg
from nats.errors import TimeoutError as NothingThere
from nats.js import JetStreamContext
from nats.js.api import RetentionPolicy, StorageType

_URL = f"nats://127.0.0.1:{os.environ['NATS']}"
_SLOTS = 16
_ON_THE_WAY = 256  # what a client publishes before it waits for the server's answers


async def _streams(js: JetStreamContext) -> None:
    """Both streams, in files; that they are there already is no error."""
    await js.add_stream(name="jobs", subjects=["job.*"], retention=RetentionPolicy.WORK_QUEUE, storage=StorageType.FILE)
    await js.add_stream(name="done", subjects=["done.*"], storage=StorageType.FILE)


async def work() -> None:
    """Take up to 16 jobs at once, until the end."""
    connection = await nats.connect(_URL)
    js = connection.jetstream()
    await _streams(js)
    jobs = await js.pull_subscribe("job.*", durable="worker")
    print("ready", flush=True)

    async def job(message: Msg) -> None:
        await js.publish("done." + message.subject.partition(".")[2], message.data)
        await message.ack()

    while True:
        try:
            batch = await jobs.fetch(_SLOTS, timeout=5)
        except NothingThere:
            continue
        await asyncio.gather(*map(job, batch))


async def order(count: int) -> None:
    """Submit jobs, wait for all outcomes, print the seconds."""
    connection = await nats.connect(_URL)
    js = connection.jetstream()
    await _streams(js)
    done = await js.pull_subscribe("done.*", durable="client")
    begin = time.perf_counter()
    outcomes: set[int] = set()

    async def submit() -> None:
        for first in range(0, count, _ON_THE_WAY):
            bodies = range(first, min(first + _ON_THE_WAY, count))
            await asyncio.gather(*[js.publish(f"job.{body}", str(body).encode()) for body in bodies])

    async def collect() -> None:
        while len(outcomes) < count:
            for message in await done.fetch(_ON_THE_WAY, timeout=30):
                outcomes.add(int(message.data))
                await message.ack()

    await asyncio.gather(submit(), collect())
    assert outcomes == set(range(count))
    print(json.dumps({"wall": time.perf_counter() - begin, "cpu": time.process_time()}))
    await connection.close()


if __name__ == "__main__":
    asyncio.run(work() if sys.argv[1] == "worker" else order(int(sys.argv[1])))
