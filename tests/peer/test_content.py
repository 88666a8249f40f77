"""A node without content says so."""

from __future__ import annotations

from random import Random

from linnet.content.commands import ContentCommand, PublishContent, SubscribeContent
from linnet.content.messages import Subscribe
from linnet.core.effects import Reply
from linnet.core.ids import PeerId
from linnet.core.inputs import Asked
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.peer.config import PeerConfig
from linnet.peer.peer import Peer
from linnet.sim.clock import START
from linnet.sim.identities import seeded_identity
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record


def test_every_word_of_content_is_declined_where_nobody_can_be_found() -> None:
    peer = Peer(PeerConfig(), seeded_identity(1, "a", START), MemoryStore(), Random(1))
    asked: tuple[ContentCommand, ...] = (SubscribeContent(1, "a"), PublishContent("a", b""))
    for request, command in enumerate(asked):
        (reply,) = peer.handle(Asked(request, command), START)
        assert isinstance(reply, Reply)
        assert isinstance(reply.result, Declined)
        assert reply.result.reason is Reason.UNSUPPORTED
    stranger = PeerId(b"s" * 32)
    effects = peer.content.on_message(stranger, Subscribe(1, "a", "a", 0), START)
    note = "Subscribe: this node does not take part in content"
    assert effects == [Record(Kind.REJECTED, peer=stranger, reason=Reason.UNSUPPORTED, note=note)]
