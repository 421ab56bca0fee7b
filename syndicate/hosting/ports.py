"""Ports: where the elements, or rows, of rules meet the assertions and messages of a dataspace.

* An input is a pattern, and what it captures, in order, is a row; a record class stands for the pattern that captures
  all its fields.  :class:`Asserted` has a row while its assertion stands, :class:`Sent` one for one step.
* An output makes a value of each row that is there, and asserts it for as long as it is (:class:`Output`).

Contract: what a port cannot read is refused and logged, and its end is quiet; the values of a step's conclusions are
made before the step has happened, so that it can still be refused; none is made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

from syndicate.actors.during import observe
from syndicate.actors.turn import Entity, Handle, Turn
from syndicate.errors import NotAValue, SyndicateError
from syndicate.index.analysis import analyse
from syndicate.values.absent import form_of
from syndicate.values.pattern import ANY, Capture, Group, Literal, Pattern
from syndicate.values.record import is_record_class
from syndicate.values.value import Frozen, Ref, Value

if TYPE_CHECKING:
    from syndicate.actors.facet import Facet
    from syndicate.hosting.host import Host

H = TypeVar("H", bound="Host")


# --------------------------------------------------------------------------------------------------- what is observed


def width(written: Any, otherwise: int) -> int:
    """How many fields a record class has; *otherwise* for a function of so many columns."""
    return len(attrs.fields(written)) if is_record_class(written) else otherwise


def pattern_for(written: Any, *first: Value) -> tuple[Any, int]:
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

    def observe(self, ds: Ref, pattern: Any) -> None:
        """Ask for what matches, as long as the current facet lives."""
        observe(self.host.what, ds, pattern, self)

    def take(self, captures: Value, handle: Any) -> Any:
        """Take in what was captured: the row that it is.  *handle* is that of its assertion, or None.

        Raises a :class:`~syndicate.errors.SyndicateError` where it is none.
        """
        raise NotImplementedError


class Asserted(Port[H]):
    """Rows that are there while an assertion stands."""

    def __init__(self, host: H, name: str) -> None:
        """Of the input *name*."""
        super().__init__(host, name)
        self.rows: dict[Any, Any] = {}
        """By handle, those that count: not what was refused."""

    def assert_(self, value: Value, handle: Any) -> None:
        """It is there from the next step on."""
        host = self.host
        if not host.facet.alive:
            return
        try:
            self.rows[handle] = self.take(value, handle)
        except SyndicateError as error:
            host.refuse(self.name, error)

    def retract(self, handle: Any) -> None:
        """It is gone from the next step on, unless it was refused."""
        if handle in self.rows and self.host.facet.alive:
            self.leave(self.rows.pop(handle), handle)

    def leave(self, row: Any, handle: Any) -> None:
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


# --------------------------------------------------------------------------------------------------- what goes out


class Output:
    """The rows of one output as assertions in a dataspace.

    ``prepare`` makes the values of what a step concludes, and may raise; ``show`` asserts and retracts, when the step
    has happened.
    """

    def __init__(self, name: str, make: Callable[[Any], Value]) -> None:
        """Of the output *name*; *make* makes a value of a row."""
        self.name, self.make = name, make
        self.works = False
        """Whether it has ever made a value: if not, it is no stranger's row that is wrong."""
        self.facet: Facet
        self.ds: Ref
        self.handles: dict[Any, Handle] = {}
        self.forms: dict[Any, Frozen] = {}

    def begin(self, facet: Facet, ds: Ref) -> None:
        """Show it in a dataspace, as long as a facet lives."""
        self.facet, self.ds = facet, ds

    def form(self, row: Any) -> Frozen:
        """The frozen form of a row's value."""
        try:
            form = form_of(self.make(row))
        except Exception as error:
            raise self.failure(row, error) from error
        self.works = True
        return form

    def failure(self, row: Any, error: Exception) -> Exception:
        """The error for a row of which no value can be made: it has the output, as *output*."""
        made = NotAValue(f"no value can be made of {row!r} of {self.name}: {reason(error)}")
        made.output = self  # type: ignore[attr-defined]  # what Host.blame asks for
        return made

    def prepare(self, delta: Mapping[Any, int]) -> None:
        """Make the values of what is new by a delta."""
        handles = self.handles
        self.forms = {row: self.form(row) for row, change in delta.items() if change > 0 and row not in handles}

    def show(self, turn: Turn, delta: Mapping[Any, int]) -> None:
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


class Bag(Output):
    """The same of rows with weights, of which one is there while its weight is above 0."""

    def __init__(self, name: str, make: Callable[[Any], Value]) -> None:
        """Of the output *name*."""
        super().__init__(name, make)
        self.weights: dict[Any, int] = {}
        """Those that are neither 0 nor 1."""

    def show(self, turn: Turn, delta: Mapping[Any, int]) -> None:
        """Assert and retract."""
        weights, handles, forms, facet, ds = self.weights, self.handles, self.forms, self.facet, self.ds
        for row, change in delta.items():
            handle = handles.get(row)
            weight = change + weights.pop(row, 0 if handle is None else 1)
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

    def __init__(self, name: str, cls: Any, *, tuples: bool, rows: bool = False) -> None:
        """Of the output *name*."""
        self.name, self.cls, self.rows = name, cls, rows
        self.fields = width(cls, 0)
        self.bare = self.fields == 1 and not tuples

    def form(self, element: Any) -> Frozen:
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
        raise self.misfit(element)

    def misfit(self, element: Any) -> NotAValue:
        """The error for an element that no such record can be made of."""
        names = [field.name for field in attrs.fields(self.cls)]
        return NotAValue(
            f"the output {self.name!r} gave {element!r}, which is no {self.cls.__name__}({', '.join(names)}): let it "
            f"give tuples of {len(names)}, or use another class"
        )


def reason(error: Exception) -> str:
    """What an error says; of one that is not ours, its class as well."""
    return str(error) if isinstance(error, SyndicateError) else f"{type(error).__name__}: {error}"
