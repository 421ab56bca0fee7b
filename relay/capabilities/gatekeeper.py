"""The gatekeeper: what a peer finds under number 0.  It gives a live reference for a valid sturdy one.

``<resolve <ref {..}> #:observer>`` asserted to it is answered at the observer, for as long as it is asserted, by
``<accepted #:it>`` or ``<rejected reason>``.  What it gives out is attenuated by the caveats of the sturdy reference.

What there is to be had is in its *bind space*, an entity of its own, to which local code alone has a reference:
``<bind <ref {oid: O key: K}> #:target #:observer-or-#f>`` asserted there gives *target* the name *O* for as long as it
is asserted, and notifies the observer of ``<bound <ref {oid: O sig: S}>>``; :func:`bind` says it.

**Answers do not tell which names there are.**  The published gatekeeper waits with its answer until a name is bound,
and rejects a wrong signature at once: whoever asks can tell by that whether there is the name.  Here both are rejected
at once, alike; a rejection is what holds *now*, and is replaced by ``accepted`` if, while the question is asked,
something is bound for which the reference is valid.  So a person who has mistyped a reference learns so, a program
that came first may wait, and only who holds a valid reference ever learns that its name is bound.

**A bind that is withdrawn ends what was given out through it.**  The answer becomes ``rejected`` again, and the live
references stop: what was asserted through them is retracted, and nothing passes them any more.  This holds for the
reference that the gatekeeper gave out, however it was attenuated or handed on, and not for others that somebody got by
using it.  What is named in *bindings* is for ever, and handed out as it is.

**A reference that is narrowed can end.**  By ``<not-after Seconds>`` among its caveats at that time, or when it, or one
that it was narrowed from, is revoked by its name (:meth:`BindSpace.revoke`): the answer becomes ``<rejected expired>``
or ``<rejected revoked>``, and what it gave stops, as above.

What is given for a reference without caveats is the target itself.  When that is revoked, all that it was narrowed to
ends, and who gave it ends the sessions that have shown it (:meth:`BindSpace.is_whole`).

Contract: nothing of a peer's reaches the bind space.  At most ``limits.resolves`` questions of one session stand at a
time; those beyond are ``<rejected too-many-resolves>`` for good.

Source: Syndicate schemas, ``gatekeeper``; Syndicate protocol, on the gatekeeper; ``docs/design/relay.md``, "The
gatekeeper".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final, Literal, Protocol
from weakref import WeakValueDictionary

from attrs import define, field

from relay.capabilities.caveats import attenuated
from relay.capabilities.certificate import CERTIFICATE, Capability
from relay.capabilities.forwarding import Passage
from relay.capabilities.sturdy import OID, REF, UnverifiedReference, claim, mint, revocation, sign
from relay.protocol.codec.canonical import canonical
from relay.protocol.limits import DEFAULT, Limits
from syndicate.actors.actor import Timer
from syndicate.actors.facet import Facet
from syndicate.actors.timer import after
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
_NOBODY: Final = Symbol("no-client-certificate")
_UNSUPPORTED: Final = Symbol("unsupported")
_REVOKED: Final = Symbol("revoked")
_EXPIRED: Final = Symbol("expired")
_DAY: Final = 86400.0
"""Seconds until a reference that ends later is looked at again: the time of day can be set."""

_TOO_MANY: Final = Symbol("too-many-resolves")


def resolve(ref: Capability, observer: Ref) -> Record:
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
    """A target with its name, and what is handed out for it.  *sig* is the signature of the reference without caveats,
    and *name* what that is revoked by: they are not computed again for each who asks.
    """

    oid: Frozen
    key: bytes = field(repr=False)
    ref: Ref
    sig: bytes = field(init=False, repr=False)
    name: str = field(init=False)
    refusal: Frozen | None = None

    def __attrs_post_init__(self) -> None:
        self.sig = sign(self.key, canonical(self.oid))
        self.name = revocation(self.sig)


class _Revocable(Passage):
    """What is before a target until its bind is withdrawn, or the reference to it ends, which has *names*."""

    revoked = False

    def __init__(self, target: Ref, names: Sequence[str] = ()) -> None:
        super().__init__(target)
        self.names = names

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
        self._given: WeakValueDictionary[tuple[_Bound, bytes], Ref] = WeakValueDictionary()
        self._revoked: frozenset[str] = frozenset()
        self._nobody = outside().token(16)  # a signature that nobody has
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

    def revoke(self, names: Collection[str]) -> None:
        """Let *names*, of :func:`~relay.capabilities.sturdy.revocation`, be all that are revoked; in a turn.

        What was given for them, and for what was narrowed from them, ends at once.
        """
        self._revoked = frozenset(names)
        for asked, ref in list(self._given.items()):
            if isinstance(ref.entity, _Revocable) and self.revoked(ref.entity.names):
                self.end(asked)
        turn = current("revoke")
        for questions in self._waiting.values():
            for question in questions:
                question.answer(turn, self)

    def revoked(self, names: Collection[str]) -> bool:
        """Whether one of these names is revoked."""
        return not self._revoked.isdisjoint(names)

    def is_whole(self, oid: Frozen, sig: bytes) -> bool:
        """Whether that is the signature of a reference without caveats, to what has the name *oid* now."""
        return self.find(UnverifiedReference(oid, sig, ())) is not None

    def give(self, bound: _Bound, asked: UnverifiedReference, names: Sequence[str]) -> Ref:
        """The live reference for *asked*, which holds: one that can be ended if it is narrowed."""
        if not asked.caveats:
            return bound.ref
        ref = self._given.get((bound, asked.sig))
        if ref is None:
            narrowed = attenuated(bound.ref, asked.caveats)
            ref = Ref(bound.ref.facet, _Revocable(narrowed, names), True)
            self._given[bound, asked.sig] = ref
        return ref

    def end(self, asked: tuple[_Bound, bytes]) -> None:
        """End what was given for a reference."""
        ref = self._given.pop(asked, None)
        if ref is not None and isinstance(ref.entity, _Revocable):
            ref.facet.enter(ref.entity.revoke)

    def refuse(self, oid: Value, why: Value) -> None:
        """Hand out what has the name *oid* no more; who holds a valid reference to it is sent *why*, at once or when it
        asks.  In a turn.
        """
        name = freeze(oid)
        for bound in self._names.get(name, ()):
            bound.refusal = freeze(why)
        self._answer(current("refuse"), name)

    def find(self, asked: UnverifiedReference) -> _Bound | None:
        """What *asked* stands for, if it holds.  Where nothing has its name, a signature that nobody knows is tried, so
        that it looks and lasts the same.
        """
        names = self._names.get(asked.oid)
        if names is None:
            asked.follows(self._nobody)
            return None
        return next((bound for bound in names if asked.follows(bound.sig)), None)

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


class Keeper(Protocol):
    """What a question needs of the gatekeeper that it came to."""

    admit: Callable[[Facet | None, Frozen, Sequence[bytes]], str]
    meter: Callable[[Facet | None, Ref], Ref | str]
    wrong: Callable[[Facet | None], float]


class _Question:
    """A question that is asked, and the answer that it has."""

    __slots__ = (
        "_facet",
        "_keeper",
        "_late",
        "_metered",
        "_names",
        "_no",
        "_observer",
        "_reply",
        "_session",
        "_timer",
        "_yes",
        "asked",
    )

    def __init__(
        self,
        facet: Facet,
        observer: Ref,
        asked: UnverifiedReference,
        words: tuple[Symbol, Symbol],
        keeper: Keeper,
        session: Facet | None,
    ) -> None:
        self._keeper = keeper
        self._session = session
        self._late: float | None = None
        self.asked = asked
        self._metered: tuple[Ref, Ref] | None = None
        self._names: Sequence[str] = ()
        self._timer: Timer | None = None
        self._facet = facet
        self._observer = observer
        self._yes, self._no = words
        self._reply: Handle | None = None

    def answer(self, turn: Turn, space: BindSpace) -> None:
        """Say what holds now, if it is something else than before; the new answer comes before the old one goes."""
        bound = space.find(self.asked)
        if bound is None and self._reply is None and not self._ripe():
            self._timer = self._timer or after(self._late or 0.0, partial(self._again, space))
            return
        why = _FAILED if bound is None else bound.refusal or self._refusal(turn, space, bound)
        try:
            said: Frozen = (
                (self._no, why)
                if bound is None or why is not None
                else self._granted(space.give(bound, self.asked, self._names))
            )
        except CaveatError:  # together with those that the target has already, they are too many
            said = (self._no, _INVALID)
        old = self._reply
        if old is None or said != old.form:
            self._reply = turn.assert_form(self._facet, self._observer, said)
            if old is not None:
                turn.retract(old)

    def _ripe(self) -> bool:
        """Whether it is time to say that what is asked for does not hold; it was a guess, and is counted once."""
        if self._late is None:
            self._late = self._keeper.wrong(self._session)
            return not self._late
        return self._timer is None

    def _granted(self, ref: Ref) -> Frozen:
        """The answer that gives a reference: the same one as before, if it stands for the same."""
        if self._metered is None or self._metered[0] is not ref:
            metered = self._keeper.meter(self._session, ref)
            if isinstance(metered, str):
                return self._no, Symbol(metered)
            self._metered = ref, metered
        return self._yes, self._metered[1]

    def _refusal(self, turn: Turn, space: BindSpace, bound: _Bound) -> Frozen | None:
        """Why what is asked for, which holds, is not given."""
        asked = self.asked
        lineage = asked.lineage(bound.key)
        self._names = (bound.name, *map(revocation, lineage)) if asked.caveats else (bound.name,)
        if space.revoked(self._names):
            return _REVOKED
        left = asked.end - outside().time_of_day() if asked.caveats else math.inf
        if left <= 0:
            space.end((bound, asked.sig))
            return _EXPIRED
        if self._timer is None and left < math.inf:
            self._timer = after(min(left, _DAY), partial(self._again, space))
        full = self._keeper.admit(self._session, asked.oid, lineage)
        return Symbol(full) if full else None

    def _again(self, space: BindSpace) -> None:
        self._timer = None
        self.answer(current("resolve"), space)

    def end(self, turn: Turn) -> None:
        """Take the answer back."""
        if self._timer is not None:
            self._timer.cancel()
        if self._reply is not None:
            turn.retract(self._reply)


class Gatekeeper(Entity):
    """Resolves what is in *bindings*: a :class:`BindSpace` of the same actor, or by name a key and a reference.

    *replies* are the words of its answers, *limits* those of one session.  *admit* is asked, with the facet of a
    session, a name and the lineage of a valid reference to it, why it may not be given; nothing if it may.  *meter* is
    given the same facet, a name and the reference for it, and says what is given in its place, or why nothing is.
    *wrong* is called with a question whose reference does not hold, and says after how many seconds that is answered.
    *certified* is asked with a session and a name for which reference the peer's certificate stands, or why for none.
    """

    raw: ClassVar[bool] = True
    guards: ClassVar[bool] = True
    """Who finds it under number 0 is an untrusted peer until it has given something."""
    price: ClassVar[int] = 512
    """What a question costs, in notifications: signatures are computed for it."""

    def __init__(
        self,
        bindings: BindSpace | Mapping[Value, tuple[bytes, Ref]],
        *,
        replies: Replies = "accepted",
        limits: Limits = DEFAULT,
        admit: Callable[[Facet | None, Frozen, Sequence[bytes]], str] = lambda session, oid, lineage: "",
        meter: Callable[[Facet | None, Ref], Ref | str] = lambda session, ref: ref,
        wrong: Callable[[Facet | None], float] = lambda session: 0.0,
        certified: Callable[[Facet | None, Frozen], Frozen] = lambda session, name: _NOBODY,
    ) -> None:
        self.admit = admit
        self.meter = meter
        self.wrong = wrong
        self._certified = certified
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
        asked = self._asked(session, form[1]) if self._askers[session] < self._limits.resolves else _TOO_MANY
        if type(asked) is not UnverifiedReference:
            self._refusals[handle] = turn.assert_form(turn.facet, form[2], (self._words[1], asked))
            return
        question = _Question(
            turn.facet,
            form[2],
            asked,
            self._words,
            self,
            session,
        )
        self._questions[handle] = question, session
        self._askers[session] += 1
        self.space.wait(question)
        question.answer(turn, self.space)

    def _asked(self, session: Facet | None, step: Frozen) -> UnverifiedReference | Symbol:
        if type(step) is tuple and len(step) == 2 and step[0] is CERTIFICATE:
            step = self._certified(session, step[1])
            if type(step) is Symbol:
                return step
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
