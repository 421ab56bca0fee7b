r"""The journal: which values are kept, turn by turn, on their way to the disk.

Turns do not wait for the disk.  What a turn changes is noted; at its end, when it can no longer fail, it is *sealed*.
One task writes: whatever turns were sealed while a commit ran are the next commit, so that a slow disk makes larger
groups and not longer queues.  Groups are written one after the other, in order, by a worker thread.

What waits is bounded by state, not by traffic: it is keyed by the row, and a row that is added and removed before its
group is taken leaves nothing.  So there wait at most the rows that are kept and not yet written, and the numbers of
those that are written and no longer kept.  Beside them wait those who asked to be notified (one reference each).

The first failure of the disk is the last thing that is done with it: no commit is tried again, for after a failed
*fsync* nobody knows what is on the disk, and nobody is notified that something is durable from then on.

Values are stored as the msgpack of :mod:`relay.protocol.codec.msgpack`, which writes a frozen form in one way only.

>>> from tempfile import TemporaryDirectory
>>> def restarted(directory, change):
...     journal = Journal(StateDirectory(directory))
...     journal.open()
...     change(journal)
...     journal.seal()
...     journal.write()
...     journal.close()
...     return journal.epoch, [form for number, form in journal.recovered]
>>> with TemporaryDirectory() as directory:
...     restarted(directory, lambda journal: [journal.keep("a"), journal.keep("b")])
...     restarted(directory, lambda journal: journal.forget(1))
...     restarted(directory, lambda journal: None)
(1, [])
(2, ['a', 'b'])
(3, ['b'])

Contract: what is on the disk is always the outcome of a prefix of the sealed turns; :meth:`Journal.run` tells nobody
before all is committed that was sealed when they asked; after a failure it tells nobody.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import trio

from relay.protocol.codec.msgpack import Msgpack
from relay.protocol.limits import Limits
from syndicate.errors import JournalDamaged, JournalError, NotAValue, ProtocolError, StateError
from syndicate.log import logger
from syndicate.outside import outside
from syndicate.storage.disk import Commit, Disk, SqliteDisk, StoredRow
from syndicate.storage.files import sync_directory
from syndicate.storage.lock import Lock
from syndicate.values.value import Frozen, Ref

STORED: Final = Limits(frame=1 << 28, nodes=1 << 24, entries=1 << 24, bignum=1 << 20)
"""Bounds of one stored value: beyond those of any packet, and fixed, so that what was kept can be read again."""


class Journal:
    """The journal on *disk*.  :meth:`open` comes first; :meth:`run` ends with :meth:`close`.

    ``epoch`` counts the openings; ``recovered`` are the values that were there, with their numbers; ``lost`` is what a
    salvage could not keep; ``turn`` the last sealed turn, ``commits`` how often was written, ``error`` why no more is.
    """

    def __init__(self, disk: Disk) -> None:
        self.epoch = self.turn = self.commits = 0
        self.clean = True
        self.recovered: list[tuple[int, Frozen]] = []
        self.lost: list[str] = []
        self.error: JournalError | None = None
        self._disk = disk
        self._number = 0
        self._codec = Msgpack(STORED)
        self._noted: list[StoredRow | int] = []
        self._added: dict[int, StoredRow] = {}
        self._removed: dict[int, None] = {}
        self._flying = False
        self._flying_askers: list[Ref] = []  # once what is being written is
        self._waiting: list[Ref] = []  # once what is to be written next is
        self._ready = trio.Event()

    def open(self, *, salvage: bool = False) -> None:
        """Lock, verify and load.  Blocks: do it before there is anything else to do.

        Raises :class:`~syndicate.errors.StateError` if the place cannot be used, and
        :class:`~syndicate.errors.JournalError` if the journal cannot be read, :class:`~syndicate.errors.JournalDamaged`
        if it is not as it was written.  Then nothing was changed; *salvage* asks for what is whole, and what is lost is
        in the log, line by line.
        """
        self._disk.open()
        try:
            loaded = self._disk.load(self._decode, salvage=salvage)
        except BaseException:
            self._disk.close(clean=False)
            raise
        self.epoch, self.clean = loaded.epoch, loaded.clean
        self.turn, self._number = loaded.turn, loaded.number
        self.recovered, self.lost = loaded.values, loaded.lost
        for line in self.lost:
            logger(actor="durable").error("lost", what=line)

    def _decode(self, data: bytes) -> Frozen:
        try:
            forms = list(self._codec.feed(data))
            if len(forms) == 1 and self._codec.encode(forms[0]) == data:
                return forms[0]
            problem = f"{len(forms)} values, or one that we would write differently"
        except (ProtocolError, NotAValue) as e:
            problem = str(e)
        self._codec = Msgpack(STORED)
        raise JournalDamaged(problem)

    # ---------------------------------------------------------------------------------------------------- noting

    @property
    def noted(self) -> bool:
        """Whether the running turn has changed something, so that it must be sealed."""
        return bool(self._noted)

    def keep(self, form: Frozen) -> int:
        """Note that *form*, which is not kept yet, is; return its number.

        Raises :class:`~syndicate.errors.NotAValue` for what cannot be stored: a live reference, above all.
        """
        data = self._codec.encode(form)
        self._number += 1
        self._noted.append(StoredRow(self._number, self.turn + 1, data))
        return self._number

    def forget(self, number: int) -> None:
        """Note that the value with this number is kept no more."""
        self._noted.append(number)

    def seal(self) -> None:
        """End the turn: what it noted may be written, and none of it without the rest."""
        if self._noted:
            self.turn += 1
            for change in self._noted:
                if isinstance(change, StoredRow):
                    self._added[change.number] = change
                elif self._added.pop(change, None) is None:
                    self._removed[change] = None
            self._noted.clear()
            self._ready.set()

    def settled(self, asker: Ref) -> bool:
        """Whether all that was done so far is committed.  If not, *asker* is notified when it is."""
        if self._noted or self._added or self._removed or self._waiting:
            self._waiting.append(asker)
            self._ready.set()
        elif self._flying or self._flying_askers:  # for ever, if that commit has failed
            self._flying_askers.append(asker)
        else:
            return True
        return False

    # ---------------------------------------------------------------------------------------------------- writing

    def take(self) -> Commit | None:
        """What is to be written next, if there is something; whoever waits for it waits from now on for its commit."""
        changes = None
        if self._added or self._removed:
            changes = Commit(self.turn, self._number, [*self._added.values()], [*self._removed])
            self._added, self._removed = {}, {}
        self._flying_askers, self._waiting = self._waiting, []
        self._ready = trio.Event()
        self._flying = changes is not None
        return changes

    def written(self) -> list[Ref]:
        """What was taken is committed: return who is to be notified."""
        askers, self._flying_askers = self._flying_askers, []
        self.commits += self._flying
        self._flying = False
        return askers

    def commit(self, changes: Commit) -> None:
        """Write; may be called in another thread.  Raises :class:`~syndicate.errors.JournalError`, for good."""
        try:
            self._disk.commit(changes)
        except Exception as e:
            self.error = e if isinstance(e, JournalError) else JournalError(f"the journal cannot be written: {e!r}")
            raise self.error from None

    def write(self) -> list[Ref]:
        """Write what is to be written, here and now; return who is to be notified."""
        changes = self.take()
        if changes is not None:
            self.commit(changes)
        return self.written()

    async def run(self, tell: Callable[[list[Ref]], object]) -> None:
        """Write whatever is sealed, until cancelled; then the rest, and close in order.

        *tell* gets those who asked.  Raises :class:`~syndicate.errors.JournalError` at the first failure.
        """
        one = trio.CapacityLimiter(1)  # of our own: the common threads may all be waiting for name servers
        try:
            while True:
                await self._ready.wait()
                with trio.CancelScope(shield=True):
                    changes = self.take()
                    if changes is not None:
                        await outside().blocking(partial(self.commit, changes), one)
                    events = self.written()
                if events:
                    tell(events)
        finally:
            with trio.CancelScope(shield=True):
                await outside().blocking(self._end, one)

    def _end(self) -> None:
        if self.error is None:
            self.write()
        self.close()

    def close(self) -> None:
        """Give the disk up; what is sealed and not written is lost."""
        try:
            self._disk.close(clean=self.error is None)
        except JournalError as e:
            self.error = self.error or e
            raise


class StateDirectory(SqliteDisk):
    """The disk of a journal: the directory *path* (mode 0700), with ``journal.sqlite`` and ``lock``.

    It is made if it is not there.  ``--salvage`` keeps what was damaged in ``damaged-N`` there.
    """

    elsewhere = "give another --state"
    restoring = "Restore it from a copy, or start once with --salvage, which keeps what is whole and lists what is lost"
    program = "syndicate-server"
    aside = "damaged-{number}"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(Path(path) / "journal.sqlite")
        self.place = f"state directory {self.path}"
        self._lock = Lock(self.path / "lock")

    def open(self) -> None:
        """Make the directory if it is not there, and take possession."""
        try:
            if not self.path.exists():
                self.path.mkdir(mode=0o700)
                sync_directory(self.path.parent)
            os.scandir(self.path).close()
        except OSError as e:
            what = "it is a file" if isinstance(e, (NotADirectoryError, FileExistsError)) else e.strerror
            raise StateError(
                f"cannot keep state in {self.path}: {what}. Give --state a directory that this user may write in"
            ) from None
        super().open()
