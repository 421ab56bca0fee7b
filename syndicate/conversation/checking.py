"""The check of a conversation: what is said and never heard, awaited and never said, and what cannot fit.

It reads the text of modules, and runs nothing.  Where the text does not say what a value is, it may be anything: what
is reported then is marked as not certain.  All dataspaces count as one.

Source: ``docs/design/conversation.md``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias

from attrs import define, field, frozen

from syndicate.conversation.program_text import (
    Assigned,
    Class,
    Defined,
    ForeignName,
    Function,
    Module,
    NameScope,
    Project,
)
from syndicate.conversation.reading import ExpressionReader
from syndicate.conversation.shape import ANYTHING, Shape, labels, meets, show

Kind: TypeAlias = Literal["assertion", "message", "question"]

_SAYS: Final[dict[str, tuple[Kind, int]]] = {
    "assert_": ("assertion", 1),
    "keep": ("assertion", 1),
    "asserted": ("assertion", 1),
    "send": ("message", 1),
    "ask": ("question", 1),
    "asked": ("question", 2),
}
"""What says something: as what, and which argument it is."""
_HEARS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("on_asserted", "on_retracted", "during", "stop_when"), "assertion"),
    **dict.fromkeys(("query_set", "query_value", "query_hash", "query_count"), "assertion"),
    **dict.fromkeys(("snapshot", "query", "observe", "follow", "to_frame", "spark_sink"), "assertion"),
    "on_message": "message",
    "answer": "question",
}
_METHODS: Final = ("asserted", "snapshot", "query", "events", "observe")
"""Those that are methods: of a system in a thread or in asyncio, of a simulated world."""
_RULES: Final = ("bloom", "dedalus", "views", "hosting", "spark", "introspect", "nested", "work", "host")
"""Where what is said and heard does not stand in the text of actors: parts of the library by which all is uncertain."""
_HANDLERS: Final = ("on_asserted", "on_retracted", "during", "stop_when", "on_message", "answer")
_ROLES: Final[dict[str, tuple[bool, Kind]]] = {
    "asserts": (True, "assertion"),
    "sends": (True, "message"),
    "observes": (False, "assertion"),
    "hears": (False, "message"),
}


@frozen
class Finding:
    """What is wrong, and where; not *certain* if something that the text does not say could make it
    right.  Made by :func:`check`.
    """

    file: str
    line: int
    column: int
    code: str
    text: str
    certain: bool = True

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}{'' if self.certain else ' (not certain)'} [{self.code}]"


@frozen(eq=False)
class Site:
    """A place that says or hears something."""

    module: Module
    node: ast.expr
    scope: NameScope
    kind: Kind
    shape: Shape
    says: bool

    @property
    def place(self) -> str:
        """File and line."""
        return f"{_short(self.module.path)}:{self.node.lineno}"

    def __str__(self) -> str:
        verb = {"assertion": "asserts", "message": "sends", "question": "asks"} if self.says else {
            "assertion": "observes assertions of", "message": "observes messages", "question": "answers"
        }  # fmt: skip
        return f"{self.place} {verb[self.kind]} {show(self.shape)}"


@frozen(eq=False)
class RolePart:
    """A role in the text: by *word* (``asserts``) the records that it names."""

    name: str
    module: Module
    node: ast.Call
    named: dict[str, list[tuple[ast.expr, Shape]]]


@define
class Report:
    """What a check has read and found.  Made by :func:`check`."""

    modules: int
    said: int
    heard: int
    unknown: int
    findings: list[Finding] = field(factory=list)


def check(wanted: Iterable[str], outside: Collection[str] = ()) -> Report:
    """Check modules (``shop.orders``), files or folders together, with what they import from beside them.

    *outside* are labels that other programs say or hear, so that it is no fault if these do not.

    Raises:
        ProgramNotFound: there is no such module, or it cannot be read.
    """
    return _Check(Project(wanted), set(outside)).report()


class _Check:
    def __init__(self, project: Project, outside: set[str]) -> None:
        self.project = project
        self.outside = outside
        self.reading = ExpressionReader(project)
        self.sites: list[Site] = []
        self.findings: list[Finding] = []
        self.roles: dict[int, RolePart] = {}
        self.rules = any(
            isinstance(meaning, ForeignName) and set(_RULES) & set(meaning.name.split(".")) and _is_ours(meaning.name)
            for module in project.modules.values()
            for meanings in module.top.names.values()
            for meaning in meanings
        )

    def report(self) -> Report:
        calls = [(module, call, scope) for module in self.project.modules.values() for call, scope in module.calls]
        self._arguments()
        for module, call, scope in calls:  # first what handlers are given: values are made of it
            self._hear(module, call, scope)
        for module, call, scope in calls:
            self._say(module, call, scope)
        self._role_parts()
        played = self._play()
        said = [site for site in self.sites if site.says]
        heard = [site for site in self.sites if not site.says]
        others = self._outsiders(played)
        self._never("never-observed", said, heard + [site for site in others if not site.says])
        self._never("never-sent", heard, said + [site for site in others if site.says])
        unknown = sum(site.shape == ANYTHING for site in self.sites)
        findings = sorted(set(self.findings), key=lambda one: (one.file, one.line, one.column, one.code))
        return Report(len(self.project.modules), len(said), len(heard), unknown, findings)

    def _tell(self, module: Module, node: ast.expr, code: str, text: str, certain: bool = True) -> None:
        self.findings.append(Finding(_short(module.path), node.lineno, node.col_offset + 1, code, text, certain))

    # ------------------------------------------------------------------------------------------------ reading

    def _arguments(self) -> None:
        """With which arguments functions are called, here and by ``spawn``; which may be called from elsewhere."""
        counted: set[ast.expr] = set()
        for module in self.project.modules.values():
            for call, scope in module.calls:
                name, args = call.func, call.args
                if self.project.ours(name, scope) in ("spawn", "react", "partial", "supervise") and call.args:
                    name, args = call.args[0], call.args[1:]
                for meaning in self.project.meanings(name, scope):
                    if isinstance(meaning, Defined):
                        self.reading.passed.setdefault(meaning.node, []).append((args, scope))
                        counted.add(name)
        for module in self.project.modules.values():
            for mention, scope in module.mentions:
                if mention not in counted:
                    meanings = self.project.meanings(mention, scope)
                    self.reading.escaped.update(each.node for each in meanings if isinstance(each, Defined))

    def _verb(self, call: ast.Call, scope: NameScope) -> tuple[str, list[ast.expr]]:
        """The verb of ours that a call is, and its arguments; ``partial(send, ds, value)`` and
        ``system.call(send, ds, value)`` are sends.
        """
        for at, each in enumerate(call.args[:-1]):
            if (handed := self.project.ours(each, scope)) in _SAYS or handed in _HEARS:
                return handed, call.args[at + 1 :]
        name = self.project.ours(call.func, scope)
        if not name and isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
            name = call.func.attr
        return name, call.args

    def _hear(self, module: Module, call: ast.Call, scope: NameScope) -> None:
        name, args = self._verb(call, scope)
        pattern = args[1] if len(args) > 1 else _keyword(call, "pattern")
        if name in {"host", "view"}:
            self._hosted(module, call, scope)
        if pattern is None or (name not in _HEARS and name != "events"):
            return
        shape, captures = self.reading.pattern(pattern, scope)
        kinds: list[Kind] = ["assertion", "message"] if name == "events" else [_HEARS[name]]
        on = _keyword(call, "on")
        if isinstance(on, ast.Constant) and on.value == "message":
            kinds = ["message"]
        for kind in kinds:
            self.sites.append(Site(module, pattern, scope, kind, shape, False))
        while self.reading.wrong:
            wrong = self.reading.wrong.pop()
            self._tell(module, wrong.at, "cannot-match", f"this pattern matches nothing: {wrong.text}")
        if name in _HANDLERS:
            for handler, home in self._handlers(module, call, scope):
                self._handle(module, pattern, handler, home, captures)

    def _handlers(self, module: Module, call: ast.Call, scope: NameScope) -> Iterator[tuple[Function, NameScope]]:
        """The functions that are given what is captured: decorated by the call, or given to what it returns."""
        for function, home in module.functions:
            if not isinstance(function, ast.Lambda) and call in function.decorator_list:
                yield function, home
        for outer, _ in module.calls:
            if outer.func is call and outer.args:
                if isinstance(outer.args[0], ast.Lambda):
                    yield outer.args[0], scope
                for meaning in self.project.meanings(outer.args[0], scope):
                    if isinstance(meaning, Defined):
                        yield meaning.node, meaning.scope

    def _handle(
        self, module: Module, pattern: ast.expr, handler: Function, home: NameScope, captures: list[Shape]
    ) -> None:
        args = handler.args
        places = [*args.posonlyargs, *args.args]
        needed = len(places) - len(args.defaults)
        if not args.vararg and not needed <= len(captures) <= len(places):
            what = "the lambda" if isinstance(handler, ast.Lambda) else f"{handler.name}()"
            self._tell(module, pattern, "captures",
                       f"{what} takes {len(places)} arguments, and this pattern captures {len(captures)}")  # fmt: skip
        for arg, shape in zip(places, captures, strict=False):
            declared = self.reading.annotated(arg.annotation, home) if arg.annotation else ANYTHING
            if not meets(declared, shape):
                self._tell(home.module, arg, "cannot-match",  # type: ignore[arg-type]  # it has a line as well
                           f"{arg.arg} is {show(declared)}, and what is captured is {show(shape)}")  # fmt: skip
        self.reading.handed[handler] = captures

    def _hosted(self, module: Module, call: ast.Call, scope: NameScope) -> None:
        """Rules in a dataspace: what they read, and what they conclude."""
        for word, says, kind in (("inputs", False, "assertion"), ("messages", False, "message"),
                                 ("outputs", True, "assertion")):  # fmt: skip
            mapping = _keyword(call, word)
            for each in mapping.values if isinstance(mapping, ast.Dict) else []:
                shape = self.reading.pattern(each, scope)[0]
                as_kind: Kind = "message" if kind == "message" else "assertion"
                self.sites.append(Site(module, each, scope, as_kind, shape, says))

    def _say(self, module: Module, call: ast.Call, scope: NameScope) -> None:
        name, args = self._verb(call, scope)
        if name in ("from_frame", "spark_source"):
            target = _keyword(call, "to")
            if target is not None:
                self.sites.append(
                    Site(module, target, scope, "assertion", self.reading.pattern(target, scope)[0], True)
                )
            return
        kind, at = _SAYS.get(name, ("assertion", -1))
        written = args[at] if 0 <= at < len(args) else _keyword(call, "value") if at >= 0 else None
        if isinstance(call.func, ast.Attribute) and call.func.attr == "replace" and self._is_handle(call.func, scope):
            written = call.args[0] if call.args else None
        if written is not None:
            for node, shape in self._written(written, scope):
                self.sites.append(Site(module, node, scope, kind, shape, True))

    def _is_handle(self, node: ast.Attribute, scope: NameScope) -> bool:
        """Whether it is a method of what ``assert_`` has returned, and not of a string."""
        return any(
            isinstance(each, Assigned)
            and isinstance(each.value, ast.Call)
            and self.project.ours(each.value.func, each.scope) == "assert_"
            for each in self.project.meanings(node.value, scope)
        )

    def _written(self, node: ast.expr, scope: NameScope) -> list[tuple[ast.expr, Shape]]:
        """What is asserted: a value, or what a function returns."""
        if isinstance(node, ast.Lambda):
            inner = scope.module.inside[node]
            body = node.body
            arms = [body.body, body.orelse] if isinstance(body, ast.IfExp) else [body]
            return [(arm, self.reading.value(arm, inner)) for arm in arms if not _is_nothing(arm)]
        functions = [each for each in self.project.meanings(node, scope) if isinstance(each, Defined)]
        if functions:
            out = []
            for function in functions:
                inner = function.scope.module.inside[function.node]
                returns = [each for each in ast.walk(function.node) if isinstance(each, ast.Return)]
                values = [each.value for each in returns if each.value is not None and not _is_nothing(each.value)]
                out += [(value, self.reading.value(value, inner)) for value in values]
            return out
        return [(node, self.reading.value(node, scope))]

    # ------------------------------------------------------------------------------------------------ never

    def _never(self, code: str, those: list[Site], others: list[Site]) -> None:
        """Tell of sites that no other site is for."""
        for site in those:
            names = labels(site.shape)
            if site.shape == ANYTHING or names & self.outside or any("of the library" in name for name in names):
                continue
            same = [other for other in others if other.kind == site.kind]
            certain = [other for other in same if other.shape != ANYTHING]
            if any(meets(site.shape, other.shape) for other in certain):
                continue
            near = [other for other in others if labels(other.shape) & names - {"[]", "{}"}]
            why = f": {'; '.join(map(str, near[:2]))}" if near else ""
            kind = "asserted" if site.kind == "assertion" else "sent" if site.kind == "message" else "asked"
            heard = "answered" if site.kind == "question" else "observed"
            text = (
                f"{show(site.shape)} is {kind} and never {heard}{why}"
                if site.says
                else f"{show(site.shape)} is {heard} and never {kind}{why}"
            )
            self._tell(site.module, site.node, code, text, len(certain) == len(same) and not self.rules)

    # ------------------------------------------------------------------------------------------------ roles

    def _role_parts(self) -> None:
        """The roles of the protocols that are read."""
        for module in self.project.modules.values():
            for each in module.classes:
                if not any(self.project.ours(base, each.scope) == "Protocol" for base in each.node.bases):
                    continue
                for name, call in _calls_in(each):
                    if self.project.ours(call.func, each.scope) == "role":
                        self.roles[id(call)] = RolePart(
                            f"{each.node.name}.{name}", module, call, self._named(call, each)
                        )

    def _named(self, call: ast.Call, owner: Class) -> dict[str, list[tuple[ast.expr, Shape]]]:
        out = {}
        for each in call.keywords:
            if each.arg in _ROLES and isinstance(each.value, (ast.List, ast.Tuple)):
                out[each.arg] = [(one, self.reading.pattern(one, owner.scope)[0]) for one in each.value.elts]
        return out

    def _role_of(self, decorator: ast.expr, scope: NameScope) -> RolePart | None:
        """The role that a decorator is: ``@Lamps.lamp``."""
        if isinstance(decorator, ast.Attribute):
            for meaning in self.project.meanings(decorator.value, scope):
                for name, call in _calls_in(meaning) if isinstance(meaning, Class) else ():
                    if name == decorator.attr and id(call) in self.roles:
                        return self.roles[id(call)]
        return None

    def _play(self) -> set[int]:
        """Hold each function that plays roles to these; the roles that are played."""
        played: dict[int, list[Function]] = {}
        for module in self.project.modules.values():
            for function, home in module.functions:
                if isinstance(function, ast.Lambda):
                    continue
                parts = [part for each in function.decorator_list if (part := self._role_of(each, home)) is not None]
                for part in parts:
                    played.setdefault(id(part.node), []).append(function)
                if parts:
                    self._hold(function, parts)
        for key, functions in played.items():
            self._undone(self.roles[key], functions)
        return set(played)

    def _reached(self, function: Function) -> set[Function]:
        """A function, and those of the project that it calls, or hands on, or that stand in it."""
        reached, pending = {function}, [function]
        while pending:
            one = pending.pop()
            for module in self.project.modules.values():
                if one not in module.inside:
                    continue
                for mention, scope in module.mentions:
                    if one in scope.functions():
                        for meaning in self.project.meanings(mention, scope):
                            if isinstance(meaning, Defined) and meaning.node not in reached:
                                reached.add(meaning.node)
                                pending.append(meaning.node)
        return reached

    def _of(self, functions: Iterable[Function]) -> list[Site]:
        reached = set().union(*(self._reached(function) for function in functions))
        return [site for site in self.sites if reached & set(site.scope.functions())]

    def _hold(self, function: ast.FunctionDef | ast.AsyncFunctionDef, parts: list[RolePart]) -> None:
        for site in self._of([function]):
            allowed = [
                shape
                for part in parts
                for word, (says, kind) in _ROLES.items()
                if (says, kind) == (site.says, site.kind)
                for _, shape in part.named.get(word, [])
            ]
            if site.shape != ANYTHING and site.kind != "question" and not any(meets(site.shape, a) for a in allowed):
                word = next(word for word, of in _ROLES.items() if of == (site.says, site.kind))
                self._tell(site.module, site.node, "not-in-role",
                           f"{function.name}() {word} {show(site.shape)}, which is not in its role "
                           f"{' or '.join(part.name for part in parts)}")  # fmt: skip

    def _undone(self, part: RolePart, functions: list[Function]) -> None:
        sites = self._of(functions)
        names = ", ".join(f"{each.name}()" for each in functions if not isinstance(each, ast.Lambda))
        for word, named in part.named.items():
            says, kind = _ROLES[word]
            for node, shape in named:
                if not any((s.says, s.kind) == (says, kind) and meets(s.shape, shape) for s in sites):
                    self._tell(part.module, node, "role-undone",
                               f"{part.name} {word} {show(shape)}, and {names} never does")  # fmt: skip

    def _outsiders(self, played: set[int]) -> list[Site]:
        """What roles that nobody here plays say and hear."""
        return [
            Site(part.module, part.node, part.module.top, _ROLES[word][1], shape, _ROLES[word][0])
            for key, part in self.roles.items()
            if key not in played
            for word, named in part.named.items()
            for _, shape in named
        ]


def _calls_in(owner: Class) -> Iterator[tuple[str, ast.Call]]:
    """``name = f(..)`` in the body of a class."""
    for node in owner.node.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call):
            yield node.targets[0].id, node.value


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in ("syndicate", "relay")


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


def _short(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
