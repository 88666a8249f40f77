"""One run: both learn exactly what they share, whatever is sent no more, and a liar gets nothing."""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Sequence
from hashlib import sha256
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.overlay.harness import peer_id

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.overlay.gossip.messages import POINTS, Intersect, Intersected, IntersectEnd, TrackerlessMessage
from linnet.overlay.gossip.private_set_intersection import (
    BUCKETS,
    RISTRETTO,
    Group,
    Initiator,
    Party,
    Responder,
    bucket_of,
    choose_topics,
    make_refusal,
)
from linnet.overlay.gossip.topic_tags import TopicKeys, topic_keys
from linnet.sim.seeded_random import SeededEntropy
from linnet.sim.signature_cache import IDEAL

SOAK = bool(os.environ.get("LINNET_SOAK"))
ANN, BEN, EVE = peer_id("ann"), peer_id("ben"), peer_id("eve")
EPOCH = 2800


def keys_of(number: int) -> TopicKeys:
    return topic_keys(TopicId(sha256(b"topic %d" % number).digest()))


KEYS = [keys_of(number) for number in range(300)]


def topics(*numbers: int) -> list[TopicKeys]:
    return [KEYS[number] for number in numbers]


def names(shared: list[TopicKeys]) -> list[bytes]:
    return sorted(keys.topic for keys in shared)


class Run:
    """A run of two honest nodes, step by step."""

    def __init__(
        self,
        ann: list[TopicKeys],
        ben: list[TopicKeys],
        group: Group = IDEAL,
        seed: int = 1,
        ids: tuple[PeerId, PeerId] = (ANN, BEN),
    ) -> None:
        self.entropy = SeededEntropy(seed, "intersection")
        self.initiator = Initiator(Party(ids[0], group, self.entropy), ids[1], ann, EPOCH)
        self.asked = self.initiator.message
        self.responder = Responder(Party(ids[1], group, self.entropy), ids[0], ben, self.asked)
        self.answer = self.responder.message

    def finish(self) -> tuple[list[bytes], list[bytes]]:
        self.end = self.initiator.handle_answer(self.answer)
        self.last, at_ben = self.responder.handle_end(self.end)
        at_ann = self.initiator.handle_end(self.last)
        return sorted(at_ann), sorted(at_ben)


def sizes(*messages: TrackerlessMessage) -> list[int]:
    return [len(msgspec.msgpack.encode(message)) for message in messages]


def draw(rng: Random, most: int) -> list[TopicKeys]:
    return rng.sample(KEYS[: 2 * most], rng.randint(0, most))


@pytest.mark.parametrize(
    ("group", "pairs"),
    [(IDEAL, 1000 if SOAK else 150), (RISTRETTO, 1000 if SOAK else 12)],
    ids=["ideal", "ristretto"],
)
def test_both_learn_the_exact_intersection_of_random_sets(group: Group, pairs: int) -> None:
    rng = Random(38)
    for seed in range(pairs):
        most = rng.choice((4, 16, 40, 70))
        ann, ben = draw(rng, most), draw(rng, most)
        common = names([keys for keys in ann if keys in ben])
        assert Run(ann, ben, group, seed).finish() == (common, common)


@pytest.mark.parametrize("group", [IDEAL, RISTRETTO], ids=["ideal", "ristretto"])
@pytest.mark.parametrize(
    ("ann", "ben"),
    [((), ()), ((), (1, 2)), ((1,), (1,)), ((1, 2), (3, 4)), (range(17), range(8, 20))],
)
def test_both_learn_nothing_but_what_is_common(group: Group, ann: list[int], ben: list[int]) -> None:
    common = names(topics(*(number for number in ann if number in ben)))
    assert Run(topics(*ann), topics(*ben), group).finish() == (common, common)


def test_a_whole_run_of_fixed_luck_is_these_bytes() -> None:
    """What nodes of today say, those of tomorrow understand."""
    run = Run(topics(0, 1, 2), topics(1, 2, 3), RISTRETTO)
    run.finish()
    said = b"".join(map(msgspec.msgpack.encode, (run.asked, run.answer, run.end, run.last)))
    assert sha256(said).hexdigest() == "ba88098824bbf5cca537046c0725726df90feb9337107f9a8e223a344b5fa3c5"


def test_topics_that_one_side_was_not_given_are_in_no_result_and_change_no_size() -> None:
    """A topic that is off on this network is not given, and a probe for it looks like any other miss."""
    on, off = Run(topics(0, 1), topics(0, 1, 2)), Run(topics(0, 1), topics(0, 2))
    assert on.finish() == (names(topics(0, 1)),) * 2
    assert off.finish() == (names(topics(0)),) * 2
    none = Run(topics(0, 1), [])
    assert none.finish() == ([], [])
    for run in (off, none):
        assert sizes(run.asked, run.answer, run.end, run.last) == sizes(on.asked, on.answer, on.end, on.last)


@pytest.mark.parametrize(("few", "many", "shown"), [(0, 16, 16), (17, 64, 64), (65, 256, 256)])
def test_sizes_tell_only_the_bucket(few: int, many: int, shown: int) -> None:
    said = []
    for count in (few, many):
        run = Run(topics(*range(count)), topics(0))
        run.finish()
        assert len(run.asked.blinded) == shown
        said.append(sizes(run.asked, run.answer, run.end, run.last))
    assert said[0] == said[1]


def test_a_set_takes_as_much_work_whether_it_is_filled_up_or_full() -> None:
    class Counting:
        def __init__(self) -> None:
            self.calls: list[str] = []

        def hash_to_group(self, data: bytes) -> bytes:
            self.calls.append("hash")
            return IDEAL.hash_to_group(data)

        def scalar(self, entropy: Entropy) -> bytes:
            self.calls.append("scalar")
            return IDEAL.scalar(entropy)

        def inverses(self, scalars: Sequence[bytes]) -> list[bytes]:
            self.calls.append(f"{len(scalars)} inverses")
            return IDEAL.inverses(scalars)

        def multiply(self, scalar: bytes, point: bytes) -> bytes:
            self.calls.append("multiply")
            return IDEAL.multiply(scalar, point)

    work = []
    for count in (0, 7, 16):
        group = Counting()
        Run(topics(*range(count)), topics(*range(count)), group).finish()
        work.append(group.calls)
    assert work[0] == work[1] == work[2]
    assert work[0].count("multiply") == 4 * 16
    assert work[0].count("hash") == 2 * 16


def test_two_runs_of_the_same_sets_have_no_point_in_common() -> None:
    seen = []
    for seed in (1, 2):
        run = Run(topics(*range(16)), topics(*range(16)), RISTRETTO, seed)
        run.finish()
        seen.append({*run.asked.blinded, *run.answer.blinded, *run.answer.twice})
    assert not seen[0] & seen[1]
    assert len(seen[0]) == 16 + 16 + 16


def test_points_are_sent_in_an_order_that_tells_nothing() -> None:
    run = Run(topics(3, 1, 2), topics(9, 2, 3))
    assert list(run.asked.blinded) == sorted(run.asked.blinded)
    assert list(run.answer.blinded) == sorted(run.answer.blinded)


def test_the_same_topic_twice_is_one_element() -> None:
    assert Run(topics(*[1] * 20), topics(1, 1)).finish() == (names(topics(1)),) * 2


def test_too_many_topics_are_drawn_by_both_sides_alike() -> None:
    nonce = bytes(16)
    ann, ben = choose_topics(KEYS, nonce, EPOCH), choose_topics(reversed(KEYS), nonce, EPOCH)
    assert ann == ben
    assert len(ann) == POINTS
    assert choose_topics(KEYS, bytes([1]) * 16, EPOCH) != ann
    common = names(list(ann))
    assert len(common) == POINTS
    run = Run(KEYS, KEYS)
    assert [len(found) for found in run.finish()] == [POINTS, POINTS]


def test_buckets() -> None:
    assert [bucket_of(size) for size in (0, 1, 16, 17, 64, 65, 256)] == [16, 16, 16, 64, 64, 256, 256]
    assert BUCKETS == (16, 64, 256)


# -- liars --------------------------------------------------------------------------------------


def refused(action: Callable[..., object], *given: object) -> Reason:
    with pytest.raises(RemoteError) as error:
        action(*given)
    return error.value.reason


@pytest.mark.parametrize("group", [IDEAL, RISTRETTO], ids=["ideal", "ristretto"])
def test_an_initiator_without_keys_is_believed_in_nothing(group: Group) -> None:
    """It learns what it could guess, as a peer may; but it cannot claim what it does not hold."""
    seen = [TopicKeys(keys.topic, keys.tag, bytes(32)) for keys in topics(1, 2)]
    run = Run(seen, topics(1, 2, 3), group)
    end = run.initiator.handle_answer(run.answer)
    last, at_ben = run.responder.handle_end(end)
    assert at_ben == ()
    with pytest.raises(RemoteError) as error:  # so it gets no proof either, and none that it could keep
        run.initiator.handle_end(last)
    assert error.value.reason is Reason.NOT_IN_TOPIC


@pytest.mark.parametrize("group", [IDEAL, RISTRETTO], ids=["ideal", "ristretto"])
def test_a_responder_with_a_tag_but_not_the_key_is_caught(group: Group) -> None:
    """A tag may have been seen by somebody; membership is shown with the ring's key."""
    seen = [TopicKeys(keys.topic, keys.tag, bytes(32)) for keys in topics(1, 2)]
    run = Run(topics(1, 2, 3), seen, group)
    last, _ = run.responder.handle_end(run.initiator.handle_answer(run.answer))
    assert refused(run.initiator.handle_end, last) is Reason.NOT_IN_TOPIC


def test_who_lies_about_one_topic_is_believed_in_none() -> None:
    seen = [KEYS[1], TopicKeys(KEYS[2].topic, KEYS[2].tag, bytes(32))]
    run = Run(topics(1, 2), seen)
    last, _ = run.responder.handle_end(run.initiator.handle_answer(run.answer))
    assert refused(run.initiator.handle_end, last) is Reason.NOT_IN_TOPIC


@pytest.mark.parametrize(("twice", "blinded"), [("ours", "theirs"), ("theirs", "ours"), ("same", "same")])
def test_a_responder_that_mirrors_our_points_is_refused(twice: str, blinded: str) -> None:
    run = Run(topics(1, 2, 3), [], RISTRETTO)
    points = {"ours": run.asked.blinded, "theirs": run.answer.twice, "same": run.answer.blinded}
    mirrored = Intersected(run.asked.nonce, points[twice], points[blinded])
    assert refused(run.initiator.handle_answer, mirrored) is Reason.DUPLICATE


def test_a_responder_that_blinds_our_points_as_its_own_has_nothing_in_common() -> None:
    """Without a tag it can only spin our points about, and they never meet."""
    entropy = SeededEntropy(5, "liar")
    ann = Initiator(Party(ANN, RISTRETTO, entropy), EVE, topics(*range(16)), EPOCH)
    one, two = RISTRETTO.scalar(entropy), RISTRETTO.scalar(entropy)
    sent = ann.message.blinded
    twice = tuple(RISTRETTO.multiply(one, point) for point in sent)
    mine = tuple(RISTRETTO.multiply(two, point) for point in sent)
    end = ann.handle_answer(Intersected(ann.nonce, twice, mine))
    assert ann.handle_end(IntersectEnd(ann.nonce, end.proofs)) == ()


def test_a_match_cannot_be_passed_off_as_another() -> None:
    """The responder holds one topic, and moves its match to every other place, for a proof to try names on.

    With one secret for all elements each of these would match, and a proof of a topic that the
    responder does not hold would go out.
    """
    for move in range(1, 16):
        run = Run(topics(*range(16)), topics(3), RISTRETTO)
        twice = run.answer.twice[move:] + run.answer.twice[:move]
        end = run.initiator.handle_answer(Intersected(run.asked.nonce, twice, run.answer.blinded))
        assert run.initiator.handle_end(IntersectEnd(end.nonce, end.proofs)) == ()
        assert run.responder.handle_end(end)[1] == ()


def test_no_proof_goes_to_who_does_not_hold_the_tag() -> None:
    """All that is sent of other topics is noise: another in each run, and under no key of ours."""
    proofs = []
    for seed in (1, 2):
        run = Run(topics(1, 2), topics(3, 4), seed=seed)
        end = run.initiator.handle_answer(run.answer)
        last, _ = run.responder.handle_end(end)
        for keys in topics(1, 2, 3, 4):
            pretended = _proofs_under(keys, run, (ANN, BEN))
            assert not pretended & {*end.proofs, *last.proofs}
        proofs.append({*end.proofs, *last.proofs})
    assert len(proofs[0] | proofs[1]) == 4 * 16


def _proofs_under(keys: TopicKeys, run: Run, provers: tuple[PeerId, ...]) -> set[bytes]:
    """What a member of this topic would have sent in this run."""
    points = (run.asked.blinded, run.answer.twice, run.answer.blinded)
    epoch = EPOCH.to_bytes(8, "big")
    context = sha256(b"linnet/overlay/intersection/context/1" + ANN + BEN + run.asked.nonce + epoch).digest()
    framed = b"".join(len(part).to_bytes(2, "big") + b"".join(part) for part in points)
    said = sha256(b"linnet/overlay/intersection/transcript/1" + context + framed).digest()
    label = b"linnet/overlay/intersection/proof/1"
    return {hmac.digest(keys.ring, label + said + prover, "sha256")[:16] for prover in provers}


def test_proofs_are_over_the_whole_run_and_the_prover() -> None:
    run = Run(topics(1), topics(1))
    run.finish()
    assert _proofs_under(KEYS[1], run, (ANN,)) & {*run.end.proofs}
    assert _proofs_under(KEYS[1], run, (BEN,)) & {*run.last.proofs}


def test_an_old_answer_has_nothing_in_common_with_a_new_run() -> None:
    old = Run(topics(1, 2), topics(1, 2), RISTRETTO, 1)
    old.finish()
    new = Initiator(Party(ANN, RISTRETTO, SeededEntropy(2, "new")), BEN, topics(1, 2), EPOCH)
    new.handle_answer(old.answer)
    assert new.handle_end(IntersectEnd(new.nonce, old.last.proofs)) == ()


def test_an_old_beginning_and_end_replayed_are_worth_nothing() -> None:
    """The responder's secret is fresh, so the proofs that were recorded fit no more."""
    old = Run(topics(1, 2), topics(1, 2), RISTRETTO, 1)
    old.finish()
    again = Responder(Party(BEN, RISTRETTO, SeededEntropy(2, "new")), ANN, topics(1, 2), old.asked)
    assert not {*again.message.blinded} & {*old.answer.blinded}
    assert again.handle_end(old.end)[1] == ()


def test_points_passed_on_to_somebody_else_match_nothing() -> None:
    """Eve, whom Ann asks, asks Ben with Ann's points and hands his answer back: H is bound to the two."""
    entropy = SeededEntropy(3, "relayed")
    ann = Initiator(Party(ANN, RISTRETTO, entropy), EVE, topics(1, 2), EPOCH)
    ben = Responder(Party(BEN, RISTRETTO, entropy), EVE, topics(1, 2), ann.message)
    last, at_ben = ben.handle_end(ann.handle_answer(ben.message))
    assert at_ben == ()
    assert ann.handle_end(last) == ()


def test_proofs_cannot_be_handed_back() -> None:
    run = Run(topics(1, 2), topics(1, 2))
    end = run.initiator.handle_answer(run.answer)
    assert refused(run.initiator.handle_end, end) is Reason.NOT_IN_TOPIC


@pytest.mark.parametrize("bad", [bytes(32), b"\x01" + bytes(31), b"\xff" * 32])
def test_what_is_no_point_is_refused_by_both_sides(bad: bytes) -> None:
    run = Run(topics(1), topics(1), RISTRETTO)
    asked = Intersect(run.asked.nonce, EPOCH, (*run.asked.blinded[1:], bad))
    entropy = SeededEntropy(1, "responder")
    assert refused(Responder, Party(BEN, RISTRETTO, entropy), ANN, topics(1), asked) is Reason.MALFORMED
    answer = Intersected(run.asked.nonce, (*run.answer.twice[1:], bad), run.answer.blinded)
    assert refused(run.initiator.handle_answer, answer) is Reason.MALFORMED


@pytest.mark.parametrize("size", [0, 1, 15, 17, 255])
def test_sets_of_other_sizes_are_refused(size: int) -> None:
    points = tuple(IDEAL.hash_to_group(bytes([number, 1])) for number in range(size))
    asked = Intersect(bytes(16), EPOCH, points)
    assert refused(Responder, Party(BEN, IDEAL, SeededEntropy(1, "r")), ANN, [], asked) is Reason.MALFORMED
    run = Run([], [])
    answer = Intersected(run.asked.nonce, run.answer.twice, points)
    assert refused(run.initiator.handle_answer, answer) is Reason.MALFORMED


def test_a_point_twice_is_refused_in_every_message() -> None:
    run = Run([], [])
    nonce, answer = run.asked.nonce, run.answer
    asked = Intersect(nonce, EPOCH, run.asked.blinded[:1] * 2 + run.asked.blinded[2:])
    assert refused(Responder, Party(BEN, IDEAL, SeededEntropy(1, "r")), ANN, [], asked) is Reason.DUPLICATE
    twin = Intersected(nonce, answer.twice[:1] * 2 + answer.twice[2:], answer.blinded)
    assert refused(run.initiator.handle_answer, twin) is Reason.DUPLICATE
    twin = Intersected(nonce, answer.twice, answer.blinded[:1] * 2 + answer.blinded[2:])
    assert refused(run.initiator.handle_answer, twin) is Reason.DUPLICATE


def test_lengths_that_do_not_fit_are_refused() -> None:
    run = Run(topics(1), topics(1))
    short = Intersected(run.asked.nonce, run.answer.twice[1:], run.answer.blinded)
    assert refused(run.initiator.handle_answer, short) is Reason.MALFORMED
    end = run.initiator.handle_answer(run.answer)
    last, _ = run.responder.handle_end(end)
    for proofs in (end.proofs[1:], (*end.proofs, bytes(16)), ()):
        assert refused(run.responder.handle_end, IntersectEnd(end.nonce, proofs)) is Reason.MALFORMED
    for proofs in (last.proofs[1:], (*last.proofs, bytes(16)), ()):
        assert refused(run.initiator.handle_end, IntersectEnd(end.nonce, proofs)) is Reason.MALFORMED


def test_steps_out_of_order_are_refused() -> None:
    run = Run(topics(1), topics(1))
    assert refused(run.initiator.handle_end, IntersectEnd(run.asked.nonce, ())) is Reason.MALFORMED
    run.initiator.handle_answer(run.answer)
    assert refused(run.initiator.handle_answer, run.answer) is Reason.MALFORMED


def test_tags_of_another_epoch_do_not_match() -> None:
    run = Run(topics(1), topics(1))
    asked = Intersect(run.asked.nonce, EPOCH + 1, run.asked.blinded)
    later = Responder(Party(BEN, IDEAL, run.entropy), ANN, topics(1), asked)
    assert later.handle_end(run.initiator.handle_answer(later.message))[1] == ()


def test_secrets_are_in_no_representation() -> None:
    run = Run(topics(1), topics(1))
    shown = repr(run.initiator) + repr(run.responder) + repr(run.initiator.topics)
    assert "Initiator object" in shown
    assert KEYS[1].topic.hex() not in shown
    assert len(shown) < 300


def test_a_refusal_says_why_and_nothing_else() -> None:
    assert make_refusal(bytes(16), Reason.PROBING) == IntersectEnd(bytes(16), (), Reason.PROBING)


junk_points = st.lists(st.binary(min_size=32, max_size=32), max_size=20).map(tuple)
junk_proofs = st.lists(st.binary(min_size=16, max_size=16), max_size=20).map(tuple)


@settings(max_examples=60)
@given(junk_points, junk_points, junk_proofs, st.sampled_from((16, 64)))
def test_junk_never_finds_anything_in_common(
    twice: tuple[bytes, ...], blinded: tuple[bytes, ...], proofs: tuple[bytes, ...], size: int
) -> None:
    """Bytes of anybody's choice are refused, or come to nothing; nothing else is raised."""
    run = Run(topics(1, 2), topics(1, 2), RISTRETTO)
    fill = tuple(sha256(bytes([place])).digest() for place in range(size))
    nonce = run.asked.nonce
    answer = Intersected(nonce, (twice + fill)[:16], (blinded + fill)[:size])
    end = IntersectEnd(nonce, (bytes(16),) * size)
    assert _found(lambda: (run.initiator.handle_answer(answer), run.initiator.handle_end(end))[1]) == ()
    assert _found(lambda: run.responder.handle_end(IntersectEnd(nonce, proofs))[1]) == ()


def _found(action: Callable[[], tuple[TopicId, ...]]) -> tuple[TopicId, ...]:
    try:
        return action()
    except RemoteError:
        return ()
