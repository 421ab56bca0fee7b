"""A dataspace of another process under one reference, whatever becomes of the connection.

``@connect`` gives a new reference with each connection, and a facet that lives as long.  Who is not an actor, a web
page, a notebook, wants one that stays: what is asserted to it is asserted over each connection, interests among it, so
that observers hear what is there, that it is gone when the connection is lost, and again what is there.

Within a turn::

    remote = open_remote("tcp://127.0.0.1:8001")
    dataflow(lambda: print(remote.state.value))
    assert_(remote.ds, Present("Alice"))

While there is no connection a message is lost, with a line in the log, and a ``sync`` fails.

Contract: in the turn in which the last connection goes, ``state`` is no longer ``connected``, and what came over it is
gone; so nothing of a lost connection is ever shown as current.

Source: ``docs/design/hosts.md``, "The state of a connection".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Unpack

from attrs import frozen

from relay.capabilities.certificate import Capability
from relay.capabilities.sturdy import DEFAULT
from relay.client import ConnectionState, ConnectOptions, connect
from relay.session.syncs import Asker
from syndicate.actors.field import Field, field
from syndicate.actors.turn import Entity, Handle, current
from syndicate.actors.verbs import assert_, on_stop, prevent_inert_check, ref
from syndicate.index.event import MESSAGE
from syndicate.log import logger
from syndicate.values.record import record
from syndicate.values.value import Assertion, Frozen, Ref


@record("connection")
class Connection:
    """Asserted where *report* says: how the connection to an address is.

    >>> Connection("tcp://127.0.0.1:8001", ConnectionState("connecting")).address
    'tcp://127.0.0.1:8001'
    """

    address: str
    state: ConnectionState


@frozen
class Remote:
    """A dataspace of another process, made by :func:`open_remote`: ``ds``, and the ``state`` of the connection."""

    ds: Ref
    state: Field[ConnectionState]


class _Standing(Entity):
    """Passes on to the newest connection what is asserted."""

    raw: ClassVar[bool] = True

    def __init__(self, address: str) -> None:
        self._address = address
        self._wanted: dict[Assertion, Frozen] = {}
        self._passed: dict[Assertion, Handle] = {}
        self._there: Ref | None = None

    def arrive(self, there: Ref) -> None:
        """In the facet of a new connection."""
        turn = current("connect")
        self._there = there
        self._passed = {handle: turn.assert_form(turn.facet, there, form) for handle, form in self._wanted.items()}
        self._facet = turn.facet

        @on_stop
        def leave() -> None:
            if self._there is there:
                self._there = None
                self._passed = {}

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        self._wanted[handle] = form
        if self._there is not None:
            self._passed[handle] = current("connect").assert_form(self._facet, self._there, form)

    def retract(self, handle: Assertion) -> None:
        del self._wanted[handle]
        passed = self._passed.pop(handle, None)
        if passed is not None:
            passed.retract()

    def message(self, form: Frozen) -> None:
        if self._there is None:
            logger(peer=self._address).warning("a message was lost: there is no connection")
        else:
            current("connect").enqueue(self._there.facet.actor, (MESSAGE, self._there, form, None))

    def check_message(self, form: Frozen) -> None:
        entity = self._there and self._there.entity
        if isinstance(entity, Entity):
            entity.check_message(form)

    def sync(self, peer: Ref) -> None:
        turn = current("connect")
        if self._there is None:
            turn.send(peer, False)
        else:
            turn.sync(self._there, Ref(peer.facet, _Asker(peer, self._passed)))  # there it outlives this


class _Asker(Asker):
    """Who asks through a reference that outlives connections: what is asserted there is *passed* for several actors."""

    def __init__(self, peer: Ref, passed: Mapping[Assertion, Handle]) -> None:
        super().__init__(peer)
        self._passed = passed

    def asserts(self, handle: Assertion) -> bool:
        return any(passed is handle and super(_Asker, self).asserts(own) for own, passed in self._passed.items())


def open_remote(
    address: str,
    cap: str | Capability | None = None,
    *,
    report: Ref | None = None,
    **options: Unpack[ConnectOptions],
) -> Remote:
    """Connect in the current facet, and again after each loss, as :func:`~relay.client.connect` does.

    ``.state`` is a field of the current actor; with *report*, a dataspace, it is asserted there as a
    :class:`Connection`.  Without *cap*, the capability that ``syndicate-server`` has by default.
    """
    state: Field[ConnectionState] = field(ConnectionState("connecting"), name="connection.state")
    entity = _Standing(address)
    prevent_inert_check()
    connect(address, DEFAULT if cap is None else cap, told=state.set, **options)(entity.arrive)
    if report is not None:
        assert_(report, lambda: Connection(address, state.value))
    return Remote(ref(entity), state)


__all__ = ["Connection", "ConnectionState", "Remote", "open_remote"]
