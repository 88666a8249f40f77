from __future__ import annotations

import asyncio

import pytest
from tests.node.village import member, until

from linnet.core.errors import BadText, Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.node.library import Node
from linnet.rooms.event_types import JoinRule, Membership


async def test_a_room_is_found_by_id_beginning_or_name() -> None:
    async with Node() as node:
        tea, chess = await node.create_room("tea"), await node.create_room("chess")
        assert (await node.room("tea")).id == tea.id
        assert (await node.room(chess.text[:10])).id == chess.id
        assert (await node.room(chess.id)).id == chess.id
        with pytest.raises(BadText, match="there is no room 'coffee' here; there are"):
            await node.room("coffee")
        assert [status.name for status in (await node.status()).rooms] == ["tea", "chess"]


async def test_wrong_invitations_are_told_before_anyone_is_asked() -> None:
    async with Node() as ada, Node() as bea, Node() as cal:
        room = await ada.create_room("tea")
        for_bea = (await room.invite(bea.author)).text
        with pytest.raises(BadText, match="is for another person"):
            await cal.join_room(for_bea)
        with pytest.raises(BadText, match="cut short"):
            await cal.join_room(for_bea[:-20])
        with pytest.raises(Refused, match="give it a lifetime above 0"):
            await room.invite(lifetime=-3600.0)
        over = (await room.invite(lifetime=0.01)).text
        await asyncio.sleep(0.02)  # until it has ended
        with pytest.raises(Refused, match="invitation_expired"):
            await cal.join_room(over)


async def test_a_room_that_does_not_let_us_in_says_why() -> None:
    async with asyncio.timeout(30), Node(config=member("ada")) as ada, Node(config=member("bea")) as bea:
        room = await ada.create_room("tea")
        with pytest.raises(Refused) as caught:
            await bea.join_room(room.id, (ada.address,), patience=0.5)
        assert caught.value.reason is Reason.NOT_INVITED
        with pytest.raises(Refused):
            await bea.join_room(TopicId(b"x" * 32), (ada.address,), patience=0.5)


async def test_a_public_room_is_joined_by_its_id() -> None:
    async with asyncio.timeout(30), Node(config=member("ada")) as ada, Node(config=member("bea")) as bea:
        room = await ada.create_room("square", rule=JoinRule.PUBLIC)
        joined = await bea.join_room(room.id, (ada.address,))
        await until(bea.rooms.statuses, lambda rooms: rooms[0].name == "square")
        assert joined.id == room.id
        assert bytes(joined.joined) != room.id


async def test_who_knocks_is_let_in() -> None:
    async with asyncio.timeout(30), Node(config=member("ada")) as ada, Node(config=member("bea")) as bea:
        room = await ada.create_room("club", rule=JoinRule.KNOCK)
        await bea.join_room(room.id, (ada.address,), knock=True)
        await until(room.members, lambda members: any(m.membership is Membership.KNOCK for m in members))
        await room.set_membership(bea.author, Membership.INVITE)
        await bea.join_room(room.id, (ada.address,))
        await until(room.members, lambda members: sum(m.membership is Membership.JOIN for m in members) == 2)


async def test_a_node_that_is_no_relay_has_nothing_to_report() -> None:
    async with Node() as node:
        with pytest.raises(Refused) as caught:
            await node.relay_report()
        assert caught.value.reason is Reason.NOT_A_RELAY
