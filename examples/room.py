"""Send a message to an offline member through a relay, and learn when it arrives.

The members exchange only the text of an invitation. The relay carries ciphertext.
Run it: python examples/room.py
"""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from linnet import Node, NodeConfig, RelayPolicy, RelaySection, Room
from linnet.node.home import init

RELAY = NodeConfig(relay=RelaySection(enabled=True, policy=RelayPolicy.OPEN, fetch_timeout=0.2))


async def fate(room: Room, wanted: str) -> str:
    """Wait until the newest event has this fate at the other member."""
    while True:
        (newest,) = (await room.ledger(limit=1)).events
        if newest.members and newest.members[0].fate == wanted:
            return wanted
        await asyncio.sleep(0.05)


async def all_with_keys(room: Room) -> int:
    """Wait until a device of every member holds the room's keys, and count the members."""
    while True:
        members = [one for one in await room.members() if not one.relay]
        if len(members) == 2 and all(one.key_devices for one in members):
            return len(members)
        await asyncio.sleep(0.05)


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory, "bea")
        init(home, datetime.now(UTC).timestamp())
        async with Node() as ada, Node(config=RELAY) as relay:
            room = await ada.create_room("tea")
            await room.add_relay(relay.address)
            async with Node(home) as bea:
                await bea.join_room((await room.invite()).text)
                print("members:", await all_with_keys(room))
            # Bea is offline now; the relay is online.
            await room.send("Did it arrive?")
            print("while bea is away:", await fate(room, "at_relay"))
            async with Node(home) as bea:
                async for event in (await bea.room(room.id)).read(since=0, state=False):
                    print("bea reads:", event.body.decode())
                    break
                print("when bea is back:", await fate(room, "delivered"))


if __name__ == "__main__":
    asyncio.run(main())
