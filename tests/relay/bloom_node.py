"""A Bloom program in a process: ``python -m tests.relay.bloom_node NAME HOME [PEER SERVER]...``.

It listens at the server HOME, and sends what is for each PEER via that peer's server.  Each line of input is ``PEER
TEXT``, to be delivered reliably; it prints what it gets, what was acknowledged, and when it has a connection.
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import sys
from functools import partial

from relay import connect
from syndicate import Ref, current_facet, dataspace, linked_task, on_stop, run, stop_actor
from syndicate.bloom import Bloom, Row, bloom, channel, interface, periodic, scratch, table
from syndicate.bloom.agent.agent import read_lines


class Delivery(Bloom):
    """Reliable delivery, each packet once."""

    pipe_in = interface("input", ["dst", "src", "ident"], ["payload"])
    pipe_out = interface("output", ["dst", "src", "ident"], ["payload"])
    data_chan = channel(["@dst", "src", "ident"], ["payload"])
    ack_chan = channel(["@src", "dst", "ident"])
    send_buf = table(["dst", "src", "ident"], ["payload"])
    known = table(["src", "ident"], ["payload"])
    fresh = scratch(["src", "ident"], ["payload"])
    timer = periodic(0.05)

    @bloom
    def rules(self) -> None:
        """As in the paper, and the receiver knows what it has had."""
        self.send_buf <= self.pipe_in
        self.data_chan < ~self.pipe_in
        self.data_chan < ~(self.send_buf * self.timer).lefts()
        self.ack_chan < ~self.data_chan.map(lambda p: (p.src, p.dst, p.ident))
        got = (self.ack_chan * self.send_buf).rights("ident", "dst", "src")
        self.pipe_out <= got
        self.send_buf < -got
        self.fresh <= self.data_chan.map(lambda p: (p.src, p.ident, p.payload)).notin(self.known)
        self.known < +self.fresh


def node(name: str, home: str, *peers: str) -> None:
    """The actor: the program lives in a dataspace of its own, and the connections come and go."""
    program = Delivery(dataspace(), address=name)

    def got(rows: list[Row]) -> None:
        for row in rows:
            say("got", row.src, row.payload)

    def acknowledged(rows: list[Row]) -> None:
        for row in rows:
            say("acknowledged", row.dst, row.payload)

    program.callback("fresh", got)
    program.callback("pipe_out", acknowledged)

    @connect(home)
    def at_home(ds: Ref) -> None:
        program.listen_at(ds)
        program.send_via(ds)
        say("home")
        on_stop(partial(say, "homeless"))

    def on_the_way_to(peer: str, ds: Ref) -> None:
        program.send_via(ds, peer)
        say("way", peer)

    for peer, server in zip(peers[::2], peers[1::2], strict=True):
        connect(server)(partial(on_the_way_to, peer))

    facet = current_facet()
    said: list[str] = []

    def typed(line: str) -> None:
        said.append(line)
        peer, _, text = line.partition(" ")
        facet.enter(partial(program.pipe_in.insert, [(peer, name, len(said), text)]))

    async def talk() -> None:
        await read_lines(typed)
        facet.enter(stop_actor)

    linked_task(talk)


def say(*words: object) -> None:
    """Print at once."""
    print(*words, flush=True)


if __name__ == "__main__":
    run(node, *sys.argv[1:])
