"""Places over the control API: a host and a guest, and what is wrong with requests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.node.control_api import served
from tests.node.test_places import guest

from linnet.api.items import EndedView, SubscribedView
from linnet.api.places import (
    AskToEnter,
    ExaminePlace,
    ListenToPlace,
    MessageView,
    OpenPlace,
    PieceView,
    ReadBody,
    ReadPlaceHistory,
)
from linnet.core.ids import AuthorId, TopicId
from linnet.node.client import ControlError
from linnet.places.commands import (
    Admit,
    Announce,
    AnnounceMore,
    Eject,
    Entered,
    LeavePlace,
    ListGuests,
    ListPlaces,
    ListReceipts,
    Look,
    PlaceObject,
    TalkTo,
)
from linnet.places.deed import Policy

LIMIT = 60.0


async def test_a_host_and_a_guest_over_the_api(tmp_path: Path) -> None:
    call = asyncio.to_thread
    async with (
        asyncio.timeout(LIMIT),
        served(tmp_path / "ada", guest("ada")) as (ada, _),
        served(tmp_path / "bea", guest("bea")) as (bea, _),
    ):
        made = await call(ada.ask, OpenPlace(Policy.PUBLIC, "tea"))
        place = made.place.place
        entered = await call(bea.ask, AskToEnter(made.address.text))
        assert isinstance(entered, Entered)
        assert (await call(bea.ask, ExaminePlace(place))).place.role == "guest"
        said = await call(ada.ask, Announce(place, text="hello", state={"_topic": "cake"}))
        items = bea.lines(ListenToPlace(0, place, since=said.message))
        first, heard = [await call(next, items) for _ in range(2)]
        assert isinstance(first, SubscribedView)
        assert isinstance(heard, MessageView)
        assert (heard.message, heard.text, heard.method) == (said.message, "hello", "_message")
        await call(items.close)
        assert (await call(bea.ask, Look(place, "_topic"))).objects == (PlaceObject("_topic", b"cake"),)
        assert len((await call(ada.ask, ListGuests(place))).guests) == 1
        assert [each.name for each in (await call(bea.ask, ListPlaces())).places] == ["tea"]
        await call(bea.ask, LeavePlace(place))
        assert (await call(ada.ask, ListGuests(place))).guests == ()


async def test_a_long_body_goes_up_and_comes_down_in_pieces(tmp_path: Path) -> None:
    call = asyncio.to_thread
    async with asyncio.timeout(LIMIT), served(tmp_path / "ada", guest("ada")) as (ada, _):
        place = (await call(ada.ask, OpenPlace())).place.place
        opened = await call(ada.ask, Announce(place, "_file", more=True))
        for number in range(4):
            told = await call(ada.ask, AnnounceMore(place, opened.message, bytes([number]) * 300_000))
        assert told.size == 1_200_000
        assert (await call(ada.ask, AnnounceMore(place, opened.message, b"", False))).size == 1_200_000
        past = await call(list, ada.lines(ReadPlaceHistory(0, place, opened.message, None, 1000)))
        (message,) = [item for item in past if isinstance(item, MessageView)]
        assert (message.size, message.body) == (1_200_000, None)
        assert past[-1] == EndedView(None)
        pieces = await call(list, ada.lines(ReadBody(0, place, opened.message, 900_001)))
        data = b"".join(item.data for item in pieces if isinstance(item, PieceView))
        assert data == bytes([3]) * 299_999


async def test_what_is_wrong_is_told_with_a_status(tmp_path: Path) -> None:
    call = asyncio.to_thread
    async with asyncio.timeout(LIMIT), served(tmp_path / "ada", guest("ada")) as (ada, _):
        place = (await call(ada.ask, OpenPlace())).place.place
        person = AuthorId(b"x" * 32)
        wrong = [
            (409, lambda: ada.ask(ExaminePlace(TopicId(b"x" * 32)))),
            (400, lambda: ada.ask(Announce(place, text="a", body=b"b"))),
            (403, lambda: ada.ask(TalkTo(place, text="a"))),
            (409, lambda: ada.ask(Admit(place, person))),
            (403, lambda: ada.ask(Eject(place, person))),
            (400, lambda: list(ada.lines(ReadBody(0, place, 0)))),
            (400, lambda: ada.ask(ListReceipts(place, 0))),
            (400, lambda: ada.ask(AskToEnter("nonsense"))),
        ]
        for status, asked in wrong:
            with pytest.raises(ControlError) as caught:
                await call(asked)
            assert caught.value.status == status, caught.value
