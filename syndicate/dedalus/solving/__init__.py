"""Questions about all runs of a program, as answer sets: what `verify` and `explore` ask of clingo.

A program, a last time and what may happen become one ground logic program; each of its stable models is a run.  clingo
is no part of what a plain installation brings: ``pip install "syndicate-dataspace[verify]"``.

Source: Gebser et al. 2019; ``docs/design/dedalus.md``, "The solver".
"""

from __future__ import annotations

from syndicate.dedalus.solving.solver import Unencodable, is_there

__all__ = ["Unencodable", "is_there"]
