"""Outputs: rows of rules as assertions in a dataspace.

An output makes a value of each row that is there, and asserts it for as long as it is.

Contract: the values of a step's conclusions are made before the step has happened, so that it can still be refused;
none is made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from syndicate.actors.facet import Facet
from syndicate.actors.turn import Handle, Turn
from syndicate.errors import NotAValue, SyndicateError
from syndicate.values.absent import form_of
from syndicate.values.record import is_record_class
from syndicate.values.value import Frozen, Ref, Value


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


class Bag(Output):
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
