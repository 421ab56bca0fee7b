"""The text syntax on the wire."""

from __future__ import annotations

import time

import preserves
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.protocol.codec import Limits, PreservesText
from relay.protocol.packets import A, TurnPacket, WireRef, read, write
from syndicate import Record, Symbol
from syndicate.errors import ProtocolError
from syndicate.values.text import parse
from syndicate.values.value import FALSE, SEQ, TRUE, Frozen, freeze
from tests.relay.protocol.codec.test_codec import forms, in_pieces
from tests.relay.protocol.codec.test_preserves import holds_nan, ours, theirs


def one(text: str, limits: Limits | None = None) -> Frozen:
    """The packet that this text is, cut everywhere too."""
    data = text.encode()
    (form,) = PreservesText(limits or Limits()).feed(data)
    assert in_pieces(PreservesText(limits or Limits()), [data[i : i + 1] for i in range(len(data))]) == [form]
    return form


@given(forms)
def test_the_library_and_the_people_read_what_we_write(form: Frozen) -> None:
    """One line, which means the same to the independent parser, and to the one of our console."""
    line = PreservesText().encode(form)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert freeze(parse(line.decode())) == form
    try:
        theirs(form)
    except ValueError:
        return
    if not holds_nan(form):
        assert freeze(ours(preserves.parse(line.decode()))) == form


@given(forms, st.integers(0, 3), st.booleans())
def test_we_read_what_the_library_writes(form: Frozen, indent: int, commas: bool) -> None:
    """Indented, and with commas."""
    try:
        value = theirs(form)
    except ValueError:
        return
    text = preserves.stringify(value, indent=indent or None, with_commas=commas)
    if not holds_nan(form) and freeze(ours(preserves.parse(text))) == form:  # it writes the symbol '1.5' as a number
        assert list(PreservesText().feed(f"[{text}]".encode())) == [(SEQ, form)]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("#f\n", FALSE),
        ("#t ", TRUE),
        ("[]", (SEQ,)),
        (" [ 1 , 2,3 ,]", (SEQ, 1, 2, 3)),
        ("<A 1>", (A, 1)),
        ("{a: 1 b: [2], }", freeze({Symbol("a"): 1, Symbol("b"): [2]})),
        ("{1:2,3:4}", freeze({1: 2, 3: 4})),
        ("#{1 a #{}}", freeze(frozenset({1, Symbol("a"), frozenset()}))),
        ("[#t#f]", (SEQ, TRUE, FALSE)),
        ("[a'b c'd\"e\"]", (SEQ, Symbol("a"), Symbol("b c"), Symbol("d"), "e")),
        (r'["\n\r\t\b\f\/\\\" é \u00e9 \ud83d\ude00"]', (SEQ, '\n\r\t\b\f/\\" é é 😀')),
        (r"['\'\\ \" x']".replace(r"\"", '"'), (SEQ, Symbol("'\\ \" x"))),
        ('["two\nlines # no comment"]', (SEQ, "two\nlines # no comment")),
        (
            r'[#"a\x00\xff\\\"\n" #x"00 fF" #x"" #[AAEC] #[ _w - = ] #[]]',
            (SEQ, b'a\0\xff\\"\n', b"\0\xff", b"", b"\0\1\2", b"\xff\x0f", b""),
        ),
        ('[1.5 -0.0 1e3 +1.0E-2 #xd"7ff8000000000001"]', None),
        ("[0 -0 +5 007 -12345678901234567890]", (SEQ, 0, 0, 5, 7, freeze(-12345678901234567890))),
        ("[+ - a1 1a 1.a .5 1. |a| ~!$%^&*?_=+/.]", None),
        ('# a comment\n[1 # [ " another\n#!x\n#\n 2]', (SEQ, 1, 2)),
        ("@ann [@<a b> 1 @x @y 2 @ @z w 3]", (SEQ, 1, 2, 3)),
        ("@#f @#:[0 1] [1]", (SEQ, 1)),
        ("{@a 1: @b 2}", freeze({1: 2})),
        ("[#:[0 3] #: [1, 4] #:#:[0 5] #:@a[0 6]]", (SEQ, WireRef(0, 3), WireRef(1, 4), WireRef(0, 5), WireRef(0, 6))),
        (
            "[#:[1 4 <reject <_>> or]]",
            (SEQ, WireRef(1, 4, (freeze(Record("reject", [Record("_", [])])), Symbol("or")))),
        ),
        ("[ünï 日本]", (SEQ, Symbol("ünï"), Symbol("日本"))),
    ],
)
def test_examples(text: str, form: Frozen) -> None:
    """Every kind of value and of what may stand between, whole and byte by byte."""
    assert one(text) == (freeze(parse(text)) if form is None else form)


def test_a_session_in_text() -> None:
    """What somebody types is a packet, and the answer is a line."""
    typed = '[[0 <A <resolve <ref {oid: "syndicate" sig: #x"69ca300c1dbfa08fba692102dd82311a"}> #:[0 0]> 1>]]\n'
    packet = read(one(typed))
    assert isinstance(packet, TurnPacket)
    assert PreservesText().encode(write(packet)) == typed.encode().replace(b"#x", b"#x")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("]", "closes something else"),
        ("[>", "closes something else"),
        ("<a]", "closes something else"),
        ("#{1]", "closes something else"),
        ("[@]", "closes something else"),
        ("<@>", "end where a value should be"),
        ("<#:>", "end where a value should be"),
        ("<>", "without a label"),
        ("{a b}", "written {key: value}"),
        ("{a}", "written {key: value}"),
        ("{a:}", "written {key: value}"),
        ("{a: b c}", "written {key: value}"),
        ("{:", "stand between"),
        ("{a::", "stand between"),
        ("[:", "stand between"),
        ("{@a:", "stand between"),
        ("{a: 1 a: 2}", "duplicate"),
        ("#{1 1}", "duplicate"),
        ("(", "not Preserves text"),
        ("[;", "not Preserves text"),
        ("[#q ]", "not Preserves text"),
        ("[#tt ]", "not Preserves text"),
        ("[#x'00']", "not Preserves text"),
        (r'["\q"]', "escape"),
        (r'["\u12"]', "escape"),
        (r'["\ud800"]', "surrogates"),
        (r"""['\"']""", "not Preserves text"),
        ('[#"é"]', "ascii"),
        (r'[#"\u0041"]', "no other number"),
        ('[#x"0"]', "hexadecimal"),
        ('[#xd"00"]', "a double of 1 bytes"),
        ("[#[A]]", "not Preserves text"),
        ("[#[A*AA]]", "not Preserves text"),
        ("[" + "9" * 1300 + "]", "an integer of 540 bytes: at most 512"),
        ("[" + "9" * 5000 + "]", "an integer of 5000 digits: at most 512 bytes"),
        ("[1." + "0" * 2000 + "]", "a double of 2002 characters"),
        ("[#:5]", "a reference is"),
        ("[#:#:#:[0 1]]", "three times"),
        ("[#:[1 2 #:[0 1]]]", "inside the caveats"),
        ("[" * 200, "levels of nesting"),
        ("@" * 200, "levels of nesting"),
    ],
)
def test_what_is_refused(text: str, why: str) -> None:
    """What is no text of ours is refused, with the reason."""
    with pytest.raises(ProtocolError, match=why):
        list(PreservesText().feed(text.encode()))
    with pytest.raises(ProtocolError, match=why):
        in_pieces(PreservesText(), [bytes([byte]) for byte in text.encode()])


def test_not_utf_8() -> None:
    """Bytes that are no text."""
    for data in (b'["\xff"]', b"[\xc3 ]", b"['\xed\xa0\x80']"):
        with pytest.raises(ProtocolError, match="codec can't decode"):
            list(PreservesText().feed(data))


def test_an_integer_that_python_would_not_read() -> None:
    """With a larger limit, too, Python's own limit of 4300 digits is a ProtocolError."""
    with pytest.raises(ProtocolError, match="5000 digits"):
        list(PreservesText(Limits(bignum=4000)).feed(b"[" + b"9" * 5000 + b"]"))
    assert list(PreservesText(Limits(bignum=4000)).feed(b"[" + b"9" * 4000 + b"]")) == [freeze([10**4000 - 1])]


def test_what_may_be_a_number_is_not_taken_for_a_known_symbol() -> None:
    """A quoted symbol that looks like a number stays apart from the number."""
    assert one("['1' 1 '1' 1.5 '1.5' '#t' #t]") == freeze(
        [Symbol("1"), 1, Symbol("1"), 1.5, Symbol("1.5"), Symbol("#t"), True]
    )


def test_space_between_packets_is_free() -> None:
    """White space and short comments between packets are of none, for as long as a connection lasts."""
    codec = PreservesText(Limits(frame=100))
    for _ in range(50):
        assert list(codec.feed(b" \n" * 500 + b"# hello\n" * 5 + b"[1]")) == [(SEQ, 1)]


@pytest.mark.parametrize("token", ['"{}"', "'{}'", "{}", '#"{}"', '#x"{}"', "#[{}]", "# {}\n"])
def test_a_long_token_is_looked_at_once(token: str) -> None:
    """In pieces of a few bytes, it takes processor time in proportion to its bytes."""

    def cost(size: int) -> float:
        data, times = f"[{token.format('a' * size)} ]".encode(), []
        for _ in range(3):
            codec, began = PreservesText(), time.thread_time()
            got = [packet for i in range(0, len(data), 16) for packet in codec.feed(data[i : i + 16])]
            times.append(time.thread_time() - began)
            assert len(got) == 1
        return min(times)

    assert cost(900_000) < 200 * cost(30_000)  # quadratic: 900
