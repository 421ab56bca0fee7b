"""Space and time: places side by side, time downwards, messages between them, what was lost, who crashed.

>>> ping = Mark(1, "message", "a", "b", "ping, arrives at 2", (2,))
>>> diagram = SpaceTime({"a": "a", "b": "b"}, [ping, Mark(3, "crash", "b", None, "b crashes")], {"b": 3})
>>> print(diagram.draw())
time  a           b
   1  o---------->|  ping, arrives at 2
   3  |           #  b crashes
>>> print(diagram.draw("mermaid"))
sequenceDiagram
    participant n0 as a
    participant n1 as b
    Note over n0,n1: 1
    n0->>n1: ping, arrives at 2
    Note over n0,n1: 3
    Note over n1: b crashes

A place that has crashed is drawn with dots from then on.  As ``dot``, each place is a line of the times at which
something happens there, and each message an arrow, dashed if it was lost; as ``svg`` it is a picture.  Where each place
has a clock of its own, there is no common line of time: as text, a message is a line with both times.

Source: ``docs/design/explain.md``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from html import escape
from typing import Final, Literal, TypeAlias, get_args

from attrs import define, field, frozen

from syndicate.drawing import dot_text
from syndicate.errors import PlanError
from syndicate.explain.derivation import named

Form: TypeAlias = Literal["text", "dot", "mermaid", "svg"]
FORMS: Final[tuple[str, ...]] = get_args(Form)


@frozen
class Mark:
    """What happens at a *time*: a crash, a message from a *sender* to a *receiver*, or its late arrival.

    A message arrives at the times *arrive*; with none it is *lost*, or nobody knows when it arrives.
    """

    time: int
    what: Literal["crash", "message", "arrival"]
    sender: Hashable | None
    receiver: Hashable | None
    note: str
    arrive: tuple[int, ...] = ()
    lost: bool = False


@define(eq=False)
class SpaceTime:
    """*places* with their labels, *marks* in order up to *until*, and when which place crashed.

    *clock* is what a time is called where each place has its own; without it, there is one for all.
    """

    places: Mapping[Hashable, str]
    marks: Sequence[Mark]
    crashes: Mapping[Hashable, int] = field(factory=dict)
    until: int = 0
    clock: str = ""

    def _repr_svg_(self) -> str:
        return self.draw("svg")

    def draw(self, form: str = "text") -> str:
        """All of it as ``text``, ``dot``, ``mermaid`` or ``svg``; raises :class:`PlanError` for another *form*."""
        match form:
            case "text":
                return "\n".join(self._passages() if self.clock else self._lanes())
            case "dot":
                return "\n".join(self._dot())
            case "mermaid":
                return "\n".join(self._mermaid())
            case "svg":
                return "\n".join(self._svg())
        raise PlanError(f"there is no diagram {form!r}: there are {named(FORMS)}")

    # --------------------------------------------------------------------------------------------------------- text

    def _passages(self) -> Iterator[str]:
        for mark in self.marks:
            sender, receiver = (self.places[place] for place in (mark.sender, mark.receiver))
            arrivals = " and ".join(f"in {self.clock} {time}" for time in mark.arrive)
            end = "lost" if mark.lost else arrivals or "in an unknown " + self.clock
            yield f"{sender} in {self.clock} {mark.time} -> {receiver} {end}: {mark.note}"

    def _lanes(self) -> Iterator[str]:
        width = max([12, *(len(label) + 2 for label in self.places.values())])
        lanes = {place: number * width for number, place in enumerate(self.places)}
        stamp = max(4, len(str(self.until)))
        heading = "".join(label.ljust(width) for label in self.places.values())
        yield f"{'time'.rjust(stamp)}  {heading}".rstrip()
        for mark in self.marks:
            line = [" "] * (len(self.places) * width - width + 2)
            for place, at in lanes.items():
                line[at] = ":" if self.crashes.get(place, mark.time + 1) <= mark.time else "|"
            self._draw_mark(mark, line, lanes)
            yield f"{mark.time:>{stamp}}  {''.join(line)} {mark.note}"

    @staticmethod
    def _draw_mark(mark: Mark, line: list[str], lanes: Mapping[Hashable, int]) -> None:
        start = lanes.get(mark.sender) if mark.sender is not None else None
        end = lanes.get(mark.receiver) if mark.receiver is not None else None
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

    # ---------------------------------------------------------------------------------------------------------- dot

    def _dot(self) -> Iterator[str]:
        messages = [mark for mark in self.marks if mark.what == "message"]
        times: dict[Hashable, set[int]] = {place: {at} for place, at in self.crashes.items()}
        for mark in messages:
            times.setdefault(mark.sender, set()).add(mark.time)
            times.setdefault(mark.receiver, set()).update(mark.arrive)
        numbers = {place: number for number, place in enumerate(self.places)}
        yield "digraph spacetime {"
        yield '    node [shape=point, fontname="sans-serif"];'
        for place, number in numbers.items():
            yield f'    p{number} [label="{dot_text(self.places[place])}", shape=box];'
            before = f"p{number}"
            for time in sorted(times.get(place, ())):
                crash = ", shape=Msquare" if self.crashes.get(place) == time else ""
                yield f'    p{number}_{time} [xlabel="{time}"{crash}];'
                yield f"    {before} -> p{number}_{time} [arrowhead=none, weight=9];"
                before = f"p{number}_{time}"
        for number, mark in enumerate(messages):
            start = f"p{numbers[mark.sender]}_{mark.time}" if mark.sender in numbers else f"start{number}"
            reached = mark.receiver in numbers and not mark.lost
            ends = [f"p{numbers[mark.receiver]}_{time}" for time in mark.arrive] if reached else []
            style = ", style=dashed" if mark.lost else ""
            for end in ends or [f"lost{number}"]:
                yield f'    {start} -> {end} [label="{dot_text(mark.note)}", constraint=false{style}];'
        yield "}"

    # ------------------------------------------------------------------------------------------------------ mermaid

    def _mermaid(self) -> Iterator[str]:
        """A sequence diagram: a note for each time, an arrow with a cross for what is lost."""
        yield "sequenceDiagram"
        names = {place: f"n{number}" for number, place in enumerate(self.places)}
        for place, name in names.items():
            yield f"    participant {name} as {_safe(self.places[place])}"
        everyone = ",".join(dict.fromkeys([*list(names.values())[:1], *list(names.values())[-1:]]))
        before: int | None = None
        for mark in self.marks:
            if mark.time != before and not self.clock:
                before = mark.time
                yield f"    Note over {everyone}: {before}"
            sender = names.get(mark.sender) if mark.sender is not None else None
            receiver = names.get(mark.receiver) if mark.receiver is not None else None
            if sender is not None and receiver is not None:
                times = " and ".join(str(time) for time in mark.arrive) or "nowhere"
                note = f"{mark.note}, {self.clock} {mark.time} to {times}" if self.clock else mark.note
                yield f"    {sender}{'-x' if mark.lost else '->>'}{receiver}: {_safe(note)}"
            elif sender is not None or receiver is not None:
                yield f"    Note over {sender or receiver}: {_safe(mark.note)}"

    # ---------------------------------------------------------------------------------------------------------- svg

    def _svg(self) -> Iterator[str]:
        """A picture on its own: a lane for each place, a row for each mark, what is lost in dashes, with a cross."""
        lanes = {place: _MARGIN + number * _LANE for number, place in enumerate(self.places)}
        right = _MARGIN + max(0, len(lanes) - 1) * _LANE + 20
        longest = max([0, *(len(mark.note) for mark in self.marks)])
        width, height = right + 20 + 7 * longest, _ROW * (len(self.marks) + 3)
        size = f'width="{width}" height="{height}"'
        yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}">'
        yield "<style>text{font:12px monospace}line,path{stroke:#345;fill:none}.lane{stroke:#bcd}.lost{stroke:#c22;"
        yield "stroke-dasharray:4 3}.crash{fill:#c22}.note{fill:#555}"
        yield ".end{text-anchor:end}.mid{text-anchor:middle}</style>"
        yield f'<rect {size} fill="#fff"/>'
        for place, x in lanes.items():
            yield f'<text class="mid" x="{x}" y="16">{escape(self.places[place], quote=False)}</text>'
            yield f'<line class="lane" x1="{x}" y1="{_ROW}" x2="{x}" y2="{height - _ROW}"/>'
        for number, mark in enumerate(self.marks):
            yield from self._svg_mark(mark, _ROW * (number + 2), lanes, right)
        yield "</svg>"

    @staticmethod
    def _svg_mark(mark: Mark, y: int, lanes: Mapping[Hashable, int], right: int) -> Iterator[str]:
        start = lanes.get(mark.sender) if mark.sender is not None else None
        end = lanes.get(mark.receiver) if mark.receiver is not None else None
        yield f'<text class="note end" x="{_MARGIN - 30}" y="{y + 4}">{mark.time}</text>'
        yield f'<text class="note" x="{right}" y="{y + 4}">{escape(mark.note, quote=False)}</text>'
        if mark.what == "crash" and start is not None:
            yield f'<rect class="crash" x="{start - 4}" y="{y - 4}" width="8" height="8"/>'
        elif start is not None and end is not None and start != end:
            sign = 1 if end > start else -1
            lost = ' class="lost"' if mark.lost else ""
            tip = f"m{end - 8 * sign} {y - 4} l{8 * sign} 4 l{-8 * sign} 4"
            cross = f"m{end - 8 * sign} {y - 4} l8 8 m0 -8 l-8 8"
            yield f'<line{lost} x1="{start}" y1="{y}" x2="{end - (8 * sign if mark.lost else 0)}" y2="{y}"/>'
            yield f'<path{lost} d="{(cross if mark.lost else tip).replace("m", "M", 1)}"/>'
        else:
            x = end if start is None else start
            if x is not None:
                yield f'<circle cx="{x}" cy="{y}" r="3"/>'


_MARGIN: Final = 110
_LANE: Final = 150
_ROW: Final = 22
"""Pixels."""


def _safe(text: str) -> str:
    """Text in which nothing means anything to mermaid."""
    safe = text.replace("#", "#35;").replace(";", "#59;").replace("#35#59;", "#35;")
    return safe.replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;").replace("\n", " ")
