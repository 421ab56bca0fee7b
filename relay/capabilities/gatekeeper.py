"""The gatekeeper: what a peer finds under number 0.  It gives a live reference for a valid sturdy one.

``<resolve <ref {..}> #:observer>`` asserted to it is answered at the observer, for as long as it is asserted, by
``<accepted #:it>`` or ``<rejected reason>``.  What it gives out is attenuated by the caveats of the sturdy reference.

What there is to be had is in its *bind space*, an entity of its own, to which local code alone has a reference:
``<bind <ref {oid: O key: K}> #:target #:observer-or-#f>`` asserted there gives *target* the name *O* for as long as it
stands, and tells the observer ``<bound <ref {oid: O sig: S}>>``; :func:`bind` says it.

**Answers do not tell which names there are.**  The published gatekeeper waits with its answer until a name is bound,
and rejects a wrong signature at once: whoever asks can tell by that whether there is the name.  Here both are rejected
at once, alike; a rejection is what holds *now*, and is replaced by ``accepted`` if, while the question is asked,
something is bound for which the reference is valid.  So a person who has mistyped a reference learns so, a program
that came first may wait, and only who holds a valid reference ever learns that its name is bound.

**A bind that is withdrawn ends what was given out through it.**  The answer becomes ``rejected`` again, and the live
references stop: what was asserted through them is retracted, and nothing passes them any more.  This holds for the
reference that the gatekeeper gave out, however it was attenuated or handed on, and not for others that somebody got by
using it.  What is named in *bindings* is for ever, and handed out as it is.

Contract: nothing of a peer's reaches the bind space.  At most ``limits.resolves`` questions of one session stand at a
time; those beyond are ``<rejected too-many-resolves>`` for good.

Source: Syndicate schemas, ``gatekeeper``; Syndicate protocol, on the gatekeeper; ``docs/design/relay.md``, "The
gatekeeper".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final, Literal

from attrs import define

from relay.capabilities.caveats import attenuated
from relay.capabilities.passage import Passage
from relay.capabilities.sturdy import OID, REF, Claim, SturdyRef, claim, mint
from relay.protocol.limits import DEFAULT, Limits
from syndicate.actors.facet import Facet
from syndicate.actors.turn import Entity, Handle, Turn, current
from syndicate.errors import CaveatError, NotAValue
from syndicate.outside import outside
from syndicate.values.value import DICT, Assertion, Dictionary, Frozen, Record, Ref, Symbol, Value, freeze, thaw

Replies = Literal["accepted", "ok"]
"""The words of an answer: ``accepted`` and ``rejected``, as syndicate-py 0.19.3 and rs up to 0.50 know them, or ``ok``
and ``error``, as rs has them since.
"""

_WORDS: Final[dict[str, tuple[Symbol, Symbol]]] = {
    "accepted": (Symbol("accepted"), Symbol("rejected")),
    "ok": (Symbol("ok"), Symbol("error")),
}
_YES, _NO = zip(*_WORDS.values(), strict=True)
_RESOLVE: Final = Symbol("resolve")
_BIND: Final = Symbol("bind")
_KEY: Final = Symbol("key")
_FAILED: Final = (Symbol("sturdyref-failed-validation"),)
_INVALID: Final = Symbol("invalid")
_UNSUPPORTED: Final = Symbol("unsupported")
_TOO_MANY: Final = Symbol("too-many-resolves")


def resolve(ref: SturdyRef, observer: Ref) -> Record:
    """The question to a gatekeeper: what does *ref* stand for?"""
    return Record(_RESOLVE, [ref, observer])


def answered(form: Frozen) -> tuple[Ref | None, Frozen] | None:
    """What the frozen form of an answer says, in either pair of words: the live reference, or None and the reason.

    None if it is no answer.

    >>> answered((Symbol("error"), "why")), answered("yes")
    ((None, 'why'), None)
    """
    if type(form) is tuple and len(form) == 2:
        if form[0] in _YES and type(form[1]) is Ref:
            return form[1], None
        if form[0] in _NO:
            return None, form[1]
    return None


def bind(space: Ref, oid: Value, key: bytes, target: Ref, observer: Ref | None = None) -> Handle:
    """Give *target* the name *oid*, with *key* (at least 16 random bytes), for as long as the current facet lives or
    until the handle is retracted; *observer* is notified of the reference.  *space* leads to a :class:`BindSpace`.
    """
    description = Record(REF, [Dictionary([(OID, oid), (_KEY, key)])])
    return current("bind").assert_(space, Record(_BIND, [description, target, observer or False]))


@define(eq=False)
class _Bound:
    """A target with its name, and what is handed out for it."""

    oid: Frozen
    key: bytes
    ref: Ref
    refusal: Frozen | None = None


class _Revocable(Passage):
    """What stands before a target until its bind is withdrawn."""

    revoked = False

    def pass_on(self, form: Frozen) -> Frozen | None:
        return None if self.revoked else form

    def revoke(self) -> None:
        """Take back what was asserted, in a turn of the target's actor."""
        self.revoked = True
        passed, self._passed = self._passed, {}
        for handle in passed.values():
            self.target.entity.retract(handle)

    def sync(self, peer: Ref) -> None:
        if self.revoked:
            Entity.sync(self, peer)
        else:
            super().sync(peer)


class BindSpace(Entity):
    """What can be had from the gatekeepers of one actor, by name.  *bindings*, a key and a reference each, stay.

    Whoever has a reference to it may bind: it is not for peers.
    """

    raw: ClassVar[bool] = True

    def __init__(self, bindings: Mapping[Value, tuple[bytes, Ref]] | None = None) -> None:
        self._names: dict[Frozen, list[_Bound]] = {}
        self._binds: dict[Assertion, tuple[_Bound, Callable[[], None], Handle | None]] = {}
        self._waiting: dict[Frozen, dict[_Question, None]] = {}
        for name, (key, ref) in (bindings or {}).items():
            oid = freeze(name)
            self._names.setdefault(oid, []).append(_Bound(oid, key, ref))

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """Bind; what is no ``<bind ..>`` is ignored."""
        match form:
            case (label, (kind, (tag, keys, values)), Ref() as target, observer) if (
                label is _BIND and kind is REF and tag is DICT
            ):
                said = dict(zip(keys, values, strict=True))
                if said.keys() != {OID, _KEY} or type(said[_KEY]) is not bytes:
                    return
                self._bind(said[OID], said[_KEY], target, observer, handle)

    def _bind(self, oid: Frozen, key: bytes, target: Ref, observer: Frozen, handle: Assertion) -> None:
        try:
            ref = mint(thaw(oid), key)
        except NotAValue:  # a live reference in the name: nobody could ask for it
            return
        turn = current("bind")
        reply = turn.assert_(observer, Record("bound", [ref])) if type(observer) is Ref else None
        passage = _Revocable(target)
        bound = _Bound(oid, key, Ref(target.facet, passage, True))
        self._names.setdefault(oid, []).append(bound)
        self._binds[handle] = bound, passage.revoke, reply
        self._answer(turn, oid)

    def retract(self, handle: Assertion) -> None:
        """Withdraw a bind: its references end."""
        if handle not in self._binds:
            return
        bound, revoke, reply = self._binds.pop(handle)
        turn = current("bind")
        names = self._names[bound.oid]
        names.remove(bound)
        if not names:
            del self._names[bound.oid]
        if reply is not None:
            turn.retract(reply)
        self._answer(turn, bound.oid)
        bound.ref.facet.enter(revoke)

    def refuse(self, oid: Value, why: Value) -> None:
        """Hand out what has the name *oid* no more; who holds a valid reference to it is told *why*, at once or when it
        asks.  In a turn.
        """
        name = freeze(oid)
        for bound in self._names.get(name, ()):
            bound.refusal = freeze(why)
        self._answer(current("refuse"), name)

    def find(self, asked: Claim) -> _Bound | None:
        """What *asked* stands for, if it holds.  Where nothing has its name, a key that nobody knows is tried, so that
        it looks and lasts the same.
        """
        names = self._names.get(asked.oid)
        if names is None:
            asked.holds(outside().token(16))
            return None
        return next((bound for bound in names if asked.holds(bound.key)), None)

    def wait(self, question: _Question) -> None:
        """Have *question* answered again whenever something of its name is bound or withdrawn."""
        self._waiting.setdefault(question.asked.oid, {})[question] = None

    def forget(self, question: _Question) -> None:
        """It is not asked any more."""
        waiting = self._waiting[question.asked.oid]
        del waiting[question]
        if not waiting:
            del self._waiting[question.asked.oid]

    def _answer(self, turn: Turn, oid: Frozen) -> None:
        for question in self._waiting.get(oid, ()):
            question.answer(turn, self)


class _Question:
    """A question that is asked, and the answer that it has."""

    def __init__(
        self,
        facet: Facet,
        observer: Ref,
        asked: Claim,
        words: tuple[Symbol, Symbol],
        admit: Callable[[Sequence[bytes]], str],
    ) -> None:
        self.asked = asked
        self._admit = admit
        self._facet = facet
        self._observer = observer
        self._yes, self._no = words
        self._reply: Handle | None = None

    def answer(self, turn: Turn, space: BindSpace) -> None:
        """Say what holds now, if it is something else than before; the new answer comes before the old one goes."""
        bound = space.find(self.asked)
        why = _FAILED if bound is None else bound.refusal
        if bound is not None and why is None and (full := self._admit(self.asked.lineage(bound.key))):
            why = Symbol(full)
        try:
            said: Frozen = (
                (self._no, why)
                if bound is None or why is not None
                else (self._yes, attenuated(bound.ref, self.asked.caveats))
            )
        except CaveatError:  # together with those that the target has already, they are too many
            said = (self._no, _INVALID)
        old = self._reply
        if old is None or said != old.form:
            self._reply = turn.assert_form(self._facet, self._observer, said)
            if old is not None:
                turn.retract(old)

    def end(self, turn: Turn) -> None:
        """Take the answer back."""
        if self._reply is not None:
            turn.retract(self._reply)


class Gatekeeper(Entity):
    """Resolves what is in *bindings*: a :class:`BindSpace` of the same actor, or by name a key and a reference.

    *replies* are the words of its answers, *limits* those of one session.  *admit* is asked, with the facet of a
    session and the lineage of a valid reference, why it may not be given; nothing if it may.
    """

    raw: ClassVar[bool] = True
    guards: ClassVar[bool] = True
    """Who finds it under number 0 is an untrusted peer until it has given something."""

    def __init__(
        self,
        bindings: BindSpace | Mapping[Value, tuple[bytes, Ref]],
        *,
        replies: Replies = "accepted",
        limits: Limits = DEFAULT,
        admit: Callable[[Facet | None, Sequence[bytes]], str] = lambda session, lineage: "",
    ) -> None:
        self._admit = admit
        self.space = bindings if isinstance(bindings, BindSpace) else BindSpace(bindings)
        self._words = _WORDS[replies]
        self._limits = limits
        self._questions: dict[Assertion, tuple[_Question, Facet | None]] = {}
        self._refusals: dict[Assertion, Handle] = {}
        self._askers: Counter[Facet | None] = Counter()

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """Answer a ``<resolve ..>``; anything else is ignored."""
        if type(form) is not tuple or len(form) != 3 or form[0] is not _RESOLVE or type(form[2]) is not Ref:
            return
        turn, session = current("resolve"), _session(handle)
        asked = self._asked(form[1]) if self._askers[session] < self._limits.resolves else _TOO_MANY
        if type(asked) is not Claim:
            self._refusals[handle] = turn.assert_form(turn.facet, form[2], (self._words[1], asked))
            return
        question = _Question(turn.facet, form[2], asked, self._words, partial(self._admit, session))
        self._questions[handle] = question, session
        self._askers[session] += 1
        self.space.wait(question)
        question.answer(turn, self.space)

    def _asked(self, step: Frozen) -> Claim | Symbol:
        if type(step) is not tuple or len(step) != 2 or step[0] is not REF:
            return _UNSUPPORTED
        try:
            return claim(step, self._limits)
        except CaveatError:
            return _INVALID

    def retract(self, handle: Assertion) -> None:
        """Take the answer back."""
        refusal = self._refusals.pop(handle, None)
        if refusal is not None:
            current("resolve").retract(refusal)
        if handle in self._questions:
            question, session = self._questions.pop(handle)
            self._askers[session] -= 1
            if not self._askers[session]:
                del self._askers[session]
            self.space.forget(question)
            question.end(current("resolve"))


def _session(handle: Assertion) -> Facet | None:
    """Who asks: the facet whose assertion it is, which is the session's for what comes from a peer."""
    return getattr(handle, "facet", None)
