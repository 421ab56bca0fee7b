"""Why a conclusion of rules is there, and why another is not: one form for all languages of rules.

>>> from syndicate.plan import Program, Projection
>>> p = Program(); likes = p.edb("likes", "name", "food")
>>> _ = p.rule("food", Projection(likes, ("food",)))
>>> print(Conclusions(p, {"likes": [("ann", "ramen")]}).why("food", ("ramen",)))
food('ramen'): rule 1 of food
  likes('ann', 'ramen'): given
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syndicate.on_demand import on_demand

if TYPE_CHECKING:
    from syndicate.explain.absence import ANY, Attempt, WhyNot
    from syndicate.explain.derivation import Absence, Derivation, Group, Holding
    from syndicate.explain.program import Conclusion, Conclusions

__all__ = [
    "ANY",
    "Absence",
    "Attempt",
    "Conclusion",
    "Conclusions",
    "Derivation",
    "Group",
    "Holding",
    "WhyNot",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "syndicate.explain.absence": ["ANY", "Attempt", "WhyNot"],
        "syndicate.explain.derivation": ["Absence", "Derivation", "Group", "Holding"],
        "syndicate.explain.program": ["Conclusion", "Conclusions"],
    },
)
