"""``syndicate rules live`` and ``together``: one location of a program, live, by way of a server; and all, later.

See :mod:`syndicate.dedalus.live`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Final, TextIO

import click

from relay.cli.exit_codes import Number
from relay.cli.rules.bloom_program import class_of, find_bloom, make
from relay.cli.rules.rule_files import find_dedalus, write
from relay.cli.rules.run_options import as_json_line, as_text, derived, show_changes
from relay.cli.rules.verb import FAMILY, Verb
from relay.cli.target import Target, find_target, target_options
from relay.client import connect
from syndicate.actors.running import run
from syndicate.actors.verbs import current_facet, linked_task, stop_actor
from syndicate.bloom import Bloom
from syndicate.bloom.agent.agent import read_lines
from syndicate.bloom.event_log import EventLog as BloomLog
from syndicate.bloom.event_log import together as bloom_together
from syndicate.bloom.event_log import together_to_json
from syndicate.bloom.insight.history import History, record
from syndicate.bloom.insight.spacetime import spacetime
from syndicate.dedalus import Agent, EventLog, Program
from syndicate.dedalus import together as together_of
from syndicate.dedalus.ast import Atom, Constant, Row, Rule, Value
from syndicate.dedalus.live import Instance
from syndicate.dedalus.live.event_log import rerun_to_json, writer_of
from syndicate.dedalus.net import nodes_of
from syndicate.dedalus.parse import parse
from syndicate.dedalus.placement import SPECIFICATION, Placement
from syndicate.dedalus.run import Model
from syndicate.dedalus.timeline import order
from syndicate.errors import SyndicateError
from syndicate.explain.spacetime import FORMS
from syndicate.log import configure
from syndicate.values.value import Ref

_ACTOR: Final = "in a Python program that connects to a server, spawn(CLASS, ds) is one"

live = Verb("live", "Be one location of a program; others may be in other processes.", bloom=_ACTOR)
together = Verb("together", "Run again, in one place, what agents wrote in event logs at all locations.")

_LIVE: Final = """\b
Examples:
  syndicate rules live gossip.ded --at a --connect tcp://127.0.0.1:8001
  syndicate rules live gossip.ded --at b --connect tcp://127.0.0.1:8001 --show known --every 0.1 --until 100
  echo 'said("a", "hi")' | syndicate rules live gossip.ded --at a --connect tcp://127.0.0.1:8001 --stdin
  syndicate rules live gossip.ded --at a --connect tcp://127.0.0.1:8001 --record a.log
  syndicate rules together gossip.ded a.log b.log     (what was recorded, run again in one place)
"""


@live.program("dedalus", _LIVE)
@click.argument("program", metavar="FILE")
@click.option("--at", "location", required=True, metavar="LOCATION", help="Which location, or agent, to be.")
@click.option("--connect", "address", required=True, metavar="URL", envvar="SYNDICATE_ADDRESS", show_envvar=True,
              help="Where the others are: tcp://HOST:PORT, unix:///PATH, ..")  # fmt: skip
@target_options
@click.option("--until", type=click.IntRange(1), metavar="T", help="End after that timestep.")
@click.option("--every", type=Number(0, min_open=True), metavar="SECONDS",
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
def live_dedalus(
    program: str,
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
) -> None:
    """Be one location of a program; others may be in other processes.

    Prints what comes (+) and goes (-), with the timestep.  The clock begins with the connection, and outlives it; a
    location that is started again begins again.  What others send is refused, with a warning, where it makes a timestep
    fail.
    """
    configure(level="info")
    target = find_target(address, cap, cap_file, ca)
    (place,) = nodes_of([location])
    agent = Agent(
        find_dedalus(program),
        place,
        inputs=inputs,
        outputs=outputs,
        every=every,
        seed=seed,
        specification=specification,
    )
    relations = [name for name in shown or derived(agent.placement.rules) if agent.arity(name) >= 0]
    log = None if record is None else writer_of(record, place)
    if log is not None:
        agent.recorded = log.write
        if log.former is not None:
            _note(f"what {record} had of an agent before is {log.former} now")
    instances: list[Instance] = []
    show = as_json_line if as_json else as_text
    try:
        run(partial(_boot, agent, target, instances, relations, show, until, reads))
    finally:
        if log is not None:
            if instances:
                log.write(instances[0].local.last())
            log.close()


def _note(text: str) -> None:
    """A line on stderr that says which command it is from."""
    ctx = click.get_current_context()
    group = ctx.parent.command.name if ctx.parent is not None else FAMILY
    click.echo(f"syndicate {group} {ctx.command.name}: {text}", err=True)


def _boot(
    agent: Agent,
    target: Target,
    instances: list[Instance],
    relations: list[str],
    show: Callable[[int, str, Row, bool], str],
    until: int | None,
    reads: bool,
) -> None:
    instance = agent()
    instances.append(instance)
    over: list[bool] = []

    def tell() -> None:
        for name in relations:
            for row, weight in sorted(instance.changed(name), key=lambda change: (change[1], order(change[0]))):
                click.echo(show(instance.time, name, row, weight > 0))
        sys.stdout.flush()
        if (until is not None and instance.time >= until) or (over and instance.resting):
            stop_actor()

    instance.on_timestep(tell)

    @connect(str(target.address), target.cap, attempts=3, tls=target.tls)
    def connected(ds: Ref) -> None:
        instance.join(ds)

    if reads:
        facet = current_facet()

        def end() -> None:
            over.append(True)
            if instance.resting:
                stop_actor()

        async def listen() -> None:
            await read_lines(lambda line: facet.enter(partial(_typed, instance, line)))
            facet.enter(end)

        linked_task(listen)


def _typed(instance: Instance, line: str) -> None:
    """Let facts be events; what is not one is reported, and nothing else happens."""
    text = line.strip()
    try:
        for statement in parse(text if not text or text.endswith((";", ".")) else f"{text};", "standard input"):
            constants = [term for term in getattr(statement, "head", Atom("")).terms if isinstance(term, Constant)]
            if not isinstance(statement, Rule) or not statement.fact or len(constants) != len(statement.head.terms):
                click.echo(f'standard input: {statement} is no event: type facts, such as said("a", 1)', err=True)
                continue
            row: tuple[Value, ...] = tuple(term.value for term in constants)
            instance.insert(statement.head.relation, row)
    except SyndicateError as error:
        click.echo(str(error), err=True)


_TOGETHER: Final = """\b
Examples:
  syndicate rules together gossip.ded a.log b.log
  syndicate rules together gossip.ded a.log b.log --json | jq .known
  syndicate rules together gossip.ded a.log b.log --output was.json
  syndicate rules run gossip.ded --schedule was.json --until 9 --diagram text
  syndicate rules verify gossip.ded --around was.json --eff 5 --nodes a,b
"""


@together.program("dedalus", _TOGETHER)
@click.argument("program", metavar="FILE")
@click.argument("files", metavar="LOG...", nargs=-1, required=True)
@click.option("--output", metavar="RUN.json", help="Write it as a schedule with events, for run, why and verify.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: {relation: {time: rows}}.")
def together_dedalus(program: str, files: tuple[str, ...], output: str | None, as_json: bool) -> None:
    """Run a program as it ran live, in one place: by what `live --record` wrote at all locations.

    Prints what came (+) and went (-), as `live` did, and what was sent.  Nothing is known of a location without an
    event log, which stderr says.
    """
    loaded = find_dedalus(program)
    logs = list(map(EventLog.load, files))
    rerun = together_of(logs)
    model = loaded.run(**rerun)
    if output is not None:
        write(json.dumps(rerun_to_json(rerun)), output)
    for place in sorted(_unknown(loaded, model, {log.location for log in logs}), key=repr):
        reason = "what happened there, and when it got what was sent to it, is unknown"
        _note(f"no event log is of {place}: {reason}")
    if as_json:
        click.echo(json.dumps(model.to_json()))
        return
    show_changes(model)
    click.echo(f"\n{model.diagram('text')}")


_TOGETHER_BLOOM: Final = """\b
Examples:
  syndicate rules together chat.py:Chat ann.log bob.log     (of Chat(ds, address="ann", record="ann.log"), ..)
  syndicate rules together chat.py:Chat ann.log bob.log --json | jq .ann
  syndicate rules together chat.py:Chat ann.log bob.log --output was.json
  syndicate rules why chat.py:Chat said '"hello"' --schedule was.json --at ann
  syndicate rules check chat.py:Chat --prove --schedule was.json --at ann
\b
A log of another class is run by the class of that name in the same module.
"""


@together.program("bloom", _TOGETHER_BLOOM)
@click.argument("program", metavar="MODULE:CLASS")
@click.argument("files", metavar="LOG...", nargs=-1, required=True)
@click.option("--output", metavar="RUN.json", help="Write what came to each program, for run, trace, why and check.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: {address: {collection: rows}}, in the end.")
@click.option("--diagram", type=click.Choice(FORMS), default="text", show_default=True)
def together_bloom(program: str, files: tuple[str, ...], output: str | None, as_json: bool, diagram: str) -> None:
    """Run programs as they ran live, in one place: by the logs that `record=` wrote, one of each program.

    Prints what came, went and was sent in each tick, and the rows between the programs.  Nothing is known of a program
    without an event log, which stderr says.
    """
    kind = find_bloom(program)
    logs = list(map(BloomLog.load, files))
    histories: list[tuple[BloomLog, History]] = []

    def begin(log: BloomLog) -> Bloom:
        instance = make(class_of(kind, log), address=log.address)
        if not as_json:
            histories.append((log, record(instance)))
        return instance

    was = bloom_together(logs, begin)
    if output is not None:
        write(json.dumps(together_to_json(logs, was)), output)
    for place in was.unknown:
        _note(f"no event log is of {place}: what happened there, and when it got what was sent to it, is unknown")
    if as_json:
        click.echo(json.dumps(was.to_json()))
        return
    for log, history in histories:
        click.echo(f"{log.address!r}, {log.program}\n{history.draw()}\n")
    click.echo(spacetime(was, diagram))


def _unknown(program: Program, model: Model, values: set[Value]) -> set[Value]:
    """The locations that a program or its messages name, and that have no event log."""
    placement = Placement(program.statements, apart=False)
    rows = [(message.relation, message.row) for message in model.messages]
    heads = [rule.head for rule in program.core() if rule.fact]
    rows += [(head.relation, tuple(t.value for t in head.terms if isinstance(t, Constant))) for head in heads]
    return {place for name, row in rows if (place := placement.of(name, row)) is not None} - values
