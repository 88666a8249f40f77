"""State resolution, and what it is made of."""

from __future__ import annotations

import itertools
import os
from random import Random
from typing import Any

import immutables
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rooms.auth.foreign import ForeignRoom, Pdu, fact_of_pdu
from tests.rooms.auth.orders import TORN
from tests.rooms.auth.specified import Specified
from tests.rooms.auth.states import CREATE_FACT, fact, member, relay_text, who
from tests.rooms.chronicle import Chronicle, Wild, wild_history

from linnet.core.ids import EventId
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.auth.event_auth import allowed, select
from linnet.rooms.auth.room_state import CREATE_KEY, JOIN_RULES_KEY, Fact, State, Version
from linnet.rooms.auth.state_resolution import Causality, Chains, Mainline, Resolver, Trial
from linnet.rooms.event_types import CONTROL_KINDS, JOIN_RULES, RELAY, JoinRule, JoinRules, Membership, Relay

ROOMS = 2000 if os.environ.get("LINNET_SOAK") else 60


BOTH = pytest.mark.parametrize("version", list(Version))


class Writer:
    """Writes Matrix events with their auth events."""

    def __init__(self, version: Version, users: dict[str, int] | None = None) -> None:
        self.version = version
        self.pdus: list[Pdu] = []
        self._clock = itertools.count(1000, 10)
        self.write("create", "@alice:x", "m.room.create", "", {}, [])
        self.member("ma", "@alice:x", "@alice:x", "join", [])
        if users is not None:
            if version is Version.V11:
                users = {"@alice:x": 100, **users}
            self.write("p0", "@alice:x", "m.room.power_levels", "", {"users": users}, ["ma"])

    def write(
        self,
        name: str,
        sender: str,
        kind: str,
        key: str,
        content: dict[str, Any],
        auth: list[str],
        time: int | None = None,
    ) -> str:
        with_create = [] if self.version is Version.V12 or kind == "m.room.create" else ["create"]
        self.pdus.append(
            {
                "event_id": name,
                "sender": sender,
                "type": kind,
                "state_key": key,
                "content": content,
                "auth_events": with_create + auth,
                "prev_events": ["create"] if name == "ma" else ["elsewhere"],
                "origin_server_ts": next(self._clock) if time is None else time,
            }
        )
        return name

    def member(
        self, name: str, sender: str, of: str, membership: str, auth: list[str], time: int | None = None
    ) -> str:
        return self.write(name, sender, "m.room.member", of, {"membership": membership}, auth, time)

    def power(
        self, name: str, sender: str, users: dict[str, int], auth: list[str], time: int | None = None
    ) -> str:
        if self.version is Version.V11:
            users = {"@alice:x": 100, **users}
        return self.write(name, sender, "m.room.power_levels", "", {"users": users}, auth, time)

    def rule(self, name: str, sender: str, rule: str, auth: list[str], time: int | None = None) -> str:
        return self.write(name, sender, "m.room.join_rules", "", {"join_rule": rule}, auth, time)

    def topic(self, name: str, sender: str, auth: list[str], time: int | None = None) -> str:
        return self.write(name, sender, "m.room.topic", "", {}, auth, time)

    def resolved(self, *sets: list[str]) -> list[str]:
        """Resolved in any order of the sets, and as the specification says."""
        room = ForeignRoom(self.pdus, self.version)
        states = [room.state("create", *names) for names in sets]
        found = {tuple(room.resolve(*order)) for order in itertools.permutations(states)}
        assert found == {tuple(room.as_specified(*states))}
        return list(next(iter(found)))


def staffed(version: Version, users: dict[str, int]) -> Writer:
    """A public room in which bob and carol are."""
    room = Writer(version, users)
    room.rule("jr", "@alice:x", "public", ["p0", "ma"])
    room.member("mb", "@bob:x", "@bob:x", "join", ["p0", "jr"])
    room.member("mc", "@carol:x", "@carol:x", "join", ["p0", "jr"])
    return room


BASE = ["ma", "p0", "jr", "mb", "mc"]


def without(*names: str) -> list[str]:
    return [name for name in BASE if name not in names]


@BOTH
def test_a_ban_stands_against_a_power_change_of_the_banned(version: Version) -> None:
    """Alice bans bob while bob, who may, raises carol: the mightier sender goes first."""
    room = staffed(version, {"@bob:x": 50})
    room.member("ban", "@alice:x", "@bob:x", "ban", ["p0", "ma", "mb"], time=5000)
    room.power("p1", "@bob:x", {"@bob:x": 50, "@carol:x": 50}, ["p0", "mb"], time=4000)
    assert room.resolved([*without("mb"), "ban"], [*without("p0"), "p1"]) == sorted([*without("mb"), "ban"])


@BOTH
def test_of_two_who_demote_each_other_the_earlier_wins(version: Version) -> None:
    """Equals cannot demote each other by the rules; each can be demoted by lowering themselves."""
    room = staffed(version, {"@bob:x": 50, "@carol:x": 40})
    room.power("pa", "@bob:x", {"@bob:x": 50, "@carol:x": 0}, ["p0", "mb"], time=5000)
    room.power("pb", "@carol:x", {"@bob:x": 50, "@carol:x": 40, "@dave:x": 40}, ["p0", "mc"], time=4000)
    assert room.resolved([*without("p0"), "pa"], [*without("p0"), "pb"]) == sorted([*without("p0"), "pa"])


@BOTH
def test_at_equal_power_the_earlier_is_first_and_the_later_stands(version: Version) -> None:
    room = staffed(version, {"@bob:x": 50, "@carol:x": 50})
    room.rule("jb", "@bob:x", "invite", ["p0", "mb"], time=5000)
    room.rule("jc", "@carol:x", "knock", ["p0", "mc"], time=4000)
    assert room.resolved([*without("jr"), "jb"], [*without("jr"), "jc"]) == sorted([*without("jr"), "jb"])


@BOTH
def test_a_topic_by_newer_power_is_later(version: Version) -> None:
    """The mainline: what was authorised by a newer power event goes after, whatever its time."""
    room = staffed(version, {"@bob:x": 50, "@carol:x": 50})
    room.power("p1", "@alice:x", {"@bob:x": 50, "@carol:x": 50, "@dave:x": 1}, ["p0", "ma"])
    room.topic("old", "@carol:x", ["p0", "mc"], time=9000)
    room.topic("new", "@bob:x", ["p1", "mb"], time=1)
    left, right = [*BASE, "old"], [*without("p0"), "p1", "new"]
    assert room.resolved(left, right) == sorted([*without("p0"), "new", "p1"])


@BOTH
def test_mainline_ties_are_broken_by_time_and_then_by_id(version: Version) -> None:
    room = staffed(version, {"@bob:x": 50, "@carol:x": 50})
    room.topic("t1", "@bob:x", ["p0", "mb"], time=9000)
    room.topic("t2", "@carol:x", ["p0", "mc"], time=8000)
    room.topic("t3", "@carol:x", ["p0", "mc"], time=9000)
    assert room.resolved([*BASE, "t1"], [*BASE, "t2"]) == sorted([*BASE, "t1"])
    assert room.resolved([*BASE, "t1"], [*BASE, "t3"]) == sorted([*BASE, "t3"])


@BOTH
def test_without_any_power_event_there_is_no_mainline(version: Version) -> None:
    room = Writer(version)
    room.topic("t1", "@alice:x", ["ma"], time=2)
    room.topic("t2", "@alice:x", ["ma"], time=1)
    assert room.resolved(["ma", "t1"], ["ma", "t2"]) == ["ma", "t1"]


@BOTH
def test_a_broken_chain_of_power_events_ends_where_it_breaks(version: Version) -> None:
    room = staffed(version, {"@bob:x": 50})
    room.power("p1", "@alice:x", {"@bob:x": 50}, ["lost", "ma"])
    room.power("p2", "@alice:x", {"@bob:x": 50, "@carol:x": 1}, ["p1", "ma"])
    room.topic("t1", "@bob:x", ["p0", "mb"], time=9000)
    room.topic("t2", "@bob:x", ["p2", "mb"], time=1)
    left, right = [*BASE, "t1"], [*without("p0"), "p2", "t2"]
    result = room.resolved(left, right)
    assert "t2" in result


def test_version_12_judges_by_what_an_event_knew_where_version_11_does_not() -> None:
    """Bob and dave came while the room was public; both sides know that it was closed later, but one of
    them never heard of bob. Version 2 starts from what both know, so the closed door keeps bob out.
    Version 2.1 starts from nothing, and finds the rule that bob came by."""

    def written(version: Version) -> list[str]:
        room = Writer(version, {})
        room.rule("jr", "@alice:x", "public", ["p0", "ma"])
        room.member("mb", "@bob:x", "@bob:x", "join", ["p0", "jr"])
        room.member("md", "@dave:x", "@dave:x", "join", ["p0", "jr"])
        room.rule("closed", "@alice:x", "invite", ["p0", "ma"])
        return room.resolved(["ma", "p0", "closed", "md"], ["ma", "p0", "closed", "md", "mb"])

    assert written(Version.V11) == ["closed", "ma", "md", "p0"]
    assert written(Version.V12) == ["closed", "ma", "mb", "md", "p0"]


def test_version_12_replays_what_lies_between_conflicting_events() -> None:
    """The conflicted subgraph: a power event that is in both auth chains, between two that conflict.

    Carol was raised by p1 and raised dave by p2. One side is still at p0; both know a join that p1
    authorised, so p1 differs in no auth chain. Version 2 holds p2 against p0 and loses it.
    """

    def written(version: Version) -> list[str]:
        room = staffed(version, {})
        room.power("p1", "@alice:x", {"@carol:x": 60}, ["p0", "ma"])
        room.member("md", "@dave:x", "@dave:x", "join", ["p1", "jr"])
        room.power("p2", "@carol:x", {"@carol:x": 60, "@dave:x": 50}, ["p1", "mc"])
        return room.resolved([*BASE, "md"], [*without("p0"), "md", "p2"])

    assert written(Version.V11) == sorted([*BASE, "md"])
    assert written(Version.V12) == sorted([*without("p0"), "md", "p2"])


@BOTH
def test_a_full_auth_chain_includes_the_state_itself(version: Version) -> None:
    """The specification can be read in two ways; ours is the inclusive one.

    Both sides know that the room was closed. Only on one side it also authorised something: carol's
    invitation. Read exclusively, the closed door is thus in one chain only, is replayed, and bob is out.
    """
    room = Writer(version, {})
    room.rule("jr", "@alice:x", "public", ["p0", "ma"])
    room.member("mb", "@bob:x", "@bob:x", "join", ["p0", "jr"])
    room.rule("closed", "@alice:x", "invite", ["p0", "ma"])
    room.member("ic", "@alice:x", "@carol:x", "invite", ["p0", "ma", "closed"])
    sets = ["ma", "p0", "closed"], ["ma", "p0", "closed", "mb", "ic"]
    assert room.resolved(*sets) == ["closed", "ic", "ma", "mb", "p0"]
    foreign = ForeignRoom(room.pdus, version)
    states = [foreign.state("create", *names) for names in sets]
    assert foreign.as_specified(*states, inclusive=False) == ["closed", "ic", "ma", "p0"]


@BOTH
def test_random_foreign_rooms_are_resolved_as_specified(version: Version) -> None:
    merges = 0
    for seed in range(ROOMS):
        room = RandomRoom(Random(seed), version)
        for _ in range(22):
            room.step()
        merges += room.merges
    assert merges > ROOMS * 3


class RandomRoom:
    """A room of Matrix events along prev_events, each allowed by the state before it."""

    def __init__(self, luck: Random, version: Version) -> None:
        self.luck = luck
        self.merges = 0
        self.writer = staffed(version, {"@bob:x": 50, "@carol:x": 50})
        self.room = ForeignRoom(self.writer.pdus, version)
        self.after: dict[str, State] = {"mc": self.room.state("create", *BASE)}
        self.heads = ["mc"]

    def step(self) -> None:
        known = list(self.after)
        parents = self.luck.sample(known, min(len(known), self.luck.choice((1, 1, 2, 3))))
        before = self._merged([self.after[one] for one in parents])
        name = f"e{self.luck.randrange(10**6):06}"
        pdu = self._draw(name)
        fact = fact_of_pdu(pdu)
        auth = select(fact, before, self.writer.version)
        pdu["auth_events"] = [one.decode() for one in auth]
        room = ForeignRoom([*self.writer.pdus, pdu], self.writer.version)
        if name in self.after or allowed(fact, room.seen(before), self.writer.version) is not None:
            return
        self.writer.pdus.append(pdu)
        self.room = room
        self.after[name] = before.set(fact.place, fact.id)

    def _merged(self, sets: list[State]) -> State:
        found = self.room.resolve(*sets)
        assert found == self.room.as_specified(*sets)
        self.merges += len(sets) > 1
        return self.room.state("create", *found)

    def _draw(self, name: str) -> dict[str, Any]:
        luck = self.luck
        users = ["@alice:x", "@bob:x", "@carol:x", "@dave:x"]
        sender, of = luck.choice(users), luck.choice(users)
        membership = luck.choice(("join", "leave", "ban", "invite", "knock"))
        levels = {one: luck.choice((0, 50, 100)) for one in users[1:]}
        if self.writer.version is Version.V11:
            levels["@alice:x"] = 100
        kind, key, content = luck.choice(
            (
                ("m.room.member", of, {"membership": membership}),
                ("m.room.member", sender, {"membership": luck.choice(("join", "join", "leave"))}),
                ("m.room.power_levels", "", {"users": levels}),
                ("m.room.join_rules", "", {"join_rule": luck.choice(("public", "invite", "knock"))}),
                ("m.room.topic", "", {}),
            )
        )
        return {
            "event_id": name,
            "sender": sender,
            "type": kind,
            "state_key": key,
            "content": content,
            "prev_events": ["elsewhere"],
            "origin_server_ts": luck.randrange(20),
        }


def facts_of(chronicle: Chronicle) -> ControlDag:
    dag = ControlDag(chronicle.create)
    for event in chronicle.events:
        if event.kind in CONTROL_KINDS:
            dag.add(event)
    return dag


@BOTH
def test_random_rooms_of_ours_are_resolved_as_specified(version: Version) -> None:
    """By auth events and bare times, as Matrix would: all that our rooms add is left out."""
    differing = 0
    for seed in range(ROOMS):
        dag = facts_of(wild_history(Random(seed), Wild(steps=50)))
        ids = dag.between(())
        facts = {event: dag.fact(event) for event in ids}
        auth = {event: dag.today.auth_of(event) for event in ids}
        luck = Random(seed)
        resolver = Resolver(dag.create, facts.get, auth.__getitem__, version)
        slow = Specified(facts, auth, dag.create, version)
        for _ in range(4):
            sets = [dag.state_at((luck.choice(ids),)) for _ in range(luck.choice((2, 2, 3)))]
            found = resolver.resolve(sets)
            assert dict(found) == slow.resolve([dict(state) for state in sets])
            differing += any(state != found for state in sets)
    assert differing > ROOMS


def test_the_order_of_sets_and_of_first_questions_does_not_show() -> None:
    # So many, and so torn, that an order which shows does so in some: only few rooms depend on it.
    for seed in range(ROOMS):
        dag = facts_of(wild_history(Random(seed), TORN))
        luck, ids = Random(seed), dag.between(())
        sets = [dag.state_at((luck.choice(ids),)) for _ in range(3)]
        facts: dict[EventId, Fact] = {event: dag.fact(event) for event in ids}
        results = {
            frozenset(Resolver(dag.create, facts.get, dag.today.auth_of).resolve(order).items())
            for order in itertools.permutations(sets)
        }
        assert len(results) == 1


def test_nothing_resolves_to_nothing() -> None:
    room = ForeignRoom(Writer(Version.V12).pdus, Version.V12)
    empty: State = immutables.Map()
    resolver = Resolver(room.create, room.facts.get, room.auth.__getitem__)
    assert resolver.resolve([]) == empty
    assert resolver.resolve([empty, empty]) == empty


@BOTH
def test_an_event_that_nobody_has_is_left_out(version: Version) -> None:
    room = ForeignRoom(staffed(version, {}).pdus, version)
    lost = room.state("create", *BASE).set(("m.room.topic", ""), EventId(b"lost"))
    assert room.resolve(room.state("create", *BASE), lost) == sorted(BASE)


Graph = dict[EventId, tuple[EventId, ...]]


def name(number: int) -> EventId:
    return EventId(number.to_bytes(2, "big"))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    size = draw(st.integers(1, 14))
    return {
        name(number): tuple(name(parent) for parent in draw(st.lists(st.integers(0, number - 1), max_size=3)))
        if number
        else ()
        for number in range(size)
    }


def reachable(graph: Graph, event: EventId) -> set[EventId]:
    found = {event}
    for parent in graph[event]:
        found |= reachable(graph, parent)
    return found


@given(graphs(), st.data())
def test_masks_are_what_is_reachable(graph: Graph, data: st.DataObject) -> None:
    """Whatever is asked for first."""
    chains = Chains(graph.__getitem__)
    for event in data.draw(st.permutations(list(graph))):
        listed = chains.events(chains.mask(event))
        assert set(listed) == reachable(graph, event)
        assert len(listed) == len(set(listed))
        assert chains.events(chains.bit(event)) == [event]
    assert len(chains) == len(graph)
    for event in graph:
        assert {other for other in graph if chains.reaches(event, other)} == reachable(graph, event)


@given(graphs(), st.data())
def test_events_are_listed_causes_first(graph: Graph, data: st.DataObject) -> None:
    chains = Chains(graph.__getitem__)
    some = data.draw(st.lists(st.sampled_from(list(graph))))
    listed = chains.events(chains.union(some))
    assert set(listed) == set().union(*(reachable(graph, event) for event in some))
    for position, event in enumerate(listed):
        assert set(graph[event]) <= set(listed[:position])
    everyone = chains.union(graph)
    assert chains.everything == everyone


@given(graphs(), st.data())
def test_what_lies_between(graph: Graph, data: st.DataObject) -> None:
    chains = Chains(graph.__getitem__)
    ends = set(data.draw(st.lists(st.sampled_from(list(graph)))))
    between = {
        event
        for event in graph
        if any(event in reachable(graph, end) for end in ends) and reachable(graph, event) & ends
    }
    assert set(chains.events(chains.through(chains.bits(ends)))) == between


def test_nothing_is_reachable_from_what_was_never_asked_for() -> None:
    graph: Graph = {name(0): (), name(1): ()}
    chains = Chains(graph.__getitem__)
    assert not chains.reaches(name(0), name(1))


def test_a_long_chain_is_no_trouble() -> None:
    graph: Graph = {name(number): (name(number - 1),) if number else () for number in range(20_000)}
    chains = Chains(graph.__getitem__)
    assert chains.mask(name(19_999)).bit_count() == 20_000


# a - b - c - d, with e and f off b, and x alone.
BEFORE = {b"b": b"a", b"c": b"b", b"d": b"c", b"e": b"b", b"f": b"e"}


def before(event: EventId) -> EventId | None:
    found = BEFORE.get(event)
    return None if found is None else EventId(found)


@pytest.mark.parametrize(
    ("power", "position"),
    [(b"d", 0), (b"c", 1), (b"b", 2), (b"a", 3), (b"e", 2), (b"f", 2), (b"x", None), (None, None)],
)
def test_positions_on_the_mainline_of_d(power: bytes | None, position: int | None) -> None:
    event = None if power is None else EventId(power)
    assert Mainline(before).position(event, EventId(b"d")) == position


def test_without_power_there_is_no_mainline() -> None:
    assert Mainline(before).position(EventId(b"d"), None) is None


@given(st.lists(st.integers(-1, 30), min_size=1, max_size=30), st.data())
def test_it_is_the_first_that_is_met(parents: list[int], data: st.DataObject) -> None:
    """As the specification says it: walk back from the event until a member of the mainline is met."""
    tree = {number: min(parent, number - 1) for number, parent in enumerate(parents)}
    names = {number: EventId(bytes([number])) for number in tree}

    def line(number: int) -> list[int]:
        return [] if number < 0 else [number, *line(tree[number])]

    mainline = Mainline(lambda event: names.get(tree[event[0]]))
    top = data.draw(st.sampled_from(list(tree)))
    for number in data.draw(st.permutations(list(tree))):
        met = [line(top).index(one) for one in line(number) if one in line(top)]
        assert mainline.position(names[number], names[top]) == (met[0] if met else None)


def test_a_long_mainline_is_no_trouble() -> None:
    def one_before(event: EventId) -> EventId | None:
        number = int.from_bytes(event, "big")
        return EventId((number - 1).to_bytes(4, "big")) if number else None

    first, last = EventId(bytes(4)), EventId((50_000).to_bytes(4, "big"))
    assert Mainline(one_before).position(first, last) == 50_000


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
