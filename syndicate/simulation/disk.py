"""A disk that loses what was not synced: a :class:`~syndicate.storage.disk.Disk` in memory, with crashes at will."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from attrs import define, evolve, field

from syndicate.errors import JournalDamaged
from syndicate.storage.disk import Commit, Loaded, StoredRow
from syndicate.values.value import Frozen


class PowerCut(BaseException):
    """The machine is off: nothing in the program may handle it."""


@define(eq=False)
class SimulatedDisk:
    """Commits, of which the synced ones survive a crash, and of the others any number of the first; of the next one any
    part may be there, and not its end: that is torn, and the next who loads finds that out.

    *step* is called at each point where a crash could come, and may raise :class:`PowerCut` or, for a disk that is full
    or fails, an ``OSError``.
    """

    synced: list[Commit | int] = field(factory=list)
    """Commits, and the numbers of epochs that were begun."""
    unsynced: list[Commit | int] = field(factory=list)
    step: Callable[[str], object] = lambda point: None
    locked: bool = False
    torn: Commit | None = None
    """What is there of a commit that has no end."""
    sums: dict[int, int] = field(factory=dict)
    """The checksums of rows of which a bit has changed since they were written."""

    def open(self) -> None:
        """Take possession."""
        assert not self.locked, "two at a time"
        self.locked = True
        self.step("opened")

    def load(self, decode: Callable[[bytes], Frozen], *, salvage: bool = False) -> Loaded:
        """Begin a new epoch, and return what is there."""
        if self.torn is not None and self.has_end(self.torn):
            self.synced.append(self.torn)
        self.torn = None
        rows, turn, number, epoch = self.contents()
        self.step("loaded")
        lost = [f"row {row.number}" for row in rows.values() if row.crc != self.sums.get(row.number, row.crc)]
        if lost and not salvage:
            raise JournalDamaged(f"the simulated disk is damaged: {', '.join(lost)}")
        self._write(epoch + 1)
        whole = [row for row in rows.values() if f"row {row.number}" not in lost]
        return Loaded(epoch + 1, True, turn, number, [(row.number, decode(row.data)) for row in whole], lost)

    def contents(self) -> tuple[dict[int, StoredRow], int, int, int]:
        """The rows, the last turn, the last number and the epoch that a restart now would find."""
        rows: dict[int, StoredRow] = {}
        turn = number = epoch = 0
        for entry in self.synced:
            if isinstance(entry, int):
                epoch = entry
                continue
            for gone in entry.removed:
                del rows[gone]
            for row in entry.added:
                assert row.number not in rows
                rows[row.number] = row
            assert entry.turn > turn
            assert entry.number >= number
            turn, number = entry.turn, entry.number
        return rows, turn, number, epoch

    def has_end(self, torn: Commit) -> bool:
        """Whether a commit that is there in part has its end: its checksum says no."""
        return False

    def commit(self, changes: Commit) -> None:
        """Write and sync."""
        self._write(changes)

    def _write(self, entry: Commit | int) -> None:
        self.step("before the write")
        self.unsynced.append(entry)
        self.step("written, not synced")
        self.synced += self.unsynced
        self.unsynced.clear()
        self.step("synced, not answered")

    def close(self, *, clean: bool = True) -> None:
        """Give it up."""
        self.locked = False

    # ------------------------------------------------------------------------------------------------ crashes

    def images(self) -> Iterator[SimulatedDisk]:
        """All that a crash now could leave."""
        for survivors in range(len(self.unsynced) + 1):
            yield SimulatedDisk([*self.synced, *self.unsynced[:survivors]])

    def crashed(self, rng: random.Random) -> SimulatedDisk:
        """One of them."""
        return rng.choice([*self.images()])

    def crash(self, survivors: int, parts: int = 0) -> None:
        """Go on as after a crash, in which so many of the unsynced commits, the first of them, survived; and, of the
        next, those of its changes whose bits are set in *parts*.
        """
        next_one = self.unsynced[survivors] if parts and survivors < len(self.unsynced) else 0
        if not isinstance(next_one, int):
            size = len(next_one.added)
            self.torn = evolve(
                next_one,
                added=[row for at, row in enumerate(next_one.added) if parts >> at & 1],
                removed=[number for at, number in enumerate(next_one.removed, size) if parts >> at & 1],
            )
        self.synced += self.unsynced[:survivors]
        self.unsynced.clear()
        self.locked = False

    def rot(self, at: int) -> bool:
        """Change a bit of one of the rows, that with the number *at* modulo how many there are; False if there is none.

        :meth:`mend` ends that.
        """
        rows = [row for row in self.contents()[0].values() if row.data]
        if not rows:
            return False
        row = rows[at % len(rows)]
        self.sums.setdefault(row.number, row.crc)
        self._flip(row)
        return True

    def mend(self) -> None:
        """Change those bits back."""
        for row in list(self.contents()[0].values()):
            if row.crc != self.sums.get(row.number, row.crc):
                self._flip(row)
        self.sums.clear()

    def _flip(self, row: StoredRow) -> None:
        flipped = evolve(row, data=row.data[:-1] + bytes([row.data[-1] ^ 1]))
        for place, entry in enumerate(self.synced):
            if not isinstance(entry, int) and row in entry.added:
                added = [flipped if each == row else each for each in entry.added]
                self.synced[place] = evolve(entry, added=added)

    def copy(self) -> SimulatedDisk:
        """The same, after a crash in which nothing more was lost."""
        sums = dict(self.sums)
        return evolve(self, sums=sums, synced=[*self.synced], unsynced=[], locked=False, step=lambda point: None)
