"""A phone is lost; its person revokes it from a device that was made from 24 words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.identity.conftest import Lost
from tests.cli.identity.typed import Typed, up

from linnet.cli.identity.revoke import choose_device, outcome_text
from linnet.core.errors import BadText
from linnet.identity.keys import device_id
from linnet.identity.text import Sort, to_text
from linnet.node.device_types import DeviceView, Outcome, RoomOutcomeView


def view(label: str, number: int, this: bool = False) -> DeviceView:
    key = bytes([number]) * 32
    return DeviceView(device_id(key).hex(), to_text(Sort.DEVICE, key), label, this, False, 0, 0, False, ())


DEVICES = (view("laptop", 1, this=True), view("Phone", 2), view("tab", 3), view("tab", 4))


def test_a_device_is_meant_by_name_id_or_the_beginning_of_one() -> None:
    phone = DEVICES[1]
    assert phone.device is not None
    for text in ("Phone", "phone", phone.id, phone.id.upper(), phone.id[:6], phone.device, phone.device[:9]):
        assert choose_device(text, DEVICES) == phone.id
    unmet = to_text(Sort.DEVICE, b"u" * 32)
    assert choose_device(unmet, DEVICES) == device_id(b"u" * 32).hex()
    assert choose_device("0123456789abcdef", DEVICES) == "0123456789abcdef"


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
            RoomOutcomeView("r", "", Outcome.REVOKED, "e", 2, ("x",), None, ""),
            "revoked, sent to 2 members online and",
        ),
        (RoomOutcomeView("r", "", Outcome.REVOKED, "e", 0, (), None, ""), "revoked, sent to nobody yet"),
        (RoomOutcomeView("r", "", Outcome.ALREADY, None, 0, (), None, ""), "was revoked before"),
        (RoomOutcomeView("r", "", Outcome.SKIPPED, None, 0, (), None, "why"), "skipped: why"),
        (RoomOutcomeView("r", "", Outcome.REFUSED, None, 0, (), "banned", "why"), "REFUSED: banned: why"),
    ],
)
def test_what_became_of_it_in_words(outcome: RoomOutcomeView, words: str) -> None:
    assert outcome_text(outcome).startswith(words)


def test_the_device_in_use_and_no_node(lost: Lost, shell: Typed) -> None:
    assert "revoke it from another" in lost.laptop.fails(2, "id", "revoke", "laptop")
    assert "no device of yours called 'watch'" in lost.laptop.fails(2, "id", "revoke", "watch")
    shell.ok("init")
    assert "linnet up" in shell.fails(69, "id", "revoke", "phone")


def test_a_lost_phone_is_revoked_from_a_recovered_device(lost: Lost, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text(lost.phrase)
    words.chmod(0o600)
    fresh = Typed(tmp_path / "fresh")
    fresh.ok("id", "recover", "--phrase-file", str(words), "--label", "fresh")
    with up(fresh.home) as node:
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


def no_longer_heard(lost: Lost, node: Typed, room: str) -> None:
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
