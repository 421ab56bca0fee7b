r"""The REPL without a terminal: a line in, lines out.

>>> lines = []; session = Session(Workbench(), lines.append)
>>> for line in ('link = table(["from", "to"])', "reach = table(['a', 'b'])", "reach <= link",
...              "/insert link (1, 2)", "/t", "/dump reach", "/lsr", "reach <= lnk", "/why reach (1, 2)", "/rmrule 1",
...              "/frob"):
...     _ = session.feed(line)
>>> print("\n".join(lines))  # doctest: +ELLIPSIS
rule 1: reach <= link
tick 0: link +1, reach +1
(a=1, b=2)
1: reach <= link
error: <rule 2>:1: there is no lnk (did you mean 'link'?): declare it first
reach(1, 2): rule 1 (<rule 1>:1)
  link(1, 2): from outside, in tick 0
error: there is no command /frob: /help says which there are

A line is a command, if it begins with ``/``; a declaration, rule or definition, as in the body of a program; or else an
expression, whose value is shown.  What goes wrong is one line, and the session goes on.

Source: Bud (``rebl``); ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from typing import Final

from syndicate.bloom.collection import Collection
from syndicate.bloom.declaration import Kind, Row
from syndicate.bloom.insight.plot import FORMS, plot
from syndicate.bloom.insight.why import ticks
from syndicate.bloom.repl.workbench import BREAKPOINT, Workbench
from syndicate.bloom.rules.symbols import kind_of
from syndicate.bloom.tick.runtime import runtime_of
from syndicate.errors import BloomDeclaration, IllegalRule, RowAbsent, SyndicateError
from syndicate.explain.derivation import said
from syndicate.flow.comparison import natural_order
from syndicate.plan.algebra import meant
from syndicate.values.value import Value

Write = Callable[[str], None]

HELP: Final = f"""\
Declarations and rules are as in a program's body:
  link = table(["from", "to"])                 path = table(["from", "to"])
  path <= link                                 path <+ link   path <- link   chan <~ path
  path <= (link * path).pairs(("to", "from"), lambda l, p: (l.from_, p.to))
Other lines are Python, with the collections as they are: sorted(path), len(link), link.insert([(1, 2)])
Commands, which may be cut short:
  /tick [n]              one tick, or n
  /run [n]               ticks until nothing waits, {BREAKPOINT} has a row, or Ctrl-C; at most n
  /stop                  ends a run (so does Ctrl-C)
  /insert c row ...      rows for the next tick: /insert link (1, 2) (2, 3)
  /delete c row ...      likewise, to be deleted
  /discard               forgets what waits for the next tick
  /dump [c]              the rows of a collection, or of all
  /lscollections         the collections
  /lsrules               the rules with their numbers
  /rmrule n              removes a rule; what a table holds stays
  /why c row             why a row is there, or what is missing
  /calm                  which outputs depend on order, and why
  /plot [form]           the dataflow, as {", ".join(FORMS)}
  /help /quit"""


_ASKED: Final = re.compile(r"^\S+[/\\]relay[/\\]cli[/\\]bloom[/\\]\w+\.py:\d+: ")
"""The place of a mistake in a command such as /dump: the terminal's own file, which tells nobody anything."""


class Session:
    """A workbench that is talked to."""

    def __init__(self, bench: Workbench, write: Write, fail: Write | None = None) -> None:
        """*write* takes lines; *fail*, if given, the errors, without the word."""
        self.bench, self.write = bench, write
        self.fail: Write = fail or (lambda text: write(f"error: {text}"))
        self.failed = 0
        self.running = self.interrupted = False
        self.commands: dict[str, Callable[[str], bool | None]] = {
            "calm": self._calm,
            "delete": self._delete,
            "discard": self._discard,
            "dump": self._dump,
            "help": self._help,
            "insert": self._insert,
            "lscollections": self._lscollections,
            "lsrules": self._lsrules,
            "plot": self._plot,
            "quit": self._quit,
            "rmrule": self._rmrule,
            "run": self._run,
            "stop": self._stop,
            "tick": self._tick,
            "why": self._why,
        }

    def feed(self, line: str) -> bool:
        """Do what a line says; whether to go on."""
        try:
            return self._do(line.strip())
        except RecursionError:
            self._failed("that is nested too deeply")
        except SyntaxError as error:
            self._failed(f"this is no Python: {error.msg}")
        except SyndicateError as error:
            self._failed(str(error))
        except NameError as error:
            self._failed(self._unknown(str(error.name)))
        except Exception as error:  # the user's own
            self._failed(f"{type(error).__name__}: {error}")
        return True

    def _unknown(self, name: str) -> str:
        if name in self._names():
            return f"{name} stands on the right of a rule only: write COLLECTION <= {name}, since = is for declarations"
        return f"there is no {name}{meant(name, self._names())}: declare it first"

    def interrupt(self) -> None:
        """End a run after the tick that is under way."""
        self.interrupted = True

    def words(self) -> list[str]:
        """What a line may begin with, and the names within."""
        program = self.bench.newest
        return [*(f"/{name}" for name in self.commands), *(one.tabname for one in program.collections())]

    def _names(self) -> list[str]:
        return [*(one.tabname for one in self.bench.newest.collections()), *self.bench.names]

    def _failed(self, text: str) -> None:
        self.failed += 1
        self.fail(_ASKED.sub("", " ".join(text.split("\n"))))

    def _do(self, line: str) -> bool:
        if not line or line.startswith("#"):
            return True
        if line.startswith("/"):
            name, _, rest = line[1:].partition(" ")
            return self._command(name)(rest.strip()) is not False
        body = ast.parse(line, "<line>").body
        for statement in body:
            text = ast.get_source_segment(line, statement) or line
            adds = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.ClassDef))
            if adds or isinstance(statement, (ast.Import, ast.ImportFrom)) or self.bench.is_rule(statement):
                added = self.bench.add(text)
                if added.what == "rule":
                    self.write(f"rule {added.name}: {text}")
            else:
                value = self.bench.evaluate(text)
                if value is not None:
                    self.write(repr(value))
        return True

    def _command(self, name: str) -> Callable[[str], bool | None]:
        if name in self.commands:
            return self.commands[name]
        meant = [one for one in self.commands if name and one.startswith(name)]
        if not meant:
            raise IllegalRule(f"there is no command /{name}: /help says which there are")
        if len(meant) > 1:
            raise IllegalRule(f"/{name} may be {' or '.join(f'/{one}' for one in meant)}")
        return self.commands[meant[0]]

    # --------------------------------------------------------------------------------------------------- time

    def _tick(self, rest: str) -> None:
        for _ in range(_number(rest, "/tick takes a number of ticks", 1)):
            self._one_tick()

    def _one_tick(self) -> None:
        self.bench.tick()
        program = self.bench.view
        changed = []
        for name, delta in runtime_of(program).engine.changes.items():
            more, less = sum(n > 0 for n in delta.values()), sum(n < 0 for n in delta.values())
            if more or less:
                changed.append(name + (f" +{more}" if more else "") + (f" -{less}" if less else ""))
        self.write(f"tick {program.budtime - 1}: {', '.join(changed) or 'no change'}")
        for address, channel, row in program.sent:
            self.write(f"sent to {address!r}: {said(channel, row)}")
        program.sent.clear()

    def _run(self, rest: str) -> None:
        most = _number(rest, "/run takes the number of ticks at most", 0)
        self.running, self.interrupted = True, False
        try:
            self.write(self._ran(most))
        finally:
            self.running = self.bench.view.halted = False

    def _ran(self, most: int) -> str:
        done = 0
        while self.bench.waits():
            if most and done == most:
                return f"{ticks(done)}: more would do something"
            self._one_tick()
            done += 1
            if self.bench.stopped():
                return f"{ticks(done)}: {'halted' if self.bench.view.halted else f'{BREAKPOINT} has rows'}"
            if self.interrupted:
                return f"{ticks(done)}: interrupted"
        return f"{ticks(done)}: nothing waits"

    def _stop(self, _: str) -> None:
        self.interrupt()
        self.write("nothing is running")

    # --------------------------------------------------------------------------------------------------- rows

    def _insert(self, rest: str) -> None:
        self._edit(rest, "insert")

    def _delete(self, rest: str) -> None:
        self._edit(rest, "delete")

    def _edit(self, rest: str, what: str) -> None:
        one, rows = self._collection(rest, f"/{what} takes a collection and rows: /{what} link (1, 2) (2, 3)")
        if not rows:
            raise IllegalRule(f"which rows? As in /{what} {one.tabname} (1, 2) (2, 3)")
        rows_ = _rows(rows)
        odd = next((row for row in rows_ if kind_of(one) is not Kind.LATTICE and len(row) != len(one.cols)), None)
        if odd is not None:
            raise IllegalRule(
                f"{odd!r} has {_counted(len(odd), 'value')}, and {one.tabname} has "
                f"{_counted(len(one.cols), 'column')}: /{what} {one.tabname} ({', '.join(one.cols)})"
            )
        getattr(one, what)(rows_)

    def _discard(self, _: str) -> None:
        for program in (self.bench.view, self.bench.newest):
            program.discard()

    def _dump(self, rest: str) -> None:
        if rest:
            one, _ = self._collection(rest, "")
            for row in in_order(one):
                self.write(repr(row))
            return
        for one in self.bench.view.collections():
            if one.cols and len(one):
                self.write(f"{one.tabname}:")
                for row in in_order(one):
                    self.write(f"  {row!r}")

    def _why(self, rest: str) -> None:
        one, row = self._collection(rest, "/why takes a collection and a row: /why path (1, 2)")
        if not row and kind_of(one) is not Kind.LATTICE:
            raise IllegalRule(f"which row? As in /why {one.tabname} (1, 2)")
        sent = row.startswith("<~")
        asked = _rows(row.removeprefix("<~"))[0] if row else next(iter(one))
        program, name = self.bench.view, f"{one.tabname} <~" if sent else one.tabname
        try:
            self.write(str(program.why(name, asked)))
        except RowAbsent:
            self.write(str(program.why_not(name, asked)))

    def _collection(self, rest: str, usage: str) -> tuple[Collection, str]:
        match = re.match(r"([\w.]+)\s*(.*)$", rest, re.DOTALL)
        if match is None:
            raise IllegalRule(usage)
        name = match[1]
        program = self.bench.view if any(one.tabname == name for one in self.bench.view.collections()) else None
        return (program or self.bench.newest).collection(name), match[2]

    # --------------------------------------------------------------------------------------------------- the program

    def _lscollections(self, _: str) -> None:
        tables = {one.tabname: one for one in self.bench.view.collections()}
        for one in self.bench.newest.collections():
            if one.cols and one.tabname not in ("halt", "localtick", "now"):
                old = tables.get(one.tabname)
                count = len(old) if old is not None and old.cols else 0
                columns = ", ".join(one.cols)
                self.write(f"{one.tabname}({columns}): {kind_of(one).value}, {_counted(count, 'row')}")

    def _lsrules(self, _: str) -> None:
        for rule in self.bench.newest.statements:
            text = self.bench.rules.get(rule.number)
            self.write(f"{rule.number}: {text if text is not None else rule}")

    def _rmrule(self, rest: str) -> None:
        self.bench.remove(_number(rest, "/rmrule takes the number of a rule: /lsrules shows them"))

    def _calm(self, _: str) -> None:
        self.write(str(self.bench.newest.calm()))

    def _plot(self, rest: str) -> None:
        self.write(plot(self.bench.newest, rest or FORMS[0]))

    def _help(self, _: str) -> None:
        self.write(HELP)

    def _quit(self, _: str) -> bool:
        return False


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows in the order of values."""
    return sorted(rows, key=lambda row: natural_order(tuple(row)))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _number(text: str, usage: str, default: int | None = None) -> int:
    if not text and default is not None:
        return default
    if not text.isdecimal():
        raise IllegalRule(f"{usage}, not {text!r}" if text else usage)
    return int(text)


def _rows(text: str) -> list[Value]:
    """Rows as they are written one after the other: ``(1, 2) (2, 3)``, ``"a" "b"``."""
    rows: list[Value] = []
    rest = text.strip()
    while rest:
        end = next((at for at in range(1, len(rest) + 1) if _is_whole(rest, at)), None)
        if end is None:
            raise BloomDeclaration(f"{rest!r} is no row: write tuples of plain values, as in (1, 'a')")
        value = ast.literal_eval(rest[:end])
        rows.append(value if isinstance(value, (tuple, list)) else (value,))
        rest = rest[end:].lstrip(" ,")
    return rows


def _is_whole(text: str, end: int) -> bool:
    """Whether a value ends here, and not later."""
    if end < len(text) and text[end] not in " ,(":
        return False
    try:
        ast.literal_eval(text[:end])
    except (ValueError, SyntaxError, TypeError, MemoryError):
        return False
    return True
