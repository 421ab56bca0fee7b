"""The console of a program that is no broker."""

from __future__ import annotations

import asyncio
import socket
import sys
import urllib.error
import urllib.request
from urllib.parse import unquote

import pytest
import trio
import trio.testing

import syndicate.asyncio
import syndicate.thread
from relay.server.console import console
from syndicate import assert_, dataspace, during, on_message, open_system, run, spawn
from syndicate.errors import AddressError, ListenError, ServerMissing


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
    """Each mistake is reported when it is made."""
    with pytest.raises(AddressError, match=why):
        run(lambda: console(dataspace(), at))


def test_a_port_that_is_taken() -> None:
    """It is reported by its address."""
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


def page(address: str) -> bytes:
    """What is served at an address."""
    with urllib.request.urlopen(address.partition("#")[0]) as answer:
        body: bytes = answer.read()
        return body


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    """The address that was printed, to standard error."""
    out, err = capsys.readouterr()
    assert out == ""
    word, address = err.split()
    assert word == "console:"
    return address


async def test_of_a_system(capsys: pytest.CaptureFixture[str]) -> None:
    """As long as it runs; its address is printed, and can be asked for."""
    async with open_system(console=True) as system:
        await trio.testing.wait_all_tasks_blocked()
        assert printed(capsys) == system.console
        assert b"console.js" in await trio.to_thread.run_sync(page, system.console)
    with pytest.raises(urllib.error.URLError):
        await trio.to_thread.run_sync(page, system.console)


def test_of_a_system_in_asyncio(capsys: pytest.CaptureFixture[str]) -> None:
    """Its server is trio's, which is the guest of the loop."""

    async def main() -> str:
        async with syndicate.asyncio.open_system(console=True) as system:
            await system.call(dataspace)
            assert b"console.js" in await asyncio.to_thread(page, system.console)
            return system.console

    address = asyncio.run(main())
    assert printed(capsys) == address
    with pytest.raises(urllib.error.URLError):
        page(address)


def test_of_a_system_in_a_thread(capsys: pytest.CaptureFixture[str]) -> None:
    """It is open when the system has begun."""
    with syndicate.thread.System(console=True) as system:
        system.call(dataspace)
        assert b"console.js" in page(system.console)
        assert printed(capsys) == system.console
    with pytest.raises(urllib.error.URLError):
        page(system.console)


def _waiting() -> None:
    """Actors that wait for each other, and for nobody else."""
    ds = dataspace()
    on_message(ds, ["never"])(lambda: None)
    spawn(lambda: during(ds, ["asked"])(lambda: assert_(ds, ["answered"])), name="other")


def test_it_keeps_nothing_running() -> None:
    """A program that is at its end with nobody looking ends with a console, too."""
    run(_waiting, console=True)


@pytest.mark.parametrize("host", ["run", "open_system", "asyncio", "thread"])
@pytest.mark.parametrize("mistake", ["elsewhere", "taken", "missing"])
def test_mistakes_are_reported_where_the_system_is_opened(
    host: str, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything of the program has run."""

    async def with_trio(at: bool | str) -> None:
        async with open_system(boot, console=at):
            pytest.fail("it was opened")

    async def with_asyncio(at: bool | str) -> None:
        async with syndicate.asyncio.open_system(boot, console=at):
            pytest.fail("it was opened")

    def boot() -> None:
        pytest.fail("it has begun")

    def begin(at: bool | str) -> None:
        match host:
            case "run":
                run(boot, console=at)
            case "open_system":
                trio.run(with_trio, at)
            case "asyncio":
                asyncio.run(with_asyncio(at))
            case _:
                syndicate.thread.System(boot, console=at).start()

    if mistake == "elsewhere":
        with pytest.raises(AddressError, match="can be reached from other machines"):
            begin("192.0.2.1:80")
    elif mistake == "taken":
        with socket.create_server(("127.0.0.1", 0)) as there:
            at = f"127.0.0.1:{there.getsockname()[1]}"
            with pytest.raises(ListenError, match=at):
                begin(at)
    else:
        monkeypatch.setitem(sys.modules, "hypercorn", None)
        monkeypatch.setitem(sys.modules, "hypercorn.trio", None)
        with pytest.raises(ServerMissing, match=r'pip install "syndicate-dataspace\[server\]"'):
            begin(True)
