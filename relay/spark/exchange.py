"""One exchange with a broker, from a process that is no actor: ask what is there, or let a batch take effect.

Both connect, act, and end when the broker has handled all of it; they block.  What fails for a reason that passes is
tried again, after a random time below a bound that doubles; to ask twice changes nothing, and a batch is counted.

**A batch is exact on a durable broker.**  It keeps ``<spark-batch NAME N>`` with each batch: what a batch changes goes
into one turn with that, which a durable dataspace keeps as a whole or not at all.  A batch whose number is not above
what is kept took effect already, and is left out.  A batch of more than :data:`WHOLE` rows is several turns, the one
with the number last: then a batch that was cut short is seen in part until it is repeated, which ends the same, since
to keep what is kept changes nothing.

Source: ``docs/design/spark.md``, "The Data Source".
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, TypeVar

from attrs import define, field, frozen

from relay.client import connect
from relay.spark.options import Broker
from syndicate.actors.during import observe
from syndicate.actors.keep import FORGET, KEEP
from syndicate.actors.running import run
from syndicate.actors.timer import after
from syndicate.actors.turn import Entity, current
from syndicate.actors.verbs import stop_actor, sync
from syndicate.errors import ConnectError, SinkError, SourceError, SyndicateError
from syndicate.index.event import MESSAGE
from syndicate.values.pattern import ANY, Capture, Group, Literal, Pattern
from syndicate.values.value import Assertion, Frozen, Ref, Symbol

T = TypeVar("T")

WHOLE: Final = 4_000
"""Rows that take effect at once; a turn of more events is several packets anyhow."""

NOT_DURABLE: Final = (
    "the dataspace keeps nothing, so that what is written would go with the connection: start syndicate-server with "
    "--state DIR, and give the cap of its durable dataspace, or write messages, with "
    '.option("events", "messages")'
)

BATCH: Final = Symbol("spark-batch")
_BEGUN: Final = -1
_LONGEST: Final = 10.0


def ask(broker: Broker, patterns: Sequence[Pattern]) -> list[list[tuple[Frozen, ...]]]:
    """What each pattern captures now: distinct tuples, in no order.  Costs what matches.

    Raises :class:`SourceError` if the broker cannot be reached, or refuses.
    """

    def attempt() -> list[list[tuple[Frozen, ...]]]:
        answers = [_Answers() for _ in patterns]

        def asked(ds: Ref) -> None:
            for pattern, answer in zip(patterns, answers, strict=True):
                observe("ask", ds, pattern, answer)
            sync(ds, stop_actor)

        _exchange(broker, asked)
        return [list(answer.rows.values()) for answer in answers]

    return repeated(broker, attempt, SourceError)


@frozen
class Batch:
    """What a batch does: values to keep and to forget, and the name and the number by which it counts once.

    *instead* and *key*: what matches the pattern goes, unless it is kept again; with a key, only what has a key of the
    batch.  The key of a row is made of its captures.
    """

    keep: Sequence[Frozen]
    forget: Sequence[Frozen]
    name: str | None = None
    number: int = 0
    instead: Pattern | None = None
    key: Callable[[tuple[Frozen, ...]], Frozen] | None = None
    keys: frozenset[Frozen] = frozenset()
    value: Callable[[Sequence[Frozen]], Frozen] | None = None


def commit(broker: Broker, batch: Batch) -> bool:
    """Let a batch take effect in a durable dataspace; whether it did, or had done so before.

    Raises :class:`SinkError` if the broker cannot be reached, or refuses, or its dataspace is not durable.
    """
    return repeated(broker, lambda: _Commit(batch).run(broker), SinkError)


def send(broker: Broker, values: Sequence[Frozen]) -> None:
    """Send messages; raises :class:`SinkError`."""

    def attempt() -> None:
        def said(ds: Ref) -> None:
            _shares(ds, values, lambda share: [(form,) for form in share], stop_actor)

        _exchange(broker, said)

    repeated(broker, attempt, SinkError)


def repeated(broker: Broker, attempt: Callable[[], T], kind: type[SyndicateError]) -> T:
    """Make an attempt, and again if the broker did not answer."""
    bound = 0.2
    for left in range(broker.retries, -1, -1):
        try:
            return attempt()
        except ConnectError as error:
            if left == 0 or _refused(error):
                raise kind(
                    f"the broker at {broker.address} does not answer as it should: {error}; is syndicate-server "
                    "running there, and reachable from the machines of Spark, and is cap what it prints?"
                ) from None
        time.sleep(random.uniform(0, bound))
        bound = min(_LONGEST, 2 * bound)
    raise AssertionError


def _refused(error: ConnectError) -> bool:
    """Whether the broker has answered, and will say the same again."""
    return "refuses the capability" in str(error)


def _exchange(broker: Broker, act: Callable[[Ref], object]) -> None:
    """Connect, and *act* in a turn; *act* sees to it that the actor stops."""

    def boot() -> None:
        after(broker.timeout, late)
        connect(broker.address, broker.cap, attempts=3, reconnect=False, tls=broker.tls)(act)

    def late() -> None:
        raise ConnectError(f"{broker.address}: no answer within {broker.timeout:g} seconds (option timeout)")

    run(boot)


class _Answers(Entity):
    """What a pattern captures, as long as it is there."""

    raw: ClassVar[bool] = True

    def __init__(self) -> None:
        self.rows: dict[Assertion, tuple[Frozen, ...]] = {}

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """It has come; the first part is what a sequence begins with."""
        assert isinstance(form, tuple)
        self.rows[handle] = form[1:]

    def retract(self, handle: Assertion) -> None:
        """It has gone."""
        self.rows.pop(handle, None)


def _say(ds: Ref, *form: Frozen) -> None:
    """Send a frozen form."""
    said: Frozen = form[0] if len(form) == 1 else form
    current("send").enqueue(ds.facet.actor, (MESSAGE, ds, said, None))


def _shares(
    ds: Ref,
    values: Sequence[Frozen],
    forms: Callable[[Sequence[Frozen]], Sequence[tuple[Frozen, ...]]],
    then: Callable[[], object],
) -> None:
    """Send in turns that the broker acknowledges."""

    def more(start: int) -> None:
        for form in forms(values[start : start + WHOLE]):
            _say(ds, *form)
        end = start + WHOLE
        sync(ds, then if end >= len(values) else lambda: more(end))

    more(0)


@define(eq=False)
class _Commit:
    """One attempt at a batch."""

    batch: Batch
    numbers: _Answers = field(factory=_Answers)
    there: _Answers = field(factory=_Answers)
    effect: bool = False
    ds: Ref = field(init=False)
    name: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.name = self.batch.name or f"once-{uuid.uuid4()}"  # somebody else's may come and go meanwhile

    def run(self, broker: Broker) -> bool:
        _exchange(broker, self.begin)
        return self.effect

    def mark(self, number: int) -> Frozen:
        return (BATCH, self.name, number)

    def begin(self, ds: Ref) -> None:
        self.ds = ds
        name = Literal(self.name)
        observe("commit", ds, Group("rec", BATCH, ((0, name), (1, Capture(ANY)))), self.numbers)
        if self.batch.instead is not None:
            observe("commit", ds, self.batch.instead, self.there)
        sync(ds, self.on_synced)

    def last(self) -> int | None:
        """The number of the last batch that is kept."""
        return max([number for (number,) in self.numbers.rows.values() if isinstance(number, int)], default=None)

    def on_synced(self) -> None:
        """What was kept is known."""
        last = self.last()
        if last is None:
            _say(self.ds, KEEP, self.mark(_BEGUN))
            sync(self.ds, self.durable)
        elif self.batch.name is not None and last >= self.batch.number:
            stop_actor()
        else:
            self.work()

    def durable(self) -> None:
        """Whether it keeps what it was to keep: before anything else is said, for others would hear it."""
        if self.last() is None:
            raise SinkError(NOT_DURABLE)
        self.work()

    def work(self) -> None:
        """Say all of it, the number last."""
        keep = dict.fromkeys(self.batch.keep)
        forget = [form for form in [*self.batch.forget, *self.replaced()] if form not in keep]
        changes: list[tuple[Frozen, Frozen]] = [*[(KEEP, form) for form in keep], *[(FORGET, form) for form in forget]]
        self.more(changes, 0)

    def replaced(self) -> list[Frozen]:
        """What is there and is to go."""
        batch = self.batch
        if batch.instead is None or batch.value is None:
            return []
        rows = self.there.rows.values()
        return [batch.value(row) for row in rows if batch.key is None or batch.key(row) in batch.keys]

    def more(self, changes: Sequence[tuple[Frozen, Frozen]], start: int) -> None:
        end = start + WHOLE
        for change in changes[start:end]:
            _say(self.ds, *change)
        if end < len(changes):
            sync(self.ds, lambda: self.more(changes, end))
            return
        if self.batch.name is not None:
            _say(self.ds, KEEP, self.mark(self.batch.number))
        for (number,) in list(self.numbers.rows.values()):
            if self.batch.name is None or number != self.batch.number:
                _say(self.ds, FORGET, (BATCH, self.name, number))
        if self.batch.name is None:
            _say(self.ds, FORGET, self.mark(_BEGUN))
        self.effect = True
        sync(self.ds, self.done)

    def done(self) -> None:
        """All is on the disk, if there is one."""
        if self.batch.name is not None and self.last() != self.batch.number:
            raise SinkError(NOT_DURABLE)
        stop_actor()


__all__ = ["BATCH", "WHOLE", "Batch", "ask", "commit", "repeated", "send"]
