"""What tests measure, and how long they wait: nothing that another load on the machine changes.

A test that wants to know what something costs counts work; one that waits for what must come waits for as long as it
takes.  Only the suite has a limit, so that a test that hangs ends; and processor time is measured in `benchmarks/`.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

PATIENCE: Final = 840.0
"""Seconds to wait for what must come: a little less than the suite's own limit for a test, so that it says for what."""

SYNDICATE: Final = Path(__file__).parents[1] / "syndicate"
COMPREHENSIONS: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


def calls(fn: Callable[[], object]) -> int:
    """How many calls, of Python and of C functions, *fn* makes."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        fn()
    finally:
        sys.setprofile(before)
    return count


def entered(fn: Callable[[], object]) -> dict[str, set[str]]:
    """The files of `syndicate/` that *fn* enters, and of each the functions: a comprehension is a line of one.

    The collector rests meanwhile: what it ends, others have left.
    """
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    before = sys.getprofile()
    gc.collect()
    collecting = gc.isenabled()
    gc.disable()
    sys.setprofile(note)
    try:
        fn()
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()
    files: dict[str, set[str]] = {}
    for code in codes:
        path = Path(code.co_filename)
        if path.is_relative_to(SYNDICATE) and code.co_name not in COMPREHENSIONS:
            files.setdefault(str(path.relative_to(SYNDICATE)), set()).add(code.co_qualname)
    return files


def lines(fn: Callable[[], object]) -> int:
    """How many lines of Python *fn* runs, and how many calls it makes: what a loop that calls nothing costs, too."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        count += 1
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        called = calls(fn)
    finally:
        sys.settrace(before)
    return count + called


def peak(fn: Callable[[], object]) -> int:
    """How many bytes more than before *fn* holds at its highest: a copy shows here, though it is one call."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        fn()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
