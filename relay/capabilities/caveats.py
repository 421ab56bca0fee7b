r"""Caveats: what may pass through a reference, and what it becomes on its way; with them it is *attenuated*.

A caveat takes a value and gives a value, or drops it::

    <rewrite Pattern Template>       what matches becomes what the template makes of it; all else is dropped
    <or [<rewrite ..> ...]>          the first that matches decides; all else is dropped
    <reject Pattern>                 what matches is dropped; all else passes as it is
    <not-after Seconds>              until then (seconds since 1970) all passes, and then nothing; an extension of ours,
                                     by which other programs drop everything
    anything else                    not understood, hence all is dropped

    Pattern   <_>  <lit v>  <bind p>  <and [p ..]>  <not p>  <rec label [p ..]>  <arr [p ..]>  <dict {k: p ..}>
              Boolean Double SignedInteger String ByteString Symbol Embedded
    Template  <ref n>  <lit v>  <rec label [t ..]>  <arr [t ..]>  <dict {k: t ..}>  <attenuate t [caveat ..]>

``<rec ..>`` and ``<arr ..>`` fit only what has exactly so many parts, unlike the patterns of an ``Observe``; ``<dict
..>`` is open.  ``<ref n>`` stands for what the n-th ``<bind ..>`` has found, counted from 0 in the order of the text.
Caveats are added at the right, and the newest runs first: whoever adds one can only narrow what the others let pass.

>>> from syndicate.values.value import Record, thaw
>>> dropped = written("<reject <rec speaks [<lit \"bob\"> <_>]>>")
>>> signed = written("<rewrite <rec speaks [<_> <bind String>]> <rec speaks [<lit \"alice\"> <ref 0>]>>")
>>> thaw(rewrite([dropped, signed], freeze(Record("speaks", ["bob", "hi"]))))
Record(Symbol('speaks'), ['alice', 'hi'])
>>> rewrite([signed, dropped], freeze(Record("speaks", ["bob", "hi"]))) is None
True

Contract: a caveat is checked and compiled once, to closures over frozen forms, and then applied in time proportional to
the caveat and to what it makes.  It cannot make a value deeper or larger than a packet may hold.  It sees an
``Observe`` in its published form.

Source: Syndicate schemas, ``sturdy``; Syndicate protocol, on attenuation; ``docs/design/relay.md``, "Caveats".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary, WeakValueDictionary

from relay.capabilities.forwarding import Passage, compacted, innermost
from relay.protocol.limits import DEFAULT
from syndicate.actors.arguments import expect_ref
from syndicate.actors.turn import current
from syndicate.errors import CaveatError, NotAValue
from syndicate.index.event import RETRACT
from syndicate.index.interest import INTEREST, expand
from syndicate.index.matching import is_of_class
from syndicate.outside import time_of_day
from syndicate.values.text import parse, unparse_form
from syndicate.values.value import (
    BIG,
    BOOL,
    DICT,
    DOUBLE,
    MAX_DEPTH,
    SEQ,
    SET,
    Frozen,
    Ref,
    Symbol,
    Tag,
    Value,
    freeze,
    order,
)

Rewriter: TypeAlias = "Callable[[Frozen], Frozen | None]"
"""What a caveat compiles to: None drops the value."""

Limited: TypeAlias = "tuple[Frozen, Rewriter]"
"""A caveat, and what it compiles to."""

_Found: TypeAlias = "list[Frozen]"
_Matcher: TypeAlias = Callable[[Frozen, _Found], bool]
_Maker: TypeAlias = Callable[[_Found], Frozen]

NODES: Final = 4096
"""The nested values in all caveats of one reference: they are looked at for each value that passes."""

_REWRITE: Final = Symbol("rewrite")
_OR: Final = Symbol("or")
_REJECT: Final = Symbol("reject")
NOT_AFTER: Final = Symbol("not-after")
_SIZES: Final = {_REWRITE: 3, _OR: 2, _REJECT: 2, NOT_AFTER: 2}
_CLASSES: Final = ("Boolean", "Double", "SignedInteger", "String", "ByteString", "Symbol", "Embedded")
_ATOMS: Final = (BOOL, DOUBLE, BIG)
_PARTS: Final = frozenset({str, int, bytes, Symbol, Ref})
_PLAIN: Final = frozenset({str, int, bytes, Symbol, Tag})

# ---------------------------------------------------------------------------------------------------- what is written


def written(caveat: Value | str) -> Frozen:
    """The frozen form of a caveat that is given as text or as a value; raises :class:`CaveatError` and
    :class:`~syndicate.errors.TextError`.

    What is not understood is refused here: whoever writes a caveat wants another one.
    """
    form = _read(caveat) if isinstance(caveat, str) else freeze(caveat)
    if not is_understood(form):
        raise CaveatError(
            f"not a caveat: {unparse_form(form)}. It is <rewrite Pattern Template>, <or [<rewrite ..> ..]>, "
            "<reject Pattern> or <not-after Seconds>"
        )
    compile_caveat(form)
    return form


@lru_cache(64)
def _read(text: str) -> Frozen:
    """Programs write few caveats, and each broker the same ones."""
    return freeze(parse(text))


def is_understood(form: Frozen) -> bool:
    """Whether *form* is of one of the kinds that are not simply dropping everything."""
    return type(form) is tuple and type(form[0]) is Symbol and _SIZES.get(form[0]) == len(form)


def measure(forms: Iterable[Frozen]) -> int:
    """The nested values in caveats; raises :class:`CaveatError` if they are no values, too many or too deep."""
    level, depth, nodes = [*forms], 0, 0
    while level:
        nodes += len(level)
        depth += 1
        if nodes > NODES or depth > MAX_DEPTH + 2:  # two more than one counts: the atoms in it, and the caveat itself
            raise CaveatError(f"caveats with more than {NODES} nested values, or nested deeper than {MAX_DEPTH} levels")
        for item in level:
            if type(item) is not tuple and type(item) not in _PARTS:
                raise CaveatError("a caveat is a value, and holds no references of a peer")
        level = [part for item in level if type(item) is tuple for part in _parts(item)]
    return nodes


def _parts(form: Frozen) -> Sequence[Frozen]:
    head = form[0]
    if head in _ATOMS:
        return ()
    if head is DICT:
        return (*form[1], *form[2])
    parts: Sequence[Frozen] = form[1:] if type(head) is Tag else form
    return parts


# ---------------------------------------------------------------------------------------------------- compiling


def compile_caveat(form: Frozen) -> Rewriter:
    """The function that a caveat is; raises :class:`CaveatError` where it is malformed, and so are the caveats in it.

    >>> compile_caveat(freeze(parse("<expires 2030>")))("a value") is None
    True
    >>> compile_caveat(freeze(parse("<rewrite <_> <ref 0>>")))
    Traceback (most recent call last):
    syndicate.errors.CaveatError: <ref 0> in a template with 0 bindings: a pattern's <bind ..> are counted from 0
    """
    measure([form])
    return _caveat(form)


def _caveat(form: Frozen) -> Rewriter:
    head = form[0] if type(form) is tuple else None
    if type(head) is not Symbol or head not in _SIZES:
        return _drop
    if len(form) != _SIZES[head]:
        raise CaveatError(f"<{head} ..> of {len(form) - 1} fields: it has {_SIZES[head] - 1}")
    if head is NOT_AFTER:
        end = form[1]
        if type(end) is not int or end < 0:
            raise CaveatError(f"<not-after {unparse_form(end)}>: it is a whole number of seconds since 1970")
        return lambda value: value if time_of_day() < end else None
    if head is _REJECT:
        rejected = _pattern(form[1], _Scope())
        return lambda value: None if rejected(value, []) else value
    if head is _REWRITE:
        return _first([_alternative(form)])
    return _first([_alternative(item) for item in _sequence(form[1], "or")])


def _drop(value: Frozen) -> None:
    return None


def _alternative(form: Frozen) -> tuple[_Matcher, _Maker]:
    if type(form) is not tuple or form[0] is not _REWRITE or len(form) != 3:
        raise CaveatError("the alternatives of an <or [..]> are <rewrite Pattern Template>")
    scope = _Scope()
    matcher = _pattern(form[1], scope)
    maker = _template(form[2], scope.count)
    return matcher, maker if type(form[2]) is tuple and form[2][0] in _SIMPLE else _bounded(maker)


def _first(alternatives: list[tuple[_Matcher, _Maker]]) -> Rewriter:
    def apply(value: Frozen) -> Frozen | None:
        for matches, make in alternatives:
            captures: _Found = []
            if matches(value, captures):
                return make(captures)
        return None

    return apply


def _bounded(make: _Maker) -> _Maker:
    """Of what compounds were found, much larger ones can be made, and larger still by the next caveat."""

    def bounded(captures: _Found) -> Frozen:
        rewritten = make(captures)
        return rewritten if tuple not in map(type, captures) or _fits(rewritten) else None

    return bounded


def _fits(form: Frozen) -> bool:
    level, depth, nodes = [form], 0, 0
    while level:
        depth += 1
        level = [item for item in level if type(item) is tuple]
        nodes += sum([2 * len(item[1]) if item[0] is DICT else len(item) for item in level])
        if depth > MAX_DEPTH or nodes > DEFAULT.nodes:  # before the next level is written down, which may be huge
            return False
        level = [part for item in level for part in _parts(item)]
    return True


class _Scope:
    """How many bindings a pattern has so far, and whether there may be more."""

    def __init__(self) -> None:
        self.count = 0
        self.negated = False


def _sequence(form: Frozen, what: str) -> Sequence[Frozen]:
    if type(form) is tuple and form[0] is SEQ:
        return form[1:]
    raise CaveatError(f"<{what} ..> holds a sequence, as in <{what} [..]>, and not {unparse_form(form)}")


def _dictionary(form: Frozen) -> Iterable[tuple[Frozen, Frozen]]:
    if type(form) is tuple and form[0] is DICT:
        return zip(form[1], form[2], strict=True)
    raise CaveatError(f"<dict ..> holds a dictionary, as in <dict {{key: ..}}>, and not {unparse_form(form)}")


def _shape(form: Frozen) -> tuple[str, int]:
    """The name and the number of fields of a record."""
    if type(form) is tuple and type(form[0]) is Symbol:
        return form[0].name, len(form) - 1
    return "", 0


# ---------------------------------------------------------------------------------------------------- patterns


def _pattern(form: Frozen, scope: _Scope) -> _Matcher:
    if type(form) is Symbol and form.name in _CLASSES:
        name = form.name
        return lambda value, captures: is_of_class(value, name)
    match _shape(form):
        case ("_", 0):
            return _anything
        case ("lit", 1):
            literal = form[1]
            return lambda value, captures: bool(value == literal)
        case ("bind", 1):
            return _bind(form[1], scope)
        case ("not", 1):
            return _not(form[1], scope)
        case ("and", 1):
            return _and([_pattern(item, scope) for item in _sequence(form[1], "and")])
        case ("rec", 2):
            return _compound(form[1], _sequence(form[2], f"rec {unparse_form(form[1])}"), scope)
        case ("arr", 1):
            return _compound(SEQ, _sequence(form[1], "arr"), scope)
        case ("dict", 1):
            return _entries([(key, _pattern(item, scope)) for key, item in _dictionary(form[1])])
    raise CaveatError(
        f"not a pattern of a caveat: {unparse_form(form)}. There are <_>, <lit v>, <bind p>, <and [p ..]>, <not p>, "
        f"<rec label [p ..]>, <arr [p ..]>, <dict {{k: p}}> and {', '.join(_CLASSES)}"
    )


def _anything(value: Frozen, captures: _Found) -> bool:
    return True


def _bind(form: Frozen, scope: _Scope) -> _Matcher:
    if scope.negated:
        raise CaveatError("<bind ..> inside <not ..>, which finds nothing that one could refer to: leave it out there")
    scope.count += 1
    inner = _pattern(form, scope)

    def matches(value: Frozen, captures: _Found) -> bool:
        captures.append(value)  # before what is found inside it
        return inner(value, captures)

    return matches


def _not(form: Frozen, scope: _Scope) -> _Matcher:
    outer, scope.negated = scope.negated, True
    inner = _pattern(form, scope)
    scope.negated = outer
    return lambda value, captures: not inner(value, captures)


def _and(inner: list[_Matcher]) -> _Matcher:
    def matches(value: Frozen, captures: _Found) -> bool:
        for item in inner:  # noqa: SIM110  # a generator would cost as much again
            if not item(value, captures):
                return False
        return True

    return matches


def _compound(head: Frozen, items: Sequence[Frozen], scope: _Scope) -> _Matcher:
    size = len(items) + 1
    places = [(place, item) for place, form in enumerate(items, 1) if (item := _pattern(form, scope)) is not _anything]

    def matches(value: Frozen, captures: _Found) -> bool:
        if type(value) is not tuple or len(value) != size or value[0] != head:
            return False
        for place, item in places:  # noqa: SIM110  # likewise
            if not item(value[place], captures):
                return False
        return True

    return matches


def _entries(entries: list[tuple[Frozen, _Matcher]]) -> _Matcher:
    def matches(value: Frozen, captures: _Found) -> bool:
        if type(value) is not tuple or value[0] is not DICT:
            return False
        _, keys, values = value
        for key, item in entries:  # noqa: SIM110  # likewise
            if key not in keys or not item(values[keys.index(key)], captures):
                return False
        return True

    return matches


# ---------------------------------------------------------------------------------------------------- templates

_SIMPLE: Final = frozenset({Symbol("ref"), Symbol("lit")})
"""The templates that make nothing larger than what there is."""


def _template(form: Frozen, count: int) -> _Maker:
    match _shape(form):
        case ("ref", 1):
            n = form[1]
            if type(n) is not int or not 0 <= n < count:
                raise CaveatError(
                    f"<ref {unparse_form(n)}> in a template with {count} bindings: a pattern's <bind ..> are counted "
                    "from 0"
                )
            return lambda captures: captures[n]
        case ("lit", 1):
            literal = form[1]
            return lambda captures: literal
        case ("rec", 2):
            return _maker_of((form[1],), [_template(item, count) for item in _sequence(form[2], "rec")])
        case ("arr", 1):
            return _maker_of((SEQ,), [_template(item, count) for item in _sequence(form[1], "arr")])
        case ("dict", 1):
            entries = [(key, _template(item, count)) for key, item in _dictionary(form[1])]
            keys = tuple([key for key, _ in entries])
            make = _maker_of((), [item for _, item in entries])
            return lambda captures: None if (values := make(captures)) is None else (DICT, keys, values)
        case ("attenuate", 2):
            return _attenuating(_template(form[1], count), tuple(_sequence(form[2], "attenuate t")))
    raise CaveatError(
        f"not a template of a caveat: {unparse_form(form)}. There are <ref n>, <lit v>, <rec label [t ..]>, "
        "<arr [t ..]>, <dict {k: t}> and <attenuate t [caveat ..]>"
    )


_COMPOUND: Final = 80
_PLACE: Final = 8
_REFERENCE: Final = 512
"""The bytes of what templates make: of a compound, of each place in it, and of a reference that is narrowed."""


def _maker_of(head: tuple[Frozen, ...], parts: list[_Maker]) -> _Maker:
    def make(captures: _Found) -> Frozen:
        form = (*head, *[part(captures) for part in parts])
        return None if None in form else form

    return make


def _growth(form: Frozen) -> tuple[int, int]:
    """The bytes that a caveat makes of a value, at most, and how often the value can be in what it makes."""
    if type(form) is not tuple:
        return 0, 1
    if form[0] is _OR:
        growth, copies = zip((0, 0), *map(_growth, form[1][1:]), strict=True)
        return max(growth), max(copies)
    return _made_by(form[2]) if form[0] is _REWRITE else (0, 1)


def _made_by(form: Frozen) -> tuple[int, int]:
    """The same of a template: what was found, and what is written there, is not made again, and counts once."""
    name = _shape(form)[0]
    if name in ("ref", "lit"):
        return 0, int(name == "ref")
    if name == "attenuate":
        growth, copies = _made_by(form[1])
        return growth + _REFERENCE, copies
    items = form[1][2] if name == "dict" else form[-1][1:]
    parts = [_made_by(item) for item in items]
    size = _COMPOUND * (1 + (name == "dict")) + _PLACE * len(items)
    return size + sum([growth for growth, _ in parts]), sum([copies for _, copies in parts])


def _attenuating(make: _Maker, forms: tuple[Frozen, ...]) -> _Maker:
    rewriters = [*map(_caveat, forms)]

    def attenuating(captures: _Found) -> Frozen:
        ref = make(captures)
        try:
            return attenuated(ref, forms, rewriters) if type(ref) is Ref else None
        except CaveatError:  # it has too many by now
            return None

    return attenuating


# ---------------------------------------------------------------------------------------------------- references


def rewrite(caveats: Sequence[Frozen], form: Frozen) -> Frozen | None:
    """What *caveats*, the newest last, let pass of *form*; None if nothing."""
    return _rewritten([compile_caveat(caveat) for caveat in caveats], form)


def _rewritten(caveats: Sequence[Rewriter], form: Frozen) -> Frozen | None:
    compact = type(form) is tuple and form[0] is INTEREST
    before = after = expand(form) if compact else form
    for caveat in reversed(caveats):
        after = caveat(after)
        if after is None:
            return None
    if after is before or (compact and after == before):
        return form
    try:
        return compacted(after)
    except NotAValue:
        return None


class Attenuated(Passage):
    """What lets through what *caveats* let pass: pairs of form and function, the newest last."""

    def __init__(self, target: Ref, caveats: tuple[Limited, ...]) -> None:
        super().__init__(target)
        self.caveats = caveats
        self._rewriters = [rewriter for _, rewriter in caveats]
        self._foreseen: dict[int, tuple[Frozen, Frozen | None]] = {}  # by the identity of the form
        self._timeless = all(form[0] is not NOT_AFTER for form, _ in caveats if type(form) is tuple)
        self.effort = measure([form for form, _ in caveats])
        self.growth, copies = 0, 1
        for form, _ in reversed(caveats):
            growth, times = _growth(form)
            self.growth += growth
            copies *= max(1, times)
            self.walks += copies

    def foresee(self, kind: int, form: Frozen) -> tuple[int, Frozen | None]:
        """What the caveats will make of it, for as long as time does not count: that is made once, and kept until the
        event comes.
        """
        if not self._timeless or kind == RETRACT:
            return kind, self._made_of(form)
        foreseen = self._foreseen.get(id(form))
        if foreseen is None:
            if len(self._foreseen) >= DEFAULT.events:
                self._foreseen.clear()  # the rest is made again
            foreseen = self._foreseen[id(form)] = form, self._made_of(form)
        return kind, foreseen[1]

    def forgo(self, form: Frozen) -> Frozen | None:
        """It does not come: nothing is kept of it."""
        foreseen = self._foreseen.pop(id(form), None)
        return None if foreseen is None else foreseen[1]

    def pass_on(self, form: Frozen) -> Frozen | None:
        """What the caveats make of it; an observer hears through them, too."""
        foreseen = self._foreseen.pop(id(form), None)
        return self._made_of(form) if foreseen is None else foreseen[1]

    def _made_of(self, form: Frozen) -> Frozen | None:
        passed = _rewritten(self._rewriters, form)
        if type(passed) is tuple and passed[0] is INTEREST:
            return (*passed[:3], _confined(passed[3], self.caveats))
        return passed


_copies: Final[dict[tuple[int, object, tuple[Frozen, ...]], tuple[Frozen, Frozen]]] = {}
"""What was copied in this turn, and the copies, by identity, whose copy it is, and the caveats."""

_forget: Final = _copies.clear
"""What a turn does afterwards that has copied something: once, unless something else came to be done between."""


class Confined(Passage):
    """What is before an observer whose interest came through *caveats*: they hold for each reference that it hears
    of.

    Otherwise a reference that only observes would give its holder those of all who observe beside it.  What lives where
    the observer does, as all references of one peer do, is its own, and comes home as it is.
    """

    def __init__(self, target: Ref, caveats: tuple[Limited, ...]) -> None:
        super().__init__(target)
        self.caveats = caveats
        self._forms = tuple([form for form, _ in caveats])
        self._rewriters = [rewriter for _, rewriter in caveats]

    def pass_on(self, form: Frozen) -> Frozen:
        """The same, with references that are narrowed."""
        if type(form) is Ref:
            return self._narrowed(form)
        if type(form) is not tuple or _PLAIN.issuperset(map(type, form)):
            return form
        if form[0] is INTEREST:
            form = expand(form)
        items = [self._copied(item) if type(item) is tuple else self.pass_on(item) for item in form]
        if items[0] is SET:
            return (SET, *sorted({*items[1:]}, key=order))
        if items[0] is DICT:
            pairs = sorted(zip(items[1], items[2], strict=True), key=lambda pair: order(pair[0]))
            return (DICT, tuple([key for key, _ in pairs]), tuple([value for _, value in pairs]))
        return tuple(items)

    def _copied(self, form: Frozen) -> Frozen:
        """A part of what it hears, copied once in a turn for all observers of a peer: they may be thousands."""
        if _PLAIN.issuperset(map(type, form)):
            return form
        key = id(form), self.target.facet, self._forms
        entry = _copies.get(key)
        if entry is not None:
            return entry[1]
        afterwards = current("hear").afterwards
        if not afterwards or afterwards[-1] is not _forget:
            afterwards.append(_forget)
        copy = self.pass_on(form)
        _copies[key] = form, copy
        return copy

    def _narrowed(self, ref: Ref) -> Ref:
        entity = ref.entity
        if ref.facet is self.target.facet:
            return entity.target if type(entity) is Confined else ref
        had = [form for form, _ in entity.caveats] if type(entity) is Attenuated else []
        if tuple(had[-len(self._forms) :]) == self._forms:
            return ref
        try:
            return attenuated(ref, self._forms, self._rewriters)
        except CaveatError:  # it would have too many: nothing passes
            return attenuated(innermost(ref), [_NOTHING])


class _Made:
    """What was made of references with caveats: the same of the same, for as long as somebody has it.

    Neither what was made nor that it is here keeps a reference alive: else a system that has ended would never go.
    """

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[Ref, WeakValueDictionary[tuple[Frozen, ...], Ref]] = WeakKeyDictionary()

    def get(self, ref: Ref, forms: tuple[Frozen, ...]) -> Ref | None:
        """What was made of *ref* with these caveats, if that is still there."""
        results = self._of.get(ref)
        return None if results is None else results.get(forms)

    def put(self, ref: Ref, forms: tuple[Frozen, ...], result: Ref) -> Ref:
        """Note that *result* is it."""
        self._of.setdefault(ref, WeakValueDictionary())[forms] = result
        return result


_narrowed: Final = _Made()
_hearing: Final = _Made()

_NOTHING: Final = (_REJECT, (Symbol("_"),))


def _confined(observer: Ref, caveats: tuple[Limited, ...]) -> Ref:
    """*observer*, where it hears through *caveats*."""
    forms = tuple([form for form, _ in caveats])
    entity = observer.entity
    if type(entity) is Confined and tuple([form for form, _ in entity.caveats]) == forms:
        return observer
    hearing = _hearing.get(observer, forms)
    if hearing is None:
        hearing = _hearing.put(observer, forms, Ref(observer.facet, Confined(observer, caveats), True))
    return hearing


def attenuated(ref: Ref, caveats: Iterable[Frozen], rewriters: Sequence[Rewriter] | None = None) -> Ref:
    """*ref* with further caveats, in frozen form; raises :class:`CaveatError` where they are malformed or too many.

    *rewriters* are what the caveats compile to, where that was done already.
    """
    added, inner = tuple(caveats), ref.entity
    target, had = (inner.target, inner.caveats) if type(inner) is Attenuated else (ref, ())
    forms = (*[form for form, _ in had], *added)
    if not forms:
        return ref
    narrowed = _narrowed.get(target, forms)
    if narrowed is None:
        if len(forms) > DEFAULT.caveats:
            raise CaveatError(f"a reference with {len(forms)} caveats: at most {DEFAULT.caveats}")
        measure(forms)
        compiled = zip(added, rewriters or map(_caveat, added), strict=True)
        narrowed = _narrowed.put(target, forms, Ref(target.facet, Attenuated(target, (*had, *compiled)), True))
    return narrowed


def attenuate(ref: Ref, *caveats: Value | str) -> Ref:
    """A reference to the same, through which only what *caveats* let pass gets: give it to whom you trust less.

    Each caveat is text, or a value of the published schema; the language is described in
    :mod:`relay.capabilities.caveats`.  The
    same reference with the same caveats is the same reference.  What a caveat drops is dropped in silence, and so is
    its retraction; ``sync`` passes.

    Raises :class:`~syndicate.errors.CaveatError` and :class:`~syndicate.errors.TextError`.

    >>> from syndicate import Record, capture, dataspace, send
    >>> from syndicate.testing import settled, watch
    >>> heard = []
    >>> def boot():
    ...     ds = dataspace()
    ...     heard.append(watch(ds, Record("Says", [capture(), capture()])))
    ...     alice = attenuate(ds, '<rewrite <rec Says [<_> <bind String>]> <rec Says [<lit "alice"> <ref 0>]>>')
    ...     send(alice, Record("Says", ["bob", "hello"]))
    ...     send(alice, "nonsense")
    >>> _ = settled(boot)
    >>> heard
    [[('!', 'alice', 'hello')]]
    """
    return attenuated(expect_ref("attenuate", ref), [written(caveat) for caveat in caveats])
