"""A device that has no link, and a room whose relay it asks over HTTP: all of it real."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from linnet.api.node_commands import StopNode
from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Event, Spot, Tail
from linnet.event.signing import decode_unit, recall_unit, sign_unit
from linnet.identity.text import Sort, from_text, to_text
from linnet.net.clock import Clock
from linnet.net.config import NetConfig
from linnet.node.client import ControlClient
from linnet.node.config import NodeConfig, RelaySection
from linnet.node.home import init
from linnet.node.library import Node
from linnet.node.relay_http import serve_relay_of
from linnet.node.relay_http_client import RelayDeclined, RelayHttpClient
from linnet.node.relay_protocol import GetReply, ResyncReply, Status
from linnet.node.rooms import Room
from linnet.node.running import run_node
from linnet.rooms.config import RelayPolicy
from linnet.rooms.event_types import MEMBER, JoinRule
from linnet.testing.identities import known_identity

LIMIT = 30.0
NET = NetConfig(linger=0.2)
RELAYING = NodeConfig(
    relay=RelaySection(enabled=True, policy=RelayPolicy.OPEN, http="https://127.0.0.1:0"), net=NET
)


@pytest.fixture
async def relay() -> AsyncIterator[Node]:
    async with Node(config=RELAYING) as node:
        yield node


@pytest.fixture
async def url(relay: Node) -> AsyncIterator[str]:
    async with serve_relay_of(relay) as served:
        yield served


def events_of(reply: ResyncReply | GetReply) -> list[Event]:
    return [recall_unit(decode_unit(raw)).events[0] for raw in reply.events]


async def all_of(http: RelayHttpClient, room: Room) -> list[Event]:
    """Everything that the relay keeps of a room."""
    found: list[Event] = []
    cursor: str | None = None
    while True:
        page = await http.resync(room.id, cursor, 3)
        found += events_of(page)
        cursor = page.next_cursor
        if not page.limited:
            return found


async def until_kept(http: RelayHttpClient, room: Room, event: EventId) -> list[Event]:
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                found = await all_of(http, room)
            except RelayDeclined as declined:
                # It was asked to serve the room, and does not know its members yet.
                if declined.reply.error not in (Reason.UNKNOWN_ROOM, Reason.NOT_A_MEMBER):
                    raise
                found = []
            if any(each.id == event for each in found):
                return found
            await asyncio.sleep(0.05)  # The relay is told by the member, in its own time.


def said_after(before: Event, control: list[Event], body: bytes) -> Tail:
    """Something that is said after these: higher than all that it refers to."""
    height = 1 + max(each.tail.height or 0 for each in (before, *control))
    heads = tuple(each.id for each in control)
    return Tail((before.id,), None, height, heads, "message", None, before.time + 1, None, body)


async def test_a_member_without_a_link_reads_and_speaks(relay: Node, url: str) -> None:
    async with Node(config=NodeConfig(net=NET)) as ann:
        room = await ann.create_room("birds", rule=JoinRule.PUBLIC)  # Without keys only this can be read.
        await room.add_relay(relay.address)
        invitation = await room.invite()
        async with Node(config=NodeConfig(net=NET)) as ben:
            joined = (await ben.join_room(invitation.text)).joined
            identity = ben.identity
        # Ben's node is gone; what is left of him is his key, and HTTP.
        async with RelayHttpClient(url, relay.peer, identity, ann.clock.now) as http:
            sent = await room.send("hello")
            found = await until_kept(http, room, sent.ids[0])
            assert [each.body for each in found if each.kind == "message"] == [b"hello"]
            (join,) = [
                recall_unit(decode_unit(raw)).events[0] for raw in (await http.get(room.id, [joined])).events
            ]
            assert (join.kind, join.author) == (MEMBER, identity.author)
            dag = await http.authdag(room.id, limit=1)
            assert (len(dag.events), dag.more) == (1, True)
            heads = [EventId(from_text(Sort.EVENT, head)) for head in dag.heads]
            tail = said_after(join, events_of(await http.get(room.id, heads)), b"by http")
            assert join.seq is not None
            unit = sign_unit(
                identity.device,
                Spot(room.id, identity.author, identity.card.device, join.seq + 1, joined),
                (tail,),
            )
            reply = await http.send(room.id, [unit.unit], [identity.card])
            assert (reply.results[0].status, reply.results[0].event) == (
                Status.ACCEPTED,
                to_text(Sort.EVENT, unit.head),
            )
            assert (await http.send(room.id, [unit.unit])).results[0].status is Status.DUPLICATE
            async with asyncio.timeout(LIMIT):
                async for each in room.read(since=0.0, state=False):
                    if each.body == b"by http":
                        break
            assert each.author == identity.author


async def test_the_room_decides_who_is_served(relay: Node, url: str) -> None:
    stranger = known_identity("stranger", relay.clock.now())
    async with Node(config=NodeConfig(net=NET)) as ann:
        room = await ann.create_room("birds")
        await room.add_relay(relay.address)
        invitation = await room.invite()
        async with (
            Node(config=NodeConfig(net=NET)) as ben,
            RelayHttpClient(url, relay.peer, ben.identity, ann.clock.now) as bens,
            RelayHttpClient(url, relay.peer, ann.identity, ann.clock.now) as anns,
            RelayHttpClient(url, relay.peer, stranger, ann.clock.now) as strangers,
        ):
            joined = (await ben.join_room(invitation.text)).joined
            await until_kept(anns, room, joined)
            await bens.resync(room.id, None)
            for ask in (
                strangers.resync(room.id, None),
                strangers.get(room.id, [joined]),
                strangers.authdag(room.id),
            ):
                with pytest.raises(RelayDeclined) as caught:
                    await ask
                assert caught.value.status == 403
            (join,) = events_of(await bens.get(room.id, [joined]))
            heads = [
                EventId(from_text(Sort.EVENT, head)) for head in (await bens.authdag(room.id, limit=1)).heads
            ]
            tail = said_after(join, events_of(await bens.get(room.id, heads)), b"brought by a stranger")
            assert join.seq is not None
            spot = Spot(room.id, ben.author, ben.identity.card.device, join.seq + 1, joined)
            unit = sign_unit(ben.identity.device, spot, (tail,)).unit
            brought = await strangers.send(room.id, [unit], [ben.identity.card])
            assert (brought.results[0].status, brought.results[0].error) == (Status.REJECTED, "not_a_member")
            banned = await room.ban(ben.author)
            await until_kept(anns, room, banned.ids[0])
            with pytest.raises(RelayDeclined) as caught:
                await bens.resync(room.id, None)
            assert (caught.value.status, caught.value.reply.error) == (403, "banned")
            page = await anns.resync(room.id, None)
            with pytest.raises(RelayDeclined) as caught:
                await anns.forward(room.id, [decode_unit(page.events[-1])])
            assert (caught.value.status, caught.value.reply.error) == (403, "not_a_relay")
            await relay.block(ann.peer)
            with pytest.raises(RelayDeclined) as caught:
                await anns.resync(room.id, None)
            assert (caught.value.status, caught.value.reply.error) == (403, "blocked")
            assert (await anns.info()).rooms == 1


async def test_relays_forward_over_http(relay: Node, url: str) -> None:
    other_config = NodeConfig(relay=RelaySection(enabled=True, policy=RelayPolicy.OPEN), net=NET)
    async with Node(config=NodeConfig(net=NET)) as ann, Node(config=other_config) as other:
        room = await ann.create_room("birds")
        await room.add_relay(relay.address)
        named = await room.add_relay(other.address)
        async with (
            RelayHttpClient(url, relay.peer, ann.identity, ann.clock.now) as anns,
            RelayHttpClient(url, relay.peer, other.identity, ann.clock.now) as others,
        ):
            found = await until_kept(anns, room, named.ids[0])
            last = max((each for each in found if each.author == ann.author), key=lambda each: each.seq or 0)
            (unit,) = (await anns.get(room.id, [last.id])).events
            forwarded = await others.forward(room.id, [decode_unit(unit)])
            assert forwarded.results[0].status is Status.DUPLICATE


async def test_a_process_serves_it_where_its_configuration_says(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    home = tmp_path / "home"
    init(home, Clock().now())
    config = NodeConfig(relay=RelaySection(enabled=True, http=f"127.0.0.1:{port}"), net=NET)
    told: asyncio.Future[Node] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as group, asyncio.timeout(LIMIT):
        process = group.create_task(run_node(home, config, told.set_result))
        node = await told
        identity = known_identity("anyone", node.clock.now())
        async with RelayHttpClient(f"http://127.0.0.1:{port}", node.peer, identity, node.clock.now) as http:
            info = await http.info()
            assert (info.device, info.rooms) == (to_text(Sort.DEVICE, node.peer), 0)
            with pytest.raises(RelayDeclined) as caught:
                await http.resync(TopicId(bytes(32)), None)
            assert (caught.value.status, caught.value.reply.error) == (404, "unknown_room")
            with pytest.raises(RelayDeclined) as caught:
                await http.resync(TopicId(bytes(32)), "x")
            assert caught.value.status == 400
        await asyncio.to_thread(_stop, home)
        await process
    rows = [json.loads(line) for line in (home / "trace" / "trace.jsonl").read_text().splitlines()[1:]]
    noted = [row["note"] for row in rows if row.get("note", "").startswith("relay http")]
    assert noted == ["relay http: 404 unknown_room", "relay http: 400 malformed"]


def _stop(home: Path) -> None:
    with ControlClient(home) as control:
        control.ask(StopNode())
