from __future__ import annotations

from itertools import combinations

from tests.delivery.voices import TOPIC
from tests.streams.sealed.hall import device

from linnet.core.ids import TopicId
from linnet.streams.sealed.owner import context_of, party_of

ANN, BEN, EVE = device("ann"), device("ben"), device("eve")


def test_a_direct_message_is_bound_to_stream_owner_reader_and_epoch() -> None:
    contexts = [
        context_of(TOPIC, ANN, BEN, 1),
        context_of(TopicId(b"u" * 32), ANN, BEN, 1),
        context_of(TOPIC, EVE, BEN, 1),
        context_of(TOPIC, ANN, EVE, 1),
        context_of(TOPIC, BEN, ANN, 1),
        context_of(TOPIC, ANN, BEN, 2),
    ]
    assert all(one != other for one, other in combinations(contexts, 2))


def test_a_party_is_a_device_in_one_stream() -> None:
    assert len(party_of(TOPIC, ANN)) == 16
    assert len({party_of(TOPIC, ANN), party_of(TOPIC, BEN), party_of(TopicId(b"u" * 32), ANN)}) == 3
