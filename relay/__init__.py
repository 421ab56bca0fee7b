"""The relay: dataspaces across processes.

:func:`connect` gives you the dataspace of another process, :class:`~relay.server.broker.Broker` offers one to others,
and
:func:`serve` one entity to the process that started this one; :func:`~relay.nested.nested` joins dataspaces within a
process; :func:`attenuate` narrows what one can do with a reference; :func:`keep` lets a value outlast
its author in a durable dataspace.  Commands: ``syndicate-server``,
``syndicate-console``.
"""

from __future__ import annotations

from relay.loading import expect_interrupts
from relay.package_check import expect_ours

expect_interrupts()
expect_ours()  # before anything else of ours looks for it

from relay.capabilities.caveats import attenuate  # noqa: E402
from relay.client import connect  # noqa: E402
from relay.serve import serve  # noqa: E402
from relay.transport import Tls  # noqa: E402
from syndicate.actors.keep import forget, keep  # noqa: E402

__all__ = ["Tls", "attenuate", "connect", "forget", "keep", "serve"]
