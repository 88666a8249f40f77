"""Set reconciliation: exactly the difference, within every limit, and nothing a liar can do about it."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delivery.graphs import Graph, name, splits

from linnet.core.ids import EventId, TopicId
from linnet.core.limits import FRAME_BYTES
from linnet.core.reasons import Reason
from linnet.delivery.messages import Bound, Range, Reconcile
from linnet.delivery.set_reconciliation import END, START, Key, Reconciler, SortedIds, Step, compare_bytes

TOPIC = TopicId(b"t" * 32)
LAST = Bound(*END)


def of(keys: Iterable[Key]) -> SortedIds:
    ids = SortedIds()
    for key in keys:
        ids.add(*key)
    return ids


def keys_of(numbers: Iterable[int]) -> list[Key]:
    return [(number // 3, name(number)) for number in numbers]


class Session:
    """Two sides, what each found, and what it cost."""

    def __init__(self, left: SortedIds, right: SortedIds, rounds: int = 1024) -> None:
        self.sets = [left, right]
        self.sides = [Reconciler(TOPIC, 1, ids, rounds) for ids in self.sets]
        self.need: list[list[EventId]] = [[], []]
        self.have: list[list[EventId]] = [[], []]
        self.messages = 0
        self.bytes = 0

    def run(self, stop_after: int = 10_000) -> None:
        message: Reconcile | None = self.sides[0].begin()
        turn = 0
        while message is not None and self.messages < stop_after:
            raw = msgspec.msgpack.encode(message)
            assert len(raw) < FRAME_BYTES // 2
            turn = 1 - turn
            step = self.sides[turn].answer(msgspec.msgpack.decode(raw, type=Reconcile))
            assert self.sides[turn].failed is None
            assert (step.reply is not None) or self.sides[turn].done
            self.need[turn] += step.need
            self.have[turn] += step.have
            self.messages += 1
            self.bytes += len(raw)
            message = step.reply

    def check(self) -> None:
        left, right = ({id for _, id in ids} for ids in self.sets)
        assert all(side.done for side in self.sides)
        assert [sorted(need) for need in self.need] == [sorted(right - left), sorted(left - right)]
        told = sorted(self.have[0] + self.have[1])
        assert [id for id in told if id in left and id in right] == []


def reconcile(left: Iterable[Key], right: Iterable[Key]) -> Session:
    session = Session(of(left), of(right))
    session.run()
    session.check()
    return session


@given(splits())
def test_both_find_exactly_what_they_lack(split: tuple[Graph, Graph, Graph]) -> None:
    _, one, two = split
    reconcile(*([(node.height, node.id) for node in graph.values()] for graph in (one, two)))


@given(st.integers(0, 600), st.integers(0, 100), st.integers(0, 100), st.randoms(use_true_random=False))
def test_both_find_exactly_what_they_lack_among_many(shared: int, left: int, right: int, rng: Random) -> None:
    numbers = list(range(shared + left + right))
    rng.shuffle(numbers)
    both, only_left = numbers[:shared], numbers[shared : shared + left]
    reconcile(keys_of(both + only_left), keys_of(both + numbers[shared + left :]))


@given(st.integers(0, 300), st.integers(1, 8), st.randoms(use_true_random=False))
def test_after_an_interruption_a_new_session_finds_the_rest(shared: int, stop: int, rng: Random) -> None:
    """Every session takes what was found into the sets; each is cut off after some messages."""
    numbers = list(range(shared + 200))
    rng.shuffle(numbers)
    height = {id: height for height, id in keys_of(numbers)}
    sets = [of(keys_of(numbers[: shared + 100])), of(keys_of(numbers[:shared] + numbers[shared + 100 :]))]
    for attempt in range(100):
        session = Session(sets[0], sets[1])
        session.run(stop + attempt)
        for ids, need in zip(sets, session.need, strict=True):
            for id in need:
                assert ids.add(height[id], id), "only what was lacking is needed"
        if all(side.done for side in session.sides):
            break
    assert list(sets[0]) == list(sets[1]) == sorted(keys_of(numbers))


def test_the_sets_may_grow_meanwhile() -> None:
    """What comes during a session may be found or not; nothing else goes missing, and it ends."""
    left, right = of(keys_of(range(0, 3_000, 2))), of(keys_of(range(0, 3_000, 3)))
    height = {id: height for height, id in keys_of(range(3_000))}
    sides = Reconciler(TOPIC, 1, left), Reconciler(TOPIC, 1, right)
    message: Reconcile | None = sides[0].begin()
    turn, rounds = 0, 0
    while message is not None:
        turn, rounds = 1 - turn, rounds + 1
        step = sides[turn].answer(message)
        assert sides[turn].failed is None
        for id in step.need:
            (left, right)[turn].add(height[id], id)
        left.add(*keys_of([2_000 + 2 * rounds + 1])[0])
        message = step.reply
    assert set(keys_of(range(0, 3_000, 3))) <= set(left)
    assert set(keys_of(range(0, 3_000, 2))) <= set(right)


def test_equal_sets_cost_one_round_trip() -> None:
    session = reconcile(keys_of(range(5_000)), keys_of(range(5_000)))
    assert session.messages == 2
    assert session.bytes < 1_000


def test_small_sets_are_listed_at_once() -> None:
    left, right = keys_of([1, 2, 3]), keys_of([2, 3, 4])
    one, two = Reconciler(TOPIC, 5, of(left)), Reconciler(TOPIC, 5, of(right))
    first = one.begin()
    assert first == Reconcile(TOPIC, 5, (Range(LAST, None, tuple(id for _, id in sorted(left)), False),))
    told = Reconcile(TOPIC, 5, (Range(LAST, None, (name(4),), True),))
    assert two.answer(first) == Step(told, (name(1),), (name(4),))
    assert one.answer(told) == Step(None, (name(4),), ())
    assert (one.done, one.failed, two.done, two.failed) == (True, None, True, None)


@pytest.mark.parametrize("newcomer", [0, 1])
def test_one_who_has_nothing_is_told_everything_in_bounded_messages(newcomer: int) -> None:
    sets: list[list[Key]] = [keys_of(range(20_000)), keys_of(range(20_000))]
    sets[newcomer] = []
    session = reconcile(*sets)
    assert session.messages > 4
    assert max(len(session.need[0]), len(session.need[1])) == 20_000


def test_a_message_keeps_to_its_limits() -> None:
    """Two large sets of which nothing is shared need the most ranges and ids."""
    left, right = keys_of(range(0, 20_000, 2)), keys_of(range(1, 20_000, 2))
    sides = Reconciler(TOPIC, 1, of(left)), Reconciler(TOPIC, 1, of(right))
    message: Reconcile | None = sides[0].begin()
    turn, ranges, listed = 0, [], []
    while message is not None:
        ranges.append(len(message.ranges))
        listed.append(sum(len(one.ids) for one in message.ranges))
        assert all(len(one.ids) <= 256 for one in message.ranges)
        turn = 1 - turn
        message = sides[turn].answer(message).reply
    assert 400 < max(ranges) <= 512
    assert 4_000 < max(listed) <= 8_192


def test_a_few_differences_among_many_cost_little_and_the_estimate_is_near() -> None:
    rng = Random(2)
    numbers = list(range(30_000))
    for apart in (1, 10, 100):
        lost = set(rng.sample(numbers, apart))
        session = reconcile(keys_of(numbers), keys_of(number for number in numbers if number not in lost))
        expected = compare_bytes(apart, 30_000)
        assert expected / 2 < session.bytes < 2 * expected
        assert session.messages < 14


def message(*ranges: Range) -> Reconcile:
    return Reconcile(TOPIC, 1, ranges)


FIRST = Bound(3, name(1))
LIES = {
    "of another session": Reconcile(TOPIC, 2, ()),
    "of another topic": Reconcile(TopicId(b"u" * 32), 1, ()),
    "nothing to say": message(),
    "an empty range": message(Range(Bound(*START), None, (), True)),
    "in no order": message(Range(FIRST, None, (), True), Range(Bound(2, name(1)), None, (), True)),
    "twice the same": message(Range(FIRST, None, (), True), Range(FIRST, None, (), True)),
    "past the end": message(Range(Bound(END[0] + 1, name(1)), None, (), True)),
    "told what was not listed": message(Range(LAST, None, (name(1),), True)),
    "both a fingerprint and a list": message(Range(LAST, bytes(32), (name(1),), False)),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_breaks_a_rule_ends_the_session_with_a_reason(lie: str) -> None:
    side = Reconciler(TOPIC, 1, of(keys_of(range(100))))
    assert side.answer(LIES[lie]) == Step(None, (), ())
    assert side.failed in (Reason.MALFORMED, Reason.PROTOCOL_ERROR)
    assert side.done
    assert side.answer(message()) == Step(None, (), ())


def test_an_answer_is_about_what_was_asked() -> None:
    """A range that was listed can only be ended, and one that was ended is not spoken of again."""
    side = Reconciler(TOPIC, 1, of(keys_of(range(20))))
    side.begin()
    side.answer(message(Range(LAST, bytes(32), (), False)))
    assert side.failed is Reason.PROTOCOL_ERROR
    side = Reconciler(TOPIC, 1, of(keys_of(range(20))))
    side.answer(message(Range(FIRST, None, (name(1),), False)))
    assert side.failed is None
    side.answer(message(Range(FIRST, None, (name(2),), False)))
    assert side.failed is Reason.PROTOCOL_ERROR


def test_what_was_not_asked_about_cannot_be_drawn_in() -> None:
    """A range that begins where we wait for an answer and goes on to where we do not."""
    side = Reconciler(TOPIC, 1, of(keys_of(range(20))))
    side.answer(message(Range(FIRST, bytes(32), (), False)))
    assert side.failed is None
    side = Reconciler(TOPIC, 1, of(keys_of(range(100))))
    first = side.begin().ranges
    side.answer(message(Range(first[0].upto, None, (), True), Range(first[2].upto, bytes(32), (), False)))
    assert side.failed is Reason.PROTOCOL_ERROR


def test_a_session_takes_only_so_many_messages() -> None:
    """A liar that ends one small piece after the other is cut off."""
    side = Reconciler(TOPIC, 1, of(keys_of(range(100))), rounds=20)
    for number in range(20):
        step = side.answer(message(Range(Bound(number, name(1)), None, (), True)))
        assert step == Step(Reconcile(TOPIC, 1, ()), (), ())
    side.answer(message(Range(Bound(30, name(1)), None, (), True)))
    assert side.failed is Reason.TOO_MANY


bounds = st.tuples(st.integers(0, 40), st.integers(0, 50).map(name)).map(lambda key: Bound(*key))
ranges = st.builds(
    Range,
    upto=st.one_of(bounds, st.just(LAST)),
    fingerprint=st.one_of(st.none(), st.binary(min_size=32, max_size=32)),
    ids=st.lists(st.integers(0, 200).map(name), max_size=5).map(tuple),
    skip=st.booleans(),
)


@given(st.lists(st.lists(ranges, max_size=5), max_size=30), st.booleans(), st.booleans())
def test_no_message_makes_it_loop_or_raise(lies: list[list[Range]], begins: bool, ordered: bool) -> None:
    ids = of(keys_of(range(120)))
    side = Reconciler(TOPIC, 1, ids, rounds=25)
    if begins:
        side.begin()
    for lie in lies:
        said = sorted(lie, key=lambda one: (one.upto.height, one.upto.id)) if ordered else lie
        step = side.answer(message(*said))
        if side.failed is not None:
            assert (step.reply, side.done) == (None, True)
        if step.reply is not None:
            assert len(step.reply.ranges) <= 512
            places = [(one.upto.height, one.upto.id) for one in step.reply.ranges]
            assert places == sorted(set(places))
    assert side.rounds <= 26


@given(st.integers(0, 2**32), st.integers(0, 3_000))
def test_a_liar_that_keeps_to_the_form_is_bounded(seed: int, size: int) -> None:
    """It answers every range that waits with random fingerprints of random parts, or a random list."""
    rng = Random(seed)
    side = Reconciler(TOPIC, 1, of(keys_of(range(size))), rounds=50)
    reply: Reconcile | None = side.begin()
    said = 0
    while reply is not None:
        said += 1
        lie: list[Range] = []
        for one in reply.ranges:
            if one.skip:
                lie.append(Range(one.upto, None, (), True))
            elif one.fingerprint is None:
                lie.append(Range(one.upto, None, (name(rng.randrange(10**6)),), True))
            else:
                lie.append(Range(one.upto, rng.randbytes(32), (), False))
        step = side.answer(message(*lie))
        reply = step.reply
    assert side.done
    assert said <= 51
