"""Presence: who is here, and who is not any more, for whatever reason.

To be here is an assertion.  It lasts as long as the actor that made it: it goes when a guest leaves, and as well when
a guest crashes, without a line of code for that.  There is no heartbeat, and nobody is left over.

    $ python examples/presence.py
    Alice is here
    Bob is here
    Carol is here
    Alice has left; still here: Bob, Carol
    Bob has left; still here: Carol
    Carol has left; still here: nobody

Alice and Carol leave in order.  Bob crashes: his traceback goes to standard error, and disturbs nobody else.
"""

from collections.abc import Callable

from syndicate import (
    Ref,
    after,
    assert_,
    capture,
    dataspace,
    during,
    on_stop,
    query_set,
    record,
    run,
    spawn,
    stop_actor,
)


@record
class Present:
    """Asserted by each guest."""

    who: str


def porter(ds: Ref) -> None:
    """Say who comes and goes."""
    guests = query_set(ds, Present(capture()))

    @during(ds, Present(capture()))
    def here(who: str) -> None:
        print(who, "is here")
        on_stop(lambda: print(f"{who} has left; still here: {', '.join(sorted(guests.value)) or 'nobody'}"))


def guest(ds: Ref, name: str, seconds: float, leave: Callable[[], object]) -> None:
    """Be here for some time."""
    assert_(ds, Present(name))
    after(seconds, leave)


def stumble() -> None:
    """Leave without meaning to."""
    raise RuntimeError("a guest stumbles over the doorstep")


def boot() -> None:
    """Open the house."""
    ds = dataspace()
    spawn(porter, ds)
    spawn(guest, ds, "Alice", 0.1, stop_actor)
    spawn(guest, ds, "Bob", 0.2, stumble)
    spawn(guest, ds, "Carol", 0.3, stop_actor)


if __name__ == "__main__":
    run(boot)
