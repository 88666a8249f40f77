"""Nodes with default settings are restarted: what they share goes on, with no flag and no file edited."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.net.live import TLS

from linnet.core.ids import TopicId
from linnet.delivery.receipts import Fate
from linnet.net.config import NetConfig
from linnet.node.config import (
    ContentSection,
    KademliaSection,
    NodeConfig,
    NodeSection,
    StorageSection,
    TrackerlessSection,
    TrackerSection,
)
from linnet.node.home import init
from linnet.node.library import Node
from linnet.node.rooms import Room
from linnet.overlay.config import Overlay

from . import village
from .village import until

LIMIT = 100.0
NET = NetConfig(linger=0.2)
MEMBERS = ("ada", "bea", "cal", "dot")


class Village:
    """Homes whose nodes go up and down."""

    def __init__(self, path: Path, *, with_relay: bool = True) -> None:
        self.path = path
        self.configs = {label: replace(village.member(label, TLS), net=NET) for label in MEMBERS}
        if with_relay:
            self.configs["relay"] = replace(village.relay(listen=TLS), net=NET)
        for label, config in self.configs.items():
            init(path / label, 1_790_000_000.0, config)
        self.nodes: dict[str, Node] = {}
        self._stack = contextlib.AsyncExitStack()

    async def start(self, *labels: str) -> None:
        """Bring these up, all at once; none named: everyone."""
        entered = [Node(self.path / label) for label in labels or self.configs]
        await asyncio.gather(*(node.__aenter__() for node in entered))
        self.nodes.update(zip(labels or self.configs, entered, strict=True))

    async def stop(self, *labels: str) -> None:
        """Bring these down, all at once; none named: everyone."""
        await asyncio.gather(
            *(self.nodes.pop(each).__aexit__(None, None, None) for each in labels or [*self.nodes])
        )

    async def found(self, name: str = "tea") -> TopicId:
        """A room of all members, with the relay if there is one."""
        room = await self.nodes["ada"].create_room(name)
        if "relay" in self.nodes:
            await room.add_relay(self.nodes["relay"].address)
        for label in MEMBERS[1:]:
            await self.nodes[label].join_room((await room.invite()).text)
        await self.all_linked(room.id)
        for label in MEMBERS if "relay" in self.nodes else ():
            # Until the relay has joined, members do not turn to it.
            await until(
                self.nodes[label].rooms.statuses, lambda rooms: any(each.up for each in rooms[0].relays)
            )
        return room.id

    def room(self, label: str, room: TopicId) -> Room:
        return self.nodes[label].rooms.by_id(room)

    async def arrives(self, sender: str, room: TopicId, text: str) -> None:
        """Say something, and wait until all others say that they have it."""
        spoken = self.room(sender, room)
        sent = await spoken.send(text)
        others = {self.nodes[label].author for label in MEMBERS if label != sender and label in self.nodes}

        async def delivered() -> set[bytes]:
            (fates,) = (await spoken.ledger(sent.ids[0])).events
            return {each.person for each in fates.members if each.fate is Fate.DELIVERED}

        assert others <= await until(delivered, lambda seen: others <= seen)

    async def heard_by(self, label: str) -> int:
        """How many devices' addresses a node has in its store."""
        store = f"file:{self.path / label / 'events.db'}?mode=ro"
        with contextlib.closing(sqlite3.connect(store, uri=True)) as db:
            ((found,),) = db.execute("SELECT count(*) FROM cell WHERE space = 'whereabouts'")
        return int(found)

    async def all_linked(self, room: TopicId) -> None:
        """Wait until every member has a link to every other."""
        for label in self.nodes:
            if label != "relay":
                node = self.nodes[label]
                others = {self.nodes[each].peer for each in self.nodes if each not in (label, "relay")}

                async def online(node: Node = node) -> set[bytes]:
                    return {
                        peer
                        for each in await node.rooms.statuses()
                        if each.room == room
                        for peer in each.online
                    }

                assert others <= await until(online, lambda seen, others=others: others <= seen)  # type: ignore[misc]


@pytest.fixture
async def homes(tmp_path: Path) -> AsyncIterator[Village]:
    homes = Village(tmp_path)
    try:
        await homes.start()
        yield homes
    finally:
        await homes.stop()


def thief_of(address: str) -> socket.socket:
    """Somebody else at the port of a node that is down."""
    thief = socket.socket()
    thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    thief.bind(("127.0.0.1", int(address.rpartition(":")[2])))
    thief.listen()
    return thief


async def test_all_nodes_of_a_room_with_a_relay_are_restarted_three_times_over(homes: Village) -> None:
    async with asyncio.timeout(LIMIT):
        room = await homes.found()
        await homes.arrives("ada", room, "before")
        addresses = {label: node.address for label, node in homes.nodes.items()}
        for time, sender in enumerate(("bea", "cal", "ada")):
            await homes.stop()
            await homes.start()
            assert {label: node.address for label, node in homes.nodes.items()} == addresses
            await homes.arrives(sender, room, f"after restart {time}")
            await homes.all_linked(room)


async def test_each_node_of_a_room_is_restarted_in_turn(homes: Village) -> None:
    async with asyncio.timeout(LIMIT):
        room = await homes.found()
        for label in ("relay", *MEMBERS):
            await homes.stop(label)
            await homes.start(label)
            await homes.arrives("dot" if label == "ada" else "ada", room, f"after {label}")


async def test_members_whose_ports_are_taken_find_each_other_by_the_relay(homes: Village) -> None:
    async with asyncio.timeout(LIMIT):
        room = await homes.found()
        before = {label: node.address for label, node in homes.nodes.items()}
        # The relay stays: while it were down, a test beside this one could take its port too.
        await homes.stop(*MEMBERS)
        with contextlib.ExitStack() as thieves:
            for label in MEMBERS:
                thieves.enter_context(thief_of(before[label]))
            await homes.start(*MEMBERS)
        moved = {label for label, node in homes.nodes.items() if node.address != before[label]}
        assert moved == set(MEMBERS)
        await homes.all_linked(room)
        await homes.arrives("ada", room, "after the move")
        told = (await homes.nodes["relay"].overlay.privacy()).addresses
        assert any(each.others for each in told), "it was the relay who told"
        await homes.stop("ada")
        traced = "".join(each.read_text() for each in (homes.path / "ada" / "trace").iterdir())
        assert f"{before['ada'].partition('@')[2]} is in use by another program" in traced


async def test_a_relay_whose_port_is_taken_is_found_again(homes: Village) -> None:
    async with asyncio.timeout(LIMIT):
        room = await homes.found()
        address = homes.nodes["relay"].address
        # It must have written them down: what is still on its way when a relay stops is lost.
        await until(lambda: homes.heard_by("relay"), lambda heard: heard == len(MEMBERS))
        await homes.stop("relay")
        with thief_of(address):
            await homes.start("relay")
        relay = homes.nodes["relay"]
        assert relay.address != address

        async def linked() -> int:
            (status,) = await relay.rooms.statuses()
            return len(status.online)

        assert await until(linked, lambda seen: seen == len(MEMBERS)) == len(MEMBERS)
        await homes.stop("bea", "cal", "dot")
        sent = await homes.room("ada", room).send("kept by the relay")

        async def kept() -> bool:
            (fates,) = (await homes.room("ada", room).ledger(sent.ids[0])).events
            return all(each.fate is Fate.AT_RELAY for each in fates.members)

        assert await until(kept, bool)


class Homes:
    """Homes with a configuration each, whose nodes are restarted all at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.nodes: dict[str, Node] = {}

    async def up(self, label: str, config: NodeConfig) -> Node:
        init(self.path / label, 1_790_000_000.0, replace(config, net=NET))
        node = self.nodes[label] = await Node(self.path / label).__aenter__()
        return node

    async def restart(self) -> None:
        """Bring all down, and then all up: nothing but their homes is left."""
        await self.down()
        again = {label: Node(self.path / label) for label in self.nodes}
        await asyncio.gather(*(node.__aenter__() for node in again.values()))
        self.nodes = again

    async def down(self) -> None:
        await asyncio.gather(*(node.__aexit__(None, None, None) for node in self.nodes.values()))


@pytest.fixture
async def elsewhere(tmp_path: Path) -> AsyncIterator[Homes]:
    homes = Homes(tmp_path)
    try:
        yield homes
    finally:
        await homes.down()


async def test_a_place_goes_on_after_all_were_restarted(elsewhere: Homes) -> None:
    async with asyncio.timeout(LIMIT):
        host = await elsewhere.up("host", NodeConfig())
        place = await host.places.host(name="salon")
        for label in ("ann", "ben"):
            node = await elsewhere.up(label, NodeConfig())
            await node.places.enter(await place.address())
        for number in range(3):
            await elsewhere.restart()
            host = elsewhere.nodes["host"]
            async with contextlib.AsyncExitStack() as stack:
                heard = [
                    await stack.enter_async_context(elsewhere.nodes[label].places.by_id(place.id).listen())
                    for label in ("ann", "ben")
                ]
                await host.places.by_id(place.id).announce(f"after {number}")
                for listening in heard:
                    async for message in listening:
                        if message.text == f"after {number}":
                            break


async def test_a_stream_with_a_tracker_goes_on_after_all_were_restarted(elsewhere: Homes) -> None:
    async with asyncio.timeout(LIMIT):
        hub = NodeConfig(tracker=TrackerSection(enabled=True), storage=(StorageSection("weather"),))
        address = (await elsewhere.up("hub", hub)).address
        for label in ("ann", "ben"):
            await elsewhere.up(label, NodeConfig(node=NodeSection(trackers=(address,))))
        for number in range(3):
            await elsewhere.restart()
            async with elsewhere.nodes["ben"].subscribe("weather", since=0.0) as heard:
                await elsewhere.nodes["ann"].publish("weather", f"after {number}")
                async for event in heard:
                    if event.body == f"after {number}".encode():
                        break


async def test_content_goes_on_after_all_were_restarted(elsewhere: Homes) -> None:
    def config(*bootstrap: str) -> NodeConfig:
        table = KademliaSection(enabled=True, bootstrap=bootstrap, patience=2.0, rejoin=1.0)
        return NodeConfig(kademlia=table, content=ContentSection(enabled=True, resend=0.5))

    async with asyncio.timeout(LIMIT):
        address = (await elsewhere.up("first", config())).address
        for label in ("ann", "ben"):
            await elsewhere.up(label, config(address))
        async with elsewhere.nodes["ben"].content.subscribe("rain", name="garden"):
            await elsewhere.nodes["ben"].content.settled()
        for number in range(2):
            await elsewhere.restart()
            await elsewhere.nodes["ben"].content.settled()

            await elsewhere.nodes["ann"].content.publish("rain", f"after {number}")
            async with elsewhere.nodes["ben"].content.subscribe("rain", name="garden") as heard:
                async for match in heard:
                    if match.body == f"after {number}".encode():
                        break


async def test_a_ring_without_trackers_goes_on_after_all_were_restarted(elsewhere: Homes) -> None:
    def config(*bootstrap: str) -> NodeConfig:
        section = NodeSection(overlay=Overlay.RING, bootstrap=bootstrap)
        quick = TrackerlessSection(period=0.5, release_delay=0.5, seek_pause=1.0)
        return NodeConfig(node=section, trackerless=quick)

    async with asyncio.timeout(LIMIT):
        address = (await elsewhere.up("first", config())).address
        for label in ("ann", "ben"):
            await elsewhere.up(label, config(address))
        for number in range(2):
            if number:
                await elsewhere.restart()
            async with elsewhere.nodes["ben"].subscribe("weather") as heard:
                node = elsewhere.nodes["ann"]
                async with node.subscribe("weather"):

                    async def neighbors(node: Node = node) -> int:
                        return sum(len(ring.neighbors) for ring in (await node.overlay.status()).rings)

                    await until(neighbors, bool)
                    await node.publish("weather", f"after {number}")
                    async for event in heard:
                        if event.body == f"after {number}".encode():
                            break
