"""Why nothing is there that matches a pattern: who could have said it, and where that stopped.

Three questions, in this order: was it said, and taken back; was something like it said, with other values; which
handlers may say it, by the record classes that their code names, and did what they wait for come.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from syndicate.index.interest import Observe
from syndicate.introspect.story import Done, Happening, text
from syndicate.introspect.why import Cause, Why, asked_pattern
from syndicate.values.pattern import pattern_of
from syndicate.values.text import unparse_pattern
from syndicate.values.value import Record, Value

_SAYS: Final = ("assert", "message")
LIKE: Final = 5
"""How many of those that are like it are shown."""


def why_not(why: Why, pattern: Value, *, depth: int = 4) -> Cause:
    """What there is to say about it, as a tree; see the module's text.

    It goes back *depth* handlers.  Something that is asserted is reported as well: then the question was wrong.
    """
    return _none(why, pattern, depth, set())


def _none(why: Why, pattern: Value, depth: int, seen: set[str]) -> Cause:
    shown = _shown(pattern)
    events = why.events(pattern)
    for step, act in reversed(events):
        if act.kind == "assert" and why.stands(step, act):
            return Cause("there is", (), "it is asserted", (why.of(step, act),), shown=text(act.value))
    reasons: list[Cause] = []
    taken_back = why.events(pattern, ("retract",))
    reasons += [why.of(*each) for each in taken_back[-1:]]
    reasons += [why.of(step, act) for step, act in events[-1:] if act.kind == "message"]
    if not reasons:
        reasons = [*_alike(why, pattern), *_waiting(why, pattern, depth, seen | {shown})]
    if not reasons:
        nobody = Cause("nobody", (), "no handler that was seen says the like: is its program running, and here?")
        reasons = [nobody, *_near(why, pattern)]
    return Cause("nothing matches", (), "here is what there is", tuple(reasons), shown=shown)


def _alike(why: Why, pattern: Value) -> list[Cause]:
    """What was said with the same label and size, and other values."""
    kind = _skeleton(pattern)
    alike: dict[str, tuple[Happening, Done]] = {}
    for step in why.story:
        for act in () if step.public else step.acts:
            if act.kind in _SAYS and act.public and kind is not None and _skeleton(act.value) == kind:
                alike[text(act.value)] = (step, act)
    reasons = []
    for step, act in list(alike.values())[-LIKE:]:
        place = act.place or step.place
        by = f"by {place} in {step.actor}" if place else f"by {step.actor}"
        gone = "" if act.kind == "message" or why.stands(step, act) else ", and retracted"
        reasons.append(Cause("but there was", (), f"said {by}, turn {step.turn}{gone}", shown=text(act.value)))
    return reasons


def _near(why: Why, pattern: Value) -> list[Cause]:
    """What was said with nearly the same label, or with another number of fields."""
    kind = _skeleton(pattern)
    if kind is None:
        return []
    acts = [act for step in why.story if not step.public for act in step.acts if act.public and act.kind in _SAYS]
    said = {one for act in acts if (one := _skeleton(act.value)) is not None}
    names = get_close_matches(kind[0], {label for label, _ in said}, 1)
    sizes = sorted(size for label, size in said if label in names)
    many = f"{' or '.join(map(str, sizes))} field{'s' * (sizes != [1])}"
    return [Cause("perhaps", (), f"another is meant: there was <{name} ..>, with {many}") for name in names]


def _waiting(why: Why, pattern: Value, depth: int, seen: set[str]) -> list[Cause]:
    """Handlers that may say it, and whether what they wait for came."""
    kind = _skeleton(pattern)
    if kind is None:
        return []
    label = kind[0]
    reasons: dict[str, Cause] = {}
    for step in why.story:
        for act in step.acts:
            if act.kind != "assert" or label not in act.leads or act.asks in reasons:
                continue
            runs = sum(1 for one in why.story if one.place == act.asks and one.kind != "retract")
            if not isinstance(act.value, Observe):
                continue
            waits = asked_pattern(act.value)
            shown = _shown(waits)
            premises: tuple[Cause, ...] = ()
            if runs:
                how = f"{act.asks} in {step.actor} may say it: it ran {runs} time{'s' * (runs != 1)}, and did not"
            else:
                how = f"{act.asks} in {step.actor} may say it, and never ran: it waits for {shown}"
                if depth and shown not in seen:
                    premises = (_none(why, waits, depth - 1, seen | {shown}),)
            if not why.stands(step, act):
                how += "; it no longer waits: its facet has stopped"
            reasons[act.asks] = Cause("perhaps", (), how, premises)
    return list(reasons.values())


def _shown(pattern: Value) -> str:
    return unparse_pattern(pattern_of(pattern))


def _skeleton(value: Value) -> tuple[str, int] | None:
    """Label and size of a record or of its pattern."""
    if isinstance(value, Record):
        return str(value.label), len(value.fields)
    label = getattr(type(value), "__label__", None)
    if label is not None:
        return str(label), len(type(value).__match_args__)
    entries, label = getattr(value, "entries", None), getattr(value, "label", None)
    if entries is not None and label is not None:
        return str(label), len(entries)
    return None
