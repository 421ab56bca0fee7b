"""The reference: each public name that it documents is used by an example, and the examples are tested as doctests."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from doctest import DocTestFinder
from pathlib import Path
from types import ModuleType

import pytest

from syndicate.values.record import is_record_class

PAGES = Path(__file__).parent.parent / "docs" / "api"
MODULES = sorted({name for page in PAGES.glob("*.md") for name in re.findall(r"automodule:: (\S+)", page.read_text())})

MAKER = re.compile(r"[Mm]ade by :(?:func|meth|class):`[^`]*?(\w+)(?: <[^>]*>)?`")


def public(module: ModuleType) -> list[str]:
    """The functions and classes that the page of *module* shows, but errors and records: these say what they are."""
    page = next(text for text in map(Path.read_text, PAGES.glob("*.md")) if f"automodule:: {module.__name__}\n" in text)
    options = page.partition(f"automodule:: {module.__name__}\n")[2].partition("```")[0]
    shown = re.search(r":members: (.+)", options)
    hidden = re.search(r":exclude-members: (.+)", options)
    if shown:
        return shown[1].split(", ")
    names = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__
    ]
    return [
        name
        for name in names
        if not name.startswith("_")
        and not (hidden and name in hidden[1].split(", "))
        and (inspect.isfunction(value := getattr(module, name)) or inspect.isclass(value))
        and not (inspect.isclass(value) and (issubclass(value, BaseException) or is_record_class(value)))
    ]


def examples(module: ModuleType) -> Iterator[str]:
    """The lines of all examples of *module*, and of the modules where its public names are written."""
    homes = {module, *(inspect.getmodule(getattr(module, name)) for name in public(module))}
    finder = DocTestFinder()
    for home in homes:
        if home is not None and home.__name__.startswith(("syndicate", "relay")):
            for test in finder.find(home):
                yield from (example.source for example in test.examples)
                # What needs a server or Spark is a block of text; the tutorial has such programs, and they are run.
                yield (test.docstring or "").partition("::\n")[2]


@pytest.mark.parametrize("name", MODULES)
def test_each_public_name_is_in_an_example(name: str) -> None:
    """So who looks a name up sees it in use.  What another one makes, and says so, is shown by that."""
    module = importlib.import_module(name)
    words = set(re.findall(r"\w+", "\n".join(examples(module))))
    lacking = []
    for each in public(module):
        text = getattr(module, each).__doc__ or ""
        maker = MAKER.search(text)
        if each not in words and ">>>" not in text and not (maker and maker[1] in words):
            lacking.append(each)
    assert not lacking
