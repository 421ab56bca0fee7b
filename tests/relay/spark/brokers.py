"""A broker in a process of its own, and what tests say to it beside Spark."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import define, field

from relay import connect
from syndicate import Ref, capture, on_asserted, run, send, stop_actor, sync
from syndicate.actors.keep import Forget, Keep
from syndicate.values.text import parse
from syndicate.values.value import Value
from tests.ports import free_ports
from tests.relay.commands import command

DURABLE = '<ref {oid: "durable" sig: #x"7909b06a900f5475d21479f44c843654"}>'
VOLATILE = '<ref {oid: "syndicate" sig: #x"69ca300c1dbfa08fba692102dd82311a"}>'


@define(eq=False)
class Broker:
    """A syndicate-server that keeps state, and can be killed and started again."""

    state: Path
    address: str = field(factory=lambda: f"tcp://127.0.0.1:{free_ports(1)[0]}")
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Wait until it listens."""
        arguments = command("server", "--listen", self.address, "--state", str(self.state))
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout is not None
        said = ""
        while not re.search(r"^durable", said, re.MULTILINE):
            line = self.process.stdout.readline()
            assert line, said
            said += line

    def kill(self) -> None:
        """As ``kill -9`` does."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def act(self, fn: Callable[[Ref], object], cap: str = DURABLE) -> None:
        """Call *fn* with the dataspace, and wait until the broker has handled what it says."""

        def boot() -> None:
            @connect(self.address, cap, attempts=20)
            def on_connected(ds: Ref) -> None:
                fn(ds)
                sync(ds, stop_actor)

        run(boot)

    def keep(self, *texts: str) -> None:
        """Let these stand."""
        self.act(lambda ds: [send(ds, Keep(parse(text))) for text in texts])

    def forget(self, *texts: str) -> None:
        """Let these go."""
        self.act(lambda ds: [send(ds, Forget(parse(text))) for text in texts])

    def there(self, pattern: Value) -> list[Any]:
        """What a client is notified of, who is not the Data Source; sorted."""
        results: list[Any] = []

        def look(ds: Ref) -> None:
            @on_asserted(ds, capture(pattern))
            def one(value: Value) -> None:
                results.append(value)

        self.act(look)
        return sorted(results, key=repr)


def options(broker: Broker, **more: object) -> dict[str, str]:
    """What the format takes."""
    return {"address": broker.address, "cap": DURABLE, **{name: str(value) for name, value in more.items()}}
