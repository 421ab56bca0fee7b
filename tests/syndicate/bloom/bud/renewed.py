"""Ticks beside those of a program that has just been made: what earlier ticks computed may make no difference."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from syndicate.bloom import Bloom
from syndicate.bloom.repl.workbench import carry
from syndicate.bloom.rules.term import LatticeTerm
from syndicate.bloom.tick.runtime import runtime_of


def contents(program: Bloom) -> dict[str, Any]:
    """What each collection holds, and the value of each lattice."""
    all_of_it: Iterable[Any] = program.collections()
    return {one.tabname: one.value if isinstance(one, LatticeTerm) else set(one) for one in all_of_it}


def tick(program: Bloom, **inputs: Any) -> None:
    """Give rows to collections and tick.

    A new program of the class begins where this one is, applies methods of lattices to whole values, and must come to
    the same rows, the same values and the same messages.
    """
    for name, rows in inputs.items():
        one: Any = program.collection(name)
        one <= rows  # noqa: B015  # gives rows
    fresh = type(program)(address=program.address, clock=lambda: runtime_of(program).time or 0.0, semi_naive=False)
    carry(program, fresh)
    fresh.sent, before = [], len(program.sent)
    try:
        program.tick()
    except Exception as error:
        try:
            fresh.tick()
        except type(error):
            raise error from None
        raise AssertionError(f"only the program that had ticked before fails: {error}") from error
    fresh.tick()
    assert contents(fresh) == contents(program)
    assert set(fresh.sent) == set(program.sent[before:])
