"""How a program is run, as the options of the commands say: time, seed, schedule, and what goes wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Final

import click
from attrs import frozen

from relay.cli.exit_codes import Number
from relay.cli.rules.rule_files import check_named, read_events, read_schedule
from syndicate.dedalus import Model, Net, Program
from syndicate.dedalus.ast import Atom, Constant, Row, Rule, Value
from syndicate.dedalus.net import STOPS, Stop, nodes_of
from syndicate.dedalus.schedule import DELIVERIES, Delivery
from syndicate.dedalus.timeline import order


def delay_of(_: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """``2``, or ``1-3``: the shortest and the longest delay."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", value.strip())
    low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= low <= high:
        raise click.BadParameter(
            f"{value!r} is no delay: give timesteps, 2 or 1-3, of which the least is 1", param=param
        )
    return low, high


def crashes_of(_: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[Value, int]:
    """``a@3``: the nodes, and when they crash."""
    times: dict[Value, int] = {}
    for value in values:
        word, at, time = value.rpartition("@")
        if not at or not re.fullmatch(r"\d+", time):
            raise click.BadParameter(f"{value!r} is no crash: give a node and a time, such as a@3", param=param)
        (node,) = nodes_of([word])
        if node in times:
            raise click.BadParameter(f"{node} is named twice: a node crashes once", param=param)
        times[node] = int(time)
    return times


def nodes_named(_: click.Context, param: click.Parameter, value: str | None) -> tuple[Value, ...]:
    """``a,b,c``: the names; those that look like integers are integers."""
    if value is None:
        return ()
    words = value.split(",")
    if not all(word.strip() for word in words):
        raise click.BadParameter(f"{value!r} has a node without a name: give a,b,c", param=param)
    return nodes_of(words)


@frozen
class RunOptions:
    """How a program is run, but for its end."""

    start: int
    seed: int | None
    schedule: str | None
    delivery: Delivery
    strict: bool
    net: Net | None

    def model(self, program: Program, until: int) -> Model:
        """Run a program; raises what :meth:`Program.run` does, :class:`ScheduleError` and :class:`click.UsageError`."""
        if until < self.start:
            raise click.UsageError(f"--until {until} is before --start {self.start}")
        if self.net is not None:
            check_named(program, self.net.crash, "--crash")
        said = read_schedule(self.schedule) if self.schedule is not None else None
        return program.run(
            self.start,
            until,
            seed=self.seed,
            schedule=said,
            events=None if self.schedule is None else read_events(self.schedule),
            delivery=self.delivery,
            strict=self.strict,
            net=self.net,
        )


_OPTIONS: Final = (
    click.option("--start", type=int, default=1, show_default=True, metavar="T", help="The first timestep."),
    click.option(
        "--seed", type=int, metavar="N", help="Choose by this seed when messages arrive, and what goes wrong."
    ),
    click.option("--schedule", metavar="S.json", help="When messages arrive; default: after one timestep."),
    click.option("--delivery", type=click.Choice(DELIVERIES), default="free", show_default=True),
    click.option("--strict", is_flag=True, help="Check as `check --strict` does."),
    click.option("--delay", callback=delay_of, metavar="N-N", help="Let messages take from N to N timesteps."),
    click.option("--loss", type=Number(0, 1), default=0, metavar="P", help="Lose messages, each by a chance."),
    click.option("--duplicate", type=Number(0, 1), default=0, metavar="P", help="Let messages arrive twice."),
    click.option("--crash", callback=crashes_of, multiple=True, metavar="NODE@T", help="Crash a node at a time."),
    click.option("--stop", type=click.Choice(STOPS), default="sending", show_default=True, help="What a crash stops."),
    click.option("--nodes", callback=nodes_named, metavar="A,B", help="Whom `crash(told, node, time)` tells."),
)


def running(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a run; it gets them as *how*, a :class:`RunOptions`."""

    @wraps(function)
    def called(
        *args: object,
        start: int,
        seed: int | None,
        schedule: str | None,
        delivery: Delivery,
        strict: bool,
        delay: tuple[int, int] | None,
        loss: float,
        duplicate: float,
        crash: dict[Value, int],
        stop: Stop,
        nodes: tuple[Value, ...],
        **options: object,
    ) -> None:
        net = Net(nodes, crash=crash, delay=delay, loss=loss, duplicate=duplicate, stop=stop)
        wrong = delay or loss or duplicate or crash or nodes
        function(*args, how=RunOptions(start, seed, schedule, delivery, strict, net if wrong else None), **options)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called


def derived(rules: Iterable[Rule]) -> list[str]:
    """The relations that rules derive, in order."""
    return list(dict.fromkeys(rule.head.relation for rule in rules if not rule.fact))


def as_text(time: int, name: str, row: Row, there: bool) -> str:
    """A change, as it is read."""
    return f"{time} {'+' if there else '-'} {Atom(name, tuple(map(Constant, row)))}"


def as_json_line(time: int, name: str, row: Row, there: bool) -> str:
    """A change, as a program reads it."""
    return json.dumps({"time": time, "rel": name, "tuple": list(row), "there": there})


def show_changes(model: Model, *, as_json: bool = False) -> None:
    """Print what came and went, of what rules derive, as text or lines of JSON."""
    show = as_json_line if as_json else as_text
    for time, there, name, row in sorted(_changes(model), key=lambda one: (*one[:3], order(one[3]))):
        click.echo(show(time, name, row, there))


def _changes(model: Model) -> Iterator[tuple[int, bool, str, Row]]:
    """What came, and what went, of the relations that rules derive."""
    for name in derived(model.rules):
        for row, spans in model.intervals[name].items():
            for since, to in spans:
                yield since, True, name, row
                if to <= model.until:
                    yield to, False, name, row
