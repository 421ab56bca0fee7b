"""Why something was asserted, retracted or sent: the handler, what it reacted to, and so on, back to the outside.

>>> from syndicate import assert_, capture, dataspace, during, run
>>> from syndicate.introspect.story import Story, chronicled
>>> def lamp(ds):
...     during(ds, ["lit", capture()])(lambda room: assert_(ds, ["seen", room]))
...     assert_(ds, ["lit", "hall"])
>>> with chronicled() as chronicles:
...     run(lambda: lamp(dataspace()))
>>> print(Why(Story.of(*chronicles)).why(["seen", capture()]).draw())  # doctest: +ELLIPSIS
asserted ["seen" "hall"]: by <doctest ...>:2 lamp.<locals>.<lambda> in <lambda>, turn 3
  asserted ["lit" "hall"]: by <doctest ...>:2 <lambda> in <lambda>, turn 1
    the outside: a start
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, cast

from attrs import frozen

from syndicate.errors import PatternError
from syndicate.explain.derivation import Derivation
from syndicate.index.interest import Observe
from syndicate.introspect.story import Done, Happening, Key, Story, text
from syndicate.values.pattern import Pattern, decode, match, pattern_of
from syndicate.values.value import Value

DEEP: Final = 60
"""How many steps back an explanation goes."""

_VERBS: Final = {"assert": "asserted", "retract": "retracted", "message": "sent", "enter": "called", "spawn": "started"}


@frozen(eq=False, repr=False)
class Cause(Derivation):
    """That something happened, and why.  Made by :class:`Why`.

    *premises* are what the handler reacted to, and what its facets rest on.
    """

    process: str = ""
    number: int = 0
    turn: int = 0
    at: float = 0.0
    actor: str = ""
    where: str = ""
    shown: str = ""

    once: ClassVar[tuple[str, ...]] = ("turn",)

    def title(self) -> str:
        """What happened."""
        return f"{_VERBS.get(self.relation, self.relation)} {self.shown}".rstrip()

    def because(self) -> str:
        """By whom."""
        if self.how != "turn":
            return self.how
        by = f"by {self.where} in " if self.where else ""
        return f"{by}{self.actor}, turn {self.turn}{f' of {self.process}' if self.process != 'here' else ''}"

    def place(self) -> str:
        """File and line of the handler, and its name."""
        return self.where

    def details(self) -> dict[str, object]:
        """The rest."""
        return {"process": self.process, "turn": self.turn, "at": self.at, "actor": self.actor, "value": self.shown}

    def to_json(self) -> list[dict[str, object]]:
        """As of every derivation, with values as text."""
        return [{**one, "row": [one["value"]]} for one in super().to_json()]


class Why:
    """Explains what is in a story: by handlers of programs alone, or *full*, with all that was between them."""

    def __init__(self, story: Story, *, full: bool = False) -> None:
        self.story = story
        self.full = full
        self._asserted = {
            (step.process, act.id): text(act.value) for step in story for act in step.acts if act.kind == "assert"
        }
        self._standing = _ends(story)
        self._spaces: dict[tuple[str, int], list[Happening]] = {}
        self._turns: dict[tuple[str, int], list[Happening]] = {}
        for step in sorted(story, key=lambda step: step.number):
            self._turns.setdefault((step.process, step.turn), []).append(step)
            if step.public:
                self._spaces.setdefault((step.process, step.target), []).append(step)

    # ------------------------------------------------------------------------------------------------ what happened

    def events(self, pattern: Value, kinds: tuple[str, ...] = ("assert", "message")) -> list[tuple[Happening, Done]]:
        """What programs asserted or sent that matches *pattern*, in order."""
        wanted = [
            (step, act)
            for step in self.story
            if not step.public
            for act in step.acts
            if act.kind in kinds and act.target and match(pattern, act.value) is not None
        ]
        return [each for each in wanted if each[1].public] or wanted

    def stands(self, step: Happening, act: Done) -> bool:
        """Whether an assertion was never retracted, as far as the story goes."""
        return (step.process, act.id) not in self._standing

    def turn(self, step: Happening) -> list[Happening]:
        """All steps of the turn of *step*."""
        return self._turns[step.process, step.turn]

    def why(self, pattern: Value, *, retracted: bool = False) -> Cause | None:
        """The last of what matches, one that is asserted if there is one; None if there is none.

        *retracted*: why it is no longer there.
        """
        events = self.events(pattern, ("retract",) if retracted else ("assert", "message"))
        asserted = [each for each in events if each[1].kind == "assert" and self.stands(*each)]
        if not events:
            return None
        return self.of(*(asserted or events)[-1])

    def of(self, step: Happening, act: Done) -> Cause:
        """Why *step* did *act*."""
        return self._act(step, act, 0, {})

    # ------------------------------------------------------------------------------------------------ one step back

    def causes(self, step: Happening) -> Iterator[tuple[Happening, Done | None]]:
        """The steps that led to *step*, and what each did for it; what a dataspace passed on, it did not do itself."""
        for number in dict.fromkeys((*step.causes, *step.rests)):
            cause = self.story.find(step.process, number)
            if cause is None or cause is step:
                continue
            if number in step.rests and number not in step.causes:
                yield from self._origins(cause)
            elif cause.public:
                yield from self._through(cause, step)
            else:
                yield cause, _done_for(cause, step)

    def _origins(self, begun: Happening) -> Iterator[tuple[Happening, Done | None]]:
        """What a facet that began in *begun* rests on."""
        causes = list(self.causes(begun))
        if causes:
            yield from causes
        else:
            yield begun, None

    def _through(self, space: Happening, notice: Happening | None) -> Iterator[tuple[Happening, Done | None]]:
        """What a dataspace passed on in the step *space*: who said it to the dataspace, and to a new observer, whose
        assertions were there, of which it notified in *notice*.
        """
        if space.kind == "assert" and isinstance(space.value, Observe):
            yield from self._there(space, space.value, notice)
        for number in space.causes:
            cause = self.story.find(space.process, number)
            if cause is not None:
                yield cause, _done_for(cause, space)

    def _there(
        self, space: Happening, asked: Observe, notice: Happening | None
    ) -> Iterator[tuple[Happening, Done | None]]:
        """What was asserted in a dataspace that a new observer was notified of."""
        pattern = asked_pattern(asked)
        asserted: dict[int, Happening] = {}
        for step in self._spaces.get((space.process, space.target), ()):
            if step.number >= space.number:
                break
            if step.kind == "retract":
                asserted.pop(step.id, None)
            elif step.kind == "assert":
                captures = match(pattern, step.value)
                if captures is not None and (
                    notice is None or notice.kind != "assert" or text(list(captures)) == text(list(notice.value))
                ):
                    asserted[step.id] = step
        for step in asserted.values():
            yield from self._through(step, None)

    # ------------------------------------------------------------------------------------------------ the tree

    def _act(self, step: Happening, act: Done, depth: int, seen: dict[tuple[Key, str, int], Cause]) -> Cause:
        key = (step.key, act.kind, act.id or id(act))
        if key in seen:
            return seen[key]
        seen[key] = Cause(act.kind, (), "see below", shown=text(act.value))
        premises = self._premises(step, act, depth, seen)
        seen[key] = Cause(
            act.kind,
            (),
            "turn",
            premises,
            process=step.process,
            number=step.number,
            turn=step.turn,
            at=step.at,
            actor=step.actor,
            where=act.place or step.place,
            shown=text(act.value) if act.kind not in ("enter", "spawn") else "",
        )
        return seen[key]

    def _acts(
        self, step: Happening, act: Done, depth: int, seen: dict[tuple[Key, str, int], Cause]
    ) -> tuple[Cause, ...]:
        """As a premise; what no program did is left out, and what led to it is there in its place."""
        cause = self._act(step, act, depth + 1, seen)
        if self.full or cause.where or cause.how != "turn":
            return (cause,)
        return cast("tuple[Cause, ...]", cause.premises)

    def _premises(
        self, step: Happening, act: Done, depth: int, seen: dict[tuple[Key, str, int], Cause]
    ) -> tuple[Cause, ...]:
        if depth >= DEEP:
            return (Cause("before that", (), f"more than {DEEP} steps, which are left out"),)
        premises: list[Cause] = []
        for cause, did in () if _came(step) and not self.full else self.causes(step):
            done = did or Done(cause.kind, cause.actor, 0, False, cause.value, 0)
            premises += self._acts(cause, done, depth, seen)
        if step.hops:
            process, _, number, _ = step.hops[0]
            there = self.story.find(process, number)
            if there is not None:
                premises += self._premises_of_hop(there, step, act, depth, seen)
            else:
                hops = [hop for hop in step.hops if hop[3]] or [step.hops[0]]
                premises += [
                    Cause("reported", (), f"by {place or 'the relay'} in {actor} of {process}", number=number)
                    for process, actor, number, place in hops
                ]
        if not premises:
            unknown = any(self.story.find(step.process, number) is None for number in step.causes)
            premises.append(
                Cause("before that", (), "not followed, or forgotten")
                if unknown
                else Cause("the outside", (), _from_outside(step))
            )
        if len(premises) > 1:  # that it began somewhere is said where nothing else led to it
            inside = [one for one in premises if one.relation != "the outside"]
            premises = inside or [next((one for one in premises if one.how != _START), premises[0])]
        distinct = {(one.process, one.number, one.title()): one for one in premises}
        said = {(one.process, one.number) for one in distinct.values() if not _says_little(one)}
        little = {key for key, one in distinct.items() if _says_little(one) and one.number and key[:2] in said}
        rest = [one for key, one in distinct.items() if key not in little]
        if all(_says_little(one) for one in rest):  # of one step, once
            rest = list({(one.process, one.number, one.how): one for one in reversed(rest)}.values())[::-1]
        return tuple(rest)

    def _said(self, step: Happening, act: Done) -> str:
        """The value of an act of *step*, or near it, also of an end, which may come without."""
        return text(act.value) if act.value != "" else self._asserted.get((step.process, act.id), "")

    def _premises_of_hop(
        self, there: Happening, step: Happening, act: Done, depth: int, seen: dict[tuple[Key, str, int], Cause]
    ) -> Iterator[Cause]:
        said = {text(act.value) for act in step.acts}
        turn = self._turns[there.process, there.turn]
        ends = [one for one in turn if one.kind == act.kind == "retract"]  # which come without a value
        gone = self._said(step, act)
        of_this = [one for one in ends if self._asserted.get((one.process, one.id)) == gone]
        wanted = of_this or [one for one in turn if text(one.value) in said] or turn
        for one in wanted:  # a proxy's: what made it do so is said
            for cause, did in self.causes(one):
                done = did or Done(cause.kind, cause.actor, 0, False, cause.value, 0)
                yield from self._acts(cause, done, depth, seen)


_UNKNOWN: Final = Cause("before that", (), "not followed, or forgotten")
_START: Final = "a start"


def _came(step: Happening) -> bool:
    """Whether it came from outside to an actor of a library, such as that of a connection: that this actor was started
    once is not what led to it.
    """
    fresh = step.kind == "packet" or (step.kind == "enter" and not step.causes)
    return fresh and step.turn > 1 and not step.hops and not step.place


def _from_outside(step: Happening) -> str:
    """What a step that nothing in the story led to began with."""
    if _came(step):
        return (
            f"what came to {step.actor}, by a packet as a rule: the other side does not say what led to it, for it "
            "follows nothing (introspect.written, --chronicle)"
        )
    if step.kind == "recorded":
        return "what led to it was not recorded: syndicate-console --why does, where the server follows (--chronicle)"
    return _START if step.turn == 1 else "a task or a thread, or a timer that was set before"


def _says_little(cause: Cause) -> bool:
    """Whether it is but a call, or an interest or a reference that went by."""
    return cause.relation in ("enter", "spawn") or cause.shown == "#:_"


def _ends(story: Story) -> dict[tuple[str, int], int]:
    return {
        (step.process, act.id): step.number for step in story for act in step.acts if act.kind == "retract" and act.id
    }


def _done_for(cause: Happening, step: Happening) -> Done | None:
    """What *cause* did that *step* was given."""
    for act in cause.acts:
        same = act.kind == step.kind and act.target == step.target and act.id == step.id
        if same and (act.id or text(act.value) == text(step.value)):
            return act
    return next((act for act in cause.acts if act.kind == "spawn" and step.kind == "enter"), None)


def asked_pattern(asked: Observe) -> Pattern:
    """What an interest is in."""
    pattern = asked.pattern
    try:
        return pattern_of(decode(pattern) if not isinstance(pattern, Pattern) else pattern)
    except PatternError:
        return pattern_of(pattern)
