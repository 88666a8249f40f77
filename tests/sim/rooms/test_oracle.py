from __future__ import annotations

from random import Random

import pytest
from tests.rooms.chronicle import Chronicle, Wild, person, wild_history

from linnet.core.ids import EventId
from linnet.event.event import MESSAGE, Event
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.event_types import (
    CONTROL_KINDS,
    CREATE,
    MEMBER,
    POWER,
    Member,
    Membership,
    Power,
    member_key,
)
from linnet.sim.rooms.oracle import Oracle, causes


class Talk:
    """Alice founds a room; Bob and Carol are in it."""

    def __init__(self) -> None:
        self.chronicle = Chronicle("alice")
        heads: list[Event] = [self.chronicle.create]
        heads = [self.chronicle.member("alice", "alice", Membership.JOIN, heads)]
        for guest in ("bob", "carol"):
            heads = [self.chronicle.member("alice", guest, Membership.INVITE, heads)]
            heads = [self.chronicle.member(guest, guest, Membership.JOIN, heads)]
        self.head = heads[0]

    def says(self, who: str, control: Event, *deps: Event) -> Event:
        return self.chronicle.sign(who, MESSAGE, None, b"hello", [control], deps=[control, *deps])

    def oracle(self) -> Oracle:
        return Oracle(reversed(self.chronicle.events))


def test_an_event_that_a_ban_meets_is_endangered() -> None:
    talk = Talk()
    before = talk.says("bob", talk.head)
    banned = talk.chronicle.member("alice", "bob", Membership.BAN, [talk.head])
    meanwhile = talk.says("bob", talk.head)
    after = talk.says("bob", banned)
    others = talk.says("carol", talk.head)
    oracle = talk.oracle()
    assert oracle.is_allowed(before)
    assert oracle.is_endangered(before)  # the ban does not know of it
    assert oracle.is_endangered(meanwhile)
    assert not oracle.is_allowed(after)
    assert not oracle.is_endangered(others)
    assert person("bob").author not in oracle.joined()
    assert person("bob").author in oracle.joined_at(meanwhile)


def test_an_event_that_the_ban_knows_is_not_endangered() -> None:
    talk = Talk()
    said = talk.says("bob", talk.head)
    key = member_key(person("bob").author)
    talk.chronicle.sign("alice", MEMBER, key, Member(Membership.BAN), [talk.head], deps=[said])
    assert not talk.oracle().is_endangered(said)


def test_levels_endanger_what_they_forbid() -> None:
    talk = Talk()
    said = talk.says("bob", talk.head)
    others = talk.says("carol", talk.head)
    talk.chronicle.sign("alice", POWER, "", Power(users={person("bob").author: -1}), [talk.head])
    oracle = talk.oracle()
    assert oracle.is_endangered(said)
    assert not oracle.is_endangered(others)


def test_a_node_that_holds_the_ban_may_not_take_what_one_without_it_may() -> None:
    talk = Talk()
    banned = talk.chronicle.member("alice", "bob", Membership.BAN, [talk.head])
    said = talk.says("bob", talk.head)
    oracle = talk.oracle()
    held = frozenset(event.id for event in oracle.events.values() if event.kind in CONTROL_KINDS)
    assert not oracle.allows(held, said)
    assert oracle.allows(held - {banned.id}, said)


def test_causality_is_the_closure_of_all_references() -> None:
    talk = Talk()
    first = talk.says("bob", talk.head)
    second = talk.says("carol", talk.head)
    third = talk.says("bob", talk.head, second)
    oracle = talk.oracle()
    assert oracle.is_before(first.id, third.id)  # by the chain of Bob's device
    assert oracle.is_before(second.id, third.id)
    assert oracle.is_before(talk.chronicle.create.id, third.id)
    assert not oracle.is_before(first.id, second.id)
    assert set(causes(third)) == {talk.head.id, second.id, first.id}


@pytest.mark.parametrize("seed", range(5))
def test_the_oracle_agrees_with_a_node_that_was_told_everything(seed: int) -> None:
    chronicle = wild_history(Random(seed), Wild(steps=60))
    oracle = Oracle(chronicle.events)
    dag = ControlDag(chronicle.create)
    for event in chronicle.events:
        if event.kind in CONTROL_KINDS and event.kind != CREATE:
            dag.add(event)
    assert oracle.state() == dict(dag.current)
    assert set(oracle.joined()) == set(dag.view().joined())
    for event in chronicle.events:
        assert oracle.is_allowed(event) is (dag.judge(event) is None)
        for other in chronicle.events[:10]:
            assert oracle.is_before(other.id, event.id) is chronicle.precedes(other.id, event.id)


def test_an_event_whose_control_heads_nobody_has_is_not_allowed() -> None:
    talk = Talk()
    said = talk.says("bob", talk.head)
    oracle = Oracle(event for event in talk.chronicle.events if event.id != talk.head.id)
    assert oracle.missing(said) == [EventId(talk.head.id)]
    assert not oracle.is_allowed(said)
