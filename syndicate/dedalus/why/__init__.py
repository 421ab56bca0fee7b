"""A run explained: why something is there, why it is not, and nodes and messages in space and time."""

from __future__ import annotations

from syndicate.dedalus.why.absence import WhyNot, why_not
from syndicate.dedalus.why.derivation import Why, why
from syndicate.dedalus.why.spacetime import diagram

__all__ = ["Why", "WhyNot", "diagram", "why", "why_not"]
