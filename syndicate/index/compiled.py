"""Tables as Python functions: interpreted while they are cold, generated once they are hot.

What a table does with a value is: check some places, read its constants, find the handlers under them, read what they
capture, and count or notify.  The interpreter (:mod:`~syndicate.index.matching`) walks paths for that.  A generated set
of functions reads ``v[2][1]`` behind one length check and does the rest inline; it is three to four times faster.
Generating costs about half a millisecond, so it waits until a table has been asked ``HOT`` times; tables with the same
places, checks and captures share one generated *factory*.

A table is only asked about values that passed its node's shape, so that the compounds along its paths are known to be
there; their lengths are not, because arity is "at least".

Source: Garnock-Jones 2018, "Potential future optimizations", leaves this open; ``docs/design/skeleton.md``, "What the
paper leaves open".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, cast

from syndicate.index.event import ASSERT, MESSAGE, RETRACT
from syndicate.index.matching import is_of_class, values_of
from syndicate.index.path import MISSING, Path, Step, child
from syndicate.index.skeleton import Check
from syndicate.native import kernel

HOT: Final = 128


# Literal numbers for the kinds of events, so that the generated code looks up no global names for them.
_TEMPLATE = (
    """
def factory(table, Notice, tell):
 values, get = table.values, table.handlers.get
 def send(v):
{reach}
  handler = get({key})
  if handler is not None:
{capture}
   tell(MESSAGE, handler, c, w, None)
 def add(v):
{reach}
  k = {key}
{keep}
  handler = get(k)
  if handler is not None:
{capture}
   notices = handler.notices
   if notices is None: notices = handler.notices = {{}}
   t = notices.get(c)
   if t is None:
    notices[c] = t = Notice(c, w)
    tell(ASSERT, handler, c, w, t)
   else: t.count += 1
 def remove(v):
{reach}
  k = {key}
{drop}
  handler = get(k)
  if handler is not None:
{capture}
   notices = handler.notices
   t = notices[c]
   if t.count == 1:
    del notices[c]
    tell(RETRACT, handler, c, w, t)
   else: t.count -= 1
 def fill(forms):
  for v in forms:
{reach_each}
   k = {key}
{keep_each}
 def recall(notices, forms):
  for v in forms:
{reach_each}
{capture_each}
   t = notices.get(c)
   if t is None: notices[c] = Notice(c, w)
   else: t.count += 1
 return add, remove, send, fill, recall
""".replace("ASSERT", str(ASSERT))
    .replace("RETRACT", str(RETRACT))
    .replace("MESSAGE", str(MESSAGE))
)

_KEEP = [
    "if values is not None:",
    " there = values.get(k)",
    " if there is None: values[k] = v",
    " elif type(there) is dict: there[v] = None",
    " else: values[k] = {there: None, v: None}",
]

_DROP = [
    "if values is not None:",
    " there = values[k]",
    " if type(there) is dict and len(there) > 1: del there[v]",
    " else: del values[k]",
]


@kernel
@lru_cache(maxsize=1024)
def factory(
    places: tuple[Path, ...], checks: tuple[Check, ...], captures: tuple[Path, ...]
) -> Callable[..., tuple[Callable[..., None], ...]]:
    """A function that makes a hot table's ``add``, ``remove``, ``send``, ``fill`` and ``recall``.

    See :class:`~syndicate.index.trie.ConstantTable`, whose own methods are their specification.
    """
    writer = _Writer()
    reach = writer.reach((*places, *(path for path, _ in checks)))
    reach += [f"if not is_of_class({writer.place(path)}, {kind!r}): SKIP" for path, kind in checks if kind is not None]
    forms = [writer.place(path) for path in places]
    key = forms[0] if len(forms) == 1 else _tuple(forms)
    capture = writer.reach(captures)
    taken = [writer.place(path) for path in captures]
    capture.append(f"c = {_tuple(taken)}")
    thaws = " or ".join(f"type({form}) is tuple" for form in taken)  # else the captures are their own values
    delivery = [*capture, f"w = c if not ({thaws}) else None if handler.raw else values_of(c)" if thaws else "w = c"]
    capture.append(f"w = None if {thaws} else c" if thaws else "w = c")
    keep, drop = (_KEEP, _DROP) if places else ([], [])  # a table without places keeps nothing: see Table
    source = _TEMPLATE.format(
        key=key,
        reach=_indent(2, reach, "return"),
        reach_each=_indent(3, reach, "continue"),
        capture=_indent(3, delivery, "return"),
        capture_each=_indent(3, capture, "continue"),
        keep=_indent(2, keep),
        keep_each=_indent(3, keep),
        drop=_indent(2, drop),
    )
    exec(compile(source, "<table>", "exec"), writer.scope)
    return cast("Callable[..., tuple[Callable[..., None], ...]]", writer.scope["factory"])


def _indent(depth: int, lines: list[str], skip: str = "") -> str:
    return "\n".join(" " * depth + line.replace("SKIP", skip) for line in lines or ["pass"])


def _tuple(items: list[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


class _Writer:
    """Writes the statements that lead to places: one length check for each compound, a variable for each that is read
    twice.
    """

    def __init__(self) -> None:
        self.scope: dict[str, object] = {
            "MISSING": MISSING,
            "child": child,
            "is_of_class": is_of_class,
            "values_of": values_of,
        }
        self.names: dict[Path, str] = {(): "v"}
        self.lengths: dict[Path, int] = {}
        self.lines: list[str] = []

    def take(self) -> list[str]:
        """The statements written since the last call."""
        lines, self.lines = self.lines, []
        return lines

    def reach(self, paths: tuple[Path, ...]) -> list[str]:
        """Statements that SKIP (return, continue) unless all *paths* exist."""
        longest: dict[Path, int] = {}
        for path in paths:
            for i, step in enumerate(path):
                if type(step) is int:
                    longest[path[:i]] = max(step + 2, longest.get(path[:i], 0))
        for parent in sorted(longest, key=len):
            if longest[parent] > self.lengths.get(parent, 0):
                self.lengths[parent] = longest[parent]
                self.lines.append(f"if len({self.compound(parent)}) < {longest[parent]}: SKIP")
        for path in paths:
            if path and type(path[-1]) is not int:
                self.place(path)
        return self.take()

    def compound(self, path: Path) -> str:
        """A variable that holds the compound at *path*."""
        if path not in self.names:
            form = self.place(path)
            if path not in self.names:
                self.names[path] = f"x{len(self.names)}"
                self.lines.append(f"{self.names[path]} = {form}")
        return self.names[path]

    def place(self, path: Path) -> str:
        """An expression for what is at *path*."""
        if path in self.names:
            return self.names[path]
        compound, step = self.compound(path[:-1]), path[-1]
        if type(step) is int:
            return f"{compound}[{step + 1}]"
        return self.entry(compound, path, step)

    def entry(self, compound: str, path: Path, step: Step) -> str:
        constant, name = f"k{len(self.scope)}", f"x{len(self.names)}"
        self.scope[constant] = step
        self.names[path] = name
        self.lines += [f"{name} = child({compound}, {constant})", f"if {name} is MISSING: SKIP"]
        return name
