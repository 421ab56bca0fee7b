"""A capability that a client certificate stands for: ``<certificate "orders">`` in place of a reference.

It is no secret.  The server looks at who has shown which certificate in the TLS handshake, and at what its
configuration lets that one have; then it makes the reference itself, narrowed, and valid as long as the certificate is.

>>> parse_capability('<certificate "orders">')
ByCertificate(name='orders')

Source: ``docs/design/relay.md``, "Client certificates".
"""

from __future__ import annotations

from typing import Final, TypeAlias

from relay.capabilities.sturdy import SturdyRef, parse_ref
from syndicate.errors import TextError
from syndicate.values.record import record
from syndicate.values.text import parse
from syndicate.values.value import Symbol, Value, freeze, thaw

CERTIFICATE: Final = Symbol("certificate")


@record("certificate")
class ByCertificate:
    """What the configuration of a server gives to the certificate that a client shows, of the dataspace *name*."""

    name: Value


Capability: TypeAlias = "SturdyRef | ByCertificate"
"""What may be shown to a gatekeeper."""


def parse_capability(text: str) -> Capability:
    """What *text* writes; raises :class:`~syndicate.errors.TextError`, which does not repeat the text."""
    if not text.startswith("<certificate"):
        return parse_ref(text)
    form = freeze(parse(text))
    if type(form) is not tuple or len(form) != 2 or form[0] is not CERTIFICATE:
        raise TextError('by a certificate one asks for a dataspace by its name: <certificate "syndicate">')
    return ByCertificate(thaw(form[1]))
