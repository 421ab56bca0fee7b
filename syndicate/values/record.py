"""The ``@record`` decorator: attrs classes whose instances are records.

A class with a label is how Python programs write, read and match records; the value is the same whether or not a
class is looked up by its label.  Two functions are generated for each class, because a send spends a third of its time
in them: ``__init__`` and the freezer.

Source: ``docs/design/values.md``, "Records".
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import get_annotations
from typing import Any, TypeVar, cast, dataclass_transform, overload

import attrs

from syndicate.errors import NotAValue, RecordDefinition
from syndicate.native import kernel
from syndicate.values.conversion import as_record
from syndicate.values.value import PLAIN, SMALL, Frozen, Symbol, Value, freeze, freeze_as, hash_of, same, thaw_as

C = TypeVar("C", bound=type)


@overload
def record(label: C) -> C: ...
@overload
def record(label: str | Symbol | None = None) -> Callable[[C], C]: ...
@dataclass_transform(frozen_default=True, eq_default=True, field_specifiers=(attrs.field,))
def record(label: C | str | Symbol | None = None) -> C | Callable[[C], C]:
    """Make an attrs class whose instances are records: ``@record`` or ``@record("box-state")``.

    The class is frozen and slotted; its fields, in order, are the record's.  Instances are equal if they are the same
    *value*, even where two classes share a label; records with that label and number of fields then arrive as instances
    of the class that was defined last.  A record class applied to patterns is a pattern.  An ``Enum``, a dataclass, a
    named tuple or a pydantic model stays what it is, and its instances are records.  An ``__init__`` in the class makes
    its instances by ``__attrs_init__``, which takes the fields; those that arrive are not made by it.  Raises
    :class:`~syndicate.errors.RecordDefinition` for a field without an annotation, ``n = 1`` for ``n: int = 1``, and for
    what attrs refuses.

    >>> @record("box-state")
    ... class BoxState:
    ...     value: int
    >>> BoxState(1), BoxState(1) == BoxState(value=1), BoxState(1) == BoxState(True)
    (BoxState(value=1), True, False)
    """
    if isinstance(label, type):
        return _make_record(label, Symbol(label.__name__))
    if callable(label):
        raise _no_class(label)
    return lambda cls: _make_record(cls, Symbol(getattr(cls, "__name__", "") if label is None else str(label)))


def _no_class(decorated: object) -> RecordDefinition:
    name = getattr(decorated, "__name__", "Name")
    return RecordDefinition(
        f"@record is for a class, which {name} is not: write `class {name}:`, and in it the fields, each with a type, "
        "such as `who: str`"
    )


def _make_record(cls: C, label: Symbol) -> C:
    if not isinstance(cls, type):
        raise _no_class(cls)
    if as_record(cls, label):
        return cls
    _expect_annotations(cls)
    has_initializer = "__init__" in vars(cls)
    try:
        record_class: Any = attrs.frozen(cls, eq=False, slots=True, auto_attribs=True)
    except (TypeError, ValueError) as error:
        raise RecordDefinition(f"{cls.__qualname__} cannot be a record: {error}") from error
    names = [a.name for a in attrs.fields(record_class)]
    record_class.__label__ = label
    record_class.__eq__ = same
    record_class.__hash__ = hash_of
    # Looked up with getattr, since an inherited field has its slot in the class that declares it.
    record_class.__setters__ = [getattr(record_class, name).__set__ for name in names]
    hooked = has_initializer or _has_hooks(record_class)
    if not hooked:
        record_class.__init__ = _fast_init(record_class)
    freeze_as(record_class, record_freezer(record_class, label, names))
    if not hooked and not any(type(a.default) is attrs.Factory for a in attrs.fields(record_class)):
        make_at_once(record_class)
    old = thaw_as(record_class, label, len(names))
    if old is not None and not hasattr(record_class, "__getattr__"):
        old_names = [a.name for a in attrs.fields(old)]
        if old_names != names:
            record_class.__getattr__ = _explain(record_class, f"{old.__module__}.{old.__qualname__}", old_names)
    return cast(C, record_class)


def _expect_annotations(cls: type) -> None:
    """Raise :class:`RecordDefinition` for what looks like a field and, without an annotation, would not be one, and for
    what looks as if it were called, and is not.
    """
    if hasattr(cls, "__post_init__"):
        raise RecordDefinition(
            f"{cls.__qualname__}.__post_init__ is never called: it is for dataclasses; in a record it is "
            "__attrs_post_init__"
        )
    annotated = get_annotations(cls)
    for name, value in vars(cls).items():
        if name in annotated or name.startswith("_") or callable(value) or hasattr(value, "__get__"):
            continue
        kind = type(value).__name__ if type(value).__module__ == "builtins" and value is not None else "Any"
        raise RecordDefinition(
            f"{cls.__qualname__}.{name} has no annotation, so that it would be no field of the record: write {name}: "
            f"{kind} = ...; or, for a constant of the class, {name}: ClassVar[{kind}] = ..."
        )


def _explain(cls: type, old: str, old_names: list[str]) -> Callable[[object, str], object]:
    """What says, where the names of a replaced class are looked for in vain, why they are."""

    def missing(self: object, name: str) -> object:
        why = ""
        if name in old_names:
            why = (
                f": records with its label and {len(old_names)} fields become instances of the class defined last, and "
                f'it has replaced {old}({", ".join(old_names)}). Give one of the two another label, as @record("...")'
            )
        raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}{why}", name=name, obj=self)

    return missing


def _has_hooks(cls: type) -> bool:
    """Whether attrs' own ``__init__`` does more than to store its arguments."""
    return any(a.validator or a.converter or not a.init or a.kw_only for a in attrs.fields(cls)) or any(
        hasattr(cls, hook) for hook in ("__attrs_pre_init__", "__attrs_post_init__")
    )


@kernel
def store_of(cls: type, names: list[str]) -> Callable[..., None] | None:
    """A function of an instance and a value for each field that stores them all; None where one at a time is best."""
    return None


@kernel
def make_at_once(cls: type) -> None:
    """Store the arguments without a call of ``__init__``, where *cls* is called with one for each field, in order.

    To do nothing, as here, is always right.
    """


def _fast_init(cls: type) -> Callable[..., None]:
    """An ``__init__`` that stores through the slots' descriptors: a quarter faster than attrs' frozen one."""
    fields = attrs.fields(cls)
    scope: dict[str, object] = {}
    params, values = [], []
    for i, a in enumerate(fields):
        if a.default is attrs.NOTHING:
            params.append(a.alias)
            values.append(a.alias)
        elif type(a.default) is attrs.Factory:
            scope[f"factory{i}__"] = a.default.factory if not a.default.takes_self else None
            if a.default.takes_self:
                return cast(Callable[..., None], vars(cls)["__init__"])
            params.append(f"{a.alias}=nothing__")
            values.append(f"factory{i}__() if {a.alias} is nothing__ else {a.alias}")
        else:
            scope[f"default{i}__"] = a.default
            params.append(f"{a.alias}=default{i}__")
            values.append(a.alias)
    store = store_of(cls, [a.name for a in fields])
    if store is None:
        setters = [getattr(cls, a.name).__set__ for a in fields]
        scope |= {f"set{i}__": setter for i, setter in enumerate(setters)}
        body = [f" set{i}__(self, {value})" for i, value in enumerate(values)]
    else:
        scope["store__"] = store
        body = [f" store__({', '.join(['self', *values])})"]
    scope["nothing__"] = attrs.NOTHING
    old = vars(cls)["__init__"]
    exec(f"def __init__({', '.join(['self', *params])}):\n" + "\n".join(body or [" pass"]), scope)
    init = cast(Callable[..., None], scope["__init__"])
    init.__annotations__ = old.__annotations__
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return init


def _missing(cls: str, name: str) -> Frozen:
    raise NotAValue(
        f"None is not a value, and the field {name!r} of {cls} is None: say what is absent with "
        "ABSENT, or leave the record out"
    )


@kernel
def record_freezer(cls: type, label: Symbol, names: list[str]) -> Callable[[Value, int], Frozen]:
    """A function from an instance to its frozen form, unrolled: a send spends a fifth of its time here."""
    lines = ["def freezer(self, depth):"]
    for i, name in enumerate(names):
        lines += [
            f" x{i} = self.{name}",
            f" t = type(x{i})",
            " if t is int:",
            f"  if not {-SMALL} < x{i} < {SMALL} or x{i} == -2: x{i} = freeze(x{i})",
            f" elif t not in plain: x{i} = missing(cls, {name!r}) if x{i} is None else freeze(x{i}, depth + 1)",
        ]
    lines.append(f" return ({', '.join(['label', *(f'x{i}' for i in range(len(names)))])},)")
    scope: dict[str, object] = {
        "label": label,
        "freeze": freeze,
        "plain": PLAIN,
        "missing": _missing,
        "cls": cls.__name__,
    }
    exec("\n".join(lines), scope)
    return cast(Callable[[Value, int], Frozen], scope["freezer"])


def is_record_class(written: object) -> bool:
    """Whether it is a class made by :func:`record`."""
    return isinstance(written, type) and hasattr(written, "__label__")
