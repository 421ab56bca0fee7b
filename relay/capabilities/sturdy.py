r"""Sturdy references: capabilities as text, which one can write down, hand on and check without a list.

``<ref {oid: O sig: S}>`` names something by *O* and proves by *S* that whoever made it knew the key of *O*.  The
signature is a chain, each link the key of the next: HMAC-BLAKE2s-256, its first 16 bytes, over the canonical bytes of
*O* and then of each caveat.  So a holder can narrow a reference by adding a caveat, offline and without the key, and
nobody can take one away, change one, or put them into another order.

>>> mint("syndicate", b"") == parse_ref(DEFAULT)
True
>>> valid(parse_ref(DEFAULT), b""), valid(parse_ref(DEFAULT), b"another key")
(True, False)
>>> narrow = parse_ref(DEFAULT).attenuate("<reject <rec Says [<lit \"bob\"> <_>]>>")
>>> narrow
<SturdyRef 'syndicate' with 1 caveat>
>>> valid(narrow, b""), valid(SturdyRef(Dictionary([*narrow.parameters.items(), (CAVEATS, [])])), b"")
(True, False)

Contract: what is not understood is refused: parameters that we do not know, a signature of another length, caveats that
are malformed.  A caveat of a kind that we do not know is kept, and drops everything
(:mod:`relay.capabilities.caveats`).  No
``repr`` and no error shows a signature or a caveat.

Source: Syndicate schemas, ``sturdy``; Birgisson et al. 2014; ``docs/design/relay.md``, "Sturdy references".
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Sequence
from functools import cache
from typing import Final

from attrs import field, frozen

from relay.capabilities.caveats import NOT_AFTER, compile_caveat, is_understood, measure, written
from relay.protocol.codec.canonical import canonical
from relay.protocol.limits import DEFAULT as DEFAULT_LIMITS
from relay.protocol.limits import Limits
from syndicate.errors import CaveatError, NotAValue, TextError
from syndicate.values.record import record
from syndicate.values.text import parse, unparse
from syndicate.values.value import DICT, SEQ, Dictionary, Frozen, Symbol, Value, freeze, thaw

REF: Final = Symbol("ref")
OID: Final = Symbol("oid")
SIG: Final = Symbol("sig")
CAVEATS: Final = Symbol("caveats")
_SIZE: Final = 16

DEFAULT: Final = '<ref {oid: "syndicate" sig: #x"69ca300c1dbfa08fba692102dd82311a"}>'
"""The well-known reference, with the empty key: everybody has it, so it protects nothing."""


@record("ref")
class SturdyRef:
    """``<ref {oid: .. sig: .. caveats: [..]}>``.  It is a secret: its ``repr`` shows neither signature nor caveats.

    A program may have a record class of its own with this label: the relay knows references by their fields.
    """

    parameters: Value

    @property
    def oid(self) -> Value:
        """What it names; None if it is malformed."""
        return self.parameters.get(OID) if isinstance(self.parameters, Dictionary) else None

    @property
    def caveats(self) -> Sequence[Value]:
        """What narrows it, the newest last."""
        caveats = self.parameters.get(CAVEATS) if isinstance(self.parameters, Dictionary) else None
        return caveats if isinstance(caveats, (list, tuple)) else ()

    def attenuate(self, *caveats: Value | str) -> SturdyRef:
        """This reference narrowed by *caveats*, text or values, for which no key is needed.

        Raises :class:`~syndicate.errors.CaveatError`, :class:`~syndicate.errors.TextError` and, where a caveat holds a
        live reference, :class:`~syndicate.errors.NotAValue`.
        """
        had = claim(freeze(self))
        forms = [written(caveat) for caveat in caveats]
        sig = had.sig
        for form in forms:
            sig = sign(sig, canonical(form))
        everything = [*had.caveats, *forms]
        entries = [(OID, self.oid), (SIG, sig)] + [(CAVEATS, [*map(thaw, everything)])] * bool(everything)
        narrowed = SturdyRef(Dictionary(entries))
        claim(freeze(narrowed))
        return narrowed

    def __repr__(self) -> str:
        count = len(self.caveats)
        return f"<SturdyRef {self.oid!r}{f' with {count} caveat' + 's' * (count > 1) if count else ''}>"


@frozen
class UnverifiedReference:
    """What a reference says, in frozen form; whether it is true, a key shows."""

    oid: Frozen
    sig: bytes = field(repr=False)
    caveats: tuple[Frozen, ...] = field(repr=False)

    def holds(self, key: bytes) -> bool:
        """Whether it was made with *key*."""
        try:
            return self.follows(sign(key, canonical(self.oid)))
        except NotAValue:  # a live reference in the name
            return False

    def follows(self, sig: bytes) -> bool:
        """Whether it was narrowed by its caveats from what has the signature *sig*, or is that.  Takes the same time
        wherever a forged signature goes wrong.
        """
        try:
            for caveat in self.caveats:
                sig = sign(sig, canonical(caveat))
        except NotAValue:  # a live reference in a caveat
            return False
        return hmac.compare_digest(self.sig, sig)

    @property
    def end(self) -> float:
        """When it ends, in seconds since 1970; infinity if never."""
        ends = [float(caveat[1]) for caveat in self.caveats if is_understood(caveat) and caveat[0] is NOT_AFTER]
        return min(ends, default=math.inf)

    def lineage(self, key: bytes) -> list[bytes]:
        """What tells it apart, and whatever it was narrowed from, but for what has no caveats: a signature each.

        It has no caveats itself: its own, and *key* holds.
        """
        if not self.caveats:
            return [self.sig]
        sig = sign(key, canonical(self.oid))
        chain = [sig]
        chain += [sig := sign(sig, canonical(caveat)) for caveat in self.caveats]
        return chain[1:]


def claim(form: Frozen, limits: Limits = DEFAULT_LIMITS) -> UnverifiedReference:
    """What the frozen form of a reference says; raises :class:`CaveatError` if it is malformed."""
    if type(form) is not tuple or len(form) != 2 or form[0] is not REF:
        raise CaveatError("not a reference, which is <ref {oid: .. sig: ..}>")
    parameters = form[1]
    if type(parameters) is not tuple or parameters[0] is not DICT:
        raise CaveatError("a reference whose parameters are no dictionary: it is <ref {oid: .. sig: ..}>")
    said = dict(zip(parameters[1], parameters[2], strict=True))
    if OID not in said or SIG not in said or said.keys() - {OID, SIG, CAVEATS}:
        raise CaveatError("the parameters of a reference are oid, sig and, if it is narrowed, caveats")
    oid, sig, caveats = said[OID], said[SIG], said.get(CAVEATS, (SEQ,))
    if type(sig) is not bytes or len(sig) != _SIZE:
        raise CaveatError(f"the sig of a reference is {_SIZE} bytes")
    if type(caveats) is not tuple or caveats[0] is not SEQ:
        raise CaveatError("the caveats of a reference are a sequence, as in <ref {caveats: [..] oid: .. sig: ..}>")
    if len(caveats) > limits.caveats + 1:
        raise CaveatError(f"a reference with {len(caveats) - 1} caveats: at most {limits.caveats}")
    if len(caveats) > 1:
        measure(caveats[1:])
        for caveat in caveats[1:]:
            compile_caveat(caveat)
    return UnverifiedReference(oid, sig, caveats[1:])


def sign(key: bytes, data: bytes) -> bytes:
    """One link of the chain."""
    return hmac.new(key, data, hashlib.blake2s).digest()[:_SIZE]


def revocation(sig: bytes) -> str:
    """The name by which a reference is revoked, with all that it was narrowed to: it is no secret."""
    return hashlib.blake2s(sig, digest_size=8).hexdigest()


def mint(oid: Value, key: bytes) -> SturdyRef:
    """The reference to *oid*, whose key is *key*: at least 16 random bytes, unless it is to protect nothing."""
    return SturdyRef(Dictionary([(OID, oid), (SIG, sign(key, canonical(freeze(oid))))]))


def valid(ref: SturdyRef, key: bytes, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether *ref* is well-formed and was made with *key*, and after that only narrowed."""
    try:
        return claim(freeze(ref), limits).holds(key)
    except (CaveatError, NotAValue):
        return False


def parse_ref(text: str) -> SturdyRef:
    """The reference that *text* writes; raises :class:`TextError`, which does not repeat the text."""
    return _default() if text == DEFAULT else _parsed(text)


@cache
def _default() -> SturdyRef:
    """What everybody takes who names no other."""
    return _parsed(DEFAULT)


def _parsed(text: str) -> SturdyRef:
    try:
        form = freeze(parse(text))
    except TextError:
        raise TextError(f"not a capability, nor any other value: it looks like {DEFAULT}; copy all of it") from None
    try:
        claim(form)
    except CaveatError as e:
        raise TextError(
            f"not a capability: {e}. It looks like {DEFAULT}, and the server prints the one that it serves"
        ) from None
    return SturdyRef(thaw(form[1]))


def show(ref: SturdyRef) -> str:
    """The text of a reference.

    >>> show(parse_ref(DEFAULT)) == DEFAULT
    True
    """
    return unparse(ref)
