from __future__ import annotations

import pytest

from linnet.core.reasons import Reason
from linnet.net.address import Address, parse_address, resolve_host
from linnet.net.failure import LinkFailure


@pytest.mark.parametrize(
    ("hint", "address"),
    [
        ("tls://127.0.0.1:7700", Address("tls", "127.0.0.1", 7700)),
        ("wss://example.org:443", Address("wss", "example.org", 443)),
        ("tls://[::1]:7700", Address("tls", "::1", 7700)),
    ],
)
def test_a_hint_and_its_parts(hint: str, address: Address) -> None:
    assert parse_address(hint) == address
    assert str(address) == hint


@pytest.mark.parametrize(
    "hint",
    ["", "tls://", "tls://host", "tls://:1", "host:1", "tls://host:99999", "tls://host:x",
     "tls://[::1:1", "wss://host:1/path", "tls://me@host:1"],
)  # fmt: skip
def test_what_is_no_hint(hint: str) -> None:
    with pytest.raises(LinkFailure) as failure:
        parse_address(hint)
    assert failure.value.reason is Reason.NO_ADDRESS


async def test_a_name_has_the_addresses_of_its_host() -> None:
    found = await resolve_host(Address("wss", "localhost", 5))
    assert Address("wss", "127.0.0.1", 5) in found
    assert await resolve_host(Address("tls", "::1", 5)) == [Address("tls", "::1", 5)]


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70, "a..b"])
async def test_a_name_without_an_address(host: str) -> None:
    with pytest.raises(LinkFailure) as failure:
        await resolve_host(Address("tls", host, 5))
    assert failure.value.reason is Reason.NO_ADDRESS
