"""The console of a program that is no broker: pages in a browser about it.

``run(boot, console=True)`` gives a program one about all its dataspaces; :func:`console`, in a turn, one about a single
dataspace, which it may be allowed to write to.

>>> from syndicate import dataspace, run, stop_actor
>>> def boot():
...     console(dataspace(), opened=lambda address: (print(address.partition("#")[2][:4]), stop_actor()))
>>> run(boot)
cap=

Source: ``docs/design/web.md``, "The console".
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Final

from attrs import evolve

from relay.server.admin import AdminPort
from relay.server.broker import Broker
from relay.server.config import Admin
from relay.transport import Address
from syndicate.actors.dataspace import dataspace
from syndicate.actors.verbs import on_stop_or_crash, spawn, trio_task
from syndicate.errors import AddressError, ServerMissing
from syndicate.introspect.contents import dataspaces
from syndicate.outside import outside
from syndicate.values.value import Ref

ANYWHERE: Final = "127.0.0.1:0"
"""Some port of this machine."""


def _tell(address: str) -> None:
    print(f"console: {address}", file=sys.stderr, flush=True)


class SystemConsole:
    """A console that is open at *at*, a host and port of this machine, and served by the actor whose :meth:`boot` is
    called: about all dataspaces of its system; or about *ds* alone, in which with *write* the page may assert and send.

    Raises:
        AddressError: *at* is no host and port, or other machines can reach it.
        ListenError: it is taken.
        ServerMissing: the extra ``server`` is not installed.
    """

    def __init__(self, at: str = ANYWHERE, *, ds: Ref | None = None, write: bool = False) -> None:
        place = Address.parse(f"tcp://{at}")
        if not place.local:
            raise AddressError(
                f"{at} can be reached from other machines, and whoever has the console's address sees all"
            )
        admin = Admin(place.host, place.port, write=write)
        self._all = ds is None
        self._broker = Broker((), ds=ds, key=outside().token(32))
        self._broker.config = evolve(self._broker.config, admin=admin)
        try:
            self._port = AdminPort(admin, self._broker)
        except ServerMissing:
            raise ServerMissing(
                'a console needs the extra "server": install it with: pip install "syndicate-dataspace[server]"'
            ) from None
        self.address = self._port.console

    def boot(self, opened: Callable[[str], object] = _tell) -> None:
        """Serve it, in the current facet; *opened* is called with the address, which is printed otherwise."""
        on_stop_or_crash(self.close)
        if self._all:
            self._broker.ds = dataspace("console")
            self._broker.shown = self._theirs
        self._broker()
        trio_task(self._port.serve)
        opened(self.address)

    def close(self) -> None:
        """Close it, if it was never served."""
        self._port.close()

    def _theirs(self) -> Iterator[Ref]:
        """The dataspaces of the system, without those that are here for the console."""
        ours = {each.facet for each in (self._broker.ds, self._broker.census.admin) if each is not None}
        system = self._broker.census.system
        return (ds for ds in dataspaces(() if system is None else system.actors) if ds.facet not in ours)


def console(ds: Ref, at: str = ANYWHERE, *, write: bool = False, opened: Callable[[str], object] = _tell) -> None:
    """Serve the console of the dataspace *ds* at *at*, a host and port, until the program ends, which does not wait for
    it.

    *opened* is called with the address that a person opens, capability included; by default it is printed to standard
    error.  With *write* the page may assert, send, and mint capabilities.  Nothing is counted while nobody looks.

    Raises what :class:`SystemConsole` does.
    """
    server = SystemConsole(at, ds=ds, write=write)
    spawn(server.boot, lambda address: None, name="console", daemon=True).looks_on = not write
    opened(server.address)
