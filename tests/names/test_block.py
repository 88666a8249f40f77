"""A record set as stores see it: sealed, padded, and changed by nobody."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.names.people import NOW, PLACE_C, X, Y, Z, delegation, person, place

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.names.block import SIZES, Block, Saying, check_block, close_block, open_block
from linnet.names.derivation import NameKeys, Password, derive, stretch
from linnet.names.records import PlaceRecord, Records

ALICE, BOB = person("alice"), person("bob")
KEYS = derive(ALICE.author, "music")
ENDS = int(NOW) + 60


def behind(password: str) -> NameKeys:
    return derive(ALICE.author, "music", stretch(Password(password), ALICE.author, "music"))


def block_of(records: Records, version: int = 7) -> Block:
    saying = Saying("music", version, ENDS, records)
    return close_block(KEYS, ALICE.device, ALICE.card, saying, Random(3).randbytes)


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
    with pytest.raises(RemoteError) as error:
        check_block(replace(BLOCK, sealed=bytes(sealed)))
    assert error.value.reason is Reason.BAD_SIGNATURE


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
    saying = Saying("music", 99, ENDS, place(PLACE_C, X))
    forged = close_block(KEYS, BOB.device, BOB.card, saying, Random(4).randbytes)
    check_block(forged)
    with pytest.raises(RemoteError) as error:
        open_block(forged, KEYS, ALICE.author, "music")
    assert error.value.reason is Reason.BAD_SIGNATURE


def test_without_the_password_nothing_opens_and_the_wrong_one_is_no_better() -> None:
    right = behind("swordfish")
    saying = Saying("music", 7, ENDS, place(PLACE_C, Z))
    block = close_block(right, ALICE.device, ALICE.card, saying, Random(5).randbytes)
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
    with pytest.raises(Refused) as error:
        block_of((PlaceRecord(PLACE_C, contacts),))
    assert error.value.reason is Reason.TOO_LARGE
    assert len(block_of(place(PLACE_C, *contacts[:2])).sealed) == SIZES[-1] + 28
