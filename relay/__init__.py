"""The relay: dataspaces across processes.

:func:`connect` gives you the dataspace of another process, :class:`~relay.server.broker.Broker` offers one to others,
and
:func:`serve` one entity to the process that started this one; :func:`~relay.nested.nested` joins dataspaces within a
process; :func:`attenuate` narrows what one can do with a reference; :func:`keep` lets a value outlast
its author in a durable dataspace.  Commands: ``syndicate-server``,
``syndicate-console``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relay.package_check import expect_ours
from relay.startup_interrupts import expect_interrupts

expect_interrupts()
expect_ours()  # before anything else of ours looks for it

from syndicate.on_demand import on_demand  # noqa: E402

if TYPE_CHECKING:
    from relay.capabilities.caveats import attenuate
    from relay.client import connect
    from relay.protocol.limits import Limits
    from relay.stdio_serving import serve
    from relay.transport import Tls
    from syndicate.actors.keep import forget, keep

__all__ = ["Limits", "Tls", "attenuate", "connect", "forget", "keep", "serve"]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "relay.capabilities.caveats": ["attenuate"],
        "relay.client": ["connect"],
        "relay.protocol.limits": ["Limits"],
        "relay.stdio_serving": ["serve"],
        "relay.transport": ["Tls"],
        "syndicate.actors.keep": ["forget", "keep"],
    },
)
