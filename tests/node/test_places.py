"""Places as a program uses them: real nodes on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.node.village import until

from linnet.core.errors import BadText, Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.node.config import NodeConfig, NodeSection
from linnet.node.library import Node
from linnet.node.place_messages import Message
from linnet.node.places import TurnedAway
from linnet.places.config import PlacesConfig
from linnet.places.deed import Policy

LIMIT = 60.0


def guest(label: str, places: PlacesConfig | None = None) -> NodeConfig:
    return NodeConfig(node=NodeSection(label=label), places=places or PlacesConfig(entry_timeout=0.5))


async def heard(listening: AsyncIterator[Message], count: int) -> list[Message]:
    found: list[Message] = []
    async for message in listening:
        found.append(message)
        if len(found) == count:
            break
    return found


async def test_a_host_announces_and_a_guest_hears_it_and_sees_the_state() -> None:
    async with (
        asyncio.timeout(LIMIT),
        Node(config=guest("ada")) as ada,
        Node(config=guest("bea")) as bea,
    ):
        place = await ada.places.host(name="tea")
        visited = await bea.places.enter((await place.address()).text)
        assert visited.id == place.id
        async with visited.listen() as listening:
            said = await place.announce("hello", state={"_topic": "cake"}, variables={"_volume": "3"})
            (message,) = await heard(aiter(listening), 1)
        assert (message.number, message.method, message.text) == (said.message, "_message", "hello")
        assert message.variables == {"_topic": b"cake", "_volume": b"3"}
        assert (message.author, message.nym, message.historic) == (ada.author, None, False)
        assert await visited.look("_topic") == {"_topic": b"cake"}
        assert await visited.look_at("_topic_of_the_day") == ("_topic", b"cake")
        assert await visited.look_at("_nothing") is None
        mine, theirs = await place.status(), await visited.status()
        assert (mine.role, theirs.role) == ("host", "guest")
        assert mine.state_hash == theirs.state_hash
        assert [each.nym for each in (await place.guests()).guests] == [bea.author]
        assert (await bea.places.find("tea")).id == (await bea.places.find(place.text[:12])).id == place.id


async def test_a_guest_talks_to_the_host_alone_and_nobody_listening_is_told() -> None:
    async with asyncio.timeout(LIMIT), Node(config=guest("ada")) as ada, Node(config=guest("bea")) as bea:
        place = await ada.places.host()
        visited = await bea.places.enter(await place.address())
        with pytest.raises(Refused) as caught:
            await visited.talk("is anybody there?")
        assert caught.value.reason is Reason.NOT_HELD
        async with place.listen() as listening:
            talked = await visited.talk("one sugar", "_request_tea", {"_sugar": "1"})
            (request,) = await heard(aiter(listening), 1)
        assert talked.voice == ada.peer
        assert (request.nym, request.method, request.text) == (bea.author, "_request_tea", "one sugar")
        assert request.variables == {"_sugar": b"1"}
        with pytest.raises(Refused, match="announce instead"):
            await place.talk("to myself")


async def test_the_host_admits_and_rejects_who_knocks() -> None:
    async with (
        asyncio.timeout(LIMIT),
        Node(config=guest("ada")) as ada,
        Node(config=guest("bea")) as bea,
        Node(config=guest("cal")) as cal,
    ):
        other = await ada.places.host(name="lobby")
        place = await ada.places.host(Policy.CLOSED, "club")
        before = await place.announce("before you came")
        elsewhere, address = await other.address(), await place.address()

        async def keep_door() -> None:
            seen = 0
            async for knock in place.door():
                if knock.nym == bea.author:
                    assert knock.text == b"it is me"
                    await place.admit(knock.nym)
                else:
                    await place.reject(knock.nym, "members only", elsewhere=elsewhere)
                seen += 1
                if seen == 2:
                    return

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(keep_door())
            visited = await bea.places.enter(address, text="it is me")
            with pytest.raises(TurnedAway, match="members only") as caught:
                await cal.places.enter(address)
        assert caught.value.elsewhere is not None
        assert caught.value.elsewhere.place == other.id
        # Older messages come one by one, and can be read when their keys have come.
        async for message in visited.listen(since=before.message):
            if message.number == before.message:
                assert message.text == "before you came"
                break


async def test_who_leaves_or_is_ejected_is_no_guest_and_who_disconnects_still_is() -> None:
    async with (
        asyncio.timeout(LIMIT),
        Node(config=guest("ada")) as ada,
        Node(config=guest("bea")) as bea,
        Node(config=guest("cal")) as cal,
    ):
        place = await ada.places.host()
        address = await place.address()
        hers, his = await bea.places.enter(address), await cal.places.enter(address)
        await hers.disconnect()
        assert len((await place.guests()).guests) == 2
        again = await bea.places.enter(address)
        async with again.listen() as listening:
            await place.announce("welcome back")
            assert [each.text for each in await heard(aiter(listening), 1)] == ["welcome back"]
        await again.leave()
        await place.eject(cal.author)
        assert (await place.guests()).guests == ()
        await until(his.status, lambda status: status.role == "outside")
        with pytest.raises(Refused):
            await place.eject(cal.author)


async def test_what_is_wrong_with_where_to_enter_is_told() -> None:
    async with asyncio.timeout(LIMIT), Node(config=guest("ada")) as ada:
        with pytest.raises(BadText, match="is no address la1"):
            await ada.places.enter("music")
        with pytest.raises(BadText, match="cut short"):
            await ada.places.enter((await (await ada.places.host()).address()).text[:-20])
        with pytest.raises(Refused, match="leads nowhere"):
            await ada.places.enter("music.nobody")
        with pytest.raises(Refused) as caught:
            await ada.places.enter(TopicId(b"x" * 32))
        assert caught.value.reason is Reason.NO_ADDRESS
        with pytest.raises(BadText, match="there is no place 'tea' here"):
            await ada.places.find("tea")
