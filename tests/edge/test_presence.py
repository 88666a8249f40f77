"""Presence as a machine: when it speaks, whom it meets, what it tells, and what it refuses."""

from __future__ import annotations

from random import Random

import pytest

from linnet.core.effects import Announce, CancelTimer, Meet, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import Heard, LocalNetwork, Met, NetworkIs, NotMet
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.edge.announcement import lan_hint, lan_key, make_announcement, network_id, read_announcement
from linnet.edge.commands import NetworkStatus
from linnet.edge.config import PresenceConfig
from linnet.edge.lan_policy import LanPolicy
from linnet.edge.notices import LanChange, LanGone, LanPeer
from linnet.edge.presence import AnnounceDue, ExpireDue, MeetDue, Presence, RefusalsDue
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Effect, Outbox
from linnet.sim.seeded_random import SeededEntropy
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

TOPIC, OTHER = TopicId(b"t" * 32), TopicId(b"u" * 32)
HOME, CAFE = network_id([b"home"]), network_id([b"cafe"])
SECRET = b"s" * 32
AT_HOME = LocalNetwork(HOME, 7, 4711, "home")
IN_CAFE = LocalNetwork(CAFE, 7, 4712, "cafe")
OURS = lan_key(SECRET, HOME, 7).public
KEYS = sorted((SigningKey(bytes([number]) * 32) for number in range(1, 20)), key=lambda key: key.public)
SMALLER = [key for key in KEYS if key.public < OURS]
LARGER = [key for key in KEYS if key.public > OURS]
PEER = PeerId(b"p" * 32)


class Machine(Presence):
    """Presence whose calls return what it asks for, and then what has changed."""

    def __init__(self, config: PresenceConfig | None) -> None:
        self.out = Outbox()
        policy, entropy = LanPolicy(MemoryStore().cells), SeededEntropy(1, "presence")
        super().__init__(SECRET, policy, config or PresenceConfig(), Random(1), entropy, self.out)

    def hear(self, event: NetworkIs | Heard | Met | NotMet, now: float) -> list[Effect | LanChange]:
        changes = self.handle(event, now)
        return [*self.out.take(), *changes]

    def switch(self, topic: TopicId, network: bytes, is_on: bool, now: float) -> list[Effect | LanChange]:
        changes = self.set_switch(topic, network, is_on, now)
        return [*self.out.take(), *changes]

    def fire(self, timer: Timer, now: float) -> list[Effect | LanChange]:
        changes: list[LanChange] = []
        match timer:
            case AnnounceDue(network):
                self.announce_node(network, now)
            case ExpireDue(network):
                changes = self.drop_expired(network, now)
            case MeetDue(network):
                self.meet_nodes(network, now)
            case _:
                self.refusals.end_window()
        return [*self.out.take(), *changes]


def presence(config: PresenceConfig | None = None) -> Machine:
    return Machine(config)


def at_home(config: PresenceConfig | None = None) -> Machine:
    """A node that is at home, where a topic is allowed."""
    machine = presence(config)
    machine.hear(NetworkIs((AT_HOME,)), 0.0)
    machine.switch(TOPIC, HOME, True, 0.0)
    return machine


def heard(key: SigningKey, source: str = "10.0.0.1", nonce: bytes = b"nonce---") -> Heard:
    return Heard(HOME, source, make_announcement(key, 99, nonce))


def hint(key: SigningKey, source: str = "10.0.0.1") -> str:
    return lan_hint(key.public, source, 99)


ANNOUNCE, EXPIRE, MEET, REFUSALS = AnnounceDue(HOME), ExpireDue(HOME), MeetDue(HOME), RefusalsDue()


def of(kind: type, effects: list[Effect | LanChange]) -> list[Effect | LanChange]:
    return [effect for effect in effects if isinstance(effect, kind)]


# When it speaks.


def test_where_nothing_is_allowed_nothing_is_said_or_looked_at() -> None:
    machine = presence()
    assert machine.hear(NetworkIs((AT_HOME, IN_CAFE)), 0.0) == []
    assert machine.hear(heard(LARGER[0]), 0.0) == []
    assert machine.hear(Heard(HOME, "10.0.0.1", b"junk"), 0.0) == []
    assert machine.networks == ()
    assert machine.contacts_on(HOME) == ()
    assert machine.policy.allowed_topics(HOME) == ()


def test_a_topic_allowed_on_one_network_is_announced_on_that_one_alone() -> None:
    machine = presence()
    machine.hear(NetworkIs((AT_HOME, IN_CAFE)), 0.0)
    assert machine.switch(TOPIC, HOME, True, 0.0) == [SetTimer(0.3, ANNOUNCE)]
    assert machine.networks == (HOME,)
    assert machine.policy.allowed_topics(HOME) == (TOPIC,)
    assert machine.policy.allowed_topics(CAFE) == ()


def test_an_unknown_network_is_off_until_we_are_there() -> None:
    machine = presence()
    assert machine.switch(TOPIC, HOME, True, 0.0) == []
    assert machine.hear(NetworkIs((IN_CAFE,)), 0.0) == []
    assert machine.hear(NetworkIs((AT_HOME,)), 0.0) == [SetTimer(0.3, ANNOUNCE)]


def test_announcements_come_soon_at_first_and_then_every_period() -> None:
    machine = at_home()
    delays = []
    for _ in range(50):
        announced, timer = machine.fire(ANNOUNCE, 0.0)
        assert isinstance(announced, Announce)
        assert announced.network == HOME
        assert isinstance(timer, SetTimer)
        delays.append(timer.delay)
    assert delays[:2] == [0.7, 1.0]
    assert all(4.0 <= delay <= 6.0 for delay in delays[2:])
    assert len(set(delays)) > 40


def test_what_is_announced_is_the_same_bytes_each_time_and_names_nothing() -> None:
    machine = at_home()
    one, *_ = machine.fire(ANNOUNCE, 0.0)
    two, *_ = machine.fire(ANNOUNCE, 1.0)
    assert one == two
    assert isinstance(one, Announce)
    said = read_announcement(one.datagram)
    assert (said.lan, said.port) == (OURS, 4711)
    assert TOPIC[:8] not in one.datagram
    assert HOME[:8] not in one.datagram


def test_on_another_day_we_are_somebody_else() -> None:
    machine = at_home()
    one, *_ = machine.fire(ANNOUNCE, 0.0)
    assert machine.hear(NetworkIs((LocalNetwork(HOME, 8, 5822, "home"),)), 0.0) == [SetTimer(0.3, ANNOUNCE)]
    two, *_ = machine.fire(ANNOUNCE, 0.0)
    assert isinstance(one, Announce)
    assert isinstance(two, Announce)
    before, after = read_announcement(one.datagram), read_announcement(two.datagram)
    assert before.lan != after.lan
    assert before.port != after.port
    assert before.nonce != after.nonce


def test_nothing_changes_if_nothing_changed() -> None:
    machine = at_home()
    assert machine.hear(NetworkIs((AT_HOME,)), 5.0) == []
    assert machine.switch(OTHER, HOME, True, 5.0) == []
    assert machine.switch(OTHER, HOME, False, 5.0) == []


def test_who_is_there_is_told_of_again_if_what_may_be_said_changes() -> None:
    machine = at_home()
    key = LARGER[0]
    machine.hear(heard(key), 0.0)
    machine.hear(Met(HOME, key.public, PEER), 0.1)
    again = [LanPeer(Contact(PEER, (hint(key),)), HOME)]
    assert machine.switch(OTHER, HOME, True, 1.0) == again
    assert machine.switch(OTHER, HOME, True, 2.0) == []
    assert machine.switch(OTHER, CAFE, True, 3.0) == []
    assert machine.switch(TOPIC, HOME, False, 4.0) == again
    assert machine.policy.allowed_topics(HOME) == (OTHER,)


def test_denying_the_last_topic_silences_us_and_forgets_who_is_there() -> None:
    machine = at_home()
    machine.hear(heard(LARGER[0]), 0.0)
    machine.hear(Met(HOME, LARGER[0].public, PEER), 0.1)
    effects = machine.switch(TOPIC, HOME, False, 1.0)
    assert effects == [*map(CancelTimer, (ANNOUNCE, EXPIRE, MEET)), LanGone(PEER, HOME)]
    assert machine.contacts_on(HOME) == ()
    assert machine.fire(ANNOUNCE, 1.0) == []


def test_leaving_a_network_is_leaving_those_on_it() -> None:
    machine = at_home()
    machine.hear(heard(LARGER[0]), 0.0)
    machine.hear(Met(HOME, LARGER[0].public, PEER), 0.1)
    assert of(LanGone, machine.hear(NetworkIs(()), 1.0)) == [LanGone(PEER, HOME)]
    assert machine.networks_of(PEER) == ()


def test_too_many_networks_are_left_alone_and_that_is_told() -> None:
    machine = presence(PresenceConfig(networks=1))
    [record] = machine.hear(NetworkIs((AT_HOME, IN_CAFE)), 0.0)
    assert isinstance(record, Record)
    assert (record.kind, record.reason) == (Kind.DROPPED, Reason.TOO_MANY)


def test_who_is_new_hears_of_us_out_of_turn_but_not_without_end() -> None:
    machine = at_home(PresenceConfig(replies=3.0))
    for moment in (0.3, 1.0, 2.0):
        machine.fire(ANNOUNCE, moment)
    replies = []
    for number, key in enumerate(KEYS[:10]):
        now = 10.0 + number / 10.0
        effects = machine.hear(heard(key, f"10.0.0.{number}"), now)
        replies += [each for each in effects if isinstance(each, SetTimer) and each.timer == ANNOUNCE]
        if replies:
            machine.fire(ANNOUNCE, now)
    assert len(replies) == 3
    assert all(reply.delay <= 2.0 for reply in replies)


def test_each_who_is_new_is_answered_once() -> None:
    machine = at_home()
    delays = []
    for number, key in enumerate(KEYS[:4]):
        machine.hear(heard(key, f"10.0.0.{number}"), 0.1)
    for _ in range(8):
        _, timer = machine.fire(ANNOUNCE, 1.0)
        assert isinstance(timer, SetTimer)
        delays.append(timer.delay)
    assert delays[:2] == [0.7, 1.0]
    assert [delay <= 2.0 for delay in delays[2:]] == [True, True, True, True, False, False]


# Whom it meets.


def test_the_smaller_key_meets_the_larger_at_once() -> None:
    machine = at_home()
    larger = LARGER[0]
    assert machine.hear(heard(larger), 0.0) == [
        SetTimer(15.0, EXPIRE),
        Meet(HOME, larger.public, OURS, (hint(larger),)),
    ]


def test_the_larger_key_waits_to_be_met_and_not_for_ever() -> None:
    machine = at_home()
    smaller = SMALLER[0]
    assert machine.hear(heard(smaller), 0.0) == [
        SetTimer(15.0, EXPIRE),
        SetTimer(2.0, MEET),
    ]
    assert machine.fire(MEET, 2.0) == [Meet(HOME, smaller.public, OURS, (hint(smaller),))]


def test_who_was_met_is_told_and_in_view() -> None:
    machine = at_home()
    key = LARGER[0]
    machine.hear(heard(key), 0.0)
    assert machine.contacts_on(HOME) == ()
    contact = Contact(PEER, (hint(key),))
    assert machine.hear(Met(HOME, key.public, PEER), 0.1) == [LanPeer(contact, HOME)]
    assert machine.contacts_on(HOME) == (contact,)
    assert machine.networks_of(PEER) == (HOME,)
    assert machine.hear(Met(HOME, key.public, PEER), 0.2) == []


def test_who_met_us_before_we_heard_it_is_in_view_too() -> None:
    machine = at_home()
    key = SMALLER[0]
    assert machine.hear(Met(HOME, key.public, PEER), 0.1) == [
        SetTimer(15.0, EXPIRE),
        LanPeer(Contact(PEER, ()), HOME),
    ]
    assert machine.hear(heard(key), 0.2) == [LanPeer(Contact(PEER, (hint(key),)), HOME)]


def test_a_meeting_that_fails_is_tried_again_ever_later() -> None:
    machine = at_home()
    key = LARGER[0]
    machine.hear(heard(key), 0.0)
    waits = []
    now = 0.0
    for _ in range(7):
        record, timer = machine.hear(NotMet(HOME, key.public, Reason.DIAL_TIMEOUT), now)
        assert isinstance(record, Record)
        assert record.reason is Reason.DIAL_TIMEOUT
        assert isinstance(timer, SetTimer)
        waits.append(timer.delay)
        now += timer.delay
        machine.hear(heard(key), now)
        assert len(of(Meet, machine.fire(MEET, now))) == 1
    assert waits == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0]


def test_meetings_at_once_are_bounded() -> None:
    machine = at_home(PresenceConfig(meetings=2))
    effects = [effect for key in LARGER[:4] for effect in machine.hear(heard(key), 0.0)]
    assert [meet.lan for meet in effects if isinstance(meet, Meet)] == [key.public for key in LARGER[:2]]
    then = machine.hear(Met(HOME, LARGER[0].public, PEER), 0.1)
    assert [meet.lan for meet in then if isinstance(meet, Meet)] == [LARGER[2].public]
    then = machine.hear(NotMet(HOME, LARGER[1].public, Reason.WRONG_KEY), 0.1)
    assert [meet.lan for meet in then if isinstance(meet, Meet)] == [LARGER[3].public]


def test_who_comes_back_need_not_be_met_again() -> None:
    machine = at_home()
    key = LARGER[0]
    machine.hear(heard(key), 0.0)
    machine.hear(Met(HOME, key.public, PEER), 0.0)
    assert machine.fire(EXPIRE, 20.0) == [LanGone(PEER, HOME)]
    assert machine.contacts_on(HOME) == ()
    again = machine.hear(heard(key), 60.0)
    assert of(LanPeer, again) == [LanPeer(Contact(PEER, (hint(key),)), HOME)]
    assert of(Meet, again) == []


# Who is gone.


def test_silence_is_noticed_when_it_has_lasted_long_enough() -> None:
    machine = at_home()
    one, two = LARGER[:2]
    machine.hear(heard(one), 0.0)
    machine.hear(Met(HOME, one.public, PEER), 0.0)
    machine.hear(heard(two, "10.0.0.2"), 5.0)
    look = Meet(HOME, one.public, OURS, (hint(one),))
    assert machine.fire(EXPIRE, 15.0) == [look, SetTimer(5.0, EXPIRE)]
    machine.hear(NotMet(HOME, one.public, Reason.DIAL_TIMEOUT), 16.0)
    assert machine.fire(EXPIRE, 20.0) == [SetTimer(5.0, EXPIRE), LanGone(PEER, HOME)]
    assert machine.fire(EXPIRE, 25.0) == []


def test_who_answers_when_looked_for_is_still_there() -> None:
    machine = at_home()
    key = LARGER[0]
    machine.hear(heard(key), 0.0)
    machine.hear(Met(HOME, key.public, PEER), 0.0)
    assert len(of(Meet, machine.fire(EXPIRE, 15.0))) == 1
    assert machine.hear(Met(HOME, key.public, PEER), 15.1) == []
    [timer] = machine.fire(EXPIRE, 20.0)
    assert isinstance(timer, SetTimer)
    assert timer.delay == pytest.approx(10.1)
    assert machine.contacts_on(HOME) == (Contact(PEER, (hint(key),)),)


def test_looking_for_many_at_once_is_bounded() -> None:
    machine = at_home(PresenceConfig(meetings=2))
    for number, key in enumerate(LARGER[:4]):
        machine.hear(heard(key), 0.0)
        machine.hear(Met(HOME, key.public, PeerId(bytes([number]) * 32)), 0.0)
    first, second, timer = machine.fire(EXPIRE, 15.0)
    assert isinstance(first, Meet)
    assert isinstance(second, Meet)
    assert timer == SetTimer(0.05, EXPIRE)
    machine.hear(Met(HOME, first.lan, PeerId(bytes([0]) * 32)), 15.1)
    assert len(of(Meet, machine.fire(EXPIRE, 15.1))) == 1


def test_a_device_that_took_another_key_is_not_gone() -> None:
    machine = at_home()
    old, new = LARGER[:2]
    machine.hear(heard(old), 0.0)
    machine.hear(Met(HOME, old.public, PEER), 0.0)
    machine.hear(heard(new, nonce=b"tomorrow"), 15.0)
    machine.hear(Met(HOME, new.public, PEER), 15.0)
    assert of(LanGone, machine.fire(EXPIRE, 20.0)) == []
    assert machine.contacts_on(HOME) == (Contact(PEER, (hint(new),)),)


def test_an_address_that_changes_is_told() -> None:
    machine = at_home()
    key = LARGER[0]
    machine.hear(heard(key), 0.0)
    machine.hear(Met(HOME, key.public, PEER), 0.0)
    moved = machine.hear(heard(key, "10.0.0.77", b"new lease"[:8]), 1.0)
    assert moved == [LanPeer(Contact(PEER, (hint(key, "10.0.0.77"),)), HOME)]


# What it refuses.


def test_a_flood_is_refused_counted_and_bounded() -> None:
    machine = at_home()
    records: list[Record] = []
    flood = [announce_of(number) for number in range(500)]
    for number in range(10_000):
        effects = machine.hear(Heard(HOME, "10.6.6.6", flood[number % 500]), number / 5_000.0)
        records += [effect for effect in effects if isinstance(effect, Record)]
        if number in (4_999, 9_999):
            ended = machine.fire(REFUSALS, number / 5_000.0)
            records += [effect for effect in ended if isinstance(effect, Record)]
    refused = sum(record.events for record in records)
    [status] = machine.status().networks
    assert status.heard <= len(KEYS)
    taken = 10_000 - refused
    assert PresenceConfig().burst <= taken <= PresenceConfig().burst + 2 * PresenceConfig().rate
    assert len(records) <= 4
    assert {record.reason for record in records} == {Reason.FLOODING}


def announce_of(number: int) -> bytes:
    """Announcements that are right, of keys made up for it; a few keys suffice, with many nonces."""
    return make_announcement(KEYS[number % len(KEYS)], 99, number.to_bytes(8, "big"))


def test_forged_announcements_are_refused_by_name() -> None:
    machine = at_home()
    said = heard(LARGER[0]).datagram
    forged = said[:40] + bytes([said[40] ^ 1]) + said[41:]
    record, timer = machine.hear(Heard(HOME, "10.6.6.6", forged), 0.0)
    assert isinstance(record, Record)
    assert (record.kind, record.reason) == (Kind.REJECTED, Reason.BAD_SIGNATURE)
    assert timer == SetTimer(1.0, REFUSALS)
    assert machine.fire(REFUSALS, 1.0) == []


def test_status_shows_networks_here_and_those_with_switches() -> None:
    machine = at_home()
    machine.switch(OTHER, CAFE, True, 0.0)
    machine.hear(heard(SMALLER[0]), 0.0)
    by_network = {each.network: each for each in machine.status().networks}
    assert by_network[CAFE] == NetworkStatus(CAFE, "", False, False, (OTHER,), 0, ())
    assert by_network[HOME] == NetworkStatus(HOME, "home", True, True, (TOPIC,), 1, ())
