"""Our own zone: labels, versions, ends, removal."""

from __future__ import annotations

import pytest
from tests.names.people import CONFIG, DAY, NOW, PLACE_A, PLACE_C, X, Y, Z, person, place, zone_of
from tests.raised import reason_of

from linnet.core.errors import BadText, Refused, StoreError
from linnet.core.reasons import Reason
from linnet.names.derivation import Password, derive, stretch
from linnet.names.records import RecordSet, open_block
from linnet.names.zone import LONGEST, SPACE, OwnName, Zone
from linnet.store.memory import MemoryStore

ALICE = person("alice")
SECRET = stretch(Password("swordfish"), ALICE.author, "music")


def said(own: OwnName) -> RecordSet:
    return open_block(own.block, own.keys, ALICE.author, own.label)


def test_what_is_published_has_a_version_and_an_end() -> None:
    zone = zone_of("alice")
    own = zone.publish("Music", place(PLACE_C, Z), DAY, NOW)
    assert (said(own).label, said(own).records) == ("music", place(PLACE_C, Z))
    assert (said(own).version, said(own).expires) == (int(NOW * 1000), int(NOW) + DAY)
    assert own.block.lookup == derive(ALICE.author, "music").lookup


def test_versions_grow_though_the_clock_stands_still_or_the_device_restarts() -> None:
    store = MemoryStore()
    first = zone_of("alice", store).publish("music", place(PLACE_C, Z), DAY, NOW + 5)
    second = zone_of("alice", store, seed=2).publish("music", place(PLACE_A, X), DAY, NOW + 1)
    assert second.block.version == first.block.version + 1
    assert second.block.owner == first.block.owner


def test_a_clock_that_was_years_ahead_does_not_take_the_name_away() -> None:
    store = MemoryStore()
    zone = zone_of("alice", store)
    zone.publish("music", place(PLACE_C, Z), DAY, NOW)
    ahead = zone.publish("music", place(PLACE_C, Z), DAY, NOW + DAY * 300)
    assert zone_of("alice", store).renew_due(NOW + 60)[0].block.version == int((NOW + 60) * 1000)
    assert ahead.block.version > int((NOW + 60) * 1000)
    (own,) = zone_of("alice", store).names()
    assert own.until == int(NOW + 60) + DAY
    assert zone_of("alice", store).renew_due(NOW + 61) == [], "once"


def test_what_was_said_while_the_clock_was_ahead_can_be_taken_back() -> None:
    zone = zone_of("alice")
    zone.publish("music", place(PLACE_C, Z), LONGEST, NOW + DAY * 300)
    assert said(zone.remove("music", NOW)).expires <= int(NOW) + LONGEST


def test_an_end_of_zero_is_a_removal_that_lives_as_long_as_anything_that_was_said() -> None:
    zone = zone_of("alice")
    zone.publish("music", place(PLACE_C, Z), 30 * DAY, NOW)
    zone.publish("music", place(PLACE_C, X), DAY, NOW + 1)
    gone = zone.publish("music", place(PLACE_C, X), 0, NOW + 2)
    assert (gone.is_removed, said(gone).records) == (True, ())
    assert said(gone).expires == int(NOW) + 30 * DAY
    with pytest.raises(Refused, match="removed already"):
        zone.remove("music", NOW + 3)
    assert zone.publish("music", place(PLACE_A, X), DAY, NOW + 4).is_removed is False


def test_what_another_device_said_is_taken_back_for_as_long_as_it_could_last() -> None:
    assert said(zone_of("alice").remove("music", NOW)).expires == int(NOW) + LONGEST


def test_only_what_is_to_go_on_is_signed_again_and_the_rest_is_forgotten() -> None:
    store = MemoryStore()
    zone = zone_of("alice", store)
    zone.publish("music", place(PLACE_C, Z), 2 * DAY, NOW)
    zone.publish("once", place(PLACE_C, Z), 2 * DAY, NOW, renew=False)
    assert zone.renew_due(NOW + DAY - 1) == []
    (renewed,) = zone.renew_due(NOW + DAY + 1)
    assert (renewed.label, said(renewed).expires) == ("music", int(NOW) + 3 * DAY + 1)
    assert zone.forget_ended(NOW + 2 * DAY - 1) == []
    assert [each.label for each in zone.forget_ended(NOW + 2 * DAY)] == ["once"]
    assert [each.label for each in zone_of("alice", store).names()] == ["music"]


def test_a_protected_label_stands_beside_an_open_one_and_its_password_is_not_kept() -> None:
    store = MemoryStore()
    zone = zone_of("alice", store)
    zone.publish("music", place(PLACE_C, Z), DAY, NOW)
    hidden = zone.publish("music", place(PLACE_A, X), DAY, NOW, stretched=SECRET)
    assert [(each.label, each.protected) for each in zone.names()] == [("music", False), ("music", True)]
    assert b"swordfish" not in b"".join(raw for _, raw in store.cells.scan(SPACE))
    assert [each.block.version for each in zone.renew_due(NOW + DAY - 5)] == [int((NOW + DAY - 5) * 1000)] * 2
    assert zone.remove("music", NOW + DAY, SECRET).block.lookup == hidden.block.lookup
    assert [each.is_removed for each in zone.names()] == [False, True]
    assert repr(hidden) == "OwnName(…)"


def test_the_zone_says_openly_what_it_says_openly() -> None:
    zone = zone_of("alice")
    zone.publish("music", place(PLACE_A, X), DAY, NOW, stretched=SECRET)
    assert (zone.has_label("music"), zone.has_label("music", True)) == (False, True)
    zone.publish("music", place(PLACE_A, X, Y), DAY, NOW)
    assert zone.has_label("music")


def test_what_cannot_be_said_is_refused() -> None:
    zone = Zone(ALICE.device, ALICE.card, MemoryStore().cells, lambda count: bytes(count), most=1)
    with pytest.raises(BadText):
        zone.publish("mu.sic", place(PLACE_A, X), DAY, NOW)
    for lifetime in (-1, LONGEST + 1, 0.5):
        with pytest.raises(Refused):
            zone.publish("music", place(PLACE_A, X), lifetime, NOW)
    zone.publish("music", place(PLACE_A, X), DAY, NOW)
    assert reason_of(Refused, zone.publish, "tech", place(PLACE_A, X), DAY, NOW) is Reason.TOO_MANY
    assert reason_of(Refused, zone.remove, "tech", NOW) is Reason.TOO_MANY
    assert (
        reason_of(Refused, zone.publish, "music", place(PLACE_A, X), DAY, NOW + 400 * DAY)
        is Reason.CARD_EXPIRED
    )
    assert zone.renew_due(NOW + 400 * DAY) == []


def test_a_damaged_store_is_said_to_be_one() -> None:
    store = MemoryStore()
    store.cells.put(SPACE, b"k", b"?")
    with pytest.raises(StoreError):
        Zone(ALICE.device, ALICE.card, store.cells, bytes, CONFIG.own)
