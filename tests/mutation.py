"""What the tests notice: mutants of the code, of which they are to kill nine in ten.

    python -m tests.mutation [PART ...] [--sample N] [--seed S]

The mutants are cosmic-ray's, which has an environment of its own (`make mutation` makes it); the tests run with the
project's, in a copy of the checkout, one mutant at a time.  `docs/design/testing.md` says which mutants count and what
the figures were.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PYTHON: Final = ROOT / ".venv/bin/python"
PYTEST: Final = (PYTHON, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=mutation")
EXAMPLES: Final = 25


@dataclass(frozen=True)
class Part:
    """Modules, and the tests that judge them beside their own examples, the quickest first."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]

    def paths(self, root: Path) -> list[Path]:
        """The modules' files in *root*."""
        return sorted(path for pattern in self.modules for path in root.glob(pattern))

    def judges(self, root: Path) -> list[str]:
        """What pytest is given."""
        return ["--doctest-modules", *[str(path.relative_to(root)) for path in self.paths(root)], *self.tests]


PARTS: Final = {
    "index": Part(
        ("syndicate/index/*.py",),
        (
            "tests/syndicate/values/test_pattern.py",
            "tests/syndicate/actors/test_dataspace.py",
            "tests/syndicate/index/test_index.py",
            "--deselect=tests/syndicate/index/test_index.py::test_ever_new_labels_and_shapes_leave_nothing",
        ),
    ),
    "turn": Part(
        (
            "syndicate/actors/turn.py",
            "syndicate/actors/actor.py",
            "syndicate/actors/facet.py",
            "syndicate/actors/dataflow.py",
            "syndicate/actors/arguments.py",
            "syndicate/actors/field.py",
        ),
        (
            "tests/syndicate/actors/test_facet.py",
            "tests/syndicate/actors/test_field.py",
            "tests/syndicate/actors/test_block.py",
            "tests/syndicate/actors/test_actor.py",
            "tests/syndicate/actors/test_failure.py",
            "tests/syndicate/actors/test_dataspace.py",
            "tests/syndicate/actors/test_mistakes.py",
            "tests/syndicate/actors/test_during.py",
            "tests/syndicate/actors/test_supervise.py",
            "tests/syndicate/actors/test_reference.py",
            "--deselect=tests/syndicate/actors/test_facet.py::test_facets_may_be_nested_deeper_than_pythons_stack",
        ),
    ),
    "membrane": Part(
        ("relay/session/membrane.py",),
        ("tests/relay/session/test_session.py", "tests/relay/session/test_turns.py"),
    ),
    "session": Part(
        ("relay/session/session.py",),
        (
            "tests/relay/session/test_session.py",
            "tests/relay/session/test_turns.py",
            "tests/relay/session/test_session_flow.py",
            "tests/relay/session/test_charges.py",
            "tests/relay/session/test_untrusted_peers.py",
        ),
    ),
    "circuit": Part(
        ("syndicate/flow/zset.py", "syndicate/flow/operators/*.py"),
        (
            "tests/syndicate/flow/test_zset.py",
            "tests/syndicate/flow/test_incremental.py",
            "tests/syndicate/flow/test_aggregates.py",
            "tests/syndicate/flow/test_examples.py",
            "tests/syndicate/flow/test_trace.py",
            "tests/syndicate/flow/test_raising.py",
            "tests/syndicate/flow/test_engine.py",
            "tests/syndicate/flow/test_oracle.py",
        ),
    ),
    "ticking": Part(
        ("syndicate/bloom/tick/ticking.py",),
        (
            "tests/syndicate/bloom/test_engine.py",
            "tests/syndicate/bloom/test_failed_ticks.py",
            "tests/syndicate/bloom/test_oracle.py",
        ),
    ),
    "verdict": Part(
        (
            "syndicate/dedalus/verify/verdict.py",
            "syndicate/dedalus/verify/search.py",
            "syndicate/dedalus/verify/by_solver.py",
        ),
        ("tests/syndicate/dedalus/verify/test_verify.py",),
    ),
}


# ---------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    path: Path
    line: int
    place: tuple[int, int]
    operator: str
    occurrence: int

    def source(self, before: str) -> str | None:
        """The text *before* with the change, or nothing where that says nothing new."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        after: str | None = mutate_code(before, get_operator(self.operator)(), self.occurrence)
        if after is None:
            return None
        try:
            return after if meaning(after) != meaning(before) else None
        except SyntaxError:
            return None

    def shown(self, before: str, after: str) -> str:
        """Where the change is, and the lines that differ."""
        different = [
            line[0] + " " + line[1:].strip()
            for line in difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
            if line[0] in "+-" and line[:3] not in ("+++", "---")
        ]
        return f"{self.path}:{self.line}: {'  '.join(different)}"


def mutants(part: Part, root: Path) -> Iterator[Mutant]:
    """All that the library can change in *part*, but `==` for `is`: nearly all that we compare by identity has no other
    equality.
    """
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    quiet = ("Is_Eq", "IsNot_NotEq", "VariableReplacer", "VariableInserter")
    for path in part.paths(root):
        nodes = list(ast_nodes(get_ast(path.read_text())))
        for name in operator_names():
            if name.endswith(quiet):
                continue
            operator = get_operator(name)()
            places = [start for node in nodes for start, _ in operator.mutation_positions(node)]
            for occurrence, place in enumerate(places):
                yield Mutant(path.relative_to(root), place[0], place, name, occurrence)


def drawn(part: Part, root: Path, dice: random.Random) -> Iterator[Mutant]:
    """The mutants of *part* in a random order, one of each place before the second of any: else most would be the
    eleven other operators for a `+`, which any test notices.
    """
    shuffled = list(mutants(part, root))
    dice.shuffle(shuffled)
    earlier: Counter[tuple[Path, tuple[int, int]]] = Counter()
    rounds: list[tuple[int, Mutant]] = []
    for mutant in shuffled:
        rounds.append((earlier[mutant.path, mutant.place], mutant))
        earlier[mutant.path, mutant.place] += 1
    return (mutant for _, mutant in sorted(rounds, key=lambda pair: pair[0]))


class Meaning(ast.NodeTransformer):
    """Leaves out what no test is meant to notice: annotations, docstrings, text that is for a reader, assertions."""

    # The methods have the names that `ast` wants.

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """A docstring, or a call of the log."""
        match node.value:
            case ast.Constant() | ast.Call(func=ast.Attribute(value=ast.Name(id="log" | "logger" | "LOG" | "_log"))):
                return ast.Pass()
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """States what always holds."""
        return ast.Pass()

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """What an error says; its class counts."""
        if isinstance(node.exc, ast.Call):
            node.exc.args, node.exc.keywords = [], []
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """An annotation; the value counts, but not how large a bound is that has two digits or more."""
        node.annotation = ast.Constant(None)
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(int(bound))) if name.isupper():
                node.value = ast.Constant(min(10, bound))
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """A parameter."""
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """The result's annotation, what is for the type checker, and how a thing prints."""
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Likewise."""
        return self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """What is for the type checker."""
        node.decorator_list = [name for name in node.decorator_list if not checked(name)]
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        """What only the type checker imports."""
        match node.test:
            case ast.Name(id="TYPE_CHECKING") | ast.UnaryOp(operand=ast.Name(id="TYPE_CHECKING")):
                return ast.Pass()
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """The name of a union of types, which only annotations use."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(op=ast.BitOr())) if name[0].isupper():
                if not name.isupper():
                    return ast.Pass()
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Whether a constant is compared by identity: small numbers, kinds and marks are there once."""
        if any(constant(operand) for operand in (node.left, *node.comparators)):
            same: dict[type[ast.cmpop], ast.cmpop] = {ast.Is: ast.Eq(), ast.IsNot: ast.NotEq()}
            node.ops = [same.get(type(op), op) for op in node.ops]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """The type that a cast names."""
        if isinstance(node.func, ast.Name) and node.func.id == "cast":
            node.args = node.args[1:]
        return self.generic_visit(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        if node.name in {"__repr__", "__str__"}:
            return ast.Pass()
        node.returns = None
        node.decorator_list = [name for name in node.decorator_list if not checked(name)]
        return self.generic_visit(node)


def checked(decorator: ast.expr) -> bool:
    """Whether *decorator* is for the type checker alone."""
    return isinstance(decorator, ast.Name) and decorator.id in {"override", "final", "overload", "runtime_checkable"}


def constant(operand: ast.expr) -> bool:
    """Whether *operand* is a literal, or has the name of a constant."""
    match operand:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
    return isinstance(operand, ast.Constant)


def meaning(source: str) -> str:
    """What tests can be meant to notice of *source*.

    >>> meaning("def f(x: int) -> int: raise OSError(x + 1)") == meaning("def f(x): raise OSError(x)")
    True
    >>> meaning("if x == 1: y = 2") == meaning("if x is 1: y = 2")
    True
    >>> meaning("if x == 1: y = 2") == meaning("if x >= 1: y = 2")
    False
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of `x is 1`
        compile(source, "mutant", "exec")
    return ast.dump(Meaning().visit(ast.parse(source)))


# ---------------------------------------------------------------------------------- running


@dataclass(frozen=True)
class Run:
    """How one run of the tests ended."""

    code: int | None
    """The exit code; none where it was ended for its time."""

    wall: float
    processor: float


def run(tests: Sequence[str], root: Path, *, wall: float | None = None, processor: float | None = None) -> Run:
    """Run *tests* in *root*, for at most so many seconds of the wall's clock and of the processor's."""

    def limit() -> None:
        if processor is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(processor) + 1, int(processor) + 6))
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))

    begun, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(
        [*PYTEST, *tests], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        preexec_fn=limit,  # noqa: PLW1509  # there are no threads
    ) as process:  # fmt: skip
        try:
            code: int | None = process.wait(wall)
        except subprocess.TimeoutExpired:
            code = None
        with contextlib.suppress(ProcessLookupError):  # it may have left children
            os.killpg(process.pid, signal.SIGKILL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        code = None
    return Run(code, time.monotonic() - begun, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime)


@contextlib.contextmanager
def copy() -> Iterator[Path]:
    """A copy of the checkout as it is."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        root = Path(directory)
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, check=True, text=True,
        ).stdout.splitlines()  # fmt: skip
        for name in listed:
            if (ROOT / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, root / name)
        for path in (root / "tests").rglob("test_*.py"):
            path.write_text(re.sub(r"max_examples=(?:(\d+)|examples\((\d+)\))", fewer, path.read_text()))
        yield root


def fewer(bound: re.Match[str]) -> str:
    """As many random examples as *bound* says, but at most 25: what a mutant breaks shows in few."""
    return f"max_examples={min(int(bound[1] or bound[2]), EXAMPLES)}"


@contextlib.contextmanager
def changed(path: Path, source: str) -> Iterator[None]:
    """Let the module at *path* have the text *source*."""
    before = path.read_text()
    try:
        path.write_text(source)
        forget(path)
        yield
    finally:
        path.write_text(before)
        forget(path)


def forget(path: Path) -> None:
    """Remove what Python has compiled of *path*: it tells two texts apart by their length and by whole seconds only."""
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def judge(name: str, sample: int | None, seed: int, root: Path) -> str:
    """Run the sample of the part *name*; prints what survives, returns the part's line of the table."""
    part = PARTS[name]
    judges = part.judges(root)
    first = run(judges, root)
    if first.code:
        raise SystemExit(f"{name}: its tests fail without a change: {' '.join(map(str, [*PYTEST, *judges]))}")
    print(f"{name}: without a change {first.wall:.0f} s, {first.processor:.0f} s of the processor", flush=True)
    ends: Counter[str] = Counter()
    for mutant in drawn(part, root, random.Random(f"{name} {seed}")):
        if ends.total() == sample:
            break
        before = (root / mutant.path).read_text()
        after = mutant.source(before)
        if after is None:
            continue
        with changed(root / mutant.path, after):
            end = run(judges, root, wall=10 * first.wall + 60, processor=3 * first.processor + 5)
        if end.code == 5:
            raise SystemExit(f"{name}: no tests were run")
        word = "timed out" if end.code is None else "killed" if end.code else "survived"
        ends[word] += 1
        print(f"  {word:9} {end.wall:5.1f} s  {'' if word == 'killed' else mutant.shown(before, after)}", flush=True)
    dead = ends["killed"] + ends["timed out"]
    share = f"{dead / ends.total():.0%}" if ends else "-"
    return f"| {name} | {ends.total()} | {dead} | {ends['timed out']} | {ends['survived']} | {share} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge the parts that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--sample", type=int, default=40, metavar="N", help="mutants in each part; 0 for all (40)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="which ones are drawn (0)")
    options = parser.parse_args(arguments)
    lines = ["| part | sampled | killed | of them by time | survived | share |", "|---|---|---|---|---|---|"]
    with copy() as root:
        lines += [judge(name, options.sample or None, options.seed, root) for name in options.parts or PARTS]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    print(f"\nseed {options.seed}, commit {commit.stdout.strip()}\n", *lines, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
