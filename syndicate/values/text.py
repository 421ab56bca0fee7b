"""Text: values and patterns in the notation that people type and the console prints, which is Preserves text.

>>> unparse(parse('<Says "Alice" {mood: good, 1: [#t 1.5 #x"00ff"]}>'))
'<Says "Alice" {1: [#t 1.5 #x"00ff"] mood: good}>'

A pattern is a value with holes: ``_`` matches and ignores, ``$`` or ``$name`` captures.  ``<$name P>`` captures what
the pattern *P* matches, and so does ``<$name String>`` with the strings (or ``Boolean Double SignedInteger ByteString
Symbol Embedded Set``); ``<_ P>`` matches the same and captures nothing.  Records, sequences and dictionaries are *at
least*.  A quoted symbol is only itself: ``'_'``.

>>> parse_pattern("<Says $who _>")
Group(kind='rec', label=Symbol('Says'), entries=((0, capture()), (1, ANY)))

The reader is that of the ``preserves`` package, except where it cannot do what we need: it takes ``{1: a #t: b}`` for
a duplicate key, its depth is that of Python's stack, and any Unicode digit is a digit to it.  The writer is ours: the
package's prints the symbol ``'1.5'`` as a number, and control characters as they are, which a terminal obeys.

Source: Preserves, text syntax; ``docs/design/values.md``, "Text"; ``docs/design/skeleton.md``, "Patterns".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final

import preserves
from preserves.text import Parser

from syndicate.errors import NotAValue, PatternError, TextError
from syndicate.values.pattern import ANY, KINDS, Capture, Discard, Group, Kind, Literal, Pattern, decode, pattern_of
from syndicate.values.value import (
    BIG,
    BOOL,
    DICT,
    DOUBLE,
    MAX_DEPTH,
    SEQ,
    Dictionary,
    Frozen,
    Record,
    Ref,
    Symbol,
    Tag,
    Value,
    ValueSet,
    freeze,
    thaw,
)

_NUMBER: Final = re.compile(r"[-+]?[0-9]+((\.[0-9]+)?[eE][-+]?[0-9]+|\.[0-9]+)?")
_RAW: Final = re.compile(r"[^\s(){}\[\]<>\"';,@#:]+")
_BARE: Final = re.compile(r"[-a-zA-Z0-9~!$%^&*?_=+/.|]+")
_COMMENT: Final = re.compile(r"#(?=[ \t\r\n!]|\Z)[^\r\n]*")
_OBSERVE: Final = Symbol("Observe")
_DIGITS: Final = 4300
"""Python's own limit on the digits of an integer in text: conversion takes quadratic time."""


# ---------------------------------------------------------------------------------------------------- reading


def parse(text: str, embedded: Callable[[Value], Ref] | None = None) -> Value:
    """The value that *text* writes; raises :class:`TextError`.

    *embedded* returns the reference that ``#:x`` means; without it there can be none.

    >>> parse("[1 1.0 one]")
    (1, 1.0, Symbol('one'))
    >>> parse("[1 2")
    Traceback (most recent call last):
    syndicate.errors.TextError: the text ends too early, at line 1, column 5 of [1 2: close what is open
    """
    return thaw(freeze(_read(_Reader(text, holes=False, embedded=embedded))))


def parse_pattern(text: str, embedded: Callable[[Value], Ref] | None = None) -> Pattern:
    """The pattern that *text* writes; raises :class:`TextError`.

    >>> from syndicate.values.pattern import match
    >>> match(parse_pattern("[<$n SignedInteger> $]"), [1, "x"])
    (1, 'x')
    """
    reader = _Reader(text, holes=True, embedded=embedded)
    try:
        return pattern_of(_read(reader))
    except PatternError as e:
        raise reader.error(str(e), "") from e


class _Reader(Parser):  # type: ignore[misc]  # the package has no types
    """The package's parser, made to yield our values, or with *holes* what ``pattern_of`` accepts."""

    index: int

    def __init__(self, text: str, *, holes: bool, embedded: Callable[[Value], Ref] | None) -> None:
        super().__init__(text)
        self.holes = holes
        self.depth = 0
        self.parse_reference = embedded

    def error(self, what: str, remedy: str) -> TextError:
        """What is wrong, where, and what to do."""
        text, place = self.input_buffer, min(self.index, len(self.input_buffer))
        line, column = text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        return TextError(f"{what}, at line {line}, column {column} of {shown}" + (f": {remedy}" if remedy else ""))

    def skip_whitespace(self, skip_commas: bool = False) -> None:
        """Skip comments too, which the package reads as annotations, one level deeper each."""
        super().skip_whitespace(skip_commas)
        while comment := _COMMENT.match(self.input_buffer, self.index):
            self.index = comment.end()
            super().skip_whitespace(skip_commas)

    def next(self) -> Value:
        """One value, with the annotations and white space before it."""
        self.skip_whitespace()
        if self.depth > MAX_DEPTH:
            raise self.error(f"nested deeper than {MAX_DEPTH} levels", "flatten it")
        self.depth += 1
        c = self.peek()
        if c == "'":
            self.skip()
            value: Value = Symbol(self.read_string("'"))
        elif c in "()":
            raise preserves.DecodeError(f"{c} is reserved")
        elif self.input_buffer.startswith("#:", self.index):
            value = self.read_reference()
        else:
            value = super().next()
        self.depth -= 1
        return value

    def upto(self, delimiter: str, skip_commas: bool) -> tuple[Value, ...]:
        """The values up to *delimiter*; a bare class name in a hole is that class."""
        values: list[Value] = []
        while True:
            self.skip_whitespace(skip_commas)
            if self.peek() == delimiter:
                self.skip()
                return tuple(values)
            bare = self.peek() != "'"
            value = self.next()
            if (
                self.holes
                and bare
                and len(values) == 1
                and type(value) is Symbol
                and isinstance(values[0], (Discard, Capture))
            ):
                value = KINDS.get(value.name, value)
            values.append(value)

    def read_reference(self) -> Ref:
        """The reference that ``#:x`` means."""
        if self.parse_reference is None:
            raise self.error("a reference #:... cannot be typed", "write _ for any, or $name to capture it")
        self.index += 2
        return self.parse_reference(thaw(freeze(self.next())))

    def read_raw_symbol_or_number(self, acc: list[str]) -> Value:
        """A number of ASCII digits, a symbol or a hole."""
        self.index -= 1
        text = _RAW.match(self.input_buffer, self.index).group()  # type: ignore[union-attr]  # a character stands here
        number = _NUMBER.fullmatch(text)
        if number is None:
            self.index += len(text)
            return Symbol(text) if not self.holes else ANY if text == "_" else _hole(text)
        if number[1] is not None:
            value: float = float(text)
        elif len(text) > _DIGITS:
            raise self.error(f"an integer of more than {_DIGITS} digits", "send it as bytes")
        else:
            value = int(text)
        self.index += len(text)
        return value

    def read_set(self) -> Value:
        """A set by value identity."""
        items = self.upto("}", True)
        if self.holes:
            raise self.error("a set cannot be matched by its members", "capture it whole with $name")
        result = ValueSet(items)
        if len(result) < len(items):
            raise preserves.DecodeError("Duplicate value in set")
        return result

    def read_dictionary(self) -> Value:
        """A dictionary by value identity."""
        pairs: list[tuple[Value, Value]] = []
        while True:
            self.skip_whitespace(True)
            if self.peek() == "}":
                self.skip()
                break
            key = self.next()
            self.skip_whitespace()
            if self.nextchar() != ":":
                raise preserves.DecodeError("Missing : after a key")
            pairs.append((key, self.next()))
        result = Dictionary(pairs)
        if len(result) < len(pairs):
            raise preserves.DecodeError("Duplicate key")
        return result

    def wrap(self, v: Value) -> Value:
        """Called with each value that the package has read: its records become ours."""
        if not isinstance(v, preserves.Record):
            return v
        label, fields = v.key, v.fields
        if self.holes and (label == ANY or isinstance(label, Capture)):
            if len(fields) != 1:
                raise self.error("<$name P> and <_ P> hold one pattern", "quote the label if it is a symbol: '_'")
            return fields[0] if label == ANY else Capture(pattern_of(fields[0]), label.name)
        freeze(label)
        return Record.labelled(label, fields)


def _hole(text: str) -> Value:
    return Capture(ANY, text[1:]) if text.startswith("$") else Symbol(text)


def _read(reader: _Reader) -> Value:
    try:
        reader.skip_whitespace()
        if reader.index == len(reader.input_buffer):
            raise TextError('there is no value in the text: write one, such as <Present "alice">')
        value = reader.next()
        reader.skip_whitespace()
        if reader.index < len(reader.input_buffer):
            remedy = "put several values into one sequence: [a b]"
            if reader.input_buffer[reader.index] == "(":
                remedy = 'records are written <Present "alice">'
            raise reader.error("something follows the value", remedy)
        return value
    except TextError:
        raise
    except preserves.ShortPacket:
        raise reader.error("the text ends too early", "close what is open") from None
    except NotAValue as e:
        raise reader.error(
            "a hole stands where only a value can: in a key or a label", "capture what is around it"
        ) from e
    except (preserves.DecodeError, ValueError, RecursionError, struct.error) as e:
        raise reader.error(
            f"not Preserves text: {e}", 'strings are "quoted", records <label field>, booleans #t and #f'
        ) from e


# ---------------------------------------------------------------------------------------------------- writing


def unparse(value: Value, embedded: Callable[[Ref], str] | None = None) -> str:
    r"""The text of *value*, on one line.  :func:`parse` reads it, unless it holds references.

    *embedded* shows those; the default is like ``#:[Box "Alice"]``, the entity's class and its actor's name.

    >>> print(unparse([True, "two\nlines", Symbol("1.5"), b"\x00", float("inf"), {3, 1}]))
    [#t "two\nlines" '1.5' #x"00" #xd"7ff0000000000000" #{1 3}]
    """
    return unparse_form(freeze(value), embedded)


def unparse_form(form: Frozen, embedded: Callable[[Ref], str] | None = None) -> str:
    """As :func:`unparse`, of a frozen form."""
    kind = type(form)
    if kind is tuple:
        head = form[0]
        if head is _OBSERVE and len(form) == 3 and type(form[2]) is Ref:
            return _observe(form, embedded)
        if type(head) is not Tag:
            return "<" + " ".join([unparse_form(item, embedded) for item in form]) + ">"
        return _tagged(head, form, embedded)
    if kind is str:
        return _quoted(form, '"')
    if kind is int:
        return str(form)
    if kind is bytes:
        plain = form.isascii() and form.decode("ascii").isprintable() and not {*b'"\\'} & {*form}
        return f'#"{form.decode()}"' if plain and form else f'#x"{form.hex()}"'
    if kind is Symbol:
        return _symbol(form.name)
    return (embedded or _shown)(form)


def _tagged(head: Tag, form: Frozen, embedded: Callable[[Ref], str] | None) -> str:
    if head is BOOL:
        return f"#{form[1]}"
    if head is DOUBLE:
        number = struct.unpack(">d", form[1])[0]
        return repr(number) if number - number == 0 else f'#xd"{form[1].hex()}"'
    if head is BIG:
        return _decimal(thaw(form))
    if head is DICT:
        pairs = zip(form[1], form[2], strict=True)
        return "{" + " ".join([f"{unparse_form(k, embedded)}: {unparse_form(v, embedded)}" for k, v in pairs]) + "}"
    if head.expand is not None:
        return unparse_form(head.expand(form), embedded)
    items = " ".join([unparse_form(item, embedded) for item in form[1:]])
    return f"[{items}]" if head is SEQ else f"#{{{items}}}"


def _observe(form: Frozen, embedded: Callable[[Ref], str] | None) -> str:
    """An interest, with its pattern as one types it."""
    label, pattern, observer = form
    try:
        shown = unparse_pattern(decode(thaw(pattern)), embedded)
    except PatternError:
        shown = unparse_form(pattern, embedded)
    return f"<{label} {shown} {unparse_form(observer, embedded)}>"


def unparse_pattern(pattern: Pattern, embedded: Callable[[Ref], str] | None = None) -> str:
    """The text of a pattern, as :func:`parse_pattern` reads it.

    >>> unparse_pattern(parse_pattern("<Says $who [_ <$n SignedInteger> '_']>"))
    "<Says $ [_ <$ SignedInteger> '_']>"
    """
    match pattern:
        case Discard():
            return "_"
        case Capture(inner):
            if inner == ANY:
                return "$"
            return f"<$ {inner.name if isinstance(inner, Kind) else unparse_pattern(inner, embedded)}>"
        case Kind(name):
            return f"<_ {name}>"
        case Literal(value):
            return _literal(value, embedded)
        case Group(kind, label, entries):
            if kind == "dict":
                shown = [f"{unparse(key, embedded)}: {unparse_pattern(p, embedded)}" for key, p in entries]
                return "{" + " ".join(shown) + "}"
            places = {key: unparse_pattern(p, embedded) for key, p in entries if type(key) is int and key >= 0}
            items = [places.get(i, "_") for i in range(max(places, default=-1) + 1)]
            return f"[{' '.join(items)}]" if kind == "arr" else f"<{' '.join([_literal(label, embedded), *items])}>"
    raise PatternError("unquote() has a meaning only inside quote()")


def _literal(value: Value, embedded: Callable[[Ref], str] | None) -> str:
    if isinstance(value, Symbol) and (value.name[:1] in ("_", "$") or value.name in KINDS):
        return _quoted(value.name, "'")
    return unparse(value, embedded)


def _symbol(name: str) -> str:
    return name if _BARE.fullmatch(name) and not _NUMBER.fullmatch(name) else _quoted(name, "'")


_ESCAPES: Final = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _quoted(text: str, mark: str) -> str:
    if text.isprintable() and mark not in text and "\\" not in text:
        return f"{mark}{text}{mark}"
    return (
        mark
        + "".join([f"\\{c}" if c == mark else _ESCAPES.get(c) or (c if c.isprintable() else _escaped(c)) for c in text])
        + mark
    )


def _escaped(c: str) -> str:
    units = c.encode("utf-16-be", "surrogatepass").hex()
    return "".join([f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4)])


def _decimal(number: int) -> str:
    """The digits of an integer of any size, by halves: Python itself refuses more than 4300."""
    if number.bit_length() < 10_000:
        return str(number)
    if number < 0:
        return f"-{_decimal(-number)}"
    half = number.bit_length() * 30103 // 200_000  # digits of its square root, about
    high, low = divmod(number, 10**half)
    return _decimal(high) + _decimal(low).rjust(half, "0")


def _shown(ref: Ref) -> str:
    actor = getattr(getattr(ref.facet, "actor", None), "name", "")
    return f"#:[{_symbol(type(ref.entity).__name__)} {_quoted(actor, chr(34))}]"
