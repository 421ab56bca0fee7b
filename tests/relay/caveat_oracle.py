"""The oracle for caveats: an interpreter written from the reference alone, for models of values, without a line of
ours; and random caveats and values for it.

A model is a tagged tuple, ``("String", "a")``, ``("rec", label, (field, ...))``, so that Python's ``==`` of models is
the identity of the values.  Nothing is compiled, cached or shared: it may be slow, and must be plain.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from random import Random
from typing import Any, TypeAlias

from relay.capabilities.caveats import Attenuated
from syndicate import Dictionary, Record, Ref, Symbol, ValueSet
from syndicate.values.value import fields_of, is_record, label_of

Model: TypeAlias = tuple[Any, ...]

CLASSES = ("Boolean", "Double", "SignedInteger", "String", "ByteString", "Symbol", "Embedded")


class Malformed(Exception):
    """A caveat that the schema does not allow."""


def model(value: Any) -> Model:
    """The model of a value."""
    if isinstance(value, bool):
        return ("Boolean", value)
    if isinstance(value, float):
        return ("Double", struct.pack(">d", value))
    if isinstance(value, int):
        return ("SignedInteger", value)
    if isinstance(value, str):
        return ("String", value)
    if isinstance(value, bytes):
        return ("ByteString", value)
    if isinstance(value, Symbol):
        return ("Symbol", value.name)
    if isinstance(value, Ref):
        if isinstance(value.entity, Attenuated):
            return ("Embedded", id(value.entity.target), *[model(thawed(form)) for form, _ in value.entity.caveats])
        return ("Embedded", id(value))
    if is_record(value):
        return ("rec", model(label_of(value)), tuple([model(field) for field in fields_of(value)]))
    if isinstance(value, Mapping):
        return ("dict", frozenset([(model(k), model(v)) for k, v in value.items()]))
    if isinstance(value, AbstractSet):
        return ("set", frozenset(map(model, value)))
    return ("arr", tuple(map(model, value)))


def thawed(form: Any) -> Any:
    """The value of a frozen form."""
    from syndicate.values.value import thaw

    return thaw(form)


def run(caveats: Sequence[Model], value: Model) -> Model | None:
    """What passes the caveats, of which the last is the newest; None if nothing."""
    for caveat in reversed(caveats):
        passed = once(caveat, value)
        if passed is None:
            return None
        value = passed
    return value


def kind(form: Model) -> tuple[str, tuple[Model, ...]]:
    """The label and the fields of a record labelled with a symbol."""
    if form[0] == "rec" and form[1][0] == "Symbol":
        return form[1][1], form[2]
    return "", ()


def once(caveat: Model, value: Model) -> Model | None:
    """What one caveat makes of a value."""
    name, fields = kind(caveat)
    if name == "reject" and len(fields) == 1:
        return value if matched(fields[0], value) is None else None
    if name == "rewrite" and len(fields) == 2:
        alternatives: Sequence[Model] = [caveat]
    elif name == "or" and len(fields) == 1:
        alternatives = fields[0][1]
    else:
        return None
    for alternative in alternatives:
        pattern, template = kind(alternative)[1]
        result = matched(pattern, value)
        if result is not None:
            return filled(template, result)
    return None


def matched(pattern: Model, value: Model) -> list[Model] | None:
    """What a pattern finds in a value, in order; None if it does not match."""
    if pattern[0] == "Symbol":
        return [] if value[0] == pattern[1] else None
    name, fields = kind(pattern)
    if name == "_":
        return []
    if name == "lit":
        return [] if fields[0] == value else None
    if name == "bind":
        inner = matched(fields[0], value)
        return None if inner is None else [value, *inner]
    if name == "not":
        return [] if matched(fields[0], value) is None else None
    if name == "and":
        return every([(item, value) for item in fields[0][1]])
    if name == "rec":
        items = fields[1][1]
        if value[0] != "rec" or value[1] != fields[0] or len(value[2]) != len(items):
            return None
        return every(list(zip(items, value[2], strict=True)))
    if name == "arr":
        items = fields[0][1]
        if value[0] != "arr" or len(value[1]) != len(items):
            return None
        return every(list(zip(items, value[1], strict=True)))
    assert name == "dict"
    if value[0] != "dict":
        return None
    there = dict(value[1])
    pairs = []
    for key, item in sorted(fields[0][1], key=lambda pair: rank(pair[0])):
        if key not in there:
            return None
        pairs.append((item, there[key]))
    return every(pairs)


def every(pairs: list[tuple[Model, Model]]) -> list[Model] | None:
    """What all patterns find, one after the other."""
    results = []
    for pattern, value in pairs:
        inner = matched(pattern, value)
        if inner is None:
            return None
        results += inner
    return results


def rank(key: Model) -> tuple[int, Any]:
    """The Preserves order of the atoms that our dictionaries have as keys."""
    names = ("Boolean", "Double", "SignedInteger", "String", "ByteString", "Symbol")
    return names.index(key[0]), key[1]


def filled(template: Model, results: list[Model]) -> Model | None:
    """What a template makes of what was found."""
    name, fields = kind(template)
    if name == "ref":
        return results[fields[0][1]]
    if name == "lit":
        return fields[0]
    if name == "rec":
        items = [filled(item, results) for item in fields[1][1]]
        return None if None in items else ("rec", fields[0], tuple(items))
    if name == "arr":
        items = [filled(item, results) for item in fields[0][1]]
        return None if None in items else ("arr", tuple(items))
    if name == "dict":
        pairs = [(key, filled(item, results)) for key, item in fields[0][1]]
        return None if any(item is None for _, item in pairs) else ("dict", frozenset(pairs))
    assert name == "attenuate"
    ref = filled(fields[0], results)
    if ref is None or ref[0] != "Embedded":
        return None
    return (*ref, *fields[1][1])


# ---------------------------------------------------------------------------------------------------- well-formed?


def check(caveat: Model) -> None:
    """Raise :class:`Malformed` where it is."""
    name, fields = kind(caveat)
    if name == "rewrite":
        need(len(fields) == 2)
        check_template(fields[1], check_pattern(fields[0], True))
    elif name == "reject":
        need(len(fields) == 1)
        check_pattern(fields[0], True)
    elif name == "or":
        need(len(fields) == 1 and fields[0][0] == "arr")
        for alternative in fields[0][1]:
            need(kind(alternative)[0] == "rewrite")
            check(alternative)


def need(condition: bool) -> None:
    """Or else it is malformed."""
    if not condition:
        raise Malformed


def check_pattern(pattern: Model, may_bind: bool) -> int:
    """How many bindings a pattern has."""
    if pattern[0] == "Symbol":
        need(pattern[1] in CLASSES)
        return 0
    name, fields = kind(pattern)
    need(
        (name, len(fields))
        in {("_", 0), ("lit", 1), ("bind", 1), ("not", 1), ("and", 1), ("rec", 2), ("arr", 1), ("dict", 1)}
    )
    if name in ("_", "lit"):
        return 0
    if name == "bind":
        need(may_bind)
        return 1 + check_pattern(fields[0], may_bind)
    if name == "not":
        return check_pattern(fields[0], False)
    need(fields[-1][0] == ("dict" if name == "dict" else "arr"))
    items = [item for _, item in fields[0][1]] if name == "dict" else fields[-1][1]
    return sum(check_pattern(item, may_bind) for item in items)


def check_template(template: Model, count: int) -> None:
    """Raise where a template is malformed, or refers to what no pattern binds."""
    name, fields = kind(template)
    need((name, len(fields)) in {("ref", 1), ("lit", 1), ("rec", 2), ("arr", 1), ("dict", 1), ("attenuate", 2)})
    if name == "ref":
        need(fields[0][0] == "SignedInteger" and 0 <= fields[0][1] < count)
    elif name == "attenuate":
        check_template(fields[0], count)
        need(fields[1][0] == "arr")
        for caveat in fields[1][1]:
            check(caveat)
    elif name != "lit":
        need(fields[-1][0] == ("dict" if name == "dict" else "arr"))
        for item in [item for _, item in fields[0][1]] if name == "dict" else fields[-1][1]:
            check_template(item, count)


# ---------------------------------------------------------------------------------------------------- random ones

ATOMS = (
    0,
    1,
    -1,
    2**70,
    1.0,
    0.0,
    -0.0,
    float("nan"),
    True,
    False,
    "",
    "a",
    "1",
    b"a",
    b"",
    Symbol("a"),
    Symbol("ref"),
)
KEYS = (0, 1, True, 1.0, "a", b"a", Symbol("a"), Symbol("k"))
LABELS = (Symbol("p"), Symbol("q"), Symbol("lit"), 1, True, "p")


class Chance:
    """Random values and caveats, made so that about half of the patterns match."""

    def __init__(self, seed: int, refs: Sequence[Ref] = ()) -> None:
        self.rng = Random(seed)
        self.atoms = (*ATOMS, *refs)

    def value(self, depth: int = 3) -> Any:
        """A value."""
        rng = self.rng
        what = rng.randrange(8) if depth else 0
        if what < 3:
            return rng.choice(self.atoms)
        if what == 7:
            return ValueSet([self.value(0) for _ in range(rng.randrange(3))])
        parts = [self.value(depth - 1) for _ in range(rng.randrange(4))]
        if what < 5:
            return Record.labelled(rng.choice(LABELS), parts)
        if what == 5:
            return parts
        return Dictionary([(rng.choice(KEYS), part) for part in parts])

    def pattern(self, like: Any, binds: list[int], *, negated: bool = False) -> Any:
        """A pattern that is likely to match *like*; ``binds[0]`` counts its bindings."""
        rng = self.rng
        what = rng.randrange(20)
        if what == 0:
            return Record("_")
        if what == 1:
            return Symbol(rng.choice(CLASSES))
        if what == 2:
            return Record("lit", [self.value(1)])
        if what == 3:
            return Record("lit", [like])
        if what == 4:
            return Record("not", [self.pattern(self.value(1), binds, negated=True)])
        if what == 5:
            return Record("and", [[self.pattern(like, binds, negated=negated) for _ in range(rng.randrange(3))]])
        if what < 11 and not negated:
            binds[0] += 1
            return Record("bind", [self.pattern(like, binds)])
        if what < 13:
            return self.pattern(self.value(1), binds, negated=negated)
        return self.inside(like, binds, negated)

    def inside(self, like: Any, binds: list[int], negated: bool) -> Any:
        """A pattern that looks into *like*."""
        rng = self.rng
        if is_record(like):
            return Record("rec", [label_of(like), [self.pattern(f, binds, negated=negated) for f in fields_of(like)]])
        if isinstance(like, (list, tuple)):
            return Record("arr", [[self.pattern(item, binds, negated=negated) for item in like]])
        if isinstance(like, Dictionary):
            atoms = [key for key in like if model(key)[0] in CLASSES[:-1] and rng.randrange(3)]
            survivors = sorted(atoms, key=lambda key: rank(model(key)))
            return Record(
                "dict", [Dictionary([(key, self.pattern(like[key], binds, negated=negated)) for key in survivors])]
            )
        result = model(like)[0]
        return Symbol(result) if result in CLASSES else Record("_")

    def template(self, count: int, depth: int = 3) -> Any:
        """A template for a pattern with *count* bindings."""
        rng = self.rng
        what = rng.randrange(9) if depth else rng.randrange(6)
        if what < 5 and count:
            return Record("ref", [rng.randrange(count)])
        if what < 6:
            return Record("lit", [self.value(1)])
        parts = [self.template(count, depth - 1) for _ in range(rng.randrange(3))]
        if what == 6:
            return Record("rec", [rng.choice(LABELS), parts])
        if what == 7 and rng.randrange(2):
            return Record("arr", [parts])
        if what == 7:
            return Record("dict", [Dictionary([(rng.choice(KEYS), part) for part in parts])])
        return Record(
            "attenuate",
            [self.template(count, depth - 1), [self.caveat(self.value(1)) for _ in range(rng.randrange(2))]],
        )

    def rewrite(self, like: Any) -> Record:
        """A ``<rewrite ..>``."""
        binds = [0]
        pattern = self.pattern(like, binds)
        return Record("rewrite", [pattern, self.template(binds[0])])

    def caveat(self, like: Any) -> Any:
        """A caveat for values like *like*."""
        what = self.rng.randrange(10)
        if what < 4:
            return self.rewrite(like)
        if what < 7:
            likes = [like, self.value(2), like][: self.rng.randrange(4)]
            return Record("or", [[self.rewrite(item) for item in likes]])
        if what < 9:
            return Record("reject", [self.pattern(self.value(2) if self.rng.randrange(3) else like, [0])])
        return self.rng.choice([Record("expires", [2030]), 5, "reject", [Record("or", [[]])]])

    def spoil(self, value: Any) -> Any:
        """*value* with one part of it replaced by another."""
        rng = self.rng
        if is_record(value) and fields_of(value) and rng.randrange(4):
            fields = list(fields_of(value))
            place = rng.randrange(len(fields))
            fields[place] = self.spoil(fields[place])
            return Record.labelled(label_of(value), fields if rng.randrange(8) else fields[:-1])
        if isinstance(value, (list, tuple)) and value and rng.randrange(4):
            items = list(value)
            place = rng.randrange(len(items))
            items[place] = self.spoil(items[place])
            return items
        if isinstance(value, Dictionary) and value and rng.randrange(4):
            return Dictionary([(key, self.spoil(item)) for key, item in value.items()])
        return rng.choice(
            [
                -1,
                0,
                1,
                5,
                True,
                1.0,
                Symbol("Boolean"),
                Symbol("Set"),
                Record("_"),
                Record("ref", [0]),
                Record("bind", [Record("_")]),
                [],
            ]
        )
