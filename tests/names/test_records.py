"""What a zone says under a label, and who may say it."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.msgpack import encode
from msgspec.structs import replace
from tests.names.people import NOW, PLACE_A, PLACE_C, X, Y, Z, delegation, person, place
from tests.raised import reason_of

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.names.derivation import NameKeys, Password, derive, stretch
from linnet.names.records import (
    SIZES,
    Block,
    PlaceRecord,
    Records,
    RecordSet,
    Statement,
    check_block,
    check_set,
    decode_set,
    make_place,
    open_block,
    seal_block,
    sign_set,
)

ALICE, BOB = person("alice"), person("bob")
BOUND = b"bound" * 8
SAID = sign_set(ALICE.device, ALICE.card, Statement("music", 7, int(NOW) + 60, place(PLACE_C, X)), BOUND)


def test_a_device_says_it_for_its_person() -> None:
    assert decode_set(encode(SAID)) == SAID
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
        sign_set(BOB.device, ALICE.card, Statement("music", 9, int(NOW) + 60, ()), BOUND),
    ],
    ids=["version", "end", "place", "removed", "another zone", "a false card", "another device"],
)
def test_what_the_zone_did_not_say_is_forged(forged: RecordSet) -> None:
    assert reason_of(RemoteError, check_set, forged, ALICE.author, "music", BOUND) is Reason.BAD_SIGNATURE


def test_a_set_is_good_for_its_label_and_its_block_alone() -> None:
    for label, bound in (("tech", BOUND), ("music", b"elsewhere")):
        with pytest.raises(RemoteError, match="bad_signature"):
            check_set(SAID, ALICE.author, label, bound)


def test_a_label_has_one_record_of_each_sort() -> None:
    both = (*place(PLACE_A, X), *delegation(BOB.author))
    said = sign_set(ALICE.device, ALICE.card, Statement("bob", 7, int(NOW) + 60, both), BOUND)
    check_set(said, ALICE.author, "bob", BOUND)
    assert said.delegation == delegation(BOB.author)[0]
    with pytest.raises(Refused, match="at most one place"):
        sign_set(ALICE.device, ALICE.card, Statement("b", 7, 8, delegation(BOB.author) * 2), BOUND)


def test_it_can_be_relied_on_no_longer_than_its_signers_card() -> None:
    after = ALICE.card.not_after + 5
    said = sign_set(ALICE.device, ALICE.card, Statement("a", 1, after, ()), BOUND)
    assert said.until == ALICE.card.not_after
    assert SAID.until == SAID.expires


def test_a_place_is_entered_at_one_to_eight_peers() -> None:
    assert make_place(PLACE_A, (X,) * 8).contacts == (X,) * 8
    for contacts in ((), (X,) * 9):
        with pytest.raises(Refused, match="1 to 8 peers"):
            make_place(PLACE_A, contacts)


@pytest.mark.parametrize("contacts", [(), (X,) * 9])
def test_foreign_bytes_are_bounded(contacts: tuple[Contact, ...]) -> None:
    with pytest.raises(MalformedMessage):
        decode_set(encode(replace(SAID, records=place(PLACE_A, *contacts))))
    with pytest.raises(MalformedMessage):
        decode_set(encode(replace(SAID, label="x" * 64)))


KEYS = derive(ALICE.author, "music")
ENDS = int(NOW) + 60


def behind(password: str) -> NameKeys:
    return derive(ALICE.author, "music", stretch(Password(password), ALICE.author, "music"))


def block_of(records: Records, version: int = 7) -> Block:
    saying = Statement("music", version, ENDS, records)
    return seal_block(KEYS, ALICE.device, ALICE.card, saying, Random(3).randbytes)


BLOCK = block_of(place(PLACE_C, Z))


def test_who_knows_the_name_reads_it_and_a_store_can_check_it() -> None:
    check_block(BLOCK)
    said = open_block(BLOCK, KEYS, ALICE.author, "music")
    assert (said.records, said.version, said.expires) == (place(PLACE_C, Z), 7, ENDS)
    assert (BLOCK.lookup, BLOCK.version, BLOCK.expires) == (KEYS.lookup, 7, ENDS)


def test_nothing_of_zone_label_or_data_is_seen_from_outside() -> None:
    seen = b"".join((BLOCK.lookup, BLOCK.owner, BLOCK.sealed, BLOCK.gate, BLOCK.sig))
    for hidden in (ALICE.author, ALICE.device.public, b"music", PLACE_C, Z.peer, b"peer3.example"):
        assert hidden not in seen


def test_place_delegation_and_removal_look_alike() -> None:
    sizes = {len(block_of(each).sealed) for each in (place(PLACE_C, X, Y, Z), delegation(BOB.author), ())}
    assert len(sizes) == 1


@given(st.integers(0, len(BLOCK.sealed) - 1), st.integers(1, 255))
def test_altered_bytes_are_noticed(at: int, change: int) -> None:
    sealed = bytearray(BLOCK.sealed)
    sealed[at] ^= change
    assert reason_of(RemoteError, check_block, replace(BLOCK, sealed=bytes(sealed))) is Reason.BAD_SIGNATURE


@pytest.mark.parametrize(
    "altered",
    [
        replace(BLOCK, version=8),
        replace(BLOCK, expires=ENDS + 1),
        replace(BLOCK, owner=BOB.device.public),
        replace(BLOCK, lookup=derive(ALICE.author, "tech").lookup),
        replace(BLOCK, gate=BLOCK.sig),
    ],
    ids=["version", "end", "owner", "lookup", "gate"],
)
def test_an_altered_head_is_noticed(altered: Block) -> None:
    with pytest.raises(RemoteError, match="bad_signature"):
        check_block(altered)


def test_who_knows_the_name_can_make_a_block_that_a_store_takes_but_nobody_believes() -> None:
    saying = Statement("music", 99, ENDS, place(PLACE_C, X))
    forged = seal_block(KEYS, BOB.device, BOB.card, saying, Random(4).randbytes)
    check_block(forged)
    assert reason_of(RemoteError, open_block, forged, KEYS, ALICE.author, "music") is Reason.BAD_SIGNATURE


def test_without_the_password_nothing_opens_and_the_wrong_one_is_no_better() -> None:
    right = behind("swordfish")
    saying = Statement("music", 7, ENDS, place(PLACE_C, Z))
    block = seal_block(right, ALICE.device, ALICE.card, saying, Random(5).randbytes)
    assert open_block(block, right, ALICE.author, "music").place is not None
    for keys in (KEYS, behind("guess")):
        assert keys.lookup != block.lookup
        with pytest.raises(RemoteError):
            open_block(block, keys, ALICE.author, "music")
        # Also for who saw the lookup key and pretends that it is the one of another name.
        with pytest.raises(RemoteError):
            open_block(replace(block, lookup=keys.lookup), keys, ALICE.author, "music")


def test_a_label_has_only_so_much_room() -> None:
    hints = tuple("\U0001f426" * 127 + str(n) for n in range(8))
    contacts = tuple(Contact(PeerId(bytes([n]) * 32), hints) for n in range(8))
    assert reason_of(Refused, block_of, (PlaceRecord(PLACE_C, contacts),)) is Reason.TOO_LARGE
    assert len(block_of(place(PLACE_C, *contacts[:2])).sealed) == SIZES[-1] + 28
