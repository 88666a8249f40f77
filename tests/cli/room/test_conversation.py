"""What a conversation does with single lines; whole ones are in test_chat.py."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace
from tests.cli.village import LIMIT, Tea

from linnet.api.items import EventView, InsertedView, WarningView
from linnet.cli.output import harmless
from linnet.cli.room.chat import Conversation
from linnet.core.ids import AuthorId, TopicId
from linnet.identity.text import Sort, from_text
from linnet.net.clock import Clock
from linnet.node.client import ControlClient
from linnet.node.people import Alarm


def ids(tea: Tea, room: str) -> tuple[TopicId, AuthorId]:
    """The room, and who reads it."""
    return TopicId(from_text(Sort.TOPIC, room)), AuthorId(from_text(Sort.PERSON, tea.people["ada"]))


class Spoken:
    """A conversation without a terminal."""

    def __init__(self, tea: Tea, room: str) -> None:
        self.shown: list[str] = []
        self.open: Callable[[], ControlClient] = lambda: ControlClient(tea.ada.home)
        self.conversation = Conversation(self.open, *ids(tea, room), self.shown.append)

    def run(self, *lines: str) -> list[str]:
        self.conversation.run(lines, None)
        assert self.conversation.error is None
        return self.shown


def test_nothing_typed_says_nothing(tea: Tea) -> None:
    assert Spoken(tea, tea.room).run("", "   ") == []


def test_quitting_leaves_the_rest_unsaid(tea: Tea) -> None:
    assert Spoken(tea, tea.room).run("/quit", "never said") == []


def test_what_cannot_be_said_is_told(tea: Tea) -> None:
    shown = Spoken(tea, tea.room).run("x" * 300_000, "/nope")
    assert shown[0].startswith("! not sent: too_large")
    assert shown[1] == "there is no /nope; /help tells what there is"


def test_ctrl_c_ends_it_quietly(tea: Tea) -> None:
    def typed() -> list[str]:
        raise KeyboardInterrupt

    spoken = Spoken(tea, tea.room)
    spoken.conversation.run((line for _ in range(1) for line in typed()), None)
    assert spoken.shown == []


@pytest.mark.parametrize("line", ["/ledger", "/members"])
def test_a_look_at_the_room(tea: Tea, line: str) -> None:
    assert len(Spoken(tea, tea.room).run(line)) == 1


@pytest.mark.parametrize("as_json", [False, True])
def test_a_warning_is_shown(tea: Tea, as_json: bool) -> None:
    shown: list[str] = []
    spoken = Spoken(tea, tea.room)
    conversation = Conversation(spoken.open, *ids(tea, tea.room), shown.append, as_json)
    conversation._handle_item(WarningView(Alarm.VERIFIED_NAME, "lp1eve", "bea", "lp1bea"))
    (line,) = shown
    assert ('"alarm":"verified_name"' if as_json else "IS NOT the 'bea' whom you verified") in line
    for client in (conversation._talking, conversation._reading, conversation._looking):
        client.close()
    spoken.run("/quit")


def test_json_is_whole_whatever_a_stranger_says(tea: Tea) -> None:
    shown: list[str] = []
    spoken = Spoken(tea, tea.room)
    conversation = Conversation(spoken.open, *ids(tea, tea.room), shown.append, True)
    text = "a\x7f\u202e\U000e0001b"
    person = tea.people["bea"]
    conversation._handle_item(EventView("le1e", "lt1", person, "00", "message", 0, text.encode(), text=text))
    (line,) = shown
    assert json.loads(harmless(line))["text"] == text, "what the screen prints is JSON still"
    for client in (conversation._talking, conversation._reading, conversation._looking):
        client.close()
    spoken.run("/quit")


def test_older_messages_of_ours_have_the_marks_of_the_ledger(tea: Tea) -> None:
    sent = tea.ada.json("room", "send", tea.room, "an old word of mine")["ids"][0]

    def arrived() -> bool:
        members = tea.ada.json("room", "ledger", tea.room, sent)["events"][0]["members"]
        return all(member["fate"] == "delivered" for member in members)

    clock = Clock()
    limit = clock.now() + LIMIT
    while not arrived():
        assert clock.now() < limit
    spoken = Spoken(tea, tea.room)

    def until_it_is_shown() -> Iterator[str]:
        while not any(line.endswith("an old word of mine") for line in spoken.shown):
            assert clock.now() < limit
            time.sleep(0.01)
        yield from ()

    spoken.conversation.run(until_it_is_shown(), 0.0)
    (line,) = [line for line in spoken.shown if line.endswith("an old word of mine")]
    assert line[6:] == "✓✓ you: an old word of mine"


def test_what_came_late_has_a_mark(tea: Tea) -> None:
    spoken = Spoken(tea, tea.room)
    event = EventView("le1e", "lt1", tea.people["bea"], "00", "message", 0, b"late", text="late", label="bea")
    spoken.conversation._handle_item(InsertedView("le1e", "le1f"))
    spoken.conversation._handle_item(event)
    spoken.conversation._handle_item(replace(event, id="le1g"))
    assert [line[:1] for line in spoken.shown] == ["↥", spoken.shown[1][:1]]
    assert spoken.shown[1][:1] != "↥"
    spoken.run("/quit")
