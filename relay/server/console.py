"""The console of a program that is no broker: pages in a browser about its dataspace.

>>> from syndicate import dataspace, run, stop_actor
>>> def boot():
...     console(dataspace(), opened=lambda address: (print(address.partition("#")[2][:4]), stop_actor()))
>>> run(boot)
cap=

Source: ``docs/design/web.md``, "The console".
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from attrs import evolve

from relay.server.admin import AdminPort
from relay.server.broker import Broker
from relay.server.config import Admin
from relay.transport import Address
from syndicate.actors.verbs import linked_task, on_stop_or_crash, spawn
from syndicate.errors import AddressError
from syndicate.outside import outside
from syndicate.values.value import Ref


def _tell(address: str) -> None:
    print(f"console: {address}", file=sys.stderr)


def console(ds: Ref, at: str = "127.0.0.1:0", *, write: bool = False, opened: Callable[[str], object] = _tell) -> None:
    """Serve the console of the dataspace *ds* at *at*, a host and port, until the program ends, which does not wait for
    it.

    *opened* is called with the address that a person opens, capability included; by default it is printed to standard
    error.  With *write* the page may assert, send, and mint capabilities.  Nothing is counted while nobody looks.

    Raises:
        AddressError: *at* is no host and port, or other machines can reach it.
        ListenError: it is taken.
        ServerMissing: the extra ``server`` is not installed.
    """
    place = Address.parse(f"tcp://{at}")
    if not place.local:
        raise AddressError(f"{at} can be reached from other machines, and whoever has the console's address sees all")
    admin = Admin(place.host, place.port, write=write)
    broker = Broker((), ds=ds, key=outside().token(32))
    broker.config = evolve(broker.config, admin=admin)
    port = AdminPort(admin, broker)

    def serve() -> None:
        on_stop_or_crash(port.close)
        broker()
        linked_task(port.serve)

    spawn(serve, name="console", daemon=True)
    opened(port.console)
