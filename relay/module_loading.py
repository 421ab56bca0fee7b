"""Modules by name: what a command is given as ``shop.carts`` or ``carts.py``, loaded."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

from syndicate.errors import ProgramNotFound, SyndicateError


def load_module(where: str) -> ModuleType:
    """The module of that name, or in that file; raises :class:`~syndicate.errors.ProgramNotFound`."""
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
        raise ProgramNotFound(f"cannot load {where}: {_failure_text(error, where)}") from error


def _failure_text(error: BaseException, where: str) -> str:
    """The line of the file that failed, if it is one of *where*, and how: by what it is if the error says nothing."""
    frames = walk_tb(error.__traceback__)
    line = next((line for frame, line in [*frames][::-1] if Path(frame.f_code.co_filename) == Path(where)), 0)
    what = str(error).partition("\n")[0] or linecache.getline(where, line).strip()
    return f"{f'line {line}: ' if line else ''}{type(error).__name__}: {what}".removesuffix(": ")


def _meant(where: str) -> str:
    """The file of that name, or a module of ours: ``library``, ``library.store``, ``store``."""
    ours = (f"{home}.{where}" for home in ("syndicate.bloom", "syndicate.bloom.library"))
    module_there = f"{where}.py" if Path(f"{where}.py").exists() else next(filter(_is_module, ours), None)
    return f": did you mean {module_there}?" if module_there else ""


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _load_file(path: Path) -> ModuleType:
    if path.is_dir():
        raise ProgramNotFound(f"{path} is a directory: name a file in it")
    if not path.is_file():
        raise ProgramNotFound(f"there is no file {path}")
    if path.suffix != ".py":
        raise ProgramNotFound(f"{path} is no Python file")
    # As it was named: places in it are shown so, too, and not as long absolute paths.
    loader = SourceFileLoader(path.stem, str(path))
    spec = importlib.util.spec_from_loader(path.stem, loader)
    assert spec is not None
    sys.path.insert(0, str(path.resolve().parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    loader.exec_module(module)
    return module
