"""Faults that break a specification, or a proof that there are none; see :mod:`~syndicate.dedalus.verify.verdict`.

Source: "Lineage-driven fault injection" (Alvaro, Rosen and Hellerstein, 2015).
"""

from __future__ import annotations

from syndicate.dedalus.verify.verdict import MAX_RUNS, Progress, Verdict, observing, verify

__all__ = ["MAX_RUNS", "Progress", "Verdict", "observing", "verify"]
