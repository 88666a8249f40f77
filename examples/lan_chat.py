"""Let three laptops on a LAN without internet chat in an encrypted room; a remote member catches up later.

There is no tracker and no relay: the laptops find each other by multicast. The loopback stands for the LAN.
Run it: python examples/lan_chat.py
"""

from __future__ import annotations

import asyncio
import sys

from linnet import LanSection, Node, NodeConfig, NodeSection, Overlay, Room

LOOPBACK = "lo" if sys.platform.startswith("linux") else "lo0"
LAN = LanSection(enabled=True, interfaces=(LOOPBACK,))
REMOTE = NodeConfig(node=NodeSection(overlay=Overlay.RING))
LAPTOP = NodeConfig(node=NodeSection(overlay=Overlay.RING, listen=()), lan=LAN)  # Only the LAN can dial it.


async def read(who: str, room: Room, count: int) -> None:
    heard: list[str] = []
    async for event in room.read(since=0, state=False, live=count > 0):
        heard.append(event.body.decode())
        if len(heard) == count:
            break
    print(f"{who} reads: {', '.join(sorted(heard)) or 'nothing'}")


async def ready(laptop: Node, room: Room) -> None:
    await laptop.lan.allow(room.id, network=None, is_allowed=True)
    for _ in range(400):
        met = sum(len(network.peers) for network in (await laptop.lan.status()).networks)
        keys = sum(bool(member.key_devices) for member in await room.members())
        if met >= 2 and keys == 4:
            return
        await asyncio.sleep(0.05)
    sys.exit(f"{met} met on the LAN, {keys} with keys after 20 seconds: no multicast over {LOOPBACK} here?")


async def main() -> None:
    remote, *laptops = Node(config=REMOTE), *(Node(config=LAPTOP) for _ in range(3))
    async with asyncio.timeout(50), remote, laptops[0], laptops[1], laptops[2]:
        room = await remote.create_room("camp")
        ada, bea, cai = [await laptop.join_room((await room.invite()).text) for laptop in laptops]
        await asyncio.gather(*map(ready, laptops, (ada, bea, cai)))
        for laptop in laptops:
            await laptop.block(remote.peer)  # The laptop loses the internet.
        for joined, name in ((ada, "ada"), (bea, "bea"), (cai, "cai")):
            await joined.send(f"{name} is here")
        await read("cai, on the LAN,", cai, 3)
        await read("the remote one, meanwhile,", room, 0)
        await laptops[0].block(remote.peer, blocked=False)  # Only Ada has the internet again.
        await read("the remote one", room, 3)
        await room.send("so am I")
        await read("cai, through ada,", cai, 4)


if __name__ == "__main__":
    asyncio.run(main())
