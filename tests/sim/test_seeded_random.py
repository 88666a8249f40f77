"""Luck follows from seed and name, and from nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.identity.cards import check_card, check_dates
from linnet.sim.seeded_random import SeededEntropy, named_luck, seeded_identity


def test_equal_names_have_equal_luck() -> None:
    assert named_luck(1, "a").random() == named_luck(1, "a").random()
    assert SeededEntropy(1, "a")(32) == SeededEntropy(1, "a")(32)


def test_luck_is_pinned() -> None:
    """A change here changes every recorded seed."""
    assert named_luck(1, "a").randrange(10**9) == 447877375
    assert SeededEntropy(1, "a")(4).hex() == "cd8df87b"


@given(st.integers(), st.integers(), st.text(), st.text())
def test_seeds_and_names_are_kept_apart(seed: int, other: int, name: str, second: str) -> None:
    if (seed, name) != (other, second):
        assert SeededEntropy(seed, name)(32) != SeededEntropy(other, second)(32)
        assert named_luck(seed, name).getrandbits(128) != named_luck(other, second).getrandbits(128)


def test_entropy_does_not_repeat() -> None:
    entropy = SeededEntropy(1, "a")
    assert len({entropy(16) for _ in range(100)}) == 100


def test_one_stream_does_not_disturb_another() -> None:
    first, second = named_luck(1, "a"), named_luck(1, "b")
    alone = [named_luck(1, "b").random()]
    first.random()
    assert [second.random()] == alone


def test_identities_follow_from_seed_and_name() -> None:
    one, same = seeded_identity(1, "ada", 10.0), seeded_identity(1, "ada", 10.0)
    assert (one.peer, one.card) == (same.peer, same.card)
    assert one.peer != seeded_identity(1, "bob", 10.0).peer
    assert one.peer != seeded_identity(2, "ada", 10.0).peer
    assert bytes(one.peer) != bytes(one.author)


def test_their_cards_are_good() -> None:
    identity = seeded_identity(1, "ada", 1_600_000_000.5)
    check_card(identity.card)
    check_dates(identity.card, 1_600_000_000.5, leeway=0.0)
    assert identity.card.label == "ada"
    assert identity.card.device_key == identity.peer
