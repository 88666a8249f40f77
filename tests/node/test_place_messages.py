"""Messages put together from pieces, with what is handled and what is lost."""

from __future__ import annotations

from typing import TypeVar

from linnet.core.ids import AuthorId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed
from linnet.delivery.items import Ended
from linnet.machine.commands import Command, Done, answer_to
from linnet.node.background import Background
from linnet.node.place_messages import Listening, Message, PlaceItems
from linnet.places.channel.packet import Modifier
from linnet.places.commands import Watching, WatchPlace
from linnet.places.items import Body, Lost, Said

R = TypeVar("R")
PLACE = TopicId(bytes(32))
ADA, BEA = AuthorId(b"a" * 32), AuthorId(b"b" * 32)


def said(message: int, nym: AuthorId | None = None) -> Said:
    return Said(PLACE, message, nym, ADA, "_message", (Modifier(":", "_x", b"1"),), False)


def body(message: int, offset: int, data: bytes, last: bool = False, nym: AuthorId | None = None) -> Body:
    return Body(PLACE, message, nym, offset, data, last)


class Scene:
    def __init__(self, background: Background, largest: int = 10) -> None:
        self.consumed: list[int] = []
        self.items = PlaceItems(WatchPlace(1, PLACE), self.ask, background.spawn, lambda *_: None)
        self.listening = Listening(self.items, lambda *_: self.items, largest)

    async def ask(self, command: Command[R]) -> R:
        if isinstance(command, Consumed):
            self.consumed.append(command.items)
        return answer_to(command, Watching(PLACE, 1) if isinstance(command, WatchPlace) else Done())


async def test_pieces_of_several_messages_are_put_together() -> None:
    async with Background() as background:
        scene = Scene(background)
        scene.items.deliver(
            [
                body(1, 0, b"began before"),
                said(2),
                body(2, 0, b"he"),
                said(3),
                body(3, 0, b"in between"),
                body(3, 10, b"", True),
                body(2, 2, b"llo", True),
                said(4, BEA),
                body(4, 0, b"a request of any length", True, BEA),
                Ended(None),
            ]
        )
        heard = [message async for message in scene.listening]
        assert [(each.number, each.text, each.nym) for each in heard] == [
            (3, "in between", None),
            (2, "hello", None),
            (4, "a request of any length", BEA),
        ]
        assert heard[0].variables == {"_x": b"1"}
        assert repr(heard[1]) == "Message(2, '_message', 5 bytes)"


async def test_a_body_longer_than_asked_for_is_left_in_the_store() -> None:
    async with Background() as background:
        scene = Scene(background, largest=4)
        scene.items.deliver([said(2), body(2, 0, b"hello"), body(2, 5, b" you", True), Ended(None)])
        (message,) = [each async for each in scene.listening]
        assert (message.body, message.text, message.size) == (None, "", 9)


async def test_what_is_lost_is_counted_and_its_pieces_are_dropped() -> None:
    async with Background() as background:
        scene = Scene(background)
        lost = Lost(PLACE, 2, 4, Reason.NOT_HELD)
        scene.items.deliver([said(2), lost, body(2, 0, b"x", True), Ended(None)])
        assert [each async for each in scene.listening] == []
        assert (list(scene.listening.lost), scene.listening.lost_messages) == ([lost], 3)


async def test_items_are_handled_with_the_message_that_they_make() -> None:
    async with Background() as background:
        scene = Scene(background)
        listening = scene.listening
        await listening.open()
        scene.items.deliver([said(2), body(2, 0, b"x", True), said(3), body(3, 0, b"y")])
        (first,) = await listening.take(10)
        assert isinstance(first, Message)
        assert listening.unhandled == 1
        await listening.consume(1)
        assert scene.consumed == [4], "with what followed and is not whole"
        scene.items.deliver([body(3, 1, b"", True)])
        (second,) = await listening.take(10)
        assert isinstance(second, Message)
        assert second.text == "y"
        await listening.acknowledge()
        assert scene.consumed == [4, 1]
