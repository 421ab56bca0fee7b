"""Laws: text, the desugared form, and the engine against the oracle."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from syndicate.dedalus import Program
from syndicate.dedalus.ast import Row, Rule
from syndicate.dedalus.desugar import core, explicit, split
from syndicate.dedalus.net import Send
from syndicate.dedalus.parse import parse
from syndicate.dedalus.run import run
from syndicate.dedalus.schedule import Clock
from syndicate.dedalus.timeline import order
from tests.hashes import printed
from tests.strategies import examples
from tests.syndicate.dedalus.naive import naive
from tests.syndicate.dedalus.programs import programs

RANDOM = settings(
    deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


@RANDOM
@given(programs(choices=True))
def test_text_round_trip(rules: list[Rule]) -> None:
    """What is printed parses to the same."""
    assert parse(Program(rules).text) == rules


@RANDOM
@given(programs(choices=True))
def test_desugared_round_trip(rules: list[Rule]) -> None:
    """The desugared form parses to the same core, and is its own desugared form."""
    short = core(rules)
    printed = Program(rules).desugared()
    assert core(parse(printed)) == core(split(short))
    assert explicit(core(parse(printed))) == explicit(short)


@RANDOM
@given(programs(), st.integers(0, 3))
def test_engine_is_the_oracle(rules: list[Rule], seed: int) -> None:
    """At every timestep the engine has what the definition says, wherever later messages arrive."""
    assume(not Program(rules).check())
    start, until = 2, 7
    delays = Clock(start, until, seed)

    def arrivals(number: int, rule: Rule, row: Row, sent: int, senders: object) -> tuple[int, ...]:
        return delays.arrivals(Send(number, rule.head.relation, row, sent, (), later=True))

    short = core(rules)
    wanted = naive(short, start, until, arrivals)
    model = run(short, Clock(start, until, seed, delivery="later"))
    for time in range(start, until + 1):
        result = model.at(time)
        for name in result:
            assert result[name] == sorted(wanted[time].get(name, ()), key=order), (name, time)


@RANDOM
@given(programs(choices=True), st.integers(0, 9))
def test_a_recorded_run_is_replayed(rules: list[Rule], seed: int) -> None:
    """A run's messages, as a schedule, give the run again."""
    assume(not any(rule.choices for rule in rules) and not Program(rules).check())
    program = Program(rules)
    first = program.run(1, 6, seed=seed, delivery="later")
    again = program.run(1, 6, schedule=first.schedule())
    assert again.to_json() == first.to_json()


WORK = """
from syndicate.dedalus import Program
program = Program.parse('''
    n("a", "b")@1; n("b", "c")@1; n("c", "a")@1; persist[n, 2]; persist[got, 2];
    got(M, X)@async :- got(N, X), n(N, M); got("a", "x")@1; got("c", "y")@2;
    one(X, N) :- got(N, X), choose((X), (N));
''')
model = program.run(1, 8, seed=5, delivery="later")
print(model.to_json(), model.messages)
"""


def test_same_under_all_hash_seeds() -> None:
    """A seed gives the same bytes whatever Python's own hashes are."""
    outputs = {printed(hashes, "-c", WORK) for hashes in (1, 2, 77)}
    assert len(outputs) == 1
    assert len(outputs.pop()) > 1000
