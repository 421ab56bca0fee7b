"""A check of the package: that the package ``syndicate`` beside this one is ours.

Another distribution, syndicate-py, has a package of the same name.  Where both are installed in one environment, the
files of the one that came last lie over those of the other, and what is left works in neither.  pip does not notice,
and the error that Python would raise names a symbol that nobody has heard of.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

from relay.startup_interrupts import is_command

OURS: Final = "syndicate-dataspace"


def expect_ours() -> None:
    """Raise :class:`ImportError` with the remedy if ``syndicate`` is another's; a command ends with these words."""
    failure: ImportError | None = None
    try:
        if hasattr(import_module("syndicate"), "SyndicateError"):
            return
    except ImportError as error:
        failure = error
    others = _others()
    if failure is not None and not others:  # it is ours, and lacks something
        raise failure
    name = " and ".join(others) or "syndicate-py"
    text = (
        f"the package `syndicate` here is not that of {OURS}: another distribution, {name}, has put its own over it. "
        f"The two need an environment each: make a new one for {OURS} (python -m venv), or mend this one: "
        f"pip uninstall {' '.join(others) or name} {OURS}, and install {OURS} as before"
    )
    if is_command():
        sys.exit(text)
    raise ImportError(text) from None


def _others() -> list[str]:
    """The other distributions that say they have a package ``syndicate``."""
    from importlib.metadata import packages_distributions

    return sorted(set(packages_distributions().get("syndicate", ())) - {OURS})
