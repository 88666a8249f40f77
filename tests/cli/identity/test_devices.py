"""Devices that are linked from another, and one that is lost and revoked."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import msgspec
import pytest
from tests.cli.identity.conftest import Lost
from tests.cli.shell import Linnet
from tests.cli.village import hasten

from linnet.api.node_commands import Outcome, OwnDevice, RoomOutcome
from linnet.cli.identity import choose_device, outcome_text, revoked_text
from linnet.core.errors import BadText
from linnet.core.ids import DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.cards import card_from_text, card_to_text, check_card, issue_card
from linnet.identity.keys import SigningKey, device_id
from linnet.identity.text import Sort, device_text, from_text, to_text
from linnet.identity.words import to_phrase
from linnet.node.home import DAY, HomeError, accept, open_home
from linnet.node.keyfiles import load_card, load_key


def test_a_home_that_waits_for_its_card(shell: Linnet) -> None:
    said = shell.ok("id", "ask", "--label", "phone")
    assert "linnet id link ld1" in said
    assert "--label 'phone'" in said
    assert {path.name for path in shell.home.iterdir()} == {"device.key", "linnet.toml"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in shell.home.iterdir()} == {0o600}
    assert "there is no card yet" in shell.fails(78, "up")


def test_nothing_is_overwritten(shell: Linnet, tmp_path: Path) -> None:
    shell.ok("init")
    before = {path.name: path.read_bytes() for path in shell.home.iterdir()}
    assert "is there already" in shell.fails(78, "id", "ask")
    assert {path.name: path.read_bytes() for path in shell.home.iterdir()} == before


def linked(owner: Linnet, at: Path, label: str = "phone") -> Linnet:
    other = Linnet(at)
    device = other.json("id", "ask", "--label", label)["device"]
    card = owner.ok("id", "link", device, "--label", label).strip()
    other.ok("id", "accept", card)
    return other


def test_a_linked_device_has_a_card_and_no_key_of_the_person(shell: Linnet, tmp_path: Path) -> None:
    person = shell.json("init")["person"]
    phone = linked(shell, tmp_path / "phone")
    assert {path.name for path in phone.home.iterdir()} == {"device.key", "device.card", "linnet.toml"}
    card = load_card(phone.home / "device.card")
    check_card(card)
    assert card.person == from_text(Sort.PERSON, person)
    assert card.label == "phone"
    assert not open_home(phone.home, card.not_before + 7200).has_person_key


def test_a_thief_of_the_whole_home_is_not_the_person(shell: Linnet, tmp_path: Path) -> None:
    """After the node ran: nothing on the disk is the key, and no command makes a card or a revocation."""
    shell.ok("init", "--label", "laptop")
    seed = load_key(shell.home / "person.key", "person").seed
    phone = linked(shell, tmp_path / "phone")
    device = Linnet(tmp_path / "third").json("id", "ask")["device"]
    hasten(phone)
    with phone.up() as node:
        node.ok("room", "create", "den")
        mine = load_card(shell.home / "device.card").device
        for words in (["revoke", mine.hex()], ["link", device], ["backup", "--yes"], ["renew"]):
            assert "kept elsewhere" in node.fails(78, "id", *words)
    shapes = (seed, seed.hex().encode(), base64.b64encode(seed), base64.b32encode(seed))
    for path in phone.home.rglob("*"):
        if path.is_file():
            held = path.read_bytes()
            assert not any(shape in held for shape in shapes), path
    # With the device's key in the person's place, and in the person's name.
    stolen = load_key(phone.home / "device.key", "device")
    forged = issue_card(stolen, from_text(Sort.DEVICE, device), 0, 2**40, "third")
    third = Linnet(tmp_path / "third")
    third.ok("id", "accept", card_to_text(forged))  # A person of its own: nobody's but the thief's.
    assert load_card(third.home / "device.card").person == stolen.public


def test_a_card_in_the_persons_name_that_the_person_did_not_sign_is_refused(
    shell: Linnet, tmp_path: Path
) -> None:
    shell.ok("init")
    person = load_card(shell.home / "device.card").person
    phone = Linnet(tmp_path / "phone")
    device = from_text(Sort.DEVICE, phone.json("id", "ask")["device"])
    forged = msgspec.structs.replace(issue_card(SigningKey(b"t" * 32), device, 0, 2**40), person=person)
    assert "bad_signature" in phone.fails(78, "id", "accept", card_to_text(forged))
    assert "there is no card yet" in phone.fails(78, "up")


def test_what_cannot_be_accepted(shell: Linnet, tmp_path: Path) -> None:
    shell.ok("init")
    phone = linked(shell, tmp_path / "phone")
    card = load_card(phone.home / "device.card")
    other = shell.ok("id", "link", Linnet(tmp_path / "pad").json("id", "ask")["device"]).strip()
    assert "for another device" in phone.fails(78, "id", "accept", other)
    stranger = Linnet(tmp_path / "stranger")
    stranger.ok("init")
    foreign = stranger.ok("id", "link", to_text(Sort.DEVICE, card.device_key)).strip()
    assert "of another person" in phone.fails(78, "id", "accept", foreign)
    assert "begins with lc1" in phone.fails(2, "id", "accept", "hello")
    assert "linnet id ask" in Linnet(tmp_path / "none").fails(78, "id", "accept", card_to_text(card))
    assert load_card(phone.home / "device.card") == card


def test_a_card_is_renewed_by_the_other_device_or_by_the_words(shell: Linnet, tmp_path: Path) -> None:
    shell.ok("init")
    words = shell.ok("id", "backup", "--yes")
    phone = linked(shell, tmp_path / "phone")
    first = load_card(phone.home / "device.card")
    later = first.not_after + DAY
    with pytest.raises(Exception, match="linnet id renew") as told:
        open_home(phone.home, later)
    assert "linnet id link ld1" in str(told.value)
    person = load_key(shell.home / "person.key", "person")
    again = issue_card(person, first.device_key, later - 60, later + 365 * DAY, "phone")
    accept(phone.home, card_from_text(card_to_text(again)), later)
    assert open_home(phone.home, later).identity.card == again
    with pytest.raises(HomeError, match="ends before the one that is here"):
        accept(phone.home, first, first.not_before + 7200)
    other = linked(shell, tmp_path / "other")
    told_home = other.run("id", "renew", "--phrase-file", "-", given=words)
    assert told_home.exit_code == 0
    assert not (other.home / "person.key").exists()


def test_a_card_is_accepted_twice_without_harm(shell: Linnet) -> None:
    found = shell.json("init")
    card = load_card(shell.home / "device.card")
    assert shell.json("id", "accept", card_to_text(card)) == found
    assert load_card(shell.home / "device.card") == card


def test_the_home_that_holds_the_key_renews_at_will(shell: Linnet) -> None:
    shell.ok("init", "--label", "laptop")
    first = load_card(shell.home / "device.card")
    shell.ok("id", "renew")
    second = load_card(shell.home / "device.card")
    assert second.not_after >= first.not_after
    assert (second.person, second.device_key, second.label) == (first.person, first.device_key, "laptop")


def test_the_words_of_somebody_else_do_not(shell: Linnet) -> None:
    shell.ok("init")
    before = (shell.home / "device.card").read_bytes()
    said = shell.fails(78, "id", "renew", "--phrase-file", "-", given=to_phrase(bytes(32)))
    assert "another person" in said
    assert (shell.home / "device.card").read_bytes() == before


TEA, CHESS, LEFT = (TopicId(name * 32) for name in (b"t", b"c", b"l"))


def own(revoked: bool, *rooms: TopicId) -> OwnDevice:
    return OwnDevice(DeviceId(bytes(8)), None, "", False, False, None, None, revoked, rooms)


def test_this_one_first_then_those_that_were_met(lost: Lost) -> None:
    lost.until(lambda: len(lost.laptop.json("id", "devices")["devices"]) == 2)
    found = lost.laptop.json("id", "devices")
    assert found["person"] == lost.phone.json("id", "devices")["person"]
    assert sorted(found["rooms"]) == sorted(lost.rooms.values())
    assert [(each["label"], each["this"]) for each in found["devices"]] == [
        ("laptop", True),
        ("phone", False),
    ]
    rows = [line.split() for line in lost.laptop.ok("id", "devices").splitlines()]
    assert any(
        row[0] == "laptop" and row[2:4] == ["this", "one"] and row[-1].startswith("ld1") for row in rows
    )
    assert [each["label"] for each in lost.bea.json("id", "devices")["devices"]] == ["bea"]


def test_no_node_no_list(shell: Linnet) -> None:
    shell.ok("init")
    assert "linnet up" in shell.fails(69, "id", "devices")


def test_where_a_device_is_out_of_use() -> None:
    rooms = (TEA, CHESS)
    assert revoked_text(own(False), rooms) == "no"
    assert revoked_text(own(True), ()) == "yes"
    assert revoked_text(own(True, TEA), rooms) == "in 1 of 2 rooms"
    assert revoked_text(own(True, TEA, LEFT), rooms) == "in 1 of 2 rooms"


def own_device(label: str, number: int, this: bool = False) -> OwnDevice:
    key = PeerId(bytes([number]) * 32)
    return OwnDevice(device_id(key), key, label, this, False, 0, 0, False, ())


DEVICES = (
    own_device("laptop", 1, this=True),
    own_device("Phone", 2),
    own_device("tab", 3),
    own_device("tab", 4),
)


ROOM, EVENT, RELAY = TopicId(b"r" * 32), EventId(b"e" * 32), PeerId(b"x" * 32)


def test_a_device_is_meant_by_name_id_or_the_beginning_of_one() -> None:
    phone = DEVICES[1]
    assert phone.key is not None
    short, whole = phone.id.hex(), device_text(phone.key)
    for text in ("Phone", "phone", short, short.upper(), short[:6], whole, whole[:9]):
        assert choose_device(text, DEVICES) == phone.id
    unmet = to_text(Sort.DEVICE, b"u" * 32)
    assert choose_device(unmet, DEVICES) == device_id(b"u" * 32)
    assert choose_device("0123456789abcdef", DEVICES) == bytes.fromhex("0123456789abcdef")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tab", "'tab' can be 2 devices; say which by its id: "),
        ("watch", "no device of yours called 'watch' is known here; there are "),
        ("", "no device of yours called ''"),
        ("ld1", "no device of yours called 'ld1'"),
        (to_text(Sort.DEVICE, b"u" * 32)[:-1] + "1", "has a character that no id has"),
    ],
)
def test_what_is_not_one_device(text: str, said: str) -> None:
    with pytest.raises(BadText) as caught:
        choose_device(text, DEVICES)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (
            RoomOutcome(ROOM, "", Outcome.REVOKED, EVENT, 2, (RELAY,)),
            "revoked, sent to 2 members online and",
        ),
        (RoomOutcome(ROOM, "", Outcome.REVOKED, EVENT), "revoked, sent to nobody yet"),
        (RoomOutcome(ROOM, "", Outcome.ALREADY), "was revoked before"),
        (RoomOutcome(ROOM, "", Outcome.SKIPPED, detail="why"), "skipped: why"),
        (RoomOutcome(ROOM, "", Outcome.REFUSED, reason=Reason.BANNED, detail="why"), "REFUSED: banned: why"),
    ],
)
def test_what_became_of_it_in_words(outcome: RoomOutcome, words: str) -> None:
    assert outcome_text(outcome).startswith(words)


def test_the_device_in_use_and_no_node(lost: Lost, shell: Linnet) -> None:
    assert "revoke it from another" in lost.laptop.fails(2, "id", "revoke", "laptop")
    assert "no device of yours called 'watch'" in lost.laptop.fails(2, "id", "revoke", "watch")
    shell.ok("init")
    assert "linnet up" in shell.fails(69, "id", "revoke", "phone")


def test_a_lost_phone_is_revoked_from_a_recovered_device(lost: Lost, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text(lost.phrase)
    words.chmod(0o600)
    fresh = Linnet(tmp_path / "fresh")
    fresh.ok("id", "recover", "--phrase-file", str(words), "--label", "fresh")
    hasten(fresh)
    with fresh.up() as node:
        for room in lost.rooms.values():
            node.ok("room", "join", room, "--at", lost.bea.address)
        lost.until(lambda: "phone" in node.ok("id", "devices"))
        # The person's key may be kept elsewhere: the words do as well.
        assert not (fresh.home / "person.key").exists()
        assert "kept elsewhere" in node.fails(78, "id", "revoke", "phone")
        said = node.ok("id", "revoke", "phone", "--phrase-file", str(words)).splitlines()
        assert said[0].startswith("revoked ")
        assert said[0].endswith("(phone)")
        assert [line.split()[0] for line in said[1:]] == ["tea", "chess"]
        assert all("revoked, sent to " in line for line in said[1:])
        assert [
            room["outcome"]
            for room in node.json("id", "revoke", "phone", "--phrase-file", str(words))["rooms"]
        ] == ["already", "already"]
        assert "in 2 of 2 rooms" in node.ok("id", "devices")
        for name in lost.rooms:
            no_longer_heard(lost, node, name)


def no_longer_heard(lost: Lost, node: Linnet, room: str) -> None:
    """Once Bea's node knows, nothing of the phone is heard, whatever the phone knows."""
    lost.until(
        lambda: "revocation" in [each["kind"] for each in lost.bea.json("room", "state", room)["entries"]]
    )
    lost.until(lambda: "card_revoked" in lost.phone.run("room", "send", room, "I am lost").stderr)
    node.ok("room", "send", room, "without the phone")
    lost.until(lambda: "without the phone" in lost.bea.ok("room", "history", room))
    assert "I am lost" not in lost.bea.ok("room", "history", room)


def test_the_words_of_another_person_revoke_nothing(lost: Lost, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text("zoo " * 23 + "vote")
    words.chmod(0o600)
    said = lost.bea.fails(78, "id", "revoke", "0123456789abcdef", "--phrase-file", str(words))
    assert "the key of another person" in said
