"""A box and its client: the smallest conversation in a dataspace.

The box *asserts* the number that it holds, and is sent a new one by *message*.  The client reacts to each number for
as long as it is asserted.  Neither has a reference to the other: both know only the dataspace.  A new number takes the
place of the old one without a gap, so that whoever asks whether there is a box at all is notified of its end, once.

    $ python examples/box_and_client.py
    there is a box
    the box holds 0
    the box holds 1
    the box holds 2
    the box holds 3
    there is no box any more
"""

from syndicate import (
    ANY,
    Ref,
    assert_,
    capture,
    dataflow,
    dataspace,
    during,
    field,
    on_message,
    on_stop,
    record,
    run,
    send,
    spawn,
    stop_actor,
)


@record("box-state")
class BoxState:
    """Asserted by the box: what it holds."""

    value: int


@record("set-box")
class SetBox:
    """Sent to the box: what it shall hold."""

    value: int


def box(ds: Ref, limit: int) -> None:
    """Hold a number, and end when that reaches the limit."""
    value = field(0, name="value")
    assert_(ds, lambda: BoxState(value.value))  # computed again whenever the field changes

    @on_message(ds, SetBox(capture()))
    def set_box(new: int) -> None:
        value.value = new

    @dataflow
    def stop_at_limit() -> None:
        if value.value >= limit:
            stop_actor()


def client(ds: Ref) -> None:
    """Count the box up."""

    @during(ds, BoxState(ANY))
    def exists() -> None:
        print("there is a box")
        on_stop(lambda: print("there is no box any more"))

    @during(ds, BoxState(capture()))
    def shown(value: int) -> None:
        print("the box holds", value)
        send(ds, SetBox(value + 1))


def boot() -> None:
    """Bring the two together."""
    ds = dataspace()
    spawn(client, ds)
    spawn(box, ds, 3)


if __name__ == "__main__":
    run(boot)
