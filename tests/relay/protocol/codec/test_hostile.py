"""The worst frames within the default limits that we could think of: none takes 50 ms to decode or to refuse."""

from __future__ import annotations

import contextlib
import gc
import itertools
import random
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgpack
import pytest

from relay.protocol.codec import Codec, Msgpack, Preserves, PreservesText
from relay.protocol.codec.preserves_encoding import counted, integer
from syndicate.errors import ProtocolError
from syndicate.values.value import SEQ, Symbol
from tests.relay.protocol.codec.fuzz import quick

NEW: Final = itertools.count()
E = msgpack.ExtType
SET, DICT = E(4, b""), E(5, b"")


def shuffled(items: Iterable[Any]) -> list[Any]:
    """In an order that no sort has it easy with."""
    results = list(items)
    random.Random(1).shuffle(results)
    return results


def nested(times: int, inner: Any, wrap: Callable[[Any, int], Any]) -> Any:
    """Wrapped again and again."""
    for i in range(times):
        inner = wrap(inner, i)
    return inner


def names(count: int) -> list[bytes]:
    """Names that no test has used."""
    return [b"new-%d" % next(NEW) for _ in range(count)]


def packed(*items: Any) -> bytes:
    """A sequence in msgpack."""
    data: bytes = msgpack.packb([None, *items])
    return data


def ref(*items: Any) -> Any:
    """A reference in msgpack."""
    return E(3, msgpack.packb(items))


MSGPACK: Final[dict[str, Callable[[], bytes]]] = {
    "new symbols": lambda: packed(*[E(1, name) for name in names(60_000)]),
    "new symbols, allowed": lambda: packed(*[E(1, name) for name in names(4096)], *[1] * 40_000),
    "integers": lambda: packed(*[1] * 49_000),
    "doubles": lambda: packed(*[1.5] * 49_000),
    "booleans": lambda: packed(*[True] * 49_000),
    "large integers": lambda: packed(*[2**63] * 49_000),
    "empty sequences": lambda: packed(*[[None]] * 24_000),
    "empty arrays": lambda: packed(*[[]] * 49_000),
    "a frame of empty arrays": lambda: b"\xdd\x00\x0f\xff\x00" + b"\x90" * ((1 << 20) - 5),
    "set of integers": lambda: packed([SET, *shuffled(range(16_000))]),
    "set of strings": lambda: packed([SET, *shuffled(map(str, range(16_000)))]),
    "set of both": lambda: packed([SET, *shuffled([*range(8_000), *map(str, range(8_000))])]),
    "set of sequences": lambda: packed([SET, *shuffled([None, i] for i in range(5400))]),
    "sets of sequences": lambda: packed(*[[SET, *[[None, i] for i in range(50)]] for _ in range(100)]),
    "many sets": lambda: packed(*[[SET, 1, 2]] * 12_000),
    "many dictionaries": lambda: packed(*[[DICT, 1, 2]] * 12_000),
    "sets in sets": lambda: packed(nested(126, [None, *range(49_000)], lambda x, i: [SET, x, i])),
    "small sets in sets": lambda: packed(nested(100, [None, *range(120)], lambda x, i: [SET, x, i])),
    "keys in keys": lambda: packed(nested(126, [None, *range(49_000)], lambda x, i: [DICT, x, i])),
    "depth": lambda: b"\x91" * 60_000,
    "heads of long arrays": lambda: b"\xdd\x00\x00\xc0\x00" * 13_000,
    "as many as are let through": lambda: b"\xdc\xc3\x00" * 64,
    "one reference, often": lambda: packed(*[ref(0, 1)] * 49_000),
    "references": lambda: packed(*[ref(0, i) for i in range(49_000)]),
    "references, allowed": lambda: packed(*[ref(0, i) for i in range(12_000)]),
    "caveats": lambda: packed(*[ref(1, i, *[1] * 32) for i in range(1300)]),
    "compound caveats": lambda: packed(*[ref(1, i, [None, 1]) for i in range(7000)]),
    "arrays in references": lambda: packed(*[ref(1, 1, [None] * 49_000)] * 16),
    "set of references": lambda: packed([SET, *[ref(0, i) for i in range(8000)]]),
}


def symbol(name: bytes) -> bytes:
    """A symbol in binary Preserves."""
    return counted(0xB3, name)


def seq(*items: bytes) -> bytes:
    """A sequence."""
    return b"\xb5" + b"".join(items) + b"\x84"


def members(*items: bytes) -> bytes:
    """A set."""
    return b"\xb6" + b"".join(items) + b"\x84"


def entries(*items: bytes) -> bytes:
    """A dictionary."""
    return b"\xb7" + b"".join(items) + b"\x84"


def numbers(count: int) -> list[bytes]:
    """Integers."""
    return [*map(integer, range(count))]


PRESERVES: Final[dict[str, Callable[[], bytes]]] = {
    "new symbols": lambda: seq(*map(symbol, names(60_000))),
    "new symbols, allowed": lambda: seq(*map(symbol, names(4096)), *[integer(1)] * 45_000),
    "integers": lambda: seq(*[integer(1 << 60)] * 49_000),
    "larger integers": lambda: seq(*[integer(1 << 63)] * 49_000),
    "large integers": lambda: seq(*[integer((1 << 4000) + i) for i in range(2000)]),
    "doubles": lambda: seq(*[b"\x87\x08abcdefgh"] * 49_000),
    "strings": lambda: seq(*[b"\xb1\x01a"] * 49_000),
    "empty sequences": lambda: seq(*[seq()] * 24_000),
    "empty dictionaries": lambda: seq(*[entries()] * 24_000),
    "small sets": lambda: seq(*[members(integer(1), integer(2))] * 12_000),
    "sets of one sequence": lambda: seq(*[members(seq())] * 8000),
    "small dictionaries": lambda: seq(*[entries(integer(1), integer(1), integer(2), integer(2))] * 8000),
    "set of integers": lambda: members(*shuffled(numbers(16_000))),
    "set of chosen integers": lambda: members(*[integer((i << 45) % (2**61 - 1)) for i in range(16_000)]),
    "set of large integers": lambda: members(*shuffled(integer((1 << 500) + i) for i in range(8000))),
    "set of symbols": lambda: members(*map(symbol, shuffled(names(4096))), *numbers(12_000)),
    "set of sequences": lambda: members(*shuffled(map(seq, numbers(8100)))),
    "set of sets": lambda: members(*shuffled(map(members, numbers(8100)))),
    "set of dictionaries": lambda: members(*shuffled(entries(i, i) for i in numbers(3200))),
    "keys of sequences": lambda: entries(*[part for key in shuffled(numbers(8000)) for part in (seq(key), key)]),
    "sets in sets": lambda: nested(126, seq(*numbers(48_000)), lambda x, i: members(x, integer(i))),
    "equal beginnings": lambda: members(*[seq(*[integer(0)] * 250, integer(i)) for i in range(64)]),
    "depth": lambda: b"\xb5" * 60_000,
    "annotations, deep": lambda: b"\x85" * 60_000,
    "annotations, many": lambda: b"\x85\x80" * 24_000 + b"\x80",
    "references": lambda: seq(*[b"\x86" + seq(integer(0), i) for i in numbers(8000)]),
    "caveats": lambda: seq(*[b"\x86" + seq(integer(1), i, *[integer(1)] * 32) for i in numbers(1300)]),
    "set of references": lambda: members(*[b"\x86" + seq(integer(1), i) for i in numbers(8000)]),
}

TEXT: Final[dict[str, Callable[[], bytes]]] = {
    "new symbols": lambda: b"[%b]" % b" ".join(names(60_000)),
    "new symbols, allowed": lambda: b"[%b]" % b" ".join(names(4096) + [b"1"] * 8000),
    **{
        f"many {token!r}": lambda token=token: b"[%b]" % (token * min(12_000, (1 << 20) // len(token) - 1))  # type: ignore[misc]
        for token in (
            *(b"1 ", b"12345678901234567890 ", b"1.5e300 ", b"1.77777777777e-320 ", b"#t ", b"a'b'", b'"a\\na"'),
            *(b"'a\\na'", b'#"a\\xff"', b"#[aaaa]", b'#x"aa"', b'#xd"0000000000000000"', b"#\n", b"{}", b"{1:1}"),
            *(b"#{1}", b"<a>", b"[]", b"#:[0 5]", b"@a 1 ", b"9" * 1230 + b" ", b"1." + b"7" * 1000 + b" "),
        )
    },
    "a million digits": lambda: b"[" + b"9" * 1_000_000 + b" ]",
    "a million digits of a symbol": lambda: b"[" + b"9" * 1_000_000 + b"x ]",
    "and of a double": lambda: b"[" + b"9" * 500_000 + b"." + b"9" * 500_000 + b"x ]",
    "colons": lambda: b"{a" + b":" * 1_000_000,
    "escapes": lambda: b'["' + b"\\n" * 500_000 + b'"]',
    "escaped characters": lambda: b'["' + b"\\u00e9" * 170_000 + b'"]',
    "escaped bytes": lambda: b'[#"' + b"\\xe9" * 250_000 + b'"]',
    "hexadecimal": lambda: b'[#x"' + b"e9 " * 340_000 + b'"]',
    "base 64": lambda: b"[#[" + b"aaaa" * 250_000 + b"]]",
    "spaces": lambda: b"[" + b" " * 1_000_000 + b"]",
    "depth": lambda: b"[" * 60_000,
    "annotations, deep": lambda: b"@" * 60_000,
    "open string": lambda: b'["' + b"\\\\" * 500_000,
    "set of sequences": lambda: b"#{%b}" % b" ".join(shuffled(b"[%d]" % i for i in range(4000))),
}

CASES: Final = [
    *[(Msgpack, name) for name in MSGPACK],
    *[(Preserves, name) for name in PRESERVES],
    *[(PreservesText, name) for name in TEXT],
]


@pytest.mark.parametrize(("codec", "name"), CASES)
def test_no_frame_takes_long(codec: Callable[[], Codec], name: str) -> None:
    """Decoded or refused, whatever else the machine has to do."""
    cases = MSGPACK if codec is Msgpack else PRESERVES if codec is Preserves else TEXT
    data = cases[name]()
    assert len(data) <= 1 << 20

    def attempt() -> None:
        with contextlib.suppress(ProtocolError):
            list(codec().feed(data))

    gc.collect()
    assert quick(attempt)


def test_new_symbols_are_new_each_time() -> None:
    """The cases with new symbols: as no symbol is held, the second attempt makes them again."""
    data = PRESERVES["new symbols, allowed"]()
    (form,) = Preserves().feed(data)
    name = form[1].name
    assert name in Symbol._known
    del form
    gc.collect()
    assert name not in Symbol._known


@pytest.mark.parametrize("size", [1, 2, 7, 100, 5000])
@pytest.mark.parametrize("codec", [Msgpack, Preserves])
def test_a_cut_packet_takes_what_is_said_that_it_holds(codec: type[Codec], size: int) -> None:
    """In however small pieces it comes, since that is all that a peer is charged for it."""
    whole = codec().encode((SEQ, "x" * 60_000))
    ours = codec()
    assert list(ours.feed(whole[:10])) == []
    tracemalloc.start()
    try:
        for at in range(10, 50_000, size):
            assert list(ours.feed(whole[at : at + size])) == []
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 45_000 < taken < 1.3 * ours.held
    assert list(ours.feed(whole[at + size :])) == [(SEQ, "x" * 60_000)]
