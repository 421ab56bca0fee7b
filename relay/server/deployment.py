"""Deployment: what surrounds the server on a machine: a systemd unit, a container, a configuration file to begin with.

>>> print(SYSTEMD.splitlines()[1])
Description=Syndicate dataspace server

``syndicate-server print systemd|dockerfile|config`` prints them, so that they fit the version that is installed.
:func:`notify` tells the service manager how far the server is; without one it does nothing.

Source: systemd, on service, exec and notify; ``docs/design/commands.md``, "An end in order".
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from typing import Final

from attrs import asdict

from relay.protocol.limits import DEFAULT as LIMITS
from relay.server.config import Config, Connections, Overload
from relay.transport import DEFAULT as DEFAULT_ADDRESS


def notify(*states: str) -> None:
    """Tell the service manager, if there is one: ``READY=1``, ``RELOADING=1``, ``STOPPING=1``."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):
        return
    if "RELOADING=1" in states:  # Type=notify-reload wants to know since when
        states = (*states, f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
        manager.settimeout(0.1)  # a manager that does not listen must not stop us
        manager.connect("\0" + path[1:] if path.startswith("@") else path)
        manager.send("\n".join(states).encode())


SYSTEMD: Final = """[Unit]
Description=Syndicate dataspace server
Documentation=https://syndicate-lang.org
After=network-online.target
Wants=network-online.target

[Service]
Type=notify
ExecStart={command} --config /etc/syndicate/server.toml
ExecReload=/bin/kill -HUP $MAINPID
TimeoutStopSec=20
Restart=on-failure
RestartSec=1

# The directories /var/lib/syndicate (for `state`) and /run/syndicate (for a Unix socket) are made and owned.
DynamicUser=yes
StateDirectory=syndicate
StateDirectoryMode=0700
RuntimeDirectory=syndicate
LimitNOFILE=65536

NoNewPrivileges=yes
PrivateDevices=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=strict
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
CapabilityBoundingSet=
AmbientCapabilities=
UMask=0077

[Install]
WantedBy=multi-user.target
"""
"""The unit; ``{command}`` is the absolute path of the server."""

DOCKERFILE: Final = """FROM python:3.12-slim

# What `python -m build` (make dist) has written lies beside this file.
COPY syndicate_dataspace-{version}-*.whl /tmp/
RUN pip install --no-cache-dir "$(ls /tmp/syndicate_dataspace-*.whl)[server]" \\
    && useradd --system --uid 10001 --create-home --home-dir /var/lib/syndicate syndicate

USER syndicate
WORKDIR /var/lib/syndicate
VOLUME /var/lib/syndicate
EXPOSE 8001

# Beyond the container one needs a key:  docker run -v ./key:/run/secrets/syndicate.key:ro ...
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \\
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8002/livez', timeout=2)"]
ENTRYPOINT ["syndicate-server"]
CMD ["--listen", "tcp://0.0.0.0:8001", "--admin", "127.0.0.1:8002", "--key-file", "/run/secrets/syndicate.key", \\
     "--state", "/var/lib/syndicate/state"]
"""
"""The container; ``{version}`` is that of this package."""


def example() -> str:
    """A configuration file that says what goes without saying, and in comments what else can be said."""
    limits = "\n".join(f"# {name} = {json.dumps(value)}" for name, value in asdict(LIMITS).items())
    overload, connections = Overload(), Connections()
    return f"""# The configuration of syndicate-server.  What is commented out shows the default, or an example.
# Check it with:  syndicate-server config check FILE      Read again on SIGHUP.

listen = ["{DEFAULT_ADDRESS}"]

# A listener with more to say is a table.  Everything beyond this machine needs key_file.
# listen = [
#   "unix:///run/syndicate/socket",
#   {{ address = "tls://0.0.0.0:8443", cert = "server.pem", key = "server.key" }},
#   {{ address = "wss://0.0.0.0:8444", cert = "server.pem", key = "server.key", origins = ["https://example.org"] }},
#   {{ address = "tls://0.0.0.0:8445", cert = "server.pem", key = "server.key", client_ca = "clients.pem" }},
#   {{ address = "tcp://127.0.0.1:9000", replies = "ok" }},   # for programs of the published protocol
# ]

# The secret by which references are made and checked: at least 16 bytes, readable for the server only.
# key_file = "/etc/syndicate/key"

# Earlier keys: references that were made by them stay valid, until a SIGHUP finds them here no more.
# old_key_files = ["/etc/syndicate/key.2025"]

# The certificate of all listeners that have none of their own.
# cert = "/etc/syndicate/server.pem"
# key = "/etc/syndicate/server.key"

# The CAs that sign the certificates which a client must show, where a listener has none of its own; see [[client]].
# client_ca = "/etc/syndicate/clients.pem"

# Where what is asserted in the durable dataspace is kept.
# state = "/var/lib/syndicate"

# Capabilities that are valid no more, with all that they were narrowed to, as `syndicate cap check` names them.
# revoked = ["0123456789abcdef"]

# Seconds that a stop may take.
drain = {Config().drain}

# Health, metrics and the console over HTTP: /livez /readyz /metrics /console/.  `remote = true` lets other machines
# ask, for which they must show what is in token_file: Authorization: Bearer TOKEN.  `write = true` lets the console
# assert and send.
# [admin]
# listen = "127.0.0.1:8002"
# remote = false
# token_file = "/etc/syndicate/token"
# write = false

[log]
format = "auto"   # or "json"
level = "info"    # or "debug", "warning", "error"

# When it is too much for the whole server: bytes that wait for all peers; memory that is held for all of them, by our
# account, as a fraction of the machine's or in bytes; and bytes that are held of all who have shown no capability.
[overload]
queued = {overload.queued}
memory = {overload.memory}
strangers = {overload.strangers}

# How many connections there may be that have shown a capability: in all, from one address, and by one capability or
# what was narrowed from it.
[connections]
total = {connections.total}
address = {connections.address}
capability = {connections.capability}

# What all peers together may have in the dataspace "syndicate"; without a line, without a bound.  Who would be over
# loses its session, and learns which quota it was.
# [quota]
# assertions = 100000
# bytes = 67108864
# observers = 10000
# messages = 50000   # a second
# connections = 1000

# Further dataspaces, each with a key and quotas of its own.  A reference: syndicate cap mint orders --key-file FILE
# [[dataspace]]
# name = "orders"
# key_file = "/etc/syndicate/orders.key"       # without: that of the server
# old_key_files = []
# quota = {{ assertions = 1000, connections = 10 }}

# Who is known by a certificate (a listener with client_ca asks for one), by its common name, or by another name in it
# with its kind in front: "dns:a.example.org", "uri:spiffe://example.org/a", "email:a@example.org".  It asks with
# --cap '<certificate "orders">', and is given that dataspace, narrowed by the caveats, as long as the certificate is
# valid and is listed here.  Also "admin", "introspect" and, with a state, "durable".
# [[client]]
# certificate = "alice"
# dataspace = "orders"        # without: "syndicate"
# caveats = ['<rewrite <bind <rec Observe [<_> <_>]>> <ref 0>>']   # may only observe

# What one peer may do: bytes, counts and seconds; see relay/protocol/limits.py.
[limits]
{limits}
"""
