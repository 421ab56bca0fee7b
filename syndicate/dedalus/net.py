"""The network, and what may go wrong with it: loss, delay, duplication, reordering, crashes.

Faults are fixed, or drawn with probabilities.  What is drawn is a pure function of the seed and of the message, so that
it does not depend on the order of evaluation.  Messages overtake each other where *delay* is a range.

>>> net = Net(delay=(1, 3), loss=0.5, crash={"a": 9})
>>> half = lambda *of: 2**63
>>> net.arrivals(Send(0, "r", ("b",), 4, ("a",)), 1, half), net.arrivals(Send(0, "r", ("b",), 9, ("a",)), 1, half)
((7,), ())

Contract: the sender is the first column of the first atom of the body, the receiver the first column of the head.  A
message to oneself is never lost, late or doubled.

Source: ``docs/design/dedalus.md``, "Verdicts (`verify`)".
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, TypeAlias

from attrs import field, frozen

from syndicate.dedalus.ast import Constant, Row, Rule, Value, is_value, normal, terms
from syndicate.errors import FactError, ScheduleError

Stop: TypeAlias = Literal["sending", "all"]
STOPS: Final = ("sending", "all")
Passage: TypeAlias = tuple[Value, Value | None, int]
"""A message as a fault names it: from, to, and when it was sent."""
Drawing: TypeAlias = Callable[..., int]
"""The seed's number for something, of 64 bits."""


@frozen
class Send:
    """A message: the rule, the tuple, the time, who may have sent it, and whether it must arrive later."""

    rule: int
    relation: str
    row: Row
    sent: int
    senders: tuple[Value, ...] = ()
    later: bool = False

    @property
    def receiver(self) -> Value | None:
        """Where it goes: the first column."""
        return self.row[0] if self.row else None


@frozen
class Outage:
    """A node is down: from *since* until before *to*, or for good; if it *keeps*, it goes on with what it had."""

    node: Value
    since: int
    to: int | None = None
    keeps: bool = False

    def covers(self, time: int) -> bool:
        """Whether it is down at a time."""
        return self.since <= time and (self.to is None or time < self.to)

    def __str__(self) -> str:
        node = _word(self.node)
        if self.to is None:
            return f"stop_at({node},{self.since})"
        return f"{'pause' if self.keeps else 'restart'}({node},{self.since},{self.to})"


@frozen
class Partition:
    """Nothing that is sent from *since* until before *to* passes between *side* and all other nodes."""

    side: tuple[Value, ...]
    since: int
    to: int

    def cuts(self, sender: Value, receiver: Value | None, sent: int) -> bool:
        """Whether a message is lost by it."""
        return self.since <= sent < self.to and (sender in self.side) is not (receiver in self.side)

    def __str__(self) -> str:
        return f"parted({','.join(map(_word, self.side))};{self.since},{self.to})"


def _range(delay: int | tuple[int, int] | list[int] | None) -> tuple[int, int] | None:
    if delay is None:
        return None
    low, high = (delay, delay) if isinstance(delay, int) else delay
    return int(low), int(high)


def _nodes(nodes: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(nodes)


def _drops(drops: Iterable[Passage]) -> frozenset[Passage]:
    return frozenset(drops)


def _outages(outages: Iterable[Outage]) -> tuple[Outage, ...]:
    return tuple(outages)


def _partitions(partitions: Iterable[Partition]) -> tuple[Partition, ...]:
    return tuple(partitions)


def _names(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names)


def _lates(lates: Iterable[tuple[Value, Value, int, int]]) -> dict[Passage, int]:
    result: dict[Passage, int] = {(one, other, int(sent)): int(by) for one, other, sent, by in lates}
    if any(by < 1 for by in result.values()):
        raise ValueError("what is late is late by 1 timestep or more")
    return result


@frozen
class Net:
    """A network and its faults.

    *drop*: messages lost, by ``(from, to, sent)``.  *late*: how many timesteps longer messages take, by the same key;
    *again*: how many timesteps after it was due a message arrives a second time.  *down*: nodes that compute nothing
    and receive nothing for some time; rules for *observers*, relations that look on from outside, go on.  *parted*:
    partitions.
    *crash*: when a node stops *sending*; with *stop* ``all`` it stops
    computing and receiving as well, and forgets what it knows.  *delay*: timesteps that a message takes, a number or a
    range; without it, what the schedule's default says.  *loss*, *duplicate*: probabilities, for each message; those
    sent at *eff* or later are not lost.  *nodes*: who learns of crashes, in the relation ``crash(told, node, time)``.

    Raises :class:`ScheduleError`.
    """

    nodes: tuple[Value, ...] = field(default=(), converter=_nodes)
    drop: frozenset[Passage] = field(default=frozenset(), converter=_drops)
    crash: Mapping[Value, int] = field(factory=dict)
    late: Mapping[Passage, int] = field(factory=dict, kw_only=True)
    again: Mapping[Passage, int] = field(factory=dict, kw_only=True)
    down: tuple[Outage, ...] = field(default=(), converter=_outages, kw_only=True)
    parted: tuple[Partition, ...] = field(default=(), converter=_partitions, kw_only=True)
    observers: frozenset[str] = field(default=frozenset(), converter=_names, kw_only=True)
    delay: tuple[int, int] | None = field(default=None, converter=_range)
    loss: float = 0.0
    duplicate: float = 0.0
    stop: Stop = "sending"
    eff: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.delay is not None and not 1 <= self.delay[0] <= self.delay[1]:
            delays = "-".join(map(str, self.delay))
            raise ScheduleError(f"a message takes one timestep or more, not {delays}: give a delay such as 1-3")
        for name, chance in (("loss", self.loss), ("duplicate", self.duplicate)):
            if not 0 <= chance <= 1:
                raise ScheduleError(f"{name} is a probability from 0 to 1, not {chance}")
        if self.stop not in STOPS:
            raise ScheduleError(f"a crash stops {' or '.join(STOPS)}, not {self.stop!r}")
        for node in (*self.nodes, *self.crash, *(one.node for one in self.down)):
            if not is_value(node):
                raise ScheduleError(f"a node is a text, an integer or a finite float, not {node!r}")

    @classmethod
    def of(cls, fields: object) -> Net:
        """From JSON, as ``net`` in a schedule, with the fields of this class; other keys are ignored."""
        try:
            if not isinstance(fields, Mapping):
                raise TypeError(f"{fields!r} is no object")
            fixed = fields.get("fixed") or {}
            drop = frozenset((one, other, int(sent)) for one, other, sent in fixed.get("drop") or ())
            crash = {node: int(at) for node, at in fixed.get("crash") or ()}
            eff = fields.get("eff")
            return cls(
                tuple(fields.get("nodes") or ()),
                drop,
                crash,
                fields.get("delay"),
                float(fields.get("loss") or 0),
                float(fields.get("duplicate") or 0),
                fields.get("stop") or "sending",
                None if eff is None else int(eff),
                late=_lates(fixed.get("late") or ()),
                again=_lates(fixed.get("again") or ()),
                down=[
                    Outage(node, int(since), None if to is None else int(to), bool(keeps))
                    for node, since, to, keeps in fixed.get("down") or ()
                ],
                parted=[Partition(tuple(side), int(a), int(b)) for side, a, b in fixed.get("parted") or ()],
                observers=fields.get("observers") or (),
            )
        except (AttributeError, TypeError, ValueError) as error:
            raise ScheduleError(
                "'net' is {nodes: [..], fixed: {drop: [[from, to, sent], ..], crash: [[node, time], ..], late: "
                "[[from, to, sent, by], ..], again: [[from, to, sent, by], ..], down: [[node, since, to, keeps], ..], "
                f"parted: [[[node, ..], since, to], ..]}}}}, and perhaps delay, loss, duplicate, stop, eff: {error}"
            ) from None

    def to_json(self) -> dict[str, object]:
        """What :meth:`of` reads; what says nothing is left out."""
        drop = [list(one) for one in sorted(self.drop, key=lambda one: (one[2], repr(one)))]
        crash = [[node, at] for node, at in sorted(self.crash.items(), key=repr)]
        late = [[*key, by] for key, by in sorted(self.late.items(), key=lambda one: (one[0][2], repr(one)))]
        again = [[*key, by] for key, by in sorted(self.again.items(), key=lambda one: (one[0][2], repr(one)))]
        more: dict[str, object] = {
            "late": late,
            "again": again,
            "down": [[one.node, one.since, one.to, one.keeps] for one in self.down],
            "parted": [[list(one.side), one.since, one.to] for one in self.parted],
        }
        fields: dict[str, object] = {
            "nodes": list(self.nodes),
            "fixed": {"drop": drop, "crash": crash, **{name: some for name, some in more.items() if some}},
            "observers": sorted(self.observers),
            "delay": list(self.delay) if self.delay else None,
            "loss": self.loss,
            "duplicate": self.duplicate,
            "stop": None if self.stop == "sending" else self.stop,
            "eff": self.eff,
        }
        return {name: value for name, value in fields.items() if value or name in ("nodes", "fixed")}

    def lost(self, sender: Value, receiver: Value | None, sent: int) -> bool:
        """Whether a message is lost by a fixed fault; one to oneself never is."""
        return self.cause(sender, receiver, sent) is not None

    def cause(self, sender: Value, receiver: Value | None, sent: int) -> str | None:
        """The fixed fault by which a message is lost, as it is written in verdicts; None if it is not."""
        if sender == receiver:
            return None
        if (sender, receiver, sent) in self.drop:
            return dropping(sender, receiver, sent)
        for partition in self.parted:
            if partition.cuts(sender, receiver, sent):
                return str(partition)
        at = self.crash.get(sender)
        return None if at is None or sent < at else crashing(sender, at)

    def arrivals(self, send: Send, delay: int | None, draw: Drawing) -> tuple[int, ...] | None:
        """When a message arrives, its *delay* by default being that; None if nothing here says when."""
        receiver, key = send.receiver, (send.rule, send.row, send.sent)
        left = [one for one in send.senders if one != receiver and not self.lost(one, receiver, send.sent)]
        if receiver in send.senders or not send.senders:
            more = [0, *(by for one in left for by in self.delays(one, receiver, send.sent))]
            if self.delay is None and len(more) == 1:
                return None
            return self.received(receiver, sorted({send.sent + 1 + by for by in more}))
        if self.eff is None or send.sent < self.eff:
            left = [one for one in left if not _drawn(self.loss, draw, "loss", *key, one)]
        if not left:
            return ()
        waits = sorted({by for sender in left for by in self.delays(sender, receiver, send.sent)})
        low, high = self.delay or (delay, delay)
        if low is None or high is None:
            if waits == [0]:
                return None
            low = high = 1
        first = send.sent + low + draw("delay", *key) % (high - low + 1)
        times = [first + wait for wait in waits]
        if _drawn(self.duplicate, draw, "duplicate", *key):
            times.append(times[0] + 1 + draw("again", *key) % (high - low + 1))
        return self.received(receiver, times)

    def delays(self, sender: Value, receiver: Value | None, sent: int) -> tuple[int, ...]:
        """How much later than it was due a message arrives, each time that it does."""
        again = self.again.get((sender, receiver, sent))
        return (self.late.get((sender, receiver, sent), 0), *(() if again is None else (again,)))

    def received(self, receiver: Value | None, times: Iterable[int]) -> tuple[int, ...]:
        """The times of arrival at which the receiver still receives."""
        end = self.crash.get(receiver) if self.stop == "all" and receiver is not None else None
        down = [outage for outage in self.down if outage.node == receiver]
        if end is None and not down:
            return tuple(times)
        return tuple(
            time for time in times if (end is None or time < end) and not any(outage.covers(time) for outage in down)
        )

    def crashes(self) -> list[Row]:
        """The rows of ``crash``: who is notified, who crashes, when."""
        gone = {**self.crash, **{one.node: one.since for one in self.down if one.to is None}}
        crashes = sorted(gone.items(), key=repr)
        return [(normal(node), normal(crashed), at) for node in self.nodes for crashed, at in crashes]


def _drawn(chance: float, draw: Drawing, *of: object) -> bool:
    return chance > 0 and draw(*of) < chance * 2**64


def _word(node: Value | None) -> str:
    return f'"{node}"' if isinstance(node, str) else str(node)


def dropping(sender: Value, receiver: Value | None, sent: int) -> str:
    """An omission, as it is written: ``drop("a","b",1)``."""
    return f"drop({_word(sender)},{_word(receiver)},{sent})"


def delaying(sender: Value, receiver: Value | None, sent: int, by: int) -> str:
    """A delay, as it is written: ``late("a","b",1,2)``, two timesteps later than it was due."""
    return f"late({_word(sender)},{_word(receiver)},{sent},{by})"


def doubling(sender: Value, receiver: Value | None, sent: int, by: int) -> str:
    """A second arrival, as it is written: ``again("a","b",1,2)``, two timesteps after the first was due."""
    return f"again({_word(sender)},{_word(receiver)},{sent},{by})"


def crashing(node: Value, time: int) -> str:
    """A crash, as it is written: ``crash_at("a",3)``."""
    return f"crash_at({_word(node)},{time})"


def nodes_of(words: Iterable[str]) -> tuple[Value, ...]:
    """Names of nodes as they are typed: those that look like integers are integers.

    >>> nodes_of(["a", "-1", " 2"])
    ('a', -1, 2)
    """
    nodes: list[Value] = []
    for word in words:
        bare = word.strip()
        nodes.append(int(bare) if bare.removeprefix("-").isdecimal() else bare)
    return tuple(nodes)


def check_nodes(rules: Iterable[Rule], nodes: Iterable[Value]) -> None:
    """Raise :class:`FactError` for the name of a node that a program does not say: no fault there could matter.

    >>> from syndicate.dedalus.parse import parse
    >>> check_nodes(parse('p("ann", "bob")@1;'), ["bop"])
    Traceback (most recent call last):
        ...
    syndicate.errors.FactError: the program names no node 'bop': did you mean 'bob'?
    """
    said = {t.value for rule in rules for t in terms(rule.head, *rule.body) if isinstance(t, Constant)}
    names = sorted(value for value in said if isinstance(value, str))
    for node in nodes:
        if isinstance(node, str) and node not in said:
            close = difflib.get_close_matches(node, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"its words are {', '.join(names[:9]) or 'none'}"
            raise FactError(f"the program names no node {node!r}: {hint}")
