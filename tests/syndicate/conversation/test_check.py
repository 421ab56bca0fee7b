"""`syndicate check`: the text alone tells what is never heard, never said, and cannot match.

The plugin for mypy is tested by `make check`, which uses it: in `tests/syndicate/actors/test_mistakes.py` handlers that
do not fit have a `type: ignore`, and one that is not needed is an error.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from relay.cli.check import check_main
from syndicate.conversation import check
from syndicate.conversation.shape import ANYTHING, AtomShape, EitherShape, ItemsShape, Shape, both, meets
from syndicate.errors import ProgramNotFound
from syndicate.values.pattern import capture, match
from syndicate.values.value import Record

ROOT = Path(__file__).parents[3]
HEAD = """
from functools import partial
from syndicate import *
from syndicate import (ANY, assert_, capture, dataspace, during, field, on_asserted, on_message, query_set, record,
                       run, send, spawn)
from syndicate.conversation import Protocol, role

@record
class At:
    who: str
    count: int = 0

@record("set-box")
class SetBox:
    value: int
"""


def found(tmp_path: Path, text: str, *more: str) -> list[tuple[str, int]]:
    """The codes of what is reported of a program, with the lines within *text*."""
    files = []
    for number, each in enumerate((text, *more)):
        file = tmp_path / f"program{number}.py"
        file.write_text(HEAD + each)
        files.append(str(file))
    before = HEAD.count("\n")
    return [(each.code, each.line - before) for each in check(files).findings if each.certain]


BOOT = "\nrun(boot)\n"
CASES = {
    "all is well": ("def f(ds):\n    assert_(ds, At('a', 1))\n    during(ds, At(capture(), ANY))(print)", []),
    "never observed": ("def f(ds):\n    assert_(ds, At('a', 1))", [("never-observed", 2)]),
    "never asserted": ("def f(ds):\n    query_set(ds, At(capture(), ANY))", [("never-sent", 2)]),
    "asserted, and awaited as a message": (
        "def f(ds):\n    assert_(ds, At('a', 1))\n    on_message(ds, At(capture(), ANY))(print)",
        [("never-observed", 2), ("never-sent", 3)],
    ),
    "literals differ": (
        "def f(ds):\n    assert_(ds, At('a', 1))\n    during(ds, At('b', ANY))(print)",
        [("never-observed", 2), ("never-sent", 3)],
    ),
    "1 is not True": (
        "def f(ds):\n    send(ds, ['x', 1])\n    on_message(ds, ['x', True])(print)",
        [("never-observed", 2), ("never-sent", 3)],
    ),
    "an unknown value may be anything": (
        "def f(ds, x):\n    send(ds, x)\n    on_message(ds, At(capture(), ANY))(print)",
        [],
    ),
    "a parameter is what callers hand over": (
        (
            "def f(ds, x):\n    send(ds, x)\n    on_message(ds, At(capture(), ANY))(print)\n"
            "def g(ds):\n    f(ds, SetBox(1))"
        ),
        [("never-observed", 2), ("never-sent", 3)],
    ),
    "a class of a capture": (
        "def f(ds):\n    assert_(ds, At('a', 1))\n    during(ds, At(capture(int), ANY))(print)",
        [("never-observed", 2), ("never-sent", 3), ("cannot-match", 3)],
    ),
    "a handler's annotation": (
        "def f(ds):\n    assert_(ds, At('a', 1))\n    @during(ds, At(capture(), ANY))\n    def g(who: int): ...",
        [("cannot-match", 4)],
    ),
    "a handler's arguments": (
        "def f(ds):\n    assert_(ds, At('a', 1))\n    @during(ds, At(capture(), ANY))\n    def g(a, b): ...",
        [("captures", 3)],
    ),
    "what a handler is given": (
        (
            "def f(ds):\n    assert_(ds, At('a', 1))\n    @during(ds, At(capture(), ANY))\n    def g(who):\n"
            "        send(ds, [who])\n    on_message(ds, [capture(int)])(print)"
        ),
        [("never-observed", 5), ("never-sent", 6)],
    ),
    "computed, by partial, through a field": (
        (
            "def f(ds):\n    n = field(0)\n    assert_(ds, lambda: At('a', n.value) if n.value else None)\n"
            "    after(1, partial(send, ds, SetBox(n.value)))\n    during(ds, At(ANY, capture(int)))(print)\n"
            "    on_message(ds, SetBox(capture()))(print)"
        ),
        [],
    ),
    "an enumeration": (
        (
            "import enum\n@record\nclass C(enum.Enum):\n    RED = 1\ndef f(ds):\n    send(ds, [C.RED])\n"
            "    on_message(ds, [capture(C)])(print)"
        ),
        [],
    ),
    "a role": (
        (
            "class P(Protocol):\n    a = role(asserts=[At])\n    b = role(observes=[At])\n"
            "@P.a\ndef f(ds):\n    assert_(ds, At('a', 1))\n    send(ds, SetBox(1))"
        ),
        [("never-observed", 7), ("not-in-role", 7)],
    ),
    "a role that is not done": (
        (
            "class P(Protocol):\n    a = role(asserts=[At], hears=[SetBox])\n"
            "    b = role(observes=[At], sends=[SetBox])\n"
            "@P.a\ndef f(ds):\n    assert_(ds, At('a', 1))"
        ),
        [("role-undone", 2)],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_findings(tmp_path: Path, case: str) -> None:
    """Each code where it belongs, and nowhere else."""
    text, wanted = CASES[case]
    assert found(tmp_path, text) == wanted


def test_modules_are_one_conversation(tmp_path: Path) -> None:
    """What one says another hears; and what a module imports from beside it takes part."""
    says, hears = "def f(ds):\n    send(ds, SetBox(1))", "def g(ds):\n    on_message(ds, SetBox(capture()))(print)"
    assert found(tmp_path, says) == [("never-observed", 2)]
    assert found(tmp_path, says, hears) == []
    assert found(tmp_path, says + "\nimport program1", "x = 1") == [("never-observed", 2)]
    (tmp_path / "program1.py").write_text(HEAD + hears)
    assert found(tmp_path, says + "\nimport program1") == []


def test_stars(tmp_path: Path) -> None:
    """``import *`` brings the names of this library, and those of a module that is read."""
    (tmp_path / "records.py").write_text("from syndicate import *\n@record\nclass At:\n    who: str\n")
    program = tmp_path / "shop.py"
    for class_of, wanted in (("str", []), ("int", ["never-observed", "never-sent", "cannot-match"])):
        text = f"def f(ds):\n    send(ds, At('a'))\n    on_message(ds, At(capture({class_of})))(print)\n"
        program.write_text("from syndicate import *\nfrom records import *\n" + text)
        assert [each.code for each in check([str(program)]).findings] == wanted


def test_examples_are_in_order() -> None:
    """Nothing that is certain is reported of programs that work: all examples."""
    for file in sorted((ROOT / "examples").rglob("*.py")):
        assert [str(each) for each in check([str(file)]).findings if each.certain] == []


VALUES = [1, True, 1.0, "a", "b", [1, 2], [1], ["a", [1]], Record("x", [1]), Record("x", ["a"]), Record("y", [])]


def shape_of(value: object, is_open: bool) -> Shape:
    """That of a value, or of the pattern that it is."""
    if isinstance(value, Record):
        label = str(value.label)
        return ItemsShape("rec", label, tuple(enumerate(shape_of(each, is_open) for each in value.fields)), is_open)
    if isinstance(value, list):
        return ItemsShape("arr", "", tuple(enumerate(shape_of(each, is_open) for each in value)), is_open)
    kinds = {int: "SignedInteger", bool: "Boolean", float: "Double", str: "String"}
    return AtomShape(kinds[type(value)], repr(value))


def test_shapes_agree_with_the_matcher() -> None:
    """Values as patterns of each other: shapes meet just where the naive matcher matches."""
    for value in VALUES:
        for pattern in VALUES:
            met = meets(shape_of(value, False), shape_of(pattern, True))
            assert met == (match(pattern, value) is not None), (value, pattern)
        assert meets(shape_of(value, False), ANYTHING)
        assert not meets(shape_of(value, False), EitherShape(()))
    assert match([capture(int)], [1]) is not None
    assert both(ANYTHING, AtomShape("String")) == AtomShape("String")


def test_command(tmp_path: Path) -> None:
    """The command tells file and line, and fails; what is not there it names."""
    file = tmp_path / "shop.py"
    file.write_text(HEAD + "def f(ds):\n    send(ds, SetBox(1))")
    done = CliRunner().invoke(check_main, [str(file)])
    line = HEAD.count("\n") + 2
    assert done.exit_code == 1
    assert f"shop.py:{line}: <set-box 1> is sent and never observed [never-observed]" in done.output
    assert json.loads(CliRunner().invoke(check_main, [str(file), "--json"]).output)["findings"][0]["line"] == line
    assert CliRunner().invoke(check_main, [str(file), "--outside", "set-box"]).exit_code == 0
    with pytest.raises(ProgramNotFound, match=r"there is no file nowhere\.py"):
        check(["nowhere.py"])
