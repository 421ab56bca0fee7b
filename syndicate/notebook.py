"""Actors in a notebook: a cell that starts a system returns at once, with a handle.

In a cell::

    from syndicate.notebook import run

    system = run(boot)  # its actors run in a thread, and the notebook goes on
    system.snapshot(ds, Present(capture()))
    system.close()

What actors print appears below the cell that has started them.  A new kernel begins without any; when the kernel ends
in order, all actors are stopped in order, and if it is killed, its connections are lost, which brokers notice.

Running a cell again closes the system that it had started before: the last one with the same *name*.

>>> from syndicate import prevent_inert_check
>>> first = run(prevent_inert_check)
>>> second = run(prevent_inert_check)
>>> first.running, second.running
(False, True)
>>> second.close()

Source: ``docs/design/hosts.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from syndicate.thread import System

_systems: Final[dict[str, System]] = {}
"""Those that were started, by name."""


def run(
    boot: Callable[..., object] | None = None, *args: object, name: str = "notebook", console: bool | str = False
) -> System:
    """Start a system in a thread, with ``boot(*args)`` as its first actor if there is one; returns at once.

    *console* as :func:`syndicate.open_system` has it; the address is ``system.console``.

    The one of the same *name* that runs is closed first, and its error, if it had failed, is not raised again.
    """
    before = _systems.pop(name, None)
    if before is not None:
        with suppress(Exception):
            before.close()
    system = System(boot, *args, name=name, console=console)
    _systems[name] = system
    return system.start()
