"""Namespaces: a program as its rules know it, an object whose attributes are collections, lattices and modules.

The class of programs is derived from :class:`Namespace`, so that a function which is read finds out that it has a
program before it (:mod:`~syndicate.bloom.rules.capture`), and a block finds what runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class BlockRunner(Protocol):
    """What runs the blocks of a program."""

    def run(self, cls: type, block: Callable[[], object]) -> None:
        """Run a block of a class, which may run one of an ancestor."""


class Namespace:
    """A program, or a module of one."""

    _blocks: BlockRunner


def run_block(program: Namespace, cls: type, block: Callable[[], object]) -> None:
    """Run a block of a program, which a class of its ancestors has."""
    program._blocks.run(cls, block)
