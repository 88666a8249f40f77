"""The topics of a node: what joining, messages and links lead to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.overlay.gossip.gossiping import AT, EPOCH, NOW, OTHERS, US, described, peer_gossip
from tests.overlay.harness import P, said

from linnet.core.effects import Hold, Release, Send
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Effect, Notice
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.messages import Beside, Intersect, Pull, Pulled, Seek
from linnet.overlay.gossip.profile_filter import bits_of
from linnet.overlay.gossip.topic_membership import TopicMemberships
from linnet.overlay.gossip.topic_tags import hint, proof, tag_in, topic_keys
from linnet.overlay.notices import Adjacency, NeighborDown, NeighborUp, StorageKnown
from linnet.sim.seeded_random import SeededEntropy
from linnet.sim.signature_cache import IDEAL
from linnet.store.memory import MemoryStore
from linnet.trace.records import Record

OURS = PeerId(US.public)
A, B = (PeerId(key.public) for key in OTHERS[:2])
TOPIC = TopicId(bytes([1]) * 32)
KEYS = topic_keys(TOPIC)
RING = f"ring {TOPIC.hex()[:16]}"


class Bench:
    """The topics of one node, with links that a test opens and closes."""

    def __init__(self, config: TrackerlessConfig | None = None, store: MemoryStore | None = None) -> None:
        self.links: dict[PeerId, None] = {}
        self.store = store or MemoryStore()
        entropy = SeededEntropy(1, "us")
        self.gossip = peer_gossip(config, self.store, self.links, entropy)
        self.out = self.gossip.out
        self.topics = TopicMemberships(self.gossip, IDEAL, entropy, Adjacency(self.out))

    def said(self, act: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> list[Effect | Notice]:
        return said(self.out, act, *args, **kwargs)

    def round(self, now: float = NOW) -> list[Effect | Notice]:
        return self.said(self.topics.begin_round, now)

    def join(self, *members: PeerId, keeps: bool = False) -> list[Effect | Notice]:
        contacts = [Contact(peer, AT) for peer in members]
        return self.said(self.topics.join_topic, TOPIC, keeps, NOW, contacts, None)

    def link(self, peer: PeerId) -> list[Effect | Notice]:
        self.links[peer] = None
        return self.said(self.topics.handle_link_up, peer, NOW)

    def beside(self, peer: PeerId, is_open: bool = True, keeps: bool = False) -> list[Effect | Notice]:
        told = Beside(hint(KEYS, OURS, peer), EPOCH, proof(KEYS, peer, EPOCH), is_open, keeps)
        return self.said(self.topics.handle_beside, peer, told, NOW)

    def introduce(self, key: SigningKey) -> list[Effect | Notice]:
        """A peer answers a pull, and is known from then on."""
        peer = PeerId(key.public)
        self.gossip.handle_answer(peer, Pulled(1, (described(key),)), NOW)
        return self.said(self.topics.note_introduced, peer, NOW)

    def member(self, key: SigningKey) -> list[Effect | Notice]:
        """A peer that is known counts us as a neighbour, over its link."""
        peer = PeerId(key.public)
        self.link(peer)
        self.gossip.pull_from(peer, NOW)
        self.introduce(key)
        return self.beside(peer)


def _of(effects: list[Effect | Notice], *kinds: type) -> list[Effect | Notice]:
    return [each for each in effects if isinstance(each, kinds)]


def test_contacts_are_asked_who_they_are_and_wanted_until_members_are_known() -> None:
    bench = Bench()
    assert _of(bench.join(A, OURS), Hold) == [Hold(A, AT, "gossip Pull"), Hold(A, AT, RING)]
    (told,) = bench.link(A)
    assert isinstance(told, Send)
    assert told.message == Beside(hint(KEYS, OURS, A), EPOCH, proof(KEYS, OURS, EPOCH), True, False)
    assert _of(bench.beside(A), NeighborUp) == [NeighborUp(TOPIC, A)]
    assert bench.topics.status(0, NOW).rings[0].known == 0, "nothing is known of it but an address"
    bench.introduce(OTHERS[0])
    (ring,) = bench.topics.status(0, NOW).rings
    assert (ring.known, ring.successors, ring.predecessors, ring.neighbors) == (1, (A,), (A,), (A,))
    assert bench.topics.neighbors(TOPIC) == (A,)
    assert bench.topics.members() == (A,)


def test_a_wrong_proof_makes_nobody_a_neighbour() -> None:
    bench = Bench()
    bench.join(A)
    bench.link(A)
    forged = Beside(hint(KEYS, OURS, A), EPOCH, bytes(16), True)
    (record,) = bench.said(bench.topics.handle_beside, A, forged, NOW)
    assert isinstance(record, Record)
    assert record.reason is Reason.NOT_IN_TOPIC
    assert bench.topics.neighbors(TOPIC) == ()


def test_a_topic_that_we_are_not_in_is_not_told_of() -> None:
    bench = Bench()
    bench.link(A)
    (record,) = bench.beside(A)
    assert isinstance(record, Record)
    assert record.reason is Reason.NOT_JOINED


def test_leaving_tells_the_neighbours_and_lets_them_go() -> None:
    bench = Bench()
    bench.join(A)
    bench.member(OTHERS[0])
    left = bench.said(bench.topics.leave_topic, TOPIC, NOW)
    assert Release(A, RING) in left
    assert NeighborDown(TOPIC, A) in left
    *_, goodbye = [each.message for each in left if isinstance(each, Send)]
    assert isinstance(goodbye, Beside)
    assert not goodbye.open
    assert bench.said(bench.topics.leave_topic, TOPIC, NOW) == []
    assert bench.topics.status(0, NOW).rings == ()


def test_those_who_keep_the_topic_are_told_of_once() -> None:
    bench = Bench()
    bench.join(A)
    bench.link(A)
    told = bench.beside(A, keeps=True)
    assert _of(told, StorageKnown) == [StorageKnown(TOPIC, (Contact(A, AT),))]
    assert _of(bench.introduce(OTHERS[0]), StorageKnown) == []
    assert _of(bench.round(NOW), StorageKnown) == []


def test_more_members_than_links_are_named_once_and_left_without() -> None:
    bench = Bench(TrackerlessConfig(most_links=2))
    bench.join()
    effects = [each for key in OTHERS[:6] for each in bench.member(key)]
    effects += bench.round(NOW)
    dropped = [each for each in _of(effects, Record) if isinstance(each, Record) and each.reason]
    assert {each.reason for each in dropped} == {Reason.TOO_MANY_LINKS}
    status = bench.topics.status(0, NOW)
    assert status.held == 2
    assert status.rings[0].uncovered > 0
    again = [each for each in _of(bench.round(NOW), Record) if isinstance(each, Record)]
    assert [each for each in again if each.reason is Reason.TOO_MANY_LINKS] == []


def test_whoever_is_dead_is_replaced_by_the_next_on_the_ring() -> None:
    bench = Bench()
    bench.join()
    for key in OTHERS:
        bench.member(key)
    (ring,) = bench.topics.status(0, NOW).rings
    first = ring.successors[0]
    del bench.links[first]
    effects = bench.said(bench.topics.handle_link_down, first, True, NOW)
    assert NeighborDown(TOPIC, first) in effects
    (after,) = bench.topics.status(0, NOW).rings
    assert first not in after.successors
    assert after.successors[0] == ring.successors[1]


def test_a_link_that_goes_does_not_yet_mean_that_its_peer_is_dead() -> None:
    bench = Bench()
    bench.join(A)
    bench.member(OTHERS[0])
    del bench.links[A]
    assert _of(bench.said(bench.topics.handle_link_down, A, False, NOW), NeighborDown) == [
        NeighborDown(TOPIC, A)
    ]
    (ring,) = bench.topics.status(0, NOW).rings
    assert (ring.known, ring.neighbors) == (1, ())
    assert len(_of(bench.link(A), Send)) == 1, "it is told again that we count it"


@pytest.mark.parametrize("sources", [(), (A,)])
def test_events_of_a_topic_without_a_ring_go_to_all_but_where_they_came_from(
    sources: tuple[PeerId, ...],
) -> None:
    assert Bench().topics.choose_targets(TOPIC, sources, (A, B)) == [x for x in (A, B) if x not in sources]


def test_a_round_looks_for_members_that_are_missing_along_those_who_are_known() -> None:
    bench = Bench()
    bench.join()
    assert _of(bench.round(NOW), Send, Hold) == [], "nobody is known to ask"
    bench.gossip.sampling.add_descriptor(described(OTHERS[0]), NOW)
    bench.link(A)
    sought = [each.message for each in bench.round(NOW) if isinstance(each, Send)]
    assert {type(each) for each in sought} == {Seek}
    assert [each for each in bench.round(NOW + 1) if isinstance(each, Send)] == [], "not so soon again"


@pytest.mark.parametrize("is_member", [False, True])
def test_an_intersection_is_begun_for_what_the_rings_do_not_tell_already(is_member: bool) -> None:
    bench = Bench(TrackerlessConfig(epsilon=30.0, worth=0.5))
    bench.join()
    for key in OTHERS[0 if is_member else 1 : 6]:
        bench.member(key)
    bench.link(A)
    shown = [KEYS, *(topic_keys(TopicId(bytes([number]) * 32)) for number in range(50, 60))]
    bits = bits_of([tag_in(keys, EPOCH) for keys in shown], EPOCH, 1024, 1).to_bytes(128, "little")
    told = described(OTHERS[0], bits, int(NOW * 1000) + 2, 30_000)
    bench.gossip.clustering.similarity.set_interests(bench.gossip.own_profile(NOW).interests)
    bench.gossip.clustering.handle_answer(A, (told,), (), NOW)
    assert bench.gossip.clustering.view == (A,)
    sent = [each for _ in range(6) for each in bench.round(NOW) if isinstance(each, Send)]
    asked = [each.peer for each in sent if isinstance(each.message, Intersect)]
    assert asked == ([] if is_member else [A])


def test_no_intersection_without_topics_or_with_those_who_show_nothing() -> None:
    bench = Bench()
    bench.gossip.sampling.add_descriptor(described(OTHERS[0]), NOW)
    bench.link(A)
    for now in (NOW, NOW + 1000):
        sent = [each.message for each in bench.round(now) if isinstance(each, Send)]
        assert not any(isinstance(each, Intersect | Pull) for each in sent)
    assert bench.said(bench.topics.end_intersection, A) == []


def test_after_a_restart_those_who_stood_beside_us_are_wanted_at_once_without_a_search() -> None:
    bench = Bench()
    bench.join()
    for key in OTHERS[:6]:
        bench.member(key)
    bench.round(NOW)
    wanted = {peer for ring in bench.topics.status(0, NOW).rings for peer in ring.neighbors}
    bench.topics.save_rings()
    again = Bench(store=bench.store)
    held = {effect.peer for effect in again.join() if isinstance(effect, Hold)}
    assert held == wanted
    again.gossip.sampling.add_descriptor(described(OTHERS[8]), NOW)
    again.link(PeerId(OTHERS[8].public))
    sent = [each.message for each in again.round(NOW) if isinstance(each, Send)]
    assert not any(isinstance(each, Seek) for each in sent)
    again.topics.leave_topic(TOPIC, NOW)
    assert [effect for effect in Bench(store=bench.store).join() if isinstance(effect, Hold)] == []
