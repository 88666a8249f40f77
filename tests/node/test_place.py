"""One place as a program holds it: long bodies, methods, objects, history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from linnet.core.errors import LocalError, Refused
from linnet.core.reasons import Reason
from linnet.node.library import Node
from linnet.node.place_messages import Message
from linnet.node.places import CHUNK_BYTES
from linnet.places.items import Body, Changed

LIMIT = 60.0


async def one(listening: AsyncIterator[Message]) -> Message:
    async for message in listening:
        return message
    raise AssertionError("it ended")


async def pieces(*given: bytes) -> AsyncIterator[bytes]:
    for each in given:
        yield each
        await asyncio.sleep(0)


async def test_a_body_is_streamed_from_an_iterator_or_a_file(tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT), Node() as node:
        place = await node.places.host()
        file = tmp_path / "large"
        file.write_bytes(bytes(range(256)) * (CHUNK_BYTES // 100))
        done: list[tuple[int, int]] = []
        async with place.listen() as listening:
            said = await place.announce(pieces(b"a" * 10, b"", b"b" * CHUNK_BYTES), "_stream")
            assert said.size == 10 + CHUNK_BYTES
            streamed = await one(aiter(listening))
            assert (streamed.method, streamed.body) == ("_stream", b"a" * 10 + b"b" * CHUNK_BYTES)
        async with place.listen(largest=100) as listening:
            await place.announce(file, "_file", progress=lambda *told: done.append(told))
            message = await one(aiter(listening))
        assert done[-1] == (message.size, message.size) == (file.stat().st_size, file.stat().st_size)
        assert message.body is None, "it is longer than was asked for"
        assert b"".join([piece async for piece in message.pieces()]) == file.read_bytes()
        half = message.size // 2 + 77
        assert b"".join([piece async for piece in message.pieces(half)]) == file.read_bytes()[half:]
        (tmp_path / "copy.part").write_bytes(file.read_bytes()[:half])
        assert (await message.save(tmp_path / "copy")).read_bytes() == file.read_bytes()
        assert not (tmp_path / "copy.part").exists()
        with pytest.raises(LocalError, match="is there already"):
            await message.save(tmp_path / "copy")


async def test_several_applications_share_a_place_by_their_methods() -> None:
    async with asyncio.timeout(LIMIT), Node() as node:
        place = await node.places.host()
        async with (
            place.listen("_message") as messages,
            place.listen("_message_public") as public,
            place.listen("") as others,
            place.listen() as everything,
        ):
            for method in ("_message_public_shout", "_message_private", "_notice_news"):
                await place.announce(method, method)
            assert (await one(aiter(public))).text == "_message_public_shout"
            assert (await one(aiter(messages))).text == "_message_private"
            assert (await one(aiter(others))).text == "_notice_news"
            assert (await one(aiter(everything))).text == "_message_public_shout"
        with pytest.raises(Refused) as caught:
            await one(aiter(place.listen("not a name")))
        assert caught.value.reason is Reason.MALFORMED


async def test_objects_are_watched_by_the_beginning_of_their_names() -> None:
    async with asyncio.timeout(LIMIT), Node() as node:
        place = await node.places.host(state={"_profile_name": "Ada", "_other": "x"})
        watching = place.watch("_profile", present=True)
        assert (await anext(watching)).name == "_profile_name"
        said = await place.announce(state={"_other": "y", "_profile_city": "London", "_profile_name": None})
        changes = [await anext(watching), await anext(watching)]
        assert changes == [
            Changed(place.id, said.message, "_profile_city", b"London"),
            Changed(place.id, said.message, "_profile_name", None),
        ]
        await watching.aclose()


async def test_history_is_told_in_order_and_ends() -> None:
    async with asyncio.timeout(LIMIT), Node() as node:
        place = await node.places.host()
        first = (await place.announce("one")).message
        await place.announce("two")
        last = (await place.announce("three")).message
        assert [each.text async for each in place.history(first)] == ["one", "two", "three"]
        assert [(each.text, each.historic) async for each in place.history(first + 1, last)] == [
            ("two", True),
            ("three", True),
        ]
        assert [each async for each in place.history(last + 1)] == []


async def test_a_durable_listener_goes_on_after_what_it_has_handled() -> None:
    async with asyncio.timeout(LIMIT), Node() as node:
        place = await node.places.host()
        async with place.listen(name="bot") as listening:
            for text in ("one", "two", "three"):
                await place.announce(text)
            heard = aiter(listening)
            assert [(await anext(heard)).text, (await anext(heard)).text] == ["one", "two"]
        await place.announce("while nobody listens")
        async with place.listen(name="bot") as listening:
            assert listening.resumed
            heard = aiter(listening)
            assert [(await anext(heard)).text for _ in range(3)] == ["two", "three", "while nobody listens"]
            await listening.acknowledge()
        async with place.listen(name="bot") as listening:
            await place.announce("four")
            assert (await one(aiter(listening))).text == "four"


async def test_a_slow_listener_loses_nothing_and_holds_little() -> None:
    async with asyncio.timeout(LIMIT), Node() as node:
        place = await node.places.host()
        items = place.items()
        async with items:
            body = bytes(3_000_000)
            for _ in range(3):
                await place.announce(body)
            waiting = sum(len(getattr(item, "data", b"")) for item in items._queue)
            assert waiting <= node.config.places.watch_bytes + 61_440, "the rest is in the store"
            sizes: dict[int, int] = {}
            async for item in items:
                if isinstance(item, Body):
                    sizes[item.message] = sizes.get(item.message, 0) + len(item.data)
                    if item.last and len(sizes) == 3:
                        break
        assert list(sizes.values()) == [3_000_000] * 3


async def test_a_message_that_was_left_open_is_gone_on_with_after_a_restart(tmp_path: Path) -> None:
    from linnet.node.home import init

    init(tmp_path / "home", 1_700_000_000.0)
    async with asyncio.timeout(LIMIT):
        async with Node(tmp_path / "home") as node:
            place = await node.places.host()
            opened = await place.say(b"first, ", "_file", more=True)
        async with Node(tmp_path / "home") as node:
            place = node.places.by_id(place.id)
            assert (await place.say_more(opened.message, b"")).size == len("first, ")
            done = await place.announce_more(opened.message, b"second")
            assert (done.message, done.size) == (opened.message, len("first, second"))
            told = [each async for each in place.history(opened.message)]
            assert [each.text for each in told] == ["first, second"]
            with pytest.raises(Refused, match="nothing can be added"):
                await place.say_more(opened.message, b"third")
            with pytest.raises(Refused, match="is not open here"):
                await place.say_more(99, b"third")
