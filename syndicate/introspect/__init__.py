"""What a running system can be asked, and a recorded one: why something is there, and why something is not.

>>> from syndicate import assert_, capture, dataspace, during, record, run
>>> @record
... class Lit:
...     room: str
>>> @record
... class Seen:
...     room: str
>>> def boot():
...     ds = dataspace()
...     @during(ds, Lit(capture()))
...     def see(room):
...         assert_(ds, Seen(room))
...     assert_(ds, Lit("hall"))
>>> with chronicled() as chronicles:
...     run(boot)
>>> cause = why(Seen("hall"), *chronicles)
>>> cause.title(), cause.actor, [premise.title() for premise in cause.premises][0]
('asserted <Seen "hall">', 'boot', 'asserted <Lit "hall">')
>>> why(Seen("attic"), *chronicles) is None
True
>>> [reason.relation for reason in why_not(Seen("attic"), *chronicles).premises]
['but there was', 'perhaps']
"""

from __future__ import annotations

from syndicate.actors.chronicle import Chronicle
from syndicate.introspect import why_not as _absent
from syndicate.introspect.questions import introspection
from syndicate.introspect.story import Story, chronicled, written
from syndicate.introspect.why import Cause, Why
from syndicate.values.value import Value

__all__ = ["Cause", "Chronicle", "Story", "Why", "chronicled", "introspection", "why", "why_not", "written"]


def why(pattern: Value, *chronicles: Chronicle, retracted: bool = False) -> Cause | None:
    """Why the last of what matches *pattern* was asserted or sent; None if nothing was.

    One that is asserted is preferred; with *retracted*, why it is no longer there.  The result is data, which can
    be drawn.
    """
    return Why(Story.of(*chronicles)).why(pattern, retracted=retracted)


def why_not(pattern: Value, *chronicles: Chronicle) -> Cause:
    """Why nothing that matches *pattern* is asserted: who could have said it, and where it stopped."""
    return _absent.why_not(Why(Story.of(*chronicles)), pattern)
