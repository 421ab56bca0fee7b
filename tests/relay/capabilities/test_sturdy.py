"""Sturdy references: the published vectors, forgeries, and what text may say."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from typing import Any

import pytest

from relay.capabilities.sturdy import CAVEATS, DEFAULT, OID, SIG, SturdyRef, mint, parse_ref, show, sign, valid
from relay.protocol.codec.canonical import canonical
from relay.protocol.limits import DEFAULT as LIMITS
from syndicate import Dictionary, Record, Symbol
from syndicate.errors import CaveatError, NotAValue, TextError
from syndicate.values.text import parse, unparse
from syndicate.values.value import freeze, identical
from tests.relay.caveat_oracle import Chance
from tests.strategies import REFS
from tests.work import PATIENCE

KEY = b"sixteen bytes!!!"

C1 = '<rewrite <bind <_>> <rec labelled [<lit "alice"> <ref 0>]>>'
C2 = """
<or [ <rewrite <rec Present [<_>]>              <rec Present [<lit NAME>]>>
      <rewrite <rec Says [<_> <bind String>]>   <rec Says [<lit NAME> <ref 0>]>>
      <rewrite <bind <rec Observe [<rec rec [<lit Present> <_>]> <_>]>> <ref 0>>
      <rewrite <bind <rec Observe [<rec rec [<lit Says> <_>]> <_>]>> <ref 0>> ]>
"""


@pytest.mark.parametrize(
    ("oid", "key", "caveats", "sig"),
    [
        ("syndicate", b"", [], "69ca300c1dbfa08fba692102dd82311a"),
        (Symbol("a-service"), b"hello", [], "2534c641e60282884c5d6ff64b65c7f2"),
        (Symbol("a-service"), b"hello", [C1], "0979fbfab0283b75ebe98e8b69aa7738"),
        (Symbol("a-service"), b"hello", [C2.replace("NAME", '"alice"')], "b3dd7c264e80b3c01627daeda3339396"),
        (Symbol("a-service"), b"hello", [C2.replace("NAME", '"bob"')], "4016d5e0bad2d22dc11ba3b208f265f8"),
    ],
)
def test_published_vectors(oid: Any, key: bytes, caveats: list[str], sig: str) -> None:
    """Our signatures are those of every other implementation."""
    reference = mint(oid, key).attenuate(*caveats)
    assert reference.parameters[SIG].hex() == sig
    assert valid(reference, key)
    assert not valid(reference, key + b"!")


def test_text() -> None:
    """A reference is written and read back, caveats included."""
    assert show(mint("syndicate", b"")) == DEFAULT
    assert parse_ref(DEFAULT) == mint("syndicate", b"")
    narrow = parse_ref(DEFAULT).attenuate(C1, parse("<reject String>"))
    assert parse_ref(show(narrow)) == narrow
    assert valid(parse_ref(show(narrow)), b"")
    assert show(narrow).startswith("<ref {caveats: [<rewrite ")
    assert narrow.caveats[1] == Record("reject", [Symbol("String")])
    assert narrow.oid == "syndicate"


def test_attenuating_step_by_step() -> None:
    """A holder may narrow what was narrowed; who did it when does not matter, only the order."""
    reference = mint("ds", KEY)
    assert reference.attenuate(C1).attenuate("<reject String>") == reference.attenuate(C1, "<reject String>")
    assert reference.attenuate(C1, "<reject String>") != reference.attenuate("<reject String>", C1)
    assert reference.attenuate() == reference


def test_attenuating_by_nonsense() -> None:
    """What is no caveat, or cannot be signed, or is one too many, is refused with a reason."""
    reference = mint("ds", KEY)
    for caveat in ("<expires 2030>", "<reject <not <bind <_>>>>", "5", Record("reject", [])):
        with pytest.raises(CaveatError):
            reference.attenuate(caveat)
    with pytest.raises(TextError):
        reference.attenuate("<reject")
    with pytest.raises(NotAValue):
        reference.attenuate(Record("reject", [Record("lit", [REFS[0]])]))
    full = reference.attenuate(*["<reject String>"] * LIMITS.caveats)
    assert valid(full, KEY)
    with pytest.raises(CaveatError, match="at most 32"):
        full.attenuate("<reject String>")
    with pytest.raises(CaveatError):
        SturdyRef(1).attenuate(C1)


def test_repr_hides_the_secret() -> None:
    """A log or a traceback does not give the capability away, nor its caveats, nor does a mistake in the text."""
    narrow = parse_ref(DEFAULT).attenuate('<reject <lit "password">>')
    for text in (repr(parse_ref(DEFAULT)), repr(narrow), repr([narrow]), f"{narrow}", str(Record("resolve", [narrow]))):
        assert "69ca" not in text
        assert "i\\xca" not in text
        assert "password" not in text
        assert "syndicate" in text
    for bad in (show(narrow)[:-1], show(narrow).replace("oid", "oiv"), DEFAULT.replace("sig", "sing"), DEFAULT + "x"):
        with pytest.raises(TextError) as raised:
            parse_ref(bad.replace("syndicate", "mine"))
        assert "password" not in str(raised.value)
        assert "mine" not in str(raised.value)
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__


# ---------------------------------------------------------------------------------------------------- forgeries


def forge(rng: random.Random, chance: Chance, reference: SturdyRef, key: bytes) -> SturdyRef:
    """A reference that is not *made*, and that nobody who has only that could have made."""
    sig, caveats, oid = reference.parameters[SIG], [*reference.caveats], reference.oid
    while True:
        what = rng.randrange(10)
        new_sig, new_caveats, new_oid = sig, list(caveats), oid
        if what == 0:
            new_sig = (int.from_bytes(sig, "big") ^ 1 << rng.randrange(128)).to_bytes(16, "big")
        elif what == 1:
            new_sig = sig[: rng.randrange(16)]
        elif what == 2:
            new_sig = sig + rng.randbytes(rng.randrange(1, 17))
        elif what == 3:
            new_sig = rng.randbytes(16)
        elif what == 4 and caveats:
            del new_caveats[rng.randrange(len(caveats))]
        elif what == 5 and len(caveats) > 1:
            rng.shuffle(new_caveats)
        elif what == 6 and caveats:
            new_caveats.insert(rng.randrange(len(caveats) + 1), rng.choice(caveats))
        elif what == 7:
            new_oid = rng.choice(["ds", Symbol("ds"), "sd", 1, True, 1.0, b"ds", ["ds"]])
        elif what == 8:
            new_caveats = [chance.caveat(0) for _ in range(rng.randrange(3))]
        elif what == 9:
            other = rng.choice([b"", key[:-1], key + b"\0", rng.randbytes(16)])
            new_sig = sign(other, canonical(freeze(oid)))
            if rng.randrange(2):  # keyed BLAKE2 is another function
                new_sig = hashlib.blake2s(canonical(freeze(oid)), key=key, digest_size=16).digest()
            for caveat in caveats:
                new_sig = sign(new_sig, canonical(freeze(caveat)))
        forged = SturdyRef(Dictionary([(OID, new_oid), (SIG, new_sig), (CAVEATS, new_caveats)]))
        as_made = SturdyRef(Dictionary([(OID, oid), (SIG, sig), (CAVEATS, caveats)]))
        if not identical(forged, as_made):
            return forged


def test_thousands_of_forgeries() -> None:
    """None is accepted, and each of the references that they were made from is."""
    rng, chance = random.Random(1), Chance(5)
    good = []
    for oid in ("ds", Symbol("ds"), 1, ["ds", 1]):
        for count in range(4):
            # Different caveats: what has one twice is the same when they change places.
            caveats = [Record("reject", [Record("lit", [[i, chance.value(1)]])]) for i in range(count)]
            good.append(mint(oid, KEY).attenuate(*caveats))
    accepted = 0
    for i in range(25_000):
        reference = good[i % len(good)]
        accepted += valid(forge(rng, chance, reference, KEY), KEY)
    assert accepted == 0
    assert all(valid(reference, KEY) for reference in good)


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
        {OID: "syndicate", SIG: bytes.fromhex("69ca300c1dbfa08fba692102dd82311a"), CAVEATS: 5},
        {OID: "syndicate", SIG: bytes.fromhex("69ca300c1dbfa08fba692102dd82311a"), CAVEATS: {}},
        {OID: "syndicate", SIG: bytes.fromhex("69ca300c1dbfa08fba692102dd82311a"), CAVEATS: [Record("reject", [1])]},
        {OID: "syndicate", SIG: bytes.fromhex("69ca300c1dbfa08fba692102dd82311a"), "sig": b"x"},
        {OID: "syndicate", SIG: bytes.fromhex("69ca300c1dbfa08fba692102dd82311a"), Symbol("caveat"): []},
        {OID: REFS[0], SIG: b"x" * 16},
        {OID: lambda: 1, SIG: b"x" * 16},
    ],
)
def test_what_is_not_valid(parameters: Any) -> None:
    """Whatever is malformed, too short, too long, or has parameters that we do not know, is refused."""
    reference = SturdyRef(Dictionary([]) if parameters == {} else parameters)
    assert not valid(reference, b"")


def signed(key: bytes, *caveats: Any) -> SturdyRef:
    """A reference with any caveats, signed as it should be."""
    sig = sign(key, canonical(freeze("ds")))
    for caveat in caveats:
        sig = sign(sig, canonical(freeze(caveat)))
    return SturdyRef(Dictionary([(OID, "ds"), (SIG, sig), (CAVEATS, list(caveats))]))


def test_caveats_that_are_signed() -> None:
    """No caveats are as none; an unknown one is kept; malformed ones and too many are refused, however well signed."""
    assert valid(signed(KEY), KEY)
    assert valid(signed(KEY, Record("expires", [2030])), KEY)
    assert not valid(signed(KEY, Record("reject", [5])), KEY)
    assert not valid(signed(KEY, Record("or", [5])), KEY)
    many = [Record("reject", [Symbol("String")])] * 33
    assert valid(signed(KEY, *many[1:]), KEY)
    assert not valid(signed(KEY, *many), KEY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<ref",
        "5",
        "<ref 5>",
        "<ref {}>",
        "<ref {} 1>",
        '<ref {oid: "a"}>',
        '<ref {oid: "a" sig: "b"}>',
        '<ref {oid: "a" sig: #"b"}>',
        '<rof {oid: 1 sig: #x""}>',
        DEFAULT.replace("sig", "caveats: 5 sig"),
        DEFAULT.replace("sig", "caveats: [<reject 5>] sig"),
    ],
)
def test_bad_text(text: str) -> None:
    """What a person may mistype is reported with an example."""
    with pytest.raises(TextError, match="69ca300c1dbfa08fba692102dd82311a"):
        parse_ref(text)


SHADOWS = """
from syndicate import record, run, stop_actor, dataspace
from relay import connect
from relay.server.broker import Broker
from relay.capabilities.sturdy import DEFAULT, parse_ref, show, valid

for label in ("accepted", "rejected", "resolve", "ref", "ok", "error", "lit", "bind"):
    @record(label)
    class Mine:
        x: str
@record("resolve")
class Resolve:
    what: str
    who: str
@record("rewrite")
class Rewrite:
    x: str
    y: str
narrow = parse_ref(DEFAULT).attenuate("<rewrite <bind <_>> <ref 0>>")
assert valid(parse_ref(show(narrow)), b"")

def client(addresses):
    @connect(addresses[0], show(narrow), attempts=1)
    def on_connected(ds):
        print("connected")
        stop_actor()

def boot():
    Broker(["tcp://127.0.0.1:0"], opened=client)()

run(boot)
"""


def test_a_program_may_have_these_records_itself() -> None:
    """Record classes of a program, with the labels that the relay uses, change nothing for the relay."""
    done = subprocess.run(
        [sys.executable, "-c", SHADOWS], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.stdout, done.returncode) == ("connected\n", 0), done.stderr


def test_unparse_of_a_reference_is_its_text() -> None:
    """Its text is that of the value it is."""
    assert unparse(mint("syndicate", b"")) == DEFAULT
