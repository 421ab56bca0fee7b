"""Values as JSON, and back: for programs that read and write lines of it.

Strings, numbers, booleans, sequences, and dictionaries whose keys are strings are what JSON has too.  All else is an
object with one key, ``preserves``, and its text: ``{"preserves": "<Says alice>"}``.  So nothing is lost, except that a
reference is text that means nothing elsewhere.

Source: ``docs/design/commands.md``, "Values on the command line".
"""

from __future__ import annotations

import json
import math
from typing import Final

from syndicate.errors import NotAValue, TextError
from syndicate.values.text import parse, unparse
from syndicate.values.value import Dictionary, Value, freeze

_TEXT: Final = "preserves"


def to_json(value: Value) -> Value:
    """What ``json.dumps`` takes for a value.

    >>> from syndicate.values.value import Record, Symbol
    >>> to_json(("a", 1, True, {"k": Symbol("good")})), to_json(Record("Says", ["hi"]))
    (['a', 1, True, {'k': {'preserves': 'good'}}], {'preserves': '<Says "hi">'})
    """
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    if isinstance(value, (dict, Dictionary)) and all(type(key) is str for key in value) and set(value) != {_TEXT}:
        return {key: to_json(item) for key, item in value.items()}
    return {_TEXT: unparse(value)}


def from_json(written: Value) -> Value:
    """The value that ``json.loads`` read; raises :class:`~syndicate.errors.TextError`.

    >>> from_json({"preserves": "<Says hi>"}), from_json([1, 1.0, "a"])
    (Record(Symbol('Says'), [Symbol('hi')]), [1, 1.0, 'a'])
    """
    if written is None:
        raise TextError('null is no value: leave it out, or write what it stands for, as {"preserves": "absent"}')
    if isinstance(written, list):
        return [from_json(item) for item in written]
    if isinstance(written, dict):
        if set(written) == {_TEXT} and isinstance(written[_TEXT], str):
            return parse(written[_TEXT])
        return {key: from_json(item) for key, item in written.items()}
    return written


def parse_json(text: str) -> Value:
    """The value that a text in JSON writes; raises :class:`~syndicate.errors.TextError`."""
    try:
        value = from_json(json.loads(text))
        freeze(value)
    except json.JSONDecodeError as e:
        raise TextError(f"no JSON: {e.msg}, at line {e.lineno}, column {e.colno} of {text[:60]}") from None
    except (NotAValue, RecursionError) as e:
        raise TextError(f"no value: {e}") from None
    return value
