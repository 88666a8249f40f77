"""Identities of a simulation are real ones, from a seed."""

from __future__ import annotations

from linnet.identity.cards import check_card, check_dates
from linnet.sim.identities import seeded_identity


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
