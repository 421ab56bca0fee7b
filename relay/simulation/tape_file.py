"""A run in a file: its scenario, its faults in words and as data, its choices; so that anybody can have it again.

The file is JSON, with a version and a checksum.  Choices are those that are not the plainest, so that a run that was
shrunk is a file that one can read.

>>> import tempfile
>>> from relay.simulation.faults import Kill
>>> taped = Taped("shop:queue", 3, (Kill("w", at=1.0),), {"network w->b/200": {4: 17}}, "never two", "9f")
>>> with tempfile.TemporaryDirectory() as folder:
...     taped.write(f"{folder}/queue.tape")
...     Taped.read(f"{folder}/queue.tape") == taped
True

Contract: what is read was written so, or :class:`~syndicate.errors.TapeFileError` is raised, in one line.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self

import trio
from attrs import evolve, frozen

from relay.simulation.faults import Fault, data_of, fault_of
from relay.simulation.scenario import Outcome, Scenario
from syndicate.errors import TapeFileError
from syndicate.simulation.shrink import RUNS, Case, FailedRun, Shrinking
from syndicate.simulation.tape import Choices, chosen
from syndicate.storage.files import replace

_VERSION: Final = 1


@frozen
class Taped:
    """A run: which *scenario* (as a command names it), the seed, faults and choices that it is played from; what was
    broken, and the digest of its history with every turn; whether it was *followed*, as in a search by lineage.
    """

    scenario: str
    seed: int
    faults: tuple[Fault, ...]
    choices: Choices
    violation: str | None
    digest: str
    followed: bool = False

    @classmethod
    def of(cls, name: str, outcome: Outcome) -> Self:
        """A run that was made with every turn in its history."""
        violation = None if outcome.violation is None else str(outcome.violation)
        digest = outcome.history.digest()
        followed = bool(outcome.chronicles)
        return cls(name, outcome.seed, tuple(outcome.faults), chosen(outcome.draws), violation, digest, followed)

    def play(self, scenario: Scenario) -> Outcome:
        """Run it again, with every turn."""
        return scenario.replay(self.seed, self.faults, self.choices, traced=True, followed=self.followed)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Replace the file *path* as a whole."""
        body: dict[str, object] = {
            "tape": "syndicate",
            "version": _VERSION,
            "scenario": self.scenario,
            "seed": self.seed,
            "violation": self.violation,
            "in_words": [str(each) for each in self.faults],
            "faults": [data_of(each) for each in self.faults],
            "choices": {label: {str(at): value for at, value in each.items()} for label, each in self.choices.items()},
            "digest": self.digest,
            "followed": self.followed,
            "made_with": {
                "python": platform.python_version(),
                "trio": trio.__version__,
            },
        }
        text = json.dumps({**body, "checksum": _checksum(body)}, ensure_ascii=False, indent=1)
        try:
            replace(Path(path), (text + "\n").encode())
        except OSError as e:
            raise TapeFileError(f"cannot write the tape {path}: {e.strerror}") from None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Raises :class:`~syndicate.errors.TapeFileError` for what is no tape, damaged, or of another version."""
        try:
            body = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as e:
            raise TapeFileError(f"cannot read the tape {path}: {e.strerror}") from None
        except (ValueError, RecursionError):
            raise TapeFileError(f"{path} is no tape: `syndicate simulate .. --tape FILE` writes one") from None
        if not isinstance(body, dict) or body.get("tape") != "syndicate":
            raise TapeFileError(f"{path} is no tape: `syndicate simulate .. --tape FILE` writes one")
        if body.get("version") != _VERSION:
            raise TapeFileError(f"{path} is a tape of version {body.get('version')!r}: this program reads {_VERSION}")
        if body.pop("checksum", None) != _checksum(body):
            raise TapeFileError(f"{path} is damaged: its checksum is another; run its seed again")
        choices = {label: {int(at): value for at, value in each.items()} for label, each in body["choices"].items()}
        faults = tuple(fault_of(each) for each in body["faults"])
        followed = bool(body.get("followed"))
        return cls(body["scenario"], body["seed"], faults, choices, body["violation"], body["digest"], followed)

    def as_test(self) -> str:
        """A test for pytest that runs it, to be pasted: it fails as long as the bug is there."""
        where, _, name = self.scenario.rpartition(":")
        if where.endswith(".py") or "+" in name:
            place = f'find_scenario("{where}:{name}")'
            imports = ["from relay.simulation.campaign import find_scenario"]
        else:
            place, imports = name, [f"from {where} import {name}"]
        kinds = ", ".join(sorted({type(each).__name__ for each in self.faults}))
        if kinds:
            imports.append(f"from relay.simulation.faults import {kinds}")
        faults = "".join(f"        {each!r},  # {each}\n" for each in self.faults)
        faults = f"[\n{faults}    ]" if faults else "[]"
        choices = "".join(f"        {label!r}: {dict(each)!r},\n" for label, each in self.choices.items())
        choices = f"{{\n{choices}    }}" if choices else "{}"
        broken = str(self.violation or "everything held").replace("\\", "\\\\").replace('"', "'").splitlines()[0]
        head, plain = "\n".join(sorted(imports)), name.partition("+")[0]
        return (
            f'{head}\n\n\ndef test_{plain}_with_seed_{self.seed}() -> None:\n    """Was: {broken}."""\n'
            f"    faults = {faults}\n    choices = {choices}\n"
            f"    outcome = {place}.replay({self.seed}, faults, choices{', followed=True' * self.followed})\n"
            f"    assert outcome.held, outcome.violation\n"
        )


def shrunk(
    name: str,
    scenario: Scenario,
    first: Taped,
    *,
    runs: int = RUNS,
    tell: Callable[[Shrinking[Fault, Outcome]], object] = lambda shrinking: None,
) -> tuple[Taped, str]:
    """The smallest run that breaks the same property, and how that was found: ``2 faults, .. in 83 runs``.

    Raises :class:`~syndicate.errors.TapeFileError` if *first* breaks nothing.
    """

    def run(case: Case[Fault]) -> FailedRun[Fault, Outcome] | None:
        outcome = scenario.replay(first.seed, case.faults, case.choices, followed=first.followed)
        kind = None if outcome.violation is None else (outcome.violation.kind, outcome.violation.name)
        if kind is None or kind != wanted.setdefault("", kind):
            return None
        return FailedRun(Case(tuple(outcome.faults), chosen(outcome.draws)), outcome.turns, outcome)

    wanted: dict[str, tuple[str, str]] = {}
    begin = run(Case(first.faults, first.choices))
    if begin is None:
        raise TapeFileError(f"seed {first.seed} of {name} breaks nothing: there is nothing to shrink")
    shrinking = Shrinking(run, begin, most=runs, tell=tell)
    why = shrinking.run()
    best = shrinking.best
    taped = evolve(first, scenario=name, faults=best.case.faults, choices=best.case.choices)
    return Taped.of(name, taped.play(scenario)), f"{best.size}, in {shrinking.runs} runs: {why}"


def _checksum(body: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
