"""Who is here, as a web service: FastAPI beside a broker.

    $ syndicate-server &
    $ python examples/web/fastapi_presence.py tcp://127.0.0.1:8001 8000
    $ curl -X PUT localhost:8000/present/ann; curl localhost:8000/present
    ["ann"]

The system lives as long as the application, in its *lifespan*.  While the broker is away the answer is 503, and never
what was known of it before.  ``--console`` at the end prints the address of a page that shows what it does.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, HTTPException

from syndicate import assert_, capture, record
from syndicate.asyncio import connect, open_system
from syndicate.errors import TargetEnded


@record
class Present:
    """Somebody is here."""

    name: str


def application(address: str, *, console: bool = False) -> FastAPI:
    """The service, over the broker at an address; *console* shows in a browser what it does."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_system(console=console) as system, connect(address) as ds:
            app.state.system, app.state.ds, app.state.here = system, ds, {}
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/present")
    async def present() -> list[str]:
        try:
            return sorted(await app.state.system.snapshot(app.state.ds, Present(capture(str))))
        except TargetEnded:
            raise HTTPException(503, "the broker is away") from None

    @app.put("/present/{name}")
    async def come(name: str) -> None:
        if name not in app.state.here:
            app.state.here[name] = await app.state.system.call(assert_, app.state.ds, Present(name))

    @app.delete("/present/{name}")
    async def go(name: str) -> None:
        if handle := app.state.here.pop(name, None):
            await app.state.system.call(handle.retract)

    return app


if __name__ == "__main__":
    app = application(sys.argv[1], console="--console" in sys.argv)
    uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
