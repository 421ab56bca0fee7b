"""Traces in OpenTelemetry's form: one journey over several programs is one trace."""

from __future__ import annotations

import gzip
import json
import re
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from relay import connect
from relay.protocol.packets import Extension, trace_of
from relay.server.broker import Broker
from syndicate import (
    Ref,
    after,
    assert_,
    capture,
    current_facet,
    during,
    on_message,
    open_system,
    prevent_inert_check,
    run,
    send,
    spawn,
    stop_actor,
    sync,
)
from syndicate.actors.system import System
from syndicate.errors import ArgumentError
from syndicate.introspect import Chronicle
from syndicate.introspect.spans import Spans, parse, traced
from syndicate.testing import settled
from syndicate.values.value import Symbol
from tests.relay.server.test_server import Start, end, opened, start
from tests.waiting import until

__all__ = ["start"]  # a fixture


class Follower:
    """A program's provider, which keeps its spans."""

    def __init__(self, **options: int) -> None:
        self.memory, self.provider, self.options = InMemorySpanExporter(), TracerProvider(), options
        self.provider.add_span_processor(SimpleSpanProcessor(self.memory))

    @property
    def spans(self) -> list[ReadableSpan]:
        """Those that have ended."""
        return list(self.memory.get_finished_spans())

    @asynccontextmanager
    async def program(self) -> AsyncIterator[System]:
        """A system of its own, which is followed."""
        with traced(provider=self.provider, **self.options):
            async with open_system() as system:
                yield system


def ids(span: ReadableSpan) -> tuple[int, int]:
    """Its trace, and itself."""
    return span.context.trace_id, span.context.span_id


@asynccontextmanager
async def journey(followers: list[Follower | None], say: int = 1) -> AsyncIterator[Callable[[str], object]]:
    """A program that asks, a broker, and one that answers; what is yielded asks, and the answer is awaited."""
    opened, heard = trio.Event(), list[str]()
    askers: list[tuple[System, Ref, Any]] = []

    @asynccontextmanager
    async def program(follower: Follower | None) -> AsyncIterator[System]:
        async with open_system() if follower is None else follower.program() as system:
            yield system

    async with program(followers[1]) as middle, program(followers[0]) as asking, program(followers[2]) as answering:
        broker = Broker(["tcp://127.0.0.1:0"], opened=lambda _: opened.set())
        middle.spawn(broker, name="broker")
        await opened.wait()

        def asker() -> None:
            @connect(broker.addresses[0])
            def connected(ds: Ref) -> None:
                from syndicate import current_facet

                during(ds, ["answer", capture(str)])(heard.append)
                askers.append((asking, ds, current_facet()))

        def answerer() -> None:
            @connect(broker.addresses[0])
            def connected(ds: Ref) -> None:
                on_message(ds, ["question", capture(str)])(lambda what: assert_(ds, ["answer", what]))
                assert_(ds, ["ready"])

        asking.spawn(asker)
        answering.spawn(answerer)
        await until(lambda: askers)
        _, ds, facet = askers[0]
        ready: list[bool] = []
        facet.enter(lambda: during(ds, ["ready"])(lambda: ready.append(True)))
        await until(lambda: ready)
        for follower in followers:
            if follower is not None:
                follower.memory.clear()

        async def ask(what: str) -> None:
            facet.enter(lambda: send(ds, ["question", what]))
            await until(lambda: what in heard)
            for system in (asking, middle, answering):
                await system.settle()

        yield ask


async def test_one_journey_over_three_programs_is_one_trace() -> None:
    """From where it began there and back, each span has its parent in the same trace, and time goes on."""
    followers = [Follower() for _ in range(3)]
    async with journey([*followers]) as ask:
        await ask("why")  # type: ignore[misc]  # it is a coroutine
        spans = {ids(span): (number, span) for number, each in enumerate(followers) for span in each.spans}
        answers = [span for span in followers[0].spans if "answer" in repr(span.attributes) or span.parent]
        (trace,) = {ids(span)[0] for _, span in spans.values() if span.parent is not None and span.parent.is_remote}
        last = max(answers, key=lambda span: span.end_time or 0)
        assert ids(last)[0] == trace
        path, span = [0], last
        while span.parent is not None:
            number, span = spans[span.parent.trace_id, span.parent.span_id]
            path.append(number)
        assert re.fullmatch("0+1+2+1+0+", "".join(map(str, reversed(path)))), path
        assert {span.kind.name for _, span in spans.values()} == {"INTERNAL", "CONSUMER"}
        text = "".join([span.to_json() for _, span in spans.values()])
        assert "why" not in text
        assert '"syndicate.first": "message' in text


async def test_only_samples_are_followed_but_those_to_their_end() -> None:
    """Who follows one in a thousand of what comes from outside follows all of what others say they follow."""
    asker, others = Follower(every=5), [Follower(every=10**6) for _ in range(2)]
    async with journey([asker, *others]) as ask:
        for number in range(20):
            await ask(f"question {number}")  # type: ignore[misc]
        roots = [span for span in asker.spans if span.parent is None]
        assert 0 < len({ids(span)[0] for span in roots}) < 20
        for each in others:
            assert each.spans
            assert {ids(span)[0] for span in each.spans} <= {ids(span)[0] for span in roots}


async def test_nothing_is_said_to_who_does_not_follow() -> None:
    """Where the broker does not follow, each program has traces of its own."""
    followers = [Follower(), None, Follower()]
    async with journey(followers) as ask:
        await ask("why")  # type: ignore[misc]
        one, other = ({ids(span)[0] for span in each.spans} for each in followers if each is not None)
        assert one
        assert other
        assert not one & other


def test_no_more_than_so_many_a_second_and_no_deeper() -> None:
    """What is too much is not followed, and counted; what leads to itself is followed for so many turns."""
    follower = Follower()

    def boot() -> None:
        def again(left: int) -> None:
            if left:
                after(0, lambda: again(left - 1))
            else:
                stop_actor()

        again(200)

    with traced(provider=follower.provider, reach=20) as deep:
        run(boot)
    traces: dict[int, int] = {}
    for span in follower.spans:
        traces[ids(span)[0]] = traces.get(ids(span)[0], 0) + 1
    assert max(traces.values()) <= 20
    assert sum(traces.values()) > 150
    assert not deep[0].left_out
    follower.memory.clear()
    with traced(provider=follower.provider, most=10) as few:
        run(boot)
    assert few[0].left_out > 50
    assert len(follower.spans) < 150


def test_a_crash_is_seen() -> None:
    """The span of the turn that failed says so, by the kind of the error alone."""
    follower = Follower()

    def boot() -> None:
        spawn(lambda: 1 / 0, name="divider")

    with traced(provider=follower.provider):
        run(boot)
    (failed,) = [span for span in follower.spans if span.name == "divider"]
    assert (failed.status.status_code.name, failed.status.description) == ("ERROR", "ZeroDivisionError")


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "00",
        "x" * 80,
        f"00-{'0' * 32}-{'1' * 16}-01",
        f"00-{'1' * 32}-{'0' * 16}-01",
        f"00-{'1' * 32}-{'1' * 16}-00",
        f"00-{'A' * 32}-{'1' * 16}-01",
        f"ff-{'1' * 32}-{'1' * 16}-01",
    ],
)
def test_what_is_no_parent(parent: str) -> None:
    """A peer may say anything: what is no parent, or is not sampled, is not used."""
    assert parse(parent, 5) is None
    assert parse(f"00-{'1' * 32}-{'1' * 16}-01", -1) is None
    for form in [("trace", parent), ("trace", parent, "5"), ("trace", 5, 5), ("trace", "x" * 5000, 5)]:
        assert trace_of(Extension((Symbol("trace"), *form[1:]))) is None or form[1:] == (parent, 5)


def test_a_system_is_followed_once() -> None:
    """By a chronicle or by spans."""
    system = settled(lambda: None)
    Chronicle(system)
    with pytest.raises(ArgumentError, match="has a chronicle already"):
        Spans(system, TracerProvider().get_tracer("t"))


# ---------------------------------------------------------------------------------------------------- the server


@pytest.fixture
def collector() -> Iterator[tuple[str, list[Any]]]:
    """What takes spans by OTLP: its address, and the spans that came, with the service that each is of."""
    came: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            data = gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data
            for resource in ExportTraceServiceRequest.FromString(data).resource_spans:
                names = {each.key: each.value.string_value for each in resource.resource.attributes}
                came.extend((names["service.name"], span) for scope in resource.scope_spans for span in scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class has it
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", came
        server.shutdown()
        thread.join()


def test_a_server_exports_what_it_follows(start: Start, collector: tuple[str, list[Any]], tmp_path: Path) -> None:
    """To a collector, and to a file; the last ones, too, when it is asked to end."""
    address, came = collector
    for where in (address, str(tmp_path / "spans.jsonl")):
        server = start("--listen", f"unix://{tmp_path}/s", "--trace", where, "--trace-every", "3")
        opened(server)
        follower = Follower()
        with traced(provider=follower.provider):
            run(lambda: connect(f"unix://{tmp_path}/s", attempts=1)(say))
        server.send_signal(signal.SIGTERM)
        code, _, err = end(server)
        assert code == 0, err
        ours = {ids(span)[0] for span in follower.spans}
        if where == address:
            assert {name for name, _ in came} == {"syndicate-server"}
            assert {int.from_bytes(span.trace_id, "big") for _, span in came} & ours
        else:
            lines = [json.loads(line) for line in Path(where).read_text().splitlines()]
            assert {line["resource"]["attributes"]["service.name"] for line in lines} == {"syndicate-server"}
            assert {int(line["context"]["trace_id"], 16) for line in lines} & ours


def say(ds: Ref) -> None:
    """Something that is followed: once the server has answered, it is known that it follows."""

    def more() -> None:
        send(ds, ["more"])
        sync(ds, stop_actor)

    sync(ds, more)


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("/nowhere/spans", "cannot write to /nowhere/spans: No such file or directory"),
        ("http://", "'http://' is no address of a collector: write http://HOST:PORT"),
    ],
)
def test_mistakes(start: Start, where: str, why: str) -> None:
    """In a line, before anything is opened."""
    code, out, err = end(start("--listen", "tcp://127.0.0.1:0", "--trace", where))
    assert (code, out) == (2 if where.startswith("http") else 1, "")
    assert why in err


@pytest.mark.parametrize("every", [2, 10, 100])
def test_a_sample_has_no_rhythm(every: int) -> None:
    """Of what comes in turn, as often as one in *every* is followed, each kind is met in its share."""
    follower, rounds = Follower(every=every, most=10**6), 400

    async def main() -> None:
        async with follower.program() as system:
            facets: list[Any] = []

            def boot() -> None:
                prevent_inert_check()
                facets.append(current_facet())

            for name in range(every):
                system.spawn(boot, name=f"a{name}")
            await system.settle()
            follower.memory.clear()
            for _ in range(rounds):
                for facet in facets:
                    facet.enter(lambda: None)
                await system.settle()

    trio.run(main)
    names = [span.name for span in follower.spans]
    assert 0.8 * rounds < len(names) < 1.2 * rounds
    assert len(set(names)) > every // 2
    assert max(names.count(name) for name in set(names)) < rounds * max(0.7, 20 / every)
