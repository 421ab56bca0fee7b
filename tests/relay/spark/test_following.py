"""A dataspace as a stream, beside a real broker that is killed and comes back: the sum of what the stream says is what
is there, whoever was away.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pytest

from relay.spark.change_log import FeedLog, Row
from relay.spark.following import Following
from relay.spark.options import Options
from relay.spark.question import Question
from syndicate import send
from syndicate.errors import SourceError
from syndicate.values.text import parse
from tests.relay.spark.brokers import Broker, options

QUESTION = Question.of("<Sensor $name $value>")


class Consumer:
    """What Spark would have: the sum of all it was notified of, up to an offset that it has noted."""

    def __init__(self, broker: Broker, file: Path | None) -> None:
        self.broker = broker
        self.file = file
        self.at = 0
        self.sums: Counter[Row] = Counter()
        self.open()

    def open(self) -> None:
        """A new process, as far as the stream knows."""
        target = Options.of(options(self.broker, pattern=QUESTION.text)).broker
        self.log = FeedLog(self.file, "this one")
        self.following = Following(target, [QUESTION.pattern], self.log, grace=0)

    def step(self, commits: bool = True) -> None:
        """A micro-batch."""
        end = self.following.advance()
        for row, weight in self.log.between(self.at, end):
            self.sums[row] += weight
            assert self.sums[row] in (0, 1)
        self.at = end
        if commits:
            self.log.forget(end)

    def there(self) -> list[str]:
        """The rows that are there, as far as it was notified."""
        return sorted([f'<Sensor "{row[1]}" {row[2]}>' for row, weight in self.sums.items() if weight])

    def until(self, expected: set[str]) -> None:
        """Go on until it was notified of this."""
        end = time.monotonic() + 60
        while self.there() != sorted(expected):
            assert time.monotonic() < end, (self.there(), expected)
            time.sleep(0.05)
            self.step()


def test_whatever_is_killed(broker: Broker, tmp_path: Path) -> None:
    """Changes, kills of the broker, and ends of the stream's process, between them any number of micro-batches."""
    choices = random.Random(7)
    consumer = Consumer(broker, tmp_path / "log")
    consumer.step()
    there: set[str] = set()
    for _ in range(25):
        match choices.choice(["change", "change", "kill", "restart", "step"]):
            case "change":
                names = {f'<Sensor "{choices.choice("abcd")}" {choices.randrange(3)}>' for _ in range(4)}
                broker.keep(*(names - there))
                broker.forget(*(names & there))
                there ^= names
            case "kill":
                broker.kill()
                consumer.step()
                broker.start()
            case "restart":
                consumer.following.close()
                consumer.open()
                consumer.step()
            case _:
                consumer.step(commits=choices.random() < 0.5)
    consumer.until(there)
    consumer.following.close()


def test_a_lost_connection_is_no_change(broker: Broker, tmp_path: Path) -> None:
    """While the broker is away there is no event; what changed meanwhile is one, and nothing else."""
    broker.keep('<Sensor "a" 1>', '<Sensor "b" 1>')
    consumer = Consumer(broker, None)
    consumer.until({'<Sensor "a" 1>', '<Sensor "b" 1>'})
    before = consumer.log.last
    broker.kill()
    for _ in range(10):
        consumer.step()
        time.sleep(0.02)
    assert consumer.log.last == before
    broker.start()
    broker.forget('<Sensor "a" 1>')
    consumer.until({'<Sensor "b" 1>'})
    assert consumer.log.last == before + 1
    consumer.following.close()


def test_a_broker_that_was_never_there(tmp_path: Path) -> None:
    """That is an error, not an empty dataspace."""
    consumer = Consumer(Broker(tmp_path / "nobody"), None)
    with pytest.raises(SourceError, match=r"does not answer as it should.*syndicate-server"):
        consumer.step()


def test_messages(broker: Broker) -> None:
    """What is sent while the stream is connected comes once each, also twice the same."""
    target = Options.of(options(broker, pattern=QUESTION.text)).broker
    log = FeedLog(None)
    following = Following(target, [QUESTION.pattern], log, messages=True)
    following.advance()
    broker.act(lambda ds: [send(ds, parse('<Sensor "a" 1>')) for _ in range(2)])
    broker.act(lambda ds: send(ds, parse('<Sensor "b" 2>')))
    end = time.monotonic() + 60
    while len(log.messages(0, following.advance())) < 3:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert [row[1:] for row, _ in log.messages(0, log.last)] == [("a", 1), ("a", 1), ("b", 2)]
    following.close()
