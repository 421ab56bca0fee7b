"""Histories: a run of a program, tick by tick: which rows came, by which rules, which went, and what was sent.

>>> from syndicate.bloom import Bloom, bloom, channel, table
>>> class Paths(Bloom):
...     link = table(["from", "to"]); path = table(["from", "to"]); told = channel(["@to", "path"])
...     @bloom
...     def rules(self):
...         self.path <= self.link
...         self.path <= (self.link * self.path).pairs(("to", "from"), lambda l, p: (l.from_, p.to))
...         self.told <~ self.path.map(lambda p: ("you", p.to))
>>> p = Paths(); history = record(p)
>>> p.link <= [(1, 2)]; p.tick(); p.link <= [(2, 3)]; p.tick()
>>> print(history)  # doctest: +ELLIPSIS
tick 0: link 1, path 1; rules 1, 3
  + link(1, 2): from outside, in tick 0
  + path(1, 2): rule 1 (...)
  ~ told('you', 2): rule 3 (...)
tick 1: link 2, path 3; rules 1, 2, 3
  + link(2, 3): from outside, in tick 1
  + path(1, 3): rule 2 (...)
  + path(2, 3): rule 1 (...)
  ~ told('you', 2): rule 3 (...)
  ~ told('you', 3): rule 3 (...)

Only who asks pays for it: a recorded tick costs a look at all rows, and a search for each that came
(:mod:`~syndicate.bloom.insight.why`).

Contract: the rows that came, less those that went, from the first recorded tick on, are those that are there; a rule
that is named derives the row from what is there.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from typing import Final

from attrs import frozen

from syndicate.bloom.declaration import TABLES, Kind, Row
from syndicate.bloom.insight.why import Reason, Reasons
from syndicate.bloom.rules.symbols import kind_of
from syndicate.bloom.state.state import SentState
from syndicate.bloom.tick.runtime import Instantiated, runtime_of
from syndicate.errors import IllegalRule
from syndicate.explain.derivation import said
from syndicate.explain.witness import Fact
from syndicate.flow.element import Key, in_order, natural
from syndicate.values.value import Value

FORMS: Final = ("text", "html", "json")
_STANDING: Final = TABLES | {Kind.CONST, Kind.LATTICE}
"""Whose rows stay for the next tick; all rows of others come again."""

Rows = tuple[tuple[str, Row], ...]


@frozen
class NewRow:
    """A row that was not there in the tick before, why it is, and the numbers of the rules that may have made it."""

    collection: str
    row: Row
    because: str
    rules: tuple[int, ...]


@frozen
class TickRecord:
    """A tick: how many rows each collection has at its end, those that came, went and were sent."""

    tick: int
    counts: Mapping[str, int]
    came: tuple[NewRow, ...]
    gone: Rows
    sent: tuple[NewRow, ...]

    @property
    def rules(self) -> tuple[int, ...]:
        """The rules that made some row of it."""
        return tuple(sorted({number for one in (*self.came, *self.sent) for number in one.rules}))

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in self.counts.items()) or "nothing"
        fired = f"; rules {', '.join(map(str, self.rules))}" if self.rules else ""
        lines = [f"tick {self.tick}: {counts}{fired}"]
        lines += [f"  + {said(one.collection, one.row)}: {one.because}" for one in self.came]
        lines += [f"  - {said(name, row)}" for name, row in self.gone]
        lines += [f"  ~ {said(one.collection, one.row)}: {one.because}" for one in self.sent]
        return "\n".join(lines)


class History:
    """The ticks of a program since :func:`record`, as long as :meth:`end` has not been called."""

    def __init__(self, program: Instantiated, last: int | None) -> None:
        """Of a program; users call :func:`record`."""
        self.runtime = runtime_of(program)
        self.moments: deque[TickRecord] = deque(maxlen=last)
        self._lasting = [name for name, one in self.runtime.collections.items() if kind_of(one) in _STANDING]
        self._before: Mapping[str, Mapping[Key, Value]] = self._remembered(Reasons(self.runtime).witnesses.contents)
        self.runtime.watchers.append(self._look)

    def end(self) -> None:
        """Record no more."""
        if self._look in self.runtime.watchers:
            self.runtime.watchers.remove(self._look)

    def draw(self, form: str = "text") -> str:
        """All of it as ``text``, as one page of ``html`` that needs nothing else, or as ``json``."""
        draw = _DRAW.get(form)
        if draw is None:
            raise IllegalRule(f"a history is drawn as {', '.join(FORMS)}, not as {form!r}")
        return draw(self)

    def __str__(self) -> str:
        return self.draw()

    def _remembered(self, contents: Mapping[str, Mapping[Key, Value]]) -> dict[str, Mapping[Key, Value]]:
        return {name: dict(contents[name]) for name in self._lasting}

    def _look(self) -> None:
        reasons = Reasons(self.runtime)
        contents = reasons.witnesses.contents
        here = {name: rows for name, rows in contents.items() if not name.endswith(" <~")}
        came = [
            _came(name, row, reasons.prove(Fact(name, row)))
            for name, rows in here.items()
            for row in in_order(key for key in rows if key not in self._before.get(name, ()))
        ]
        gone = [
            (name, natural(row))
            for name, rows in self._before.items()
            for row in in_order(key for key in rows if key not in here[name])
        ]
        counts = {name: len(rows) for name, rows in here.items() if rows}
        self.moments.append(TickRecord(reasons.tick, counts, tuple(came), tuple(gone), tuple(self._sent(reasons))))
        self._before = self._remembered(contents)

    def _sent(self, reasons: Reasons) -> Iterator[NewRow]:
        for name, state in self.runtime.states.items():
            if isinstance(state, SentState):
                derived = state.sending.rows
                for row in in_order({**state.posted, **derived}):
                    if row in derived:
                        yield _came(name, row, reasons.prove(Fact(f"{name} <~", row)))
                    else:
                        yield NewRow(name, natural(row), "from outside", ())


def _came(name: str, row: Key, reason: Reason) -> NewRow:
    reasons = (reason, *reason.premises) if reason.how == "merged" else (reason,)
    rules = [rule for one in reasons for rule in ([one.rule] if one.rule is not None else one.rules)]
    return NewRow(name, natural(row), reason.because(), tuple(sorted({rule.number for rule in rules})))


def record(program: Instantiated, *, last: int | None = None) -> History:
    """From now on, note what each tick of a program does; of more than *last* ticks, only the last."""
    return History(program, last)


# ------------------------------------------------------------------------------------------------------------- drawing


def _text(history: History) -> str:
    return "\n".join(map(str, history.moments))


def _json(history: History) -> str:
    def rows(entries: Iterable[NewRow]) -> list[dict[str, Value]]:
        return [
            {"collection": one.collection, "row": [*one.row], "because": one.because, "rules": [*one.rules]}
            for one in entries
        ]

    moments = [
        {
            "tick": one.tick,
            "counts": dict(one.counts),
            "rules": [*one.rules],
            "came": rows(one.came),
            "gone": [{"collection": name, "row": [*row]} for name, row in one.gone],
            "sent": rows(one.sent),
        }
        for one in history.moments
    ]
    document = {"program": history.runtime.name, "ticks": moments}
    return json.dumps(document, indent=2, ensure_ascii=False, default=repr)


_STYLE: Final = (
    "body{font:14px sans-serif}table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:3px 8px;"
    "text-align:left;vertical-align:top}.came{color:#060}.gone{color:#a00;text-decoration:line-through}"
    ".sent{color:#00a}.on{background:#cdf;text-align:center}div{white-space:pre}"
)


def _html(history: History) -> str:
    moments = list(history.moments)
    title = escape(f"{history.runtime.name}, tick by tick")
    ticks = "".join(f"<th>tick {one.tick}</th>" for one in moments)
    lines = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>',
        f"<h1>{title}</h1><table><tr><th>collection</th>{ticks}</tr>",
    ]
    for name in history.runtime.collections:
        cells = [_cell(name, moment) for moment in moments]
        if any(cells):
            lines.append(f"<tr><th>{escape(name)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    lines.append(f"</table><h2>rules</h2><table><tr><th>rule</th>{ticks}</tr>")
    for rule in history.runtime.wiring.rules:
        fired = "".join('<td class="on">&bull;</td>' if rule.number in one.rules else "<td></td>" for one in moments)
        lines.append(f"<tr><th>{rule.number}: {escape(str(rule))}</th>{fired}</tr>")
    return "\n".join([*lines, "</table></html>"])


def _cell(name: str, moment: TickRecord) -> str:
    def row(kind: str, sign: str, values: Row, because: str = "") -> str:
        hint = f' title="{escape(because)}"' if because else ""
        return f'<div class="{kind}"{hint}>{sign} {escape(", ".join(map(repr, values)))}</div>'

    lines = [row("came", "+", one.row, one.because) for one in moment.came if one.collection == name]
    lines += [row("gone", "-", values) for where, values in moment.gone if where == name]
    lines += [row("sent", "~", one.row, one.because) for one in moment.sent if one.collection == name]
    count = moment.counts.get(name, 0)
    return f"{count} row{'' if count == 1 else 's'}{''.join(lines)}" if count or lines else ""


_DRAW: Final[dict[str, Callable[[History], str]]] = {"text": _text, "html": _html, "json": _json}
