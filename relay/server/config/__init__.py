"""The configuration of a server: a TOML file and the options of the command, read into one frozen value.

>>> configure({"listen": ["tcp://127.0.0.1:9000"], "limits": {"frame": 4096}}).limits.frame
4096
>>> configure({"lisen": []})
Traceback (most recent call last):
syndicate.errors.ConfigError: --lisen: there is no such key: did you mean listen?

Contract: strict.  A key that is not known, a value of another type, a limit that is not positive, a certificate that
cannot be used: each is found before anything is opened, and its message names the file, the line, the key and the
remedy.  Whatever is found, all of it is in the one :class:`~syndicate.errors.ConfigError`.

Source: ``docs/design/commands.md``, "Configuration"; ``docs/design/relay.md``, "Sturdy references" (the empty key stays
at home).
"""

from __future__ import annotations

import difflib
import hashlib
import hmac
import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast

from attrs import asdict, field, frozen

from relay.capabilities.sturdy import mint
from relay.protocol.limits import DEFAULT as DEFAULT_LIMITS
from relay.protocol.limits import Limits
from relay.server.config.key_lines import KeyPath, find
from relay.server.quotas import NONE, Quota
from relay.transport import DEFAULT as DEFAULT_ADDRESS
from relay.transport import Address
from relay.transport.tls import Tls
from syndicate.errors import AddressError, CaveatError, CertificateError, ConfigError, NotAValue, TextError
from syndicate.values.value import MAX_DEPTH

T = TypeVar("T")

_MAKE_KEY: Final = "make one with: syndicate-server cap mint syndicate --new-key FILE"
_MAKE_TOKEN: Final = "make one with: python3 -c 'import secrets; print(secrets.token_urlsafe())' >FILE"  # noqa: S105 - how
_SHORTEST_KEY: Final = 16
"""Bytes: a shorter secret could be guessed."""


@frozen
class Listening:
    """One listener: where, with which certificate (*cert* and its *key*, files in PEM), whose certificates a client
    must show (*client_ca*, a file of CAs; none need be shown without), how it answers a ``resolve`` (*replies*:
    ``accepted`` as we do, ``ok`` as published), and the pages that a browser may come from (None: its own).
    """

    address: Address
    cert: str = ""
    key: str = ""
    replies: Literal["accepted", "ok"] = "accepted"
    origins: tuple[str, ...] | None = None
    client_ca: str = ""


@frozen
class Admin:
    """Where health, metrics and the console are served over HTTP; *remote* allows other machines to ask, *token* is
    what who asks must show, *write* lets the console's pages use the dataspace by its key.
    """

    host: str
    port: int
    remote: bool = False
    write: bool = False
    token: bytes = field(default=b"", repr=False)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@frozen
class Overload:
    """When it is too much for the whole server: *queued* bytes that wait for all peers together, or *memory* that is
    held for them (what they have sent and asserted, what they observe, what waits for them), by our account, as a
    fraction of the machine's (or its container's), or above 1 in bytes; the process takes up to 2.5 times as much.
    *strangers* are the bytes that are held of all those together who have shown no capability.
    """

    queued: int = 256 << 20
    memory: float = 0.25
    strangers: int = 1 << 19


@frozen
class Connections:
    """How many connections there may be that have shown a capability: in *total*, from one *address* (of a Unix socket,
    through it), and by one *capability* or what was narrowed from it.  Who is too much is refused, with the reason.
    """

    total: int = 16384
    address: int = 16384
    capability: int = 16384


@frozen
class DataspaceConfig:
    """A dataspace: its *name* in references, the *key* by which they are made, *older* ones that are valid as well, and
    what all its peers may have there together.
    """

    name: str
    key: bytes = field(repr=False)
    older: tuple[bytes, ...] = field(default=(), repr=False)
    quota: Quota = NONE


@frozen
class CertifiedClient:
    """What a client gets for its *certificate*, by a name in it, when it asks for *dataspace*: the capability, narrowed
    by *caveats*.
    """

    certificate: str
    dataspace: str = "syndicate"
    caveats: tuple[str, ...] = ()


@frozen
class LogConfig:
    """What is logged: *format* ``auto`` or ``json``, *level* as in Python."""

    format: Literal["auto", "json"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"


@frozen
class Config:
    """All that a server is configured by.  *key* is the secret itself: it is not shown.  *older* are keys by which
    references to its first dataspace were made, which *quota* is for; *spaces* are further dataspaces; *clients* are
    those who are known by a certificate.
    """

    listen: tuple[Listening, ...] = (Listening(Address.parse(DEFAULT_ADDRESS)),)
    key: bytes = field(default=b"", repr=False)
    state: Path | None = None
    salvage: bool = False
    admin: Admin | None = None
    drain: float = 10.0
    limits: Limits = DEFAULT_LIMITS
    overload: Overload = Overload()
    connections: Connections = Connections()
    revoked: tuple[str, ...] = ()
    older: tuple[bytes, ...] = field(default=(), repr=False)
    quota: Quota = NONE
    spaces: tuple[DataspaceConfig, ...] = ()
    clients: tuple[CertifiedClient, ...] = ()
    log: LogConfig = LogConfig()

    @property
    def admin_key(self) -> bytes:
        """The key of the admin dataspace: made from *key*, but not to be had from any reference.  Empty if that is."""
        return hmac.new(self.key, b"syndicate admin", hashlib.sha256).digest() if self.key else b""


def read_config(path: str, options: Mapping[str, object] | None = None) -> Config:
    """The configuration in the file at *path*, where *options* (see :func:`configure`) come first; raises
    :class:`~syndicate.errors.ConfigError`.  Files named in it are found from the folder that it is in.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as e:
        raise ConfigError([f"{path}: cannot be read: {e.strerror}: name a file that this user may read"]) from None
    except UnicodeDecodeError as e:
        raise ConfigError([f"{path}: is not UTF-8 text, from byte {e.start} on: save it as UTF-8"]) from None
    except tomllib.TOMLDecodeError as e:
        raise ConfigError([_syntax(path, text, str(e))]) from None
    return configure(options or {}, path=path, document=document, lines=find(text))


def _syntax(path: str, text: str, error: str) -> str:
    """What the TOML reader says, with the line in front."""
    why, _, where = error.rpartition(" (at ")
    where = where.rstrip(")")
    line = text.count("\n") + 1 if where == "end of document" else int(where.removeprefix("line ").partition(",")[0])
    column = where.partition(", column ")[2]
    place = f"{path}:{line}" + (f":{column}" if column else "")
    return f"{place}: {why[:1].lower()}{why[1:]}: this is not TOML; see https://toml.io or `print config`"


def configure(
    options: Mapping[str, object],
    *,
    path: str = "",
    document: Mapping[str, object] | None = None,
    lines: Mapping[KeyPath, int] | None = None,
) -> Config:
    """The configuration that *options* say, and where they are silent *document*, the content of the file *path*.

    The keys are the same, except that an option in a table is written as ``log.level``.  *lines* are those of the
    document.  Raises :class:`~syndicate.errors.ConfigError`.
    """
    merged = dict(document or {})
    for name, value in options.items():
        table, _, key = name.rpartition(".")
        if not table:
            merged[name] = value
        elif isinstance(inner := merged.get(table, {}), dict):
            merged[table] = {**inner, key: value}
    return _Reader(merged, options, path, lines or {}).read()


class _Reader:
    """Takes a document apart and notes what is wrong with it."""

    def __init__(
        self, document: Mapping[str, object], options: Mapping[str, object], path: str, lines: Mapping[KeyPath, int]
    ) -> None:
        self._document = document
        self._options = options
        self._path = path
        self._lines = lines
        self._problems: list[tuple[int, str]] = []
        self._listeners: list[tuple[KeyPath, Listening]] = []
        self._named: Sequence[DataspaceConfig] = ()

    def read(self) -> Config:
        """The whole of it."""
        root = self._table((), self._document, _KEYS)
        key = self._key_file(root.get("key_file"))
        config = Config(
            key=key,
            listen=self._listen(root),
            state=self._state(root.get("state")),
            salvage=root.get("salvage", False),
            admin=self._admin(root.get("admin")),
            drain=root.get("drain", Config().drain),
            limits=Limits(**self._table(("limits",), root.get("limits", {}), _LIMITS)),
            overload=Overload(**self._table(("overload",), root.get("overload", {}), _OVERLOAD)),
            connections=Connections(**self._table(("connections",), root.get("connections", {}), _CONNECTIONS)),
            revoked=root.get("revoked", ()),
            older=self._older((), root.get("old_key_files", ())),
            quota=Quota(**self._table(("quota",), root.get("quota", {}), _QUOTA)),
            spaces=self._spaces(root.get("dataspace", ()), key),
            clients=self._clients(root.get("client", ()), "state" in root),
            log=LogConfig(**self._table(("log",), root.get("log", {}), _LOG)),
        )
        if config.clients and not any(listening.client_ca for listening in config.listen):
            self._wrong(("client",), "no listener asks for certificates: give one on tls:// or wss:// a client_ca")
        if not (key or "key_file" in root):
            for key_path, listening in self._listeners:
                if not listening.address.local:
                    self._wrong(
                        key_path,
                        f"{listening.address} can be reached from other machines, and the empty key lets everybody in: "
                        "give a key_file (--key-file), or listen on 127.0.0.1, ::1 or a Unix socket",
                    )
        if self._problems:
            raise ConfigError([text for _, text in sorted(self._problems)])
        return config

    # ------------------------------------------------------------------------------------------------ what is wrong

    def _wrong(self, key_path: KeyPath, why: str) -> None:
        option = self._option(key_path)
        line = 0
        if option is not None:
            place = "--" + option.replace(".", "-").replace("_", "-")
        else:
            nearest = key_path
            while nearest and nearest not in self._lines:
                nearest = nearest[:-1]
            line = self._lines.get(nearest, 1)
            place = f"{self._path}:{line}: {_named(key_path)}"
        self._problems.append((line, f"{place}: {why}"))

    def _option(self, key_path: KeyPath) -> str | None:
        """The option by which the value was given, if it was."""
        if not self._path:
            return _named(key_path[:1] if key_path[:1] != ("log",) else key_path)
        if not key_path:
            return None
        return next((name for name in (str(key_path[0]), _named(key_path[:2])) if name in self._options), None)

    def _check(self, key_path: KeyPath, kind: _Kind[T], value: object) -> T | None:
        try:
            return kind(value)
        except ValueError as e:
            self._wrong(key_path, str(e))
            return None

    def _table(self, key_path: KeyPath, table: object, kinds: Mapping[str, _Kind[object]]) -> dict[str, Any]:
        """What is right in *table*, of which *kinds* are the keys."""
        if not isinstance(table, Mapping):
            self._wrong(key_path, f"must be a table, not {_shown(table)}: write [{_named(key_path)}]")
            return {}
        settings = {}
        for name, value in table.items():
            if name not in kinds:
                near = difflib.get_close_matches(name, kinds, 1)
                remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(kinds)}"
                self._wrong((*key_path, name), f"there is no such key: {remedy}")
                continue
            checked = self._check((*key_path, name), kinds[name], value)
            if checked is not None:
                settings[name] = checked
        return settings

    # ------------------------------------------------------------------------------------------------ the parts

    def _file(self, key_path: KeyPath, name: str) -> Path:
        return Path(name) if self._option(key_path) or not self._path else Path(self._path).parent / name

    def _older(self, key_path: KeyPath, names: Sequence[str]) -> tuple[bytes, ...]:
        return tuple(self._key_file(name, (*key_path, "old_key_files", number)) for number, name in enumerate(names))

    def _spaces(self, items: Sequence[object], key: bytes) -> tuple[DataspaceConfig, ...]:
        spaces: list[DataspaceConfig] = []
        for number, item in enumerate(items):
            key_path: KeyPath = ("dataspace", number)
            table = self._table(key_path, item, _SPACE)
            name = table.get("name", "")
            if not isinstance(item, Mapping):
                continue
            if "name" not in item:
                self._wrong(key_path, 'needs a name: write name = "orders"')
            elif name in _TAKEN or name in [space.name for space in spaces]:
                self._wrong(
                    (*key_path, "name"), f'"{name}" is another dataspace\'s name: take one that is not there yet'
                )
            own = self._key_file(table["key_file"], (*key_path, "key_file")) if "key_file" in table else key
            quota = Quota(**self._table((*key_path, "quota"), table.get("quota", {}), _QUOTA))
            spaces.append(DataspaceConfig(name, own, self._older(key_path, table.get("old_key_files", ())), quota))
        self._named = spaces
        return tuple(spaces)

    def _clients(self, items: Sequence[object], durable: bool) -> tuple[CertifiedClient, ...]:
        clients: list[CertifiedClient] = []
        there = [name for name in _TAKEN if durable or name != "durable"]
        names = [*there, *[space.name for space in self._named]]
        for number, item in enumerate(items):
            key_path: KeyPath = ("client", number)
            table = self._table(key_path, item, _CLIENT)
            if not isinstance(item, Mapping):
                continue
            if "certificate" not in item:
                self._wrong(key_path, 'needs the name in a certificate: write certificate = "alice"')
            client = CertifiedClient(**{"certificate": "", **table})
            if client.dataspace not in names:
                self._wrong(
                    (*key_path, "dataspace"),
                    f'there is no dataspace "{client.dataspace}": there are {", ".join(names)}',
                )
            if any((one.certificate, one.dataspace) == (client.certificate, client.dataspace) for one in clients):
                self._wrong(
                    key_path, f'"{client.certificate}" is here twice for "{client.dataspace}": leave one of them out'
                )
            clients.append(client)
        return tuple(clients)

    def _key_file(self, name: str | None, key_path: KeyPath = ("key_file",), make: str = _MAKE_KEY) -> bytes:
        if name is None:
            return b""
        try:
            key = self._file(key_path, name).read_bytes().strip()
        except OSError as e:
            self._wrong(key_path, f"{name} cannot be read: {e.strerror}: {make}")
            return b""
        if len(key) < _SHORTEST_KEY:
            self._wrong(key_path, f"{name} holds {len(key)} bytes, and a key needs {_SHORTEST_KEY}: {make}")
        return key

    def _state(self, name: str | None) -> Path | None:
        if name is None:
            return None
        folder = self._file(("state",), name)
        if folder.exists() and not folder.is_dir():
            self._wrong(("state",), f"{name} is a file: name a directory, which is made if it is not there")
        return folder

    def _listen(self, root: Mapping[str, Any]) -> tuple[Listening, ...]:
        if "listen" not in root:
            return Config().listen
        for number, item in enumerate(root["listen"]):
            key_path: KeyPath = ("listen", number)
            settings = item if isinstance(item, Mapping) else {"address": item}
            table = self._table(key_path, settings, _LISTEN)
            if "address" not in settings:
                self._wrong(key_path, f'needs an address: write address = "{DEFAULT_ADDRESS}"')
            if "address" in table:
                listening = self._listening(key_path, table, root)
                address = listening.address
                if (address.port or address.path) and address in [other.address for _, other in self._listeners]:
                    self._wrong(key_path, f"{address} is here twice: leave one of them out")
                self._listeners.append((key_path, listening))
        return tuple(listening for _, listening in self._listeners)

    def _listening(self, key_path: KeyPath, table: dict[str, Any], root: Mapping[str, Any]) -> Listening:
        """One listener, whose certificate is its own or that of the whole."""
        address: Address = table["address"]
        if not address.secure:
            for name in _PEM:
                if name in table:
                    self._wrong(
                        (*key_path, name),
                        f"{address} takes no certificate: leave it out, or listen on tls:// or wss://",
                    )
            return Listening(**{name: value for name, value in table.items() if name not in _PEM})
        for name in _PEM:
            place: KeyPath = (*key_path, name) if name in table else (name,)
            named = table.get(name, root.get(name))
            if named is None and name == "client_ca":
                continue
            if not isinstance(named, str):
                self._wrong(key_path, f"{address} needs a certificate: give cert and key (--cert, --key), files in PEM")
                return Listening(**table)
            table[name] = str(self._file(place, named))
        place = (*key_path, "cert") if ("listen", key_path[1], "cert") in self._lines else ("cert",)
        self._certificate(place, table["cert"], table["key"], table.get("client_ca"))
        return Listening(**table)

    def _certificate(self, key_path: KeyPath, cert: str, key: str, ca: str | None) -> None:
        """Try it, so that it is the configuration that is refused, not the first peer."""
        try:
            Tls(cert, key, ca).server_context()
        except CertificateError as e:
            self._wrong(key_path, str(e))

    def _admin(self, value: object) -> Admin | None:
        if value is None:
            return None
        table: dict[str, Any] = {}
        if isinstance(value, str):
            table["listen"] = self._check(("admin",), _host_and_port, value)
        else:
            table = self._table(("admin",), value, _ADMIN)
            if isinstance(value, Mapping) and "listen" not in value:
                self._wrong(("admin",), 'needs an address: write listen = "127.0.0.1:8002"')
        address: Address | None = table.get("listen")
        if address is None:
            return None
        key_path: KeyPath = ("admin", "token_file")
        token = self._key_file(table.get("token_file"), key_path, _MAKE_TOKEN)
        if not all(0x20 < byte < 0x7F for byte in token):
            self._wrong(key_path, f"{table['token_file']} holds more than letters, digits and signs: {_MAKE_TOKEN}")
        admin = Admin(address.host, address.port, table.get("remote", False), table.get("write", False), token)
        if not address.local and not (admin.remote and "token_file" in table):
            self._wrong(
                ("admin",),
                f"{admin} can be reached from other machines: take 127.0.0.1, or write remote = true and a token_file, "
                "which who asks must show, in the table [admin] of a configuration file",
            )
        return admin


# ---------------------------------------------------------------------------------------------------- kinds of values

_Kind = Callable[[object], T]
"""Checks a value; raises ValueError with what is wrong and the remedy."""


def _named(key_path: KeyPath) -> str:
    """The path to a value as people write it: ``listen[1].cert``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key_path).lstrip(".")


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a table"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f'must be text, not {_shown(value)}: write it in quotes, as in "x"')
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {_shown(value)}")
    return value


def _one_of(*choices: str) -> _Kind[str]:
    def check(value: object) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}, not {_shown(value)}")
        return value

    return check


def _positive(default: float, what: str = "", otherwise: str = "the default is {}") -> _Kind[float]:
    whole = isinstance(default, int)
    noun = "a whole number" if whole else "a number"

    def check(value: object) -> float:
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < math.inf:
            raise ValueError(f"must be {noun}{what} above 0, not {_shown(value)}; {otherwise.format(default)}")
        return value

    return check


def _depth(value: object) -> float:
    if _positive(MAX_DEPTH)(value) > MAX_DEPTH:
        raise ValueError(f"must be at most {MAX_DEPTH}, not {value}: no deeper value can be asserted here")
    return cast("int", value)


def _address(value: object) -> Address:
    return Address.parse(_text(value))


def _host_and_port(value: object) -> Address:
    try:
        return Address.parse(f"tcp://{_text(value)}")
    except AddressError:
        raise ValueError(f'must be HOST:PORT, not {_shown(value)}: write "127.0.0.1:8002"') from None


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError(f'must be a list of texts, not {_shown(value)}: write it as ["a", "b"]')
    return tuple(value)


def _names(value: object) -> tuple[str, ...]:
    for name in _texts(value):
        if not re.fullmatch("[0-9a-f]{16}", name):
            raise ValueError(f"{_shown(name)} names no capability: take what `syndicate cap check` prints")
    return _texts(value)


def _tables(value: object) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be tables, not {_shown(value)}: write each in double brackets, as in [[dataspace]]")
    return value


def _listeners(value: object) -> Sequence[object]:
    if isinstance(value, str):
        raise ValueError(f"must be a list: write [{_shown(value)}]")
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f'must be a list of addresses: write ["{DEFAULT_ADDRESS}"], or leave it out')
    return value


def _anything(value: object) -> object:
    return value


def _admin_value(value: object) -> str | Mapping[str, object]:
    if not isinstance(value, str | Mapping):
        raise ValueError(f'must be HOST:PORT, not {_shown(value)}: write "127.0.0.1:8002"')
    return value


def _caveats(value: object) -> tuple[str, ...]:
    texts = _texts(value)
    try:
        mint("", b"").attenuate(*texts, "<not-after 0>")
    except (CaveatError, TextError, NotAValue) as e:
        raise ValueError(f"holds no caveat, as in '<rewrite <bind <_>> <ref 0>>': {e}") from None
    return texts


_KEYS: Final[Mapping[str, _Kind[object]]] = {
    "listen": _listeners,
    "cert": _text,
    "key": _text,
    "client_ca": _text,
    "key_file": _text,
    "state": _text,
    "salvage": _truth,
    "admin": _admin_value,
    "drain": _positive(Config().drain, " of seconds"),
    "limits": _anything,
    "overload": _anything,
    "revoked": _names,
    "connections": _anything,
    "old_key_files": _texts,
    "quota": _anything,
    "dataspace": _tables,
    "client": _tables,
    "log": _anything,
}
_LISTEN: Final[Mapping[str, _Kind[object]]] = {
    "address": _address,
    "cert": _text,
    "key": _text,
    "client_ca": _text,
    "replies": _one_of("accepted", "ok"),
    "origins": _texts,
}
_ADMIN: Final[Mapping[str, _Kind[object]]] = {
    "listen": _host_and_port,
    "remote": _truth,
    "write": _truth,
    "token_file": _text,
}
_CLIENT: Final[Mapping[str, _Kind[object]]] = {"certificate": _text, "dataspace": _text, "caveats": _caveats}
_PEM: Final = ("cert", "key", "client_ca")
_LIMITS: Final[Mapping[str, _Kind[object]]] = {
    **{name: _positive(default) for name, default in asdict(DEFAULT_LIMITS).items()},
    "depth": _depth,
    "liveness": _truth,
}
_OVERLOAD: Final[Mapping[str, _Kind[object]]] = {
    name: _positive(default) for name, default in asdict(Overload()).items()
}
_CONNECTIONS: Final[Mapping[str, _Kind[object]]] = {
    name: _positive(default) for name, default in asdict(Connections()).items()
}
_QUOTA: Final[Mapping[str, _Kind[object]]] = {
    name: _positive(1, otherwise="without a line there is no bound") for name in asdict(Quota())
}
_SPACE: Final[Mapping[str, _Kind[object]]] = {
    "name": _text,
    "key_file": _text,
    "old_key_files": _texts,
    "quota": _anything,
}
_TAKEN: Final = ("syndicate", "durable", "admin", "introspect")
"""Names of what each server has."""

_LOG: Final[Mapping[str, _Kind[object]]] = {
    "format": _one_of("auto", "json"),
    "level": _one_of("debug", "info", "warning", "error"),
}
