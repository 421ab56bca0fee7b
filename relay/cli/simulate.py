"""``syndicate simulate``: a scenario with many seeds, or one of them again.

``syndicate simulate --lineage``: faults that are aimed at what a good outcome rests on.
"""

from __future__ import annotations

import json
import sys
from time import monotonic
from typing import Final

import click

from relay.cli.exit_codes import SETTINGS, Command
from relay.cli.simulated_run import Wanted, again, replayed, show_faults
from relay.simulation.campaign import Campaign, Report, examined, find_scenario
from relay.simulation.difference import difference
from relay.simulation.lineage import Run, Verdict, search, tape_of
from relay.simulation.tape_file import Taped, shrunk
from syndicate.errors import SyndicateError
from syndicate.explain.spacetime import FORMS
from syndicate.simulation.order import POLICIES, Policy

# ----------------------------------------------------------------------------------------------- ``syndicate simulate``


_NAME: Final = "syndicate simulate"
_SHOWN: Final = 20
_EACH: Final = 1.0
_EXAMPLES: Final = """\b
Examples:
  syndicate simulate examples/simulated/job_queue.py:hasty --seeds 200 --jobs 2
  syndicate simulate examples/simulated/job_queue.py:hasty --replay 3
  syndicate simulate examples/simulated/job_queue.py:hasty --replay 3 --shrink --tape queue.tape
  syndicate simulate examples/simulated/job_queue.py:hasty --replay queue.tape --diagram svg > queue.svg
  syndicate simulate examples/simulated/job_queue.py:hasty --replay queue.tape --record queue.jsonl --test test_queue.py
  syndicate simulate shop.scenarios:checkout --seeds 1000 --from 5000 --json
  syndicate simulate shop.scenarios:checkout --seeds 50 --check-determinism
  syndicate simulate shop.scenarios:checkout --seeds 50 --faults kills=1,cuts=2,disk,until=20
  syndicate simulate examples/simulated/job_queue.py:hasty --lineage --most 2
  syndicate simulate examples/simulated/exactly_once.py:nameless --lineage --shrink --tape shop.tape
\b
The exit code is 0 if everything held; 1 if something was broken, or if something that was to be seen sometimes was seen
in no run; 2 if the command, a file or the scenario was wrong, or a program reached out of its world; 3 if two runs of
one seed were not the same, or a tape is not the run any more that it was.
"""


@click.command("simulate", cls=Command, context_settings=SETTINGS, epilog=_EXAMPLES)
@click.argument("scenario", metavar="MODULE:SCENARIO")
@click.option("--seeds", type=click.IntRange(1), metavar="N", help="How many; default: what the scenario says.")
@click.option("--from", "first", type=click.IntRange(0), default=0, show_default=True, metavar="S", help="The first.")
@click.option("--faults", metavar="WHICH", help="In place of its own, as in cuts=2,kills=1,disk,until=20; or none.")
@click.option("--replay", metavar="SEED|FILE", help="One run: that of a seed or of a tape, with all that happens.")
@click.option("--shrink", is_flag=True, help="That run, to the fewest faults and choices that break the same.")
@click.option("--tape", metavar="FILE", help="Write that run to a file, which --replay takes.")
@click.option("--test", metavar="FILE", help="Write that run as a test for pytest; - is standard output.")
@click.option("--record", metavar="FILE", help="Write what `syndicate replay` and the console play.")
@click.option("--diagram", type=click.Choice(FORMS), help="Draw who sent what to whom in that run.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="With --diagram: the last N marks; default: 40.")
@click.option("--policy", type=click.Choice(POLICIES), default="random", show_default=True, help="The order of tasks.")
@click.option("--no-shrink", is_flag=True, help="Do not shrink the first seed that breaks something.")
@click.option("--lineage", is_flag=True, help="One run: of the fewest faults, aimed at what a good outcome rests on.")
@click.option("--most", type=click.IntRange(1), metavar="K", help="With --lineage: at most so many faults; default: 1.")
@click.option("--runs", type=click.IntRange(1), metavar="N", help="With --lineage: at most so many runs; default: 500.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Processes.")
@click.option("--check-determinism", "check", is_flag=True, help="Run each seed in another process too, and compare.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def simulate_main(
    scenario: str,
    seeds: int | None,
    first: int,
    faults: str | None,
    replay: str | None,
    shrink: bool,
    tape: str | None,
    test: str | None,
    record: str | None,
    diagram: str | None,
    last: int | None,
    policy: Policy,
    no_shrink: bool,
    lineage: bool,
    most: int | None,
    runs: int | None,
    jobs: int,
    check: bool,
    as_json: bool,
    debug: bool,
) -> None:
    """Run a whole system with many seeds: programs, brokers, a network and disks, in one process.

    SCENARIO is a function that was decorated with relay.simulation.scenario; MODULE is a module or a file.
    """
    try:
        if faults is not None:
            scenario = f"{scenario.partition('+')[0]}+{''.join(faults.split())}"
        wants = {"--shrink": shrink, "--tape": tape, "--test": test, "--record": record, "--diagram": diagram}
        lone = [name for name, value in {**wants, "--last": last}.items() if value]
        if replay is None and lone and not lineage:
            raise click.UsageError(f"{lone[0]} is about one run: add --replay SEED or --lineage, or leave it out")
        if not lineage and (most is not None or runs is not None):
            raise click.UsageError("--most and --runs bound a search by lineage: add --lineage, or leave them out")
        if lineage:
            if replay is not None or check or jobs > 1 or policy != "random":
                raise click.UsageError("--lineage is a search of its own: leave out --replay, --jobs and such")
            wanted = Wanted(shrink, tape, test, record, diagram, last or 40, as_json, policy)
            code = by_lineage(scenario, first, seeds or 1, most or 1, runs or 500, wanted)
        elif replay is not None:
            if faults is not None and not replay.isdecimal():
                raise click.UsageError("a tape has its faults: leave out --faults, or replay its seed with others")
            if seeds is not None:
                raise click.UsageError("--replay is one seed, and --seeds says how many: leave one of them out")
            wanted = Wanted(shrink, tape, test, record, diagram, last or 40, as_json, policy)
            code = replayed(scenario, replay, wanted)
        else:
            code = _campaign(scenario, seeds, first, jobs, check, as_json, policy, shrink=not no_shrink)
    except SyndicateError as e:
        if debug:
            raise
        click.echo(f"{_NAME}: {e}", err=True)
        sys.exit(2)  # 1 says that something does not hold
    sys.exit(code)


def _campaign(
    scenario: str,
    seeds: int | None,
    first: int,
    jobs: int,
    check: bool,
    as_json: bool,
    policy: Policy,
    *,
    shrink: bool,
) -> int:
    count = seeds or find_scenario(scenario).seeds
    campaign, began = Campaign(), monotonic()
    reported = began if sys.stderr.isatty() and not as_json else float("inf")
    for report in examined(scenario, range(first, first + count), check=check, jobs=jobs, policy=policy):
        campaign.add(report)
        if monotonic() > reported + _EACH:
            reported = monotonic()
            rate = campaign.runs / (reported - began)
            broken = f"{len(campaign.broken)} broken"
            click.echo(f"{campaign.runs} of {count} runs, {broken}, {rate:.0f} runs a second", err=True)
    seconds = monotonic() - began
    campaign.broken.sort(key=lambda report: report.seed)
    campaign.strays.sort(key=lambda report: report.seed)
    if as_json:
        click.echo(json.dumps(_as_data(scenario, campaign, first, seconds)))
    else:
        _show(scenario, campaign, seconds, policy, shrink=shrink, check=check)
    return 3 if campaign.strays else 1 if campaign.broken or campaign.never_seen else 0


def _as_data(scenario: str, campaign: Campaign, first: int, seconds: float) -> dict[str, object]:
    return {
        "scenario": scenario,
        "from": first,
        "runs": campaign.runs,
        "turns": campaign.turns,
        "seconds": round(seconds, 3),
        "runs_per_second": round(campaign.runs / seconds, 1),
        "broken": [_broken(report) for report in campaign.broken],
        "not_deterministic": [{"seed": each.seed, "entries": each.differs} for each in campaign.strays],
        "faults": dict(sorted(campaign.fired.items())),
        "sometimes": dict(campaign.hoped),
    }


def _broken(report: Report) -> dict[str, object]:
    violation = report.violation
    assert violation is not None
    return {
        "seed": report.seed,
        "kind": violation.kind,
        "name": violation.name,
        "time": violation.time,
        "text": violation.text,
    }


def _show(scenario: str, campaign: Campaign, seconds: float, policy: Policy, *, shrink: bool, check: bool) -> None:
    rate = campaign.runs / seconds
    broken = f"{len(campaign.broken)} broken" if campaign.broken else "all held"
    strays = f", {len(campaign.strays)} not the same run twice" if campaign.strays else ""
    click.echo(f"{scenario}: {campaign.runs} runs, {broken}{strays} ({rate:.0f} runs a second)")
    if campaign.fired:
        click.echo(f"faults: {', '.join(f'{name} {times:,}' for name, times in sorted(campaign.fired.items()))}")
    for name in campaign.never_seen:
        click.echo(f"never seen: {name}: without that these runs say little; allow more faults, or run more seeds")
    for stray in campaign.strays[:1]:
        one, other = stray.differs or ("", "")
        click.echo(f"seed {stray.seed} is not the same run twice; the first entries that differ:\n  {one}\n  {other}")
        if check:
            click.echo("The second run had another PYTHONHASHSEED: does it go through a set of strings?")
    kinds: dict[str, list[int]] = {}
    for report in campaign.broken:
        assert report.violation is not None
        kinds.setdefault(f"{report.violation.kind} {report.violation.name}", []).append(report.seed)
    for kind, seeds in kinds.items():
        click.echo(f"{kind}: {len(seeds)} runs, the first with seed {seeds[0]}")
    if campaign.broken:
        seed = campaign.broken[0].seed
        click.echo(f"\nseed {seed}: {campaign.broken[0].violation}")
        target = find_scenario(scenario)
        outcome = target.run(seed, traced=True, policy=policy)
        for line in [line for line in outcome.history.lines() if line.split()[2] not in ("turn", "actor")][-_SHOWN:]:
            click.echo(f"  {line}")
        again = f"syndicate simulate {scenario} --replay {seed}{'' if policy == 'random' else f' --policy {policy}'}"
        if shrink and not campaign.strays:
            least, how = shrunk(scenario, target, Taped.of(scenario, outcome))
            show_faults(least, how, difference(target, least))
            click.echo(f"\n{again} --shrink --tape FILE")
        click.echo(f"{'' if shrink and not campaign.strays else chr(10)}{again}")


# ------------------------------------------------------------------------------------- ``syndicate simulate --lineage``


def by_lineage(name: str, first: int, tapes: int, most: int, runs: int, wanted: Wanted) -> int:
    """Search, from the good runs of *tapes* seeds, and say what has come of it; the exit code.

    A run that was found is a run like any other: *wanted* says what is to be made of it.
    """
    as_json = wanted.as_json
    reported, count = (monotonic() if sys.stderr.isatty() and not as_json else float("inf")), 0

    def ran(run: Run) -> None:
        nonlocal reported, count
        count += 1
        if monotonic() > reported + _EACH:
            reported = monotonic()
            words = ", ".join(sorted(map(str, run.faults))) or "no fault"
            click.echo(f"{count} runs, the last with {words}", err=True)

    scenario = find_scenario(name)
    verdict = search(scenario, seed=first, tapes=tapes, most=most, runs=runs, ran=ran)
    taped = tape_of(scenario, name, verdict)
    if as_json:
        click.echo(json.dumps(_verdict_as_data(name, verdict, taped)))
        if taped is not None and wanted.tape:
            taped.write(wanted.tape)
        return 0 if verdict.broken is None and verdict.complete else 1
    click.echo(verdict)
    if taped is None:
        click.echo("assumed: " + "; ".join(verdict.assumed))
        return 0 if verdict.complete else 1
    if wanted.makes_something:
        return again(scenario, name, verdict.seed, taped, wanted, "the run that was found")
    least, how = shrunk(name, scenario, taped)
    show_faults(least, how, difference(scenario, least))
    bounds = f"{f' --from {first}' * bool(first)}{f' --seeds {tapes}' * (tapes > 1)}{f' --most {most}' * (most > 1)}"
    click.echo(f"\nsyndicate simulate {name} --lineage{bounds} --shrink --tape FILE")
    click.echo(f"syndicate simulate {name} --replay FILE")
    return 1


def _verdict_as_data(name: str, verdict: Verdict, taped: Taped | None) -> dict[str, object]:
    faults, violation = verdict.broken or (None, None)
    return {
        "scenario": name,
        "seed": verdict.seed,
        "tapes": verdict.tapes,
        "most": verdict.most,
        "runs": verdict.runs,
        "complete": verdict.complete,
        "faults": None if faults is None else sorted(map(str, faults)),
        "violation": None if violation is None else str(violation),
        "digest": None if taped is None else taped.digest,
        "assumed": [*verdict.assumed],
    }
