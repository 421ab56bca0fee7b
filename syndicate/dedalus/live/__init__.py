"""Programs that run live: each location an actor, messages through a dataspace, and so through the relay.

Source: Alvaro et al. 2011b, "Distribution Model"; ``docs/design/dedalus.md``, "Event logs".
"""

from __future__ import annotations

from syndicate.dedalus.live.agent import Agent, Instance
from syndicate.dedalus.live.event_log import EventLog, together
from syndicate.dedalus.live.packet import Fact, Packet

__all__ = ["Agent", "EventLog", "Fact", "Instance", "Packet", "together"]
