"""The tables of docs/design/conformance, held to the code: each name in them exists, and each test."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "docs" / "design" / "conformance"
HEAD = ["what", "section", "here", "test", "same, or what differs and why"]
QUOTED = re.compile(r"`([^`]+)`")
CELL = re.compile(r"(?<!\\)\|")


def rows() -> Iterator[tuple[str, list[str]]]:
    """Each row of each table, with its place."""
    for path in sorted(TABLES.glob("*.md")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("|") and not line.startswith(("|-", "| what")):
                yield f"{path.name}:{number}", [cell.strip() for cell in CELL.split(line)[1:-1]]


ROWS = list(rows())
each_row = pytest.mark.parametrize("cells", [cells for _, cells in ROWS], ids=[place for place, _ in ROWS])


def resolved(name: str) -> object:
    """What a dotted name stands for: a module of a package, and what it has."""
    parts = name.split(".")
    if parts[0] not in ("syndicate", "relay"):
        parts.insert(0, "syndicate")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            value: Any = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if not module.startswith(str(error.name)):
                raise
            continue
        for part in parts[length:]:
            value = getattr(value, part)
        return value
    raise ModuleNotFoundError(name)


def is_there(name: str) -> bool:
    """Whether a path or a dotted name is one of ours."""
    if "/" in name:
        return (ROOT / name).exists()
    try:
        resolved(name)
    except (ModuleNotFoundError, AttributeError):
        return False
    return True


@functools.cache
def collected(path: Path) -> frozenset[str]:
    """The tests that a file defines, those of classes as ``Class::test``; collected without running it."""
    results = set()
    for node in ast.parse(path.read_text()).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        results |= {prefix + each.name for each in inner if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    return frozenset(name for name in results if name.rpartition("::")[2].startswith("test"))


def cited(cell: str) -> Iterator[tuple[Path, str]]:
    """The tests that a cell names: ``flow/test_x.py::test_y``, and ``::test_z`` of the same file again."""
    file = ""
    for name in QUOTED.findall(cell):
        before, _, test = name.partition("::")
        file = before or file
        under = ROOT / "tests" / "syndicate" / file
        yield (under if under.exists() else ROOT / "tests" / file), test


def test_the_checks_can_fail() -> None:
    """A name that nobody has and a test that nobody wrote are found out."""
    assert is_there("flow.ZSet")
    assert not is_there("flow.ZSet.nothing")
    assert not is_there("flow.nothing")
    assert not is_there("syndicate/nothing.py")
    assert "test_the_checks_can_fail" in collected(Path(__file__))
    assert list(cited("`test_conformance.py::test_a`, `::test_b`")) == [
        (Path(__file__), "test_a"),
        (Path(__file__), "test_b"),
    ]


def test_each_table_is_read() -> None:
    """No table is skipped for its form."""
    for path in TABLES.glob("*.md"):
        heads = [line for line in path.read_text().splitlines() if line.startswith("| what")]
        assert [cell.strip() for line in heads for cell in CELL.split(line)[1:-1]] == HEAD * len(heads), path
        assert path.name == "README.md" or heads, path
    assert ROWS


@each_row
def test_a_row_is_whole(cells: list[str]) -> None:
    """It has five cells, and says something in each."""
    assert len(cells) == len(HEAD)
    assert all(cells)


@each_row
def test_what_is_said_to_be_here_is(cells: list[str]) -> None:
    """Each quoted name is a module, a name of one, or a file; what is not here says so in words."""
    names = QUOTED.findall(cells[2])
    assert [name for name in names if not is_there(name)] == []
    assert names or cells[2].startswith("not here")


@each_row
def test_what_is_said_to_be_tested_is(cells: list[str]) -> None:
    """Each cited test exists; what has none says why."""
    tests = list(cited(cells[3]))
    for path, test in tests:
        assert path.is_file(), path
        assert not test or test in collected(path), f"{path.name} has no {test}"
        assert test or path.suffix != ".py", f"{path.name}: name the test"
    assert tests or cells[3].startswith("untested: ")
