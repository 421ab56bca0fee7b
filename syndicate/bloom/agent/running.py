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
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from syndicate.actors.system import run
from syndicate.actors.turn import current
from syndicate.actors.verbs import prevent_inert_check
from syndicate.bloom.agent.agent import Agent
from syndicate.errors import AlreadyRunning, IllegalRule, ProgramStopped
from syndicate.hosting.host import Start
from syndicate.log import logger

if TYPE_CHECKING:
    from syndicate.bloom.collection import Collection
    from syndicate.bloom.program import Bloom
    from syndicate.bloom.row import Row
    from syndicate.values.value import Ref

T = TypeVar("T")
Callback: TypeAlias = "Callable[[list[Row]], object]"

NO_PORTS: dict[str, dict[str, Any]] = {"inputs": {}, "messages": {}, "outputs": {}, "sends": {}}


class Hosting:
    """What :func:`syndicate.hosting.host.host` calls: a class makes a new program at each start, a program is it."""

    def __get__(self, program: Running | None, cls: type[Running]) -> Callable[..., Start]:
        def hosted(ds: Ref, **given: Any) -> Start:
            def start() -> None:
                if program is None:
                    cls(ds, **given)  # type: ignore[call-arg]  # it is a program's
                else:
                    program._live_in(ds, **given)

            start.__name__ = cls.__name__
            return start

        return hosted


class Running:
    """What a program has to be run by."""

    __host__ = Hosting()

    if TYPE_CHECKING:
        _root: Bloom
        _agent: Agent | None
        _callbacks: list[tuple[str, Callback]]

        def _at_root(self, what: str) -> None: ...
        def collection(self, name: str) -> Collection: ...  # noqa: D102  # as in Looking
        def _live_in(self, *args: Any, **given: Any) -> None: ...

    def _set_running(self) -> None:
        self._agent = None
        self._stopped = False
        self._calling = False
        self._thread: threading.Thread | None = None
        self._callbacks = []
        self._hooks: list[Callable[[], object]] = []
        self._todo: list[Callable[[], object]] = []

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
        self._at_root(what)
        agent = self._agent
        if self._stopped:
            raise self._over()
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
        self._agent = agent = Agent(self._root, None, NO_PORTS)
        agent.facet.run(agent.turn, prevent_inert_check)  # lasts as long as the facet
        current("run_bg").afterwards.append(ready.set)

    def stop(self) -> None:
        """End it, whether it runs or not: no effect the second time.

        Where :meth:`run_bg` made the thread, returns when that has ended.
        """
        self._at_root("stop")
        agent = self._agent
        if self._stopped:
            return
        if agent is None or agent.ended:
            self._shut_down()
        elif agent.inside:
            agent.facet.stop(agent.turn)
        else:
            agent.facet.enter(lambda: agent.facet.stop(agent.turn))
            if self._thread is not None and threading.current_thread() is not self._thread:
                self._thread.join()

    def pause(self) -> None:
        """Tick no more by itself: what comes waits, firings of timers too, for :meth:`tick` or :meth:`run_bg`."""
        self._at_root("pause")
        agent = self._agent
        if agent is not None and not agent.ended:
            pausing = partial(setattr, agent, "paused", True)
            if threading.get_ident() == agent.thread:
                pausing()
            else:
                agent.call(pausing, what="pause")

    def on_shutdown(self, fn: Callable[[], object]) -> Callable[[], None]:
        """Call *fn* when the program has stopped, however it came to that; what is returned takes that back."""
        self._root._hooks.append(fn)
        return lambda: self._root._hooks.remove(fn)

    def _shut_down(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._root.close()
            errors: list[Exception] = []
            for fn in list(self._hooks):
                try:
                    fn()
                except Exception as error:  # which is no reason to leave out the others
                    errors.append(error)
            if errors:
                raise errors[0] if len(errors) == 1 else ExceptionGroup("functions of on_shutdown() raised", errors)

    def _over(self) -> ProgramStopped:
        if self._agent is not None:
            return self._agent.stopped()
        return ProgramStopped(f"{type(self).__name__} has stopped: make a new one")

    # ------------------------------------------------------------------------------------------------ between ticks

    def sync_do(self, fn: Callable[[], T], *, timeout: float | None = None) -> T:
        """Call *fn* between two ticks, then tick once, and answer what it did; what either raises reaches the caller.

        When it returns, scratches hold what that tick derived, if it left nothing to the next (``<+``, a row to
        ourselves): where the program runs, that tick comes at once, and :meth:`ask` and :meth:`callback` look before
        it.  *timeout* is in seconds.  Raises :class:`ProgramStopped`, :class:`~syndicate.errors.NoAnswer`.
        """
        self._at_root("sync_do")
        if self._stopped:
            raise self._over()
        if self._agent is not None:
            return self._agent.call(fn, what="sync_do", tick=True, timeout=timeout)
        answer = fn()
        self._root._tick()
        return answer

    def async_do(self, fn: Callable[[], object]) -> None:
        """Call *fn* before the next tick, which it brings about where the program runs; first asked, first called.

        What it raises is raised by the tick.
        """
        self._at_root("async_do")
        if self._stopped:
            raise self._over()
        if self._agent is not None:
            self._agent.enter_later(fn)
        else:
            self._todo.append(fn)

    def callback(self, collection: str | Collection, function: Callback) -> Callable[[], None]:
        """Call *function* with the rows at the end of each tick in which there are any; what is returned ends it.

        Raises :class:`~syndicate.errors.BloomDeclaration` for a collection that there is not.
        """
        one = self._one(collection)
        entry = (one._name, function)
        self._root._callbacks.append(entry)
        return lambda: self._root._callbacks.remove(entry)

    def ask(
        self,
        into: str | Collection,
        rows: Any,
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
        given = self._one(into)
        return self._awaited("ask", partial(given.insert, rows), self._one(out_of), limit, timeout)

    def delta(self, out_of: str | Collection, *, limit: int = 1000, timeout: float | None = None) -> list[Row]:
        """The rows of a collection at the end of the next tick in which there are some: :meth:`ask` without input."""
        return self._awaited("delta", lambda: None, self._one(out_of), limit, timeout)

    def _awaited(
        self, what: str, give: Callable[[], object], wanted: Collection, limit: int, timeout: float | None
    ) -> list[Row]:
        root = self._root
        if root._stopped:
            raise root._over()
        agent = root._agent
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
            root.tick()
            if len(wanted):
                return list(wanted)
            if not root.waits():
                break
        raise IllegalRule(
            f"nothing came out of {wanted._name}: everything is at rest, or {limit} ticks were not enough"
        )

    def _one(self, collection: str | Collection) -> Collection:
        return self.collection(collection) if isinstance(collection, str) else collection

    # ------------------------------------------------------------------------------------------------ in dataspaces

    def listen_at(self, ds: Ref) -> None:
        """Be reached at a further dataspace, while the current facet lives: see :mod:`syndicate.bloom.agent.agent`.

        Raises :class:`~syndicate.errors.NotInTurn`, and :class:`~syndicate.errors.SyndicateError` in another actor.
        """
        self._resident("listen_at").listen_at(ds)

    def send_via(self, ds: Ref, *addresses: Any) -> None:
        """Send what is for some addresses to another dataspace, as long as the current facet lives; without addresses
        all that has no way of its own.

        Raises as :meth:`listen_at`.
        """
        self._resident("send_via").send_via(ds, *addresses)

    def _resident(self, what: str) -> Agent:
        self._at_root(what)
        if self._agent is None or self._agent.ds is None:
            raise IllegalRule(f"{what}() is for a program in a dataspace: make it by {type(self).__name__}(ds)")
        return self._agent

    # ------------------------------------------------------------------------------------------------ for the others

    def _from_outside(self, act: Callable[[], object]) -> None:
        """Do what gives rows to the next tick, where the program runs."""
        if self._agent is not None:
            self._agent.enter(act)
        elif self._stopped:
            raise self._over()
        else:
            act()

    def _seen(self, rows: dict[Any, None]) -> dict[Any, None]:
        """Rows to be looked at: a copy made between two ticks, where another thread runs the program."""
        agent = self._agent
        if agent is None or agent.ended or threading.get_ident() == agent.thread:
            return rows
        try:
            return agent.call(lambda: dict(rows), what="looking")
        except ProgramStopped:
            return rows
