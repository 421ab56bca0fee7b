"""Two orders of the same few messages after which a program is not the same: what *diffluent* means, shown.

Rows are made for what comes from outside (channels, input interfaces, what no rule writes, timers), of a few small
values and of the constants in the program's code.  The program is made again and ticked for each order: one message or
several in a tick, and a message a second time, as networks do.  When all has come, it runs until it rests, and timers
fire until that changes nothing; then what is there, and all rows that ever passed, is compared.

>>> from syndicate.bloom import Bloom, bloom, channel, table
>>> class FirstCome(Bloom):
...     bid = channel(["@to", "who"], []); winner = table(["who"], [])
...     @bloom
...     def rules(self):
...         self.winner <+ self.bid.payloads().notin(self.winner, lambda b, w: True)
>>> search = search_orders(FirstCome, ["winner"])
>>> print(search["winner"])
tick 1: bid (localhost, 1); tick 2: bid (localhost, 2): winner is (1)
tick 1: bid (localhost, 2); tick 2: bid (localhost, 1): winner is (2)

Contract: each schedule is one that the program has run; an input for which a tick raises is left out.  That nothing is
found is no proof: the values are few, and so are the messages.

Source: Alvaro et al. 2014 (runs that differ); ``docs/design/bloom.md``, "Two orders".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from random import Random
from time import monotonic
from types import CodeType, FunctionType
from typing import Final, TypeAlias

from attrs import field, frozen

from syndicate.bloom.collection import Collection
from syndicate.bloom.declaration import SCRATCHES, Kind
from syndicate.bloom.insight.calm import GROWING, reach_of
from syndicate.bloom.rules.symbols import declaration_of, kind_of
from syndicate.bloom.tick.runtime import Instantiated, Runtime, runtime_of
from syndicate.errors import SyndicateError
from syndicate.flow.element import Key, key_of, natural
from syndicate.lattice.lattice import Lattice
from syndicate.lattice.laws import seeds
from syndicate.values.value import Value

MESSAGES: Final = 3
"""So many are tried at most, unless one asks for more."""
SECONDS: Final = 10.0
INPUTS: Final = 400
"""So many sets of each number of messages."""
_RESTING: Final = 30
_FIRINGS: Final = 4
_WORD: Final = 24
_MORE: Final = 12
_LIBRARY: Final = ".bloom.library."
_PLAIN: Final = (1, 2)
_NEVER: Final = ("now", "halt")
"""What ends a program ends the question, too."""

Row: TypeAlias = tuple[Value, ...]
Ending: TypeAlias = frozenset[Key] | Lattice


@frozen
class IncomingRow:
    """A row that comes from outside; none, of a timer that fires, and one value of a lattice."""

    into: str
    row: Row

    def __str__(self) -> str:
        return f"{self.into} {_row_text(self.row)}" if self.row else f"{self.into} fires"


Schedule: TypeAlias = tuple[tuple[IncomingRow, ...], ...]
"""The messages of each tick; between these the program runs until it rests."""


@frozen
class Divergence:
    """Two schedules of the same messages, and what *name* is after each."""

    name: str
    first: Schedule
    second: Schedule
    ends: tuple[tuple[str, ...], tuple[str, ...]]
    again: bool = False
    """Whether the second has one of the messages twice."""

    def __str__(self) -> str:
        return "\n".join(
            f"{_shown(schedule)}: {self.name} is {', '.join(end) or 'empty'}"
            for schedule, end in zip((self.first, self.second), self.ends, strict=True)
        )

    def to_json(self) -> dict[str, object]:
        """As JSON: for each schedule its ticks, each a list of messages, and the rows in the end."""
        runs = zip((self.first, self.second), self.ends, strict=True)
        return {
            "schedules": [
                {
                    "ticks": [[[one.into, list(map(str, one.row))] for one in tick] for tick in schedule],
                    "end": list(end),
                }
                for schedule, end in runs
            ],
            "twice": self.again,
        }


@frozen
class OrderSearch:
    """What was found of each collection, and how far was looked: sets of *inputs*, of so many *messages* at most."""

    divergences: Mapping[str, Divergence]
    inputs: int
    runs: int
    messages: int
    refused: int

    def __getitem__(self, name: str) -> Divergence:
        return self.divergences[name]

    def __contains__(self, name: str) -> bool:
        return name in self.divergences

    @property
    def effort(self) -> str:
        """How far was looked, in words."""
        refused = f"; {self.refused} inputs made a tick raise and were left out" if self.refused else ""
        return f"{self.runs} runs with {self.inputs} inputs of up to {self.messages} messages{refused}"


def search_orders(
    make: Callable[[], Instantiated],
    names: Iterable[str],
    *,
    messages: int = MESSAGES,
    seconds: float = SECONDS,
    inputs: int = INPUTS,
    seed: int = 0,
    around: Sequence[IncomingRow] = (),
) -> OrderSearch:
    """Look for two orders after which the collections of these *names* differ.

    *make* gives the program again.  Fewer messages come first; *seconds* and the *inputs* of each number of messages
    bound it.  The same *seed* looks at the same inputs.  With messages that came in a run, *around*, these are tried
    and no others.
    """
    return _Searching(make, list(names), Random(seed), monotonic() + seconds, tuple(around)).search(messages, inputs)


@frozen(eq=False, slots=False)
class _Searching:
    make: Callable[[], Instantiated]
    names: list[str]
    random: Random
    deadline: float
    around: Sequence[IncomingRow] = ()
    divergences: dict[str, Divergence] = field(init=False, factory=dict)
    runs: list[None] = field(init=False, factory=list)

    def search(self, messages: int, inputs: int) -> OrderSearch:
        tried = refused = size = 0
        if self.names:
            program = self.make()
            sources = [] if self.around else list(_Sources(program, self.names).all())
            for size in range(1, messages + 1):
                seen: set[tuple[str, ...]] = set()
                for number in range(inputs if sources or len(self.around) >= size else 0):
                    if len(self.divergences) == len(self.names) or monotonic() > self.deadline:
                        return OrderSearch(self.divergences, tried, len(self.runs), size, refused)
                    some = tuple(sorted(self._messages(sources, size, number < inputs // 4), key=str))
                    what = tuple(map(str, some))
                    if what in seen or len(set(what)) < size:
                        continue
                    seen.add(what)
                    tried += 1
                    try:
                        self._compare(some)
                    except SyndicateError:  # the program is not for these rows
                        refused += 1
        return OrderSearch(self.divergences, tried, len(self.runs), size, refused)

    def _messages(
        self, sources: Sequence[tuple[str, Sequence[Sequence[Value]]]], size: int, plainly: bool
    ) -> list[IncomingRow]:
        if self.around:
            return self.random.sample(self.around, size)
        return [self._message(sources, plainly) for _ in range(size)]

    def _message(self, sources: Sequence[tuple[str, Sequence[Sequence[Value]]]], plainly: bool) -> IncomingRow:
        name, columns = self.random.choice(sources)
        few = [values[: len(_PLAIN)] if plainly else values for values in columns]
        return IncomingRow(name, tuple(self.random.choice(values) for values in few))

    def _compare(self, some: Sequence[IncomingRow]) -> None:
        """Run the messages in all orders that a few have; note the first two that differ, the plainest first."""
        ends: list[tuple[Schedule, Mapping[str, Ending]]] = []
        for schedule in schedules(some):
            end = self._end(schedule)
            for name in self.names:
                if name in self.divergences:
                    continue
                other = next((one for one in ends if _differ(one[1], end, name)), None)
                if other is not None:
                    again = sum(map(len, schedule)) > len(some)
                    texts = (_ending_texts(other[1][name]), _ending_texts(end[name]))
                    self.divergences[name] = Divergence(name, other[0], schedule, texts, again)
            ends.append((schedule, end))
            if len(self.divergences) == len(self.names):
                return

    def _end(self, schedule: Schedule) -> dict[str, Ending]:
        """What the collections are when all has come."""
        self.runs.append(None)
        program = self.make()
        runtime = runtime_of(program)
        try:
            return _Run(runtime, self.names).end(program, schedule)
        finally:
            runtime.close()


@frozen(eq=False)
class _Run:
    runtime: Runtime
    names: Sequence[str]
    passed: dict[str, set[Key]] = field(init=False, factory=dict)

    def end(self, program: Instantiated, schedule: Schedule) -> dict[str, Ending]:
        runtime = self.runtime
        for name in self.names:
            if kind_of(runtime.collections[name]) not in GROWING:
                self.passed[name] = set()
        runtime.sending.write = lambda line: None
        runtime.watchers.append(self._look)
        self._rest()
        for tick in schedule:
            for message in tick:
                give(program, message)
            self._rest()
        timers = [one for one in runtime.collections.values() if kind_of(one) is Kind.PERIODIC]
        before: dict[str, Ending] = {}
        for _ in range(_FIRINGS if timers else 0):
            before = self._now()
            for one in timers:
                runtime.fire(one)
            self._rest()
        last = self._now()
        return {name: end for name, end in last.items() if not timers or before[name] == end}

    def _look(self) -> None:
        for name, rows in self.passed.items():
            rows.update(self.runtime.rows(name))

    def _now(self) -> dict[str, Ending]:
        endings: dict[str, Ending] = {}
        for name in self.names:
            if kind_of(self.runtime.collections[name]) is Kind.LATTICE:
                endings[name] = self.runtime.value(name)
            elif name in self.passed:
                sent = (key_of(row) for _, into, row in self.runtime.sending.sent if into == name)
                endings[name] = frozenset(self.passed[name]).union(sent)
            else:
                endings[name] = frozenset(self.runtime.rows(name))
        return endings

    def _rest(self) -> None:
        """Tick until nothing waits; who never rests has ticked often enough."""
        for _ in range(_RESTING):
            if self.runtime.halted or not self.runtime.waits():
                return
            self.runtime.tick()


def give(program: Instantiated, message: IncomingRow) -> None:
    """Let a message come with the next tick."""
    runtime = runtime_of(program)
    one = runtime.collections[message.into]
    match kind_of(one):
        case Kind.PERIODIC:
            runtime.fire(one)
        case Kind.CHANNEL:
            runtime.deliver(one, [message.row])
        case Kind.LATTICE:
            one.insert(message.row[0])
        case _:
            one.insert([message.row])


def schedules(some: Sequence[IncomingRow]) -> Iterator[Schedule]:
    """All orders of a few messages: one by one, some or all together; and one of them a second time.

    >>> a, b = IncomingRow("c", (1,)), IncomingRow("c", (2,))
    >>> [_shown(one) for one in schedules([a, b])][:3]
    ['tick 1: c (1); tick 2: c (2)', 'tick 1: c (2); tick 2: c (1)', 'tick 1: c (1), c (2)']
    """
    several = len(some)
    for ticks in range(several, 0, -1):
        for cuts in combinations(range(1, several), ticks - 1):
            met: set[Schedule] = set()
            for order in permutations(some):
                edges = [0, *cuts, several]
                parts = [order[edges[n] : edges[n + 1]] for n in range(ticks)]
                schedule = tuple(tuple(sorted(part, key=str)) for part in parts)
                if schedule not in met:
                    met.add(schedule)
                    yield schedule
    alone = tuple((one,) for one in some)
    for one in some:
        if one.row:
            yield (*alone, (one,))


@frozen(eq=False)
class _Sources:
    """Where rows come from that reach certain collections, and of what values they are made."""

    program: Instantiated
    names: Sequence[str]

    def all(self) -> Iterator[tuple[str, Sequence[Sequence[Value]]]]:
        runtime = runtime_of(self.program)
        rules = runtime.wiring.rules
        reach = reach_of(runtime.collections, rules)
        near = set().union(*(reach[name] for name in self.names))
        written = {rule.head for rule in rules}
        plain = self._values(runtime)
        for name, one in runtime.collections.items():
            kind = kind_of(one)
            outer = kind in SCRATCHES or kind in GROWING
            if (
                name not in near
                or name == "now"
                or not (
                    kind in (Kind.CHANNEL, Kind.PERIODIC)
                    or (kind is Kind.INPUT and name in runtime.outer)
                    or (outer and name not in written)
                )
            ):
                continue
            yield name, [] if kind is Kind.PERIODIC else self._columns(one, plain)

    def _columns(self, one: Collection, plain: Sequence[Value]) -> list[Sequence[Value]]:
        declared = declaration_of(one)
        if declared.kind is Kind.LATTICE:
            return [_growing(declared.lattices["value"])]
        return [
            [runtime_of(self.program).address]
            if place == declared.location
            else _growing(declared.lattices[column])
            if column in declared.lattices
            else plain
            for place, column in enumerate(declared.columns)
        ]

    def _values(self, runtime: Runtime) -> list[Value]:
        """Two small numbers, the constants of the program's code, and what its class says in tuples."""
        columns = {column for one in runtime.collections.values() for column in declaration_of(one).columns}
        more: dict[str, Value] = {}
        for cls in type(self.program).__mro__:
            if cls is object or (cls.__module__.startswith("syndicate.bloom.") and _LIBRARY not in cls.__module__):
                continue
            for name, value in vars(cls).items():
                candidates: Iterable[object] = ()
                if isinstance(value, FunctionType):
                    candidates = _constants(value.__code__)
                elif isinstance(value, (tuple, list)) and not name.startswith("__"):
                    candidates = value
                for one in candidates:
                    if type(one) is int or (type(one) is str and one.strip() and one not in columns):
                        more.setdefault(repr(one), one)
        names = {repr(one) for one in runtime.collections}
        rest = [one for text, one in sorted(more.items()) if text not in names and len(text) <= _WORD][:_MORE]
        return [*_PLAIN, *_PLAIN, runtime.address, *rest]


def _growing(lattice: type[Lattice]) -> list[Value]:
    return [one for one in seeds(lattice, None) if one != lattice.bottom()][:3] or [lattice.bottom()]


def _constants(code: CodeType) -> Iterator[object]:
    for one in code.co_consts[1:] if code.co_consts and isinstance(code.co_consts[0], str) else code.co_consts:
        if isinstance(one, CodeType):
            yield from _constants(one)
        elif isinstance(one, (tuple, frozenset)):
            yield from one
        else:
            yield one


def _differ(one: Mapping[str, Ending], other: Mapping[str, Ending], name: str) -> bool:
    return name in one and name in other and one[name] != other[name]


def _row_text(row: Sequence[Value]) -> str:
    return f"({', '.join(map(str, row))})"


def _ending_texts(end: Ending) -> tuple[str, ...]:
    if isinstance(end, Lattice):
        return (str(end),)
    return tuple(sorted(_row_text(natural(row)) for row in end))


def _shown(schedule: Schedule) -> str:
    return "; ".join(f"tick {n}: {', '.join(map(str, tick))}" for n, tick in enumerate(schedule, 1))
