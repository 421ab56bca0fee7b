"""The options of ``format("syndicate")``: what they are called, what they take, and what is wrong with them.

Spark hands options over as text, and has its own names for many of them: these are kept.

>>> Options.of({"address": "tcp://127.0.0.1:8001", "pattern": "<Sensor $name $value>"}).mode
'FAILFAST'
>>> Options.of({"adress": "tcp://127.0.0.1:8001"})
Traceback (most recent call last):
syndicate.errors.SourceError: format("syndicate") has no option 'adress' (did you mean 'address'?); they are address,
ca, cap, capfile, columns, events, grace, key, label, labels, log, mode, pattern, retries, rowsperpartition, timeout,
txnappid, txnversion, weight
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from attrs import frozen

from relay.capabilities.sturdy import DEFAULT, SturdyRef, parse_ref
from relay.transport.address import Address
from relay.transport.tls import Tls
from syndicate.errors import AddressError, SourceError, TextError
from syndicate.plan.algebra import meant

T = TypeVar("T")

NAMES: Final = (
    "address",
    "ca",
    "cap",
    "capfile",
    "columns",
    "events",
    "grace",
    "key",
    "label",
    "labels",
    "log",
    "mode",
    "pattern",
    "retries",
    "rowsperpartition",
    "timeout",
    "txnappid",
    "txnversion",
    "weight",
)
"""Spark takes options in any case."""

SPARKS_OWN: Final = frozenset({"checkpointlocation"})
"""What Spark hands to us as well, and is not ours."""

MODES: Final = ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")
EVENTS: Final = ("assertions", "messages")


@frozen
class Broker:
    """Where a dataspace is: an address, a capability, and whom to trust about it."""

    address: str
    cap: SturdyRef
    tls: Tls | None = None
    timeout: float = 60.0
    retries: int = 5


@frozen
class Options:
    """All of them; ``docs/howto/spark.md`` has the table that says what each is for."""

    broker: Broker
    pattern: str | None = None
    label: str | None = None
    labels: tuple[str, ...] = ()
    columns: str | None = None
    events: str = "assertions"
    mode: str = "FAILFAST"
    log: Path | None = None
    grace: float = 5.0
    rows: int = 50_000
    weight: str = "weight"
    key: tuple[str, ...] = ()
    txn: tuple[str, int] | None = None
    application: str | None = None

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Options:
        """The options that *settings* mean; raises :class:`SourceError`, naming the option and the remedy."""
        options = {name.lower(): text for name, text in settings.items() if name.lower() not in SPARKS_OWN}
        if unknown := sorted(options.keys() - set(NAMES)):
            if unknown == ["path"]:
                raise SourceError('format("syndicate") reads no path: leave load() or save() empty, and set address')
            hint = meant(unknown[0], NAMES)
            raise SourceError(f'format("syndicate") has no option {unknown[0]!r}{hint}; they are {", ".join(NAMES)}')
        events = _one_of(options, "events", EVENTS)
        asked = [name for name in ("pattern", "label", "labels") if name in options]
        if len(asked) > 1:
            raise SourceError(f"the options {' and '.join(asked)} both say which values are meant: leave one out")
        application, version = options.get("txnappid"), options.get("txnversion")
        if version is not None and application is None:
            raise SourceError("txnVersion counts the writes of an application: name it, with txnAppId")
        return cls(
            _broker(options),
            pattern=options.get("pattern"),
            label=options.get("label"),
            labels=_list(options, "labels"),
            columns=options.get("columns"),
            events=events,
            mode=_one_of({"mode": options.get("mode", MODES[0]).upper()}, "mode", MODES),
            log=Path(options["log"]) if "log" in options else None,
            grace=_number(options, "grace", float, 5.0),
            rows=max(_number(options, "rowsperpartition", int, 50_000), 1),
            weight=options.get("weight", "weight"),
            key=_list(options, "key"),
            txn=None
            if version is None or application is None
            else (application, _number(options, "txnversion", int, 0)),
            application=application,
        )


def _broker(options: Mapping[str, str]) -> Broker:
    if "address" not in options:
        raise SourceError(
            'format("syndicate") needs to know the broker: .option("address", "tcp://127.0.0.1:8001"), as '
            "syndicate-server prints it"
        )
    if "cap" in options and "capfile" in options:
        raise SourceError("cap and capFile both say whose dataspace it is: leave one of them out")
    text = options.get("cap")
    try:
        if "capfile" in options:
            text = Path(options["capfile"]).read_text(encoding="utf-8").strip()
        cap = parse_ref(DEFAULT if text is None else text)
    except OSError as error:
        raise SourceError(f"the option capFile={options['capfile']!r} cannot be read: {error.strerror}") from None
    except TextError as error:
        raise SourceError(
            f"the option cap is no reference: {error}; it is what syndicate-server prints, <ref {{oid: ..., sig: ...}}>"
        ) from None
    try:
        where = Address.parse(options["address"])
    except AddressError as error:
        raise SourceError(f"the option address is wrong: {error}") from None
    if where.scheme == "stdio":
        raise SourceError("address names a server that many processes reach: tcp, unix, ws, tls or wss, not stdio")
    tls = Tls(ca=Path(options["ca"])) if "ca" in options else None
    timeout, retries = _number(options, "timeout", float, 60.0), _number(options, "retries", int, 5)
    return Broker(options["address"], cap, tls, timeout, retries)


def _one_of(options: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    chosen = options.get(name, choices[0])
    if chosen not in choices:
        raise SourceError(f"the option {name} takes {', '.join(choices)}, not {chosen!r}")
    return chosen


def _list(options: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple([each.strip() for each in options.get(name, "").split(",") if each.strip()])


def _number(options: Mapping[str, str], name: str, kind: Callable[[str], T], default: T) -> T:
    if name not in options:
        return default
    try:
        number = kind(options[name])
        if number >= 0:  # type: ignore[operator]  # an int or a float
            return number
    except ValueError:
        pass
    raise SourceError(f"the option {name} takes a number from 0 on, not {options[name]!r}")


__all__ = ["MODES", "NAMES", "Broker", "Options"]
