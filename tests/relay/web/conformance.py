"""Runs the shared cases with the Python client, as `conformance.mjs` does with the one for JavaScript."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from relay import connect
from syndicate import (
    Ref,
    assert_,
    current_facet,
    during,
    on_asserted,
    on_message,
    on_retracted,
    on_stop,
    prevent_inert_check,
    react,
    run,
    send,
    stop,
    stop_actor,
    sync,
)
from syndicate.values.text import parse, parse_pattern, unparse

Case: TypeAlias = Mapping[str, Any]
Trace: TypeAlias = "list[list[Any]]"


class _Play:
    """One case: its names, and what its observers were notified of."""

    def __init__(self, ds: Ref) -> None:
        self.ds = ds
        self.names: dict[str, Any] = {}
        self.log: Trace = []

    def step(self, step: Case) -> None:
        verb = next(iter(step))
        getattr(self, verb)(step[verb], step)

    def note(self, name: str, mark: str) -> Callable[..., None]:
        return lambda *captures: self.log.append([name, mark, [unparse(each) for each in captures]])

    # A method for each verb of the cases; `assert` is a word of Python's own.

    def begin(self, name: str, step: Case) -> None:
        self.names[name] = assert_(self.ds, parse(step["value"]))

    def replace(self, name: str, step: Case) -> None:
        self.names[name] = self.names[name].replace(parse(step["value"]))

    def retract(self, name: str, _: Case) -> None:
        self.names[name].retract()

    def send(self, text: str, _: Case) -> None:
        send(self.ds, parse(text))

    def all(self, steps: list[Case], _: Case) -> None:
        for each in steps:
            self.step(each)

    def react(self, name: str, step: Case) -> None:
        self.names[name] = react(lambda: self.all(step["steps"], step))

    def stop(self, name: str, _: Case) -> None:
        stop(self.names[name])

    def onstop(self, name: str, _: Case) -> None:
        on_stop(self.note(name, "stop"))

    def observe(self, name: str, step: Case) -> None:
        pattern = parse_pattern(step["pattern"])
        match step["how"]:
            case "asserted":
                on_asserted(self.ds, pattern)(self.note(name, "+"))
            case "retracted":
                on_retracted(self.ds, pattern)(self.note(name, "-"))
            case "message":
                on_message(self.ds, pattern)(self.note(name, "!"))
            case "during":

                @during(self.ds, pattern)
                def seen(*captures: Any) -> None:
                    self.note(name, "+")(*captures)
                    on_stop(lambda: self.note(name, "-")(*captures))


setattr(_Play, "assert", _Play.begin)


def traces(address: str, cases: list[Case]) -> dict[str, Trace]:
    """What the observers of each case were notified of, by its name."""
    played: dict[str, Trace] = {}

    def boot() -> None:
        @connect(address, attempts=1)
        def on_connected(ds: Ref) -> None:
            root = current_facet()
            left = iter(cases)

            def case() -> None:
                following = next(left, None)
                if following is None:
                    stop_actor()
                    return
                play = _Play(ds)
                facet = react(prevent_inert_check)
                steps: Iterator[Case] = iter(following["steps"])

                def step() -> None:
                    act = next(steps, None)
                    if act is not None:
                        facet.enter(lambda: play.step(act))
                        root.enter(lambda: sync(ds, step))
                        return
                    played[following["name"]] = list(play.log)
                    stop(facet)
                    sync(ds, case)

                step()

            case()

    run(boot)
    return played
