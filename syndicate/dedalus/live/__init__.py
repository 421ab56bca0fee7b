"""Programs that run live: each location an actor, messages through a dataspace, and so through the relay.

Source: Alvaro et al. 2011b, "Distribution Model"; ``docs/design/dedalus.md``, "Diaries".
"""

from __future__ import annotations

from syndicate.dedalus.live.agent import Agent
from syndicate.dedalus.live.event_log import Diary, together
from syndicate.dedalus.live.instance import Life
from syndicate.dedalus.live.packet import Fact, Packet

__all__ = ["Agent", "Diary", "Fact", "Life", "Packet", "together"]
