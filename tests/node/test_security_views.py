from __future__ import annotations

from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.safety import safety_number, safety_words
from linnet.node.control_types import WarningView
from linnet.node.known_people import Alarm, KnownPerson, PersonWarning
from linnet.node.room_views import person_text
from linnet.node.security_types import DeviceKeysView, PersonReply, TheftView
from linnet.node.security_views import person_view, security_view, warning_view
from linnet.rooms.content import Newcomers
from linnet.rooms.results import DeviceKeys, Hindrance, KeyStanding, SecurityIs, Theft

ADA, BEA = AuthorId(b"a" * 32), AuthorId(b"b" * 32)
PHONE, LAPTOP = DeviceId(b"p" * 8), DeviceId(b"l" * 8)
ROOM = TopicId(b"r" * 32)
WARNING = PersonWarning(Alarm.VERIFIED_NAME, ADA, "bea", BEA)


def label_of(person: AuthorId, device: DeviceId) -> str:
    return "phone" if device == PHONE else ""


def test_a_room_with_its_devices() -> None:
    keys = DeviceKeys(ADA, PHONE, KeyStanding.HOLDS, 5.0, 2, True)
    found = SecurityIs(
        ROOM,
        Newcomers.SHARED,
        True,
        (keys,),
        (Hindrance.HEAL, Hindrance.ACKS),
        60.0,
        ((Reason.KEY_SPENT, 3),),
        Theft(1, 2, 3, 4, 5),
    )
    view = security_view(found, (WARNING,), label_of, lambda person: person == ADA)
    assert view.devices == (
        DeviceKeysView(person_text(ADA), "phone", PHONE.hex(), KeyStanding.HOLDS, 5.0, 2, True, True),
    )
    assert (view.encrypted, view.would_wait, view.heal_pending) == (True, False, True)
    assert (view.renewal_in, view.unread, view.theft) == (60.0, {"key_spent": 3}, TheftView(1, 2, 3, 4, 5))
    assert view.warnings == (warning_view(WARNING),)


def test_a_public_room_and_one_that_waits() -> None:
    view = security_view(SecurityIs(ROOM, None), (), label_of, lambda _: False)
    assert (view.encrypted, view.newcomers, view.theft, view.would_wait) == (False, None, None, False)
    waiting = SecurityIs(ROOM, Newcomers.FROM_NOW, hindrances=(Hindrance.NOT_LET_IN,))
    assert security_view(waiting, (), label_of, lambda _: False).would_wait


def test_a_warning() -> None:
    assert warning_view(WARNING) == WarningView(
        Alarm.VERIFIED_NAME, person_text(ADA), "bea", person_text(BEA)
    )
    device = warning_view(PersonWarning(Alarm.NEW_DEVICE, ADA, "ada", device=LAPTOP))
    assert (device.other, device.device) == (None, LAPTOP.hex())


def test_a_person_with_names_and_devices_in_the_order_of_time() -> None:
    known = KnownPerson(1.0, {"new": 3.0, "old": 1.0}, {LAPTOP: 2.0, PHONE: 1.0}, 4.0)
    assert person_view(BEA, ADA, known) == PersonReply(
        person_text(ADA),
        ("old", "new"),
        (PHONE.hex(), LAPTOP.hex()),
        1.0,
        4.0,
        safety_number(ADA, BEA),
        safety_words(ADA, BEA),
    )


def test_a_stranger_has_a_number_and_we_ourselves_have_none() -> None:
    stranger = person_view(BEA, ADA, None)
    assert (stranger.labels, stranger.first_seen, stranger.verified_at) == ((), None, None)
    assert stranger.safety_number is not None
    assert person_view(BEA, BEA, None).safety_number is None
