"""Agents: a program in a dataspace, each location an actor.

``spawn(Agent(program, "a"), ds)`` makes an actor of the location "a".  What asynchronous rules derive for other
locations is sent as messages in the dataspace, to whoever is there, in this process or behind the relay.  The same
program runs in one place by ``program.run``.

>>> from syndicate import capture, dataspace, spawn
>>> from syndicate.dedalus import Program
>>> from syndicate.testing import settled, watch
>>> program = Program.parse('''
...     say("a", "hi")@1;  friend("a", "b");
...     heard(F, X)@async :- say(A, X), friend(A, F);
...     persist[heard, 2];
... ''')
>>> def boot():
...     ds = dataspace()
...     seen.append(watch(ds, Fact("b", "heard", capture())))
...     for location in ("b", "a"):
...         spawn(Agent(program, location, outputs=["heard"]), ds)
>>> seen = []
>>> system = settled(boot); seen
[[('+', ('b', 'hi'))]]

**Time.**  Each agent has a clock of its own, which moves on when something waits, one timestep a turn, and is at rest
otherwise; it passes the time of sending of whatever arrives (:mod:`~syndicate.dedalus.live.local`).  With *every*, a
timestep passes each so many seconds: timers of a program are then timers.  A program that never rests needs that.

**What comes in.**  A message is there in one timestep; an assertion that is an input, from the timestep after it was
made to the timestep in which it goes.  **What goes out**: each row of an output is asserted while it is there.

**What strangers send** is refused, and the log says so, if it does not fit, or if the timestep in which it is there
first fails with it and not without, such as by arithmetic on text; so is the end of an assertion that a timestep cannot
do without.  What fails without it crashes the actor: what a program keeps is its own, so that it should look at what it
keeps of others when that comes.

**A location is a plain first column**: a value, or a variable, and nothing that is computed.  **A life begins anew**:
an agent that is started again is at its first timestep, and knows nothing of its life before.

**Diaries.**  A *recorded* agent keeps all that came and went, or tells it as it happens, as to a file
(:class:`~syndicate.dedalus.live.event_log.Writing`).  Of the diaries of all agents
:func:`~syndicate.dedalus.live.event_log.together` makes a run of the program in one place that equals what happened.

Contract: what is sent in a timestep goes out with its turn; what arrives in one turn and was not sent later than the
agent's time is there in one timestep.  State is kept as a run keeps it, and without a record nothing of the past.

Source: Alvaro et al. 2011b, "Distribution Model"; ``docs/design/dedalus.md``, "Delivery" and "Diaries".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from syndicate.dedalus.ast import Value, normal
from syndicate.dedalus.explore.influence import NOTHING
from syndicate.dedalus.live.instance import Life
from syndicate.dedalus.live.local import Recording
from syndicate.dedalus.live.packet import Fact
from syndicate.dedalus.placement import SPECIFICATION, Placement
from syndicate.dedalus.quiescence import restless
from syndicate.errors import FactError, PatternError
from syndicate.hosting.outputs import width
from syndicate.hosting.ports import pattern_for
from syndicate.values.pattern import capture
from syndicate.values.value import Ref

if TYPE_CHECKING:
    from syndicate.dedalus.program import Program

Inputs: TypeAlias = Mapping[str, Any] | Iterable[str]
"""Patterns, or record classes, by relation; names alone stand for ``<dedalus-fact location relation row>``."""
Outputs: TypeAlias = Mapping[str, Callable[..., Any]] | Iterable[str]
"""Record classes, or functions of the columns, by relation; names alone stand for the same record."""


class Agent:
    """A location of a program: a boot function, for ``spawn``, ``react`` and ``connect``."""

    def __init__(
        self,
        program: Program,
        location: Value,
        *,
        inputs: Inputs = (),
        outputs: Outputs = (),
        messages: Mapping[str, Any] | None = None,
        every: float | None = None,
        seed: int | None = None,
        recorded: bool | Recording = False,
        specification: Iterable[str] = SPECIFICATION,
    ) -> None:
        """The agent at *location*, with what it meets in a dataspace.

        Args:
            program: any whose locations can run apart.
            location: a value of first columns; of a program with subprograms, an agent's name.
            inputs: relations that have a row for each assertion that matches a pattern, while it stands.
            outputs: relations whose rows are asserted, while they are there.
            messages: relations that have a row, for one timestep, for each message that matches a pattern.
            every: seconds; a timestep passes each time, and only then.
            seed: that of ``choose``.
            recorded: whether the diary is kept; or a function, which is told each entry when it happens, and nothing
                is kept.
            specification: relations that look at all locations, and are left out.

        A pattern captures the columns, in order, or all but the location; a record class stands for one that captures
        its fields, and has a field for each column as an output, or for each but the location.

        Raises :class:`DedalusRejected`, :class:`FactError`.
        """
        program.accept(specification=specification)
        self.placement = Placement(program.statements, specification)
        self.location = normal(location)
        self.every, self.seed, self.recorded = every, seed, recorded
        owners = sorted(set(self.placement.owner.values()))
        if owners and location not in owners:
            raise FactError(f"{location!r} is no agent of the program: there are {', '.join(owners)}")
        if type(location) not in (str, int, float):
            raise FactError(f"{location!r} is no location: a string or a number")
        if every is not None and not every > 0:
            raise FactError(f"every={every!r} is no time between timesteps: give seconds, more than 0")
        self.known = self.placement.arities
        self.inputs = {name: self._pattern(name, one) for name, one in _named(inputs).items()}
        self.messages = {name: self._pattern(name, one) for name, one in (messages or {}).items()}
        self.outputs = {name: self._maker(name, one) for name, one in _named(outputs).items()}
        self.restless = restless([rule for rule in self.placement.at(self.location) if rule is not NOTHING])
        self.__name__ = f"agent {location}"

    def __call__(self, ds: Ref | None = None) -> Life:
        """Begin in a new facet of the current one: in a dataspace, or when it joins the first; raises
        :class:`NotInTurn`.
        """
        return Life(self, ds)

    def arity(self, name: str) -> int:
        """How many columns a relation has; raises :class:`FactError` if there is none."""
        if name not in self.known:
            raise FactError(f"the program has no relation {name!r}; it has {', '.join(sorted(self.known))}")
        return self.known[name]

    def _pattern(self, name: str, written: Any) -> Any:
        """What is observed for a relation, and what comes before the captures in a row; None: a row is captured."""
        arity = self.arity(name)
        located = () if self.placement.owner else (self.location,)
        if written is None:
            return Fact(self.location, name, capture()), None
        try:
            pattern, captures = pattern_for(written, *(located if width(written, 0) == arity else ()))
        except PatternError as error:
            raise FactError(f"{name} needs a pattern, or a record class: {error}") from None
        if captures not in (arity, arity - len(located)):
            raise FactError(f"the pattern of {name} captures {captures} values, but there are {arity} columns")
        return pattern, located if captures < arity else ()

    def _maker(self, name: str, made: Any) -> Callable[..., Any]:
        arity = self.arity(name)
        if made is None:
            return lambda *row: Fact(self.location, name, row)
        if not callable(made):
            raise FactError(f"the output {name} takes a record class, or a function of {arity} columns, not {made!r}")
        maker: Callable[..., Any] = made
        fields = width(made, arity)
        if fields == arity:
            return maker
        if fields == arity - 1 and not self.placement.owner:
            return lambda location, *row: maker(*row)
        raise FactError(f"the output {name} has {arity} columns, but {made.__name__} has {fields} fields")


def _named(given: Mapping[str, Any] | Iterable[str]) -> dict[str, Any]:
    return dict(given) if isinstance(given, Mapping) else dict.fromkeys(given)


__all__ = ["Agent", "Inputs", "Outputs"]
