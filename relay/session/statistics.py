"""Statistics: what one session has done, in numbers, for metrics and the census."""

from __future__ import annotations

from attrs import frozen


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
