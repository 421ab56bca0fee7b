"""Native kernels beside the Python that specifies them: the same results, the same errors, nothing kept.

That they leave whole systems unchanged, turn by turn, is shown in ``tests/relay/simulation/test_determinism.py``; and
each test of values, index and actors runs on whichever is there.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import subprocess
import sys
import weakref
from collections.abc import Callable
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES
from inspect import getdoc, signature
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.transport.websocket_frames import whole_frames
from syndicate import (
    Entity,
    Observe,
    Symbol,
    assert_,
    capture,
    current_facet,
    dataspace,
    field,
    native,
    on_asserted,
    on_message,
    on_stop,
    prevent_inert_check,
    react,
    record,
    ref,
    run,
    send,
    spawn,
    stop,
    stop_actor,
    sync,
)
from syndicate.actors.actor import Actor
from syndicate.actors.turn import Handle, current, note_assertion, note_retraction
from syndicate.errors import KernelsMissing
from syndicate.index.compiled import factory
from syndicate.index.index import Gate, Index
from syndicate.index.path import class_of, project
from syndicate.index.skeleton import analyse
from syndicate.index.trie import ConstantTable, Notice
from syndicate.introspect import chronicled
from syndicate.native import kernel, specifications
from syndicate.testing import settled
from syndicate.values.value import Ref, freeze, thaw
from tests.strategies import P, Q, patterns_like, values

ROOT = Path(__file__).parents[2]
built = pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION)


def python(name: str) -> Any:
    """The specification of a kernel."""
    return specifications[name]


def outcome(fn: Callable[..., Any], *arguments: Any) -> object:
    """What it returns, or the class and text of what it raises."""
    try:
        return fn(*arguments)
    except Exception as error:
        return type(error), str(error)


class Plain(P):
    """A subclass of a record class that is no record class itself."""


@record("hidden")
class Hidden:
    """A record whose field is read through something else."""

    x: Any

    def __getattribute__(self, name: str) -> Any:
        return 7 if name == "x" else object.__getattribute__(self, name)


STRANGE = [
    *(None, object(), P, len, [None], P(None), [[P(None)]], {"a": None}, 1j, range(3), memoryview(b"ab")),
    *(type("Text", (str,), {})("t"), type("Number", (int,), {})(2**70), type("Number", (int,), {})(-2)),
    *(type("Items", (list,), {})([1, [2]]), type("Pair", (tuple,), {})((1, -2)), bytearray(b"x")),
    *(list(range(300)), [list(range(300))], [[[[[[1]]]]]], Q([[[[Q(1)]]]]), Plain(1), Hidden(1)),
    *(2**61 - 1, 2**61 - 2, -(2**61) + 1, -(2**61) + 2, 2**63, -(2**63), 2**63 - 1, -2, -1),
]


@built
@pytest.mark.parametrize("depth", range(5))
@pytest.mark.parametrize("value", STRANGE, ids=range(len(STRANGE)))
def test_what_is_strange_freezes_alike(value: Any, depth: int) -> None:
    """And what is no value raises the same error, at every depth."""
    for whole in (value, [value], P(value), {"k": [value]}):
        assert outcome(freeze, whole, depth) == outcome(python("freeze"), whole, depth)


@built
@given(values(wide=True))
def test_values_freeze_and_thaw_alike(value: Any) -> None:
    """Whatever the value; a form that the collector need not look at holds none that it does."""
    form = freeze(value)
    assert form == python("freeze")(value)
    assert repr(thaw(form)) == repr(python("thaw")(form))
    todo = [form]
    while todo:
        part = todo.pop()
        if type(part) is tuple:
            todo += part
            if not gc.is_tracked(part):
                assert not any(isinstance(below, Ref) for below in part)


@built
def test_records_of_many_classes_freeze_alike() -> None:
    """In any order, and together with values of other classes, however many have been made."""
    chance = random.Random(5)
    classes: list[Any] = [
        record(f"many-{number}")(type("Many", (), {"__annotations__": dict.fromkeys(["x", "y"][: number % 3], Any)}))
        for number in range(99)
    ]
    for _ in range(2_000):
        one, other = chance.choices(classes, k=2)
        inner = other(*[chance.randrange(9)] * len(attrs.fields(other)))
        value = chance.choice([inner, [inner], one(*[inner] * len(attrs.fields(one)))])
        assert freeze(value) == python("freeze")(value)
        assert type(inner) is other


def test_a_cyclic_value_is_refused() -> None:
    """Whichever runs, and however it is cyclic."""
    items: list[Any] = []
    items.append(P(items))
    assert outcome(freeze, items) == outcome(python("freeze"), items)


@given(st.data(), st.lists(values(max_leaves=5), min_size=1, max_size=6))
def test_tables_do_alike(data: st.DataObject, written: list[Any]) -> None:
    """The five methods of a table, in any order: the same events, the same notices, the same values kept."""
    skeleton, constants = analyse(data.draw(patterns_like(written[0])))
    forms = [freeze(value) for value in written]
    keeps = bool(skeleton.places) and data.draw(st.booleans())
    sides = []
    for make in (factory, python("factory")):
        events: list[Any] = []

        def note(events: list[Any], kind: int, handler: Any, captures: Any, thawed: Any, notice: Any) -> None:
            events.append((kind, captures, repr(thawed), notice and (notice.captures, notice.count)))

        tell = partial(note, events)
        table = ConstantTable(skeleton, (), tell)
        table.handler(constants, list)
        table.values = {} if keeps else None
        add, remove, send_, fill, recall = make(skeleton.places, skeleton.checks, skeleton.captures)(
            table, Notice, tell
        )
        sides.append((table, events, {"add": add, "remove": remove, "send": send_, "fill": fill, "recall": recall}))
    present: list[Any] = []
    fits = [form for form in forms if _shaped(skeleton, form)]
    for _ in range(data.draw(st.integers(0, 8)) if fits else 0):
        form = data.draw(st.sampled_from(fits))
        what = data.draw(st.sampled_from(["add", "send", "remove"] if form not in present else ["remove", "send"]))
        if what == "remove" and form not in present:
            continue
        if what == "add":
            present.append(form)
        elif what == "remove":
            present.remove(form)
        assert len({repr(outcome(methods[what], form)) for _, _, methods in sides}) == 1
    one, other = sides
    assert one[1] == other[1]
    assert one[0].values == other[0].values
    survivors = []
    for table, _, methods in sides:
        notices: dict[Any, Any] = {}
        methods["recall"](notices, fits)
        counted = [(captures, notice.count, repr(notice.thawed())) for captures, notice in notices.items()]
        contents: list[Any] = []
        if table.values is not None:
            table.values.clear()
            methods["fill"](fits)
            contents += table.values.items()
        survivors.append((counted, contents))
    assert survivors[0] == survivors[1]


def _shaped(skeleton: Any, form: Any) -> bool:
    """Whether a value passes the shape, as each does that a table is asked about."""
    return all(class_of(project(form, path)) == head for path, head in skeleton.shape)


@given(st.lists(st.tuples(st.sampled_from(["add", "remove", "send"]), values(max_leaves=3)), max_size=12), st.data())
def test_gates_do_alike(steps: list[tuple[str, Any]], data: st.DataObject) -> None:
    """An index behind the one and behind the other: the same events, bags and results."""
    patterns = [data.draw(patterns_like(value)) for _, value in steps[:3]]
    sides = []
    for gate in (Gate, python("Gate")):
        events: list[Any] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("syndicate.index.index.Gate", gate)
            index = Index(
                lambda kind, handler, captures, thawed, notice, e=events: e.append((kind, captures, repr(thawed)))
            )
        for number, pattern in enumerate(patterns):
            index.observe(*analyse(pattern), REFS[number])
        done = [repr(outcome(getattr(index, what), freeze(value))) for what, value in steps]
        sides.append((events, done, index.gate.counts, {head: dict(bag) for head, bag in index.bags.items()}))
    assert sides[0] == sides[1]


REFS = [Ref.unbound() for _ in range(3)]


@record("says")
class Says:
    """What is sent in the tests below."""

    who: Any
    what: Any


def test_a_system_that_has_ended_is_collected() -> None:
    """Native objects are in cycles with the system's: the collector goes through them."""

    class Mark:
        pass

    def instance() -> weakref.ref[Mark]:
        mark = Mark()

        def boot() -> None:
            ds = dataspace()
            on_message(ds, Says("a", capture()))(lambda what, mark=mark: None)
            on_asserted(ds, Says(capture(), 1))(lambda who, mark=mark: None)
            for number in range(300):  # enough for the tables to be hot
                send(ds, Says("a", number))
                assert_(ds, Says(number, 1))

        run(boot)
        return weakref.ref(mark)

    dead = instance()
    gc.collect()
    assert dead() is None


@given(
    st.lists(
        st.tuples(st.sampled_from(["assert", "retract", "again", "send"]), st.integers(0, 1), values()), max_size=12
    )
)
def test_turns_note_alike(steps: list[tuple[str, int, Any]]) -> None:
    """Assertions and retractions, in any order and for several targets: the same events are noted, the same handles
    are live.
    """
    sides: list[Any] = []

    def boot() -> None:
        turn, facet, targets = current("test"), current("test").facet, [dataspace(), ref(Entity())]
        for note, withdraw in (
            (note_assertion, note_retraction),
            (python("note_assertion"), python("note_retraction")),
        ):
            handles: list[Handle] = []
            before = turn.suspend()
            turn.actor, turn.facet = facet.actor, facet
            for verb, number, value in steps:
                if verb == "assert":
                    handles.append(note(turn, turn.facet, targets[number], freeze(value)))
                elif verb == "send":
                    turn.send(targets[number], value)
                elif handles:
                    withdraw(turn, handles[number % len(handles)])
                    if verb == "again":
                        withdraw(turn, handles[-1])
            names: dict[object, int] = {handle: number for number, handle in enumerate(handles)}
            noted = [
                (actor, kind, target, repr(value), names.get(handle))
                for batches in (turn.pending, turn.late)
                for actor, events in batches.items()
                for kind, target, value, handle in events
            ]
            sides.append((noted, [(handle.live, handle.form, handle.target) for handle in handles]))
            for handle in handles:
                withdraw(turn, handle)
            turn.resume(before)

    run(boot)
    assert sides[0] == sides[1]


def test_handles_are_retracted_alike() -> None:
    """In a turn of their actor, twice, of another actor's turn, in none; with too few arguments, and too many."""
    specified = python("retract")

    def seen(retract: Callable[..., object]) -> list[object]:
        heard: list[object] = []

        def boot() -> None:
            ds = dataspace()
            on_asserted(ds, Says(capture(), 1))(partial(heard.append))
            mine, theirs, late = [assert_(ds, Says(number, 1)) for number in range(3)]

            def other() -> None:
                heard.append(outcome(retract, theirs))
                retract(assert_(ds, Says("other", 1)))

            def step() -> None:
                heard.append([retract(mine), retract(mine), mine.live])
                heard.append(current("test").late[ds.facet.actor][0][0])
                heard.extend([type(outcome(retract, *wrong)) for wrong in ((), (mine, 1))])
                spawn(other)
                sync(ds, lambda: heard.append(late.live))

            handles.append(late)
            sync(ds, step)

        handles: list[Handle] = []
        run(boot)
        heard.append(outcome(retract, handles[0]))
        return heard

    native_side = seen(Handle.retract)
    assert len(native_side) > 9
    assert native_side == seen(specified)
    assert getdoc(Handle.retract) == getdoc(specified)
    assert [*signature(Handle.retract).parameters] == [*signature(specified).parameters]


class Stumbles(Exception):
    """What an actor of the programs below crashes with."""


def history(seed: int) -> list[object]:
    """What is seen in a small random program: who hears what, who crashes, how it ends."""
    chance, seen = random.Random(seed), list[object]()
    ends = chance.choice([None, None, SystemExit, KeyboardInterrupt])

    def member(ds: Ref, name: int) -> None:
        on_stop(lambda: seen.append(("stops", name)))
        level = field(name)
        assert_(ds, lambda: ["level", name, level.value])

        @on_asserted(ds, ["level", capture(), capture()])
        def rises(other: int, value: int) -> None:
            seen.append(("+", name, other, value))
            if value < 12:
                send(ds, ["set", chance.randrange(5), value + 1])

        @on_message(ds, ["set", name, capture()])
        def changes(value: int) -> None:
            seen.append(("!", name, value))
            level.value = value
            roll = chance.random()
            if roll < 0.05:
                raise Stumbles(name)
            if roll < 0.1:
                stop_actor()
            elif roll < 0.15:
                spawn(member, ds, 10 + name, name=f"member {10 + name}") if name < 10 else None
            elif roll < 0.17 and ends is not None:
                raise ends

    def boot() -> None:
        ds = dataspace()
        for name in range(5):
            spawn(member, ds, name, name=f"member {name}")

    try:
        run(boot)
    except BaseException as error:
        seen.append(repr(error))
    return seen


@built
@pytest.mark.parametrize("seed", range(40))
def test_turns_are_taken_alike(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With crashes, ends of the program, and blocks that settle: each handler sees the same, in the same order."""
    native_side = history(seed)
    monkeypatch.setattr("syndicate.actors.system.take_turns", python("take_turns"))
    monkeypatch.setattr("syndicate.actors.system.take_all", python("take_all"))
    assert native_side == history(seed)
    assert len(native_side) > 10


@built
@pytest.mark.parametrize("every", [1, 3])
def test_turns_are_followed_alike(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chronicle of all, or of a sample, has the same steps, whichever takes the turns."""

    def steps(seed: int) -> list[object]:
        with chronicled(every=every) as chronicles:
            seen = history(seed)
        return [
            (step.number, step.turn, step.actor, step.kind, step.causes, step.rests, len(step.acts))
            for chronicle in chronicles
            for step in chronicle.steps()
        ] + seen

    native_side = [steps(seed) for seed in range(20)]
    monkeypatch.setattr("syndicate.actors.system.take_turns", python("take_turns"))
    monkeypatch.setattr("syndicate.actors.system.take_all", python("take_all"))
    assert native_side == [steps(seed) for seed in range(20)]
    assert all(len(each) > 10 for each in native_side)


class Onlooker(Entity):
    """Writes down what it is notified of; ends its facet at every tenth."""

    def __init__(self, name: object, seen: list[object]) -> None:
        self.name = name
        self.seen = seen
        self.handles: dict[object, int] = {}

    def message(self, value: Any) -> None:
        self.note("!", value)

    def assert_(self, value: Any, handle: Any) -> None:
        self.handles[handle] = len(self.handles)
        self.note("+", value)

    def retract(self, handle: Any) -> None:
        self.note("-", self.handles[handle])

    def note(self, mark: str, what: object) -> None:
        self.seen.append((mark, self.name, what))
        if len(self.seen) % 10 == 0:
            stop()


def crowd(seed: int) -> list[object]:
    """What many observers of a few patterns see, several in an actor, of both kinds, that come and go meanwhile."""
    chance, seen = random.Random(seed), list[object]()

    def member(ds: Ref, name: int) -> None:
        prevent_inert_check()
        mine: list[Handle] = []
        facet = current_facet()

        def join(number: int) -> None:
            observer = Ref(current_facet(), Onlooker((name, number), seen), chance.random() < 0.3)
            mine.append(assert_(ds, Observe(chance.choice([["word", capture()], [capture(), capture()]]), observer)))
            prevent_inert_check()

        @on_message(ds, ["step", name, capture()])
        def step(number: int) -> None:
            roll = chance.random()
            if roll < 0.5:
                for each in range(chance.choice([1, 1, 2, 70])):
                    react(partial(join, 100 * number + each)) if roll < 0.25 else join(100 * number + each)
            elif roll < 0.6 and mine:
                mine.pop(chance.randrange(len(mine))).retract()
            elif roll < 0.8:
                send(ds, ["word", chance.randrange(3)])
            else:
                mine.append(assert_(ds, ["word", chance.randrange(3)]))
            if roll > 0.97:
                stop(facet)
            if number < 25:
                send(ds, ["step", chance.randrange(3), number + 1])

    def boot() -> None:
        ds = dataspace()
        for name in range(3):
            spawn(member, ds, name, name=f"member {name}")
        spawn(lambda: [send(ds, ["step", name, 0]) for name in range(3)])

    settled(boot)
    return seen


@built
@pytest.mark.parametrize("seed", range(40))
def test_events_are_handed_out_alike(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To one observer or many, in facets that live or have ended: each is notified of the same, in the same order."""
    native_side = crowd(seed)
    monkeypatch.setattr("syndicate.actors.dataspace.Telling", python("Telling"))
    monkeypatch.setattr("syndicate.actors.system.take_turns", python("take_turns"))
    monkeypatch.setattr("syndicate.actors.system.take_all", python("take_all"))
    monkeypatch.setattr(Actor.take, "__defaults__", (None, True, python("deliver")))
    assert native_side == crowd(seed)


def _called() -> list[object]:
    """What calls of record classes give, as they are written, changed and inherited from."""

    @record("two")
    class Two:
        one: Any
        other: Any = 7

    @record("grown")
    class Grown(Two):
        more: Any = attrs.Factory(list)

    @record("checked")
    class Checked:
        one: int = attrs.field(converter=int)
        other: Any = None

    class Odd(Two):
        __slots__ = ()

        def __init__(self, one: Any) -> None:
            Two.__init__(self, one, [one])

    class Fresh(Two):
        def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
            return arguments, keywords

    def shown(cls: Any) -> list[object]:
        calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
            (tuple(range(count)), dict.fromkeys(names, 5))
            for count in range(5)
            for names in ((), ("one",), ("other",), ("one", "other"), ("more",), ("another",))
        ]
        return [
            str(outcome(partial(cls, *arguments, **keywords)))
            for arguments, keywords in [*calls, (("3", attrs.NOTHING), {})]
        ]

    classes: list[Any] = [Two, Grown, Checked, Odd, Fresh]
    seen = [shown(cls) for cls in classes]
    init = Two.__init__
    steps: list[Callable[..., Any]] = [lambda self, one, other=0: init(self, other, one), init]
    for step in steps:
        Two.__init__ = step  # type: ignore[method-assign]
        seen += [shown(cls) for cls in classes]
    Two.__new__ = lambda cls, *arguments: ("made", *arguments)  # type: ignore[method-assign, assignment]
    return [*seen, shown(Two), shown(Odd)]


@built
def test_record_classes_are_called_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """With arguments that fit and that do not, by place and by name, whatever has been made of the class."""
    native_side = _called()
    monkeypatch.setitem(record.__globals__, "make_at_once", python("make_at_once"))
    assert native_side == _called()


@built
def test_nothing_is_kept_of_what_kernels_are_given() -> None:
    """Ten thousand calls leave each argument with the references that it had, whether they return or raise."""
    label, text, number = Symbol("kept"), "text" * 9, 10**6
    good, bad = Says(text, [text, number, label]), [text, Says(text, None)]
    form = freeze(good)
    index = Index(lambda *event: None)
    index.observe(*analyse(Says(text, capture())), REFS[0])
    parts = [label, text, number, good, form, *good.what]
    gc.collect()
    before = [sys.getrefcount(part) for part in parts]
    for _ in range(10_000):
        freeze(good)
        thaw(form)
        outcome(freeze, bad)
        index.send(form)
        index.add(form)
        index.remove(form)
        Says(text, number)
    gc.collect()
    assert [after - b for after, b in zip([sys.getrefcount(part) for part in parts], before, strict=True)] == [0] * len(
        parts
    )


@built
def test_the_library_is_of_these_sources() -> None:
    """Benchmarks and tests of an older one would speak of what is not there."""
    digest = 0xCBF29CE484222325
    for source in sorted((ROOT / "native" / "src").iterdir()):
        for byte in source.read_bytes():
            digest = (digest ^ byte) * 0x100000001B3 % 2**64
    assert native.library is not None
    assert f"{digest:016x}" == native.library.SOURCES, "older than its sources: run `make native`"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SYNDICATE_PURE": "1"}, "pure Python (asked for by SYNDICATE_PURE)"),
        ({"SYNDICATE_PURE": "0"}, native.DESCRIPTION),
        ({"SYNDICATE_PURE": "1", "SYNDICATE_NATIVE": "require"}, "KernelsMissing: SYNDICATE_NATIVE=require"),
    ],
)
def test_the_environment_chooses(variables: dict[str, str], expected: str) -> None:
    """And `python -m syndicate` says what runs."""
    environment = {**{k: v for k, v in os.environ.items() if not k.startswith("SYNDICATE_")}, **variables}
    done = subprocess.run(
        [sys.executable, "-m", "syndicate"], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert expected in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("INTERFACE = 0\n", "of another version"),
        ("raise ImportError('wrong magic')\n", "cannot be loaded: wrong magic"),
        (f"INTERFACE, SOURCES = {native.INTERFACE}, 'old'\nkernel = lambda name, _: {{}}[name]\n", "native kernels"),
    ],
)
def test_a_library_that_does_not_fit_is_left_alone(tmp_path: Path, content: str, expected: str) -> None:
    """One line says so, with the remedy, and Python runs."""
    (tmp_path / "fake.py").write_text(
        "import sys, types\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'syndicate._native':\n"
        "            import importlib.util\n"
        f"            return importlib.util.spec_from_file_location(name, {str(tmp_path / 'library.py')!r})\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from syndicate import native\n"
        "from syndicate.values.value import freeze\n"
        "print(native.DESCRIPTION, freeze([1]))\n"
    )
    (tmp_path / "library.py").write_text(content)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SYNDICATE_", "PYTHONWARNINGS"))}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "fake.py")], env=environment, capture_output=True, text=True, check=True
    )
    assert expected in done.stdout
    assert "(SEQ, 1)" in done.stdout
    assert "RuntimeWarning" in done.stderr
    assert "make native" in done.stderr


def _foreign(library: bytes) -> tuple[str, bytes]:
    return "_native.cpython-399-other.so", library


def _here(library: bytes) -> str:
    return f"_native{EXTENSION_SUFFIXES[0]}"


@built
@pytest.mark.skipif(sys.platform != "linux", reason="other systems check a library when they load it")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda library: (_here(library), library[: len(library) // 9]), "cannot be loaded: it is cut short"),
        (lambda library: (_here(library), library[:-1]), "cannot be loaded: it is cut short"),
        (lambda library: (_here(library), b""), "cannot be loaded: "),
        (lambda library: (_here(library), b"garbage" * 1000), "cannot be loaded: "),
        (_foreign, "is of another Python: _native.cpython-399-other.so"),
    ],
)
def test_a_library_that_is_damaged_or_of_another_python(
    tmp_path: Path, change: Callable[[bytes], tuple[str, bytes]], expected: str
) -> None:
    """One line says so, with the remedy, and Python runs."""
    assert native.library is not None
    assert native.library.__file__ is not None
    ignored = shutil.ignore_patterns("_native*", "__pycache__")
    shutil.copytree(ROOT / "syndicate", tmp_path / "syndicate", ignore=ignored)
    name, library = change(Path(native.library.__file__).read_bytes())
    (tmp_path / "syndicate" / name).write_bytes(library)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SYNDICATE_", "PYTHONWARNINGS"))}
    program = "from syndicate import native, values\nprint(native.DESCRIPTION, values.value.freeze([1]))"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert f"pure Python (the native library {expected}" in done.stdout
    assert "(SEQ, 1)" in done.stdout
    assert "make native" in done.stderr


def test_a_kernel_that_the_library_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that only one side knows is reported, and an error where kernels are required: it is not slow in
    silence.
    """

    def unheard_of() -> None:
        pass

    if native.library is None:
        assert kernel(unheard_of) is unheard_of
    else:
        with pytest.warns(RuntimeWarning, match="an older one, has no kernel"):
            assert kernel(unheard_of) is unheard_of
        monkeypatch.setenv("SYNDICATE_NATIVE", "require")
        with pytest.raises(KernelsMissing, match="an older one, has no kernel"):
            kernel(unheard_of)
    del specifications["unheard_of"]


@built
@given(
    st.lists(st.tuples(st.sampled_from([0x82, 0x82, 0x81, 0x02, 0x89, 0xC2]), st.integers(0, 300), st.booleans())),
    st.integers(0, 40),
    st.integers(0, 3),
    st.booleans(),
    st.integers(0, 400),
)
def test_frames(frames: list[tuple[int, int, bool]], cut: int, at: int, masked: bool, most: int) -> None:
    """Whatever frames come, whole or not, from wherever on."""
    data = b""
    for first, length, long in frames:
        size = length.to_bytes(2, "big")
        head = bytes([first, (0x80 if masked else 0) | (126 if long or length > 125 else length)])
        data += head + (size if long or length > 125 else b"") + os.urandom(length + (4 if masked else 0))
    data = data[: len(data) - cut]
    at = min(at, len(data))
    assert whole_frames(data, at, masked, most) == python("whole_frames")(data, at, masked, most)
