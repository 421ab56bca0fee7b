"""What is measured: each workload with its sizes, its unit, and the ratio over the baseline that it should reach.

A case is data.  Its function is looked up by name on each side; the sides run it with the same arguments.  Sizes are such that our
side takes about a quarter of a second; where that cannot be, a process makes several passes and answers their median.

Targets: the reference on performance, "Targets".
"""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

ASSERTIONS_OF_SCALE = (10_000, 30_000, 100_000)
OBSERVERS_OF_GROWTH = (10, 100, 1_000, 10_000)

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
}


@frozen
class Case:
    """One workload at one size.

    *unit* is that of its figure, more being better unless *less* is set; *reach* and *stretch* are factors over the baseline.  A
    case that is *alone* has no other side; one that is *exact* (bytes) is the same in each round, and measured once.
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
    module: str = field(default="dataspace")

    @property
    def group(self) -> str:
        """The first part of its key."""
        return self.key.partition("-")[0]


def cases(quick: bool = False) -> list[Case]:
    """All cases in order; *quick*: with a tenth of the work, for trying things out."""
    part = 10 if quick else 1
    few = (1, 100) if quick else (1, 100, 1_000)
    return [
        *_messages(part, few),
        *_churn(part, few[1:]),
        *_late_observers((1_000,) if quick else (1_000, 10_000, 100_000)),
        Case("d", "d: box and client, round trips", "box", {"count": 20_000 // part}, "round trips/s", reach=10, stretch=25),
        *_presence((10, 100) if quick else (10, 100, 300)),
        *_memory(1_000 if quick else 10_000),
        *_growth(part, OBSERVERS_OF_GROWTH[:3] if quick else OBSERVERS_OF_GROWTH),
        *_scale([m // part for m in ASSERTIONS_OF_SCALE]),
        Case("generation", "", "generation", {"skeletons": 20, "count": 20_000 // part}, alone=True, module="insight"),
        Case("tracing", "", "tracing", {"count": 50_000 // part}, alone=True, module="insight"),
    ]


def select(chosen: str, among: list[Case]) -> list[Case]:
    """The cases whose key is in the comma-separated *chosen*, or begins with one of its parts; raises :class:`ValueError`.

    >>> [case.key for case in select("d,c-one", cases(quick=True))]
    ['c-one-1000', 'd']
    """
    wanted = [part.strip() for part in chosen.split(",")]
    found = [case for case in among if any(f"{case.key}-".startswith(f"{part}-") for part in wanted)]
    for part in wanted:
        if not any(f"{case.key}-".startswith(f"{part}-") for case in found):
            raise ValueError(f"no workload is called {part!r}: see --list")
    return found


def _messages(part: int, sizes: tuple[int, ...]) -> list[Case]:
    batched = [
        Case(
            f"a-batched-{n}",
            f"a: batched messages, N={n:,}",
            "messages",
            {"observers": n, "count": 100_000 // part, "batched": True},
            "messages/s",
            reach=6,
            stretch=12,
        )
        for n in sizes
    ]
    one_a_turn = [
        Case(
            f"a-turns-{n}",
            f"a: one message a turn, N={n:,}",
            "messages",
            {"observers": n, "count": 50_000 // part, "batched": False},
            "messages/s",
            reach=12,
            stretch=30,
        )
        for n in sizes
    ]
    return batched + one_a_turn


def _churn(part: int, sizes: tuple[int, ...]) -> list[Case]:
    one = [
        Case(
            f"b-one-{n}",
            f"b: churn, one of N={n:,} matches",
            "churn",
            {"observers": n, "count": 30_000 // part, "all_match": False},
            "changes/s",
            reach=6,
            stretch=12,
        )
        for n in sizes
    ]
    every = [
        Case(
            f"b-all-{n}",
            f"b: churn, all of N={n:,} match",
            "churn",
            {"observers": n, "count": 200_000 // n // part, "all_match": True},
            "events/s",
            reach=10,
            stretch=20,
        )
        for n in sizes
    ]
    return one + every


def _late_observers(sizes: tuple[int, ...]) -> list[Case]:
    made = []
    for one, name, passes, reach, stretch in ((False, "all", 1, 12, 25), (True, "one", 3, 2, 10)):
        for m in sizes:
            targets = {"reach": reach, "stretch": stretch} if m >= 10_000 else {}
            title = f"c: add an observer, {'one of' if one else 'all'} M={m:,} match{'es' if one else ''}"
            arguments = {"assertions": m, "one": one, "passes": passes}
            made.append(Case(f"c-{name}-{m}", title, "late_observer", arguments, "ms", less=True, **targets))
    return made


def _presence(sizes: tuple[int, ...]) -> list[Case]:
    made = []
    for u in sizes:
        targets = {"reach": 15, "stretch": 40} if u >= 100 else {}
        arguments = {"users": u, "passes": max(1, min(5, 300 // u))}
        made.append(Case(f"e-{u}", f"e: presence, U={u:,}", "presence", arguments, "events/s", **targets))
    return made


def _memory(count: int) -> list[Case]:
    return [
        Case(
            f"f-{kind}",
            f"f: memory an {kind}",
            "memory",
            {"kind": kind, "count": count},
            "bytes",
            less=True,
            reach=reach,
            stretch=stretch,
            exact=True,
        )
        for kind, reach, stretch in (("assertion", 2, 3), ("observer", 2.5, 4))
    ]


def _growth(part: int, sizes: tuple[int, ...]) -> list[Case]:
    made = []
    for name, title, function, count, arguments in (
        ("batched", "a: batched messages", "messages", 50_000, {"batched": True}),
        ("turns", "a: one message a turn", "messages", 25_000, {"batched": False}),
        ("one", "b: churn, one matches", "churn", 15_000, {"all_match": False}),
    ):
        for n in sizes:
            sized = {"observers": n, "count": count // part, "passes": 3, **arguments}
            made.append(Case(f"growth-{name}-{n}", title, function, sized, "/s", alone=True))
    return made


def _scale(sizes: list[int]) -> list[Case]:
    together = {"assertions": sizes[-1], "observers": sizes[-1] // 10}
    return [
        *[Case(f"scale-{m}", f"M={m:,}", "scale", {"assertions": m}, less=True) for m in sizes],
        Case("scale-memory", "", "memory_together", together, less=True, exact=True),
    ]
