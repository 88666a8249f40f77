"""Places over the control API: a host and a guest, and what is wrong with requests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.node.test_places import guest

from linnet.identity.text import Sort, to_text
from linnet.node.client import ControlClient, ControlError
from linnet.node.control import Control
from linnet.node.control_server import ControlServer
from linnet.node.control_types import EndedView, SubscribedView
from linnet.node.home import init
from linnet.node.library import Node
from linnet.node.place_types import (
    AnnounceRequest,
    EnterRequest,
    HostRequest,
    ListenQuery,
    MessageView,
    PastQuery,
    PieceView,
    TalkRequest,
)
from linnet.places.deed import Policy

LIMIT = 60.0


@contextlib.asynccontextmanager
async def served(path: Path, label: str) -> AsyncIterator[ControlClient]:
    """A node with a control API."""
    init(path, 1_700_000_000.0)
    async with (
        Node(path, guest(label)) as node,
        ControlServer(Control(node, lambda: None).app(), path / "control.sock", None, None),
    ):
        with ControlClient(path) as client:
            yield client
        node.end_subscriptions()


async def test_a_host_and_a_guest_over_the_api(tmp_path: Path) -> None:
    call = asyncio.to_thread
    async with (
        asyncio.timeout(LIMIT),
        served(tmp_path / "ada", "ada") as ada,
        served(tmp_path / "bea", "bea") as bea,
    ):
        made = await call(ada.host_place, HostRequest(Policy.PUBLIC, "tea"))
        place = made.place.place
        entered = await call(bea.enter_place, EnterRequest(made.address))
        assert (entered.place.place, entered.place.role) == (place, "guest")
        said = await call(ada.announce, place, AnnounceRequest(text="hello", state={"_topic": "cake"}))
        items = await call(lambda: bea.listen(place, ListenQuery(since=said.message)))
        first, heard = [await call(next, items) for _ in range(2)]
        assert isinstance(first, SubscribedView)
        assert isinstance(heard, MessageView)
        assert (heard.message, heard.text, heard.method) == (said.message, "hello", "_message")
        await call(items.close)  # type: ignore[attr-defined]
        assert [each.text for each in (await call(bea.objects, place, "_topic")).objects] == ["cake"]
        assert len((await call(ada.guests, place)).guests) == 1
        assert [each.name for each in (await call(bea.places)).places] == ["tea"]
        await call(bea.leave_place, place, True)
        assert (await call(ada.guests, place)).guests == ()


async def test_a_long_body_goes_up_and_comes_down_in_pieces(tmp_path: Path) -> None:
    call = asyncio.to_thread
    async with asyncio.timeout(LIMIT), served(tmp_path / "ada", "ada") as ada:
        place = (await call(ada.host_place, HostRequest())).place.place
        opened = await call(ada.announce, place, AnnounceRequest("_file", more=True))
        for number in range(4):
            told = await call(ada.announce_more, place, opened.message, bytes([number]) * 300_000)
        assert told.size == 1_200_000
        assert (await call(ada.announce_more, place, opened.message, b"", False)).size == 1_200_000
        past = await call(list, ada.place_history(place, PastQuery(opened.message, None, 1000)))
        (message,) = [item for item in past if isinstance(item, MessageView)]
        assert (message.size, message.body) == (1_200_000, None)
        assert past[-1] == EndedView(None)
        pieces = await call(list, ada.message_body(place, opened.message, 900_001))
        data = b"".join(item.data for item in pieces if isinstance(item, PieceView))
        assert data == bytes([3]) * 299_999


async def test_what_is_wrong_is_told_with_a_status(tmp_path: Path) -> None:
    call = asyncio.to_thread
    async with asyncio.timeout(LIMIT), served(tmp_path / "ada", "ada") as ada:
        place = (await call(ada.host_place, HostRequest())).place.place
        nowhere = to_text(Sort.TOPIC, b"x" * 32)
        person = to_text(Sort.PERSON, b"x" * 32)
        wrong = [
            (409, lambda: ada.place(nowhere)),
            (400, lambda: ada.announce(place, AnnounceRequest(text="a", body=b"b"))),
            (403, lambda: ada.talk(place, TalkRequest(text="a"))),
            (409, lambda: ada.admit(place, person)),
            (403, lambda: ada.eject(place, person)),
            (404, lambda: list(ada.message_body(place, 0))),
            (400, lambda: ada.enter_place(EnterRequest("nonsense"))),
        ]
        for status, asked in wrong:
            with pytest.raises(ControlError) as caught:
                await call(asked)
            assert caught.value.status == status, caught.value
