"""The plan of the packages, held: what a module may import, its length, what `import syndicate` loads."""

from __future__ import annotations

import ast
import graphlib
import importlib
import inspect
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from syndicate.graph import components

pytestmark = pytest.mark.xdist_group("texts")  # one process reads them all

ROOT = Path(__file__).parents[1]
LONGEST = 700

# From the top down: a layer uses its own modules and the layers above it.  A name means a module, or a
# package with all its modules.  "syndicate" and "relay" themselves are the two faces (`__init__.py`), which
# layers below may use and layers above may not.
PLAN = """
    syndicate.foreign_files syndicate.on_demand
    syndicate.errors syndicate.native syndicate.outside syndicate.log syndicate.garbage_collector syndicate.graph
    syndicate.drawing
    syndicate.values syndicate.index syndicate.actors syndicate.hosting
    syndicate
    syndicate.storage syndicate.simulation syndicate.flow syndicate.lattice syndicate.plan syndicate.explain
    syndicate.introspect syndicate.bloom syndicate.dedalus
    syndicate.work syndicate.service syndicate.tables syndicate.conversation
    syndicate.views syndicate.thread syndicate.asyncio syndicate.notebook syndicate.spark syndicate.testing
    syndicate.__main__

    relay.startup_interrupts relay.module_loading relay.package_check relay.protocol relay.capabilities relay.transport
    relay.session relay.client relay.remote relay.stdio_serving relay.nested
    relay
    relay.web relay.server relay.spark relay.tools relay.simulation relay.demo relay.cli
"""
# The same within each package of more than 8 modules: from the top down, its modules and the packages in it.
INSIDE = {
    "relay.cli": """
        exit_codes keyboard target bench cap check json_values arguments assert_and_send kick query console rules replay
        span_export server simulated_run simulate why
    """,
    "relay.cli.rules": """
        rule_files bloom_program run_options verb check explore live plot repl run trace verify why
    """,
    "relay.server": """
        quotas log_limits config throttle journal durable census deployment overload operators broker metrics admin
        console daemon
    """,
    "relay.session": """
        deadlines intake membrane backlog draft outbox proxy peer_assertions statistics packet_events fan_out
        shared_bytes usual_packets ending syncs causes state session link
    """,
    "relay.simulation": """
        network process view event_trail allowed_faults faults session_laws laws world scenario campaign tape_file
        difference run_recording lineage testing
    """,
    "relay.transport": """
        address untrusted_peers poller tls stream web_origin tls_stream sockets network stdio websocket_frames websocket
        dial listener
    """,
    "syndicate.actors": """
        event_loop signals relay_loading trace meter arguments async_block facet dataflow turn actor turn_slices
        turn_follower system running chronicle field link verbs during timer query bulk dataspace supervise pending_call
        portal keep
    """,
    "syndicate.bloom": """
        declaration rules block collection state tick insight agent event_log program repl network reflection
        library
    """,
    "syndicate.bloom.insight": """
        sealed arrival row_age resending retry spacetime unmarked calm orders why introspection history plot
    """,
    "syndicate.bloom.library": """
        cart causal chord delivery election membership multicast paths sealing shopper store session voting carts commit
        paxos three_phase
    """,
    "syndicate.bloom.rules": """
        symbols abstract_value bytecode abstract_operation monotonicity function aggregate term expression
    """,
    "syndicate.dedalus": """
        ast library net parse desugar schedule checks lower binding timeline why run solving explore verify
        hazards placement plot live program
    """,
    "syndicate.dedalus.explore": """
        influence timestep outcome replay stability possible_past state arrivals by_solver explorer
    """,
    "syndicate.dedalus.verify": """
        domains faults choosing cone ground confirmation lineage counterexample search by_solver chance induction
        verdict
    """,
    "syndicate.flow": """
        element node comparison undo shape row_expression zset word_tables aggregates arrangement trace encoding stream
        scope operators structure measure word_state pipeline columnar loop word_loop word_circuit columns local_engine
        contents profile snapshot graph view circuit incremental
    """,
    "syndicate.flow.operators": """
        ranking joins groups elementwise growing nested_loops trace_operators error_location
    """,
    "syndicate.index": "path event skeleton matching bag compiled trie interest bulk index",
    "syndicate.introspect": """
        story spans why why_not answer_pages memory rules_at_work reasons grounds tail contents
        questions
    """,
    "syndicate.lattice": """
        lattice table delta extremum product sets fold map vector_clock laws
    """,
    "syndicate.plan": """
        scalar algebra rewrite rules lowering
    """,
    "syndicate.simulation": """
        tape shrink order history clock disk alternation process guard watch properties
    """,
    "syndicate.spark": """
        spark_connect columns bulk errors change_feed java outage progress to_arrow arrow schema_evolution
        difference engine session metrics threads streaming_query archive worker_daemon feed_position stream_engine
        sink_table versions row_origin jdbc kafka lake kafka_sink rows current_rows delivery follower journal sink
        source streaming
    """,
    "syndicate.spark.engine": """
        canonical directory shape worker_process rows symbolic_column scalars workers estimate batch compile errors
        key_lookup layouts inputs trace sums context linear output joins trace_operators groups state_pages scope engine
        streamed
    """,
}

# How often a module reads a name with a leading underscore of something that is not its own.  It only goes down.
PRIVATE = 17

LAYERS = PLAN.split()
LEVEL = {layer: level for level, layer in enumerate(LAYERS)}


def modules() -> dict[str, Path]:
    """Every module of the two packages, by its dotted name."""
    results = {}
    for package in ("syndicate", "relay"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            results[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return results


MODULES = modules()
PACKAGES = [name for name, path in MODULES.items() if path.name == "__init__.py"]
each_module = pytest.mark.parametrize("name", MODULES)


def layer_of(name: str) -> str:
    """The layer that the module `name` belongs to: `syndicate.flow` for `syndicate.flow.operators.join`."""
    layer = ".".join(name.split(".")[:2])
    assert layer in LEVEL, f"{layer} is new: put it into PLAN in {Path(__file__).name}, below all layers that it uses"
    return layer


@cache
def parsed(path: Path) -> ast.Module:
    """A module's syntax tree, made once."""
    return ast.parse(path.read_text(), path)


@pytest.fixture(scope="module", autouse=True)
def trees() -> Iterator[None]:
    """They are let go afterwards: what is tested next in this process would wait for a collector that walks them."""
    yield
    parsed.cache_clear()


def _imports(name: str, path: Path) -> Iterator[tuple[str, int]]:
    """The modules of ours that `name` imports, in functions and for type checking too; with lines."""
    pending: list[ast.AST] = [parsed(path)]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
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
    assert ast.get_docstring(parsed(MODULES[name])), f"{name} has no docstring: say what it is, and why it exists"
    lines = MODULES[name].read_text().count("\n")
    assert lines <= LONGEST, f"{name} has {lines} lines, more than {LONGEST}: it is two nouns, split it"


@each_module
def test_floors(name: str) -> None:
    """A module imports from its own layer and from the layers above, wherever in the file the import stands."""
    layer = layer_of(name)
    for target, line in imports(name, MODULES[name]):
        assert LEVEL[layer_of(target)] <= LEVEL[layer], (
            f"{MODULES[name].relative_to(ROOT)}:{line} imports {target}, below {layer} in PLAN"
        )


def test_core_knows_no_relay() -> None:
    """Nothing in `syndicate` imports `relay`, whatever the order of the layers says."""
    core = {name: path for name, path in MODULES.items() if name.startswith("syndicate")}
    assert not [name for name, path in core.items() for target, _ in imports(name, path) if target.startswith("relay")]


def test_no_import_cycle() -> None:
    """Within a layer, too, the imports have an order, those for type checking included."""
    graph = {name: {target for target, _ in imports(name, path)} - {name} for name, path in MODULES.items()}
    assert [sorted(circle) for circle in components(graph, graph.__getitem__) if len(circle) > 1] == []


def inside(package: str) -> dict[str, set[str]]:
    """What is right in a package, modules and packages, and which of the others each imports."""
    depth = package.count(".") + 2
    graph: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        if name.startswith(f"{package}."):
            part = ".".join(name.split(".")[:depth])
            used = {target for target, _ in imports(name, path) if target.startswith(f"{package}.")}
            graph.setdefault(part, set()).update({".".join(one.split(".")[:depth]) for one in used} - {part})
    return graph


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_have_an_order(package: str) -> None:
    """Within a package, the packages in it and its modules have an order, too: none is entered and left in a circle."""
    try:
        graphlib.TopologicalSorter(inside(package)).prepare()
    except graphlib.CycleError as error:
        pytest.fail("packages in a circle: " + " <- ".join(error.args[1]))


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_keeps_its_plan(package: str) -> None:
    """A large package has its order written down, and each of its modules imports only from those above it."""
    graph = inside(package)
    if package in ("syndicate", "relay") or (len(graph) <= 8 and package not in INSIDE):
        return
    place = {f"{package}.{part}": at for at, part in enumerate(INSIDE.get(package, "").split())}
    assert sorted(place) == sorted(graph), f"the plan of {package}: INSIDE in {Path(__file__).name} has each part once"
    wrong = [
        f"{part} imports {one}, below it" for part, used in graph.items() for one in used if place[one] > place[part]
    ]
    assert wrong == []


def test_private_names_stay_with_their_owner() -> None:
    """A name with a leading underscore is read by the module that defines it: what others need has a public name."""
    accesses = {name: list(intrusions(path)) for name, path in MODULES.items()}
    count = sum(map(len, accesses.values()))
    worst = [f"{name}: {', '.join(sorted(set(every)))}" for name, every in accesses.items() if every]
    assert count <= PRIVATE, f"{count} accesses, more than {PRIVATE}:\n" + "\n".join(worst)
    assert count == PRIVATE, f"only {count} accesses are left: set PRIVATE to it"


def intrusions(path: Path) -> Iterator[str]:
    """The accesses to private names of others: neither of `self` or `cls`, nor of a name that the module defines."""
    own: set[str] = set()
    asked: list[ast.Attribute] = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            if not isinstance(node.value, ast.Name) or node.value.id not in ("self", "cls"):
                asked.append(node)
            elif isinstance(node.ctx, ast.Store):
                own.add(node.attr)
    return (ast.unparse(node) for node in asked if node.attr not in own)


COMPLEX, COMPLEX_FUNCTIONS = 15, 12
"""No function has more branches, but for so many hot loops, which say so."""


def test_functions_are_simple() -> None:
    """A function that branches more is several: those that are hot loops are counted, and only go down."""
    pytest.importorskip("ruff", reason="ruff comes with the extra dev")
    command = ["-m", "ruff", "check", "--ignore-noqa", "--select", "C901", "--output-format", "concise", "--no-cache"]
    limit = f"lint.mccabe.max-complexity={COMPLEX}"
    done = subprocess.run(
        [sys.executable, *command, "--config", limit, "syndicate", "relay", "pyspark_syndicate"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    results = [line for line in done.stdout.splitlines() if " C901 " in line]
    assert len(results) <= COMPLEX_FUNCTIONS, "\n".join(results)
    assert len(results) == COMPLEX_FUNCTIONS, f"only {len(results)} are left: set COMPLEX_FUNCTIONS to it"


PARTICIPLES = frozenset({"found", "made", "known", "given", "told", "kept"})
PARTICIPLES_LEFT = 1
"""Names that say how one came by something, and not what it is; how many variables still have one, of tests none."""
PUBLIC_PARAMETERS = frozenset({("occurrences", "kept"), ("beyond", "known")})
"""Parameters that had their names, which callers write, before this rule: public names stay."""


def test_variables_are_nouns() -> None:
    """A variable is called by what it is, in tests too.  Attributes and collections of rules have their own."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    in_tests = [f"{path}:{at.lineno}: {word}" for path in paths for at, word in participles(parsed(path))]
    assert in_tests == [], "\n".join(in_tests)
    left = [f"{name}:{at.lineno}: {word}" for name, path in MODULES.items() for at, word in participles(parsed(path))]
    assert len(left) <= PARTICIPLES_LEFT, "\n".join(left)
    assert len(left) == PARTICIPLES_LEFT, f"only {len(left)} are left: set PARTICIPLES_LEFT to it"


def names_in(assignment: ast.Assign) -> Iterator[ast.AST]:
    """What it assigns to, the parts of tuples as well."""
    return (node for target in assignment.targets for node in ast.walk(target))


def participles(tree: ast.Module) -> Iterator[tuple[ast.Name | ast.arg, str]]:
    """The variables and parameters of functions that have such names."""
    parts = list(ast.walk(tree))
    fields = {id(node.target) for node in parts if isinstance(node, ast.AnnAssign)}
    bodies = [part.body for part in parts if isinstance(part, ast.ClassDef)]
    fields.update(
        id(node) for body in bodies for part in body if isinstance(part, ast.Assign) for node in names_in(part)
    )
    public = {
        id(node)
        for part in parts
        if isinstance(part, ast.FunctionDef)
        for node in part.args.args
        if (part.name, node.arg) in PUBLIC_PARAMETERS
    }
    for part in parts:
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            for node in ast.walk(part):
                if isinstance(node, ast.arg) and node.arg in PARTICIPLES and id(node) not in public:
                    yield node, node.arg
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
                    yield from [(node, node.id)][: node.id in PARTICIPLES]


RIDDLES = re.compile(
    r"\b[Aa]new\b|_anew\b|(?<=[\w,] )(?<!here )(?:is|are) none\b(?! of| either)"
    r"|\b(?:is|are|was|were) told\b|_(?:is|are|was|were)_(?:not_)?told\b"
    r"|\b[Ww]hat (?:stands|stood)\b(?! (?:for|before|below|above|first))|_what_(?:stands|stood)\b"
    r"|\b(?:[Aa]|[Nn]o|[Tt]hat|[Tt]he) stranger\b|_strangers?(?:_\w+)?\("
)
"""Words of our own, for which the field has plain ones: again; is not one, is no reference; is notified of, is
reported; what is asserted; an untrusted peer.
"""


PAST = {Path(__file__), ROOT / "benchmarks/RESULTS.md"}
KINDS_OF_TEXT = ("*.py", "*.rs", "*.ts", "*.tsx", "*.js", "*.mjs", "*.md", "*.ded", "*.ipynb")


def test_words_are_plain() -> None:
    """In the packages, the kernels, the tests, what measures them, and their notes but for figures of the past."""
    folders = ("syndicate", "relay", "pyspark_syndicate", "native/src", "tests", "benchmarks", "examples", "docs")
    paths = [path for folder in folders for kind in KINDS_OF_TEXT for path in sorted((ROOT / folder).rglob(kind))]
    paths = [path for path in paths if not {"dist", "node_modules", "target"}.intersection(path.parts)]
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if path not in PAST and RIDDLES.search(line)
    ]
    assert lines == []


ROLES = {
    "one role, which each language of rules, engine or layer has a class for": """
        Agent Aggregate Attempt Batch Entry EventLog Expression Fact Fixpoint Group Hazard History Holding
        Instance Lack Literal Packet Program Proof Reason RowsAsserted RowsSent Rule Search SortedRuns Unmade
        Verdict Why WhyNot
    """,
    "one notion, of a system here, and of one beyond a connection or simulated": """
        Broker Connection Faults Network Outage Remote System View
    """,
    "one notion, whatever it is of": """
        Bag Difference Edge NameScope Node Options Outcome Port Report Routes State
    """,
    "public in one place, and the field's word in another": """
        Clock Commit Done Happening Kind Map Rows Schedule Session Stream Trace
    """,
}
"""Names that several classes have, by the reason why none of them has another: ``docs/design/README.md``, "Names"."""
FILE_ROLES = {
    "one role, which each language of rules, engine or layer has a file for": """
        absence agent by_solver derivation event_log groups history joins lineage plot process program
        replay run running scope search shape source spacetime sums trace_operators why
    """,
    "what each package has of the kind": "arguments errors testing view views console check bench workers",
    "one notion, whatever it is of": """
        bulk canonical columns contents delivery difference disk faults graph journal laws metrics
        network rows state store table
    """,
    "the word of two fields": "link query session stream trace",
}


def test_a_name_means_one_thing() -> None:
    """Two classes, or two files, share a name only in a role that is listed; a list has nothing else."""
    classes = Counter(
        part.name
        for path in MODULES.values()
        for part in parsed(path).body
        if isinstance(part, ast.ClassDef) and not part.name.startswith("_")
    )
    files = Counter(path.stem for path in MODULES.values() if path.name != "__init__.py")
    for counts, roles in ((classes, ROLES), (files, FILE_ROLES)):
        shared = {name for name, count in counts.items() if count > 1}
        listed = [name for names in roles.values() for name in names.split()]
        assert len(listed) == len(set(listed)), "a name has one reason"
        assert not shared - set(listed), (
            f"give one of them a name of its own, or say which role they share: {shared - set(listed)}"
        )
        assert not set(listed) - shared, f"no longer shared: {set(listed) - shared}"


SHORT, SHORT_PARTS = 80, 17
"""Modules of fewer lines that only one other imports: each is a part of that one, or has a reason of its own."""


def test_modules_have_a_reason_of_their_own() -> None:
    """What is short, and has one user, belongs to it as a rule: how many do not only goes down."""
    users: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        for target, _ in imports(name, path):
            users.setdefault(target, set()).add(name)
    short = [
        f"{name}, of {one}"
        for name, (one, *more) in ((name, [*some - {name}] or [""]) for name, some in users.items())
        if one and not more and name not in PACKAGES and MODULES[name].read_text().count("\n") < SHORT
    ]
    assert len(short) <= SHORT_PARTS, "\n".join(short)
    assert len(short) == SHORT_PARTS, f"only {len(short)} are left: set SHORT_PARTS to it"


@pytest.mark.parametrize("package", ["syndicate", "syndicate.spark", "relay"])
def test_import_is_light(package: str) -> None:
    """Importing a package, with all that its face has, loads no data library and starts no JVM."""
    program = f"""
import sys
started = []
def hook(event, args):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.exec") and "java" in str(args[0]):
        started.append(args)
sys.addaudithook(hook)
from {package} import *
print(sorted({{"pyspark", "py4j", "numpy", "pandas", "pyarrow"}} & set(sys.modules)), started)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"


ON_DEMAND = [name for name in PACKAGES if "syndicate.on_demand" in {one for one, _ in imports(name, MODULES[name])}]


@pytest.mark.parametrize("package", ON_DEMAND)
def test_a_face_on_demand_has_each_name_once(package: str) -> None:
    """What type checkers see is what is imported on demand; each public name is there, and is no module as well."""
    tree = parsed(MODULES[package])
    (checked,) = (one for one in tree.body if isinstance(one, ast.If))
    seen = {one.module: [alias.name for alias in one.names] for one in checked.body if isinstance(one, ast.ImportFrom)}
    (homes,) = (
        ast.literal_eval(one.value.args[1])
        for one in tree.body
        if isinstance(one, ast.Assign)
        and isinstance(one.value, ast.Call)
        and "__getattr__" in ast.unparse(one.targets[0])
    )
    assert homes == seen
    face = importlib.import_module(package)
    demanded = {name for names in homes.values() for name in names}
    assert set(face.__all__) >= demanded
    assert [name for name in face.__all__ if getattr(face, name, None) is None or name not in dir(face)] == []
    assert {f"{package}.{name}" for name in demanded} & set(MODULES) == set()
    with pytest.raises(AttributeError, match="has no attribute 'nobody'"):
        _ = face.nobody


@pytest.mark.parametrize(
    "program",
    [
        "import syndicate, relay, syndicate.dedalus, syndicate.plan, syndicate.flow",
        "import syndicate.dedalus as d; d.Program.parse('p(1)@1;').verify(eot=2, eff=0, nodes=['a'], invariant='p')",
        "import sys; sys.argv = ['syndicate', '--help']; import relay.cli",
    ],
)
def test_what_has_no_actors_waits_for_no_event_loop(program: str) -> None:
    """Faces and verdicts are there without what actors need: it would be most of what a command waits for."""
    script = "import sys; print(sorted({'trio', 'structlog'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", f"{program}\n{script}"], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


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
    assert {name: each for name, each in homes.items() if len(each) > 1 and name not in ("VERSION", "FORMAT")} == {}


def is_number(value: ast.expr | None) -> bool:
    """Whether an expression is made of numbers alone."""
    return value is not None and all(
        isinstance(node, (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop))
        or (isinstance(node, ast.Constant) and type(node.value) in (int, float))
        for node in ast.walk(value)
    )


UNSAID = 74
UNSAID_IN_PUBLIC = 0
"""How many lines say ``Any``, and how many arguments, results and attributes of the faces: both only go down."""
FACES = (
    "syndicate",
    "relay",
    *(f"syndicate.{name}" for name in ("flow", "plan", "bloom", "dedalus", "spark", "lattice")),
)


def test_types_are_said() -> None:
    """``Any`` says nothing of what a value is, and lets the type checker look away: there is ever less of it."""
    lines = [line for path in MODULES.values() for line in path.read_text().splitlines()]
    unsaid = sum(re.search(r"\bAny\b", line) is not None for line in lines)
    assert unsaid <= UNSAID, f"{unsaid} lines say Any: say Value, Element, object, a TypeVar or a Protocol instead"
    assert unsaid == UNSAID, f"only {unsaid} lines are left: set UNSAID to it"


def test_public_signatures_say_their_types() -> None:
    """What users call: the functions of each package's ``__all__``, its classes' methods, properties and attributes."""
    unsaid = sorted({signature for face in FACES for signature in unsaid_of(importlib.import_module(face))})
    assert len(unsaid) <= UNSAID_IN_PUBLIC, "\n".join(unsaid)
    assert len(unsaid) == UNSAID_IN_PUBLIC, f"only {len(unsaid)} are left: set UNSAID_IN_PUBLIC to it"


def unsaid_of(face: ModuleType) -> Iterator[str]:
    """The signatures of a public face in which ``Any`` stands."""
    for name in face.__all__:
        thing = getattr(face, name)
        if inspect.isclass(thing):
            for base in thing.__mro__:
                if base.__module__.startswith(("syndicate", "relay")):
                    members = {"": base, **{k: v for k, v in vars(base).items() if k[0] != "_" or k == "__init__"}}
                    for member, what in members.items():
                        yield from _unsaid(f"{base.__module__}.{base.__qualname__}.{member}".rstrip("."), what)
        elif inspect.isfunction(thing):
            yield from _unsaid(f"{thing.__module__}.{name}", thing)


def _unsaid(name: str, thing: object) -> Iterator[str]:
    thing = getattr(thing, "fget", None) or getattr(thing, "func", None) or getattr(thing, "__func__", thing)
    if inspect.isfunction(thing) or inspect.isclass(thing):
        for of, annotation in inspect.get_annotations(thing).items():
            if re.search(r"\bAny\b", str(annotation)) and not (of[0] == "_" and inspect.isclass(thing)):
                yield f"{name}: {of}: {annotation}"
