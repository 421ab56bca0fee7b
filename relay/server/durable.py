"""A durable dataspace: what is asserted through it is there again after a restart.

A broker with a journal serves one dataspace under two names.  What is asserted through ``"syndicate"`` is volatile, as
always: it lasts as long as who asserts it.  What is asserted through ``"durable"`` is *kept*: the journal's own actor
asserts it, and it is written to disk.

* **It is asserted until it is retracted.**  The loss of a connection, a killed client, a killed server are no
  retractions. What counts is the packet ``R``, which our clients also send when a facet of theirs stops in order, or
  crashes, while the connection lasts.  In the server's own process only ``handle.retract()`` counts, never the end of a
  facet. To withdraw a bind (see :mod:`relay.capabilities.gatekeeper`) retracts what was asserted through it.
* **It is a set of values.**  Who asserts a value that is there adopts it, after a reconnection or a restart as well: it
  asserts again what it wants, and so owns it again.  A value goes when the last of those who assert it *now* retracts.
* ``<keep V>``, sent to it, keeps V although nobody asserts it (:mod:`~syndicate.actors.keep`); ``<forget V>`` removes
  V, whoever asserted it: those who did are without effect until they assert it again.  Every other message passes
  through to the dataspace.
* ``<volatile V>``, asserted through it, asserts V as if through ``"syndicate"``: it goes with who asserts it.
* **What cannot be kept is volatile**, as if it had been asserted through ``"syndicate"``: ``Observe``, which never is;
  and, with a warning in the log, what holds a live reference (a sturdy one is data) and what is beyond
  ``Limits.kept``.  In ``<keep V>`` such a V has no effect but that warning.  A sync is answered nevertheless.
* **A sync is answered when everything before it is on the disk**, and the dataspace has handled it.  That is the
  acknowledgement.  Nothing else waits: observers see ``+`` before it is committed, and a crash may take back what was
  seen; it never takes back what was acknowledged.
* **A turn is kept whole or not at all**: what one turn of a peer changes is never half there after a crash.  After a
  crash there is what some prefix of the turns had made, and that prefix holds all that was acknowledged.
* **When the disk fails**, nothing is acknowledged any more: no sync is answered, and what is asserted, retracted or
  sent through it from then on has no effect.  What was kept stays asserted until the next start.  *failed* is called,
  so that those who write are notified; without it the actor that asked for this ends with the
  :class:`~syndicate.errors.JournalError`.

How an explicit retraction is distinguished from a loss: the facet that asserted lives on after the one, not after the
other. The run queue is in order, so a retraction that arrives before the end of its connection is handled before; but
one in the same breath (the same read) as a violation of the protocol, or as the overflow that ends the session, may not
count. It was not acknowledged then.

Recovery is in this order: lock, verify and load (:meth:`~relay.server.journal.Journal.open`), assert everything, and
only then
is *ready* called, which opens the listeners.

Contract: what is recovered is a prefix of the committed turns, and holds what was acknowledged; recovery is idempotent;
volatile assertions never come back.

Source: ``docs/design/relay.md``, "Durable dataspaces"; ``docs/design/storage.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from relay.capabilities.forwarding import Passage
from relay.protocol.limits import DEFAULT
from relay.server.journal import Journal
from syndicate.actors.actor import Actor
from syndicate.actors.facet import Facet
from syndicate.actors.keep import FORGET, KEEP, VOLATILE
from syndicate.actors.link import link
from syndicate.actors.turn import Handle, current
from syndicate.actors.verbs import SyncReply, current_turn, trio_task
from syndicate.errors import JournalError, NotAValue
from syndicate.index.event import ASSERT, MESSAGE, RETRACT
from syndicate.index.interest import INTEREST
from syndicate.log import logger
from syndicate.values.value import Assertion, Frozen, Ref, thaw

_MEANT: Final = {(ASSERT, VOLATILE): ASSERT, (MESSAGE, KEEP): ASSERT, (MESSAGE, FORGET): RETRACT}
"""What comes of V where one of our words holds it, by the kind of event and the word."""


class _Entry:
    """A value that is kept: our assertion of it, the number of its row, and how many assert it now."""

    __slots__ = ("count", "handle", "number")

    def __init__(self, handle: Handle, number: int) -> None:
        self.handle = handle
        self.number = number
        self.count = 0


class Durable(Passage):
    """Stands before the dataspace *ds*, and keeps in *journal* at most *most* values.  Made by :func:`durable`.

    Unlike other passages it acts in a *facet* of its own.  It is one nevertheless, so that no peer can make it the
    observer of the dataspace behind it, which would then talk to itself without end.
    """

    def __init__(self, facet: Facet, ds: Ref, journal: Journal, most: int = DEFAULT.kept) -> None:
        super().__init__(ds)
        self._facet = facet
        self._journal = journal
        self._most = most
        self._entries: dict[Frozen, _Entry] = {}
        self._asserted: dict[Assertion, _Entry | Handle] = {}
        self._refused = 0
        self._due: list[Ref] = []  # to be notified, in a turn that is yet to come, that all is committed
        self._failed = False

    def recover(self) -> None:
        """Assert what the journal held."""
        turn, journal = current("recover"), self._journal
        for number, form in journal.recovered:
            self._entries[form] = _Entry(turn.assert_form(self._facet, self.target, form), number)
        journal.recovered = []

    def __len__(self) -> int:
        return len(self._entries)

    # ------------------------------------------------------------------------------------------------ an entity

    def foresee(self, kind: int, form: Frozen) -> tuple[int, Frozen | None]:
        """The event that the dataspace gets, at most: what is within one of our words is asserted, or goes."""
        if self._failed:
            return kind, None
        meant = _MEANT.get((kind, form[0])) if type(form) is tuple and len(form) == 2 else None
        return (kind, form) if meant is None else (meant, form[1])

    def handed(self, handle: Assertion) -> Handle | None:
        """What is asserted for it: by us, if it is kept."""
        what = self._asserted.get(handle)
        return what.handle if isinstance(what, _Entry) else what

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """Keep a value, or pass it on if it cannot be kept."""
        if self._failed:
            return
        if type(form) is tuple and len(form) == 2 and form[0] is VOLATILE:
            self._asserted[handle] = current("assert").assert_form(self._facet, self.target, form[1])
            return
        entry = None if type(form) is tuple and form[0] is INTEREST else self._keep(form)
        if entry is None:
            self._asserted[handle] = current("assert").assert_form(self._facet, self.target, form)
        else:
            entry.count += 1
            self._asserted[handle] = entry

    def retract(self, handle: Assertion) -> None:
        """Remove a value if the last of those who assert it retracts it, and not if it is lost."""
        what = self._asserted.pop(handle, None)
        if type(what) is Handle:
            current("retract").retract(what)
        elif type(what) is _Entry:
            what.count -= 1
            lost = self._failed or (type(handle) is Handle and not handle.facet.alive)
            if not (lost or what.count) and what.handle.live:
                self._forget(what)

    def message(self, form: Frozen) -> None:
        """Do what ``<keep V>`` and ``<forget V>`` say; pass everything else on."""
        if self._failed:
            return
        if type(form) is tuple and len(form) == 2 and form[0] is KEEP:
            self._keep(form[1])
        elif type(form) is tuple and len(form) == 2 and form[0] is FORGET:
            stored = self._entries.get(form[1])
            if stored is not None:
                self._forget(stored)
        else:
            ds = self.target
            current("send").enqueue(ds.facet.actor, (MESSAGE, ds, form if ds.raw else thaw(form), None))

    def sync(self, peer: Ref) -> None:
        """Answer, by way of the dataspace, when all of this is committed."""
        if not self._failed and self._journal.settled(peer):
            if self._due:  # those who asked before are notified before
                self._due.append(peer)
            else:
                current("sync").sync(self.target, peer)

    # ------------------------------------------------------------------------------------------------ the set

    def _keep(self, form: Frozen) -> _Entry | None:
        stored = self._entries.get(form)
        if stored is None:
            try:
                if len(self._entries) >= self._most:
                    raise NotAValue(f"{self._most} values are kept already, which is the limit")
                self._will_change()
                number = self._journal.keep(form)
            except NotAValue as e:
                self._refuse(form, e)
                return None
            stored = self._entries[form] = _Entry(current("keep").assert_form(self._facet, self.target, form), number)
        return stored

    def _forget(self, entry: _Entry) -> None:
        self._will_change()
        self._journal.forget(entry.number)
        del self._entries[entry.handle.form]
        current("forget").retract(entry.handle)

    def _will_change(self) -> None:
        """Seal what this turn changes when it commits."""
        if not self._journal.noted:
            current("durable").afterwards.append(self._journal.seal)

    def _refuse(self, form: Frozen, error: NotAValue) -> None:
        # Each value would let a peer fill the log: the first, second, fourth, eighth ... is named.
        self._refused += 1
        if self._refused & (self._refused - 1) == 0:
            label = form[0] if type(form) is tuple else type(form).__name__
            logger(actor="durable").warning("not kept", value=str(label), reason=str(error), so_far=self._refused)

    # ------------------------------------------------------------------------------------------------ the disk

    async def write(self, outer: Facet, failed: Callable[[JournalError], object] | None) -> None:
        """Carry the journal to its end; if the disk fails, call *failed* in *outer*, or else fail there."""
        try:
            await self._journal.run(self._tell)
        except JournalError as error:
            self._failed = True
            self._due.clear()
            if failed is not None and outer.alive:
                outer.enter(partial(failed, error))
                await trio.sleep_forever()  # our actor lives on: what was kept stays asserted
            if outer.alive:
                outer.enter(partial(_fail, error))
                await trio.sleep_forever()  # until outer has ended by that, and so this
            self._facet.actor.system.interrupt = error  # raised when the system has ended, as it is about to

    def _tell(self, peers: list[Ref]) -> None:
        if not self._due:
            self._facet.enter(self._answer)
        self._due += peers

    def _answer(self) -> None:
        turn = current("sync")
        due, self._due = self._due, []
        for peer in due:
            turn.sync(self.target, peer)


def _fail(error: JournalError) -> None:
    raise error


def durable(
    ds: Ref,
    journal: Journal,
    *,
    most: int = DEFAULT.kept,
    ready: Callable[[], object] = lambda: None,
    failed: Callable[[JournalError], object] | None = None,
) -> Ref:
    """The durable face of the dataspace *ds*, kept in *journal*, which is open.  Raises :class:`NotInTurn`.

    *ready* is called, in the current facet, when all that was kept is asserted in *ds*.  When the disk fails,
    *failed* is called there with the :class:`~syndicate.errors.JournalError`; without it, the current actor crashes
    with it.  It ends with the current facet, which closes the journal.
    """
    turn = current("durable")
    outer = turn.facet
    actor = Actor(turn.actor.system, "durable", daemon=True)
    facet = Facet(actor, actor.root)
    facet.preventers = 1
    entity = Durable(facet, ds, journal, most)

    def begin() -> None:
        entity.recover()
        current_turn(facet).sync(ds, Ref(facet, SyncReply(ds, partial(outer.enter, ready))))
        facet.run(current_turn(facet), partial(trio_task, entity.write, outer, failed))

    actor.boot(turn, begin)
    link(actor)
    return Ref(facet, entity, True)
