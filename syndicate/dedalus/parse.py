r"""Text to statements.

>>> print(*parse('p("a")@1; // a fact\np(X)@next :- p(X), notin q(X, _).'), sep="\n")
p("a")@1;
p(X)@next :- p(X), notin q(X, _);
>>> parse("p(X) :- q(X)")
Traceback (most recent call last):
    ...
syndicate.errors.DedalusSyntax: program:1:13: the text ends here; expected ',', ';' or '@' and a time

Comments are ``//``, ``/* */``, ``#`` outside parentheses, and ``%`` where there is no operand before it.  A word in
lower case where a value is expected is a string: ``p(a)`` is ``p("a")``.

The grammar, compiled once, and its terminals in words, for messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from syndicate.dedalus.ast import (
    AGGREGATES,
    WILD,
    Agent,
    Aggregate,
    Arithmetic,
    Atom,
    Choice,
    Comparison,
    Constant,
    Goal,
    Include,
    Kind,
    Persist,
    Position,
    Rule,
    Statement,
    Term,
    Variable,
    When,
)
from syndicate.dedalus.library import LIBRARY, STANDARD, names
from syndicate.errors import DedalusSyntax
from syndicate.plan.algebra import meant

# --------------------------------------------------------- the grammar, compiled once, and its terminals in words, for


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


# --------------------------------------------------------------------------------------------------- text to statements


DEEPEST_TERM: Final = 200
"""How deeply parentheses and minus signs may be nested in a term."""

_KINDS: Final = ("next", "async", "later")
_SAME: Final = {"=": "==", "=/=": "!=", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}
_PIECES: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|/\*|[#%]|[()]|[^\W]+|\s+|.', re.DOTALL)
_REMEDIES: Final = (
    (
        re.compile(r"\bpersist\s*\[\s*(\w*)[\s\w,]*$"),
        "; the number of columns comes last: persist[{0}, 2], or persist[{0}, del_{0}, 2]",
    ),
    (re.compile(r"\b(count|min|max|sum|avg)\s*$"), "; an aggregate is written {}<X>, and stands in the head of a rule"),
    (
        re.compile(r"\b(count|min|max|sum|avg)\s*<[\s\w,]*$"),
        "; an aggregate is of variables, {}<X>: compute what it is of in a rule before",
    ),
)
"""What is before the place that does not fit, and what would."""
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r"}


def parse(text: str, file: str = "") -> list[Statement]:
    """The statements of a program; raises :class:`DedalusSyntax`."""
    bare = _blanked(text, file)
    try:
        tree = grammar().parse(bare)
    except UnexpectedInput as error:
        raise _wrong(error, bare, file) from None
    reader = _Reader(file)
    return [reader.statement(node) for node in cast("list[Tree[Token]]", tree.children)]


def load(path: str | Path) -> list[Statement]:
    """The statements of a file, with those of the files that it includes in place of its includes, each once.

    An include is relative to the file that has it.  What begins with ``std/`` and is no file there is of the
    library: see :mod:`syndicate.dedalus.library`.

    Raises :class:`DedalusSyntax`, also for a file that cannot be read.
    """
    return _load(Path(path), set(), None)


def with_library(statements: Iterable[Statement]) -> list[Statement]:
    """Statements with those of the library in place of its includes, each once; raises :class:`DedalusSyntax`.

    An include of a file stays.
    """
    result: list[Statement] = []
    seen: set[Path] = set()
    for statement in statements:
        if isinstance(statement, Include) and statement.path.startswith(STANDARD):
            result += _load(_standard(statement), seen, statement)
        else:
            result.append(statement)
    return result


def _standard(include: Include) -> Path:
    name = include.path.removeprefix(STANDARD).removesuffix(".ded")
    if name not in names():
        files = ", ".join(f"{STANDARD}{one}" for one in names())
        message = f"{include.place}: the library has no {include.path}; it has {files}"
        raise DedalusSyntax(message, include.place.line, include.place.column)
    return LIBRARY / f"{name}.ded"


def _load(path: Path, seen: set[Path], by: Include | None) -> list[Statement]:
    where = f"{by.place}: " if by is not None else ""
    try:
        real = path.resolve(strict=True)
        if real in seen:
            return []
        seen.add(real)
        text = real.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        place = by.place if by is not None else Position()
        raise DedalusSyntax(f"{where}cannot read {path}: {why}", place.line, place.column) from None
    result: list[Statement] = []
    for statement in parse(text, str(path)):
        if isinstance(statement, Include):
            relative = path.parent / statement.path
            library = statement.path.startswith(STANDARD) and not relative.exists()
            result += _load(_standard(statement) if library else relative, seen, statement)
        else:
            result.append(statement)
    return result


def _blanked(text: str, file: str) -> str:
    """The text with blanks for comments, so that every place stays what it was."""
    pieces, depth, before, fresh = [], 0, "", True
    at = 0
    while at < len(text):
        match = _PIECES.match(text, at)
        assert match is not None  # the last alternative takes anything
        piece = match.group()
        if piece == "/*":
            line, column = _place(text, at)
            message = f"{file or 'program'}:{line}:{column}: this comment has no end; expected '*/'"
            raise DedalusSyntax(message, line, column)
        operand = before[-1:].isalnum() or before[-1:] in ("_", ")", '"')
        if (piece == "#" and depth == 0) or (piece == "%" and (fresh or not operand)):
            end = text.find("\n", at)
            piece = text[at : end if end >= 0 else len(text)]
            pieces.append(" " * len(piece))
        elif piece.startswith(("//", "/*")):
            pieces.append(re.sub(r"[^\n]", " ", piece))
        else:
            depth = max(0, depth + (piece == "(") - (piece == ")"))
            pieces.append(piece)
            if not piece.isspace():
                before, fresh = piece, False
                depth = 0 if piece == ";" else depth
            elif "\n" in piece:
                fresh = True
        at += len(piece)
    return "".join(pieces)


def _place(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _wrong(error: UnexpectedInput, text: str, file: str) -> DedalusSyntax:
    match error:
        case UnexpectedCharacters():
            line, column, expected = error.line, error.column, set(error.allowed or ())
            at = cast("int", error.pos_in_stream)
            char = text[at : at + 1]
            what = "this text has no end on its line" if char == '"' else f"{char!r} does not fit here"
        case UnexpectedToken() if error.token.type != "$END":
            line, column, expected = error.line, error.column, set(error.accepts or error.expected)
            at = cast("int", error.pos_in_stream)
            what = f"{str(error.token)!r} does not fit here"
        case UnexpectedToken() | UnexpectedEOF():
            at = len(text.rstrip())
            line, column = _place(text, at)
            expected = set(getattr(error, "accepts", None) or error.expected)
            what = "the text ends here"
        case _:
            line, column, expected, what = error.line, error.column, set(), "this does not fit here"
            at = 0
    hint = f"; expected {in_words(expected)}" if expected and "no end" not in what else ""
    if isinstance(error, UnexpectedToken) and error.token.type == "AGGREGATE":
        hint = "; an aggregate may stand only in the head of a rule"
    for before, remedy in _REMEDIES:
        match = before.search(text, 0, at)
        if match:
            hint = remedy.format(match[1] or "p")
            break
    else:
        word = re.search(r"\b([a-z]\w*)\s*$", text[:at])
        if word and text.startswith("<", at) and ":-" not in text[text.rfind(";", 0, at) + 1 : at]:
            hint = f"; {word[1]} is no aggregate{meant(word[1], AGGREGATES)}; there are {', '.join(AGGREGATES)}"
    return DedalusSyntax(f"{file or 'program'}:{line}:{column}: {what}{hint}", line, column)


Node: TypeAlias = Tree[Token] | Token
Nodes: TypeAlias = list[Any]  # lark does not say which children of which rule are trees, tokens or None


class _Reader:
    """From lark's trees to ours."""

    def __init__(self, file: str) -> None:
        self.file = file

    def place(self, node: Node) -> Position:
        if isinstance(node, Token):
            return Position(node.line or 0, node.column or 0, self.file)
        return Position(node.meta.line, node.meta.column, self.file)

    def wrong(self, node: Node, text: str) -> DedalusSyntax:
        place = self.place(node)
        return DedalusSyntax(f"{place}: {text}", place.line, place.column)

    def statement(self, node: Tree[Token]) -> Statement:
        words = [child for child in node.children if isinstance(child, Token) and child.type != "END"]
        place = self.place(node)
        match node.data:
            case "persist":
                relation, *deleting = map(str, words[:-1])
                return Persist(relation, int(words[-1]), deleting[0] if deleting else "", place=place)
            case "include":
                return Include(self.text(words[0]), place=place)
            case "agent":
                return Agent(str(words[0]), tuple(map(str, words[1:])), place=place)
        head, *body = [child for child in node.children if isinstance(child, Tree)]
        return self.rule(head, tuple(map(self.goal, body)))

    def rule(self, node: Tree[Token], body: tuple[Goal, ...]) -> Rule:
        children: Nodes = node.children
        name, *columns, time = children
        relation = str(name.children[0])
        terms, located = self.columns([column for column in columns if column is not None])
        kind: Kind = "deductive"
        when: When = None
        if time is not None:
            word = self.word(time)
            if word in _KINDS:
                kind = cast("Kind", word)
            elif isinstance(word, str):
                raise self.wrong(time, f"'@{word}' is no time: @next, @async, @later, or for a fact @5")
            else:
                when = word
        return Rule(Atom(relation, terms, when, located=located, place=self.place(node)), kind, body)

    def columns(self, nodes: Nodes) -> tuple[tuple[Term | Aggregate, ...], bool]:
        located = False
        terms: list[Term | Aggregate] = []
        for number, node in enumerate(nodes):
            if node.data == "marked":
                if number:
                    raise self.wrong(node, "a location is marked in the first column only")
                located = True
                terms.append(self.term(node.children[0]))
            elif node.data == "aggregate":
                form, *of = node.children
                names = tuple(Variable(str(token)) for token in of if token.type == "VARIABLE")
                if form != "count" and len(names) != 1:
                    raise self.wrong(node, f"{form} is of one variable: {form}<X>")
                terms.append(Aggregate(str(form), names))
            else:
                terms.append(self.term(node))
        return tuple(terms), located

    def word(self, node: Tree[Token]) -> str | int | Variable:
        _, *tokens = cast("list[Token]", node.children)
        match tokens[-1].type:
            case "INT":
                return int("".join(tokens))
            case "VARIABLE":
                return Variable(str(tokens[0]))
            case "WILD":
                raise self.wrong(node, "'@_' says nothing: leave it out")
        return str(tokens[0])

    def goal(self, node: Tree[Token]) -> Goal:
        children: Nodes = node.children
        place = self.place(node)
        match node.data:
            case "atom" | "negation":
                inner = children[-1] if node.data == "negation" else node
                parts: Nodes = inner.children
                name, *columns, time = parts
                word = self.word(time) if time is not None else None
                if isinstance(word, str):
                    raise self.wrong(time, f"'@{word}' stands in a head; in a body there is a variable or a number")
                terms, located = self.columns([column for column in columns if column is not None])
                return Atom(str(name), terms, word, negated=inner is not node, located=located, place=place)
            case "comparison":
                left, op, right = children
                return Comparison(self.term(left), _SAME.get(op, str(op)), self.term(right), place=place)
            case "less" | "greater":
                op = "<" if node.data == "less" else ">"
                return Comparison(self.term(children[0]), op, self.term(children[1]), place=place)
        key, chosen = (self.names(part) for part in children[1:])
        if not chosen:
            raise self.wrong(node, "choose((X), (Y)) chooses one Y at least")
        return Choice(tuple(key), tuple(chosen), place=place)

    def names(self, node: Any) -> list[Variable]:
        return [Variable(str(token)) for token in node.children if token is not None]

    def term(self, node: Tree[Token], depth: int = 0) -> Term:
        if depth > DEEPEST_TERM:
            raise self.wrong(node, f"this term is nested more than {DEEPEST_TERM} deep: use several rules")
        children: Nodes = node.children
        match node.data:
            case "variable":
                return Variable(str(children[0]))
            case "wild":
                return WILD
            case "number":
                number = children[0]
                if len(number) > 1000:
                    raise self.wrong(node, f"a number of {len(number)} digits is too long: at most 1000")
                return Constant(int(number) if number.type == "INT" else float(number))
            case "string":
                return Constant(self.text(children[0]))
            case "symbol":
                return Constant(str(children[0]), bare=True)
            case "negative":
                inner = self.term(children[1], depth + 1)
                if isinstance(inner, Constant) and not isinstance(inner.value, str):
                    return Constant(-inner.value)
                return Arithmetic("-", Constant(0), inner)
        left, op, right = children
        return Arithmetic(str(op), self.term(left, depth + 1), self.term(right, depth + 1))

    def text(self, token: Token) -> str:
        return re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), str(token)[1:-1])
