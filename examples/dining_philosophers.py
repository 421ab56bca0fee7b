"""Dining philosophers: five at a round table with five forks, and each needs the two beside the plate.

A hungry philosopher asserts ``Hungry(seat)``.  Once both forks are free the waiter asserts ``Served(seat)``, and takes
them back when the hunger has gone.  Hunger also goes with the one who has it: Descartes drops dead with two forks in
his hands, and his neighbours Socrates and Confucius eat on.

    $ python examples/dining_philosophers.py
    Socrates eats
    Confucius eats
    Laozi eats
    Descartes eats
    Descartes drops dead
    Hypatia eats
    Socrates eats
    Socrates is full and goes
    Confucius eats
    Laozi eats
    Confucius is full and goes
    Laozi is full and goes
    Hypatia eats
    Hypatia is full and goes

The traceback of the death goes to standard error.  The clock is one that jumps to whatever comes next, so that dinner
takes no time.
"""

from trio.testing import MockClock

from syndicate import (
    Ref,
    after,
    assert_,
    capture,
    dataflow,
    dataspace,
    during,
    field,
    on_asserted,
    on_stop,
    react,
    record,
    run,
    spawn,
    stop,
)

NAMES = ["Socrates", "Descartes", "Confucius", "Hypatia", "Laozi"]


@record
class Hungry:
    """Asserted by a philosopher, until full: a request for two forks."""

    seat: int


@record
class Served:
    """Asserted by the waiter: the forks are yours."""

    seat: int


def waiter(ds: Ref) -> None:
    """Lend the forks two at a time, so that nobody waits with one in the hand."""
    free = field(frozenset(range(len(NAMES))), name="free forks")

    @during(ds, Hungry(capture()))
    def hungry(seat: int) -> None:
        forks = {seat, (seat + 1) % len(NAMES)}

        def take_back() -> None:
            free.value |= forks

        @dataflow
        def serve_when_free() -> None:
            if forks <= free.value:
                free.value -= forks
                assert_(ds, Served(seat))
                on_stop(take_back)


def philosopher(ds: Ref, seat: int, meals: int) -> None:
    """Think and eat by turns."""
    name = NAMES[seat]

    def think(meals: int) -> None:
        if meals:
            after(3, lambda: react(lambda: dine(meals)))
        else:
            print(name, "is full and goes")

    def dine(meals: int) -> None:
        assert_(ds, Hungry(seat))

        @on_asserted(ds, Served(seat))
        def eat() -> None:
            print(name, "eats")
            after(5, drop_dead if name == "Descartes" else put_down)

        def put_down() -> None:
            stop(then=lambda: think(meals - 1))

    think(meals)


def drop_dead() -> None:
    """End in the middle of a meal."""
    print("Descartes drops dead")
    raise RuntimeError("dead")


def boot() -> None:
    """Lay the table."""
    ds = dataspace()
    spawn(waiter, ds)
    for seat, name in enumerate(NAMES):
        spawn(philosopher, ds, seat, 2, name=name)


if __name__ == "__main__":
    run(boot, clock=MockClock(autojump_threshold=0))
