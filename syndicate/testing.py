"""pytest fixtures for programs made of actors: a system on a clock that jumps, ``settle``, recorded traces and logs.

Name this module in the ``conftest.py`` at the top of your tests::

    pytest_plugins = ["syndicate.testing"]

and ask for what you need; the async fixtures come with pytest-trio::

    from syndicate import after, assert_, capture, dataspace
    from syndicate.testing import watch

    async def test_an_egg_is_boiled_after_three_minutes(system, settle):
        seen = []

        def cook():
            ds = dataspace()
            seen.append(watch(ds, ["egg", capture()]))
            after(180, lambda: assert_(ds, ["egg", "boiled"]))

        system.spawn(cook)
        await settle()
        assert seen == [[]]
        await trio.sleep(180)  # takes no time
        await settle()
        assert seen == [[("+", "boiled")]]

What needs neither tasks nor timers needs no trio either:

>>> from syndicate import Record, assert_, capture, dataspace, react, stop
>>> heard = []
>>> def boot():
...     ds = dataspace()
...     heard.append(watch(ds, Record("present", [capture()])))
...     stop(react(lambda: assert_(ds, Record("present", ["Alice"]))))
>>> system = settled(boot)
>>> heard
[[('+', 'Alice'), ('-', 'Alice')]]

Source: ``docs/design/testing.md``, "Fixtures for users".
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping, Sequence
from typing import TypeAlias, TypeVar

import pytest
import structlog.testing
import trio.testing
from trio.abc import Clock, Instrument

from syndicate.actors.running import open_system
from syndicate.actors.system import System
from syndicate.actors.trace import Trace
from syndicate.actors.turn import Entity, current
from syndicate.actors.verbs import current_facet, ref
from syndicate.index.interest import interest
from syndicate.values.value import Assertion, Ref, Value

T = TypeVar("T")

Seen: TypeAlias = "list[tuple[Value, ...]]"
"""Events in order: a mark, ``"+"``, ``"-"`` or ``"!"``, and then the captures."""


class Watcher(Entity):
    """An entity that writes down what a dataspace tells it.

    >>> from syndicate import Observe, assert_, capture, dataspace, ref, run, sync
    >>> watcher = Watcher()
    >>> def boot():
    ...     ds = dataspace()
    ...     assert_(ds, Observe(["present", capture()], ref(watcher)))
    ...     assert_(ds, ["present", "Alice"])
    ...     sync(ds, lambda: sync(ds, lambda: None))
    >>> run(boot)
    >>> watcher.seen
    [('+', 'Alice')]
    """

    def __init__(self) -> None:
        self.seen: Seen = []
        self.captures: dict[Assertion, Value] = {}

    def assert_(self, value: Value, handle: Assertion) -> None:
        """Captures have appeared."""
        self.captures[handle] = value
        self.seen.append(("+", *value))

    def retract(self, handle: Assertion) -> None:
        """They have gone."""
        self.seen.append(("-", *self.captures.pop(handle)))

    def message(self, value: Value) -> None:
        """A message has passed."""
        self.seen.append(("!", *value))


def watch(ds: Ref, pattern: Value) -> Seen:
    """A list that grows with each event for an observer of *pattern*, for as long as the current facet lives."""
    watcher = Watcher()
    asked = interest(pattern, ref(watcher))
    watcher.asked = asked[1]
    current("watch").assert_form(current_facet(), ds, asked)
    return watcher.seen


def settled(boot: Callable[..., object], *args: object) -> System:
    """A system in which ``boot(*args)`` and all that it caused has run; raises what *boot* raised.

    Starts no tasks, no timers.

    To go on, ``facet.enter(fn)`` and then ``system.drain()``.
    """
    system = System()
    system.first = system.spawn(boot, *args)
    system.drain()
    if system.first.error is not None:
        raise system.first.error
    return system


@pytest.fixture
def clock(request: pytest.FixtureRequest) -> trio.testing.MockClock:
    """The clock of the test: it jumps to the next deadline whenever nothing else can happen."""
    jumping = trio.testing.MockClock(autojump_threshold=0)

    def run(main: Callable[[], Awaitable[T]], clock: Clock | None = None, instruments: Sequence[Instrument] = ()) -> T:
        return trio.run(main, clock=clock or jumping, instruments=instruments)

    # pytest-trio gives a test the clocks among its own arguments only, not those of its fixtures.
    request.node.add_marker(pytest.mark.trio(run=run), append=False)
    return jumping


@pytest.fixture
async def system(clock: trio.testing.MockClock) -> AsyncIterator[System]:
    """An actor system, on a clock that jumps."""
    async with open_system() as system:
        yield system


@pytest.fixture
async def settle(system: System) -> Callable[[], Awaitable[None]]:
    """A function to await: it returns when nothing is runnable and all tasks, linked ones too, wait for something."""

    async def settle() -> None:
        while True:
            await system.settle()
            await trio.testing.wait_all_tasks_blocked()
            if not system.queue:
                return

    return settle


@pytest.fixture
async def trace(system: System) -> list[Trace]:
    """What happens in the system from now on, entry by entry."""
    entries: list[Trace] = []
    system.listen(entries.append)
    return entries


@pytest.fixture
def logs() -> Iterator[list[MutableMapping[str, object]]]:
    """The log entries of the test, as dictionaries, instead of lines on stderr."""
    captured = structlog.testing.LogCapture()
    configured, config = structlog.is_configured(), structlog.get_config()
    structlog.configure(processors=[captured])
    yield captured.entries
    structlog.reset_defaults()
    if configured:
        structlog.configure(**config)
