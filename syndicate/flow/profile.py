"""Profiles: what each node of a running circuit keeps, and, while it is watched, what it reads, gives and costs.

>>> from syndicate.flow import Circuit
>>> c = Circuit(); c.watch()
>>> c.sink("seen", c.source("visits").distinct()); _ = c.step({"visits": {"ann": 2, "bob": 1}})
>>> for line in sorted(c.profile().lines, key=lambda line: line.node):
...     print(line.label, line.runs, line.rows_in, line.rows_out, line.entries)
source "visits" 0 0 2 0
distinct 1 2 2 2
sink "seen" 1 2 0 0

A loop's time is its own: that of its nodes is theirs.

Source: ``docs/design/flow.md``, "Looking in, and snapshots".
"""

from __future__ import annotations

from operator import call
from typing import TYPE_CHECKING, Final

from attrs import asdict, frozen

from syndicate.flow.contents import held, scopes, size_of
from syndicate.flow.measure import Measure
from syndicate.flow.structure import identity, labelled

if TYPE_CHECKING:
    from rich.table import Table

    from syndicate.flow.local_engine import LocalEngine
    from syndicate.flow.node import GlobalId


@frozen
class NodeProfile:
    """One node: entries kept now; runs, rows and milliseconds since watching began, and in the last step."""

    node: str
    label: str
    runs: int
    rows_in: int
    rows_out: int
    entries: int
    last_ms: float
    total_ms: float
    share: float
    last_runs: int
    last_rows_in: int
    last_rows_out: int


@frozen
class Profile:
    """The nodes that ran or keep something, the costliest first; prints as a table, with rich as a coloured one."""

    lines: tuple[NodeProfile, ...]
    watched: bool
    steps: int

    def as_data(self) -> list[dict[str, object]]:
        """The same as plain dictionaries, for JSON."""
        return [asdict(line) for line in self.lines]

    def __str__(self) -> str:
        table = [list(_TITLES), *[_cells(line) for line in self.lines], _cells(self.total)]
        return "\n".join([self.title, *in_columns(table, left=2)])

    @property
    def title(self) -> str:
        """What the table is of."""
        if not self.watched:
            return "Not watched: call circuit.watch() for runs, rows and times."
        return f"{self.steps} step{'s' if self.steps != 1 else ''} watched, times in milliseconds"

    @property
    def total(self) -> NodeProfile:
        """The sums."""
        sums = {
            name: sum(getattr(line, name) for line in self.lines)
            for name in ("runs", "entries", "last_ms", "total_ms", "last_runs")
        }
        return NodeProfile("", "in all", rows_in=0, rows_out=0, share=1.0, last_rows_in=0, last_rows_out=0, **sums)

    def __rich__(self) -> Table:
        from rich.table import Table  # only what prints with rich needs it
        from rich.text import Text

        table = Table(title=self.title, show_footer=True)
        for number, (title, foot) in enumerate(zip(_TITLES, _cells(self.total), strict=True)):
            table.add_column(title, Text(foot), justify="left" if number < 2 else "right")
        for line in self.lines:
            table.add_row(*map(Text, _cells(line)))
        return table


_TITLES: Final = ("node", "operator", "runs", "rows in", "rows out", "entries", "last ms", "total ms", "share")


def _cells(line: NodeProfile) -> list[str]:
    rows = [f"{line.rows_in:,}", f"{line.rows_out:,}"] if line.node else ["", ""]
    return [
        *(line.node, line.label, f"{line.runs:,}", *rows, f"{line.entries:,}"),
        *(f"{line.last_ms:.3f}", f"{line.total_ms:.3f}", f"{line.share:.1%}"),
    ]


def in_columns(table: list[list[str]], left: int) -> list[str]:
    """Cells as lines of text, the first *left* columns to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    pads = [str.ljust if number < left else str.rjust for number in range(len(widths))]
    return ["  ".join(map(call, pads, row, widths)).rstrip() for row in table]


@frozen
class Reading:
    """What is known of one node now: its entries, its measure, and the rows that each output gave in the last step.

    Of a loop the seconds are its own.
    """

    entries: int
    measure: Measure
    seconds: float
    last_seconds: float
    last_runs: int
    last_rows_in: int
    rows_out: tuple[int, ...]
    rows: int


def readings(engine: LocalEngine) -> dict[GlobalId, Reading]:
    """Of each node of a running circuit."""
    sizes: dict[GlobalId, int] = {}
    for (path, _), state in held(engine).items():
        sizes[path] = sizes.get(path, 0) + size_of(state)
    for node, size in engine.in_columns():
        sizes[node.global_id] += size
    step = engine.measures.step if engine.measures is not None else -1
    result: dict[GlobalId, Reading] = {}
    for scope in reversed(list(scopes(engine.root))):
        measures = engine.measures.of(scope) if engine.measures is not None else [Measure() for _ in scope.cells]
        for place, node in reversed(list(enumerate(scope.nodes))):  # of a loop's places the first is its own
            measure = measures[place]
            runs, seconds, rows_in, _ = measure.last(step)
            outputs = measures[place + 1 : place + 1 + len(node.carries)] if node.child is not None else [measure]
            inner = [result[each.global_id] for each in node.child.walk()] if node.child is not None else []
            result[node.global_id] = Reading(
                entries=sizes.get(node.global_id, 0),
                measure=measure,
                seconds=max(0.0, measure.seconds - sum([each.seconds for each in inner])),
                last_seconds=max(0.0, seconds - sum([each.last_seconds for each in inner])),
                last_runs=runs,
                last_rows_in=rows_in,
                rows_out=tuple([output.last(step)[3] for output in outputs]),
                rows=sum([output.rows for output in outputs]),
            )
    return result


def profile(engine: LocalEngine) -> Profile:
    """The profile of a running circuit; counting what it keeps takes time in proportion to its indices."""
    by_node = readings(engine)
    total = sum([reading.seconds for reading in by_node.values()])
    lines = []
    for path, reading in by_node.items():
        node = engine.circuit.find(path)
        if reading.measure.runs or reading.rows or reading.entries:
            lines.append(
                NodeProfile(
                    node=identity(node),
                    label=labelled(node),
                    runs=reading.measure.runs,
                    rows_in=reading.measure.rows_in,
                    rows_out=reading.rows,
                    entries=reading.entries,
                    last_ms=1e3 * reading.last_seconds,
                    total_ms=1e3 * reading.seconds,
                    share=reading.seconds / total if total else 0.0,
                    last_runs=reading.last_runs,
                    last_rows_in=reading.last_rows_in,
                    last_rows_out=sum(reading.rows_out),
                )
            )
    lines.sort(key=lambda line: (-line.total_ms, -line.entries, [int(part) for part in line.node.split(".")]))
    steps = engine.measures.step if engine.measures is not None else 0
    return Profile(tuple(lines), engine.measures is not None, steps)
