"""Plain state: the same winner whatever the order of arrival."""

from __future__ import annotations

import os
from random import Random

import pytest
from tests.rooms.chronicle import Chronicle, Governed, person, relay_key, wild_history

from linnet.core.ids import EventId
from linnet.event.event import MESSAGE, Event
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.auth.plain_state import PlainState
from linnet.rooms.event_types import (
    CONTROL_KINDS,
    JOIN_RULES,
    MEMBER,
    NAME,
    POWER,
    RELAY,
    TOPIC,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    Relay,
    member_key,
)

ROOMS = 2000 if os.environ.get("LINNET_SOAK") else 80
BAN = Membership.BAN


class Room(Governed):
    """A public room of the founder and three moderators."""

    def __init__(self) -> None:
        super().__init__("founder")
        self.plain = PlainState(self.dag, self.precedes)
        self.put(self.power("founder", self.dag.heads, "one", "two", "three"))
        self.act("founder", JOIN_RULES, "", JoinRules(JoinRule.PUBLIC))
        for name in ("one", "two", "three"):
            self.admit(name, name, Membership.JOIN)
        self.start = self.dag.heads[0]

    def power(self, who: str, after: tuple[EventId, ...], *mods: str) -> Event:
        users = {person(name).author: 50 for name in mods}
        return self.sign(who, POWER, "", Power(users=users), after)

    def name(
        self,
        who: str,
        *deps: Event,
        control: EventId | None = None,
        time: int | None = None,
        kind: str = NAME,
    ) -> Event:
        """A name that builds on others, and on nothing else that its author said."""
        head = self.start if control is None else control
        event = self.sign(who, kind, "", who.encode(), [head], deps=[head, *deps], time=time, fork=True)
        assert self.dag.judge(event) is None
        self.plain.add(event)
        return event

    @property
    def winner(self) -> EventId | None:
        return self.plain.winner(NAME, "")


def test_a_later_name_replaces_the_one_it_builds_on_whatever_the_clocks_say() -> None:
    room = Room()
    first = room.name("one", time=90)
    second = room.name("two", first, time=10)
    assert room.winner == second.id


def test_of_names_that_know_nothing_of_each_other_the_later_wins_then_the_larger_id() -> None:
    room = Room()
    late = room.name("one", time=90)
    room.name("two", time=80)
    assert room.winner == late.id
    tie = room.name("three", time=90)
    assert room.winner == max(late.id, tie.id)


def test_a_clock_that_is_behind_does_not_put_a_name_before_what_it_follows() -> None:
    room = Room()
    room.name("one", time=80)
    rule = room.put(room.sign("founder", JOIN_RULES, "", JoinRules(JoinRule.INVITE), [room.start], time=90))
    later = room.name("two", control=rule.id, time=0)
    assert room.winner == later.id


def test_newer_power_goes_before_a_later_clock() -> None:
    room = Room()
    room.name("one", time=900)
    power = room.put(room.power("founder", (room.start,), "one", "two", "three"))
    newer = room.name("two", control=power.id, time=1)
    assert room.winner == newer.id


def test_a_name_does_not_count_while_its_author_is_banned_by_who_did_not_know_it() -> None:
    room = Room()
    kept = room.name("one", time=10)
    room.name("two", kept, time=20)
    ban = room.put(room.member("founder", "two", BAN, [room.start]))
    assert room.winner == kept.id
    later = room.name("three", kept, control=ban.id, time=15)
    assert room.winner == later.id


def test_a_name_counts_still_if_its_author_was_banned_by_who_knew_it() -> None:
    room = Room()
    name = room.name("two")
    key = member_key(person("two").author)
    room.put(room.sign("founder", MEMBER, key, Member(BAN), [room.start], deps=[name]))
    assert room.dag.view().membership(person("two").author) is BAN
    assert room.winner == name.id


def test_a_name_of_a_demoted_author_stays_out_when_the_demotion_is_replaced_by_who_knows_it() -> None:
    room = Room()
    demoted = room.put(room.power("founder", (room.start,), "one"))
    name = room.name("two")
    assert room.winner is None
    replaced = room.sign("founder", POWER, "", Power(), [demoted], deps=[demoted, name])
    room.put(replaced)
    assert room.winner is None


def test_a_name_by_who_was_named_a_relay_meanwhile_does_not_count() -> None:
    room = Room()
    name = room.name("two")
    assert room.winner == name.id
    relay = room.put(
        room.sign("founder", RELAY, relay_key("two"), Relay(True, person("two").author), [room.start])
    )
    assert room.winner is None
    room.put(room.sign("founder", RELAY, relay_key("two"), Relay(False, person("two").author), [relay]))
    assert room.winner == name.id


def test_entries_are_sorted_by_kind_and_key() -> None:
    room = Room()
    topic, name = room.name("one", kind=TOPIC), room.name("two")
    assert room.plain.entries() == ((NAME, "", name.id), (TOPIC, "", topic.id))


def test_what_sets_no_plain_state_is_no_business_of_it() -> None:
    room = Room()
    for event in (room.sign("one", MESSAGE, None, b"", [room.start]), room.create):
        with pytest.raises(ValueError, match="no plain state"):
            room.plain.add(event)


def slow_winner(
    chronicle: Chronicle, candidates: list[Event], counting: set[EventId], dag: ControlDag
) -> EventId | None:
    """As it is defined: those that count and that no other that counts supersedes; then the last."""

    def rank(event: Event) -> tuple[float, int, EventId]:
        position = dag.mainline_position(event)
        time = max([event.time, *(1 + dag.today.time_of(head) for head in event.tail.control or ())])
        return float("-inf") if position is None else -position, time, event.id

    left = [
        event
        for event in candidates
        if event.id in counting
        and not any(chronicle.precedes(event.id, other.id) and other.id in counting for other in candidates)
    ]
    return max(left, key=rank).id if left else None


def test_random_rooms_have_one_winner_for_any_order_of_arrival() -> None:
    contested = 0
    for seed in range(ROOMS):
        luck = Random(seed)
        chronicle = wild_history(luck)
        dag = ControlDag(chronicle.create)
        names: list[Event] = []
        for event in chronicle.events[1:]:
            if event.kind in CONTROL_KINDS:
                dag.add(event)
            elif event.kind == NAME and dag.judge(event) is None:
                names.append(event)
        alone = {one.id for one in names if winner_of(dag, chronicle, [one]) == one.id}
        expected = slow_winner(chronicle, names, alone, dag)
        contested += len(alone) > 1
        for _ in range(3):
            luck.shuffle(names)
            assert winner_of(dag, chronicle, names) == expected
    assert contested > ROOMS // 10


def winner_of(dag: ControlDag, chronicle: Chronicle, names: list[Event]) -> EventId | None:
    plain = PlainState(dag, chronicle.precedes)
    for event in names:
        plain.add(event)
        plain.add(event)
    return plain.winner(NAME, "")


def test_a_long_line_of_names_is_asked_about_once_each() -> None:
    """What supersedes the latest supersedes all: the cost does not grow with what was said before."""
    room = Room()
    asked = 0

    def counted(event: EventId, other: EventId) -> bool:
        nonlocal asked
        asked += 1
        return room.precedes(event, other)

    plain = PlainState(room.dag, counted)
    latest: Event | None = None
    for _ in range(200):
        latest = room.name("one", *([] if latest is None else [latest]))
        plain.add(latest)
    assert asked == 199
    assert latest is not None
    assert plain.winner(NAME, "") == latest.id
    assert asked < 199 + 10
