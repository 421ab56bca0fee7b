"""``syndicate-server``: the broker as a command."""

from __future__ import annotations

import shutil
import sys
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

import click

from relay.cli.cap import cap
from relay.cli.exit_codes import SETTINGS, fail, give_up, run_command, version_option
from relay.cli.span_export import exported
from relay.server.config import Config, configure, read_config
from relay.server.daemon import Service
from relay.server.deployment import DOCKERFILE, SYSTEMD, example
from relay.transport import DEFAULT as DEFAULT_ADDRESS
from syndicate.errors import AddressError, ConfigError, RecordingError, TracingMissing
from syndicate.introspect import written
from syndicate.log import configure as configure_log
from syndicate.log import logger

_PROGRAM: Final = "syndicate-server"

_EXAMPLES: Final = """\b
Examples:
  syndicate-server
  syndicate-server --listen unix:///tmp/syndicate.sock --listen tcp://127.0.0.1:9000
  syndicate-server cap mint syndicate --new-key secret
  syndicate-server --listen tls://0.0.0.0:8443 --cert server.pem --key server.key --key-file secret
  syndicate-server --config server.toml --admin 127.0.0.1:8002
  syndicate-server print config >server.toml && syndicate-server config check server.toml
"""


class _Server(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and ":" in args[0]:
            address = args[0] if "://" in args[0] else f"tcp://{args[0]}"
            ctx.fail(f"{args[0]!r} is no command: to listen there, --listen {address}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Server, context_settings=SETTINGS, epilog=_EXAMPLES, invoke_without_command=True)
@click.option(
    "--listen",
    metavar="ADDR",
    multiple=True,
    help=f"tcp://HOST:PORT, tls://, ws://, wss://, unix:///PATH or stdio:; repeatable.  Default: {DEFAULT_ADDRESS}",
)
@click.option("--config", metavar="FILE", help="Configuration in TOML; what options say counts more.")
@click.option("--state", metavar="DIR", help="Keep what is asserted in the durable dataspace here.")
@click.option("--salvage", is_flag=True, default=None, help="Start although the state is damaged; say what is lost.")
@click.option("--admin", metavar="HOST:PORT", help="Serve /livez, /readyz, /metrics and the console there.")
@click.option("--key-file", metavar="FILE", help="The secret that makes and checks references: 16 bytes or more.")
@click.option("--cert", metavar="FILE", help="Certificate for tls:// and wss://, in PEM.")
@click.option("--key", metavar="FILE", help="The certificate's key, in PEM.")
@click.option(
    "--chronicle",
    metavar="FILE",
    help="Write what causes what to a new file, for `syndicate why`; clients that follow it get it, too.",
)
@click.option(
    "--chronicle-every",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Follow one in N packets, and if N is more than 1 no more than a twentieth of the time.  Default: 1",
)
@click.option(
    "--trace", metavar="WHERE", help="Spans for OpenTelemetry: http://HOST:PORT of a collector (OTLP), or a new file."
)
@click.option(
    "--trace-every",
    type=click.IntRange(1),
    default=100,
    metavar="N",
    help="Of what no client follows, follow one in N packets.  Default: 100",
)
@click.option("--drain", metavar="SECONDS", type=float, help="What a stop may take.  Default: 10")
@click.option("--log-format", type=click.Choice(["auto", "json"]), help="auto (default): JSON unless on a terminal.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="Default: info")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@version_option
def server_main(
    config: str | None,
    debug: bool,
    log_format: str | None,
    log_level: str | None,
    chronicle: str | None,
    chronicle_every: int,
    trace: str | None,
    trace_every: int,
    **flags: object,
) -> None:
    """Serve a dataspace to other programs, until SIGTERM or Ctrl-C.

    Without a key, everybody who can reach it may read and write in it: then it listens only where other machines
    cannot.  SIGHUP reads the configuration again.

    Only a configuration says: several dataspaces with keys and quotas of their own, older keys, revoked capabilities,
    clients known by a certificate, who may come to the admin port from other machines, and all limits.
    `syndicate-server print config` shows each.  To look at a server that runs, and to use it from a shell:
    syndicate-console, and syndicate assert, send, query, get, watch.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    flags |= {"log.format": log_format, "log.level": log_level}
    options = {name: value for name, value in flags.items() if value not in (None, ())}

    def read() -> Config:
        return read_config(config, options) if config else configure(options)

    try:
        settings = read()
    except ConfigError as e:
        fail(_PROGRAM, e)
    configure_log(settings.log.format, settings.log.level)
    to_stderr = any(listening.address.scheme == "stdio" for listening in settings.listen)
    service = Service(settings, announce=partial(_announce, to_stderr), reread=read)
    if chronicle is not None and trace is not None:
        raise click.UsageError("--chronicle and --trace both follow what happens: leave one of them out")
    with ExitStack() as after:
        try:
            if chronicle is not None:
                after.enter_context(written(chronicle, process="server", every=chronicle_every))
            if trace is not None:
                after.enter_context(exported(trace, _PROGRAM, every=trace_every))
        except (RecordingError, TracingMissing, AddressError) as e:
            fail(_PROGRAM, e)
        run_command(_PROGRAM, debug, service)


def _announce(to_stderr: bool, lines: list[str]) -> None:
    try:
        click.echo("\n".join(lines), err=to_stderr)
    except OSError as e:  # whoever connects need not have read it here
        give_up(sys.stdout)
        logger().warning("nobody gets to know the references", reason=f"cannot write to standard output: {e.strerror}")


server_main.add_command(cap)


@server_main.group(name="config", context_settings=SETTINGS)
def config_group() -> None:
    """Look at a configuration file."""


@config_group.command(context_settings=SETTINGS, epilog="\b\nExample:\n  syndicate-server config check server.toml")
@click.argument("file")
def check(file: str) -> None:
    """Say whether FILE is all right, or all that is wrong with it."""
    try:
        config = read_config(file)
    except ConfigError as e:
        for problem in e.problems:
            click.echo(problem, err=True)
        sys.exit(2)
    click.echo(f"{file} is all right")
    for listening in config.listen:
        click.echo(f"would listen on  {listening.address}")
    if config.admin is not None:
        click.echo(f"and serve        http://{config.admin}/")


@server_main.group(name="print", context_settings=SETTINGS)
def print_group() -> None:
    """Print files that go with the server."""


@print_group.command(
    context_settings=SETTINGS,
    epilog="\b\nExample:\n  syndicate-server print systemd | sudo tee /etc/systemd/system/syndicate.service",
)
def systemd() -> None:
    """A systemd unit."""
    started = Path(sys.argv[0]).resolve()
    path = str(started) if started.name == _PROGRAM else shutil.which(_PROGRAM)
    click.echo(SYSTEMD.format(command=path or f"/usr/local/bin/{_PROGRAM}"), nl=False)


@print_group.command(
    context_settings=SETTINGS, epilog="\b\nExample:\n  syndicate-server print dockerfile | docker build -t syndicate -"
)
def dockerfile() -> None:
    """A Dockerfile."""
    click.echo(DOCKERFILE.format(version=version("syndicate-dataspace")), nl=False)


@print_group.command(context_settings=SETTINGS, epilog="\b\nExample:\n  syndicate-server print config >server.toml")
def config() -> None:
    """A configuration file to begin with."""
    click.echo(example(), nl=False)


@print_group.command(
    context_settings=SETTINGS, epilog="\b\nExample:\n  syndicate-server print completion bash >>~/.bashrc"
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option(
    "--command", "program", default=_PROGRAM, metavar="NAME", help="For another command: syndicate, syndicate-console."
)
def completion(shell: str, program: str) -> None:
    """What makes a shell complete the options."""
    from click.shell_completion import get_completion_class

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
    click.echo(completion_class(server_main, {}, program, variable).source())
