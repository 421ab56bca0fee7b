"""Kernels: which functions run in Rust, where a compiler was at hand when this was installed.

A kernel is a function or a class that exists twice: in Python, which specifies it and runs everywhere, and in Rust, in
the directory ``native`` of the sources, which does the same faster.  :func:`kernel` marks the Python one, and is the
only place that knows which of the two runs.  What has no kernel, or is rare, is Python in any case.

Two variables of the environment choose: ``SYNDICATE_PURE=1`` runs Python alone, ``SYNDICATE_NATIVE=require`` fails
where that would be all that there is.

Source: ``docs/design/native.md``.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from struct import unpack_from
from types import ModuleType
from typing import Final, TypeVar, cast
from warnings import warn

from syndicate.errors import KernelsMissing

T = TypeVar("T")

INTERFACE: Final = 21
"""What the library and these sources agree on: a library with another number is not used."""

specifications: Final[dict[str, object]] = {}
"""The Python function or class behind each kernel, by its name."""


_REMEDY: Final = "install it again, or build it with `make native`"


def _expect_whole(name: str) -> None:
    """Raise ImportError for a library of Linux's that was cut short: whoever loads it is ended by the system."""
    spec = find_spec(name)
    if spec is None or not (spec.origin or "").endswith(".so"):
        return
    path = Path(cast(str, spec.origin))
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise ImportError(str(error)) from error
    if head[:5] == b"\x7fELF\x02" and len(head) == 64:  # of 64 bits: a table is its end
        order = "<" if head[5] == 1 else ">"
        place, size, count = *unpack_from(f"{order}Q", head, 40), *unpack_from(f"{order}HH", head, 58)
        if path.stat().st_size < place + size * count:
            raise ImportError("it is cut short")


def _load() -> tuple[ModuleType | None, str]:
    """The library, or None, and a word on it for ``--version``."""
    if os.environ.get("SYNDICATE_PURE", "") not in ("", "0"):
        return None, "pure Python (asked for by SYNDICATE_PURE)"
    try:
        _expect_whole("syndicate._native")
        library = import_module("syndicate._native")
    except ModuleNotFoundError:
        others = sorted(
            other.name for other in Path(__file__).parent.glob("_native.*") if other.suffix in (".so", ".pyd")
        )
        if not others:
            return None, "pure Python (no native library was built when it was installed)"
        reason = f"pure Python (the native library is of another Python: {others[0]})"
    except ImportError as error:  # of another Python, or half built
        reason = f"pure Python (the native library cannot be loaded: {error})"
    else:
        if library.INTERFACE == INTERFACE:
            return library, f"native kernels ({library.SOURCES})"
        reason = "pure Python (the native library is of another version)"
    warn(f"syndicate runs as {reason}: {_REMEDY}", RuntimeWarning, stacklevel=2)
    return None, reason


library, DESCRIPTION = _load()
if library is None and os.environ.get("SYNDICATE_NATIVE") == "require":
    raise KernelsMissing(f"SYNDICATE_NATIVE=require, but syndicate runs as {DESCRIPTION}: build it with `make native`")


def kernel(specification: T) -> T:
    """The native kernel of this function's or class's name, or *specification* itself where none runs.

    >>> from syndicate.values.value import freeze
    >>> "freeze" in specifications
    True
    """
    name = cast(str, specification.__name__)  # type: ignore[attr-defined]  # functions and classes have one
    specifications[name] = specification
    if library is None:
        return specification
    try:
        return cast(T, library.kernel(name, specification))
    except LookupError:  # of the same interface, and older than this kernel
        reason = "pure Python where the native library, an older one, has no kernel"
        if os.environ.get("SYNDICATE_NATIVE") == "require":
            raise KernelsMissing(f"SYNDICATE_NATIVE=require, but syndicate runs as {reason}: {_REMEDY}") from None
        warn(f"syndicate runs as {reason}: {_REMEDY}", RuntimeWarning, stacklevel=1)
        return specification
