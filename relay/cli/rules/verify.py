"""``syndicate rules verify``: whether faults can break a specification, and by how few."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterable
from typing import Final, NoReturn, Unpack

import click
from attrs import define, field
from click.core import ParameterSource

from relay.cli.exit_codes import Number
from relay.cli.rules.rule_files import check_named, find_dedalus, read_recorded, write
from relay.cli.rules.run_options import nodes_named
from relay.cli.rules.verb import Verb
from syndicate.dedalus import Verdict
from syndicate.dedalus.ast import Constant, Value
from syndicate.dedalus.solving.solver import ENGINES, INSTALL
from syndicate.dedalus.timeline import Chosen
from syndicate.dedalus.verify.chance import DRAWINGS, Chance
from syndicate.dedalus.verify.counterexample import Progress
from syndicate.dedalus.verify.induction import LOOKING_BACK
from syndicate.dedalus.verify.verdict import MAX_RUNS, Bounds
from syndicate.dedalus.why.derivation import shown
from syndicate.errors import SyndicateError
from syndicate.explain.derivation import named

verify = Verb(
    "verify",
    "Search for faults that break a program's specification, or prove that there are none within bounds.",
    bloom="`check --confluent` says which outputs depend on the order of messages, and by which rules",
)

VERIFYING: Final = 60.0
_PATIENCE: Final = 0.5
_EVERY: Final = 0.2

_VERIFY: Final = """\b
Examples:
  syndicate rules verify retry.ded --eot 6 --eff 3 --crashes 1 --nodes a,b,c
  syndicate rules verify retry.ded --eot 6 --eff 3 --crashes 1 --nodes a,b,c --output bad.json
  syndicate rules run retry.ded --until 6 --schedule bad.json --diagram text
  syndicate rules verify lock.ded --eot 8 --eff 4 --nodes a,b --invariant two_owners --json
  syndicate rules verify lock.ded --eot 8 --eff 0 --delay 2 --nodes a,b --invariant two_owners
  syndicate rules verify lock.ded --prove --invariant two_owners     (for all times, without bounds)
  syndicate rules verify lock.ded --prove --invariant two_owners --nodes a,b     (and for clocks of any speed)
  syndicate rules verify lock.ded --eot 8 --eff 0 --restarts 1 --partitions 1 --nodes a,b --invariant two_owners
  syndicate rules verify seat.ded --eot 4 --eff 0 --nodes s --invariant twice --choices 1     (one against seed 0)
  syndicate rules verify seat.ded --eot 4 --eff 0 --nodes s --invariant twice --choose chance     (how likely?)
\b
A message takes one timestep, from the first column of its rule's body to that of its head; with --delay N it may take
up to N more.  The faults are drop("a","b",t), late("a","b",t,by), again("a","b",t,by), crash_at("a",t), stop_at("a",t),
restart("a",t,to), pause("a",t,to) and parted("a";t,to); what is not in the model is said with the verdict.
\b
The rows of `post` at the end of a run without faults are promised: a counterexample leaves one in `pre` and not in
`post`.  An invariant's rows are violations, at any time.  Programs see crashes and stops in the relation
crash(told, node, time).
\b
What `choose` takes an adversary decides: all is tried, and costs nothing.  With --choices N it decides N of them at
most against those of the seed, with --cost choice=C each of these costs C; with --seed alone that seed decides all.
With --choose chance each candidate is as likely as another to come first, and the answer is the share of all drawings
in which some faults break it: of all where these are few, else of --drawings seeds, with bounds.  That is no proof of
the others.
\b
The exit code is 0 if it is proven that no faults within the bounds break it; 1 if some do, if nothing was promised
(a vacuous specification), or if a limit was reached before either was known; 2 if the command was wrong.
"""


def costs_of(_: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    """``late=2``: faults, and what they cost."""
    costs: dict[str, int] = {}
    for value in values:
        name, _sign, cost = value.partition("=")
        if not cost.strip().isdecimal():
            raise click.BadParameter(f"{value!r} is no cost: give a fault and a number, such as late=2", param=param)
        costs[name.strip()] = int(cost)
    return costs


_OF_PROOFS: Final = frozenset({"program", "invariant", "start", "seconds", "nodes", "strict", "depth", "as_json"})
"""What a proof takes."""


def _check_question(*, prove: bool) -> None:
    """Refuse what a proof would leave aside in silence, or a search."""
    context = click.get_current_context()
    options = {
        param.name: param.opts[0]
        for param in context.command.params
        if param.name and context.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    }
    if not prove and "depth" in options:
        raise click.UsageError("--depth is for --prove")
    aside = [option for name, option in options.items() if name not in _OF_PROOFS | {"prove", "debug", "exit_code"}]
    if prove and aside:
        raise click.UsageError(
            f"--prove is about all times, losses, delays and choices, and no facts from outside: leave out "
            f"{', '.join(aside)}"
        )


def _prove(program: str, strict: bool, depth: int, as_json: bool, bounds: Bounds) -> NoReturn:
    """Prove an invariant for all times; exits with 0 only then."""
    invariant = bounds.get("invariant")
    if invariant is None:
        raise click.UsageError("--prove is about what must never be: name it, --invariant REL")
    start, seconds = bounds.get("start", 1), bounds.get("seconds") or None
    loaded, nodes = find_dedalus(program), tuple(bounds.get("nodes") or ())
    check_named(loaded, nodes, "--nodes")
    proof = loaded.prove(invariant, start=start, depth=depth, seconds=seconds, nodes=nodes, strict=strict)
    if as_json:
        click.echo(json.dumps(proof.to_json()))
    elif proof.verdict == "proved":
        how = f" and {proof.lemmas} lemmas" if proof.lemmas else ""
        click.echo(
            f"{program}: proved for all times: {invariant} never has a row, whatever is lost, late or repeated"
            f"{', however fast the clocks of nodes are' if nodes else ''} (induction of depth {proof.depth}{how})\n"
            f"not in the model: nodes that lose what they kept, {'' if nodes else 'clocks that pass differently, '}"
            f"and facts from outside{'' if nodes else '; --nodes A,B has such clocks'}"
        )
    elif proof.verdict == "broken":
        row = shown(invariant, proof.row)
        click.echo(f"{program}: broken: {row} can be there at {proof.time}; verify within bounds tells how")
    else:
        click.echo(f"{program}: unknown: {proof.why}; it is neither proved nor broken")
    sys.exit(0 if proof.verdict == "proved" else 1)


@verify.program("dedalus", _VERIFY)
@click.argument("program", metavar="FILE")
@click.option("--eot", type=int, metavar="T", help="The last timestep.")
@click.option("--eff", type=click.IntRange(0), metavar="T", help="Messages are lost before T only.")
@click.option(
    "--crashes", type=click.IntRange(0), default=0, show_default=True, metavar="N", help="Nodes that stop sending."
)
@click.option("--late", "--delay", "late", type=click.IntRange(0), default=0, show_default=True, metavar="N",
              help="Messages may arrive up to N timesteps late.")  # fmt: skip
@click.option("--again", type=click.IntRange(0), default=0, show_default=True, metavar="N",
              help="Messages may arrive a second time, up to N timesteps later.")  # fmt: skip
@click.option("--stops", type=click.IntRange(0), default=0, show_default=True, metavar="N",
              help="Nodes that compute and receive nothing any more.")  # fmt: skip
@click.option("--restarts", type=click.IntRange(0), default=0, show_default=True, metavar="N",
              help="Nodes that are down for a while, and begin again with nothing.")  # fmt: skip
@click.option("--pauses", type=click.IntRange(0), default=0, show_default=True, metavar="N",
              help="Nodes that are down for a while, and go on with what they had.")  # fmt: skip
@click.option("--partitions", type=click.IntRange(0), default=0, show_default=True, metavar="N",
              help="Times that nothing passes between some nodes and the others.")  # fmt: skip
@click.option("--cost", "costs", multiple=True, callback=costs_of, metavar="FAULT=N",
              help="What a fault costs, 1 if not said; or a choice against the seed's, 0 if not said.")  # fmt: skip
@click.option("--nodes", callback=nodes_named, metavar="A,B", help="The nodes.")
@click.option("--pre", default="pre", show_default=True, metavar="REL", help="What obliges.")
@click.option("--post", default="post", show_default=True, metavar="REL", help="What must be then.")
@click.option("--invariant", metavar="REL", help="Instead of these: what must never be.")
@click.option("--start", type=int, default=1, show_default=True, metavar="T", help="The first timestep.")
@click.option(
    "--around", metavar="RUN.json", help="Facts from outside, and the end, of what `together --output` wrote."
)
@click.option("--prove", is_flag=True, help="For all times, by induction, instead of bounds: needs --invariant.")
@click.option("--depth", type=click.IntRange(1), default=LOOKING_BACK, show_default=True, metavar="N",
              help="Timesteps that a proof looks back at most.")  # fmt: skip
@click.option("--choose", type=click.Choice(("adversary", "chance")), default="adversary", show_default=True,
              help="Who decides what rules choose.")  # fmt: skip
@click.option("--choices", type=click.IntRange(0), metavar="N",
              help="Choices at most that the adversary decides against those of the seed; default: any.")  # fmt: skip
@click.option("--drawings", type=click.IntRange(1), default=DRAWINGS, show_default=True, metavar="N",
              help="Seeds that chance draws by, where there are too many drawings to look at all.")  # fmt: skip
@click.option("--seed", type=int, metavar="N", help="Try what this seed chooses; default: all that can be chosen.")
@click.option("--strict", is_flag=True, help="Check as `check --strict` does.")
@click.option("--limit", type=click.IntRange(1), default=MAX_RUNS, show_default=True, metavar="N",
              help="Runs at most, of the search.")  # fmt: skip
@click.option("--seconds", type=Number(0), default=VERIFYING, show_default=True, metavar="S",
              help="Time to try; 0: any.")  # fmt: skip
@click.option("--engine", type=click.Choice(ENGINES), default="auto", show_default=True, help="What decides.")
@click.option("--output", metavar="S.json", help="Write the first counterexample as a schedule for `run`.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: violation_exists, min_faults, ..")
@click.option("--exit-code", is_flag=True, help="Nothing: the exit code tells the verdict anyway.")
def verify_dedalus(
    program: str,
    strict: bool,
    output: str | None,
    as_json: bool,
    exit_code: bool,
    around: str | None,
    prove: bool,
    depth: int,
    **bounds: Unpack[Bounds],
) -> None:
    """Search for faults that break a program's specification, or prove that there are none within bounds.

    Exits with 1 unless it is proven.
    """
    _check_question(prove=prove)
    if prove:
        _prove(program, strict, depth, as_json, bounds)
    events, locations = None, None
    if around is not None:
        events, until, locations = read_recorded(around)
        if bounds.get("eot") is None:
            bounds["eot"] = until
    for name in ("eot", "eff", "nodes"):
        if bounds.get(name) in (None, ()):
            raise click.MissingParameter(param_type="option", param_hint=f"'--{name}'")
    if bounds["eff"] > bounds["eot"] + 1:
        note = f"note: --eff {bounds['eff']} is behind --eot {bounds['eot']}: messages are lost at all times"
        click.echo(note, err=True)
    loaded = find_dedalus(program)
    check_named(loaded, bounds["nodes"], "--nodes")
    bounds["seconds"] = bounds.get("seconds") or None
    watch = _Watch(shown=sys.stderr.isatty() and not as_json)
    bounds["progress"] = watch.tell
    try:
        verdict = loaded.verify(strict=strict, events=events, **bounds)
    except KeyboardInterrupt:
        watch.clear()
        click.echo(f"not decided: {watch.so_far}", err=True)
        sys.exit(128 + signal.SIGINT)
    finally:
        watch.clear()
    if output is not None and verdict.violation_exists:
        write(json.dumps({**verdict.schedule(), **({"events": events} if events else {})}), output)
    outside = [*_unnamed(bounds["nodes"], verdict), *verdict.outside, *_unheard(bounds["nodes"], locations)]
    if as_json:
        click.echo(json.dumps({**verdict.to_json(), "outside": outside}))
    else:
        _show(program, verdict, bounds.get("late", 0), output, outside)
    sys.exit(0 if verdict.proven else 1)


def _unheard(nodes: Iterable[Value], locations: list[Value] | None) -> list[str]:
    """What a recorded run does not say of nodes that have no event log."""
    unknown = [node for node in nodes if locations is not None and node not in locations]
    return [f"what came from outside to {Constant(node)}, which has no event log in that run" for node in unknown]


def _unnamed(nodes: Iterable[Value], verdict: Verdict) -> list[str]:
    """What no fault is tried at, though it sends or receives, where nothing was found."""
    if verdict.violation_exists:
        return []
    try:
        messages = verdict.model.messages
    except SyndicateError:  # a run computes what the question does not depend on, too, and that may fail
        return []
    ends = {end for one in messages for end in (*one.senders, one.row[0])}
    others = sorted(str(Constant(end)) for end in ends.difference(nodes))
    first = [*others[:5], *([f"{len(others) - 5} more"] if len(others) > 5 else [])]
    return [f"faults at {named(first)}, not among --nodes"] if others else []


@define(eq=False)
class _Watch:
    """How far a verdict is, as a line on the terminal that is written again and again, if it is *shown*."""

    shown: bool
    last: Progress = field(init=False, factory=lambda: Progress(0))
    begun: float = field(init=False, factory=time.monotonic)
    written: float = field(init=False, default=0.0)

    @property
    def so_far(self) -> str:
        """What is known."""
        best = self.last.best
        if best is None and not self.last.size:
            read = f" (the program was read until timestep {self.last.time})" if self.last.time else ""
            return f"nothing is known yet{read}"
        bound = f"no counterexample of fewer than {self.last.size} faults"
        return bound if best is None else f"{bound}; the best so far is {best.brief}"

    def tell(self, progress: Progress) -> None:
        """Take note."""
        self.last = progress
        now = time.monotonic()
        if self.shown and now - self.begun > _PATIENCE and now - self.written > _EVERY:
            self.written = now
            click.echo(f"\r\033[K{now - self.begun:.0f} s: {self.so_far}", nl=False, err=True)

    def clear(self) -> None:
        """Take the line back."""
        if self.written:
            click.echo("\r\033[K", nl=False, err=True)


def _show(file: str, verdict: Verdict, late: int, output: str | None, outside: list[str]) -> None:
    by_seed = _deciding(verdict)
    chosen = by_seed or (", whatever is chosen" if verdict.open else "")
    if verdict.chance is not None:
        click.echo(f"{file}: faults within these bounds break it in {verdict.chance.words}")
        if not verdict.violation_exists:
            _show_unbroken_chance(file, verdict, verdict.chance)
            click.echo(f"not in the model: {', '.join(outside)}")
            return
    if not verdict.violation_exists:
        arriving = f"up to {late} timesteps late" if late else "in the next timestep; --delay N looks at later ones"
        runs = f"({_by(verdict)}; messages arrive {arriving})"
        if verdict.vacuous is None:
            click.echo(
                f"{file}: no faults within these bounds break it{chosen}, but whether it ever applies is not known"
            )
        elif verdict.vacuous:
            click.echo(f"{file}: vacuous: {verdict.vacuous}, and nothing was proven {runs}")
        else:
            click.echo(f"{file}: no faults within these bounds break it{chosen} {runs}")
        click.echo(f"not in the model: {', '.join(outside)}")
        return
    sets = verdict.min_counterexamples
    many = f"{len(sets)} smallest counterexamples" if len(sets) > 1 else "the smallest counterexample"
    faults = f"{verdict.min_faults} fault{'s' * (verdict.min_faults != 1)}"
    if verdict.cost != verdict.min_faults:
        faults += f"{' and choices' * verdict.priced} that cost {verdict.cost}"
    click.echo(f"{file}: broken by {faults}{by_seed}; {many} ({_by(verdict)}):")
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


def _deciding(verdict: Verdict) -> str:
    """Whose choices were tried, where not all were."""
    if verdict.seed is None:
        return ""
    if verdict.chance is not None:
        return f" as seed {verdict.seed} draws"
    if verdict.against:
        many = f"{verdict.against} choice{'s' * (verdict.against != 1)}"
        return f", with up to {many} against those of seed {verdict.seed}"
    return f", under the choices of seed {verdict.seed} alone"


def _show_unbroken_chance(file: str, verdict: Verdict, chance: Chance) -> None:
    """What it means that no drawing was broken."""
    if verdict.vacuous:
        click.echo(f"{file}: vacuous: {verdict.vacuous}, and nothing was proven")
    elif chance.exact:
        click.echo(f"{file}: no faults within these bounds break it, in any drawing")
    else:
        click.echo(f"{file}: nothing is proven of other drawings")


def _by(verdict: Verdict) -> str:
    """What decided."""
    if verdict.engine == "clingo":
        return "by clingo"
    hint = f"; a solver would be faster: {INSTALL}" if verdict.engine.endswith("installed") else ""
    return f"{verdict.runs} runs by {verdict.engine}{hint}"


def _rows(chosen: Chosen) -> str:
    return " and ".join(f"({', '.join(str(Constant(value)) for value in row)})" for row in chosen.rows)
