"""TLS: who is let in, who is not, and how a stream ends."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from relay.transport import Address, Stream, Tls, open_listener, open_stream
from syndicate.errors import CertificateError, ConnectError
from tests.relay.doors import BRIEF, Files, door, listening, rest
from tests.waiting import until
from tests.work import PATIENCE


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """A CA."""
    return Files(tmp_path_factory.mktemp("tls"))


async def test_certificates_that_are_refused(files: Files, tmp_path: Path, logs: list[Any]) -> None:
    """A client says in one line what is wrong with a certificate, and the server's log says that it went."""
    unknown = trustme.CA()
    unknown.cert_pem.write_to_path(str(tmp_path / "unknown.pem"))
    async with listening("tls://127.0.0.1:0", tls=files.server) as listener:
        for tls in (None, Tls(ca=tmp_path / "unknown.pem")):
            with pytest.raises(ConnectError, match=r"no CA known here has signed.*name the CA's file"):
                await open_stream(listener.address, tls=tls)
        another = files.issue("another", "example.org")
    async with listening("tls://127.0.0.1:0", tls=another) as listener:
        with pytest.raises(ConnectError, match=r"of another server.*IP address mismatch.*'127.0.0.1'"):
            await open_stream(listener.address, tls=files.client)
        with pytest.raises(ConnectError, match=r"of another server.*Hostname mismatch.*'localhost'"):
            await open_stream(Address("tls", "localhost", listener.address.port), tls=files.client)
    assert {entry["event"] for entry in logs} == {"not let in"}
    assert all("TLS handshake failed" in entry["reason"] for entry in logs)


async def test_an_expired_certificate(files: Files) -> None:
    """A server does not start with one, and a client refuses one."""
    expired = files.issue(
        "expired", "127.0.0.1", not_before=datetime(2020, 1, 1, tzinfo=UTC), not_after=datetime(2021, 1, 1, tzinfo=UTC)
    )
    with pytest.raises(CertificateError, match=r"expired\.pem would be refused by everybody .*expired.*renew it"):
        await open_listener(Address.parse("tls://127.0.0.1:0"), tls=expired)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    assert expired.certificate
    context.load_cert_chain(expired.certificate, expired.key)
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            (plain,) = await trio.open_tcp_listeners(0, host="127.0.0.1")

            async def serve() -> None:
                stream = trio.SSLStream(await plain.accept(), context, server_side=True)
                with pytest.raises(trio.BrokenResourceError):
                    await stream.do_handshake()
                await trio.aclose_forcefully(stream)
                await plain.aclose()

            nursery.start_soon(serve)
            port = plain.socket.getsockname()[1]
            with pytest.raises(ConnectError, match="a certificate that has expired: it must be renewed there"):
                await open_stream(Address("tls", "127.0.0.1", port), tls=files.client)


def test_files_that_cannot_be_used(files: Files, tmp_path: Path) -> None:
    """The error names the file, and what to do."""
    good, other = files.server, files.issue("other", "h")
    assert good.key
    (tmp_path / "text").write_text("hello")
    (tmp_path / "bad.pem").write_text("-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n")
    secret = load_pem_private_key(good.key.read_bytes(), None)
    locked = secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word"))
    (tmp_path / "locked").write_bytes(locked)
    for tls, text in [
        (Tls(good.certificate), "needs a certificate and its key"),
        (Tls(tmp_path / "none", good.key), "cannot read the certificate file .*none: No such file"),
        (Tls(good.certificate, tmp_path), "cannot read the key file .*: Is a directory"),
        (Tls(tmp_path / "text", good.key), "no certificate in .*text: a PEM file"),
        (Tls(good.certificate, tmp_path / "text"), "no key in .*text: a PEM file"),
        (Tls(good.certificate, other.key), "other.key is not that of the certificate in .*good.pem"),
        (Tls(tmp_path / "bad.pem", good.key), "bad.pem or the key in .* is damaged"),
        (Tls(good.certificate, tmp_path / "locked"), "locked has a passphrase: remove it with"),
    ]:
        with pytest.raises(CertificateError, match=text):
            tls.server_context()
    with pytest.raises(CertificateError, match=r"the CA file .*bad\.pem is damaged"):
        Tls(ca=tmp_path / "bad.pem").client_context()


@pytest.mark.parametrize("scheme", ["tls", "wss"])
async def test_who_never_finishes_the_handshake(scheme: str, files: Files, logs: list[Any]) -> None:
    """Silence, and drops of a handshake, end at the deadline, and nobody else waits for it."""
    async with listening(door(scheme, Path()), tls=files.server, limits=BRIEF) as listener:
        silent = [await trio.open_tcp_stream("127.0.0.1", listener.address.port) for _ in range(20)]
        began = trio.current_time()
        await silent[0].send_all(b"\x16\x03\x01")
        good = await open_stream(listener.address, tls=files.client)
        for stream in silent:
            assert await stream.receive_some() == b""
            await stream.aclose()
        assert trio.current_time() - began > 0.3
        await good.close()
    late = [entry for entry in logs if entry["reason"] == "no handshake within 0.5 s"]
    assert len(late) == 20


async def test_plain_and_secure_do_not_mix(files: Files, logs: list[Any]) -> None:
    """Plain text to a TLS port, TLS to a plain port, an old version: refused at once, and the reason is the remedy."""

    async def hang_up(stream: Stream) -> None:
        await stream.receive()
        await stream.close()

    async with (
        listening("tls://127.0.0.1:0", tls=files.server) as secure,
        listening("tcp://127.0.0.1:0", hang_up) as plain,
    ):
        stream = await open_stream(Address("tcp", "127.0.0.1", secure.address.port))
        await stream.send([b"\x91\x90" * 10])
        assert await stream.receive() == b""
        assert stream.ending == "it speaks TLS: write tls:// or wss://"
        await stream.close()
        with pytest.raises(ConnectError, match=r"does it speak TLS there, or is it tcp://\?"):
            await open_stream(Address("tls", "127.0.0.1", plain.address.port), tls=files.client)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("DEFAULT@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        carrier = await trio.open_tcp_stream("127.0.0.1", secure.address.port)
        with pytest.raises(trio.BrokenResourceError):
            await trio.SSLStream(carrier, old).do_handshake()
        await carrier.aclose()
    assert {entry["event"] for entry in logs} == {"not let in"}


async def test_a_truncated_end(files: Files) -> None:
    """An end of the bytes without TLS's own is a loss, not an end."""
    seen: list[str] = []

    async def talk(stream: Stream) -> None:
        try:
            while await stream.receive():
                pass
        except trio.BrokenResourceError as e:
            seen.append(str(e))
        await stream.close()

    async with listening("tls://127.0.0.1:0", talk, tls=files.server) as listener:
        stream: Any = await open_stream(listener.address, tls=files.client)
        await stream.send([b"hello"])
        await stream._stream.stream.send_eof()
        await until(lambda: seen)
        await stream.close()
    assert seen == ["it was cut off, without the end that TLS demands"]


async def test_against_trios_tls(files: Files) -> None:
    """A peer that uses trio's SSLStream sees our end as an end, and we see its."""
    async with listening("tls://127.0.0.1:0", tls=files.server) as listener:
        carrier = await trio.open_tcp_stream("127.0.0.1", listener.address.port)
        stream = trio.SSLStream(carrier, files.client.client_context(), server_hostname="localhost")
        await stream.send_all(b"x" * 500_000)
        await stream.aclose()
    ended: list[bytes] = []

    async def last_words(stream: Stream) -> None:
        await stream.send([b"bye"])
        await stream.send_eof()
        ended.append(await rest(stream))
        await stream.close()

    async with listening("tls://127.0.0.1:0", last_words, tls=files.server) as listener:
        carrier = await trio.open_tcp_stream("127.0.0.1", listener.address.port)
        stream = trio.SSLStream(carrier, files.client.client_context(), server_hostname="localhost")
        assert await stream.receive_some() == b"bye"
        assert await stream.receive_some() == b""
        await stream.aclose()
        await until(lambda: ended)
    assert ended == [b""]
