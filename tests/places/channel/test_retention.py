"""What is evicted, and what never is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Spot, Tail, Verified
from linnet.event.signing import sign_unit
from linnet.places.channel.fragment_store import Fragments, Mark, New
from linnet.places.channel.membership import Membership
from linnet.places.deed import Policy
from linnet.places.ingest import forget_orphans
from linnet.places.keepers import retain
from linnet.places.multicast.fragmentation import FRAGMENT, Change, Flag, Head, encode_head
from linnet.store.base import CommittingStore
from linnet.store.memory import MemoryStore
from linnet.store.sqlite import SqliteStore
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind

PLACE = TopicId(b"place..." * 4)
ANN, BEN = AuthorId(b"ann." * 8), AuthorId(b"ben." * 8)
WHOLE = Flag.FIRST | Flag.LAST


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CommittingStore]:
    engine: CommittingStore = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "s.db")
    yield engine
    engine.close()


def said(head: Head) -> Verified:
    voice = known_identity("host")
    tail = Tail(None, None, None, None, FRAGMENT, None, 0, encode_head(head), b"x" * 1000)
    return sign_unit(voice.device, Spot(PLACE, voice.author, voice.card.device, head.fragment, None), [tail])


HEADS = [
    Head(1, 0, 1, 0, 0, WHOLE | Flag.OPENING),
    Head(1, 1, 2, 0, 0, WHOLE | Flag.STATE),  # before the hash
    Head(1, 2, 3, 0, 0, WHOLE, Change(ANN, True, 3)),  # in force
    Head(1, 3, 4, 0, 0, WHOLE, Change(BEN, True, 4)),
    Head(1, 4, 5, 0, 0, WHOLE, Change(BEN, False, 0)),
    Head(1, 5, 6, 0, 1, WHOLE | Flag.HASH | Flag.STATE),  # the base
    Head(1, 6, 7, 0, 1, Flag.FIRST),
    Head(1, 7, 8, 0, 1, WHOLE | Flag.STATE),  # behind the base
    Head(1, 8, 7, 1000, 1, Flag.LAST),
    Head(1, 9, 9, 0, 1, WHOLE),  # the last one of its device
]
STAYS = [2, 9]


def filled(store: CommittingStore) -> tuple[Fragments, Membership]:
    fragments = Fragments(PLACE, store.log, store.cells)
    members = Membership(PLACE, store.cells, Policy.PRIVATE)
    for head in HEADS:
        assert isinstance(fragments.store(said(head), head, float(head.fragment)), New)
        if head.change is not None:
            members.store(head.change, head.message, head.generation)
    fragments.mark(6, Mark.APPLIED | Mark.HASH)
    return fragments, members


def test_what_later_things_rest_on_is_never_evicted(store: CommittingStore) -> None:
    fragments, members = filled(store)
    standing = fragments.standing
    gone = retain(fragments, members, store.log, 0)
    assert [(record.kind, record.reason, record.seq) for record in gone] == [
        (Kind.EVICTED, Reason.QUOTA, number) for number in range(10) if number not in STAYS
    ]
    for looked_at in (fragments, Fragments(PLACE, store.log, store.cells)):
        assert [number for number in range(10) if looked_at.get(number) is not None] == STAYS
        for number in STAYS:
            row = looked_at.get(number)
            assert row is not None
            assert looked_at.verified(row) == said(HEADS[number])
        assert (looked_at.upto, looked_at.missing(9), looked_at.standing) == (10, [], standing)
        assert (looked_at.pieces(7), looked_at.is_whole(7)) == ([], False)
    assert retain(fragments, members, store.log, 0) == []


def test_no_more_goes_than_must(store: CommittingStore) -> None:
    fragments, members = filled(store)
    held = store.log.kept(PLACE).bytes
    gone = retain(fragments, members, store.log, held - 1500)
    assert [record.seq for record in gone] == [0, 1]
    assert retain(fragments, members, store.log, held) == []


def test_one_look_does_a_bounded_piece_of_work(store: CommittingStore) -> None:
    fragments, members = filled(store)
    assert [record.seq for record in retain(fragments, members, store.log, 0, most=3)] == [0, 1]
    assert [record.seq for record in retain(fragments, members, store.log, 0, most=3)] == [3, 4, 5]


def test_what_was_evicted_may_come_again_as_history(store: CommittingStore) -> None:
    fragments, members = filled(store)
    retain(fragments, members, store.log, 0)
    for number, whole in ((8, False), (6, True)):
        outcome = fragments.store(said(HEADS[number]), HEADS[number], 20.0)
        assert isinstance(outcome, New)
        assert outcome.whole is whole
    assert [row.fragment for row in fragments.message(7)] == [6, 8]


def test_a_piece_that_goes_leaves_a_gap_in_its_message(store: CommittingStore) -> None:
    fragments, _ = filled(store)
    row = fragments.get(6)
    assert row is not None
    fragments.evicted(row)
    assert [row.fragment for row in fragments.pieces(7)] == [8]
    outcome = fragments.store(said(HEADS[6]), HEADS[6], 20.0)
    assert isinstance(outcome, New)
    assert outcome.whole


def test_orphans_go_too(store: CommittingStore) -> None:
    fragments, members = filled(store)
    assert [row.fragment for row in fragments.orphan(7, 1)] == [8, 9]
    retain(fragments, members, store.log, 0)
    assert [row.fragment for row in fragments.orphans()] == [9]  # its device's chain ends with it


def test_what_tells_keys_goes_last_the_oldest_first_and_with_a_reason(store: CommittingStore) -> None:
    fragments = Fragments(PLACE, store.log, store.cells)
    members = Membership(PLACE, store.cells, Policy.PRIVATE)
    heads = [Head(1, 0, 1, 0, 0, WHOLE | Flag.OPENING)]
    heads += [Head(1, number, number + 1, 0, 0, WHOLE | Flag.KEYS) for number in range(1, 7)]
    heads += [Head(1, number, number + 1, 0, 0, WHOLE) for number in range(7, 10)]
    for head in heads:
        assert isinstance(fragments.store(said(head), head, float(head.fragment)), New)
    one = store.log.kept(PLACE).bytes // 10
    assert [each.seq for each in retain(fragments, members, store.log, 7 * one + 99)] == [0, 7, 8]
    gone = retain(fragments, members, store.log, 3 * one + 99)
    assert [(each.seq, each.reason) for each in gone] == [(number, Reason.QUOTA) for number in (1, 2, 3, 4)]
    assert store.log.kept(PLACE).bytes <= 3 * one + 99
    # Old alone is no reason: they are few, and there is room for them.
    assert retain(fragments, members, store.log, 3 * one + 99, before=100.0) == []


def test_orphans_of_others_are_held_up_to_a_bound_and_our_own_all(store: CommittingStore) -> None:
    fragments, _ = filled(store)
    fragments.orphan(3, 1)
    others, ours = DeviceId(b"d" * 16), known_identity("host").card.device
    assert forget_orphans(fragments, ours, most=2) == [], "we say them again"
    (record,) = forget_orphans(fragments, others, most=2)
    assert (record.kind, record.reason) == (Kind.EVICTED, Reason.QUOTA)
    assert [row.fragment for row in fragments.orphans()] == [8, 9], "the oldest go first"
    assert forget_orphans(fragments, others, most=2) == []
