"""A state that is rebuilt: what an event is held against, with and without knowledge of what came first."""

from __future__ import annotations

import immutables
import pytest
from tests.rooms.access.states import CREATE_FACT, fact, member, relay_text, who

from linnet.core.ids import EventId
from linnet.rooms.access.facts import CREATE_KEY, JOIN_RULES_KEY, Fact, State
from linnet.rooms.access.trial import Causality, Trial
from linnet.rooms.content import JOIN_RULES, RELAY, JoinRule, JoinRules, Membership, Relay


def rule(name: str, value: JoinRule) -> Fact:
    return fact("creator", JOIN_RULES, "", JoinRules(value), name=name)


OPEN, CLOSED, KNOCK = (
    rule("open", JoinRule.PUBLIC),
    rule("closed", JoinRule.INVITE),
    rule("knock", JoinRule.KNOCK),
)
JOIN = member("alice", "alice", Membership.JOIN)
LEAVE = member("alice", "alice", Membership.LEAVE)
FACTS = {one.id: one for one in (CREATE_FACT, OPEN, CLOSED, KNOCK, JOIN, LEAVE)}


class Known:
    """Which events follow which, and what each replaced."""

    def __init__(self, follow: dict[EventId, set[EventId]], replaced: dict[EventId, EventId]) -> None:
        self._follow = follow
        self._replaced = replaced

    def is_before(self, event: EventId, other: EventId) -> bool:
        return event in self._follow.get(other, set())

    def replaced_by(self, event: EventId) -> EventId | None:
        return self._replaced.get(event)


def trial(causality: Causality | None = None, base: State | None = None) -> Trial:
    return Trial(CREATE_FACT, FACTS.get, base, causality)


def test_what_was_put_is_before_an_events_own() -> None:
    one = trial()
    one.put(CLOSED)
    one.begin(JOIN, {JOIN_RULES_KEY: OPEN, CREATE_KEY: CREATE_FACT})
    assert one.get(JOIN_RULES_KEY) == CLOSED
    assert one.get(CREATE_KEY) == CREATE_FACT
    assert one.get(JOIN.place) is None


def test_the_state_that_it_starts_from_is_before_an_events_own() -> None:
    one = trial(base=immutables.Map({JOIN_RULES_KEY: CLOSED.id}))
    one.begin(JOIN, {JOIN_RULES_KEY: OPEN})
    assert one.get(JOIN_RULES_KEY) == CLOSED
    assert one.stands_at(JOIN_RULES_KEY) == CLOSED.id


@pytest.mark.parametrize(
    ("follow", "expected"),
    [
        ({}, CLOSED),
        ({CLOSED.id: {JOIN.id}}, KNOCK),
        ({CLOSED.id: {JOIN.id}, KNOCK.id: {JOIN.id}}, OPEN),
    ],
    ids=["concurrent", "the last followed it", "all followed it"],
)
def test_nothing_that_came_after_is_held_against_an_event(
    follow: dict[EventId, set[EventId]], expected: Fact
) -> None:
    """The closed door replaced a knocking one. If the join was known to the former but not to the latter,
    it is the latter that counts: otherwise whatever overrules an event would cease to as soon as it is
    itself replaced."""
    one = trial(Known(follow, {CLOSED.id: KNOCK.id}))
    one.put(CLOSED)
    one.begin(JOIN, {JOIN_RULES_KEY: OPEN})
    assert one.get(JOIN_RULES_KEY) == expected


def test_an_event_is_overtaken_by_what_followed_it() -> None:
    knowing, ignorant = trial(Known({LEAVE.id: {JOIN.id}}, {})), trial()
    for one in (knowing, ignorant):
        one.put(LEAVE)
        one.begin(JOIN, {})
    assert knowing.is_overtaken()
    assert not ignorant.is_overtaken()


def test_relays_are_those_that_stand() -> None:
    key = relay_text("relay")
    active = fact("creator", RELAY, key, Relay(True, who("relay")))
    gone = fact("creator", RELAY, key, Relay(False, who("relay")))
    named = Trial(CREATE_FACT, {active.id: active, gone.id: gone}.get, None, None)
    named.begin(JOIN, {})
    assert not named.is_relay_person(who("relay"))
    named.put(active)
    assert named.is_relay_person(who("relay"))
    assert not named.is_relay_person(who("alice"))
    named.put(gone)
    assert not named.is_relay_person(who("relay"))
    begun = Trial(CREATE_FACT, {active.id: active}.get, immutables.Map({active.place: active.id}), None)
    begun.begin(JOIN, {})
    assert begun.is_relay_person(who("relay"))


def test_the_result_settles_conflicts_and_nothing_else() -> None:
    base: State = immutables.Map({CREATE_KEY: CREATE_FACT.id, JOIN_RULES_KEY: OPEN.id, JOIN.place: JOIN.id})
    one = trial()
    one.put(CLOSED)
    assert one.over(base, [JOIN.place]) == base.delete(JOIN.place)
    assert one.over(base, [JOIN_RULES_KEY]) == base.set(JOIN_RULES_KEY, CLOSED.id)
    one.put(LEAVE)
    assert one.over(base.delete(JOIN.place), [JOIN_RULES_KEY])[LEAVE.place] == LEAVE.id
