"""Certificates that hold nothing but a device key, and contexts that accept nothing but TLS 1.3.

A server shows its device key in a self-signed Ed25519 certificate; TLS itself proves that it holds the secret
half. Names, dates and issuers mean nothing here. See docs/adr/0004-link-authentication.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.net.failure import LinkFailure

_BEGIN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
_END = datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)


class NoDeviceKey(LinkFailure):
    """A certificate without a device key: its holder is no node of ours."""


def cut_short(opened: socket.socket, error: BaseException) -> None:
    """Let go of a connection on which TLS has failed, or was cancelled.

    A handshake may be cancelled when it has just finished. Its transport then says goodbye to the other end
    first, and goes on watching a descriptor that would be closed, or reused, by then. So the connection is
    only shut down: the transport sees its end, and closes it.
    """
    if isinstance(error, asyncio.CancelledError):
        with contextlib.suppress(OSError):
            opened.shutdown(socket.SHUT_RDWR)
    else:
        opened.close()


def server_context(key: SigningKey) -> ssl.SSLContext:
    """Return a context for accepting links as this device."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # A resumed session shows no certificate, and saves no round trip; so there are none.
    context.num_tickets = 0
    with _as_path(_certificate_and_key(key)) as path:
        context.load_cert_chain(path)
    return context


def server_name(lan: bytes) -> str:
    """Return the name by which a client asks for the key of a local network: as labels of a host name."""
    name = lan.hex()
    return f"{name[:32]}.{name[32:]}"


def choosing_context(choose: Callable[[str | None], ssl.SSLContext | None]) -> ssl.SSLContext:
    """Return a context for accepting links under several keys, chosen by the name that a client asks for.

    A client that asks for none of them is turned away before any key is shown.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0

    def chosen(tls: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
        found = choose(name)
        if found is None:
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        tls.context = found
        return None

    context.sni_callback = chosen
    return context


def client_context(oldest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    """Return a context for dialling. The caller must compare `server_key` with the key that it dialled."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = oldest
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def server_key(certificate: bytes | None) -> PeerId:
    """Return the device key in a certificate (DER) whose secret half TLS has just proved."""
    if certificate is None:
        raise LinkFailure(Reason.TLS_FAILED, "the server showed no certificate")
    try:
        key = x509.load_der_x509_certificate(certificate).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion) as error:
        raise LinkFailure(Reason.TLS_FAILED, "the server's certificate cannot be read") from error
    if not isinstance(key, Ed25519PublicKey):
        raise NoDeviceKey(Reason.WRONG_KEY, "the server's certificate holds no device key")
    return PeerId(key.public_bytes_raw())


def _certificate_and_key(key: SigningKey) -> bytes:
    secret = Ed25519PrivateKey.from_private_bytes(key.seed)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "linnet")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(1)
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
        .sign(secret, None)
    )
    pem = secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem + certificate.public_bytes(Encoding.PEM)


@contextmanager
def _as_path(content: bytes) -> Iterator[str]:
    """Yield a path under which `ssl`, and nobody else, can read this content; gone afterwards.

    `load_cert_chain` takes paths only. Linux can name memory; elsewhere it is a file that only we may read,
    for as long as needed.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("linnet", os.MFD_CLOEXEC)
        path, temporary = f"/proc/self/fd/{descriptor}", False
    else:
        descriptor, path = tempfile.mkstemp(prefix="linnet-")
        temporary = True
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield path
    finally:
        os.close(descriptor)
        if temporary:
            os.unlink(path)
