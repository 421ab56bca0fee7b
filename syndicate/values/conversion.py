"""Python types that the data model does not have, as records: one decision for each, in one place.

========================  =======================================  ===================================================
Python                    value                                    identity
========================  =======================================  ===================================================
``datetime`` with a zone  ``<rfc3339 "2026-11-22T10:00:00Z">``      the moment: in UTC, with the shortest fraction
``date``, ``time``        ``<rfc3339 "2026-11-22">``              the text, with the shortest fraction
``timedelta``             ``<duration "PT90.5S">``                  so many microseconds
``Decimal``               ``<decimal "1.5">``                       the number: 1.50 is 1.5
``UUID``                  ``<uuid #x"..">``                         its 16 bytes
numpy's scalars           Python's of the same kind                as there
``Enum``, dataclass,      a record of their own, once they are     label and fields
named tuple, pydantic     decorated with ``@record``
========================  =======================================  ===================================================

Whatever two Python calls equal are one value, and the other way round.  A record that comes from elsewhere becomes an
instance of the class only if that is the very same value; ``<rfc3339 "tomorrow">`` stays a :class:`Record`.  The order
of values is that of their texts: moments come in the order of time where their fractions are of one length.

>>> from datetime import UTC, datetime, timedelta, timezone
>>> from syndicate.values.value import freeze, identical, thaw
>>> there = datetime(2026, 11, 22, 11, 0, tzinfo=timezone(timedelta(hours=1)))
>>> freeze(there), identical(there, datetime(2026, 11, 22, 10, 0, tzinfo=UTC))
((Symbol('rfc3339'), '2026-11-22T10:00:00Z'), True)
>>> thaw(freeze([timedelta(seconds=1.5), Decimal("2.50")]))
(datetime.timedelta(seconds=1, microseconds=500000), Decimal('2.5'))

Source: Preserves, "Conventions for Common Data Types" (``rfc3339``); ``docs/design/values.md``, "Other types".
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from operator import attrgetter
from typing import Final, TypeVar
from uuid import UUID

from syndicate.errors import NotAValue, RecordDefinition
from syndicate.values.value import Conversion, Symbol, Value, convert_as

T = TypeVar("T")


def convert(
    cls: type[T], *, to: Callable[[T], tuple[Value, ...]], back: Callable[..., object], label: str = "", fields: int = 1
) -> type[T]:
    """Let instances of *cls* be values: records with *label* (the class's name) and the *fields* values that *to*
    returns, of which *back* makes an instance again.

    *to* must return the same for equal instances.  *back* may raise for what it cannot take.

    >>> class Celsius:
    ...     def __init__(self, degrees): self.degrees = degrees
    ...     def __repr__(self): return f"{self.degrees} C"
    >>> convert(Celsius, to=lambda c: (c.degrees,), back=Celsius, label="celsius").__name__
    'Celsius'
    >>> from syndicate.values.pattern import capture, match
    >>> match(["hall", capture(Celsius)], ["hall", Celsius(20)])
    (20 C,)

    Raises:
        RecordDefinition: instances of *cls* are values already.
    """
    convert_as(cls, Conversion(Symbol(label or cls.__name__), fields, to, back))
    return cls


def as_record(cls: Value, label: Symbol) -> bool:
    """Convert an ``Enum``, a dataclass, a named tuple or a pydantic model to records; whether it is one of these."""
    if issubclass(cls, Enum):
        if not cls.__members__:
            raise RecordDefinition(f"{cls.__qualname__} has no members yet: decorate the class that has them")
        convert(cls, to=lambda member: (Symbol(member.name),), back=lambda name: cls[name.name], label=label.name)
        return True
    if dataclasses.is_dataclass(cls):
        names = [each.name for each in dataclasses.fields(cls) if each.init]
    elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
        names = list(cls._fields)
    elif isinstance(getattr(cls, "model_fields", None), dict):
        names = list(cls.model_fields)
    else:
        return False

    def back(*values: Value) -> object:
        return cls(**dict(zip(names, values, strict=True)))

    convert(cls, to=_getter(names), back=back, label=label.name, fields=len(names))
    return True


def _getter(names: list[str]) -> Callable[[Value], tuple[Value, ...]]:
    if len(names) == 1:
        one = attrgetter(names[0])
        return lambda instance: (one(instance),)
    return attrgetter(*names) if names else lambda instance: ()


# ---------------------------------------------------------------------------------------------------- Python's own


def _shortest(text: str) -> str:
    """ISO's text with no zeros at the end of a fraction."""
    head, dot, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    return f"{head}.{fraction}" if dot and fraction else head


def _moment(value: datetime) -> tuple[str]:
    if value.utcoffset() is None:
        raise NotAValue(
            f"a datetime without a time zone is not a value, for nobody else knows which moment it is: {value!r}. "
            "Write value.astimezone() if it is this machine's time, or value.replace(tzinfo=UTC)"
        )
    try:
        return (_shortest(value.astimezone(UTC).replace(tzinfo=None).isoformat()) + "Z",)
    except OverflowError:
        raise NotAValue(f"{value!r} is not a value: in UTC it is not within the years 1 to 9999") from None


def _time(value: time) -> tuple[str]:
    if value.tzinfo is not None:
        raise NotAValue(f"a time with a zone but no date is not a value: {value!r}. Assert a datetime")
    return (_shortest(value.isoformat()),)


def _rfc3339(text: str) -> datetime | date | time:
    if text.endswith("Z"):
        return datetime.fromisoformat(text)
    return time.fromisoformat(text) if ":" in text else date.fromisoformat(text)


def _duration(value: timedelta) -> tuple[str]:
    microseconds = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    return (f"{'-' if microseconds < 0 else ''}PT{_shortest(f'{seconds}.{fraction:06}')}S",)


_DURATION: Final = re.compile(r"(-?)PT(\d{1,14})(?:\.(\d{1,6}))?S")


def _timedelta(text: str) -> timedelta:
    parts = _DURATION.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    length = timedelta(seconds=int(parts[2]), microseconds=int((parts[3] or "").ljust(6, "0")))
    return -length if parts[1] else length


def _decimal(value: Decimal) -> tuple[str]:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise NotAValue(f"{value!r} is not a value: a Decimal must be a number")
    count = len(digits)
    while count > 1 and digits[count - 1] == 0:
        count -= 1
    if digits[:count] == (0,):
        return ("0",)
    return (str(Decimal((sign, digits[:count], exponent + len(digits) - count))),)


convert(datetime, to=_moment, back=_rfc3339, label="rfc3339")
convert(date, to=lambda value: (value.isoformat(),), back=_rfc3339, label="rfc3339")
convert(time, to=_time, back=_rfc3339, label="rfc3339")
convert(timedelta, to=_duration, back=_timedelta, label="duration")
convert(Decimal, to=_decimal, back=Decimal, label="decimal")
convert(UUID, to=lambda value: (value.bytes,), back=lambda octets: UUID(bytes=octets), label="uuid")
