"""All outcomes of a program within a bound; :mod:`~syndicate.dedalus.explore.explorer` is where to begin."""

from __future__ import annotations

from syndicate.dedalus.explore.explorer import MOST_STEPS, Explorer
from syndicate.dedalus.explore.outcome import MODES, Difference, Exploration, Mode, Outcome

__all__ = ["MODES", "MOST_STEPS", "Difference", "Exploration", "Explorer", "Mode", "Outcome"]
