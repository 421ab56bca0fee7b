"""Client certificates that name a capability: who shows one gets what the configuration says, and nobody else does."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from relay import connect
from relay.client import ConnectionState
from relay.server.config import Config, configure
from relay.transport import Tls
from syndicate import Record, Ref, assert_, capture, during, open_system, send
from syndicate.errors import CertificateError, ConfigError
from tests.relay.doors import Files
from tests.relay.server.test_broker import Server
from tests.relay.server.test_spaces import begin
from tests.waiting import until

ONLY_OBSERVE = "<rewrite <bind <rec Observe [<_> <_>]>> <ref 0>>"
CLIENTS: list[dict[str, Any]] = [
    {"certificate": "alice"},
    {"certificate": "dns:watcher.example.org", "caveats": [ONLY_OBSERVE]},
    {"certificate": "alice", "dataspace": "orders"},
    {"certificate": "operator", "dataspace": "admin"},
]


class World:
    """A server for who has a certificate of a CA of its own, and those certificates."""

    def __init__(self, where: Path, scheme: str = "tls") -> None:
        self.files = Files(where)
        (where / "key").write_bytes(b"0123456789abcdef")
        self.scheme = scheme
        self.certificates = {
            "alice": self.certificate("alice", "alice@example.org", common_name="alice"),
            "watcher": self.certificate("watcher", "watcher.example.org", "alice"),  # a name of another kind is another
            "operator": self.certificate("operator", "ops.example.org", common_name="operator"),
        }

    def certificate(self, name: str, *hosts: str, **options: Any) -> Tls:
        """One that a client can show."""
        return evolve(self.files.issue(name, *hosts, **options), ca=self.files.client.ca)

    def config(self, clients: list[dict[str, Any]]) -> Config:
        """What the server is configured by."""
        where, server = self.files.where, self.files.server
        pem = {"cert": str(server.certificate), "key": str(server.key), "client_ca": str(where / "ca.pem")}
        return configure(
            {
                "listen": [{"address": f"{self.scheme}://localhost:0", **pem}, "tcp://127.0.0.1:0"],
                "key_file": str(where / "key"),
                "dataspace": [{"name": "orders"}],
                "client": clients,
            }
        )


class Client:
    """Connects by a certificate, says ``here``, and notes what it sees and how the connection is."""

    def __init__(self, address: str, tls: Tls | None, name: str = "syndicate") -> None:
        self.seen: list[Any] = []
        self.states: list[ConnectionState] = []
        self._aim = address, f'<certificate "{name}">', tls

    def __call__(self) -> None:
        address, cap, tls = self._aim

        @connect(address, cap=cap, tls=tls, told=self.states.append)
        def connected(ds: Ref) -> None:
            assert_(ds, ["here", id(self)])

            @during(ds, ["here", capture()])
            def there(who: int) -> Callable[[], object]:
                self.seen.append(who)
                return lambda: self.seen.remove(who)

            send(ds, Record("kick", ["nobody"]))

    @property
    def reasons(self) -> str:
        """Why it had no connection."""
        return " ".join(state.reason for state in self.states)


def door(server: Server, scheme: str) -> str:
    """The address of a kind."""
    return next(address for address in server.broker.addresses if address.startswith(scheme))


@pytest.mark.parametrize("scheme", ["tls", "wss"])
async def test_who_shows_a_certificate_gets_what_it_stands_for(tmp_path: Path, scheme: str) -> None:
    """As narrowed as the configuration says, of the dataspace that was asked for; and by its names alone."""
    world = World(tmp_path, scheme)
    async with open_system() as system:
        server = await begin(system, world.config(CLIENTS))
        address = door(server, scheme)
        shown = world.certificates
        alice, watcher = Client(address, shown["alice"]), Client(address, shown["watcher"])
        orders = Client(address, shown["alice"], "orders")
        refused = [
            Client(address, shown["watcher"], "orders"),
            Client(address, shown["alice"], "admin"),
            Client(address, shown["operator"]),
            Client(address, shown["operator"], "nowhere"),
        ]
        operator = Client(address, shown["operator"], "admin")
        async with open_system() as theirs:
            for client in (alice, watcher, orders, operator, *refused):
                theirs.spawn(client)
            await until(lambda: alice.seen == watcher.seen == [id(alice)])
            await until(lambda: orders.seen == [id(orders)])
            await until(lambda: all("nothing-for-this-certificate" in client.reasons for client in refused))
            await until(lambda: any(state.connected for state in operator.states))
            assert not any(client.seen for client in (*refused, operator))


async def test_who_shows_none_is_not_let_in(tmp_path: Path) -> None:
    """Nor who shows one of another CA; and where none is asked for, none can be shown."""
    world = World(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    unknown = evolve(
        Files(tmp_path / "elsewhere").issue("alice", "a.org", common_name="alice"), ca=world.files.client.ca
    )
    async with open_system() as system:
        server = await begin(system, world.config(CLIENTS))
        nothing, forged = Client(door(server, "tls"), world.files.client), Client(door(server, "tls"), unknown)
        plain = Client(door(server, "tcp"), None)
        async with open_system() as theirs:
            for client in (nothing, forged, plain):
                theirs.spawn(client)
            await until(lambda: "wants a client certificate" in nothing.reasons)
            await until(lambda: "refuses the certificate" in forged.reasons)
            await until(lambda: "no-client-certificate" in plain.reasons)
            assert not any(state.connected for client in (nothing, forged, plain) for state in client.states)


async def test_a_certificate_is_worth_what_the_configuration_says_now(tmp_path: Path) -> None:
    """Who is left out loses its session when the configuration is read again; others keep theirs."""
    world = World(tmp_path)
    async with open_system() as system:
        server = await begin(system, world.config(CLIENTS))
        address = door(server, "tls")
        alice, watcher = (Client(address, world.certificates[name]) for name in ("alice", "watcher"))
        async with open_system() as theirs:
            theirs.spawn(alice)
            theirs.spawn(watcher)
            await until(lambda: alice.seen == watcher.seen == [id(alice)])
            await server.broker.reload(world.config(CLIENTS[1:]))
            await until(lambda: "is another thing now" in alice.reasons)
            await until(lambda: not watcher.seen)
            assert not watcher.reasons


async def test_it_lasts_no_longer_than_the_certificate(tmp_path: Path) -> None:
    """At its end, what was given for it ends, though the connection lasts."""
    world = World(tmp_path)
    soon = datetime.now(UTC) + timedelta(seconds=3)
    brief = world.certificate("brief", "b.org", common_name="alice", not_after=soon)
    async with open_system() as system:
        server = await begin(system, world.config(CLIENTS))
        alice, other = (Client(door(server, "tls"), tls) for tls in (brief, world.certificates["alice"]))
        async with open_system() as theirs:
            theirs.spawn(alice)
            theirs.spawn(other)
            await until(lambda: id(alice) in other.seen)
            await until(lambda: id(alice) not in other.seen)
            assert "withdrawn" in alice.reasons


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"client": [{"certificate": "a"}]}, "no listener asks for certificates: give one .* a client_ca"),
        ({"client": [{}]}, 'needs the name in a certificate: write certificate = "alice"'),
        ({"client": [{"certificate": "a", "dataspace": "oders"}]}, 'no dataspace "oders": there are syndicate, admin'),
        ({"client": [{"certificate": "a", "dataspace": "durable"}]}, 'no dataspace "durable": there are syndicate'),
        ({"client": [{"certificate": "a"}, {"certificate": "a"}]}, '"a" is here twice for "syndicate"'),
        ({"client": [{"certificate": "a", "caveats": ["<rewrite"]}]}, "holds no caveat, as in '<rewrite"),
        ({"client": [{"certificate": "a", "caveat": []}]}, "no such key: did you mean caveats"),
        ({"client": {"certificate": "a"}}, "write each in double brackets"),
        ({"listen": [{"address": "tcp://127.0.0.1:0", "client_ca": "ca.pem"}]}, "takes no certificate"),
    ],
)
def test_mistakes(more: dict[str, object], why: str) -> None:
    """Each says what is wrong, and what to write."""
    with pytest.raises(ConfigError) as result:
        configure(more)
    assert re.search(why, "\n".join(result.value.problems))


def test_a_client_that_has_half_of_it(tmp_path: Path) -> None:
    """A certificate without its key is found out before anybody is called."""
    world = World(tmp_path)
    with pytest.raises(CertificateError, match="needs its key as well"):
        Tls(certificate=world.certificates["alice"].certificate).client_context()
