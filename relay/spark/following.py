"""A dataspace as a stream of changes, for a process that asks now and then what has changed.

A system in a thread of its own holds the connection, and notes what comes and goes; :meth:`Following.advance` makes a
batch of it, in the log.  A lost connection is no change: what is there when there is a new one is compared with what
Spark was given, once the broker has said all of it, and *grace* seconds later, in which others come back as well.  A
durable dataspace is whole before its broker listens, so that there *grace* may be 0.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import ClassVar

from relay.client import ConnectionState, connect
from relay.spark.change_log import Change, FeedLog, Row
from relay.spark.options import Broker
from syndicate.actors.during import observe
from syndicate.actors.timer import after
from syndicate.actors.turn import Entity
from syndicate.actors.verbs import prevent_inert_check, sync
from syndicate.errors import ConnectError, SourceError, SyndicateError, SystemStopped
from syndicate.thread import System
from syndicate.values.pattern import Pattern
from syndicate.values.value import Assertion, Frozen, Ref


class Following:
    """What matches *patterns* at a broker, from now on; *messages*: what is sent, and not what is asserted."""

    def __init__(
        self, broker: Broker, patterns: Sequence[Pattern], log: FeedLog, *, grace: float = 5.0, messages: bool = False
    ) -> None:
        self._broker = broker
        self._patterns = patterns
        self._log = log
        self._grace = grace
        self._messages = messages
        self._asserted = dict.fromkeys(log.asserted())
        self._now: dict[Row, None] = {}
        self._dirty: dict[Row, None] = {}
        self._sent: list[Row] = []
        self._whole = False
        self._ever = False
        self._known = threading.Event()
        self._state = ConnectionState("connecting")
        self._system = System(self._boot, name="syndicate-source").start()

    # ------------------------------------------------------------------------------------------ in turns of the system

    def _boot(self) -> None:
        prevent_inert_check()
        broker = self._broker
        connect(broker.address, broker.cap, attempts=broker.retries + 1, tls=broker.tls, told=self._on_state)(
            self._arrive
        )

    def _on_state(self, state: ConnectionState) -> None:
        self._state = state
        self._whole = self._whole and state.connected

    def _arrive(self, ds: Ref) -> None:
        self._now, self._dirty = {}, {}
        for place, pattern in enumerate(self._patterns):
            observe("readStream", ds, pattern, _Seen(self, place))
        if self._messages:
            sync(ds, self._complete)
        else:
            wait = self._grace if self._asserted else 0.0
            sync(ds, lambda: after(wait, self._complete) if wait else self._complete())

    def _complete(self) -> None:
        self._whole = self._ever = True
        self._known.set()
        if not self._messages:
            self._dirty = {**self._asserted, **self._now}

    def come(self, row: Row) -> None:
        """A row is there."""
        self._now[row] = None
        if self._whole:
            self._dirty[row] = None

    def go(self, row: Row) -> None:
        """A row is there no more."""
        self._now.pop(row, None)
        if self._whole:
            self._dirty[row] = None

    def hear(self, row: Row) -> None:
        """A message was sent."""
        if self._messages:
            self._sent.append(row)

    def _take(self) -> list[Change] | None:
        """What has changed since the last time; None if nobody knows now."""
        if self._messages:
            sent, self._sent = self._sent, []
            return [(row, 1) for row in sent]
        if not self._whole:
            return None
        dirty, self._dirty = self._dirty, {}
        changes = [(row, (row in self._now) - (row in self._asserted)) for row in dirty]
        changes = [change for change in changes if change[1]]
        for row, weight in changes:
            if weight > 0:
                self._asserted[row] = None
            else:
                del self._asserted[row]
        return changes

    # ---------------------------------------------------------------------------------------- in the thread that asks

    def advance(self) -> int:
        """Put what has changed into the log; the number of its last batch.

        The first time it waits until it is known what is there.  Raises :class:`SourceError` if the broker was never
        reached.
        """
        try:
            if not self._ever:
                self._wait()
            changes = self._system.call(self._take)
        except SystemStopped:
            raise self._failed() from None
        if changes:
            self._log.append(changes, stand=not self._messages)
        return self._log.last

    def _wait(self) -> None:
        """Until what is there is known."""
        end = time.monotonic() + self._broker.timeout + self._grace
        while not self._known.wait(0.05) and not self._system.join(0) and time.monotonic() < end:
            pass
        if not self._ever:
            raise self._failed()

    def _failed(self) -> SourceError:
        broker, why = self._broker, self._state.reason or "no answer"
        try:
            self._system.close()
        except ConnectError as error:
            why = str(error)
        except SyndicateError as error:
            return SourceError(str(error))
        return SourceError(
            f"the broker at {broker.address} does not answer as it should: {why}; is syndicate-server running there, "
            "reachable from Spark's driver, and is cap what it prints?"
        )

    def close(self) -> None:
        """Disconnect, and give the log up."""
        try:
            self._system.close()
        finally:
            self._log.close()


class _Seen(Entity):
    """Notes what one pattern captures."""

    raw: ClassVar[bool] = True

    def __init__(self, following: Following, place: int) -> None:
        self._following = following
        self._place = place
        self._rows: dict[Assertion, Row] = {}

    def _row(self, form: Frozen) -> Row:
        assert isinstance(form, tuple)
        return (self._place, *form[1:])

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """It has come."""
        row = self._rows[handle] = self._row(form)
        self._following.come(row)

    def retract(self, handle: Assertion) -> None:
        """It has gone, or the connection has, which the facet's end says first."""
        self._following.go(self._rows.pop(handle))

    def message(self, form: Frozen) -> None:
        """It was sent."""
        self._following.hear(self._row(form))


__all__ = ["Following"]
