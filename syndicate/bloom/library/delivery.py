"""Delivery: rows of ``pipe_in`` go to the program at ``dst``, and come out of its ``pipe_out``.

* :class:`BestEffort` sends once.
* :class:`Reliable` sends again, whenever ``timer`` fires, what is not acknowledged: at least once.
* :class:`ExactlyOnce` drops what has come before: a point of order, which the two others do without.

``pipe_sent`` has what is known to have arrived, or, of best effort, what was sent.  The importer's rules are the same
for all three; packets are distinguished by ``src`` and ``ident``.

>>> from syndicate.bloom import Network
>>> a, b = ExactlyOnce(address="a"), ExactlyOnce(address="b"); net = Network(a, b, repeat=1.0); got = []
>>> _ = b.callback("pipe_out", got.extend)
>>> a.pipe_in <= [("b", "a", 1, "hello")]; net.part(["a"], ["b"]); net.run(); net.heal(); got, len(a.send_buf)
([], 1)
>>> a.fire("timer"); net.run(); got, len(a.send_buf)
([(dst='b', src='a', ident=1, payload='hello')], 0)

Source: Alvaro et al. 2011a (the figure of reliable delivery); ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from syndicate.bloom import Bloom, bloom, channel, interface, periodic, table

# fmt: off


class BestEffort(Bloom):
    """Each row is sent once."""

    pipe_in = interface("input", ["dst", "src", "ident"], ["payload"])
    pipe_out = interface("output", ["dst", "src", "ident"], ["payload"])
    pipe_sent = interface("output", ["dst", "src", "ident"], ["payload"])
    pipe = channel(["@dst", "src", "ident"], ["payload"])

    @bloom
    def send_packets(self) -> None:
        """Send."""
        self.pipe <~ self.pipe_in

    @bloom
    def receive(self) -> None:
        """Let it out."""
        self.pipe_out <= self.pipe

    @bloom
    def note_sent(self) -> None:
        """Nobody will tell us more."""
        self.pipe_sent <= self.pipe_in


class Reliable(BestEffort):
    """Each row is sent until it is acknowledged."""

    ack = channel(["@src", "dst", "ident"], [])
    send_buf = table(["dst", "src", "ident"], ["payload"])
    timer = periodic(1.0)

    @bloom
    def buffer(self) -> None:
        """Keep it."""
        self.send_buf <= self.pipe_in

    @bloom
    def retry(self) -> None:
        """Send again."""
        self.pipe <~ (self.send_buf * self.timer).lefts()

    @bloom
    def acknowledge(self) -> None:
        """Say that it came."""
        self.ack <~ self.pipe.map(lambda p: (p.src, p.dst, p.ident))

    @bloom
    def note_sent(self) -> None:
        """Keep it no longer."""
        self.pipe_sent <= (self.send_buf * self.ack).lefts("src", "dst", "ident")
        self.send_buf <- (self.send_buf * self.ack).lefts("src", "dst", "ident")


class ExactlyOnce(Reliable):
    """Each row comes out once."""

    arrived = table(["src", "ident"], [])

    @bloom
    def receive(self) -> None:
        """Only what is new."""
        self.pipe_out <= self.pipe.notin(self.arrived, ("src", "src"), ("ident", "ident"))
        self.arrived <+ self.pipe.map(lambda p: (p.src, p.ident))

# fmt: on
