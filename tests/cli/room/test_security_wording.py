from __future__ import annotations

from msgspec.structs import replace

from linnet.cli.room import security_wording as wording
from linnet.cli.room.names import Names
from linnet.node.security_types import DeviceKeysView, PersonReply, SecurityReply, TheftView
from linnet.rooms.content import Newcomers
from linnet.rooms.results import Hindrance, KeyStanding

HOUR = 3600.0
DEVICE = DeviceKeysView("lp1ada", "phone", "00" * 8, KeyStanding.HOLDS, HOUR, 2, True, True)
REPLY = SecurityReply(
    "lt1",
    True,
    Newcomers.FROM_NOW,
    True,
    (DEVICE,),
    (),
    False,
    False,
    2 * HOUR,
    {"before_joining": 2, "strange": 1},
    TheftView(7, 1, 2, 3, 4),
    (),
)


def test_whom_a_room_is_for() -> None:
    assert "whoever carries it" in wording.protection(replace(REPLY, encrypted=False), "tea")
    assert wording.protection(REPLY, "tea").startswith("tea is encrypted")
    assert wording.protection(REPLY, "tea").endswith("those who join read from then on")
    shared = wording.protection(replace(REPLY, newcomers=Newcomers.SHARED), "tea")
    assert shared.endswith("may be shown what was said before")


def test_every_standing_and_every_hindrance_has_words() -> None:
    assert {each.value for each in KeyStanding} == set(wording.STANDING)
    assert {each.value for each in Hindrance} == set(wording.WAITING) | set(wording.FIRST)


def test_devices() -> None:
    other = replace(DEVICE, label="", this=False, standing=KeyStanding.NO_PREKEYS, key_age=None)
    rows = wording.device_rows(replace(REPLY, devices=(DEVICE, other)), Names(own="lp1ada"))
    assert rows[0] == ("you", "0000000000000000 (phone), this one", "holds them", "1h 0m", 2, None)
    assert wording.device_rows(REPLY, Names())[0][-1] is True
    assert rows[1][1:4] == ("0000000000000000", "none yet: it has not told how to reach it", None)


def test_what_happens_to_the_next_message() -> None:
    renewed = "the keys of this device are renewed in 2h 0m"
    assert wording.sending(REPLY) == ["nothing stands before your next message", renewed]
    busy = wording.sending(replace(REPLY, hindrances=(Hindrance.ACKS, Hindrance.HEAL)))
    assert busy[0].startswith("before your next message this device will acknowledge")
    assert "renew its keys" in busy[0]
    stuck = wording.sending(replace(REPLY, hindrances=(Hindrance.NOT_LET_IN,), renewal_in=None))
    assert stuck == [f"your next message waits: {wording.WAITING['not_let_in']}"]


def test_what_cannot_be_read() -> None:
    assert wording.unread(REPLY) == [
        "2 messages: said before you were let in: not for you to read",
        "1 message: cannot be read: strange",
    ]


def test_what_a_thief_could_read() -> None:
    said = "\n".join(wording.theft(REPLY))
    for words in ("7 messages that this device keeps", "3 keys", "1 message that", "2 secrets", "(in 2h 0m)"):
        assert words in said
    assert "4 other devices until its next update" in said
    less = "\n".join(wording.theft(replace(REPLY, theft=TheftView(0, 0, 0, 0, 0), holds_keys=False)))
    assert "everything said" not in less
    assert "secret" not in less
    assert wording.theft(replace(REPLY, theft=None)) == []


def test_a_person() -> None:
    number = " ".join(["12345"] * 12)
    one = PersonReply("lp1ada", ("ada",), ("00",), 0.0, None, number, "some words")
    lines = wording.person(one)
    assert [line for line in lines if "12345" in line] == ["  " + " ".join(["12345"] * 6)] * 2
    assert "  some words" in lines
    assert "--verify" in lines[2]
    assert wording.person(replace(one, verified_at=1.0))[2].startswith("verified ")
    own = wording.person(PersonReply("lp1me", (), (), None, None, None, None))
    assert own[1] == "known as no name; 0 devices; never seen here"
    assert own[2].startswith("this is you")
