"""Causes across a connection: what led to each packet, said and heard, where both sides follow it.

Who connects and has a chronicle offers that with its first packet; who was connected to, and has one, agrees.  From
then on each Turn goes behind a packet that names the steps which led to it, at most 16, here and before.  Where one
side follows nothing, no byte is different.  Who follows by spans says the same first, and then, before a Turn that
belongs to a trace, a packet with its ``traceparent`` (W3C Trace Context).

Source: ``docs/design/introspect.md``, "Across the relay".
"""

from __future__ import annotations

from typing import Final, Protocol

from relay.protocol.packets import FOLLOWED, Extension, Hop, cause, hops_of, trace_of, traced
from syndicate.actors.facet import Facet
from syndicate.actors.system import system_of


class Speaker(Protocol):
    """Who sends packets, as a session does."""

    def say(self, packet: Extension, /) -> None:
        """Send one."""


class _Nobody:
    """The connection has ended."""

    def say(self, packet: Extension, /) -> None:
        """Nobody hears it."""


_NOBODY: Final = _Nobody()


class PacketTrail:
    """That of a session in *facet*, whose packets *speaker* sends.  ``agreed``: both sides follow."""

    __slots__ = ("_hops", "_speaker", "_system", "_trace", "agreed")

    def __init__(self, facet: Facet, speaker: Speaker) -> None:
        self.agreed = False
        self._system = system_of(facet.actor)
        self._speaker = speaker
        self._hops: tuple[Hop, ...] = ()
        self._trace: tuple[str, int] | None = None

    def offer(self) -> Extension | None:
        """The first packet of who connects, if it follows."""
        return Extension((FOLLOWED,)) if self._system.chronicle is not None else None

    def hear(self, packet: Extension, *, answers: bool) -> None:
        """Take an extension of the peer's; who *answers* was connected to."""
        if packet.form == (FOLLOWED,) and self._system.chronicle is not None:
            if answers and not self.agreed:
                self._speaker.say(Extension((FOLLOWED,)))
            self.agreed = True
        elif self.agreed and (hops := hops_of(packet)) is not None:
            self._hops = hops
        elif self.agreed and (trace := trace_of(packet)) is not None:
            self._trace = trace

    def forget(self) -> None:
        """Nothing is said any more."""
        self.agreed = False
        self._speaker = _NOBODY

    def leave(self) -> None:
        """A Turn is about to be encoded."""
        chronicle = self._system.chronicle
        hops = () if chronicle is None else chronicle.path(chronicle.here())
        if hops:
            self._speaker.say(cause(hops))
        elif chronicle is not None and (trace := chronicle.carried()) is not None:
            self._speaker.say(traced(*trace))

    def arrive(self) -> None:
        """What a Turn of the peer's says is about to be done."""
        chronicle = self._system.chronicle
        if chronicle is not None:
            chronicle.packet(self._hops, self._trace)
        self._hops, self._trace = (), None
