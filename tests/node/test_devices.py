"""Two devices of one person and a friend, on real sockets; then one of the devices is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.node.village import member, until

from linnet.api.node_commands import Outcome, OwnDevice
from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.identity.cards import revoke
from linnet.identity.keys import SigningKey, device_id
from linnet.net.clock import Clock
from linnet.node.home import init
from linnet.node.library import Node
from linnet.node.rooms import Room
from linnet.rooms.event_types import Membership

PERSON = SigningKey(b"p" * 32)
NOW = Clock().now()


def device(at: Path) -> Node:
    """Another device of the same person."""
    return Node(init(at, NOW, member(at.name), PERSON).home.path)


async def joined(room: Room, *nodes: Node) -> None:
    for node in nodes:
        await node.join_room((await room.invite()).text)


def flags(devices: tuple[OwnDevice, ...]) -> list[tuple[str, bool, bool, bool, int]]:
    return [
        (
            "?" if each.key is None else each.label,
            each.is_this,
            each.is_online,
            each.is_revoked,
            len(each.revoked_in),
        )
        for each in devices
    ]


async def test_a_lost_device_is_out_of_every_room_at_once(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(60),
        Node(config=member("ada")) as ada,
        device(tmp_path / "laptop") as laptop,
        device(tmp_path / "phone") as phone,
    ):
        rooms = [await ada.create_room(name) for name in ("tea", "chess")]
        for room in rooms:
            await joined(room, laptop, phone)
        left = await ada.create_room("left")
        await joined(left, laptop)
        await ada.rooms.by_id(left.id).kick(laptop.author)
        await until(laptop.rooms.statuses, lambda found: found[-1].membership is Membership.LEAVE)
        await until(laptop.devices.all, lambda found: len(found) == 2 and found[1].is_online)
        assert flags(await laptop.devices.all()) == [
            ("laptop", True, True, False, 0),
            ("phone", False, True, False, 0),
        ]
        word = revoke(PERSON, phone.identity.card.device, int(NOW))
        outcomes = await laptop.devices.revoke(word)
        assert [(each.name, each.outcome) for each in outcomes] == [
            ("tea", Outcome.REVOKED),
            ("chess", Outcome.REVOKED),
            ("left", Outcome.SKIPPED),
        ]
        assert "no member (leave)" in outcomes[2].detail
        assert all(each.event is not None and each.neighbors for each in outcomes[:2])
        await until(laptop.devices.all, lambda found: not found[1].is_online)
        assert flags(await laptop.devices.all())[1] == ("phone", False, False, True, 2)
        assert [each.outcome for each in await laptop.devices.revoke(word)] == [
            Outcome.ALREADY,
            Outcome.ALREADY,
            Outcome.SKIPPED,
        ]
        for room in rooms:
            mine = laptop.rooms.by_id(room.id)
            assert (await mine.send("without my phone")).neighbors == 1


async def test_only_our_own_word_counts_and_not_about_the_device_that_asks(tmp_path: Path) -> None:
    async with device(tmp_path / "laptop") as laptop:
        own = laptop.identity.card.device
        for word, reason in (
            (revoke(SigningKey(b"x" * 32), own, 1), Reason.NOT_ALLOWED),
            (revoke(PERSON, own, 1), Reason.NOT_ALLOWED),
        ):
            with pytest.raises(Refused) as caught:
                await laptop.devices.revoke(word)
            assert caught.value.reason is reason
        assert flags(await laptop.devices.all()) == [("laptop", True, True, False, 0)]


async def test_without_rooms_streams_are_told_all_the_same(tmp_path: Path) -> None:
    async with device(tmp_path / "laptop") as laptop:
        lost = SigningKey(b"l" * 32)
        assert await laptop.devices.revoke(revoke(PERSON, device_id(lost.public), 1)) == ()
        assert flags(await laptop.devices.all()) == [
            ("laptop", True, True, False, 0),
            ("?", False, False, True, 0),
        ]
