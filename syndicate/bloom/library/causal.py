"""Causal delivery: whoever gets a message has got before what its sender knew had been sent to them.

A message carries ``needs``, the clocks of the last messages to each program that its sender knew of: sent by itself, or
heard of in messages that were delivered to it.  It waits until the receiver's own clock has reached what it needs; then
it comes out of ``pipe_out``, and its clock and what it needed become the receiver's.  All of that is merging: a clock
is an ``lclock``, what is known to be sent is an ``lmap`` from addresses to clocks, and the test is ``lt_eq``, of what
is fixed against what grows.

A program sends one message in a tick, in the order of ``ident``, and again, when ``timer`` fires, what is not
acknowledged.  Messages that come again are the same rows, and a message comes out once.

>>> from syndicate.bloom import Network
>>> ann, bob, cid = (Causal(address=name) for name in ("ann", "bob", "cid")); net = Network(ann, bob, cid, seed=1)
>>> net.part(["ann", "bob"]); ann.pipe_in <= [("cid", "ann", 1, "Is it late?")]; net.run()
>>> ann.pipe_in <= [("bob", "ann", 2, "I have asked cid.")]; net.run(); len(bob.delivered)
1
>>> net.heal(); bob.pipe_in <= [("cid", "bob", 1, "Well?")]; net.run(); len(cid.delivered), len(cid.held)
(0, 1)
>>> ann.fire("timer"); net.run(); [row.ident for row in sorted(cid.delivered)], len(ann.unacknowledged)
([1, 1], 0)

Source: Schiper et al. 1989; Conway et al. 2012 (causal delivery); ``docs/design/lattice.md``, "The built-in lattices".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from syndicate.bloom import Bloom, bloom, channel, interface, lclock, lmap, periodic, scratch, table
from syndicate.lattice import Clock

# fmt: off


class Causal(Bloom):
    """Sends and receives."""

    pipe_in = interface("input", ["dst", "src", "ident"], ["payload"])
    pipe_out = interface("output", ["dst", "src", "ident"], ["payload"])

    message = channel(["@dst", "src", "ident"], ["payload", "clock", "needs"], clock=lclock, needs=lmap)
    ack = channel(["@src", "dst", "ident"], [])
    queue = table(["dst", "src", "ident"], ["payload"])
    unacknowledged = table(["dst", "src", "ident"], ["payload", "clock", "needs"], clock=lclock, needs=lmap)
    held = table(["dst", "src", "ident"], ["payload", "clock", "needs"], clock=lclock, needs=lmap)
    delivered = table(["src", "ident"], [])
    known = lclock()
    sent_to = lmap()
    timer = periodic(1.0)
    sending = scratch(["dst", "src", "ident"], ["payload", "clock", "needs"], clock=lclock, needs=lmap)
    ready = scratch(["dst", "src", "ident"], ["payload", "clock", "needs"], clock=lclock, needs=lmap)

    @bloom
    def send_next(self) -> None:
        """With a clock of its own, and with all that must have come before."""
        me = self.address
        self.queue <= self.pipe_in
        first = self.queue.argmin([], "ident")
        self.queue <- first
        self.sending <= first.map(lambda m: (*m, self.known.tick(me), self.sent_to.value))
        self.message <~ self.sending
        self.known <+ self.sending.map(lambda m: m.clock)
        self.sent_to <+ self.sending.map(lambda m: (m.dst, m.clock))

    @bloom
    def retry(self) -> None:
        """What nobody has acknowledged."""
        self.unacknowledged <= self.sending
        self.message <~ (self.unacknowledged * self.timer).lefts()
        self.unacknowledged <- (self.unacknowledged * self.ack).lefts("src", "dst", "ident")

    @bloom
    def hold(self) -> None:
        """What comes, until all is there that it needs; one message may let in the next in the same tick."""
        me = self.address
        self.ack <~ self.message.map(lambda m: (m.src, m.dst, m.ident))
        self.held <= self.message.notin(self.delivered, ("src", "src"), ("ident", "ident"))
        self.ready <= self.held.filter(lambda m: m.needs.at(me, Clock) <= self.known.value)
        self.known <= self.ready.map(lambda m: m.clock)
        self.sent_to <= self.ready.map(lambda m: m.needs)

    @bloom
    def deliver_ready(self) -> None:
        """Once."""
        self.pipe_out <= self.ready.map(lambda m: (m.dst, m.src, m.ident, m.payload))
        self.delivered <+ self.ready.map(lambda m: (m.src, m.ident))
        self.held <- self.ready

# fmt: on
