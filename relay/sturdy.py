"""Sturdy references: capabilities as text, which one can write down, hand on and check without a list.

``<ref {oid: O sig: S}>`` names something by *O* and proves by *S* that whoever made it knew the key of *O*.  The
signature is a chain, each link the key of the next: HMAC-BLAKE2s-256, its first 16 bytes.  So a holder can narrow a
reference by adding a caveat, and nobody can take one away.

This version makes and checks references without caveats, and refuses those that have any: what is not understood must
not be allowed.

>>> mint("syndicate", b"") == parse_ref(DEFAULT)
True
>>> valid(parse_ref(DEFAULT), b""), valid(parse_ref(DEFAULT), b"another key")
(True, False)

Source: the reference, section 5.8, whose vectors are tests; reliability, section 7.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from relay.codec.canonical import canonical
from syndicate.errors import NotAValue, TextError
from syndicate.record import record
from syndicate.text import parse, unparse
from syndicate.values import Dictionary, Symbol, Value, freeze

OID: Final = Symbol("oid")
SIG: Final = Symbol("sig")
CAVEATS: Final = Symbol("caveats")
_SIZE: Final = 16

DEFAULT: Final = '<ref {oid: "syndicate" sig: #x"69ca300c1dbfa08fba692102dd82311a"}>'
"""The well-known reference, with the empty key: everybody has it, so it protects nothing."""


@record("ref")
class SturdyRef:
    """``<ref {oid: .. sig: .. caveats: ..}>``.  It is a secret: its ``repr`` does not show the signature."""

    parameters: Value

    def __repr__(self) -> str:
        oid = self.parameters.get(OID) if isinstance(self.parameters, Dictionary) else None
        return f"<SturdyRef {oid!r}>"


def sign(key: bytes, data: bytes) -> bytes:
    """One link of the chain."""
    return hmac.new(key, data, hashlib.blake2s).digest()[:_SIZE]


def mint(oid: Value, key: bytes) -> SturdyRef:
    """The reference to *oid*, whose key is *key*: at least 16 random bytes, unless it is to protect nothing."""
    return SturdyRef(Dictionary([(OID, oid), (SIG, sign(key, canonical(freeze(oid))))]))


def valid(ref: SturdyRef, key: bytes) -> bool:
    """Whether *ref* was made with *key*.  Takes the same time wherever a forged signature goes wrong."""
    parameters = ref.parameters
    if not isinstance(parameters, Dictionary) or OID not in parameters:
        return False
    sig = parameters.get(SIG)
    if type(sig) is not bytes or len(sig) != _SIZE or CAVEATS in parameters:
        return False
    try:
        expected = sign(key, canonical(freeze(parameters[OID])))
    except NotAValue:  # a live reference in the name
        return False
    return hmac.compare_digest(sig, expected)


def parse_ref(text: str) -> SturdyRef:
    """The reference that *text* writes; raises :class:`TextError`."""
    ref = parse(text)
    if not isinstance(ref, SturdyRef) or not isinstance(ref.parameters, Dictionary):
        raise TextError(f"not a capability: it looks like {DEFAULT}, and the server prints the one that it serves")
    if OID not in ref.parameters or type(ref.parameters.get(SIG)) is not bytes:
        raise TextError(f"a capability has an oid and a sig, as in {DEFAULT}: copy the one that the server prints")
    return ref


def show(ref: SturdyRef) -> str:
    """The text of a reference.

    >>> show(parse_ref(DEFAULT)) == DEFAULT
    True
    """
    return unparse(ref)
