"""Values: what is asserted and sent, its identity and order, records, patterns, text, and what is absent."""

from __future__ import annotations

from syndicate.values.absent import ABSENT
from syndicate.values.pattern import ANY, Pattern, capture, match, quote, unquote
from syndicate.values.record import record
from syndicate.values.text import parse, parse_pattern, unparse, unparse_pattern
from syndicate.values.value import (
    Dictionary,
    Frozen,
    Record,
    Ref,
    Symbol,
    Value,
    ValueSet,
    freeze,
    identical,
    order,
    thaw,
)

__all__ = [
    "ABSENT",
    "ANY",
    "Dictionary",
    "Frozen",
    "Pattern",
    "Record",
    "Ref",
    "Symbol",
    "Value",
    "ValueSet",
    "capture",
    "freeze",
    "identical",
    "match",
    "order",
    "parse",
    "parse_pattern",
    "quote",
    "record",
    "thaw",
    "unparse",
    "unparse_pattern",
    "unquote",
]
