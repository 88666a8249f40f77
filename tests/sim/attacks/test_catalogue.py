"""Every attack is known by a name, and has its figures."""

from __future__ import annotations

import pytest
from tests.conftest import SOAK

from linnet.sim.attacks.catalogue import ATTACKS, NamedAttack, attacks_of
from linnet.sim.attacks.conduct import Conduct

SLOW = ("claim", "crowding", *(each.value for each in Conduct))
FAST = [attack for attack in ATTACKS if SOAK or attack.name not in SLOW]


def test_a_name_with_its_order_means_one_attack() -> None:
    assert len({(each.way, each.name, each.order) for each in ATTACKS}) == len(ATTACKS)
    assert {each.way for each in ATTACKS} == {"streams", "rooms", "content", "places"}
    names = [each.name for each in attacks_of("streams")]
    assert len(names) == len(set(names))
    assert {each.value for each in Conduct if each.is_hostile} <= set(names)


def test_shares_leave_somebody_honest_where_that_is_needed() -> None:
    assert all(0 < share <= 1 for each in ATTACKS for share in each.shares)
    alone = {each.name for each in ATTACKS if 1.0 in each.shares and each.way != "rooms"}
    of_trackers = {"isolate", "partition", "favour"}
    assert alone == of_trackers | {"isolate-beside-storage", "partition-beside-storage"}


@pytest.mark.parametrize("attack", FAST, ids=lambda each: f"{each.name} {each.order}")
def test_every_attack_has_its_share_and_spares_the_calm_run(attack: NamedAttack) -> None:
    share = attack.shares[0]
    figures = attack.run(share, 2)
    assert figures.attack == attack.name
    assert figures.share == pytest.approx(share, abs=0.01)
    assert figures.honest_due > 0
    assert figures.delivered_without == (0 if attack.name == "fork" else figures.honest_due)
    assert 0 <= figures.delivered <= figures.honest_due
    assert figures.attacker_bytes > 0
    if share <= attack.holds_to:
        assert figures.delivered == figures.honest_due
    assert attack.run(share, 2) == figures
