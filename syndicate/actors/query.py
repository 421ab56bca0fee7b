"""Queries: fields that follow the dataspace.

``query_set(ds, Present(capture()))`` is a field whose value is the set of those present, at every moment of every
turn; a dataflow block or a computed assertion that reads it runs again when it changes.  The collections are live,
read-only views.

>>> from syndicate import after, assert_, capture, dataflow, dataspace, run
>>> def boot():
...     ds = dataspace()
...     present = query_set(ds, ["present", capture()])
...     dataflow(lambda: print(sorted(present.value)))
...     ann, bob = assert_(ds, ["present", "Ann"]), assert_(ds, ["present", "Bob"])
...     after(0.01, ann.retract)
>>> run(boot)
[]
['Ann', 'Bob']
['Bob']

Source: ``docs/design/actors.md``, "Reacting to a dataspace".
"""

from __future__ import annotations

from collections.abc import Callable

from syndicate.actors.during import observe
from syndicate.actors.field import Field
from syndicate.actors.turn import Entity, current, here
from syndicate.errors import PatternError
from syndicate.index.skeleton import analyse
from syndicate.values.value import Assertion, Dictionary, Frozen, Ref, Value, ValueSet, freeze, freeze_as, freezers

Hook = Callable[..., object] | None


class _LiveSet(ValueSet):
    """One that changes, and so is never equal to one that cannot."""

    __slots__ = ()

    def put(self, element: Value) -> None:
        """Let it be there."""
        self._entries[freeze(element)] = element

    def drop(self, element: Value) -> None:
        """Let it be gone."""
        del self._entries[freeze(element)]


class _LiveDictionary(Dictionary):
    """One that changes, and so is never equal to one that cannot."""

    __slots__ = ()

    def put(self, form: Frozen, key: Value, value: Value) -> None:
        """Let *value* be at a key, which has this frozen form."""
        self._entries[form] = (key, value)

    def drop(self, form: Frozen) -> None:
        """Let the key of this frozen form be gone."""
        del self._entries[form]


freeze_as(_LiveSet, freezers[ValueSet])
freeze_as(_LiveDictionary, freezers[Dictionary])


class _Query(Entity):
    """Keeps the current matches; *add* and *remove* change a collection, and the field is notified."""

    def __init__(
        self,
        followed: Field[Value],
        add: Callable[..., None],
        remove: Callable[..., None],
        on_add: Hook,
        on_remove: Hook,
    ) -> None:
        self.followed = followed
        self.add = add
        self.remove = remove
        self.on_add = on_add
        self.on_remove = on_remove
        self.captures: dict[Assertion, Value] = {}

    def cancel(self) -> None:
        """Its facet has ended: nothing is known any more, such as through a connection that is lost."""
        matches, self.captures = self.captures, {}
        turn = here.turn
        if turn is not None and turn.journal is not None:
            turn.journal.note(lambda: self._restore(matches))
        for value in matches.values():
            self.remove(value)
        if matches:
            self.followed.changed()

    def _restore(self, matches: dict[Assertion, Value]) -> None:
        """It has not ended."""
        self.captures = matches
        for value in matches.values():
            self.add(value)
        self.followed.changed()

    def assert_(self, value: Value, handle: Assertion) -> None:
        self.add(value)  # which may call a function of the program: where that raises, nothing is known of it
        self.captures[handle] = value
        self.followed.changed()
        if self.on_add is not None:
            self.on_add(*value)

    def retract(self, handle: Assertion) -> None:
        value = self.captures.pop(handle)
        self.remove(value)
        self.followed.changed()
        if self.on_remove is not None:
            self.on_remove(*value)


def _follow(what: str, ds: Ref, pattern: Value, query: _Query, key: Hook = None) -> None:
    """Let a query follow what matches, as long as the current facet lives."""
    observe(what, ds, pattern, query, query.on_add, query.on_remove, key)
    facet = current(what).facet
    if facet.alive:
        facet.tasks[query] = None
        journal = current(what).journal
        if journal is not None:
            journal.note(lambda: facet.tasks.pop(query, None))


def _one(captures: tuple[Value, ...]) -> Value:
    """A single capture as it is, several as a tuple."""
    return captures[0] if len(captures) == 1 else captures


def _field(what: str, value: Value) -> Field[Value]:
    return Field(current(what), value, what)


def _expect_captures(what: str, pattern: Value, count: int) -> None:
    number = len(analyse(pattern)[0].captures)
    if number < count:
        raise PatternError(f"{what}() needs a pattern with at least {count} captures, not {number}: {pattern!r}")


def query_set(ds: Ref, pattern: Value, on_add: Hook = None, on_remove: Hook = None) -> Field[ValueSet]:
    """A field with the set of captures: bare where the pattern has one capture, tuples where it has more."""
    values = _LiveSet()
    followed = _field("query_set", values)

    def add(captures: Value) -> None:
        values.put(_one(captures))

    def remove(captures: Value) -> None:
        values.drop(_one(captures))

    _follow("query_set", ds, pattern, _Query(followed, add, remove, on_add, on_remove))
    return followed


def query_value(
    ds: Ref, pattern: Value, default: Value = None, on_add: Hook = None, on_remove: Hook = None
) -> Field[Value]:
    """A field with the captures of the assertion that matches, the newest if there are several, *default* if there is
    none.

    >>> from syndicate import assert_, capture, dataspace, run, sync
    >>> def boot():
    ...     ds = dataspace()
    ...     temperature = query_value(ds, ["temperature", capture()], default="unknown")
    ...     print(temperature.value)
    ...     assert_(ds, ["temperature", 21])
    ...     sync(ds, lambda: print(temperature.value))
    >>> run(boot)
    unknown
    21
    """
    values: dict[Frozen, Value] = {}
    followed = _field("query_value", default)

    def add(captures: Value) -> None:
        values[freeze(captures)] = followed.value = _one(captures)

    def remove(captures: Value) -> None:
        del values[freeze(captures)]
        followed.value = next(reversed(values.values()), default)

    _follow("query_value", ds, pattern, _Query(followed, add, remove, on_add, on_remove))
    return followed


def query_hash(ds: Ref, pattern: Value, on_add: Hook = None, on_remove: Hook = None) -> Field[Dictionary]:
    """A field with a dictionary from the first capture to the others (bare if there is one other); the newest value
    of a key wins.

    The pattern needs at least two captures; raises :class:`~syndicate.errors.PatternError`.

    >>> from syndicate import assert_, capture, dataspace, run, sync
    >>> def boot():
    ...     ds = dataspace()
    ...     rooms = query_hash(ds, ["at", capture(), capture()])
    ...     assert_(ds, ["at", "Alice", "hall"])
    ...     sync(ds, lambda: print(rooms.value["Alice"]))
    >>> run(boot)
    hall
    """
    _expect_captures("query_hash", pattern, 2)
    all_known: dict[Frozen, dict[Frozen, Value]] = {}
    entries = _LiveDictionary()
    followed = _field("query_hash", entries)

    def add(captures: Value) -> None:
        key = freeze(captures[0])
        all_known.setdefault(key, {})[freeze(captures)] = _one(captures[1:])
        entries.put(key, captures[0], _one(captures[1:]))

    def remove(captures: Value) -> None:
        key = freeze(captures[0])
        of_key = all_known[key]
        del of_key[freeze(captures)]
        if of_key:
            entries.put(key, captures[0], next(reversed(of_key.values())))
        else:
            del all_known[key]
            entries.drop(key)

    _follow("query_hash", ds, pattern, _Query(followed, add, remove, on_add, on_remove))
    return followed


def query_count(
    ds: Ref, pattern: Value, key: Callable[..., Value] | None = None, on_add: Hook = None, on_remove: Hook = None
) -> Field[Dictionary]:
    """A field with a dictionary from a key to the number of distinct captures with it; a key goes when its count is 0.

    *key* makes the key of the captures; the first capture is the default, and without any capture there is one key, ().

    >>> from syndicate import assert_, capture, dataspace, run, sync
    >>> def boot():
    ...     ds = dataspace()
    ...     rooms = query_count(ds, ["at", capture(), capture()], key=lambda who, room: room)
    ...     for who in ("Alice", "Bob"):
    ...         assert_(ds, ["at", who, "hall"])
    ...     sync(ds, lambda: print(dict(rooms.value)))
    >>> run(boot)
    {'hall': 2}
    """
    counts = _LiveDictionary()
    numbers: dict[Frozen, int] = {}
    followed = _field("query_count", counts)

    keys: dict[Frozen, tuple[Frozen, Value]] = {}  # as chosen when they came: *key* may return another one when they go

    def change(form: Frozen, chosen: Value, by: int) -> None:
        count = numbers[form] = numbers.get(form, 0) + by
        if count:
            counts.put(form, chosen, count)
        else:
            counts.drop(form)
            del numbers[form]

    def add(captures: Value) -> None:
        chosen = key(*captures) if key is not None else captures[0] if captures else ()
        form = freeze(chosen)
        keys[freeze(captures)] = form, chosen
        change(form, chosen, 1)

    def remove(captures: Value) -> None:
        change(*keys.pop(freeze(captures)), -1)

    _follow("query_count", ds, pattern, _Query(followed, add, remove, on_add, on_remove), key)
    return followed
