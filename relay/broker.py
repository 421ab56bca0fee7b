"""The broker: a dataspace that other processes connect to.

>>> from syndicate import run, stop_actor
>>> def boot():
...     Broker(["tcp://127.0.0.1:0"], opened=lambda addresses: (print(len(addresses)), stop_actor()))()
>>> run(boot)
1

It is a boot function: call it in a turn, or ``spawn`` it.  Each connection is an actor of its own, so that whatever a
peer does ends that peer's session and nothing else; all of them end with the facet that the broker runs in.

Source: the project's design (the relay); the reference, section 6.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial

import trio

from relay.codec import DEFAULT as DEFAULT_LIMITS
from relay.codec import Limits
from relay.gatekeeper import Gatekeeper
from relay.link import OUTBOX, open_link
from relay.transport import DEFAULT, Address, Listener, Stream, open_listener
from syndicate.dataspace import dataspace
from syndicate.errors import AddressError
from syndicate.facet import Facet
from syndicate.log import logger
from syndicate.values import Ref
from syndicate.verbs import current_facet, linked_task, on_stop_or_crash, react, ref, spawn


class Broker:
    """Listens on addresses, and publishes one dataspace: *ds*, or else its own.

    *limits* are those of a packet, *outbox* the bytes that may wait for a peer that reads too slowly.

    Peers resolve it as ``"syndicate"``, by *key*.  The empty key lets everybody in, and so
    :class:`~syndicate.errors.AddressError` is raised for an address that other machines can reach.  *opened* is called,
    in a turn, with the actual addresses once all are open.  A :class:`~syndicate.errors.ListenError` crashes the actor.
    """

    def __init__(
        self,
        listen: Sequence[str] = (DEFAULT,),
        *,
        ds: Ref | None = None,
        key: bytes = b"",
        limits: Limits = DEFAULT_LIMITS,
        outbox: int = OUTBOX,
        opened: Callable[[list[str]], object] = lambda addresses: None,
    ) -> None:
        self.listen = [Address.parse(text) for text in listen]
        for address in self.listen:
            if not (key or address.local):
                raise AddressError(
                    f"{address} can be reached from other machines, and the empty key lets everybody in: listen on "
                    "127.0.0.1, ::1 or a Unix socket"
                )
        self.ds = ds
        self._key = key
        self._limits = limits
        self._outbox = outbox
        self._opened = opened
        self.addresses: list[str] = []

    def __call__(self) -> None:
        """Begin, in the current facet."""
        if self.ds is None:
            self.ds = dataspace()
        gatekeeper = ref(Gatekeeper({"syndicate": (self._key, self.ds)}))
        linked_task(self._serve, current_facet(), gatekeeper)

    async def _serve(self, facet: Facet, gatekeeper: Ref) -> None:
        with contextlib.ExitStack() as doors:
            listeners: list[Listener] = []
            for address in self.listen:
                listener = await open_listener(address)
                doors.callback(listener.close)
                listeners.append(listener)
            self.addresses = [str(listener.address) for listener in listeners]
            facet.enter(partial(self._opened, self.addresses))
            async with trio.open_nursery() as nursery:
                for listener in listeners:
                    nursery.start_soon(listener.serve, partial(self._welcome, facet, gatekeeper))

    async def _welcome(self, facet: Facet, gatekeeper: Ref, stream: Stream) -> None:
        """Let a session take *stream* over."""
        taken = trio.Event()

        def serve() -> None:
            taken.set()
            session = open_link(stream, publish=gatekeeper, limits=self._limits, outbox=self._outbox)

            @on_stop_or_crash
            def gone() -> None:
                if session.reason is not None:
                    logger(peer=stream.name).warning("disconnected", reason=session.reason)

        try:
            facet.enter(lambda: react(partial(spawn, serve, name=f"session {stream.name}", linked=True)))
            await taken.wait()
        finally:
            if not taken.is_set():  # the broker ends
                await stream.close()
