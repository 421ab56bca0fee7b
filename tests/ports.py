"""Ports that nobody listens at now, so that a server of a test can, and can come back on its own."""

from __future__ import annotations

import socket


def free_ports(count: int) -> list[int]:
    """So many, each another one."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports
