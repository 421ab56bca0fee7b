"""TLS: the files that prove who a server is, and whom a client trusts.

A file that cannot be used is found out when it is read, not by the first client: a server shakes hands with itself
before it opens.  A client may prove who it is in the same way, by a certificate of its own (mutual TLS).

Contract: TLS 1.2 or later; a client always checks the certificate and the name in it.

Source: ``docs/design/relay.md``, "Transports".
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import TypeAlias, cast

from attrs import field, frozen

from syndicate.errors import CertificateError

File: TypeAlias = str | os.PathLike[str]


def _path(file: File | None) -> Path | None:
    return None if file is None else Path(file)


@frozen
class Tls:
    """PEM files.  A server needs *certificate* (its own first, then those between it and the CA's) and *key*; with
    *ca*, a client must show a certificate that one of these has signed.  A client trusts the system's CAs, or else
    those in *ca* alone; with *certificate* and *key* it shows who it is, to a server that asks.

    >>> Tls(certificate="cert.pem").server_context()
    Traceback (most recent call last):
    syndicate.errors.CertificateError: a TLS server needs a certificate and its key, two PEM files
    >>> Tls(ca="missing.pem").client_context()
    Traceback (most recent call last):
    syndicate.errors.CertificateError: cannot read the CA file missing.pem: No such file or directory
    """

    certificate: Path | None = field(default=None, converter=_path)
    key: Path | None = field(default=None, converter=_path)
    ca: Path | None = field(default=None, converter=_path)

    def server_context(self) -> ssl.SSLContext:
        """What a server shakes hands with; raises :class:`~syndicate.errors.CertificateError`."""
        if self.certificate is None or self.key is None:
            raise CertificateError("a TLS server needs a certificate and its key, two PEM files")
        context = _context(ssl.PROTOCOL_TLS_SERVER)
        # A client that never reads would otherwise lose what it sent, by what we send to let it come back faster.
        context.num_tickets = 0
        self._load(context)
        _rehearse(context, self.certificate)
        if self.ca is not None:
            _trust(context, self.ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client_context(self) -> ssl.SSLContext:
        """What a client shakes hands with; raises :class:`~syndicate.errors.CertificateError`."""
        context = _context(ssl.PROTOCOL_TLS_CLIENT)
        if self.ca is None:
            context.load_default_certs()
        else:
            _trust(context, self.ca)
        if self.certificate is not None and self.key is not None:
            self._load(context)
        elif self.certificate is not None or self.key is not None:
            raise CertificateError("a client that shows a certificate needs its key as well, two PEM files")
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        """Take the certificate and its key."""
        assert self.certificate is not None
        assert self.key is not None
        _read("certificate", self.certificate, b"BEGIN CERTIFICATE")
        if b"ENCRYPTED" in _read("key", self.key, b"PRIVATE KEY"):
            raise CertificateError(f"the key in {self.key} has a passphrase: remove it with `openssl pkey`")
        try:
            context.load_cert_chain(self.certificate, self.key)
        except ssl.SSLError as e:
            if e.reason == "KEY_VALUES_MISMATCH":
                raise CertificateError(
                    f"the key in {self.key} is not that of the certificate in {self.certificate}: name the two that "
                    "were made together"
                ) from None
            raise CertificateError(
                f"the certificate in {self.certificate} or the key in {self.key} is damaged ({e.reason}): make new ones"
            ) from None


@frozen
class Identity:
    """Who the other side is by its certificate, which a CA that is trusted has signed: its *names*, and when it *ends*,
    in seconds since 1970.  A common name is as it is, others have their kind in front: ``dns:``, ``email:``, ``uri:``.
    """

    names: tuple[str, ...]
    ends: int

    @classmethod
    def of(cls, connection: ssl.SSLObject) -> Identity | None:
        """That of the other side of a connection, after the handshake; None if it has shown nothing."""
        shown = connection.getpeercert()
        if not shown:
            return None
        subject = cast("tuple[tuple[tuple[str, str], ...], ...]", shown.get("subject", ()))
        names = [value for part in subject for name, value in part if name == "commonName"]
        others = cast("tuple[tuple[str, str], ...]", shown.get("subjectAltName", ()))
        names += [f"{kind.lower()}:{value}" for kind, value in others if kind in ("DNS", "email", "URI")]
        return cls(tuple(names), int(ssl.cert_time_to_seconds(str(shown["notAfter"]))))


def _trust(context: ssl.SSLContext, ca: Path) -> None:
    """Trust the CAs in a file."""
    _read("CA", ca, b"BEGIN CERTIFICATE")
    try:
        context.load_verify_locations(ca)
    except ssl.SSLError as e:
        raise CertificateError(f"the CA file {ca} is damaged ({e.reason}): get it again") from None


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Some releases of Python 3.11 take a stream that was cut off for one that has ended.
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    return context


def _read(what: str, path: Path, mark: bytes) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as e:
        raise CertificateError(f"cannot read the {what} file {path}: {e.strerror}") from None
    if mark not in data:
        raise CertificateError(f"no {what} in {path}: a PEM file has a line with {mark.decode()}")
    return data


def _rehearse(server: ssl.SSLContext, certificate: Path) -> None:
    """Shake hands with ourselves, as a client that trusts just this certificate."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(certificate)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)]
    try:
        for end in ends * 2:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                pass
    except ssl.SSLCertVerificationError as e:
        raise CertificateError(
            f"the certificate in {certificate} would be refused by everybody ({e.verify_message}): renew it"
        ) from None
    except ssl.SSLError as e:
        raise CertificateError(
            f"the certificate in {certificate} cannot be used ({e.reason}): make a new one"
        ) from None
