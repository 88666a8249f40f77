from __future__ import annotations

from msgspec import Struct

from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import CaughtUp
from linnet.event.event import Event, Tail
from linnet.identity.cards import issue_card, revoke
from linnet.identity.keys import SigningKey
from linnet.node.control_types import CaughtUpView, EventView
from linnet.node.room_types import MemberFateView, MemberView
from linnet.node.room_views import (
    content_view,
    event_text,
    invitation_view,
    ledger_view,
    person_text,
    relay_report_view,
    room_item_view,
    room_text,
    sent_view,
    state_view,
)
from linnet.rooms.attachments import Attachment
from linnet.rooms.content import (
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
from linnet.rooms.invitation import Invitation
from linnet.rooms.results import (
    EventFates,
    Fate,
    LedgerIs,
    MemberFate,
    RelayKnowledge,
    RelayReport,
    RelayRoomReport,
    RoomMember,
    Sent,
    StateEntry,
    StateIs,
)
from linnet.rooms.ticket import issue_ticket

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
    assert (view.topic, view.text, view.label, view.height, view.content) == (
        room_text(ROOM),
        "hi",
        "laptop",
        4,
        None,
    )
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
    assert view.topic == room_text(TopicId(EVENT))
    assert view.content == {"version": 1, "creators": [person_text(BEA)]}


def test_every_kind_that_nodes_understand() -> None:
    revocation = revoke(PERSON, DEVICE, 5)
    said: dict[str, tuple[Struct, dict[str, object]]] = {
        "member": (Member(Membership.JOIN, "tea", TICKET), {"invited_by": person_text(PERSON.public)}),
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


def test_an_invitation_is_shown_with_its_end() -> None:
    invitation = Invitation(TICKET, (Contact(PEER, ("tls://h:1",)),), "tea")
    view = invitation_view(invitation)
    assert (view.text, view.expires_at, view.name) == (invitation.text, 5.0, "tea")
    assert view.person == person_text(BEA)
    assert view.contacts[0].endswith("@tls://h:1")


def test_what_was_sent() -> None:
    view = sent_view(Sent(ROOM, (EVENT,), 2, (PEER,)))
    assert (view.ids, view.neighbors, len(view.relays)) == ((event_text(EVENT),), 2, 1)


def test_the_state_with_people_and_their_labels() -> None:
    members = (
        RoomMember(ADA, Membership.JOIN, None, True, (DEVICE,), False),
        RoomMember(BEA, Membership.BAN, 0, False, (), False),
        RoomMember(ADA, Membership.JOIN, 0, False, (), False, (DEVICE,)),
    )
    entry = StateEntry("name", "", event("name", "café".encode(), ""))
    view = state_view(
        StateIs(ROOM, (entry,), members, Power(), JoinRule.INVITE, (EVENT,), (EVENT,), b"\x01"),
        label_of,
        lambda person: person == BEA,
    )
    assert (view.entries[0].text, view.entries[0].content, view.digest) == ("café", None, "01")
    assert view.members[0] == MemberView(
        person_text(ADA), "laptop", Membership.JOIN, None, True, (DEVICE.hex(),), False
    )
    assert (view.members[1].label, view.members[1].verified) == ("", True)
    offline = view.members[2]
    assert (offline.label, offline.key_devices, offline.verified) == ("laptop", (DEVICE.hex(),), False)


def test_the_ledger_names_people() -> None:
    fates = (
        MemberFate(ADA, Fate.AT_RELAY, 5.0, (PEER,), None),
        MemberFate(BEA, Fate.REFUSED, None, (), Reason.BANNED),
    )
    view = ledger_view(LedgerIs(ROOM, (EventFates(EVENT, "message", 9, fates),)), {BEA: "phone"})
    first, second = view.events[0].members
    assert (first.label, first.fate, len(first.relays)) == ("", Fate.AT_RELAY, 1)
    assert second == MemberFateView(person_text(BEA), "phone", Fate.REFUSED, None, (), "banned")


def test_a_relay_tells_all_it_knows() -> None:
    known = RelayKnowledge(ADA, Membership.JOIN, 1, 2, 3, 4, 5, 6.0, 7, 8)
    report = RelayReport(b"\x01" * 8, (RelayRoomReport(ROOM, 1, 2, 3, 4, 5.0, 6, 7, 8, (known,), 9, 10),))
    view = relay_report_view(report)
    assert (view.epoch, view.rooms[0].room, view.rooms[0].plain_state_events) == (
        "01" * 8,
        room_text(ROOM),
        8,
    )
    assert view.rooms[0].people[0].person == person_text(ADA)
    assert view.rooms[0].people[0].last_seen == 6.0
    assert view.rooms[0].people[0].key_devices == 8
    assert (view.rooms[0].group_events, view.rooms[0].group_bytes) == (9, 10)
