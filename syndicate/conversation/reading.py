"""From an expression to its shape: what a program asserts and sends, and what its patterns capture."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import Final

from attrs import frozen

from syndicate.conversation.program_text import (
    Assigned,
    Class,
    Defined,
    ForeignName,
    Function,
    NameScope,
    Parameter,
    Project,
)
from syndicate.conversation.shape import (
    ANYTHING,
    AtomShape,
    EitherShape,
    ItemsShape,
    Key,
    Shape,
    any_of,
    both,
    meets,
    show,
    widened,
)

_ATOMS: Final = {
    "int": "SignedInteger",
    "float": "Double",
    "str": "String",
    "bytes": "ByteString",
    "bool": "Boolean",
    "Symbol": "Symbol",
    "Ref": "Embedded",
    "set": "Set",
    "frozenset": "Set",
    "ValueSet": "Set",
}
_CONVERTED: Final = {"datetime": "rfc3339", "date": "rfc3339", "time": "rfc3339", "timedelta": "duration",
                     "Decimal": "decimal", "UUID": "uuid"}  # fmt: skip
_DEEPEST: Final = 12


@frozen
class Wrong:
    """A part of a pattern that no value can match."""

    at: ast.expr
    text: str


class ExpressionReader:
    """Reads expressions; *handed* is what handlers are given, by function, once their patterns were read."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.handed: dict[Function, list[Shape]] = {}
        self.passed: dict[Function, list[tuple[list[ast.expr], NameScope]]] = {}
        self.escaped: set[Function] = set()
        self.wrong: list[Wrong] = []
        self._depth = 0

    # ------------------------------------------------------------------------------------------------ values

    def value(self, node: ast.expr, scope: NameScope) -> Shape:
        """The shape of a value."""
        if self._depth > _DEEPEST:
            return ANYTHING
        self._depth += 1
        try:
            return self._value(node, scope)
        finally:
            self._depth -= 1

    def _value(self, node: ast.expr, scope: NameScope) -> Shape:
        if isinstance(node, ast.Constant):
            return _constant(node.value)
        if isinstance(node, ast.JoinedStr):
            return AtomShape("String")
        if isinstance(node, (ast.List, ast.Tuple)):
            starred = any(isinstance(each, ast.Starred) for each in node.elts)
            return ItemsShape(
                "arr", "", () if starred else _numbered([self.value(e, scope) for e in node.elts]), starred
            )
        if isinstance(node, ast.Dict):
            return self._dictionary(node, [self.value(each, scope) for each in node.values])
        if isinstance(node, (ast.Set, ast.SetComp)):
            return AtomShape("Set")
        if isinstance(node, ast.ListComp):
            return ItemsShape("arr", open=True)
        if isinstance(node, ast.DictComp):
            return ItemsShape("dict", open=True)
        if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return AtomShape("Boolean")
        if isinstance(node, ast.UnaryOp):
            with suppress(ValueError, TypeError):
                return _constant(ast.literal_eval(node))
            return widened(self.value(node.operand, scope))
        if isinstance(node, ast.BinOp):
            return _arithmetic(node.op, self.value(node.left, scope), self.value(node.right, scope))
        if isinstance(node, ast.BoolOp):
            return any_of([self.value(each, scope) for each in node.values])
        if isinstance(node, ast.IfExp):
            return any_of([self.value(each, scope) for each in (node.body, node.orelse) if not _is_none(each)])
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named(node, scope)
        if isinstance(node, ast.Call):
            return self._called(node, scope)
        return self.value(node.value, scope) if isinstance(node, ast.NamedExpr) else ANYTHING

    @staticmethod
    def _dictionary(node: ast.Dict, shapes: list[Shape]) -> Shape:
        parts: list[tuple[Key, Shape]] = []
        for key, shape in zip(node.keys, shapes, strict=True):
            if not isinstance(key, ast.Constant):
                return ItemsShape("dict", open=True)
            parts.append((repr(key.value), shape))
        return ItemsShape("dict", "", tuple(parts))

    def _named(self, node: ast.Name | ast.Attribute, scope: NameScope) -> Shape:
        meanings = self.project.meanings(node, scope)
        if meanings:
            return any_of([self._meant(meaning) for meaning in meanings])
        if isinstance(node, ast.Attribute):
            if node.attr == "value" and (first := self._field(node.value, scope)) is not None:
                return first
            return self._attribute(node, scope)
        return ANYTHING

    def _meant(self, meaning: object) -> Shape:
        if isinstance(meaning, Assigned):
            if meaning.annotation is not None:
                return self.annotated(meaning.annotation, meaning.scope)
            return ANYTHING if meaning.value is None else self.value(meaning.value, meaning.scope)
        if isinstance(meaning, Parameter):
            return self._parameter(meaning)
        return AtomShape("Symbol", "null") if _is_absent(meaning) else ANYTHING

    def _parameter(self, meaning: Parameter) -> Shape:
        handed = self.handed.get(meaning.of)
        if handed is not None and meaning.place is not None and meaning.place < len(handed):
            shape = handed[meaning.place]
            if not meaning.arg.annotation:
                return shape
            declared = self.annotated(meaning.arg.annotation, meaning.scope)
            return both(shape, declared) if meets(shape, declared) else declared
        if meaning.arg.annotation is not None:
            return self.annotated(meaning.arg.annotation, meaning.scope)
        calls = self.passed.get(meaning.of)
        if not calls or meaning.of in self.escaped or meaning.place is None:
            return ANYTHING
        shapes: list[Shape] = []
        for args, scope in calls:
            if meaning.place >= len(args) or any(isinstance(arg, ast.Starred) for arg in args):
                return ANYTHING
            shapes.append(self.value(args[meaning.place], scope))
        return any_of(shapes)

    def _field(self, node: ast.expr, scope: NameScope) -> Shape | None:
        """What a field holds: ``count.value`` where ``count = field(0)``."""
        for meaning in self.project.meanings(node, scope):
            value = meaning.value if isinstance(meaning, Assigned) else None
            if isinstance(value, ast.Call) and isinstance(meaning, Assigned):
                if self.project.ours(value.func, meaning.scope) == "field" and value.args:
                    return widened(self.value(value.args[0], meaning.scope)) if _is_simple(value.args[0]) else ANYTHING
                return ANYTHING
        return None

    def _attribute(self, node: ast.Attribute, scope: NameScope) -> Shape:
        """A field of a record, or a member of an ``Enum``."""
        owner = self.value(node.value, scope)
        for meaning in self.project.meanings(node.value, scope):
            if isinstance(meaning, Class):
                return ItemsShape("rec", self.label(meaning), ((0, AtomShape("Symbol", node.attr)),))
        if isinstance(owner, ItemsShape) and owner.kind == "rec":
            for each in self.records:
                if self.label(each) == owner.label:
                    names = [name for name, _, _ in self.fields(each)]
                    if node.attr in names:
                        return dict(owner.parts).get(names.index(node.attr), ANYTHING)
        return ANYTHING

    def _called(self, node: ast.Call, scope: NameScope) -> Shape:
        if (written := self._record(node, scope)) is not None:
            owner, arguments = written
            parts = []
            for name, annotation, home in self.fields(owner):
                declared = self.annotated(annotation, home)
                argument = arguments.get(name)
                shape = declared if argument is None else self.value(argument, scope)
                parts.append(declared if shape == ANYTHING else shape)
            return ItemsShape("rec", self.label(owner), _numbered(parts))
        ours = self.project.ours(node.func, scope)
        if ours == "Record" and len(node.args) == 2 and isinstance(node.args[1], (ast.List, ast.Tuple)):
            label, items = self.value(node.args[0], scope), self.value(node.args[1], scope)
            if isinstance(label, AtomShape) and label.literal and isinstance(items, ItemsShape):
                return ItemsShape("rec", label.literal.strip("'"), items.parts, items.open)
        if ours == "Symbol" and node.args and isinstance(node.args[0], ast.Constant):
            return AtomShape("Symbol", str(node.args[0].value))
        if ours and ours[0].isupper():  # a record of this library
            return ItemsShape("rec", f"{ours} of the library", open=True)
        if isinstance(node.func, ast.Name) and not scope.look(node.func.id):
            kind = {"len": "SignedInteger", "repr": "String", "sum": ""}.get(node.func.id, _ATOMS.get(node.func.id, ""))
            return AtomShape(kind) if kind else ANYTHING
        returned = [each for each in self.project.meanings(node.func, scope) if isinstance(each, Defined)]
        return any_of([self.returned(each) for each in returned]) if returned else ANYTHING

    def returned(self, function: Defined) -> Shape:
        """What a function returns, None apart."""
        node = function.node
        if isinstance(node, ast.Lambda):
            return self.value(node.body, function.scope.module.inside[node])
        return ANYTHING if node.returns is None else self.annotated(node.returns, function.scope)

    # ------------------------------------------------------------------------------------------------ records

    @property
    def records(self) -> list[Class]:
        """The classes of records that are read."""
        return [each for module in self.project.modules.values() for each in module.classes if self.label(each)]

    def label(self, owner: Class) -> str:
        """The label of a record class, or nothing."""
        for decorator in owner.node.decorator_list:
            called = decorator if isinstance(decorator, ast.Call) else None
            if self.project.ours(called.func if called else decorator, owner.scope) == "record":
                first = called.args[0] if called and called.args else None
                return str(first.value) if isinstance(first, ast.Constant) else owner.node.name
        return ""

    def fields(self, owner: Class) -> list[tuple[str, ast.expr, NameScope]]:
        """The fields of a record class, those that it inherits first: name, annotation, scope."""
        out: dict[str, tuple[str, ast.expr, NameScope]] = {}
        for base in owner.node.bases:
            for meaning in self.project.meanings(base, owner.scope):
                if isinstance(meaning, Class):
                    out |= {each[0]: each for each in self.fields(meaning)}
        for node in owner.node.body:
            field = node.target if isinstance(node, ast.AnnAssign) else None
            if isinstance(field, ast.Name) and isinstance(node, ast.AnnAssign):
                if "ClassVar" in ast.unparse(node.annotation):
                    continue
                out[field.id] = (field.id, node.annotation, owner.scope)
        return list(out.values())

    def _record(self, node: ast.Call, scope: NameScope) -> tuple[Class, dict[str, ast.expr]] | None:
        """The record class that is called, and its arguments by field."""
        for meaning in self.project.meanings(node.func, scope):
            if isinstance(meaning, Class) and self.label(meaning):
                names = [name for name, _, _ in self.fields(meaning)]
                arguments = dict(zip(names, node.args, strict=False))
                return meaning, arguments | {each.arg: each.value for each in node.keywords if each.arg}
        return None

    def whole(self, owner: Class) -> Shape:
        """Whatever record of a class."""
        fields = [self.annotated(annotation, scope) for _, annotation, scope in self.fields(owner)]
        return ItemsShape(
            "rec", self.label(owner), _numbered(fields), not fields
        )  # an Enum has a name that it does not list

    def annotated(self, node: ast.expr, scope: NameScope) -> Shape:
        """The shape of what an annotation allows."""
        if self._depth > _DEEPEST:
            return ANYTHING
        self._depth += 1
        try:
            return self._annotated(node, scope)
        finally:
            self._depth -= 1

    def _annotated(self, node: ast.expr, scope: NameScope) -> Shape:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            with suppress(SyntaxError):
                return self.annotated(ast.parse(node.value, mode="eval").body, scope)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return any_of([self.annotated(side, scope) for side in (node.left, node.right)])
        if isinstance(node, ast.Subscript):
            outer = ast.unparse(node.value).rpartition(".")[2]
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if outer == "Literal":
                return any_of([self.value(each, scope) for each in inner])
            if outer in ("Optional", "Union"):
                return ANYTHING if outer == "Optional" else any_of([self.annotated(each, scope) for each in inner])
            return self.annotated(inner[0] if outer in ("Annotated", "Final") else node.value, scope)
        for meaning in self.project.meanings(node, scope):
            if isinstance(meaning, Class) and self.label(meaning):
                return self.whole(meaning)
        name = ast.unparse(node).rpartition(".")[2]
        if name == "float":  # an int is one to who checks types, and none to who matches values
            return EitherShape((AtomShape("Double"), AtomShape("SignedInteger")))
        return _class(name)

    # ------------------------------------------------------------------------------------------------ patterns

    def pattern(self, node: ast.expr, scope: NameScope) -> tuple[Shape, list[Shape]]:
        """What a pattern matches, and what it captures, in pre-order; notes what cannot match."""
        captures: list[Shape] = []
        return self._pattern(node, scope, ANYTHING, captures), captures

    def _pattern(self, node: ast.expr, scope: NameScope, expected: Shape, captures: list[Shape]) -> Shape:
        if isinstance(node, ast.Name):
            meanings = self.project.meanings(node, scope)
            if len(meanings) == 1 and isinstance(meanings[0], Assigned) and meanings[0].value is not None:
                return self._pattern(meanings[0].value, meanings[0].scope, expected, captures)
            if meanings and isinstance(meanings[0], Class) and self.label(meanings[0]):
                shape = self.whole(meanings[0])
                captures.append(shape)
                return shape
        if isinstance(node, (ast.List, ast.Tuple)):
            return ItemsShape(
                "arr", "", _numbered([self._pattern(e, scope, ANYTHING, captures) for e in node.elts]), True
            )
        if isinstance(node, ast.Dict):
            dictionary = self._dictionary(
                node, [self._pattern(each, scope, ANYTHING, captures) for each in node.values]
            )
            return ItemsShape("dict", "", dictionary.parts, True) if isinstance(dictionary, ItemsShape) else ANYTHING
        ours = self.project.ours(node.func if isinstance(node, ast.Call) else node, scope)
        if ours == "ANY":
            return expected
        if isinstance(node, ast.Call) and ours == "capture":
            return self._capture(node, scope, expected, captures)
        if isinstance(node, ast.Call) and (written := self._record(node, scope)) is not None:
            return self._fields(written, scope, captures)
        if isinstance(node, ast.Call) and ours and ours[0].isupper():  # a record of this library
            for each in [*node.args, *[keyword.value for keyword in node.keywords]]:
                self._pattern(each, scope, ANYTHING, captures)
        shape = self.value(node, scope)
        self._expect(node, shape, expected)
        return shape

    def _capture(self, node: ast.Call, scope: NameScope, expected: Shape, captures: list[Shape]) -> Shape:
        at = len(captures)
        captures.append(expected)
        if not node.args:
            return expected
        name = ast.unparse(node.args[0]).rpartition(".")[2]
        owner = next((m for m in self.project.meanings(node.args[0], scope) if isinstance(m, Class)), None)
        if owner is not None:
            shape = self.whole(owner) if self.label(owner) else ANYTHING
        elif isinstance(node.args[0], (ast.Name, ast.Attribute)) and _class(name) != ANYTHING:
            shape = _class(name)
        else:
            shape = self._pattern(node.args[0], scope, expected, captures)
        self._expect(node, shape, expected)
        captures[at] = both(shape, expected) if meets(shape, expected) else shape
        return captures[at]

    def _fields(self, written: tuple[Class, dict[str, ast.expr]], scope: NameScope, captures: list[Shape]) -> Shape:
        owner, arguments = written
        parts: list[Shape] = []
        for name, annotation, home in self.fields(owner):
            declared = self.annotated(annotation, home)
            argument = arguments.get(name)
            parts.append(declared if argument is None else self._pattern(argument, scope, declared, captures))
        return ItemsShape("rec", self.label(owner), _numbered(parts), True)

    def _expect(self, node: ast.expr, shape: Shape, expected: Shape) -> None:
        if not meets(shape, expected):
            self.wrong.append(Wrong(node, f"{show(shape)} where the record has {show(expected)}"))


def _constant(value: object) -> Shape:
    kind = _ATOMS.get(type(value).__name__)
    return AtomShape(kind, repr(value)) if kind else ANYTHING


def _class(name: str) -> Shape:
    if name in _ATOMS:
        return AtomShape(_ATOMS[name])
    if name in _CONVERTED:
        return ItemsShape("rec", _CONVERTED[name], open=True)
    if name in ("list", "List", "tuple", "Tuple", "Sequence"):
        return ItemsShape("arr", open=True)
    return ItemsShape("dict", open=True) if name in ("dict", "Dict", "Mapping", "Dictionary") else ANYTHING


def _numbered(shapes: list[Shape]) -> tuple[tuple[Key, Shape], ...]:
    return tuple(enumerate(shapes))


def _arithmetic(op: ast.operator, left: Shape, right: Shape) -> Shape:
    kinds = {shape.kind for shape in (left, right) if isinstance(shape, AtomShape)}
    if "String" in kinds and isinstance(op, (ast.Add, ast.Mod)):
        return AtomShape("String")
    if not (isinstance(left, AtomShape) and isinstance(right, AtomShape)) or not kinds <= {"SignedInteger", "Double"}:
        return ANYTHING
    if isinstance(op, ast.Div) or "Double" in kinds:
        return AtomShape("Double")
    return ANYTHING if isinstance(op, ast.Pow) else AtomShape("SignedInteger")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_simple(node: ast.expr) -> bool:
    """Whether a field that begins with it holds the like of it later."""
    return isinstance(node, ast.Constant) and node.value is not None


def _is_absent(meaning: object) -> bool:
    return isinstance(meaning, ForeignName) and meaning.name.endswith(".ABSENT")
