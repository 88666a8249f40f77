"""A revoked device changes nothing any more, whatever time it writes and whoever passes it on."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import msgspec
import pytest
from tests.rooms.auth.orders import any_order
from tests.rooms.chronicle import Chronicle, person, person_key, relay_key, ticket_of

from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.event.event import MESSAGE, Event
from linnet.identity.cards import revoke
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.auth.plain_state import PlainState
from linnet.rooms.auth.room_state import State, revocation_key
from linnet.rooms.event_types import (
    JOIN_RULES,
    MEMBER,
    NAME,
    POWER,
    RELAY,
    RETENTION,
    REVOCATION,
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

SEEDS = 300 if os.environ.get("LINNET_SOAK") else 12
FAR = 1_600_000_000_000
"""Milliseconds: the thief's clock may be half a century off, either way."""

Act = Callable[["Theft", list[EventId], int], Event]


class Theft(Chronicle):
    """A room with a person of two devices, one of which gets stolen: `ann/phone`."""

    def __init__(self, luck: Random) -> None:
        self.owner = luck.choice(("founder", "ann"))
        self.stolen = f"{self.owner}/phone"
        super().__init__("founder", time=1000)
        self.honest: list[Event] = [self.create]
        self.dag = ControlDag(self.create)
        self.luck = luck
        for name in ("founder", "ann", "bob", "mal"):
            self.say(name, MEMBER, member_key(person(name).author), Member(Membership.JOIN))
            if name == "founder":
                levels = {person("ann").author: 100, person("bob").author: luck.choice((0, 50, 100))}
                if luck.random() < 0.7:
                    self.say("founder", POWER, "", Power(users=levels))
                self.say("founder", JOIN_RULES, "", JoinRules(JoinRule.PUBLIC))
        for name in ("zoe", "eve"):
            self.say(name, MEMBER, member_key(person(name).author), Member(Membership.JOIN))
        if luck.random() < 0.5:  # said with the phone while it was in good hands: it stays
            self.say(self.stolen, RETENTION, "", Retention(luck.randrange(1, 100)), may_fail=True)
        self.before = [event.id for event in self.honest]
        """Heads that the thief can name."""

    def say(self, who: str, kind: str, key: str, content: object, may_fail: bool = False) -> Event:
        event = self.sign(who, kind, key, content, self.dag.heads, time=1000 + len(self.units))  # type: ignore[arg-type]
        if self.dag.add(event) is None:
            self.honest.append(event)
        else:
            assert may_fail
        return event

    def revoke(self) -> Event:
        device = person(self.stolen).card.device
        word = Revoked(revoke(person_key(self.owner), device, 1))
        return self.say(self.owner, REVOCATION, device.hex(), word)

    def times(self, word: Event) -> list[int]:
        """Before everything, right before the revocation, at the same time, after it, far after it."""
        own = word.time - 1_700_000_000_000
        return [-FAR, 0, own - 1, own, own + 1, own + 3_600_000, FAR]


def membership(of: str, how: Membership) -> Act:
    def act(theft: Theft, on: list[EventId], time: int) -> Event:
        whom = theft.owner if of == "self" else of
        content = Member(how, str(time))
        return theft.sign(
            theft.stolen, MEMBER, member_key(person(whom).author), content, on, time=time, fork=True
        )

    return act


def setting(kind: str, key: str, content: Callable[[Theft], object]) -> Act:
    def act(theft: Theft, on: list[EventId], time: int) -> Event:
        return theft.sign(theft.stolen, kind, key, content(theft), on, time=time, fork=True)  # type: ignore[arg-type]

    return act


def revoking(which: str) -> Act:
    """By whoever has the person's key too, of a device that the stolen one is not elder than."""

    def act(theft: Theft, on: list[EventId], time: int) -> Event:
        device = person(theft.owner if which == "owner" else f"{theft.owner}/{which}").card.device
        word = Revoked(revoke(person_key(theft.owner), device, 2))
        return theft.sign(theft.stolen, REVOCATION, device.hex(), word, on, time=time, fork=True)

    return act


def by_ticket(theft: Theft, on: list[EventId], time: int) -> Event:
    """Somebody comes by an invitation that the stolen device has signed."""
    ticket = ticket_of(theft.stolen, theft.room, expires=2 * FAR)
    return theft.member("guest", "guest", Membership.JOIN, on, ticket=ticket, time=time)


ACTS: dict[str, Act] = {
    "join": membership("self", Membership.JOIN),
    "leave": membership("self", Membership.LEAVE),
    "invite": membership("guest", Membership.INVITE),
    "kick": membership("zoe", Membership.LEAVE),
    "ban": membership("eve", Membership.BAN),
    "unban": membership("cid", Membership.LEAVE),
    "power": setting(
        POWER, "", lambda t: Power(users={person("ann").author: 100, person("mal").author: 100})
    ),
    "rules": setting(JOIN_RULES, "", lambda t: JoinRules(JoinRule.INVITE)),
    "knock": setting(JOIN_RULES, "", lambda t: JoinRules(JoinRule.KNOCK)),
    "relay": setting(RELAY, relay_key("r0"), lambda t: Relay(True, person("zoe").author)),
    "retention": setting(RETENTION, "", lambda t: Retention(777)),
    "revoke the owner": revoking("owner"),
    "revoke another": revoking("tablet"),
    "revoke itself": revoking("phone"),
    "ticket": by_ticket,
}


def states(theft: Theft, events: list[Event]) -> State:
    """What everybody makes of these, in three orders of arrival."""
    found = []
    for _ in range(3):
        dag = ControlDag(theft.create)
        for event in any_order(theft.luck, events):
            dag.add(event)
        found.append(dag.current)
    assert found[0] == found[1] == found[2]
    return found[0]


@pytest.mark.parametrize("kind", ACTS)
def test_what_a_revoked_device_says_on_old_heads_was_never_said(kind: str) -> None:
    tried = 0
    for seed in range(SEEDS):
        theft = Theft(Random(f"{kind} {seed}"))
        word = theft.revoke()
        for time in theft.times(word):
            on = [theft.luck.choice(theft.before)]
            act = ACTS[kind](theft, on, time)
            accepted = theft.dag.judge(act) is None
            tried += accepted
            if not accepted:
                continue
            events = [*theft.honest, act]
            assert states(theft, events) == states(theft, theft.honest), (seed, time)
    assert tried > SEEDS, "the attack was refused before it was one"


@pytest.mark.parametrize("kind", ACTS)
def test_nor_when_an_accomplice_builds_on_it_and_others_go_on(kind: str) -> None:
    """Mal, of level 0, has what the thief gave and more; some who heard all of it name it as well."""
    tried = 0
    for seed in range(SEEDS):
        theft = Theft(Random(f"accomplice {kind} {seed}"))
        luck, word = theft.luck, theft.revoke()
        stolen: list[Event] = []
        for _ in range(luck.randrange(1, 5)):
            on = [luck.choice([*theft.before, *(event.id for event in stolen)])]
            chosen = ACTS[kind] if luck.random() < 0.5 else ACTS[luck.choice(list(ACTS))]
            act = chosen(theft, on, luck.choice(theft.times(word)))
            power = {person("mal").author: 100, person("ann").author: 0}
            passed = [
                act,
                ACTS["power"](theft, [act.id], luck.choice(theft.times(word))),
                theft.sign("mal", POWER, "", Power(users=power), [theft.honest[-2].id, act.id], time=0),
                theft.sign("mal", MEMBER, member_key(person("bob").author), Member(Membership.BAN), [act.id]),
                theft.sign("mal", JOIN_RULES, "", JoinRules(JoinRule.INVITE), [act.id], time=-5),
            ]
            stolen += [event for event in passed if theft.dag.add(event) is None]
        tried += len(stolen)
        reference = states(theft, theft.honest)
        assert theft.dag.current == reference, seed
        assert states(theft, [*theft.honest, *stolen]) == reference, seed
        # Bob, who has heard of everything, goes on: what he says counts, and nothing else.
        own = Member(Membership.JOIN, "still here")
        after = theft.sign("bob", MEMBER, member_key(person("bob").author), own, theft.dag.heads)
        assert theft.dag.add(after) is None
        assert theft.dag.current == reference.set((MEMBER, member_key(person("bob").author)), after.id)
        assert word.id in theft.dag.current.values()
    assert tried > SEEDS


def test_what_was_said_in_good_time_stays() -> None:
    luck = Random(1)
    theft = Theft(luck)
    for _ in range(5):
        theft.say(theft.stolen, RETENTION, "", Retention(luck.randrange(1, 1000)))
    last = theft.say(theft.stolen, JOIN_RULES, "", JoinRules(JoinRule.KNOCK))
    theft.revoke()
    view = theft.dag.view()
    assert theft.dag.current[JOIN_RULES, ""] == last.id
    assert view.join_rule() is JoinRule.KNOCK
    stale = theft.sign("zoe", MEMBER, member_key(person("zoe").author), Member(Membership.LEAVE), [last])
    assert theft.dag.add(stale) is None
    assert theft.dag.view().join_rule() is JoinRule.KNOCK


def test_a_revocation_outlives_its_person_being_put_out_meanwhile() -> None:
    """The two know nothing of each other; once the person is back the device is still out."""
    theft = Theft(Random(3))
    theft.owner, theft.stolen = "ann", "ann/phone"
    on = theft.dag.heads
    device = person(theft.stolen).card.device
    word = theft.sign("ann", REVOCATION, device.hex(), Revoked(revoke(person_key("ann"), device, 1)), on)
    kick = theft.member("founder", "ann", Membership.LEAVE, on, time=0)
    for event in (word, kick):
        assert theft.dag.add(event) is None
    back = theft.member("ann", "ann", Membership.JOIN, theft.dag.heads)
    assert theft.dag.add(back) is None
    assert theft.dag.view().is_revoked(person("ann").author, device)
    late = theft.member("ann/phone", "ann", Membership.LEAVE, theft.dag.heads)
    refusal = theft.dag.judge(late)
    assert refusal is not None
    assert refusal.reason is Reason.CARD_REVOKED


def test_a_name_by_a_stolen_device_does_not_count_nor_one_by_the_power_that_it_gave() -> None:
    theft = next(one for seed in range(99) if (one := Theft(Random(seed))).owner == "founder")
    word = theft.revoke()
    given = ACTS["power"](theft, [theft.before[-1]], 0)
    assert theft.dag.add(given) is None
    by_thief = theft.sign(theft.stolen, NAME, "", b"stolen", [theft.before[-1]], time=0, fork=True)
    by_friend = theft.sign("mal", NAME, "", b"mal's", [given], time=0)
    ours = theft.sign("founder", NAME, "", b"ours", [word])
    plain = PlainState(theft.dag, theft.precedes)
    for event in (by_thief, by_friend, ours):
        assert theft.dag.judge(event) is None
        plain.add(event)
    assert plain.winner(NAME, "") == ours.id
    alone = PlainState(theft.dag, theft.precedes)
    alone.add(by_thief)
    alone.add(by_friend)
    assert alone.winner(NAME, "") is None


def revoked(theft: Theft, by: str, of: str, on: list[EventId], time: int = 0) -> Event:
    device = person(of).card.device
    word = Revoked(revoke(person_key(theft.owner), device, 3))
    return theft.sign(by, REVOCATION, device.hex(), word, on, time=time, fork=True)


def is_out(theft: Theft, name: str) -> bool:
    place = revocation_key(person(name).author, person(name).card.device)
    return (REVOCATION, place) in theft.dag.current


@pytest.mark.parametrize("time", [-FAR, 0, FAR])
@pytest.mark.parametrize("first", [True, False])
def test_of_two_devices_that_revoke_each_other_the_elder_stays(time: int, first: bool) -> None:
    """Who has a younger device and the person's key wins nothing: not even by being heard first."""
    for seed in range(12):
        theft = Theft(Random(f"contest {seed}"))
        theft.say(theft.stolen, RETENTION, "", Retention(5), may_fail=True)
        on = list(theft.dag.heads)
        thiefs = revoked(theft, theft.stolen, theft.owner, on, time)
        owners = revoked(theft, theft.owner, theft.stolen, on)
        for event in (thiefs, owners) if first else (owners, thiefs):
            assert theft.dag.judge(event) is None
            assert theft.dag.doubt(event) is None
            assert theft.dag.add(event) is None
        assert is_out(theft, theft.stolen)
        assert not is_out(theft, theft.owner)
        said = theft.sign(theft.owner, MESSAGE, None, b"still me", theft.dag.heads)
        assert theft.dag.judge(said) is None


def test_where_neither_is_elder_both_are_out() -> None:
    """A join of the thief's own on old heads makes no device older; the person comes back with a third."""
    theft = Theft(Random("beside 2"))
    theft.owner, theft.stolen = "zoe", "zoe/phone"
    own = Member(Membership.JOIN)
    beside = theft.sign(
        "zoe/phone", MEMBER, member_key(person("zoe").author), own, [theft.before[4]], time=-FAR
    )
    assert theft.dag.add(beside) is None
    for event in (
        revoked(theft, "zoe/phone", "zoe", [beside.id], -FAR),
        revoked(theft, "zoe", "zoe/phone", [theft.before[-1]]),
    ):
        assert theft.dag.add(event) is None
    assert is_out(theft, "zoe")
    assert is_out(theft, "zoe/phone")


def test_the_elder_answers_after_it_has_heard_that_a_younger_one_revoked_it() -> None:
    theft = Theft(Random("answer"))
    theft.say(theft.stolen, RETENTION, "", Retention(5), may_fail=True)
    owner, before = person(theft.owner), theft.dag.heads
    assert theft.dag.heads_against(owner.author, owner.card.device) == before
    thiefs = theft.dag.add(revoked(theft, theft.stolen, theft.owner, list(before)))
    assert thiefs is None
    assert is_out(theft, theft.owner)
    assert theft.dag.heads_against(owner.author, owner.card.device) == before
    answer = revoked(theft, theft.owner, theft.stolen, list(before))
    assert theft.dag.add(answer) is None
    assert is_out(theft, theft.stolen)
    assert not is_out(theft, theft.owner)


def test_whoever_has_a_device_key_alone_revokes_nothing() -> None:
    """A thief's home without the person's key: no word of it about any device is taken."""
    theft = Theft(Random("no key"))
    stolen = person(theft.stolen)
    for target in (theft.owner, f"{theft.owner}/tablet", theft.stolen):
        device = person(target).card.device
        forged = msgspec.structs.replace(revoke(stolen.device, device, 1), person=stolen.author)
        event = theft.sign(theft.stolen, REVOCATION, device.hex(), Revoked(forged), theft.dag.heads)
        refusal = theft.dag.add(event)
        assert refusal is not None
        assert refusal.reason is Reason.BAD_SIGNATURE
        assert not is_out(theft, target)
