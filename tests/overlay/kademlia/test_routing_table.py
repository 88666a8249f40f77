"""The routing table: nearest, bounds, refresh."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.kademlia.people import CONFIG, OWN, contact, farthest

from linnet.core.errors import StoreError
from linnet.core.ids import Contact, PeerId
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.routing_table import (
    BITS,
    CONTACTS_KEPT,
    CONTACTS_KEY,
    CONTACTS_SPACE,
    Bucket,
    NodeId,
    RoutingTable,
    SavedContacts,
    Seen,
    bucket_index,
    distance,
    id_in_bucket,
    node_id,
    prefix_of,
    prefixes_of,
    record_key,
)
from linnet.store.memory import MemoryStore

WIDE = KademliaConfig()


@given(st.binary(min_size=32, max_size=32).map(NodeId), st.integers(0, 60), st.integers(1, 20))
def test_the_nearest_are_the_nearest(target: NodeId, count: int, most: int) -> None:
    table = RoutingTable(OWN, WIDE)
    for number in range(count):
        table.note_seen(contact(number))
    held = table.contacts()
    ordered = sorted(held, key=lambda each: distance(target, node_id(each.peer)))
    assert table.find_nearest(target, most) == tuple(ordered[:most])
    if held:
        first = ordered[0].peer
        assert table.find_nearest(target, most, first) == tuple(ordered[1 : most + 1])


def test_only_who_can_be_dialled_and_is_somebody_else_comes_in() -> None:
    table = RoutingTable(OWN, CONFIG)
    assert table.note_seen(Contact(OWN, ("tls://192.0.2.1:1",))) == Seen(False, None)
    assert table.note_seen(Contact(contact(1).peer)) == Seen(False, None)
    assert len(table) == 0


def test_a_full_bucket_says_whom_to_ping_and_an_heir_takes_the_place() -> None:
    table = RoutingTable(OWN, CONFIG)
    a, b, c, d = farthest(4)
    assert [table.note_seen(each) for each in (a, b, c)] == [Seen(True, None)] * 3
    assert table.note_seen(d) == Seen(True, a)
    assert d.peer not in table
    assert table.note_failure(a.peer) == d
    assert (a.peer in table, d.peer in table, len(table)) == (False, True, 3)


def test_one_network_does_not_fill_a_bucket_or_the_table() -> None:
    table = RoutingTable(OWN, CONFIG)
    a, b, c = farthest(3, network=7)
    assert [table.note_seen(each).taken for each in (a, b, c)] == [True, True, False]
    near = [
        each
        for each in (contact(number, 7) for number in range(200))
        if bucket_index(node_id(OWN), node_id(each.peer)) < 255
    ]
    taken = [each for each in near if table.note_seen(each).taken]
    assert len(taken) == 1, "three of one network in all buckets"
    table.note_failure(a.peer)
    table.note_failure(a.peer)
    assert table.note_seen(c).taken, "a place of this network is free again"


def test_who_waits_does_not_inherit_where_its_network_has_enough() -> None:
    table = RoutingTable(OWN, CONFIG)
    a, b, c = farthest(3)
    others = [each for each in farthest(6, network=9) if each.peer not in (a.peer, b.peer, c.peer)]
    x, y, z = others[:3]
    for each in (x, a, b):
        table.note_seen(each)
    assert table.note_seen(y) == Seen(True, x)
    assert table.note_seen(z) == Seen(True, x)
    assert table.note_failure(a.peer) == z
    assert table.note_failure(b.peer) is None, "y would be the third of its network in this bucket"
    assert table.note_seen(c).taken


def test_who_moves_to_another_network_is_counted_there() -> None:
    table = RoutingTable(OWN, CONFIG)
    a, b, c = farthest(3, network=7)
    elsewhere = Contact(c.peer, ("tls://198.51.100.7:1",))
    assert [table.note_seen(each).taken for each in (a, b, elsewhere)] == [True, True, True]
    assert not table.note_seen(c).taken
    assert c.peer not in table
    assert table.note_seen(elsewhere).taken


def test_buckets_that_no_lookup_went_through_are_idle() -> None:
    table = RoutingTable(OWN, CONFIG)
    assert table.find_idle_buckets(1.0) == ()
    (far,) = farthest(1)
    table.note_seen(far)
    assert table.find_idle_buckets(1.0) == (255,)
    table.note_lookup(node_id(far.peer), 2.0)
    assert (table.find_idle_buckets(1.0), table.find_idle_buckets(3.0)) == ((), (255,))
    near = next(
        each for each in map(contact, range(1000)) if bucket_index(node_id(OWN), node_id(each.peer)) == 250
    )
    table.note_seen(near)
    assert table.find_idle_buckets(1.0) == (250, 251, 252, 253, 254), "those between may have somebody by now"
    table.note_lookup(table.id, 9.0)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("tls://192.0.2.7:1", "wss://192.0.2.200:99", True),
        ("tls://192.0.2.7:1", "tls://192.0.3.7:1", False),
        ("tls://[2001:db8:1::1]:1", "tls://[2001:db8:1:ffff::2]:1", True),
        ("tls://[2001:db8:1::1]:1", "tls://[2001:db8:2::1]:1", False),
        ("tls://a.example.org:1", "tls://B.c.EXAMPLE.org:2", True),
        ("tls://a.example.org:1", "tls://a.example.com:1", False),
    ],
)
def test_what_belongs_together(one: str, other: str, same: bool) -> None:
    assert (prefix_of(one) == prefix_of(other)) is same


def test_this_machine_has_none() -> None:
    assert prefixes_of(("tls://127.0.0.1:1", "tls://localhost:2", "tls://[::1]:3")) == ()


def test_each_counts_once() -> None:
    assert len(prefixes_of(("tls://192.0.2.7:1", "wss://192.0.2.8:2", "tls://198.51.100.1:1"))) == 2


ids = st.binary(min_size=32, max_size=32).map(NodeId)


@given(ids, ids, ids)
def test_it_is_a_metric_and_of_each_distance_there_is_one(one: NodeId, other: NodeId, third: NodeId) -> None:
    assert (distance(one, other) == 0) == (one == other)
    assert distance(one, other) == distance(other, one)
    assert distance(one, third) <= distance(one, other) + distance(other, third)
    assert (distance(one, other) == distance(one, third)) == (other == third)


@given(ids, st.integers(0, BITS - 1), st.integers(0, 2**32))
def test_an_id_of_a_bucket_is_in_it(own: NodeId, index: int, seed: int) -> None:
    assert bucket_index(own, id_in_bucket(own, index, Random(seed))) == index


def test_nobody_is_in_a_bucket_of_its_own() -> None:
    own = node_id(PeerId(b"a" * 32))
    with pytest.raises(ValueError, match="its own"):
        bucket_index(own, own)


def test_ids_follow_from_keys_and_do_not_change() -> None:
    """Changing this would make nodes and records unfindable for each other."""
    assert node_id(PeerId(b"a" * 32)).hex()[:16] == "5afe5e9d698ce95a"
    assert record_key(b"names", b"a" * 32).hex()[:16] == "2abe94da5c05dd80"
    assert record_key(b"na", b"mes") != record_key(b"nam", b"es")
    assert record_key(b"", b"a" * 32) != node_id(PeerId(b"a" * 32))


@pytest.mark.parametrize(("count", "kept"), [(0, 0), (5, 5), (64, 64), (65, 33), (200, 50)])
def test_some_of_all_are_written_down(count: int, kept: int) -> None:
    cells = MemoryStore().cells
    everybody = tuple(map(contact, range(count)))
    SavedContacts(cells).save(everybody)
    found = SavedContacts(cells).load()
    assert len(found) == kept <= CONTACTS_KEPT
    assert set(found) <= set(everybody)
    assert found[:1] == everybody[:1]


def test_nothing_was_known_before_and_what_cannot_be_read_is_told() -> None:
    cells = MemoryStore().cells
    assert SavedContacts(cells).load() == ()
    cells.put(CONTACTS_SPACE, CONTACTS_KEY, b"\xc1")
    with pytest.raises(StoreError, match="cannot be read"):
        SavedContacts(cells).load()


A, B, C, D, E, F = map(contact, range(6))


def full() -> Bucket:
    bucket = Bucket(3, 2, 2)
    assert [bucket.note_seen(each) for each in (A, B, C)] == [None] * 3
    return bucket


def test_the_least_recently_seen_comes_first() -> None:
    bucket = full()
    bucket.note_seen(A)
    assert bucket.contacts == (B, C, A)
    assert (bucket.find(A.peer), bucket.find(D.peer)) == (A, None)


def test_a_newcomer_waits_until_the_oldest_does_not_answer() -> None:
    bucket = full()
    assert bucket.note_seen(D) == A, "whom to ping"
    assert (bucket.contacts, bucket.waiting) == ((A, B, C), (D,))
    bucket.note_seen(A)
    assert (bucket.contacts, bucket.waiting) == ((B, C, A), (D,)), "it answered, and stays"
    assert bucket.note_seen(E) == B
    assert bucket.note_failure(B.peer, lambda _: True) == (True, E), "the last one seen of those who wait"
    assert (bucket.contacts, bucket.waiting) == ((C, A, E), (D,))


def test_only_so_many_wait() -> None:
    bucket = full()
    for each in (D, E, F):
        bucket.note_seen(each)
    assert bucket.waiting == (E, F)


def test_where_nobody_waits_a_place_is_kept_for_a_while() -> None:
    bucket = full()
    assert bucket.note_failure(B.peer, lambda _: True) == (False, None)
    assert bucket.contacts == (B, A, C), "it is the first to be pinged"
    bucket.note_seen(B)
    assert bucket.note_failure(B.peer, lambda _: True) == (False, None), "it was there in between"
    assert bucket.note_failure(B.peer, lambda _: True) == (True, None)
    assert list(bucket.contacts) == [A, C]
    assert bucket.note_failure(B.peer, lambda _: True) == (False, None)


def test_who_may_not_come_in_does_not_inherit() -> None:
    bucket = full()
    bucket.note_seen(D)
    bucket.note_seen(E)
    assert bucket.note_failure(A.peer, lambda each: each != E) == (True, D)
    bucket.drop(D.peer)
    assert bucket.contacts == (B, C)
