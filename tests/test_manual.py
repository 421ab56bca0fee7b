"""The manual: each program is as it is printed, and each command prints what its page says.

After a change that is meant: ``python -m tests.test_manual`` writes the outputs again; read them before you commit.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from relay.cli import syndicate_main

MANUAL = Path(__file__).parents[1] / "docs" / "manual"
PAGES = sorted(MANUAL.glob("[0-9]*.md"))
_BLOCK = re.compile(r"```(\w+)(?: (\S+))?\n(.*?)```\n", re.DOTALL)


def printed(text: str) -> str:
    """A page with what its commands print, run in an empty directory."""

    def block(match: re.Match[str]) -> str:
        language, name, body = match.groups()
        if language != "console":
            Path(name).write_text(body)
            return match.group()
        lines = []
        for command in re.findall(r"^\$ (.*)$", body, re.MULTILINE):
            program, *words = shlex.split(command)
            assert program == "syndicate"
            done = CliRunner().invoke(syndicate_main, words, prog_name="syndicate")
            lines += [f"$ {command}", *(line.rstrip() for line in done.output.rstrip().splitlines())]
        return "\n".join(["```console", *lines, "```\n"])

    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        before, path = set(sys.modules), list(sys.path)
        try:
            return _BLOCK.sub(block, text)
        finally:
            sys.path[:] = path
            for name in set(sys.modules) - before:
                if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(Path(place).resolve()):
                    del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_pages(page: Path) -> None:
    """What is printed is what happens."""
    assert printed(page.read_text()) == page.read_text()


def test_readers_see_the_names_of_files() -> None:
    """What a site shows of a block leaves out its name: so that stands before it, and no page has one twice."""
    for page in PAGES:
        text = page.read_text()
        names = [name for language, name, _ in _BLOCK.findall(text) if language != "console"]
        assert names == re.findall(r"^`(\S+)`:\n\n```\w+ \1$", text, re.MULTILINE)
        assert len(names) == len(set(names))


def test_all_pages_are_listed() -> None:
    """In the order in which they are read."""
    assert re.findall(r"\((\S+\.md)\)", (MANUAL / "README.md").read_text()) == [page.name for page in PAGES]


if __name__ == "__main__":
    for one in PAGES:
        one.write_text(printed(one.read_text()))
