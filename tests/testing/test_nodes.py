from __future__ import annotations

import socket

import pytest

from linnet import NodeConfig, RelayPolicy, RelaySection
from linnet.testing.nodes import nodes_in_memory


@pytest.mark.parametrize("seed", [None, 7])
async def test_nodes_in_memory_hear_each_other_without_a_socket(
    seed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a node in memory opened a socket")

    async with nodes_in_memory(3, seed=seed) as (ann, bea, cai):
        monkeypatch.setattr(socket.socket, "connect", refuse)
        monkeypatch.setattr(socket.socket, "bind", refuse)
        async with bea.subscribe("weather", since=0) as weather:
            await cai.publish("weather", ["rain", "sun"])
            items = aiter(weather)
            assert [(await anext(items)).body for _ in range(2)] == [b"rain", b"sun"]
        assert {len(node.address.partition("@")[2]) > 0 for node in (ann, bea, cai)} == {True}


async def test_nodes_in_memory_are_configured_as_asked() -> None:
    relay = RelaySection(enabled=True, policy=RelayPolicy.OPEN)
    async with nodes_in_memory(2, NodeConfig(relay=relay)) as (ann, bea):
        room = await bea.create_room("tea")
        await room.add_relay(ann.address)
        assert [member for member in await room.members() if member.relay]
