from __future__ import annotations

import ssl

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.machines import HELLO
from tests.net.live import TLS, HandHeld, LiveNode, named_key, ordered_keys
from tests.net.strangers import foreign_context, foreign_server

from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.net.check import Checked, Step, check_connection
from linnet.net.config import NetConfig
from linnet.net.tls import server_context
from linnet.peer.messages import PROTOCOLS

PROBER = named_key("doctor")
STEPS = list(Step)


async def walk(peer: PeerId, hint: str, config: NetConfig | None = None) -> list[Checked]:
    steps = check_connection(peer, hint, PROBER, HELLO, config or NetConfig(dial_timeout=5.0))
    return [result async for result in steps]


def failed_at(results: list[Checked], step: Step) -> Checked:
    assert [result.step for result in results] == STEPS[: STEPS.index(step) + 1]
    assert [result.ok for result in results] == [True] * (len(results) - 1) + [False]
    return results[-1]


@pytest.mark.parametrize("scheme", ["tls", "wss"])
async def test_a_healthy_node_passes_every_step(scheme: str) -> None:
    async with LiveNode(ordered_keys(1)[0], [f"{scheme}://127.0.0.1:0"]) as node:
        results = await walk(node.peer, node.hints[0])
    assert [result.step for result in results] == STEPS
    assert all(result.ok for result in results)


async def test_a_name_without_an_address() -> None:
    last = failed_at(await walk(PeerId(bytes(32)), "tls://no-such-host.invalid:1"), Step.RESOLVE)
    assert last.reason is Reason.NO_ADDRESS
    assert "typing errors" in last.advice


async def test_nobody_listens() -> None:
    node = LiveNode(ordered_keys(1)[0], TLS)
    node.listeners[0].close()
    last = failed_at(await walk(node.peer, node.hints[0]), Step.TCP)
    assert last.reason is Reason.CONNECTION_REFUSED
    assert "linnet up" in last.advice


async def test_a_server_without_tls() -> None:
    async with foreign_server(None, b"SSH-2.0-OpenSSH_9.2\r\n") as hint:
        last = failed_at(await walk(PeerId(bytes(32)), hint), Step.TLS)
    assert last.reason is Reason.TLS_FAILED
    assert "does not speak TLS" in last.advice


async def test_a_server_of_tls_1_2_gets_its_own_words() -> None:
    key = ordered_keys(1)[0]
    context = server_context(key)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with foreign_server(context) as hint:
        last = failed_at(await walk(PeerId(key.public), hint), Step.VERSION)
    assert last.detail == "the server speaks TLSv1.2 and nothing newer"
    assert "TLS 1.3" in last.advice


async def test_a_web_foreign_server() -> None:
    async with foreign_server(foreign_context(ec.generate_private_key(ec.SECP256R1()))) as hint:
        last = failed_at(await walk(PeerId(bytes(32)), hint), Step.SERVER_KEY)
    assert last.reason is Reason.WRONG_KEY
    assert "no Linnet node" in last.advice


async def test_another_device() -> None:
    one, two = ordered_keys(2)
    async with LiveNode(one, TLS) as node:
        last = failed_at(await walk(PeerId(two.public), node.hints[0]), Step.SERVER_KEY)
    assert last.reason is Reason.WRONG_KEY
    assert "new key" in last.advice


async def test_the_right_key_and_another_protocol() -> None:
    key = ordered_keys(1)[0]
    async with foreign_server(server_context(key), b"HTTP/1.1 400 Bad Request\r\n\r\n") as hint:
        last = failed_at(await walk(PeerId(key.public), hint), Step.CLIENT_AUTHENTICATION)
    assert last.reason is Reason.OVERSIZED_FRAME


async def test_a_server_that_says_nothing() -> None:
    key = ordered_keys(1)[0]
    async with foreign_server(server_context(key)) as hint:
        results = await walk(PeerId(key.public), hint, NetConfig(dial_timeout=0.2))
    assert failed_at(results, Step.CLIENT_AUTHENTICATION).reason is Reason.DIAL_TIMEOUT


async def test_a_node_of_another_time() -> None:
    machine = HandHeld(hello=Hello(7, 9, PROTOCOLS))
    async with LiveNode(ordered_keys(1)[0], TLS, machine=machine) as node:
        last = failed_at(await walk(node.peer, node.hints[0]), Step.HELLO)
    assert last.reason is Reason.VERSION_MISMATCH
    assert last.advice == "Update the older of the two nodes."
