"""Bloom programs in processes of their own, by way of real servers: one that both share, and one each."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from relay import connect
from syndicate import (
    Record,
    Ref,
    assert_,
    capture,
    on_asserted,
    on_message,
    on_retracted,
    run,
    send,
    stop_actor,
    stop_when,
    sync,
)
from syndicate.bloom import Bloom, bloom, channel, scratch, table
from syndicate.bloom.agent.ports import Packet
from tests.relay.bloom_node import Delivery
from tests.relay.commands import Process, Server, Start, end
from tests.test_examples import Program, program
from tests.work import PATIENCE

Node = Callable[..., Program]


@pytest.fixture
def node() -> Iterator[Node]:
    """Starts a program in a process of its own, ended with the test."""
    with ExitStack() as stack:

        def node(name: str, home: str, *peers: str) -> Program:
            command = (sys.executable, "-W", "error", "-m", "tests.relay.bloom_node", name, home, *peers)
            running = stack.enter_context(program(*command))
            for _ in ("home", *peers[::2]):
                running.wait_for("home|way")
            return running

        yield node


def restarted(start: Start, address: str) -> Process:
    """A server at an address where another was killed."""
    process = start("server", "--listen", address)
    assert process.stdout is not None
    assert process.stdout.readline().split()[-1] == address
    return process


def words(one: Program, first: str) -> list[str]:
    """The texts of what a program has said so far."""
    return [line.split(" ", 2)[2] for line in one.seen if line.startswith(first)]


def test_one_server(server: Server, node: Node) -> None:
    """Two programs that share a server's dataspace exchange rows there, and others can watch and send."""
    _, address = server
    one, two = node("one", address), node("two", address)
    for n in range(5):
        one.say(f"two hello {n}")
        two.say(f"one good day {n}")
    for each in (one, two):
        for _ in range(10):
            each.wait_for("got|acknowledged")
    for each, other in ((one, two), (two, one)):
        assert sorted(words(each, "acknowledged")) == sorted(words(other, "got"))
    heard: list[Any] = []

    def untrusted() -> None:
        @connect(address, attempts=1)
        def on_connected(ds: Ref) -> None:
            @on_message(ds, Record("bloom-packet", ["three", capture(), capture()]))
            def acknowledged(channel: str, row: Any) -> None:
                heard.append((channel, row))
                stop_actor()

            for row in (["two"], "nonsense", [1, 2, 3, 4], ["two", "three", 7, {"no": ["row"]}]):
                send(ds, Record("bloom-packet", ["two", "data_chan", row]))
            sync(ds, lambda: None)

    run(untrusted)
    assert heard == [("ack_chan", ("three", "two", 7))]
    two.wait_for("got three")
    one.say("two still there?")
    two.wait_for("still there")
    for each in (one, two):
        assert each.process.stdin is not None
        each.process.stdin.close()
        assert each.process.wait(PATIENCE) == 0
    assert "a row was refused" in "".join(two.errors)


def test_two_servers_and_one_is_killed(server: Server, start: Start, node: Node) -> None:
    """Each program listens at its own server; while the other's is dead, nothing arrives, and after it, all does."""
    _, left = server
    process = start("server", "--listen", "tcp://127.0.0.1:0")
    assert process.stdout is not None
    right = process.stdout.readline().split()[-1]
    one, two = node("one", left, "two", right), node("two", right, "one", left)
    one.say("two before")
    assert two.wait_for("got") == "got one before"
    assert one.wait_for("acknowledged") == "acknowledged two before"
    two.say("one hello")
    assert one.wait_for("got") == "got two hello"

    process.kill()
    end(process)
    two.wait_for("homeless")
    for n in range(5):
        one.say(f"two meanwhile {n}")
    time.sleep(0.5)
    with pytest.raises(TimeoutError):
        two.wait_for("got", seconds=0.01)

    restarted(start, right)
    for _ in range(5):
        two.wait_for("got")
        one.wait_for("acknowledged")
    assert sorted(words(two, "got")) == ["before", *[f"meanwhile {n}" for n in range(5)]]
    assert sorted(words(one, "acknowledged")) == sorted(words(two, "got"))
    with pytest.raises(TimeoutError):  # each once, however often it was sent
        two.wait_for("got", seconds=0.3)


def test_a_program_given_a_remote_dataspace(server: Server, node: Node) -> None:
    """What it is reached by, follows and asserts is at the server, and gone from there when it ends."""
    _, address = server
    two = node("two", address)
    seen: list[tuple[str, Any]] = []

    def boot() -> None:
        @connect(address, attempts=1)
        def program(ds: Ref) -> None:
            Delivery(
                ds,
                address="three",
                messages={"pipe_in": ["post", *[capture() for _ in range(4)]]},
                inputs={"known": ["known", capture(), capture(), capture()]},
                outputs={"send_buf": lambda dst, src, ident, payload: ["waits", dst, payload]},
                sends={"pipe_out": lambda dst, src, ident, payload: ["done", dst, payload]},
            )
            assert_(ds, ["ready"])

        @connect(address, attempts=1)
        def observer(ds: Ref) -> None:
            on_asserted(ds, ["waits", capture(), capture()])(lambda dst, text: seen.append(("+", text)))
            on_retracted(ds, ["waits", capture(), capture()])(lambda dst, text: seen.append(("-", text)))
            on_message(ds, ["done", capture(), capture()])(lambda dst, text: seen.append(("!", text)))
            stop_when(ds, ["waits", "two", "hello"], on="retracted")(stop_actor)

            @on_asserted(ds, ["ready"])
            def ready() -> None:
                send(ds, ["post", "two", "three", 1, "hello"])

    run(boot)
    assert two.wait_for("got") == "got three hello"
    assert seen[:1] == [("+", "hello")]
    assert sorted(seen) == [("!", "hello"), ("+", "hello"), ("-", "hello")]


class Divider(Bloom):
    """Answers whom it can, and lists who is there."""

    question = channel(["@to", "who", "ident"], ["n"])
    answer = channel(["@to", "ident"], ["result"])
    present = scratch(["who", "share"], [])
    shares = scratch(["who", "percent"], [])
    asked = table(["who", "ident"], ["n"])

    @bloom
    def rules(self) -> None:
        """Neither rule can do with 0."""
        self.asked <= self.question.map(lambda a: (a.who, a.ident, a.n))
        self.answer < ~self.question.map(lambda a: (a.who, a.ident, 60 // a.n))
        self.shares <= self.present.map(lambda p: (p.who, 100 // p.share))


def test_rows_from_afar_that_make_a_rule_raise(server: Server, logs: list[Any]) -> None:
    """What other processes' peers send and assert is refused where it must be, and all else is answered."""
    _, address = server
    answers: list[Any] = []
    shares: list[Any] = []
    instances: list[Any] = []

    def boot() -> None:
        @connect(address, attempts=1)
        def divider(ds: Ref) -> None:
            ports: dict[str, Any] = {
                "inputs": {"present": ["present", capture(), capture()]},
                "outputs": {"shares": lambda who, percent: ["has", who, percent]},
            }
            instances.append(Divider(ds, address="divider", **ports))
            assert_(ds, ["ready"])

        @connect(address, attempts=1)
        def untrusted(ds: Ref) -> None:
            on_asserted(ds, ["has", capture(), capture()])(lambda *row: shares.append(row))

            @on_message(ds, Packet("untrusted", "answer", capture()))
            def answered(row: Any) -> None:
                answers.append(row[1:])
                if row[1] == "last":
                    stop_actor()

            @on_asserted(ds, ["ready"])
            def ready() -> None:
                for who, share in (("ann", 4), ("bob", 0), ("cid", 5)):
                    assert_(ds, ["present", who, share])
                rows: list[Any] = [("divider", "untrusted", ident, n) for ident, n in enumerate([3, 0, "six", 5, 0, 6])]
                rows += [("divider", "untrusted"), "nothing", ("divider", "untrusted", 3, 7)]
                for row in (*rows, ("divider", "untrusted", "last", 1)):
                    send(ds, Packet("divider", "question", row))

    run(boot)
    assert sorted(answers[:-1]) == [(0, 20), (3, 12), (5, 10)]
    assert answers[-1] == ("last", 60)
    assert sorted(shares) == [("ann", 25), ("cid", 20)]
    reasons = [line["reason"] for line in logs]
    assert (len(reasons), sum(f"{__file__}:" in reason for reason in reasons)) == (7, 5)
    assert any("ZeroDivisionError" in reason and "('divider', 'untrusted', 1, 0)" in reason for reason in reasons)
    assert len(instances[0].asked) == 4
