"""Samples of members: spread over networks, so that many keys at one address are few."""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.overlay.harness import peer_id

from linnet.core.fair_shares import Origins
from linnet.core.ids import PeerId
from linnet.overlay.crowd import Crowd

ANN, BEN, CID = (peer_id(name) for name in ("ann", "ben", "cid"))
MOB = [peer_id(f"mob {number}") for number in range(100)]


def crowd_of(*members: PeerId, mob: str | None = None) -> Crowd:
    origins = Origins()
    crowd = Crowd(origins)
    for peer in members:
        origins.note(peer, mob if peer in MOB else None)
        crowd.add(peer)
    return crowd


def everyone(peer: PeerId) -> bool:
    return True


def drawn(crowd: Crowd, most: int, draws: int) -> Counter[PeerId]:
    luck, counts = Random(1), Counter[PeerId]()
    for _ in range(draws):
        counts.update(crowd.draw_sample(most, luck, everyone))
    return counts


def test_many_keys_of_one_network_are_drawn_as_often_as_one_elsewhere() -> None:
    counts = drawn(crowd_of(ANN, BEN, CID, *MOB, mob="192.0.2.0/24"), 1, 2000)
    of_mob = sum(counts[peer] for peer in MOB)
    assert 400 < of_mob < 600, "one network of four"
    assert min(counts[peer] for peer in (ANN, BEN, CID)) > 400


def test_keys_that_count_one_by_one_are_drawn_one_by_one() -> None:
    counts = drawn(crowd_of(ANN, *MOB), 1, 2000)
    assert sum(counts[peer] for peer in MOB) > 1900


def test_a_sample_names_nobody_twice_and_only_who_suits() -> None:
    crowd = crowd_of(ANN, BEN, CID)
    for seed in range(50):
        sample = crowd.draw_sample(8, Random(seed), lambda peer: peer != BEN)
        assert len(sample) == len(set(sample)) <= 2
        assert BEN not in sample
    assert sorted(crowd.draw_sample(8, Random(1), everyone)) == sorted((ANN, BEN, CID))


def test_half_of_the_draws_prefer_the_older_of_two() -> None:
    old, young = MOB[:50], MOB[50:]
    counts = drawn(crowd_of(*old, *young), 8, 1000)
    share = sum(counts[peer] for peer in old) / counts.total()
    assert 0.55 < share < 0.7, "a half at random and three quarters of the other half"


def test_who_has_left_is_not_drawn() -> None:
    crowd = crowd_of(ANN, BEN, mob=None)
    crowd.discard(ANN)
    crowd.discard(ANN)
    crowd.add(BEN)
    assert [crowd.draw_sample(8, Random(seed), everyone) for seed in range(5)] == [[BEN]] * 5
    crowd.discard(BEN)
    assert crowd.draw_sample(8, Random(1), everyone) == []


def test_a_member_counts_for_the_network_from_which_it_came() -> None:
    origins = Origins()
    crowd = Crowd(origins)
    for peer in MOB[:2]:
        origins.note(peer, "192.0.2.0/24")
        crowd.add(peer)
    assert crowd.is_crowded
    origins.note(MOB[0], "198.51.100.0/24")
    assert crowd.network_of(MOB[0]) == "192.0.2.0/24"
    crowd.discard(MOB[0])
    crowd.add(MOB[0])
    assert crowd.network_of(MOB[0]) == "198.51.100.0/24"
    assert not crowd.is_crowded
    assert crowd.network_of(ANN) == ANN
