"""Statistics: what one session has done, in numbers, for metrics and the census."""

from __future__ import annotations

from typing import Protocol, Self

from attrs import frozen

from relay.session.backlog import Backlog
from relay.session.membrane import Membrane
from relay.session.outbox import Outbox
from relay.session.peer_assertions import PeerAssertions


class CountedSession(Protocol):
    """What is needed of a session."""

    outbox: Outbox
    membrane: Membrane
    backlog: Backlog
    assertions: PeerAssertions
    packets_in: int
    events_in: int
    bytes_in: int
    asserts_in: int
    retracts_in: int
    syncs_in: int
    last_handle: int
    retracts_out: int
    syncs_out: int
    exceeded: str

    @property
    def debt(self) -> int:
        """The bytes that were read of the peer and have yet to be handled."""


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
    def of(cls, session: CountedSession) -> Self:
        """Those of a session.  What of its events neither asserts, retracts nor syncs are messages."""
        outbox, membrane, backlog = session.outbox, session.membrane, session.backlog
        kinds_in = session.asserts_in + session.retracts_in + session.syncs_in
        kinds_out = session.last_handle + session.retracts_out + session.syncs_out
        return cls(
            packets_in=session.packets_in,
            packets_out=outbox.packets,
            events_in=session.events_in,
            events_out=outbox.events,
            bytes_in=session.bytes_in,
            bytes_out=outbox.bytes,
            handles=len(session.assertions),
            exports=len(membrane.exports),
            imports=len(membrane.imports),
            waiting_entries=backlog.entries,
            waiting_bytes=outbox.waiting + backlog.size,
            debt=session.debt,
            asserts_in=session.asserts_in,
            retracts_in=session.retracts_in,
            messages_in=max(0, session.events_in - kinds_in),
            syncs_in=session.syncs_in,
            asserts_out=session.last_handle,
            retracts_out=session.retracts_out,
            messages_out=max(0, outbox.events - kinds_out),
            syncs_out=session.syncs_out,
            collapsed=backlog.collapsed,
            exceeded=session.exceeded,
        )
