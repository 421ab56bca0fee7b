"""Space and time: the rows that passed between the programs of a network, from a tick of one to a tick of another.

>>> from syndicate.bloom import Bloom, Network, bloom, channel
>>> class Pong(Bloom):
...     ball = channel(["@to", "from", "left"])
...     @bloom
...     def back(self):
...         self.ball <~ self.ball.map(lambda b: (b.from_, b.to, b.left - 1) if b.left else None)
>>> a, b = Pong(address="a"), Pong(address="b"); net = Network(a, b, record=True)
>>> a.deliver("ball", [("a", "b", 2)]); net.run(); print(spacetime(net))
'a' in tick 0 -> 'b' in tick 1: ball('b', 'a', 1)
'b' in tick 1 -> 'a' in tick 1: ball('a', 'b', 0)

As ``dot``, each program is a line of the ticks in which it sends or receives, and each row an arrow, dashed if it was
lost; as ``mermaid``, it is a sequence diagram.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from attrs import frozen

from syndicate.errors import IllegalRule
from syndicate.explain.derivation import said
from syndicate.explain.spacetime import FORMS, Mark, SpaceTime
from syndicate.values.value import Value


@frozen
class Transit:
    """A row between two programs: the tick that sent it, and the tick in which it arrived.

    None if it was lost, or if it is *unknown* when it arrived.
    """

    sender: Value
    left: int
    channel: str
    row: tuple[Value, ...]
    receiver: Value
    arrived: int | None
    unknown: bool = False


class RecordedRun(Protocol):
    """A network, or a run of several programs, as it is drawn: addresses, and what was carried between them."""

    record: bool

    @property
    def passages(self) -> Sequence[Transit]:
        """The rows that were sent."""

    @property
    def programs(self) -> Iterable[Value]:
        """The addresses of the programs."""


def spacetime(network: RecordedRun, form: str = "text") -> str:
    """What a network that was made with ``record=True`` has carried, as ``text``, ``dot`` or ``mermaid``."""
    if form not in FORMS:
        raise IllegalRule(f"passages are drawn as {', '.join(FORMS)}, not as {form!r}")
    if not network.record:
        raise IllegalRule("nothing was recorded: make the network with Network(..., record=True)")
    marks = []
    for one in network.passages:
        arrive, row = () if one.arrived is None else (one.arrived,), said(one.channel, one.row)
        lost = one.arrived is None and not one.unknown
        marks.append(Mark(one.left, "message", one.sender, one.receiver, row, arrive, lost))
    places = dict.fromkeys([*network.programs, *(one.receiver for one in network.passages)])
    return SpaceTime({address: repr(address) for address in places}, marks, clock="tick").draw(form)
