"""clingo, as far as we use it: a program grounded piece by piece, and solved with a look at the clock.

>>> solver = Solver()
>>> solver.add("1 { p(1..3) } 1. #minimize { X : p(X) }. #show p/1.")
>>> [str(*model.shown) for model in solver.smallest()]
['p(1)']

Contract: Ctrl-C and the end of the time come through while clingo works.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from attrs import define, field, frozen

from syndicate.dedalus.ast import Row, Value, compute
from syndicate.errors import DedalusArithmetic

if TYPE_CHECKING:
    import clingo

Assumed: TypeAlias = "tuple[str | clingo.Symbol, bool]"
"""An atom, or its name if it has no columns, and whether it is true."""
Engine: TypeAlias = Literal["auto", "clingo", "search"]
ENGINES: Final[tuple[Engine, ...]] = ("auto", "clingo", "search")
"""What decides: the solver where it can, or one of the two."""
INSTALL: Final = 'pip install "syndicate-dataspace[verify]"'
LARGEST: Final = 1 << 20
"""clingo's numbers have 32 bits, and it does not say when a total has more."""
LARGEST_SUM: Final = (1 << 31) - 1
MOST_COMPUTED: Final = 2_000_000
"""So many times a program computes something: one that computes more has no end, perhaps."""
FIRST_FEW: Final = 16
"""So many timesteps are grounded first, where several may be grounded together."""
TOGETHER: Final = 20_000
"""About so many atoms together then, so that one can look at the clock in between."""
SHORT: Final = 1_000
"""So many conflicts are a short search."""
FEW_ANSWERS: Final = 64
"""So many answers are few."""
_GLANCE: Final = 0.05
"""Seconds after which the clock is looked at."""


class Unencodable(Exception):
    """What clingo has no equal for; the search by lineage decides it."""


class OutOfTime(Exception):
    """The time is over; *least* is a cost below which nothing was left."""

    def __init__(self, least: int = 0) -> None:
        super().__init__()
        self.least = least


def is_there() -> bool:
    """Whether clingo is installed."""
    return importlib.util.find_spec("clingo") is not None


def is_loaded() -> bool:
    """Whether clingo is imported, which takes longer than a small program does."""
    return "clingo" in sys.modules


def at(text: str, time: int) -> str:
    """A text for a time, with that in place of ``t``.

    >>> at('r1_t("t, too",t-1)', 4)
    'r1_t("t, too",4-1)'
    """
    return _TIME.sub(lambda match: str(time) if match[0] == "t" else match[0], text)


_TIME: Final = re.compile(r'"(?:\\.|[^"\\])*"|\bt\b')


@frozen
class StableModel:
    """A stable model: the symbols it shows, its cost, and whether none is less."""

    shown: tuple[clingo.Symbol, ...]
    cost: tuple[int, ...]
    best: bool


def value_of(symbol: clingo.Symbol) -> Value:
    """The value that a symbol is."""
    import clingo

    return symbol.number if symbol.type is clingo.SymbolType.Number else symbol.string


def row_of(symbols: Sequence[clingo.Symbol]) -> Row:
    """The row that symbols are."""
    return tuple(map(value_of, symbols))


def row_in(text: str) -> Row:
    r"""The row that columns are as text: to ask each of them what it is takes longer.

    >>> row_in('("a, \\"b\\"",-2)')
    ('a, "b"', -2)
    """
    row: list[Value] = _COLUMNS.decode(f"[{text[1:-1]}]")
    return tuple(row)


_COLUMNS: Final = json.JSONDecoder(strict=False)


@define(eq=False)
class Solver:
    """A program for clingo, which can be added to; *deadline* is one of ``time.monotonic``.

    *rank* says in which order a seed chooses; *tick* is called again and again while clingo works.
    """

    deadline: float | None = None
    rank: Callable[[int, int, Row], str] | None = None
    tick: Callable[[], object] = lambda: None
    control: clingo.Control = field(init=False)
    configured: dict[str, str] = field(init=False, factory=lambda: dict(_FIRST))
    parts: int = 0
    computed: int = 0
    sums: dict[clingo.Symbol, int] = field(factory=dict)
    wrong: list[str] = field(factory=list)
    undefined: str = ""
    """What the engine would say is wrong, of something that is computed in some run, perhaps."""
    least: int = 0
    bounded: Callable[[int], object] = lambda least: None

    def __attrs_post_init__(self) -> None:
        import clingo

        options = [f"--{name.replace('_', '-')}={value}" for name, value in self.configured.items()]
        self.control = clingo.Control(
            ["--warn=none", "--warn=operation-undefined", *options], logger=_heard(self.wrong)
        )

    # --------------------------------------------------------------------------- what clingo asks while it grounds

    def compute(self, op: clingo.Symbol, left: clingo.Symbol, right: clingo.Symbol) -> Sequence[clingo.Symbol]:
        """The engine's arithmetic; what is wrong is ``undefined``, and what is computed of that."""
        import clingo

        self.computed += 1
        if self.computed > MOST_COMPUTED:
            raise Unencodable(f"it computes more than {MOST_COMPUTED} times")
        types = {left.type, right.type}
        if clingo.SymbolType.Function in types:
            return [clingo.Function("undefined")]
        if not types <= {clingo.SymbolType.Number, clingo.SymbolType.String}:
            return []  # the least of nothing
        try:
            value = compute(op.string, value_of(left), value_of(right))
        except DedalusArithmetic as error:
            self.undefined = self.undefined or str(error)
            return [clingo.Function("undefined")]
        if not isinstance(value, int) or abs(value) > LARGEST:
            raise Unencodable(f"it computes {value}")
        return [clingo.Number(value)]

    def weighed(self, number: clingo.Symbol, group: clingo.Symbol) -> clingo.Symbol:
        """What is added up; raises :class:`Unencodable` where that may come to more than clingo can hold."""
        import clingo

        if number.type is clingo.SymbolType.Number:
            self.sums[group] = self.sums.get(group, 0) + abs(number.number)
            if self.sums[group] > LARGEST_SUM:
                raise Unencodable("a sum has more than 32 bits, perhaps")
        return number

    def rank_of(self, rule: clingo.Symbol, time: clingo.Symbol, values: clingo.Symbol) -> clingo.Symbol:
        """The place of a value in the order in which a seed chooses."""
        import clingo

        assert self.rank is not None
        return clingo.String(self.rank(rule.number, time.number, row_of(values.arguments)))

    # --------------------------------------------------------------------------------------------------- questions

    def add(self, text: str) -> None:
        """Add to the program; raises :class:`OutOfTime`, :class:`Unencodable`."""
        part = f"part{self.parts}"
        self.parts += 1
        self.control.add(part, [], text)
        self._ground([(part, [])])

    def add_timesteps(
        self,
        texts: Mapping[Sequence[int], Iterable[str]],
        *,
        apart: bool = True,
        whole: bool = False,
        tell: Callable[[int], object] = int,
    ) -> None:
        """Add what is to be read for timesteps, where ``t`` stands for the time; *tell* is called with how far it is.

        Each timestep as a text of its own, *apart*, evaluates all that is certain, and so knows more of what is not.
        Many together take less time.  The *whole* is read at once where a timestep may depend on a later one.
        """
        if apart:
            for time in sorted({time for times in texts for time in times}):
                tell(time)
                self.add(at("\n".join(line for times, lines in texts.items() if time in times for line in lines), time))
            return
        import clingo

        names: dict[int, list[tuple[str, list[clingo.Symbol]]]] = {}
        numbers = {time: [clingo.Number(time)] for time in {time for times in texts for time in times}}
        for times, lines in texts.items():
            name = f"part{self.parts}"
            self.parts += 1
            self.control.add(name, ["t"], "\n".join(lines))
            for time in times:
                names.setdefault(time, []).append((name, numbers[time]))
        waiting = sorted(names)
        many = len(waiting) if whole else FIRST_FEW
        while waiting:
            tell(waiting[0])
            there = len(self.control.symbolic_atoms)
            now, waiting = waiting[:many], waiting[many:]
            self._ground([part for time in now for part in names[time]])
            many = max(1, TOGETHER * len(now) // (len(self.control.symbolic_atoms) - there + 1))

    def _ground(self, parts: Sequence[tuple[str, Sequence[clingo.Symbol]]]) -> None:
        self.control.ground(parts, context=_Asked(self))
        if self.wrong:
            raise Unencodable(self.wrong[0])
        self.check()

    def check(self) -> None:
        """Raise :class:`OutOfTime` if the time is over, or what *tick* raises."""
        self.tick()
        if self.deadline is not None and clock.monotonic() > self.deadline:
            raise OutOfTime(self.least)

    def define(self) -> None:
        """Raise :class:`Unencodable` if what the engine would say is wrong is computed in any run."""
        if self.undefined and self.some(assuming=[("undefined", True)]) is not None:
            raise Unencodable(self.undefined)

    def true(self, name: str, arity: int) -> list[Row]:
        """The rows of what is certain, by the name of its predicate."""
        atoms = self.control.symbolic_atoms.by_signature(name, arity)
        return [row_of(atom.symbol.arguments) for atom in atoms if atom.is_fact]

    def solve(self, *arguments: str, assuming: Sequence[Assumed] = ()) -> Iterator[StableModel]:
        """The answers, as clingo comes upon them, *assuming* that atoms are true or not; raises :class:`OutOfTime`."""
        self._configure("solve_limit=umax,umax", *arguments)
        self.least = 0
        with self.control.solve(
            assumptions=_assumed(assuming), yield_=True, async_=True, on_unsat=self._bounded
        ) as handle:
            while True:
                while not handle.wait(_GLANCE):
                    self.check()
                model = handle.model()
                if model is None:
                    return
                yield self._answer(model)
                self.check()
                handle.resume()

    def some(self, *arguments: str, assuming: Sequence[Assumed] = ()) -> StableModel | None:
        """Some answer, if there is one; raises :class:`OutOfTime`.

        A short search needs no other thread, which would cost more than the search.
        """
        self._configure("models=1", "opt_mode=ignore", f"solve_limit={SHORT},umax", *arguments)
        with self.control.solve(assumptions=_assumed(assuming), yield_=True) as handle:
            model = handle.model()
            if model is not None:
                return StableModel(tuple(model.symbols(shown=True)), (), best=False)
            if handle.get().unsatisfiable:
                return None
        return next(self.solve("models=1", "opt_mode=ignore", *arguments, assuming=assuming), None)

    def _configure(self, *arguments: str) -> None:
        configuration = self.control.configuration
        for argument in arguments:
            name, _, value = argument.partition("=")
            if self.configured.get(name) != value:
                self.configured[name] = value
                setattr(configuration.solve if name in _SOLVING else configuration.solver, name, value)

    def _bounded(self, lower: Sequence[int]) -> None:
        if lower and lower[0] > self.least:
            self.least = lower[0]
            self.bounded(self.least)

    def improving(self, *, assuming: Sequence[Assumed] = ()) -> Iterator[StableModel]:
        """Answers of less and less cost, found by a short search: the last is a good one, if not the best."""
        for answer in self.solve(
            "models=0", "opt_mode=opt", "opt_strategy=bb", f"solve_limit={SHORT},umax", assuming=assuming
        ):
            yield answer
            if not any(answer.cost):  # where nothing has a cost all models would follow
                return

    def smallest(self, *, assuming: Sequence[Assumed] = ()) -> Iterator[StableModel]:
        """The answers of least cost, each once by what is projected."""
        yield from least(self.solve(*_SMALLEST, assuming=assuming))

    def short(self, *, assuming: Sequence[Assumed] = ()) -> list[StableModel] | None:
        """The same, if a short search has them all: it needs no other thread, and does not look at the clock."""
        self._configure(f"solve_limit={SHORT},umax", *_SMALLEST)
        with self.control.solve(assumptions=_assumed(assuming), yield_=True) as handle:
            answers = [self._answer(model) for model in handle]
            return list(least(answers)) if handle.get().exhausted else None

    def projected(self) -> Iterator[StableModel]:
        """Answers, one for each that is different in what is projected; raises :class:`OutOfTime`.

        If they are few and soon there it needs no other thread.
        """
        self._configure(f"solve_limit={SHORT},umax", f"models={FEW_ANSWERS}", *_PROJECTED)
        with self.control.solve(yield_=True) as handle:
            answers = [self._answer(model) for model in handle]
            whole = handle.get().exhausted
        yield from answers if whole else self.solve("models=0", *_PROJECTED)

    @staticmethod
    def _answer(model: clingo.Model) -> StableModel:
        return StableModel(tuple(model.symbols(shown=True)), tuple(model.cost), model.optimality_proven)


def least(answers: Iterable[StableModel]) -> Iterator[StableModel]:
    """Those of which none has less cost."""
    for answer in answers:
        if not any(answer.cost):  # nothing else costs as little
            yield answer
            return
        if answer.best:
            yield answer


def _heard(wrong: list[str]) -> Callable[[clingo.MessageCode, str], None]:
    """What takes down what clingo says is *wrong*; it knows no solver, which is gone as soon as nobody has it."""
    import clingo

    def heard(code: clingo.MessageCode, text: str) -> None:
        if code in (clingo.MessageCode.OperationUndefined, clingo.MessageCode.RuntimeError):
            wrong.append(text.strip())

    return heard


def _assumed(atoms: Iterable[Assumed]) -> list[tuple[clingo.Symbol, bool]]:
    import clingo

    return [(clingo.Function(atom) if isinstance(atom, str) else atom, true) for atom, true in atoms]


_SMALLEST: Final = ("models=0", "opt_mode=optN", "opt_strategy=usc", "project=auto")
_FIRST: Final[dict[str, str]] = {
    "models": "1",
    "opt_mode": "ignore",
    "opt_strategy": "usc",
    "project": "auto",
    "solve_limit": f"{SHORT},umax",
}
"""With what a solver begins: to set it later takes longer."""
_PROJECTED: Final = ("opt_mode=ignore", "project=auto")
_SOLVING: Final = frozenset({"models", "opt_mode", "project", "solve_limit"})


@define(eq=False)
class _Asked:
    """What clingo may call."""

    solver: Solver

    def compute(self, op: clingo.Symbol, left: clingo.Symbol, right: clingo.Symbol) -> Sequence[clingo.Symbol]:
        return self.solver.compute(op, left, right)

    def weighed(self, number: clingo.Symbol, group: clingo.Symbol) -> clingo.Symbol:
        return self.solver.weighed(number, group)

    def rank(self, rule: clingo.Symbol, time: clingo.Symbol, values: clingo.Symbol) -> clingo.Symbol:
        return self.solver.rank_of(rule, time, values)
