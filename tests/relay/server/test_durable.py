"""Durable assertions: the set that they are, and every crash that a disk can have, on a simulated disk."""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.server.durable import Durable, durable
from relay.server.journal import Journal
from syndicate import (
    Dictionary,
    Observe,
    Record,
    Ref,
    Symbol,
    assert_,
    capture,
    dataspace,
    prevent_inert_check,
    react,
    send,
    spawn,
    stop,
)
from syndicate.actors.actor import actor_of
from syndicate.actors.facet import Facet
from syndicate.actors.keep import Forget, Keep
from syndicate.actors.running import open_system
from syndicate.actors.system import System
from syndicate.actors.turn import Entity, Handle, current
from syndicate.actors.verbs import current_facet, ref, stop_actor, sync
from syndicate.errors import JournalError
from syndicate.index.event import SYNC
from syndicate.simulation.disk import SimulatedDisk
from syndicate.testing import Watcher, settled, watch
from syndicate.values.value import Value, freeze, thaw
from tests.strategies import examples

CRASHES = int(os.environ.get("SYNDICATE_CRASHES", "5000"))
DICTIONARY = Dictionary([(1, "x"), (True, "y")])
VALUES: list[Value] = [["a"], [1], [True], [1.0], ["a", DICTIONARY], [Symbol("a")], [2**70], [{"s", b"s"}]]
VOLATILE = freeze(["volatile"])
CLIENTS = 3

Action = tuple[str, int]
"""What is done, and with which of the values."""

Step = tuple[str, int, list[Action], bool]
"""``turn`` of a client, its actions, whether it asks for a reply; ``ask`` alone; ``lose`` it; ``take``, ``write``, or
``both``.
"""

actions = st.tuples(
    st.sampled_from(["assert", "assert", "retract", "retract", "keep", "forget", "volatile"]),
    st.integers(0, len(VALUES) - 1),
)
steps = st.tuples(
    st.sampled_from(["turn", "turn", "turn", "ask", "lose", "take", "write", "both"]),
    st.integers(0, CLIENTS - 1),
    st.lists(actions, max_size=4),
    st.booleans(),
)


@define
class Model:
    """What durable assertions are: by value, those who assert it now; and the states that were, turn by turn."""

    kept: dict[Any, set[Any]] = field(factory=dict)
    states: list[frozenset[Any]] = field(factory=lambda: [frozenset()])
    acknowledged: int = 0
    stamps: int = 0
    stamp: Value | None = None

    def act(self, kind: str, form: Any, who: Any = None) -> None:
        if kind in ("assert", "keep"):
            self.kept.setdefault(form, set()).update([who] if kind == "assert" else [])
        elif kind == "forget":
            self.kept.pop(form, None)
        elif who in self.kept.get(form, ()):
            self.kept[form].discard(who)
            if not self.kept[form]:
                del self.kept[form]

    def lose(self, client: int) -> None:
        for owners in self.kept.values():
            owners -= {who for who in owners if who[0] == client}

    def restart(self, recovered: frozenset[Any]) -> None:
        """Go on from what was recovered: a state that was there, no older than what was acknowledged."""
        self.check(recovered)
        stamps = [value[1] for value in map(thaw, recovered) if isinstance(value, tuple) and value[0] == "stamp"]
        assert len(stamps) <= 1, "half a turn"
        self.stamp = stamps[0] if stamps else None
        self.kept = {form: set() for form in recovered}
        self.states, self.acknowledged = [recovered], 0

    def check(self, recovered: frozenset[Any]) -> None:
        assert recovered in self.states[self.acknowledged :]


def lasting() -> Facet:
    """A facet that lives until it is stopped."""

    def stay() -> None:
        prevent_inert_check()

    return react(stay)


class Client:
    """An actor with a facet that stands for its connection."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.answered = 0
        self.connection: Facet
        self.handles: dict[Any, Handle] = {}

    def boot(self) -> None:
        prevent_inert_check()
        self.connect()

    def connect(self) -> None:
        self.handles = {}
        self.connection = lasting()

    def lose(self) -> None:
        stop(self.connection)
        self.connect()


class Instance:
    """One run of a server on *disk*, without tasks: the test says when is written."""

    def __init__(self, disk: SimulatedDisk, model: Model) -> None:
        self.disk = disk
        self.model = model
        self.journal = Journal(disk)
        self.journal.open()
        model.restart(frozenset(form for _, form in self.journal.recovered))
        self.clients = [Client(n) for n in range(CLIENTS)]
        self.taken: Any = None
        self.wrong: list[str] = []
        self.entity: Durable
        self.facet: Facet
        self.system: System = settled(self.boot)
        self.check()

    def boot(self) -> None:
        prevent_inert_check()
        self.facet = current_facet()
        self.ds = dataspace()
        self.watcher = Watcher()
        assert_(self.ds, Observe(capture(), ref(self.watcher)))
        self.actors = [spawn(self.begin), *[spawn(client.boot) for client in self.clients]]

    def begin(self) -> None:
        prevent_inert_check()
        self.entity = Durable(current_facet(), self.ds, self.journal)
        self.ref = ref(self.entity)
        self.entity.recover()

    def do(self, step: Step) -> None:
        kind, who, actions, asks = step
        client = self.clients[who]
        if kind == "turn":
            client.connection.enter(partial(self.turn, client, actions, asks))
        elif kind == "ask":
            client.connection.enter(partial(self.ask, client))
        elif kind == "lose":
            client.connection.parent.enter(client.lose)  # type: ignore[union-attr]  # it is no root
            self.model.lose(who)
        if kind in ("take", "both") and self.taken is None:
            self.taken = [self.journal.take()]
        if kind in ("write", "both") and self.taken is not None:
            changes, self.taken = self.taken[0], None
            if changes is not None:
                self.journal.commit(changes)
            self.entity._tell(self.journal.written())
        self.system.drain()
        assert not self.wrong
        assert not [actor for actor in self.actors if actor.error is not None]

    def turn(self, client: Client, actions: list[Action], asks: bool) -> None:
        """A turn of a client; stamped, so that each state of the model is like no other, but for those of the first."""
        model, gone = self.model, list[tuple[Any, Handle]]()
        if client.number:
            model.stamps += 1
            self.message(Keep(["stamp", model.stamps]))
        for kind, index in actions:
            value = VALUES[index]
            form = freeze(value)
            old = client.handles.get(form)
            if kind == "volatile":
                assert_(self.ds, ["volatile", value])
            elif kind == "assert":
                handle = client.handles[form] = current("assert").assert_(self.ref, value)
                model.act("assert", form, (client.number, handle))
            elif kind in ("keep", "forget"):
                self.message(Keep(value) if kind == "keep" else Forget(value))
            if old is not None and kind in ("assert", "retract"):
                if client.handles[form] is old:
                    del client.handles[form]
                old.retract()
                gone.append((form, old))
        if client.number:
            if model.stamp is not None:
                self.message(Forget(["stamp", model.stamp]))
            model.stamp = model.stamps
        for form, old in gone:  # a turn's retractions come last
            model.act("retract", form, (client.number, old))
        model.states.append(frozenset(model.kept))
        if asks:
            self.ask(client)

    def ask(self, client: Client) -> None:
        sync(self.ref, partial(self.answered, client, len(self.model.states) - 1))

    def message(self, message: Keep | Forget) -> None:
        send(self.ref, message)
        self.model.act("keep" if isinstance(message, Keep) else "forget", freeze(message.value))

    def answered(self, client: Client, state: int) -> None:
        if state < client.answered:
            self.wrong.append(f"client {client.number} is answered in another order than it asked")
        client.answered = state
        self.model.acknowledged = max(self.model.acknowledged, state)

    @property
    def seen(self) -> set[Any]:
        """What an observer of everything sees, but for interest."""
        return {freeze(value) for (value,) in self.watcher.captures.values() if not isinstance(value, Observe)}

    def check(self) -> None:
        """What observers see is what the model says, and volatile assertions beside it."""
        assert {form for form in self.seen if form[:2] != VOLATILE} == set(self.model.kept)


def check_images(disk: SimulatedDisk, model: Model, count: Counter[str], point: str) -> None:
    """Whatever a crash leaves now: what is recovered is a state that was there, also if the recovery crashes."""
    for image in disk.images():
        results: list[Any] = []

        def recover(image: SimulatedDisk, results: list[Any]) -> None:
            journal = Journal(image)
            journal.open()
            results.append((frozenset(form for _, form in journal.recovered), journal.turn))

        def again(point: str, image: SimulatedDisk = image, results: list[Any] = results) -> None:
            for second in image.images():
                count[f"in recovery, {point}"] += 1
                recover(second, results)

        image.step = again
        recover(image, results)
        count[point] += 1
        assert len(set(results)) == 1, "recovery is idempotent"
        model.check(results[0][0])


@settings(max_examples=examples(150))
@given(st.lists(steps, max_size=25))
def test_is_a_set_and_survives(program: list[Step]) -> None:
    """Observers see the model's set after each step; every crash recovers a prefix; a restart has it, and no more."""
    model, disk = Model(), SimulatedDisk()
    instance = Instance(disk, model)
    disk.step = partial(check_images, disk, model, Counter())
    for step in program:
        instance.do(step)
        instance.check()
    for _ in range(2):
        instance.do(("both", 0, [], False))
        instance.do(("write", 0, [], False))
    last = frozenset(model.kept)
    disk.step = lambda point: None
    instance = Instance(disk.copy(), model)
    assert frozenset(model.kept) == last
    assert instance.seen == last  # nothing volatile


def random_step(rng: random.Random) -> Step:
    """A step of a program."""
    kind = rng.choice(["turn"] * 5 + ["ask", "lose", "take", "write", "both"])
    actions = [
        (rng.choice(["assert", "assert", "retract", "retract", "keep", "forget", "volatile"]), rng.randrange(8))
        for _ in range(rng.randrange(4))
    ]
    return kind, rng.randrange(CLIENTS), actions, rng.random() < 0.5


@pytest.mark.timeout(900 + CRASHES // 100)
def test_random_crashes() -> None:
    """Many crashes, at every point of the writing, run after run: always a prefix with what was acknowledged."""
    count: Counter[str] = Counter()
    for seed in itertools.count():
        rng = random.Random(seed)
        model, disk = Model(), SimulatedDisk()
        for _run in range(4):
            disk.step = partial(check_images, disk, model, count)
            instance = Instance(disk, model)
            disk.step = partial(check_images, disk, model, count)
            for _ in range(rng.randrange(25)):
                instance.do(random_step(rng))
            disk = disk.crashed(rng)
        if sum(number for point, number in count.items() if "recovery" not in point) >= CRASHES:
            break
    points = {"before the write", "written, not synced", "synced, not answered"}
    assert {*points, *[f"in recovery, {point}" for point in points]} <= set(count)


def test_acknowledgements_come() -> None:
    """Whoever asked gets a reply as soon as what was there is committed, and not before; at once if all is."""
    model, disk = Model(), SimulatedDisk()
    instance = Instance(disk, model)
    instance.do(("turn", 0, [("assert", 0)], True))
    assert model.acknowledged == 0
    instance.do(("take", 0, [], False))
    instance.do(("turn", 1, [("assert", 1)], True))
    instance.do(("write", 0, [], False))
    assert model.acknowledged == 1
    instance.do(("both", 0, [], False))
    assert model.acknowledged == 2
    messages: list[bool] = []
    instance.facet.enter(lambda: sync(instance.ref, lambda: messages.append(True)))
    instance.system.drain()
    assert messages == [True]


def test_answers_keep_their_order() -> None:
    """Who asks between the commit and its announcement is not answered before those whom it is announced to."""
    instance = Instance(SimulatedDisk(), Model())
    order: list[str] = []

    class Asker(Entity):
        def __init__(self, name: str) -> None:
            self.name = name

        def message(self, value: Value) -> None:
            order.append(self.name)

    first, second = (Ref(instance.facet, Asker(name)) for name in ("first", "second"))
    instance.system.schedule(actor_of(instance.ref), (SYNC, instance.ref, second, None))
    instance.entity._tell([first])
    instance.system.drain()
    assert order == ["first", "second"]


def test_what_waits_is_bounded_by_state() -> None:
    """However often something comes and goes while the disk is busy, what waits is one row."""
    model, disk = Model(), SimulatedDisk()
    instance = Instance(disk, model)
    for _ in range(200):
        instance.do(("turn", 1, [("assert", 0)], False))
        instance.do(("turn", 1, [("retract", 0)], False))
    changes = instance.journal.take()
    assert changes is not None
    assert len(changes.added) == 1
    assert not changes.removed


class Two:
    """Two facets of one actor, before a durable dataspace, on a clock."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.journal = Journal(disk)
        self.journal.open()
        self.order: list[str] = []
        self.one: Facet
        self.two: Facet

    def boot(self) -> None:
        prevent_inert_check()
        self.facet = current_facet()
        self.ds = dataspace()
        self.all = watch(self.ds, capture())
        self.ref = durable(self.ds, self.journal, most=3, ready=self.ready)

    @property
    def seen(self) -> list[Any]:
        return [item for item in self.all if not isinstance(item[1], Observe)]

    def ready(self) -> None:
        self.order.append(f"ready, and {len(self.seen)} seen")
        self.one = lasting()
        self.two = lasting()


async def served(disk: SimulatedDisk, *, then: Callable[[Two], object]) -> Two:
    """Let *then* happen at a server on *disk*, and end in order once that is written."""
    server = Two(disk)
    async with open_system(server.boot) as system:
        await system.settle()
        written = trio.Event()
        server.one.enter(lambda: then(server))
        server.facet.enter(lambda: server.facet.enter(lambda: sync(server.ref, written.set)))
        await written.wait()
        await system.settle()
    return server


def found_on(disk: SimulatedDisk) -> list[tuple[int, Any]]:
    """What a restart would find."""
    journal = Journal(disk.copy())
    journal.open()
    return journal.recovered


async def test_a_run_of_a_server() -> None:
    """Assert, restart, see it before anything is ready, retract, restart, see nothing."""
    disk = SimulatedDisk()
    first = await served(disk, then=lambda server: [assert_(server.ref, "x"), assert_(server.ds, "y")])
    assert first.order == ["ready, and 0 seen"]
    assert not disk.locked
    second = await served(disk, then=lambda server: assert_(server.ref, "x").retract())
    assert second.order == ["ready, and 1 seen"]
    assert (first.journal.epoch, second.journal.epoch) == (1, 2)
    third = await served(disk, then=lambda server: [])
    assert third.order == ["ready, and 0 seen"]


async def test_a_lost_facet_is_no_retraction() -> None:
    """The end of a facet leaves the value; the last who asserts it takes it away."""
    disk = SimulatedDisk()

    def lose(server: Two) -> None:
        for value in ("a", "b"):
            assert_(server.ref, value)
        stop(server.one)

    server = await served(disk, then=lose)
    assert server.seen[:2] == [("+", "a"), ("+", "b")]
    assert {form for _, form in found_on(disk)} == {"a", "b"}


async def test_forget_leaves_those_who_assert_without_effect() -> None:
    """After `<forget V>` a retraction of an older assertion changes nothing; a new assertion counts."""
    disk = SimulatedDisk()

    def forget(server: Two) -> None:
        old = assert_(server.ref, "a")
        send(server.ref, Forget("a"))
        assert_(server.ref, "a")
        old.retract()

    await served(disk, then=forget)
    assert [form for _, form in found_on(disk)] == ["a"]


async def test_what_cannot_be_kept_is_volatile(logs: list[Any]) -> None:
    """Interest, live references and what is beyond the limit are in the dataspace, and not on the disk."""
    disk = SimulatedDisk()

    def refuse(server: Two) -> None:
        live = ref(Watcher())
        assert_(server.ref, Observe(["other", capture()], live))
        assert_(server.ref, Record("live", [live]))
        send(server.ref, Keep(Record("live", [live])))
        for n in range(5):
            assert_(server.ref, n)
        send(server.ref, "a message")

    server = await served(disk, then=refuse)
    assert [form for _, form in found_on(disk)] == [0, 1, 2]
    assert ("!", "a message") in server.seen
    assert [item for item in server.seen if type(item[1]) is int] == [("+", n) for n in range(5)]
    refused = [(entry["so_far"], entry["value"]) for entry in logs if entry["event"] == "not kept"]
    assert refused == [(1, "live"), (2, "live"), (4, "int")]


def note(server: Two, messages: list[str]) -> None:
    """Assert something, and note in *told* when it is acknowledged."""
    assert_(server.ref, "x")
    sync(server.ref, lambda: messages.append("x"))


async def test_a_failing_disk_ends_the_server(logs: list[Any]) -> None:
    """A full disk, once: no acknowledgement any more, no second attempt, and the first actor ends with the error."""
    disk = SimulatedDisk()
    server = Two(disk)
    attempts: list[str] = []
    messages: list[str] = []

    def fail(point: str) -> None:
        attempts.append(point)
        if point == "written, not synced":
            raise OSError(28, "No space left on device")

    with pytest.raises(JournalError, match="No space left"):  # noqa: PT012
        async with open_system(server.boot) as system:
            await system.settle()
            disk.step = fail
            server.one.enter(lambda: note(server, messages))
            while server.facet.alive:
                server.facet.enter(lambda: sync(server.ref, lambda: messages.append("later")))
                await trio.sleep(0.001)
    assert messages == []
    assert attempts == ["before the write", "written, not synced"]
    assert not disk.locked


async def test_a_disk_that_fails_at_the_very_end(logs: list[Any]) -> None:
    """What fails when the server is stopping fails the server as well."""
    disk = SimulatedDisk()
    server = Two(disk)

    def fail(point: str) -> None:
        raise OSError(5, "Input/output error")

    with pytest.raises(JournalError, match="Input/output"):  # noqa: PT012
        async with open_system(server.boot) as system:
            await system.settle()
            disk.step = fail
            server.one.enter(lambda: note(server, []))
            server.facet.enter(stop_actor)
            await system.settle()
