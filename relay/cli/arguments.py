"""The arguments of commands that say or ask something: an address, how to speak with it, and values or patterns.

Source: ``docs/design/commands.md``, "Values on the command line".
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

import click
from attrs import frozen

from relay.cli.json_values import parse_json
from relay.cli.target import Target, target_options
from relay.client import FOUND_OUT, ConnectionState, Encoding, connect
from relay.transport import DEFAULT as DEFAULT_ADDRESS
from syndicate.actors.verbs import sync
from syndicate.errors import ConnectError, TextError
from syndicate.values.text import parse
from syndicate.values.value import Ref, Value

F = TypeVar("F", bound=Callable[..., object])

_ADDRESS: Final = re.compile(r"(tcp|tls|unix|ws|wss|stdio):|[a-z]+://|[\w.-]+:\d+$")
"""An address, or what was meant as one, and is a value in no language."""

_ENCODINGS: Final = (*FOUND_OUT, "text")


def place_options(command: F) -> F:
    """What all five commands take."""
    options = [
        click.option("--encoding", type=click.Choice(_ENCODINGS), help="What the server speaks; default: found out."),
        click.option("--debug", is_flag=True, help="Show tracebacks."),
    ]
    for option in reversed(options):
        command = option(command)
    return target_options(command)


@frozen
class Endpoint:
    """A server, and how to speak with it."""

    target: Target
    encoding: Encoding | None

    def connected(self, then: Callable[[Ref], object], *, reconnect: bool = False) -> None:
        """Within a turn: call *then* with its dataspace.  To *reconnect* has a point once the server has taken what
        *then* says: what is beyond a quota would be so again.
        """
        target, taken = self.target, list[bool]()

        def on_state(state: ConnectionState) -> None:
            if state.name == "lost" and not taken:
                raise ConnectError(state.reason)

        def first(ds: Ref) -> None:
            then(ds)
            sync(ds, partial(taken.append, True))

        connect(
            str(target.address),
            target.cap,
            attempts=3,
            reconnect=reconnect,
            encoding=self.encoding,
            tls=target.tls,
            told=on_state if reconnect else None,
        )(first if reconnect else then)


def split(program: str, written: Sequence[str], what: str) -> tuple[str, list[str]]:
    """The address, and the rest; the default address if the first is not one."""
    if written and _ADDRESS.match(written[0]):
        address, written = written[0], written[1:]
    else:
        address = os.environ.get("SYNDICATE_ADDRESS") or DEFAULT_ADDRESS
    if not written:
        raise click.UsageError(f"Missing argument '{what}'.")
    late = next(filter(_ADDRESS.match, written), None)
    if late is not None:
        first = next((text for text in written if text is not late), "..")
        raise click.UsageError(f"the address comes before the {what.lower()}: {program} {late} '{first}'")
    return address, list(written)


def values_of(texts: list[str], as_json: bool) -> list[Value]:
    """The values that the arguments write, or the lines of standard input; raises
    :class:`~syndicate.errors.TextError`.
    """
    read = parse_json if as_json else parse
    lines = [(f"value {number}", text) for number, text in enumerate(texts, 1)]
    if texts == ["-"]:
        lines = [(f"line {number}", line) for number, line in enumerate(sys.stdin, 1) if line.strip()]
    values = []
    for origin, text in lines:
        try:
            values.append(read(text.strip()))
        except TextError as e:
            raise TextError(f"{origin}: {e}") from None
    return values
