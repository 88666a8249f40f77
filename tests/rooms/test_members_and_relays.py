"""A node that is a member of rooms and a relay of others: each message goes to the side that it is about."""

from __future__ import annotations

from random import Random

import pytest

from linnet.core.effects import AfterCommit, Send
from linnet.core.ids import Contact, TopicId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import Want
from linnet.event.signing import verify_unit
from linnet.identity.cards import check_card
from linnet.peer.config import PeerConfig
from linnet.peer.parts import Parts
from linnet.rooms.commands import CreateRoom, JoinRoom
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.rooms.messages import RelayAnswer, RelayAsk
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind, Record

NOW = 1e9
ELSEWHERE = TopicId(b"e" * 32)
ANN = known_identity("ann").peer


class Both:
    """A member that is an open relay as well."""

    def __init__(self) -> None:
        config = PeerConfig(relay=RelayConfig(policy=RelayPolicy.OPEN))
        us = known_identity("us")
        self.parts = Parts(config, us, MemoryStore(), Random(1), verify_unit, check_card, None)

    def hear(self, message: Message) -> tuple[list[Message], list[Reason | None]]:
        """What is sent back, and why messages were rejected."""
        self.parts.out.clear()
        self.parts.router.message(ANN, message, NOW)
        effects: list[object] = []
        for effect in self.parts.out.take():
            effects += effect.effects if isinstance(effect, AfterCommit) else [effect]
        sent = [each.message for each in effects if isinstance(each, Send)]
        records = [each for each in effects if isinstance(each, Record) and each.kind is Kind.REJECTED]
        return sent, [record.reason for record in records]


def test_a_question_to_serve_an_unknown_room_goes_to_the_relay() -> None:
    both = Both()
    sent, rejected = both.hear(RelayAsk(ELSEWHERE, 1, ()))
    assert [each.reason for each in sent if isinstance(each, RelayAnswer)] == [None]
    assert rejected == []
    assert both.parts.relay is not None
    assert both.parts.relay.serves(ELSEWHERE)


def test_a_room_that_is_being_joined_is_not_served() -> None:
    both = Both()
    both.parts.router.command(1, JoinRoom(ELSEWHERE, None, (Contact(ANN, ("tls://ann:1",)),)), NOW)
    sent, rejected = both.hear(RelayAsk(ELSEWHERE, 1, ()))
    assert [each.reason for each in sent if isinstance(each, RelayAnswer)] == [Reason.NOT_A_RELAY]
    assert rejected == [Reason.UNKNOWN_ROOM]
    assert both.parts.relay is not None
    assert not both.parts.relay.serves(ELSEWHERE)


def test_a_room_of_ours_is_not_served() -> None:
    both = Both()
    both.parts.router.command(1, CreateRoom(), NOW)
    (room,) = both.parts.rooms._registry
    assert both.hear(RelayAsk(room.id, 1, ())) == ([], [Reason.NOT_A_RELAY])


@pytest.mark.parametrize("is_relay", [True, False])
def test_a_question_about_an_unknown_room_is_rejected(is_relay: bool) -> None:
    both = Both()
    if not is_relay:
        us = known_identity("us")
        both.parts = Parts(PeerConfig(), us, MemoryStore(), Random(1), verify_unit, check_card, None)
    assert both.hear(Want(ELSEWHERE, 1, ()))[1] == [Reason.UNKNOWN_ROOM]
