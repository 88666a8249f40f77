"""What a node tells of a room's security and of people, beside what its machine knows."""

from __future__ import annotations

from typing import Any

import pytest

from linnet.api.rooms import LookUpPerson, PersonWarning, ReportSecurity
from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.safety import safety_number, safety_words
from linnet.node.people import Alarm, KnownPerson, People, RoomAnswers
from linnet.rooms.commands import DeviceKeys, ExamineSecurity, Hindrance, KeyStanding, SecurityIs, Theft
from linnet.rooms.event_types import Newcomers

ROOM, ME, ADA = TopicId(b"r" * 32), AuthorId(b"m" * 32), AuthorId(b"a" * 32)
PHONE, LAPTOP = DeviceId(b"p" * 8), DeviceId(b"l" * 8)
WARNING = PersonWarning(Alarm.SAME_NAME, ADA, "ada", ME)
KEYS = DeviceKeys(ADA, PHONE, KeyStanding.HOLDS, 5.0, 2, True)
SECURITY = SecurityIs(ROOM, Newcomers.SHARED, True, (KEYS,), (), 60.0, ((Reason.KEY_SPENT, 3),), None)


class Known(People):
    """People whom the test says are known."""

    def __init__(self, **known: KnownPerson) -> None:
        self._known = {AuthorId(name[:1].encode() * 32): one for name, one in known.items()}

    async def look(self, room: TopicId) -> tuple[PersonWarning, ...]:
        """Return the one warning that there is."""
        assert room == ROOM
        return (WARNING,)


def answers_of(security: SecurityIs = SECURITY, **known: KnownPerson) -> RoomAnswers:
    async def ask(command: Any) -> Any:  # noqa: ANN401 - any command
        assert command == ExamineSecurity(ROOM)
        return security

    return RoomAnswers(ME, Known(**known), lambda _, device: device[:1].decode(), lambda: 0.0, ask)


@pytest.mark.parametrize(
    ("hindrances", "would_wait", "heals"),
    [
        ((), False, False),
        ((Hindrance.ACKS, Hindrance.SURPLUS, Hindrance.MISSING), False, False),
        ((Hindrance.HEAL, Hindrance.ACKS), False, True),
        ((Hindrance.NOT_LET_IN,), True, False),
        ((Hindrance.OUT_OF_STEP,), True, False),
        ((Hindrance.NEWCOMERS, Hindrance.HEAL), True, True),
    ],
)
async def test_what_the_next_message_waits_for(
    hindrances: tuple[Hindrance, ...], would_wait: bool, heals: bool
) -> None:
    security = SecurityIs(ROOM, Newcomers.FROM_NOW, hindrances=hindrances)
    found = await answers_of(security).report_security(ReportSecurity(ROOM))
    assert (found.hindrances, found.would_wait, found.heal_pending) == (hindrances, would_wait, heals)


async def test_an_encrypted_room_with_its_devices_and_warnings() -> None:
    verified = KnownPerson(1.0, verified_at=2.0)
    found = await answers_of(ada=verified).report_security(ReportSecurity(ROOM))
    assert (found.encrypted, found.newcomers, found.holds_keys) == (True, Newcomers.SHARED, True)
    (holder,) = found.devices
    assert (holder.person, holder.label, holder.device) == (ADA, "p", PHONE)
    assert (holder.standing, holder.key_age, holder.pending) == (KeyStanding.HOLDS, 5.0, 2)
    assert (holder.is_this, holder.is_verified) == (True, True)
    assert (found.renewal_in, found.unread, found.warnings) == (60.0, {"key_spent": 3}, (WARNING,))
    theft = Theft(1, 2, 3, 4, 5)
    robbed = await answers_of(SecurityIs(ROOM, None, theft=theft)).report_security(ReportSecurity(ROOM))
    assert (robbed.encrypted, robbed.newcomers, robbed.theft) == (False, None, theft)


async def test_the_names_and_devices_of_a_person_come_in_the_order_of_time() -> None:
    known = KnownPerson(1.0, {"new": 3.0, "old": 1.0}, {LAPTOP: 2.0, PHONE: 1.0}, 4.0)
    found = await answers_of(ada=known).look_up_person(LookUpPerson(ADA))
    assert (found.labels, found.devices) == (("old", "new"), (PHONE, LAPTOP))
    assert (found.first_seen, found.verified_at) == (1.0, 4.0)
    assert (found.safety_number, found.safety_words) == (safety_number(ME, ADA), safety_words(ME, ADA))


async def test_a_stranger_has_a_number_and_we_ourselves_have_none() -> None:
    stranger = await answers_of().look_up_person(LookUpPerson(ADA))
    assert (stranger.labels, stranger.devices, stranger.first_seen) == ((), (), None)
    assert stranger.verified_at is None
    assert stranger.safety_number is not None
    ours = await answers_of().look_up_person(LookUpPerson(ME))
    assert (ours.safety_number, ours.safety_words) == (None, None)
