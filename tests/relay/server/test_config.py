"""The configuration: what is read, and that each mistake is found at its line, with its remedy."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import trustme
from attrs import asdict
from hypothesis import given
from hypothesis import strategies as st

from relay.protocol.limits import DEFAULT
from relay.server.config import Admin, Config, Listening, configure, read_config
from relay.server.config.key_lines import find
from relay.server.deployment import example
from relay.transport import Address
from syndicate.errors import ConfigError

SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate, its key, and the key of another one."""
    folder = tmp_path_factory.mktemp("certificate")
    authority = trustme.CA()
    for name in ("server", "other"):
        issued = authority.issue_cert("localhost")
        issued.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
        issued.private_key_pem.write_to_path(folder / f"{name}.key")
    return folder


def problems(path: Path, text: str, **options: Any) -> list[str]:
    """What is wrong with a file of this text; its name is left out."""
    file = path / "server.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_config(str(file), options)
    return [problem.replace(f"{file}:", "") for problem in caught.value.problems]


# ---------------------------------------------------------------------------------------------------- what is right


def test_the_default() -> None:
    """Nothing said is the contract: one door, at this machine, and the empty key."""
    assert configure({}) == Config()
    assert [str(listening.address) for listening in Config().listen] == ["tcp://127.0.0.1:8001"]
    assert Config().key == Config().admin_key == b""


def test_all_of_it(tmp_path: Path, certificate: Path) -> None:
    """Each key arrives where it belongs; files are found from the folder of the configuration."""
    (tmp_path / "key").write_text(SECRET + "\n")
    for file in certificate.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "server.toml").write_text(
        """
        listen = ["unix:///tmp/s", {address = "tls://0.0.0.0:1", cert = "other.pem", key = "other.key"},
                  {address = "wss://0.0.0.0:2", origins = ["https://example.org"], replies = "ok"}]
        key_file = "key"
        cert = "server.pem"
        key = "server.key"
        state = "state"
        salvage = true
        admin = "127.0.0.1:3"
        drain = 5
        limits.frame = 4096
        overload = {queued = 1000, memory = 0.5}
        connections = {total = 9, capability = 2}
        [log]
        format = "json"
        level = "warning"
        """
    )
    config = read_config(str(tmp_path / "server.toml"))
    assert config.key == SECRET.encode()
    assert config.listen == (
        Listening(Address.parse("unix:///tmp/s")),
        Listening(Address.parse("tls://0.0.0.0:1"), str(tmp_path / "other.pem"), str(tmp_path / "other.key")),
        Listening(
            Address.parse("wss://0.0.0.0:2"),
            str(tmp_path / "server.pem"),
            str(tmp_path / "server.key"),
            "ok",
            ("https://example.org",),
        ),
    )
    assert (config.state, config.salvage, config.drain) == (tmp_path / "state", True, 5)
    assert config.admin == Admin("127.0.0.1", 3)
    assert (config.limits.frame, config.limits.depth) == (4096, DEFAULT.depth)
    assert asdict(config.overload) == {"queued": 1000, "memory": 0.5, "strangers": 1 << 19}
    assert asdict(config.connections) == {"total": 9, "address": 16384, "capability": 2}
    assert asdict(config.log) == {"format": "json", "level": "warning"}
    assert SECRET not in repr(config)


def test_options_come_first(tmp_path: Path) -> None:
    """An option replaces what the file says, and is blamed for what is wrong with it."""
    file = tmp_path / "server.toml"
    file.write_text('listen = ["tcp://0.0.0.0:1"]\nlog = {level = "error"}\n')
    config = read_config(str(file), {"listen": ("unix:///tmp/s",), "log.format": "json", "drain": 1.5})
    assert [str(listening.address) for listening in config.listen] == ["unix:///tmp/s"]
    assert asdict(config.log) == {"format": "json", "level": "error"}
    assert config.drain == 1.5
    (problem,) = problems(tmp_path, "drain = 1", listen=("tcp://h",))
    assert problem.startswith("--listen: 'tcp://h' needs a host and a port")


def test_an_admin_port_for_other_machines(tmp_path: Path) -> None:
    """It has to be asked for, and who asks there needs a token."""
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    settings = {"listen": "0.0.0.0:1", "remote": True, "token_file": str(token)}
    assert configure({"admin": settings}).admin == Admin("0.0.0.0", 1, True, token=b"0123456789abcdef")
    for name in ("remote", "token_file"):
        with pytest.raises(ConfigError, match="remote = true and a token_file"):
            configure({"admin": {each: value for each, value in settings.items() if each != name}})
    for text, why in (("short", "holds 5 bytes"), ("0123456789 abcdef", "more than letters, digits and signs")):
        token.write_text(text)
        with pytest.raises(ConfigError, match=f"{why}.*secrets.token_urlsafe"):
            configure({"admin": settings})


def test_the_admin_key(tmp_path: Path) -> None:
    """The key of the admin dataspace comes from the secret, and is another one."""
    (tmp_path / "key").write_text(SECRET)
    config = configure({"key_file": str(tmp_path / "key")})
    assert len(config.admin_key) == 32
    assert config.admin_key == configure({"key_file": str(tmp_path / "key")}).admin_key != config.key


def test_the_example(tmp_path: Path) -> None:
    """`print config` gives a file that is all right and says what goes without saying; what it has in comments too."""
    (tmp_path / "server.toml").write_text(example())
    assert read_config(str(tmp_path / "server.toml")) == Config()
    (tmp_path / "key").write_text(SECRET)
    lines = example().splitlines()
    said = [line.removeprefix("# ") for line in lines]
    start = said.index("listen = [")
    table = "\n".join(said[start : said.index("]", start) + 1])
    assert {entry["replies"] for entry in tomllib.loads(table)["listen"] if "replies" in entry} == {"ok"}


def test_what_the_example_has_in_comments_can_be_said(tmp_path: Path) -> None:
    """Each commented line of a setting is TOML as it is, and those of the limits say the defaults."""
    lines = example().splitlines()
    settings = [line.removeprefix("# ") for line in lines if re.match(r"# [a-z_]+ = [^\[{]", line)]
    assert len(settings) > 30
    for setting in settings:
        tomllib.loads(setting)
    limits = [line.removeprefix("# ") for line in lines[lines.index("[limits]") :]]
    (tmp_path / "server.toml").write_text("\n".join(limits))
    assert read_config(str(tmp_path / "server.toml")) == Config()


# ---------------------------------------------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('listenn = ["x"]', "1: listenn: there is no such key: did you mean listen?"),
        ("[log]\n\nlevl = 1", "3: log.levl: there is no such key: did you mean level?"),
        ("zzz = 1", "1: zzz: there is no such key: there are listen, cert,"),
        ("[quota]\nbytes = -5", "2: quota.bytes: must be a whole number above 0, not -5; without a line there is no"),
        ("\n[limits]\nframe = 0", "3: limits.frame: must be a whole number above 0, not 0; the default is 1048576"),
        ("limits.grace = -1.5", "1: limits.grace: must be a number above 0, not -1.5; the default is 10.0"),
        ("limits.grace = inf", "1: limits.grace: must be a number above 0, not inf"),
        ("limits.frame = true", "1: limits.frame: must be a whole number above 0, not true"),
        ("limits.frame = 1.5", "1: limits.frame: must be a whole number above 0, not 1.5"),
        ('\nrevoked = ["abc"]', '2: revoked: "abc" names no capability: take what'),
        ("[connections]\naddress = 0", "2: connections.address: must be a whole number above 0, not 0"),
        ("limits.depth = 1000", "1: limits.depth: must be at most 128, not 1000"),
        ("limits = 5", "1: limits: must be a table, not 5: write [limits]"),
        ('drain = "long"', '1: drain: must be a number of seconds above 0, not "long"; the default is 10.0'),
        ('listen = "tcp://127.0.0.1:1"', '1: listen: must be a list: write ["tcp://127.0.0.1:1"]'),
        ("listen = []", "1: listen: must be a list of addresses"),
        ("listen = [5]", "1: listen[0].address: must be text, not 5"),
        ('listen = [\n"unix:///s",\n"8001"]', "3: listen[1].address: no scheme in '8001': write tcp://HOST:PORT"),
        ("[[listen]]\nreplies = 'ok'", "1: listen[0]: needs an address: write address ="),
        (
            '[[listen]]\naddress = "unix:///s"\n[[listen]]\naddress = "tcp://127.0.0.1:1"\nreplies = "no"',
            '5: listen[1].replies: must be one of accepted, ok, not "no"',
        ),
        ('listen = [{address = "ws://127.0.0.1:1", origins = "x"}]', "1: listen[0].origins: must be a list of texts"),
        ('listen = [{address = "unix:///s", cert = "x"}]', "1: listen[0].cert: unix:///s takes no certificate"),
        ('listen = ["unix:///s", "unix:///s"]', "1: listen[1]: unix:///s is here twice"),
        ('listen = ["tls://127.0.0.1:1"]', "1: listen[0]: tls://127.0.0.1:1 needs a certificate: give cert and key"),
        (
            'listen = ["tls://127.0.0.1:1"]\nkey = "k"\ncert = "nowhere"',
            "3: cert: cannot read the certificate file",
        ),
        (
            'key = "k"\n[[listen]]\naddress = "tls://127.0.0.1:1"\ncert = "nowhere"',
            "4: listen[0].cert: cannot read the certificate file",
        ),
        ('key_file = "nowhere"', "1: key_file: nowhere cannot be read: No such file or directory: make one with"),
        ('key_file = "short"', "1: key_file: short holds 3 bytes, and a key needs 16: make one with"),
        ('state = "short"', "1: state: short is a file: name a directory"),
        ("salvage = 1", "1: salvage: must be true or false, not 1"),
        ('admin = "8002"', '1: admin: must be HOST:PORT, not "8002"'),
        ("admin = 8002", "1: admin: must be HOST:PORT, not 8002"),
        ('[admin]\nlisten = "127.0.0.1"', '2: admin.listen: must be HOST:PORT, not "127.0.0.1"'),
        ("[admin]\nremote = true", "1: admin: needs an address"),
        ('admin = "0.0.0.0:1"', "1: admin: 0.0.0.0:1 can be reached from other machines"),
        ("a = ", "1: invalid value: this is not TOML"),
        ("drain = 1\ndrain = 2", "2: cannot overwrite a value: this is not TOML"),
        ("a = 1\n[limits] b", "2:10: expected newline or end of document after a statement: this is not TOML"),
        ("\n[limits", "2: expected ']' at the end of a table declaration: this is not TOML"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, problem: str) -> None:
    """Each is found, at its line and by its key, with what to do."""
    (tmp_path / "short").write_text("abc")
    (result,) = problems(tmp_path, text)
    assert result.startswith(problem)


@pytest.mark.parametrize("scheme", ["tcp", "ws", "tls", "wss"])
def test_the_empty_key_stays_at_home(tmp_path: Path, certificate: Path, scheme: str) -> None:
    """Without a key nothing listens where other machines come, whatever is spoken there; with one it does."""
    files = {"cert": str(certificate / "server.pem"), "key": str(certificate / "server.key")}
    (tmp_path / "key").write_text(SECRET)
    for host in ("0.0.0.0", "[::]", "example.org"):
        options = {**files, "listen": [f"{scheme}://{host}:1"]}
        with pytest.raises(ConfigError, match="the empty key lets everybody in: give a key_file"):
            configure(options)
        configure({**options, "key_file": str(tmp_path / "key")})


def test_a_key_that_is_not_the_certificates(certificate: Path) -> None:
    """It is found before the first peer finds it."""
    files = {"cert": str(certificate / "server.pem"), "key": str(certificate / "other.key")}
    with pytest.raises(ConfigError, match="not that of the certificate"):
        configure({**files, "listen": ["tls://127.0.0.1:1"]})


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    """They come in the order of their lines; the first and the number of the others are the error's text."""
    text = '[limits]\nframe = 0\ndeep = 1\n[log]\nlevel = "loud"\n[[listen]]\naddress = "tcp://0.0.0.0:1"\n'
    result = problems(tmp_path, text)
    assert [problem.split(":")[0] for problem in result] == ["2", "3", "5", "6"]
    with pytest.raises(ConfigError, match=r"limits.frame.*\n\(and 3 more: see `syndicate-server config check FILE`\)"):
        read_config(str(tmp_path / "server.toml"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """No file, a folder, no UTF-8: one line each."""
    (tmp_path / "latin.toml").write_bytes(b'state = "\xe9"')
    for name, why in (("none.toml", "No such file"), ("", "Is a directory"), ("latin.toml", "is not UTF-8 text")):
        with pytest.raises(ConfigError, match=why):
            read_config(str(tmp_path / name))


# ---------------------------------------------------------------------------------------------------- lines

KEYS = st.sampled_from(["a", "b", "c-d", "e_1", "9", '"x.y"', "'#'", '"\\""', '"]"'])
SCALARS = st.sampled_from(
    [
        "1",
        "-1.5",
        "true",
        '"]"',
        '"# \\" ="',
        "'\\'",
        "2024-01-01T00:00:00Z",
        '"""\n]\\""""',
        "'''\n[a]\nb = 1'''",
        '""',
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[ # [\n" + " , # ]\n".join(items) + "\n]"),
        st.dictionaries(KEYS, inner, max_size=2).map(
            lambda t: "{" + ", ".join(f"{k} = {v}" for k, v in t.items()) + "}"
        ),
    ),
    max_leaves=6,
)
PAIRS = st.tuples(st.lists(KEYS, min_size=1, max_size=2), VALUES).map(lambda pair: f"{' . '.join(pair[0])} = {pair[1]}")
HEADERS = st.tuples(st.booleans(), st.lists(KEYS, min_size=1, max_size=3)).map(
    lambda header: f"[[ {'.'.join(header[1])} ]] # x" if header[0] else f"[{' .'.join(header[1])}]"
)


def routes(value: Any, route: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The way to each part of *value*, itself included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [route, *[one for key, part in inner for one in routes(part, (*route, key))]]


@given(st.lists(st.one_of(PAIRS, HEADERS, st.just(""), st.just("  # a = 1")), max_size=8))
def test_every_key_has_its_line(statements: list[str]) -> None:
    """Whatever the document: as many places as the TOML reader finds values, each at a line that names its key."""
    survivors: list[str] = []
    for statement in statements:
        try:
            tomllib.loads("\n".join([*survivors, statement]))
        except tomllib.TOMLDecodeError:
            continue
        survivors.append(statement)
    text = "\n".join(survivors)
    result = find(text)
    assert set(result) == set(routes(tomllib.loads(text))) - {()}
    lines = text.split("\n")
    for route, line in result.items():
        if isinstance(route[-1], str):
            assert route[-1].replace('"', '\\"') in lines[line - 1]
