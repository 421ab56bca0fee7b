"""Running: a program that ticks by itself, in a thread of its own or in this one, and is talked to from outside.

>>> from syndicate.bloom import Bloom, bloom, scratch, table
>>> class Count(Bloom):
...     word = scratch(["text"], []); words = table(["text"], []); new = scratch(["text"], [])
...     @bloom
...     def rules(self):
...         self.new <= self.word.notin(self.words, ("text", "text"))
...         self.words < +self.word
>>> p = Count(); p.run_bg()
>>> p.ask("word", [("hello",)], "new"), p.sync_do(lambda: len(p.words))
([(text='hello')], 1)
>>> p.stop(); p.stop(); p.run_bg()
Traceback (most recent call last):
syndicate.errors.ProgramStopped: Count has stopped: make a new one

**How it runs.**  :meth:`run_bg` starts a thread with an actor system of its own, in which the program is an actor as it
would be in a dataspace: timers fire, terminals are read, rows from outside make it tick.  :meth:`run_fg` does the same
in the calling thread.  In an actor, and where it runs already, neither is needed.

**Who may do what.**  From any thread, rows may be given and looked at, and all the functions below called; those that
wait do so between two ticks.  In the thread in which it runs, nothing may wait: use callbacks.  A program that nobody
runs is ticked by hand, and then its timers fire by hand too (:meth:`~syndicate.bloom.program.Bloom.fire`).
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from syndicate.actors.running import run
from syndicate.actors.turn import current
from syndicate.actors.verbs import prevent_inert_check
from syndicate.bloom.agent.agent import Agent, Ports
from syndicate.bloom.agent.ports import check_ports
from syndicate.bloom.collection import Collection
from syndicate.bloom.declaration import Row
from syndicate.bloom.insight.introspection import Introspection
from syndicate.bloom.tick.runtime import Callback
from syndicate.errors import AlreadyRunning, IllegalRule
from syndicate.hosting import Start
from syndicate.log import logger
from syndicate.values.value import Ref, Value

T = TypeVar("T")

NO_PORTS: Ports = {"inputs": {}, "messages": {}, "outputs": {}, "sends": {}}


class Hosting:
    """What :func:`syndicate.hosting.host` calls: a class makes a new program at each start, a program is it."""

    def __get__(self, program: Running | None, cls: type[Running]) -> Callable[..., Start]:
        def hosted(ds: Ref, **options: Value) -> Start:
            def start() -> None:
                if program is None:
                    cls(ds, **options)  # type: ignore[call-arg]  # it is a program's
                else:
                    program._live_in(ds, **options)

            start.__name__ = cls.__name__
            return start

        return hosted


class Running(Introspection):
    """What a program has to be run by."""

    __host__ = Hosting()
    _thread: threading.Thread | None = None

    @property
    def _agent(self) -> Agent | None:
        agent = self._instance.runtime.agent
        return agent if isinstance(agent, Agent) else None

    def _live_in(
        self,
        ds: Ref,
        inputs: Mapping[str, Value],
        outputs: Mapping[str, Value],
        messages: Mapping[str, Value],
        sends: Mapping[str, Value] | None = None,
    ) -> None:
        """Be an actor's from now on, in a turn; raises :class:`AlreadyRunning`, :class:`BloomDeclaration`."""
        runtime = self._instance.runtime
        self._instance.check_root("host")
        if runtime.agent is not None or runtime.done or runtime.stopped:
            raise AlreadyRunning(
                f"host(): this {type(self).__name__} runs already, or has ticked: give a new one, or the class, of "
                "which each start makes one"
            )
        written = {"inputs": inputs, "messages": messages, "outputs": outputs, "sends": sends}
        ports = check_ports(self._instance, ds, written)
        runtime.follow(ports["inputs"])
        runtime.agent = Agent(runtime, ds, ports)

    # ------------------------------------------------------------------------------------------------ begin and end

    def run_bg(self) -> None:
        """Run in a thread of its own, until :meth:`stop`, ``halt``, the process ends, or an error, which is logged;
        after :meth:`pause`, go on.

        Raises :class:`AlreadyRunning`, :class:`ProgramStopped`.
        """
        if self._resumed("run_bg"):
            return
        ready = threading.Event()
        self._thread = threading.Thread(target=self._main, args=(ready,), name=type(self).__name__, daemon=True)
        atexit.register(self.stop)
        self._thread.start()
        ready.wait()

    def run_fg(self) -> None:
        """Run in this thread until :meth:`stop` (of a callback, or another thread) or ``halt``.

        Raises what ended it, such as :class:`~syndicate.errors.RuleFailed`, :class:`AlreadyRunning` and
        :class:`ProgramStopped`.
        """
        if not self._resumed("run_fg"):
            run(partial(self._live, threading.Event()), name=type(self).__name__)

    def _resumed(self, what: str) -> bool:
        self._instance.check_root(what)
        runtime, agent = self._instance.runtime, self._agent
        if runtime.stopped:
            raise runtime.over()
        if agent is None:
            return False
        if not agent.paused or what == "run_fg":
            raise AlreadyRunning(f"{what}(): {type(self).__name__} runs already")
        agent.paused = False
        agent.enter(lambda: None)
        return True

    def _main(self, ready: threading.Event) -> None:
        try:
            run(partial(self._live, ready), name=type(self).__name__)
        except Exception as error:
            logger(actor=type(self).__name__).error("a program crashed", exc_info=error)
        finally:
            atexit.unregister(self.stop)
            ready.set()

    def _live(self, ready: threading.Event) -> None:
        runtime = self._instance.runtime
        runtime.agent = agent = Agent(runtime, None, NO_PORTS)
        agent.facet.run(agent.turn, prevent_inert_check)  # lasts as long as the facet
        current("run_bg").afterwards.append(ready.set)

    def stop(self) -> None:
        """End it, whether it runs or not: no effect the second time.

        Where :meth:`run_bg` made the thread, returns when that has ended.
        """
        self._instance.check_root("stop")
        runtime, agent = self._instance.runtime, self._agent
        if runtime.stopped:
            return
        if agent is None or agent.ended:
            runtime.shut_down()
        elif agent.inside:
            agent.facet.stop(agent.turn)
        else:
            agent.facet.enter(lambda: agent.facet.stop(agent.turn))
            if self._thread is not None and threading.current_thread() is not self._thread:
                self._thread.join()

    def pause(self) -> None:
        """Tick no more by itself: what comes waits, firings of timers too, for :meth:`tick` or :meth:`run_bg`."""
        self._instance.check_root("pause")
        agent = self._agent
        if agent is not None and not agent.ended:
            pausing = partial(setattr, agent, "paused", True)
            if threading.get_ident() == agent.thread:
                pausing()
            else:
                agent.call(pausing, what="pause")

    def on_shutdown(self, fn: Callable[[], object]) -> Callable[[], None]:
        """Call *fn* when the program has stopped, however it came to that; what is returned takes that back."""
        hooks = self._instance.runtime.hooks
        hooks.append(fn)
        return lambda: hooks.remove(fn)

    # ------------------------------------------------------------------------------------------------ between ticks

    def sync_do(self, fn: Callable[[], T], *, timeout: float | None = None) -> T:
        """Call *fn* between two ticks, then tick once, and answer what it did; what either raises reaches the caller.

        When it returns, scratches hold what that tick derived, if it left nothing to the next (``<+``, a row to
        ourselves): where the program runs, that tick comes at once, and :meth:`ask` and :meth:`callback` look before
        it.  *timeout* is in seconds.  Raises :class:`ProgramStopped`, :class:`~syndicate.errors.NoAnswer`.
        """
        self._instance.check_root("sync_do")
        runtime, agent = self._instance.runtime, self._agent
        if runtime.stopped:
            raise runtime.over()
        if agent is not None:
            return agent.call(fn, what="sync_do", tick=True, timeout=timeout)
        result = fn()
        runtime.tick()
        return result

    def async_do(self, fn: Callable[[], object]) -> None:
        """Call *fn* before the next tick, which it brings about where the program runs; first asked, first called.

        What it raises is raised by the tick.
        """
        self._instance.check_root("async_do")
        runtime, agent = self._instance.runtime, self._agent
        if runtime.stopped:
            raise runtime.over()
        if agent is not None:
            agent.enter_later(fn)
        else:
            runtime.todo.append(fn)

    def callback(self, collection: str | Collection, function: Callback) -> Callable[[], None]:
        """Call *function* with the rows at the end of each tick in which there are any; what is returned ends it.

        Raises :class:`~syndicate.errors.BloomDeclaration` for a collection that there is not.
        """
        entry, callbacks = (self._one(collection).tabname, function), self._instance.runtime.callbacks
        callbacks.append(entry)
        return lambda: callbacks.remove(entry)

    def ask(
        self,
        into: str | Collection,
        rows: object,
        out_of: str | Collection,
        *,
        limit: int = 1000,
        timeout: float | None = None,
    ) -> list[Row]:
        """Insert rows, and answer those that another collection then has (Bud's ``sync_callback``).

        Ticked by hand, it ticks until there are some, and raises :class:`IllegalRule` if all comes to rest without
        any, or after *limit* ticks.  Where the program runs, it waits, at most *timeout* seconds if given; raises
        :class:`ProgramStopped`, :class:`~syndicate.errors.NoAnswer`.
        """
        target = self._one(into)
        return self._awaited("ask", partial(target.insert, rows), self._one(out_of), limit, timeout)

    def delta(self, out_of: str | Collection, *, limit: int = 1000, timeout: float | None = None) -> list[Row]:
        """The rows of a collection at the end of the next tick in which there are some: :meth:`ask` without input."""
        return self._awaited("delta", lambda: None, self._one(out_of), limit, timeout)

    def _awaited(
        self, what: str, give: Callable[[], object], wanted: Collection, limit: int, timeout: float | None
    ) -> list[Row]:
        runtime, agent = self._instance.runtime, self._agent
        if runtime.stopped:
            raise runtime.over()
        if agent is not None:
            future: Future[list[Row]] = agent.future(what)
            end = self.callback(wanted, lambda rows: None if future.done() else future.set_result(rows))
            try:
                agent.enter(give)
                return agent.answer(future, what, timeout)
            finally:
                end()
        give()
        for _ in range(limit):
            runtime.tick()
            if len(wanted):
                return list(wanted)
            if not runtime.waits():
                break
        raise IllegalRule(
            f"nothing came out of {wanted.tabname}: everything is at rest, or {limit} ticks were not enough"
        )

    def _one(self, collection: str | Collection) -> Collection:
        return self.collection(collection) if isinstance(collection, str) else collection

    # ------------------------------------------------------------------------------------------------ in dataspaces

    def listen_at(self, ds: Ref) -> None:
        """Be reached at a further dataspace, while the current facet lives: see :mod:`syndicate.bloom.agent.agent`.

        Raises :class:`~syndicate.errors.NotInTurn`, and :class:`~syndicate.errors.SyndicateError` in another actor.
        """
        self._resident("listen_at").listen_at(ds)

    def send_via(self, ds: Ref, *addresses: Value) -> None:
        """Send what is for some addresses to another dataspace, as long as the current facet lives; without addresses
        all that has none of its own.

        Raises as :meth:`listen_at`.
        """
        self._resident("send_via").send_via(ds, *addresses)

    def _resident(self, what: str) -> Agent:
        self._instance.check_root(what)
        agent = self._agent
        if agent is None or agent.ds is None:
            raise IllegalRule(f"{what}() is for a program in a dataspace: make it by {type(self).__name__}(ds)")
        return agent
