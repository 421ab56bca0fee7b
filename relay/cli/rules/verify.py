"""``syndicate rules verify``: whether faults can break a specification, and by how few."""

from __future__ import annotations

import json
import sys
from typing import Final, Unpack

import click

from relay.cli.rules.program import find_dedalus, write
from relay.cli.rules.running import nodes_named
from relay.cli.rules.verb import Verb
from syndicate.dedalus import Verdict
from syndicate.dedalus.ast import Constant
from syndicate.dedalus.net import check_nodes
from syndicate.dedalus.timeline import Chosen
from syndicate.dedalus.verify.verdict import MAX_RUNS, Bounds, Progress
from syndicate.dedalus.why.derivation import shown

verify = Verb(
    "verify",
    "Search for faults that break a program's specification, or prove that there are none within bounds.",
    bloom="`check --confluent` says which outputs depend on the order of messages, and by which rules",
)

_VERIFY: Final = """\b
Examples:
  syndicate rules verify retry.ded --eot 6 --eff 3 --crashes 1 --nodes a,b,c
  syndicate rules verify retry.ded --eot 6 --eff 3 --crashes 1 --nodes a,b,c --output bad.json
  syndicate rules run retry.ded --until 6 --schedule bad.json --diagram text
  syndicate rules verify lock.ded --eot 8 --eff 4 --nodes a,b --invariant two_owners --json
  syndicate rules verify lock.ded --eot 8 --eff 0 --late 2 --nodes a,b --invariant two_owners
\b
A message takes one timestep, from the first column of its rule's body to that of its head; with --late N it may take up
to N more.  The rows of `post` at the end of a run without faults are promised: a counterexample leaves one in `pre` and
not in `post`.  An invariant's rows are violations, at any time.  Programs see crashes in the relation
crash(told, node, time).  All that `choose` can take is tried, and costs no fault; with --seed, its choices alone are.
\b
The exit code is 0 if it is proven that no faults within the bounds break it; 1 if some do, if nothing was promised
(a vacuous specification), or if a limit was reached before either was known; 2 if the command was wrong.
"""


@verify.program("dedalus", _VERIFY)
@click.argument("program", metavar="FILE")
@click.option("--eot", type=int, required=True, metavar="T", help="The last timestep.")
@click.option("--eff", type=click.IntRange(0), required=True, metavar="T", help="Messages are lost before T only.")
@click.option("--crashes", type=click.IntRange(0), default=0, show_default=True, metavar="N", help="Nodes that crash.")
@click.option("--late", type=click.IntRange(0), default=0, show_default=True, metavar="N",
              help="Messages may arrive up to N timesteps late.")  # fmt: skip
@click.option("--nodes", callback=nodes_named, required=True, metavar="A,B", help="The nodes.")
@click.option("--pre", default="pre", show_default=True, metavar="REL", help="What obliges.")
@click.option("--post", default="post", show_default=True, metavar="REL", help="What must be then.")
@click.option("--invariant", metavar="REL", help="Instead of these: what must never be.")
@click.option("--start", type=int, default=1, show_default=True, metavar="T", help="The first timestep.")
@click.option("--seed", type=int, metavar="N", help="Try what this seed chooses; default: all that can be chosen.")
@click.option("--strict", is_flag=True, help="Check as `check --strict` does.")
@click.option("--limit", type=click.IntRange(1), default=MAX_RUNS, show_default=True, metavar="N", help="Runs at most.")
@click.option("--output", metavar="S.json", help="Write the first counterexample as a schedule for `run`.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: violation_exists, min_faults, ..")
@click.option("--exit-code", is_flag=True, help="Nothing: the exit code tells the verdict anyway.")
def verify_dedalus(
    program: str, strict: bool, output: str | None, as_json: bool, exit_code: bool, **bounds: Unpack[Bounds]
) -> None:
    """Search for faults that break a program's specification, or prove that there are none within bounds.

    Exits with 1 unless it is proven.
    """
    if bounds["eff"] > bounds["eot"] + 1:
        note = f"note: --eff {bounds['eff']} is behind --eot {bounds['eot']}: messages are lost at all times"
        click.echo(note, err=True)
    loaded = find_dedalus(program)
    check_nodes(loaded.core(), bounds["nodes"])
    bounds["progress"] = _progress if sys.stderr.isatty() and not as_json else None
    verdict = loaded.verify(strict=strict, **bounds)
    if output is not None and verdict.violation_exists:
        write(json.dumps(verdict.schedule()), output)
    if as_json:
        click.echo(json.dumps(verdict.to_json()))
    else:
        _show(program, verdict, bounds.get("late", 0), output)
    sys.exit(0 if verdict.proven else 1)


def _progress(progress: Progress) -> None:
    click.echo(f"no counterexample of fewer than {progress.size} faults after {progress.runs} runs", err=True)


def _show(file: str, verdict: Verdict, late: int, output: str | None) -> None:
    by_seed = "" if verdict.seed is None else f", under the choices of seed {verdict.seed} alone"
    chosen = by_seed or (", whatever is chosen" if verdict.open else "")
    if not verdict.violation_exists:
        arriving = f"up to {late} timesteps late" if late else "in the next timestep; --late N looks at later ones"
        runs = f"({verdict.runs} runs; messages arrive {arriving})"
        if verdict.vacuous is None:
            click.echo(
                f"{file}: no faults within these bounds break it{chosen}, but whether it ever applies is not known"
            )
        elif verdict.vacuous:
            click.echo(f"{file}: vacuous: {verdict.vacuous}, and nothing was proven {runs}")
        else:
            click.echo(f"{file}: no faults within these bounds break it{chosen} {runs}")
        return
    sets = verdict.min_counterexamples
    many = f"{len(sets)} smallest counterexamples" if len(sets) > 1 else "the smallest counterexample"
    faults = f"{verdict.min_faults} fault{'s' * (verdict.min_faults != 1)}"
    click.echo(f"{file}: broken by {faults}{by_seed}; {many} ({verdict.runs} runs):")
    for one, choices in zip(sets, verdict.choices, strict=True):
        where = "; ".join(f"{each.relation} chooses {_rows(each)} at {each.time}" for each in choices)
        click.echo(f"  {', '.join(one) or 'none at all'}{f', where {where}' if where else ''}")
    for row in verdict.broken:
        click.echo(f"{'In the first, ' * (len(sets) > 1)}{shown(row.relation, row.row)} {row.what} at {row.time}")
    click.echo(f"\n{verdict.model.diagram()}")
    if output is not None:
        rest = f"--until {verdict.model.until} --schedule {output}"
        click.echo(f"\nsyndicate dedalus run {file} {rest}")
        for row in verdict.broken[:1]:
            asked = "" if row.never else " --not"
            row_text = json.dumps(list(row.row))
            click.echo(f"syndicate dedalus why {file} {row.relation} '{row_text}' --at {row.time}{asked} {rest}")


def _rows(chosen: Chosen) -> str:
    return " and ".join(f"({', '.join(str(Constant(value)) for value in row)})" for row in chosen.rows)
