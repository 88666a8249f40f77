"""Gossip about rings: they form from anything that is connected, heal, and believe nobody without a proof."""

from __future__ import annotations

import os
from itertools import pairwise
from random import Random

import pytest
from msgspec import structs
from tests.overlay.gossip.ring_network import START, RingNetwork, believe, describe, keys_of, peer_of

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.overlay.gossip.config import DAY, RingOrder, TrackerlessConfig
from linnet.overlay.gossip.descriptor import DescriptorCheck, check_descriptor, sign_descriptor
from linnet.overlay.gossip.known_peers import KnownPeers
from linnet.overlay.gossip.messages import Descriptor, RingAsk, RingMember, RingPart, RingTell
from linnet.overlay.gossip.ring_gossip import Rings
from linnet.overlay.gossip.topic_tags import TopicKeys, epoch_of, hint, proof
from linnet.trace.records import Kind, Record

SOAK = bool(os.environ.get("LINNET_SOAK"))
KEYS, OTHER = keys_of("x"), keys_of("y")
EPOCH = epoch_of(START)
CONFIG = TrackerlessConfig()
US, ANN, BEN, EVE = (peer_of(name) for name in ("us", "ann", "ben", "eve"))


def rings_of(
    peer: PeerId = US, topics: tuple[TopicKeys, ...] = (KEYS,), check: DescriptorCheck = believe
) -> Rings:
    rings = Rings(describe(peer), CONFIG, KnownPeers(), Random(1), bytes(32), check)
    for keys in topics:
        rings.open_ring(keys, START)
    return rings


def member(peer: PeerId, keys: TopicKeys = KEYS, epoch: int = EPOCH, version: int = 1) -> RingMember:
    return RingMember(describe(peer, version), epoch, proof(keys, peer, epoch))


def part(peer: PeerId, *members: RingMember, keys: TopicKeys = KEYS, to: PeerId = US) -> RingPart:
    return RingPart(hint(keys, peer, to), members)


def ask(peer: PeerId, *members: RingMember) -> RingAsk:
    return RingAsk(1, (part(peer, *members),))


def meet(rings: Rings, *peers: PeerId, keys: TopicKeys = KEYS) -> None:
    for peer in peers:
        rings.add_member(keys.topic, describe(peer), proof(keys, peer, EPOCH), EPOCH)


# Rings form.


@pytest.mark.parametrize("order", list(RingOrder))
@pytest.mark.parametrize("count", [1, 2, 3, 5, 100, *([1000] if SOAK else [])])
def test_rings_of_any_size_are_right_within_twenty_rounds(count: int, order: RingOrder) -> None:
    network = RingNetwork(count, TrackerlessConfig(ring_order=order))
    network.populate(count, KEYS, contacts=5)
    assert network.converge(KEYS, 20) <= 20


@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_chain_of_acquaintances_is_enough_for_a_ring(count: int) -> None:
    network = RingNetwork(count)
    peers = [peer_of(number) for number in range(count)]
    for peer in peers:
        network.add(peer, [KEYS])
    for peer, following in pairwise(peers):
        network.introduce(peer, [following], KEYS)
    assert network.wrong(KEYS) > 0
    assert network.converge(KEYS, 20) <= 20


def test_one_exchange_is_about_all_topics_that_two_share() -> None:
    network = RingNetwork(1)
    topics = [keys_of(number) for number in range(10)]
    peers = [peer_of(number) for number in range(12)]
    for peer in peers:
        network.add(peer, topics)
    for peer, following in pairwise(peers):
        for keys in topics:
            network.introduce(peer, [following], keys)
    for _ in range(20):
        network.round()
    assert [network.wrong(keys) for keys in topics] == [0] * 10


def test_by_id_neighbours_recur_on_all_rings_and_by_hash_there_are_far_more_links() -> None:
    """Forty nodes share eight topics: by id each has the same neighbours in all of them."""
    degrees = {}
    for order in RingOrder:
        network = RingNetwork(1, TrackerlessConfig(ring_order=order))
        topics = [keys_of(number) for number in range(8)]
        peers = [peer_of(number) for number in range(40)]
        for peer in peers:
            network.add(peer, topics)
        for keys in topics:
            for peer in peers:
                network.introduce(peer, network.rng.sample(peers, 4), keys)
        for _ in range(25):
            network.round()
        assert [network.wrong(keys) for keys in topics] == [0] * 8
        others = [{p for keys in topics for p in network.nodes[peer][keys.topic].wanted} for peer in peers]
        degrees[order] = sum(map(len, others)) / len(peers)
    assert 6 <= degrees[RingOrder.ID] < 8, "four neighbours and two shortcuts, mostly the same on all rings"
    assert degrees[RingOrder.HASH] > 3 * degrees[RingOrder.ID]


def test_a_newcomer_that_knows_one_member_finds_its_place() -> None:
    network = RingNetwork(1)
    network.populate(60, KEYS)
    network.converge(KEYS, 20)
    newcomer = peer_of("new")
    network.add(newcomer, [KEYS])
    network.introduce(newcomer, [network.members(KEYS)[0]], KEYS)
    assert network.wrong(KEYS) > 1
    assert network.converge(KEYS, 10) <= 10


def test_two_rings_that_were_cut_apart_become_one_again() -> None:
    """Each half gives the other up; those that were met are tried again after a while."""
    network = RingNetwork(1)
    network.populate(30, KEYS)
    network.converge(KEYS, 20)
    everyone = list(network.nodes)
    halves = everyone[:15], everyone[15:]
    for half, other in (halves, halves[::-1]):
        for peer in half:
            for gone in other:
                network.nodes[peer].drop_member(gone, network.now)
    for _ in range(29):
        network.round()
    assert network.wrong(KEYS) > 0, "they are left alone for a while"
    assert network.converge(KEYS, 20) <= 20


def test_with_a_new_epoch_hashed_rings_form_anew() -> None:
    network = RingNetwork(1, TrackerlessConfig(ring_order=RingOrder.HASH))
    network.populate(40, KEYS)
    network.converge(KEYS, 20)
    network.now = (EPOCH + 1) * 7 * DAY
    for peer, rings in network.nodes.items():
        rings.set_descriptor(describe(peer, 2, network.now))
    before = network.sides(KEYS)
    network.round()
    assert network.sides(KEYS) == before, "all are in the new epoch"
    assert network.converge(KEYS, 20) <= 20


# One node.


def test_a_question_tells_of_those_beside_the_one_who_is_asked_and_of_us() -> None:
    rings = rings_of()
    assert rings.begin_round(START) is None
    meet(rings, ANN, BEN)
    target, question = rings.begin_round(START) or (None, None)
    assert target in (ANN, BEN)
    other = BEN if target == ANN else ANN
    assert question == RingAsk(1, (RingPart(hint(KEYS, US, target), (member(other), member(US))),))


def test_everyone_has_its_turn() -> None:
    rings = rings_of()
    peers = [peer_of(number) for number in range(5)]
    meet(rings, *peers)
    asked = [question[0] for _ in range(10) if (question := rings.begin_round(START))]
    assert sorted(asked[:5]) == sorted(asked[5:]) == sorted(peers)


def test_whoever_asks_is_met_and_answered_with_those_beside_it() -> None:
    rings = rings_of()
    meet(rings, ANN)
    answer, news = rings.handle_ask(BEN, ask(BEN, member(BEN)), START)
    assert answer == RingTell(1, (part(US, member(ANN), member(US), to=BEN),))
    assert (news.changed, news.records) == ([KEYS.topic], [])
    assert rings[KEYS.topic].is_met(BEN)


def test_members_of_whom_only_others_speak_are_not_met() -> None:
    rings = rings_of()
    rings.handle_ask(ANN, ask(ANN, member(ANN), member(BEN)), START)
    ring = rings[KEYS.topic]
    assert (ring.is_met(ANN), ring.is_met(BEN), BEN in ring) == (True, False, True)


def test_a_topic_is_named_otherwise_on_each_link_and_one_that_we_are_not_in_is_recorded() -> None:
    rings = rings_of(topics=(KEYS,))
    foreign = RingAsk(1, (part(ANN, member(ANN, OTHER), keys=OTHER), part(ANN, member(ANN))))
    answer, news = rings.handle_ask(ANN, foreign, START)
    assert [one.hint for one in answer.rings] == [hint(KEYS, US, ANN)]
    assert news.records == [Record(Kind.REJECTED, peer=ANN, reason=Reason.NOT_JOINED, note="ring")]
    replayed, more = rings.handle_ask(BEN, ask(ANN, member(BEN)), START)
    assert replayed.rings == ()
    assert [record.reason for record in more.records] == [Reason.NOT_JOINED]


def test_an_answer_counts_once_and_only_if_it_was_asked_for() -> None:
    rings = rings_of()
    meet(rings, ANN)
    _, question = rings.begin_round(START) or (None, RingAsk(0, ()))
    answer = RingTell(question.number, (part(ANN, member(BEN), member(ANN)),))
    stale = [
        Record(Kind.REJECTED, peer=ANN, reason=Reason.STALE, note="an answer about rings to no question")
    ]
    assert rings.handle_tell(ANN, structs.replace(answer, number=9), START).records == stale
    assert BEN not in rings[KEYS.topic]
    assert rings.handle_tell(ANN, answer, START).changed == [KEYS.topic]
    assert BEN in rings[KEYS.topic]
    assert rings.handle_tell(ANN, answer, START).records == stale


def test_a_closed_topic_is_neither_asked_about_nor_answered() -> None:
    rings = rings_of(topics=(KEYS, OTHER))
    meet(rings, ANN)
    meet(rings, ANN, keys=OTHER)
    rings.drop_member(ANN, START)
    rings.close_ring(KEYS.topic)
    rings.close_ring(KEYS.topic)
    answer, _ = rings.handle_ask(ANN, ask(ANN, member(ANN)), START)
    assert answer.rings == ()
    assert list(rings) == [OTHER.topic]
    assert rings.shared_topics(ANN) == []


def test_whether_a_topic_is_kept_is_told_and_may_change() -> None:
    rings = rings_of()
    meet(rings, ANN)
    told = [rings.make_ask(ANN, START).rings[0].members[-1].keeps]
    rings.open_ring(KEYS, START, keeps=True)
    told.append(rings.make_ask(ANN, START).rings[0].members[-1].keeps)
    assert told == [False, True]
    assert ANN in rings[KEYS.topic]


def test_with_more_topics_than_fit_those_that_still_change_come_first() -> None:
    topics = tuple(keys_of(number) for number in range(80))
    rings = rings_of(topics=topics)
    for keys in topics:
        meet(rings, ANN, keys=keys)
        rings[keys.topic].calm = 20
    for keys in topics[70:]:
        rings[keys.topic].calm = 0
    names = [one.hint for one in rings.make_ask(ANN, START).rings]
    assert len(names) == 64
    assert set(names[:10]) == {hint(keys, US, ANN) for keys in topics[70:]}


# Who is gone.


def test_whoever_does_not_answer_leaves_all_rings_and_is_not_taken_back_on_hearsay() -> None:
    rings = rings_of(topics=(KEYS, OTHER))
    for keys in (KEYS, OTHER):
        meet(rings, ANN, BEN, keys=keys)
    assert rings.drop_member(BEN, START) == [KEYS.topic, OTHER.topic]
    rings.handle_ask(ANN, ask(ANN, member(ANN), member(BEN)), START)
    assert BEN not in rings[KEYS.topic]
    assert rings.shared_topics(BEN) == []
    rings.handle_ask(BEN, ask(BEN, member(BEN)), START)
    assert BEN in rings[KEYS.topic], "but on its own word at once"


def test_after_a_while_whoever_was_met_is_tried_again_and_who_was_not_is_not() -> None:
    rings = rings_of()
    meet(rings, ANN)
    rings.handle_ask(ANN, ask(ANN, member(ANN), member(EVE)), START)
    rings.drop_member(ANN, START)
    rings.drop_member(EVE, START)
    assert rings.begin_round(START + 29 * CONFIG.period) is None
    again = rings.begin_round(START + 30 * CONFIG.period)
    assert again is not None
    assert again[0] == ANN
    assert not rings[KEYS.topic].is_met(ANN)
    assert EVE not in rings[KEYS.topic]


def test_a_link_to_a_member_that_was_dropped_brings_it_back_at_once_though_it_failed_twice() -> None:
    """After a restart members are known from what was written down, and those not up yet fail again."""
    rings = rings_of()
    meet(rings, ANN)
    rings.handle_ask(ANN, ask(ANN, member(ANN), member(EVE)), START)
    for peer in (ANN, EVE, ANN, EVE):
        rings.drop_member(peer, START)
    for peer in (ANN, EVE):
        assert peer not in rings[KEYS.topic]
        assert rings.revive_member(peer, START + 1.0) == [KEYS.topic]
        assert peer in rings[KEYS.topic]
        assert rings.revive_member(peer, START + 1.0) == []


def test_those_remembered_as_gone_are_bounded() -> None:
    rings = rings_of()
    for number in range(1_000):
        rings.drop_member(peer_of(number), START)
    rings.handle_ask(ANN, ask(ANN, member(ANN), member(peer_of(0)), member(peer_of(999))), START)
    ring = rings[KEYS.topic]
    assert (peer_of(0) in ring, peer_of(999) in ring) == (True, False)


# Who lies.


def test_a_member_without_a_proof_or_with_another_topic_s_is_refused() -> None:
    for bad in (structs.replace(member(EVE), proof=bytes(16)), member(EVE, OTHER), member(EVE, epoch=EPOCH)):
        bad = structs.replace(bad, epoch=EPOCH + 1)
        rings = rings_of()
        with pytest.raises(RemoteError) as refused:
            rings.handle_ask(ANN, ask(ANN, member(ANN), bad), START)
        assert refused.value.reason is Reason.NOT_IN_TOPIC
        assert EVE not in rings[KEYS.topic]


def test_a_proof_of_another_peer_does_not_meet_anyone() -> None:
    rings = rings_of()
    with pytest.raises(RemoteError) as refused:
        rings.add_member(KEYS.topic, describe(EVE), proof(KEYS, ANN, EPOCH), EPOCH)
    assert refused.value.reason is Reason.NOT_IN_TOPIC
    with pytest.raises(RemoteError):
        rings.add_member(KEYS.topic, describe(EVE), proof(KEYS, EVE, EPOCH - 2), EPOCH - 2)


def test_an_old_proof_is_recorded_and_the_rest_is_taken() -> None:
    rings = rings_of()
    _, news = rings.handle_ask(ANN, ask(ANN, member(ANN), member(BEN, epoch=EPOCH - 2)), START)
    assert [(record.reason, record.topic) for record in news.records] == [(Reason.STALE, KEYS.topic)]
    assert ANN in rings[KEYS.topic]
    assert BEN not in rings[KEYS.topic]


def signed(key: SigningKey, expires: float = START + DAY) -> Descriptor:
    return sign_descriptor(key, 1, EPOCH, b"", 0, 1, (), int(expires))


def test_descriptors_are_checked_once_and_forged_ones_are_refused() -> None:
    key = SigningKey(bytes([7]) * 32)
    checked: list[PeerId] = []

    def check(descriptor: Descriptor, now: float) -> None:
        checked.append(descriptor.peer)
        check_descriptor(descriptor, now)

    rings = rings_of(topics=(KEYS, OTHER), check=check)
    good = signed(key)
    entries = [
        part(ANN, RingMember(good, EPOCH, proof(keys, good.peer, EPOCH)), keys=keys) for keys in (KEYS, OTHER)
    ]
    rings.handle_ask(ANN, RingAsk(1, tuple(entries)), START)
    rings.handle_ask(ANN, RingAsk(2, tuple(entries)), START)
    assert checked == [good.peer], "once for two rings and two messages"
    assert rings.shared_topics(good.peer) == [KEYS.topic, OTHER.topic]
    forged = structs.replace(good, version=2)
    bad = RingMember(forged, EPOCH, proof(KEYS, good.peer, EPOCH))
    with pytest.raises(RemoteError) as refused:
        rings.handle_ask(ANN, ask(ANN, bad), START)
    assert refused.value.reason is Reason.BAD_SIGNATURE
    known = rings[KEYS.topic].get(good.peer)
    assert known is not None
    assert known.node == good


def test_a_descriptor_that_ended_on_its_way_is_recorded_and_blames_nobody() -> None:
    rings = rings_of(check=check_descriptor)
    past = signed(SigningKey(bytes([7]) * 32), START - 1)
    _, news = rings.handle_ask(ANN, ask(ANN, RingMember(past, EPOCH, proof(KEYS, past.peer, EPOCH))), START)
    assert [record.reason for record in news.records] == [Reason.STALE]
    assert past.peer not in rings[KEYS.topic]


def test_an_older_descriptor_gives_way_to_the_one_that_we_know() -> None:
    rings = rings_of(topics=(KEYS, OTHER))
    rings.handle_ask(ANN, ask(ANN, member(BEN, version=5)), START)
    rings.handle_ask(ANN, RingAsk(2, (part(ANN, member(BEN, OTHER, version=3), keys=OTHER),)), START)
    known = rings[OTHER.topic].get(BEN)
    assert known is not None
    assert known.node.version == 5


def test_too_many_members_of_one_ring_and_too_many_questions_are_refused() -> None:
    rings = rings_of()
    crowd = [member(peer_of(number)) for number in range(CONFIG.gossip + 2)]
    with pytest.raises(RemoteError) as refused:
        rings.handle_ask(ANN, ask(ANN, *crowd), START)
    assert refused.value.reason is Reason.TOO_MANY
    for _ in range(8):
        rings.handle_ask(BEN, ask(BEN, member(BEN)), START)
    with pytest.raises(RemoteError) as flooding:
        rings.handle_ask(BEN, ask(BEN, member(BEN)), START)
    assert flooding.value.reason is Reason.TOO_MANY
    rings.begin_round(START)
    rings.handle_ask(BEN, ask(BEN, member(BEN)), START)


def test_liars_that_name_inventions_beside_everyone_do_not_break_a_ring() -> None:
    """A tenth of the members answer with members that do not exist, right beside whoever asks."""
    network = RingNetwork(1)
    network.populate(60, KEYS)
    network.converge(KEYS, 20)
    honest = list(network.nodes)[6:]
    serial = 0
    for _ in range(30):
        for peer in honest:
            serial += 1
            place = int.from_bytes(peer, "big")
            invented = [PeerId(((place + side * serial) % 2**256).to_bytes(32, "big")) for side in (1, -1)]
            network.dead.update(dict.fromkeys(invented))
            liar = list(network.nodes)[serial % 6]
            entries = [member(one) for one in invented]
            lie = RingAsk(1, (part(liar, *entries, to=peer),))
            network.nodes[peer].handle_ask(liar, lie, network.now)
        network.round()
    truth = network.sides(KEYS)
    for peer in honest:
        ring = network.nodes[peer][KEYS.topic]
        up = [other for other in ring.wanted if other not in network.dead]
        assert (ring.find_successor(up), ring.find_predecessor(up)) == (truth[peer][0][0], truth[peer][1][0])
