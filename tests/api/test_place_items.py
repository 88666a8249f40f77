"""What is handed over of a place, as lines: readable for people, and whole for programs beside a node."""

from __future__ import annotations

import msgspec
import pytest

from linnet.api.items import EndedView
from linnet.api.json_forms import to_json
from linnet.api.operations import PLACE_ITEM
from linnet.api.places import (
    ChangedView,
    KnockedView,
    LostView,
    PieceView,
    VariableView,
    message_view,
    modifier_of,
    place_item_of,
    place_item_view,
    variable_view,
)
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended
from linnet.identity.text import person_text, topic_text
from linnet.places.address import PlaceAddress
from linnet.places.channel.packet import Modifier
from linnet.places.commands import (
    Announce,
    GuestIs,
    GuestsAre,
    ObjectsAre,
    PlaceObject,
    ReceiptIs,
    Reject,
    Talked,
    TalkTo,
)
from linnet.places.fragment_writer import NYM
from linnet.places.items import Body, Changed, Knocked, Lost, PlaceItem, Said, TakenBack

PLACE, ADA = TopicId(b"p" * 32), AuthorId(b"a" * 32)
AT, PERSON = topic_text(PLACE), person_text(ADA)
KNOCK = Knocked(PLACE, ADA, "_request_place_enter", (Modifier(":", "_x", b"1"),), b"hi")
SAID = Said(PLACE, 3, None, ADA, "_message", (Modifier("=", "_x", b"\xff"),), True)


@pytest.mark.parametrize(
    "item",
    [
        SAID,
        Said(PLACE, 3, ADA, ADA, "_request", (), False),
        Body(PLACE, 3, None, 7, b"\x00x", False),
        Body(PLACE, 3, ADA, 0, b"", True),
        KNOCK,
        Knocked(PLACE, ADA, "_request_place_enter", (), b"\xff"),
        Changed(PLACE, 3, "_a", b"\xff"),
        Changed(PLACE, 3, "_a", b""),
        Changed(PLACE, 3, "_a", None),
        Lost(PLACE, 1, 2, Reason.NOT_HELD),
        TakenBack(PLACE, (4, 5)),
        Ended(Reason.SHUTDOWN),
        Ended(None),
    ],
)
def test_each_item_arrives_as_it_was(item: PlaceItem | Ended) -> None:
    raw = msgspec.json.encode(place_item_view(item))
    assert place_item_of(msgspec.json.decode(raw, type=PLACE_ITEM.shape)) == item


def test_lines_are_readable_where_they_are_text() -> None:
    assert place_item_view(Changed(PLACE, 3, "_a", b"x")) == ChangedView(AT, 3, "_a", b"x", "x")
    assert place_item_view(Changed(PLACE, 3, "_a", b"\xff")) == ChangedView(AT, 3, "_a", b"\xff", None)
    assert place_item_view(Lost(PLACE, 1, 2, Reason.NOT_HELD)) == LostView(AT, 1, 2, "not_held")
    assert place_item_view(Ended(Reason.SHUTDOWN)) == EndedView("shutdown")
    assert place_item_view(Body(PLACE, 2, None, 7, b"x", True)) == PieceView(AT, 2, 7, b"x", True)
    variables = (VariableView(":", "_x", b"1", "1"),)
    assert place_item_view(KNOCK) == KnockedView(AT, PERSON, "_request_place_enter", variables, "hi")
    whole = message_view(SAID, 5, b"hello")
    assert (whole.text, whole.size, whole.historic, whole.author) == ("hello", 5, True, PERSON)
    assert (message_view(SAID, 5, None).text, message_view(SAID, 1, b"\xff").text) == (None, None)
    assert place_item_of(whole) is None


def test_a_notice_names_people_as_they_are_named_everywhere() -> None:
    view = variable_view(Modifier(":", NYM, ADA.hex().encode()))
    assert view.text == PERSON
    assert modifier_of(view) == Modifier(":", NYM, ADA.hex().encode())
    assert modifier_of(VariableView("=", "_topic", text="tea")) == Modifier("=", "_topic", b"tea")


def test_answers_name_people_and_tell_text() -> None:
    guests = GuestsAre(PLACE, (GuestIs(ADA, 3, None),), (ADA,), ("hi",))
    assert msgspec.json.decode(to_json(guests)) == {
        "place": AT,
        "guests": [{"person": PERSON, "since": 3, "upto": None}],
        "waiting": [PERSON],
        "said": ["hi"],
    }
    assert msgspec.json.decode(to_json(ReceiptIs(ADA, "delivered", 9)))["person"] == PERSON
    objects = ObjectsAre(PLACE, (PlaceObject("_a", b"\xff"), PlaceObject("_b", b"x")), 9)
    told = msgspec.json.decode(to_json(objects))["objects"]
    assert [each.get("text") for each in told] == [None, "x"]
    voice = msgspec.json.decode(to_json(Talked(PLACE, 4, PeerId(b"d" * 32))))["voice"]
    assert voice.startswith("ld1")


def test_text_and_values_become_body_and_modifiers() -> None:
    said = Announce(
        PLACE,
        modifiers=(Modifier("=", "_a", b"0"),),
        text="hello",
        state={"_a": "1"},
        added={"_list_b": "|x"},
        taken={"_amount_c": "2"},
        variables={"_d": "3"},
    ).plain
    assert said.body == b"hello"
    assert [(each.operator, each.name, each.value) for each in said.modifiers] == [
        ("=", "_a", b"0"),
        ("=", "_a", b"1"),
        ("+", "_list_b", b"|x"),
        ("-", "_amount_c", b"2"),
        (":", "_d", b"3"),
    ]
    assert said.plain == said
    talked = TalkTo(PLACE, text="psst", variables={"_d": "3"}).plain
    assert (talked.body, talked.modifiers) == (b"psst", (Modifier(":", "_d", b"3"),))
    elsewhere = PlaceAddress(PLACE, ())
    rejected = Reject(PLACE, ADA, text="no", elsewhere=elsewhere).plain
    assert rejected.modifiers == (Modifier(":", "_place", elsewhere.text.encode()),)
    assert (rejected.body, rejected.plain) == (b"no", rejected)
