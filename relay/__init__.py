"""The relay: dataspaces across processes.

:func:`connect` gives you the dataspace of another process, :class:`Broker` offers one to others; ``nested`` joins
dataspaces within a process.  Commands: ``syndicate-server``, ``syndicate-console``.
"""

from __future__ import annotations

from relay.client import connect

__all__ = ["connect"]
