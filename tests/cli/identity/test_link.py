"""A device that is linked from another gets a card, and nothing that a thief could use."""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec
import pytest
from tests.cli.identity.typed import Typed, up

from linnet.identity.card_text import card_from_text, card_to_text
from linnet.identity.cards import check_card, issue_card
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, from_text, to_text
from linnet.node.home import DAY, HomeError, accept, open_home
from linnet.node.keyfiles import load_card, load_key


def linked(owner: Typed, at: Path, label: str = "phone") -> Typed:
    other = Typed(at)
    device = other.json("id", "ask", "--label", label)["device"]
    card = owner.ok("id", "link", device, "--label", label).strip()
    other.ok("id", "accept", card)
    return other


def test_a_linked_device_has_a_card_and_no_key_of_the_person(shell: Typed, tmp_path: Path) -> None:
    person = shell.json("init")["person"]
    phone = linked(shell, tmp_path / "phone")
    assert {path.name for path in phone.home.iterdir()} == {"device.key", "device.card", "linnet.toml"}
    card = load_card(phone.home / "device.card")
    check_card(card)
    assert card.person == from_text(Sort.PERSON, person)
    assert card.label == "phone"
    assert not open_home(phone.home, card.not_before + 7200).has_person_key


def test_a_thief_of_the_whole_home_is_not_the_person(shell: Typed, tmp_path: Path) -> None:
    """After the node ran: nothing on the disk is the key, and no command makes a card or a revocation."""
    shell.ok("init", "--label", "laptop")
    seed = load_key(shell.home / "person.key", "person").seed
    phone = linked(shell, tmp_path / "phone")
    device = Typed(tmp_path / "third").json("id", "ask")["device"]
    with up(phone.home) as node:
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
    third = Typed(tmp_path / "third")
    third.ok("id", "accept", card_to_text(forged))  # A person of its own: nobody's but the thief's.
    assert load_card(third.home / "device.card").person == stolen.public


def test_a_card_in_the_persons_name_that_the_person_did_not_sign_is_refused(
    shell: Typed, tmp_path: Path
) -> None:
    shell.ok("init")
    person = load_card(shell.home / "device.card").person
    phone = Typed(tmp_path / "phone")
    device = from_text(Sort.DEVICE, phone.json("id", "ask")["device"])
    forged = msgspec.structs.replace(issue_card(SigningKey(b"t" * 32), device, 0, 2**40), person=person)
    assert "bad_signature" in phone.fails(78, "id", "accept", card_to_text(forged))
    assert "there is no card yet" in phone.fails(78, "up")


def test_what_cannot_be_accepted(shell: Typed, tmp_path: Path) -> None:
    shell.ok("init")
    phone = linked(shell, tmp_path / "phone")
    card = load_card(phone.home / "device.card")
    other = shell.ok("id", "link", Typed(tmp_path / "pad").json("id", "ask")["device"]).strip()
    assert "for another device" in phone.fails(78, "id", "accept", other)
    stranger = Typed(tmp_path / "stranger")
    stranger.ok("init")
    foreign = stranger.ok("id", "link", to_text(Sort.DEVICE, card.device_key)).strip()
    assert "of another person" in phone.fails(78, "id", "accept", foreign)
    assert "begins with lc1" in phone.fails(2, "id", "accept", "hello")
    assert "linnet id ask" in Typed(tmp_path / "none").fails(78, "id", "accept", card_to_text(card))
    assert load_card(phone.home / "device.card") == card


def test_a_card_is_renewed_by_the_other_device_or_by_the_words(shell: Typed, tmp_path: Path) -> None:
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
