"""What a rendezvous of content and the keepers of a place gain by giving nothing back, and what holds."""

from __future__ import annotations

import pytest

from linnet.sim.attacks.hostile_keepers import KeeperAttack, run_keeper_attack
from linnet.sim.attacks.hostile_rendezvous import AttackedContent, ContentAttack, run_content_attack

SEEDS = (1, 2, 3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("targeted", "share"), [(True, 0.05), (True, 0.1), (False, 0.1), (False, 0.3)])
def test_a_publisher_is_told_within_ten_seconds_if_somebody_hands_nothing_on(
    targeted: bool, share: float, seed: int
) -> None:
    figures = run_content_attack(ContentAttack(targeted, share, seed=seed))
    assert figures.delivered_without == figures.honest_due > 50
    is_whole = figures.delivered == figures.honest_due
    assert (figures.told_after_seconds is None) is is_whole
    assert is_whole or 0.0 < (figures.told_after_seconds or 0.0) < 10.0


def test_keys_beside_the_attributes_gain_more_than_any_others() -> None:
    """No bound: a twentieth of all nodes, well placed, keeps most events from their readers."""
    targeted = run_content_attack(ContentAttack(True, 0.05))
    drawn = run_content_attack(ContentAttack(False, 0.05))
    assert targeted.delivered < 0.5 * targeted.honest_due
    assert drawn.delivered > 0.9 * drawn.honest_due


def test_as_many_nodes_attack_as_asked_and_they_alone() -> None:
    world = AttackedContent(ContentAttack(nodes=15), ("node3", "node4"))
    assert list(world.hostile) == ["node3", "node4"]
    assert world.sent_by(hostile=True) == world.sent_by(hostile=False) == 0
    world.run(60.0)
    assert {name for name, node in world.sending.items() if node.inputs} == set(world.names)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("share", "seconds"), [(0.0, 10.0), (0.25, 10.0), (0.5, 90.0)])
def test_guests_get_all_from_the_honest_half_of_the_keepers(share: float, seconds: float, seed: int) -> None:
    figures = run_keeper_attack(KeeperAttack(share, seed=seed))
    assert figures.delivered == figures.delivered_without == figures.honest_due == 6 * 20
    assert figures.worst_seconds < seconds
    assert (figures.attacker_bytes > 0) is (share > 0)


def test_without_an_honest_keeper_guests_get_nothing() -> None:
    figures = run_keeper_attack(KeeperAttack(1.0))
    assert (figures.delivered, figures.delivered_without) == (0, 6 * 20)
