"""A revocation that came before its causes: what the device said is judged when it has its place."""

from __future__ import annotations

import os
from itertools import permutations
from random import Random

import pytest
from tests.rooms.bench import Bench

from linnet.core.effects import SetTimer
from linnet.core.ids import EventId
from linnet.core.inputs import TimerFired
from linnet.event.event import Verified
from linnet.identity.cards import issue_card, revoke
from linnet.identity.keys import SigningKey
from linnet.peer.config import Identity
from linnet.rooms.config import RoomsConfig
from linnet.rooms.event_checks import PATIENCE, WithheldDue
from linnet.rooms.event_types import REVOCATION, Revoked, body_of
from linnet.sim.seeded_random import SeededEntropy


class Stolen(Bench):
    """Cid's phone is stolen and speaks; cid revokes it with another device, on what bob said."""

    def __init__(self, *, known_to_bob: bool, config: RoomsConfig | None = None) -> None:
        super().__init__("bob", "cid", "dan", "eve", config=config)
        self.greet("eve")
        entropy = SeededEntropy(1, "identity/cid")
        person, phone = SigningKey.generate(entropy), SigningKey.generate(SeededEntropy(1, "phone"))
        first = self.who("cid").card.not_before
        self._people["phone"] = Identity(phone, issue_card(person, phone.public, first, first + 86_400))
        deps, control = self.room.dag.heads, self.room.control.heads
        self.stolen = self.forge("phone", deps=deps, control=control)
        follows = (self.stolen.head,) if known_to_bob else deps
        self.first = self.forge("bob", deps=follows, control=control)
        self.second = self.forge("bob", deps=(self.first.head,), control=control)
        device = self.who("phone").card.device
        word = Revoked(revoke(person, device, 1))
        causes = (self.second.head,)
        self.word = self.forge("cid", REVOCATION, device.hex(), body_of(word), deps=causes, control=control)
        self.reply = self.forge("eve", deps=(self.stolen.head,), control=control)

    @property
    def all(self) -> list[Verified]:
        return [self.stolen, self.first, self.second, self.word, self.reply]

    def shows(self, each: Verified) -> bool:
        return self.room.dag.shows(each.head)


def orders() -> list[tuple[int, ...]]:
    """Every order in which the revocation is there before what the stolen device said."""
    return [order for order in permutations(range(5)) if order.index(3) < order.index(0)]


@pytest.mark.parametrize("known_to_bob", [False, True])
def test_the_order_of_arrival_does_not_matter_once_the_revocation_is_there(known_to_bob: bool) -> None:
    for order in orders():
        bench = Stolen(known_to_bob=known_to_bob)
        for number in order:
            bench.bring("eve", bench.all[number])
        assert all(bench.room.dag.knows(each.head) for each in bench.all), order
        assert bench.shows(bench.stolen) is known_to_bob, order
        assert all(map(bench.shows, (bench.first, bench.second, bench.reply))), order


def test_a_withheld_event_is_judged_after_a_restart_too() -> None:
    bench = Stolen(known_to_bob=False)
    bench.bring("eve", bench.word, bench.stolen)
    assert not bench.room.dag.knows(bench.stolen.head)
    bench.restart()
    bench.up("eve")
    bench.greet("eve")
    bench.bring("eve", bench.stolen)
    assert not bench.room.dag.knows(bench.stolen.head)
    bench.bring("eve", bench.first, bench.second, bench.reply)
    assert bench.room.dag.knows(bench.stolen.head)
    assert not bench.shows(bench.stolen)
    assert bench.shows(bench.reply)


def test_what_other_devices_say_does_not_wait() -> None:
    bench = Stolen(known_to_bob=False)
    bench.bring("eve", bench.word)
    said = bench.forge("dan", deps=bench.room.dag.heads, control=bench.room.control.heads)
    bench.bring("eve", said)
    assert bench.shows(said)


@pytest.mark.parametrize("seed", range(5))
def test_many_messages_of_the_device_are_released_together(seed: int) -> None:
    bench = Stolen(known_to_bob=True)
    control = bench.room.control.heads
    chain = [bench.stolen]
    for _ in range(20):
        chain.append(bench.forge("phone", deps=(chain[-1].head,), control=control))
    late = chain[1:]
    Random(seed).shuffle(late)
    bench.bring("eve", bench.word, bench.stolen, *late)
    bench.bring("eve", bench.first, bench.second)
    assert all(bench.room.dag.knows(each.head) for each in chain)
    assert bench.shows(bench.stolen)
    assert not any(map(bench.shows, late))


def test_an_event_that_finds_no_room_to_wait_has_its_place_at_once() -> None:
    """Else it was lost, with all that builds on it, for as long as the room was full."""
    bench = Stolen(known_to_bob=False, config=RoomsConfig(waiting_events=1))
    bench.bring("eve", bench.word, bench.stolen, bench.reply)
    assert bench.room.dag.knows(bench.stolen.head)
    assert bench.shows(bench.reply)


def test_nothing_waits_for_a_revocation_that_was_given_up_before_it_came() -> None:
    bench = Stolen(known_to_bob=False)
    word = bench.word.head
    bench.bring("eve", bench.forge("dan", deps=(word,), control=bench.room.control.heads))
    bench.room.intake.expire(word, bench.now)
    bench.bring("eve", bench.word, bench.stolen, bench.reply)
    assert word in bench.room.intake.places.early
    assert bench.shows(bench.reply)
    bench.bring("eve", bench.first, bench.second)
    assert all(bench.room.dag.knows(each.head) for each in bench.all)


class Thefts(Bench):
    """Devices of several people are stolen and revoked, on what others said, by chance."""

    def __init__(self, luck: Random, config: RoomsConfig | None = None) -> None:
        super().__init__("bob", "cid", "dan", "eve", config=config)
        self.greet("eve")
        first = self.who("cid").card.not_before
        control = self.room.control.heads
        persons: dict[str, SigningKey] = {}
        for name in ("cid", "dan"):
            persons[name] = SigningKey.generate(SeededEntropy(1, f"identity/{name}"))
            for number in range(2):
                phone = SigningKey.generate(SeededEntropy(1, f"{name}'s phone {number}"))
                card = issue_card(persons[name], phone.public, first, first + 86_400)
                self._people[f"{name} {number}"] = Identity(phone, card)
        self.made: list[Verified] = []
        begin = self.room.dag.heads
        authors = ("bob", "cid", "dan", *(f"{name} {number}" for name in persons for number in range(2)))
        for _ in range(luck.randrange(6, 16)):
            author = luck.choice(authors)
            some = luck.sample(self.made, min(len(self.made), luck.randrange(3)))
            deps = tuple(each.head for each in some) or begin
            if author in persons and luck.random() < 0.6:
                device = self.who(f"{author} {luck.randrange(2)}").card.device
                word = Revoked(revoke(persons[author], device, luck.randrange(1, 3)))
                made = self.forge(author, REVOCATION, device.hex(), body_of(word), deps=deps, control=control)
            else:
                made = self.forge(author, deps=deps, control=control)
            self.made.append(made)


@pytest.mark.parametrize("seed", range(1000 if os.environ.get("LINNET_SOAK") == "1" else 60))
def test_whatever_the_order_all_that_arrived_has_its_place(seed: int) -> None:
    luck = Random(seed)
    bench = Thefts(luck)
    line = luck.sample(bench.made, len(bench.made))
    half = luck.randrange(len(line))
    bench.bring("eve", *line[:half])
    if luck.random() < 0.3:
        bench.restart()
        bench.up("eve")
        bench.greet("eve")
        half = 0
    bench.bring("eve", *line[half:])
    room = bench.room
    lost = [each for each in bench.made if not room.dag.satisfies(each.head)]
    assert (lost, len(room.intake.order), len(room.intake.places.early)) == ([], 0, 0)


@pytest.mark.parametrize("seed", range(1000 if os.environ.get("LINNET_SOAK") == "1" else 60))
def test_a_full_waiting_room_keeps_nothing_from_its_place_for_ever(seed: int) -> None:
    luck = Random(seed)
    bench = Thefts(luck, RoomsConfig(waiting_events=luck.choice((1, 2, 3, 5))))
    for _ in range(6):
        bench.bring("eve", *luck.sample(bench.made, len(bench.made)))
    bench.bring("eve", *bench.made, *bench.made)
    room = bench.room
    lost = [each for each in bench.made if not room.dag.satisfies(each.head)]
    assert (lost, len(room.intake.order), len(room.intake.places.early)) == ([], 0, 0)


def test_a_withheld_event_costs_those_that_wait_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain that comes last event first was walked anew for each of them: minutes for 20,000."""
    bench = Stolen(known_to_bob=True)
    control = bench.room.control.heads
    chain = [bench.forge("dan", control=control)]
    while len(chain) < 200:
        chain.append(bench.forge("dan", deps=(chain[-1].head,), control=control))
    person = SigningKey.generate(SeededEntropy(1, "identity/cid"))
    device = bench.who("phone").card.device
    word = body_of(Revoked(revoke(person, device, 2)))
    bench.bring("eve", bench.forge("cid", REVOCATION, device.hex(), word, deps=(chain[-1].head,)))
    bench.bring("eve", bench.word, bench.stolen)
    walked: list[int] = []
    order = bench.room.intake.order
    whole = order.awaited_by

    def awaited_by(event: EventId) -> set[EventId]:
        found = whole(event)
        walked.append(len(found))
        return found

    monkeypatch.setattr(order, "awaited_by", awaited_by)
    bench.bring("eve", *reversed(chain[1:]))
    assert sum(walked) < 10 * len(chain)


def test_a_revocation_whose_causes_are_made_up_stops_nobody() -> None:
    """A member may revoke a device of its own and name a cause that does not exist."""
    bench = Stolen(known_to_bob=False)
    device = bench.who("phone").card.device
    nothing, body = (EventId(b"?" * 32),), bench.word.events[0].body
    word = bench.forge("cid", REVOCATION, device.hex(), body, deps=nothing, height=99)
    bench.bring("eve", word, bench.stolen, bench.reply)
    after = [bench.forge("dan", deps=(bench.reply.head,)) for _ in range(3)]
    bench.bring("eve", *after)
    assert not any(bench.room.dag.knows(each.head) for each in (bench.stolen, bench.reply, *after))
    timers = [each for each in bench.effects if isinstance(each, SetTimer)]
    timers = [each for each in timers if each.timer == WithheldDue(bench.id)]
    assert [each.delay for each in timers] == [PATIENCE]
    bench.now += PATIENCE
    bench.do(TimerFired(WithheldDue(bench.id)))
    assert all(map(bench.shows, (bench.stolen, bench.reply, *after)))
    # From then on nothing of that device waits.
    late = bench.forge("phone", deps=(after[-1].head,), control=bench.stolen.events[0].tail.control)
    bench.bring("eve", late)
    assert bench.room.dag.knows(late.head)


def test_events_wait_for_a_revocation_that_comes_later_as_long_as_for_the_first() -> None:
    bench = Stolen(known_to_bob=False)
    bench.bring("eve", bench.word, bench.stolen)
    bench.now += PATIENCE - 1.0
    bench.do(TimerFired(WithheldDue(bench.id)))
    assert not bench.room.dag.knows(bench.stolen.head), "the timer was early"
    bench.bring("eve", bench.first, bench.second)
    assert bench.room.dag.knows(bench.stolen.head)
    assert not bench.shows(bench.stolen)
