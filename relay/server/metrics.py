"""Metrics: the census as Prometheus reads it.

Nothing is counted twice: the figures are made from the census when somebody asks, in a registry of their own.

Source: Prometheus; ``docs/design/commands.md``, "A broker that can be watched".
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import psutil

from relay.server.census import WAITING, Census
from syndicate.errors import ServerMissing
from syndicate.outside import outside

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

Journal = Callable[[], Mapping[str, float]]
"""What a journal has done: commits, seconds, ..., by name."""

_KINDS: Final = ("assert", "message", "retract", "sync")

_HELP: Final = {
    "bytes-in": "Bytes that were read from peers",
    "bytes-out": "Bytes that were made for peers",
    "collapsed": "Assertions that came and went before a slow peer could be notified",
    "debt": "Bytes that were read and are not handled yet",
    "exports": "References of ours that peers hold",
    "handles": "Assertions of peers",
    "imports": "References of peers that we hold",
    "waiting-bytes": "Bytes that wait for slow peers",
    "waiting-entries": "Events that wait for slow peers",
}


def registry(census: Census, journal: Journal = dict) -> CollectorRegistry:
    """A registry with all that *census* and *journal* know; raises :class:`~syndicate.errors.ServerMissing`."""
    try:
        from prometheus_client import CollectorRegistry
    except ImportError:
        raise ServerMissing(
            'metrics need prometheus-client: install it with: pip install "syndicate-dataspace[server]"'
        ) from None
    result = CollectorRegistry(auto_describe=False)
    result.register(_Collector(census, journal))
    return result


class _Collector:
    def __init__(self, census: Census, journal: Journal) -> None:
        self._census = census
        self._journal = journal

    def collect(self) -> Iterable[Metric]:
        """The figures of this moment."""
        from prometheus_client.core import CounterMetricFamily as Counter
        from prometheus_client.core import GaugeMetricFamily as Gauge

        census = self._census
        yield Gauge("syndicate_listeners", "Open listeners", len(census.listeners))
        yield Gauge("syndicate_peers", "Connected peers", len(census.peers))
        yield Counter("syndicate_sessions", "Sessions that have begun", census.accepted)
        yield from self._spaces()
        totals = census.totals()
        events = Counter("syndicate_events", "Events of peers, in, and for them, out", labels=["direction", "kind"])
        for kind, direction in itertools.product(_KINDS, ("in", "out")):
            events.add_metric([direction, kind], totals.pop(f"{kind}s-{direction}"))
        yield events
        for name, total in sorted(totals.items()):
            metric = "syndicate_" + name.replace("-", "_")
            help_ = _HELP.get(name, name.replace("-", " ").capitalize())
            yield Gauge(metric, help_, total) if name in WAITING else Counter(metric, help_, total)
        lost = Counter("syndicate_limits_hit", "Sessions that ended by what the peer did", labels=["kind"])
        for kind, count in sorted(census.lost.items()):
            lost.add_metric([kind], count)
        yield lost
        yield Counter("syndicate_guesses", "References that did not hold", census.guesses.count)
        yield Gauge("syndicate_overloaded", "Whether there is too much to do", bool(census.overload))
        yield Gauge("syndicate_draining", "Whether the server is about to end", census.draining)
        if census.system is not None:
            yield Gauge("syndicate_queue_length", "Turns that wait", len(census.system.queue))
            yield Counter("syndicate_handled", "Events that actors have handled", census.system.taken)
        for name, value in sorted(self._journal().items()):
            yield Counter(f"syndicate_journal_{name}", name.replace("_", " ").capitalize(), value)
        yield Gauge("process_resident_memory_bytes", "Memory of the process", outside().resident())
        yield Gauge("process_allocated_blocks", "Blocks of memory that Python's objects have", sys.getallocatedblocks())
        process = psutil.Process()
        if psutil.POSIX:
            yield Gauge("process_open_fds", "Open file descriptors", process.num_fds())

    def _spaces(self) -> Iterable[Metric]:
        """What is in each dataspace, and what its quotas have refused."""
        from prometheus_client.core import CounterMetricFamily as Counter
        from prometheus_client.core import GaugeMetricFamily as Gauge

        label = ["dataspace"]
        assertions = Gauge("syndicate_assertions", "Distinct assertions, interests included", labels=label)
        observers = Gauge("syndicate_observers", "Distinct interests", labels=label)
        events = Counter(
            "syndicate_dataspace_events", "Events that have come to a dataspace", labels=["dataspace", "kind"]
        )
        held = Gauge("syndicate_quota_bytes", "Bytes that count against the quota of a dataspace", labels=label)
        messages = Counter("syndicate_quota_messages", "Messages that counted against a quota", labels=label)
        refused = Counter("syndicate_quota_refused", "What a quota has refused", labels=["dataspace", "quota"])
        for name, space in sorted(self._census.spaces.items()):
            there, interests = space.values()
            assertions.add_metric([name], there)
            observers.add_metric([name], interests)
            for kind, count in space.events().items():
                events.add_metric([name, kind], count)
            account = space.account
            held.add_metric([name], account.bytes)
            messages.add_metric([name], account.messages)
            for quota, count in sorted(account.refused.items()):
                refused.add_metric([name, quota], count)
        yield from (assertions, observers, events, held, messages, refused)
