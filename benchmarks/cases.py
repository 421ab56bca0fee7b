"""What is measured: each workload with its sizes, its unit, and the ratio over the baseline that it should reach.

A case is data.  Its function is looked up by name on each side; the sides run it with the same arguments.

How much is put into one turn sways the ratio: the baseline loses half its speed between 3,000 and 100,000
messages a turn, ours about a third.  So the counts are those at which the baseline is at its best; instead of
more work, a process makes several *passes*, each in a new system, and answers their median.

The targets are what prototypes of the same workloads made likely.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import frozen

ASSERTIONS_OF_SCALE = (10_000, 30_000, 100_000)
OBSERVERS_OF_GROWTH = (10, 100, 1_000, 10_000)
CONNECTIONS = (1, 10, 100)

GROUPS = {
    "a": "messages to one of N observers with different constants",
    "b": "assertions that come and go before N observers",
    "c": "a new observer where M assertions are present",
    "d": "a box and its client",
    "e": "U users, each present and observing presence",
    "f": "memory",
    "growth": "a and b again, by the number of observers; ours alone",
    "scale": "100,000 assertions and 10,000 observers in one dataspace",
    "generation": "what it costs to generate a table, and what that brings; ours alone",
    "tracing": "what tracing costs; ours alone",
    "relay": "load on a broker in a process of its own, by the number of connections; ours alone",
}


@frozen
class Case:
    """One workload at one size.

    *unit* is that of its figure, more being better unless *less* is set; *reach* and *stretch* are factors over the
    baseline.  A case that is *alone* has no other side; one that is *exact* (bytes) is the same in each round, and
    measured once.
    """

    key: str
    title: str
    function: str
    arguments: dict[str, Any]
    unit: str = ""
    less: bool = False
    reach: float | None = None
    stretch: float | None = None
    alone: bool = False
    exact: bool = False
    module: str = "dataspace"

    @property
    def group(self) -> str:
        """The first part of its key."""
        return self.key.partition("-")[0]


def cases(quick: bool = False) -> list[Case]:
    """All cases in order; *quick*: fewer sizes and passes, for trying things out."""
    return [
        *_messages(quick),
        *_churn(quick),
        *_late_observers(quick),
        _case("d", "d: box and client", "box", "round trips/s", (10, 25), count=5_000, passes=1 if quick else 5),
        *_presence(quick),
        *_memory(quick),
        *_growth(quick),
        *_scale(quick),
        Case("generation", "", "generation", {"skeletons": 20, "count": 5_000}, alone=True, module="insight"),
        Case("tracing", "", "tracing", {"count": 20_000}, alone=True, module="insight"),
        *_relay(quick),
    ]


def select(chosen: str, among: list[Case]) -> list[Case]:
    """The cases whose key is in the comma-separated *chosen*, or begins with one of its parts.

    Raises :class:`ValueError` for a part that no key has.

    >>> [case.key for case in select("d,c-one", cases(quick=True))]
    ['c-one-1000', 'd']
    """
    wanted = [part.strip() for part in chosen.split(",")]
    for part in wanted:
        if not any(f"{case.key}-".startswith(f"{part}-") for case in among):
            raise ValueError(f"no workload is called {part!r}: see --list")
    return [case for case in among if any(f"{case.key}-".startswith(f"{part}-") for part in wanted)]


def _case(
    key: str,
    title: str,
    function: str,
    unit: str,
    targets: tuple[float, float] | None,
    *,
    less: bool = False,
    exact: bool = False,
    **arguments: Any,
) -> Case:
    reach, stretch = targets or (None, None)
    return Case(key, title, function, arguments, unit, less=less, exact=exact, reach=reach, stretch=stretch)


def _messages(quick: bool) -> Iterator[Case]:
    passes = 3 if quick else 9
    for batched, name, title, targets, count in (
        (True, "batched", "batched messages", (6, 12), 3_000),
        (False, "turns", "one message a turn", (12, 30), 5_000),
    ):
        for n in (1, 100) if quick else (1, 100, 1_000):
            yield _case(
                f"a-{name}-{n}",
                f"a: {title}, N={n:,}",
                "messages",
                "messages/s",
                targets,
                observers=n,
                count=count,
                batched=batched,
                passes=passes,
            )


def _churn(quick: bool) -> Iterator[Case]:
    passes = 3 if quick else 9
    for every, name, title, unit, targets in (
        (False, "one", "one of N={:,} matches", "changes/s", (6, 12)),
        (True, "all", "all of N={:,} match", "events/s", (10, 20)),
    ):
        for n in (100,) if quick else (100, 1_000):
            yield _case(
                f"b-{name}-{n}",
                f"b: churn, {title.format(n)}",
                "churn",
                unit,
                targets,
                observers=n,
                count=30_000 // n if every else 3_000,
                all_match=every,
                passes=passes,
            )


def _late_observers(quick: bool) -> Iterator[Case]:
    for one, name, title, passes, targets in (
        (False, "all", "all of M={:,} match", 1, (12, 25)),
        (True, "one", "one of M={:,} matches", 3, (2, 10)),
    ):
        for m in (1_000,) if quick else (1_000, 10_000, 100_000):
            yield _case(
                f"c-{name}-{m}",
                f"c: add an observer, {title.format(m)}",
                "late_observer",
                "ms",
                targets if m >= 10_000 else None,
                less=True,
                assertions=m,
                one=one,
                passes=passes,
            )


def _presence(quick: bool) -> Iterator[Case]:
    for u in (10, 100) if quick else (10, 100, 300):
        targets = (15, 40) if u >= 100 else None
        passes = max(1, min(9, 500 // u))
        yield _case(f"e-{u}", f"e: presence, U={u}", "presence", "events/s", targets, users=u, passes=passes)


def _memory(quick: bool) -> Iterator[Case]:
    count = 1_000 if quick else 10_000
    for kind, targets in (("assertion", (2, 3)), ("observer", (2.5, 4))):
        title = f"f: memory an {kind}"
        yield _case(f"f-{kind}", title, "memory", "bytes", targets, less=True, exact=True, kind=kind, count=count)


def _growth(quick: bool) -> Iterator[Case]:
    for name, title, function, arguments in (
        ("batched", "a: batched messages", "messages", {"count": 10_000, "batched": True}),
        ("turns", "a: one message a turn", "messages", {"count": 10_000, "batched": False}),
        ("one", "b: churn, one matches", "churn", {"count": 5_000, "all_match": False}),
    ):
        for n in OBSERVERS_OF_GROWTH[: 3 if quick else None]:
            sized = {"observers": n, "passes": 3 if quick else 5, **arguments}
            yield Case(f"growth-{name}-{n}", title, function, sized, alone=True)


def _scale(quick: bool) -> Iterator[Case]:
    sizes = [m // 10 if quick else m for m in ASSERTIONS_OF_SCALE]
    for m in sizes:
        yield Case(f"scale-{m}", f"M={m:,}", "scale", {"assertions": m}, less=True)
    together = {"assertions": sizes[-1], "observers": sizes[-1] // 10}
    yield Case("scale-memory", "", "memory_together", together, less=True, exact=True)


def _relay(quick: bool) -> Iterator[Case]:
    seconds = 0.4 if quick else 1.0
    preserves = {"encoding": "preserves"}
    for name, title, function, arguments, sizes in (
        ("turns", "messages, one a turn", "messages", {}, CONNECTIONS),
        ("trips", "messages, one on its way", "trips", {}, CONNECTIONS),
        ("batched", "messages, 100 a turn", "messages", {"batch": 100}, CONNECTIONS),
        ("changes", "assertion changes, to one observer", "changes", {}, CONNECTIONS),
        ("fanout", "messages of one, to N observers", "fanout", {}, CONNECTIONS),
        ("preserves-turns", "messages, one a turn, in Preserves", "messages", preserves, CONNECTIONS[1:2]),
        (
            "preserves-batched",
            "messages, 100 a turn, in Preserves",
            "messages",
            {"batch": 100, **preserves},
            CONNECTIONS[1:2],
        ),
    ):
        for n in sizes:
            sized = {"connections": n, "seconds": seconds, **arguments}
            yield Case(f"relay-{name}-{n}", title, function, sized, "events/s", alone=True, module="relay")
    hung = {"healthy": 50, "calm": 1.0, "during": 4.0} if quick else {"healthy": 50}
    yield Case("relay-stopped", "one stopped consumer", "stopped", hung, alone=True, module="relay")
