from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import syndicate

GOLDEN = Path(__file__).parents[1] / "golden" / "surface.txt"


def surface() -> Iterator[str]:
    """The public names, with the arguments of what can be called."""
    for name in sorted(syndicate.__all__):
        thing = getattr(syndicate, name)
        if inspect.isroutine(thing):
            signature = inspect.signature(thing)
            plain = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
            yield name + re.sub(r"=<object object at 0x\w+>", "=...", str(inspect.Signature(plain)))
        elif inspect.isclass(thing):
            ours = [base for base in thing.__mro__ if base.__module__.startswith("syndicate")]
            members = {member for base in ours for member in vars(base) if not member.startswith("_")}
            yield f"class {name}: {' '.join(sorted(members))}".rstrip(": ")
        else:
            yield f"{name} = {thing!r}"


def test_the_public_surface_changes_only_on_purpose() -> None:
    """Every public name with its arguments is in the golden file.

    After a change that is meant: ``python -m tests.syndicate.test_surface > tests/golden/surface.txt``.
    """
    assert list(surface()) == GOLDEN.read_text().splitlines()


def test_the_surface_is_sorted_and_documented() -> None:
    """``__all__`` is sorted, holds no name twice, and each thing in it says what it is."""
    assert sorted(set(syndicate.__all__)) == sorted(syndicate.__all__)
    undocumented = [name for name in syndicate.__all__ if not (getattr(syndicate, name).__doc__ or "").strip()]
    assert undocumented == []


def test_star_import() -> None:
    """``from syndicate import *`` gives the surface and nothing else."""
    scope: dict[str, object] = {}
    exec("from syndicate import *", scope)
    assert set(scope) - {"__builtins__"} == set(syndicate.__all__)


if __name__ == "__main__":
    print("\n".join(surface()))
