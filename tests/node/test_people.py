"""People of real rooms: met, verified, and told about."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

from tests.node.village import LIMIT, member, until

from linnet.core.ids import TopicId
from linnet.identity.keys import SigningKey
from linnet.net.clock import Clock
from linnet.node.home import init
from linnet.node.library import Node
from linnet.node.people import Alarm
from linnet.node.rooms import Room
from linnet.rooms.event_types import Membership


async def met(host: Node, room: Room, *guests: Node) -> None:
    """These join, and the host has heard of them."""
    for guest in guests:
        await guest.join_room((await room.invite()).text)
    people = {guest.author for guest in guests}

    async def joined() -> set[bytes]:
        members = await room.members()
        return {each.person for each in members if each.membership is Membership.JOIN and each.devices}

    await until(joined, lambda found: people <= found)


async def test_another_under_the_name_of_who_was_verified_is_told_once() -> None:
    async with (
        asyncio.timeout(3 * LIMIT),
        Node(config=member("ann")) as ann,
        Node(config=member("bob")) as bob,
        Node(config=member("Bob")) as eve,
    ):
        room = await ann.create_room("tea")
        await met(ann, room, bob)
        assert await ann.people.news(room.id) == ()
        assert not ann.people.is_verified(bob.author)
        await ann.people.verify(bob.author)
        assert ann.people.is_verified(bob.author)
        await met(ann, room, eve)
        watch = ann.people.watch(room.id)
        (warning,) = await watch(())
        assert (warning.alarm, warning.person, warning.other) == (Alarm.VERIFIED_NAME, eve.author, bob.author)
        assert await watch(()) == ()
        assert await ann.people.news(room.id) == ()
        assert await ann.people.look(room.id) == (warning,)
        await ann.people.verify(eve.author)
        assert await ann.people.look(room.id) == ()


async def test_who_was_verified_is_so_after_a_restart(tmp_path: Path) -> None:
    config = member("ann")
    init(tmp_path / "ann", Clock().now(), config)
    async with asyncio.timeout(3 * LIMIT), Node(config=member("bob")) as bob:
        async with Node(home=tmp_path / "ann") as ann:
            room = await ann.create_room("tea")
            await met(ann, room, bob)
            await ann.people.news(room.id)
            verified = await ann.people.verify(bob.author)
            assert list(verified.labels) == ["bob"]
        async with Node(home=tmp_path / "ann") as ann:
            assert ann.people.find(bob.author) == verified
            taken_back = await ann.people.verify(bob.author, verified=False)
            assert taken_back.verified_at is None
            assert not ann.people.is_verified(bob.author)
        async with Node(home=tmp_path / "ann") as ann:
            assert ann.people.find(bob.author) == taken_back


async def test_a_new_device_of_who_was_verified_is_told_while_the_room_is_read(tmp_path: Path) -> None:
    key = SigningKey.generate(secrets.token_bytes)
    for name in ("phone", "laptop"):
        init(tmp_path / name, Clock().now(), member(name), key)
    async with asyncio.timeout(3 * LIMIT), Node(config=member("ann")) as ann:
        room = await ann.create_room("tea")
        async with Node(home=tmp_path / "phone", config=member("phone")) as phone:
            await met(ann, room, phone)
            watch = ann.people.watch(room.id)
            assert await watch(()) == ()
            await ann.people.verify(phone.author)
            theirs = await phone.room("tea")
            invitation = (await theirs.invite()).text
        async with Node(home=tmp_path / "laptop", config=member("laptop")) as laptop:
            await laptop.join_room(invitation, (ann.address,))
            device = laptop.identity.card.device
            warnings = await until(lambda: ann.people.news(room.id), bool)
            assert [(each.alarm, each.person, each.device) for each in warnings] == [
                (Alarm.NEW_DEVICE, laptop.author, device)
            ]


async def test_reading_goes_on_when_there_is_nothing_to_look_at() -> None:
    async with asyncio.timeout(LIMIT), Node(config=member("ann")) as ann:
        assert await ann.people.watch(TopicId(bytes(32)))(()) == ()
