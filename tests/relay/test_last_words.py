"""Last words: what stop handlers say through a connection reaches the peer, whatever the program is ended by."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio

from relay import connect
from relay.server.broker import Broker
from syndicate import (
    Record,
    Ref,
    assert_,
    capture,
    dataspace,
    linked_task,
    on_asserted,
    on_message,
    on_stop,
    on_stop_or_crash,
    prevent_inert_check,
    react,
    run,
    send,
    spawn,
    stop_actor,
    supervise,
    sync,
)
from syndicate.errors import ActorCrashed, ConnectError
from tests.relay.commands import Server
from tests.work import PATIENCE

OVER = Record("over", [])


def bye(who: str) -> Any:
    """What is said at the end."""
    return Record("bye", [who])


class Audience(threading.Thread):
    """Another program, which hears what is said in a dataspace of a server until it hears that this is over."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.ready = threading.Event()
        self.heard: list[str] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            run(self._boot)
        except BaseException as error:
            self.failure = error
            self.ready.set()

    def _boot(self) -> None:
        @connect(self.address, attempts=1, reconnect=False)
        def connected(ds: Ref) -> None:
            @on_message(ds, bye(capture()))
            def said(who: str) -> None:
                self.heard.append(who)

            @on_asserted(ds, OVER)
            def over() -> None:
                stop_actor()

            sync(ds, self.ready.set)

    def end(self) -> None:
        """Wait until it has heard what was said before now."""

        def boot() -> None:
            @connect(self.address, attempts=1)
            def connected(ds: Ref) -> None:
                assert_(ds, OVER)
                sync(ds, stop_actor)

        run(boot)
        self.join(PATIENCE)
        assert self.failure is None


def strike(number: int) -> None:
    """As if the signal had come from outside."""
    signal.raise_signal(number)


ENDS: dict[str, tuple[Callable[[], object], type[BaseException]]] = {
    "SIGINT": (partial(strike, signal.SIGINT), KeyboardInterrupt),
    "SIGTERM": (partial(strike, signal.SIGTERM), SystemExit),
    "SIGHUP": (partial(strike, signal.SIGHUP), SystemExit),
    "exit": (partial(sys.exit, 3), SystemExit),
    "failure": (partial(divmod, 1, 0), ActorCrashed),
}
"""What ends a program: something that is done in an actor of its own, and what is raised then."""


@pytest.mark.parametrize("kind", [on_stop, on_stop_or_crash])
@pytest.mark.parametrize("end", ENDS)
def test_what_stop_handlers_say_arrives(server: Server, end: str, kind: Callable[[Any], Any]) -> None:
    """Of the actor that connected, of its facets, and of actors that it had spawned before and after."""
    address = server[1]
    audience = Audience(address)
    audience.start()
    assert audience.ready.wait(PATIENCE)
    act, error = ENDS[end]

    def boot() -> None:
        parting: list[Ref] = []

        def say(who: str) -> None:
            for ds in parting:
                send(ds, bye(who))

        def neighbour(name: str) -> None:
            prevent_inert_check()
            kind(lambda: say(name))

        spawn(neighbour, "before")

        @connect(address, attempts=1)
        def connected(ds: Ref) -> None:
            parting.append(ds)
            kind(lambda: send(ds, bye("connected")))

            @react
            def below() -> None:
                prevent_inert_check()
                kind(lambda: send(ds, bye("below")))

            spawn(neighbour, "after")
            spawn(neighbour, "linked", linked=True)
            sync(ds, lambda: supervise(act, intensity=0))

        kind(lambda: say("boot"))

    with pytest.raises(error):
        run(boot)
    audience.end()
    assert sorted(audience.heard) == ["after", "before", "below", "boot", "connected", "linked"]


@pytest.mark.parametrize("end", ENDS)
def test_a_broker_in_the_program_passes_on_what_stop_handlers_say(end: str) -> None:
    """Its sessions end after all actors, as those of a client do."""
    act, error = ENDS[end]
    listening: list[Audience] = []

    def boot() -> None:
        ds = dataspace()

        def opened(addresses: list[str]) -> None:
            audience = Audience(addresses[0])
            listening.append(audience)
            audience.start()

            @linked_task
            async def ready() -> bool:
                await trio.to_thread.run_sync(audience.ready.wait)
                broker.enter(lambda: supervise(act, intensity=0))
                return True

        for name in ("before", "after"):
            spawn(lambda name=name: (prevent_inert_check(), on_stop(lambda: send(ds, bye(name)))))
            if name == "before":
                broker = Broker(["tcp://127.0.0.1:0"], ds=ds, opened=opened)
                spawn(broker)
        on_stop(lambda: send(ds, bye("boot")))
        prevent_inert_check()

    with pytest.raises(error):
        run(boot)
    (audience,) = listening
    audience.join(PATIENCE)
    assert isinstance(audience.failure, ConnectError)
    assert sorted(audience.heard) == ["after", "before", "boot"]
