"""``syndicate dedalus live``: one location of a program, live, by way of a server.

See :mod:`syndicate.dedalus.live`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, TextIO

import click

from relay.cli.exit_codes import SETTINGS, Command, ending, fail, run_command
from relay.cli.target import Target, find_target, target_options
from relay.client import connect
from syndicate.actors.verbs import current_facet, linked_task, stop_actor
from syndicate.bloom.agent.console import read_lines
from syndicate.dedalus import Agent, Diary, Program, together
from syndicate.dedalus.ast import Atom, Constant, Row, Rule, Value
from syndicate.dedalus.live import Life
from syndicate.dedalus.live.event_log import Writing
from syndicate.dedalus.model import Model, order
from syndicate.dedalus.net import nodes_of
from syndicate.dedalus.parse import parse
from syndicate.dedalus.placement import SPECIFICATION, Placement
from syndicate.errors import SyndicateError
from syndicate.log import configure
from syndicate.values.value import Ref

_LIVE: Final = """\b
Examples:
  syndicate dedalus live gossip.ded --at a --connect tcp://127.0.0.1:8001
  syndicate dedalus live gossip.ded --at b --connect tcp://127.0.0.1:8001 --show known --every 0.1 --until 100
  echo 'said("a", "hi")' | syndicate dedalus live gossip.ded --at a --connect tcp://127.0.0.1:8001 --stdin
  syndicate dedalus live gossip.ded --at a --connect tcp://127.0.0.1:8001 --record a.diary
  syndicate dedalus together gossip.ded a.diary b.diary     (what was recorded, run again in one place)
"""


@click.command("live", cls=Command, context_settings=SETTINGS, epilog=_LIVE)
@click.argument("file")
@click.option("--at", "location", required=True, metavar="LOCATION", help="Which location, or agent, to be.")
@click.option("--connect", "address", required=True, metavar="URL", envvar="SYNDICATE_ADDRESS", show_envvar=True,
              help="Where the others are: tcp://HOST:PORT, unix:///PATH, ..")  # fmt: skip
@target_options
@click.option("--until", type=click.IntRange(1), metavar="T", help="End after that timestep.")
@click.option("--every", type=click.FloatRange(0, min_open=True), metavar="SECONDS",
              help="Let a timestep pass each so many seconds; default: when something waits.")  # fmt: skip
@click.option("--show", "shown", multiple=True, metavar="REL", help="Print this relation only; repeatable.")
@click.option("--input", "inputs", multiple=True, metavar="REL",
              help="Take its rows from assertions <dedalus-fact LOCATION REL [..]>; repeatable.")  # fmt: skip
@click.option("--output", "outputs", multiple=True, metavar="REL",
              help="Assert its rows as <dedalus-fact LOCATION REL [..]>; repeatable.")  # fmt: skip
@click.option("--stdin", "reads", is_flag=True, help="Facts on standard input are events; after the last, end at rest.")
@click.option("--specification", multiple=True, metavar="REL", default=SPECIFICATION, show_default=True,
              help="Relations that look at all locations, and so are at none; repeatable.")  # fmt: skip
@click.option("--seed", type=int, metavar="N", help="That of `choose`.")
@click.option("--record", metavar="FILE", help="Write down what comes and goes, as it does, for `together`.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: time, rel, tuple, there.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def live_command(
    file: str,
    location: str,
    address: str,
    cap: str | None,
    cap_file: TextIO | None,
    ca: str | None,
    until: int | None,
    every: float | None,
    shown: tuple[str, ...],
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    reads: bool,
    specification: tuple[str, ...],
    seed: int | None,
    record: str | None,
    as_json: bool,
    debug: bool,
) -> None:
    """Be one location of a program; others may be in other processes.

    Prints what comes (+) and goes (-), with the timestep.  The clock begins with the connection, and outlives it; a
    location that is started again begins anew.  What others send is refused, with a warning, where it makes a timestep
    fail.
    """
    configure(level="info")
    diary: Writing | None = None
    try:
        target = find_target(address, cap, cap_file, ca)
        program = Program.load(file)
        (place,) = nodes_of([location])
        agent = Agent(
            program,
            place,
            inputs=inputs,
            outputs=outputs,
            every=every,
            seed=seed,
            specification=specification,
        )
        relations = [name for name in shown or _derived(agent.placement.rules) if agent.arity(name) >= 0]
        if record is not None:
            diary = Writing(record, place)
            agent.recorded = diary.write
            if diary.former is not None:
                click.echo(
                    f"syndicate dedalus live: what {record} had of a life before is {diary.former} now", err=True
                )
    except SyndicateError as error:
        if debug:
            raise
        fail("syndicate dedalus live", error)
    lives: list[Life] = []
    show = _as_json if as_json else _as_text
    try:
        run_command(
            "syndicate dedalus live", debug, partial(_boot, agent, target, lives, relations, show, until, reads)
        )
    finally:
        if diary is not None:
            if lives:
                diary.write(lives[0].local.last())
            diary.close()


def _derived(rules: Iterable[Rule]) -> list[str]:
    """The relations that rules derive, in order."""
    return list(dict.fromkeys(rule.head.relation for rule in rules if not rule.fact))


def _boot(
    agent: Agent,
    target: Target,
    lives: list[Life],
    relations: list[str],
    show: Callable[[int, str, Row, bool], str],
    until: int | None,
    reads: bool,
) -> None:
    life = agent()
    lives.append(life)
    over: list[bool] = []

    def tell() -> None:
        for name in relations:
            for row, weight in sorted(life.changed(name), key=lambda change: (change[1], order(change[0]))):
                click.echo(show(life.time, name, row, weight > 0))
        sys.stdout.flush()
        if (until is not None and life.time >= until) or (over and life.resting):
            stop_actor()

    life.on_timestep(tell)

    @connect(str(target.address), target.cap, attempts=3, **target.options)
    def connected(ds: Ref) -> None:
        life.join(ds)

    if reads:
        facet = current_facet()

        def end() -> None:
            over.append(True)
            if life.resting:
                stop_actor()

        async def listen() -> None:
            await read_lines(lambda line: facet.enter(partial(_typed, life, line)))
            facet.enter(end)

        linked_task(listen)


def _typed(life: Life, line: str) -> None:
    """Let facts be events; what is none is told, and nothing else happens."""
    text = line.strip()
    try:
        for statement in parse(text if not text or text.endswith((";", ".")) else f"{text};", "standard input"):
            constants = [term for term in getattr(statement, "head", Atom("")).terms if isinstance(term, Constant)]
            if not isinstance(statement, Rule) or not statement.fact or len(constants) != len(statement.head.terms):
                click.echo(f'standard input: {statement} is no event: type facts, such as said("a", 1)', err=True)
                continue
            row: tuple[Value, ...] = tuple(term.value for term in constants)
            life.insert(statement.head.relation, row)
    except SyndicateError as error:
        click.echo(str(error), err=True)


def _as_text(time: int, name: str, row: Row, there: bool) -> str:
    return f"{time} {'+' if there else '-'} {Atom(name, tuple(map(Constant, row)))}"


def _as_json(time: int, name: str, row: Row, there: bool) -> str:
    return json.dumps({"time": time, "rel": name, "tuple": list(row), "there": there})


_TOGETHER: Final = """\b
Examples:
  syndicate dedalus together gossip.ded a.diary b.diary
  syndicate dedalus together gossip.ded a.diary b.diary --json | jq .known
"""


@click.command("together", cls=Command, context_settings=SETTINGS, epilog=_TOGETHER)
@click.argument("file")
@click.argument("diaries", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object: {relation: {time: rows}}.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@ending("syndicate dedalus together")
def together_command(file: str, diaries: tuple[str, ...], as_json: bool) -> None:
    """Run a program as it ran live, in one place: by what `live --record` wrote at all locations.

    Prints what came (+) and went (-), as `live` did, and what was sent.  Nothing is known of a location without a
    diary, which stderr says.
    """
    program = Program.load(file)
    known = list(map(Diary.load, diaries))
    model = program.run(**together(known))
    for place in sorted(_unknown(program, model, {diary.location for diary in known}), key=repr):
        told = "what happened there, and when it got what was sent to it, is unknown"
        click.echo(f"syndicate dedalus together: no diary is of {place}: {told}", err=True)
    if as_json:
        click.echo(json.dumps(model.to_json()))
        return
    for time, there, name, row in sorted(_changes(model), key=lambda one: (*one[:3], order(one[3]))):
        click.echo(_as_text(time, name, row, there))
    click.echo(f"\n{model.diagram('text')}")


def _changes(model: Model) -> Iterator[tuple[int, bool, str, Row]]:
    """What came, and what went, of the relations that rules derive."""
    for name in _derived(model.rules):
        for row, spans in model.intervals[name].items():
            for since, to in spans:
                yield since, True, name, row
                if to <= model.until:
                    yield to, False, name, row


def _unknown(program: Program, model: Model, known: set[Value]) -> set[Value]:
    """The locations that a program or its messages name, and that have no diary."""
    placement = Placement(program.statements, apart=False)
    rows = [(message.relation, message.row) for message in model.messages]
    heads = [rule.head for rule in program.core() if rule.fact]
    rows += [(head.relation, tuple(t.value for t in head.terms if isinstance(t, Constant))) for head in heads]
    return {place for name, row in rows if (place := placement.of(name, row)) is not None} - known
