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

A node that has crashed is drawn with dots from then on, and what it would have sent is not.  As ``mermaid`` the same is
a sequence diagram.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from attrs import define, field, frozen

from syndicate.dedalus.ast import Atom, Constant, Value
from syndicate.dedalus.net import delaying
from syndicate.errors import FactError

if TYPE_CHECKING:
    from syndicate.dedalus.model import Message, Model

Form: TypeAlias = Literal["text", "mermaid"]
FORMS: Final[tuple[str, ...]] = get_args(Form)


@frozen
class Mark:
    """What is drawn at a time: a crash, a message's way from one node to another, or its late arrival."""

    time: int
    what: Literal["crash", "message", "arrival"]
    sender: Value | None
    receiver: Value | None
    lost: bool
    note: str


def diagram(model: Model, form: Form = "text") -> str:
    """A model's messages and crashes; raises :class:`FactError` for another *form*."""
    if form not in FORMS:
        raise FactError(f"there is no diagram {form!r}: there are {' and '.join(FORMS)}")
    drawing = _Drawing(model)
    return "\n".join(drawing.text() if form == "text" else drawing.mermaid())


@define(eq=False)
class _Drawing:
    model: Model
    nodes: list[Value] = field(init=False)
    crashes: dict[Value, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        net = self.model.net
        self.crashes = dict(net.crash) if net is not None else {}
        found: set[Value] = {*self.crashes, *(net.nodes if net is not None else ())}
        for message in self.model.messages:
            found |= {*message.senders, *message.row[:1]} - {""}
        self.nodes = sorted(found, key=lambda node: (isinstance(node, str), node))

    def marks(self) -> list[Mark]:
        """Everything that is drawn, in order."""
        found = [
            Mark(at, "crash", node, None, False, f"{Constant(node)} crashes")
            for node, at in sorted(self.crashes.items(), key=repr)
            if at <= self.model.until
        ]
        for message in self.model.messages:
            found += self.ways(message)
        rank = {"crash": 0, "arrival": 1, "message": 2}
        return sorted(found, key=lambda mark: (mark.time, rank[mark.what]))

    def ways(self, message: Message) -> Iterator[Mark]:
        """A message from each of its senders, and its arrivals that are not in the next timestep."""
        told = str(Atom(message.relation, tuple(map(Constant, message.row))))
        receiver = message.row[0] if message.row else None
        times = " and ".join(map(str, message.arrive))
        net = self.model.net
        for sender in message.senders:
            if self.crashes.get(sender, message.sent + 1) <= message.sent and sender != receiver:
                continue
            cause = net.cause(sender, receiver, message.sent) if net is not None else None
            lost = not message.unknown and (not message.arrive or cause is not None)
            by = net.late.get((sender, receiver, message.sent), 0) if net is not None else 0
            slow = f", {delaying(sender, receiver, message.sent, by)}" if by else ""
            arrival = "nobody knows when it arrives" if message.unknown else f"arrives at {times}{slow}"
            fate = arrival if not lost else f"lost by {cause}" if cause else "lost"
            yield Mark(message.sent, "message", sender, receiver, lost, f"{told}, {fate}")
        for at in message.arrive:
            if at != message.sent + 1 and at <= self.model.until:
                yield Mark(at, "arrival", None, receiver, False, f"{told} arrives, sent at {message.sent}")

    # --------------------------------------------------------------------------------------------------------- text

    def text(self) -> Iterator[str]:
        """A line for each mark."""
        width = max([12, *(len(str(node)) + 2 for node in self.nodes)])
        place = {node: number * width for number, node in enumerate(self.nodes)}
        stamp = max(4, len(str(self.model.until)))
        heading = "".join(str(node).ljust(width) for node in self.nodes)
        yield f"{'time'.rjust(stamp)}  {heading}".rstrip()
        for mark in self.marks():
            line = [" "] * (len(self.nodes) * width - width + 2)
            for node, at in place.items():
                line[at] = ":" if self.crashes.get(node, mark.time + 1) <= mark.time else "|"
            self.draw(mark, line, place)
            yield f"{mark.time:>{stamp}}  {''.join(line)} {mark.note}"

    @staticmethod
    def draw(mark: Mark, line: list[str], place: dict[Value, int]) -> None:
        """Draw a mark into its line."""
        start = place.get(mark.sender) if mark.sender is not None else None
        end = place.get(mark.receiver) if mark.receiver is not None else None
        if mark.what == "crash" and start is not None:
            line[start] = "#"
            return
        if start is not None:
            line[start] = "o" if start != end else "@"
        if end is None or start == end:
            return
        head = "x" if mark.lost else "*" if mark.what == "arrival" else ">" if start is None or start < end else "<"
        if mark.what == "arrival":
            line[end] = head
        elif start is None or start < end:
            first = end - 2 if start is None else start + 1
            line[max(0, first) : end] = ["-"] * (end - max(0, first))
            if end:
                line[end - 1] = head
        else:
            line[end + 1 : start] = ["-"] * (start - end - 1)
            line[end + 1] = head

    # ------------------------------------------------------------------------------------------------------ mermaid

    def mermaid(self) -> Iterator[str]:
        """A sequence diagram: a note for each time, an arrow with a cross for what is lost."""
        yield "sequenceDiagram"
        names = {node: f"n{number}" for number, node in enumerate(self.nodes)}
        for node, name in names.items():
            yield f"    participant {name} as {_safe(str(node))}"
        everyone = ",".join(dict.fromkeys([*list(names.values())[:1], *list(names.values())[-1:]]))
        told: int | None = None
        for mark in self.marks():
            if mark.time != told:
                told = mark.time
                yield f"    Note over {everyone}: {told}"
            sender = names.get(mark.sender) if mark.sender is not None else None
            receiver = names.get(mark.receiver) if mark.receiver is not None else None
            if sender is not None and receiver is not None:
                yield f"    {sender}{'-x' if mark.lost else '->>'}{receiver}: {_safe(mark.note)}"
            elif sender is not None or receiver is not None:
                yield f"    Note over {sender or receiver}: {_safe(mark.note)}"


def _safe(text: str) -> str:
    """Text in which nothing means anything to mermaid."""
    made = text.replace("#", "#35;").replace(";", "#59;").replace("#35#59;", "#35;")
    return made.replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;").replace("\n", " ")
