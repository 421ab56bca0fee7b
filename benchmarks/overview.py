"""``python -m benchmarks.overview``: the first page of ``RESULTS.md``, made of the tables below it.

Each line is a work beside its peer: what it costs, ours over theirs, at each size that is measured, so that one sees
how the ratio grows with the work.  Below 1 ours is cheaper.  No figure is measured here, and none is typed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import click
from attrs import frozen

from benchmarks.measure import ROOT
from benchmarks.report import number, write

RESULTS: Final = ROOT / "benchmarks/RESULTS.md"

Cells = Mapping[str, str]
"""A row of a table, by the heads of its columns."""


class NoSuchRow(LookupError):
    """The tables have no such row, or it has no such figure."""


@frozen
class Line:
    """A work: the rows of the table under *heading* that match *rows*, and what to read of each.

    ``cost`` gives ours over theirs from a row; *goal* is the most that it is to be.
    """

    work: str
    peer: str
    heading: str
    rows: Iterable[tuple[str, Cells]]
    """What a figure is called, and what the cells of its row hold."""
    cost: Callable[[Cells], float]
    goal: float | None = None


def first_number(cell: str, place: int = 0) -> float:
    """The number at *place* in a cell: ``first_number("5.06 (4.85 to 5.80)")`` is 5.06.

    >>> first_number("1,070,000"), first_number("0.68 (0.077)", 1)
    (1070000.0, 0.077)
    """
    numbers = re.findall(r"\d[\d,]*(?:\.\d+)?", cell)
    if len(numbers) <= place:
        raise NoSuchRow(f"{cell!r} has no number at place {place}")
    return float(numbers[place].replace(",", ""))


def tables(text: str) -> dict[str, list[Cells]]:
    r"""The rows of all tables of a text in Markdown, by the heading that they stand under.

    >>> tables("## Speed\n\n| work | ratio |\n|---|---:|\n| join | 1.5 |\n")
    {'Speed': [{'work': 'join', 'ratio': '1.5'}]}
    """
    rows: dict[str, list[Cells]] = {}
    heading, heads = "", list[str]()
    for line in text.splitlines():
        if line.startswith("#"):
            heading, heads = line.lstrip("#").strip(), []
        elif not line.startswith("|"):
            heads = []
        else:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not heads:
                heads = cells
            elif not set(line) <= set("|-: "):
                rows.setdefault(heading, []).append(dict(zip(heads, cells, strict=False)))
    return rows


def ratio(column: str) -> Callable[[Cells], float]:
    """What a column says, which is ours over theirs."""
    return lambda cells: first_number(cells[column])


def faster(column: str) -> Callable[[Cells], float]:
    """The reverse of what a column says, which is how many times better ours is."""
    return lambda cells: 1 / first_number(cells[column])


def divided(ours: str, theirs: str, place: int = 0) -> Callable[[Cells], float]:
    """The number of one column over that of another, at *place* in both."""
    return lambda cells: first_number(cells[ours], place) / first_number(cells[theirs], place)


def _deltas(workload: str, *sizes: str) -> list[tuple[str, Cells]]:
    return [(size, {"workload": workload, "delta": size}) for size in sizes]


def _questions(**questions: str) -> list[tuple[str, Cells]]:
    return [(name.replace("_", " "), {"question": question}) for name, question in questions.items()]


def _pairs(work: str, *pairs: str) -> list[tuple[str, Cells]]:
    return [(f"{each} pairs" if each != "1" else "1 pair", {"work": work, "pairs": each}) for each in pairs]


_BROKER, _CRATE, _FLOW = "syndicate-server (Rust)", "syndicate-rs", "differential-dataflow"
_BY_ROWS: Final = divided("rows", "differential")
_SIZES: Final = ("10", "100", "1,000", "10,000")
_DATASPACE = "Dataspace, beside the same index on syndicate-py"

LINES: Final = (
    Line(
        "messages, 1,000 observers: in one turn, and one a turn",
        _CRATE,
        "Actors in one process",
        [
            ("in one turn", {"workload": "messages in one turn, N=1,000"}),
            ("one a turn", {"workload": "one message a turn, N=1,000"}),
        ],
        faster("ratio"),
        1,
    ),
    Line(
        "an assertion comes and goes, 1,000 observers",
        _CRATE,
        "Actors in one process",
        [
            ("one matches", {"workload": "churn, one of N=1,000 matches"}),
            ("all match", {"workload": "churn, all of N=1,000 match"}),
        ],
        faster("ratio"),
        1 / 5,
    ),
    Line(
        "box and client; presence of 100",
        _CRATE,
        "Actors in one process",
        [("box", {"workload": "box and client"}), ("presence", {"workload": "presence, U=100"})],
        faster("ratio"),
        1,
    ),
    Line(
        "the same messages and changes in one dataspace",
        "syndicate-py",
        _DATASPACE,
        [
            ("in one turn", {"workload": "a: batched messages, N=1,000"}),
            ("one a turn", {"workload": "a: one message a turn, N=1,000"}),
            ("one matches", {"workload": "b: churn, one of N=1,000 matches"}),
            ("all match", {"workload": "b: churn, all of N=1,000 match"}),
        ],
        faster("ratio"),
    ),
    Line(
        "broker: request and reply",
        _BROKER,
        "Brokers",
        _pairs("request and reply", "1", "10"),
        ratio("ours / Rust"),
        1.2,
    ),
    Line(
        "broker: messages, a window on the way",
        _BROKER,
        "Brokers",
        _pairs("messages, a window on the way", "1", "10", "100"),
        ratio("ours / Rust"),
        1,
    ),
    Line("broker: one to 100", _BROKER, "Brokers", _pairs("one to 100", "1"), ratio("ours / Rust"), 1),
    Line(
        "broker: assert and retract",
        _BROKER,
        "Brokers",
        _pairs("assert and retract", "1", "10"),
        ratio("ours / Rust"),
        1,
    ),
    Line(
        "join, 100,000 rows a side, delta of",
        _FLOW,
        "Circuits",
        _deltas("join", *_SIZES),
        divided("rows", "differential"),
        1,
    ),
    Line("group, delta of", _FLOW, "Circuits", _deltas("group", *_SIZES), _BY_ROWS, 1),
    Line(
        "distinct, delta of",
        _FLOW,
        "Circuits",
        _deltas("distinct", "10", "1,000", "10,000"),
        divided("rows", "differential"),
        1,
    ),
    Line("closure, one edge", _FLOW, "Circuits", [("", {"workload": "closure"})], _BY_ROWS, 1),
    Line(
        "load of the join's first rows",
        _FLOW,
        "Circuits",
        [("", {"workload": "join", "delta": "10"})],
        divided("rows", "differential", 1),
        1.5,
    ),
    *(
        Line(
            "closure in Dedalus, a random graph of 2,000 edges",
            peer,
            "Transitive closure",
            [("", {"graph": "random", "edges": "2,000"})],
            divided("ours", column),
            goal,
        )
        for peer, column, goal in (("plain Python", "python", 0.5), ("clingo", "clingo", 0.5), ("DuckDB", "duckdb", 3))
    ),
    Line(
        "`verify`, published protocols",
        "clingo, a text by hand",
        "Verdicts and outcomes beside a text for clingo by hand",
        _questions(
            relay="verify, 3 nodes, eot 22, eff 21, 1 crash",
            eight_nodes="verify, 8 nodes, eot 22, eff 21, 1 crash",
            election="election, eot 20, eff 19, 1 crash",
            one_vote="election, one vote is enough",
            Paxos="Paxos, eot 12, 1 late",
            one_acceptor="Paxos, one acceptor is enough",
            three_phase_commit="3PC, eot 12, 2 crashes",
            split_by_one_late="3PC, eot 12, 1 late",
        ),
        divided("ours, s", "clingo by hand, s"),
        2,
    ),
    Line(
        "`explore`, all outcomes",
        "clingo, a text by hand",
        "Verdicts and outcomes beside a text for clingo by hand",
        _questions(until_6="explore post until 6", until_40="explore post until 40"),
        divided("ours, s", "clingo by hand, s"),
        2,
    ),
)


def page(text: str) -> str:
    """The first page, from the *text* of ``RESULTS.md``.  Raises :class:`NoSuchRow`."""
    rows = tables(text)
    lines = [
        "## On one page",
        "",
        "What a work costs: ours over the peer's, as the tables below measure it, which have the range, the commit and",
        "the machine of each figure.  Below 1 ours is cheaper.  Several sizes show how the ratio grows with the work.",
        "",
        "| work | beside | ours / peer | at most |",
        "|---|---|---|---:|",
    ]
    for line in LINES:
        figures = []
        for name, wanted in line.rows:
            cost = line.cost(_row(rows, line.heading, wanted))
            short = line.goal is not None and cost > line.goal
            figures.append(f"{name} {'**' if short else ''}{number(cost)}{'**' if short else ''}".strip())
        goal = "" if line.goal is None else number(line.goal)
        lines.append(f"| {line.work} | {line.peer} | {'; '.join(figures)} | {goal} |")
    return "\n".join([*lines, "", "In bold: more than was to be reached.", ""])


def _row(rows: Mapping[str, list[Cells]], heading: str, wanted: Cells) -> Cells:
    for cells in rows.get(heading, []):
        if all(cells.get(column) == text for column, text in wanted.items()):
            return cells
    raise NoSuchRow(f"RESULTS.md, under {heading!r}, has no row with {dict(wanted)}: measure that section first")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", type=click.Path(path_type=Path, exists=True, dir_okay=False), default=RESULTS)
def main(path: Path) -> None:
    """Write the first page of PATH from the tables in it."""
    text = page(path.read_text())
    write(path, "overview", text)
    print(text)


if __name__ == "__main__":
    main()
