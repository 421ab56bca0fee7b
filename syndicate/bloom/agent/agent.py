"""The agent of a program: it lives in a facet, ticks in turns, and is reached through dataspaces.

``Program(ds)`` in a turn gives the program an agent in a new facet; ``spawn(Program, ds)`` makes an actor of nothing
else.  Rows from outside, messages, firings of timers and deferred rows make it tick, once, at the end of the turn that
brought them; what a tick sends and asserts goes out with that turn.  If one more tick has something to do, it is a
turn of its own, so that endless programs leave others their time.

**Addresses.**  A row of a channel is a :class:`~syndicate.bloom.agent.ports.Packet`, sent to the program's dataspace
and observed there by whoever has the address.  So an address is a name that those who share a dataspace agree on, and
whether the dataspace is in the process or behind the relay makes no difference.  Where there are several, such as two
servers, ``listen_at(ds)`` lets a program be reached at a further one, and ``send_via(ds, address, ...)`` sends what is
for some addresses there, ``send_via(ds)`` what is for all others; the last word counts.  Both last as long as the
facet that says so: in ``@connect``, as long as the connection, while the program and its tables go on::

    def node():
        p = ReliableDelivery(dataspace(), address="alice")

        @connect("tcp://127.0.0.1:8001")
        def at_home(ds):
            p.listen_at(ds)
            p.send_via(ds)

        @connect("tcp://127.0.0.1:8002")
        def on_the_way_to_bob(ds):
            p.send_via(ds, "bob")

What is sent while there is no connection is lost, as on any network.  Rows to ourselves take none.

**What untrusted peers send** cannot end the program: a row of the wrong length, of a channel that there is not, or one
that makes a rule, or a function of a port, raise, is refused and logged (:mod:`~syndicate.hosting`).  A rule that
raises without them crashes the actor, with its file and line; what the program had asserted is retracted, and a
supervisor may start it again.  A function of a port that has failed for every row is the program's mistake: the log has
it as an error, once, with its file and line.

Contract: ticks never overlap; what was sent to a program in one turn is there in one tick, unless two rows have one
key (:mod:`~syndicate.bloom.state.inbox`), a row is refused, or a filter decides otherwise; timers stop with the facet;
``halt`` stops the facet.

The console: lines of standard input and output, for programs that have a terminal.

Those that come in are read by a thread, since a terminal, a pipe and a file are read in one way by nothing else; and by
``os.read``, so that no lock of Python's is held while nobody types, and the process may end.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeAlias, TypeVar

import trio

from syndicate.actors.arguments import expect_ref
from syndicate.actors.during import on_message
from syndicate.actors.timer import after, now
from syndicate.actors.turn import current
from syndicate.actors.verbs import on_stop_or_crash, react, trio_task
from syndicate.bloom.agent.ports import (
    AssertedRows,
    Packet,
    Receiver,
    RowsAsserted,
    RowsSent,
    Sends,
    UntrustedRow,
    arrived,
    deferred,
    take_back,
)
from syndicate.bloom.collection import Collection, taken_rows
from syndicate.bloom.declaration import Kind
from syndicate.bloom.insight import plot
from syndicate.bloom.insight.why import Reasons
from syndicate.bloom.rules.symbols import declaration_of, key_count, kind_of
from syndicate.bloom.state.state import NOTHING, KeyedContents, Merged, ScratchState
from syndicate.bloom.tick.runtime import Runtime
from syndicate.drawing import Drawing, Load, Reason
from syndicate.errors import (
    IllegalRule,
    NoAnswer,
    NotAValue,
    ProgramStopped,
    RowMisfit,
    RuleFailed,
    SyndicateError,
    short,
)
from syndicate.explain.witness import Fact
from syndicate.flow.element import ATOMS, Key, key_of, natural, ordered
from syndicate.flow.graph import drawing, loads
from syndicate.hosting import Routes, quarantine
from syndicate.values.absent import form_of, outward
from syndicate.values.pattern import capture
from syndicate.values.value import Ref, Value

# ---------------------------------------------------------------------------------------------------------- the console


async def read_lines(take: Callable[[str], object], fd: int = 0) -> bool:
    r"""Give each line, without its end, to *take*, until the input ends; returns True, as a linked task that may end.

    >>> import os, trio
    >>> out, into = os.pipe(); _ = os.write(into, "one\nzwö\nthree".encode()); os.close(into)
    >>> trio.run(read_lines, print, out)
    one
    zwö
    three
    True
    """
    rest = b""
    while True:
        read = await trio.to_thread.run_sync(partial(os.read, fd, 65536), abandon_on_cancel=True)
        *lines, rest = (rest + read).split(b"\n")
        if not read and rest:
            lines.append(rest)
        for line in lines:
            take(line.decode(errors="replace").removesuffix("\r"))
        if not read:
            return True


def write_line(text: str) -> None:
    """Print a line, whatever untrusted peers put into it: what the output has no bytes for is escaped."""
    try:
        print(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding
        print(text.encode(encoding, "backslashreplace").decode(encoding))


# ----------------------------------------------------------------------------------------------- the agent of a program


T = TypeVar("T")
Ports: TypeAlias = Mapping[str, Mapping[str, Value]]
"""Of ``inputs``, ``messages``, ``outputs`` and ``sends``, what is given for each collection."""


class Agent(Receiver):
    """Runs one program in a facet."""

    port = "collection"

    def __init__(self, runtime: Runtime, ds: Ref | None, ports: Ports) -> None:
        """In a new facet of the current one; with a dataspace, reached there.  Raises :class:`NotInTurn`."""
        super().__init__(runtime.name)
        self.runtime, self.ds = runtime, ds
        self.thread = threading.get_ident()
        self.ended = False
        self.error: BaseException | None = None
        self.shown: dict[tuple[str, Key], UntrustedRow] = {}
        self.coming: dict[tuple[str, Key], UntrustedRow] = {}
        """What is asserted, and is no longer, of the tick that is made."""
        self.untrusted = False
        """Whether that tick has rows of untrusted peers."""
        self.routes = Routes(ds)
        self.waiting: set[Future[Value]] = set()
        self.outputs: list[AssertedRows] = []
        self.changes: dict[str, Mapping[Key, int]] = {}
        self.facet = react(partial(self._begin, ports))
        self.ended = not self.facet.alive  # in a facet that has stopped, nothing begins

    def _begin(self, ports: Ports) -> None:
        runtime, ds = self.runtime, self.ds
        self.settle()
        self.facet.lasting = True  # others may give it rows at any time
        on_stop_or_crash(self._end)
        if ds is not None:
            runtime.sending.send = self.send
            runtime.engine.inspect = self._inspect
            self.listen_at(ds)
            for name, written in ports["inputs"].items():
                RowsAsserted(self, runtime.collections[name]).observe(ds, written)
            for name, written in ports["messages"].items():
                RowsSent(self, runtime.collections[name]).observe(ds, written)
            for kind, what in ((AssertedRows, "outputs"), (Sends, "sends")):
                self.outputs += [kind(f"{what}=", runtime.states[name], make) for name, make in ports[what].items()]
            for output in self.outputs:
                output.begin(self.facet, ds)
        for one in runtime.collections.values():
            if kind_of(one) is Kind.PERIODIC:
                self._ring(one, now() + declaration_of(one).period)
            elif kind_of(one) is Kind.STDIO and declaration_of(one).reads:
                trio_task(read_lines, partial(self._line, one))
        self.wake()

    def _end(self) -> None:
        """The facet stops, or the actor has crashed."""
        self.ended = True
        self.error = self.facet.actor.error
        for future in list(self.waiting):
            if not future.done():
                future.set_exception(self.stopped())
        self.runtime.shut_down()

    def stopped(self) -> ProgramStopped:
        """The error for who waits for a program that has stopped."""
        name, error = self.what, self.error
        failure = ProgramStopped(f"{name} has stopped" + (f" by an error: {error}" if error else ": make a new one"))
        failure.__cause__ = error
        return failure

    # ------------------------------------------------------------------------------------------------ ticks

    def advance(self) -> None:
        """Tick, and let what came of it go out; a program that was halted by a rule stops."""
        if not self.over():
            self.runtime.take_in()
            self.coming, self.shown = self.shown, {}
            self.untrusted = bool(self.coming or self.runtime.arrived)
            error = self.probe()
            if error is not None:
                quarantine(self, error)
        if self.over():
            self.facet.stop(self.turn)

    def drawings(self) -> dict[str, Drawing]:
        """The rules, with their points of order, and the circuit that they are compiled to, if there is one."""
        circuit = self.runtime.engine.circuit
        rules = plot.drawing(plot.graph_of_runtime(self.runtime), "Bloom")
        return {"rules": rules, **({} if circuit is None else {"circuit": drawing(circuit)})}

    def loads(self, view: str) -> dict[str, Load]:
        """The rows of each collection; of each node of the circuit what it keeps and costs."""
        if view == "rules":
            return {name: Load(len(state.contents.rows)) for name, state in self.runtime.states.items()}
        circuit = self.runtime.engine.circuit
        return {} if circuit is None or circuit.running is None else loads(circuit.running)

    def held(self, view: str, box: str) -> dict[str, Iterable[Value]]:
        """The rows of the collections that a box of the rules stands for."""
        states = self.runtime.states
        names = box.split(", ") if view == "rules" else []
        return {name: map(natural, list(states[name].contents.rows)) for name in names if name in states}

    def showing(self) -> Iterable[AssertedRows]:
        """Those of ``outputs=``; what is sent is sent, and does not last."""
        return self.outputs

    def why(self, name: str, row: Value) -> Reason:
        """By which rules."""
        return Reasons(self.runtime).prove(Fact(name, key_of(row)))

    def watch(self, *, on: bool) -> None:
        """Measure each node."""
        if self.runtime.engine.circuit is not None:
            self.runtime.engine.circuit.watch(on=on)

    def waits(self) -> bool:
        """Whether another tick would do something."""
        return not self.over() and (self.runtime.waits() or self._passing())

    def over(self) -> bool:
        """Whether it has stopped, or was halted by a rule."""
        return self.ended or self.runtime.halted

    def probe(self) -> Exception | None:
        """Tick, and let what came of it go out; what was raised if the tick did not happen."""
        runtime, done = self.runtime, self.runtime.done
        if self.over():
            return None
        try:
            runtime.derive()
            for output in self.outputs:
                output.show(self.turn, self.changes[output.name])
        except Exception as error:
            if runtime.done > done or runtime.engine.broken:  # it has happened, or cannot be taken back
                raise
            return error
        return None

    def suspects(self) -> list[UntrustedRow]:
        """The rows of this tick that were asserted, or are no longer, and those that arrived."""
        untrusted = [*self.coming.values()]
        for name, rows in self.runtime.arrived.items() if self.ds is not None else ():
            one, state = self.runtime.collections[name], self.runtime.row_state(name)
            untrusted += [UntrustedRow(one, state, state.inlet, row) for row in rows]
        return untrusted

    def give(self, items: Sequence[UntrustedRow]) -> None:
        """Let rows be in the next tick."""
        for one in items:
            one.give()

    def take_back(self, items: Sequence[UntrustedRow]) -> None:
        """Let rows not be in the next tick."""
        take_back(self.runtime, items)

    def refused(self, item: UntrustedRow, error: Exception) -> None:
        """Leave out a row that a tick fails with."""
        if item.port is not None and not item.ends():
            item.port.refused(item.row)
        text = f"{'the end of ' if item.ends() else ''}{short(natural(item.row))}"
        self.blame(item.one.tabname, text, error, "makes a rule raise")

    def _inspect(self, changes: Mapping[str, Mapping[Key, int]], sent: Mapping[str, Mapping[Key, int]]) -> None:
        """Make the values that go out, before the tick has happened; raise for what untrusted peers brought about: what
        cannot be sent, or two rows of one key for the next tick, which could not happen.
        """
        self.changes = {output.name: ordered(changes.get(output.name, NOTHING)) for output in self.outputs}
        for output in self.outputs:
            output.prepare(self.changes[output.name])
        if not self.untrusted:
            return
        for name, rows in deferred(sent).items():
            contents = self.runtime.states[name].contents
            if not isinstance(contents, Merged):
                KeyedContents(name, contents.columns, contents.keys).checked(rows)
        for one, name, declared, _ in self.runtime.sending.senders:
            location = declared.location
            for row, weight in sent.get(f"{name} <~", NOTHING).items():
                if weight > 0 and location is not None and not self._is_own(natural(row)[location]):
                    try:
                        form_of(natural(row))
                    except NotAValue as error:
                        raise _unsendable(one, natural(row), error) from error

    def _passing(self) -> bool:
        """Whether rows of one tick stand, which the next would take away: what follows from them must not last."""
        return bool(self.outputs) and any(
            not state.still()
            for name, state in self.runtime.states.items()
            if isinstance(state, ScratchState) and name != "now"
        )

    def _ring(self, one: Collection, due: float) -> None:
        def ring() -> None:
            nonlocal due
            time, period = now(), declaration_of(one).period
            while due <= time:  # all that it has missed: rows of one tick
                self.runtime.fire(one)
                due += period
            after(due - time, ring)

        after(max(0.0, due - now()), ring)

    def _line(self, one: Collection, line: str) -> None:
        self.facet.enter(partial(one.insert, [(line,)]))

    # ------------------------------------------------------------------------------------------------ what comes in

    def enter(self, act: Callable[[], object]) -> None:
        """Let something be given to the program in a turn of its own actor: in this one, if it is."""
        if not self.inside:
            self.enter_later(act)
        elif self.ended:
            raise self.stopped()
        else:
            self._act(act)

    def enter_later(self, act: Callable[[], object]) -> None:
        """The same in a turn of its own, first asked, first called."""
        if self.ended:
            raise self.stopped()
        self.facet.enter(partial(self._act, act))

    def _act(self, act: Callable[[], object]) -> None:
        act()
        self.wake()

    def listen_at(self, ds: Ref) -> None:
        """Take what is addressed to the program in a dataspace, as long as the current facet lives."""
        current("listen_at")
        self.expect_inside("listen_at")
        on_message(expect_ref("listen_at", ds), Packet(self.runtime.address, capture(), capture()))(self._packet)

    def _packet(self, channel: Value, row: Value) -> None:
        if self.ended:
            return
        one = self.runtime.sending.channel(channel)
        try:
            if one is None:
                raise RowMisfit(f"{self.what} has no such channel")
            self.take(one, self.checked(one, row))
        except SyndicateError as error:
            self.refuse(channel, error)

    def take(self, one: Collection, row: Key) -> None:
        """Let a row that somebody sent be there in the next tick."""
        self.runtime.arrive(one, (row,))
        self.wake()

    def checked(self, one: Collection, row: Value) -> Key:
        """What somebody gave, as a row of a collection; raises a :class:`SyndicateError` if it is not one."""
        key = arrived(row, one.cols, key_count(one))
        if not ATOMS.issuperset(map(type, natural(key))) or declaration_of(one).lattices:
            (key,) = taken_rows(one, [natural(key)], f"{one.tabname}: a row that was sent")
        return key

    # ------------------------------------------------------------------------------------------------ what goes out

    def send_via(self, ds: Ref, *addresses: Value) -> None:
        """Send what is for some addresses, or without any all else, to a dataspace, as long as this facet lives."""
        expect_ref("send_via", ds)
        current("send_via")
        self.expect_inside("send_via")
        self.routes.add(ds, map(key_of, addresses))

    def send(self, address: Value, channel: str, row: tuple[Value, ...]) -> None:
        """Send a row of a channel."""
        if self._is_own(address):
            self.runtime.deliver(self.runtime.collections[channel], [row])
            return
        ds = self.routes.to(key_of(address))
        if ds is None:
            return
        try:
            self.turn.send(ds, Packet(outward(address), channel, outward(row)))
        except NotAValue as error:
            raise _unsendable(self.runtime.collections[channel], row, error) from error

    def _is_own(self, address: Value) -> bool:
        return bool(key_of(address) == key_of(self.runtime.address))

    # ------------------------------------------------------------------------------------------------ other threads

    def call(self, fn: Callable[[], T], *, what: str, tick: bool = False, timeout: float | None = None) -> T:
        """What *fn* returns between two ticks, and with *tick* one right after it; waits if that is in another thread.

        Raises what *fn* and the tick do, :class:`ProgramStopped`, and :class:`IllegalRule` where waiting has no end.
        """
        if self.ended:
            raise self.stopped()
        if self.inside:
            answer = fn()
            if tick:
                self.step()
            return answer
        future: Future[T] = self.future(what)

        def act() -> None:
            self.waiting.discard(future)  # it is answered here, even if the program ends by this
            try:
                answer = fn()
            except Exception as error:  # the caller's own
                future.set_exception(error)
                return
            if tick:
                try:
                    self.step()
                except Exception as error:
                    future.set_exception(error)
                    raise
            future.set_result(answer)

        self.facet.enter(act)
        return self.answer(future, what, timeout)

    def future(self, what: str) -> Future[Value]:
        """What another thread can wait for; it fails if the program stops."""
        if threading.get_ident() == self.thread:
            raise IllegalRule(
                f"{what}() waits for {self.what}, which runs in this very thread: use "
                "async_do(fn), callback(collection, fn), or a turn of its own actor"
            )
        future: Future[Value] = Future()
        self.waiting.add(future)
        if self.ended:  # since we asked; _end() may not have seen it
            raise self.stopped()
        return future

    def answer(self, future: Future[T], what: str, timeout: float | None) -> T:
        """Wait in another thread; raises :class:`NoAnswer` after *timeout* seconds."""
        try:
            return future.result(timeout)
        except TimeoutError:
            if future.done():  # it got one from the function
                raise
            raise NoAnswer(f"{what}() had no answer of {self.what} within {timeout} s") from None
        finally:
            self.waiting.discard(future)


def _unsendable(one: Collection, row: tuple[Value, ...], error: NotAValue) -> RuleFailed:
    return RuleFailed(f"{declaration_of(one).site}: {one.tabname} cannot send {row!r}: {error}")
