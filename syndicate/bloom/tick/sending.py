"""Sending: what a tick sends goes out when it has happened: channels to their addresses, terminals to the screen.

Rows of a channel go to ``send(address, channel, row)``: that of an agent (:mod:`~syndicate.bloom.agent.agent`), of a
network, or of whoever has set one.  As long as nobody has, those to the program itself are delivered, and others are
collected in ``sent``.  Rows of a loopback wait for the next tick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from syndicate.bloom.collection import Collection
from syndicate.bloom.declaration import Kind
from syndicate.bloom.rules.head import declaration_of, kind_of
from syndicate.bloom.state.state import SentState, State
from syndicate.flow.element import natural
from syndicate.values.value import Value

Send: TypeAlias = Callable[[Value, str, tuple[Value, ...]], None]
"""Called with an address, the name of a channel and a row."""


class Sending:
    """What is sent, and where it goes."""

    def __init__(self, send: Send, write: Callable[[str], None]) -> None:
        """*send* takes rows of channels until another is set; *write* takes lines of terminals."""
        self.send, self.write = send, write
        self.sent: list[tuple[Value, str, tuple[Value, ...]]] = []
        self.senders: list[tuple[Collection, SentState]] = []

    def of(self, collections: Iterable[Collection], states: Mapping[str, State]) -> None:
        """Send what these collections send."""
        self.senders = [(one, held) for one in collections if isinstance(held := states[one.tabname], SentState)]

    def post(self) -> None:
        """Let the rows of a tick go out."""
        for one, state in self.senders:
            name, declared = one.tabname, declaration_of(one)
            for row in state.outgoing():
                if declared.kind is Kind.CHANNEL:
                    assert declared.location is not None
                    self.send(natural(row)[declared.location], name, natural(row))
                elif declared.kind is Kind.LOOPBACK:
                    state.inserted[row] = None
                else:
                    self.write(str(natural(row)[0]))

    def channel(self, name: Value) -> Collection | None:
        """The channel of a name that somebody has sent."""
        return next((one for one, _ in self.senders if one.tabname == name and kind_of(one) is Kind.CHANNEL), None)
