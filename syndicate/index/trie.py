"""The parts of the index: nodes, tables of constants, handlers.

=================  ===================================================================================================
paper              here
=================  ===================================================================================================
``Node``           :class:`Node`: the values whose shape leads here, tables, and moves to further nodes
``Continuation``   ``Node.values`` and ``Node.tables``
``Leaf``           a row of a :class:`ConstantTable`: values with these in ``values``, their one in ``handlers``
``Handler``        :class:`Handler`: a bag of captures and who observes them
=================  ===================================================================================================

Two representations differ from the paper's.  A table belongs to one skeleton, captures included, where the paper shares
a leaf's cache between capture maps: patterns that capture differently nearly always check differently too, and so a
leaf has one handler.  And a table keeps a lone value bare instead of in a set of one; leaves that nobody observes are
only such an entry, no object.  Sets of values are dictionaries without values here, which keep their order: what a late
observer is notified first must not depend on hashes, which differ from process to process.

Source: Garnock-Jones 2018, "The index".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Protocol, TypeAlias

from syndicate.index.bag import Bag
from syndicate.index.compiled import HOT, factory
from syndicate.index.event import ASSERT, MESSAGE, RETRACT
from syndicate.index.matching import interpret, values_of
from syndicate.index.path import MISSING, Move
from syndicate.index.skeleton import Constants, Skeleton
from syndicate.values.value import SEQ, Frozen, HomeActor, Ref, Value

Captures: TypeAlias = tuple[Frozen, ...]

Kept: TypeAlias = dict[Frozen, None] | Bag
"""The values at a node: those of a constructor are the bag that the index has of them anyway."""

_TOGETHER: Final = 64
"""The most observers that one event is for."""

Audience: TypeAlias = Ref | tuple[Ref, ...]
"""Who one event is for: an observer, or several of one actor, all of whom want frozen forms, or none."""


class Notice:
    """One tuple of captures that a handler's observers were notified of; also the *handle* by which they know it.

    *values* are the captures as values, or None as long as they have been made for nobody: see :meth:`thawed`.
    """

    __slots__ = ("captures", "count", "values")

    def __init__(self, captures: Captures, values: tuple[Value, ...] | None = None) -> None:
        self.captures = captures
        self.values = values
        self.count = 1

    def thawed(self) -> tuple[Value, ...]:
        """The captures as values: made once, when the first observer comes who wants them so."""
        if self.values is None:
            self.values = values_of(self.captures)
        return self.values

    @property
    def form(self) -> Frozen:
        """What a raw observer received, as :class:`~syndicate.actors.turn.Handle` has it: another dataspace may be
        one.
        """
        return (SEQ, *self.captures)


class Tell(Protocol):
    """What the index calls with each event that it finds: the dataspace."""

    def __call__(
        self, kind: int, handler: Handler, captures: Captures, values: tuple[Value, ...] | None, notice: Notice | None
    ) -> None:
        """An ASSERT, RETRACT or MESSAGE of these captures for a handler's observers; *values* is None if all of them
        are raw; *notice* is the handle, of a message None.
        """


class Handler:
    """All observers of one skeleton with the same constants, and the captures that they were notified of."""

    __slots__ = ("_groups", "notices", "observers", "raw")

    def __init__(self) -> None:
        # None and a bare reference stand for the empty and the one-element dictionary: most handlers have one
        # observer and no notices, and would consist of dictionaries otherwise.
        self.notices: dict[Captures, Notice] | None = None
        self.observers: Ref | dict[Ref, None] | None = None
        self._groups: dict[HomeActor, list[Audience]] | None = None
        self.raw = False  # whether there are observers, and all of them want frozen forms

    def join(self, observer: Ref) -> None:
        """Add an observer."""
        self.raw = observer.raw and (self.raw or self.observers is None)
        if self.observers is None:
            self.observers = observer
        elif isinstance(self.observers, Ref):
            self.observers = {self.observers: None, observer: None}
        else:
            self.observers[observer] = None
        if self._groups is not None:
            _gather(self._groups, observer)

    def leave(self, observer: Ref) -> bool:
        """Remove an observer; True if it was the last."""
        self._groups = None
        if isinstance(self.observers, dict):
            self.observers.pop(observer, None)
            self.raw = bool(self.observers) and all(each.raw for each in self.observers)
            return not self.observers
        if self.observers is observer:
            self.observers, self.raw = None, False
        return self.observers is None

    @property
    def audience(self) -> int:
        """How many observers there are."""
        return len(self.observers) if isinstance(self.observers, dict) else int(self.observers is not None)

    @property
    def groups(self) -> dict[HomeActor, list[Audience]]:
        """The observers by actor, in the order in which they came, so many at a time that one event for them is soon
        handled.

        An observer that comes is put with them; after one has left they are made again when somebody is to be notified,
        which costs as much anyway.
        """
        if self._groups is None:
            self._groups = {}
            observers = self.observers
            for observer in observers if isinstance(observers, dict) else (observers,) if observers else ():
                _gather(self._groups, observer)
        return self._groups


def _gather(groups: dict[HomeActor, list[Audience]], observer: Ref) -> None:
    """Put an observer with the last of its actor's, if they are served alike and not too many."""
    audiences = groups.setdefault(observer.facet.actor, [])
    if audiences:
        last = audiences[-1]
        together = last if isinstance(last, tuple) else (last,)
        if together[0].raw == observer.raw and len(together) < _TOGETHER:
            audiences[-1] = (*together, observer)
            return
    audiences.append(observer)


class ConstantTable:
    """The values and handlers of one skeleton at the end of its shape, by their constants.

    ``add``, ``remove`` and ``send`` handle a value that passed the shape: check it, keep or drop it, notify the
    handler.
    ``fill(values)`` keeps many, ``recall(notices, values)`` counts the captures of many into a bag; both notify nobody.
    They are attributes, so that the hot ones (:mod:`.compiled`) replace the cold ones.

    Values are kept for observers with further constants, who come when values are there: from the first of these on,
    who pays for what is there, and not before.  A skeleton without constants has one handler, which comes and goes with
    its table: nothing needs to be kept for it.
    """

    __slots__ = ("_tell", "_uses", "add", "fill", "handlers", "recall", "remove", "send", "skeleton", "values")

    def __init__(self, skeleton: Skeleton, forms: Collection[Frozen], tell: Tell) -> None:
        self.skeleton = skeleton
        self._tell = tell
        self._uses = 0
        self.handlers: dict[Constants, Handler] = {}
        self.values: dict[Constants, Frozen | dict[Frozen, None]] | None = None
        self.add: Callable[[Frozen], None] = self._add
        self.remove: Callable[[Frozen], None] = self._remove
        self.send: Callable[[Frozen], None] = self._send
        self.fill: Callable[[Iterable[Frozen]], None] = self._fill
        self.recall: Callable[[dict[Captures, Notice], Iterable[Frozen]], None] = self._recall
        self._warm(len(forms))
        if not skeleton.places:
            handler = self.handlers[()] = Handler()
            handler.notices = self._notices(forms)

    def handler(self, constants: Constants, forms: Callable[[], Collection[Frozen]]) -> Handler:
        """The handler for these constants; a new one if there was none.  *forms* are the values of its node."""
        handler = self.handlers.get(constants)
        if handler is None:
            if self.values is None and (earlier := forms()):
                self._keep_all(earlier)
            handler = self.handlers[constants] = Handler()
            there = None if self.values is None else self.values.get(constants)
            if there is not None:
                handler.notices = self._notices(there if type(there) is dict else (there,))
        return handler

    def _keep_all(self, forms: Collection[Frozen]) -> None:
        """Keep what is there, and from now on what comes."""
        self.values = {}
        if self.add != self._add:
            self._generate()  # they hold the dictionary, or none
        self.fill(forms)

    def _notices(self, forms: Iterable[Frozen]) -> dict[Captures, Notice] | None:
        notices: dict[Captures, Notice] = {}
        self.recall(notices, forms)
        return notices or None

    def _warm(self, uses: int) -> None:
        """Count uses; at ``HOT`` of them, replace the interpreter's methods by generated functions."""
        self._uses += uses
        if self._uses >= HOT and self.add == self._add:
            self._generate()

    def _generate(self) -> None:
        make = factory(self.skeleton.places, self.skeleton.checks, self.skeleton.captures)
        self.add, self.remove, self.send, self.fill, self.recall = make(self, Notice, self._tell)

    # ------------------------------------------------------------------------------------------------ cold

    def _key(self, form: Frozen) -> Constants:
        key = interpret(form, self.skeleton.places, self.skeleton.checks)
        return key[0] if key is not MISSING and len(key) == 1 else key

    def audience(self, form: Frozen) -> int:
        """How many observers a message would reach."""
        self._warm(1)
        handler = self.handlers.get(self._key(form))
        return 0 if handler is None else handler.audience

    def _keep(self, key: Constants, form: Frozen) -> None:
        if self.values is not None:
            there = self.values.get(key)
            if there is None:
                self.values[key] = form
            elif type(there) is dict:
                there[form] = None
            else:
                self.values[key] = {there: None, form: None}

    def _drop(self, key: Constants, form: Frozen) -> None:
        if self.values is not None:
            there = self.values[key]
            if type(there) is dict and len(there) > 1:
                del there[form]
            else:
                del self.values[key]

    def _add(self, form: Frozen) -> None:
        self._warm(1)
        key = self._key(form)
        if key is MISSING:
            return
        self._keep(key, form)
        handler = self.handlers.get(key)
        captures = interpret(form, self.skeleton.captures) if handler is not None else MISSING
        if handler is None or captures is MISSING:
            return
        if handler.notices is None:
            handler.notices = {}
        notice = handler.notices.get(captures)
        if notice is None:
            notice = handler.notices[captures] = Notice(captures)
            self._tell(ASSERT, handler, captures, None if handler.raw else notice.thawed(), notice)
        else:
            notice.count += 1

    def _remove(self, form: Frozen) -> None:
        self._warm(1)
        key = self._key(form)
        if key is MISSING:
            return
        self._drop(key, form)
        handler = self.handlers.get(key)
        captures = interpret(form, self.skeleton.captures) if handler is not None else MISSING
        if handler is None or handler.notices is None or captures is MISSING:
            return
        notice = handler.notices[captures]
        if notice.count == 1:
            del handler.notices[captures]
            self._tell(RETRACT, handler, captures, None if handler.raw else notice.thawed(), notice)
        else:
            notice.count -= 1

    def _send(self, form: Frozen) -> None:
        self._warm(1)
        handler = self.handlers.get(self._key(form))
        if handler is not None:
            captures = interpret(form, self.skeleton.captures)
            if captures is not MISSING:
                self._tell(MESSAGE, handler, captures, None if handler.raw else values_of(captures), None)

    def _fill(self, forms: Iterable[Frozen]) -> None:
        for form in forms:
            key = self._key(form)
            if key is not MISSING:
                self._keep(key, form)

    def _recall(self, notices: dict[Captures, Notice], forms: Iterable[Frozen]) -> None:
        for form in forms:
            captures = MISSING if self._key(form) is MISSING else interpret(form, self.skeleton.captures)
            if captures is MISSING:
                continue
            notice = notices.get(captures)
            if notice is None:
                notices[captures] = Notice(captures)
            else:
                notice.count += 1


NO_TABLES: Final[tuple[ConstantTable, ...]] = ()


class Node:
    """A place in the trie of shapes: all values whose constructors lead here, and who looks at them."""

    __slots__ = ("_by_skeleton", "moves", "tables", "users", "values")

    def __init__(self, values: Kept) -> None:
        self.values = values
        self.tables = NO_TABLES
        self._by_skeleton: dict[Skeleton, ConstantTable] = {}
        self.moves: dict[Move, dict[Frozen, Node]] = {}
        self.users = 0

    def table(self, skeleton: Skeleton) -> ConstantTable | None:
        """The table of a skeleton that ends here, if there is one."""
        return self._by_skeleton.get(skeleton)

    def add_table(self, skeleton: Skeleton, forms: Collection[Frozen], tell: Tell) -> ConstantTable:
        """A table for a skeleton that ends here, filled from *forms*."""
        table = self._by_skeleton[skeleton] = ConstantTable(skeleton, forms, tell)
        self.tables = tuple(self._by_skeleton.values())
        return table

    def remove_table(self, skeleton: Skeleton) -> None:
        """Forget a table that has no handlers left."""
        del self._by_skeleton[skeleton]
        self.tables = tuple(self._by_skeleton.values())

    def below(self) -> Iterator[Node]:
        """This node and all nodes below it."""
        yield self
        for classes in self.moves.values():
            for node in classes.values():
                yield from node.below()
