"""What is read in a room, line by line, and how rooms are told in JSON."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Struct

from linnet.api.items import CaughtUpView, EventView, WarningView
from linnet.api.json_forms import form_of
from linnet.api.operations import BY_COMMAND
from linnet.api.rooms import (
    AskToJoin,
    PersonWarning,
    VerifyPerson,
    content_view,
    room_item_view,
    warning_view,
)
from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import CaughtUp
from linnet.delivery.receipts import Fate
from linnet.event.event import Event, Tail
from linnet.identity.cards import issue_card, revoke
from linnet.identity.keys import SigningKey
from linnet.identity.text import device_text, event_text, person_text, topic_text
from linnet.machine.commands import Command
from linnet.node.people import Alarm
from linnet.rooms.attachments import Attachment
from linnet.rooms.commands import (
    CreateRoom,
    EventFates,
    ExamineLedger,
    KeepChunk,
    LedgerIs,
    MemberFate,
    ReadRoom,
    RelayReport,
    SendToRoom,
    SetLevel,
    SetMembership,
    SetRetention,
    StateEntry,
    StateIs,
)
from linnet.rooms.event_types import (
    Create,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    Redaction,
    Relay,
    Retention,
    Revoked,
    body_of,
)
from linnet.rooms.invitations import Invitation, issue_ticket

ROOM, ADA, BEA = TopicId(b"r" * 32), AuthorId(b"a" * 32), AuthorId(b"b" * 32)
DEVICE, PEER, EVENT = DeviceId(b"d" * 8), PeerId(b"p" * 32), EventId(b"e" * 32)
PERSON, KEY = SigningKey(b"x" * 32), SigningKey(b"y" * 32)
CARD = issue_card(PERSON, KEY.public, 0, 9, "")
TICKET = issue_ticket(KEY, CARD, ROOM, BEA, 5000, b"n" * 8)


def event(kind: str, body: bytes, key: str | None = None) -> Event:
    return Event(EVENT, ROOM, ADA, DEVICE, 3, None, Tail(None, None, 4, None, kind, key, 9, None, body))


def label_of(person: AuthorId, device: DeviceId) -> str:
    return "laptop" if person == ADA else ""


def test_what_people_say_is_text() -> None:
    view = room_item_view(event("message", b"hi"), label_of)
    assert isinstance(view, EventView)
    told = (view.topic, view.text, view.label, view.height, view.content)
    assert told == (topic_text(ROOM), "hi", "laptop", 4, None)
    assert room_item_view(CaughtUp(None, False, None), label_of) == CaughtUpView(None, False, None)


def test_state_says_what_it_sets() -> None:
    view = room_item_view(event("member", body_of(Member(Membership.JOIN)), person_text(ADA)), label_of)
    assert isinstance(view, EventView)
    assert view.key == person_text(ADA)
    assert view.text is None
    assert view.content == {"membership": "join", "reason": None, "invited_by": None}


def test_the_first_event_names_its_room() -> None:
    view = room_item_view(event("create", body_of(Create(1, (BEA,), bytes(16))), ""), label_of)
    assert isinstance(view, EventView)
    assert view.topic == topic_text(TopicId(EVENT))
    assert view.content == {"version": 1, "creators": [person_text(BEA)]}


def test_every_kind_that_nodes_understand() -> None:
    revocation = revoke(PERSON, DEVICE, 5)
    inviter = person_text(AuthorId(PERSON.public))
    said: dict[str, tuple[Struct, dict[str, object]]] = {
        "member": (Member(Membership.JOIN, "tea", TICKET), {"invited_by": inviter}),
        "power": (Power({ADA: 50}, ban=60), {"users": {person_text(ADA): 50}, "events": {}, "ban": 60}),
        "join_rules": (JoinRules(JoinRule.KNOCK), {"rule": "knock"}),
        "relay": (Relay(True, BEA, ("tls://h:1",)), {"active": True, "hints": ["tls://h:1"]}),
        "retention": (Retention(5), {"max_lifetime_ms": 5}),
        "revocation": (Revoked(revocation), {"device": DEVICE.hex()}),
        "redaction": (Redaction(EVENT, "oh"), {"event": event_text(EVENT), "reason": "oh"}),
    }
    for kind, (content, expected) in said.items():
        found = content_view(kind, body_of(content))
        assert found is not None
        assert found.items() >= expected.items(), kind
    attached = body_of(Attachment("../a.txt", "text/plain", 0, 1024, bytes(32), 0, ()))
    assert content_view("attachment", attached) == {"name": "_a.txt", "size": 0, "media": "text/plain"}
    assert content_view("anything", b"\xff") is None
    assert list(content_view("member", b"\xff") or ()) == ["malformed"]


def test_a_warning_between_events() -> None:
    named = PersonWarning(Alarm.VERIFIED_NAME, ADA, "bea", BEA)
    assert warning_view(named) == WarningView(Alarm.VERIFIED_NAME, person_text(ADA), "bea", person_text(BEA))
    device = warning_view(PersonWarning(Alarm.NEW_DEVICE, ADA, "ada", device=DEVICE))
    assert (device.other, device.device) == (None, DEVICE.hex())


def told(value: Struct) -> dict[str, object]:
    """A value as it goes over the wire; what is read back is the same."""
    form = form_of(type(value))
    assert form.write is not None
    assert form.read is not None
    line = msgspec.json.encode(form.write(value))
    assert form.read(msgspec.json.decode(line, type=form.shape)) == value
    found: dict[str, object] = msgspec.json.decode(line)
    return found


def test_an_invitation_is_told_with_its_end_and_read_back() -> None:
    invitation = Invitation(TICKET, (Contact(PEER, ("tls://h:1",)),), "tea")
    assert told(invitation) == {
        "text": invitation.text,
        "room": topic_text(ROOM),
        "name": "tea",
        "person": person_text(BEA),
        "expires_at": 5.0,
        "contacts": [f"{device_text(PEER)}@tls://h:1"],
    }


def test_state_is_told_with_what_it_says() -> None:
    entry = StateEntry("join_rules", "", event("join_rules", body_of(JoinRules(JoinRule.KNOCK)), ""))
    power = Power({ADA: 50}, ban=60)
    state = told(StateIs(ROOM, (entry,), (), power, JoinRule.KNOCK, (EVENT,), (), b"\x01"))
    assert (state["digest"], state["heads"]) == ("01", [event_text(EVENT)])
    assert msgspec.convert(state["power"], dict[str, object])["users"] == {person_text(ADA): 50}
    [shown] = msgspec.convert(state["entries"], list[dict[str, dict[str, object] | str]])
    assert isinstance(shown["event"], dict)
    assert shown["event"]["content"] == {"rule": "knock"}


def test_the_ledger_and_a_relay_are_told_with_ids_as_text() -> None:
    refused = MemberFate(BEA, Fate.REFUSED, None, (PEER,), Reason.BANNED)
    ledger = told(LedgerIs(ROOM, (EventFates(EVENT, "message", 9, (refused,)),)))
    [line] = msgspec.convert(ledger["events"], list[dict[str, object]])
    assert line["members"] == [
        {
            "person": person_text(BEA),
            "fate": "refused",
            "at": None,
            "relays": [device_text(PEER)],
            "reason": "banned",
        }
    ]
    assert told(RelayReport(b"\x01" * 8, ())) == {"epoch": "01" * 8, "rooms": []}


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        (CreateRoom, {"name": ""}),
        (CreateRoom, {"rule": "nobody"}),
        (CreateRoom, {"other": 1}),
        (AskToJoin, {"patience": 0}),
        (AskToJoin, {"patience": 601}),
        (AskToJoin, {"contacts": [""]}),
        (SetMembership, {"person": "lp1", "membership": "owner"}),
        (SetLevel, {"level": 2**53}),
        (SetRetention, {"seconds": 0}),
        (SendToRoom, {"texts": [""] * 257}),
        (SendToRoom, {"deadline": 0}),
        (KeepChunk, {}),
        (KeepChunk, {"digest": "00", "data": ""}),
        (VerifyPerson, {}),
        (VerifyPerson, {"verified": 1}),
        (VerifyPerson, {"verified": True, "by": "whom"}),
    ],
)
def test_what_is_asked_has_bounds(command: type[Command[object]], wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(wrong), type=BY_COMMAND[command].shape)


def test_a_query_comes_as_text() -> None:
    reading, looking = BY_COMMAND[ReadRoom], BY_COMMAND[ExamineLedger]
    room = msgspec.convert({"room": topic_text(ROOM)}, reading.path_shape)
    query = msgspec.convert({"since": "0", "state": "false", "ack": "manual"}, reading.shape, strict=False)
    assert reading.read(room, query) == ReadRoom(0, ROOM, 0.0, state=False)
    limited = msgspec.convert({"limit": "5"}, looking.shape, strict=False)
    assert looking.read(room, limited) == ExamineLedger(ROOM, limit=5)
