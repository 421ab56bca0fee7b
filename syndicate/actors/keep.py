"""Keeping: what is to stay in a durable dataspace although nobody asserts it, what is to go whoever asserts it, and
what is to go with its author, which is what assertions do everywhere else.

What is asserted through a durable dataspace (a server with ``--state``) survives crashes, restarts and lost
connections, but it is an assertion still: it goes when the facet, the actor or the program that asserts it ends in
order.  What is to outlast its author, such as an order or a setting, is kept instead::

    @connect("tcp://127.0.0.1:8001", durable)
    def connected(ds):
        keep(ds, Order("tea", 3))
        sync(ds, lambda: print("it is on the disk"))

>>> from syndicate.values.value import freeze
>>> freeze(Keep("V")) == (KEEP, "V")
True
"""

from __future__ import annotations

from typing import Final

from syndicate.actors.arguments import expect_ref
from syndicate.actors.turn import Entity
from syndicate.actors.verbs import send
from syndicate.values.record import record
from syndicate.values.value import Ref, Symbol, Value, freeze

KEEP: Final = Symbol("keep")
FORGET: Final = Symbol("forget")
VOLATILE: Final = Symbol("volatile")


@record("keep")
class Keep:
    """Sent to a durable dataspace: keep *value* although nobody asserts it."""

    value: Value


@record("forget")
class Forget:
    """Sent to a durable dataspace: remove *value*, whoever kept or asserted it."""

    value: Value


@record("volatile")
class Volatile:
    """Asserted through a durable dataspace: *value* is asserted there as long as its author lives, and not kept.

    So one capability is enough for those who keep some facts and are present by others.
    """

    value: Value


def keep(ds: Ref, value: Value) -> None:
    """Let *value* stand in a durable dataspace until somebody forgets it, whoever ends.

    It is on the disk once a later ``sync(ds, ...)`` is answered.  To keep what is there already changes nothing.  A
    dataspace that is not durable takes it for a message like others.

    >>> from syndicate import capture, dataspace, on_message, run
    >>> def boot():
    ...     ds = dataspace()                       # a durable one, of a server with --state, would keep it
    ...     on_message(ds, ["keep", capture()])(lambda value: print("to be kept:", value))
    ...     keep(ds, ["paid", 100])
    >>> run(boot)

    Raises:
        NotInTurn: no turn is running.
        NotAValue: *value* is not one, is too large for the connection to *ds*, or has no encoding.
    """
    _send(ds, Keep(value))


def forget(ds: Ref, value: Value) -> None:
    """Let *value* stand in a durable dataspace no longer, whoever kept or asserted it; raises as :func:`keep` does.

    >>> from syndicate import dataspace, run
    >>> run(lambda: forget(dataspace(), ["paid", 100]))
    """
    _send(ds, Forget(value))


def _send(ds: Ref, value: Value) -> None:
    """A message that is said to be safe later on is not to be lost on its way in silence."""
    expect_sendable("keep", ds, value)
    send(ds, value)


def expect_sendable(what: str, ds: Ref, value: Value) -> None:
    """Raise :class:`~syndicate.errors.NotAValue` if a message of *value* could not go over a connection to *ds*."""
    entity = expect_ref(what, ds).entity
    if isinstance(entity, Entity):
        entity.check_message(freeze(value))
