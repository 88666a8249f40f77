"""Content in a node: by the hash table, with those who take part, and not at all where it is off."""

from __future__ import annotations

from random import Random

import pytest

from linnet.content.attribute_keys import attribute_key, distance
from linnet.content.commands import (
    ContentCommand,
    ContentIs,
    ListContent,
    Outcome,
    PublishContent,
    Standing,
    SubscribeContent,
)
from linnet.content.config import ContentConfig
from linnet.content.messages import Publish, Subscribe
from linnet.content.part import ABSENT, UNFOUND
from linnet.core.effects import Reply, Send
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import Asked, LinkUp, Received
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.messages import FindNode, NodesAre
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Effect, Start
from linnet.peer.messages import PROTOCOLS
from linnet.peer.peer import Peer
from linnet.sim.clock import START
from linnet.sim.seeded_random import seeded_identity
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

US = seeded_identity(1, "us", START)
HINTS = ("tls://198.51.100.7:1",)
ON = PeerConfig(listens=("tls://192.0.2.1:1",), kademlia=KademliaConfig(), content=ContentConfig())


def node(config: PeerConfig = ON) -> Peer:
    return Peer(config, US, MemoryStore(), Random(1))


def met(peer: Peer, other: PeerId, *lacking: str) -> list[Effect]:
    """Somebody links to us who does not take part in these."""
    spoken = {name: version for name, version in PROTOCOLS.items() if name not in lacking}
    return peer.handle(LinkUp(other, Hello(1, 1, spoken, listens=HINTS), False, None), START)


def sent(effects: list[Effect]) -> list[tuple[PeerId, object]]:
    return [(effect.peer, effect.message) for effect in effects if isinstance(effect, Send)]


def questions(effects: list[Effect]) -> list[FindNode]:
    return [message for _, message in sent(effects) if isinstance(message, FindNode)]


def replies(effects: list[Effect]) -> list[object]:
    return [effect.result for effect in effects if isinstance(effect, Reply)]


def others_by_distance(attribute: str) -> tuple[PeerId, PeerId]:
    """One who is closer to the rendezvous of an attribute than we are, and one who is not."""
    key = attribute_key(attribute)
    peers = [PeerId(bytes([number]) * 32) for number in range(1, 60)]
    ours = distance(US.peer, key)
    closer = next(each for each in peers if distance(each, key) < ours)
    farther = next(each for each in peers if distance(each, key) > ours)
    return closer, farther


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (PeerConfig(), UNFOUND),
        (PeerConfig(content=ContentConfig()), UNFOUND),
        (PeerConfig(kademlia=KademliaConfig()), ABSENT),
    ],
)
def test_every_word_of_content_is_declined_with_the_setting_that_is_missing(
    config: PeerConfig, words: str
) -> None:
    peer = node(config)
    asked: tuple[ContentCommand, ...] = (SubscribeContent(1, "a"), PublishContent("a", b""), ListContent())
    for request, command in enumerate(asked):
        assert peer.handle(Asked(request, command), START) == [
            Reply(request, Declined(Reason.UNSUPPORTED, words))
        ]
    stranger = PeerId(b"s" * 32)
    effects = peer.handle(Received(stranger, Subscribe(1, "a", "a", 0)), START)
    note = "Subscribe: this node does not take part in content"
    assert effects == [Record(Kind.REJECTED, peer=stranger, reason=Reason.UNSUPPORTED, note=note)]


def test_the_hello_names_content_only_where_it_is_done() -> None:
    assert {"content", "fast", "kademlia"} <= {*node().hello.protocols}
    without = node(PeerConfig(kademlia=KademliaConfig())).hello.protocols
    assert "kademlia" in without
    assert not {"content", "fast"} & {*without}


def test_who_knows_nobody_is_the_rendezvous_until_somebody_closer_comes() -> None:
    peer = node()
    peer.handle(Asked(1, Start()), START)
    assert replies(peer.handle(Asked(2, SubscribeContent(1, "a")), START)) == [Standing("a", "a")]
    assert replies(peer.handle(Asked(3, ListContent()), START))[0].rendezvous == ("a",)  # type: ignore[attr-defined]
    closer, farther = others_by_distance("a")
    assert not any(isinstance(message, Subscribe) for _, message in sent(met(peer, farther)))
    assert (closer, Subscribe(1, "a", "a", 0, True)) in sent(met(peer, closer))
    (told,) = replies(peer.handle(Asked(4, ListContent()), START))
    assert isinstance(told, ContentIs)
    assert told.rendezvous == ()


def test_lookups_wait_until_we_have_looked_for_ourselves_and_go_by_the_hash_table() -> None:
    closer, farther = others_by_distance("a")
    config = PeerConfig(
        ON.listens, kademlia=ON.kademlia, content=ON.content, kademlia_bootstrap=(Contact(farther, HINTS),)
    )
    peer = node(config)
    peer.handle(Asked(1, Start()), START)
    (first,) = questions(met(peer, farther))
    assert questions(peer.handle(Asked(2, PublishContent("a", b"")), START)) == []
    (second,) = questions(peer.handle(Received(farther, NodesAre(first.request, (), None)), START))
    assert second.target == attribute_key("a")
    found = NodesAre(second.request, (Contact(closer, HINTS),), None)
    peer.handle(Received(farther, found), START)
    (third,) = questions(met(peer, closer))
    effects = peer.handle(Received(closer, NodesAre(third.request, (), None)), START)
    assert [to for to, message in sent(effects) if isinstance(message, Publish)] == [closer]


def test_those_of_the_hash_table_without_content_are_left_out() -> None:
    closer, _ = others_by_distance("a")
    peer = node()
    peer.handle(Asked(1, Start()), START)
    met(peer, closer, "content", "fast")
    effects = peer.handle(Asked(2, PublishContent("a", b"")), START)
    (question,) = questions(effects)
    effects = peer.handle(Received(closer, NodesAre(question.request, (), None)), START)
    (outcome,) = replies(effects)
    assert isinstance(outcome, Outcome)
    assert [(fate.delivered, fate.missed, fate.reason) for fate in outcome.fates] == [(0, 0, None)]
