"""What the pages say that a user reads when something goes wrong is what the code says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/howto/spark.md").read_text()


def said() -> list[str]:
    """All texts of the code; what is put into them when it runs is a zero byte."""
    return [text for folder in ("syndicate/spark", "relay/spark") for text in texts(ROOT / folder)]


def texts(folder: Path) -> Iterator[str]:
    """Those of a folder."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def sentences(heading: str, column: int) -> list[str]:
    """The sentences that a table under a heading quotes in a column."""
    table = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    quoted = [quote for row in rows[1:] for quote in re.findall(r"`([^`]+)`", row[column])]
    return [quote for quote in quoted if re.search(r"[a-z] [a-z]", quote)]


def covered(words: list[str], there: list[str]) -> bool:
    """Whether texts of two words or more, one after the other, make up these words."""
    if not words:
        return True
    longest = next((n for n in range(len(words), 1, -1) if any(" ".join(words[:n]) in text for text in there)), 0)
    return longest > 0 and covered(words[longest:], there)


@pytest.mark.parametrize(("heading", "column"), [("What goes wrong with tables", 1), ("When it does not work", 0)])
def test_each_sentence_is_said(heading: str, column: int) -> None:
    """Each quoted sentence is in the code, but for the names, numbers and dots in it.

    (That a journal is in use is said in single words: test_journal.py has it.  That a module is missing is Python's.)
    """
    there = said()
    elsewhere = ("the journal .. is in use by", "No module named")
    quoted = [quote for quote in sentences(heading, column) if not quote.startswith(elsewhere)]
    assert len(quoted) >= 6
    for quote in quoted:
        for part in re.split(r"\.\.|\bSensor\b|'x'|int64", quote):
            words = part.strip(" :,;'").split()
            assert len(words) == 1 or covered(words, there), part


def test_another_sentence_is_not() -> None:
    """What nobody says is found out."""
    assert not covered(["the", "column", "has", "gone", "to", "sea"], said())
