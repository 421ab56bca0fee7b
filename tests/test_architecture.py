"""The plan of the house, held: what a module may import, its length, what `import syndicate` loads."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]
LONGEST = 700

# From the top down: a room uses its own modules and the rooms above it.  A name stands for a module, or for a
# package with all its modules.  "syndicate" and "relay" themselves are the two faces (`__init__.py`), which
# rooms below may use and rooms above may not.
PLAN = """
    syndicate.errors syndicate.log syndicate.collector syndicate.graph syndicate.values syndicate.index
    syndicate.actors syndicate.hosting
    syndicate
    syndicate.storage syndicate.flow syndicate.lattice syndicate.plan syndicate.explain
    syndicate.bloom syndicate.dedalus
    syndicate.views syndicate.spark syndicate.testing

    relay.loading relay.origin relay.protocol relay.keep relay.capabilities relay.transport relay.session relay.client
    relay.serve relay.nested
    relay
    relay.server relay.tools relay.demo relay.cli
"""
ROOMS = PLAN.split()
FLOOR = {room: floor for floor, room in enumerate(ROOMS)}


def modules() -> dict[str, Path]:
    """Every module of the two packages, by its dotted name."""
    found = {}
    for package in ("syndicate", "relay"):
        for path in sorted((HOUSE / package).rglob("*.py")):
            parts = path.relative_to(HOUSE).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()
each_module = pytest.mark.parametrize("name", MODULES)


def room_of(name: str) -> str:
    """The room that the module `name` belongs to: `syndicate.flow` for `syndicate.flow.operators.join`."""
    room = ".".join(name.split(".")[:2])
    assert room in FLOOR, f"{room} is new: put it into PLAN in {Path(__file__).name}, below all rooms that it uses"
    return room


def _imports(name: str, path: Path) -> Iterator[tuple[str, int]]:
    """The modules of ours that `name` imports, in functions too, but not for type checking; with lines."""
    pending: list[ast.AST] = [ast.parse(path.read_text(), path)]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            pending += node.orelse
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            source = ".".join(filter(None, (above, node.module)))
            for alias in node.names:
                wanted = f"{source}.{alias.name}"
                if wanted in MODULES or source in MODULES:
                    yield wanted if wanted in MODULES else source, node.lineno
        else:
            pending += ast.iter_child_nodes(node)


@cache
def imports(name: str, path: Path) -> list[tuple[str, int]]:
    """Those of a module, read once."""
    return list(_imports(name, path))


@each_module
def test_docstring_and_length(name: str) -> None:
    """Each module says what it is, and is short enough to be read in one go."""
    text = MODULES[name].read_text()
    assert ast.get_docstring(ast.parse(text)), f"{name} has no docstring: say what it is, and why it exists"
    lines = text.count("\n")
    assert lines <= LONGEST, f"{name} has {lines} lines, more than {LONGEST}: it is two nouns, split it"


@each_module
def test_floors(name: str) -> None:
    """A module imports from its own room and from the rooms above, wherever in the file the import stands."""
    room = room_of(name)
    for target, line in imports(name, MODULES[name]):
        assert FLOOR[room_of(target)] <= FLOOR[room], (
            f"{MODULES[name].relative_to(HOUSE)}:{line} imports {target}, below {room} in PLAN"
        )


def test_core_knows_no_relay() -> None:
    """Nothing in `syndicate` imports `relay`, whatever the order of the rooms says."""
    core = {name: path for name, path in MODULES.items() if name.startswith("syndicate")}
    assert not [name for name, path in core.items() for target, _ in imports(name, path) if target.startswith("relay")]


def test_no_import_cycle() -> None:
    """Within a room, too, the imports have an order."""
    graph = {name: {target for target, _ in imports(name, path)} - {name} for name, path in MODULES.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail("import cycle: " + " <- ".join(error.args[1]))


@pytest.mark.parametrize("package", [name for name, path in MODULES.items() if path.name == "__init__.py"])
def test_packages_have_an_order(package: str) -> None:
    """Within a package, the packages in it and its modules have an order, too: none is entered and left in a circle."""
    depth = package.count(".") + 2
    graph: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        if name.startswith(f"{package}."):
            part = ".".join(name.split(".")[:depth])
            used = {target for target, _ in imports(name, path) if target.startswith(f"{package}.")}
            graph.setdefault(part, set()).update({".".join(one.split(".")[:depth]) for one in used} - {part})
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail("packages in a circle: " + " <- ".join(error.args[1]))


@pytest.mark.parametrize("package", ["syndicate", "syndicate.spark", "relay"])
def test_import_is_light(package: str) -> None:
    """Importing a package loads no data library and starts no JVM."""
    program = f"""
import sys
started = []
def hook(event, args):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.exec") and "java" in str(args[0]):
        started.append(args)
sys.addaudithook(hook)
import {package}
print(sorted({{"pyspark", "py4j", "numpy", "pandas", "pyarrow"}} & set(sys.modules)), started)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"


@pytest.mark.parametrize("package", ["syndicate", "relay"])
def test_no_two_thresholds_share_a_name(package: str) -> None:
    """Which of several numbers is meant must not hang on the module that one reads; versions of formats apart."""
    homes: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        if not name.startswith(package):
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and is_number(node.value):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name) and target.id[0].isupper():
                        homes.setdefault(target.id, []).append(name)
    assert {name: found for name, found in homes.items() if len(found) > 1 and name not in ("VERSION", "FORMAT")} == {}


def is_number(value: ast.expr | None) -> bool:
    """Whether an expression is made of numbers alone."""
    return value is not None and all(
        isinstance(node, (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop))
        or (isinstance(node, ast.Constant) and type(node.value) in (int, float))
        for node in ast.walk(value)
    )
