"""The structure of a circuit as lines of text, one a node: what a snapshot must fit.

A line says the node's global id, kind, operator, name, inputs and parameters.  Of a user's function it says the
qualified name only, since code has no identity that survives an edit of a comment: who changes what a function does and
keeps its name restores the old state under the new function.  Nothing of it depends on the process: no address, and no
order of a set.  The bound of a loop may differ.

>>> from syndicate.flow import Circuit
>>> c = Circuit(); c.sink("lengths", c.source("words").map(len).distinct())
>>> for line in structure(c): print(line)
0 source "words"
1 map(0) function=len
2 distinct(1)
3 sink "lengths"(2)
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from operator import itemgetter

from syndicate.errors import UnwritableElement
from syndicate.flow.aggregates import Aggregate
from syndicate.flow.element import Element, in_order
from syndicate.flow.encoding import encoded
from syndicate.flow.node import Carries, Kind, Netlist, Node, Port
from syndicate.flow.stream import Padded, Spread
from syndicate.flow.zset import ZSet
from syndicate.values.value import Record, fields_of, is_record, label_of


def structure(circuit: Netlist) -> list[str]:
    """A line for each node, those of a child after the child's."""
    return [line_of(node) for node in circuit.walk()]


def line_of(node: Node) -> str:
    """One node."""
    ports = node.child.exports if node.child is not None else node.inputs
    inputs = f"({', '.join(map(shown, ports))})" if ports else ""
    carried = "".join(f" -> {kind.value}" for kind in node.carries if kind is not Carries.ZSET)
    params = "".join(
        f" {key}={described(value)}" for key, value in node.params.items() if value is not None and key != "limit"
    )
    return f"{identity(node)} {labelled(node)}{inputs}{carried}{params}"


def labelled(node: Node) -> str:
    """The operator and the name."""
    op = "import" if node.kind is Kind.IMPORT else node.op
    return f"{op} {quoted(node.name)}" if node.name else op


def identity(node: Node) -> str:
    """The global id as it is written: ``3.1``."""
    return ".".join(map(str, node.global_id))


def shown(port: Port) -> str:
    """A port as it is written: the local id, and the output if it is another than the first."""
    return f"{port.node}:{port.output}" if port.output else str(port.node)


def quoted(name: str) -> str:
    """A name in quotes, on one line."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'


def described(value: Element) -> str:
    """A parameter: functions by their qualified names.

    >>> described(itemgetter(1)), described(functools.partial(max, 0)), described(True)
    ('itemgetter(1)', 'partial(max)', 'True')
    """
    if isinstance(value, Aggregate):
        functions = [value.by, value.function, *((value.fold.add, value.fold.result) if value.fold is not None else ())]
        parts = [described(part) for part in functions if part is not None]
        parts += [constant_text(value.fold.zero)] if value.fold is not None else []
        parts += [str(value.size)] if value.size else []
        return f"{value}({', '.join(parts)})" if parts else str(value)
    if isinstance(value, functools.partial):
        return f"partial({described(value.func)})"
    if isinstance(value, (Padded, Spread)):
        side = "" if isinstance(value, Spread) else "left, " if value.left else "right, "
        return f"{type(value).__name__}({side}{described(value.function)})"
    if isinstance(value, itemgetter):
        return repr(value).removeprefix("operator.")
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, ZSet):
        return f"{len(value)} elements {_digest(value)}"
    name = getattr(value, "__qualname__", "") or getattr(value, "__name__", "")
    return name if isinstance(name, str) and name else type(value).__qualname__


def constant_text(value: Element) -> str:
    """A constant as it is written in each process alike: sets and mappings in order, functions by their names.

    >>> constant_text((1, frozenset({"b", "a"}), len)), constant_text(1.0)
    ("(1, frozenset({'a', 'b'}), len)", '1.0')
    """
    kind = type(value)
    if kind is tuple:
        return f"({', '.join(map(constant_text, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, AbstractSet):
        return f"{kind.__qualname__}({{{', '.join(map(constant_text, in_order(value)))}}})"
    if isinstance(value, Mapping):
        entries = [f"{constant_text(key)}: {constant_text(value[key])}" for key in in_order(value)]
        return f"{kind.__qualname__}({{{', '.join(entries)}}})"
    if hasattr(value, "reveal"):  # of a lattice
        return f"{kind.__qualname__}({constant_text(value.reveal())})"
    if is_record(value):
        fields = fields_of(value) if kind is not Record else (label_of(value), *fields_of(value))
        return f"{kind.__qualname__}({', '.join(map(constant_text, fields))})"
    if callable(value):
        return described(value)
    text = repr(value)
    if text != object.__repr__(value):
        return text
    try:
        return f"{kind.__qualname__} {encoded([value]).hex()}"
    except UnwritableElement:
        return kind.__qualname__


def _digest(zset: ZSet) -> str:
    """Tells the contents of two constants apart, whatever their order."""
    try:
        encoded(list(zset))
    except UnwritableElement:
        return "of a type that snapshots do not know"
    entries = sorted([f"{constant_text(element)} {weight}" for element, weight in zset.items()])
    return blake2b("\n".join(entries).encode(errors="surrogatepass"), digest_size=8).hexdigest()
