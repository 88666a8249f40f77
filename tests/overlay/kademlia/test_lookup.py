"""One lookup, with answers put into its hands."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.overlay.kademlia.people import OWN, contact

from linnet.core.ids import Contact
from linnet.identity.keys import SigningKey
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.ids import NodeId, distance, node_id
from linnet.overlay.kademlia.lookup import Lookup
from linnet.overlay.kademlia.records import sign_record

CONFIG = KademliaConfig(k=4, alpha=2, asked=12, enough=2)
TARGET = NodeId(bytes(32))


def ordered(count: int) -> list[Contact]:
    """So many, the nearest first."""
    return sorted(map(contact, range(count)), key=lambda each: distance(TARGET, node_id(each.peer)))


def test_the_nearest_are_asked_first_and_only_so_many_at_once() -> None:
    a, b, c, d, *_ = ordered(8)
    lookup = Lookup(TARGET, OWN, (d, c, b), CONFIG)
    assert lookup.due() == [b, c]
    assert lookup.due() == []
    lookup.heard(b.peer, (a,))
    assert lookup.due() == [a]
    lookup.silent(c.peer)
    assert lookup.due() == [d]
    lookup.heard(d.peer, ())
    assert not lookup.is_over
    lookup.heard(a.peer, (b, d))
    assert (lookup.is_over, lookup.found, lookup.hops, lookup.asked) == (True, (a, b, d), 2, 4)


def test_it_asks_no_further_than_the_nearest_and_no_more_than_it_may() -> None:
    people = ordered(40)
    lookup = Lookup(TARGET, OWN, people[:6], CONFIG)
    asked: list[Contact] = []
    while due := lookup.due():
        asked += due
        for each in due:
            lookup.heard(each.peer, ())
    assert asked == people[:4]
    lookup = Lookup(TARGET, OWN, people, CONFIG)
    count = 0
    while due := lookup.due():
        count += len(due)
        for each in due:
            lookup.silent(each.peer)
    assert (count, lookup.is_over, lookup.found) == (12, True, ())


def test_nobody_to_ask_is_an_end_too() -> None:
    assert Lookup(TARGET, OWN, (), CONFIG).is_over
    assert Lookup(TARGET, OWN, (Contact(OWN, ("tls://a:1",)), Contact(contact(1).peer)), CONFIG).is_over


def test_answers_that_were_not_asked_for_change_nothing() -> None:
    a, b, c, *_ = ordered(8)
    lookup = Lookup(TARGET, OWN, (a, b), CONFIG)
    lookup.heard(a.peer, (c,))
    lookup.silent(c.peer)
    assert (lookup.answered, lookup.due()) == (0, [a, b])


def test_names_that_an_answer_drops_are_bounded() -> None:
    people = ordered(200)
    lookup = Lookup(TARGET, OWN, people[:1], CONFIG)
    (first,) = lookup.due()
    lookup.heard(first.peer, reversed(people))
    assert lookup.due() == people[1:3]
    assert len(lookup._near) <= 2 * CONFIG.asked


def test_a_search_for_records_ends_when_enough_have_some() -> None:
    people = ordered(8)
    owner = SigningKey.generate(Random(1).randbytes)
    old, new = (sign_record(owner, TARGET, version, 100, b"x") for version in (1, 2))
    lookup = Lookup(TARGET, OWN, people, CONFIG, wants_records=True)
    a, b = lookup.due()
    lookup.heard(a.peer, (), (old,))
    assert not lookup.is_over
    lookup.heard(b.peer, (), (new,))
    assert (lookup.is_over, list(lookup.records), lookup.due()) == (True, [old, new], [])


@settings(max_examples=30)
@given(st.integers(1, 80), st.integers(0, 2**32), st.floats(0.0, 0.5))
def test_in_a_network_that_knows_itself_the_nearest_that_live_are_found(
    count: int, seed: int, dead: float
) -> None:
    """Whatever order answers come in; everybody knows the k nearest to the key among those who live."""
    rng = Random(seed)
    people = ordered(count)
    living = [each for each in people if rng.random() >= dead]
    config = KademliaConfig(k=4, alpha=3, asked=1024)
    lookup = Lookup(TARGET, OWN, rng.sample(people, min(4, count)), config)
    waiting: list[Contact] = []
    while True:
        waiting += lookup.due()
        if not waiting:
            break
        asked = waiting.pop(rng.randrange(len(waiting)))
        if asked in living:
            lookup.heard(asked.peer, living[:4])
        else:
            lookup.silent(asked.peer)
    assert lookup.is_over
    if lookup.answered:
        assert lookup.found == tuple(living[:4])
