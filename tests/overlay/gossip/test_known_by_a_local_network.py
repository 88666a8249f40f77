"""Devices known by a local network alone: what is said to them there, and nothing once it is denied."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.overlay.gossip.gossiping import AT, EPOCH, NOW, OTHERS, US, described
from tests.overlay.harness import HELLO, P, said

from linnet.core.effects import Hold, Release, Send
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import LinkDown, LinkUp
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Effect, Notice, Outbox
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.messages import (
    AskAlike,
    Beside,
    Descriptor,
    Intersect,
    Pull,
    Pulled,
    RingAsk,
    RingMember,
    RingPart,
    RingTell,
    Seek,
    Sought,
)
from linnet.overlay.gossip.part import GossipOverlay, RoundDue
from linnet.overlay.gossip.profile_filter import bits_of
from linnet.overlay.gossip.topic_tags import hint, proof, tag_in, topic_keys
from linnet.overlay.notices import Adjacency, NeighborDown
from linnet.sim.seeded_random import SeededEntropy
from linnet.sim.signature_cache import IDEAL
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

OURS = PeerId(US.public)
NEAR, LIKEWISE, FAR = OTHERS[:3]
TOPIC, OTHER = (TopicId(bytes([number]) * 32) for number in (1, 2))
KEYS = topic_keys(TOPIC)
HERE = ("lan://k@192.168.1.5:7700",)
LATER = NOW + 120.0
"""Our filter is made."""


def _peer(key: SigningKey) -> PeerId:
    return PeerId(key.public)


def _with_filter(key: SigningKey) -> Descriptor:
    shown = [topic_keys(TopicId(bytes([number]) * 32)) for number in range(50, 60)]
    bits = bits_of([tag_in(keys, EPOCH) for keys in shown], EPOCH, 1024, 1).to_bytes(128, "little")
    return described(key, bits, int(NOW * 1000) + 2, 30_000)


class Node:
    """A node without trackers that is in one topic, and what it says."""

    def __init__(self, only_local: bool = False, store: MemoryStore | None = None) -> None:
        self.out = Outbox()
        self.store = store or MemoryStore()
        config, entropy = TrackerlessConfig(), SeededEntropy(1, "us")
        self.overlay = GossipOverlay(
            US,
            config,
            self.store.cells,
            Random(1),
            entropy,
            self.out,
            Adjacency(self.out),
            AT,
            IDEAL,
            only_local=only_local,
        )

    def said(self, act: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> list[Effect | Notice]:
        return said(self.out, act, *args, **kwargs)

    def begin(self, *bootstrap: SigningKey) -> list[Effect | Notice]:
        first = [Contact(_peer(key), AT) for key in bootstrap]
        told = self.said(self.overlay.begin, first, NOW)
        return told + self.said(self.overlay.topics.join_topic, TOPIC, False, NOW)

    def meet(
        self, key: SigningKey, now: float = NOW, allowed: tuple[TopicId, ...] = (TOPIC,)
    ) -> list[Effect | Notice]:
        """A device is on a local network where these topics are allowed."""
        return self.said(self.overlay.add_local, Contact(_peer(key), HERE), allowed, now)

    def lose(self, key: SigningKey, is_denied: bool = True) -> list[Effect | Notice]:
        return self.said(self.overlay.remove_local, _peer(key), is_denied, LATER)

    def link(self, key: SigningKey) -> list[Effect | Notice]:
        return self.said(self.overlay.handle_link_up, LinkUp(_peer(key), HELLO, True, None), NOW)

    def befriend(self, key: SigningKey) -> None:
        """A device is met, linked, says who it is, and counts us as a neighbour."""
        peer = _peer(key)
        self.meet(key)
        self.link(key)
        self.hears(key, Pulled(1, (described(key),)))
        self.hears(key, Beside(hint(KEYS, OURS, peer), EPOCH, proof(KEYS, peer, EPOCH), True, False, True))
        assert self.overlay.topics.neighbors(TOPIC) == (peer,)

    def hears(self, key: SigningKey, message: Message, now: float = NOW) -> list[Effect | Notice]:
        handlers: dict[type[Message], Callable[[PeerId, Any, float], object]] = {
            Pulled: self.overlay.handle_pulled,
            Pull: self.overlay.handle_pull,
            AskAlike: self.overlay.handle_ask_alike,
            RingAsk: self.overlay.handle_ring_ask,
            Seek: self.overlay.handle_seek,
            Sought: self.overlay.handle_sought,
            Beside: self.overlay.handle_beside,
            Intersect: self.overlay.handle_intersect,
        }
        return self.said(handlers[type(message)], _peer(key), message, now)

    def rounds(self, count: int, begin: float = LATER) -> list[Effect | Notice]:
        told: list[Effect | Notice] = []
        for number in range(count):
            told += self.said(self.overlay.begin_round, RoundDue(), begin + number)
        return told

    def knows(self, key: SigningKey) -> bool:
        """Whether a peer has a place anywhere."""
        peer, status = _peer(key), self.overlay.status(NOW)
        places = (status.sample, status.alike, status.fingers, self.overlay.peers.known)
        beside = (self.overlay.topics.members(), self.overlay.topics.neighbors(TOPIC))
        return any(peer in place for place in (*places, *beside))


def _to(key: SigningKey, effects: list[Effect | Notice]) -> list[Effect | Notice]:
    peer = _peer(key)
    return [each for each in effects if isinstance(each, Send | Hold) and each.peer == peer]


def _questions(key: SigningKey) -> list[Message]:
    own, peer = described(key), _peer(key)
    member = RingMember(own, EPOCH, proof(KEYS, peer, EPOCH))
    return [
        Pull(1, own),
        AskAlike(1, own),
        RingAsk(1, (RingPart(hint(KEYS, OURS, peer), (member,)),)),
        Seek(bytes(16), (1, 2, 3, 4), EPOCH, bytes(32), 5, False),
        Intersect(bytes(16), EPOCH, (bytes(32),)),
        Beside(hint(KEYS, OURS, peer), EPOCH, proof(KEYS, peer, EPOCH), True, False, True),
    ]


@pytest.mark.parametrize("only_local", [False, True])
def test_once_nothing_is_allowed_there_a_device_is_asked_nothing_told_nothing_and_nowhere_kept(
    only_local: bool,
) -> None:
    node = Node(only_local)
    node.begin()
    node.befriend(NEAR)
    asking = node.rounds(3, NOW)
    assert node.knows(NEAR)
    told = node.lose(NEAR)
    assert NeighborDown(TOPIC, _peer(NEAR)) in told
    (goodbye,) = [each.message for each in told if isinstance(each, Send)]
    assert isinstance(goodbye, Beside)
    assert not goodbye.open
    released = {each.purpose for each in told if isinstance(each, Release)}
    asked = {each.purpose for each in asking if isinstance(each, Hold)}
    assert asked
    assert released == {*asked, f"ring {TOPIC.hex()[:16]}"}
    assert not node.knows(NEAR)
    assert _to(NEAR, node.rounds(70)) == [], "the link is still up"


@pytest.mark.parametrize("only_local", [False, True])
def test_what_it_says_then_is_refused_and_teaches_nothing(only_local: bool) -> None:
    node = Node(only_local)
    node.begin()
    node.befriend(NEAR)
    node.lose(NEAR)
    for message in _questions(NEAR):
        note = f"{type(message).__name__}: it is on no local network on which anything is allowed"
        refused = Record(Kind.REJECTED, peer=_peer(NEAR), reason=Reason.NOT_ALLOWED, note=note)
        assert node.hears(NEAR, message, LATER) == [refused]
    node.said(node.overlay.handle_link_down, LinkDown(_peer(NEAR), Reason.REMOTE_CLOSED), LATER)
    assert node.link(NEAR) == []
    assert not node.knows(NEAR)


def test_others_on_the_network_and_those_who_repeat_them_do_not_bring_it_back() -> None:
    node = Node()
    node.begin(FAR)
    node.befriend(NEAR)
    node.meet(LIKEWISE)
    for key in (FAR, LIKEWISE):
        node.link(key)
    node.lose(NEAR)
    node.hears(FAR, Pulled(1, (described(FAR), described(NEAR))))
    node.hears(LIKEWISE, Pulled(2, (described(LIKEWISE), _with_filter(NEAR))))
    member = RingMember(described(NEAR), EPOCH, proof(KEYS, _peer(NEAR), EPOCH))
    own = RingMember(described(LIKEWISE), EPOCH, proof(KEYS, _peer(LIKEWISE), EPOCH))
    ask = RingAsk(1, (RingPart(hint(KEYS, OURS, _peer(LIKEWISE)), (member, own)),))
    node.hears(LIKEWISE, ask)
    assert node.overlay.topics.members() == (_peer(LIKEWISE),)
    assert not node.knows(NEAR)
    assert _to(NEAR, node.rounds(40)) == []


@pytest.mark.parametrize("only_local", [False, True])
def test_the_word_of_the_internet_makes_it_a_node_like_any_other_but_not_on_the_edge(
    only_local: bool,
) -> None:
    node = Node(only_local)
    node.begin(FAR)
    if only_local:
        node.meet(FAR)
    node.befriend(NEAR)
    node.link(FAR)
    node.lose(NEAR)
    node.hears(FAR, Pulled(1, (described(FAR), _with_filter(NEAR))))
    assert node.knows(NEAR) is not only_local
    assert bool(_to(NEAR, node.hears(NEAR, Pull(1, _with_filter(NEAR)), LATER))) is not only_local
    asked = [each.message for each in _to(NEAR, node.rounds(20)) if isinstance(each, Send)]
    assert any(isinstance(each, Pull) for each in asked) is not only_local
    node.meet(NEAR)
    node.lose(NEAR)
    assert node.knows(NEAR) is not only_local


def test_who_was_known_before_it_was_met_stays_known() -> None:
    node = Node()
    node.begin(FAR)
    node.link(FAR)
    node.hears(FAR, Pulled(1, (described(FAR), _with_filter(NEAR))))
    for key in (NEAR, FAR):
        node.meet(key)
        node.lose(key)
        assert node.knows(key)


def test_who_leaves_a_network_where_a_topic_is_allowed_stays_known_until_it_is_denied_but_for_the_edge() -> (
    None
):
    for only_local in (False, True):
        node = Node(only_local)
        node.begin()
        node.befriend(NEAR)
        node.lose(NEAR, is_denied=False)
        assert node.knows(NEAR) is not only_local
        node.lose(NEAR)
        assert not node.knows(NEAR)


@pytest.mark.parametrize("only_local", [False, True])
def test_when_it_is_met_again_it_is_spoken_with_over_the_link_that_stayed(only_local: bool) -> None:
    node = Node(only_local)
    node.begin()
    node.befriend(NEAR)
    node.lose(NEAR)
    sent = [each.message for each in node.meet(NEAR, LATER) if isinstance(each, Send)]
    assert any(isinstance(each, Pull) for each in sent)
    node.hears(NEAR, Pulled(3, (described(NEAR),)))
    assert node.knows(NEAR)


def test_on_the_edge_a_link_to_who_was_not_met_yet_is_used_once_it_is_met() -> None:
    node = Node(only_local=True)
    node.begin()
    assert node.link(NEAR) == []
    (refused,) = node.hears(NEAR, Pull(1, described(NEAR)))
    assert isinstance(refused, Record)
    assert any(isinstance(each, Send) for each in node.meet(NEAR))


@pytest.mark.parametrize("only_local", [False, True])
def test_after_a_restart_it_is_turned_to_nowhere_until_it_is_met_again(only_local: bool) -> None:
    """It may have been denied by then, or the node may be elsewhere."""
    node = Node(only_local)
    node.begin()
    node.befriend(NEAR)
    node.rounds(35, NOW)
    node.overlay.stop(NOW)
    again = Node(only_local, node.store)
    assert [each for each in again.begin() if isinstance(each, Hold)] == []
    assert not again.knows(NEAR)
    assert _to(NEAR, again.rounds(40)) == []


def test_while_it_is_there_no_word_of_ours_shows_it_a_filter() -> None:
    node = Node()
    node.begin(FAR)
    node.befriend(NEAR)
    node.link(FAR)
    node.rounds(1)
    assert node.overlay.peers.own_profile(LATER).descriptor.filter
    for key, is_shown in ((NEAR, False), (FAR, True)):
        peer = _peer(key)
        member = RingMember(described(key), EPOCH, proof(KEYS, peer, EPOCH))
        ask = RingAsk(1, (RingPart(hint(KEYS, OURS, peer), (member,)),))
        (answer,) = [each.message for each in node.hears(key, ask, LATER) if isinstance(each, Send)]
        assert isinstance(answer, RingTell)
        (part,) = answer.rings
        (own,) = [each.node for each in part.members if each.node.peer == OURS]
        assert bool(own.filter) is is_shown


def test_no_answer_goes_back_to_it_for_a_search_that_it_sent() -> None:
    node = Node()
    node.begin(FAR)
    node.befriend(NEAR)
    node.link(FAR)
    node.hears(FAR, Pulled(1, (described(FAR),)))
    seek = Seek(bytes(16), (1, 2, 3, 4), EPOCH, bytes(32), 5, False)
    onward = [
        each for each in node.hears(NEAR, seek, LATER) if isinstance(each, Send) and each.peer == _peer(FAR)
    ]
    assert [each.message.request for each in onward if isinstance(each.message, Seek)] == [seek.request]
    node.lose(NEAR)
    (refused,) = node.hears(FAR, Sought(seek.request, b"sealed"), LATER)
    assert isinstance(refused, Record)
    assert refused.reason is Reason.STALE


def test_a_topic_is_kept_from_it_once_others_alone_are_allowed_there() -> None:
    node = Node()
    node.begin(FAR)
    node.befriend(NEAR)
    node.link(FAR)
    node.rounds(1, NOW)
    told = node.meet(NEAR, LATER, (OTHER,))
    assert NeighborDown(TOPIC, _peer(NEAR)) in told
    assert Release(_peer(NEAR), f"ring {TOPIC.hex()[:16]}") in told
    node.hears(NEAR, Pulled(2, (described(NEAR),)), LATER)
    peer, own = _peer(NEAR), described(NEAR)
    member = RingMember(own, EPOCH, proof(KEYS, peer, EPOCH))
    for key in (NEAR, FAR):
        node.hears(key, RingAsk(1, (RingPart(hint(KEYS, OURS, _peer(key)), (member,)),)), LATER)
    node.hears(
        NEAR, Beside(hint(KEYS, OURS, peer), EPOCH, proof(KEYS, peer, EPOCH), True, False, True), LATER
    )
    assert peer not in (*node.overlay.topics.members(), *node.overlay.topics.neighbors(TOPIC))
    sent = [each.message for each in _to(NEAR, node.rounds(40)) if isinstance(each, Send)]
    assert any(isinstance(each, Pull) for each in sent), "the network allows something"
    assert not any(isinstance(each, RingAsk | Beside | Intersect) for each in sent)
    node.meet(NEAR, LATER + 60.0)
    node.hears(NEAR, RingAsk(2, (RingPart(hint(KEYS, OURS, peer), (member,)),)), LATER + 60.0)
    assert node.overlay.topics.members() == (peer,)


def test_whom_the_user_names_it_speaks_with_again() -> None:
    node = Node()
    node.begin()
    node.befriend(NEAR)
    node.lose(NEAR)
    node.said(node.overlay.peers.ask_contacts, [Contact(_peer(NEAR), ())], LATER)
    assert _to(NEAR, node.rounds(2)) == [], "nothing new is said of it"
    node.said(node.overlay.peers.ask_contacts, [Contact(_peer(NEAR), AT)], LATER)
    asked = [each.message for each in _to(NEAR, node.rounds(2)) if isinstance(each, Send)]
    assert any(isinstance(each, Pull) for each in asked)
