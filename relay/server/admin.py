"""The admin port: health and metrics over HTTP, for who watches from outside.

* ``/livez``: the process turns: a turn of the broker's was taken within two seconds;
* ``/readyz``: it lets peers in: all doors are open, nothing is wrong, and it is not about to end;
* ``/metrics``: the figures, for Prometheus;
* ``/syndicate.js``: the client for browsers, an ES module;
* ``/console/``: pages that show what is going on, to who has the capability ``introspect``;
* ``/relay``: the WebSocket that they talk over, where nothing else can be had, unless the configuration lets it write;
* ``/``: what there is.

Each answers 200, or 503 and a line that says why.  Nothing can be changed here.  Where there is a token, which there
must be for other machines to ask, who asks shows it (``Authorization: Bearer``), but for the files of the console and
the socket, which ask for a capability instead; others are answered 401.  A page that has let its own name
resolve to this machine (DNS rebinding) reads nothing: where only this machine can reach the port, who calls it by
another name than its own or a loopback one is answered 421.

hypercorn and starlette are imported when the port is opened, and run in the same trio program as the rest.

Source: ``docs/design/commands.md``, "A broker that can be watched".
"""

from __future__ import annotations

import hmac
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

import trio
from attrs import evolve

from relay.capabilities.sturdy import mint, show
from relay.server.config import Admin
from relay.server.metrics import Journal, registry
from relay.transport import Address
from relay.transport.web_origin import refusal
from relay.web.assets import CONSOLE, HEADERS, SCRIPT, client, console
from relay.web.socket import AcceptedSocket
from syndicate.errors import ListenError, ServerMissing
from syndicate.log import logger

if TYPE_CHECKING:
    from hypercorn.config import Config
    from hypercorn.logging import Logger
    from prometheus_client import CollectorRegistry
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from relay.server.broker import Broker

TURN: Final = 2.0
"""Seconds in which a turn must be taken."""

_OPEN: Final = ("/console/", "/syndicate.js")
"""What holds nothing of this server: the files of the package."""

_INDEX: Final = """syndicate-server

/livez         whether it runs
/readyz        whether it lets peers in
/metrics       what it does, for Prometheus
/syndicate.js  the client for browsers
/console/      pages that show what is going on
"""

Health = Callable[[], str]
"""What is wrong, in a line; nothing if all is well."""


class AdminPort:
    """Health and metrics of *broker*, at *admin*, which is open once this is made.

    *wrong* says what else, a journal for example, keeps it from being ready.
    Raises :class:`~syndicate.errors.ListenError` and :class:`~syndicate.errors.ServerMissing`.
    """

    def __init__(self, admin: Admin, broker: Broker, *, wrong: Health = str, journal: Journal = dict) -> None:
        self._broker = broker
        self._wrong = wrong
        self._registry: CollectorRegistry = registry(broker.census, journal)
        self._here = Address("ws", admin.host, admin.port)
        self._token = admin.token
        self._app = self._routes()
        try:
            family = socket.AF_INET6 if ":" in admin.host else socket.AF_INET
            self._socket = socket.create_server((admin.host, admin.port), family=family)
        except OSError as e:
            why = os.strerror(e.errno) if e.errno and e.errno > 0 else e.strerror
            raise ListenError(
                f"cannot serve health and metrics on {admin}: {why}: give another address with --admin"
            ) from None
        self.url = f"http://{evolve(admin, port=self._socket.getsockname()[1])}/"

    @property
    def questions(self) -> str:
        """The capability to ask questions, as text."""
        return show(mint("introspect", self._broker.admin_key))

    @property
    def console(self) -> str:
        """The address of the console, with that capability behind ``#``, and, if it may write, those of the dataspace
        and to have others minted.
        """
        config = self._broker.config
        caps = {"cap": self.questions}
        if config.admin and config.admin.write:
            caps["write"] = show(mint("syndicate", config.key))
            caps["mint"] = show(mint("mint", self._broker.admin_key))
        return f"{self.url}console/#{urlencode(caps, quote_via=quote)}"

    def close(self) -> None:
        """Close it, if it was never served."""
        self._socket.close()

    async def serve(self) -> None:
        """Serve for ever."""
        from hypercorn.trio import serve

        await serve(self._answer, self._config())  # type: ignore[arg-type]  # ASGI, in types of our own

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._relay(scope, receive, send)
            return
        if scope["type"] != "lifespan":
            await (self._misnamed(scope) or self._unproved(scope) or self._app)(scope, receive, send)
            return
        # starlette would report our end, which comes by cancellation, as a failure.
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _relay(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A page of the console: let it in, if it is ours."""
        await receive()
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        ours = refusal(origin, host, self._here) is None and origin in (None, f"http://{host}", f"https://{host}")
        if not ours or scope["path"] != "/relay":
            await send({"type": "websocket.close", "code": 1008})
            return
        await send({"type": "websocket.accept"})
        socket = AcceptedSocket(scope, receive, send)
        await self._broker.welcome_page(socket, f"{self.url}console/")
        await socket.over.wait()
        with suppress(Exception):  # the page may have gone, and the server too
            await send({"type": "websocket.close", "code": 1000})

    def _misnamed(self, scope: Scope) -> Response | None:
        """What to answer who calls this port by a name that it has not; None if it has it."""
        from starlette.responses import PlainTextResponse

        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        why = refusal(None, hosts[0] if len(hosts) == 1 else "", self._here)
        return PlainTextResponse(f"{why}\n", 421, HEADERS) if why else None

    def _unproved(self, scope: Scope) -> Response | None:
        """What to answer who shows no token where one is needed; None if it is not, or is shown."""
        from starlette.responses import PlainTextResponse

        if not self._token or scope["path"].startswith(_OPEN):
            return None
        shown = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(shown) == 1:
            scheme, _, token = shown[0].partition(b" ")
            if scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token):
                return None
        why = "show the token that is in token_file: curl -H 'Authorization: Bearer TOKEN'\n"
        return PlainTextResponse(why, 401, {**HEADERS, "WWW-Authenticate": "Bearer"})

    def _config(self) -> Config:
        from hypercorn.config import Config

        config = Config()
        config.bind = [f"fd://{self._socket.detach()}"]  # it closes it
        config.accesslog = config.errorlog = None
        config.logger_class = _logger_class()
        config.graceful_timeout = 0.5
        config.keep_alive_timeout = 30.0
        config.h11_max_incomplete_size = 1 << 14
        return config

    def _routes(self) -> Starlette:
        try:
            import hypercorn.trio  # noqa: F401  # is it there?
            from starlette.applications import Starlette
            from starlette.responses import PlainTextResponse, Response
            from starlette.routing import Route
        except ImportError:
            raise ServerMissing(_MISSING) from None

        def page(
            text: Callable[[], Awaitable[str]], wrong: Callable[[], Awaitable[str]]
        ) -> Callable[[Request], Awaitable[Response]]:
            async def answer(request: Request) -> Response:
                why = await wrong()
                return PlainTextResponse(
                    (why or await text()) + "\n", 503 if why else 200, {**HEADERS, "Cache-Control": "no-store"}
                )

            return answer

        async def metrics(request: Request) -> Response:
            from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

            headers = {**HEADERS, "Content-Type": CONTENT_TYPE_LATEST}
            return PlainTextResponse(generate_latest(self._registry), headers=headers)

        async def script(request: Request) -> Response:
            return Response(client(), headers={**HEADERS, **SCRIPT})

        async def file(request: Request) -> Response:
            there = console(request.path_params.get("name") or "index.html")
            if there is None:
                return PlainTextResponse("the console has no such file\n", 404, HEADERS)
            return Response(there[0], headers={**CONSOLE, "Content-Type": there[1]})

        return Starlette(
            routes=[
                Route("/", page(_saying(_INDEX.rstrip()), _saying(""))),
                Route("/livez", page(_saying("ok"), self.dead)),
                Route("/readyz", page(self.ready, self.unready)),
                Route("/metrics", metrics),
                Route("/syndicate.js", script),
                Route("/console/", file),
                Route("/console/{name}", file),
            ]
        )

    async def dead(self) -> str:
        """Why it does not live; nothing if it does."""
        taken = trio.Event()
        self._broker.enter(taken.set)
        with trio.move_on_after(TURN):
            await taken.wait()
            return ""
        return f"no turn was taken within {TURN:.0f} s"

    async def unready(self) -> str:
        """Why nobody should come; nothing if all may."""
        broker = self._broker
        if broker.draining:
            return "draining"
        missing = [str(each.address) for each in broker.closed]
        if missing:
            return f"not open: {', '.join(missing)}"
        if broker.census.overload:
            return "overloaded: " + ", ".join(each.what for each in broker.census.overload)
        return await self.dead()

    async def ready(self) -> str:
        """What it says when all may come: ``ok``, or in what it is degraded."""
        why = self._wrong()
        return f"degraded: {why}" if why else "ok"


_MISSING: Final = (
    'health and metrics need hypercorn and starlette: install them with: pip install "syndicate-dataspace[server]"'
)


def _saying(text: str) -> Callable[[], Awaitable[str]]:
    async def say() -> str:
        return text

    return say


def _logger_class() -> type[Logger]:
    """The logger of hypercorn, whose lines go where ours go; a request is not worth one."""
    from hypercorn.logging import Logger

    class Forwarder(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            logger(part="admin").log(record.levelno, record.getMessage(), exc_info=error)

    class Forwarding(Logger):
        def __init__(self, config: Config) -> None:
            super().__init__(config)
            self.error_logger = logging.Logger("hypercorn")  # noqa: LOG001 - of its own, not one that others configure
            self.error_logger.setLevel(logging.WARNING)
            self.error_logger.addHandler(Forwarder())

    return Forwarding
