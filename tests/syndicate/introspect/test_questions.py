"""What is answered is what is there, in windows, as data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from syndicate import (
    ANY,
    Entity,
    Record,
    Ref,
    after,
    assert_,
    capture,
    current_facet,
    dataspace,
    during,
    every,
    on_message,
    open_system,
    record,
    ref,
    send,
    spawn,
    stop_actor,
)
from syndicate.actors.facet import Facet
from syndicate.actors.meter import Meter
from syndicate.actors.system import System, system_of
from syndicate.actors.turn import Handle
from syndicate.bloom import Bloom, agg, bloom, table
from syndicate.dedalus import Program as Dedalus
from syndicate.errors import ArgumentError
from syndicate.flow import Circuit
from syndicate.hosting import host
from syndicate.introspect import introspection
from syndicate.introspect.answer_pages import TEXT, WINDOW
from syndicate.outside import outside
from syndicate.plan import NaturalJoin, Projection, Rename
from syndicate.plan import Program as Plan
from syndicate.testing import settled, watch
from syndicate.values.text import unparse
from syndicate.values.value import Value
from syndicate.views import view


class Asker(Entity):
    """Keeps the answers."""

    def __init__(self) -> None:
        self.answers: list[Value] = []

    def message(self, value: Value) -> None:
        """One more."""
        self.answers.append(value)


class Program:
    """A program with *values*, one observer of ``Lit`` and one of ``Absent``, and someone who asks it."""

    facet: Facet
    ds: Ref
    target: Ref

    system: System

    def __init__(self, values: list[Value]) -> None:
        self.values = values

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Program]:
        """Itself, while it runs."""
        async with open_system(self._boot) as self.system:
            await self.system.settle()
            yield self
            self.facet.enter(stop_actor)

    def _boot(self) -> None:
        self.facet = current_facet()
        self.ds = dataspace()
        self.target = introspection(self.ds)
        for value in self.values:
            assert_(self.ds, value)
        spawn(lambda: watch(self.ds, Record("Lit", [capture()])), name="looks", daemon=True)
        watch(self.ds, Record("Absent", [capture()]))

    def asked(self, asker: Asker, name: str, *fields: Value) -> Handle:
        """A question, in a turn."""
        return assert_(self.target, Record(name, [*fields, ref(asker)]))

    async def answers(self, name: str, *fields: Value) -> list[Value]:
        """What is answered to a question that is asked now."""
        asker = Asker()
        self.facet.enter(lambda: assert_(self.target, Record(name, [*fields, ref(asker)])))
        await self.system.settle()
        return asker.answers

    async def page(self, name: str, *fields: Value) -> tuple[Value, Value, list[list[Value]]]:
        """The one page that is answered."""
        (answer,) = await self.answers(name, *fields)
        assert isinstance(answer, Record)
        assert unparse(answer).startswith("<page ")
        total, matched, rows = answer.fields
        return total, matched, [list(row) for row in rows]


@pytest.fixture
async def program() -> AsyncIterator[Program]:
    """A program with 1300 rows, so that a search takes several turns."""
    async with Program(
        [*(Record("Lit", [f"room {n}"]) for n in range(1300)), Record("Lost", [1]), 7]
    ).running() as each:
        yield each


async def test_labels(program: Program) -> None:
    """Each label, with its values and who is interested: nobody in one, and nothing for another."""
    _, _, rows = await program.page("labels", "", 0, 100)
    assert [row[:3] for row in rows if row[0] != "Observe"] == [
        ["", 1, 0],
        ["Absent", 0, 1],
        ["Lit", 1300, 1],
        ["Lost", 1, 0],
    ]


async def test_names_of_fields(program: Program) -> None:
    """Those of the record classes that there are for a label."""
    program.facet.enter(lambda: assert_(program.ds, Word("a", 1)))
    await program.system.settle()
    _, _, rows = await program.page("labels", "Word", 0, 9)
    assert [(row[0], row[3]) for row in rows] == [("Word", (("text", "length"),))]


@pytest.mark.parametrize(
    ("part", "start", "count"), [("", 0, 10), ("", 1295, 10), ("", 5000, 10), ("99", 3, 7), ("x", 0, 9), ("", 0, 9999)]
)
async def test_rows_against_a_slice_of_all(program: Program, part: str, start: int, count: int) -> None:
    """A window is a slice of what the filter lets through, and the counts say what there is beside it."""
    texts = [f'<Lit "room {n}">' for n in range(1300)]
    expected = [text for text in texts if part in text]
    total, matched, rows = await program.page("rows", "Lit", part, start, count)
    assert (total, matched) == (1300, len(expected))
    assert [row[:2] for row in rows] == [[text, 1] for text in expected[start : start + min(count, WINDOW)]]
    assert all([name for _, name, _ in who] == ["_boot"] and observers == 1 for _, _, who, observers in rows)


async def test_interests_say_who_and_how_many(program: Program) -> None:
    """An interest that nothing matches is seen to have no match."""
    _, _, rows = await program.page("interests", "", 0, 100)
    ((_, observers, matches, ((_, name),), alike, example),) = [row for row in rows if row[0] == "<Lit $>"]
    assert (observers, matches, name, alike, example) == (1, 1300, "looks", 1300, "")
    assert [row[2] for row in rows if row[0] == "<Absent $>"] == [0]


async def test_actors_and_their_facets(program: Program) -> None:
    """The numbers of an actor are those of its facets, whose parents are before them."""
    _, _, actors = await program.page("actors", "", 0, 100)
    for number, _name, facets, _handles, _tasks, waiting, *_ in [
        row for row in actors if row[1] != "introspection"
    ]:  # which gets a facet by each question
        _, _, rows = await program.page("facets", number, 0, WINDOW)
        assert (len(rows), waiting) == (facets, 0)
        assert all(row[1] < row[0] for row in rows if isinstance(row[0], int) and isinstance(row[1], int))
    assert "looks" in [row[1] for row in actors]
    assert (await program.page("facets", 10**6, 0, 10)) == (0, 0, [])


async def test_an_interest_that_nothing_matches_shows_what_comes_near(program: Program) -> None:
    """Values of the same label that have other fields, and one of them."""
    program.facet.enter(lambda: watch(program.ds, Record("Lit", [capture(), 7])) and None)
    await program.system.settle()
    _, _, rows = await program.page("interests", "<Lit $ 7>", 0, 100)
    assert [[row[2], *row[4:]] for row in rows] == [[0, 1300, '<Lit "room 0">']]


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=4))
def test_who_asserts_a_value(asserted: list[list[int]]) -> None:
    """Exactly the actors that have asserted it and not retracted it, each as often as it has; an oracle counts."""

    async def main() -> None:
        async with Program([]).running() as program:
            for number, values in enumerate(asserted):

                def one(values: list[int] = values) -> None:
                    handles = [assert_(program.ds, Record("Of", [value])) for value in values]
                    for handle in handles[::3]:
                        handle.retract()
                    assert_(dataspace(), Record("Of", [9]))  # elsewhere

                program.system.spawn(one, name=f"actor {number}")
            await program.system.settle()
            expected: dict[str, dict[str, int]] = {}
            for number, values in enumerate(asserted):
                for value in [value for at, value in enumerate(values) if at % 3]:
                    of = expected.setdefault(f"<Of {value}>", {})
                    of[f"actor {number}"] = of.get(f"actor {number}", 0) + 1
            _, _, rows = await program.page("rows", "Of", "", 0, 100)
            assert {str(text): {name: times for _, name, times in who} for text, _, who, _ in rows} == expected

    trio.run(main)


@pytest.mark.parametrize("order", [0, 1, -1, 2, -2, 3])
async def test_small_tables_are_sorted(order: int) -> None:
    """By any column, before the window is cut out of them; a column that there is not leaves them as they are."""
    rows: list[list[Value]] = [["b", 10], ["c", 9], ["a", 2]]
    answers: list[Value] = []

    class Hears(Entity):
        def message(self, value: Value) -> None:
            answers.append(value)

    def boot() -> None:
        questions = introspection(dataspace(), {"letters": lambda: rows})
        assert_(questions, Record("letters", ["", 0, 2, order, ref(Hears())]))

    settled(boot)
    column = abs(order) - 1
    wanted = sorted(rows, key=lambda row: row[column], reverse=order < 0) if 0 <= column < 2 else rows
    assert [list(map(list, answer.fields[2])) for answer in answers if isinstance(answer, Record)] == [wanted[:2]]


async def test_turns_are_counted_while_somebody_asks(autojump_clock: trio.testing.MockClock) -> None:
    """Those of each actor from the question on, and none when it was taken back: then the system has no meter."""
    async with Program([]).running() as program:
        handles: list[Handle] = []
        asker = Asker()
        program.facet.enter(lambda: handles.append(program.asked(asker, "actors", "busy", 0, 9)))
        await program.system.settle()
        facets: list[Facet] = []

        def busy() -> None:
            facets.append(current_facet())
            every(10, lambda: None)

        program.system.spawn(busy, name="busy")
        await program.system.settle()
        for _ in range(7):
            facets[0].enter(lambda: None)
            await program.system.settle()
        await trio.sleep(2)
        assert isinstance(asker.answers[-1], Record)
        ((_, name, *_, turns, events, ms),) = asker.answers[-1].fields[2]
        assert (name, turns, events) == ("busy", 8, 8)
        assert ms > 0
        assert program.system.meter is not None
        program.facet.enter(handles[0].retract)
        await program.system.settle()
        assert program.system.meter is None


def test_the_estimate_of_a_long_run_is_near() -> None:
    """One round of sixteen is looked at, for sixteen: the count is never further off than that."""
    turns = 10_000
    counted: list[int] = []

    def boot() -> None:
        ds = dataspace()
        system = system_of(current_facet().actor)
        end = Meter.begin(system)

        @on_message(ds, Record("Turn", [capture(int)]))
        def turn(number: int) -> None:
            if number < turns:
                send(ds, Record("Turn", [number + 1]))
            else:
                meter = system.meter
                assert meter is not None
                counted.append(sum(count.turns for count in meter.counts.values()))
                end()

        send(ds, Record("Turn", [1]))

    settled(boot)
    assert abs(counted[0] - 2 * turns) <= 2 * 16 * 16


async def test_what_a_facet_holds(program: Program) -> None:
    """Its bytes are at least those of what its handlers keep, and what it asserts is shown."""
    memory = bytearray(1_000_000)

    def large() -> None:
        assert_(program.ds, Record("Large", ["here"]))
        on_message(program.ds, Record("Ask", []))(lambda: send(program.ds, bytes(memory)))

    program.system.spawn(large, name="large")
    await program.system.settle()
    _, _, actors = await program.page("actors", "large", 0, 9)
    _, _, rows = await program.page("facets", actors[0][0], 0, 9)
    assert 1_000_000 < sum(row[5] for row in rows) < 1_500_000  # the closure has this test's own things, too
    assert '<Large "here">' in [text for row in rows for text in row[6]]


class Count(Bloom):
    """How many words there are."""

    word = table(["text", "length"], [])
    number = table(["n"], [])

    @bloom
    def rules(self) -> None:
        """A total, so a point of order."""
        self.number <= self.word.group([], agg.count())  # noqa: B015 - a rule


@record("Word")
class Word:
    """One word."""

    text: str
    length: int


async def test_rules_at_work(autojump_clock: trio.testing.MockClock) -> None:
    """Circuits, Bloom programs and Dedalus locations: what they are made of, and what each part holds and costs."""
    circuit = Circuit()
    circuit.sink("long", circuit.source("words").filter(lambda row: row[1] > 2).distinct())
    rules = Dedalus.parse("persist[kept, 2]; kept(X, N) :- word(X, N); loud(X) :- kept(X, N), !soft(X, N);")

    async with Program([]).running() as program:

        def start() -> None:
            spawn(view(program.ds, circuit, inputs={"words": Word}, outputs={}), name="view")
            spawn(host(Count, program.ds, messages={"word": Word}), name="bloom")
            spawn(host(rules, program.ds, location="here", inputs={"word": ["word", capture(), capture()]}), name="ded")

        program.system.spawn(start)
        await program.system.settle()
        total, _, rows = await program.page("hosts", "", 0, 9)
        assert (total, sorted(row[2] for row in rows)) == (3, ["bloom", "ded", "view"])
        numbers = {row[2]: row[0] for row in rows}
        asked = {("view", "circuit"): Asker(), ("bloom", "rules"): Asker(), ("ded", "rules"): Asker()}

        def ask() -> None:
            for (name, which), asker in asked.items():
                program.asked(asker, "loads", numbers[name], which, 0, 99)

        program.facet.enter(ask)
        await program.system.settle()
        program.facet.enter(lambda: [assert_(program.ds, Word("word", n)) for n in range(6)] and None)
        program.facet.enter(lambda: [send(program.ds, Word("word", n)) for n in range(6)] and None)
        program.facet.enter(lambda: assert_(program.ds, ["word", "here", 1]))
        await trio.sleep(3)
        loads = {
            name: {row[0]: row for row in asker.answers[-1].fields[2]}
            for name, asker in asked.items()
            if isinstance(asker.answers[-1], Record)
        }
        assert loads["view", "circuit"]["2"][1] == 3  # distinct keeps those that the filter lets through
        assert loads["bloom", "rules"]["word"][1] == 6
        assert loads["ded", "rules"]["kept"][1] == 1
        for of in loads.values():
            assert of[""][1] > 0, "steps"
            assert of[""][3] > 0, "their time"
        _, _, drawing = await program.page("drawing", numbers["bloom"], "rules", 0, 99)
        boxes = {row[1]: row for row in drawing if row[0] == "box"}
        assert (boxes["number"][6], boxes["word"][6]) == (True, False)
        assert ["line", "word", "number", "now", "count()"] in drawing
        _, _, drawing = await program.page("drawing", numbers["ded"], "rules", 0, 99)
        assert ["line", "soft", "loud", "now", "not"] in drawing
        assert (await program.page("drawing", 10**6, "rules", 0, 99)) == (0, 0, [])


async def test_why_rows_of_rules_are_there(autojump_clock: trio.testing.MockClock) -> None:
    """Each row that a box holds has a reason, which is that of its language; a circuit says that it has none."""
    circuit = Circuit()
    circuit.sink("long", circuit.source("words").filter(lambda row: row[1] > 2).distinct())
    rules = Dedalus.parse("persist[kept, 2]; kept(X, N) :- word(X, N); loud(X) :- kept(X, N), !soft(X, N);")
    plan = Plan()
    edge, path = plan.edb("edge", "a", "b"), plan.idb("path", "a", "b")
    plan.rule(path, edge, origin="rules.py:1")
    longer = NaturalJoin(Rename(edge, {"b": "c"}), Rename(path, {"a": "c"}))
    plan.rule(path, Projection(longer, ("a", "b")), origin="rules.py:2")
    plan.output("path")

    async with Program([]).running() as program:

        def start() -> None:
            ds = program.ds
            spawn(view(ds, circuit, inputs={"words": Word}, outputs={"long": None}), name="view")
            spawn(host(Count, ds, inputs={"word": Word}, outputs={"number": lambda n: ["number", n]}), name="bloom")
            words = {"word": ["word", capture(), capture()]}
            loudly = {"loud": lambda where: ["loud", where]}
            spawn(host(rules, ds, location="here", inputs=words, outputs=loudly), name="ded")
            spawn(
                host(plan.plan(), ds, inputs={"edge": ["edge", capture(), capture()]}, outputs={"path": None}),
                name="plan",
            )
            for number in range(3, 6):
                assert_(ds, Word("word", number))
                assert_(ds, ["word", "here", number])
                assert_(ds, ["edge", number, number + 1])

        program.system.spawn(start)
        await trio.sleep(1)
        _, _, result = await program.page("hosts", "", 0, 9)
        seen: dict[str, dict[str, list[list[Value]]]] = {}
        for number, _, name, _, views in result:
            assert isinstance(name, str)
            assert isinstance(views, (list, tuple))
            for which in views:
                _, _, drawing = await program.page("drawing", number, which, 0, 99)
                for box in [row[1] for row in drawing if row[0] == "box"]:
                    total, _, held = await program.page("held", number, which, box, "", 0, 99)
                    assert total == len(held)
                    for _, text in held:
                        assert isinstance(text, str)
                        (answer,) = await program.answers("reason", number, which, box, text)
                        assert isinstance(answer, Record)
                        if name == "view":
                            assert "keeps no reasons" in unparse(answer)
                        else:
                            explained = [list(row) for row in answer.fields[2]]
                            assert explained[0][0] == text
                            assert all(premise < len(explained) for row in explained for premise in row[3])
                            seen.setdefault(name, {})[text] = explained
        assert "path(3, 6)" in seen["plan"]
        assert [row[0] for row in seen["plan"]["path(3, 6)"]][-1].startswith("edge(")
        assert {"rules.py:1", "rules.py:2"} <= {row[2] for row in seen["plan"]["path(3, 6)"]}
        loud = seen["ded"]["loud('here')"]
        assert ["no soft" in str(each) for row in loud for each in row[4]] == [True]
        assert [str(row[0])[:11] for row in loud[1:]] == ["kept('here'", "word('here'"][: len(loud) - 1]
        assert "asserted, sent" in str(seen["ded"]["word('here', 3)"][0][1])
        (number,) = [row[0] for row in result if row[2] == "ded"]
        # What rules assert is explained in the same words.
        for asserted, language, row in (
            ('["loud" "here"]', "ded", "loud('here')"),
            ('["number" 3]', "bloom", "number(3)"),
            ("[3 6]", "plan", "path(3, 6)"),
        ):
            (answer,) = await program.answers("why", asserted)
            assert isinstance(answer, Record)
            explained = [list(each) for each in answer.fields[2]]
            assert explained[0][:2] == [f"asserted {asserted}", f"by {language}"]
            (first,) = explained[0][3]
            below = seen[language][row]
            assert [each[:3] for each in explained[first : first + len(below)]] == [each[:3] for each in below]
        (answer,) = await program.answers("why", '["word" 3]')
        assert "keeps no reasons" in unparse(answer)
        (answer,) = await program.answers("reason", number, "rules", "loud", "loud('x')")
        assert "not there any more" in unparse(answer)


async def test_what_happened_and_why(autojump_clock: trio.testing.MockClock) -> None:
    """Steps are sent as they happen, with their causes; a value is explained by them, and so is one that is absent; the
    chronicle is there as long as somebody asks.
    """
    async with Program([]).running() as program:

        def lamps() -> None:
            @during(program.ds, Record("Switch", [capture()]))
            def on(room: str) -> None:
                assert_(program.ds, Record("Bright", [room]))

        program.system.spawn(lamps, name="lamps")
        await program.system.settle()
        assert await program.page("why", '<Bright "hall">') == (0, 0, [])
        (refused,) = await program.answers("why-not", '<Bright "hall">')
        assert unparse(refused) == '<error "nothing is followed">'
        handles: list[Handle] = []
        asker = Asker()
        program.facet.enter(lambda: handles.append(program.asked(asker, "happened", "", 100)))
        await program.system.settle()
        program.system.spawn(lambda: assert_(program.ds, Record("Switch", ["hall"])), name="hand")
        await trio.sleep(1)
        pages = [answer.fields[2] for answer in asker.answers if isinstance(answer, Record)]
        steps = {step[0]: step for page in pages for step in page}
        (lit,) = [step for step in steps.values() if step[3] == "lamps" and "hall" in step[5]]
        assert ["assert", '<Bright "hall">'] in [[act[0], act[2]] for act in lit[8]]
        assert "test_questions.py" in lit[6]
        before, seen = list(lit[7]), set[Value]()
        while before:  # back to who began it
            number = before.pop()
            seen.add(steps[number][3])
            before += steps[number][7]
        assert "hand" in seen
        assert "introspection" not in {step[3] for step in steps.values()}

        asked = {"why": '<Bright "hall">', "why-not": '<Bright "attic">'}
        askers = {name: Asker() for name in asked}

        def ask() -> None:
            for name, text in asked.items():
                program.asked(askers[name], name, text)

        program.facet.enter(ask)
        while not all(asker.answers for asker in askers.values()):  # noqa: ASYNC110 - a thread answers
            await trio.sleep(0.01)
        (page,) = askers["why"].answers
        assert isinstance(page, Record)
        rows = page.fields[2]
        assert rows[0][0] == 'asserted <Bright "hall">'
        assert rows[rows[0][3][0]][0] == 'asserted <Switch "hall">'
        (page,) = askers["why-not"].answers
        assert isinstance(page, Record)
        assert page.fields[2]
        program.facet.enter(handles[0].retract)
        await program.system.settle()
        assert program.system.chronicle is None
        _, _, rows = await program.page("why", '<Bright "hall">')  # of what is asserted, without a chronicle
        assert [(row[0], row[3]) for row in rows] == [
            ('asserted <Bright "hall">', (1,)),
            ('asserted <Switch "hall">', ()),
        ]
        assert "by lamps" in rows[0][1]
        assert "test_questions.py" in rows[0][1]
        assert rows[1][1] == "by hand"


async def test_health_is_that_of_the_index(program: Program) -> None:
    """The numbers are those which the system has."""
    rows: dict[Value, Value] = dict((await program.page("health"))[2])
    assert rows["actors"] == len(program.system.actors)
    assert isinstance(rows["values"], int)
    assert rows["values"] >= 1302


async def test_answers_hold_no_reference_and_are_cut() -> None:
    """What a value holds is shown as text, however long it is; its reference is not given."""
    async with Program([Record("Long", ["x" * 100_000])]).running() as program:
        program.facet.enter(lambda: assert_(program.ds, Record("Has", [ref(Asker())])))
        await program.system.settle()
        ((has, *_),) = (await program.page("rows", "Has", "", 0, 1))[2]
        assert isinstance(has, str)
        assert has.startswith("<Has #:[Asker ")
        ((long, *_),) = (await program.page("rows", "Long", "", 0, 1))[2]
        assert isinstance(long, str)
        assert long.endswith(f"<cut {100_000 + len('<Long >') + 2 - TEXT}>")


@pytest.mark.parametrize(
    "fields", [[], ["Lit"], ["Lit", "", -1, 5], ["Lit", "", 0, -5], [1, "", 0, 5], ["Lit", "", 0, "5"]]
)
async def test_what_is_no_question_is_reported(program: Program, fields: list[Value]) -> None:
    """Wrong fields are an error that quotes them, not silence."""
    (answer,) = await program.answers("rows", *fields)
    assert isinstance(answer, Record)
    assert str(answer.fields[0]).startswith("no question: <rows")


async def test_retracted_questions_leave_nothing() -> None:
    """A facet lives as long as its question."""
    async with Program([]).running() as program:
        facet = program.target.facet
        assert isinstance(facet, Facet)
        handles: list[Handle] = []
        program.facet.enter(lambda: handles.append(assert_(program.target, Record("health", [ref(Asker())]))))
        await program.system.settle()
        assert len(facet.children) == 1
        program.facet.enter(handles[0].retract)
        await program.system.settle()
        assert facet.children == {}


def test_only_of_a_dataspace() -> None:
    """Something else has no index that could be asked."""
    with pytest.raises(ArgumentError, match="introspection\\(\\) needs a dataspace"):
        settled(lambda: introspection(ref(Asker())))


def test_nobody_pays_while_nobody_asks() -> None:
    """Each assertion causes the same events, whether there is someone who could be asked or not."""

    def handled(count: int, *, asked: bool) -> int:
        def boot() -> None:
            ds = dataspace()
            if asked:
                introspection(ds)
            watch(ds, Record("Lit", [capture()]))
            for number in range(count):
                assert_(ds, Record("Lit", [number]))

        return settled(boot).taken

    assert handled(100, asked=True) - handled(10, asked=True) == handled(100, asked=False) - handled(10, asked=False)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [(7, [1, 0]), (capture(int), [1, 0]), (capture(), [1, 1]), (ANY, [1, 1]), (Record("Lit", ["a"]), [0, 1])],
)
async def test_the_labels_that_an_interest_counts_for(pattern: Value, expected: list[Value]) -> None:
    """Those that it can match: of atoms, of one label, or all."""
    async with Program([Record("Lit", ["a"]), 7]).running() as program:
        before = {row[0]: row[2] for row in (await program.page("labels", "", 0, 9))[2]}
        program.facet.enter(lambda: watch(program.ds, pattern) and None)
        await program.system.settle()
        after = {row[0]: row[2] for row in (await program.page("labels", "", 0, 9))[2]}
        assert [int(str(after[name])) - int(str(before[name])) for name in ("", "Lit")] == expected


async def test_an_asserted_question_is_answered_again(autojump_clock: trio.testing.MockClock) -> None:
    """When a look shows something else, and not when it shows the same."""
    async with Program([Record("Lit", ["a"])]).running() as program:
        asker = Asker()
        program.facet.enter(lambda: assert_(program.target, Record("rows", ["Lit", "", 0, 9, ref(asker)])))
        await trio.sleep(5)
        assert len(asker.answers) == 1
        program.facet.enter(lambda: assert_(program.ds, Record("Lit", ["b"])))
        await trio.sleep(5)
        assert [str(answer).count("<Lit") for answer in asker.answers] == [1, 2]


async def test_a_tail_is_what_happens_from_then_on(autojump_clock: trio.testing.MockClock) -> None:
    """What was there is no event, nor is interest; each change and message is one, in order, and who wants fewer than
    there are gets to know how many.
    """
    async with Program([Record("Lit", ["attic"])]).running() as program:
        askers = {("", 100): Asker(), ("hall", 100): Asker(), ("", 2): Asker()}

        def ask() -> None:
            for (part, credit), asker in askers.items():
                assert_(program.target, Record("tail", [part, credit, ref(asker)]))

        def act() -> None:
            handle = assert_(program.ds, Record("Lit", ["cellar"]))
            send(program.ds, Record("Bell", ["hall"]))
            after(1, handle.retract)
            after(2, lambda: watch(program.ds, Record("Lit", [capture()])) and None)

        program.facet.enter(ask)
        await program.system.settle()
        program.facet.enter(act)
        await trio.sleep(5)
    seen = {}
    for question, asker in askers.items():
        pages = [answer.fields for answer in asker.answers if isinstance(answer, Record)]
        assert pages[0] == (0, 0, ())
        events = [event for _, _, rows in pages for event in rows]
        assert all(abs(time - outside().wall().timestamp()) < 3600 for time, _, _ in events)
        seen[question] = [f"{mark} {text}" for _, mark, text in events], sum(page[1] for page in pages)
    happened = ['+ <Lit "cellar">', '! <Bell "hall">', '- <Lit "cellar">']
    assert seen["", 100] == (happened, 0)
    assert seen["hall", 100] == ([happened[1]], 0)
    assert seen["", 2] == (happened, 0)  # no more than two in each page


async def test_a_tail_beyond_its_credit_is_counted(autojump_clock: trio.testing.MockClock) -> None:
    """The first ones are shown, the others counted."""
    async with Program([]).running() as program:
        asker = Asker()
        program.facet.enter(lambda: assert_(program.target, Record("tail", ["", 10, ref(asker)])))
        await program.system.settle()
        program.facet.enter(lambda: [send(program.ds, Record("Bell", [number])) for number in range(1000)] and None)
        await trio.sleep(1)
        (_, page) = asker.answers
        assert isinstance(page, Record)
        total, missed, rows = page.fields
        assert (total, missed, len(rows)) == (1000, 990, 10)


async def test_tables_of_the_maker() -> None:
    """More questions, with windows and a filter as all have."""
    rows: list[list[Value]] = [["a", 1], ["b", 2], ["ab", 3]]
    answers: list[Value] = []

    class Hears(Entity):
        def message(self, value: Value) -> None:
            answers.append(value)

    def boot() -> None:
        questions = introspection(dataspace(), {"letters": lambda: rows})
        assert_(questions, Record("letters", ["a", 0, 1, ref(Hears())]))
        assert_(questions, Record("numbers", ["a", 0, 1, ref(Hears())]))

    settled(boot)
    assert [unparse(answer) for answer in answers if "page" in unparse(answer)] == ['<page 3 2 [["a" 1]]>']
    assert [unparse(answer)[:20] for answer in answers if "error" in unparse(answer)] == ['<error "no question:']


async def test_all_dataspaces_of_a_system() -> None:
    """Without one that is named, all are there to be asked about, those that come later too; the first is meant where
    a question does not say which.
    """
    program = Program([])

    def boot() -> None:
        program.facet = current_facet()
        program.target = introspection()
        current_facet().lasting = True

    async with open_system(boot) as program.system:
        await program.system.settle()
        assert await program.page("spaces", "", 0, 10) == (0, 0, [])
        assert await program.page("labels", "", 0, 10) == (0, 0, [])
        assert await program.page("rows", "Lit", "", 0, 10) == (0, 0, [])
        (none,) = await program.answers("tail", "", 10)
        assert unparse(none).startswith("<error ")
        health = await program.page("health")
        assert health[2][:2] == [["values", 0], ["interests", 0]]

        def make() -> None:
            for name in ("hall", "attic"):
                assert_(dataspace(name), Record("Lit", [name]))

        program.facet.enter(make)
        await program.system.settle()
        _, _, spaces = await program.page("spaces", "", 0, 10)
        assert [row[1:] for row in spaces] == [["hall", 1, 0], ["attic", 1, 0]]
        _, _, rows = await program.page("rows", "Lit", "", 0, 10)
        assert [row[0] for row in rows] == ['<Lit "hall">']
        asker = Asker()

        def ask(number: Value) -> None:
            question = Record("rows", ["Lit", "", 0, 10, ref(asker)])
            assert_(program.target, Record("within", [number, question]))

        for number, *_ in spaces:
            program.facet.enter(partial(ask, number))
        await program.system.settle()
        assert ['<page 1 1 [["<Lit' in unparse(one) for one in asker.answers] == [True, True]
        assert ["hall" in unparse(one) for one in asker.answers] == [True, False]
        await program.answers("nothing of this name", "")
        program.facet.enter(stop_actor)
