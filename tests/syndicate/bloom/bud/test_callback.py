"""Callbacks, waiting, ends, clocks and timers (Bud's tc_callback, tc_halt, tc_timer, tc_exists, tc_schemafree)."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

import pytest

from syndicate.bloom import Bloom, bloom, bootstrap, channel, interface, periodic, scratch, table
from syndicate.errors import IllegalRule, ProgramStopped, SyndicateError
from tests.syndicate.bloom.bud.renewed import tick


class Passing(Bloom):
    """A row comes through in the same tick, and in the next."""

    t, now_there, next_there = scratch(), scratch(), scratch()
    wire = channel()
    came = scratch()

    @bloom
    def rules(self) -> None:
        """A step each."""
        self.now_there <= self.t
        self.next_there < +self.t
        self.came <= self.wire


def test_calls() -> None:
    """One for each tick with rows, with all of them; none before, none after what was registered has been ended."""
    p = Passing()
    seen: list[list[Any]] = []
    counts = [0, 0]

    def count(which: int) -> Any:
        def bump(_: Any) -> None:
            counts[which] += 1

        return p.callback("now_there", bump)

    p.callback("now_there", lambda rows: seen.append(sorted(rows)))
    ends = [count(0), count(1)]
    p.run_bg()
    p.sync_do(lambda: None)
    assert seen == []
    p.sync_do(lambda: p.t <= [(5, 10)])
    p.sync_do(lambda: p.t <= [(20, 25), (10, 15)])
    assert seen == [[(5, 10)], [(10, 15), (20, 25)]]
    assert counts == [2, 2]
    ends[0]()
    p.sync_do(lambda: p.t <= [(1, 1)])
    assert counts == [2, 3]
    p.stop()


def test_a_call_in_the_next_tick() -> None:
    """What is deferred calls when it is there."""
    p = Passing()
    calls: list[Any] = []
    p.callback("next_there", calls.append)
    tick(p, t=[(20, 30)])
    assert calls == []
    tick(p)
    assert calls == [[(20, 30)]]
    with pytest.raises(SyndicateError, match="crazy"):
        p.callback("crazy", calls.append)


def test_who_waits_for_rows() -> None:
    """Rows in, rows out, of a scratch and of a channel; who waits without giving any is notified of the next."""

    class Ticking(Passing):
        tic = periodic(0.01)

    p = Ticking()
    ended: list[int] = []
    p.on_shutdown(lambda: ended.append(1))
    p.run_bg()
    assert p.ask("t", [(1, 2)], "now_there") == [(1, 2)]
    assert p.ask("wire", [(p.address, "foo")], "came") == [(p.address, "foo")]
    assert len(p.delta("tic")) >= 1
    assert ended == []
    p.stop()
    assert ended == [1]


class Halting(Bloom):
    """Counts, and ends."""

    t, timer = scratch(["n"]), periodic(0.01)

    @bootstrap
    def begin(self) -> None:
        """At one."""
        self.t <= [(1,)]

    @bloom
    def rules(self) -> None:
        """At two."""
        self.halt <= self.t.filter(lambda t: t.n == 2)
        self.t < +self.t.map(lambda t: (t.n + 1,))


def test_halt() -> None:
    """Who waits is notified that the program has stopped; in the foreground it returns."""
    p = Halting()
    p.run_bg()

    def wait(times: int) -> None:
        for _ in range(times):
            p.delta("t")

    with pytest.raises(ProgramStopped):
        wait(4)
    q = Halting()
    thread = threading.Thread(target=q.run_fg)
    thread.start()
    thread.join()
    assert q.halted
    assert q.budtime <= 3


class Timed(Bloom):
    """Keeps what a timer and a clock say."""

    tik = periodic(0.01)
    log = table(*tik.schema)
    t1, a, b = table(), scratch(["v"]), scratch(["v"])

    @bloom
    def rules(self) -> None:
        """Moved back, and as it is."""
        self.log <= self.tik.map(lambda t: (t.key, t.val - 100))
        for one in (self.a, self.b):
            self.t1 <= (one * self.now).pairs(lambda t, now: (t.v, now.time))


def test_timers_and_clocks() -> None:
    """A firing is a row with the time; one clock for all rules of a tick, and none outside of it."""
    p = Timed()
    fired: SimpleQueue[Any] = SimpleQueue()
    p.callback("tik", fired.put)
    p.run_bg()
    rows = [row for _ in range(5) for row in fired.get()]
    assert len({row.key for row in rows}) == len(rows) >= 5
    assert sorted(row.val for row in rows) == [row.val for row in rows]

    def give() -> None:
        p.a <= [(5,)]
        p.b <= [(5,)]

    p.sync_do(give)
    assert p.sync_do(lambda: len(p.t1)) == 1
    with pytest.raises(IllegalRule, match="none now"):
        p.sync_do(lambda: p.bud_clock)
    p.stop()
    assert {(row.key, row.val - 100) for row in rows} <= set(p.log)

    q = Timed(clock=lambda: 7.0)
    calls: list[Any] = []
    q.callback("tik", calls.extend)
    q.tick()
    for n in (1, 2):
        q.fire("tik")
        q.tick()
        assert calls[-1] == (n, 7.0)
        q.tick()
        assert len(calls) == n


def test_notes_to_oneself() -> None:
    """Rows within rows, sent by a channel without columns, some by a timer; which of them are remembered twice."""

    class Notes(Bloom):
        notes, memories = table(), table()
        twice = table(["text"])
        timer, msgs = periodic(), channel()
        note, kept = interface("input"), table()

        @bloom
        def rules(self) -> None:
            here = self.address
            self.msgs < ~(self.notes * self.timer).lefts(lambda n: (here, n))
            self.memories <= self.msgs.payloads().map(lambda p: p.val)
            self.twice <= self.memories.exists(self.msgs, lambda n, m: n.val == m.val[1]).inspected()
            self.msgs < ~self.note
            self.kept <= self.msgs.payloads().map(lambda p: p.val)

    p = Notes()
    tick(p, notes=[(1, "a lovely day")])
    for texts in (["a lovely day"], ["a lovely day", "a walk"]):
        p.fire("timer")
        p.run()
        assert sorted(row.val for row in p.memories) == texts
        assert len(p.twice) == len(texts)
        p.notes <= [(2, "a walk")]
    q = Notes()
    q.run_bg()
    for n, text in ((1, "a lovely day"), (2, "a walk")):
        q.ask("note", [(q.address, ((123, n), text))], "msgs")
    assert q.sync_do(lambda: sorted(q.kept)) == [((123, 1), "a lovely day"), ((123, 2), "a walk")]
    q.stop()
