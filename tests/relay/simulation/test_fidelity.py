"""The simulated broker and the real one: without faults each client hears the same, event by event.

Scripts are made from a seed.  Each step of a script is one client's, and the next step waits until its client has
heard of the end of the one before; so what there is to hear has one order, whatever the network takes its time for.
The real run has a real disk, and real sockets for each client.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio
from attrs import frozen

from relay import connect
from relay.capabilities.sturdy import SturdyRef, mint
from relay.server.broker import Broker
from relay.server.durable import durable
from relay.server.journal import Journal, StateDirectory
from relay.simulation import View, World, scenario
from syndicate import (
    Field,
    Handle,
    Ref,
    assert_,
    capture,
    dataflow,
    dataspace,
    during,
    field,
    on_asserted,
    on_message,
    on_retracted,
    open_system,
    record,
    send,
    sync,
)
from syndicate.actors.keep import forget, keep
from syndicate.values.value import Value
from tests.work import PATIENCE

RUNS = int(os.environ.get("SYNDICATE_FIDELITY", "10"))
CLIENTS = ("a", "b", "c")
STEPS = 20

Log = list[tuple[str, object]]
Logs = dict[str, Log]
Standing = list[tuple[Value, ...]]


@record
class Fact:
    """What scripts assert, send and keep."""

    kind: str
    number: int


@record
class Over:
    """A step is over."""

    step: int


@frozen
class Step:
    """What one client does: *what* to the dataspace, or with *kept* to the durable one."""

    client: str
    what: str
    kept: bool
    fact: Fact


def script(seed: int) -> list[Step]:
    """A script; the first steps let everybody in."""
    chance = random.Random(seed)
    steps = [Step(name, "observe", False, Fact(chance.choice("xy"), 0)) for name in CLIENTS]
    for _ in range(STEPS):
        what = chance.choice(["assert", "assert", "assert", "retract", "send", "send", "keep", "forget", "observe"])
        durable = what in ("keep", "forget") or chance.random() < 0.3
        fact = Fact(chance.choice("xy"), chance.randrange(3))
        steps.append(Step(chance.choice(CLIENTS), what, durable and what != "observe", fact))
    return steps


def client(name: str, steps: list[Step], log: Log, address: str, caps: tuple[SturdyRef, SturdyRef]) -> None:
    """Does its steps when they are due, and notes what it hears."""
    plain: Field[Ref | None] = field(None)
    durable: Field[Ref | None] = field(None)
    over = field(-1)
    begun: set[int] = set()
    handles: dict[tuple[bool, Fact], list[Handle]] = {}

    connect(address, caps[0])(lambda ds: setattr(plain, "value", ds))
    connect(address, caps[1])(lambda ds: setattr(durable, "value", ds))

    @dataflow
    def joined() -> None:
        if plain.value is not None:
            ds = plain.value

            @during(ds, Over(capture(int)))
            def is_over(step: int) -> None:
                over.value = max(over.value, step)

    @dataflow
    def due() -> None:
        step = over.value + 1
        if plain.value and durable.value and step < len(steps) and steps[step].client == name and step not in begun:
            begun.add(step)
            act(steps[step], plain.value, durable.value)
            ds = plain.value
            sync(durable.value if steps[step].kept else ds, lambda: assert_(ds, Over(step)))

    def act(step: Step, plain: Ref, durable: Ref) -> None:
        ds = durable if step.kept else plain
        mine = handles.setdefault((step.kept, step.fact), [])
        if step.what == "assert":
            mine.append(assert_(ds, step.fact))
        elif step.what == "retract" and mine:
            mine.pop().retract()
        elif step.what == "send":
            send(ds, step.fact)
        elif step.what == "keep":
            keep(ds, step.fact)
        elif step.what == "forget":
            forget(ds, step.fact)
        elif step.what == "observe":
            pattern = Fact(step.fact.kind, capture(int))
            kind = f"{step.fact.kind}{len(begun)}"
            on_asserted(ds, pattern)(lambda number: log.append((f"{kind}+", number)))
            on_retracted(ds, pattern)(lambda number: log.append((f"{kind}-", number)))
            on_message(ds, pattern)(lambda number: log.append((f"{kind}!", number)))


def simulated(seed: int) -> tuple[Logs, Standing]:
    """What each client hears in a world, and what is asserted at the end."""
    logs: Logs = {name: [] for name in CLIENTS}
    views: list[View] = []

    @scenario(until=300.0)
    def build(world: World) -> None:
        broker = world.broker("broker", durable=True)
        steps = script(seed)
        for name in CLIENTS:
            caps = broker.cap(), broker.cap("durable")
            world.process(name, client, name, steps, logs[name], broker.address, caps)
        over = world.observe(broker, Over(capture()))
        facts = world.observe(broker, Fact(capture(), capture()))
        world.eventually("all steps", lambda: len(over.value) == len(steps), within=200.0)
        views.append(facts)

    outcome = build.run(seed)
    assert outcome.violation is None
    assert outcome.at_rest
    return logs, views[0].value


async def real(seed: int, state: Path) -> tuple[Logs, Standing]:
    """The same on sockets and a disk; each client has a system of its own."""
    logs: Logs = {name: [] for name in CLIENTS}
    current: dict[tuple[Value, ...], None] = {}
    opened: list[str] = []
    is_open = trio.Event()
    steps = script(seed)
    ended = {name: trio.Event() for name in ("b", *CLIENTS)}

    def serve() -> None:
        ds = dataspace()
        journal = Journal(StateDirectory(state))
        journal.open()

        def ready(addresses: list[str]) -> None:
            opened.extend(addresses)
            is_open.set()

        broker = Broker(["tcp://127.0.0.1:0"], ds=ds, opened=ready)
        face = durable(ds, journal, ready=lambda: broker({"durable": face}))
        on_asserted(ds, Fact(capture(), capture()))(lambda *of: current.update({of: None}))
        on_retracted(ds, Fact(capture(), capture()))(lambda *of: current.pop(of))
        on_asserted(ds, Over(len(steps) - 1))(ended["b"].set)

    def watched(name: str, boot: Callable[[], object]) -> None:
        boot()

        @connect(opened[0])
        def connected(ds: Ref) -> None:
            on_asserted(ds, Over(len(steps) - 1))(lambda: sync(ds, ended[name].set))

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:

            async def live(boot: Callable[[], object]) -> None:
                async with open_system(boot):
                    await trio.sleep_forever()

            nursery.start_soon(live, serve)
            await is_open.wait()
            caps = mint("syndicate", b""), mint("durable", b"")
            for name in CLIENTS:
                boot = partial(client, name, steps, logs[name], opened[0], caps)
                nursery.start_soon(live, partial(watched, name, boot))
            for end in ended.values():
                await end.wait()
            result = {name: list(log) for name, log in logs.items()}, list(current)
            nursery.cancel_scope.cancel()
    return result


@pytest.mark.parametrize("seed", range(RUNS))
def test_a_world_and_the_machine_agree(seed: int, tmp_path: Path) -> None:
    """What each client hears, in order; and what is asserted at the end."""
    logs, current = simulated(seed)
    messages, left = trio.run(real, seed, tmp_path)
    assert logs == messages
    assert sorted(map(str, current)) == sorted(map(str, left))
    assert any(logs.values())


def test_scripts_have_something_to_hear() -> None:
    """Each kind of event, at somebody."""
    kinds = {kind[-1] for seed in range(5) for log in simulated(seed)[0].values() for kind, _ in log}
    assert kinds == {"+", "-", "!"}
