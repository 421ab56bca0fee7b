"""Native readers and writers of packets beside the codecs that specify them: the same bytes, forms and errors."""

from __future__ import annotations

import gc
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.protocol.codec import Msgpack, Preserves
from relay.protocol.codec import msgpack as msgpack_module
from relay.protocol.codec import packet_scanner as packet_scanner_module
from relay.protocol.codec import preserves as preserves_module
from relay.protocol.codec import preserves_encoding as encoding_module
from relay.protocol.limits import Limits
from relay.protocol.packets import A, M, R, S, WireRef
from syndicate import native
from syndicate.errors import NotAValue, ProtocolError
from syndicate.values.value import MINUS_TWO, SEQ, TRUE, Frozen, Symbol, freeze
from tests.relay.protocol.codec.fuzz import mutants, packet, value

Either: TypeAlias = Msgpack | Preserves
SEEDS: Final = int(os.environ.get("SYNDICATE_SEEDS", "1"))
CODECS: Final[dict[str, type[Either]]] = {"msgpack": Msgpack, "preserves": Preserves}
KERNELS: Final = [
    (msgpack_module, "read_msgpack"),
    (msgpack_module, "write_msgpack"),
    (packet_scanner_module, "pass_heads"),
    (preserves_module, "read_preserves"),
    (encoding_module, "write_preserves"),
]
WORDS: Final = ("a", "Says", "with space", "1.5", "", "'", "Present", "p", "Observe", "error", "short")
pytestmark = [
    pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION),
    pytest.mark.parametrize("name", CODECS),
]


@contextmanager
def specified() -> Iterator[None]:
    """The codecs alone."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in KERNELS:
            patch.setattr(module, name, native.specifications[name])
        yield


@contextmanager
def counted(name: str) -> Iterator[dict[str, int]]:
    """How often a kernel did it, and how often the codec had to."""
    counts = {"usual": 0, "rare": 0}
    with pytest.MonkeyPatch.context() as patch:
        for module, kernel in KERNELS:
            if kernel.endswith(name):

                def counting(*arguments: object, inner: object = getattr(module, kernel)) -> object:
                    result = inner(*arguments)  # type: ignore[operator]
                    counts["usual" if result else "rare"] += 1
                    return result

                patch.setattr(module, kernel, counting)
        yield counts


def acquainted(name: str, limits: Limits | None = None) -> Either:
    """A codec that has heard and said the usual symbols and references, as after the first packets."""
    codec = CODECS[name](limits or Limits())
    words = [*map(Symbol, WORDS), A, M, R, S, *[WireRef(whose, oid) for whose in (0, 1) for oid in range(9)]]
    for word in words:
        assert list(codec.feed(codec.encode((SEQ, word)))) == [(SEQ, word)]
    return codec


def fed(codec: Either, chunks: list[bytes]) -> tuple[str, str | None]:
    """The packets before the first error, and its text."""
    forms: list[Frozen] = []
    try:
        for chunk in chunks:
            forms.extend(codec.feed(chunk))
    except ProtocolError as error:
        return repr(forms), str(error)
    return repr(forms), None


def written(codec: Either, form: Frozen) -> bytes | str:
    """The bytes, or the error's text."""
    try:
        return codec.encode(form)
    except NotAValue as error:
        return str(error)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_bytes_and_forms(name: str, seed: int) -> None:
    """Of random packets, one after the other, in random pieces."""
    rng = random.Random(seed)
    packets = [packet(rng) for _ in range(2000)] + [(SEQ, freeze(value(rng))) for _ in range(2000)]
    rng.shuffle(packets)
    ours, theirs = acquainted(name), acquainted(name)
    with counted(name) as counts:
        bytes_ours = [written(ours, form) for form in packets]
        stream = b"".join([data for data in bytes_ours if isinstance(data, bytes)])
        cuts = sorted(rng.sample(range(len(stream)), 200))
        chunks = [stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
        heard = fed(ours, chunks)
    with specified():
        assert [written(theirs, form) for form in packets] == bytes_ours
        assert fed(theirs, chunks) == heard
    assert counts["usual"] > counts["rare"]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_same_of_mutated_frames(name: str, seed: int) -> None:
    """Packets and errors, at limits that some of them are beyond.

    Which text an error has depends on the length of the piece: the library has its own.
    """
    rng = random.Random(seed)
    limits = Limits(depth=6, nodes=60, frame=200)
    differing = []
    with counted(name) as counts:
        for frame in islice(mutants(name, seed), 2_000):
            cut = rng.randrange(len(frame) + 1)
            chunks = [chunk for chunk in (frame[:cut], frame[cut:]) if chunk]
            forms, error = fed(acquainted(name, limits), chunks)
            with specified():
                others, other = fed(acquainted(name, limits), chunks)
            if (forms, error is None) != (others, other is None):
                differing.append(frame.hex())
    assert differing == []
    assert counts["usual"] > 2_000


@given(number=st.one_of(st.integers(-(2**65), 2**65), st.integers(-(2**17), 2**17)), text=st.text(), data=st.binary())
def test_atoms(name: str, number: int, text: str, data: bytes) -> None:
    """Integers of every length, and what has one."""
    form = freeze([number, text, data, number / 3, Symbol("a")])
    codec = acquainted(name)
    encoded = codec.encode(form)
    with specified():
        other = acquainted(name)
        assert other.encode(form) == encoded
        assert repr(list(other.feed(encoded))) == repr([form])
    assert repr(list(codec.feed(encoded))) == repr([form])


@pytest.mark.parametrize("sizes", [[4095], [4096], [70_000], [5000, 3, 4096, 0, 100_000]])
def test_large_texts_and_bytes(name: str, sizes: list[int]) -> None:
    """Wherever they are, and up to the limit on the bytes of a packet, and no further."""
    leaves = [leaf for size in sizes for leaf in ("t" * size, "\u00e4" * (size // 2), b"b" * size, 7)]
    for items in (leaves, [leaves, leaves], [1, leaves[0]]):
        form = freeze(items)
        encoded = acquainted(name).encode(form)
        with specified():
            assert acquainted(name).encode(form) == encoded
        assert list(acquainted(name).feed(encoded)) == [form]
        assert acquainted(name, Limits(frame=len(encoded))).encode(form) == encoded
        assert isinstance(written(acquainted(name, Limits(frame=len(encoded) - 1)), form), str)


@pytest.mark.parametrize(
    "limits",
    [Limits(nodes=12), Limits(depth=3), Limits(frame=40), Limits(depth=200), Limits(nodes=12, depth=1)],
    ids=["nodes", "depth", "frame", "deep", "both"],
)
def test_the_same_at_each_limit(name: str, limits: Limits) -> None:
    """One more is refused, and one less is not, in both directions and with the same words."""
    for size in (*range(16), *range(28, 45), *range(60, 72), *range(125, 137), *range(195, 205)):
        nested: Frozen = (SEQ, 1)
        for _ in range(size):
            nested = (SEQ, nested)
        for form in ((SEQ, *range(size)), nested, (SEQ, "x" * size), (SEQ, *[(SEQ, WireRef(1, 2))] * size)):
            if size > 70 and form is not nested:
                continue
            encoded = written(acquainted(name, Limits()), form)
            ours = written(CODECS[name](limits), form)
            heard = fed(CODECS[name](limits), [encoded]) if isinstance(encoded, bytes) else None
            with specified():
                assert written(CODECS[name](limits), form) == ours
                if isinstance(encoded, bytes):
                    assert fed(CODECS[name](limits), [encoded]) == heard


def test_what_is_usual_is_done_here(name: str) -> None:
    """A turn of records, of numbers, texts, truths and references: at both ends, once its symbols have been seen."""
    body = (Symbol("Says"), "hello", 1, -5, 2**40, MINUS_TWO, TRUE, freeze(1.5), b"data", (SEQ, (SEQ,)), WireRef(0, 3))
    form = (SEQ, (SEQ, 1, (A, body, 7)), (SEQ, 1, (M, body)), (SEQ, 1, (R, 7)), (SEQ, 1, (S, WireRef(0, 1))))
    codec = acquainted(name)
    with counted(name) as counts:
        encoded = codec.encode(form)
        assert list(codec.feed(encoded * 3)) == [form] * 3
    assert counts == {"usual": 4, "rare": 0}


def test_after_a_cut_packet_the_rest_is_usual_again(name: str) -> None:
    """A piece that begins in the midst of a packet costs that packet alone; of msgpack it is usual once it is whole."""
    form = (SEQ, (SEQ, 1, (M, (Symbol("Says"), "hello"))))
    codec = acquainted(name)
    encoded = codec.encode(form)
    with counted(name) as counts:
        assert list(codec.feed(encoded[:-3])) == []
        assert list(codec.feed(encoded[-3:] + encoded * 9)) == [form] * 10
    assert counts == {"usual": 10 if name == "msgpack" else 9, "rare": 1}


@pytest.mark.parametrize("seed", range(2))
def test_large_packets_in_pieces(name: str, seed: int) -> None:
    """Whole or mutated, cut anywhere, and within small limits as well."""
    rng = random.Random(seed)
    for limits in (None, Limits(depth=6, nodes=300, frame=2000)):
        for _ in range(60):
            encoded = CODECS[name]().encode((SEQ, *[packet(rng) for _ in range(rng.randrange(1, 40))]))
            if rng.random() < 0.5:
                place = rng.randrange(len(encoded))
                encoded = encoded[:place] + rng.randbytes(rng.randrange(3)) + encoded[place + 1 :]
            cuts = sorted(rng.sample(range(len(encoded)), min(5, len(encoded) - 1)))
            chunks = [encoded[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(encoded)], strict=True)]
            chunks = [chunk for chunk in chunks if chunk]
            forms, error = fed(acquainted(name, limits), chunks)
            with specified():
                others, other = fed(acquainted(name, limits), chunks)
            assert (forms, error is None) == (others, other is None), encoded.hex()


def test_nothing_is_kept(name: str) -> None:
    """Neither of what was read and written, nor of what was given up half-way."""
    codec = acquainted(name)
    body = "something long " * 3
    form = (SEQ, (SEQ, 1, (M, (Symbol("Says"), body))))
    encoded = codec.encode(form)
    rare = CODECS[name]().encode((SEQ, body, (Symbol("unheard of"), body)))
    gc.collect()
    before = sys.getrefcount(body), sys.getrefcount(A), sys.getrefcount(SEQ), sys.getrefcount(TRUE)
    for _ in range(1000):
        codec.encode(form)
        codec.encode((SEQ, body, freeze({"k": 1})))
        list(codec.feed(encoded))
        list(codec.feed(encoded[:20]))
        list(codec.feed(encoded[20:]))
    list(codec.feed(rare))
    gc.collect()
    after = sys.getrefcount(body), sys.getrefcount(A), sys.getrefcount(SEQ), sys.getrefcount(TRUE)
    assert max(abs(one - other) for one, other in zip(before, after, strict=True)) < 10, (before, after)


def test_what_the_collector_need_not_look_at(name: str) -> None:
    """A form of leaves is not tracked; one that holds a reference is."""
    codec = acquainted(name)
    leaves, holding = codec.feed(codec.encode((SEQ, "a", 1)) + codec.encode((SEQ, WireRef(0, 1))))
    assert not gc.is_tracked(leaves)
    assert gc.is_tracked(holding)


def nested(levels: int) -> Any:
    """So many sequences in each other."""
    return [nested(levels - 1)] if levels else 2**70


@pytest.mark.parametrize(
    "value",
    [
        Symbol("unheard of"),
        2**70,
        0.5,
        [[[]]] * 3,
        frozenset({"b", (1, 2)}),
        {"k": [Symbol("unheard of")], (1, 2): 2},
        nested(100),
    ],
    ids=["symbol", "integer", "double", "sequences", "set", "dictionary", "deep"],
)
def test_the_collector_need_not_look_at_what_python_reads_either(name: str, value: Any) -> None:
    """Whatever is in a form, if no reference is: one is found wherever it is."""
    codec, rare = acquainted(name), Symbol("unheard of, too")
    encoded = [codec.encode((SEQ, rare, freeze(value), *others)) for others in ((), (WireRef(0, 1),))]
    leaves, holding = acquainted(name).feed(b"".join(encoded))
    assert not gc.is_tracked(leaves)
    assert gc.is_tracked(holding)
    assert leaves[2] == holding[2] == freeze(value)
