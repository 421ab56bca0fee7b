"""The skeleton index: every present value, every observer, and which observers get which events.

Contract, the specification being :func:`syndicate.values.pattern.match`: at any time an observer of a pattern has
seen exactly the distinct captures of the present values that match, each by one ``asserted`` and, once no such value is
left, one ``retracted``.

Where it goes beyond the paper:

* Shapes that nobody uses are removed, at once: a broker fed with ever-new labels and patterns returns to its
  baseline.  The price is that a shape's caches are built again for its next first observer.
* The root's cache is a bag for each constructor, so that the first observer of a label does not look through all
  other values.
* Many values of one constructor may come as one, and stay so where no observer looks (:mod:`.bulk`).
* ``Observe`` assertions are expanded to their long form only while somebody looks at values of that constructor, or
  at all values.

Source: Garnock-Jones 2018, "The index" (``extend``, ``addHandler``, ``removeHandler``, ``modify``,
``adjustAssertion``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, TypeAlias

from attrs import frozen

from syndicate.errors import InternalError
from syndicate.index.bag import Bag
from syndicate.index.bulk import Bulks
from syndicate.index.interest import INTEREST, OBSERVE, expand
from syndicate.index.path import Move, Path, child, class_of, move
from syndicate.index.skeleton import Constants, Skeleton
from syndicate.index.trie import NO_TABLES, ConstantTable, Handler, Kept, Node, Notice, Tell
from syndicate.native import kernel
from syndicate.values.value import Frozen, Ref, Value


@frozen
class IndexSize:
    """The size of an index."""

    values: int
    nodes: int
    tables: int
    handlers: int


_TO_ROOT: Final[Move] = (0, ())

Trail: TypeAlias = "tuple[Frozen, Trail | None]"
"""A part of a value, and what it is a part of, up to the whole."""


@kernel
class Gate:
    """The path of a value into an index: counted in the bag of its constructor, and shown to the tables of it.

    That is all there is to do for nearly all values.  Those whose further shape matters, and interest, go *beyond*: to
    methods of the index.  ``counts`` are how many values were added, removed and sent so far.
    """

    __slots__ = ("_added", "_removed", "_sent", "bags", "classes", "index", "tables")

    def __init__(self, index: Index, classes: dict[Frozen, Node]) -> None:
        self.index = index
        self.classes = classes
        self.bags: dict[Frozen, Bag] = {}
        self.tables: dict[Frozen, tuple[ConstantTable, ...] | None] = {}
        self._added = self._removed = self._sent = 0

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many values were added, removed and sent; each copy counts."""
        return self._added, self._removed, self._sent

    def add(self, form: Frozen) -> bool:
        """Add one copy of a value; True if it is the first."""
        self._added += 1
        head = form[0] if type(form) is tuple else None
        bag = self.bags.get(head)
        if bag is None:
            bag = self.bags[head] = Bag()
        count = bag.get(form)
        if count is not None:
            bag[form] = count + 1
            return False
        bag[form] = 1
        tables = self.tables.get(head, self.index.otherwise)
        if tables is None:
            self.index.add_beyond(form, head)
        else:
            for table in tables:
                table.add(form)
        return True

    def remove(self, form: Frozen) -> bool:
        """Remove one copy of a value; True if it was the last."""
        head = form[0] if type(form) is tuple else None
        bag = self.bags[head]
        count = bag[form]
        self._removed += 1
        if count > 1:
            bag[form] = count - 1
            return False
        del bag[form]
        if not bag and head not in self.classes:
            del self.bags[head]
        tables = self.tables.get(head, self.index.otherwise)
        if tables is None:
            self.index.remove_beyond(form, head)
        else:
            for table in tables:
                table.remove(form)
        return True

    def passed(self) -> None:
        """Count a value that was added and removed, and shown to nobody."""
        self._added += 1
        self._removed += 1

    def send(self, form: Frozen) -> None:
        """Deliver a message; nothing is kept."""
        self._sent += 1
        head = form[0] if type(form) is tuple else None
        tables = self.tables.get(head, self.index.otherwise)
        if tables is None:
            self.index.send_beyond(form, head)
        else:
            for table in tables:
                table.send(form)


class Index:
    """The index of one dataspace.

    >>> from syndicate.values.pattern import capture
    >>> from syndicate.index.skeleton import analyse
    >>> from syndicate.values.value import freeze
    >>> index = Index(lambda kind, handler, captures, values, notice: print("!+-"[kind], values))
    >>> index.observe(*analyse(["present", capture()]), Ref.unbound())
    []
    >>> first = index.add(freeze(["present", "Alice"])); index.send(freeze(["present", "Bob"]))
    + ('Alice',)
    ! ('Bob',)
    >>> last = index.remove(freeze(["present", "Alice"]))
    - ('Alice',)
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._root = Node({})
        self._classes: dict[Frozen, Node] = {}
        self._root.moves[_TO_ROOT] = self._classes
        gate = self.gate = Gate(self, self._classes)
        self.bags = gate.bags
        # All tables that a value of a constructor must be shown, or None where its further shape matters, and those
        # that values of all other constructors must be shown.
        self._tables = gate.tables
        self.otherwise: tuple[ConstantTable, ...] | None = NO_TABLES
        self.add, self.remove, self.send = gate.add, gate.remove, gate.send
        self.bulks = Bulks(self._root, self._classes, gate.add, gate.remove)

    # ------------------------------------------------------------------------------------------------ values

    def add_beyond(self, form: Frozen, head: Frozen) -> None:
        """Show a new value to what looks further than at its constructor."""
        if head is INTEREST:
            form, head = expand(form), OBSERVE
        for table in self._root.tables:
            table.add(form)
        node = self._classes.get(head)
        if node is not None:
            self._add(node, form, (form, None))

    def _add(self, node: Node, form: Frozen, stack: Trail) -> None:
        if type(node.values) is dict:
            node.values[form] = None  # type: ignore[assignment]  # a bag is the index's own to change
        for table in node.tables:
            table.add(form)
        for further, below in _moves(node, stack):
            self._add(further, form, below)

    def remove_beyond(self, form: Frozen, head: Frozen) -> None:
        """Take a value back from what looks further than at its constructor."""
        if head is INTEREST:
            form, head = expand(form), OBSERVE
        for table in self._root.tables:
            table.remove(form)
        node = self._classes.get(head)
        if node is not None:
            self._remove(node, form, (form, None))

    def _remove(self, node: Node, form: Frozen, stack: Trail) -> None:
        if type(node.values) is dict:
            node.values.pop(form, None)
        for table in node.tables:
            table.remove(form)
        for further, below in _moves(node, stack):
            self._remove(further, form, below)

    def send_beyond(self, form: Frozen, head: Frozen) -> None:
        """Deliver a message to what looks further than at its constructor."""
        if head is INTEREST:
            form, head = expand(form), OBSERVE
        for table in self._root.tables:
            table.send(form)
        node = self._classes.get(head)
        if node is not None:
            self._send(node, form, (form, None))

    def _send(self, node: Node, form: Frozen, stack: Trail) -> None:
        for table in node.tables:
            table.send(form)
        for further, below in _moves(node, stack):
            self._send(further, form, below)

    # ------------------------------------------------------------------------------------------------ its cost

    def reach(self, head: Frozen) -> int:
        """The most observers that a value of this constructor can reach: a look-up."""
        if self._root.tables:
            return self._root.users
        node = self._classes.get(OBSERVE if head is INTEREST else head)
        return 0 if node is None else node.users

    def audience(self, form: Frozen) -> int:
        """How many observers a message would reach; costs as much as the message."""
        if type(form) is tuple and form[0] is INTEREST:
            form = expand(form)
        node = self._classes.get(form[0] if type(form) is tuple else None)
        count = sum([table.audience(form) for table in self._root.tables])
        return count if node is None else count + self._audience(node, form, (form, None))

    def _audience(self, node: Node, form: Frozen, stack: Trail) -> int:
        count = sum([table.audience(form) for table in node.tables])
        return count + sum([self._audience(further, form, below) for further, below in _moves(node, stack)])

    def population(self, skeleton: Skeleton) -> int:
        """The most values that an observer of this skeleton can be notified of."""
        if not skeleton.shape:
            return self.values()
        head = skeleton.shape[0][1]
        count = len(self.bags.get(head, ())) + self.bulks.waiting().get(head, 0)
        return count + len(self.bags.get(INTEREST, ())) if head == OBSERVE else count

    def _reshaped(self, heads: Iterable[Frozen]) -> None:
        """Nodes or tables came or went: look again whether values of these constructors may take the shortcut."""
        self.otherwise = None if self._root.tables else NO_TABLES
        for head in heads:
            node = self._classes.get(head)
            if node is None or self._root.tables:
                self._tables.pop(head, None)
            else:
                self._tables[head] = None if node.moves or head == OBSERVE else node.tables
        if OBSERVE in self._classes:
            self._tables[INTEREST] = None
        else:
            self._tables.pop(INTEREST, None)

    # ------------------------------------------------------------------------------------------------ observers

    def observe(self, skeleton: Skeleton, constants: Constants, observer: Ref) -> Collection[Notice]:
        """Add an observer; returns what it must be notified of at once."""
        self.bulks.observed(skeleton, constants)
        node = self._extend(skeleton)
        table = node.table(skeleton)
        if table is None:
            table = node.add_table(skeleton, self._values_at(node), self._tell)
            self._reshaped([skeleton.shape[0][1]] if skeleton.shape else self._classes)
        handler = table.handler(constants, lambda: self._values_at(node))
        handler.join(observer)
        return handler.notices.values() if handler.notices else []

    def unobserve(self, skeleton: Skeleton, constants: Constants, observer: Ref) -> Collection[Notice]:
        """Remove an observer; what must be taken back from it."""
        nodes = self._trail(skeleton)
        table = nodes[-1].table(skeleton)
        if table is None:
            raise InternalError(f"no table for {skeleton!r}")
        handler = table.handlers[constants]
        notices: Collection[Notice] = list(handler.notices.values()) if handler.notices else []
        if handler.leave(observer):
            del table.handlers[constants]
        if not table.handlers:
            nodes[-1].remove_table(skeleton)
        self._prune(skeleton, nodes)
        if not table.handlers:
            self._reshaped([skeleton.shape[0][1]] if skeleton.shape else self._classes)
        return notices

    def _extend(self, skeleton: Skeleton) -> Node:
        """The node at the end of a skeleton's shape, made where it is missing: the paper's ``extend``."""
        node = self._root
        node.users += 1
        here: tuple[Value, ...] = ()
        for path, head in skeleton.shape:
            step = move(here, path)
            classes = node.moves.setdefault(step, {})
            further = classes.get(head)
            if further is None:
                further = classes[head] = Node(self._values_under(node, path, head))
            further.users += 1
            node, here = further, path
        return node

    def _values_at(self, node: Node) -> Collection[Frozen]:
        return list(self._all()) if node is self._root else node.values

    def _values_under(self, node: Node, path: Path, head: Frozen) -> Kept:
        """The values of *node* whose constructor at *path* is *head*."""
        if path:
            return {form: None for form in node.values if _class_at(form, path) == head}
        if head == OBSERVE:
            return dict.fromkeys([*self.bags.get(head, ()), *map(expand, self.bags.get(INTEREST, ()))])
        return self.bags.setdefault(head, Bag())

    def _trail(self, skeleton: Skeleton) -> list[Node]:
        """The nodes along a skeleton's shape, root first."""
        nodes = [self._root]
        here: tuple[Value, ...] = ()
        for path, head in skeleton.shape:
            nodes.append(nodes[-1].moves[move(here, path)][head])
            here = path
        return nodes

    def _prune(self, skeleton: Skeleton, nodes: list[Node]) -> None:
        """Count one user less along a shape and cut off what has none left."""
        for node in nodes:
            node.users -= 1
        here: tuple[Value, ...] = ()
        for parent, node, (path, head) in zip(nodes, nodes[1:], skeleton.shape, strict=False):
            if not node.users:
                step = move(here, path)
                del parent.moves[step][head]
                if not parent.moves[step] and parent is not self._root:
                    del parent.moves[step]
                if not path and not self.bags.get(head, True):
                    del self.bags[head]
                return
            here = path

    # ------------------------------------------------------------------------------------------------ looking at it

    def _all(self) -> Iterator[Frozen]:
        for head, bag in self.bags.items():
            yield from map(expand, bag) if head is INTEREST else bag

    def __iter__(self) -> Iterator[Frozen]:
        """The distinct values that are present, ``Observe`` assertions in their compact form."""
        self.bulks.open()
        for bag in self.bags.values():
            yield from bag

    def values(self) -> int:
        """How many distinct values are present; in bulks, equal ones count each."""
        return sum(map(len, self.bags.values())) + sum(self.bulks.waiting().values())

    def handlers(self) -> Iterator[Handler]:
        """All handlers."""
        for node in self._root.below():
            for table in node.tables:
                yield from table.handlers.values()

    def interests(self) -> Iterator[tuple[Skeleton, Constants, Handler]]:
        """All handlers, each with what it is notified of."""
        for node in self._root.below():
            for table in node.tables:
                for constants, handler in table.handlers.items():
                    yield table.skeleton, constants, handler

    def statistics(self) -> IndexSize:
        """How large the index is."""
        nodes = list(self._root.below())
        return IndexSize(
            values=self.values(),
            nodes=len(nodes),
            tables=sum(len(node.tables) for node in nodes),
            handlers=sum(1 for _ in self.handlers()),
        )


def _moves(node: Node, stack: Trail) -> Iterator[tuple[Node, Trail]]:
    """The nodes that a value's constructors lead to from *node*; *stack* is the trail of its parts, innermost first."""
    for (up, down), classes in node.moves.items():
        above = stack
        for _ in range(up):
            above = above[1]  # type: ignore[assignment]  # no move goes above the root
        part = child(above[0], down[0])
        further = classes.get(class_of(part))
        if further is not None:
            yield further, (part, above)


def _class_at(form: Frozen, path: Path) -> Frozen:
    for step in path:
        form = child(form, step)
    return class_of(form)
