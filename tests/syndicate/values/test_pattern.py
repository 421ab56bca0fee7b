from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate import ANY, Dictionary, Observe, Record, Ref, Symbol, ValueSet, capture, quote, record, unquote
from syndicate.errors import PatternError
from syndicate.index.interest import OBSERVE, expand, interest
from syndicate.index.skeleton import analyse, synthesise
from syndicate.values.pattern import Capture, Group, Kind, Literal, decode, encode, match, pattern_of
from syndicate.values.value import freeze, identical, thaw
from tests.strategies import ATOMS, PP, REFS, P, patterns, patterns_like, values


@record
class Says:
    """Who says what."""

    who: str
    what: str


# ----------------------------------------------------------------------------------------------- what matches

MANUAL = Group("arr", None, ((0, Literal(1)), (1, Capture(Group("arr", None, ((0, capture()), (1, ANY))))), (2, ANY)))


@pytest.mark.parametrize(
    ("value", "captures"),
    [
        ([1, 2, 3], None),
        ([1, [2, 3], 4], ([2, 3], 2)),
        ([1, [2], 5], None),
        ([1, [2, 3, 4], 5], ([2, 3, 4], 2)),
        ([1, [Record("x"), Record("y")], []], ([Record("x"), Record("y")], Record("x"))),
    ],
)
def test_the_examples_of_the_public_manual(value: Any, captures: Any) -> None:
    """``[1 <bind [<bind _> _]> _]`` on the values of the manual."""
    matched = match(MANUAL, value)
    assert matched == captures
    assert match(decode(encode(MANUAL)), value) == captures


@pytest.mark.parametrize(
    ("pattern", "value", "captures"),
    [
        # literals are values, not Python's look-alikes
        (1, 1, ()),
        (1, True, None),
        (1, 1.0, None),
        (Symbol("a"), "a", None),
        # arity is at least; a trailing ANY forces a field to exist
        (Record("r", [1]), Record("r", [1, 2]), ()),
        (Record("r", [1, ANY]), Record("r", [1]), None),
        (Record("r"), Record("r", [1, 2]), ()),
        (Record("r"), Record("s", [1, 2]), None),
        ([capture()], [], None),
        ([capture()], [1, 2, 3], (1,)),
        ([], [1], ()),
        # a record is no sequence and the other way round
        ([ANY], Record("r", [1]), None),
        (Record("r", [ANY]), ["r", 1], None),
        # record classes apply to patterns; a class and a plain record are the same
        (Says("Ann", capture()), Says("Ann", "hi"), ("hi",)),
        (Says("Ann", capture()), Record("Says", ["Ann", "hi"]), ("hi",)),
        (Says("Ann", capture()), Says("Bob", "hi"), None),
        # dictionaries: the listed keys must be there
        ({"a": capture()}, {"a": 1, "b": 2}, (1,)),
        ({"a": capture()}, {"b": 2}, None),
        ({}, {"b": 2}, ()),
        ({}, [], None),
        (Dictionary([(1, capture()), (True, capture())]), Dictionary([(True, "yes"), (1, "one")]), ("yes", "one")),
        # captures come in the total order of the keys, not in the order of writing
        ({"b": capture(), "a": capture(), 3: capture()}, {"a": 1, "b": 2, 3: 0}, (0, 1, 2)),
        # captures inside captures, outermost first
        (capture([capture(), capture([capture()])]), [1, [2]], ([1, [2]], 1, [2], 2)),
        (capture(capture()), 5, (5, 5)),
        # restrictions by class
        (capture(int), 5, (5,)),
        (capture(int), 2**70, (2**70,)),
        (capture(int), True, None),
        (capture(bool), True, (True,)),
        (capture(float), 1, None),
        (capture(float), 1.0, (1.0,)),
        (capture(str), Symbol("a"), None),
        (capture(Symbol), Symbol("a"), (Symbol("a"),)),
        (capture(bytes), b"x", (b"x",)),
        (capture(Ref), REFS[0], (REFS[0],)),
        (capture(list), [1], ([1],)),
        (capture(tuple), [1], ([1],)),
        (capture(list), {"a": 1}, None),
        (capture(list), Says("a", "b"), None),
        (capture(dict), {"a": 1}, ({"a": 1},)),
        (capture(set), {1, 2}, ({1, 2},)),
        (capture(set), [1, 2], None),
        (capture(frozenset), ValueSet([1]), (ValueSet([1]),)),
        (capture(Says), Says("a", "b"), (Says("a", "b"),)),
        (capture(Says), Record("Says", ["a"]), None),
        ([capture(Kind("String"))], ["x"], ("x",)),
        # keys that fit nowhere
        (Group("arr", None, ((-1, ANY),)), [1, 2], None),
        (Group("arr", None, (("0", ANY),)), [1, 2], None),
        (Group("arr", None, ((True, ANY),)), [1, 2], None),
        (Group("rec", Symbol("r"), ((1.0, ANY),)), Record("r", [1, 2]), None),
        (Group("arr", None, ((2**70, ANY),)), [1, 2], None),
        # sparse groups
        (Group("arr", None, ((2, capture()),)), ["a", "b", "c", "d"], ("c",)),
        (Group("rec", Symbol("r"), ((1, Literal(5)), (3, capture()))), Record("r", [0, 5, 0, "x"]), ("x",)),
    ],
)
def test_what_matches_what(pattern: Any, value: Any, captures: Any) -> None:
    """One line for each rule of the pattern language."""
    matched = match(pattern, value)
    assert matched == captures if captures is None else matched is not None and identical(matched, captures)


# ----------------------------------------------------------------------------------------- what is no pattern


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({1, 2}, "capture(set)"),
        ([{1, 2}], "capture(set)"),
        (ValueSet([1]), "capture(set)"),
        (int, "write capture(int)"),
        (Says, "write capture(Says)"),
        ([str], "write capture(str)"),
        (None, "None is not a value"),
        (print, "a function cannot stand in a pattern: 'print'"),
        ({print: 1}, "a key of a dictionary pattern must be a value"),
        (unquote(ANY), "quote()"),
    ],
)
def test_what_is_no_pattern(written: Any, says: str) -> None:
    """Each mistake gets its remedy, as a PatternError, which is a TypeError too."""
    with pytest.raises(PatternError) as raised:
        analyse(written)
    assert says in str(raised.value)
    assert isinstance(raised.value, TypeError)


def test_capture_of_a_class_that_has_no_values() -> None:
    """``capture(object)`` names the classes that are possible."""
    with pytest.raises(PatternError, match="the classes of values are bool, int"):
        capture(object)


def test_cyclic_and_bottomless_patterns() -> None:
    """A pattern that contains itself, or is nested beyond any value, is refused and does not end the process."""
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    for written in (cyclic, _nest(5_000), _nest(100)):
        with pytest.raises(PatternError, match="nested"):
            analyse(written)
    with pytest.raises(PatternError, match="split it"):
        analyse([[]] * 5_000)


DEEP: dict[str, Callable[[int], Any]] = {
    "lists": lambda n: _nest(n, ANY),
    "lists to an atom": lambda n: _nest(n, "x"),
    "lists to a capture": lambda n: _nest(n, capture(int)),
    "dictionaries": lambda n: _nest(n, capture(), lambda p: {"k": p}),
    "records": lambda n: _nest(n, capture(), lambda p: Record("r", [p])),
    "captures": lambda n: _nest(n, ANY, capture),
    "captures of lists": lambda n: _nest(n, ANY, lambda p: capture([p])),
    "lists and dictionaries": lambda n: _nest(n % 2, _nest(n // 2, ANY, lambda p: [{"k": p}])),
    "a key": lambda n: {_nest(n, "x", lambda p: (p,)): capture()},
    "a key in lists": lambda n: _nest(20, {_nest(n, "x", lambda p: (p,)): capture()}),
    "a label": lambda n: Record(_nest(n, "x"), [capture()]),
    "a label in lists": lambda n: _nest(20, Record(_nest(n, "x"), [])),
}
COSTS = {
    "captures": 1,
    "captures of lists": 3,
    **dict.fromkeys([shape for shape in DEEP if " key" in shape or "label" in shape], 1),
}


@pytest.mark.parametrize("shape", DEEP)
def test_a_pattern_is_as_deep_as_lets_its_interest_be_a_value(shape: str) -> None:
    """Whatever nests: who observes observers gets a value, with some room around it, and there is not much more room
    than that; a level more is refused, by each way that leads to an interest.
    """
    depth = _most(lambda n: _refused(analyse, DEEP[shape](n)) is None)
    deepest, deeper = DEEP[shape](depth), DEEP[shape](depth + 1)
    expanded = expand(interest(deepest, REFS[0]))
    assert freeze(thaw(expanded)) == interest(deepest, REFS[0])
    for written in (Observe(deepest, REFS[0]), Record("Observe", [encode(pattern_of(deepest)), REFS[0]])):
        room = _room(written)
        assert 5 <= room < 7 + COSTS.get(shape, 2), written
    assert isinstance(_refused(analyse, deeper), PatternError)
    assert isinstance(_refused(freeze, Observe(deeper, REFS[0])), PatternError)
    assert freeze(Record("Observe", [encode(pattern_of(deeper)), REFS[0]]))[0] is OBSERVE  # no interest: an assertion


LARGE: dict[str, Callable[[Any], Any]] = {
    "labels": lambda large: [[Record(large, [1]), Record((large, 1), [capture()])]],
    "keys": lambda large: [[{large: 1}, {(large, 1): capture()}]],
    "a label and a key": lambda large: [[Record(large, []), {(large, 1): ANY}]],
    "atoms": lambda large: [[list(large), list(large)]],
    "places": lambda large: [[[capture()] * (len(large) // 2), [ANY] * len(large)]],
}


@pytest.mark.parametrize("shape", LARGE)
def test_a_pattern_is_as_large_as_lets_its_interest_be_a_value(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that are values one by one may be none together: then the pattern is refused, and not only where somebody
    observes observers.
    """
    monkeypatch.setattr("syndicate.values.depth.MAX_NODES", 2_000)
    assert isinstance(_refused(analyse, LARGE[shape](tuple(range(1_100)))), PatternError)
    taken = LARGE[shape](tuple(range(200)))
    assert freeze(thaw(expand(interest(taken, REFS[0])))) == interest(taken, REFS[0])


def _room(value: Any) -> int:
    return _most(lambda n: _refused(freeze, _nest(n, value)) is None)


def _most(holds: Callable[[int], bool]) -> int:
    return bisect_left(range(130), True, key=lambda n: not holds(n)) - 1


def _refused(function: Callable[[Any], object], value: Any) -> Exception | None:
    try:
        function(value)
    except TypeError as error:
        return error
    return None


def _nest(levels: int, pattern: Any = ANY, around: Callable[[Any], Any] = lambda pattern: [pattern]) -> Any:
    for _ in range(levels):
        pattern = around(pattern)
    return pattern


# ----------------------------------------------------------------------------------------- patterns as values


@given(patterns())
def test_encoding_and_decoding_are_inverse(pattern: Any) -> None:
    """A pattern survives the published schema, also when its value has been asserted and has come back."""
    assert decode(encode(pattern)) == pattern
    assert decode(thaw(freeze(encode(pattern)))) == pattern
    assert identical(encode(decode(encode(pattern))), encode(pattern))


@given(patterns())
def test_analysis_and_synthesis_are_inverse(pattern: Any) -> None:
    """A skeleton with its constants says all that the pattern says."""
    assert synthesise(*analyse(pattern)) == pattern


@given(patterns())
def test_an_interest_is_one_value_however_it_is_written(pattern: Any) -> None:
    """The compact form of an Observe expands to what the schema says, and that is the same value."""
    form = interest(pattern, REFS[0])
    written = Record("Observe", [encode(pattern), REFS[0]])
    assert freeze(written) == freeze(Observe(encode(pattern), REFS[0])) == form
    assert freeze(thaw(form)) == form
    assert identical(thaw(expand(form)), written)
    assert identical([thaw(form)], [written])


@given(st.data())
def test_a_literal_pattern_matches_its_value_and_holes_only_widen_it(data: st.DataObject) -> None:
    """A pattern made from a value by punching holes matches it, unless an alien part or a set got in."""
    value = data.draw(values())
    pattern = data.draw(patterns_like(value))
    captures = match(pattern, value)
    if captures is not None:
        assert match(pattern, thaw(freeze(value))) is not None
        assert identical(match(pattern, thaw(freeze(value))), captures)
        assert match(Capture(pattern), value) == (value, *captures)


@pytest.mark.parametrize("atom", ATOMS, ids=repr)
def test_an_atom_is_matched_by_itself_alone(atom: Any) -> None:
    """Among all atoms with look-alikes, a literal matches exactly one."""
    assert [identical(atom, other) for other in ATOMS] == [match(atom, other) is not None for other in ATOMS]
    assert sum(match([atom], [other]) is not None for other in ATOMS) == 1


@pytest.mark.parametrize(
    "value",
    [
        1,
        Symbol("bind"),
        Record("bind"),
        Record("bind", [1]),
        Record("bind", [Record("_"), Record("_")]),
        Record("lit", [[1, 2]]),
        Record("lit", [{1}]),
        Record("group", [Record("arr"), [Record("_")]]),
        Record("group", [Record("arr", [1]), {}]),
        Record("group", [Record("rec"), {}]),
        Record("group", [Record("set"), {}]),
        Record("group", [Symbol("arr"), {}]),
        Record("group", [Record("arr"), {0: 1}]),
        Record("rec", [Symbol("x"), [Record("_")]]),
    ],
)
def test_values_that_are_no_patterns(value: Any) -> None:
    """What the schema does not know is refused, with the value in the message."""
    with pytest.raises(PatternError, match=r"dataspacePatterns|holds an atom|dictionary|a group is of"):
        decode(value)


def test_quoting() -> None:
    """A quoted pattern is data; unquote makes holes in the data, so that observers can be observed."""
    wanted = quote(Says(unquote(capture()), unquote(ANY)))
    assert match(wanted, quote(Says("Ann", capture()))) == (Record("lit", ["Ann"]),)
    assert match(wanted, quote(Says(capture(), ANY))) == (quote(capture()),)
    assert match(wanted, quote(P(1))) is None
    assert match(quote(P(1)), quote(P(1))) == ()
    assert match(quote(P(1)), quote(P(2))) is None
    assert match(quote(PP(1, ANY)), quote(P(1))) is None
    # a pattern of at least these entries: what observes more specifically is found too
    assert match(quote({"a": unquote(capture())}), quote({"a": 1, "b": 2})) == (Record("lit", [1]),)


def test_patterns_print_as_they_are_written() -> None:
    """ANY and capture look like what one types."""
    assert repr([ANY, capture(), capture(5)]) == "[ANY, capture(), capture(Literal(value=5))]"


def test_equal_patterns_are_equal_by_value() -> None:
    """Patterns compare by the identity of the values in them."""
    assert pattern_of([1]) == pattern_of((1,))
    assert pattern_of([1]) != pattern_of([True])
    assert pattern_of({1: 2}) != pattern_of({True: 2})
    assert isinstance(match({}, {}), tuple)
    assert isinstance(Dictionary(), Mapping)
