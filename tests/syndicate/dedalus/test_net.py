"""The network and its faults: what is drawn, what is certain, and that a run is repeated exactly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syndicate.dedalus import Net, Program
from syndicate.dedalus.net import Outage
from syndicate.errors import ScheduleError
from tests.hashes import printed
from tests.strategies import examples
from tests.syndicate.dedalus.verify.senders import NODES, programs

TALK = Program.parse('m(Y, X, N)@async :- say(X, Y)@N; persist[say, 2]; say("a", "b")@1; say("b", "b")@1;')


def arrivals(net: Net, seed: int = 0, until: int = 400) -> dict[str, dict[int, tuple[int, ...]]]:
    """When the messages of each sender to b arrive, by the time of sending."""
    results: dict[str, dict[int, tuple[int, ...]]] = {"a": {}, "b": {}}
    for message in TALK.run(1, until, seed=seed, net=net).messages:
        results[str(message.row[1])][message.sent] = message.arrive
    return results


def test_delay_and_reordering() -> None:
    """All delays of a range occur, and messages overtake each other; to oneself there is no delay."""
    result = arrivals(Net(delay=(1, 3)))
    late = {at - sent for sent, times in result["a"].items() for at in times}
    assert late == {1, 2, 3}
    order = [times[0] for _, times in sorted(result["a"].items())]
    assert order != sorted(order)
    assert all(times == (sent + 1,) for sent, times in result["b"].items())


def test_loss_and_duplication() -> None:
    """Chances come out as they were given, before `eff` alone, and never for messages to oneself."""
    result = arrivals(Net(loss=0.3, duplicate=0.5, eff=301, delay=2))
    lost = [sent for sent, times in result["a"].items() if not times]
    assert 0.2 < len(lost) / 300 < 0.4
    assert max(lost) <= 300
    twice = [times for times in result["a"].values() if len(times) == 2]
    assert 0.4 < len(twice) / (400 - len(lost)) < 0.6
    assert all(first < second for first, second in twice)
    assert all(len(times) == 1 for times in result["b"].values())
    assert set(arrivals(Net(loss=1))["a"].values()) == {()}


def test_a_seed_decides() -> None:
    """Another seed is another run; what one message meets does not depend on the others."""
    net = Net(loss=0.5, delay=(1, 4))
    assert arrivals(net, 1) == arrivals(net, 1) != arrivals(net, 2)
    short, long = arrivals(net, 1, 50)["a"], arrivals(net, 1)["a"]
    assert short == {sent: long[sent] for sent in short}


def test_crash_that_stops_sending() -> None:
    """A node that has crashed computes, keeps and receives, and sends to itself alone."""
    program = Program.parse("""
        n("a", 1)@1; n(X, N + 1)@next :- n(X, N);
        to(Y, N)@async :- n(X, N), peer(X, Y);  peer("a", "b"); peer("a", "a"); told(X, N, T) :- crash(X, N, T);
    """)
    model = program.run(1, 5, net=Net(["a", "b"], crash={"a": 3}))
    assert model.at(5)["n"] == [("a", 5)]
    assert [row for time in range(1, 6) for row in model.at(time)["to"]] == [
        ("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 3), ("a", 4)
    ]  # fmt: skip
    assert model.at(1)["told"] == [("a", "a", 3), ("b", "a", 3)]


def test_crash_that_stops_all() -> None:
    """No rule of the node fires any more, and nothing arrives."""
    program = Program.parse("""
        p("a", 1)@1; p("b", 1)@1; persist[p, 2];  q(X) :- p(X, _);  down(1);
        got(Y, X)@async :- p(X, _), peer(X, Y);  peer("a", "b"); peer("b", "a"); peer("a", "a");
    """)
    model = program.run(1, 5, net=Net(crash={"a": 3}, stop="all"))
    assert [model.at(time)["q"] for time in (2, 3, 4)] == [[("a",), ("b",)], [("b",)], [("b",)]]
    assert [model.at(time)["p"] for time in (3, 4)] == [[("a", 1), ("b", 1)], [("b", 1)]]
    assert [model.at(time)["got"] for time in (2, 3, 4)] == [
        [("a", "a"), ("a", "b"), ("b", "a")], [("b", "a")], []
    ]  # fmt: skip
    assert model.at(1)["down"] == [(1,)]
    assert program.run(1, 5, schedule=model.schedule()).to_json() == model.to_json()


NETS = st.builds(
    Net,
    st.just(NODES),
    crash=st.sampled_from([{}, {"a": 2}, {"a": 1, "b": 3}]),
    delay=st.sampled_from([None, 1, (1, 3)]),
    loss=st.sampled_from([0, 0.4]),
    duplicate=st.sampled_from([0, 0.5]),
    stop=st.sampled_from(["sending", "all"]),
    eff=st.sampled_from([None, 2]),
)


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), NETS, st.integers(0, 9))
def test_a_recorded_run_is_repeated(program: Program, net: Net, seed: int) -> None:
    """The schedule of a run, through JSON and without seed or faults, gives the same run; so does the net itself."""
    if program.check():
        return
    model = program.run(1, 5, seed=seed, net=net)
    again = program.run(1, 5, schedule=json.loads(json.dumps(model.schedule())))
    assert (again.to_json(), again.messages) == (model.to_json(), model.messages)
    same = program.run(1, 5, seed=seed, schedule={"net": json.loads(json.dumps(net.to_json()))})
    assert (same.to_json(), same.messages, same.net) == (model.to_json(), model.messages, net)


WORK = """
from syndicate.dedalus import Net, Program
from syndicate.dedalus.net import Outage
program = Program.parse('''
    n("a", "b"); n("b", "c"); n("c", "a"); n("a", "c"); persist[got, 2];
    got(M, X)@async :- got(N, X), n(N, M); got("a", "x")@1; got("c", "y")@2;
    one(X, N) :- got(N, X), choose((X), (N));
    pre(N, X) :- got(N, X); post(N, X) :- got(N, X), notin less(N, X);
    less(N, X) :- n(N, M), got(N, X), notin got(M, X);
''')
net = Net("abc", delay=(1, 3), loss=.2, duplicate=.2, crash={"b": 5}, stop="all")
model = program.run(1, 8, seed=5, net=net)
print(model.to_json(), model.messages, model.schedule(), model.diagram("text"), model.diagram("mermaid"))
print(model.why("got", ("b", "x"), 4), model.why_not("got", ("b", "z"), 8))
verdict = program.verify(eot=5, eff=4, crashes=1, nodes="abc")
print(verdict, verdict.schedule())
"""


def test_same_under_all_hash_seeds() -> None:
    """A seed gives the same bytes whatever Python's own hashes are: runs, drawings, reasons and verdicts."""
    outputs = {printed(hashes, "-c", WORK) for hashes in (1, 2, 77)}
    assert len(outputs) == 1
    assert len(outputs.pop()) > 3000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"delay": 0}, "one timestep or more"),
        ({"delay": (3, 1)}, "one timestep or more"),
        ({"loss": 1.5}, "loss is a probability"),
        ({"duplicate": -1}, "duplicate is a probability"),
        ({"stop": "eating"}, "stops sending or all"),
        ({"nodes": [True, 2]}, "a node is a text"),
    ],
)
def test_mistakes(options: dict[str, Any], says: str) -> None:
    """A network that makes no sense is refused, from Python and from JSON."""
    with pytest.raises(ScheduleError, match=says):
        Net(**options)
    with pytest.raises(ScheduleError, match=says):
        TALK.run(1, 2, schedule={"net": options})


@pytest.mark.parametrize("node", [True, float("nan"), float("inf"), None, ("a",)])
def test_nodes_are_values(node: Any) -> None:
    """Whoever is notified of a crash, crashes or is down is a value of Dedalus: rows have no others."""
    for options in ({"nodes": (node,)}, {"crash": {node: 2}}, {"down": [Outage(node, 1)]}):
        with pytest.raises(ScheduleError, match="a node is a text, an integer or a finite float"):
            Net(**options)


def test_two_networks() -> None:
    """A schedule has one network."""
    with pytest.raises(ScheduleError, match="has a net already"):
        TALK.run(1, 2, schedule={"net": {"nodes": ["a"]}}, net=Net())
    with pytest.raises(ScheduleError, match="'net' is"):
        TALK.run(1, 2, schedule={"net": ["a"]})
