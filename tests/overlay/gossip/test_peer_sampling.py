from __future__ import annotations

from random import Random

import msgspec
import pytest

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.descriptor import check_descriptor, sign_descriptor
from linnet.overlay.gossip.known_peers import KnownPeers
from linnet.overlay.gossip.messages import Descriptor, Pull, Pulled
from linnet.overlay.gossip.peer_sampling import INTRODUCTION_AGES, MOST_PULLS, PeerSampling
from linnet.overlay.gossip.trust import Trust
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

NOW = 1000.0
EXPIRES = 50_000
CONFIG = TrackerlessConfig(view=6, answer=5, introductions=3, halve_rounds=10)


def described(number: int, version: int = 1, expires: int = EXPIRES) -> Descriptor:
    key = SigningKey(number.to_bytes(32, "big"))
    return sign_descriptor(key, version, 1, b"", 0, 1, (f"tls://{number}:1",), expires)


NODES = [described(number) for number in range(40)]
OURS = NODES[0]


def peer(number: int) -> PeerId:
    return NODES[number].peer


class Node:
    """A node's sampling with its tables, before anything happened."""

    def __init__(
        self, config: TrackerlessConfig = CONFIG, seed: int = 1, addresses: tuple[str, ...] = ()
    ) -> None:
        self.acquaintances = KnownPeers()
        self.trust = Trust(MemoryStore().cells, config)
        luck, key = Random(seed), b"k" * 32
        self.sampling = PeerSampling(
            OURS.peer, config, self.acquaintances, self.trust, luck, key, check_descriptor, lambda: addresses
        )

    def full(self) -> Node:
        for node in NODES[1 : CONFIG.view + 1]:
            self.sampling.add_descriptor(node, NOW)
        assert set(self.sampling.view) == {node.peer for node in NODES[1 : CONFIG.view + 1]}
        return self


def test_a_first_answer_fills_half_of_the_view_and_each_later_one_offers_one() -> None:
    node = Node()
    assert node.sampling.choose_target(NOW) is None
    assert node.sampling.find_oldest() is None
    assert node.sampling.handle_pulled(peer(1), tuple(NODES[1:6]), NOW) == []
    assert len(node.sampling.view) == 3
    assert all(other.peer in node.acquaintances for other in NODES[1:6])
    before = set(node.sampling.view)
    assert node.sampling.handle_pulled(peer(7), tuple(NODES[7:12]), NOW) == []
    assert len(set(node.sampling.view) - before) <= 1
    assert node.sampling.choose_target(NOW) in node.sampling.view
    assert node.sampling.find_oldest() in node.sampling.view


def test_no_answer_changes_more_than_one_place_and_the_view_never_shrinks() -> None:
    rng, node = Random(5), Node().full()
    for number in range(200):
        before = set(node.sampling.view)
        node.sampling.handle_pulled(peer(1), tuple(rng.sample(NODES, 5)), NOW + number)
        after = set(node.sampling.view)
        assert len(after) == len(before) == 6
        assert len(after - before) <= 1
        assert OURS.peer not in after


def test_what_was_counted_weighs_half_after_every_so_many_rounds() -> None:
    node = Node().full()
    for _ in range(8):
        node.sampling.handle_pulled(peer(1), (NODES[9],), NOW)
    weights = []
    for _ in range(2 * CONFIG.halve_rounds):
        node.sampling.begin_round(NOW)
        weights.append(node.sampling._sampler._sketch.estimate_count(peer(9)))
    assert weights == [8.0] * 9 + [4.0] * 10 + [2.0]


def test_an_answer_is_ours_and_some_of_the_view_without_the_one_who_asks() -> None:
    node = Node().full()
    answer, records = node.sampling.answer_pull(peer(1), Pull(9, NODES[1]), OURS, NOW)
    assert (answer.number, answer.nodes[0], records) == (9, OURS, [])
    assert len(answer.nodes) <= CONFIG.answer
    assert {told.peer for told in answer.nodes[1:]} < set(node.sampling.view) - {peer(1)}


def test_what_was_received_but_is_not_in_the_view_is_not_passed_on() -> None:
    node = Node().full()
    node.sampling.handle_pulled(peer(1), tuple(NODES[20:25]), NOW)
    for number in range(7, 20):
        view = set(node.sampling.view)
        answer, _ = node.sampling.answer_pull(peer(number), Pull(1, NODES[number]), OURS, NOW)
        assert {told.peer for told in answer.nodes[1:]} <= view


def test_a_node_introduces_itself_alone_within_the_quota_and_not_again_soon() -> None:
    node = Node()
    with pytest.raises(RemoteError) as raised:
        node.sampling.answer_pull(peer(1), Pull(1, NODES[2]), OURS, NOW)
    assert raised.value.reason is Reason.NOT_ALLOWED
    for number in (1, 2, 3):
        assert node.sampling.answer_pull(peer(number), Pull(1, NODES[number]), OURS, NOW)[1] == []
    assert list(node.sampling.view) == [peer(1), peer(2), peer(3)]
    answer, records = node.sampling.answer_pull(peer(4), Pull(1, NODES[4]), OURS, NOW)
    assert records == [Record(Kind.DROPPED, peer=peer(4), reason=Reason.QUOTA, note="introduction")]
    assert len(answer.nodes) == 4, "it is answered nevertheless"
    node.sampling.drop_peer(peer(1))
    node.sampling.begin_round(NOW)
    assert node.sampling.answer_pull(peer(1), Pull(2, NODES[1]), OURS, NOW)[1] == []
    assert list(node.sampling.view) == [peer(3), peer(2)], "too soon"
    for _ in range(INTRODUCTION_AGES * CONFIG.halve_rounds - 1):
        node.sampling.begin_round(NOW)
    node.sampling.answer_pull(peer(1), Pull(3, NODES[1]), OURS, NOW)
    assert list(node.sampling.view) == [peer(3), peer(2), peer(1)]


def test_whoever_pulls_too_often_is_told_so() -> None:
    node = Node()
    for number in range(MOST_PULLS):
        node.sampling.answer_pull(peer(1), Pull(number, NODES[1]), OURS, NOW)
    with pytest.raises(RemoteError) as raised:
        node.sampling.answer_pull(peer(1), Pull(9, NODES[1]), OURS, NOW)
    assert raised.value.reason is Reason.FLOODING
    node.sampling.begin_round(NOW)
    node.sampling.answer_pull(peer(1), Pull(10, NODES[1]), OURS, NOW)


def forged(number: int) -> Descriptor:
    return msgspec.structs.replace(NODES[number], hints=("tls://evil:1",))


def test_who_passes_on_a_forgery_is_shunned_and_nothing_of_its_answer_is_used() -> None:
    node = Node().full()
    before = set(node.sampling.view)
    records = node.sampling.handle_pulled(peer(1), (NODES[1], NODES[9], forged(10), forged(11)), NOW)
    assert records == [Record(Kind.REJECTED, peer=peer(1), reason=Reason.BAD_SIGNATURE, events=2)]
    assert set(node.sampling.view) == before - {peer(1)}
    assert node.trust.is_banned(peer(1), NOW)
    assert not node.trust.is_banned(peer(10), NOW), "the one it was forged in the name of is not to blame"
    with pytest.raises(RemoteError, match="banned"):
        node.sampling.answer_pull(peer(1), Pull(1, NODES[1]), OURS, NOW)


def test_who_forges_its_own_descriptor_is_shunned() -> None:
    node = Node().full()
    with pytest.raises(RemoteError, match="bad_signature"):
        node.sampling.answer_pull(peer(2), Pull(1, forged(2)), OURS, NOW)
    assert peer(2) not in node.sampling.view
    assert node.trust.trust_in(peer(2), NOW) == 0.0


def test_who_signs_an_implausible_filter_is_shunned_not_who_passes_it_on() -> None:
    def check(descriptor: Descriptor, now: float) -> None:
        if descriptor.peer == peer(9):
            raise RemoteError(Reason.IMPLAUSIBLE_FILTER)

    node = Node()
    sampling = PeerSampling(OURS.peer, CONFIG, node.acquaintances, node.trust, Random(1), b"k" * 32, check)
    records = sampling.handle_pulled(peer(1), (NODES[1], NODES[9]), NOW)
    assert records == [Record(Kind.REJECTED, peer=peer(1), reason=Reason.IMPLAUSIBLE_FILTER)]
    assert node.trust.is_banned(peer(9), NOW)
    assert sampling.view == (peer(1),)


def test_what_ended_and_what_is_too_much_is_named_and_nobody_is_shunned() -> None:
    node = Node().full()
    old = described(9, expires=int(NOW) - 1)
    records = node.sampling.handle_pulled(peer(1), (old, NODES[1], NODES[1], *NODES[10:14]), NOW)
    assert records == [
        Record(Kind.REJECTED, peer=peer(1), reason=Reason.TOO_MANY, events=2),
        Record(Kind.REJECTED, peer=peer(1), reason=Reason.STALE),
    ]
    assert not node.trust.is_banned(peer(1), NOW)
    assert peer(9) not in node.acquaintances


def test_a_peer_that_fails_twice_leaves_and_rests_longer_each_time() -> None:
    node = Node().full()
    node.sampling.note_failure(peer(1), NOW)
    assert peer(1) in node.sampling.view
    node.sampling.note_contact(peer(1), NOW)
    node.sampling.note_failure(peer(1), NOW)
    node.sampling.note_failure(peer(1), NOW)
    assert peer(1) not in node.sampling.view
    assert len(node.sampling.view) == 5

    def returns_at(since: float) -> float:
        for step in range(1, 100):
            node.sampling.add_descriptor(NODES[1], since + step * CONFIG.period)
            if peer(1) in node.sampling.view:
                return step * CONFIG.period
        raise AssertionError("it never returned")

    first = returns_at(NOW)
    node.sampling.note_failure(peer(1), NOW)
    second = returns_at(NOW)
    assert 2 * CONFIG.period <= first < second


def test_views_are_pinned_and_what_ended_is_dropped_in_time() -> None:
    node = Node()
    short = described(30, expires=int(NOW) + 5)
    for descriptor in (short, *NODES[1:4]):
        node.sampling.add_descriptor(descriptor, NOW)
    pins = {known.peer: known.pins for known in map(node.acquaintances.get, node.acquaintances) if known}
    assert pins == dict.fromkeys(node.sampling.view, 1)
    answer, _ = node.sampling.answer_pull(peer(9), Pull(1, NODES[9]), OURS, NOW + 6)
    assert short not in answer.nodes
    records = [record for _ in range(CONFIG.halve_rounds) for record in node.sampling.begin_round(NOW + 6)]
    assert records == [Record(Kind.EXPIRED, peer=short.peer, reason=Reason.STALE)]
    assert short.peer not in node.acquaintances


def test_the_trusted_are_asked_a_quarter_of_the_time_by_how_much_they_are_trusted() -> None:
    node = Node().full()
    node.trust.set_trust(peer(20), 0.9)
    node.trust.set_trust(peer(21), 0.3)
    node.trust.set_trust(peer(22), 1.0)
    assert node.sampling.choose_target(NOW) in node.sampling.view, "of the trusted no address is known yet"
    node.acquaintances.learn_descriptor(NODES[20], NOW)
    node.acquaintances.learn_descriptor(NODES[21], NOW)
    asked = [node.sampling.choose_target(NOW) for _ in range(4000)]
    assert asked.count(peer(20)) == pytest.approx(750, abs=100)
    assert asked.count(peer(21)) == pytest.approx(250, abs=60)
    assert peer(22) not in asked
    node.trust.note_offence(peer(20), NOW)
    node.sampling.note_failure(peer(21), NOW)
    node.sampling.note_failure(peer(21), NOW)
    assert {node.sampling.choose_target(NOW) for _ in range(200)} == set(node.sampling.view)


def test_a_member_that_failed_once_is_soon_asked_again() -> None:
    node = Node().full()
    node.sampling.note_failure(peer(3), NOW)
    node.sampling.note_failure(peer(30), NOW)
    asked = [node.sampling.choose_target(NOW) for _ in range(400)]
    assert 180 < asked.count(peer(3)) < 300
    assert peer(30) not in asked
    node.sampling.note_contact(peer(3), NOW)
    assert [node.sampling.choose_target(NOW) for _ in range(400)].count(peer(3)) < 150
    node.sampling.note_failure(peer(4), NOW)
    node.sampling.drop_peer(peer(4))
    assert peer(4) not in [node.sampling.choose_target(NOW) for _ in range(100)]


def test_the_one_not_spoken_to_for_longest_is_asked_a_quarter_of_the_time() -> None:
    node = Node().full()
    node.sampling.begin_round(NOW)
    for number in (1, 2, 3, 5, 6):
        node.sampling.note_contact(peer(number), NOW)
    assert node.sampling.find_oldest() == peer(4)
    asked = [node.sampling.choose_target(NOW) for _ in range(1000)]
    assert asked.count(peer(4)) == pytest.approx(250 + 750 / 6, abs=60)
    node.sampling.note_contact(peer(4), NOW)
    node.sampling.begin_round(NOW)
    node.sampling.note_contact(peer(1), NOW)
    assert node.sampling.find_oldest() in node.sampling.view
    assert node.sampling.find_oldest() != peer(1)


def test_members_that_are_named_often_are_asked_less() -> None:
    node = Node().full()
    before = set(node.sampling.view)
    for _ in range(50):
        node.sampling.handle_pulled(peer(30), (NODES[1], NODES[2], NODES[3]), NOW)
    assert set(node.sampling.view) == before
    asked = [node.sampling.choose_target(NOW) for _ in range(800)]
    often, seldom = (sum(asked.count(peer(number)) for number in some) for some in ((1, 2, 3), (4, 5, 6)))
    assert often + seldom == 800
    assert often == pytest.approx(150 + 200, abs=60), "the oldest is one of them"


def test_no_message_of_pulling_says_anything_local() -> None:
    names = {field.name for kind in (Pull, Pulled, Descriptor) for field in msgspec.structs.fields(kind)}
    assert not names & {"trust", "age", "known", "similarity", "failures", "first_seen", "contacted"}


def at(number: int, host: str) -> Descriptor:
    return sign_descriptor(
        SigningKey(number.to_bytes(32, "big")), 1, 1, b"", 0, 1, (f"tls://{host}:1",), EXPIRES
    )


def test_of_one_address_prefix_only_some_are_in_the_view_and_that_is_named() -> None:
    config = TrackerlessConfig(view=6, answer=5, same_prefix=2)
    node = Node(config)
    one = [at(100 + number, f"198.51.100.{number}") for number in range(4)]
    assert [node.sampling.add_descriptor(each, NOW) for each in one[:2]] == [[], []]
    crowded = Record(Kind.DROPPED, peer=one[2].peer, reason=Reason.TOO_MANY, note="address prefix")
    assert node.sampling.add_descriptor(one[2], NOW) == [crowded]
    assert node.sampling.add_descriptor(at(110, "198.51.101.1"), NOW) == []
    assert node.sampling.handle_pulled(one[3].peer, (one[3],), NOW) == [
        Record(Kind.DROPPED, peer=one[3].peer, reason=Reason.TOO_MANY, note="address prefix")
    ]
    assert one[3].peer in node.acquaintances, "it is known, and may take the place of one that goes"
    node.sampling.drop_peer(one[0].peer)
    assert node.sampling.add_descriptor(one[2], NOW) == []


def test_those_of_our_own_prefix_and_of_this_machine_are_not_bounded() -> None:
    config = TrackerlessConfig(view=6, answer=5, same_prefix=1)
    node = Node(config, addresses=("tls://198.51.100.9:1",))
    for number in range(3):
        assert node.sampling.add_descriptor(at(100 + number, f"198.51.100.{number}"), NOW) == []
        assert node.sampling.add_descriptor(at(110 + number, "127.0.0.1"), NOW) == []
    assert len(node.sampling.view) == 6


def test_very_many_keys_of_one_address_that_are_named_in_every_answer_get_the_places_of_one_prefix() -> None:
    config = TrackerlessConfig(view=20, answer=20, same_prefix=4)
    rng, node = Random(7), Node(config)
    liars = [at(1000 + number, f"198.51.100.{number % 250}") for number in range(300)]
    honest = [at(2000 + number, f"10.{number}.0.1") for number in range(60)]
    theirs = {each.peer for each in liars}
    for _ in range(400):
        told = liars if rng.random() < 0.8 else honest
        node.sampling.handle_pulled(told[0].peer, tuple(rng.sample(told, 20)), NOW)
        node.sampling.begin_round(NOW)
        assert sum(peer in theirs for peer in node.sampling.view) <= 4
    assert len(node.sampling.view) == 20
