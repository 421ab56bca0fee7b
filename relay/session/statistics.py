"""Statistics: what one session has done, in numbers, for metrics and the census."""

from __future__ import annotations

from typing import Self

from attrs import frozen

from relay.session.backlog import Backlog
from relay.session.membrane import Membrane
from relay.session.outbox import Outbox


@frozen
class Statistics:
    """What has passed in a session, and what is there: counts, and bytes where the name says so.

    *handles* are the peer's assertions; *waiting_bytes* what has not been taken by the peer, about; *collapsed* the
    assertions that came and went without being sent; *exceeded* the limit that ended the session, or ``""``.
    """

    packets_in: int
    packets_out: int
    events_in: int
    events_out: int
    bytes_in: int
    bytes_out: int
    handles: int
    exports: int
    imports: int
    waiting_entries: int
    waiting_bytes: int
    debt: int
    collapsed: int
    exceeded: str

    @classmethod
    def of(
        cls,
        outbox: Outbox,
        membrane: Membrane,
        backlog: Backlog,
        *,
        received: tuple[int, int, int],
        handles: int,
        debt: int,
        exceeded: str,
    ) -> Self:
        """Those of a session of these parts, which has *received* so many packets, events and bytes."""
        packets, events, size = received
        return cls(
            packets_in=packets,
            packets_out=outbox.packets,
            events_in=events,
            events_out=outbox.events,
            bytes_in=size,
            bytes_out=outbox.bytes,
            handles=handles,
            exports=len(membrane.exports),
            imports=len(membrane.imports),
            waiting_entries=backlog.entries,
            waiting_bytes=outbox.waiting + backlog.size,
            debt=debt,
            collapsed=backlog.collapsed,
            exceeded=exceeded,
        )
