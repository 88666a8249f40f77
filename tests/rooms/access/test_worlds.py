"""A room without some of its events: who followed them, what they allowed, and what they made later."""

from __future__ import annotations

from linnet.core.ids import EventId
from linnet.rooms.access.chains import Chains
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.facts import JOIN_RULES_KEY, POWER_KEY, Fact, fact_of
from linnet.rooms.access.revocations import Revocations
from linnet.rooms.access.rules import allowed
from linnet.rooms.access.view import View
from linnet.rooms.access.worlds import Steps, World
from linnet.rooms.content import (
    JOIN_RULES,
    MEMBER,
    POWER,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    member_key,
)
from linnet.testing.rooms import START_MS, Chronicle, person


class Stage(Chronicle):
    """A founder, and mal whom the event `gift` makes powerful."""

    def __init__(self) -> None:
        super().__init__("founder")
        self.dag = ControlDag(self.create)
        self.join = self.put("founder", MEMBER, member_key(person("founder").author), Member(Membership.JOIN))
        self.rule = self.put("founder", JOIN_RULES, "", JoinRules(JoinRule.PUBLIC))
        self.mal = self.put("mal", MEMBER, member_key(person("mal").author), Member(Membership.JOIN))
        power = Power(users={person("mal").author: 100})
        self.gift = self.put("founder", POWER, "", power, time=10**9)
        self.deed = self.put("mal", JOIN_RULES, "", JoinRules(JoinRule.KNOCK))
        self.back = self.put("mal", MEMBER, member_key(person("mal").author), Member(Membership.JOIN, "x"))

    def put(self, who: str, kind: str, key: str, content: object, time: int | None = None) -> EventId:
        event = self.sign(who, kind, key, content, self.dag.heads, time=time)  # type: ignore[arg-type]
        assert self.dag.add(event) is None
        return event.id

    def world(self, *without: EventId) -> World:
        facts: dict[EventId, Fact] = {event.id: fact_of(event) for event in self.events}
        past = Chains(lambda event: facts[event].control)
        for event in facts:
            past.mask(event)
        view = self.dag.fact
        assert view(self.create.id) == facts[self.create.id]
        steps = Steps(
            facts[self.create.id],
            facts,
            past,
            Revocations(past),
            lambda fact, state: allowed(fact, View(self.dag, state)),
        )
        return World(steps, past.bits(without))


def test_with_everything_it_is_the_room() -> None:
    stage = Stage()
    assert stage.world().state_at((stage.back,)) == stage.dag.current


def test_what_an_event_allowed_is_gone_with_it_and_what_was_allowed_anyway_stays() -> None:
    stage = Stage()
    world = stage.world(stage.gift)
    state = world.state_at((stage.back,))
    assert state.get(POWER_KEY) is None
    assert state[JOIN_RULES_KEY] == stage.rule
    assert state[MEMBER, member_key(person("mal").author)] == stage.back
    assert world.tops((stage.deed,)) == (stage.mal,)
    assert world.replaced_by(stage.back) == stage.mal
    assert world.replaced_by(stage.deed) is None
    assert world.auth_of(stage.gift) == ()


def test_a_time_that_it_forced_on_others_is_gone_too() -> None:
    stage = Stage()
    assert stage.world().time_of(stage.back) > START_MS + 10**9
    assert stage.world(stage.gift).time_of(stage.back) < START_MS + 10**9
    assert stage.world(stage.gift).time_at(0, (stage.deed,)) == stage.world().time_of(stage.mal) + 1


def test_whether_somebody_was_in_the_room_is_asked_of_the_world() -> None:
    stage = Stage()
    assert stage.world().follows_a_join(stage.back)
    assert not stage.world(stage.mal).follows_a_join(stage.back)
