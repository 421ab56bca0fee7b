"""A program that serves its parent: one entity, over its own standard input and output.

The parent starts it with ``connect("stdio:python -m my_service", None)`` and is handed that entity.  Both then live and
end together: when the parent goes, so does all that it had asserted here, and the program with it.

Source: syndicate-py (``syndicate.relay.service``); syndicate-rs (``--inferior``);
``docs/design/relay.md``, "Transports".
"""

from __future__ import annotations

from collections.abc import Callable

from relay.protocol.limits import DEFAULT, Limits
from relay.session.link import open_link
from relay.transport import open_stdio
from syndicate.actors.running import run
from syndicate.values.value import Ref


def serve(what: Ref | Callable[[], Ref], *, limits: Limits = DEFAULT) -> None:
    """Publish an entity to the program that has started this one.

    A whole program, whose boot function returns what it publishes; it ends when the parent closes its input::

        def boot():
            ds = dataspace()
            on_message(ds, Greet(capture()))(lambda name: send(ds, Greeting(f"Hello, {name}")))
            return ds

        relay.serve(boot)

    Within a turn, given a reference, it serves in the current facet, which stops when the parent has gone.

    From then on, what is printed goes to standard error.  Raises :class:`~syndicate.errors.ListenError` where standard
    input and output are not pipes.
    """
    stream = open_stdio()  # before the boot function can print
    if isinstance(what, Ref):
        open_link(stream, publish=what, limits=limits)
    else:
        run(lambda: open_link(stream, publish=what(), limits=limits))
