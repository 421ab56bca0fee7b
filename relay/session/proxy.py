"""A proxy: a reference of the peer's, here.  What is done to it is noted in its session, which tells the peer.

Source: ``docs/design/protocol.md``, "References and membranes".
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import ClassVar, Protocol

from relay.session.backlog import Note
from relay.session.membrane import Crossing
from relay.session.outbox import Outbox
from syndicate.actors.dataspace import Ended
from syndicate.actors.facet import Facet
from syndicate.actors.turn import Entity
from syndicate.index.bag import Bag
from syndicate.index.event import ASSERT, MESSAGE, RETRACT, SYNC
from syndicate.native import kernel
from syndicate.values.value import Assertion, Frozen, Ref


class Teller(Protocol):
    """What a proxy needs of its session.  ``notified`` are the assertions that are there with the peer, of at most
    ``most_notified``; ``asked`` waits for its answers.
    """

    notified: int
    most_notified: float

    @property
    def outbox(self) -> Outbox:
        """What is on its way to it."""

    @property
    def asked(self) -> Bag:
        """Who waits for the peer's answers."""

    @property
    def ended(self) -> Ended:
        """Has what is asserted after the end."""

    def note(self, note: Note) -> None:
        """Add an event to what this turn tells the peer."""

    def check_message(self, oid: int, form: Frozen) -> None:
        """Raise :class:`~syndicate.errors.NotAValue` if a message of this to one of the peer's could not go over the
        connection.
        """

    def cut(self, limit: str, why: str) -> None:
        """End it."""


@kernel
class Proxy(Entity):
    """A reference of the peer's, here.  ``sent`` is what it was notified of, by handle: the number on the wire, what
    that holds in place, and the form.
    """

    __slots__ = ("_facet", "_ref", "oid", "sent", "session")

    raw: ClassVar[bool] = True

    def __init__(self, session: Teller, oid: int, facet: Facet) -> None:
        self._facet = facet
        self._ref: Callable[[], Ref | None] = _nobody
        self.session = session
        self.oid = oid
        self.sent: dict[Assertion, tuple[int, list[Crossing], Frozen]] = {}

    @property
    def ref(self) -> Ref:
        """The reference to it, the same one for as long as somebody has it: both together would be a circle."""
        ref = self._ref()
        if ref is None:
            ref = Ref(self._facet, self, True)
            self._ref = weakref.ref(ref)
        return ref

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """Assert it there."""
        session = self.session
        session.notified += 1
        if session.notified > session.most_notified:
            session.cut("handles", f"more than {session.most_notified} assertions would be sent to the peer")
        session.note((ASSERT, self, form, handle))

    def retract(self, handle: Assertion) -> None:
        """Retract it there, if it was ever notified of it."""
        self.session.notified -= 1
        self.session.note((RETRACT, self, None, handle))

    def message(self, form: Frozen) -> None:
        """Send it there."""
        self.session.note((MESSAGE, self, form, None))

    def unsent(self, handle: Assertion) -> bool:
        """Whether the peer could not be notified of this, which is asserted."""
        return handle in self.sent and self.sent[handle][0] in self.session.outbox.unsent

    def check_message(self, form: Frozen) -> None:
        """Raise :class:`~syndicate.errors.NotAValue` if it is too large for the connection, or has no encoding."""
        self.session.check_message(self.oid, form)

    def sync(self, peer: Ref) -> None:
        """Let the peer answer once it has handled everything before."""
        self.session.asked.add(peer)
        self.session.note((SYNC, self, peer, None))

    def unheard(self, form: Frozen, handle: Assertion) -> None:
        """Say that it was asserted when the connection was lost."""
        self.session.ended.note(form, handle)


def _nobody() -> None:
    """Nobody has the reference yet."""
