"""A small server with a durable dataspace, to be killed: ``python -m tests.relay.durable_server DIR SOCKET [BYTES]``.

It serves ``"syndicate"`` and ``"durable"`` by the empty key.  BYTES is the most that a file of it may hold.  Without
arguments it is a nest: it has imported everything, and for each line ``DIR SOCKET`` that it reads it forks a server and
prints its number, because a test that kills hundreds has no time for so many starts.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from functools import partial

import trio

from relay.capabilities.gatekeeper import Gatekeeper
from relay.cli.exit_codes import fail, run_command
from relay.server.durable import durable
from relay.server.journal import Journal, StateDirectory
from relay.session.link import open_link
from relay.transport import Address, Stream, open_listener
from syndicate.actors.dataspace import dataspace
from syndicate.actors.facet import Facet
from syndicate.actors.verbs import current_facet, linked_task, react, ref, spawn, stop_actor
from syndicate.errors import SyndicateError
from syndicate.log import configure
from syndicate.values.value import Ref


def serve(directory: str, socket: str) -> None:
    """Serve until killed."""
    configure("json")
    journal = Journal(StateDirectory(directory))
    try:
        journal.open()
    except SyndicateError as e:
        fail("durable-server", e)
    run_command("durable-server", False, partial(boot, journal, socket))


def boot(journal: Journal, socket: str) -> None:
    """Be the first actor."""
    ds = dataspace()
    facet = current_facet()

    def ready() -> None:
        gatekeeper = ref(Gatekeeper({"syndicate": (b"", ds), "durable": (b"", entity)}))
        linked_task(listen, facet, gatekeeper, socket)

    entity = durable(ds, journal, ready=ready)
    linked_task(ended, partial(facet.enter, stop_actor))


async def ended(stop: partial[None]) -> None:
    """Stop in order at SIGTERM."""
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            stop()


async def listen(facet: Facet, gatekeeper: Ref, socket: str) -> None:
    """Accept."""

    async def welcome(stream: Stream) -> None:
        taken = trio.Event()

        def session() -> None:
            open_link(stream, publish=gatekeeper)
            taken.set()

        facet.enter(lambda: react(partial(spawn, session, name=f"session {stream.name}", linked=True)))
        await taken.wait()

    listener = await open_listener(Address.parse(f"unix://{socket}"))
    try:
        await listener.serve(welcome)
    finally:
        listener.close()


def nest() -> None:
    """Fork a server for each line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            serve(*line.split())
        else:
            print(child, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
    if len(sys.argv) > 1:
        serve(*sys.argv[1:3])
    else:
        nest()
