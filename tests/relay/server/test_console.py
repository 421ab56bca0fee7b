"""The console of a program that is no broker."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from urllib.parse import unquote

import pytest
import trio
import trio.testing

from relay.server.console import console
from syndicate import dataspace, open_system, run
from syndicate.errors import AddressError, ListenError


async def test_it_is_served_while_the_program_runs() -> None:
    """The page, under a policy that lets nothing else in; the capability is behind the address's #."""
    addresses: list[str] = []

    async with open_system(lambda: console(dataspace(), opened=addresses.append)):
        await trio.testing.wait_all_tasks_blocked()
        (address,) = addresses
        page, _, cap = address.partition("#cap=")
        assert unquote(cap).startswith('<ref {oid: "introspect" sig: ')

        def load(name: str) -> tuple[str, bytes]:
            with urllib.request.urlopen(page + name) as answer:
                return answer.headers["Content-Security-Policy"], answer.read()

        for name in ("", "index.html", "console.js", "console.css"):
            policy, body = await trio.to_thread.run_sync(load, name)
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert body
        with pytest.raises(urllib.error.HTTPError, match="404") as missing:
            await trio.to_thread.run_sync(load, "..%2fmanifest.json")
        missing.value.close()
    with pytest.raises(urllib.error.URLError):
        await trio.to_thread.run_sync(load, "")


@pytest.mark.parametrize(
    ("at", "why"),
    [
        ("192.0.2.1:80", "can be reached from other machines"),
        ("localhost", "localhost"),
        ("127.0.0.1:99999", "99999"),
    ],
)
def test_where_it_cannot_be(at: str, why: str) -> None:
    """Each mistake is told when it is made."""
    with pytest.raises(AddressError, match=why):
        run(lambda: console(dataspace(), at))


def test_a_port_that_is_taken() -> None:
    """It is told by its address."""
    with socket.create_server(("127.0.0.1", 0)) as there:
        at = f"127.0.0.1:{there.getsockname()[1]}"
        with pytest.raises(ListenError, match=at):
            run(lambda: console(dataspace(), at))


def test_the_program_ends_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """A console keeps nothing alive; by default its address is printed where results are not."""
    run(lambda: console(dataspace()))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("console: http://127.0.0.1:")
