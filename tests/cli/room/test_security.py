from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace
from tests.cli.shell import Linnet
from tests.cli.village import Tea, up

from linnet.api.rooms import KeyHolder, PersonReport, SecurityReport
from linnet.cli.room import security
from linnet.cli.room.words import Names
from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.rooms.commands import Hindrance, KeyStanding, Theft
from linnet.rooms.event_types import Newcomers


def test_who_holds_keys_and_what_a_thief_could_read(tea: Tea) -> None:
    tea.until(lambda: tea.bea.json("room", "security", "tea")["holds_keys"])
    said = tea.bea.ok("room", "security", "tea")
    assert said.startswith("tea is encrypted: its members' devices can read it")
    assert said.count("holds them") >= 2
    assert "this one" in said
    assert "a thief of this device could read now:" in said
    assert "until its next update (in " in said
    found = tea.bea.json("room", "security", "tea")
    assert {each["label"] for each in found["devices"]} >= {"ada", "bea"}


def test_a_public_room_says_plainly_who_can_read_it(tea: Tea) -> None:
    tea.ada.ok("room", "create", "market", "--public")
    said = tea.ada.ok("room", "security", "market")
    assert said.startswith("market is not encrypted: whoever carries it")
    assert "thief" not in said


def test_all_rooms_in_short(tea: Tea, running: Linnet) -> None:
    rows = [line.split() for line in tea.bea.ok("room", "security").splitlines()]
    assert ["tea", tea.room, "yes"] in [row[:3] for row in rows]
    assert tea.room in [each["room"] for each in tea.bea.json("room", "security")["rooms"]]
    assert "no rooms" in running.ok("room", "security")


def test_two_compare_and_one_notes_it(tea: Tea) -> None:
    tea.another("numbers")
    ours = tea.ada.json("room", "security", "numbers", "--person", "bea")
    theirs = tea.bea.json("room", "security", "--person", tea.people["ada"])
    assert ours["safety_number"] == theirs["safety_number"]
    said = tea.ada.ok("room", "security", "numbers", "--person", "bea")
    assert " ".join(ours["safety_number"].split()[:4]) in said
    assert ours["safety_words"] in said
    assert "not verified" in said
    try:
        assert "verified 20" in tea.ada.ok("room", "security", "numbers", "--person", "bea", "--verify")
        rows = [line.split() for line in tea.ada.ok("room", "members", "numbers").splitlines()]
        assert [row[-2:] for row in rows if row[0] == "bea"] == [["yes", tea.people["bea"]]]
    finally:
        assert "not verified" in tea.ada.ok("room", "security", "numbers", "--person", "bea", "--unverify")


def test_what_is_asked_for_must_make_sense(tea: Tea) -> None:
    assert "--person WHO" in tea.ada.fails(2, "room", "security", "tea", "--verify")
    assert "in which room" in tea.ada.fails(2, "room", "security", "--person", "bea")


def test_another_under_a_known_name_is_told_once_to_who_reads(tea: Tea, tmp_path: Path) -> None:
    room = tea.another("masks")
    read = ("room", "read", "masks", "--from", "beginning", "--timeout", "0.5")
    assert tea.ada.run(*read).stderr == ""
    (tmp_path / "x").mkdir()
    with up(tmp_path / "x" / "bea") as eve:
        eve.ok("room", "join", tea.ada.ok("room", "invite", "masks").strip())
        person = eve.json("status")["person"]
        tea.until(lambda: tea.ada.json("room", "security", room)["warnings"])
        first, second = (tea.ada.run(*read).stderr for _ in range(2))
    assert first.startswith(f"! another person ({person[:19]}…) is called 'bea'")
    assert second == ""
    assert "is called 'bea'" in tea.ada.ok("room", "security", "masks")


ADA, ROOM = AuthorId(b"a" * 32), TopicId(b"r" * 32)


HOUR = 3600.0


DEVICE = KeyHolder(ADA, "phone", DeviceId(bytes(8)), KeyStanding.HOLDS, HOUR, 2, True, True)


REPLY = SecurityReport(
    ROOM,
    True,
    Newcomers.FROM_NOW,
    True,
    (DEVICE,),
    (),
    False,
    False,
    2 * HOUR,
    {"before_joining": 2, "strange": 1},
    Theft(7, 1, 2, 3, 4),
    (),
)


def test_whom_a_room_is_for() -> None:
    assert "whoever carries it" in security.protection_text(replace(REPLY, encrypted=False), "tea")
    assert security.protection_text(REPLY, "tea").startswith("tea is encrypted")
    assert security.protection_text(REPLY, "tea").endswith("those who join read from then on")
    shared = security.protection_text(replace(REPLY, newcomers=Newcomers.SHARED), "tea")
    assert shared.endswith("may be shown what was said before")


def test_every_standing_and_every_hindrance_has_words() -> None:
    assert {each.value for each in KeyStanding} == set(security.STANDING)
    assert {each.value for each in Hindrance} == set(security.WAITING) | set(security.FIRST)


def test_devices() -> None:
    other = replace(DEVICE, label="", is_this=False, standing=KeyStanding.NO_PREKEYS, key_age=None)
    rows = security.device_rows(replace(REPLY, devices=(DEVICE, other)), Names(own=ADA))
    assert rows[0] == ("you", "0000000000000000 (phone), this one", "holds them", "1h 0m", 2, None)
    assert security.device_rows(REPLY, Names())[0][-1] is True
    assert rows[1][1:4] == ("0000000000000000", "none yet: it has not told how to reach it", None)


def test_what_happens_to_the_next_message() -> None:
    renewed = "the keys of this device are renewed in 2h 0m"
    assert security.sending_lines(REPLY) == ["nothing stands before your next message", renewed]
    busy = security.sending_lines(replace(REPLY, hindrances=(Hindrance.ACKS, Hindrance.HEAL)))
    assert busy[0].startswith("before your next message this device will acknowledge")
    assert "renew its keys" in busy[0]
    stuck = security.sending_lines(replace(REPLY, hindrances=(Hindrance.NOT_LET_IN,), renewal_in=None))
    assert stuck == [f"your next message waits: {security.WAITING['not_let_in']}"]


def test_what_cannot_be_read() -> None:
    assert security.unread_lines(REPLY) == [
        "2 messages: said before you were let in: not for you to read",
        "1 message: cannot be read: strange",
    ]


def test_what_a_thief_could_read() -> None:
    said = "\n".join(security.theft_lines(REPLY))
    for words in ("7 messages that this device keeps", "3 keys", "1 message that", "2 secrets", "(in 2h 0m)"):
        assert words in said
    assert "4 other devices until its next update" in said
    less = "\n".join(security.theft_lines(replace(REPLY, theft=Theft(0, 0, 0, 0, 0), holds_keys=False)))
    assert "everything said" not in less
    assert "secret" not in less
    assert security.theft_lines(replace(REPLY, theft=None)) == []


def test_a_person() -> None:
    number = " ".join(["12345"] * 12)
    one = PersonReport(ADA, ("ada",), (DeviceId(bytes(8)),), 0.0, None, number, "some words")
    lines = security.person_lines(one)
    assert [line for line in lines if "12345" in line] == ["  " + " ".join(["12345"] * 6)] * 2
    assert "  some words" in lines
    assert "--verify" in lines[2]
    assert security.person_lines(replace(one, verified_at=1.0))[2].startswith("verified ")
    own = security.person_lines(PersonReport(ADA, (), (), None, None, None, None))
    assert own[1] == "known as no name; 0 devices; never seen here"
    assert own[2].startswith("this is you")
