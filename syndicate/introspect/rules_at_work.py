"""The rules at work in a system: circuits, Bloom programs, locations of Dedalus programs.

They are found by a look through all facets: nobody keeps a list of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from syndicate.actors.actor import Actor
from syndicate.actors.facet import Facet
from syndicate.drawing import Drawing
from syndicate.hosting import Host
from syndicate.values.value import Value


def hosts(actors: Iterable[Actor]) -> Iterator[tuple[Actor, Host]]:
    """All of them, by the actors that they live in."""
    for actor in actors:
        for facet in actor.root.below():
            for host in within(facet):
                yield actor, host


def within(facet: Facet) -> Iterator[Host]:
    """Those that live in a facet itself."""
    for each in list(facet.blocks):
        block = each()
        owner = getattr(None if block is None else block.fn, "__self__", None)
        if isinstance(owner, Host):
            yield owner


def drawn(drawing: Drawing) -> list[list[Value]]:
    """``["box" name title kind inside note order]``, and ``["line" tail head kind why]``."""
    boxes = [["box", box.name, box.title, box.kind, box.inside, box.note, box.order] for box in drawing.boxes]
    return [*boxes, *(["line", line.tail, line.head, line.kind, line.why] for line in drawing.lines)]


def loaded(host: Host, view: str) -> list[list[Value]]:
    """``[name entries last-ms total-ms given]`` of each box, and, first, of the whole under the empty name."""
    measured = host.measured
    whole: list[Value] = ["", 0, 0.0, 0.0, 0]
    if measured is not None:
        whole = ["", measured.steps, 1e3 * measured.last, 1e3 * measured.seconds, 0]
    return [
        whole,
        *(
            [name, load.entries, 1e3 * load.last_seconds, 1e3 * load.seconds, load.given]
            for name, load in host.loads(view).items()
        ),
    ]
