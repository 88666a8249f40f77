"""Fingers: unlike peers out of the sample, changing slowly, and not whoever shows nothing."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

from tests.overlay.gossip.interested import CONFIG, Node, described, peer_id

from linnet.overlay.gossip.messages import Descriptor

TOPICS = list(range(40))


def mixed(count: int = 40) -> list[int]:
    """Numbers of nodes; the first half is like us, the second is not."""
    return list(range(1, count + 1))


def topics_of(number: int) -> list[int]:
    if number <= 20:
        return TOPICS[: 20 + number]
    return list(range(1000 * number, 1000 * number + 30))


@cache
def everyone() -> tuple[Descriptor, ...]:
    return tuple(described(number, topics_of(number)) for number in mixed())


def node(seed: int = 0) -> Node:
    one = Node(0, TOPICS, seed=seed)
    one.meet(*everyone())
    return one


def test_they_come_from_the_sample_and_from_its_unlikest_fifth() -> None:
    for seed in range(20):
        one = node(seed)
        sample = [peer_id(number) for number in mixed()]
        for _ in range(20):
            one.clustering.refresh_fingers(sample, 0.0)
        likeness = {each.peer: one.clustering.similarity.cosine(each) for each in everyone()}
        lowest = sorted(likeness, key=likeness.__getitem__)[:8]
        assert len(one.clustering.fingers) == CONFIG.fingers
        assert set(one.clustering.fingers) <= set(lowest)


def test_which_of_the_fifth_is_left_to_chance() -> None:
    taken: Counter[bytes] = Counter()
    for seed in range(100):
        one = node(seed)
        one.clustering.refresh_fingers([peer_id(number) for number in mixed()], 0.0)
        taken.update(one.clustering.fingers)
    assert len(taken) == 8
    assert max(taken.values()) < 30


def test_they_are_taken_one_at_a_time_and_kept_for_ten_rounds() -> None:
    one = node()
    sample = [peer_id(number) for number in mixed()]
    since: dict[bytes, int] = {}
    before: tuple[bytes, ...] = ()
    replaced = 0
    for round_ in range(200):
        one.clustering.refresh_fingers(sample, 0.0)
        now = one.clustering.fingers
        new, gone = set(now) - set(before), set(before) - set(now)
        assert len(new) <= 1
        assert len(gone) <= 1
        assert all(round_ - since[peer] >= CONFIG.finger_rounds for peer in gone)
        replaced += len(gone)
        since.update(dict.fromkeys(new, round_))
        before = now
    assert 15 <= replaced <= 20


def test_who_shows_nothing_or_nonsense_is_nobodys_finger() -> None:
    one = Node(0, TOPICS)
    liars = [described(1, [], filter=bytes(128)), described(2, [], filter=b"\xff" * 128)]
    silent = described(3, [], filter=b"")
    sample = one.meet(*liars, silent, described(4, topics_of(30)))
    for _ in range(20):
        one.clustering.refresh_fingers(sample, 0.0)
    assert one.clustering.fingers == (peer_id(4),)


def test_who_seems_to_have_fewer_than_four_topics_is_not_one() -> None:
    """A filter with just the noise that is expected: plausible, but empty."""
    one = Node(0, TOPICS)
    noise = sum(1 << bit for bit in Random(1).sample(range(1024), 50))
    sample = one.meet(described(1, [], filter=noise.to_bytes(128, "little")))
    one.clustering.refresh_fingers(sample, 0.0)
    assert one.clustering.fingers == ()


def test_those_who_are_gone_or_banned_make_room() -> None:
    one = node()
    sample = [peer_id(number) for number in mixed()]
    for _ in range(10):
        one.clustering.refresh_fingers(sample, 0.0)
    first, second, *rest = one.clustering.fingers
    one.clustering.note_failure(first)
    one.trust.note_offence(second, 0.0)
    one.clustering.refresh_fingers([], 1.0)
    assert one.clustering.fingers == tuple(rest)
    one.clustering.refresh_fingers([], 2.0 * 10**6)
    assert one.clustering.fingers == ()


def test_they_are_pinned_while_they_serve() -> None:
    one = node()
    one.clustering.refresh_fingers([peer_id(number) for number in mixed()], 0.0)
    (finger,) = one.clustering.fingers
    known = one.acquaintances.get(finger)
    assert known is not None
    assert known.pins == 1
    one.clustering.drop_peer(finger)
    assert known.pins == 0
