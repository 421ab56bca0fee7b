"""What the commands of ``syndicate bloom`` share: how a program is found.

A program is named ``MODULE:CLASS``, where the module is one that Python would import here, or a file,
``carts.py:Cart``.  Where a module has one program, its name is enough.

Source: ``docs/design/commands.md``, "Commands".
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from syndicate.bloom import Bloom
from syndicate.bloom.state.store import IN_MEMORY
from syndicate.errors import ProgramNotFound, SyndicateError
from syndicate.plan.heading import listed, meant


def find_program(text: str) -> type[Bloom]:
    """The class that MODULE:CLASS names; raises :class:`ProgramNotFound`."""
    where, _, name = text.partition(":") if not text.endswith(".py") else (text, "", "")
    module = _load(where)
    found = {
        known: value
        for known, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Bloom) and value is not Bloom
    }
    if not name:
        own = [known for known, value in found.items() if value.__module__ == module.__name__]
        if len(own) != 1:
            there = f"there are {listed(own)}" if own else f"there is none{_within(module)}"
            raise ProgramNotFound(f"which program of {where}? Write {where}:CLASS; {there}")
        name = own[0]
    if name in found:
        return found[name]
    if hasattr(module, name):
        raise ProgramNotFound(f"{name} of {where} is no program: a class that inherits from Bloom is")
    there = f"there are {listed(found)}" if found else f"there is no program in it{_within(module)}"
    raise ProgramNotFound(f"there is no {name} in {where}{meant(name, found)}; {there}")


def make(kind: type[Bloom], **options: Any) -> Bloom:
    """A program of a class, its durable tables in memory unless *state* is given; raises what making it raises."""
    try:
        return kind(**{"state": IN_MEMORY, **options})
    except TypeError as error:
        if isinstance(error, SyndicateError):
            raise
        raise ProgramNotFound(f"{kind.__name__} cannot be made from here: {error}") from error


def _load(where: str) -> ModuleType:
    if not where:
        raise ProgramNotFound("name a program: MODULE:CLASS, such as shop.carts:Cart or carts.py:Cart")
    try:
        if where.endswith(".py") or "/" in where:
            return _load_file(Path(where))
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name is not None and (where == error.name or where.startswith(f"{error.name}.")):
            raise ProgramNotFound(f"there is no module {error.name}, here or installed{_meant(where)}") from None
        raise ProgramNotFound(f"{where} needs the module {error.name}, which is not installed") from error
    except SyndicateError:
        raise
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise ProgramNotFound(f"cannot load {where}: {what}") from error


def _meant(where: str) -> str:
    """The file of that name, or a module of ours: ``library``, ``library.store``, ``store``."""
    ours = (f"{home}.{where}" for home in ("syndicate.bloom", "syndicate.bloom.library"))
    known = f"{where}.py" if Path(f"{where}.py").exists() else next(filter(_is_module, ours), None)
    return f": did you mean {known}?" if known else ""


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _within(module: ModuleType) -> str:
    """The modules of a package."""
    names = [one.name for one in pkgutil.iter_modules(getattr(module, "__path__", []), f"{module.__name__}.")]
    return f", but in its modules {listed(names)} there may be" if names else ""


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ProgramNotFound(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ProgramNotFound(f"{path} is no Python file")
    sys.path.insert(0, str(path.resolve().parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
