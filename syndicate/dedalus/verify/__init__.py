"""Faults that break a specification, or a proof that there are none; see :mod:`~syndicate.dedalus.verify.verdict`.

Source: Alvaro et al. 2015; ``docs/design/dedalus.md``, "Verdicts (`verify`)".
"""

from __future__ import annotations

from syndicate.dedalus.verify.counterexample import Progress
from syndicate.dedalus.verify.verdict import MAX_RUNS, Verdict, verify

__all__ = ["MAX_RUNS", "Progress", "Verdict", "verify"]
