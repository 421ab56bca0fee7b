"""Nested dataspaces: an office, and the street before it.

What is asserted and sent in the office stays there.  ``Outbound(value)`` hangs a value out on the street; whoever
observes ``Inbound(pattern)`` looks out of the window.  When the office closes, what it had hung out goes with it.

    $ python examples/nested.py
    office: "the coffee is cold", says Ann
    street: Ann is at work
    office: it rains, so Ann stays
    office: the rain is over, so Ann goes home
    street: Ann is not at work any more
"""

from relay.nested import Inbound, Outbound, nested
from syndicate import (
    Ref,
    after,
    assert_,
    capture,
    dataspace,
    during,
    on_message,
    on_stop,
    react,
    record,
    run,
    send,
    spawn,
    stop,
    stop_actor,
)


@record
class AtWork:
    """Asserted on the street."""

    who: str


@record
class Rain:
    """Asserted on the street, while it rains."""


@record
class Says:
    """Sent in the office."""

    who: str
    what: str


def ann(office: Ref) -> None:
    """Work, talk, and go home when it does not rain."""
    assert_(office, Outbound(AtWork("Ann")))
    send(office, Says("Ann", "the coffee is cold"))

    @during(office, Inbound(Rain()))
    def raining() -> None:
        print("office: it rains, so Ann stays")

        @on_stop
        def over() -> None:
            print("office: the rain is over, so Ann goes home")
            stop_actor()


def walls(office: Ref) -> None:
    """Hear what is said in the office."""

    @on_message(office, Says(capture(), capture()))
    def heard(who: str, what: str) -> None:
        print(f'office: "{what}", says {who}')


def passer_by(street: Ref) -> None:
    """See and hear what there is on the street."""

    @during(street, AtWork(capture()))
    def at_work(who: str) -> None:
        print(f"street: {who} is at work")
        on_stop(lambda: print(f"street: {who} is not at work any more"))

    @on_message(street, Says(capture(), capture()))
    def heard(who: str, what: str) -> None:
        print("street: this is never heard")


def boot() -> None:
    """Build the house, and let it rain for a little while."""
    street = dataspace("street")
    spawn(passer_by, street)
    office = nested(street, name="office")
    spawn(walls, office)
    spawn(ann, office)

    @react
    def shower() -> None:
        assert_(street, Rain())
        after(0.2, stop)


if __name__ == "__main__":
    run(boot)
