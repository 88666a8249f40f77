"""What simulated nodes know of each other."""

from __future__ import annotations

from linnet.content.attribute_keys import attribute_key, distance
from linnet.core.ids import PeerId
from linnet.sim.content_world import Tables

PEERS = [PeerId(bytes([number, number]) * 16) for number in range(1, 120)]
KEY = attribute_key("stock")


def test_full_tables_lead_to_the_closest_from_everywhere() -> None:
    tables = Tables(PEERS, 1)
    closest = min(PEERS, key=lambda peer: distance(peer, KEY))
    found = {tables.search(peer, KEY)[0] for peer in PEERS if peer != closest}
    assert found == {closest}
    assert closest not in tables.search(closest, KEY)


def test_who_is_down_is_known_and_not_found() -> None:
    tables = Tables(PEERS[:20], 1)
    ordered = sorted(PEERS[:20], key=lambda peer: distance(peer, KEY))
    tables.fail(ordered[0])
    assert tables.near(ordered[5], KEY, 1) == [ordered[0]]
    assert tables.search(ordered[5], KEY)[0] == ordered[1]


def test_tables_are_bounded_and_can_be_given() -> None:
    tables = Tables(PEERS, 1, most=8)
    assert len(tables.near(PEERS[0], KEY, 100)) == 8
    tables.know(PEERS[0], PEERS[1:3])
    assert sorted(tables.near(PEERS[0], KEY, 100)) == PEERS[1:3]
