"""Sending: what a tick sends goes out when it has happened: channels to their addresses, terminals to the screen.

Rows of a channel go to ``send(address, channel, row)``: that of an agent (:mod:`~syndicate.bloom.agent.agent`), of a
network, or of whoever has set one.  As long as nobody has, those to the program itself are delivered, and others are
collected in ``sent``.  Rows of a loopback wait for the next tick.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from attrs import define, field

from syndicate.bloom.collection import Collection
from syndicate.bloom.declaration import Declaration, Kind
from syndicate.bloom.state.state import SentState
from syndicate.flow.element import natural
from syndicate.values.value import Value

Send: TypeAlias = Callable[[Value, str, tuple[Value, ...]], None]
"""Called with an address, the name of a channel and a row."""


@define(eq=False)
class Sending:
    """What is sent, and where it goes: *send* takes rows of channels until another is set, *write* terminals' lines."""

    send: Send
    write: Callable[[str], None]
    sent: list[tuple[Value, str, tuple[Value, ...]]] = field(factory=list)
    senders: list[tuple[Collection, str, Declaration, SentState]] = field(factory=list)
    """What sends: a collection, its name, declaration and state."""

    def post(self) -> None:
        """Let the rows of a tick go out."""
        for _, name, declared, state in self.senders:
            for row in state.outgoing() if state.posted or state.sending.rows else ():
                if declared.kind is Kind.CHANNEL:
                    assert declared.location is not None
                    self.send(natural(row)[declared.location], name, natural(row))
                elif declared.kind is Kind.LOOPBACK:
                    state.inserted[row] = None
                else:
                    self.write(str(natural(row)[0]))

    def channel(self, name: Value) -> Collection | None:
        """The channel of a name that somebody has sent."""
        channels = (one for one, own, declared, _ in self.senders if own == name and declared.kind is Kind.CHANNEL)
        return next(channels, None)
