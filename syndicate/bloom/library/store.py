"""A replicated key-value store: versions under vector clocks, quorums of replicas, and repair where somebody reads.

A replica keeps, for each key, an ``ldom``: sets of values under vector clocks.  A write that knows what it replaces has
a greater clock, and wins; writes that knew nothing of each other stay both, as siblings, and who reads them and writes
replaces both.  Replicas merge what they get, in any order, and as often as it comes.

A client writes to all replicas, and ``written`` has the write when enough of them have it; it asks all, and ``read``
has the merged versions when enough have replied, and better ones if more do.  Enough is a majority, unless a subclass
says otherwise; as long as the two quorums together are more than all, a read sees each write that was finished before.
A replica that replied with less than others is sent what it lacks.

>>> from syndicate.bloom import Network
>>> class Ann(Client):
...     replicas = ("x", "y", "z")
>>> ann, *replicas = Ann(address="ann"), *(Replica(address=name) for name in Ann.replicas)
>>> net = Network(ann, *replicas, seed=4)
>>> net.part(["z"]); write = ann.put("k", "tea"); net.run(); (write,) in ann.written, len(replicas[2].kept)
(True, 0)
>>> net.part(["x"]); read = ann.get("k"); net.run(); sorted(ann.values_of(read)), len(replicas[2].kept)
(['tea'], 1)

Source: Conway et al. 2012 (the key-value store); DeCandia et al. 2007; ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import ClassVar

from syndicate.bloom import Bloom, bloom, channel, interface, ldom, lset, periodic, table
from syndicate.lattice import Clock, DomPair, Set
from syndicate.values.value import Value

# fmt: off


class Wires(Bloom):
    """What replicas and clients send each other."""

    store = channel(["@replica", "client", "ident"], ["key", "version"], version=ldom)
    stored = channel(["@client", "ident", "replica"], [])
    fetch = channel(["@replica", "client", "ident"], ["key"])
    found = channel(["@client", "ident", "replica"], ["key", "version"], version=ldom)
    repair = channel(["@replica", "key"], ["version"], version=ldom)


class Replica(Wires):
    """Keeps versions."""

    kept = table(["key"], ["version"], version=ldom)

    @bloom
    def keep(self) -> None:
        """Merge, and acknowledge."""
        self.kept <= self.store.map(lambda s: (s.key, s.version))
        self.kept <= self.repair.payloads()
        self.stored <~ self.store.map(lambda s: (s.client, s.ident, s.replica))

    @bloom
    def look_up(self) -> None:
        """Reply with what is there; a key that is asked for is there, without a version."""
        self.kept <= self.fetch.map(lambda f: (f.key, None))
        self.found <~ (self.fetch * self.kept).pairs(
            ("key", "key"), lambda f, k: (f.client, f.ident, f.replica, f.key, k.version)
        )


class Client(Wires):
    """Writes and reads; again, whenever ``timer`` fires, as long as a quorum is missing."""

    replicas: ClassVar[tuple[str, ...]] = ()

    write = interface("input", ["ident"], ["key", "version"], version=ldom)
    lookup = interface("input", ["ident"], ["key"])
    written = table(["ident"], [])
    read = table(["ident"], ["key", "version"], version=ldom)

    writes = table(["ident"], ["key", "version"], version=ldom)
    lookups = table(["ident"], ["key"])
    storing = table(["ident"], ["at"], at=lset)
    answers = table(["ident", "replica"], ["key", "version"], version=ldom)
    merged = table(["ident"], ["key", "version", "of"], version=ldom, of=lset)
    known = table(["key"], ["version"], version=ldom)
    timer = periodic(1.0)
    _count = 0

    @classmethod
    def write_quorum(cls) -> int:
        """How many replicas must have a write."""
        return len(cls.replicas) // 2 + 1

    @classmethod
    def read_quorum(cls) -> int:
        """How many replicas must have replied."""
        return len(cls.replicas) // 2 + 1

    def put(self, key: Value, *values: Value) -> int:
        """Write with the next tick, in place of all that was read or written here; the number of the write."""
        self._count += 1
        latest = self.known[key]
        context = Clock() if latest is None else latest.version.key(Clock)
        clock = context.merge(Clock({self.address: self._count}))
        self.write.insert([(self._count, key, DomPair((clock, Set(values))))])
        return self._count

    def get(self, key: Value) -> int:
        """Read with the next tick; the number of the read."""
        self._count += 1
        self.lookup.insert([(self._count, key)])
        return self._count

    def values_of(self, read: int) -> frozenset[Value]:
        """What was read: one value, siblings, or none, also if the quorum has not replied yet."""
        row = self.read[read]
        return frozenset() if row is None else frozenset(row.version.value(Set).reveal())

    @bloom
    def write_to_all(self) -> None:
        """Until a quorum has it."""
        me, replicas, enough = self.address, self.replicas, self.write_quorum()
        self.writes <= self.write
        self.known <= self.write.map(lambda w: (w.key, w.version))
        due = (self.writes * self.timer).lefts().notin(self.written, ("ident", "ident"))
        for some in (self.write, due):
            self.store <~ some.flat_map(lambda w: [(name, me, w.ident, w.key, w.version) for name in replicas])
        self.storing <= self.stored.map(lambda s: (s.ident, Set([s.replica])))
        self.written <= self.storing.flat_map(lambda s: s.at.size().gt_eq(enough).when_true(lambda: [(s.ident,)]) or [])

    @bloom
    def ask_all(self) -> None:
        """Until a quorum has replied."""
        me, replicas, enough = self.address, self.replicas, self.read_quorum()
        self.lookups <= self.lookup
        due = (self.lookups * self.timer).lefts().notin(self.read, ("ident", "ident"))
        for some in (self.lookup, due):
            self.fetch <~ some.flat_map(lambda a: [(name, me, a.ident, a.key) for name in replicas])
        self.answers <= self.found.payloads()
        self.merged <= self.answers.map(lambda a: (a.ident, a.key, a.version, Set([a.replica])))
        self.known <= self.answers.map(lambda a: (a.key, a.version))
        self.read <= self.merged.flat_map(
            lambda m: m.of.size().gt_eq(enough).when_true(lambda: [(m.ident, m.key, m.version)]) or []
        )

    @bloom
    def repair_replicas(self) -> None:
        """When a reply comes: those who replied with less than there is."""
        self.repair <~ (self.found * self.merged * self.answers).combos(
            self.found.ident == self.merged.ident,
            self.merged.ident == self.answers.ident,
            lambda f, m, a: (a.replica, m.key, m.version) if a.version != m.version else None,
        )

# fmt: on
