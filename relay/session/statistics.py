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
    asserts_in: int
    retracts_in: int
    messages_in: int
    syncs_in: int
    asserts_out: int
    retracts_out: int
    messages_out: int
    syncs_out: int
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
        kinds_in: tuple[int, int, int],
        kinds_out: tuple[int, int, int],
        handles: int,
        debt: int,
        exceeded: str,
    ) -> Self:
        """Those of a session of these parts, which has *received* so many packets, events and bytes.  *kinds* are how
        many of the events assert, retract and sync; the others are messages.
        """
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
            asserts_in=kinds_in[0],
            retracts_in=kinds_in[1],
            messages_in=max(0, events - sum(kinds_in)),
            syncs_in=kinds_in[2],
            asserts_out=kinds_out[0],
            retracts_out=kinds_out[1],
            messages_out=max(0, outbox.events - sum(kinds_out)),
            syncs_out=kinds_out[2],
            collapsed=backlog.collapsed,
            exceeded=exceeded,
        )
