"""Hosts: rules at work in a facet.  A turn that brings something ends with a step; what is left is a further turn.

A host *wakes* when something has come.  Its step is a dataflow block, and so is made once, at the end of the turn,
before that commits: what the step concludes goes out with the turn.  If a further step has something to do, it is a
turn of its own, so that rules which never rest leave others their time.

Contract: steps never overlap, and a turn has one, unless somebody asks for more; nothing is stepped in a facet that has
stopped; what a step fails with, without anything of untrusted peers, crashes the actor, and all conclusions go.

Source: ``docs/design/hosting.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Final, Protocol, TypeAlias, runtime_checkable

from syndicate.actors.facet import Facet
from syndicate.actors.turn import Turn, current, expect_ref, here
from syndicate.errors import ArgumentError, WrongActor
from syndicate.hosting.outputs import Output
from syndicate.log import logger
from syndicate.values.value import Ref

EACH_LOGGED: Final = 10
"""So many refusals are logged one by one; then only each time that their number has doubled."""

Start: TypeAlias = Callable[[], None]
"""A boot function, for ``spawn`` and ``react``."""


@runtime_checkable
class Hosted(Protocol):
    """A program that :func:`host` can start."""

    @property
    def __host__(self) -> Callable[..., Start]:
        """Called with *ds*, ``inputs=``, ``outputs=``, ``messages=`` and the options: what starts it."""


def host(
    program: Hosted,
    ds: Ref,
    *,
    inputs: Mapping[str, object] | None = None,
    outputs: Mapping[str, object] | None = None,
    messages: Mapping[str, object] | None = None,
    **options: object,
) -> Start:
    """A boot function, for ``spawn`` and ``react``: let rules live in *ds*, whatever language they are in.

    Args:
        program: a circuit, what ``program.plan()`` gives, a Bloom class, or a Dedalus program.
        ds: the dataspace.
        inputs: by source, collection or relation a pattern of assertions, or a record class, which stands for all its
            fields: an element, or a row, is there while the assertion is.
        outputs: by sink, collection or relation what makes a value of an element, or a row: a record class.
        messages: as *inputs*, of messages: what one brings is there for one step.
        options: what the kind of program takes besides: of Bloom ``address=``, ``sends=``, ``state=``, of Dedalus
            ``location=``, ``every=``, ``seed=``.

    Raises what :func:`syndicate.views.view`, the Bloom class and :class:`syndicate.dedalus.Agent` raise, and
    :class:`~syndicate.errors.ArgumentError` for what is no program.

    Example::

        spawn(host(rooms, ds, inputs={"present": Present}, outputs={"rooms": Occupied}))
        spawn(host(ReliableDelivery, ds, address="alice"))
        spawn(host(Program.load("gossip.ded"), ds, location="a", outputs={"known": Known}))
    """
    expect_ref("host", ds)
    if not isinstance(program, Hosted):
        raise ArgumentError(
            "host() takes a circuit, what program.plan() gives, a class of Bloom rules or a Dedalus program, and not "
            f"{program!r}"
        )
    return program.__host__(ds, inputs=inputs or {}, outputs=outputs or {}, messages=messages or {}, **options)


class Host(ABC):
    """Rules in a facet: a subclass says what a step is, and whether a further one is due."""

    port: ClassVar[str]
    """What a port is of: a source, a collection, a relation."""

    def __init__(self, what: str) -> None:
        """Of the current actor; *what* is how errors name it.  Raises :class:`~syndicate.errors.NotInTurn`."""
        self.what = what
        self.turn: Turn = current(what)
        self.refusals = 0
        self.failing: set[Output] = set()
        self.due = self.stepping = self.paused = False
        self.facet: Facet

    def settle(self) -> None:
        """Live in the facet that is the current one."""
        self.facet = self.turn.facet
        self.block = self.facet.block(self._step_if_due)

    # ------------------------------------------------------------------------------------------------ what it says

    @abstractmethod
    def advance(self) -> None:
        """Make a step with what has come, and let what it changes go out; raises what ends the actor."""

    @abstractmethod
    def waits(self) -> bool:
        """Whether a further step has something to do."""

    # ------------------------------------------------------------------------------------------------ steps

    def wake(self) -> None:
        """Make a step at the end of this turn."""
        if not self.stepping and not self.paused:
            self.due = True
            self.turn.damaged[self.block] = None

    def _step_if_due(self) -> None:
        if self.due:  # and nobody has asked for the step in the midst of the turn
            self.step()

    def step(self) -> None:
        """Make a step now, and one more in a turn of its own if there is anything left to do."""
        self.due = False
        self.stepping = True
        try:
            self.advance()
        finally:
            self.stepping = False
        if not self.paused and self.waits():
            self.facet.enter(self.wake)

    # ------------------------------------------------------------------------------------------------ what it refuses

    def refuse(self, port: object, reason: object) -> None:
        """Log that something was refused, unless very much is."""
        self.refusals = count = self.refusals + 1
        if count <= EACH_LOGGED or count & (count - 1) == 0:
            where = {self.port: str(port)[:80]}
            logger(actor=self.turn.actor.name).warning("a row was refused", **where, reason=str(reason), refused=count)

    def blame(self, port: str, text: str, error: Exception, what: str) -> None:
        """Log that a change, *text*, was refused because with it *what* raised an error.

        That of an output which has never made a value is the program's mistake, and logged so, once for each.
        """
        output = getattr(error, "output", None)
        if not isinstance(output, Output) or output.works:
            self.refuse(port, f"{text} {what}: {error}")
        elif output not in self.failing:
            self.failing.add(output)
            logger(actor=self.facet.actor.name).error(
                "a function of the program has failed for every row so far", reason=str(error), exc_info=error.__cause__
            )

    def expect_inside(self, what: str) -> None:
        """Raise :class:`~syndicate.errors.WrongActor` unless this is a turn of its own actor."""
        if not self.inside:
            raise WrongActor(
                f"{what}() is for turns of {self.facet.actor!r}, in which {self.what} runs: call it in the function "
                "that makes the program"
            )

    @property
    def inside(self) -> bool:
        """Whether a turn of its actor is running here."""
        turn = here.turn
        return turn is not None and turn.actor is self.facet.actor
