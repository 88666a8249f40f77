"""Many runs: limits against probing, what is remembered, runs that cross or break off, and their reasons."""

from __future__ import annotations

from hashlib import sha256
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.overlay.harness import peer_id

from linnet.core.errors import Refused
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.overlay.gossip.config import DAY, TrackerlessConfig
from linnet.overlay.gossip.messages import POINTS, Intersect, Intersected, IntersectEnd
from linnet.overlay.gossip.private_set_intersection import (
    HOUR,
    RISTRETTO,
    Intersections,
    Outcome,
    Step,
    make_refusal,
)
from linnet.overlay.gossip.topic_tags import TopicKeys, epoch_of, topic_keys
from linnet.sim.attacks.overlay import guesses
from linnet.sim.seeded_random import SeededEntropy
from linnet.sim.signature_cache import IDEAL
from linnet.trace.records import Kind, Record

NOW = 1_700_000_000.0
CONFIG = TrackerlessConfig()
LOW, HIGH = sorted((peer_id("ann"), peer_id("ben")))
KEYS = [topic_keys(TopicId(sha256(b"topic %d" % number).digest())) for number in range(600)]


def node(peer: PeerId, seed: int = 1, config: TrackerlessConfig = CONFIG) -> Intersections:
    return Intersections(peer, config, IDEAL, SeededEntropy(seed, peer.hex()))


def pair() -> tuple[Intersections, Intersections]:
    return node(LOW), node(HIGH)


def record(kind: Kind, peer: PeerId, reason: Reason) -> Record:
    return Record(kind, peer=peer, reason=reason, note="intersection")


def topic_set(*numbers: int) -> list[TopicKeys]:
    return [KEYS[number] for number in numbers]


def names(*numbers: int) -> set[TopicId]:
    return {KEYS[number].topic for number in numbers}


def asked_by(step: Step) -> Intersect:
    assert isinstance(step.send, Intersect)
    return step.send


def answer_of(step: Step) -> Intersected:
    assert isinstance(step.send, Intersected)
    return step.send


def end_of(step: Step) -> IntersectEnd:
    assert isinstance(step.send, IntersectEnd)
    return step.send


def begin(
    asker: tuple[PeerId, Intersections],
    other: tuple[PeerId, Intersections],
    ours: list[TopicKeys],
    theirs: list[TopicKeys],
    now: float = NOW,
) -> tuple[Step, Step]:
    """The steps in which each side ends a run."""
    (at, one), (to, two) = asker, other
    asked = asked_by(one.begin_run(to, ours, now))
    answer = answer_of(two.handle_intersect(at, asked, theirs, now))
    end = end_of(one.handle_intersected(to, answer, now))
    last = two.handle_end(at, end, now)
    return one.handle_end(to, end_of(last), now), last


def outcome_of(step: Step) -> Outcome:
    assert step.outcome is not None
    return step.outcome


def test_both_remember_what_they_have_in_common() -> None:
    low, high = pair()
    first, second = begin((LOW, low), (HIGH, high), topic_set(1, 2, 3), topic_set(2, 3, 4))
    for step, one, peer in ((first, low, HIGH), (second, high, LOW)):
        assert {*outcome_of(step).topics} == names(2, 3)
        assert step.records == ()
        assert step.fault is None
        assert one.find_outcome(peer, NOW + DAY - 1) == step.outcome
        assert one.find_outcome(peer, NOW + DAY) is None
        assert len(one) == 0
    assert outcome_of(first).asked == names(1, 2, 3)
    assert "2 of 3" in repr(first.outcome)


def test_the_real_group_comes_to_the_same() -> None:
    low, high = (Intersections(peer, CONFIG, RISTRETTO, SeededEntropy(1, peer.hex())) for peer in (LOW, HIGH))
    first, second = begin((LOW, low), (HIGH, high), topic_set(1, 2), topic_set(2, 3))
    assert {*outcome_of(first).topics} == {*outcome_of(second).topics} == names(2)


def test_a_run_is_not_repeated_within_a_day_unless_there_are_new_topics() -> None:
    low, high = pair()
    begin((LOW, low), (HIGH, high), topic_set(1, 2), topic_set(2))
    later = NOW + CONFIG.intersect_pause * 1.1
    assert not low.may_begin(HIGH, topic_set(1, 2), later)
    assert not low.may_begin(HIGH, topic_set(1), later)
    assert low.may_begin(HIGH, topic_set(1, 2, 3), later)
    assert low.may_begin(HIGH, topic_set(1, 2), NOW + DAY)


def test_one_run_with_the_same_peer_in_ten_minutes_whoever_begins() -> None:
    low, high = pair()
    begin((LOW, low), (HIGH, high), topic_set(1), topic_set(1))
    soon = NOW + CONFIG.intersect_pause - 1
    new = topic_set(1, 2)
    assert not low.may_begin(HIGH, new, soon)
    assert not high.may_begin(LOW, new, soon)
    with pytest.raises(Refused):
        low.begin_run(HIGH, new, soon)
    eager = node(LOW, seed=2)  # it has forgotten everything, or pretends to
    asked = asked_by(eager.begin_run(HIGH, new, soon))
    assert high.handle_intersect(LOW, asked, new, soon) == Step(
        make_refusal(asked.nonce, Reason.PROBING), records=(record(Kind.REJECTED, LOW, Reason.PROBING),)
    )
    later = NOW + CONFIG.intersect_pause
    assert isinstance(high.handle_intersect(LOW, asked, new, later).send, Intersected)


def test_an_honest_node_waits_long_enough_for_the_other_to_agree() -> None:
    """The one who is asked counts from a moment later than the one who asks."""
    low, high = pair()
    asked = asked_by(low.begin_run(HIGH, topic_set(1), NOW))
    high.handle_intersect(LOW, asked, topic_set(1), NOW + 2.0)
    low.end_runs(HIGH)
    high.end_runs(LOW)
    again = next(at for at in (NOW + step for step in range(10_000)) if low.may_begin(HIGH, topic_set(1), at))
    asked = asked_by(low.begin_run(HIGH, topic_set(1), again))
    assert isinstance(high.handle_intersect(LOW, asked, topic_set(1), again).send, Intersected)


def test_guesses_that_others_can_try_on_us_in_an_hour_are_bounded() -> None:
    """A thousand keys ask all day, each with 256 names: so many are answered as the limit says."""
    victim = node(HIGH)
    answered: list[float] = []
    refused = 0
    asker = node(LOW)
    asked = asked_by(asker.begin_run(HIGH, KEYS[:POINTS], NOW))
    for turn in range(6 * 1000):
        now = NOW + turn * 4.0
        step = victim.handle_intersect(peer_id(turn % 1000), asked, topic_set(1), now)
        if isinstance(step.send, Intersected):
            answered.append(now)
            assert len(asked.blinded) == POINTS
        else:
            assert end_of(step).refused is Reason.PROBING
            assert step.records[-1].reason is Reason.PROBING
            refused += 1
    for begun in answered:
        assert POINTS * sum(begun <= at < begun + HOUR for at in answered) <= guesses(CONFIG) == 30 * 256
    assert len(answered) == 30 * 7
    assert POINTS * len(answered) <= guesses(CONFIG, 6000 * 4.0)
    assert refused + len(answered) == 6000
    assert victim.tally.refused == refused
    assert len(victim) <= CONFIG.intersect_inbound


def test_one_peer_alone_can_try_fewer() -> None:
    victim, asker = node(HIGH), node(LOW)
    asked = asked_by(asker.begin_run(HIGH, KEYS[:POINTS], NOW))
    steps = [victim.handle_intersect(LOW, asked, topic_set(1), NOW + turn) for turn in range(3600)]
    assert sum(isinstance(step.send, Intersected) for step in steps) == 6


def test_runs_that_we_begin_tell_as_little_in_an_hour() -> None:
    """False filters lure us into runs; those that were refused have told nothing, and do not count."""
    lured = node(LOW)
    told = 0
    for turn in range(100):
        peer = peer_id(turn)
        if not lured.may_begin(peer, topic_set(1), NOW + turn):
            continue
        asked = asked_by(lured.begin_run(peer, topic_set(1), NOW + turn))
        if turn % 2:
            lured.handle_end(peer, make_refusal(asked.nonce, Reason.PROBING), NOW + turn)
        else:
            answer = answer_of(node(peer).handle_intersect(LOW, asked, KEYS[:POINTS], NOW + turn))
            lured.handle_intersected(peer, answer, NOW + turn)
            told += 1
    assert told == CONFIG.intersect_inbound
    assert not lured.may_begin(peer_id("next"), topic_set(1), NOW + 100)
    assert lured.may_begin(peer_id("next"), topic_set(1), NOW + HOUR)


def test_a_tag_that_is_not_given_is_not_found_and_its_absence_not_seen() -> None:
    found = []
    for enabled in (topic_set(1, 2), topic_set(1), []):
        low, high = pair()
        first, last = begin((LOW, low), (HIGH, high), topic_set(1, 2), enabled)
        found.append((len(outcome_of(first).topics), len(end_of(last).proofs)))
    assert found == [(2, 16), (1, 16), (0, 16)]


def test_if_both_begin_the_lower_key_goes_first_and_both_learn_it_once() -> None:
    low, high = pair()
    from_low = asked_by(low.begin_run(HIGH, topic_set(1, 2), NOW))
    from_high = asked_by(high.begin_run(LOW, topic_set(2, 3), NOW))
    at_low = low.handle_intersect(HIGH, from_high, topic_set(1, 2), NOW)
    assert at_low == Step(
        make_refusal(from_high.nonce, Reason.IN_USE), records=(record(Kind.REJECTED, HIGH, Reason.IN_USE),)
    )
    at_high = high.handle_intersect(LOW, from_low, topic_set(2, 3), NOW)
    assert at_high.records == (record(Kind.DROPPED, LOW, Reason.IN_USE),)
    assert high.handle_end(LOW, end_of(at_low), NOW) == Step()
    end = low.handle_intersected(HIGH, answer_of(at_high), NOW)
    last = high.handle_end(LOW, end_of(end), NOW)
    done = low.handle_end(HIGH, end_of(last), NOW)
    assert {*outcome_of(done).topics} == {*outcome_of(last).topics} == names(2)
    assert (low.tally.done, high.tally.done) == (1, 1)


def test_a_run_that_was_answered_does_not_make_way() -> None:
    """Or a peer could have both: what our proofs tell it, and an answer of ours, in one go."""
    low, high = pair()
    answer = answer_of(
        low.handle_intersect(HIGH, asked_by(high.begin_run(LOW, topic_set(1), NOW)), topic_set(1), NOW)
    )
    high.handle_intersected(LOW, answer, NOW)
    eager = asked_by(node(LOW, seed=2).begin_run(HIGH, topic_set(1), NOW))
    assert end_of(high.handle_intersect(LOW, eager, topic_set(1), NOW)).refused is Reason.IN_USE


def test_runs_time_out_with_a_record_and_late_messages_are_stale() -> None:
    low, high = pair()
    asked = asked_by(low.begin_run(HIGH, topic_set(1), NOW))
    answer = answer_of(high.handle_intersect(LOW, asked, topic_set(1), NOW))
    late = NOW + 10 * CONFIG.request_timeout
    assert low.expire_runs(late - 0.1) == high.expire_runs(late - 0.1) == []
    expired = record(Kind.EXPIRED, HIGH, Reason.TIMEOUT)
    assert low.handle_intersected(HIGH, answer, late) == Step(
        make_refusal(asked.nonce, Reason.STALE), records=(expired, record(Kind.REJECTED, HIGH, Reason.STALE))
    )
    assert high.expire_runs(late) == [record(Kind.EXPIRED, LOW, Reason.TIMEOUT)]
    assert high.handle_end(LOW, make_refusal(asked.nonce, Reason.STALE), late) == Step()
    end = IntersectEnd(asked.nonce, (bytes(16),) * 16)
    assert high.handle_end(LOW, end, late) == Step(records=(record(Kind.REJECTED, LOW, Reason.STALE),))
    assert (len(low), len(high)) == (0, 0)


def test_an_answer_to_another_run_is_stale_and_leaves_the_run_open() -> None:
    low, high = pair()
    low.begin_run(HIGH, topic_set(1), NOW)
    other = Intersected(bytes(16), (), ())
    assert end_of(low.handle_intersected(HIGH, other, NOW)).refused is Reason.STALE
    assert len(low) == 1
    assert high.handle_intersected(LOW, other, NOW).records == (record(Kind.REJECTED, LOW, Reason.STALE),)


def test_a_link_that_breaks_ends_both_runs() -> None:
    low, high = pair()
    asked = asked_by(low.begin_run(HIGH, topic_set(1), NOW))
    high.handle_intersect(LOW, asked, topic_set(1), NOW)
    assert low.end_runs(HIGH) == [record(Kind.DROPPED, HIGH, Reason.LOST)]
    assert high.end_runs(LOW, Reason.TIMEOUT) == [record(Kind.DROPPED, LOW, Reason.TIMEOUT)]
    assert low.end_runs(HIGH) == []


def test_a_refusal_ends_the_run_on_either_side() -> None:
    low, high = pair()
    asked = asked_by(low.begin_run(HIGH, topic_set(1), NOW))
    high.handle_intersect(LOW, asked, topic_set(1), NOW)
    no = make_refusal(asked.nonce, Reason.PROBING)
    assert low.handle_end(HIGH, no, NOW) == Step(records=(record(Kind.DROPPED, HIGH, Reason.PROBING),))
    assert high.handle_end(LOW, no, NOW) == Step(records=(record(Kind.DROPPED, LOW, Reason.PROBING),))
    assert (len(low), len(high)) == (0, 0)


def test_the_epoch_may_differ_by_one() -> None:
    _, high = pair()
    blinded = asked_by(node(LOW).begin_run(HIGH, topic_set(1), NOW)).blinded
    epoch = epoch_of(NOW)
    for peer, other in enumerate((epoch - 2, epoch - 1, epoch, epoch + 1, epoch + 2)):
        step = high.handle_intersect(peer_id(peer), Intersect(bytes(16), other, blinded), [], NOW)
        if abs(other - epoch) > 1:
            assert end_of(step).refused is Reason.WRONG_EPOCH
            assert step.fault is None
        else:
            assert isinstance(step.send, Intersected)


def test_junk_is_refused_called_a_fault_and_counts() -> None:
    _, high = pair()
    epoch = epoch_of(NOW)
    for number, points in enumerate([(), (bytes(32),) * 16, tuple(bytes([n]) * 32 for n in range(16))]):
        step = high.handle_intersect(peer_id(number), Intersect(bytes(16), epoch, points), topic_set(1), NOW)
        assert step.fault in (Reason.MALFORMED, Reason.DUPLICATE)
        assert end_of(step).refused is step.fault
        assert step.records == (record(Kind.REJECTED, peer_id(number), step.fault),)
    assert len(high) == 0
    eager = Intersect(bytes(16), epoch, tuple(bytes([n + 1]) * 32 for n in range(16)))
    assert end_of(high.handle_intersect(peer_id(0), eager, [], NOW)).refused is Reason.PROBING


def test_a_bad_answer_and_a_bad_end_are_faults_and_leave_nothing() -> None:
    low, high = pair()
    asked = asked_by(low.begin_run(HIGH, topic_set(1), NOW))
    answer = answer_of(high.handle_intersect(LOW, asked, topic_set(1), NOW))
    short = IntersectEnd(asked.nonce, ())
    step = high.handle_end(LOW, short, NOW)
    assert (step.fault, end_of(step).refused, step.outcome) == (Reason.MALFORMED, Reason.MALFORMED, None)
    step = low.handle_intersected(HIGH, Intersected(asked.nonce, (), answer.blinded), NOW)
    assert (step.fault, end_of(step).refused) == (Reason.MALFORMED, Reason.MALFORMED)
    assert (len(low), len(high)) == (0, 0)
    assert low.find_outcome(HIGH, NOW) is high.find_outcome(LOW, NOW) is None


def test_who_holds_a_tag_and_not_the_key_gets_no_outcome_and_is_named() -> None:
    low, high = pair()
    seen = [TopicKeys(KEYS[1].topic, KEYS[1].tag, bytes(32))]
    asked = asked_by(low.begin_run(HIGH, topic_set(1, 2), NOW))
    end = low.handle_intersected(HIGH, answer_of(high.handle_intersect(LOW, asked, seen, NOW)), NOW)
    last = high.handle_end(LOW, end_of(end), NOW)
    assert outcome_of(last).topics == ()
    step = low.handle_end(HIGH, end_of(last), NOW)
    rejected = record(Kind.REJECTED, HIGH, Reason.NOT_IN_TOPIC)
    assert step == Step(fault=Reason.NOT_IN_TOPIC, records=(rejected,))
    assert low.find_outcome(HIGH, NOW) is None


def test_topics_beyond_the_most_are_left_out_with_a_record() -> None:
    low, high = pair()
    step = low.begin_run(HIGH, KEYS[:300], NOW)
    left_out = Record(Kind.DROPPED, peer=HIGH, reason=Reason.TOO_MANY, events=44, note="intersection")
    assert step.records == (left_out,)
    answered = high.handle_intersect(LOW, asked_by(step), [*KEYS[:300], *KEYS[:10]], NOW)
    assert answered.records[0].events == 44
    end = low.handle_intersected(HIGH, answer_of(answered), NOW)
    last = high.handle_end(LOW, end_of(end), NOW)
    assert len(outcome_of(last).topics) == POINTS
    assert low.may_begin(LOW, KEYS[:300], NOW) is False  # nobody asks itself


def test_runs_of_no_use_are_counted() -> None:
    low = node(LOW)
    for number, shared in enumerate((True, False, False)):
        peer = peer_id(number)
        begin((LOW, low), (peer, node(peer)), topic_set(1), topic_set(1 if shared else 2))
    tally = low.tally
    assert (tally.begun, tally.done, tally.empty, tally.answered, tally.refused) == (3, 3, 2, 0, 0)


def test_what_is_remembered_is_bounded_by_the_limits() -> None:
    """A new peer every ninety seconds for a day: what is kept is what the limits let in in six hours."""
    config = TrackerlessConfig(intersect_memory=6 * HOUR)
    busy = node(HIGH, config=config)
    most = 0
    for turn in range(24 * 40):
        peer, now = peer_id(turn), NOW + turn * 90.0
        asked = asked_by(node(peer).begin_run(HIGH, topic_set(1), now))
        step = busy.handle_intersect(peer, asked, topic_set(1), now)
        if isinstance(step.send, Intersected):
            busy.handle_end(peer, IntersectEnd(asked.nonce, (bytes(16),) * 16), now)
        most = max(most, busy.remembered)
    assert most == 6 * config.intersect_inbound
    assert busy.tally.done == 24 * config.intersect_inbound


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 0.5))
def test_with_loss_and_crossing_both_come_to_the_truth_or_to_nothing(seed: int, loss: float) -> None:
    """Whatever is lost: no outcome is wrong, nothing stays open, and in the end somebody knows."""
    rng = Random(seed)
    ours = [rng.sample(KEYS[:40], rng.randint(0, 20)) for _ in range(2)]
    common = {keys.topic for keys in ours[0] if keys in ours[1]}
    nodes, ids = pair(), (LOW, HIGH)
    now, outcomes = NOW, 0
    for _ in range(30):
        queue: list[tuple[int, Intersect | Intersected | IntersectEnd]] = [
            (1 - at, asked_by(nodes[at].begin_run(ids[1 - at], ours[at], now)))
            for at in rng.sample((0, 1), rng.randint(1, 2))
            if nodes[at].may_begin(ids[1 - at], ours[at], now)
        ]
        while queue:
            at, message = queue.pop(rng.randrange(len(queue)))
            if rng.random() < loss:
                continue
            match message:
                case Intersect():
                    step = nodes[at].handle_intersect(ids[1 - at], message, ours[at], now)
                case Intersected():
                    step = nodes[at].handle_intersected(ids[1 - at], message, now)
                case IntersectEnd():
                    step = nodes[at].handle_end(ids[1 - at], message, now)
            assert step.fault is None
            if step.outcome is not None:
                outcomes += 1
                assert {*step.outcome.topics} == common
            if step.send is not None:
                queue.append((1 - at, step.send))
        now += CONFIG.intersect_pause * 1.2
        for one in nodes:
            one.expire_runs(now)
            assert len(one) == 0
    assert outcomes or loss > 0.2
