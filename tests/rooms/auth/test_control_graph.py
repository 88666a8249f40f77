"""The control DAG, and the worlds that it is read in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import msgspec
import pytest
from tests.rooms.chronicle import START_MS, Chronicle, Governed, person, person_key, relay_key, ticket_of

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import MESSAGE, Event
from linnet.identity.cards import Card, check_card, revoke
from linnet.rooms.auth.control_graph import HEADS_OF_ONE, ControlDag, LruCache, Revocations, Steps, World
from linnet.rooms.auth.event_auth import Refusal, allowed
from linnet.rooms.auth.room_state import JOIN_RULES_KEY, POWER_KEY, Fact, StateKey, View, fact_of
from linnet.rooms.auth.state_resolution import Chains
from linnet.rooms.event_types import (
    CREATE,
    JOIN_RULES,
    MEMBER,
    NAME,
    POWER,
    RELAY,
    RETENTION,
    REVOCATION,
    Create,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    Relay,
    Retention,
    Revoked,
    member_key,
)

JOIN, LEAVE, BAN = Membership.JOIN, Membership.LEAVE, Membership.BAN


def id_of(name: str) -> AuthorId:
    return person(name).author


def place_of(name: str) -> StateKey:
    return MEMBER, member_key(id_of(name))


class Room(Governed):
    """A public room of the founder, two moderators and two others; `start` is where it begins."""

    def __init__(self) -> None:
        super().__init__("founder")
        self.act("founder", POWER, "", Power(users={id_of("mod"): 50, id_of("mate"): 50}))
        self.act("founder", JOIN_RULES, "", JoinRules(JoinRule.PUBLIC))
        for name in ("mod", "mate", "alice", "bob"):
            self.admit(name, name, JOIN)
        self.start = self.dag.heads[0]

    def rule(self, who: str, rule: JoinRule, *after: EventId | Event) -> Event:
        return self.sign(who, JOIN_RULES, "", JoinRules(rule), after)

    def power(self, who: str, after: list[EventId | Event], **levels: int) -> Event:
        users = {id_of(name): level for name, level in levels.items()}
        return self.sign(who, POWER, "", Power(users=users), after)

    def message(self, who: str, *after: EventId | Event) -> Event:
        return self.sign(who, MESSAGE, None, b"hello", after or self.dag.heads)

    def stands(self, place: StateKey) -> EventId | None:
        return self.dag.current.get(place)


def reason(refusal: Refusal | None) -> Reason | None:
    return None if refusal is None else refusal.reason


def test_a_room_is_the_id_of_its_create_event() -> None:
    room = Chronicle("founder")
    dag = ControlDag(room.create)
    assert bytes(dag.room) == bytes(room.create.id)
    assert dag.heads == (room.create.id,)
    assert dict(dag.current) == {(CREATE, ""): room.create.id}
    assert len(dag) == 1
    assert dag.add(room.create) is None
    assert dag.judge(room.create) is None


def broken(change: Callable[[Event], Event]) -> Event:
    return change(Chronicle("founder").create)


def with_tail(**changes: object) -> Callable[[Event], Event]:
    def change(event: Event) -> Event:
        return msgspec.structs.replace(event, tail=msgspec.structs.replace(event.tail, **changes))

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (with_tail(kind=NAME), Reason.MALFORMED),
        (with_tail(key=None), Reason.MALFORMED),
        (with_tail(key="x"), Reason.MALFORMED),
        (with_tail(body=b""), Reason.MALFORMED),
        (with_tail(deps=(EventId(bytes(32)),)), Reason.MALFORMED),
        (with_tail(control=(EventId(bytes(32)),)), Reason.MALFORMED),
        (lambda event: msgspec.structs.replace(event, topic=TopicId(b"t" * 32)), Reason.MALFORMED),
        (lambda event: msgspec.structs.replace(event, prev=EventId(bytes(32))), Reason.MALFORMED),
        (with_tail(body=msgspec.msgpack.encode(Create(2, (), bytes(16)))), Reason.UNSUPPORTED),
    ],
)
def test_what_founds_no_room(change: Callable[[Event], Event], expected: Reason) -> None:
    with pytest.raises(InvalidEvent) as caught:
        ControlDag(broken(change))
    assert caught.value.reason is expected


def test_events_are_judged_by_the_state_that_they_name() -> None:
    room = Room()
    ban = room.put(room.member("mod", "alice", BAN, [room.start]))
    before, after = room.message("alice", room.start), room.message("alice", ban)
    assert reason(room.dag.judge(before)) is None
    assert reason(room.dag.doubt(before)) is Reason.BANNED
    assert reason(room.dag.judge(after)) is Reason.BANNED


def test_what_is_malformed_or_of_another_room_is_rejected() -> None:
    room, other = Room(), Room()
    strange = Chronicle("founder", room=1)
    assert reason(room.dag.judge(strange.sign("founder", MESSAGE, None, b"", [strange.create]))) is (
        Reason.UNKNOWN_ROOM
    )
    bad = room.sign("founder", POWER, "", b"\xc1", room.dag.heads)
    assert reason(room.dag.judge(bad)) is Reason.MALFORMED
    assert reason(room.dag.doubt(bad)) is Reason.MALFORMED
    lost = room.sign("founder", MESSAGE, None, b"", ())
    assert reason(room.dag.judge(lost)) is Reason.MALFORMED
    again = room.sign("founder", CREATE, "", Create(1, (), bytes(16)), room.dag.heads)
    assert reason(room.dag.judge(again)) is Reason.NOT_ALLOWED
    assert other.dag.room == room.dag.room


def test_what_builds_on_a_rejected_control_event_is_rejected() -> None:
    room = Room()
    coup = room.member("alice", "mod", BAN, [room.start])
    assert reason(room.dag.add(coup)) is Reason.NO_POWER
    assert reason(room.dag.add(coup)) is Reason.NO_POWER
    assert room.dag.is_rejected(coup.id)
    assert not room.dag.knows(coup.id)
    assert room.dag.missing([coup.id, room.start]) == ()
    on_it = room.rule("founder", JoinRule.KNOCK, coup, room.start)
    assert reason(room.dag.add(on_it)) is Reason.NOT_ALLOWED
    assert reason(room.dag.judge(room.message("founder", on_it))) is Reason.NOT_ALLOWED
    assert room.dag.heads == (room.start,)


def test_a_dependency_that_was_rejected_does_no_harm() -> None:
    room = Room()
    coup = room.member("alice", "mod", BAN, [room.start])
    room.dag.add(coup)
    later = room.sign("mod", MESSAGE, None, b"", [room.start], deps=[coup])
    assert room.dag.judge(later) is None


def test_what_is_no_control_event_may_be_marked_as_rejected() -> None:
    room = Room()
    said = room.message("alice")
    with pytest.raises(ValueError, match="no control event"):
        room.dag.add(said)
    room.dag.reject(said.id)
    assert reason(room.dag.judge(room.message("bob", said))) is Reason.NOT_ALLOWED
    with pytest.raises(ValueError, match="cannot be rejected"):
        room.dag.reject(room.start)


def test_so_many_rejected_ids_are_remembered() -> None:
    dag = ControlDag(Chronicle("founder").create, max_rejected=2)
    ids = [EventId(bytes([number]) * 32) for number in range(3)]
    for each in ids:
        dag.reject(each)
    assert [dag.is_rejected(each) for each in ids] == [False, True, True]
    assert dag.missing(ids) == (ids[0],)


def test_an_event_is_not_judged_before_its_control_heads_are_known() -> None:
    room = Room()
    ban = room.member("mod", "alice", BAN, [room.start])
    later = room.message("mod", ban)
    assert room.dag.missing([ban.id, room.start]) == (ban.id,)
    with pytest.raises(ValueError, match="control heads"):
        room.dag.judge(later)


def test_adding_twice_changes_nothing() -> None:
    room = Room()
    ban = room.put(room.member("mod", "alice", BAN, [room.start]))
    before = (len(room.dag), room.dag.heads, room.dag.current)
    room.put(ban)
    assert (len(room.dag), room.dag.heads, room.dag.current) == before


def test_a_clock_that_is_behind_does_not_put_an_event_before_what_it_follows() -> None:
    room = Room()
    first = room.put(room.sign("mod", JOIN_RULES, "", JoinRules(JoinRule.KNOCK), [room.start], time=90))
    later = room.put(room.sign("mate", JOIN_RULES, "", JoinRules(JoinRule.INVITE), [first], time=0))
    room.put(room.sign("founder", RETENTION, "", Retention(1), [room.start]))
    assert len(room.dag.heads) == 2
    assert room.stands(JOIN_RULES_KEY) == later.id
    assert room.dag.today.time_of(later.id) == room.dag.today.time_of(first.id) + 1


def test_who_joined_while_it_was_public_stays_when_a_stale_head_shows_up() -> None:
    """Matrix would judge the join again, by the closed rule."""
    room = Room()
    joined = room.put(room.member("carol", "carol", JOIN, [room.start]))
    room.put(room.rule("founder", JoinRule.INVITE, joined))
    room.put(room.sign("mod", RETENTION, "", Retention(5), [room.start]))
    assert len(room.dag.heads) == 2
    assert room.dag.view().membership(id_of("carol")) is JOIN
    assert room.dag.view().join_rule() is JoinRule.INVITE


def test_what_was_overruled_stays_so_when_what_overruled_it_is_replaced() -> None:
    """The demotion is replaced by a power event that knows both; a branch of the demoted goes on."""
    room = Room()
    demotion = room.put(room.power("founder", [room.start], mate=50))
    opened = room.put(room.rule("mod", JoinRule.KNOCK, room.start))
    assert room.stands(JOIN_RULES_KEY) != opened.id
    replaced = room.put(room.power("founder", [demotion, opened], mate=50, bob=10))
    room.put(room.sign("mod", RETENTION, "", Retention(5), [opened]))
    assert room.stands(POWER_KEY) == replaced.id
    assert room.dag.view().join_rule() is JoinRule.PUBLIC
    assert room.dag.view().retention() is None


def test_a_later_event_is_never_resolved_against_its_own_past() -> None:
    """Heads that name an event and what it follows count as the latter alone."""
    room = Room()
    ban = room.put(room.member("mod", "alice", BAN, [room.start]))
    unban = room.put(room.member("mod", "alice", LEAVE, [ban]))
    both = (ban.id, unban.id, room.start)
    assert room.dag.state_at(both) is room.dag.state_at((unban.id,))


def test_a_revocation_must_be_the_senders_own() -> None:
    room = Room()
    device = person("mod").card.device
    for key in ("mod", "alice"):
        content = Revoked(revoke(person_key(key), device, 0))
        event = room.sign("alice", REVOCATION, device.hex(), content, [room.start])
        expected = Reason.NOT_ALLOWED if key == "mod" else None
        assert reason(room.dag.add(event)) is expected
    assert room.dag.judge(room.message("mod")) is None


def test_a_ticket_is_checked_once() -> None:
    room = Room()
    seen: list[Card] = []

    def counted(card: Card) -> None:
        seen.append(card)
        check_card(card)

    dag = ControlDag(room.create, counted)
    for event in room.events:
        dag.add(event)
    event = room.member("carol", "carol", JOIN, dag.heads, ticket=ticket_of("alice", dag.room))
    assert (dag.judge(event), dag.doubt(event), dag.add(event), dag.judge(event)) == (None,) * 4
    assert len(seen) == 1


def test_a_relay_comes_and_says_nothing() -> None:
    room = Room()
    named = room.put(room.sign("mod", RELAY, relay_key("relay"), Relay(True, id_of("relay")), [room.start]))
    joined = room.put(room.member("relay", "relay", JOIN, [named]))
    assert reason(room.dag.judge(room.message("relay", joined))) is Reason.RELAY_ONLY
    dropped = room.put(room.sign("mod", RELAY, relay_key("relay"), Relay(False, id_of("relay")), [joined]))
    assert room.dag.judge(room.message("relay", dropped)) is None


def test_what_is_in_effect_is_not_doubted() -> None:
    """A leave that was added stands; asked of itself, it would not be allowed twice."""
    room = Room()
    left = room.member("alice", "alice", LEAVE, [room.start])
    assert room.dag.doubt(left) is None
    room.put(left)
    assert room.dag.doubt(left) is None


def test_doubt_by_the_state_after_given_heads() -> None:
    """What a late event cannot have known is not asked: whoever left since may have said it before."""
    room = Room()
    said = room.message("alice", room.start)
    left = room.put(room.member("alice", "alice", LEAVE, [room.start]))
    assert reason(room.dag.doubt(said)) is Reason.NOT_A_MEMBER
    assert room.dag.doubt(said, (room.start,)) is None
    assert reason(room.dag.doubt(said, (left.id,))) is Reason.NOT_A_MEMBER


def test_ancestry_and_what_lies_beyond() -> None:
    room = Room()
    one = room.put(room.member("mod", "alice", LEAVE, [room.start]))
    two = room.put(room.rule("mate", JoinRule.KNOCK, room.start))
    both = room.put(room.member("founder", "bob", BAN, [one, two]))
    dag = room.dag
    assert dag.is_before(one.id, both.id)
    assert dag.is_before(room.create.id, one.id)
    assert not dag.is_before(one.id, two.id)
    assert not dag.is_before(one.id, one.id)
    assert not dag.is_before(both.id, one.id)
    assert dag.between([both.id]) == []
    assert dag.between([one.id]) == [two.id, both.id]
    assert dag.between([one.id, two.id, EventId(b"unknown" * 4 + bytes(4))]) == [both.id]
    everything = dag.between([])
    assert everything[0] == room.create.id
    assert len(everything) == len(dag)
    again = ControlDag(room.create)
    assert [again.add(room.event(each)) for each in everything] == [None] * len(dag)
    assert again.current == dag.current


def test_views_are_remembered_by_state() -> None:
    room = Room()
    assert room.dag.view() is room.dag.view()
    before = room.dag.view()
    room.put(room.rule("founder", JoinRule.KNOCK, room.start))
    assert room.dag.view() is not before
    assert room.dag.view(before.state) is before


def test_people_and_active_relays_are_told_in_the_order_of_their_ids() -> None:
    room = Room()
    names = [f"relay {number}" for number in range(4)]
    for name in names:
        room.put(room.sign("mod", RELAY, relay_key(name), Relay(True, id_of(name)), room.dag.heads))
    room.put(room.sign("mod", RELAY, relay_key(names[0]), Relay(False, id_of(names[0])), room.dag.heads))
    room.put(room.member("mod", "alice", BAN, room.dag.heads))
    view = room.dag.view()
    assert [peer for peer, _ in view.relays()] == sorted(person(name).peer for name in names[1:])
    joined = sorted(id_of(name) for name in ("founder", "mod", "mate", "bob"))
    assert list(view.joined()) == joined
    assert [one for one, _ in view.members()] == sorted([*joined, id_of("alice")])


def calls(work: Callable[[], None]) -> int:
    """How many functions are called: a measure of work that no other load on the machine disturbs."""
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_the_cost_of_an_event_does_not_grow_with_the_room() -> None:
    """Two thousand control events, a third of them in forks, are what a room of 100,000 events has."""
    room = Room()

    def busy(number: int) -> None:
        heads = room.dag.heads
        forked = [room.sign("founder", RETENTION, "", Retention(number), heads)]
        if number % 3 == 0:
            forked.append(room.power("founder", list(heads), mod=50, mate=number % 50))
        if number % 3 == 1:
            forked = [room.member("alice", "alice", JOIN, heads)]
        for event in forked:
            assert room.dag.judge(event) is None
            room.dag.doubt(event)
            room.put(event)
        for _ in range(5):
            said = room.make("mate", MESSAGE, None, b"", room.dag.heads).events[0]
            assert room.dag.judge(said) is room.dag.doubt(said) is None

    def turn(first: int) -> None:
        for each in range(first, first + 12):
            busy(each)

    for number in range(24):
        busy(number)
    early = calls(lambda: turn(24))
    number = 36
    while len(room.dag) < 2000:
        busy(number)
        number += 1
    late = calls(lambda: turn(number - number % 12))
    assert late < 1.2 * early


def test_what_was_soft_failed_is_in_the_state_once_what_stood_against_it_falls() -> None:
    """An invitation by who is banned is kept; the ban turns out to be of somebody who had no power for it."""
    room = Room()
    ban = room.put(room.member("mod", "alice", BAN, [room.start]))
    invited = room.member("alice", "carol", Membership.INVITE, [room.start])
    assert reason(room.dag.doubt(invited)) is Reason.BANNED
    room.put(invited)
    assert room.stands(place_of("alice")) == ban.id
    assert room.stands(place_of("carol")) is None
    room.put(room.power("founder", [room.start], mate=50))
    assert room.stands(place_of("alice")) != ban.id
    assert room.stands(place_of("carol")) == invited.id
    assert room.dag.doubt(invited) is None


def test_one_person_has_few_heads_however_much_it_says_beside_itself() -> None:
    room = Governed("ann")
    dag, first = room.dag, room.dag.heads[0]
    for number in range(HEADS_OF_ONE):
        lifetime = room.sign("ann", RETENTION, "", Retention(number), [first], fork=True)
        assert dag.excess(lifetime, 100) is None
        assert dag.add(lifetime) is None
    beside = room.sign("ann", RETENTION, "", Retention(99), [first], fork=True)
    assert dag.excess(beside, 100) is Reason.FLOODING
    after = room.sign("ann", RETENTION, "", Retention(99), dag.heads[:2], fork=True)
    assert dag.excess(after, 100) is None
    joined = room.member("bob", "bob", Membership.JOIN, [first], ticket=ticket_of("ann", room.room))
    assert dag.excess(joined, 100) is None


def test_a_full_room_takes_what_those_say_who_may_put_people_out() -> None:
    room = Governed("ann")
    dag, joined = room.dag, room.admit("bob", "bob", JOIN, ticket=ticket_of("ann", room.room))
    leave = room.member("bob", "bob", Membership.LEAVE, [joined])
    kick = room.member("ann", "bob", Membership.LEAVE, [joined])
    assert (dag.excess(leave, 4), dag.excess(kick, 4)) == (None, None)
    assert (dag.excess(leave, 3), dag.excess(kick, 3)) == (Reason.QUOTA, Reason.QUOTA)
    for number in range(5):
        room.act("ann", RETENTION, "", Retention(number))
    assert (dag.excess(leave, 8), dag.excess(kick, 8)) == (Reason.QUOTA, None)
    for number in range(2):
        room.act("ann", RETENTION, "", Retention(number))
    assert dag.excess(kick, 8) is Reason.QUOTA


def test_who_was_in_the_room_before_it_was_put_out_and_who_never_was() -> None:
    room = Governed("ann")
    room.admit("bob", "bob", JOIN, ticket=ticket_of("ann", room.room))
    for name, was_joined in (("bob", True), ("eve", False)):
        for membership in (LEAVE, BAN):
            put_out = room.admit("ann", name, membership)
            assert room.dag.today.follows_a_join(put_out.id) is was_joined


class Stage(Governed):
    """A founder, and mal whom the event `gift` makes powerful."""

    def __init__(self) -> None:
        super().__init__("founder")
        mal = id_of("mal")
        self.rule = self.act("founder", JOIN_RULES, "", JoinRules(JoinRule.PUBLIC)).id
        self.mal = self.admit("mal", "mal", JOIN).id
        self.gift = self.act("founder", POWER, "", Power(users={mal: 100}), time=10**9).id
        self.deed = self.act("mal", JOIN_RULES, "", JoinRules(JoinRule.KNOCK)).id
        self.back = self.act("mal", MEMBER, member_key(mal), Member(JOIN, "x")).id

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


def test_the_one_unused_for_longest_is_forgotten() -> None:
    memory: LruCache[str, int] = LruCache(2)
    memory.put("a", 1)
    memory.put("b", 2)
    assert memory.get("a") == 1
    memory.put("c", 3)
    assert ("a" in memory, "b" in memory, "c" in memory) == (True, False, True)
    assert len(memory) == 2


def test_what_is_put_again_is_new() -> None:
    memory: LruCache[str, int] = LruCache(2)
    memory.put("a", 1)
    memory.put("b", 2)
    memory.put("a", 3)
    memory.put("c", 4)
    assert (memory.get("a"), memory.get("b"), memory.get("c")) == (3, None, 4)
