from __future__ import annotations

import pytest

from linnet.core.errors import Refused, StoreError
from linnet.core.ids import PeerId
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.trust import BAN, BANNED, KNOWN, SPACE, VOUCHED, Trust
from linnet.store.memory import MemoryStore

CONFIG = TrackerlessConfig()


def peer(number: int) -> PeerId:
    return PeerId(number.to_bytes(32, "big"))


def trust() -> Trust:
    return Trust(MemoryStore().cells, CONFIG)


def test_only_what_the_user_set_survives() -> None:
    store = MemoryStore()
    before = Trust(store.cells, CONFIG)
    before.set_trust(peer(1), 1.0)
    before.set_trust(peer(2), 0.4)
    before.set_trust(peer(1), 0.8)
    before.note_vouched(peer(3), peer(1), 0.0)
    before.note_offence(peer(4), 0.0)
    assert before.remove_trust(peer(2))
    assert not before.remove_trust(peer(2))
    after = Trust(store.cells, CONFIG)
    assert after.known == {peer(1): 0.8}
    assert (after.trust_in(peer(1), 0.0), after.trust_in(peer(3), 0.0), after.trust_in(peer(4), 0.0)) == (
        0.8,
        0.1,
        0.1,
    )


def test_a_trusted_one_vouches_and_a_stranger_does_not() -> None:
    table = trust()
    table.set_trust(peer(1), 1.0)
    table.note_vouched(peer(2), peer(1), 0.0)
    assert table.trust_in(peer(2), 0.0) == pytest.approx(0.45)
    table.note_vouched(peer(3), peer(2), 0.0)
    assert table.trust_in(peer(3), 0.0) == pytest.approx(0.9 * 0.45 * 0.5)
    assert [table.is_vouching(peer(number), 0.0) for number in (1, 2, 3)] == [True, True, False]
    table.note_vouched(peer(4), peer(3), 0.0)
    assert table.trust_in(peer(4), 0.0) == CONFIG.base_trust, "fourth-hand trust is none"
    table.note_vouched(peer(2), peer(3), 0.0)
    assert table.trust_in(peer(2), 0.0) == pytest.approx(0.45), "a weaker word takes nothing away"
    table.note_vouched(peer(1), peer(2), 0.0)
    assert table.trust_in(peer(1), 0.0) == 1.0, "nobody changes what the user set"
    assert table.is_known(peer(1))
    assert not table.is_known(peer(2))


def test_guessed_trust_decays_without_contact_down_to_that_in_a_stranger() -> None:
    table = trust()
    table.set_trust(peer(1), 1.0)
    table.note_vouched(peer(2), peer(1), 0.0)
    while_of_100_rounds = 100 * CONFIG.period
    assert table.trust_in(peer(2), while_of_100_rounds - 1) == pytest.approx(0.45)
    assert table.trust_in(peer(2), while_of_100_rounds) == pytest.approx(0.405)
    table.note_contact(peer(2), while_of_100_rounds)
    table.note_contact(peer(9), while_of_100_rounds)
    assert table.trust_in(peer(2), 2 * while_of_100_rounds - 1) == pytest.approx(0.405)
    assert table.trust_in(peer(2), 100 * while_of_100_rounds) == CONFIG.base_trust
    assert table.trust_in(peer(1), 100 * while_of_100_rounds) == 1.0, "the user's word does not decay"


def test_an_offence_ends_trust_for_a_day() -> None:
    table = trust()
    table.set_trust(peer(1), 1.0)
    table.note_vouched(peer(2), peer(1), 0.0)
    for offender in (peer(1), peer(2)):
        table.note_offence(offender, 5.0)
        assert table.trust_in(offender, 5.0) == 0.0
        assert table.is_banned(offender, 5.0 + BAN - 1)
        assert not table.is_banned(offender, 5.0 + BAN)
    assert (table.trust_in(peer(1), 5.0 + BAN), table.trust_in(peer(2), 5.0 + BAN)) == (1.0, 0.1)
    table.note_offence(peer(1), 5.0)
    table.set_trust(peer(1), 0.5)
    assert not table.is_banned(peer(1), 6.0), "the user has the last word"


@pytest.mark.parametrize("value", [0.0, -0.1, 1.1, float("nan")])
def test_trust_has_bounds(value: float) -> None:
    with pytest.raises(Refused, match="above 0"):
        trust().set_trust(peer(1), value)


def test_every_table_is_bounded() -> None:
    table = trust()
    table.set_trust(peer(0), 1.0)
    for number in range(1, max(VOUCHED, BANNED) + 2):
        table.note_vouched(peer(number), peer(0), 0.0)
    assert table.trust_in(peer(1), 0.0) == CONFIG.base_trust
    assert table.trust_in(peer(2), 0.0) > CONFIG.base_trust
    for number in range(1, BANNED + 2):
        table.note_offence(peer(number), 0.0)
    assert not table.is_banned(peer(1), 1.0)
    assert table.is_banned(peer(2), 1.0)
    for number in range(1, KNOWN):
        table.set_trust(peer(number), 0.5)
    with pytest.raises(Refused, match="too_many"):
        table.set_trust(peer(KNOWN), 0.5)
    table.set_trust(peer(1), 0.6)


def test_a_damaged_store_is_named() -> None:
    store = MemoryStore()
    store.cells.put(SPACE, peer(1), b"short")
    with pytest.raises(StoreError, match="damaged"):
        Trust(store.cells, CONFIG)
