"""The broker: a dataspace that other processes connect to.

>>> from syndicate import run, stop_actor
>>> def boot():
...     Broker(["tcp://127.0.0.1:0"], opened=lambda addresses: (print(len(addresses)), stop_actor()))()
>>> run(boot)
1

It is a boot function: call it in a turn, or ``spawn`` it.  Each connection is an actor of its own, so that whatever a
peer does ends that peer's session and nothing else; all of them end with the facet that the broker runs in.

While it runs it can be given another configuration (:meth:`Broker.reload`), which sessions that are there do not
notice, and it can be brought to an end in order (:meth:`Broker.drain`).

Contract: after a drain, everything that a peer was notified is done *is* done, all that other peers were notified of
because of it has been sent to those who took it in time, and each peer has seen the end of its connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from sys import intern
from typing import Final, get_args

import trio
from attrs import asdict, define, evolve, field

from relay.capabilities.caveats import NOT_AFTER
from relay.capabilities.forwarding import innermost
from relay.capabilities.gatekeeper import BindSpace, Gatekeeper, Replies, bind
from relay.capabilities.session_limits import Turnstile
from relay.capabilities.sturdy import SturdyRef, mint, revocation
from relay.protocol.limits import DEFAULT as DEFAULT_LIMITS
from relay.protocol.limits import Limits
from relay.server.census import Census, Draining, OpenListener, Overloaded, Peer, SpaceThere
from relay.server.config import Config, Listening
from relay.server.log_limits import Remarks
from relay.server.operators import Minting, Operators
from relay.server.overload import Governor
from relay.server.quotas import NONE, Account, MeteredEntity
from relay.server.throttle import Tap
from relay.session.link import CLOSING, open_link
from relay.transport import DEFAULT, Address, Listener, Stream, Tls, open_listener
from relay.transport.listener import AtOnce
from relay.transport.tls import Identity
from relay.transport.untrusted_peers import Guest, Lobby
from syndicate.actors.dataspace import Dataspace, dataspace
from syndicate.actors.facet import Facet
from syndicate.actors.system import system_of
from syndicate.actors.turn import Handle, current
from syndicate.actors.verbs import assert_, current_facet, linked_task, on_stop_or_crash, ref, trio_task
from syndicate.errors import AddressError, CertificateError, ListenError
from syndicate.introspect import introspection
from syndicate.log import logger
from syndicate.outside import outside
from syndicate.values.text import unparse_form
from syndicate.values.value import Frozen, Record, Ref, Symbol, Value, freeze

_NOBODY: Final = Symbol("no-client-certificate")
_NOTHING: Final = Symbol("nothing-for-this-certificate")

DEPARTING: Final = 4
"""As long as so many sessions of those who lost their place have not ended, nobody is let in between two turns."""

POLL: Final = 0.02
"""Seconds between two looks at what still waits for peers, in a drain."""


@define(eq=False)
class Door:
    """A listener that is open; *proof* is its certificate, as it was read."""

    listening: Listening
    listener: Listener
    proof: bytes = field(repr=False)
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    shown: Handle | None = None
    address: str = field(init=False)
    """The actual one."""

    def __attrs_post_init__(self) -> None:
        self.address = str(self.listener.address)


class Broker:
    """Listens on addresses, and publishes one dataspace: *ds*, or else its own.

    *limits* are those of each peer.  Peers resolve the dataspace as ``"syndicate"``, by *key*.  The empty key lets
    everybody in, and so :class:`~syndicate.errors.AddressError` is raised for an address that other machines can
    reach.  *opened* is called, in a turn, with the actual addresses once all are open.  A
    :class:`~syndicate.errors.ListenError` crashes the actor.

    ``census`` says what there is; ``space`` is where local code may bind more
    (:func:`relay.capabilities.gatekeeper.bind`);
    ``config`` is all of the configuration, if it came from one (:meth:`configured`); ``deserted`` is set when the last
    peer has gone and no other can come, as it is with ``stdio:``.
    """

    def __init__(
        self,
        listen: Sequence[str] = (DEFAULT,),
        *,
        ds: Ref | None = None,
        key: bytes = b"",
        limits: Limits = DEFAULT_LIMITS,
        opened: Callable[[list[str]], object] = lambda addresses: None,
    ) -> None:
        listeners = tuple(Listening(Address.parse(text)) for text in listen)
        for listening in listeners:
            if not (key or listening.address.local):
                raise AddressError(
                    f"{listening.address} can be reached from other machines, and the empty key lets everybody in: "
                    "listen on 127.0.0.1, ::1 or a Unix socket"
                )
        self.config = Config(listen=listeners, key=key, limits=limits)
        self.ds = ds
        self.space: BindSpace | None = None
        self.shown: Callable[[], Iterable[Ref]] = self._published
        """The dataspaces that may be asked about."""
        self.census = Census()
        self.admin_key = outside().token(32)
        self.draining = False
        self.deserted = trio.Event()
        self._opened = opened
        self._more: dict[str, Ref] = {}
        self._binds: dict[tuple[str, bytes], Handle] = {}
        self._binder: Ref
        self._console: Ref
        self._doors: list[Door] = []
        self.lobby = Lobby(limits.strangers, self.config.overload.strangers)
        self.governor = Governor(
            self.census, self.config.overload, changed=self._overloaded, cut=_cut, lobby=self.lobby
        )
        self._overloads: list[Handle] = []
        self._gatekeepers: dict[str, Ref] = {}
        self.turnstile = Turnstile(**asdict(self.config.connections))
        self._remarks = Remarks(trio.current_time, _disconnected)
        self._sessions: dict[Facet | None, Peer] = {}
        self._leaving: set[Peer] = set()  # whose place another has, and whose session has not ended yet
        self._facet: Facet
        self._nursery: trio.Nursery

    @classmethod
    def configured(cls, config: Config, *, opened: Callable[[list[str]], object] = lambda addresses: None) -> Broker:
        """A broker as *config* has it, which was checked when it was read."""
        broker = cls([], opened=opened)
        broker.config = config
        broker.admin_key = config.admin_key or broker.admin_key
        broker.governor.marks = config.overload
        broker.turnstile = Turnstile(**asdict(config.connections))
        broker.lobby.places, broker.lobby.room = config.limits.strangers, config.overload.strangers
        return broker

    @property
    def addresses(self) -> list[str]:
        """Where it listens."""
        return [door.address for door in self._doors]

    @property
    def closed(self) -> list[Listening]:
        """Where it should listen and does not."""
        opened = [door.listening for door in self._doors]
        return [listening for listening in self.config.listen if listening not in opened]

    def enter(self, fn: Callable[[], object]) -> None:
        """Run *fn* in a turn of the broker's."""
        self._facet.enter(fn)

    def __call__(self, more: Mapping[str, Ref] | None = None) -> None:
        """Begin, in the current facet; *more* are other references to be published by the same key."""
        if self.ds is None:
            self.ds = dataspace()
        self._facet = current_facet()
        self._more = dict(more or {})
        self.census.open()
        on_stop_or_crash(self._end_sessions)
        self._publish()
        trio_task(self._serve)

    def _published(self) -> Iterable[Ref]:
        return (space.ref for space in self.census.spaces.values())

    def _publish(self) -> None:
        """Let sessions that begin from now on resolve what there is, in the words of their door."""
        if self.space is None:
            assert self.ds is not None
            assert self.census.admin is not None
            key = self.config.key
            names = {name: (key, target) for name, target in {"syndicate": self.ds, **self._more}.items()}
            operators = Ref(self.census.admin.facet, Operators(self.census.admin, self._kick), True)
            names["admin"] = (self.admin_key, operators)
            if isinstance(self.ds.entity, Dataspace):
                tables = {"sessions": self.census.sessions, "figures": self.census.figures}
                questions = introspection(None, tables, self.shown)
                names["introspect"] = (self.admin_key, questions)
                shown = {"introspect": names["introspect"]}
                if self.config.admin and self.config.admin.write:
                    shown["syndicate"] = names["syndicate"]
                    shown["mint"] = (self.admin_key, ref(Minting(self._keys)))
                self._console = ref(Gatekeeper(BindSpace(shown), wrong=self._guess))
            self.space = BindSpace(names)
            self._binder = ref(self.space)
            self.census.spaces["syndicate"] = SpaceThere(self.ds, Account(self.config.quota, trio.current_time))
        self.space.revoke(self.config.revoked)
        self._bind()
        for replies in get_args(Replies):
            keeper = Gatekeeper(
                self.space,
                replies=replies,
                limits=self.config.limits,
                admit=self._admit,
                meter=self._meter,
                wrong=self._guess,
                certified=self._certified,
            )
            self._gatekeepers[replies] = ref(keeper)

    def _keys(self) -> dict[str, bytes]:
        """The keys in force, by the names of dataspaces."""
        return {"syndicate": self.config.key, **{space.name: space.key for space in self.config.spaces}}

    def _bind(self) -> None:
        """Give out the dataspaces of the configuration by its keys, and those of an earlier one no more."""
        spaces, config = self.census.spaces, self.config
        wanted = {("syndicate", key): None for key in config.older}
        spaces["syndicate"].account.quota = config.quota
        for space in config.spaces:
            there = spaces.get(space.name)
            if there is None:
                there = spaces[space.name] = SpaceThere(dataspace(space.name), Account(space.quota, trio.current_time))
            there.account.quota = space.quota
            wanted |= {(space.name, key): None for key in (space.key, *space.older)}
        for name, key in self._binds.keys() - wanted.keys():
            self._binds.pop((name, key)).retract()
        for name, key in wanted.keys() - self._binds.keys():
            self._binds[name, key] = bind(self._binder, name, key, spaces[name].ref)
        for name in spaces.keys() - {"syndicate", *[space.name for space in config.spaces]}:
            del spaces[name]

    def _meter(self, session: Facet | None, target: Ref) -> Ref | str:
        """What a session is given in place of a reference: one that charges the account of the dataspace to which it
        leads, whatever its name.
        """
        ds, peer = innermost(target), self._sessions.get(session)
        space = next((space for space in self.census.spaces.values() if innermost(space.ref) is ds), None)
        if space is None or peer is None or space.account.quota == NONE:
            return target
        if not any(each is space for each in peer.spaces):
            why = space.account.enter()
            if why:
                self.census.hit(peer, why, why)
                return why
            peer.spaces += (space,)
        return Ref(target.facet, MeteredEntity(target, space.account, peer.cut), True)

    def _certified(self, session: Facet | None, name: Frozen) -> Frozen:
        """Which reference the certificate stands for that a peer has shown, to the dataspace *name*; or why none."""
        peer = self._sessions.get(session)
        if peer is None or peer.tap.identity is None:
            return _NOBODY
        identity = peer.tap.identity
        ref = self._stands_for(identity, name)
        if ref is None:
            logger(peer=peer.name).warning(
                "nothing for a certificate", names=identity.names, dataspace=unparse_form(name, str)
            )
            return _NOTHING
        peer.certified = (*(each for each in peer.certified if each[0] != name), (name, ref))
        return freeze(ref)

    def _stands_for(self, identity: Identity | None, name: Frozen) -> SturdyRef | None:
        """The reference for a certificate: narrowed as the configuration says, and valid as long as it is."""
        keys = {space.name: space.key for space in self.config.spaces}
        keys |= dict.fromkeys(("syndicate", "durable"), self.config.key)
        keys |= dict.fromkeys(("admin", "introspect"), self.admin_key)
        for client in self.config.clients:
            if identity and client.dataspace == name and client.certificate in identity.names:
                ends = Record(NOT_AFTER, [identity.ends])
                return mint(client.dataspace, keys[client.dataspace]).attenuate(*client.caveats, ends)
        return None

    def _guess(self, session: Facet | None) -> float:
        """A reference did not hold: the seconds until that is answered."""
        peer = self._sessions.get(session)
        if peer is None:
            return 0.0
        peer.guesses += 1
        if peer.guesses > self.config.limits.guesses:
            peer.cut("guesses", f"more than {self.config.limits.guesses} references that do not hold")
        return self.census.guesses.wrong(_origin(peer))

    def _admit(self, session: Facet | None, oid: Frozen, lineage: Sequence[bytes]) -> str:
        """Why a session may not have what it has shown a valid reference to; nothing if it may."""
        peer = self._sessions.get(session)
        if peer is None:
            return ""
        new = (lineage[-1], oid) not in peer.shown
        if new and len(peer.shown) >= self.config.limits.resolves:
            why = "too-many-capabilities"  # each is remembered as long as the session lasts
        else:
            why = self.turnstile.enter(session, _origin(peer), lineage)
        if why:
            self.census.hit(peer, why, why)
            logger(peer=peer.name).warning("not let in", reason=why)
        elif new:
            peer.shown += ((lineage[-1], oid),)
        return why

    async def welcome_page(self, stream: Stream, address: str) -> None:
        """Let a page of the console in, which can ask questions; and nothing else, unless the configuration says so."""
        await self.welcome(stream, address, lambda: self._console)

    def refuse(self, name: str, why: Value) -> None:
        """Give out what is published as *name* no more, and say *why* to whoever asks for it or has it; in a turn."""
        if self.space is not None:
            self.space.refuse(name, why)

    async def _serve(self) -> None:
        try:
            for listening in self.config.listen:
                self._doors.append(await self._open(listening, listening.address))
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                for door in self._doors:
                    self._begin(door)
                self._facet.enter(partial(self._opened, self.addresses))
                nursery.start_soon(self.governor.run)
        finally:
            for door in self._doors:
                door.listener.close()

    # ------------------------------------------------------------------------------------------------ doors

    async def _open(self, listening: Listening, where: Address) -> Door:
        """Open a door at *where*, the actual place of what *listening* names."""
        proof = _proof(listening)
        tls = Tls(listening.cert, listening.key, listening.client_ca or None) if listening.cert else None
        listener = await open_listener(
            where, tls=tls, limits=self.config.limits, origins=listening.origins, lobby=self.lobby
        )
        return Door(listening, listener, proof)

    def _begin(self, door: Door) -> None:
        """Let peers in by a door."""
        self._nursery.start_soon(self._attend, door)
        self.census.listeners.append(door.address)
        self._facet.enter(partial(self._show, door))

    def _show(self, door: Door) -> None:
        if self.census.admin is not None and not door.scope.cancel_called:
            door.shown = assert_(self.census.admin, OpenListener(door.address))

    async def _attend(self, door: Door) -> None:
        with door.scope:
            try:
                at_once = AtOnce(system_of(self._facet.actor), self._may_come, partial(self._welcome_now, door))
                await door.listener.serve(partial(self._welcome, door), at_once)
                left = True  # nobody else can come: it was our own standard streams
            except* OSError as group:  # the others go on; readiness says that this one is not open
                logger().error("no longer listening", address=door.address, reason=str(group.exceptions[0]))
                left = False
            if door in self._doors:
                self._close(door)
            if left and not self._doors:
                self.deserted.set()

    def _close(self, door: Door) -> None:
        """Let nobody in by it any more; who is in stays."""
        door.scope.cancel()
        door.listener.close()
        self._doors.remove(door)
        self.census.listeners.remove(door.address)
        if door.shown is not None:
            self._facet.enter(door.shown.retract)

    async def _welcome(self, door: Door, stream: Stream) -> None:
        """Let a session take *stream* over, by a door."""
        await self.welcome(stream, door.address, partial(self._gatekeeper, door))

    def _may_come(self) -> bool:
        """Whether somebody may be let in without a wait: who comes must not outrun those who go."""
        return self.governor.admits and len(self._leaving) < DEPARTING and not system_of(self._facet.actor).stopped

    def _welcome_now(self, door: Door, stream: Stream) -> None:
        """The same, while there is space."""
        peer, guest = self._arrived(stream, door.address)
        self._begin_session(peer, guest, partial(self._gatekeeper, door))

    def _gatekeeper(self, door: Door) -> Ref:
        return self._gatekeepers[door.listening.replies]

    async def welcome(self, stream: Stream, address: str, gatekeeper: Callable[[], Ref]) -> None:
        """Let a session take *stream* over, which has come by *address*; it begins at the *gatekeeper*."""
        peer, guest = self._arrived(stream, address)
        begun = False
        try:
            await self.governor.admission()
            if not system_of(self._facet.actor).stopped:
                self._begin_session(peer, guest, gatekeeper)
                begun = True
        finally:
            if not begun:  # the broker ends
                self._leaving.discard(peer)
                await peer.tap.close()

    def _arrived(self, stream: Stream, address: str) -> tuple[Peer, Guest]:
        """Give who has come a place in the lobby."""
        peer = Peer(Tap(stream, self.census.traffic), address)
        guest = self.lobby.enter(partial(self._evict, peer))
        peer.tap.ended = partial(self.lobby.leave, guest)  # who is sent away has its place until it has gone
        return peer, guest

    def _begin_session(self, peer: Peer, guest: Guest, gatekeeper: Callable[[], Ref]) -> None:
        """Spawn the actor of a session."""
        boot = partial(self._boot_session, peer, guest, gatekeeper)
        system_of(self._facet.actor).spawn(boot, name=f"session {peer.name}", daemon=True)

    def _boot_session(self, peer: Peer, guest: Guest, gatekeeper: Callable[[], Ref]) -> None:
        """The first turn of a session's actor."""
        if not self._facet.alive:  # the broker has ended meanwhile
            linked_task(peer.tap.close)
            return
        facet = current_facet()
        self._sessions[facet] = peer
        on_stop_or_crash(partial(Broker._gone, self, facet, peer))
        peer.session = open_link(
            peer.tap,
            publish=gatekeeper(),
            limits=self.config.limits,
            admitted=partial(self._admitted, peer, guest),
            charge=partial(self.lobby.charge, guest),
        )
        self.census.arrived(peer)

    def _admitted(self, peer: Peer, guest: Guest) -> None:
        """It has shown a capability, and needs no place in the lobby any more."""
        self.lobby.leave(guest)
        peer.tap.ended = int

    def _gone(self, facet: Facet, peer: Peer) -> None:
        """The last turn of a session's actor."""
        self._sessions.pop(facet, None)
        self._leaving.discard(peer)
        self.turnstile.leave(facet)
        for space in peer.spaces:
            space.account.connections -= 1
        self.census.left(peer)
        session = peer.session
        if session is None or session.reason is None:
            return
        if session.exceeded:
            self.census.hit(peer, session.exceeded, session.reason)
        if session.exceeded or not self.draining:
            self._remarks.remark("untrusted" if session.untrusted else "peer", (peer.name, session.reason))

    def _end_sessions(self) -> None:
        """The broker ends, and with it all sessions."""
        turn = current("end")
        for facet in self._sessions:
            if facet is not None:
                facet.enter(partial(facet.fail, turn, None))

    def _evict(self, peer: Peer) -> None:
        """Close the connection of an untrusted peer whose place is needed, without last words: they can take a
        second.
        """
        if peer.session is not None and peer.session.reason is None:
            peer.session.reason, peer.session.exceeded = "another untrusted peer needed the place", "strangers"
        if peer.session is None or peer.session.facet.alive:
            self._leaving.add(peer)
        self._nursery.start_soon(peer.tap.close)

    def _kick(self, name: str) -> int:
        """End the sessions of that name because an operator says so; returns how many."""
        there = [peer.session for peer in self.census.peers.values() if peer.name == name]
        sessions = [session for session in there if session is not None and session.reason is None]
        logger().warning("kicked", peer=name, sessions=len(sessions))
        for session in sessions:
            session.cut("kicked", "an operator of the server has ended this session")
        return len(sessions)

    # ------------------------------------------------------------------------------------------------ overload

    def _overloaded(self, over: tuple[Overloaded, ...]) -> None:
        def show() -> None:
            assert self.census.admin is not None
            for handle in self._overloads:
                handle.retract()
            self._overloads = [assert_(self.census.admin, each) for each in over]

        self._facet.enter(show)

    # ------------------------------------------------------------------------------------------------ reload

    async def reload(self, config: Config) -> None:
        """Go on as *config* has it: doors are opened and closed, certificates read again; the limits are those of
        sessions that begin from now on.  Sessions that are there stay.  A door that cannot be opened is logged.

        ``key_file``, ``state``, ``salvage`` and ``admin`` stay as they are until the next start, which is logged too.
        """
        fixed = {name: getattr(self.config, name) for name in ("key", "state", "salvage", "admin")}
        for name, value in fixed.items():
            if getattr(config, name) != value:
                logger().warning("takes effect with the next start", name="key_file" if name == "key" else name)
        self.config = evolve(config, **fixed)
        self.governor.marks = config.overload
        most = config.connections
        self.turnstile.total, self.turnstile.address = most.total, most.address
        self.turnstile.capability = most.capability
        self.lobby.places, self.lobby.room = config.limits.strangers, config.overload.strangers
        self._facet.enter(self._publish)
        for peer in self.census.peers.values():
            if any(self._stands_for(peer.tap.identity, name) != ref for name, ref in peer.certified):
                peer.cut("certificate", "what the certificate stands for is another thing now: connect again")
            elif self._has_revoked(peer):
                peer.cut("revoked", "a capability that this session has shown is revoked")
        wanted = [listening for listening in config.listen if self._may_open(listening)]
        unchanged = [door for door in self._doors if door.listening in wanted and door.proof == _proof(door.listening)]
        before = [door for door in self._doors if door not in unchanged]
        for door in before:
            self._close(door)
        for listening in wanted:
            if listening not in [door.listening for door in unchanged]:
                await self._reopen(listening, before)

    def _has_revoked(self, peer: Peer) -> bool:
        """Whether it has a dataspace itself by what is revoked: nothing is before that which could stop."""
        whole = [sig for sig, oid in peer.shown if self.space is not None and self.space.is_whole(oid, sig)]
        return not {*map(revocation, whole)}.isdisjoint(self.config.revoked)

    def _may_open(self, listening: Listening) -> bool:
        """Whether the key that is in force, which may not be that of the new configuration, allows it."""
        if self.config.key or listening.address.local:
            return True
        logger().error(
            "cannot listen", reason=f"{listening.address} needs a key, and key_file takes effect with the next start"
        )
        return False

    async def _reopen(self, listening: Listening, before: Sequence[Door]) -> None:
        """Open a door; if that fails, the one that was at its place."""
        old = next((door for door in before if door.listening.address == listening.address), None)
        where = old.listener.address if old is not None else listening.address  # its port may have been any
        for each in (listening, *([old.listening] if old is not None else [])):
            try:
                door = await self._open(each, where)
            except (ListenError, CertificateError) as e:
                logger().error("cannot listen", reason=str(e))
                continue
            self._doors.append(door)
            self._begin(door)
            logger().info("listening", address=door.address)
            return

    # ------------------------------------------------------------------------------------------------ the end

    async def drain(self, seconds: float, flush: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint) -> None:
        """Bring it to an end within *seconds*: let nobody in, read no more, do what was received, *flush* what is to be
        kept, send what waits for peers, and end their sessions.
        """
        self.draining = self.census.draining = True
        deadline = trio.current_time() + seconds
        for door in list(self._doors):
            self._close(door)
        self._facet.enter(lambda: self.census.admin and assert_(self.census.admin, Draining()))
        for tap in self.census.peers:
            tap.shut()
        with trio.move_on_at(max(deadline - CLOSING, deadline - seconds / 2)):
            await system_of(self._facet.actor).settle()
            await flush()
            await self._quiet()
        peers = list(self.census.peers.values())
        for peer in peers:
            if peer.session is not None:
                peer.session.facet.enter(partial(peer.session.end, "the server is ending"))
        with trio.move_on_at(deadline):
            for peer in peers:
                await peer.tap.wait_closed()
            return
        for peer in peers:
            await peer.tap.close()

    async def _quiet(self) -> None:
        """Wait until nothing is left to do, nor to be sent."""
        system = system_of(self._facet.actor)
        while True:
            await system.settle()
            if not self.census.queued():
                return
            await trio.sleep(POLL)


def _origin(peer: Peer) -> str:
    """The address that a peer comes from, without its port; of a Unix socket, that of the socket."""
    if peer.listener.startswith(("unix:", "stdio:")):
        return peer.listener
    return intern(peer.name.rpartition(":")[0])


def _disconnected(line: tuple[str, str], left_out: int) -> None:
    """Log that a peer has gone, by its name and why."""
    name, why = line
    more = {"left_out": left_out} if left_out else {}
    logger(peer=name).warning("disconnected", reason=why, **more)


def _cut(peer: Peer, why: str) -> None:
    if peer.session is not None:
        peer.session.cut("overload", why)


def _proof(listening: Listening) -> bytes:
    """What is in the files of a certificate now; nothing if they cannot be read, which is found out elsewhere."""
    with suppress(OSError):
        return b"".join(
            Path(name).read_bytes() for name in (listening.cert, listening.key, listening.client_ca) if name
        )
    return b""
