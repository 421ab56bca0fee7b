"""A client on syndicate-py 0.19.3: obeys what it reads, and says what it sees, a JSON object a line.

Run by a Python that has syndicate-py and not this project, since both packages are called ``syndicate``.  syndicate-py
is GPL-3: it stays in a process of its own, and nothing of it is copied here.

    python syndicate_py.py '<tcp "127.0.0.1" 8001>' '<ref {oid: "syndicate" sig: #x"69ca..."}>'
"""

# mypy: ignore-errors

from __future__ import annotations

import json
import sys
from functools import partial

from preserves import Embedded

from syndicate import Record, Symbol, actor, parse, relay, stringify, turn
from syndicate.schema import gatekeeper


def say(**what):
    """Print an object."""
    print(json.dumps(what), flush=True)


class Watcher(actor.Entity):
    """Says what it is asked to; returns a capability in it by a message to that."""

    def __init__(self, name):
        self.name = name
        self.known = {}

    def on_publish(self, captures, handle):
        self.known[handle] = captures
        say(event="+", name=self.name, value=text(captures))
        for capture in captures if isinstance(captures, (tuple, list)) else ():
            if isinstance(capture, Embedded):
                turn.send(capture.embeddedValue, f"greetings from {self.name}")

    def on_retract(self, handle):
        say(event="-", name=self.name, value=text(self.known.pop(handle)))

    def on_message(self, captures):
        say(event="!", name=self.name, value=text(captures))


def text(value):
    """Its text, with all references alike."""
    if isinstance(value, Embedded):
        return "#:cap"
    if isinstance(value, (tuple, list)):
        return "[" + " ".join(map(text, value)) + "]"
    if isinstance(value, Record):
        return "<" + " ".join(map(text, (value.key, *value.fields))) + ">"
    return stringify(value)


class Commands:
    """What one can tell it, while there is a dataspace."""

    def __init__(self, ds):
        self.ds = ds
        self.facet = turn.active_facet()
        self.handles = {}

    def do(self, command, name=None, value=None):
        getattr(self, command)(name, value)

    def publish(self, name, value):
        self.handles[name] = turn.publish(self.ds, parse(value))

    def offer(self, name, value):
        """Assert a record that holds a capability of ours."""
        self.handles[name] = turn.publish(self.ds, Record(Symbol(value), [Embedded(turn.ref(Watcher(name)))]))

    def observe(self, name, value):
        observer = Embedded(turn.ref(Watcher(name)))
        self.handles[name] = turn.publish(self.ds, Record(Symbol("Observe"), [parse(value), observer]))

    def retract(self, name, value):
        turn.retract(self.handles.pop(name))

    def send(self, name, value):
        turn.send(self.ds, parse(value))

    def sync(self, name, value):
        turn.sync(self.ds, lambda: say(event="synced", name=name))

    def fail(self, name, value):
        raise RuntimeError("as asked")

    def stop(self, name, value):
        turn.stop_actor()


ADDRESS, CAP, *STANDING = sys.argv[1:]
"""The rest is asserted whenever there is a connection."""


@actor.run_system(name="peer", debug=False)
def main():
    """Connect, and obey."""
    commands = []

    @turn.linked_task(run_in_executor=True)
    def obey(facet):
        for line in sys.stdin:
            turn.external(commands[-1].facet, partial(commands[-1].do, **json.loads(line)))
        turn.external(facet, turn.stop_actor)
        return True

    @relay.connect(ADDRESS, gatekeeper.Step.decode(parse(CAP)))
    def on_ds(ds):
        commands.append(Commands(ds))
        for value in STANDING:
            turn.publish(ds, parse(value))
        say(event="connected")
        turn.on_stop(lambda: say(event="disconnected"))
