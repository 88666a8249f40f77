from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import BadText
from linnet.core.ids import Contact, PeerId
from linnet.identity.addresses import (
    HttpAddress,
    contact_text,
    is_loopback,
    parse_contact,
    parse_hint,
    parse_http,
)
from linnet.identity.text import Sort, to_text

PEER = PeerId(bytes(range(32)))
KEY = to_text(Sort.DEVICE, PEER)


@pytest.mark.parametrize(
    ("text", "hints"),
    [
        (f"{KEY}@example.org:7700", ("tls://example.org:7700",)),
        (f" {KEY}@tls://127.0.0.1:1 ", ("tls://127.0.0.1:1",)),
        (f"{KEY}@wss://Example.org:443", ("wss://example.org:443",)),
        (f"{KEY}@[::1]:9", ("tls://[::1]:9",)),
        (f"{KEY}@a:1,wss://b:2", ("tls://a:1", "wss://b:2")),
    ],
)
def test_a_contact_is_read(text: str, hints: tuple[str, ...]) -> None:
    contact = parse_contact(text)
    assert contact == Contact(PEER, hints)
    assert parse_contact(contact_text(contact)) == contact


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("example.org:7700", "has no address"),
        (f"{KEY}@", "has no address"),
        ("@example.org:7700", "has no key"),
        (f"{KEY[:-1]}@h:1", "some are missing"),
        (f"{to_text(Sort.PERSON, PEER)}@h:1", "is a person id"),
        (f"{KEY}@h", "has no port"),
        (f"{KEY}@[::1]", "has no port"),
        (f"{KEY}@h:0", "port 0"),
        (f"{KEY}@h:65536", "a number from 1 to 65535"),
        (f"{KEY}@h:-1", "a number from 1"),
        (f"{KEY}@h:٣", "a number from 1"),
        (f"{KEY}@::1:80", "brackets"),
        (f"{KEY}@[::g]:80", "no IPv6 address"),
        (f"{KEY}@http://h:80", "allowed are tls:// and wss://"),
        (f"{KEY}@tls://h:80/path", "more than a host and a port"),
        (f"{KEY}@bad host:80", "no host name"),
        (f"{KEY}@{','.join(['h:1'] * 9)}", "at most 8"),
        (f"{KEY}@{'h' * 130}:1", "longer than 128"),
    ],
)
def test_what_is_wrong_is_said(text: str, complaint: str) -> None:
    with pytest.raises(BadText, match=complaint.replace("[", r"\[")):
        parse_contact(text)


@given(st.text(max_size=200) | st.text(alphabet="[]:/@.,tlswx0123456789", max_size=60).map(f"{KEY}@".__add__))
def test_any_text_is_a_contact_or_a_clear_error(text: str) -> None:
    try:
        contact = parse_contact(text)
    except BadText:
        return
    assert parse_contact(contact_text(contact)) == contact


def test_port_zero_is_for_listening_only() -> None:
    assert parse_hint("127.0.0.1:0", any_port=True) == "tls://127.0.0.1:0"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *[("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)],
        *[("0.0.0.0", False), ("::", False), ("example.org", False), ("192.0.2.1", False)],
    ],
)
def test_only_loopback_is_private(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8470", HttpAddress("127.0.0.1", 8470, False)),
        ("http://localhost:0", HttpAddress("localhost", 0, False)),
        (" https://0.0.0.0:8470", HttpAddress("0.0.0.0", 8470, True)),
        ("https://[::]:1", HttpAddress("::", 1, True)),
    ],
)
def test_where_http_is_served(text: str, address: HttpAddress) -> None:
    assert parse_http(text) == address
    assert parse_http(str(address)) == address


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("0.0.0.0:1", "write https://0.0.0.0:1"),
        ("http://example.org:1", "can be reached from other machines"),
        ("tls://127.0.0.1:1", "allowed are http:// and https://"),
        ("https://127.0.0.1", "has no port"),
        ("https://127.0.0.1:1/x", "more than a host and a port"),
        ("https://tls://127.0.0.1:1", "more than a host and a port"),
    ],
)
def test_where_http_is_not_served(text: str, what: str) -> None:
    with pytest.raises(BadText, match=what):
        parse_http(text)
