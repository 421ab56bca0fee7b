"""What a current assertion rests on, seen without anything having been followed: who asserts it, in which handler,
and what holds the facets that this is in.

A facet of a ``during`` lasts as long as what it was notified of.  So whoever looks at the facets above an assertion
sees which other assertions it depends on, and goes on from those.  What rules assert is explained by them
(:mod:`~syndicate.introspect.reasons`).  What a handler remembers in variables is not seen.

>>> from syndicate import assert_, capture, dataspace, during
>>> from syndicate.testing import settled
>>> from syndicate.values.value import freeze
>>> kept = []
>>> def boot():
...     ds = dataspace()
...     kept.append(ds)
...     during(ds, ["lit", capture()])(lambda room: assert_(ds, ["seen", room]))
...     assert_(ds, ["lit", "hall"])
>>> system = settled(boot)
>>> look = grounds(freeze(["seen", "hall"]), kept[0], kept[0].entity.index, list(system.actors))
>>> while True:
...     try:
...         next(look)
...     except StopIteration as end:
...         print([(row[0], row[3]) for row in end.value])
...         break
[('asserted ["seen" "hall"]', [1]), ('asserted ["lit" "hall"]', [])]
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Final

from attrs import define, field

from syndicate.actors.actor import Actor
from syndicate.actors.chronicle import code_of, place_of
from syndicate.actors.facet import Facet
from syndicate.actors.turn import Handle
from syndicate.index.index import Index
from syndicate.index.interest import INTEREST
from syndicate.index.skeleton import Constants, Skeleton, synthesise
from syndicate.introspect.answer_pages import STRIDE, Row, cut
from syndicate.introspect.reasons import why_asserted
from syndicate.values.pattern import match
from syndicate.values.text import unparse_form
from syndicate.values.value import SEQ, Frozen, Ref, Value, thaw

WIDEST: Final = 100
"""Assertions that are looked at."""


@define(eq=False)
class _Ground:
    """One assertion, and what it rests on: numbers of others."""

    form: Frozen
    by: list[str] = field(factory=list)
    places: list[str] = field(factory=list)
    premises: list[int] = field(factory=list)
    reasons: list[Row] = field(factory=list)
    """Why rules have concluded it, if they have."""


@define(eq=False)
class _Support:
    """That a facet lasts as long as something that an interest was notified of; *place* is its handler's."""

    skeleton: Skeleton
    constants: Constants
    captures: tuple[Value, ...]
    place: str


def grounds(form: Frozen, ds: Ref, index: Index, actors: Iterable[Actor]) -> Generator[None, None, list[Row]]:
    """``[title because place [premise ..] []]`` of *form*, which is asserted in *ds*, and what that rests on; nothing
    if it is not.  Costs a look through all handles for each level of it; yields between slices.
    """
    nodes = [_Ground(form)]
    numbers = {form: 0}
    done = 0
    while done < len(nodes):
        level = nodes[done:]
        done = len(nodes)
        handles = yield from _handles({ground.form: ground for ground in level}, ds, actors)
        for ground, handle in handles:
            ground.by.append(handle.facet.actor.name)
            ground.reasons = ground.reasons or why_asserted(handle)
            for support in _holding(handle.facet):
                ground.places.append(support.place)
                premise = yield from _standing(support, index)
                if premise is None or len(nodes) >= WIDEST:
                    continue
                if premise not in numbers:
                    numbers[premise] = len(nodes)
                    nodes.append(_Ground(premise))
                if numbers[premise] not in ground.premises and premise != ground.form:
                    ground.premises.append(numbers[premise])
    if not nodes[0].by:
        return []
    rows = [
        [
            cut(f"asserted {unparse_form(one.form)}"),
            f"by {', '.join(dict.fromkeys(one.by)) or 'somebody who is gone by now'}"
            + "".join(f", {place}" for place in dict.fromkeys(filter(None, one.places))),
            "",
            list[Value](one.premises),
            [],
        ]
        for one in nodes
    ]
    for row, one in zip(rows[:], nodes, strict=True):
        if one.reasons:
            first = len(rows)
            row[3] = [*one.premises, first]
            rows += [_moved(each, first) for each in one.reasons]
    return rows


def _moved(row: Row, by: int) -> Row:
    """A row of an explanation behind *by* others."""
    title, because, place, premises, conditions = row
    return [title, because, place, [by + number for number in premises], conditions]


def _handles(
    wanted: dict[Frozen, _Ground], ds: Ref, actors: Iterable[Actor]
) -> Generator[None, None, list[tuple[_Ground, Handle]]]:
    """The handles of the wanted forms, at most a few of each."""
    handles: list[tuple[_Ground, Handle]] = []
    seen = 0
    for actor in actors:
        for facet in actor.root.below():
            for handle in list(facet.handles):
                seen += 1
                if seen % STRIDE == 0:
                    yield
                if handle.target.facet is ds.facet and type(handle) is Handle:
                    ground = wanted.get(handle.form)
                    if ground is not None:
                        handles.append((ground, handle))
    return handles


def _holding(facet: Facet) -> Iterator[_Support]:
    """What *facet*, and those above it, last as long as."""
    above = facet.parent
    while above is not None:
        for handle in above.handles:
            form = handle.form if type(handle) is Handle else None
            if type(form) is tuple and form[0] is INTEREST:
                entity = form[3].entity
                for assertion, instance in getattr(entity, "instances", {}).items():
                    captures = assertion.form
                    if instance is facet and type(captures) is tuple and captures[0] is SEQ:
                        code = code_of(entity)
                        values = tuple([thaw(each) for each in captures[1:]])
                        yield _Support(form[1], form[2], values, "" if code is None else place_of(code))
        facet, above = above, above.parent


def _standing(support: _Support, index: Index) -> Generator[None, None, Frozen | None]:
    """A value that is asserted and is what the interest was notified of."""
    pattern = synthesise(support.skeleton, support.constants)
    heads = [support.skeleton.shape[0][1]] if support.skeleton.shape else list(index.bags)
    seen = 0
    for head in heads:
        for form in list(index.bags.get(head, ())):
            seen += 1
            if seen % STRIDE == 0:
                yield
            if match(pattern, thaw(form)) == support.captures:
                return form
    return None
