"""The gatekeeper: what a peer finds under number 0.  It gives a live reference for a valid sturdy one.

``<resolve <ref {..}> #:observer>`` asserted to it is answered at the observer, for as long as it stands, by
``<accepted #:ds>`` or ``<rejected reason>``.  An unknown name and a wrong signature get the same answer, so that nobody
can find out by trying which names there are.

Source: the published schema ``gatekeeper``; the reference, sections 4.3 and 5.9; reliability, section 7.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from relay.sturdy import OID, SturdyRef, valid
from syndicate.record import record
from syndicate.turn import Entity, Handle, current
from syndicate.values import Dictionary, Frozen, Record, Ref, Symbol, Value, freeze


@record("resolve")
class Resolve:
    """Asks for what *step* stands for; *observer* is told."""

    step: Value
    observer: Value


@record("accepted")
class Accepted:
    """The answer: *responder* is the live reference."""

    responder: Value


@record("rejected")
class Rejected:
    """The answer: no."""

    detail: Value


class Gatekeeper(Entity):
    """Resolves the names in *bindings*: by name, the key and the reference."""

    def __init__(self, bindings: Mapping[Value, tuple[bytes, Ref]]) -> None:
        self._bindings: dict[Frozen, tuple[bytes, Ref]] = {freeze(oid): bound for oid, bound in bindings.items()}
        self._answers: dict[Any, Handle] = {}

    def assert_(self, value: Value, handle: Any) -> None:
        """Answer a :class:`Resolve`; anything else is ignored."""
        if isinstance(value, Resolve) and isinstance(value.observer, Ref):
            self._answers[handle] = current("resolve").assert_(value.observer, self._resolve(value.step))

    def retract(self, handle: Any) -> None:
        """Take the answer back."""
        answer = self._answers.pop(handle, None)
        if answer is not None:
            answer.retract()

    def _resolve(self, step: Value) -> Accepted | Rejected:
        if not isinstance(step, SturdyRef):
            return Rejected(Symbol("unsupported"))
        if not isinstance(step.parameters, Dictionary) or OID not in step.parameters:
            return Rejected(Symbol("invalid"))
        # Where nothing has this name, a key that nobody knows is tried, so that it looks and lasts the same.
        key, ref = self._bindings.get(freeze(step.parameters[OID]), (secrets.token_bytes(16), None))
        if valid(step, key) and ref is not None:
            return Accepted(ref)
        return Rejected(Record("sturdyref-failed-validation"))
