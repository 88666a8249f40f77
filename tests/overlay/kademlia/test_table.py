"""The routing table: nearest, bounds, refresh."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.kademlia.people import CONFIG, OWN, contact, farthest

from linnet.core.ids import Contact
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.ids import NodeId, bucket_index, distance, node_id
from linnet.overlay.kademlia.table import RoutingTable, Seen

WIDE = KademliaConfig()


@given(st.binary(min_size=32, max_size=32).map(NodeId), st.integers(0, 60), st.integers(1, 20))
def test_the_nearest_are_the_nearest(target: NodeId, count: int, most: int) -> None:
    table = RoutingTable(OWN, WIDE)
    for number in range(count):
        table.seen(contact(number))
    held = table.contacts()
    ordered = sorted(held, key=lambda each: distance(target, node_id(each.peer)))
    assert table.nearest(target, most) == tuple(ordered[:most])
    if held:
        first = ordered[0].peer
        assert table.nearest(target, most, first) == tuple(ordered[1 : most + 1])


def test_only_who_can_be_dialled_and_is_somebody_else_comes_in() -> None:
    table = RoutingTable(OWN, CONFIG)
    assert table.seen(Contact(OWN, ("tls://192.0.2.1:1",))) == Seen(False, None)
    assert table.seen(Contact(contact(1).peer)) == Seen(False, None)
    assert len(table) == 0


def test_a_full_bucket_says_whom_to_ping_and_an_heir_takes_the_place() -> None:
    table = RoutingTable(OWN, CONFIG)
    a, b, c, d = farthest(4)
    assert [table.seen(each) for each in (a, b, c)] == [Seen(True, None)] * 3
    assert table.seen(d) == Seen(True, a)
    assert d.peer not in table
    assert table.failed(a.peer) == d
    assert (a.peer in table, d.peer in table, len(table)) == (False, True, 3)


def test_one_network_does_not_fill_a_bucket_or_the_table() -> None:
    table = RoutingTable(OWN, CONFIG)
    a, b, c = farthest(3, network=7)
    assert [table.seen(each).taken for each in (a, b, c)] == [True, True, False]
    near = [
        each
        for each in (contact(number, 7) for number in range(200))
        if bucket_index(node_id(OWN), node_id(each.peer)) < 255
    ]
    taken = [each for each in near if table.seen(each).taken]
    assert len(taken) == 1, "three of one network in all buckets"
    table.failed(a.peer)
    table.failed(a.peer)
    assert table.seen(c).taken, "a place of this network is free again"


def test_who_waits_does_not_inherit_where_its_network_has_enough() -> None:
    table = RoutingTable(OWN, CONFIG)
    a, b, c = farthest(3)
    others = [each for each in farthest(6, network=9) if each.peer not in (a.peer, b.peer, c.peer)]
    x, y, z = others[:3]
    for each in (x, a, b):
        table.seen(each)
    assert table.seen(y) == Seen(True, x)
    assert table.seen(z) == Seen(True, x)
    assert table.failed(a.peer) == z
    assert table.failed(b.peer) is None, "y would be the third of its network in this bucket"
    assert table.seen(c).taken


def test_who_moves_to_another_network_is_counted_there() -> None:
    table = RoutingTable(OWN, CONFIG)
    a, b, c = farthest(3, network=7)
    elsewhere = Contact(c.peer, ("tls://198.51.100.7:1",))
    assert [table.seen(each).taken for each in (a, b, elsewhere)] == [True, True, True]
    assert not table.seen(c).taken
    assert c.peer not in table
    assert table.seen(elsewhere).taken


def test_buckets_that_no_lookup_went_through_are_idle() -> None:
    table = RoutingTable(OWN, CONFIG)
    assert table.idle(1.0) == ()
    (far,) = farthest(1)
    table.seen(far)
    assert table.idle(1.0) == (255,)
    table.touch(node_id(far.peer), 2.0)
    assert (table.idle(1.0), table.idle(3.0)) == ((), (255,))
    near = next(
        each for each in map(contact, range(1000)) if bucket_index(node_id(OWN), node_id(each.peer)) == 250
    )
    table.seen(near)
    assert table.idle(1.0) == (250, 251, 252, 253, 254), "those between may have somebody by now"
    table.touch(table.id, 9.0)
