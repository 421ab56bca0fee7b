"""A chat over TCP: who is here, who joins and leaves, and what is said.

Each program asserts that its user is here, in the dataspace of a broker, and observes who else is.  There is no code
for leaving: what a program has asserted goes with it, also when it is killed or its network fails.  If the broker is
started again, all come back by themselves.

    $ syndicate-server                            (in one terminal)
    $ python examples/chat.py Alice               (in another one)
    * Alice is here
    * Bob is here
    Bob: good morning
    * Bob has left
    * disconnected                                (Ctrl-D leaves)

    $ python examples/chat.py Bob                 (in a third one)
    * Alice is here
    * Bob is here
    good morning                                  (typed)
    * disconnected

A broker at another address is named after the user: ``python examples/chat.py Alice tcp://127.0.0.1:9999``.
``--console`` before the name prints the address of a page that shows what the program does.  ``examples/web/chat.html``
is the same chat in a browser, with the same users.
"""

import os
import sys
from collections.abc import AsyncIterator
from functools import partial

import trio

from relay import connect
from syndicate import (
    Ref,
    assert_,
    capture,
    current_facet,
    linked_task,
    on_asserted,
    on_message,
    on_retracted,
    on_stop,
    record,
    run,
    send,
    stop_actor,
)


@record
class Present:
    """Asserted by each program that takes part."""

    who: str


@record
class Says:
    """Sent for each line."""

    who: str
    what: str


def chat(name: str, address: str) -> None:
    """Take part whenever there is a connection, until the input ends."""

    @connect(address)
    def connected(ds: Ref) -> None:
        assert_(ds, Present(name))

        on_stop(lambda: show("* disconnected"))

        @on_asserted(ds, Present(capture(str)))
        def joins(who: str) -> None:
            show(f"* {who} is here")

        @on_retracted(ds, Present(capture(str)))
        def leaves(who: str) -> None:
            show(f"* {who} has left")

        @on_message(ds, Says(capture(str), capture(str)))
        def heard(who: str, what: str) -> None:
            if who != name:
                show(f"{who}: {what}")

        facet = current_facet()

        @linked_task
        async def say_what_is_typed() -> None:
            async for line in typed():
                facet.enter(partial(send, ds, Says(name, line)))
            facet.enter(stop_actor)


async def typed() -> AsyncIterator[str]:
    """The lines of standard input, read when there are any, so that one can always stop waiting for them."""
    rest = b""
    while True:
        await trio.lowlevel.wait_readable(sys.stdin)
        read = os.read(sys.stdin.fileno(), 4096)
        if not read:
            return
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")


def show(line: str) -> None:
    """Print at once, also where nobody looks."""
    print(line, flush=True)


if __name__ == "__main__":
    console = "--console" in sys.argv
    match [each for each in sys.argv[1:] if each != "--console"]:
        case [name]:
            run(chat, name, "tcp://127.0.0.1:8001", console=console)
        case [name, address]:
            run(chat, name, address, console=console)
        case _:
            sys.exit("say who you are: python examples/chat.py [--console] NAME [ADDRESS]")
