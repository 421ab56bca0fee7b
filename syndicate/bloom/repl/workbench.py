"""The workbench: a program whose declarations and rules are texts, added and removed while it lives.

Each text is compiled by the ordinary surface, in a subclass made for it: what is a mistake in a file is one here, with
``<rule 3>`` for a file.  Names of collections need no ``self``.

>>> bench = Workbench()
>>> for text in ('link = table(["from", "to"])', 'path = table(["from", "to"])', "path <= link"):
...     made = bench.add(text)
>>> made, bench.rules
(Added(what='rule', name='1'), {1: 'path <= link'})
>>> bench.evaluate("link <= [(1, 2)]; link.insert([(2, 3)])")  # doctest: +ELLIPSIS
Traceback (most recent call last):
syndicate.errors.IllegalRule: <line>: this is a rule, and rules are added...
>>> bench.evaluate("link.insert([(1, 2)])"); bench.tick(); sorted(bench.view.path)
[(from=1, to=2)]
>>> bench.remove(1); bench.tick(); bench.rules, sorted(bench.view.path), bench.add("link <= [(2, 3)]").name
({}, [(from=1, to=2)], '2')

A change takes effect with the next tick; until then one looks at what there was.

Source: Bud (``rebl``); ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import Final

from attrs import evolve, frozen

import syndicate.bloom as surface
from syndicate.bloom.block import Imported, bloom
from syndicate.bloom.declaration import Declaration
from syndicate.bloom.insight.row_age import remember, remember_of
from syndicate.bloom.state.state import CellState, SentState, State, TableState
from syndicate.bloom.state.store import Store
from syndicate.bloom.tick.runtime import Runtime, instance_of, runtime_of
from syndicate.errors import IllegalRule
from syndicate.values.value import Value

BREAKPOINT: Final = "breakpoint"


@frozen
class Added:
    """What a text turned out to be: ``rule``, ``collection``, ``module`` or ``name``, and its name or number."""

    what: str
    name: str


class Workbench:
    """A program under construction; *options* are those of its class."""

    def __init__(self, base: type[surface.Bloom] = surface.Bloom, **options: Value) -> None:
        """On top of a class; raises what making one raises."""
        self.store = None if options.get("state") is None else Store(options["state"])
        self.base, self.options = base, {**options, "state": self.store}
        self.declared: dict[str, Value] = {}
        self.rules: dict[int, str] = {}
        self.names: dict[str, Value] = {name: getattr(surface, name) for name in surface.__all__}
        self._next: surface.Bloom | None = None
        try:
            self.view = self._instantiate({}, {})
        except BaseException:
            self._close_store()
            raise
        self.inherited = len(self.view.statements)
        self._number = self.inherited
        remember(self.view)
        if BREAKPOINT not in instance_of(self.view).own:
            self.declared[BREAKPOINT] = surface.temp()
            self._change(self.declared, {})

    # --------------------------------------------------------------------------------------------------- texts

    def add(self, text: str) -> Added:
        """Take a declaration, a rule, or a definition in.

        Raises what the surface raises, :class:`SyntaxError`, and what the text itself raises; nothing has changed then.
        """
        (statement,) = ast.parse(text.strip(), "<line>").body
        if self.is_rule(statement):
            number = self._number + 1
            self._change(self.declared, {**self.rules, number: text.strip()})
            self._number = number
            return Added("rule", str(number))
        name, value = self._defined(statement, text)
        if name in self._members(self.newest):
            raise IllegalRule(
                f"<line>: there is a collection or module {name} already: choose another name; a rule is {name} <= "
                f"..., and rows from outside are {name}.insert([...])"
            )
        if isinstance(value, (Declaration, Imported)):
            self._change({**self.declared, name: value}, self.rules)
            return Added("collection" if isinstance(value, Declaration) else "module", name)
        if name:
            self.names[name] = value
        return Added("name", name)

    def remove(self, number: int) -> None:
        """Take a rule out; raises :class:`IllegalRule` where it is not one of ours."""
        if number not in self.rules:
            ours = f"there are {', '.join(map(str, self.rules))}" if self.rules else "none has been added"
            whose = "belongs to the class: override its block" if 0 < number <= self.inherited else "is not there"
            raise IllegalRule(f"rule {number} {whose}; {ours}")
        self._change(self.declared, {at: text for at, text in self.rules.items() if at != number})

    def is_rule(self, statement: ast.stmt) -> bool:
        """Whether it has a collection, or a part of one, on the left of an operator, or is a define()."""
        match statement:
            case ast.Expr(ast.Compare(left=left, ops=[ast.LtE() | ast.Lt(), *_])):
                return self._is_collection(left)
            case ast.Expr(ast.Call(ast.Attribute(left, "define"))):
                return self._is_collection(left)
        return False

    def evaluate(self, text: str) -> Value:
        """The value of an expression over what there is now; a statement is executed."""
        module = ast.parse(text.strip(), "<line>")
        if any(self.is_rule(statement) for statement in module.body):
            raise IllegalRule("<line>: this is a rule, and rules are added one by one, not evaluated")
        scope = {**self.names, **self._scope(self.newest), **self._scope(self.view)}
        if len(module.body) == 1 and isinstance(module.body[0], ast.Expr):
            code = compile(ast.Expression(module.body[0].value), "<line>", "eval")
            return eval(code, scope)  # noqa: S307  # the user's own program
        exec(compile(module, "<line>", "exec"), scope)  # noqa: S102  # own program, which the user may run
        return None

    # --------------------------------------------------------------------------------------------------- the program

    @property
    def newest(self) -> surface.Bloom:
        """The program as it will be in the next tick."""
        return self._next or self.view

    def tick(self) -> None:
        """A tick, of the newest program; raises what ticks raise."""
        if self._next is None:
            try:
                self.view.tick()
            except BaseException:
                if runtime_of(self.view).engine.broken:  # Ctrl-C: another program begins where this one was
                    self._next = self._instantiate(self.declared, self.rules)
                raise
            return
        new = self._next
        fresh = self._fresh(new)
        carry(self.view, new)
        try:
            new.tick()
        except BaseException:  # it did not happen: there is what was there
            self._next = self._instantiate(self.declared, self.rules)
            self._give(fresh)
            new.close()
            raise
        runtime_of(new).engine.changes = _changes(runtime_of(self.view), runtime_of(new))
        self.view.close()
        self.view, self._next = new, None

    def waits(self) -> bool:
        """Whether another tick would do something."""
        return self._next is not None or self.view.waits()

    def stopped(self) -> bool:
        """Whether a breakpoint has rows, or the program has ended itself."""
        one = instance_of(self.view).own.get(BREAKPOINT)
        return self.view.halted or (one is not None and bool(one.cols) and len(one) > 0)

    def close(self) -> None:
        """Close files."""
        self.view.close()
        self.newest.close()
        self._close_store()

    def _close_store(self) -> None:
        if self.store is not None:
            self.store.close()

    def _change(self, declared: Mapping[str, Value], rules: Mapping[int, str]) -> None:
        new = self._instantiate(declared, rules)
        fresh = {} if self._next is None else self._fresh(self._next)
        if self._next is not None:
            self._next.close()
        self._next = new
        self._give(fresh)
        self.declared, self.rules = dict(declared), dict(rules)

    def _fresh(self, program: surface.Bloom) -> dict[str, State]:
        """The states of collections that there have not been in a tick, to which something may have been given."""
        before = runtime_of(self.view).states
        return {name: copy(state) for name, state in runtime_of(program).states.items() if name not in before}

    def _give(self, fresh: Mapping[str, State]) -> None:
        states = runtime_of(self.newest).states
        for name, state in fresh.items():
            if name in states:
                _insert_again(states[name], state)

    def _instantiate(self, declared: Mapping[str, Value], rules: Mapping[int, str]) -> surface.Bloom:
        blocks = {f"rule_{number}": bloom(self._block(number, text)) for number, text in rules.items()}
        kind = type(self.base.__name__, (self.base,), {**declared, **blocks, "__module__": self.base.__module__})
        program: surface.Bloom = kind(**self.options)
        numbers = {f"rule_{number}": number for number in rules}
        runtime = runtime_of(program)
        for some in (runtime.rules, runtime.wiring.rules):
            some[:] = [evolve(one, number=numbers.get(one.block, one.number)) for one in some]
        return program

    def _block(self, number: int, text: str) -> Callable[[surface.Bloom], None]:
        where = f"<rule {number}>"
        linecache.cache[where] = (len(text), None, [f"{line}\n" for line in text.splitlines()], where)
        code = compile(text, where, "exec")

        def block(program: surface.Bloom) -> None:
            exec(code, {**self.names, **self._scope(program), "self": program})  # noqa: S102  # the user's own

        return block

    def _defined(self, statement: ast.stmt, text: str) -> tuple[str, Value]:
        """What a text defines: a name and its value; no name for an import or several."""
        scope = dict(self.names)
        names_before = set(scope)
        name = ""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case ast.Import() | ast.ImportFrom():
                pass
            case _:
                raise IllegalRule(
                    "<line>: neither a declaration (t = table(['a'], ['b'])), nor a rule (t <= u), nor a definition"
                )
        where = f"<{name or 'import'}>"
        linecache.cache[where] = (len(text), None, [f"{line}\n" for line in text.splitlines()], where)
        exec(compile(text.strip(), where, "exec"), scope)  # noqa: S102  # the user's own program
        if not name:
            self.names.update(
                {new: value for new, value in scope.items() if new not in names_before and new != "__builtins__"}
            )
        return name, scope.get(name)

    def _scope(self, program: surface.Bloom) -> dict[str, Value]:
        return {name: getattr(program, name) for name in self._members(program)}

    def _members(self, program: surface.Bloom) -> list[str]:
        """The names of its collections and modules."""
        instance = instance_of(program)
        return [*instance.own, *instance.modules]

    def _is_collection(self, left: ast.expr) -> bool:
        names = list(_names_of(left))
        if names and names[0] == "self":
            names = names[1:]
        return bool(names) and names[0] in self._members(self.newest)


def _insert_again(to: State, state: State) -> None:
    """Insert what had been inserted into the same collection of another program."""
    if (isinstance(to, CellState) and isinstance(state, CellState)) or (
        not isinstance(to, CellState) and not isinstance(state, CellState)
    ):
        to.inserted = state.inserted


def _changes(old: Runtime, new: Runtime) -> dict[str, dict[Value, int]]:
    """What a tick changed that began with what another program had."""
    changes = {}
    for name, state in new.states.items():
        before = old.states[name].contents.rows if name in old.states else {}
        after = state.contents.rows
        gone = {row: -1 for row in before if row not in after}
        changes[name] = {**gone, **{row: 1 for row in after if row not in before}}
    return changes


def _names_of(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Attribute):
        yield from _names_of(node.value)
        yield node.attr
    elif isinstance(node, ast.Name):
        yield node.id


def carry(old: surface.Bloom, new: surface.Bloom) -> None:
    """Let the new program, which has not ticked, begin where the old one is, as if it had always been that one.

    What a tick begins with goes over: the rows of tables, less those that were to be deleted, and what waits for the
    next tick.  What rules derive in a tick is derived by the rules that there are then; so a table keeps what a rule
    gave that is gone.
    """
    before, after = runtime_of(old), runtime_of(new)
    for name, to in after.states.items():
        state = before.states.get(name)
        if state is None:
            continue
        to.discard()
        if isinstance(state, CellState) and isinstance(to, CellState):
            to.inserted += [state.value, *state.taken()]
        elif isinstance(state, TableState) and isinstance(to, TableState):
            state.prepare()  # changes nothing: it says what leaves and what arrives
            to.inserted.update({row: None for row in state.contents.rows if row not in state.leaving})
            to.inserted.update(state.arriving)
            to.restored = {}
            to.dropped = {row: None for row in (*state.dropped, *state.leaving) if row not in to.inserted}
        elif not isinstance(state, (CellState, TableState)) and not isinstance(to, (CellState, TableState)):
            to.inserted.update(state.inserted)
            to.inserted.update(state.next.rows)
            if isinstance(state, SentState) and isinstance(to, SentState):
                to.posted.update(state.posted)
    after.inbox.rows, after.inbox.fresh = dict(before.inbox.rows), before.inbox.fresh
    after.done, after.fired, after.halted, after.address = before.done, before.fired, before.halted, before.address
    after.sending.sent = before.sending.sent
    if before.sending.send != before.deliver_or_collect:
        after.sending.send = before.sending.send
    remember_of(old, new)
