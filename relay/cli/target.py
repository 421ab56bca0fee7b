"""The target: what a command connects to, from its options, from files and from the environment.

A capability is a secret, and other users of the machine can see the arguments of a process.  So it may also come from a
file, from standard input, or from ``SYNDICATE_CAP``; no error message repeats it.

Source: ``docs/design/commands.md``, "Commands".
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO, TypeVar

import click
from attrs import frozen
from click.core import ParameterSource

from relay.capabilities.certificate import Capability, parse_capability
from relay.capabilities.sturdy import DEFAULT as DEFAULT_CAP
from relay.transport import Address
from relay.transport.tls import Tls
from syndicate.errors import AddressError, TextError
from syndicate.values.pattern import Pattern
from syndicate.values.text import parse_pattern

F = TypeVar("F", bound=Callable[..., object])


@frozen
class Target:
    """A place, what is asked for there, and whom to trust about it."""

    address: Address
    cap: Capability
    tls: Tls | None

    @property
    def place(self) -> str:
        """The address, without the arguments of a command: there may be secrets among them."""
        return f"stdio:{self.address.command[0]}" if self.address.scheme == "stdio" else str(self.address)


def target_options(command: F) -> F:
    """The options ``--cap``, ``--cap-file`` and ``--ca``; the command gets them as *cap*, *cap_file* and *ca*; besides
    ``--cert`` and ``--cert-key``, which :func:`find_target` finds by itself.
    """
    options = [
        click.option(
            "--cap",
            metavar="REF",
            envvar="SYNDICATE_CAP",
            show_envvar=True,
            help="Whose dataspace: the reference that the server prints; - reads it from standard input.",
        ),
        click.option("--cap-file", metavar="FILE", type=click.File(), help="As --cap, from a file."),
        click.option(
            "--ca", metavar="FILE", help="For tls:// and wss://: the CA to trust (PEM); default: the system's."
        ),
        click.option(
            "--cert",
            metavar="FILE",
            expose_value=False,
            callback=_remember,
            help="For tls:// and wss://: a certificate that says who we are (PEM); --cap '<certificate \"NAME\">' asks "
            "for what it stands for.",
        ),
        click.option(
            "--cert-key",
            metavar="FILE",
            expose_value=False,
            callback=_remember,
            help="The certificate's key (PEM).",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _remember(context: click.Context, option: click.Parameter, value: str | None) -> None:
    """Keep an option for :func:`find_target`."""
    context.meta[f"{__name__}.{option.name}"] = value


def _files(ca: str | None) -> dict[str, str]:
    """The files of TLS that were named, by their names in :class:`~relay.transport.tls.Tls`."""
    meta = click.get_current_context().meta
    named = {"ca": ca, "certificate": meta.get(f"{__name__}.cert"), "key": meta.get(f"{__name__}.cert_key")}
    return {name: file for name, file in named.items() if file is not None}


def find_target(address: str, cap: str | None, cap_file: TextIO | None, ca: str | None) -> Target:
    """The target that the options name.

    Raises :class:`~syndicate.errors.AddressError`, :class:`~syndicate.errors.CertificateError` and
    :class:`~syndicate.errors.TextError`.
    """
    where = Address.parse(address)
    if where.scheme == "stdio" and not where.path:
        raise AddressError("stdio: alone is our own input and output, which show events: write stdio:COMMAND")
    tls, files = None, _files(ca)
    if files:
        if not where.secure:
            option = {"ca": "--ca", "certificate": "--cert", "key": "--cert-key"}[next(iter(files))]
            raise AddressError(f"{option} is for tls:// and wss://, and {where} is neither: leave it out")
        tls = Tls(**files)
        tls.client_context()
    return Target(where, _find_cap(cap, cap_file), tls)


def _find_cap(cap: str | None, cap_file: TextIO | None) -> Capability:
    origin = click.get_current_context().get_parameter_source("cap")
    if cap_file is not None:
        if origin is ParameterSource.COMMANDLINE:
            raise click.UsageError("--cap and --cap-file both say which dataspace: leave one of them out")
        source, read = f"--cap-file {cap_file.name}", cap_file.read
    elif cap == "-":
        source, read = "standard input", sys.stdin.readline
    elif cap is not None:
        text = cap
        source, read = "--cap" if origin is ParameterSource.COMMANDLINE else "SYNDICATE_CAP", lambda *_: text
    else:
        source, read = "--cap", lambda *_: DEFAULT_CAP
    try:
        return parse_capability(read().strip())
    except (TextError, UnicodeDecodeError) as e:
        why = e if isinstance(e, TextError) else "it is no text"
        raise TextError(f"{source}: {why}") from None


def pattern_options(command: F) -> F:
    """The options ``--pattern`` and ``--exclude``; the command gets them as *patterns* and *excluded*."""
    options = [
        click.option("--pattern", "-p", "patterns", metavar="P", multiple=True, help="Only what matches; repeatable."),
        click.option("--exclude", "-x", "excluded", metavar="P", multiple=True, help="Not what matches; repeatable."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def find_patterns(texts: tuple[str, ...]) -> list[Pattern]:
    """The patterns that the options write; raises :class:`~syndicate.errors.TextError`."""
    return [parse_pattern(text) for text in texts]
