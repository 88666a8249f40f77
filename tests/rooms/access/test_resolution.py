"""State resolution: worked examples, in versions 11 and 12, and comparison with the specification's steps."""

from __future__ import annotations

import itertools
import os
from random import Random
from typing import Any

import immutables
import pytest
from tests.rooms.access.foreign import ForeignRoom, Pdu, fact_of_pdu
from tests.rooms.access.specified import Specified

from linnet.core.ids import EventId
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.facts import Fact, State
from linnet.rooms.access.levels import Version
from linnet.rooms.access.resolution import Resolver, resolve
from linnet.rooms.access.rules import allowed
from linnet.rooms.access.selection import select
from linnet.rooms.content import CONTROL_KINDS
from linnet.testing.rooms import Chronicle, Wild, wild_history

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
def test_states_that_agree_are_not_touched(version: Version) -> None:
    room = staffed(version, {"@bob:x": 50})
    assert room.resolved(BASE, BASE) == sorted(BASE)


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
def test_at_equal_time_the_id_decides(version: Version) -> None:
    room = staffed(version, {"@bob:x": 50, "@carol:x": 50})
    room.rule("j1", "@bob:x", "invite", ["p0", "mb"], time=5000)
    room.rule("j2", "@carol:x", "knock", ["p0", "mc"], time=5000)
    assert room.resolved([*without("jr"), "j1"], [*without("jr"), "j2"]) == sorted([*without("jr"), "j2"])


@BOTH
def test_the_mightier_sender_is_first_so_that_the_lesser_stands(version: Version) -> None:
    """Trap: power sorts downwards, and what is applied last is what is seen."""
    room = staffed(version, {"@bob:x": 50})
    room.rule("ja", "@alice:x", "invite", ["p0", "ma"], time=9000)
    room.rule("jb", "@bob:x", "knock", ["p0", "mb"], time=4000)
    assert room.resolved([*without("jr"), "ja"], [*without("jr"), "jb"]) == sorted([*without("jr"), "jb"])


@BOTH
def test_a_join_by_a_rule_that_was_closed_elsewhere_is_out(version: Version) -> None:
    room = Writer(version, {})
    room.rule("jr", "@alice:x", "public", ["p0", "ma"])
    room.rule("closed", "@alice:x", "invite", ["p0", "ma"])
    room.member("mb", "@bob:x", "@bob:x", "join", ["p0", "jr"])
    assert room.resolved(["ma", "p0", "closed"], ["ma", "p0", "jr", "mb"]) == ["closed", "ma", "p0"]


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


@BOTH
def test_what_no_set_can_show_is_left_out(version: Version) -> None:
    """A topic whose author is not in the room anywhere."""
    room = staffed(version, {"@bob:x": 50})
    room.topic("forged", "@mallory:x", ["p0"])
    assert room.resolved(BASE, [*BASE, "forged"]) == sorted(BASE)


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
        auth = {event: dag.auth_of(event) for event in ids}
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
    for seed in range(ROOMS // 4):
        dag = facts_of(wild_history(Random(seed)))
        luck, ids = Random(seed), dag.between(())
        sets = [dag.state_at((luck.choice(ids),)) for _ in range(3)]
        facts: dict[EventId, Fact] = {event: dag.fact(event) for event in ids}
        results = {
            frozenset(resolve(order, facts.get, dag.auth_of, dag.create).items())
            for order in itertools.permutations(sets)
        }
        assert len(results) == 1


def test_nothing_resolves_to_nothing() -> None:
    room = ForeignRoom(Writer(Version.V12).pdus, Version.V12)
    empty: State = immutables.Map()
    assert resolve([], room.facts.get, room.auth.__getitem__, room.create) == empty
    assert resolve([empty, empty], room.facts.get, room.auth.__getitem__, room.create) == empty


@BOTH
def test_an_event_that_nobody_has_is_left_out(version: Version) -> None:
    room = ForeignRoom(staffed(version, {}).pdus, version)
    lost = room.state("create", *BASE).set(("m.room.topic", ""), EventId(b"lost"))
    assert room.resolve(room.state("create", *BASE), lost) == sorted(BASE)
