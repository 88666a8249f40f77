"""Random histories: forks, races, clocks that differ, attackers on old branches."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from random import Random

import pytest
from tests.rooms.auth.orders import TORN, any_order, digest, played
from tests.rooms.chronicle import Chronicle, Wild, person, relay_key, wild_history

from linnet.core.reasons import Reason
from linnet.event.event import MESSAGE, Event
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.auth.room_state import Fact
from linnet.rooms.event_types import (
    CONTROL_KINDS,
    MEMBER,
    RELAY,
    RETENTION,
    Member,
    Membership,
    Relay,
    Retention,
    member_key,
)

ROOT = Path(__file__).parent.parent.parent.parent
SOAK = bool(os.environ.get("LINNET_SOAK"))
ROOMS = 5000 if SOAK else 200
NAMES = {person(name).author: name for name in (f"person {number}" for number in range(8))}
SORTS = {
    "usual": Wild(),
    "torn": TORN,
    "skewed": Wild(skew=1000),
    "hostile": Wild(stale=0.4, wrong=0.3),
    "crowded": Wild(people=8, steps=60),
}


@lru_cache
def rooms(sort: str) -> list[Chronicle]:
    return [wild_history(Random(f"{sort} {seed}"), SORTS[sort]) for seed in range(ROOMS // len(SORTS))]


@pytest.mark.parametrize("sort", SORTS)
def test_any_order_of_arrival_gives_the_same_state_and_verdicts(sort: str) -> None:
    forked = 0
    for number, chronicle in enumerate(rooms(sort)):
        luck = Random(number)
        dag, verdicts = played(chronicle, chronicle.events)
        for _ in range(2):
            other, others = played(chronicle, any_order(luck, chronicle.events))
            assert others == verdicts
            assert other.heads == dag.heads
            assert other.current == dag.current
        forked += len(dag.heads) > 1
    assert forked > ROOMS // len(SORTS) // 3


@pytest.mark.parametrize("sort", SORTS)
def test_a_relay_with_control_events_alone_judges_as_a_member_does(sort: str) -> None:
    """It gets them in an order of its own, and whatever else there is afterwards."""
    for number, chronicle in enumerate(rooms(sort)):
        member, verdicts = played(chronicle, chronicle.events)
        control = [event for event in chronicle.events if event.kind in CONTROL_KINDS]
        relay = ControlDag(chronicle.create)
        luck = Random(number)
        waiting = control[1:]
        while waiting:
            luck.shuffle(waiting)
            ready = [event for event in waiting if not relay.missing(event.tail.control or ())]
            for event in ready:
                relay.add(event)
            waiting = [event for event in waiting if event not in ready]
        assert relay.current == member.current
        others = [event for event in chronicle.events if event.kind not in CONTROL_KINDS]
        for event in others:
            refusal = relay.judge(event)
            assert (None if refusal is None else refusal.reason) == verdicts[event.id]


@pytest.mark.parametrize("sort", SORTS)
def test_what_stands_was_allowed_where_it_came_and_is_consistent(sort: str) -> None:
    seen: dict[Reason | None, int] = {}
    for chronicle in rooms(sort):
        dag, verdicts = played(chronicle, chronicle.events)
        creator = dag.create.sender
        view = dag.view()
        for verdict in verdicts.values():
            seen[verdict] = seen.get(verdict, 0) + 1
        for place, event in dag.current.items():
            fact = dag.fact(event)
            assert fact.place == place
            assert event == chronicle.create.id or verdicts[event] is None
        assert creator not in view.power().users
        assert view.membership(creator) is not Membership.BAN
        assert not view.is_relay_person(creator)
        for banned, how in view.members():
            if how is Membership.BAN:
                said = chronicle.make(NAMES[banned], MESSAGE, None, b"", dag.heads[:32]).events[0]
                refusal = dag.judge(said)
                assert refusal is not None
                assert refusal.reason in (Reason.BANNED, Reason.CARD_REVOKED, Reason.RELAY_ONLY)
        assert [fact for fact in standing(dag) if outlives_its_author(dag, fact)] == []
    assert {None, Reason.NOT_A_MEMBER, Reason.NO_POWER, Reason.NOT_INVITED, Reason.BANNED} <= set(seen)


def standing(dag: ControlDag) -> list[Fact]:
    return [dag.fact(event) for event in dag.current.values()]


def outlives_its_author(dag: ControlDag, fact: Fact) -> bool:
    """Whether something stands by who is banned, though the ban did not know it.

    Only of kinds that take no authority from anybody: of two that do, the mightier sender's counts first.
    """
    ban = dag.view().get((MEMBER, member_key(fact.sender)))
    if fact.kind not in (RETENTION, RELAY) or ban is None or not isinstance(ban.content, Member):
        return False
    return ban.content.membership is Membership.BAN and not dag.is_before(fact.id, ban.id)


def stale_event(chronicle: Chronicle, dag: ControlDag, luck: Random) -> Event | None:
    """An event that takes nothing from anybody, by somebody who has not heard for long."""
    old = luck.choice(dag.between(()))
    name = luck.choice(list(NAMES.values())[:5])
    kind, key, content = luck.choice(
        (
            (RETENTION, "", Retention(7)),
            (RELAY, relay_key("person 4"), Relay(False, person("person 4").author)),
            (MEMBER, member_key(person(name).author), Member(Membership.JOIN)),
            (MEMBER, member_key(person("person 5").author), Member(Membership.INVITE)),
        )
    )
    unit = chronicle.make(name, kind, key, content, [old], time=luck.choice((0, 20, 500)), fork=True)
    event = unit.events[0]
    return chronicle.keep(unit) if dag.judge(event) is None else None


def test_a_stale_head_rolls_nothing_back() -> None:
    """Whatever followed something stays in its place, unless the stale event is about that place itself."""
    tried = 0
    for seed in range(ROOMS // 2):
        luck = Random(seed)
        chronicle = wild_history(luck, Wild(together=True, stale=0))
        dag, _ = played(chronicle, chronicle.events)
        before = dag.current
        draws = (stale_event(chronicle, dag, luck) for _ in range(6))
        stale = next((event for event in draws if event is not None), None)
        if len(dag.heads) == 1 and stale is not None and dag.add(stale) is None and len(dag.heads) == 2:
            place = dag.fact(stale.id).place
            changed = {key for key in {**before, **dag.current} if before.get(key) != dag.current.get(key)}
            assert changed <= {place}
            tried += 1
    assert tried > ROOMS // 4


def test_the_hash_seed_of_a_process_does_not_show() -> None:
    def printed(hash_seed: int) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "tests.rooms.auth.orders", "8"],
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout

    first = printed(1)
    assert first.splitlines() == [digest(seed) for seed in range(8)]
    assert len(set(first.splitlines())) == 8
    assert printed(2) == first
