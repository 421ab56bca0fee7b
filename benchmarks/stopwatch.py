"""A stopwatch for the part of a workload that counts; under ``--profile`` it profiles just that part."""

from __future__ import annotations

import cProfile
import gc
from collections.abc import Callable
from time import perf_counter
from typing import ClassVar


class Stopwatch:
    """Started and read once, at the same points as the other side's clock.

    >>> watch = Stopwatch()
    >>> watch.start()
    >>> watch.read() > 0
    True
    """

    __slots__ = ("begun",)

    clock: ClassVar[Callable[[], float]] = perf_counter
    """What it reads; seconds."""

    profiler: ClassVar[cProfile.Profile | None] = None
    """What is to watch between start and read, if anything is."""

    def __init__(self) -> None:
        self.begun = 0.0

    def start(self, collect: bool = True) -> None:
        """Begin; after a full garbage collection, where the other side makes one too."""
        if collect:
            gc.collect()
        if self.profiler is not None:
            self.profiler.enable()
        self.begun = Stopwatch.clock()

    def read(self) -> float:
        """Seconds since the start."""
        spent = Stopwatch.clock() - self.begun
        if self.profiler is not None:
            self.profiler.disable()
        return spent
