"""One ring: who is next on each side, across the wrap too, and who is let go when there are too many."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.gossip.ring_network import START, describe, keys_of, peer_of

from linnet.core.ids import PeerId
from linnet.overlay.gossip.config import RingOrder, TrackerlessConfig
from linnet.overlay.gossip.messages import RingMember
from linnet.overlay.gossip.ring import KNOWN, Ring, position
from linnet.overlay.gossip.topic_tags import epoch_of, proof

KEYS = keys_of("x")
EPOCH = epoch_of(START)
CONFIG = TrackerlessConfig()
PLACES = 2**256


def at(place: int) -> PeerId:
    """The peer whose key is this number."""
    return PeerId((place % PLACES).to_bytes(32, "big"))


def member(peer: PeerId, version: int = 1, epoch: int = EPOCH, keeps: bool = False) -> RingMember:
    return RingMember(describe(peer, version), epoch, proof(KEYS, peer, epoch), keeps)


def lot(peer: PeerId) -> int:
    """Lots that anyone can tell, for tests alone."""
    return int.from_bytes(peer[::-1], "big")


def ring_at(place: int, others: list[int], met: bool = True, order: RingOrder = RingOrder.ID) -> Ring:
    ring = Ring(at(place), KEYS, TrackerlessConfig(ring_order=order), EPOCH, lot)
    for other in others:
        ring.merge_members([member(at(other))], met=at(other) if met else None)
    return ring


def test_alone_on_a_ring_there_is_nobody_beside_us() -> None:
    ring = ring_at(5, [5])
    assert (len(ring), ring.successors, ring.predecessors, ring.wanted, ring.missing) == (0, (), (), (), 4)
    assert ring.find_successor([at(5)]) is None


def test_of_two_each_is_the_other_s_successor_and_predecessor() -> None:
    for here, there in ((5, 9), (9, 5)):
        ring = ring_at(here, [there])
        assert ring.successors == ring.predecessors == (at(there),)
        assert ring.neighbors == (at(there),)
        assert ring.missing == 3


@pytest.mark.parametrize(
    ("here", "ahead", "back"),
    [(1, (3, 7), (7, 3)), (3, (7, 1), (1, 7)), (7, (1, 3), (3, 1))],
)
def test_of_three_all_know_both_others_across_the_wrap(
    here: int, ahead: tuple[int, ...], back: tuple[int, ...]
) -> None:
    ring = ring_at(here, [place for place in (1, 3, 7) if place != here])
    assert ring.successors == tuple(at(place) for place in ahead)
    assert ring.predecessors == tuple(at(place) for place in back)


def test_of_five_the_two_next_on_each_side_are_neighbours_across_the_wrap() -> None:
    places = [0, 2, PLACES // 2, PLACES - 3, PLACES - 1]
    for i, here in enumerate(places):
        ring = ring_at(here, [place for place in places if place != here])
        assert ring.successors == (at(places[(i + 1) % 5]), at(places[(i + 2) % 5]))
        assert ring.predecessors == (at(places[i - 1]), at(places[i - 2]))
        assert ring.missing == 0


@given(st.lists(st.integers(0, PLACES - 1), unique=True, min_size=1, max_size=KNOWN), st.randoms())
def test_neighbours_are_the_nearest_clockwise_and_counter_clockwise(places: list[int], rng: Random) -> None:
    here, others = places[0], places[1:]
    rng.shuffle(others)
    ring = ring_at(here, others, met=False)
    clockwise = sorted(others, key=lambda place: (place - here) % PLACES)
    counter = sorted(others, key=lambda place: (here - place) % PLACES)
    assert ring.successors == tuple(map(at, clockwise[:2]))
    assert ring.predecessors == tuple(map(at, counter[:2]))
    assert list(ring) == list(map(at, clockwise))


def test_the_nearest_that_is_up_is_next_and_the_spare_stands_in_for_it() -> None:
    ring = ring_at(0, [1, 2, 3, 10, 11, 12])
    assert ring.find_successor([at(2), at(1)]) == at(1)
    assert ring.find_successor([at(2), at(3)]) == at(2)
    assert ring.find_successor([at(3), at(10)]) is None, "two that were met are not up: a gap"
    assert ring.find_predecessor([at(12)]) == at(12)
    assert ring.find_predecessor([at(11)]) == at(11)
    assert ring.find_predecessor([at(10)]) is None
    assert ring.find_beyond([at(3), at(10)], ahead=True) == at(3)
    assert ring.find_beyond([at(3), at(10)], ahead=False) == at(10)
    assert ring.find_beyond([], ahead=True) is None


def test_whoever_was_only_heard_of_displaces_nobody_that_was_met() -> None:
    """A liar can name any number of members beside a victim; they are tried, and change nothing."""
    ring = ring_at(0, [100, 200, PLACES - 100, PLACES - 200])
    ring.merge_members([member(at(place)) for place in range(1, 40)])
    ring.merge_members([member(at(PLACES - place)) for place in range(1, 40)])
    assert ring.successors == (at(1), at(2)), "they are tried"
    assert {at(100), at(200), at(PLACES - 100), at(PLACES - 200)} < set(ring.neighbors)
    up = [at(200), at(100), at(PLACES - 100)]
    assert (ring.find_successor(up), ring.find_predecessor(up)) == (at(100), at(PLACES - 100))


def test_a_ring_is_bounded_and_keeps_its_neighbours_and_the_lowest_lots() -> None:
    ring = Ring(peer_of("us"), KEYS, CONFIG, EPOCH, lot)
    peers = [peer_of(number) for number in range(500)]
    for peer in peers:
        ring.merge_members([member(peer)])
    assert len(ring) == KNOWN
    here = int.from_bytes(peer_of("us"), "big")
    clockwise = sorted(peers, key=lambda peer: (int.from_bytes(peer, "big") - here) % PLACES)
    near = [*clockwise[:2], *clockwise[-2:]]
    assert set(ring.neighbors) == set(near)
    far = sorted((peer for peer in peers if peer not in near), key=lot)
    assert list(ring.shortcuts) == far[:2]
    assert set(far[:50]) < set(ring)


def test_a_full_ring_has_room_for_those_nearby_and_of_low_lots_and_for_anyone_once_one_is_gone() -> None:
    ring = Ring(peer_of("us"), KEYS, CONFIG, EPOCH, lot)
    assert ring.has_room_for(peer_of("anyone"))
    for number in range(500):
        ring.merge_members([member(peer_of(number))])
    refused = 0
    for number in range(500, 700):
        peer = peer_of(number)
        room = ring.has_room_for(peer)
        refused += not room
        ring.merge_members([member(peer)])
        assert room or peer not in ring, "who is refused unseen would not have stayed"
    assert refused > 150
    ring.drop_member(ring.neighbors[0])
    assert all(ring.has_room_for(peer_of(number)) for number in range(700, 720))


def test_whoever_was_met_is_kept_before_those_that_were_only_heard_of() -> None:
    ring = Ring(peer_of("us"), KEYS, CONFIG, EPOCH, lot)
    friends = [peer_of(f"met {number}") for number in range(20)]
    for peer in friends:
        ring.merge_members([member(peer)], met=peer)
    for number in range(1_000):
        ring.merge_members([member(peer_of(number))])
    assert set(friends) < set(ring)
    assert len(ring) == KNOWN


def test_shortcuts_stay_whatever_is_learned_unless_a_lower_lot_turns_up() -> None:
    ring = ring_at(0, [1, 2, PLACES - 1, PLACES - 2, 1 << 203, 1 << 204, 1 << 205])
    assert ring.shortcuts == (at(1 << 203), at(1 << 204)), "the lots of these are the lowest"
    ring.merge_members([member(at(1 << 206))])
    assert ring.shortcuts == (at(1 << 203), at(1 << 204))
    ring.merge_members([member(at(1 << 202))])
    assert ring.shortcuts == (at(1 << 202), at(1 << 203))
    ring.drop_member(at(1 << 202))
    assert ring.shortcuts == (at(1 << 203), at(1 << 204))


def test_merging_tells_whether_neighbours_changed_and_counts_calm() -> None:
    ring = ring_at(0, [])
    assert ring.merge_members([member(at(place)) for place in (5, 10, 20, 30)])
    assert not ring.merge_members([member(at(15))])
    assert not ring.merge_members([member(at(5))])
    assert ring.calm == 2
    assert ring.merge_members([member(at(4))])
    assert ring.calm == 0


def test_the_newer_descriptor_and_the_newer_proof_of_a_member_stand() -> None:
    ring = ring_at(0, [])
    ring.merge_members([member(at(5), version=3, epoch=EPOCH)])
    ring.merge_members([member(at(5), version=2, epoch=EPOCH)])
    assert ring.get(at(5)) == member(at(5), version=3)
    ring.merge_members([member(at(5), version=2, epoch=EPOCH + 1)])
    assert ring.get(at(5)) == member(at(5), version=3, epoch=EPOCH + 1)
    ring.merge_members([member(at(5), version=4, epoch=EPOCH, keeps=True)])
    assert ring.get(at(5)) == member(at(5), version=4, epoch=EPOCH + 1, keeps=True)


def test_whoever_is_dropped_is_gone_from_everything() -> None:
    ring = ring_at(0, [1, 2, 3, 4, 5])
    assert ring.drop_member(at(1)) == member(at(1))
    assert ring.drop_member(at(1)) is None
    assert at(1) not in ring
    assert not ring.is_met(at(1))
    assert ring.successors == (at(2), at(3))
    assert at(1) not in ring.wanted


def test_a_peer_is_told_of_those_beside_its_own_place_and_not_of_itself() -> None:
    ring = ring_at(0, [10, 20, 30, 40, 50, 60, 70, 80])
    ring.calm = 100
    told = ring.members_around(at(50), 10, Random(1))
    assert [one.node.peer for one in told] == [at(60), at(70), at(40), at(30)]
    stranger = ring.members_around(at(55), 10, Random(1))
    assert [one.node.peer for one in stranger] == [at(60), at(70), at(50), at(40)]
    wrapped = ring.members_around(at(80), 10, Random(1))
    assert [one.node.peer for one in wrapped] == [at(10), at(20), at(70), at(60)]


def test_while_a_ring_forms_some_members_at_random_are_told_of_too() -> None:
    ring = ring_at(0, list(range(1, 60)))
    ring.calm = 0
    told = [one.node.peer for one in ring.members_around(at(50), 10, Random(1))]
    assert told[:4] == [at(51), at(52), at(49), at(48)]
    assert 4 < len(set(told)) == len(told) <= 10
    assert at(50) not in told


def test_by_id_a_place_is_the_same_on_all_rings_and_by_hash_on_none_and_in_no_other_epoch() -> None:
    peer, other = peer_of(1), keys_of("y")
    assert position(peer, KEYS, 1, RingOrder.ID) == int.from_bytes(peer, "big")
    assert position(peer, KEYS, 1, RingOrder.ID) == position(peer, other, 2, RingOrder.ID)
    hashed = {position(peer, keys, epoch, RingOrder.HASH) for keys in (KEYS, other) for epoch in (1, 2)}
    assert len(hashed) == 4
    assert position(peer, KEYS, 1, RingOrder.HASH) in hashed


def test_with_a_new_epoch_hashed_places_change_and_the_order_with_them() -> None:
    peers = [peer_of(number) for number in range(40)]
    ring = Ring(peer_of("us"), KEYS, TrackerlessConfig(ring_order=RingOrder.HASH), EPOCH, lot)
    ring.merge_members([member(peer) for peer in peers])
    before = list(ring)
    assert ring.begin_epoch(EPOCH) == []
    assert ring.begin_epoch(EPOCH + 1) == []

    def offset(peer: PeerId) -> int:
        here = position(peer_of("us"), KEYS, EPOCH + 1, RingOrder.HASH)
        return (position(peer, KEYS, EPOCH + 1, RingOrder.HASH) - here) % PLACES

    assert list(ring) == sorted(peers, key=offset) != before
    assert ring.successors == tuple(sorted(peers, key=offset)[:2])


def test_a_key_that_was_ground_to_stand_beside_a_victim_stands_elsewhere_by_hash() -> None:
    """By id it is next for good; by hash it is next only by luck, and not in the next epoch."""
    victim = int.from_bytes(peer_of("us"), "big")
    liars = [at(victim + 1), at(victim - 1)]
    honest = [peer_of(number) for number in range(60)]
    by_id = Ring(peer_of("us"), KEYS, CONFIG, EPOCH, lot)
    by_hash = Ring(peer_of("us"), KEYS, TrackerlessConfig(ring_order=RingOrder.HASH), EPOCH, lot)
    for ring in (by_id, by_hash):
        ring.merge_members([member(peer) for peer in (*liars, *honest)])
    assert (by_id.successors[0], by_id.predecessors[0]) == tuple(liars)
    assert not {*by_hash.successors, *by_hash.predecessors} & set(liars)


def test_members_whose_proof_is_of_an_old_epoch_leave() -> None:
    ring = ring_at(0, [])
    ring.merge_members([member(at(1), epoch=EPOCH), member(at(2), epoch=EPOCH + 1)])
    assert ring.begin_epoch(EPOCH + 1) == []
    assert ring.begin_epoch(EPOCH + 2) == [at(1)]
    assert list(ring) == [at(2)]
