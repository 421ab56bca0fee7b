"""``cap``: capabilities as text, made, narrowed and checked without a server.

Keys are read from a file or from the environment, never from the command line, which every user of the machine can
read.  A reference is a secret too: it can come from standard input.

Source: ``docs/design/relay.md``, "Sturdy references"; ``docs/design/commands.md``, "Commands".
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn, ParamSpec, TypeVar

import click

from relay.capabilities.caveats import NOT_AFTER, is_understood
from relay.capabilities.sturdy import SturdyRef, claim, mint, parse_ref, revocation, show, valid
from relay.cli.exit_codes import SETTINGS
from syndicate.errors import CaveatError, SyndicateError
from syndicate.values.pattern import Capture, Discard, Group, Kind, Literal, Pattern
from syndicate.values.text import parse, parse_pattern, unparse, unparse_form
from syndicate.values.value import Dictionary, Frozen, Record, Symbol, Value, freeze

F = TypeVar("F", bound=Callable[..., object])
P = ParamSpec("P")
T = TypeVar("T")

_PLAIN: Final = re.compile(r"[A-Za-z][\w-]*")
_SHORTEST: Final = 16
"""Bytes of a key: a shorter one could be guessed."""

_EXAMPLES: Final = """\b
Examples:
  syndicate cap mint room --new-key room.key
  syndicate cap attenuate - --only '<Says "alice" _>' --watch Says <room.ref >alice.ref
  syndicate cap check - --key-file room.key <alice.ref
"""
_MINT: Final = """\b
Examples:
  syndicate cap mint room --new-key room.key     make a key, then the reference
  syndicate cap mint room --key-file room.key    the same reference once more
  syndicate cap mint '[room 5]' --key-env ROOM_KEY
"""
_ATTENUATE: Final = """\b
Examples:
  syndicate cap attenuate - --only '<Says "alice" _>' --watch Says <room.ref >alice.ref
  syndicate cap attenuate - '<reject <rec Says [<_> <lit "spam">]>>' <room.ref
  syndicate cap attenuate - \\
    '<rewrite <rec Says [<_> <bind String>]> <rec Says [<lit "alice"> <ref 0>]>>' <room.ref

\b
A caveat is <rewrite Pattern Template>, <or [<rewrite ..> ..]>, <reject Pattern>
or <not-after Seconds> (since 1970: then it ends).
Pattern:  <_> <lit v> <bind p> <and [p ..]> <not p> <rec label [p ..]> <arr [p ..]> <dict {k: p}>
          Boolean Double SignedInteger String ByteString Symbol Embedded
Template: <ref n> (what the n-th bind found, from 0) <lit v> <rec label [t ..]> <arr [t ..]>
          <dict {k: t}> <attenuate t [caveat ..]>
"""
_CHECK: Final = """\b
Examples:
  syndicate cap check - --key-file room.key <alice.ref
"""


@click.group(context_settings=SETTINGS, epilog=_EXAMPLES)
def cap() -> None:
    """Make, narrow and check capabilities: references as text that let their holder do something."""


def _keyed(command: F) -> F:
    """The options by which a key is given."""
    for option in (
        click.option("--no-key", is_flag=True, help="The empty key, which everybody has: for tests on this machine."),
        click.option("--key-env", metavar="VAR", help="The key is in this environment variable."),
        click.option("--key-file", metavar="FILE", help="The key is in this file: at least 16 bytes."),
    ):
        command = option(command)
    return command


@cap.command("mint", epilog=_MINT)
@click.argument("oid")
@_keyed
@click.option("--new-key", metavar="FILE", help="Make a key, and write it to this file, for its owner to read.")
def mint_command(oid: str, key_file: str | None, key_env: str | None, no_key: bool, new_key: str | None) -> None:
    """Print the reference to what a server binds as OID with the same key.

    OID is a value in Preserves text; a plain word is a string, and 'a-symbol' in quotation marks a symbol.
    """
    options = [option for option in (key_file, key_env, no_key, new_key) if option]
    if len(options) > 1:
        _fail("mint", "give one key: --key-file, --key-env, --new-key or --no-key")
    name = oid if _PLAIN.fullmatch(oid) else _understood("mint", parse, oid)
    key = _make_key(new_key) if new_key else _key("mint", key_file, key_env, no_key)
    click.echo(show(_understood("mint", mint, name, key)))


@cap.command("attenuate", epilog=_ATTENUATE)
@click.argument("ref", metavar="REF|-")
@click.argument("caveats", metavar="[CAVEAT]...", nargs=-1)
@click.option("--only", metavar="PATTERN", multiple=True, help="Let pass what matches; repeatable.")
@click.option("--watch", metavar="LABEL", multiple=True, help="Let pass interest in such records; repeatable.")
def attenuate_command(ref: str, caveats: Sequence[str], only: Sequence[str], watch: Sequence[str]) -> None:
    """Print REF narrowed: its holder can do only what each caveat lets pass.  It needs no key.

    --only and --watch together make one caveat, which drops all else.  PATTERN is written as for syndicate-console, but
    records and sequences have exactly the parts that are shown.  REF is read from standard input if it is -.
    """
    sturdy = _reference("attenuate", ref)
    added: list[Value] = list(caveats)
    alternatives = [_understood("attenuate", _allowed, text) for text in only]
    for label in watch:
        alternatives += _understood("attenuate", _interest, label)
    if alternatives:
        added.append(
            Record("or", [[Record("rewrite", [Record("bind", [one]), Record("ref", [0])]) for one in alternatives]])
        )
    if not added:
        _fail("attenuate", "nothing to narrow it by: give a caveat, --only or --watch (see --help)")
    click.echo(show(_understood("attenuate", sturdy.attenuate, *added)))


@cap.command("check", epilog=_CHECK)
@click.argument("ref", metavar="REF|-")
@_keyed
def check_command(ref: str, key_file: str | None, key_env: str | None, no_key: bool) -> None:
    """Say whether REF was made with the key, and what it allows; the exit code is 1 if it was not.

    REF is read from standard input if it is -.
    """
    if len([option for option in (key_file, key_env, no_key) if option]) > 1:
        _fail("check", "give one key: --key-file, --key-env or --no-key")
    sturdy = _reference("check", ref)
    secret = _key("check", key_file, key_env, no_key)
    good = valid(sturdy, secret)
    click.echo(f"{'valid' if good else 'not valid'}: {unparse(sturdy.oid)}")
    for number, caveat in reversed([*enumerate(sturdy.caveats, 1)]):
        for line in describe(caveat):
            click.echo(f"  caveat {number} {line}")
    if good:
        for number, sig in enumerate(claim(freeze(sturdy)).lineage(secret), 1):
            what = f"caveat {number} and what came after it" if sturdy.caveats else "it, with all narrowed from it,"
            click.echo(f"  {what} is revoked as {revocation(sig)}")
    if not good:
        click.echo("cap check: it was not made with this key, or was changed: ask for it again", err=True)
        sys.exit(1)


# ---------------------------------------------------------------------------------------------------- in words


def describe(caveat: Value) -> list[str]:
    """What a caveat does, a line for each alternative in it.

    >>> describe(parse("<or [<rewrite <bind <rec Says [<_> <_>]>> <ref 0>> <rewrite <_> <lit 1>>]>"))
    ['lets pass <rec Says [<_> <_>]>', 'turns <_> into <lit 1>', 'drops all else']
    """
    form = freeze(caveat)
    if not is_understood(form):
        return ["drops everything, because it is not understood"]
    if form[0] == NOT_AFTER:
        return [f"ends {datetime.fromtimestamp(form[1], UTC).isoformat()}"]
    if form[0] == Symbol("reject"):
        return [f"drops {unparse_form(form[1])}"]
    alternatives = [form] if form[0] == Symbol("rewrite") else form[1][1:]
    return [_alternative(pattern, template) for _, pattern, template in alternatives] + ["drops all else"]


def _alternative(pattern: Frozen, template: Frozen) -> str:
    if type(pattern) is tuple and pattern[0] == Symbol("bind") and template == (Symbol("ref"), 0):
        return f"lets pass {unparse_form(pattern[1])}"
    return f"turns {unparse_form(pattern)} into {unparse_form(template)}"


# ---------------------------------------------------------------------------------------------------- patterns


def _allowed(text: str) -> Value:
    """A pattern as one types it, as a pattern of a caveat."""
    return _exact(parse_pattern(text))


def _exact(pattern: Pattern) -> Value:
    match pattern:
        case Capture(inner):
            return _exact(inner)
        case Kind(name) if name != "Set":
            return Symbol(name)
        case Literal(value):
            return Record("lit", [value])
        case Group("dict", _, entries):
            return Record("dict", [Dictionary([(key, _exact(entry)) for key, entry in entries])])
        case Group(kind, label, entries):
            places = dict(entries)
            items = [_exact(places[i]) if i in places else Record("_") for i in range(max(places, default=-1) + 1)]
            return Record("rec", [label, items]) if kind == "rec" else Record("arr", [items])
        case Discard():
            return Record("_")
    raise CaveatError("a caveat cannot look for sets: write _ in its place")


def _interest(text: str) -> list[Value]:
    """The interests in records of a label, as patterns of a caveat."""
    label = Record("rec", [Symbol("rec"), [Record("lit", [parse(text)])]])
    group = Record("rec", [Symbol("group"), [label, Record("_")]])
    whole = Record("rec", [Symbol("bind"), [group]])
    return [Record("rec", [Symbol("Observe"), [pattern, Record("_")]]) for pattern in (group, whole)]


# ---------------------------------------------------------------------------------------------------- input


def _fail(command: str, why: str, code: int = 2) -> NoReturn:
    click.echo(f"cap {command}: {why}", err=True)
    sys.exit(code)


def _understood(command: str, fn: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    try:
        return fn(*args, **options)
    except SyndicateError as e:
        _fail(command, str(e))


def _reference(command: str, text: str) -> SturdyRef:
    return _understood(command, parse_ref, sys.stdin.read() if text == "-" else text)


def _key(command: str, file: str | None, variable: str | None, none: bool) -> bytes:
    if none:
        return b""
    if file:
        try:
            key = Path(file).read_bytes().strip()
        except OSError as e:
            _fail(command, f"{file}: cannot be read: {e.strerror}; make a key with: cap mint OID --new-key {file}", 1)
        where = file
    elif variable:
        if variable not in os.environ:
            _fail(command, f"the environment has no {variable}: set it to the key, or give --key-file")
        key, where = os.environb[variable.encode()].strip(), f"${variable}"
    else:
        more = ", make one with --new-key FILE" if command == "mint" else ""
        _fail(command, f"no key: give --key-file FILE or --key-env VAR{more}, or take the empty one with --no-key")
    if len(key) < _SHORTEST:
        _fail(command, f"{where} holds {len(key)} bytes, and a key needs {_SHORTEST}: make one with --new-key FILE", 1)
    return key


def _make_key(file: str) -> bytes:
    key = secrets.token_hex(32).encode()
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        _fail("mint", f"{file} is there already: use it with --key-file, or give another name", 1)
    except OSError as e:
        _fail("mint", f"{file}: cannot be written: {e.strerror}; name a file that this user may write", 1)
    with os.fdopen(descriptor, "wb") as out:
        out.write(key + b"\n")
    return key
