"""Who is here, as a web service: aiohttp beside a broker.

    $ syndicate-server &
    $ python examples/web/aiohttp_presence.py tcp://127.0.0.1:8001 8000
    $ curl -X PUT localhost:8000/present/ann; curl localhost:8000/present
    ["ann"]

The system lives as long as the application, in a *cleanup context*.  ``--console`` at the end prints the address of a
page that shows what it does.
"""

import sys
from collections.abc import AsyncIterator

from aiohttp import web

from syndicate import Ref, assert_, capture, record
from syndicate.actors.turn import Handle
from syndicate.asyncio import System, connect, open_system
from syndicate.errors import TargetEnded


@record
class Present:
    """Somebody is here."""

    name: str


SYSTEM = web.AppKey("SYSTEM", System)
DS = web.AppKey("DS", Ref)
HERE = web.AppKey("HERE", dict[str, Handle])


def application(address: str, *, console: bool = False) -> web.Application:
    """The service, over the broker at an address; *console* shows in a browser what it does."""
    routes = web.RouteTableDef()

    async def actors(app: web.Application) -> AsyncIterator[None]:
        async with open_system(console=console) as app[SYSTEM], connect(address) as app[DS]:
            yield

    @routes.get("/present")
    async def present(request: web.Request) -> web.Response:
        try:
            names = await request.app[SYSTEM].snapshot(request.app[DS], Present(capture(str)))
        except TargetEnded:
            raise web.HTTPServiceUnavailable(text="the broker is away") from None
        return web.json_response(sorted(names))

    @routes.put("/present/{name}")
    async def come(request: web.Request) -> web.Response:
        name, here = request.match_info["name"], request.app[HERE]
        if name not in here:
            here[name] = await request.app[SYSTEM].call(assert_, request.app[DS], Present(name))
        return web.Response()

    @routes.delete("/present/{name}")
    async def go(request: web.Request) -> web.Response:
        if handle := request.app[HERE].pop(request.match_info["name"], None):
            await request.app[SYSTEM].call(handle.retract)
        return web.Response()

    app = web.Application()
    app[HERE] = {}
    app.cleanup_ctx.append(actors)
    app.add_routes(routes)
    return app


if __name__ == "__main__":
    app = application(sys.argv[1], console="--console" in sys.argv)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[2]), print=None)
