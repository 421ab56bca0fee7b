"""Exchanges with a real broker: a batch counts once, whatever is killed; what is not durable is refused before."""

from __future__ import annotations

import threading
import time

import pytest

from relay.spark import options as given
from relay.spark.exchange import WHOLE, Batch, ask, commit, send
from relay.spark.question import Question
from syndicate import ANY, Record, Symbol
from syndicate.errors import SinkError, SourceError
from syndicate.values.value import Frozen
from tests.relay.spark.brokers import DURABLE, VOLATILE, Broker, options

SENSOR = Question.of("<Sensor $name $value>")


def of(broker: Broker, cap: str = DURABLE, **more: object) -> given.Broker:
    """The broker, as the options name it."""
    return given.Options.of({**options(broker, **more), "cap": cap}).broker


def sensor(name: str, value: int) -> Frozen:
    """Its form."""
    return (Symbol("Sensor"), name, value)


def test_a_batch_counts_once(broker: Broker) -> None:
    """What comes again, or late, has no effect: what somebody else has done meanwhile stays done."""
    at = of(broker)
    assert commit(at, Batch([sensor("a", 1), sensor("b", 1)], [], "q", 0))
    broker.forget('<Sensor "a" 1>')
    assert not commit(at, Batch([sensor("a", 1), sensor("b", 1)], [], "q", 0))
    assert sorted(ask(at, [SENSOR.pattern])[0]) == [("b", 1)]
    assert commit(at, Batch([sensor("c", 1)], [sensor("b", 1)], "q", 3))
    assert not commit(at, Batch([sensor("d", 1)], [], "q", 2))
    assert commit(at, Batch([sensor("e", 1)], [], "another", 0))
    broker.kill()
    broker.start()
    assert not commit(at, Batch([sensor("f", 1)], [], "q", 3))
    assert sorted(ask(at, [SENSOR.pattern])[0]) == [("c", 1), ("e", 1)]
    marks = [list(mark.fields) for mark in broker.there(Record("spark-batch", [ANY, ANY]))]
    assert sorted(marks) == [["another", 0], ["q", 3]]


def test_without_a_name_nothing_is_left(broker: Broker) -> None:
    """A batch that is not counted leaves no trace of the question whether the dataspace is durable."""
    for _ in range(2):
        assert commit(of(broker), Batch([sensor("a", 1)], []))
    assert broker.there(Record("spark-batch", [ANY, ANY])) == []


@pytest.mark.parametrize("keyed", [False, True])
def test_what_is_replaced(broker: Broker, keyed: bool) -> None:
    """All that matches, or what has a key of the batch."""
    broker.keep('<Sensor "a" 1>', '<Sensor "b" 1>', '<Sensor "c" 1>', '<Other "a">')
    make = SENSOR.template()
    batch = Batch(
        [sensor("a", 2), sensor("b", 1)],
        [],
        instead=SENSOR.pattern,
        key=(lambda row: row[0]) if keyed else None,
        keys=frozenset(["a", "b"]),
        value=make,
    )
    commit(of(broker), batch)
    rows = sorted(ask(of(broker), [SENSOR.pattern])[0])
    assert rows == [("a", 2), ("b", 1), *([("c", 1)] if keyed else [])]
    assert broker.there(Record("Other", [ANY])) == [Record("Other", ["a"])]


def test_what_is_not_durable(broker: Broker) -> None:
    """That is refused before anything is said that others could hear, and before anything stands."""
    with pytest.raises(SinkError, match=r"keeps nothing.*--state DIR.*messages"):
        commit(of(broker, VOLATILE), Batch([sensor("a", 1)], [], "q", 0))
    assert ask(of(broker), [SENSOR.pattern]) == [[]]


def test_who_does_not_answer(broker: Broker) -> None:
    """The address, and what to look at, are in the error; a wrong capability is not tried again and again."""
    at = of(broker, retries=1)
    began = time.monotonic()
    with pytest.raises(SourceError, match=r"does not answer.*cap"):
        ask(of(broker, DURABLE.replace("79", "80", 1), retries=50), [SENSOR.pattern])
    assert time.monotonic() - began < 30
    broker.kill()
    with pytest.raises(SinkError, match=rf"the broker at {at.address} does not answer.*is syndicate-server running"):
        commit(at, Batch([sensor("a", 1)], []))


def test_a_broker_that_comes_back(broker: Broker) -> None:
    """A batch is said again, and counts once, if the broker is away for a while."""
    broker.kill()
    late = threading.Timer(1.0, broker.start)
    late.start()
    assert commit(of(broker, retries=50), Batch([sensor("a", 1)], [], "q", 0))
    late.join()
    assert ask(of(broker), [SENSOR.pattern]) == [[("a", 1)]]


def test_more_than_a_turn(broker: Broker) -> None:
    """A large batch is there as a whole, and counts."""
    many = [sensor(f"s{n}", n) for n in range(WHOLE + 10)]
    assert commit(of(broker), Batch(many, [], "q", 0))
    assert len(ask(of(broker), [SENSOR.pattern])[0]) == WHOLE + 10
    assert commit(of(broker), Batch([], many[10:], "q", 1))
    assert sorted(ask(of(broker), [SENSOR.pattern])[0]) == sorted((f"s{n}", n) for n in range(10))


def test_messages_are_sent_and_do_not_stand(broker: Broker) -> None:
    """A sent value is there for nobody who asks later."""
    send(of(broker, VOLATILE), [sensor("a", 1)])
    assert ask(of(broker), [SENSOR.pattern]) == [[]]
