"""Rows of rules at work: what the boxes of their drawings hold, and why it is there.

>>> from syndicate import capture, dataspace, assert_
>>> from syndicate.hosting import host
>>> from syndicate.plan import Program
>>> from syndicate.testing import settled
>>> from syndicate.introspect.rules_at_work import hosts
>>> rules = Program(); seen = rules.edb("seen", "who"); known = rules.idb("known", "who")
>>> _ = rules.rule(known, seen, origin="rules.py:3"); rules.output("known")
>>> def boot():
...     ds = dataspace()
...     host(rules.plan(), ds, inputs={"seen": ["saw", capture()]}, outputs={"known": None})()
...     assert_(ds, ["saw", "ann"])
>>> [(_, at_work)] = hosts(settled(boot).actors)
>>> [row_text(*each) for each in rows_of(at_work, "circuit", "0")]
["seen('ann')"]
>>> why_row(at_work, "known", ("ann",))[0]
["known('ann')", 'rules.py:3', 'rules.py:3', [1], []]

Source: ``docs/design/introspect.md``, "Questions to a running program".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from syndicate.actors.turn import Handle
from syndicate.drawing import Reason
from syndicate.errors import SyndicateError
from syndicate.flow.element import natural
from syndicate.hosting import Host
from syndicate.introspect.answer_pages import Row, cut
from syndicate.introspect.rules_at_work import within
from syndicate.values.value import Value

NO_REASONS: Final = "a circuit keeps no reasons: rules of a plan, of Bloom or of Dedalus say why a row is there"


def rows_of(host: Host, view: str, box: str) -> Iterator[tuple[str, Value]]:
    """The rows that a box holds now, each with the name under which it is asked about."""
    for name, rows in host.held(view, box).items():
        for row in rows:
            yield name, row


def row_text(name: str, row: Value) -> str:
    """A row as it is shown, and asked about."""
    if type(row) is tuple:
        return f"{name}({', '.join(map(repr, row))})"
    return f"{name}: {row!r}"


def why_row(host: Host, name: str, row: Value) -> list[Row]:
    """The rows of an explanation; raises :class:`~syndicate.errors.SyndicateError` where there is none.

    Costs what it reaches; of the rules of a plan, one evaluation of it.
    """
    # Most brokers are never asked about rules, and need not wait for what evaluates them.
    from syndicate.explain.program import Conclusions
    from syndicate.plan.lowering import Plan

    reason = host.why(name, row)
    if reason is None:
        plan, facts = host.planned() or (None, {})
        if not isinstance(plan, Plan):
            raise SyndicateError(NO_REASONS)
        reason = Conclusions(plan, {of: list(rows) for of, rows in facts.items()}).why(name, row)
    return written(reason)


def why_asserted(handle: Handle) -> list[Row]:
    """Why rules assert what this is the handle of; nothing if it is not of rules, or they do not say."""
    for host in within(handle.facet):
        for output in host.showing():
            for row, shown in output.handles.items():
                if shown is handle:
                    try:
                        return why_row(host, output.name, natural(row))
                    except Exception as error:  # what functions of the rules raise, too
                        return [[f"{output.name} of {host.what}", cut(str(error)), "", [], []]]
    return []


def written(reason: Reason) -> list[Row]:
    """``[title because place [premise ..] [condition ..]]`` of a reason and all below it, each once."""
    order: dict[int, tuple[int, Reason]] = {}
    pending = [reason]
    while pending:
        this = pending.pop()
        if id(this) not in order:
            order[id(this)] = (len(order), this)
            pending += this.below()
    return [
        [
            cut(one.title()),
            cut(one.because()),
            one.place(),
            list[Value](dict.fromkeys(order[id(premise)][0] for premise in one.below())),
            [cut(str(each)) for each in one.conditions],
        ]
        for _, one in order.values()
    ]
