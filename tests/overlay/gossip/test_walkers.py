"""Searches: where walkers go, who answers, who can read it, and what those on the way learn."""

from __future__ import annotations

import os
from functools import cache
from math import exp
from random import Random

import pytest
from msgspec import msgpack, structs
from tests.overlay.gossip.ring_network import START, keys_of, peer_of
from tests.overlay.gossip.seek_network import EPOCH, SeekNetwork, success

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.overlay.gossip.config import DAY, TrackerlessConfig
from linnet.overlay.gossip.messages import SEALED_BYTES, Descriptor, RingMember, Seek, Sought
from linnet.overlay.gossip.profile_filter import bit_positions, bits_of
from linnet.overlay.gossip.random_walk_search import (
    ROOM,
    SEALED,
    WALK,
    Found,
    Hop,
    Walkers,
    Ways,
    open_answer,
    rank_peers,
    reply_key,
    seal_answer,
)
from linnet.overlay.gossip.topic_tags import TopicKeys, proof, tag_in
from linnet.trace.records import Kind

SOAK = bool(os.environ.get("LINNET_SOAK"))
KEYS, OTHER = keys_of("x"), keys_of("y")
CONFIG = TrackerlessConfig()
QUIET = TrackerlessConfig(epsilon=30.0)
"""So little noise that there is none."""
ANN, BEN, CID, DAN = (peer_of(name) for name in ("ann", "ben", "cid", "dan"))


def seeking_of(
    *topics: TopicKeys, seed: int = 1, key: bytes = bytes(32), config: TrackerlessConfig = QUIET
) -> Walkers:
    rng = Random(seed)
    seeking = Walkers(config, rng, rng.randbytes, key)
    for keys in topics:
        seeking.add_topic(keys)
    return seeking


def bits(keys: TopicKeys, epoch: int = EPOCH) -> tuple[int, ...]:
    return bit_positions(tag_in(keys, epoch), epoch, CONFIG.filter_bits, 1)


def described(peer: PeerId, *topics: TopicKeys) -> Descriptor:
    shown = bits_of([tag_in(keys, EPOCH) for keys in topics], EPOCH, CONFIG.filter_bits, 1)
    filter_ = shown.to_bytes(CONFIG.filter_bits // 8, "little")
    return Descriptor(peer, 1, EPOCH, filter_, 30_000, 1, ("tls://a:1",), int(START + DAY), bytes(64))


def alike(_peer: PeerId) -> tuple[int, float]:
    return 0, 0.0


def mask(*shown: int) -> int:
    return sum(1 << bit for bit in shown)


def begun(seeking: Walkers, *neighbors: PeerId) -> list[tuple[PeerId, Seek]]:
    hop = seeking.send_walkers(KEYS, EPOCH, Ways(neighbors, alike), START)
    return [(peer, message) for peer, message in hop.sends if isinstance(message, Seek)]


def a_search(seed: int = 9) -> tuple[Walkers, Seek]:
    seeker = seeking_of(seed=seed)
    return seeker, begun(seeker, ANN)[0][1]


def walkers(hop: Hop) -> list[tuple[PeerId, Seek]]:
    return [(peer, message) for peer, message in hop.sends if isinstance(message, Seek)]


def answers(hop: Hop) -> list[Sought]:
    return [message for _, message in hop.sends if isinstance(message, Sought)]


# Walkers.


def test_two_walkers_go_to_the_two_likeliest_by_the_true_bits_alone() -> None:
    meant, everything = mask(*bits(KEYS)), mask(*range(CONFIG.filter_bits))
    shown = {ANN: (meant, 1.0), BEN: (meant, 5.0), CID: (meant, 3.0), DAN: (everything ^ meant, 100.0)}
    hop = seeking_of().send_walkers(KEYS, EPOCH, Ways([ANN, BEN, CID, DAN], shown.__getitem__), START)
    assert [peer for peer, _ in hop.sends] == [BEN, CID]
    one, other = (message for _, message in walkers(hop))
    assert one.request != other.request
    assert one.reply_key != other.reply_key
    assert one.positions == other.positions


def test_three_of_four_bits_are_decoys_and_they_are_the_same_in_every_search_of_an_epoch() -> None:
    """Whoever saw two searches for one topic could otherwise tell what they have in common."""
    seeking = seeking_of(key=bytes([7]) * 32)
    searches = {begun(seeking, ANN)[0][1].positions for _ in range(20)}
    assert len(searches) == 1
    shown = searches.pop()
    assert len(shown) == 4
    assert set(bits(KEYS)) < set(shown)
    assert list(shown) == sorted(shown)
    stranger = begun(seeking_of(key=bytes([8]) * 32), ANN)[0][1].positions
    assert set(shown) & set(stranger) == set(bits(KEYS))
    later = seeking.send_walkers(KEYS, EPOCH + 1, Ways([ANN], alike), START)
    assert set(bits(KEYS, EPOCH + 1)) < set(walkers(later)[0][1].positions) != set(shown)


def test_a_search_fits_as_many_topics_as_its_bits_do() -> None:
    """Of 5,000 public topics a relay is left with four in 1,024: about 20."""
    _, seek = a_search()
    fitting = [n for n in range(5_000) if set(bits(keys_of(f"public {n}"))) <= set(seek.positions)]
    assert len(fitting) >= 0.6 * 4 * 5_000 / 1_024


def test_the_first_node_cannot_tell_by_the_hops_that_it_is_the_first() -> None:
    starts = {begun(seeking_of(seed=seed), ANN)[0][1].hops for seed in range(40)}
    assert starts == {29, 30, 31, 32}


def test_a_walker_goes_on_to_the_likeliest_never_back_and_one_hop_older() -> None:
    _, seek = a_search()
    bit = mask(seek.positions[0])
    shown = {ANN: (bit, 9.0), BEN: (bit, 1.0), CID: (bit, 2.0)}
    node = seeking_of()
    hop = node.handle_seek(ANN, seek, described(DAN), Ways([ANN, BEN, CID], shown.__getitem__), START)
    assert hop == Hop([(CID, structs.replace(seek, hops=seek.hops - 1))], [])


def test_among_equals_the_lot_decides() -> None:
    _, seek = a_search()
    chosen = {
        walkers(seeking_of(seed=seed).handle_seek(ANN, seek, described(DAN), Ways([BEN, CID], alike), START))[
            0
        ][0]
        for seed in range(20)
    }
    assert chosen == {BEN, CID}


def test_where_it_was_before_a_walker_is_sent_back() -> None:
    _, seek = a_search()
    node = seeking_of()
    node.handle_seek(ANN, seek, described(DAN), Ways([BEN], alike), START)
    again = node.handle_seek(CID, seek, described(DAN), Ways([BEN], alike), START)
    assert again == Hop([(CID, structs.replace(seek, hops=seek.hops - 1, back=True))], [])
    own, mine = a_search()
    assert own.handle_seek(CID, mine, described(DAN), Ways([BEN], alike), START).sends == [
        (CID, structs.replace(mine, hops=mine.hops - 1, back=True))
    ]


def test_whoever_gets_it_back_tries_the_next_and_in_the_end_sends_it_back_too() -> None:
    _, seek = a_search()
    node = seeking_of()
    first = walkers(node.handle_seek(ANN, seek, described(DAN), Ways([BEN, CID], alike), START))[0]
    returned = structs.replace(first[1], hops=first[1].hops - 1, back=True)
    second = walkers(node.handle_seek(first[0], returned, described(DAN), Ways([BEN, CID], alike), START))[0]
    assert {first[0], second[0]} == {BEN, CID}
    assert not second[1].back
    end = node.handle_seek(
        second[0], structs.replace(returned, hops=9), described(DAN), Ways([BEN, CID], alike), START
    )
    assert end.sends == [(ANN, structs.replace(seek, hops=8, back=True))]


def test_at_the_seeker_a_walker_that_comes_back_goes_to_another_or_ends() -> None:
    seeker, seek = a_search()
    returned = structs.replace(seek, hops=20, back=True)
    assert walkers(seeker.handle_seek(ANN, returned, described(DAN), Ways([ANN, BEN], alike), START)) == [
        (BEN, structs.replace(seek, hops=19))
    ]
    end = seeker.handle_seek(BEN, returned, described(DAN), Ways([ANN, BEN], alike), START)
    assert end.sends == []
    assert [record.reason for record in end.records] == [Reason.NO_ADDRESS]


def test_a_walker_ends_when_its_hops_are_used_up() -> None:
    _, seek = a_search()
    hop = seeking_of().handle_seek(
        ANN, structs.replace(seek, hops=1), described(DAN), Ways([BEN], alike), START
    )
    assert hop.sends == []
    assert [(record.kind, record.reason) for record in hop.records] == [(Kind.EXPIRED, Reason.OVERDUE)]


def test_a_walker_that_cannot_be_sent_goes_elsewhere() -> None:
    _, seek = a_search()
    node = seeking_of()
    target, onward = walkers(node.handle_seek(ANN, seek, described(DAN), Ways([BEN, CID], alike), START))[0]
    other = walkers(node.handle_failure(target, onward, Ways([BEN, CID], alike)))
    assert [peer for peer, _ in other] == [CID if target == BEN else BEN]
    lost = node.handle_failure(DAN, onward, Ways([BEN, CID], alike))
    assert (lost.sends, [record.reason for record in lost.records]) == ([], [Reason.UNREACHABLE])


# Answers.


def found_by(seeker: Walkers, seek: Seek, hop: Hop) -> list[Found]:
    found = []
    for answer in answers(hop):
        result = seeker.handle_sought(ANN, answer, START).found
        if result is not None:
            found.append(result)
    return found


def test_a_member_answers_and_the_seeker_reads_who_it_is() -> None:
    seeker, seek = a_search()
    own = described(DAN, KEYS)
    hop = seeking_of(KEYS).handle_seek(ANN, seek, own, Ways([BEN], alike), START)
    assert len(answers(hop)) == 1
    assert hop.sends[0][0] == ANN, "the way that the walker came"
    assert len(walkers(hop)) == 1, "the walker goes on"
    expected = RingMember(own, EPOCH, proof(KEYS, DAN, EPOCH))
    assert found_by(seeker, seek, hop) == [Found(KEYS.topic, expected)]


def test_a_member_of_another_topic_with_such_a_bit_answers_and_is_not_understood() -> None:
    seeker, seek = a_search()
    decoy = next(keys for n in range(9_999) if set(bits(keys := keys_of(n))) < set(seek.positions))
    hop = seeking_of(decoy).handle_seek(ANN, seek, described(DAN, decoy), Ways([BEN], alike), START)
    assert len(answers(hop)) == 1
    assert found_by(seeker, seek, hop) == []


def test_no_member_answers_too_where_its_noisy_filter_shows_the_bits() -> None:
    seeker, seek = a_search()
    hop = seeking_of().handle_seek(ANN, seek, described(DAN, KEYS), Ways([BEN], alike), START)
    true = seeking_of(KEYS).handle_seek(ANN, seek, described(DAN, KEYS), Ways([BEN], alike), START)
    assert len(answers(hop)) == len(answers(true)) == 1
    assert len(answers(hop)[0].sealed) == len(answers(true)[0].sealed)
    assert found_by(seeker, seek, hop) == []


def test_a_topic_that_the_filter_does_not_show_yet_is_found() -> None:
    seeker, seek = a_search()
    hop = seeking_of(KEYS).handle_seek(ANN, seek, described(DAN), Ways([BEN], alike), START)
    assert [found.topic for found in found_by(seeker, seek, hop)] == [KEYS.topic]


def test_whether_there_is_an_answer_is_noisy_and_stays_the_same_for_the_epoch() -> None:
    """Over many nodes a bit of a topic that is not shown is answered as often as epsilon allows."""
    _, seek = a_search()
    one = structs.replace(seek, positions=bits(KEYS))
    counts = {}
    for member in (True, False):
        answered = 0
        for number in range(600):
            node = seeking_of(*([KEYS] if member else []), key=number.to_bytes(32, "big"), config=CONFIG)
            results = {
                len(
                    answers(
                        node.handle_seek(
                            ANN,
                            structs.replace(one, request=bytes([n]) * 16),
                            described(DAN),
                            Ways([], alike),
                            START,
                        )
                    )
                )
                for n in range(3)
            }
            assert len(results) == 1, "asking again tells nothing new"
            answered += results.pop()
        counts[member] = answered / 600
    flip = 1 / (1 + exp(CONFIG.epsilon))
    assert counts[True] == pytest.approx(1 - flip, abs=0.03)
    assert counts[False] == pytest.approx(flip, abs=0.03)


def test_no_answer_tells_of_more_topics_than_the_bits_do() -> None:
    """Two of our topics with one bit in common make one answer, as one would."""
    _, seek = a_search()
    twin = next(keys for n in range(99_999) if bits(keys := keys_of(f"twin {n}")) == bits(KEYS))
    hop = seeking_of(KEYS, twin).handle_seek(ANN, seek, described(DAN, KEYS, twin), Ways([BEN], alike), START)
    assert len(answers(hop)) == 1


def test_relays_pass_answers_back_and_cannot_open_them() -> None:
    seeker, seek = a_search()
    relay = seeking_of(KEYS, seed=5)
    target, onward = walkers(relay.handle_seek(ANN, seek, described(BEN), Ways([CID], alike), START))[0]
    assert target == CID
    member = seeking_of(KEYS, seed=6)
    answer = answers(member.handle_seek(BEN, onward, described(CID, KEYS), Ways([], alike), START))[0]
    assert relay.handle_sought(CID, answer, START) == Hop([(ANN, answer)], [])
    for key in (reply_key(Random(5).randbytes), reply_key(Random(6).randbytes)):
        assert open_answer(key, KEYS.ring, seek.request, answer.sealed) is None
    assert answer.sealed.find(CID) == -1
    assert answer.sealed.find(b"tls://") == -1
    found = seeker.handle_sought(ANN, answer, START).found
    assert found is not None
    assert found.member.node.peer == CID


def test_an_answer_to_no_search_or_from_elsewhere_or_too_late_is_recorded() -> None:
    seeker, seek = a_search()
    answer = Sought(seek.request, bytes(560))
    for peer, message, now in (
        (BEN, answer, START),
        (ANN, Sought(bytes(16), bytes(560)), START),
        (ANN, answer, START + WALK),
    ):
        hop = seeker.handle_sought(peer, message, now)
        assert (hop.sends, hop.found) == ([], None)
        assert [record.reason for record in hop.records] == [Reason.STALE]


def test_a_member_that_vouches_for_nobody_or_writes_nonsense_is_recorded() -> None:
    seeker, seek = a_search()
    luck = Random(1).randbytes
    bad = RingMember(described(DAN), EPOCH, proof(KEYS, ANN, EPOCH))
    for plain, reason in ((msgpack.encode(bad), Reason.NOT_IN_TOPIC), (b"nonsense", Reason.MALFORMED)):
        sealed = seal_answer(seek.reply_key, KEYS.ring, seek.request, plain, luck)
        hop = seeker.handle_sought(ANN, Sought(seek.request, sealed), START)
        assert hop.found is None
        assert [record.reason for record in hop.records] == [reason]


def test_a_descriptor_that_does_not_fit_is_recorded_and_nobody_else_can_tell() -> None:
    seeker, seek = a_search()
    long = structs.replace(described(DAN, KEYS), hints=("tls://" + "a" * 100 + ":1",) * 4)
    hop = seeking_of(KEYS).handle_seek(ANN, seek, long, Ways([BEN], alike), START)
    assert len(answers(hop)) == 1
    assert [record.reason for record in hop.records] == [Reason.TOO_LARGE]
    assert found_by(seeker, seek, hop) == []


# Limits.


@pytest.mark.parametrize(
    "bad",
    [
        {"positions": ()},
        {"positions": (1, 2, 3, 4, 5)},
        {"positions": (1, 1)},
        {"positions": (1024,)},
        {"hops": 33},
    ],
    ids=["no bits", "too many bits", "one bit twice", "no such bit", "too far"],
)
def test_searches_that_ask_for_too_much_are_refused(bad: dict[str, object]) -> None:
    _, seek = a_search()
    with pytest.raises(RemoteError) as refused:
        seeking_of().handle_seek(ANN, structs.replace(seek, **bad), described(DAN), Ways([BEN], alike), START)
    assert refused.value.reason is Reason.MALFORMED


def test_a_key_of_low_order_ends_a_search_and_blames_nobody_on_the_way() -> None:
    _, seek = a_search()
    low = structs.replace(seek, reply_key=bytes(32))
    hop = seeking_of(KEYS).handle_seek(ANN, low, described(DAN, KEYS), Ways([BEN], alike), START)
    assert (hop.sends, [record.reason for record in hop.records]) == ([], [Reason.MALFORMED])


def flood(node: Walkers, peer: PeerId, count: int, seed: int = 0) -> list[Hop]:
    _, seek = a_search()
    luck = Random(seed).randbytes
    return [
        node.handle_seek(
            peer, structs.replace(seek, request=luck(16)), described(DAN), Ways([BEN], alike), START
        )
        for _ in range(count)
    ]


def test_one_peer_s_searches_are_bounded_and_the_rest_is_sent_back_until_time_has_passed() -> None:
    node = seeking_of()
    hops = flood(node, ANN, 300)
    assert len(node) == 256
    last = hops[-1]
    assert [message.back for _, message in walkers(last)] == [True]
    assert [record.reason for record in last.records] == [Reason.TOO_MANY]
    assert walkers(flood(node, CID, 1, seed=3)[0])[0][0] == BEN, "others are not kept from searching"
    _, seek = a_search()
    later = node.handle_seek(ANN, seek, described(DAN), Ways([BEN], alike), START + WALK)
    assert walkers(later)[0][0] == BEN
    assert len(node) == 1


def test_all_searches_together_are_bounded_and_the_oldest_is_forgotten_and_named() -> None:
    node = seeking_of()
    hops = [hop for number in range(9) for hop in flood(node, peer_of(number), 256, seed=number)]
    assert len(node) == 2048
    assert [record.reason for record in hops[-1].records] == [Reason.TOO_MANY]
    assert [hop.records for hop in hops[:2048]] == [[]] * 2048


def test_answers_to_one_search_are_bounded() -> None:
    _, seek = a_search()
    relay = seeking_of()
    relay.handle_seek(ANN, seek, described(DAN), Ways([BEN], alike), START)
    answer = Sought(seek.request, bytes(560))
    hops = [relay.handle_sought(BEN, answer, START) for _ in range(70)]
    assert [len(hop.sends) for hop in hops] == [1] * 64 + [0] * 6
    assert [record.reason for record in hops[-1].records] == [Reason.TOO_MANY]


def test_a_walker_that_comes_back_though_it_was_not_sent_is_recorded() -> None:
    _, seek = a_search()
    hop = seeking_of().handle_seek(
        ANN, structs.replace(seek, back=True), described(DAN), Ways([BEN], alike), START
    )
    assert (hop.sends, [record.reason for record in hop.records]) == ([], [Reason.STALE])


def test_a_closed_topic_is_not_answered_for_and_its_searches_are_over() -> None:
    seeker, seek = a_search()
    node = seeking_of(KEYS, OTHER)
    node.remove_topic(KEYS.topic)
    hop = node.handle_seek(ANN, seek, described(DAN), Ways([BEN], alike), START)
    assert answers(hop) == []
    assert len(seeker) == 1
    seeker.remove_topic(KEYS.topic)
    assert len(seeker) == 0


# A population in communities.


@cache
def population() -> SeekNetwork:
    return SeekNetwork(*((2000, 40) if SOAK else (240, 6)), seed=1)


@pytest.mark.timeout(1_500 if SOAK else 600)
def test_searches_find_members_of_large_topics_and_without_fingers_are_trapped_at_home() -> None:
    """Two searches, since a node looks again after a pause if it found nobody."""
    network, count = population(), 60 if SOAK else 30
    large = network.topics_of_size(*((40, 9_999) if SOAK else (30, 9_999)))
    network.link(similar=20, fingers=0, random=0)
    trapped, _ = success(network, large, count, Random(1), tries=2)
    network.link(similar=20, fingers=5, random=0)
    bridged, _ = success(network, large, count, Random(1), tries=2)
    network.link(similar=20, fingers=5, random=10)
    found, steps = success(network, large, count, Random(1), tries=2)
    assert found >= 0.95
    assert trapped < 0.5 < bridged
    assert steps < 24


def test_a_node_that_answers_for_a_bit_sends_the_walker_on_for_the_others() -> None:
    """Otherwise a decoy that is a topic of a whole community would keep the walker there."""
    _, seek = a_search()
    decoy = next(keys for n in range(9_999) if set(bits(keys := keys_of(n))) < set(seek.positions))
    other = next(bit for bit in seek.positions if bit not in bits(decoy))
    shown = {BEN: (mask(*bits(decoy)), 5.0), CID: (mask(other), 1.0)}
    for seed in range(10):
        node = seeking_of(decoy, seed=seed)
        hop = node.handle_seek(ANN, seek, described(DAN, decoy), Ways([BEN, CID], shown.__getitem__), START)
        assert [peer for peer, _ in walkers(hop)] == [CID]


def test_a_bit_that_few_of_our_like_show_is_no_reason_to_stay_among_them() -> None:
    """Noise lets some show any bit; of a topic of theirs many would."""
    _, seek = a_search()
    near = [peer_of(number) for number in range(10)]

    def chosen(showing: int, far: float) -> set[PeerId]:
        """Who a walker goes to if so many of those alike show a bit, and one far off does so less surely."""
        bit = mask(seek.positions[0])
        shown = dict.fromkeys(near, (0, 2.0)) | dict.fromkeys(near[:showing], (bit, 2.0)) | {BEN: (bit, far)}
        peers = [*near, BEN]
        hops = [
            seeking_of(seed=seed).handle_seek(
                ANN, seek, described(DAN), Ways(peers, shown.__getitem__, near), START
            )
            for seed in range(10)
        ]
        return {peer for hop in hops for peer, _ in walkers(hop)}

    assert chosen(showing=2, far=1.0) == {BEN}
    assert chosen(showing=5, far=1.0) <= set(near[:5])


A, B, C, D = (peer_of(name) for name in "abcd")


def first(shown: dict[PeerId, tuple[int, float]], bits: tuple[int, ...], *alike: PeerId) -> list[PeerId]:
    return rank_peers(list(shown), shown.__getitem__, bits, alike, Random(1))


def test_more_of_the_bits_come_first_and_of_these_the_surer_whatever_else_is_shown() -> None:
    shown = {A: (0b0001, 1.0), B: (0b0101, 1.0), C: (0b0001, 1.5), D: (0b11010, 9.0)}
    assert first(shown, (0, 2)) == [B, C, A, D]


def test_equals_come_by_lot() -> None:
    shown = dict.fromkeys((A, B, C), (1, 1.0))
    orders = {tuple(rank_peers([A, B, C], shown.__getitem__, (0,), (), Random(seed))) for seed in range(60)}
    assert len(orders) == 6


def test_what_few_of_those_alike_show_counts_for_others_only() -> None:
    like = [peer_of(number) for number in range(10)]
    few = dict.fromkeys(like, (0, 2.0)) | dict.fromkeys(like[:2], (1, 2.0)) | {A: (1, 1.0)}
    assert first(few, (0,), *like)[0] == A
    many = few | dict.fromkeys(like[:3], (1, 2.0))
    assert set(first(many, (0,), *like)[:3]) == set(like[:3])


RING, REQUEST = bytes([1]) * 32, bytes([2]) * 16


def test_the_seeker_opens_what_was_sealed_to_it_under_the_ring_s_key() -> None:
    luck = Random(1).randbytes
    key = reply_key(luck)
    for answer in (b"", b"x", bytes(range(250)), bytes(ROOM)):
        sealed = seal_answer(key.public, RING, REQUEST, answer, luck)
        assert len(sealed) == SEALED <= SEALED_BYTES
        assert open_answer(key, RING, REQUEST, sealed) == answer


def test_neither_another_key_nor_another_ring_nor_another_request_opens_it() -> None:
    """A relay has no key of the search; a seeker of other topics has no key of the ring."""
    luck = Random(1).randbytes
    key, relay = reply_key(luck), reply_key(luck)
    sealed = seal_answer(key.public, RING, REQUEST, b"a member", luck)
    assert open_answer(relay, RING, REQUEST, sealed) is None
    assert open_answer(relay._replace(public=key.public), RING, REQUEST, sealed) is None
    assert open_answer(key, bytes(32), REQUEST, sealed) is None
    assert open_answer(key, RING, bytes(16), sealed) is None
    for at in (0, 40, SEALED - 1):
        broken = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        assert open_answer(key, RING, REQUEST, broken) is None
    assert open_answer(key, RING, REQUEST, sealed[:-1]) is None
    assert open_answer(key, RING, REQUEST, bytes(SEALED)) is None


def test_two_sealed_answers_have_nothing_in_common() -> None:
    luck = Random(1).randbytes
    key = reply_key(luck)
    one, other = (seal_answer(key.public, RING, REQUEST, b"the same", luck) for _ in range(2))
    assert sum(a == b for a, b in zip(one, other, strict=True)) < 20


def test_what_does_not_fit_is_refused_and_a_key_that_is_none_is_named() -> None:
    luck = Random(1).randbytes
    with pytest.raises(Refused) as refused:
        seal_answer(reply_key(luck).public, RING, REQUEST, bytes(ROOM + 1), luck)
    assert refused.value.reason is Reason.TOO_LARGE
    with pytest.raises(MalformedMessage):
        seal_answer(bytes(32), RING, REQUEST, b"", luck)


def test_the_secret_half_of_a_key_does_not_show() -> None:
    key = reply_key(Random(1).randbytes)
    assert key.secret.hex() not in repr(key)
    assert repr(key.secret) not in repr(key)
