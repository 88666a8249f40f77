"""The stand-in comes to the same results as the real group, in messages of the same sizes."""

from __future__ import annotations

from hashlib import sha256
from random import Random

import msgspec
import pytest
from tests.overlay.harness import peer_id

from linnet.core.errors import RemoteError
from linnet.core.ids import TopicId
from linnet.overlay.trackerless.intersection import Initiator, Responder
from linnet.overlay.trackerless.oblivious import RISTRETTO, Group
from linnet.overlay.trackerless.tags import TopicKeys, topic_keys
from linnet.sim.ideal_group import IDEAL
from linnet.sim.luck import SeededEntropy

ANN, BEN = peer_id("ann"), peer_id("ben")
KEYS = [topic_keys(TopicId(sha256(bytes([number])).digest())) for number in range(90)]


def run(
    group: Group, ann: list[TopicKeys], ben: list[TopicKeys]
) -> tuple[set[TopicId], set[TopicId], list[int]]:
    entropy = SeededEntropy(1, "equal")
    initiator = Initiator(group, ANN, BEN, ann, 7, entropy)
    responder = Responder(group, BEN, ANN, ben, initiator.message, entropy)
    end = initiator.answered(responder.message)
    last, at_ben = responder.ended(end)
    at_ann = initiator.ended(last)
    messages = (initiator.message, responder.message, end, last)
    return {*at_ann}, {*at_ben}, [len(msgspec.msgpack.encode(message)) for message in messages]


@pytest.mark.parametrize("seed", range(8))
def test_results_and_sizes_are_those_of_the_real_group(seed: int) -> None:
    rng = Random(seed)
    most = rng.choice((5, 16, 60))
    ann, ben = (rng.sample(KEYS[: most * 3 // 2], rng.randint(0, most)) for _ in range(2))
    ideal = run(IDEAL, ann, ben)
    assert ideal == run(RISTRETTO, ann, ben)
    assert ideal[0] == ideal[1] == {keys.topic for keys in ann if keys in ben}


@pytest.mark.parametrize("point", [bytes(32), b"", bytes(31), b"x" * 33])
def test_the_identity_and_what_has_not_the_size_of_a_point_are_refused(point: bytes) -> None:
    with pytest.raises(RemoteError):
        IDEAL.multiply(b"m" * 32, point)


def test_a_mask_goes_on_in_either_order_and_off_again() -> None:
    entropy = SeededEntropy(1, "masks")
    one, two = IDEAL.scalar(entropy), IDEAL.scalar(entropy)
    element = IDEAL.hash_to_group(b"x")
    there = IDEAL.multiply(two, IDEAL.multiply(one, element))
    assert there == IDEAL.multiply(one, IDEAL.multiply(two, element)) != element
    [off] = IDEAL.inverses([one])
    assert IDEAL.multiply(off, there) == IDEAL.multiply(two, element)
