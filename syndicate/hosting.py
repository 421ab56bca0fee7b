"""Hosting: rules as actors.  Assertions and messages in, a step at the end of the turn, conclusions out.

What a circuit, a Bloom program and a location of a Dedalus program have in common when they live in a dataspace is
here, and decided once; what each of them adds is what an element is, and what a step is.  Nothing here knows a language
of rules, or circuits.

Hosts: rules at work in a facet.  A turn that brings something ends with a step; what is left is a further turn.

A host *wakes* when something has come.  Its step is a dataflow block, and so is made once, at the end of the turn,
before that commits: what the step concludes goes out with the turn.  If a further step has something to do, it is a
turn of its own, so that rules which never rest leave others their time.

Contract: steps never overlap, and a turn has one, unless somebody asks for more; nothing is stepped in a facet that has
stopped; what a step fails with, without anything of untrusted peers, crashes the actor, and all conclusions go.

Source: ``docs/design/hosting.md``.

Outputs: rows of rules as assertions in a dataspace.

An output makes a value of each row that is there, and asserts it for as long as it is.

Contract: the values of a step's conclusions are made before the step has happened, so that it can still be refused;
none is made twice.

Ports: assertions and messages of a dataspace as elements, or rows, of rules.

An input is a pattern, and what it captures, in order, is a row; a record class stands for the pattern that captures all
its fields.  :class:`Asserted` has a row while its assertion is there, :class:`Sent` one for one step.

Contract: what a port cannot read is refused and logged, and its end is quiet.

Routes: to which dataspace what is for an address goes.

The last word counts, and lasts as long as the facet that said it: in ``@connect``, as long as the connection.

Refusals: what untrusted peers give that the rules fail with is refused, each by itself, and the host goes on.

This is one rule for all hosts of rules.  A step that fails has not happened.  If it
also fails without what untrusted peers gave, the mistake is the program's own, and ends it; if not, what they gave is
attempted by halves (:func:`sift`), down to single items that fail by themselves.  These are refused, and logged.

>>> refused, done = [], []
>>> def attempt(items):
...     if 0 in items:
...         return ZeroDivisionError("0")
...     done.extend(items)
>>> sift([3, 0, 1, 2], attempt, lambda item, error: refused.append((item, error)))
>>> done, refused
([3, 1, 2], [(0, ZeroDivisionError('0'))])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import attrs

from syndicate.actors.arguments import expect_ref
from syndicate.actors.during import observe
from syndicate.actors.facet import Facet
from syndicate.actors.turn import Entity, Handle, Turn, current, here
from syndicate.actors.verbs import on_stop
from syndicate.drawing import Drawing, Load, Reason
from syndicate.errors import ArgumentError, NotAValue, SyndicateError, WrongActor
from syndicate.index.skeleton import analyse
from syndicate.log import logger
from syndicate.values.absent import form_of
from syndicate.values.pattern import ANY, Capture, Group, Literal, Pattern
from syndicate.values.record import is_record_class
from syndicate.values.value import Frozen, Ref, Value

# -------------------------------------------------------------------------------------------------------------- outputs


def width(written: Value, otherwise: int) -> int:
    """How many fields a record class has; *otherwise* for a function of so many columns."""
    return len(attrs.fields(written)) if is_record_class(written) else otherwise


class Unmade(NotAValue):
    """No value can be made of a row of an *output*."""

    output: Output


class Output:
    """The rows of one output as assertions in a dataspace.

    ``prepare`` makes the values of what a step concludes, and may raise; ``show`` asserts and retracts, when the step
    has happened.
    """

    def __init__(self, name: str, make: Callable[[Value], Value]) -> None:
        """Of the output *name*; *make* makes a value of a row."""
        self.name, self.make = name, make
        self.works = False
        """Whether it has ever made a value: if not, it is not a peer's row that is wrong."""
        self.facet: Facet
        self.ds: Ref
        self.handles: dict[Value, Handle] = {}
        self.forms: dict[Value, Frozen] = {}

    def begin(self, facet: Facet, ds: Ref) -> None:
        """Show it in a dataspace, as long as a facet lives."""
        self.facet, self.ds = facet, ds

    def form(self, row: Value) -> Frozen:
        """The frozen form of a row's value."""
        try:
            form = form_of(self.make(row))
        except Exception as error:
            raise self.failure(row, error) from error
        self.works = True
        return form

    def failure(self, row: Value, error: Exception) -> Exception:
        """The error for a row of which no value can be made: it has the output, as *output*."""
        unmade = Unmade(f"no value can be made of {row!r} of {self.name}: {reason(error)}")
        unmade.output = self
        return unmade

    def prepare(self, delta: Mapping[Value, int]) -> None:
        """Make the values of what is new by a delta."""
        handles = self.handles
        self.forms = {row: self.form(row) for row, change in delta.items() if change > 0 and row not in handles}

    def show(self, turn: Turn, delta: Mapping[Value, int]) -> None:
        """Assert what is new by the delta that was prepared, and retract what is gone."""
        handles = self.handles
        if self.forms:
            for row, form in self.forms.items():
                handles[row] = turn.assert_form(self.facet, self.ds, form)
            self.forms = {}
        for row, change in delta.items():
            if change < 0 and row in handles:
                turn.retract(handles.pop(row))

    def end(self, turn: Turn) -> None:
        """Retract all, where the facet goes on."""
        for handle in self.handles.values():
            if handle.live:
                turn.retract(handle)


class WeightedRows(Output):
    """The same of rows with weights, of which one is there while its weight is above 0."""

    def __init__(self, name: str, make: Callable[[Value], Value]) -> None:
        """Of the output *name*."""
        super().__init__(name, make)
        self.weights: dict[Value, int] = {}
        """Those that are neither 0 nor 1."""

    def show(self, turn: Turn, delta: Mapping[Value, int]) -> None:
        """Assert and retract."""
        weights, handles, forms, facet, ds = self.weights, self.handles, self.forms, self.facet, self.ds
        for row, change in delta.items():
            handle = handles.get(row)
            weight = change + (handle is not None if not weights else weights.pop(row, handle is not None))
            if not 0 <= weight <= 1:
                weights[row] = weight
            if weight > 0:
                if handle is None:
                    handles[row] = turn.assert_form(facet, ds, forms[row])
            elif handle is not None:
                del handles[row]
                turn.retract(handle)
        self.forms = {}


class Records:
    """Elements of an output as records of a class; None for a class: they are values already.

    A tuple has the fields; of a class of one field, a bare element is it, unless all elements are *tuples*.  Where
    elements are *rows*, which are tuples if nothing else was made of them, a tuple is never bare.
    """

    def __init__(self, name: str, cls: type | None, *, tuples: bool, rows: bool = False) -> None:
        """Of the output *name*."""
        self.name, self.cls, self.rows = name, cls, rows
        self.fields = width(cls, 0)
        self.bare = self.fields == 1 and not tuples

    def form(self, element: Value) -> Frozen:
        """The frozen form of an element; raises :class:`~syndicate.errors.NotAValue`."""
        cls = self.cls
        try:
            if cls is None or type(element) is cls:
                return form_of(element)
            if self.bare and not (self.rows and type(element) is tuple):
                return form_of(cls(element))
            if type(element) is tuple and len(element) == self.fields:
                return form_of(cls(*element))
        except Exception as error:
            raise NotAValue(f"the output {self.name!r} gave {element!r}: {reason(error)}") from None
        names = [field.name for field in attrs.fields(cls)]
        raise NotAValue(
            f"the output {self.name!r} gave {element!r}, which is no {cls.__name__}({', '.join(names)}): let it "
            f"give tuples of {len(names)}, or use another class"
        )


def reason(error: Exception) -> str:
    """What an error says; of one that is not ours, its class as well."""
    return str(error) if isinstance(error, SyndicateError) else f"{type(error).__name__}: {error}"


# ---------------------------------------------------------------------------------------------------------------- hosts


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


class Measured:
    """Steps since measuring began, and the seconds of the last and of all; *users* look at it."""

    users = 0
    steps = 0
    last = 0.0
    seconds = 0.0


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
        self.measured: Measured | None = None
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

    # ------------------------------------------------------------------------------------------------ looking in

    @abstractmethod
    def drawings(self) -> dict[str, Drawing]:
        """What the rules are made of, in one or more views."""

    @abstractmethod
    def loads(self, view: str) -> dict[str, Load]:
        """What each box of a view holds and costs now; boxes with nothing to say may be missing."""

    def held(self, view: str, box: str) -> dict[str, Iterable[Value]]:
        """The rows that a box of a view holds now, by name; nothing where they are not kept."""
        return {}

    def why(self, name: str, row: Value) -> Reason | None:
        """Why a row is there that :meth:`held` has given by that name; None where the rules are those of a plan,
        :meth:`planned`.
        """
        return None

    def showing(self) -> Iterable[Output]:
        """What asserts its conclusions."""
        return ()

    def planned(self) -> tuple[object, dict[str, Iterable[Value]]] | None:
        """The plan that the rules are, if they are one's, and what it is given now."""
        return None

    def measure(self) -> Callable[[], None]:
        """Measure steps from now on; call the result, once, to end that, unless others still look."""
        if self.measured is None:
            self.measured = Measured()
            self.watch(on=True)
        self.measured.users += 1
        return partial(self._measured, self.measured)

    def _measured(self, measured: Measured) -> None:
        measured.users -= 1
        if not measured.users:
            self.measured = None
            self.watch(on=False)

    def watch(self, *, on: bool) -> None:  # noqa: B027 - not all have parts that can be measured
        """Measure what a step consists of, too, or stop."""

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
        begun = 0.0 if self.measured is None else perf_counter()
        try:
            self.advance()
        finally:
            self.stepping = False
        if self.measured is not None and begun:
            self.measured.steps += 1
            self.measured.last = perf_counter() - begun
            self.measured.seconds += self.measured.last
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


# ---------------------------------------------------------------------------------------------------------------- ports


H = TypeVar("H", bound=Host)


# --------------------------------------------------------------------------------------------------- what is observed


def pattern_for(written: Value, *first: Value) -> tuple[Value, int]:
    """The pattern that *written* stands for, and how many values it captures.

    A record class stands for the pattern that captures all its fields, but for the *first* ones, whose values are
    given.  Raises :class:`~syndicate.errors.PatternError`.
    """
    if is_record_class(written):
        places: list[Pattern] = [Capture(ANY)] * width(written, 0)
        places[: len(first)] = map(Literal, first)
        written = Group("rec", written.__label__, tuple(enumerate(places)))
    return written, len(analyse(written)[0].captures)


# --------------------------------------------------------------------------------------------------- what comes in


class Port(Entity, Generic[H]):
    """What a pattern captures, as rows of one input of a host."""

    def __init__(self, host: H, name: str) -> None:
        """Of the input *name*."""
        self.host, self.name = host, name

    def observe(self, ds: Ref, pattern: Value) -> None:
        """Ask for what matches, as long as the current facet lives."""
        observe(self.host.what, ds, pattern, self)

    def take(self, captures: Value, handle: Hashable) -> Value:
        """Take in what was captured: the row that it is.  *handle* is that of its assertion, or None.

        Raises a :class:`~syndicate.errors.SyndicateError` where it is not one.
        """
        raise NotImplementedError


class Asserted(Port[H]):
    """Rows that are there while an assertion is."""

    def __init__(self, host: H, name: str) -> None:
        """Of the input *name*."""
        super().__init__(host, name)
        self.rows: dict[Hashable, Value] = {}
        """By handle, those that count: not what was refused."""

    def assert_(self, value: Value, handle: Hashable) -> None:
        """It is there from the next step on."""
        host = self.host
        if not host.facet.alive:
            return
        try:
            self.rows[handle] = self.take(value, handle)
        except SyndicateError as error:
            host.refuse(self.name, error)

    def retract(self, handle: Hashable) -> None:
        """It is gone from the next step on, unless it was refused."""
        if handle in self.rows and self.host.facet.alive:
            self.leave(self.rows.pop(handle), handle)

    def leave(self, row: Value, handle: Hashable) -> None:
        """Let a row go that was taken in."""
        raise NotImplementedError

    def forget(self) -> None:
        """The dataspace is gone, and with it all that was asserted there."""
        for handle in list(self.rows):
            self.retract(handle)


class Sent(Port[H]):
    """Rows of messages, each there for one step."""

    def message(self, value: Value) -> None:
        """It is there in the next step."""
        if not self.host.facet.alive:
            return
        try:
            self.take(value, None)
        except SyndicateError as error:
            self.host.refuse(self.name, error)


# --------------------------------------------------------------------------------------------------------------- routes


class Routes:
    """Dataspaces by address, and those for all other addresses; what has no route is lost, as on any network."""

    def __init__(self, ds: Ref | None = None) -> None:
        """With *ds*, all goes there until something else is said."""
        self.named: dict[Hashable, dict[object, Ref]] = {}
        self.others: dict[object, Ref] = {} if ds is None else {None: ds}

    def add(self, ds: Ref, addresses: Iterable[Hashable]) -> None:
        """Send what is for some addresses, or without any all else, to a dataspace, as long as this facet lives."""
        mark = object()
        routes = [self.named.setdefault(address, {}) for address in addresses] or [self.others]
        for route in routes:
            route[mark] = ds

        @on_stop
        def end() -> None:
            for route in routes:
                del route[mark]

    def to(self, address: Hashable) -> Ref | None:
        """Where what is for an address goes."""
        route = self.named.get(address) or self.others
        return next(reversed(route.values()), None)


# ------------------------------------------------------------------------------------------------------------- refusals


Item = TypeVar("Item")


class Stepper(Protocol[Item]):
    """What makes steps with what untrusted peers gave, as :func:`quarantine` needs it."""

    def probe(self) -> Exception | None:
        """Make the step with what is given now; the error if it therefore has not happened.

        Where a step can be made only once, it may leave it at finding out whether that would fail.
        """

    def suspects(self) -> Sequence[Item]:
        """What of this step came of untrusted peers."""

    def give(self, items: Sequence[Item]) -> None:
        """Let some of it be in the step."""

    def take_back(self, items: Sequence[Item]) -> None:
        """Let it not be."""

    def refused(self, item: Item, error: Exception) -> None:
        """Leave an item out for good, as long as it is asserted; say so in the log."""


def quarantine(stepper: Stepper[Item], error: Exception) -> None:
    """Make a step again that has failed: without those items of untrusted peers that it fails with.

    Raises what the step fails with of itself: *error*, if nothing in it is of untrusted peers.  Of *n* items of
    which *k* are refused, or must come apart from others, it takes at most 2 + 2 *k* (1 + log2 *n*) attempts.
    """
    items = stepper.suspects()
    if not items:
        raise error
    stepper.take_back(items)
    own = stepper.probe()
    if own is not None:
        raise own
    failed: list[tuple[Item, Exception]] = []

    def attempt(some: Sequence[Item]) -> Exception | None:
        stepper.give(some)
        wrong = stepper.probe()
        if wrong is not None:
            stepper.take_back(some)
        return wrong

    sift(items, attempt, lambda item, error: failed.append((item, error)))
    for item, why in failed:  # when all have been tried: only then is it known what an output can make at all
        stepper.refused(item, why)


def sift(
    items: Sequence[Item],
    attempt: Callable[[Sequence[Item]], Exception | None],
    refuse: Callable[[Item, Exception], None],
) -> None:
    """Attempt *items* in order, together where that can be, and refuse those that fail by themselves.

    Args:
        items: what untrusted peers gave.
        attempt: does a step with some of them; returns what it raised, if it therefore has not happened.
        refuse: is called with an item, and with what was raised for it.

    Of *n* items of which *k* fail, or must come apart from others, it takes at most 1 + 2 *k* (1 + log2 *n*) attempts.
    """
    error = attempt(items)
    if error is None:
        return
    if len(items) == 1:
        refuse(items[0], error)
        return
    middle = len(items) // 2
    sift(items[:middle], attempt, refuse)
    sift(items[middle:], attempt, refuse)
