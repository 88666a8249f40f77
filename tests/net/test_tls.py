from __future__ import annotations

import os
import ssl
from contextlib import suppress

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from linnet.core.reasons import Reason
from linnet.net.failure import LinkFailure
from linnet.net.tls import NoDeviceKey, client_context, server_context, server_key
from linnet.testing.live import named_key
from linnet.testing.strangers import foreign_context


def certificate_of(context: ssl.SSLContext) -> bytes:
    """What a server of this context shows, through a handshake in memory."""
    ends = [(ssl.MemoryBIO(), ssl.MemoryBIO())]
    ((to_server, to_client),) = ends
    client = client_context(ssl.TLSVersion.TLSv1_2).wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(5):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    shown = client.getpeercert(True)
    assert shown is not None
    return shown


def test_a_server_shows_its_device_key() -> None:
    key = named_key("server")
    assert server_key(certificate_of(server_context(key))) == key.public


def test_the_secret_is_in_no_file() -> None:
    before = set(os.listdir("/tmp")), len(os.listdir("/proc/self/fd"))
    server_context(named_key("server"))
    assert (set(os.listdir("/tmp")) - before[0], len(os.listdir("/proc/self/fd"))) == (set(), before[1])


def test_without_memory_files_a_private_file_serves_and_goes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]
) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr("tempfile.tempdir", os.fspath(tmp_path))
    key = named_key("server")
    assert server_key(certificate_of(server_context(key))) == key.public
    assert os.listdir(tmp_path) == []


def test_a_certificate_of_another_sort_is_no_device() -> None:
    shown = certificate_of(foreign_context(ec.generate_private_key(ec.SECP256R1())))
    with pytest.raises(NoDeviceKey):
        server_key(shown)


@pytest.mark.parametrize("shown", [None, b"", b"\x30\x03\x02\x01\x01", b"\xff" * 100])
def test_what_is_no_certificate_is_refused(shown: bytes | None) -> None:
    with pytest.raises(LinkFailure) as failure:
        server_key(shown)
    assert failure.value.reason is Reason.TLS_FAILED


def test_a_damaged_certificate_never_raises_anything_else() -> None:
    shown = certificate_of(server_context(named_key("server")))
    for position in range(len(shown)):
        damaged = shown[:position] + bytes([shown[position] ^ 0x5A]) + shown[position + 1 :]
        with suppress(LinkFailure):  # Damage to a name or a date is none of our business.
            server_key(damaged)
