"""Who is here, as a web service: Flask, whose requests run in threads, beside a broker.

    $ syndicate-server &
    $ python examples/web/flask_presence.py tcp://127.0.0.1:8001 8000
    $ curl -X PUT localhost:8000/present/ann; curl localhost:8000/present
    ["ann"]

The system has a thread of its own, and the requests call into it.  Start it in each worker process, after the fork.
``--console`` at the end prints the address of a page that shows what it does.
"""

import sys

from flask import Flask, abort, jsonify
from flask.typing import ResponseReturnValue

from syndicate import assert_, capture, record
from syndicate.actors.turn import Handle
from syndicate.errors import TargetEnded
from syndicate.thread import System


@record
class Present:
    """Somebody is here."""

    name: str


def application(address: str, *, console: bool = False) -> Flask:
    """The service, over the broker at an address; the system ends with the process; *console* shows what it does."""
    app = Flask(__name__)
    system = System(console=console).start()
    ds = system.connect(address)
    here: dict[str, Handle] = {}

    @app.get("/present")
    def present() -> ResponseReturnValue:
        try:
            return jsonify(sorted(system.snapshot(ds, Present(capture(str)), timeout=5)))
        except TargetEnded:
            abort(503, "the broker is away")

    @app.put("/present/<name>")
    def come(name: str) -> str:
        def assert_once() -> None:  # a turn: two requests at once cannot both find nobody
            if name not in here:
                here[name] = assert_(ds, Present(name))

        system.call(assert_once, timeout=5)
        return ""

    @app.delete("/present/<name>")
    def go(name: str) -> str:
        def retract() -> None:
            if name in here:
                here.pop(name).retract()

        system.call(retract, timeout=5)
        return ""

    return app


if __name__ == "__main__":
    application(sys.argv[1], console="--console" in sys.argv).run(port=int(sys.argv[2]), threaded=True)
