"""A check that the package is ours alone: no file of another distribution lies in it.

syndicate-py has a package of the same name, and pip installs one over the other without a word.  Whichever comes last
works, and the other is broken; to remove either removes files of both.  So it is refused where it can be seen: here,
and where theirs came last, by the same check in the package ``relay``.

Source: ``docs/design/lifecycle.md``, "The name of the package".
"""

from __future__ import annotations

from pathlib import Path

_THEIRS = "mapset.py"
"""A module of syndicate-py, and none of ours."""

REMEDY = (
    "The two need an environment each: make a new one for syndicate-dataspace (python -m venv), or mend this one: "
    "pip uninstall syndicate-py syndicate-dataspace, and install syndicate-dataspace as before"
)


def expect_alone() -> None:
    """Raise :class:`ImportError` with the remedy if modules of syndicate-py lie in this package; some microseconds.

    >>> expect_alone()
    """
    place = Path(__file__).parent
    if (place / _THEIRS).exists():
        raise ImportError(f"syndicate-py is installed over the package `syndicate` of syndicate-dataspace. {REMEDY}")
