"""The grammar, compiled once, and its terminals in words, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from lark import Lark

_WORDS: Final = {
    "ARROW": "':-'",
    "END": "';'",
    "NOT": "'notin'",
    "CHOOSE": "'choose'",
    "AGGREGATE": "an aggregate such as min<X>",
    "OPERATOR": "a comparison",
    "LESSTHAN": "a comparison",
    "MORETHAN": "a comparison",
    "PLUS": "arithmetic",
    "MINUS": "arithmetic",
    "STAR": "arithmetic",
    "SLASH": "arithmetic",
    "PERCENT": "arithmetic",
    "WILD": "a variable",
    "VARIABLE": "a variable",
    "NAME": "a name in lower case",
    "FLOAT": "a number",
    "INT": "a number",
    "STRING": "text in double quotes",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "COMMA": "','",
    "COLON": "':'",
    "AT": "'@' and a time",
    "HASH": "'#' and a location",
    "_PERSIST": "'persist'",
    "_INCLUDE": "'include'",
    "_AGENT": "'agent'",
    "$END": "the end of the program",
}
_ARITHMETIC: Final = {"PLUS", "STAR", "SLASH", "PERCENT"}


@cache
def grammar() -> Lark:
    """The parser."""
    text = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", maybe_placeholders=True, propagate_positions=True)


def in_words(terminals: Iterable[str]) -> str:
    """What was expected, for a message; an operator that could follow anything is not worth telling.

    >>> in_words({"END", "COMMA", "PLUS", "STAR"})
    "',' or ';'"
    """
    phrases = set(terminals)
    if _ARITHMETIC & phrases:  # after a term
        phrases -= _ARITHMETIC | {"MINUS"}
    elif "MINUS" in phrases:  # before one
        phrases -= {"MINUS", "LPAR"}
    words = sorted({_WORDS.get(name, name) for name in phrases}, key=lambda word: (not word.startswith("'"), word))
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
