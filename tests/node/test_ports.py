"""Ports of a home: those of the first start are taken again, and what happens when they are gone."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from linnet.core.errors import Refused
from linnet.identity.keys import SigningKey
from linnet.net.config import NetConfig
from linnet.net.tls_transport import TlsTransport
from linnet.node.ports import KeptPorts

TRANSPORTS = [TlsTransport(SigningKey(bytes(32)), NetConfig())]
ANY = "tls://127.0.0.1:0"


def taken(path: Path | None, *addresses: str) -> tuple[list[str], KeptPorts]:
    """Start, listen, stop."""
    ports = KeptPorts(path)
    listeners = ports.listen(addresses or (ANY,), TRANSPORTS)
    for listener in listeners:
        listener.close()
    return [listener.hint for listener in listeners], ports


def port_of(hint: str) -> int:
    return int(hint.rpartition(":")[2])


def test_the_ports_of_the_first_start_are_taken_again(tmp_path: Path) -> None:
    path = tmp_path / "ports"
    wanted = (ANY, "wss://127.0.0.1:0", ANY)
    first, ports = taken(path, *wanted)
    assert len(set(map(port_of, first))) == 3
    assert ports.moved == []
    assert path.stat().st_mode & 0o777 == 0o600
    for _ in range(3):
        again, ports = taken(path, *wanted)
        assert again == first
        assert ports.moved == []


def test_an_address_with_a_port_is_taken_as_it_is(tmp_path: Path) -> None:
    (free,), _ = taken(None)
    hints, _ = taken(tmp_path / "ports", free)
    assert hints == [free]
    assert not (tmp_path / "ports").exists()


def test_a_port_that_is_gone_makes_way_for_another_which_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "ports"
    (first,), _ = taken(path)
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", port_of(first)))
        thief.listen()
        (second,), ports = taken(path)
    assert second != first
    (text,) = ports.moved
    assert first in text
    assert second in text
    (third,), ports = taken(path)
    assert (third, ports.moved) == (second, [])


def test_a_port_that_was_given_and_is_gone_is_refused(tmp_path: Path) -> None:
    with socket.socket() as thief:
        thief.bind(("127.0.0.1", 0))
        thief.listen()
        with pytest.raises(Refused, match="cannot listen"):
            KeptPorts(tmp_path / "ports").listen(
                [ANY, f"tls://127.0.0.1:{thief.getsockname()[1]}"], TRANSPORTS
            )


def test_two_who_start_at_once_do_not_both_have_the_port(tmp_path: Path) -> None:
    path = tmp_path / "ports"
    (first,), _ = taken(path)
    one = KeptPorts(path).listen([ANY], TRANSPORTS)
    other = KeptPorts(path).listen([ANY], TRANSPORTS)
    assert one[0].hint == first
    assert other[0].hint != first
    for listener in (*one, *other):
        listener.close()


@pytest.mark.parametrize(
    "content", [b"", b"not json", b'{"tls://127.0.0.1:0": [99999999]}', b"[1]", b"\xff" * 9000]
)
def test_a_file_that_is_no_use_is_told_and_written_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ports"
    path.write_bytes(content)
    path.chmod(0o600)
    first, ports = taken(path)
    assert str(path) in ports.moved[0]
    assert taken(path)[0] == first


def test_a_home_that_cannot_be_written_is_told_and_the_node_starts(tmp_path: Path) -> None:
    hints, ports = taken(tmp_path / "gone" / "ports")
    assert port_of(hints[0]) > 0
    assert "kept" in ports.moved[0]


def test_an_http_port_is_kept_alike(tmp_path: Path) -> None:
    path = tmp_path / "ports"
    ports = KeptPorts(path)
    assert ports.port("https://127.0.0.1:0") == 0
    ports.keep("https://127.0.0.1:0", 41_000)
    assert KeptPorts(path).port("https://127.0.0.1:0") == 41_000
