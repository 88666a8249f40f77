"""Clustering: the likest are found and kept, trust weighs in, and no liar becomes everyone's neighbour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import msgspec
import pytest
from tests.overlay.gossip.interested import CONFIG, Node, described, own_interests, peer_id

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.interest_clustering import AT_RANDOM, ENTRIES, RECALLED
from linnet.overlay.gossip.messages import Alike, Descriptor
from linnet.trace.records import Kind, Record

TOPICS = list(range(40))


def sharing(count: int, number: int) -> list[int]:
    """Forty topics, so many of them ours."""
    return TOPICS[:count] + list(range(1000 * number, 1000 * number + 40 - count))


def with_(**changes: object) -> TrackerlessConfig:
    return msgspec.structs.replace(CONFIG, **changes)


def exact(**changes: object) -> TrackerlessConfig:
    """Hardly any noise, so that an order is certain."""
    return with_(epsilon=20.0, **changes)


def test_the_most_alike_are_kept_best_first() -> None:
    config = exact(close=5)
    one = Node(0, TOPICS, config)
    sample = one.meet(*(described(n, sharing(3 * n, n), config=config) for n in range(1, 13)))
    assert one.clustering.handle_answer(peer_id(1), (), sample, 0.0) == []
    assert one.clustering.view == tuple(peer_id(n) for n in (12, 11, 10, 9, 8))


@pytest.mark.parametrize(
    ("weight", "order"),
    [(0.0, [1, 2, 3]), (1.0, [2, 1, 3]), (2.0, [3, 2, 1])],
    ids=["alike", "both", "trust"],
)
def test_the_score_weighs_likeness_and_trust(weight: float, order: list[int]) -> None:
    config = exact(trust_weight=weight)
    one = Node(0, TOPICS, config)
    sample = one.meet(
        *(described(n, sharing(share, n), config=config) for n, share in ((1, 38), (2, 30), (3, 6)))
    )
    for number, trust in ((1, 0.4), (2, 0.7), (3, 1.0)):
        one.trust.set_trust(peer_id(number), trust)
    one.clustering.handle_answer(peer_id(1), (), sample, 0.0)
    assert one.clustering.view == tuple(map(peer_id, order))
    descriptor = described(2, sharing(30, 2), config=config)
    likeness = one.clustering.similarity.cosine(descriptor)
    assert one.clustering.score_peer(descriptor, 0.0) == pytest.approx(likeness ** (2 - weight) * 0.7**weight)


def test_three_of_an_answer_may_enter_and_no_more() -> None:
    config = exact()
    one = Node(0, TOPICS, config)
    named = [described(n, sharing(3 * n, n), config=config) for n in range(1, 11)]
    one.clustering.handle_answer(peer_id(20), named, [], 0.0)
    assert one.clustering.view == (peer_id(10), peer_id(9), peer_id(8))
    assert len(one.clustering.view) == ENTRIES
    one.clustering.handle_answer(peer_id(20), named, [], 0.0)
    assert len(one.clustering.view) == 2 * ENTRIES


def test_the_sample_enters_freely_and_does_not_count_as_named() -> None:
    config = exact()
    one = Node(0, TOPICS, config)
    sample = one.meet(*(described(n, sharing(20, n), config=config) for n in range(1, 6)))
    named = [described(n, sharing(30, n), config=config) for n in range(4, 11)]
    one.clustering.handle_answer(peer_id(20), named, sample, 0.0)
    assert set(one.clustering.view) >= set(sample)
    assert len(one.clustering.view) == 5 + ENTRIES


def test_everyone_who_is_known_is_weighed_in_turn_whoever_named_them() -> None:
    config = exact()
    one = Node(0, TOPICS, config)
    known = one.meet(*(described(n, sharing(30, n), config=config) for n in range(30, 30 + 3 * RECALLED)))
    liars = [described(n, sharing(20, n), config=config) for n in range(1, 11)]
    for _ in range(4):
        one.clustering.handle_answer(peer_id(1), liars, [], 0.0)
    assert set(one.clustering.view) <= set(known)
    assert len(one.clustering.view) == config.close


def test_the_one_not_heard_of_for_longest_is_asked_and_is_out_until_it_answers() -> None:
    config = exact()
    one = Node(0, TOPICS, config)
    sample = one.meet(*(described(n, sharing(20, n), config=config) for n in range(1, 4)))
    one.clustering.handle_answer(peer_id(1), (), sample, 0.0)
    one.acquaintances.begin_round()
    one.acquaintances.note_contact(peer_id(1), 1.0)
    one.acquaintances.note_contact(peer_id(3), 1.0)
    assert one.clustering.choose_target(sample) == peer_id(2)
    assert sorted(one.clustering.view) == sorted([peer_id(1), peer_id(3)])
    one.clustering.handle_answer(peer_id(1), (), sample, 1.0)
    assert peer_id(2) not in one.clustering.view
    one.clustering.handle_answer(peer_id(2), (), [], 1.0)
    assert peer_id(2) in one.clustering.view
    assert all(one.acquaintances.get(peer).pins == 1 for peer in sample)  # type: ignore[union-attr]


def test_who_does_not_answer_stays_out_until_it_says_something_new() -> None:
    config = exact()
    one = Node(0, TOPICS, config)
    sample = one.meet(described(1, sharing(20, 1), config=config))
    one.clustering.handle_answer(peer_id(1), (), sample, 0.0)
    assert one.clustering.choose_target(sample) == peer_id(1)
    one.clustering.note_failure(peer_id(1))
    one.clustering.handle_answer(peer_id(2), [described(1, sharing(20, 1), config=config)], sample, 1.0)
    assert not one.clustering.view
    assert one.acquaintances.get(peer_id(1)).pins == 0  # type: ignore[union-attr]
    one.clustering.handle_answer(
        peer_id(2), [described(1, sharing(20, 1), version=2, config=config)], sample, 2.0
    )
    assert one.clustering.view == (peer_id(1),)


def test_without_any_view_the_sample_is_asked_and_without_that_nobody() -> None:
    one = Node(0, TOPICS)
    assert one.clustering.choose_target([peer_id(0), peer_id(1)]) == peer_id(1)
    assert one.clustering.choose_target([peer_id(0)]) is None


def test_an_answer_holds_those_most_like_the_one_who_asks_and_two_at_random() -> None:
    config = exact()
    one = Node(0, list(range(900, 940)), config)
    sample = one.meet(*(described(n, sharing(4 * n, n), config=config) for n in range(1, 10)))
    members = one.meet(*(described(n, sharing(39, n), config=config) for n in range(10, 14)))
    asker = described(50, TOPICS, config=config)
    answer = one.clustering.choose_alike(asker, sample, members, one.descriptor, 0.0)
    best, others = answer[: config.gossip - AT_RANDOM], answer[config.gossip - AT_RANDOM :]
    assert {each.peer for each in best} == {*members, *(peer_id(n) for n in (9, 8, 7, 6))}
    assert len(others) == AT_RANDOM
    assert {each.peer for each in others} <= {peer_id(n) for n in range(1, 6)}


def test_an_answer_holds_ourselves_if_we_are_alike_never_the_asker_and_nothing_that_ended() -> None:
    config = exact()
    one = Node(0, TOPICS, config)
    asker, ended = described(1, TOPICS, config=config), described(2, TOPICS, config=config, expires=3)
    sample = one.meet(asker, ended)
    early = one.clustering.choose_alike(asker, sample, sample, one.descriptor, 2.0)
    assert {each.peer: each for each in early} == {peer_id(0): one.descriptor, peer_id(2): ended}
    assert len(early) == 2
    assert one.clustering.choose_alike(asker, sample, sample, one.descriptor, 4.0) == (one.descriptor,)


def test_an_answer_does_not_depend_on_trust() -> None:
    def answer(trusted: bool) -> tuple[Descriptor, ...]:
        one = Node(0, TOPICS)
        sample = one.meet(*(described(n, sharing(n, n)) for n in range(1, 30)))
        if trusted:
            one.trust.set_trust(peer_id(3), 1.0)
        return one.clustering.choose_alike(described(50, TOPICS), sample, (), one.descriptor, 0.0)

    assert answer(True) == answer(False)


def test_an_answer_to_who_shows_nothing_is_drawn_at_random_and_fits_a_message() -> None:
    one = Node(0, TOPICS)
    sample = one.meet(*(described(n, sharing(n, n)) for n in range(1, 30)))
    answers = {
        tuple(each.peer for each in one.clustering.choose_alike(asker, sample, (), one.descriptor, 0.0))
        for asker in [described(50, [], filter=b"")] * 10
    }
    assert len(answers) == 10
    assert {len(set(answer)) for answer in answers} == {CONFIG.gossip}
    nodes = one.clustering.choose_alike(described(50, TOPICS), sample, (), one.descriptor, 0.0)
    encoded = msgspec.msgpack.encode(Alike(1, nodes))
    assert msgspec.msgpack.decode(encoded, type=Alike).nodes == nodes


def test_faults_are_recorded_and_the_guilty_dropped() -> None:
    config = exact()
    one = Node(0, TOPICS, config)
    sample = one.meet(*(described(n, TOPICS, config=config) for n in (1, 2)))
    one.clustering.handle_answer(peer_id(1), (), sample, 0.0)
    hub = described(2, [], version=2, config=config, filter=b"\xff" * 128)
    records = one.clustering.handle_answer(peer_id(1), [hub], sample, 0.0)
    assert records == [Record(Kind.REJECTED, peer=peer_id(1), reason=Reason.IMPLAUSIBLE_FILTER)]
    assert one.clustering.view == (peer_id(1),)


def test_a_copy_of_our_filter_is_found_out_by_intersections() -> None:
    one = Node(0, TOPICS)
    copy = described(1, [], filter=one.descriptor.filter)
    sample = one.meet(copy)
    one.clustering.handle_answer(peer_id(2), (), sample, 0.0)
    assert one.clustering.view == (peer_id(1),)
    (record,) = one.clustering.handle_intersection(peer_id(1), 0, 1.0)
    assert (record.kind, record.peer, record.reason) == (
        Kind.REJECTED,
        peer_id(1),
        Reason.IMPLAUSIBLE_FILTER,
    )
    assert not one.clustering.view
    assert not one.trust.is_banned(peer_id(1), 1.0)
    one.clustering.handle_intersection(peer_id(1), 0, 2.0)
    assert one.trust.is_banned(peer_id(1), 2.0)


def test_an_intersection_as_promised_clears_a_peer() -> None:
    one = Node(0, TOPICS)
    one.meet(described(1, TOPICS))
    assert len(one.clustering.handle_intersection(peer_id(1), 0, 1.0)) == 1
    assert one.clustering.handle_intersection(peer_id(1), 40, 2.0) == []
    assert len(one.clustering.handle_intersection(peer_id(1), 0, 3.0)) == 1
    assert not one.trust.is_banned(peer_id(1), 3.0)
    assert one.clustering.handle_intersection(peer_id(99), 0, 1.0) == []


def test_of_very_many_topics_an_intersection_is_incomplete_and_contradicts_nobody() -> None:
    many = list(range(300))
    one = Node(0, many)
    one.meet(described(1, many))
    assert one.clustering.handle_intersection(peer_id(1), 100, 1.0) == []


def test_the_view_survives_the_end_of_an_epoch() -> None:
    one = Node(0, TOPICS)
    sample = one.meet(*(described(n, TOPICS) for n in range(1, 6)))
    one.clustering.handle_answer(peer_id(1), (), sample, 0.0)
    one.clustering.similarity.set_interests(own_interests(TOPICS, epoch=1))
    one.meet(described(1, TOPICS, version=2, epoch=1), described(2, TOPICS, version=2, epoch=1))
    one.clustering.handle_answer(peer_id(1), (), [], 1.0)
    assert len(one.clustering.view) == 5


# A whole network, without links: every node asks one other in each round.

GROUPS, SIZE = 8, 15
HONEST = GROUPS * SIZE


def network(liars: Callable[[int], Descriptor] | None = None, count: int = 12) -> dict[PeerId, Node]:
    rng = Random(5)
    homes = [rng.sample(range(2000), 80) for _ in range(GROUPS)]
    nodes = [
        Node(n, rng.sample(homes[n % GROUPS], 30) + rng.sample(range(2000), 10), with_(close=10))
        for n in range(HONEST)
    ]
    for n in range(HONEST, HONEST + count if liars else HONEST):
        nodes.append(Node(n, []))
        nodes[-1].descriptor = liars(n) if liars else nodes[-1].descriptor
    return {node.peer: node for node in nodes}


def gossip(nodes: dict[PeerId, Node], rounds: int, drawn: int = 10) -> None:
    """Everyone has a fair sample of the others, `drawn` of them, a few of which change in each round."""
    rng, everyone = Random(6), list(nodes)
    honest = everyone[:HONEST]
    samples = {peer: rng.sample(everyone, drawn) for peer in everyone}
    for number in range(rounds):
        for peer in honest:
            node, sample = nodes[peer], samples[peer]
            if number and drawn:
                sample[rng.randrange(drawn)] = rng.choice(everyone)
            node.meet(*(nodes[other].descriptor for other in sample))
            node.clustering.refresh_fingers(sample, 0.0)
            target = node.clustering.choose_target(sample)
            if target is not None:
                told = answered(nodes, target, node.descriptor, samples[target], honest)
                node.clustering.handle_answer(target, told, sample, 0.0)


def answered(
    nodes: dict[PeerId, Node], target: PeerId, asker: Descriptor, sample: list[PeerId], honest: list[PeerId]
) -> tuple[Descriptor, ...]:
    if target in honest:
        return nodes[target].clustering.choose_alike(asker, sample, (), nodes[target].descriptor, 0.0)
    return tuple(node.descriptor for peer, node in nodes.items() if peer not in honest)[: CONFIG.gossip]


def own_group(nodes: dict[PeerId, Node]) -> float:
    """The share of views that is of the own community."""
    group = {peer_id(n): n % GROUPS for n in range(HONEST)}
    pairs = [(peer, other) for peer in group for other in nodes[peer].clustering.view]
    return sum(group[peer] == group.get(other) for peer, other in pairs) / max(1, len(pairs))


def test_like_nodes_find_each_other() -> None:
    nodes = network()
    gossip(nodes, 15)
    assert own_group(nodes) > 0.8
    assert all(len(node.clustering.view) >= 8 for node in nodes.values())


def test_without_random_candidates_they_find_far_fewer() -> None:
    """Ablation: everyone begins with the same few acquaintances and gets no sample afterwards."""
    nodes = network()
    rng = Random(7)
    for node in nodes.values():
        first = node.meet(*(nodes[other].descriptor for other in rng.sample(list(nodes), 3)))
        node.clustering.handle_answer(first[0], (), first, 0.0)
    gossip(nodes, 15, drawn=0)
    assert own_group(nodes) < 0.6


def all_ones(number: int) -> Descriptor:
    return described(number, [], filter=b"\xff" * 128)


def all_zeros(number: int) -> Descriptor:
    return described(number, [], filter=bytes(128))


def as_full_as_is_believed(number: int) -> Descriptor:
    ones = Random(number).sample(range(1024), 340)
    return described(number, [], filter=sum(1 << bit for bit in ones).to_bytes(128, "little"))


@pytest.mark.parametrize("liar", [all_ones, all_zeros, as_full_as_is_believed])
def test_no_filter_makes_its_owner_a_hub(liar: Callable[[int], Descriptor]) -> None:
    """Liars name liars only; none of them is in three times as many views as the mean node."""
    nodes = network(liar)
    gossip(nodes, 15)
    views: Counter[PeerId] = Counter()
    fingers: Counter[PeerId] = Counter()
    for node in list(nodes.values())[:HONEST]:
        views.update(node.clustering.view)
        fingers.update(node.clustering.fingers)
    for counter in (views, fingers):
        mean = sum(counter.values()) / len(nodes)
        assert max(counter[peer] for peer in list(nodes)[HONEST:]) <= 3 * mean
    assert own_group(nodes) > 0.75
