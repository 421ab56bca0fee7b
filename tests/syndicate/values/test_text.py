from __future__ import annotations

import contextlib
import math

import preserves
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate import ANY, Dictionary, Observe, Record, Symbol, ValueSet, capture, record
from syndicate.errors import TextError
from syndicate.values.pattern import Pattern, pattern_of
from syndicate.values.text import parse, parse_pattern, unparse, unparse_pattern
from syndicate.values.value import MAX_DEPTH, Value, freeze, identical
from tests.strategies import REFS, atoms, values

look_alikes = st.sampled_from(["_", "$x", "1", "1.5", "+1e9", "", "a b", "String"]).map(Symbol)
patterns: st.SearchStrategy[Pattern] = st.recursive(
    atoms(refs=False, wide=True) | look_alikes | st.just(ANY),
    lambda inner: (
        inner.map(capture)
        | st.sampled_from([int, str, Symbol, float, bytes, bool, set]).map(capture)
        | st.lists(inner, max_size=3)
        | st.lists(st.tuples(atoms(refs=False), inner), max_size=3).map(Dictionary)
        | st.builds(Record.labelled, atoms(refs=False) | look_alikes, st.lists(inner, max_size=3))
    ),
    max_leaves=12,
).map(pattern_of)


@given(values(refs=False, wide=True) | look_alikes)
def test_parse_inverts_unparse(value: Value) -> None:
    """What is printed is read back as the identical value, on one line without control characters."""
    text = unparse(value)
    assert identical(parse(text), value)
    assert text.isprintable()


@given(patterns)
def test_parse_inverts_unparse_for_patterns(pattern: Pattern) -> None:
    """So is a pattern, its literals that look like holes included."""
    assert parse_pattern(unparse_pattern(pattern)) == pattern


@given(
    st.recursive(
        st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(st.characters(exclude_categories=["Cs"]))
        | st.binary(),
        lambda inner: st.lists(inner, max_size=4).map(tuple),
    )
)
def test_the_preserves_package_reads_what_we_print(value: Value) -> None:
    """An independent reader understands our text."""
    theirs = preserves.parse(unparse(value))
    assert repr(theirs) == repr(value)


@given(st.text(st.sampled_from("<>[]{}#:\"'\\xd$_ \n;,@()-.0e1aZ") | st.characters()))
def test_bad_text_is_a_text_error(text: str) -> None:
    """Whatever is typed gives a value or a TextError that fits on a line or two, for patterns too."""
    for reader in (parse, parse_pattern):
        with contextlib.suppress(TextError):
            reader(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-0.0", -0.0),
        ("1e3", 1000.0),
        ("#t", True),
        ('"a\\u00e9\\ud83d\\ude00"', "aé😀"),
        ("'a b'", Symbol("a b")),
        ('#"ab\\x00"', b"ab\x00"),
        ("#[acow]", b"i\xca0"),
        ("<a 1 [2]>", Record("a", [1, (2,)])),
        ('<"a" 1>', Record.labelled("a", [1])),
        ("{1: a #t: b}", Dictionary([(1, Symbol("a")), (True, Symbol("b"))])),
        ("#{1 1.0 #t}", ValueSet([1, 1.0, True])),
        ("# a comment\n[1, 2,\n# another\n3]  # the last", (1, 2, 3)),
        ('@"a note" 5', 5),
        ("# \n" * 300 + "1", 1),
    ],
)
def test_reads(text: str, value: Value) -> None:
    """The forms of the notation."""
    assert identical(parse(text), value)


def test_record_classes() -> None:
    """A record of a known class is read as an instance of it."""

    @record("text-test-box")
    class Box:
        value: int

    assert parse("<text-test-box 3>") == Box(3)
    assert isinstance(parse("<text-test-box 3>"), Box)


@pytest.mark.parametrize(
    ("text", "where", "remedy"),
    [
        ("", "there is no value", "write one"),
        (" \n ", "there is no value", "write one"),
        ("[", "line 1, column 2", "close what is open"),
        ("[1\n [2", "line 2, column 4", "close what is open"),
        ("1 2", "line 1, column 3", "one sequence"),
        ("<>", "line 1, column 3", "records <label field>"),
        ("{1: 2 1: 3}", "Duplicate key", ""),
        ("#{1 1}", "Duplicate", ""),
        ("[" * (MAX_DEPTH + 2), f"deeper than {MAX_DEPTH}", "flatten"),
        ("[" * 100_000, f"deeper than {MAX_DEPTH}", "flatten"),
        ("1" * 5000, "more than 4300 digits", "bytes"),
        ("#:[0 1]", "a reference", "write _"),
        ("(1)", "( is reserved", ""),
        ('"\\ud800"', "surrogate", ""),
    ],
)
def test_errors_name_the_place_and_the_remedy(text: str, where: str, remedy: str) -> None:
    """A TextError says what, where and what to do."""
    with pytest.raises(TextError) as caught:
        parse(text)
    assert where in str(caught.value)
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("_", ANY),
        ("$", capture()),
        ("<Says $who _>", Record("Says", [capture(), ANY])),
        ("<Says '$who' '_'>", Record("Says", [Symbol("$who"), Symbol("_")])),
        ('["a" <$n SignedInteger> <$ [_ 1]>]', ["a", capture(int), capture([ANY, 1])]),
        ("<$ 'String'>", capture(Symbol("String"))),
        ("{name: $n}", {Symbol("name"): capture()}),
        ("String", Symbol("String")),
        ("<Observe <bind $p> _>", Record("Observe", [Record("bind", [capture()]), ANY])),
    ],
)
def test_patterns(text: str, pattern: object) -> None:
    """What is typed is the pattern that one would write in Python."""
    assert parse_pattern(text) == pattern_of(pattern)


@pytest.mark.parametrize("text", ["<$x 1 2>", "<_>", "{$: 1}", "<$x", "#{1}", "<[_] 1>"])
def test_bad_patterns(text: str) -> None:
    """A hole where none can be is a TextError, not a pattern that never matches."""
    with pytest.raises(TextError):
        parse_pattern(text)


def test_references() -> None:
    """References are shown, and read only by those who can tell what they stand for."""
    ref = REFS[0]
    assert unparse([ref]) == '[#:[Subject ""]]'
    assert unparse([ref], lambda ref: "#:[0 3]") == "[#:[0 3]]"
    assert identical(parse("[#:[0 3]]", lambda value: ref if value == (0, 3) else None), [ref])  # type: ignore[arg-type, return-value]


def test_interest_is_readable() -> None:
    """An Observe shows its pattern in the notation in which one types it."""
    assert unparse(Observe(["a", capture(int)], REFS[0])) == '<Observe ["a" <$ SignedInteger>] #:[Subject ""]>'


def test_large_integers() -> None:
    """Integers beyond the digits that Python converts are printed nevertheless."""
    digits = unparse(10**6000 + 7)
    assert digits == "1" + "0" * 5999 + "7"
    assert unparse(-(10**6000)) == "-1" + "0" * 6000


def test_nan_keeps_its_payload() -> None:
    """A nan is printed by its bits."""
    text = unparse(math.nan)
    assert text == '#xd"7ff8000000000000"'
    assert freeze(parse(text)) == freeze(math.nan)
