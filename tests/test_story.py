"""The journeys of HOWITWORKS.md, taken: each function that a step names is entered, in the order of the steps."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio

from relay import connect
from relay.capabilities.sturdy import mint
from relay.server.broker import Broker
from relay.tools.console import console
from relay.tools.printer import OutputThread, Printer
from syndicate import (
    ANY,
    Observe,
    Ref,
    after,
    assert_,
    capture,
    current_facet,
    dataspace,
    during,
    host,
    on_stop_or_crash,
    react,
    record,
    run,
    send,
    spawn,
    sync,
)
from syndicate.actors.system import system_of
from syndicate.bloom import Bloom, bloom, channel, durable, scratch, table
from syndicate.bloom.tick.ticking import Sending
from syndicate.dedalus import Program
from syndicate.spark import spark_source
from syndicate.values.pattern import pattern_of
from tests.test_conformance import resolved

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_THREAD: Final = trio.to_thread.run_sync
ROOT = Path(__file__).parents[1]
STEP = re.compile(r"^(\d+)\. (.*(?:\n {3}.*)*)", re.MULTILINE)
NAME = re.compile(r"`([a-z_]+(?:\.\w+)+)`")


def steps(journey: str) -> dict[int, dict[str, CodeType]]:
    """The functions that each numbered step of a journey names; what is a class or a module is only mentioned."""
    text = (ROOT / "HOWITWORKS.md").read_text()
    part = re.search(rf"^## \d+\. {journey} journey:.*?\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    assert part
    named = {}
    for number, step in STEP.findall(part[1]):
        things = {name: resolved(name) for name in NAME.findall(step)}
        named[int(number)] = {name: thing.__code__ for name, thing in things.items() if isinstance(thing, FunctionType)}
    return named


class Watch:
    """The functions that were entered, in the order in which they were first."""

    def __init__(self) -> None:
        self.entered: dict[CodeType, int] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch this thread."""
        before = sys.getprofile()
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(before)

    async def in_thread(self, fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """What ``trio.to_thread.run_sync`` does, and watch that thread meanwhile."""

        def watched() -> Any:
            with self.watching():
                return fn(*args)

        return await IN_THREAD(watched, **options)

    def _note(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            self.entered.setdefault(frame.f_code, len(self.entered))

    def begin(self) -> None:
        """Forget what came before the journey."""
        self.entered.clear()


def check(journey: str, watch: Watch, *elsewhere: str) -> None:
    """Every function was entered, but those that may be *elsewhere*; by the others no step began before the one above
    it.
    """
    named = steps(journey)
    missing = [name for step in named.values() for name, code in step.items() if code not in watch.entered]
    assert set(missing) <= set(elsewhere)
    orders = [
        [watch.entered[code] for name, code in step.items() if code in watch.entered and name not in elsewhere]
        for step in named.values()
    ]
    began = [min(order) for order in orders if order]
    assert began == sorted(began)
    assert len(began) > len(named) / 2


@record
class Present:
    who: str


@record
class Sensor:
    name: str
    celsius: float


@record
class Line:
    to: str
    text: str


@record
class Seen:
    text: str


def test_an_assertion_to_anothers_during() -> None:
    """The first journey: over TCP to the handler, in a third actor with a connection of its own."""
    watch, heard = Watch(), list[str]()

    def boot() -> None:
        spawn(Broker(["tcp://127.0.0.1:0"], opened=lambda addresses: programs(addresses[0])))

    def programs(address: str) -> None:
        for program in (watcher, chat):
            spawn(program, address)

    def watcher(address: str) -> None:
        @connect(address)
        def connected(ds: Ref) -> None:
            @during(ds, Present(capture(str)))
            def here(who: str) -> None:
                heard.append(who)
                system_of(current_facet().actor).stop()

    def chat(address: str) -> None:
        @connect(address)
        def connected(ds: Ref) -> None:
            @during(ds, Observe(capture(), ANY))
            def wanted(pattern: object) -> None:
                if "Present" in str(pattern):
                    sync(ds, say)

            def say() -> None:
                watch.begin()
                assert_(ds, Present("Alice"))

    with watch.watching():
        run(boot)
    assert heard == ["Alice"]
    # A record freezes itself, by generated code; the codec was chosen when the connection began; and a turn, and what a
    # dataspace does with a value, is the loop's where that is native.
    native = (
        *("actors.actor.take_turns", "actors.actor.Actor.take", "actors.turn.Turn.commit"),
        *("actors.turn.settle_facets", "actors.dataspace.Dataspace.assert_"),
    )
    check("First", watch, "values.value.freeze", "relay.protocol.codec.codec_for", *native)


def test_a_row_of_spark_to_a_plus(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second journey: from a table, in a session that is there, to a console behind a broker."""
    watch, lines = Watch(), list[str]()
    printer = Printer(OutputThread(lambda data: lines.append(data.decode())), count=1)
    monkeypatch.setattr(trio.to_thread, "run_sync", watch.in_thread)

    def table(session: SparkSession) -> Any:
        return session.createDataFrame([("roof", 21.5)], "name string, celsius double")

    def boot() -> None:
        ds = dataspace()
        spawn(Broker(["tcp://127.0.0.1:0"], ds=ds, opened=lambda addresses: spawn(shown, addresses[0])))
        spawn(spark_source(ds, table, to=Sensor, key=["name"], session=spark, progress=False))

    def shown(address: str) -> None:
        on_stop_or_crash(system_of(current_facet().actor).stop)
        console(address, mint("syndicate", b""), printer, patterns=[pattern_of(Sensor(ANY, ANY))])

    with watch.watching():
        run(boot)
    printer.close()  # its thread has written
    assert [line.partition(" ")[2] for line in lines] == ['+ <Sensor "roof" 21.5>\n']
    # The session was open; only a stream calls back.
    check("Second", watch, "spark.java.find_java", "spark.session.open_session", "spark.streaming_query.Query.follow")


def test_a_bloom_rule_to_a_channel() -> None:
    """The third journey: from one program to another, with a durable table, and a row that a rule fails with."""
    watch, heard = Watch(), list[str]()

    def boot() -> None:
        ds = dataspace()
        spawn(host(Tell, ds, address="ann", state=":memory:", messages={"line": Line}))
        spawn(host(Tell, ds, address="bob", outputs={"seen": Seen}, state=":memory:"))
        react(lambda: talk(ds))

    def talk(ds: Ref) -> None:
        @during(ds, Seen(capture()))
        def seen(text: str) -> None:
            heard.append(text)
            if text == "hello":
                send(ds, Line("bob", "bad"))
                send(ds, Line("bob", "bye"))
            else:
                system_of(current_facet().actor).stop()

        @after(0)
        def say() -> None:
            del watch.entered[Sending.post.__code__]  # the first tick of a program has nothing to send
            send(ds, Line("bob", "hello"))

    with watch.watching():

        class Tell(Bloom):
            line = scratch(["to", "text"])
            log = durable(["text"])
            seen = table(["text"])
            said = channel(["@to", "text"])

            @bloom
            def rules(self) -> None:
                self.said < ~self.line  # noqa: B015
                self.log <= self.line.map(lambda row: (row.text,))  # noqa: B015
                self.seen <= self.said.map(lambda s: (checked(s.text),))  # noqa: B015

        run(boot)
    assert heard == ["hello", "bye"]
    check("Third", watch)


def checked(text: str) -> str:
    """A function of a rule that fails with some rows."""
    if text == "bad":
        raise ValueError(text)
    return text


def test_a_dedalus_rule_to_a_verdict() -> None:
    """The fourth journey, from a file."""
    watch = Watch()
    with watch.watching():
        program = Program.load(ROOT / "examples" / "broadcast.ded")
        verdict = program.verify(eot=6, eff=3, crashes=1, nodes=("a", "b", "c"), engine="search")
        drawing = verdict.model.diagram()
    assert verdict.violation_exists
    assert "lost" in drawing
    check("Fourth", watch)


def test_a_step_that_is_not_taken_is_found() -> None:
    """The check can fail: for a function that nobody enters, and for one that is entered too late."""
    codes = [code for step in steps("Fourth").values() for code in step.values()]
    watch = Watch()
    watch.entered = {code: order for order, code in enumerate(codes)}
    check("Fourth", watch)
    watch.entered = {code: -order for order, code in enumerate(codes)}
    with pytest.raises(AssertionError):
        check("Fourth", watch)
    watch.entered = {code: order for order, code in enumerate(codes[1:])}
    with pytest.raises(AssertionError):
        check("Fourth", watch)
