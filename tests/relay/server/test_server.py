"""``syndicate-server`` as a process: what it prints, what signals do, how it ends, what it says of mistakes."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import trio
import trustme
from click.testing import CliRunner

from relay import connect
from relay.capabilities.sturdy import DEFAULT, mint, show
from relay.cli.server import server_main
from relay.transport.tls import Tls
from syndicate import (
    ANY,
    Entity,
    Record,
    Ref,
    assert_,
    capture,
    during,
    on_asserted,
    on_message,
    on_stop,
    open_system,
    ref,
    run,
    send,
    stop_actor,
    sync,
)
from syndicate.errors import ConnectError
from syndicate.testing import Seen, watch
from tests.waiting import until
from tests.work import PATIENCE

Process: TypeAlias = "subprocess.Popen[str]"
Start: TypeAlias = Callable[..., Process]

DRAINS = int(os.environ.get("SYNDICATE_DRAINS", "5"))
"""How often a drain under load is tried; nightly 200."""

SECRET = b"0123456789abcdef0123456789abcdef"


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts the server in a process of its own, killed in the end."""
    running: list[Process] = []

    def start(*args: str, fds: int = 0, **env: str) -> Process:
        # As a shell starts it in the foreground: a background job ignores Ctrl-C.
        program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        if fds:
            program += f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({fds}, {fds})); "
        process = subprocess.Popen(
            [sys.executable, "-c", program + "from relay.cli import server_main; server_main()", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def opened(process: Process) -> dict[str, list[str]]:
    """What a server prints when it is ready, by the words in front."""
    assert process.stdout is not None
    said: dict[str, list[str]] = {}
    while "watch it" not in said or ("health" not in said and "--admin" in process.args):  # type: ignore[operator]
        line = process.stdout.readline()
        assert line, end(process)
        said.setdefault(line[:14].strip(), []).append(line[14:].strip())
    return said


def end(process: Process, timeout: float = PATIENCE) -> tuple[int, str, str]:
    """The exit code, and what was printed."""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def once(address: str, cap: str = DEFAULT, attempts: int = 1, **options: Any) -> None:
    """Connect, do a round trip, and disconnect."""
    run(lambda: connect(address, cap, attempts=attempts, **options)(lambda ds: sync(ds, stop_actor)))


# ---------------------------------------------------------------------------------------------------- the start


def test_it_prints_what_one_needs(start: Start, tmp_path: Path) -> None:
    """The addresses, the capability, and the command that watches; SIGTERM and Ctrl-C end it in order."""
    for number in (signal.SIGTERM, signal.SIGINT):
        server = start("--listen", "tcp://127.0.0.1:0", "--listen", f"unix://{tmp_path}/s", "--log-level", "warning")
        assert server.stdout is not None
        lines = [server.stdout.readline() for _ in range(4)]
        address = lines[0].split()[-1]
        assert lines[1:] == [
            f"listening on  unix://{tmp_path}/s\n",
            f"dataspace     {DEFAULT}\n",
            f"watch it      syndicate-console {address}\n",
        ]
        once(address)
        server.send_signal(number)
        assert end(server) == (0, "", "")
        assert not (tmp_path / "s").exists()


def test_the_contract_without_arguments() -> None:
    """With no argument it listens at the well-known place, with the well-known reference."""
    from relay.server.config import Config
    from relay.server.daemon import Service

    service = Service(Config(), announce=print, reread=Config)
    assert [str(listening.address) for listening in service.config.listen] == ["tcp://127.0.0.1:8001"]
    assert show(mint("syndicate", service.config.key)) == DEFAULT
    assert server_main.invoke_without_command


@pytest.mark.parametrize("command", [[], ["config"], ["config", "check"], ["print"], ["print", "systemd"]])
def test_help(command: list[str]) -> None:
    """Each command explains itself; those that do something have an example."""
    code, out, err = here(*command, "--help")
    assert (code, err) == (0, "")
    assert ("Example" in out) is (command not in (["config"], ["print"]))


@pytest.mark.parametrize("scheme", ["tcp", "ws", "tls", "wss"])
def test_it_tells_its_clients_when_it_ends(start: Start, tmp_path: Path, scheme: str) -> None:
    """SIGTERM with a client connected, whatever is spoken: it is disconnected in order, and the exit code is 0."""
    files = certificate(tmp_path)
    server = start("--listen", f"{scheme}://127.0.0.1:0", "--cert", str(files.certificate), "--key", str(files.key))
    (address,) = opened(server)["listening on"]

    def client() -> None:
        @connect(address, reconnect=False, tls=Tls(ca=files.ca))
        def on_connected(ds: Ref) -> None:
            sync(ds, server.terminate)

    with pytest.raises(ConnectError, match="has closed the connection"):
        run(client)
    code, _, err = end(server)
    assert (code, err.count('"level": "warning"')) == (0, 0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory of a process is read from /proc")
def test_large_blocks_are_given_back() -> None:
    """Also after a larger one has been freed, and with something small behind each."""
    program = """if True:
        import os
        from pathlib import Path
        from relay.server.daemon import give_back_large_blocks

        def resident():
            return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

        give_back_large_blocks()
        bytes(20 << 20)
        before, large, small = resident(), [], []
        for _ in range(40):
            large.append(b"x" * 900_000)
            small.append(b"y" * 2_000)
        most = resident()
        large.clear()
        print(most - before, resident() - before)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=True)
    most, left = map(int, done.stdout.split())
    assert most > 30
    assert left < 5


def test_a_port_in_use(start: Start) -> None:
    """One line, with another address to try."""
    (address,) = opened(start("--listen", "tcp://127.0.0.1:0"))["listening on"]
    other = f"tcp://127.0.0.1:{int(address.rsplit(':')[-1]) + 1}"
    code, out, err = end(start("--listen", address))
    assert (code, out) == (1, "")
    assert err == (
        f"syndicate-server: {address} is in use by another program: stop that one, or listen elsewhere, as with "
        f"--listen {other}\n"
    )
    code, _, err = end(start("--listen", "tcp://127.0.0.1:0", "--admin", address.removeprefix("tcp://")))
    assert (code, len(err.splitlines())) == (1, 1)
    assert "Address already in use: give another address with --admin" in err


@pytest.mark.parametrize(
    ("args", "why"),
    [
        *[
            (
                ["--listen", f"{scheme}://0.0.0.0:8001", "--cert", "{pem}", "--key", "{key}"],
                "can be reached from other machines, and the empty key lets everybody in: give a key_file (--key-file)",
            )
            for scheme in ("tcp", "tls", "ws", "wss")
        ],
        (["--listen", "8001"], "--listen: no scheme in '8001'"),
        (["--listen", "tls://127.0.0.1:0"], "needs a certificate: give cert and key (--cert, --key)"),
        (
            ["--listen", "tls://127.0.0.1:0", "--cert", "/nowhere", "--key", "{key}"],
            "--cert: cannot read the certificate file /nowhere: No such file or directory",
        ),
        (["--key-file", "/nowhere"], "--key-file: /nowhere cannot be read"),
        (["--key-file", "{pem}", "--admin", "0.0.0.0:1"], "--admin: 0.0.0.0:1 can be reached from other machines"),
        (["--config", "/nowhere"], "/nowhere: cannot be read: No such file or directory"),
        (["--config", "{bad}"], "{bad}:2: limits.frame: must be a whole number above 0, not 0"),
        (["--drain", "0"], "--drain: must be a number of seconds above 0"),
        (["--state", "{pem}"], "is a file: name a directory"),
        (["--log-format", "xml"], "'xml' is not one of"),
        (["config", "check", "{bad}"], "{bad}:2: limits.frame: must be a whole number above 0, not 0"),
        (["config", "check"], "Missing argument 'FILE'"),
        (["print", "completion", "cmd"], "'cmd' is not one of"),
        (["print", "nothing"], "No such command 'nothing'"),
        (["tcp://127.0.0.1:0"], "'tcp://127.0.0.1:0' is no command: to listen there, --listen tcp://127.0.0.1:0"),
        (["127.0.0.1:0"], "'127.0.0.1:0' is no command: to listen there, --listen tcp://127.0.0.1:0"),
    ],
)
def test_errors(tmp_path: Path, args: list[str], why: str) -> None:
    """A wrong command: a line or two on stderr, with the remedy, and exit code 2."""
    files = certificate(tmp_path)
    names = {"pem": str(files.certificate), "key": str(files.key), "bad": str(tmp_path / "bad.toml")}
    (tmp_path / "bad.toml").write_text("[limits]\nframe = 0\ndepht = 1\n")
    code, out, err = here(*[arg.format(**names) for arg in args])
    assert (code, out) == (2, "")
    assert why.format(**names) in err
    assert len(err.splitlines()) <= 2 or "Usage:" in err


def here(*args: str) -> tuple[int, str, str]:
    """Run a command that does not get far, in this process; the exit code, and what was printed."""
    done = CliRunner().invoke(server_main, args, prog_name="syndicate-server")
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.exit_code, done.stdout, done.stderr


def test_a_failure(start: Start) -> None:
    """What goes wrong at the start ends it with one line and exit code 1; the traceback is for who asks for it."""
    code, out, err = end(start("--listen", "unix:///nowhere/s"))
    assert (code, out) == (1, "")
    assert err == "syndicate-server: cannot listen on unix:///nowhere/s: No such file or directory\n"
    code, _, err = end(start("--listen", "unix:///nowhere/s", "--debug"))
    assert code == 1
    assert "Traceback" in err


def certificate(folder: Path, authority: trustme.CA | None = None) -> Tls:
    """A certificate for this machine, its key, and the authority that made it."""
    authority = authority or trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    names = [folder / name for name in ("server.pem", "server.key", "ca.pem")]
    issued.cert_chain_pems[0].write_to_path(names[0])
    issued.private_key_pem.write_to_path(names[1])
    authority.cert_pem.write_to_path(names[2])
    return Tls(*names)


# ---------------------------------------------------------------------------------------------------- the end


class Load:
    """Clients that send as fast as they can, each waiting for its acknowledgements, and others that listen."""

    def __init__(self, address: str, senders: int = 2, listeners: int = 3) -> None:
        self.address = address
        self.acked = [0] * senders
        self.heard: list[dict[int, list[int]]] = [{s: [] for s in range(senders)} for _ in range(listeners)]
        self.ends: list[str] = []
        self.ready = 0

    def acknowledged(self) -> bool:
        """Whether each sender has had an answer."""
        return all(self.acked)

    async def play(self) -> None:
        """Run all of them until each has seen an end."""
        async with trio.open_nursery() as nursery:
            for listener in range(len(self.heard)):
                nursery.start_soon(self._client, self._listen, listener)
            await until(lambda: self.ready == len(self.heard))
            for sender in range(len(self.acked)):
                nursery.start_soon(self._client, self._send, sender)

    async def _client(self, body: Callable[[Ref, int], None], number: int) -> None:
        try:
            async with open_system(self._boot, body, number) as system:
                await until(lambda: not system.actors)
        except ConnectError as e:
            self.ends.append(str(e))

    def _boot(self, body: Callable[[Ref, int], None], number: int) -> None:
        @connect(self.address, reconnect=False, attempts=1)
        def on_connected(ds: Ref) -> None:
            body(ds, number)

    def _listen(self, ds: Ref, number: int) -> None:
        def ready() -> None:
            self.ready += 1

        heard = self.heard[number]
        on_message(ds, Record("n", [capture(int), capture(int)]))(lambda sender, n: heard[sender].append(n))
        sync(ds, ready)

    def _send(self, ds: Ref, number: int) -> None:
        sent = 0

        def more() -> None:
            nonlocal sent
            self.acked[number] = sent
            for _ in range(50):
                send(ds, Record("n", [number, sent]))
                sent += 1
            sync(ds, more)

        more()


async def test_drain_under_load(start: Start, tmp_path: Path) -> None:
    """Exit code 0 within the deadline, each client has seen an end, and nothing that was acknowledged is lost."""
    for attempt in range(DRAINS):
        address = f"unix://{tmp_path}/s"
        server = start("--listen", address, "--drain", "5")
        await trio.to_thread.run_sync(opened, server)
        load = Load(address)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(load.play)
            await until(load.acknowledged)
            await trio.sleep(0.02 * (attempt % 5))
            server.terminate()
            code, _, err = await trio.to_thread.run_sync(end, server)
        assert code == 0, err
        assert "Traceback" not in err
        assert len(load.ends) == 5
        assert all("has closed the connection" in why for why in load.ends), load.ends
        for heard in load.heard:
            for sender, acked in enumerate(load.acked):
                assert heard[sender] == list(range(len(heard[sender])))
                assert len(heard[sender]) >= acked


def test_drain_keeps_what_was_acknowledged(start: Start, tmp_path: Path) -> None:
    """What was acknowledged by the durable dataspace before a drain is there after the next start; a drain is no
    retraction.
    """
    address, acked = f"unix://{tmp_path}/s", [0]

    def publish(cap: str, server: Process) -> None:
        @connect(address, cap, reconnect=False)
        def on_connected(ds: Ref) -> None:
            def more() -> None:
                acked[0] += 20
                if acked[0] == 200:
                    server.terminate()
                for n in range(acked[0], acked[0] + 20):
                    assert_(ds, Record("kept", [n]))
                sync(ds, more)

            acked[0] = -20
            more()

    server = start("--listen", address, "--state", str(tmp_path / "state"))
    cap = opened(server)["durable"][0]
    with pytest.raises(ConnectError, match="has closed the connection"):
        run(publish, cap, server)
    code, _, errors = end(server)
    assert code == 0, errors
    assert acked[0] >= 200
    opened(start("--listen", address, "--state", str(tmp_path / "state")))
    seen: list[Seen] = []

    def look() -> None:
        @connect(address, attempts=1)
        def on_connected(ds: Ref) -> None:
            seen.append(watch(ds, Record("kept", [capture(int)])))
            sync(ds, lambda: sync(ds, stop_actor))

    run(look)
    assert {n for _, n in seen[0]} >= set(range(acked[0]))


def test_a_full_disk_is_the_end_for_nobody_else(start: Start, tmp_path: Path) -> None:
    """Who keeps something gets to know that it is not kept, all others go on, and the next start heals."""
    address, state = f"unix://{tmp_path}/s", tmp_path / "state"
    server = start("--listen", address, "--state", str(state), "--admin", "127.0.0.1:0")
    said = opened(server)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (200_000, 200_000))
    acknowledged: list[int] = []
    ended: list[bool] = []

    def keep(cap: str) -> None:
        @connect(address, cap, reconnect=False)
        def on_connected(ds: Ref) -> None:
            on_stop(lambda: ended.append(True))
            on_stop(stop_actor)
            numbers = iter(range(1000))

            def more() -> None:
                number = next(numbers)
                assert_(ds, Record("kept", [number, "x" * 2000]))

                def safe() -> None:
                    acknowledged.append(number)
                    more()

                sync(ds, safe)

            more()

    run(keep, said["durable"][0])
    assert ended
    assert 5 < len(acknowledged) < 500
    assert get(said["health"][0] + "readyz")[1].startswith("degraded: the journal failed: ")
    assert get(said["health"][0] + "readyz")[0] == 200
    with pytest.raises(ConnectError, match="disk-failed"):
        once(address, said["durable"][0])
    heard: list[Any] = []

    def talk() -> None:
        @connect(address, attempts=1)
        def on_connected(ds: Ref) -> None:
            @on_message(ds, ["hello", capture()])
            def hello(what: str) -> None:
                heard.append(what)
                stop_actor()

            sync(ds, lambda: send(ds, ["hello", "you"]))

    run(talk)
    assert heard == ["you"]
    server.terminate()
    code, _, err = end(server)
    assert code == 0
    assert "Traceback" not in err
    said = opened(start("--listen", address, "--state", str(state)))
    once(address, said["durable"][0])
    seen: list[Seen] = []

    def look() -> None:
        @connect(address, attempts=1)
        def on_connected(ds: Ref) -> None:
            seen.append(watch(ds, Record("kept", [capture(int), ANY])))
            sync(ds, lambda: sync(ds, stop_actor))

    run(look)
    assert {number for _, number in seen[0]} >= set(acknowledged)


def test_a_state_in_use(start: Start, tmp_path: Path) -> None:
    """Two servers cannot keep the same state: the second says so, and ends."""
    state = str(tmp_path / "state")
    opened(start("--listen", "tcp://127.0.0.1:0", "--state", state))
    code, out, err = end(start("--listen", "tcp://127.0.0.1:0", "--state", state))
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert state in err


OBSERVER = """
import sys
from syndicate import *
from relay import connect
def boot():
    @connect(sys.argv[1])
    def on_connected(ds):
        on_message(ds, ["big", capture()])(len)
        sync(ds, lambda: print("ready", flush=True))
run(boot)
"""


def test_a_second_ctrl_c_ends_at_once(start: Start, tmp_path: Path) -> None:
    """The first one drains, which may take its time for a peer that does not read; the second does not wait."""
    address = f"unix://{tmp_path}/s"
    server = start("--listen", address, "--drain", "3600")
    opened(server)
    with subprocess.Popen([sys.executable, "-c", OBSERVER, address], stdout=subprocess.PIPE) as frozen:
        try:
            assert frozen.stdout is not None
            assert frozen.stdout.readline() == b"ready\n"
            frozen.send_signal(signal.SIGSTOP)

            def flood() -> None:
                @connect(address, attempts=1)
                def on_connected(ds: Ref) -> None:
                    for _ in range(30):
                        send(ds, ["big", "x" * 100_000])
                    sync(ds, stop_actor)

            run(flood)
            server.send_signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):
                server.wait(2)
            server.send_signal(signal.SIGINT)
            code, _, err = end(server)
            assert code == 130
            assert "ended at once" in err
        finally:
            frozen.kill()


# ---------------------------------------------------------------------------------------------------- SIGHUP


class Managed:
    """A server with a configuration file, and a service manager that listens to it."""

    def __init__(self, start: Start, folder: Path, text: str, *args: str) -> None:
        self.file = folder / "server.toml"
        self.file.write_text(text)
        self._manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._manager.bind(str(folder / "notify"))
        self._manager.settimeout(PATIENCE)
        self.process = start("--config", str(self.file), *args, NOTIFY_SOCKET=str(folder / "notify"))

    def notification(self) -> str:
        """What the service manager is notified of next."""
        return self._manager.recv(4096).decode()

    def reload(self, text: str) -> None:
        """Give it another configuration, and wait until it has it."""
        self.file.write_text(text)
        self.process.send_signal(signal.SIGHUP)
        assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", self.notification())
        assert self.notification().startswith("READY=1")

    def stop(self) -> str:
        """End it in order; what it has logged."""
        self.process.terminate()
        assert self.notification() == "STOPPING=1"
        return self.close()

    def close(self) -> str:
        """Wait for its end; what it has logged."""
        self._manager.close()
        code, _, err = end(self.process)
        assert code == 0
        return err


async def test_sighup_changes_the_doors(start: Start, tmp_path: Path) -> None:
    """Doors come and go, limits change, and who is connected does not notice; a broken file changes nothing."""
    a, b = (f"unix://{tmp_path}/{name}" for name in ("a", "b"))
    server = Managed(start, tmp_path, f'listen = ["{a}"]')
    assert await trio.to_thread.run_sync(server.notification) == f"READY=1\nSTATUS=listening on {a}"
    events: list[str] = []

    def client() -> None:
        @connect(a)
        def on_connected(ds: Ref) -> Any:
            events.append("+")
            assert_(ds, ["here", "a"])
            during(ds, ["here", capture()])(events.append)

    async with open_system(client):
        await until(lambda: events == ["+", "a"])
        await trio.to_thread.run_sync(server.reload, f'listen = ["{a}", "{b}"]')
        await trio.to_thread.run_sync(once, b)
        await trio.to_thread.run_sync(server.reload, f'listen = ["{b}"]\n[limits]\nframe = 100')
        with pytest.raises(ConnectError):
            await trio.to_thread.run_sync(once, a)
        with pytest.raises(ConnectError):  # its capability alone is larger than that
            await trio.to_thread.run_sync(lambda: once(b, show(mint("x" * 100, b""))))
        await trio.to_thread.run_sync(server.reload, f'listen = ["{b}"]\nlimits = 5\n')
        await trio.to_thread.run_sync(server.reload, f'listen = ["{b}"]\n[limits\n')
        await trio.to_thread.run_sync(server.reload, f'listen = ["{b}", "unix:///nowhere/s"]')
        async with open_system(lambda: connect(b)(lambda ds: assert_(ds, ["here", "b"]))):
            await until(lambda: events == ["+", "a", "b"])
    err = await trio.to_thread.run_sync(server.stop)
    assert err.count('"the configuration is as before"') == 2
    assert f"{server.file}:2: limits: must be a table" in err
    assert f"{server.file}:2:8: expected ']'" in err
    assert "cannot listen on unix:///nowhere/s: No such file or directory" in err


def test_sighup_again_and_again(start: Start, tmp_path: Path) -> None:
    """Signals that come in a burst, at the start and at the end, are taken one after the other; a service manager that
    does not listen holds up nobody.
    """
    address = f"unix://{tmp_path}/a"
    server = Managed(start, tmp_path, f'listen = ["{address}"]\n')
    server.notification()
    for number in range(20):
        server.file.write_text(f'listen = ["{address}"{", " + repr(address + "2") if number % 2 else ""}]\n')
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.005 * (number % 3))
    server.process.send_signal(signal.SIGHUP)
    once(address + "2", attempts=1000)
    once(address)
    server.process.send_signal(signal.SIGHUP)
    server.process.terminate()
    server.process.send_signal(signal.SIGHUP)
    assert "Traceback" not in server.close()


async def test_sighup_reads_certificates_again(start: Start, tmp_path: Path) -> None:
    """A new certificate in the same files is that of connections from then on; a broken one changes nothing."""
    (tmp_path / "key").write_bytes(SECRET)
    old, new = trustme.CA(), trustme.CA()
    files = certificate(tmp_path, old)
    with socket.create_server(("127.0.0.1", 0)) as free:
        number = free.getsockname()[1]
    address = f"tls://127.0.0.1:{number}"
    text = f'listen = ["{address}"]\nkey_file = "key"\ncert = "server.pem"\nkey = "server.key"\n'
    server = Managed(start, tmp_path, text)
    await trio.to_thread.run_sync(server.notification)

    def trusted(authority: trustme.CA) -> bool:
        context = ssl.create_default_context()
        authority.configure_trust(context)
        try:
            with socket.create_connection(("127.0.0.1", number)) as plain:
                context.wrap_socket(plain, server_hostname="localhost").close()
        except ssl.SSLCertVerificationError:
            return False
        return True

    cap, events = show(mint("syndicate", SECRET)), list[str]()

    def client() -> None:
        @connect(address, cap, tls=Tls(ca=files.ca))
        def on_connected(ds: Ref) -> Any:
            events.append("+")
            return lambda: events.append("-")

    (tmp_path / "other").mkdir()
    async with open_system(client):
        await until(lambda: events)
        assert await trio.to_thread.run_sync(trusted, old)
        replaced = certificate(tmp_path / "other", new)
        assert replaced.certificate is not None
        assert replaced.key is not None
        replaced.certificate.rename(tmp_path / "server.pem")
        await trio.to_thread.run_sync(server.reload, text)  # without its key
        assert await trio.to_thread.run_sync(trusted, old)
        replaced.key.rename(tmp_path / "server.key")
        await trio.to_thread.run_sync(server.reload, text)
        assert await trio.to_thread.run_sync(trusted, new)
        assert not await trio.to_thread.run_sync(trusted, old)
        assert events == ["+"]
    err = await trio.to_thread.run_sync(server.stop)
    assert f"{server.file}:3: cert: the key in" in err


# ---------------------------------------------------------------------------------------------------- health, secrets


def get(url: str) -> tuple[int, str]:
    """Status and body."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        with e:
            return e.code, e.read().decode()


def test_health_and_metrics(start: Start, tmp_path: Path) -> None:
    """With --admin there is health over HTTP, and a capability to watch the server itself; no secret is logged."""
    (tmp_path / "key").write_bytes(SECRET)
    address = f"unix://{tmp_path}/s"
    server = start("--listen", address, "--admin", "127.0.0.1:0", "--key-file", str(tmp_path / "key"))
    said = opened(server)
    url = said["health"][0]
    cap = said["dataspace"][0]
    assert cap == show(mint("syndicate", SECRET)) != DEFAULT
    assert said["watch it"] == [f"syndicate-console {address} --cap '{cap}'"]
    once(address, cap)
    assert get(url + "livez") == (200, "ok\n")
    assert get(url + "readyz") == (200, "ok\n")
    status, text = get(url + "metrics")
    assert status == 200
    assert "syndicate_sessions_total 1.0" in text
    seen: list[Any] = []

    def watching() -> None:
        @connect(address, said["watch itself"][0].split("'")[1], attempts=1)
        def on_connected(admin: Ref) -> None:
            @on_asserted(admin, Record("listener", [capture(str)]))
            def there(where: str) -> None:
                seen.append(where)
                stop_actor()

    class Asker(Entity):
        def message(self, value: Any) -> None:
            seen.append([name for name, _ in value.fields[2]])
            stop_actor()

    def asking() -> None:
        @connect(address, said["introspect"][0], attempts=1)
        def on_connected(target: Ref) -> None:
            assert_(target, Record("health", [ref(Asker())]))

    run(watching)
    run(asking)
    assert seen == [address, ["values", "interests", "actors", "events handled", "turns waiting"]]
    with pytest.raises(ConnectError, match="refuses the capability"):
        once(address)
    server.terminate()
    code, out, err = end(server)
    assert (code, out) == (0, "")
    assert '"event": "draining"' in err
    for secret in (cap[-20:-2], said["watch itself"][0][-20:-2], said["introspect"][0][-20:-2], SECRET.decode()):
        assert secret not in err + text


# ---------------------------------------------------------------------------------------------------- descriptors


def test_out_of_descriptors(start: Start) -> None:
    """With 64 descriptors and 150 connections the server waits instead of spinning or dying, and then goes on."""
    server = start("--listen", "tcp://127.0.0.1:0", fds=64)
    (address,) = opened(server)["listening on"]
    host, number = address.removeprefix("tcp://").split(":")
    peers = [socket.create_connection((host, int(number)), timeout=PATIENCE) for _ in range(150)]
    began = cpu(server.pid)
    time.sleep(2)
    assert cpu(server.pid) - began < 1.0, "it does not spin"
    assert server.poll() is None
    for peer in peers:
        peer.close()
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            once(address)
            break
        except ConnectError:
            assert time.monotonic() < deadline
    server.terminate()
    code, _, err = end(server)
    assert code == 0
    assert "Traceback" not in err


def cpu(pid: int) -> float:
    """Seconds of a processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---------------------------------------------------------------------------------------------------- stdio, files


def test_standard_streams() -> None:
    """As the child of its only client it speaks on its standard streams, announces on stderr, and ends with it."""
    program = (
        f"{sys.executable} -c 'from relay.cli import server_main; server_main()' --listen stdio: --log-level error"
    )
    heard: list[int] = []

    def client() -> None:
        @connect(f"stdio:{program}", attempts=1)
        def on_connected(ds: Ref) -> None:
            on_message(ds, ["n", capture(int)])(heard.append)
            send(ds, ["n", 5])
            sync(ds, stop_actor)

    run(client)
    assert heard == [5]
    child = subprocess.run(program, shell=True, input=b"", capture_output=True, timeout=PATIENCE, check=False)
    assert (child.returncode, child.stdout) == (0, b"")
    assert child.stderr.startswith(b"listening on  stdio:\n")


def test_a_key_that_the_command_made(start: Start, tmp_path: Path) -> None:
    """`cap mint --new-key` makes a key that the server takes, and prints the reference that it serves."""
    file = str(tmp_path / "key")
    code, cap, _ = here("cap", "mint", "syndicate", "--new-key", file)
    assert code == 0
    address = f"unix://{tmp_path}/s"
    assert opened(start("--listen", address, "--key-file", file))["dataspace"] == [cap.strip()]
    once(address, cap)


def test_config_check(tmp_path: Path) -> None:
    """What it prints is a file that it accepts; of a bad one it names all that is wrong."""
    code, out, _ = here("print", "config")
    assert code == 0
    (tmp_path / "server.toml").write_text(out + '\n[admin]\nlisten = "127.0.0.1:8002"\n')
    code, out, err = here("config", "check", str(tmp_path / "server.toml"))
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{tmp_path}/server.toml is all right",
        "would listen on  tcp://127.0.0.1:8001",
        "and serve        http://127.0.0.1:8002/",
    ]
    (tmp_path / "bad.toml").write_text("drian = 1\n[log]\nlevel = 5\n")
    code, out, err = here("config", "check", str(tmp_path / "bad.toml"))
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        f"{tmp_path}/bad.toml:1: drian: there is no such key: did you mean drain?",
        f"{tmp_path}/bad.toml:3: log.level: must be one of debug, info, warning, error, not 5",
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    """Each shell gets a script of its own."""
    code, out, _ = here("print", "completion", shell)
    assert code == 0
    assert "_SYNDICATE_SERVER_COMPLETE" in out


def test_systemd(tmp_path: Path) -> None:
    """The unit is what systemd takes for one."""
    code, out, _ = here("print", "systemd")
    assert code == 0
    assert {"Type=notify", "NoNewPrivileges=yes", "ExecReload=/bin/kill -HUP $MAINPID"} <= set(out.splitlines())
    seconds = int(re.findall(r"TimeoutStopSec=(\d+)", out)[0])
    assert seconds > 10, "longer than a drain"
    unit = tmp_path / "syndicate-test.service"
    unit.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={sys.executable}", out))
    try:
        checked = subprocess.run(
            ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except FileNotFoundError:
        pytest.skip("systemd-analyze is not here: the unit was not verified")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_dockerfile() -> None:
    """The container is stopped by the signal that drains, is not root, and asks for its own health."""
    code, out, _ = here("print", "dockerfile")
    assert code == 0
    words = [line.split()[0] for line in out.splitlines() if line and line[0] != " "]
    assert {"FROM", "USER", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT"} <= set(words)
    assert "STOPSIGNAL SIGTERM" in out
    assert "/livez" in out
