"""The relay: dataspaces across processes.

:func:`connect` gives you the dataspace of another process, :class:`~relay.broker.Broker` offers one to others, and
:func:`serve` one entity to the process that started this one; :func:`~relay.nested.nested` joins dataspaces within a
process; :func:`attenuate` narrows what one can do with a reference.  Commands: ``syndicate-server``,
``syndicate-console``.
"""

from __future__ import annotations

from relay.caveats import attenuate
from relay.client import connect
from relay.inferior import serve
from relay.transport import Tls

__all__ = ["Tls", "attenuate", "connect", "serve"]
