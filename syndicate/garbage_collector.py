"""The garbage collector: when it may look, decided in one place.

Python's collector looks for cycles when so many objects are new, and from time to time walks all there are.  Two things
that we do are hard on it, and make no cycles:

* A piece of work adds to a large state: a step of a circuit, the reading of a snapshot, a fixed point.  What it makes
  stays, and to walk all of it again and again takes half of the time of a first load (measured).  Such work *pauses*
  the collector, and is short enough for that.
* Something goes on for long, and makes many small objects that reference counting frees: a system that runs, a batch
  on its way to a dataspace.  Cycles of others may come meanwhile, so that the collector still runs, only rarely.

A program that serves others is *ready* at some moment: what it is made of need not be walked any more, and nobody is to
wait for the collector for long.

The first two nest, and overlap in several threads.  At the end of the last all is as it was: a collector that the
program has switched off stays off.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MANY_OBJECTS: Final = 10_000
"""Work that leaves so many new objects is work whose objects stay."""


class CollectorPause:
    """The collector rests within the ``with`` block; one object for one piece of work at a time.

    With *ageing*, what the work made is old at its end where it is much: it is not walked before all else is.  With
    *sweeping*, what is left of it is walked at once, while the processor has it at hand: for work that leaves cycles,
    and is done again and again.  To walk what ten runs of a simulated world leave takes ten times what one takes, and
    to walk it later five times that (measured).  What was still in use then is older afterwards, and its turn comes as
    the collector itself would have it.

    Whatever instruction a signal strikes at, :meth:`end` puts things right: it may be called again, and too often.
    """

    __slots__ = ("_ageing", "_sweeping", "works")

    def __init__(self, *, ageing: bool = False, sweeping: bool = False) -> None:
        self._ageing = ageing
        self._sweeping = sweeping
        self.works = False  # whether the collector is to work again at the end

    def begin(self) -> None:
        """Let the collector rest."""
        # It may rest because of another thread's pause, which may end just now: so it is asked about twice.
        if gc.isenabled() or _pauses or gc.isenabled():
            self.works = True
            _pauses.add(self)
            gc.disable()

    def end(self, *_: object) -> None:
        """Let the collector work again, if it did before."""
        if self.works:
            if self._ageing and gc.get_count()[0] > MANY_OBJECTS and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            _pauses.discard(self)
            if not _pauses:  # of two that end at once, in two threads, at least one sees that
                gc.enable()
                if self._sweeping:
                    gc.collect(_due())
            self.works = False

    __enter__, __exit__ = begin, end


def _due() -> int:
    """The oldest generation whose time has come: the collector itself asks that only where objects are made, and while
    it rests, none are that it sees.
    """
    generation = 0
    for count, threshold in zip(gc.get_count()[1:], gc.get_threshold()[1:], strict=True):
        if count <= threshold:
            break
        generation += 1
    return generation


_pauses: Final[set[CollectorPause]] = set()
"""Those in force that found the collector at work, or one of them in force; the end of the last sets it to work."""


class _Thresholds:
    """How rarely the collector is to run, for all who ask at once; and what was set before the first of them."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.before = self.ours = gc.get_threshold()
        self.lock = threading.Lock()

    def add(self, objects: int) -> None:
        with self.lock:
            if not self.asked or gc.get_threshold() != self.ours:  # the program has set it since
                self.before = gc.get_threshold()
            self.asked.append(objects)
            self._set()

    def remove(self, objects: int) -> None:
        with self.lock:
            self.asked.remove(objects)
            self._set()

    def _set(self) -> None:
        first, *others = self.before
        if first:  # 0 is off
            gc.set_threshold(max([first, *self.asked]), *others)
            self.ours = gc.get_threshold()


_thresholds: Final = _Thresholds()


@contextmanager
def seldom(objects: int) -> Iterator[None]:
    """Let the collector look when so many objects are new, and not before; of several who ask, the most counts."""
    _thresholds.add(objects)
    try:
        yield
    finally:
        _thresholds.remove(objects)


def set_aside() -> None:
    """What is there now stays, and need not be walked any more."""
    gc.freeze()


def objects() -> list[object]:
    """All that the collector knows, what was set aside too; that of now is set aside again."""
    if not gc.get_freeze_count():
        return gc.get_objects()
    gc.unfreeze()
    try:
        return gc.get_objects()
    finally:
        set_aside()


def ready(objects: int = 350) -> None:
    """What is there now stays.  From here on let the collector look at so many new objects at once, or at twice as
    many, which takes some tenths of a millisecond, and at all that are left of them after 3,000 such looks.

    What goes counts against what is new, also if it is older: where as much goes as comes, it looks at some times more.
    """
    gc.collect()
    set_aside()
    if gc.get_threshold()[0]:
        gc.set_threshold(objects, 0, 3_000)
