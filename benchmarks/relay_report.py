"""The tables of the relay's section in ``RESULTS.md``."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from benchmarks.measure import Result, median
from benchmarks.report import Surroundings, failed, number

PROFILED = frozenset({"relay-turns-10", "relay-trips-10"})
"""The workloads whose profiles are shown."""

_ABOUT = """\
One `syndicate-server` over TCP on this machine, and one process with raw connections that sends packets encoded before
and only counts what comes back.  An event is a message, or an assertion or retraction, counted where it arrives; each
is checked to be there and in order.

* *a second* is by the clock, and says something if the broker was *busy* all the time; *a broker's second* is by its
  processor time, which is the figure to compare.
* *put together*: how many of the turns that a connection sends the broker makes one of, since it does at once what it
  reads at once.  This sways the cost more than all else: "one on its way" has one message of each connection under way.
* *codec* is what decoding and encoding the same packets takes by itself, put together alike; *limit* what a broker
  could do that did nothing else.
* *late* is from when a packet was due until it has arrived, at half of the rate before."""


@frozen
class Gate:
    """What a figure is to be at least, or at most."""

    figure: str
    shown: str
    least: float | None = None
    most: float | None = None

    def verdict(self, value: float) -> str:
        """Whether it is.

        >>> Gate("rate kept", "", least=0.9).verdict(0.95)
        'reach'
        """
        missed = (self.least is not None and value < self.least) or (self.most is not None and value > self.most)
        return "**below**" if missed else "reach"

    @property
    def wanted(self) -> str:
        """In words."""
        return f"at least {self.least:g}" if self.least is not None else f"at most {self.most:g}"


GATES = (
    Gate("rate kept", "publishers' rate while it is stopped / before and after", least=0.9),
    Gate("rate kept, by processor time", "the same by the broker's processor time", least=0.9),
    Gate("p99 grown", "p99 of the healthy observers, likewise", most=2.0),
    Gate("MiB more at most", "MiB of memory more than before, at most", most=64.0),
    Gate("entries a key", "events that wait for the stopped one, for each key that is there", most=4.0),
)


def relay_section(results: list[Result], around: Surroundings, profiles: dict[str, str]) -> str:
    """The section in Markdown, with *profiles* of the broker by key."""
    about = [
        f"- {around.date}, `{around.command}`, rounds: {around.rounds}; {around.ours} on {around.python}",
        f"- {around.machine}",
    ]
    parts = ["## Relay: a broker under load", "\n".join(about)]
    loads = [result for result in results if result.case.function != "stopped"]
    if loads:
        parts += [_ABOUT, _loads(loads)]
    for result in results:
        if result.case.function == "stopped" and result.ours:
            parts += ["### One stopped consumer", *_stopped(result)]
    for key, text in profiles.items():
        parts += [f"### Profile of the broker, {key}", text]
    return "\n\n".join([*parts, *failed(results)]) + "\n"


def _loads(results: list[Result]) -> str:
    heads = ("workload", "connections", "events a second", "a broker's second", "us each", "put together", "us codec")
    more = ("codec's limit", "codec's share", "at half: us each", "put together", "late: p50 ms", "p95", "p99", "busy")
    lines = [f"| {' | '.join([*heads, *more])} |", f"|---|{'---:|' * (len(heads) + len(more) - 1)}"]
    for result in results:
        cells = [result.case.title, f"{result.case.arguments['connections']}"]
        if result.ours:
            found: dict[str, Any] = median(result.ours)
            cells += [number(found[name]) for name in ("a second", "a broker's second", "us of the broker")]
            cells += [number(found[name]) for name in ("packets to one", "us of the codec", "codec's limit")]
            share = found["codec's share"]
            cells.append(f"{share:.0%}")
            cells += [number(found[name]) for name in ("us at half", "packets to one at half")]
            cells += [number(found[name]) for name in ("p50 ms", "p95 ms", "p99 ms")]
            cells.append(f"{found['broker busy']:.0%}, load {found['load busy']:.0%}")
        else:
            cells += ["-"] * (len(heads) + len(more) - 2)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _stopped(result: Result) -> list[str]:
    found: dict[str, Any] = median(result.ours)
    found["entries a key"] = found["waiting entries"] / found["keys"]
    sizes = result.case.arguments
    intro = (
        f"{sizes['healthy']} observers here and one in a process of its own, which is stopped (SIGSTOP) and goes on "
        f"(SIGCONT), while {found['keys']:,.0f} keys get ever new values, as fast as the observers are notified.  "
        "In each round all of them had exactly the state of the publishers in the end."
    )
    gates = ["| | | wanted | verdict |", "|---|---:|---:|---|"]
    for gate in GATES:
        value = found[gate.figure]
        gates.append(f"| {gate.shown} | {number(value)} | {gate.wanted} | {gate.verdict(value)} |")
    figures = ["| figure | before and after | while it is stopped |", "|---|---:|---:|"]
    for name, shown in (
        ("a second", "changes a second"),
        ("a broker's second", "changes a broker's second"),
        ("p50 ms", "late, ms: p50"),
        ("p99 ms", "late, ms: p99"),
    ):
        figures.append(f"| {shown} | {number(found[name])} | {number(found[f'{name}, hung'])} |")
    then = (
        f"While it was stopped {number(found['collapsed'])} assertions came and went that it never heard of, and "
        f"{number(found['waiting entries'])} events waited for it.  The broker had {number(found['MiB before'])} MiB, "
        f"and in the end {number(found['MiB more in the end'])} more.  {number(found['s until caught up'])} s after "
        f"it went on it had what was published after that; {number(found['s until right'])} s after the last change it "
        "had exactly what was asserted."
    )
    return [intro, "\n".join(gates), "\n".join(figures), then]
