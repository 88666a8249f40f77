"""What a zone says under a label, and who may say it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.names.people import NOW, PLACE_A, PLACE_C, X, delegation, person, place

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.ids import Contact
from linnet.core.reasons import Reason
from linnet.names.records import RecordSet, check_set, decode_set, encode_set, place_of, sign_set

ALICE, BOB = person("alice"), person("bob")
BOUND = b"bound" * 8
SAID = sign_set(ALICE.device, ALICE.card, "music", 7, int(NOW) + 60, place(PLACE_C, X), BOUND)


def test_a_device_says_it_for_its_person() -> None:
    assert decode_set(encode_set(SAID)) == SAID
    check_set(SAID, ALICE.author, "music", BOUND)
    assert (SAID.zone, SAID.device, SAID.place, SAID.delegation) == (
        ALICE.author,
        ALICE.card.device,
        place(PLACE_C, X)[0],
        None,
    )


@pytest.mark.parametrize(
    "forged",
    [
        replace(SAID, version=8),
        replace(SAID, expires=SAID.expires + 1),
        replace(SAID, records=place(PLACE_A, X)),
        replace(SAID, records=()),
        replace(SAID, card=BOB.card),
        replace(SAID, card=replace(BOB.card, person=ALICE.author)),
        sign_set(BOB.device, ALICE.card, "music", 9, int(NOW) + 60, (), BOUND),
    ],
    ids=["version", "end", "place", "removed", "another zone", "a false card", "another device"],
)
def test_what_the_zone_did_not_say_is_forged(forged: RecordSet) -> None:
    with pytest.raises(RemoteError) as error:
        check_set(forged, ALICE.author, "music", BOUND)
    assert error.value.reason is Reason.BAD_SIGNATURE


def test_a_set_is_good_for_its_label_and_its_block_alone() -> None:
    for label, bound in (("tech", BOUND), ("music", b"elsewhere")):
        with pytest.raises(RemoteError, match="bad_signature"):
            check_set(SAID, ALICE.author, label, bound)


def test_a_label_has_one_record_of_each_sort() -> None:
    both = (*place(PLACE_A, X), *delegation(BOB.author))
    said = sign_set(ALICE.device, ALICE.card, "bob", 7, int(NOW) + 60, both, BOUND)
    check_set(said, ALICE.author, "bob", BOUND)
    assert said.delegation == delegation(BOB.author)[0]
    with pytest.raises(Refused, match="at most one place"):
        sign_set(
            ALICE.device, ALICE.card, "b", 7, 8, (*delegation(BOB.author), *delegation(BOB.author)), BOUND
        )


def test_it_can_be_relied_on_no_longer_than_its_signers_card() -> None:
    after = ALICE.card.not_after + 5
    assert sign_set(ALICE.device, ALICE.card, "a", 1, after, (), BOUND).until == ALICE.card.not_after
    assert SAID.until == SAID.expires


def test_a_place_is_entered_at_one_to_eight_peers() -> None:
    assert place_of(PLACE_A, (X,) * 8).contacts == (X,) * 8
    for contacts in ((), (X,) * 9):
        with pytest.raises(Refused, match="1 to 8 peers"):
            place_of(PLACE_A, contacts)


@pytest.mark.parametrize("contacts", [(), (X,) * 9])
def test_foreign_bytes_are_bounded(contacts: tuple[Contact, ...]) -> None:
    with pytest.raises(MalformedMessage):
        decode_set(encode_set(replace(SAID, records=place(PLACE_A, *contacts))))
    with pytest.raises(MalformedMessage):
        decode_set(encode_set(replace(SAID, label="x" * 64)))
