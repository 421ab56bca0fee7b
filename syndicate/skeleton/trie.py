"""The parts of the index: nodes (continuations), tables of constants, handlers.

======================  ===================================================================================================
seed                    here
======================  ===================================================================================================
``Node``                :class:`Node`: the values whose shape leads here, tables, and moves to further nodes
``Continuation``        ``Node.kept`` and ``Node.tables``
``Leaf``                an entry of :class:`Table`: the values with these constants in ``kept``, their handlers in ``handlers``
``Handler``             :class:`Handler`: a bag of captures and who observes them
======================  ===================================================================================================

Two representations differ from the seed's, both for memory: a table keeps a lone value bare instead of in a set of one, and leaves
that nobody observes are only such an entry, no object.

Source: seed 004, "The index".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeAlias

from syndicate.skeleton.analysis import Check, Constants, Skeleton
from syndicate.skeleton.compiled import Interpreted, Projection
from syndicate.skeleton.path import MISSING, Move, Path
from syndicate.values import Frozen, Ref, thaw

Group: TypeAlias = tuple[Any, bool, tuple[Ref, ...]]
"""Observers that are served alike: their actor, whether they want frozen forms, and the references."""


class Told:
    """One tuple of captures that a handler's observers have been told; also the *handle* by which they know it."""

    __slots__ = ("captures", "count", "values")

    def __init__(self, captures: tuple[Frozen, ...]) -> None:
        self.captures = captures
        self.count = 1
        self.values = values_of(captures)


def values_of(captures: tuple[Frozen, ...]) -> tuple[Any, ...]:
    """The captured values; the very tuple if all of them are their own frozen forms."""
    for form in captures:
        if type(form) is tuple:
            return tuple([thaw(form) for form in captures])
    return captures


class Handler:
    """All observers of one skeleton with the same constants, and the captures that they have been told.

    Contract: ``told`` is the bag of the captures of all present values that match, kept whether or not they were told in this turn.
    """

    __slots__ = ("_groups", "observers", "paths", "project", "told")

    def __init__(self, paths: tuple[Path, ...], project: Projection) -> None:
        self.paths = paths
        self.project = project
        self.told: dict[tuple[Frozen, ...], Told] | None = None
        # A single observer, the usual case, is held bare: a dictionary of one costs more than all else here.
        self.observers: Ref | dict[Ref, None] | None = None
        self._groups: tuple[Group, ...] | None = None

    def join(self, observer: Ref) -> None:
        """Add an observer."""
        if self.observers is None:
            self.observers = observer
        elif isinstance(self.observers, Ref):
            self.observers = {self.observers: None, observer: None}
        else:
            self.observers[observer] = None
        self._groups = None

    def leave(self, observer: Ref) -> bool:
        """Remove an observer; True if it was the last."""
        self._groups = None
        if isinstance(self.observers, dict):
            self.observers.pop(observer, None)
            return not self.observers
        if self.observers is observer:
            self.observers = None
        return self.observers is None

    @property
    def groups(self) -> tuple[Group, ...]:
        """The observers by actor, as of now.  Rebuilt after a change only when somebody is to be told, which costs as much anyway."""
        if self._groups is None:
            by_actor: dict[tuple[Any, bool], list[Ref]] = {}
            members: Iterable[Ref] = self.observers if isinstance(self.observers, dict) else (self.observers,)  # type: ignore[assignment]
            for ref in members:
                by_actor.setdefault((ref.facet.actor, ref.raw), []).append(ref)
            self._groups = tuple([(actor, raw, tuple(refs)) for (actor, raw), refs in by_actor.items()])
        return self._groups

    def recall(self, forms: Iterable[Frozen]) -> None:
        """Fill the bag of captures from the values that are present."""
        told: dict[tuple[Frozen, ...], Told] = {}
        for form in forms:
            captures = self.project(form)  # looked up each time: it may become hot on the way
            if captures is not MISSING:
                known = told.get(captures)
                if known is None:
                    told[captures] = Told(captures)
                else:
                    known.count += 1
        self.told = told or None


class Table:
    """The values and handlers at one node whose patterns look at the same places for constants."""

    __slots__ = ("checks", "handlers", "kept", "places", "projections", "select")

    def __init__(self, places: tuple[Path, ...], checks: tuple[Check, ...], forms: Iterable[Frozen]) -> None:
        self.places = places
        self.checks = checks
        self.handlers: dict[Constants, tuple[Handler, ...]] = {}
        self.kept: dict[Constants, Any] = {}
        self.select: Projection = Interpreted(places, checks, len(places) == 1, self._hot)
        self.projections: dict[tuple[Path, ...], Projection] = {}
        for form in forms:
            key = self.select(form)  # looked up each time: it may become hot on the way
            if key is not MISSING:
                self.keep(key, form)

    def _hot(self, select: Projection) -> None:
        self.select = select

    def keep(self, key: Constants, form: Frozen) -> None:
        """Remember that *form* has these constants."""
        kept = self.kept
        there = kept.get(key, MISSING)
        if there is MISSING:
            kept[key] = form
        elif type(there) is set:
            there.add(form)
        else:
            kept[key] = {there, form}

    def drop(self, key: Constants, form: Frozen) -> None:
        """Forget it."""
        there = self.kept[key]
        if type(there) is set and len(there) > 1:
            there.discard(form)
        else:
            del self.kept[key]

    def forms(self, key: Constants) -> Collection[Frozen]:
        """The values with these constants: the seed's leaf cache."""
        there = self.kept.get(key, MISSING)
        if type(there) is set:
            return there
        return () if there is MISSING else (there,)

    def handler(self, constants: Constants, paths: tuple[Path, ...]) -> Handler:
        """The handler for these constants and captures, made if there is none."""
        there = self.handlers.get(constants, ())
        for handler in there:
            if handler.paths == paths:
                return handler
        handler = Handler(paths, self._projection(paths))
        self.handlers[constants] = (*there, handler)
        handler.recall(self.forms(constants))
        return handler

    def find(self, constants: Constants, paths: tuple[Path, ...]) -> Handler | None:
        """The handler for these constants and captures, if there is one."""
        return next((handler for handler in self.handlers.get(constants, ()) if handler.paths == paths), None)

    def remove(self, constants: Constants, handler: Handler) -> None:
        """Forget a handler that nobody observes any more."""
        rest = tuple([other for other in self.handlers[constants] if other is not handler])
        if rest:
            self.handlers[constants] = rest
        else:
            del self.handlers[constants]

    def _projection(self, paths: tuple[Path, ...]) -> Projection:
        """One projection for all handlers with these captures, so that they are hot together."""
        projection = self.projections.get(paths)
        if projection is None:

            def hot(compiled: Projection) -> None:
                self.projections[paths] = compiled
                for handlers in self.handlers.values():
                    for handler in handlers:
                        if handler.paths == paths:
                            handler.project = compiled

            projection = self.projections[paths] = Interpreted(paths, (), False, hot)
        return projection


class Node:
    """A place in the trie of shapes: all values whose constructors lead here, and who looks at them."""

    __slots__ = ("kept", "moves", "tables", "users")

    def __init__(self, kept: Any) -> None:
        self.kept: set[Frozen] | dict[Frozen, int] = kept
        self.tables: dict[tuple[tuple[Path, ...], tuple[Check, ...]], Table] = {}
        self.moves: dict[Move, dict[Frozen, Node]] = {}
        self.users = 0

    def table(self, skeleton: Skeleton, forms: Iterable[Frozen]) -> Table:
        """The table for a skeleton's constant map, made from *forms* if there is none."""
        table = self.tables.get(skeleton.key)
        if table is None:
            table = self.tables[skeleton.key] = Table(skeleton.places, skeleton.checks, forms)
        return table

    def below(self) -> Iterator[Node]:
        """This node and all nodes below it."""
        yield self
        for classes in self.moves.values():
            for node in classes.values():
                yield from node.below()
