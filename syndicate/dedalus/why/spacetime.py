"""Space and time: nodes side by side, time downwards, messages between them, what was lost, who crashed.

>>> from syndicate.dedalus import Net, Program
>>> program = Program.parse('''
...     ping("a", "b")@1;  peer("b", "c");  persist[pong, 2];
...     pong(Y, X)@async :- ping(X, Y);  pong(Z, X)@async :- pong(X, _), peer(X, Z);
... ''')
>>> model = program.run(until=3, net=Net(nodes=["a", "b", "c"], drop=[("b", "c", 2)], crash={"b": 3}))
>>> print(model.diagram())
time  a           b           c
   1  o---------->|           |  pong("b", "a"), arrives at 2
   2  |           o----------x|  pong("c", "b"), lost by drop("b","c",2)
   3  |           #           |  "b" crashes

A node that has crashed is drawn with dots from then on, and what it would have sent is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from syndicate.dedalus.ast import Atom, Constant, Value
from syndicate.dedalus.net import delaying
from syndicate.dedalus.timeline import Message, Timeline
from syndicate.errors import FactError
from syndicate.explain.derivation import named
from syndicate.explain.spacetime import FORMS, Form, Mark, SpaceTime


def diagram(model: Timeline, form: Form = "text") -> str:
    """A model's messages and crashes; raises :class:`FactError` for another *form*."""
    if form not in FORMS:
        raise FactError(f"there is no diagram {form!r}: there are {named(FORMS)}")
    net = model.net
    crashes = dict(net.crash) if net is not None else {}
    nodes: set[Value] = {*crashes, *(net.nodes if net is not None else ())}
    for message in model.messages:
        nodes |= {*message.senders, *message.row[:1]} - {""}
    marks = [
        Mark(at, "crash", node, None, f"{Constant(node)} crashes")
        for node, at in sorted(crashes.items(), key=repr)
        if at <= model.until
    ]
    for outage in net.down if net is not None else ():
        if outage.since <= model.until:
            marks.append(Mark(outage.since, "crash", outage.node, None, f"{Constant(outage.node)} is down, {outage}"))
        if outage.to is None:
            crashes[outage.node] = outage.since
        elif outage.to <= model.until:
            marks.append(Mark(outage.to, "arrival", None, outage.node, f"{Constant(outage.node)} is up again"))
    for message in model.messages:
        marks += _marks(model, message, crashes)
    rank = {"crash": 0, "arrival": 1, "message": 2}
    return SpaceTime(
        {node: str(node) for node in sorted(nodes, key=lambda node: (isinstance(node, str), node))},
        sorted(marks, key=lambda mark: (mark.time, rank[mark.what])),
        dict(crashes.items()),
        model.until,
    ).draw(form)


def _marks(model: Timeline, message: Message, crashes: Mapping[Value, int]) -> Iterator[Mark]:
    """A message from each of its senders, and its arrivals that are not in the next timestep."""
    row = str(Atom(message.relation, tuple(map(Constant, message.row))))
    receiver = message.row[0] if message.row else None
    times = " and ".join(map(str, message.arrive))
    net = model.net
    for sender in message.senders:
        if crashes.get(sender, message.sent + 1) <= message.sent and sender != receiver:
            continue
        cause = net.cause(sender, receiver, message.sent) if net is not None else None
        lost = not message.unknown and (not message.arrive or cause is not None)
        by = net.late.get((sender, receiver, message.sent), 0) if net is not None else 0
        slow = f", {delaying(sender, receiver, message.sent, by)}" if by else ""
        arrival = "nobody knows when it arrives" if message.unknown else f"arrives at {times}{slow}"
        fate = arrival if not lost else f"lost by {cause}" if cause else "lost"
        yield Mark(message.sent, "message", sender, receiver, f"{row}, {fate}", message.arrive, lost)
    for at in message.arrive:
        if at != message.sent + 1 and at <= model.until:
            yield Mark(at, "arrival", None, receiver, f"{row} arrives, sent at {message.sent}")
