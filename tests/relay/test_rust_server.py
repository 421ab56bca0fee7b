"""An independent server: syndicate-server in Rust, 0.50.1, and references that one side makes and the other takes.

``make .peers/syndicate-server/stamp`` builds it, as ``make bench`` does; without it these tests are left out.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relay import connect
from relay.capabilities.sturdy import SturdyRef, mint, parse_ref, show, valid
from syndicate import Record, Ref, assert_, capture, on_asserted, run, stop_actor, sync
from syndicate.values.text import unparse
from tests.work import PATIENCE

SERVER = Path(__file__).parents[2] / ".peers/syndicate-server/bin/syndicate-server"
KEY = b"sixteen bytes!!!"
CONFIG = """
let ?root_ds = dataspace
<bind <ref {{oid: "syndicate" key: #x""}}> $root_ds #f>
<bind <ref {{oid: "keyed" key: #x"{key}"}}> $root_ds $root_ds>
<require-service <relay-listener <tcp "127.0.0.1" {port}> $gatekeeper>>
"""

pytestmark = pytest.mark.skipif(not SERVER.exists(), reason="the server in Rust was not built")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = tmp_path_factory.mktemp("rust") / "server.pr"
    config.write_text(CONFIG.format(key=KEY.hex(), port=port), encoding="utf-8")
    process = subprocess.Popen(
        [SERVER, "--no-banner", "-c", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        ends = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert time.monotonic() < ends
                time.sleep(0.05)
        yield f"tcp://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def heard(server: str, narrow: str, values: list[Any]) -> list[Any]:
    """Which of the values there are for others, when they are asserted by a reference; in order of assertion."""
    there: list[Any] = []

    def boot() -> None:
        @connect(server, cap=show(mint("syndicate", b"")))
        def whole(ds: Ref) -> None:
            @on_asserted(ds, Record("Says", [capture(), capture()]))
            def says(who: Any, what: Any) -> None:
                there.append((who, what))

            @connect(server, cap=narrow)
            def narrowed(there_too: Ref) -> None:
                for value in values:
                    assert_(there_too, value)
                sync(there_too, lambda: sync(ds, lambda: sync(ds, stop_actor)))

    run(boot)
    return there


VALUES = [Record("Says", ["bob", 1]), Record("Says", ["alice", 2]), Record("Says", ["alice", "x"]), "Says", 5]


@pytest.mark.parametrize(
    ("caveat", "passes"),
    [
        ('<rewrite <bind <rec Says [<lit "alice"> <_>]>> <ref 0>>', [("alice", 2), ("alice", "x")]),
        (
            '<rewrite <rec Says [<_> <bind <_>>]> <rec Says [<lit "nobody"> <ref 0>]>>',
            [("nobody", n) for n in (1, 2, "x")],
        ),
        ("<reject <rec Says [<_> String]>>", [("bob", 1), ("alice", 2)]),
        ('<or [<rewrite <bind <rec Says [<lit "bob"> <_>]>> <ref 0>>]>', [("bob", 1)]),
        ("<or []>", []),
    ],
)
def test_what_we_narrow_is_narrow_there(server: str, caveat: str, passes: list[Any]) -> None:
    """A reference that we have narrowed holds there, and lets through what it lets through here."""
    assert sorted(heard(server, show(mint("keyed", KEY).attenuate(caveat)), VALUES), key=repr) == sorted(
        passes, key=repr
    )


def test_what_is_made_there_is_ours(server: str) -> None:
    """What the server itself gives out for a key is what we give out, is valid here, and can be narrowed."""
    sturdy: list[SturdyRef] = []

    def boot() -> None:
        @connect(server, cap=show(mint("syndicate", b"")))
        def whole(ds: Ref) -> None:
            @on_asserted(ds, Record("bound", [capture()]))
            def bound(reference: Any) -> None:
                sturdy.append(parse_ref(unparse(reference)))
                stop_actor()

    run(boot)
    assert sturdy == [mint("keyed", KEY)]
    assert valid(sturdy[0], KEY)
    assert heard(server, show(sturdy[0].attenuate("<rewrite <bind <rec Says [<_> <lit 2>]>> <ref 0>>")), VALUES) == [
        ("alice", 2)
    ]
