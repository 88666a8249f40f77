"""One lookup, with answers put into its hands."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.overlay.kademlia.people import OWN, contact

from linnet.core.ids import Contact
from linnet.identity.keys import SigningKey
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.lookup import Lookup
from linnet.overlay.kademlia.routing_table import NodeId, distance, node_id
from linnet.overlay.kademlia.value_records import sign_record

CONFIG = KademliaConfig(k=4, alpha=2, asked=12, enough=2)
TARGET = NodeId(bytes(32))


def ordered(count: int) -> list[Contact]:
    """So many, the nearest first."""
    return sorted(map(contact, range(count)), key=lambda each: distance(TARGET, node_id(each.peer)))


def test_the_nearest_are_asked_first_and_only_so_many_at_once() -> None:
    a, b, c, d, *_ = ordered(8)
    lookup = Lookup(TARGET, OWN, (d, c, b), CONFIG)
    assert lookup.take_due() == [b, c]
    assert lookup.take_due() == []
    lookup.handle_answer(b.peer, (a,))
    assert lookup.take_due() == [a]
    lookup.handle_timeout(c.peer)
    assert lookup.take_due() == [d]
    lookup.handle_answer(d.peer, ())
    assert not lookup.is_over
    lookup.handle_answer(a.peer, (b, d))
    assert (lookup.is_over, lookup.nearest, lookup.hops, lookup.asked) == (True, (a, b, d), 2, 4)


def test_it_asks_no_further_than_the_nearest_and_no_more_than_it_may() -> None:
    people = ordered(40)
    lookup = Lookup(TARGET, OWN, people[:6], CONFIG)
    asked: list[Contact] = []
    while due := lookup.take_due():
        asked += due
        for each in due:
            lookup.handle_answer(each.peer, ())
    assert asked == people[:4]
    lookup = Lookup(TARGET, OWN, people, CONFIG)
    count = 0
    while due := lookup.take_due():
        count += len(due)
        for each in due:
            lookup.handle_timeout(each.peer)
    assert (count, lookup.is_over, lookup.nearest) == (12, True, ())


def test_nobody_to_ask_is_an_end_too() -> None:
    assert Lookup(TARGET, OWN, (), CONFIG).is_over
    assert Lookup(TARGET, OWN, (Contact(OWN, ("tls://a:1",)), Contact(contact(1).peer)), CONFIG).is_over


def test_answers_that_were_not_asked_for_change_nothing() -> None:
    a, b, c, *_ = ordered(8)
    lookup = Lookup(TARGET, OWN, (a, b), CONFIG)
    lookup.handle_answer(a.peer, (c,))
    lookup.handle_timeout(c.peer)
    assert (lookup.answered, lookup.take_due()) == (0, [a, b])


def test_names_that_an_answer_drops_are_bounded() -> None:
    people = ordered(200)
    lookup = Lookup(TARGET, OWN, people[:1], CONFIG)
    (first,) = lookup.take_due()
    lookup.handle_answer(first.peer, reversed(people))
    assert lookup.take_due() == people[1:3]
    assert len(lookup._near) <= 2 * CONFIG.asked


def test_a_search_for_records_ends_when_enough_have_some() -> None:
    people = ordered(8)
    owner = SigningKey.generate(Random(1).randbytes)
    old, new = (sign_record(owner, TARGET, version, 100, b"x") for version in (1, 2))
    lookup = Lookup(TARGET, OWN, people, CONFIG, wants_records=True)
    a, b = lookup.take_due()
    lookup.handle_answer(a.peer, (), (old,))
    assert not lookup.is_over
    lookup.handle_answer(b.peer, (), (new,))
    assert (lookup.is_over, list(lookup.records), lookup.take_due()) == (True, [old, new], [])


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
        waiting += lookup.take_due()
        if not waiting:
            break
        asked = waiting.pop(rng.randrange(len(waiting)))
        if asked in living:
            lookup.handle_answer(asked.peer, living[:4])
        else:
            lookup.handle_timeout(asked.peer)
    assert lookup.is_over
    if lookup.answered:
        assert lookup.nearest == tuple(living[:4])
