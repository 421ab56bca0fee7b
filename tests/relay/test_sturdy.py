"""Sturdy references: the published vectors, forgeries, and what text may say."""

from __future__ import annotations

import random
from typing import Any

import pytest

from relay.sturdy import CAVEATS, DEFAULT, OID, SIG, SturdyRef, mint, parse_ref, show, valid
from syndicate import Dictionary, Record, Symbol
from syndicate.errors import TextError
from tests.strategies import REFS


@pytest.mark.parametrize(
    ("oid", "key", "sig"),
    [
        ("syndicate", b"", "69ca300c1dbfa08fba692102dd82311a"),
        (Symbol("a-service"), b"hello", "2534c641e60282884c5d6ff64b65c7f2"),
    ],
)
def test_published_vectors(oid: Any, key: bytes, sig: str) -> None:
    """Our signatures are those of every other implementation."""
    made = mint(oid, key)
    assert made.parameters[SIG].hex() == sig
    assert valid(made, key)


def test_text() -> None:
    """A reference is written and read back."""
    assert show(mint("syndicate", b"")) == DEFAULT
    assert parse_ref(DEFAULT) == mint("syndicate", b"")


def test_repr_hides_the_signature() -> None:
    """A log or a traceback does not give the capability away."""
    assert "69ca" not in repr(parse_ref(DEFAULT))
    assert "i\xca" not in repr(parse_ref(DEFAULT))
    assert "syndicate" in repr(parse_ref(DEFAULT))


def test_forgeries() -> None:
    """No reference is valid but the one that was minted."""
    key, rng = b"sixteen bytes!!!", random.Random(1)
    sig = mint("ds", key).parameters[SIG]
    assert valid(mint("ds", key), key)
    for bit in range(128):
        forged = (int.from_bytes(sig, "big") ^ 1 << bit).to_bytes(16, "big")
        assert not valid(SturdyRef(Dictionary([(OID, "ds"), (SIG, forged)])), key)
    for _ in range(1000):
        assert not valid(SturdyRef(Dictionary([(OID, "ds"), (SIG, rng.randbytes(16))])), key)


@pytest.mark.parametrize(
    "parameters",
    [
        1,
        [1],
        {},
        {OID: "syndicate"},
        {SIG: b"x" * 16},
        {OID: "syndicate", SIG: ""},
        {OID: "syndicate", SIG: b""},
        {OID: "syndicate", SIG: bytes.fromhex("69ca300c1dbfa08fba692102dd8231")},
        {OID: "syndicate", SIG: bytes.fromhex("69ca300c1dbfa08fba692102dd82311a00")},
        {OID: Symbol("syndicate"), SIG: bytes.fromhex("69ca300c1dbfa08fba692102dd82311a")},
        {OID: "syndicate", SIG: bytes.fromhex("69ca300c1dbfa08fba692102dd82311a"), CAVEATS: []},
        {OID: "syndicate", SIG: bytes.fromhex("69ca300c1dbfa08fba692102dd82311a"), CAVEATS: [Record("reject", [1])]},
        {OID: REFS[0], SIG: b"x" * 16},
    ],
)
def test_what_is_not_valid(parameters: Any) -> None:
    """Whatever is malformed, too short, too long, or has caveats that we would not keep, is refused."""
    made = SturdyRef(Dictionary(parameters) if isinstance(parameters, dict) else parameters)
    assert not valid(made, b"")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<ref",
        "5",
        "<ref 5>",
        "<ref {}>",
        '<ref {oid: "a"}>',
        '<ref {oid: "a" sig: "b"}>',
        '<rof {oid: 1 sig: #x""}>',
    ],
)
def test_bad_text(text: str) -> None:
    """What a person may mistype is told with an example."""
    with pytest.raises(TextError):
        parse_ref(text)
