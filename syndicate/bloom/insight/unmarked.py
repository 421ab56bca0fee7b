"""Unmarked methods: rules that nobody records, since the method in which they stand lacks ``@bloom``.

Python runs a method only if somebody calls it, and ``self.t <= rows`` in one that is called from outside gives rows to
the next tick, as it should.  So what is found here may be right, and is a note, not an error.

Source: ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from types import FunctionType

from syndicate.bloom.block import is_marked
from syndicate.bloom.tick.runtime import Instance, Instantiated, instance_of


def unmarked(program: Instantiated) -> list[tuple[str, str]]:
    """Methods that hold rules and had no part in the program, each with a remedy; or that there are no rules at all."""
    instance = instance_of(program)
    sites = {rule.site for rule in instance.runtime.wiring.rules}
    findings = [
        (f"{cls.__name__}.{name}", f"{text} is no rule here: mark the method @bloom, unless it is to give rows")
        for cls in reversed(type(program).__mro__)
        for name, method in vars(cls).items()
        if isinstance(method, FunctionType) and not any(is_marked(method, mark) for mark in ("bloom", "bootstrap"))
        for text in _rules_of(method, instance, sites)
    ]
    if not findings and not sites and set(instance.own) - {"halt", "localtick", "now"}:
        findings = [(type(program).__name__, "it has collections and no rules: these stand in methods marked @bloom")]
    return findings


def _rules_of(method: FunctionType, instance: Instance, sites: set[str]) -> Iterator[str]:
    """The first statement of a method that looks like a rule, if none of it was recorded."""
    try:
        lines, start = inspect.getsourcelines(method)
        (tree,) = ast.parse(textwrap.dedent("".join(lines))).body
    except (OSError, SyntaxError, ValueError):  # it has no source, or is no statement of its own
        return
    own = method.__code__.co_filename
    if any(f"{own}:{line}" in sites for line in range(start, start + len(lines))):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Expr(
                ast.Compare(left=ast.Attribute(ast.Name("self"), name) as left, ops=[(ast.LtE() | ast.Lt()) as op])
            ) if name in instance.own:
                yield f"{ast.unparse(left)} {'<=' if isinstance(op, ast.LtE) else '<'} ..."
                return
