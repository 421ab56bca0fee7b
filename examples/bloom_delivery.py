"""Reliable delivery, the first program of the Bloom paper, as actors in a dataspace.

A program is a class of collections and rules; ``spawn(Delivery, ds)`` would make an actor of it.  Here it has an
address too, and ports: a ``Post`` that somebody sends is a row of ``pipe_in``, a row of ``pipe_out`` is sent as a
``Delivered``, and what waits for an acknowledgement is asserted as long as it does.

Alice's program sends a packet to Bob's, which is not there yet, so the packet is lost.  Each time that the timer fires,
it sends again what is not acknowledged.  The rows of channels are messages in the dataspace: that would be the same if
it was another process's.

    $ python examples/bloom_delivery.py
    waiting for bob to get 'hello'
    bob comes
    bob got 'hello'
    delivered to bob
    nothing to wait for
"""

# ruff: noqa: B015  # rules are comparisons

from syndicate import (
    ANY,
    Ref,
    after,
    capture,
    dataspace,
    during,
    on_message,
    on_stop,
    record,
    run,
    send,
    spawn,
    stop_actor,
    stop_when,
)
from syndicate.bloom import Bloom, bloom, channel, interface, join, periodic, table


@record("post")
class Post:
    """Sent: a packet to be delivered."""

    to: str
    sender: str
    number: int
    text: str


@record("delivered")
class Delivered:
    """Sent: a packet has been acknowledged."""

    to: str
    sender: str
    number: int
    text: str


@record("waiting")
class Waiting:
    """Asserted: a packet is not acknowledged yet."""

    to: str
    sender: str
    number: int
    text: str


class Delivery(Bloom):
    """Send, and send again, until it is acknowledged."""

    pipe_in = interface("input", ["dst", "src", "ident"], ["payload"])
    pipe_out = interface("output", ["dst", "src", "ident"], ["payload"])
    data_chan = channel(["@dst", "src", "ident"], ["payload"])
    ack_chan = channel(["@src", "dst", "ident"])
    send_buf = table(["dst", "src", "ident"], ["payload"])
    timer = periodic(0.1)

    # fmt: off
    @bloom
    def send_packet(self) -> None:
        """Keep it, and send it."""
        self.send_buf <= self.pipe_in
        self.data_chan <~ self.pipe_in

    @bloom
    def timer_retry(self) -> None:
        """Send again."""
        self.data_chan <~ (self.send_buf * self.timer).lefts()

    @bloom
    def send_ack(self) -> None:
        """Answer."""
        self.ack_chan <~ self.data_chan.map(lambda p: (p.src, p.dst, p.ident))

    @bloom
    def recv_ack(self) -> None:
        """Keep it no longer."""
        got = join([self.ack_chan, self.send_buf], [self.ack_chan.ident, self.send_buf.ident])
        self.pipe_out <= got.map(lambda ack, buf: buf)
        self.send_buf <- got.map(lambda ack, buf: buf)
    # fmt: on


def alice(ds: Ref) -> None:
    """Her program, and what she does with it."""
    Delivery(
        ds,
        address="alice",
        messages={"pipe_in": Post},
        sends={"pipe_out": Delivered},
        outputs={"send_buf": Waiting},
    )

    @during(ds, Waiting(capture(), "alice", capture(), capture()))
    def waiting(to: str, number: int, text: str) -> None:
        print(f"waiting for {to} to get {text!r}")
        on_stop(lambda: print("nothing to wait for"))
        on_stop(stop_actor)

    @on_message(ds, Delivered(capture(), "alice", capture(), capture()))
    def delivered(to: str, number: int, text: str) -> None:
        print("delivered to", to)

    send(ds, Post("bob", "alice", 1, "hello"))


def bob(ds: Ref) -> None:
    """His program; what arrives, he reads at the channel itself."""
    print("bob comes")
    program = Delivery(ds, address="bob")
    program.callback("data_chan", lambda rows: [print(f"bob got {row.payload!r}") for row in rows])
    stop_when(ds, Delivered("bob", ANY, ANY, ANY), on="message")(lambda: None)


def boot() -> None:
    """Bob is late."""
    ds = dataspace()
    spawn(alice, ds)
    after(0.25, lambda: spawn(bob, ds))


if __name__ == "__main__":
    run(boot)
