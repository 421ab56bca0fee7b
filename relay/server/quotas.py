r"""Quotas: how much all the peers of one dataspace may have there together.

Limits (:mod:`relay.protocol.limits`) bound one peer; a quota bounds all who use one dataspace of a server, so that
those of another have their room whatever these do.  Who would be over is refused before anything is held or done: its
session ends, with the name of the quota and the remedy in the Error packet that it gets, and those of the others go on.

>>> account = Account(Quota(assertions=2, messages=1), clock=lambda: 0.0)
>>> account.hold(100, False), account.hold(100, True), account.hold(100, False)
('', '', 'assertions')
>>> account.release(100, False); account.hold(100, False), account.say(), account.say(), account.observers
('', '', 'messages', 1)

Contract: what was refused is not counted as held; what was held is released once, when it is retracted, whoever ends.

Source: ``docs/design/relay.md``, "Several dataspaces".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from attrs import frozen

from relay.capabilities.forwarding import Passage, arriving
from relay.session.backlog import ENTRY, weight
from syndicate.index.event import ASSERT
from syndicate.index.interest import INTEREST
from syndicate.values.value import Assertion, Frozen, Ref

REMEDY: Final = {
    "assertions": "retract what is no longer needed",
    "observers": "observe less",
    "bytes": "retract what is no longer needed, or assert smaller values",
    "messages": "send more slowly",
}


@frozen
class Quota:
    """What all peers of a dataspace may have there together, where 0 is without a bound: *assertions* (interests
    included) and the *bytes* that they take (256 for each, and what they weigh), *observers*, *messages* in a second
    (as many may come at once), and *connections* that have shown a capability for it.
    """

    assertions: int = 0
    bytes: int = 0
    observers: int = 0
    messages: int = 0
    connections: int = 0


NONE: Final = Quota()
"""No bound at all."""


class Account:
    """What is held by those who use one dataspace, and how much may be; *clock* is in seconds.

    ``refused`` counts, by quota, what was not let in.
    """

    def __init__(self, quota: Quota, clock: Callable[[], float]) -> None:
        self.quota = quota
        self.assertions = self.bytes = self.observers = self.connections = self.messages = 0
        self.refused: Counter[str] = Counter()
        self._clock = clock
        self._credit: float = quota.messages
        self._since = clock()

    def hold(self, size: int, observer: bool) -> str:
        """One more assertion, of *size* bytes: the quota that it is beyond; nothing if it may be."""
        quota = self.quota
        over = ""
        if quota.assertions and self.assertions >= quota.assertions:
            over = "assertions"
        elif quota.observers and observer and self.observers >= quota.observers:
            over = "observers"
        elif quota.bytes and self.bytes + size > quota.bytes:
            over = "bytes"
        if over:
            self.refused[over] += 1
            return over
        self.assertions += 1
        self.observers += observer
        self.bytes += size
        return ""

    def release(self, size: int, observer: bool) -> None:
        """One assertion less."""
        self.assertions -= 1
        self.observers -= observer
        self.bytes -= size

    def say(self) -> str:
        """One more message: the quota that it is beyond; nothing if it may be."""
        most = self.quota.messages
        if most:
            now = self._clock()
            self._credit = min(most, self._credit + (now - self._since) * most)
            self._since = now
            if self._credit < 1:
                self.refused["messages"] += 1
                return "messages"
            self._credit -= 1
        self.messages += 1
        return ""

    def enter(self) -> str:
        """One more connection: why it may not be; nothing if it may."""
        if self.quota.connections and self.connections >= self.quota.connections:
            self.refused["connections"] += 1
            return "too-many-of-this-dataspace"
        self.connections += 1
        return ""


class MeteredEntity(Passage):
    """Stands before *target* for one session, and charges *account* with what that says, as caveats behind it let it
    pass; *refuse* is called with the quota that it is beyond, and the remedy.
    """

    def __init__(self, target: Ref, account: Account, refuse: Callable[[str, str], object]) -> None:
        super().__init__(target)
        self._account = account
        self._refuse = refuse
        self._charged: dict[Assertion, tuple[int, bool]] = {}

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """Hand on what is within the quota."""
        _, passed = arriving(self.target, ASSERT, form)
        if passed is None:
            return
        charge = ENTRY + weight(passed), type(passed) is tuple and passed[0] is INTEREST
        over = self._account.hold(*charge)
        if over:
            self._beyond(over)
            return
        self._charged[handle] = charge
        super().assert_(form, handle)

    def retract(self, handle: Assertion) -> None:
        """Release it."""
        charge = self._charged.pop(handle, None)
        if charge is not None:
            self._account.release(*charge)
            super().retract(handle)

    def message(self, form: Frozen) -> None:
        """Hand on what is within the quota."""
        over = self._account.say()
        if over:
            self._beyond(over)
        else:
            super().message(form)

    def _beyond(self, over: str) -> None:
        most = getattr(self._account.quota, over)
        what = f"{most} {over}" + (" a second" if over == "messages" else "")
        self._refuse(f"quota-{over}", f"all who use this dataspace may have {what} together: {REMEDY[over]}")
