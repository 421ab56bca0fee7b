"""Supervision: a printer that jams is started again, and no page is lost.

A page to be printed is an assertion, which its owner keeps up until the page is done.  So it outlives the printer that
crashed over it: the next one finds it there, as it finds all that is asserted.

    $ python examples/supervised.py
    the printer is ready
    page 1 is printed
    the printer is gone
    the printer is ready
    page 2 is printed
    page 3 is printed
    the printer is gone

The traceback of the jam and the restart are logged to standard error.  The clock is one that jumps to whatever comes
next, so that the supervisor's pause takes no time.
"""

from trio.testing import MockClock

from syndicate import (
    Ref,
    assert_,
    capture,
    dataspace,
    during,
    on_asserted,
    on_message,
    on_stop,
    react,
    record,
    run,
    send,
    spawn,
    stop,
    supervise,
)


@record
class Ready:
    """Asserted by the printer."""


@record
class Page:
    """Asserted by its owner until it is printed."""

    number: int


@record
class Printed:
    """Sent by the printer."""

    number: int


def printer(ds: Ref, creased: set[int]) -> None:
    """Print what is to be printed; fail over each creased page once."""
    assert_(ds, Ready())

    @on_asserted(ds, Page(capture()))
    def put_out(number: int) -> None:
        if number in creased:
            creased.remove(number)
            raise RuntimeError("paper jam")
        print(f"page {number} is printed")
        send(ds, Printed(number))


def author(ds: Ref, pages: int) -> None:
    """Have pages printed, one after the other."""

    @during(ds, Ready())
    def ready() -> None:
        print("the printer is ready")
        on_stop(lambda: print("the printer is gone"))

    def ask_for(number: int) -> None:
        assert_(ds, Page(number))

        @on_message(ds, Printed(number))
        def next_page() -> None:
            stop(then=lambda: number < pages and react(lambda: ask_for(number + 1)))

    react(lambda: ask_for(1))


def boot() -> None:
    """Set up the office."""
    ds = dataspace()
    supervise(printer, ds, {2}, name="printer")
    spawn(author, ds, 3)


if __name__ == "__main__":
    run(boot, clock=MockClock(autojump_threshold=0))
