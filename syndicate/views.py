"""Views: a circuit, or a program of rules, as an actor: assertions in, conclusions out.

Patterns name the circuit's inputs, record classes its outputs.  What the dataspace tells in one turn, of all inputs, is
one step of the circuit, made at the end of that turn; what the step concludes is asserted, and what no longer follows
is retracted, in the same turn.

>>> from syndicate import assert_, capture, dataspace, react, record, stop
>>> from syndicate.flow import Circuit
>>> from syndicate.testing import settled, watch
>>> @record
... class Present:
...     who: str
...     room: str
>>> @record
... class Visited:
...     room: str
>>> c = Circuit(); c.sink("visited", c.source("present").map(lambda e: e[1]))
>>> def boot():
...     ds = dataspace()
...     heard.append(watch(ds, capture(Visited)))
...     react(view(ds, c, inputs={"present": Present}, outputs={"visited": Visited}))
...     facets.append(react(lambda: assert_(ds, Present("Alice", "hall"))))
...     facets.append(react(lambda: assert_(ds, Present("Bob", "hall"))))
>>> heard, facets = [], []
>>> system = settled(boot); heard
[[('+', Visited(room='hall'))]]
>>> facets[0].enter(stop); system.drain(); heard
[[('+', Visited(room='hall'))]]
>>> facets[1].enter(stop); system.drain(); heard
[[('+', Visited(room='hall')), ('-', Visited(room='hall'))]]

**Elements.**  A pattern gives the tuple of its captures, or what it captures if that is one thing.  A record class
means the pattern that captures all its fields, and, as an output, makes a record of such an element.  So a
class of two or more fields means tuples, a class of one field bare values.  ``capture(Present)`` gives whole
records; an output None takes its elements as the values to assert.  Of a program of :mod:`syndicate.plan`, whose facts
are tuples, a class of one field means tuples of one as well.

**Messages** are elements for one step: the next step takes them away again.  If nothing else makes a next step, the
view does, in a turn of its own right after; so what follows from a message is asserted for one turn.

Contract: what an observer knows of a view's outputs, at the end of each of its turns, is what the circuit makes of the
inputs as they were after some turn of the dataspace, and later ones follow in order: never half a turn.

* An element is asserted while its weight is above 0; new conclusions, output by output in the order of ``outputs``,
  come before old ones go.
* Each start makes a new engine, so that a view that is supervised begins afresh, and a circuit may serve several views.
* What untrusted peers assert or send cannot end a view: an element with which the circuit raises, or of whose
  conclusions no value can be made, is refused and logged, and so is the end of one that the circuit cannot do without
  (:mod:`~syndicate.hosting`).  A refused assertion counts for nothing as long as it is asserted.  A circuit
  that raises without any of them crashes the actor, with an error that names the node; all that the view concluded is
  retracted.
* None in an element is :data:`~syndicate.values.absent.ABSENT` in a value, both ways.
* A view of another view's outputs is one turn behind it.  Who looks at both may see one ahead of the other; what must
  hold together belongs in one circuit.
* Views in a cycle go on until nothing changes, and for ever if the rules always find something new.  What they
  conclude from each other stays when the first reason for it has gone: each is the other's reason.  Recursion belongs
  within a circuit (``circuit.recursive``), where this cannot happen.

Source: Budiu et al. 2023 (integrate, distinct); ``docs/design/values.md``, "Absent" and "Quarantine".
"""

from __future__ import annotations

from collections.abc import Mapping

from syndicate.actors.arguments import expect_ref
from syndicate.errors import CircuitError
from syndicate.flow.circuit import Circuit
from syndicate.hosting import Start, host
from syndicate.plan import Plan
from syndicate.values.value import Ref


def view(
    ds: Ref,
    circuit: Circuit | Plan,
    inputs: Mapping[str, object],
    outputs: Mapping[str, type | None],
    messages: Mapping[str, object] | None = None,
) -> Start:
    """A boot function, for ``spawn`` and ``react``: keep in *ds* what *circuit* concludes from what is in *ds*.

    Args:
        ds: the dataspace.
        circuit: any circuit, or what ``program.plan()`` gives; it is not changed, and its own ``step`` is not used.
        inputs: for each source a pattern of assertions, or a record class.
        outputs: for each sink whose elements are asserted a record class, or None if they are values already.
        messages: for each source that is no input a pattern of messages, or a record class.

    Raises:
        UnknownStream: a name is no source, or no sink, of the circuit.
        CircuitError: a source has no pattern or two, or has a key; a sink has no ZSet.
        PatternError: a pattern is not one.
        NotAValue, StepFailed, EndlessLoop: (by the actor, which crashes with it) without anything of untrusted peers
        the
            circuit raises, or gives what is no such record, or no value.

    Example::

        rooms = Circuit()
        rooms.sink("rooms", rooms.source("present").index_with(lambda e: e[1]).aggregate(aggregates.count))
        spawn(view(ds, rooms, inputs={"present": Present}, outputs={"rooms": Occupied}))
    """
    expect_ref("view", ds)
    if not isinstance(circuit, (Circuit, Plan)):
        raise CircuitError(f"view() needs a circuit or a plan, not {circuit!r}")
    return host(circuit, ds, inputs=inputs, outputs=outputs, messages=messages)
