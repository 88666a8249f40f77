"""A test of your own program: whole nodes in memory, no sockets, no certificates, nothing to wait for.

`announce` is the program. `test_what_is_announced_is_heard` is its test, as pytest would run it.
Run it: python examples/own_tests.py
"""

from __future__ import annotations

import asyncio

from linnet import Node
from linnet.testing.nodes import nodes_in_memory


async def announce(node: Node, words: str) -> int:
    """Publish each word; returns how many there were."""
    for word in words.split():
        await node.publish("announcements", word)
    return len(words.split())


async def test_what_is_announced_is_heard() -> None:
    async with (
        nodes_in_memory(3) as (_, speaker, listener),
        listener.subscribe("announcements", since=0) as heard,
    ):
        assert await announce(speaker, "mind the gap") == 3
        items = aiter(heard)
        assert [(await anext(items)).body.decode() for _ in range(3)] == ["mind", "the", "gap"]


if __name__ == "__main__":
    asyncio.run(test_what_is_announced_is_heard())
    print("what is announced is heard: passed")
