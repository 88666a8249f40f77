from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.core.errors import StoreError
from linnet.core.ids import AuthorId, DeviceId
from linnet.node.people import (
    DEVICES,
    LABELS,
    Alarm,
    KnownPerson,
    PersonWarning,
    Sighting,
    decode_person,
    encode_person,
    folded,
    meet,
    tell,
    warnings,
)

ME, ADA, EVE, BOB = (AuthorId(bytes([number]) * 32) for number in range(1, 5))
PHONE, LAPTOP = DeviceId(b"p" * 8), DeviceId(b"l" * 8)


class Book:
    """Known people, through time."""

    def __init__(self) -> None:
        self.known: dict[AuthorId, KnownPerson] = {}
        self.now = 100.0

    def look(self, *sightings: tuple[AuthorId, str, DeviceId]) -> list[PersonWarning]:
        self.now += 1.0
        seen = [Sighting(person, device, label) for person, label, device in sightings]
        self.known |= meet(self.known, seen, self.now)
        return list(warnings(self.known, seen, ME))

    def verify(self, person: AuthorId, verified: bool = True) -> None:
        self.now += 1.0
        self.known[person] = replace(self.known[person], verified_at=self.now if verified else None)


def test_who_is_met_first_is_met_without_a_word() -> None:
    book = Book()
    assert book.look((ME, "me", PHONE), (ADA, "ada", PHONE), (BOB, "", PHONE)) == []
    assert book.known[ADA] == KnownPerson(101.0, {"ada": 101.0}, {PHONE: 101.0})
    assert meet(book.known, [Sighting(ADA, PHONE, "ada")], 200.0) == {}


@pytest.mark.parametrize("name", ["ada", "ADA", " ada ", "\uff41da"])
def test_another_person_under_a_known_name_is_told(name: str) -> None:
    book = Book()
    book.look((ADA, "ada", PHONE))
    assert book.look((EVE, name, LAPTOP)) == [PersonWarning(Alarm.SAME_NAME, EVE, name, ADA)]
    assert book.look((ADA, "ada", PHONE)) == []


def test_it_is_louder_if_the_other_one_was_verified() -> None:
    book = Book()
    book.look((ADA, "ada", PHONE))
    book.verify(ADA)
    assert book.look((EVE, "ada", PHONE)) == [PersonWarning(Alarm.VERIFIED_NAME, EVE, "ada", ADA)]


def test_nobody_takes_our_own_name() -> None:
    book = Book()
    book.look((EVE, "me", PHONE))
    assert book.look((ME, "me", PHONE), (EVE, "me", PHONE)) == [PersonWarning(Alarm.OWN_NAME, EVE, "me", ME)]


def test_who_takes_a_name_later_is_told_though_seen_earlier() -> None:
    book = Book()
    book.look((EVE, "eve", PHONE))
    book.look((ADA, "ada", PHONE))
    assert book.look((EVE, "ada", PHONE)) == [PersonWarning(Alarm.SAME_NAME, EVE, "ada", ADA)]
    assert book.look((EVE, "eve", PHONE)) == []


def test_whoever_was_verified_has_the_name() -> None:
    book = Book()
    book.look((EVE, "ada", PHONE))
    book.look((ADA, "ada", PHONE))
    book.verify(ADA)
    assert book.look((ADA, "ada", PHONE), (EVE, "ada", PHONE)) == [
        PersonWarning(Alarm.VERIFIED_NAME, EVE, "ada", ADA)
    ]
    book.verify(EVE)
    assert book.look((ADA, "ada", PHONE), (EVE, "ada", PHONE)) == []


def test_two_who_come_at_once_under_one_name_are_told_once() -> None:
    assert Book().look((ADA, "x", PHONE), (EVE, "x", PHONE)) == [
        PersonWarning(Alarm.SAME_NAME, EVE, "x", ADA)
    ]


def test_a_new_device_of_who_was_verified_is_told_until_verified_again() -> None:
    book = Book()
    book.look((ADA, "ada", PHONE))
    assert book.look((ADA, "ada", LAPTOP)) == []
    book.known.clear()
    book.look((ADA, "ada", PHONE))
    book.verify(ADA)
    new = PersonWarning(Alarm.NEW_DEVICE, ADA, "ada", None, LAPTOP)
    assert book.look((ADA, "ada", PHONE), (ADA, "work", LAPTOP)) == [new]
    assert book.look((ADA, "work", LAPTOP)) == [new]
    book.verify(ADA)
    assert book.look((ADA, "work", LAPTOP)) == []


def test_a_new_device_of_our_own_is_told() -> None:
    book = Book()
    assert book.look((ME, "me", PHONE)) == []
    assert book.look((ME, "me", PHONE), (ME, "", LAPTOP)) == [
        PersonWarning(Alarm.OWN_DEVICE, ME, "me", None, LAPTOP)
    ]


def test_each_warning_is_told_once_and_again_if_it_is_graver() -> None:
    person = KnownPerson(1.0)
    same = PersonWarning(Alarm.SAME_NAME, EVE, "ada", ADA)
    told = tell(person, same)
    assert told is not None
    assert tell(told, same) is None
    assert tell(told, replace(same, label="ADA")) is None
    assert tell(told, replace(same, alarm=Alarm.VERIFIED_NAME)) is not None
    assert tell(told, replace(same, other=BOB)) is not None


def test_what_is_kept_is_read_back_and_rubbish_is_refused() -> None:
    person = KnownPerson(1.0, {"ada": 1.0}, {PHONE: 2.0}, 3.0, ("x",))
    assert decode_person(encode_person(person)) == person
    with pytest.raises(StoreError, match="cannot be read"):
        decode_person(b"\xff\xff")


def test_names_and_devices_are_bounded_and_the_newest_stay() -> None:
    book = Book()
    for number in range(LABELS + 5):
        book.look((EVE, f"name {number}", DeviceId(number.to_bytes(8, "big"))))
    assert len(book.known[EVE].labels) == LABELS
    assert f"name {LABELS + 4}" in book.known[EVE].labels
    many = [Sighting(ADA, DeviceId(number.to_bytes(8, "big")), "") for number in range(DEVICES + 5)]
    assert len(meet({}, many, 1.0)[ADA].devices) == DEVICES


def test_names_fold_to_what_eyes_see() -> None:
    assert folded("  Ada\u00a0 L ") == folded("ada l") == "ada l"
