"""A revocation that came before its causes: what the device said is judged when it has its place."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest
from tests.rooms.bench import Bench

from linnet.event.event import Verified
from linnet.identity.cards import issue_card, revoke
from linnet.identity.keys import SigningKey
from linnet.peer.config import Identity
from linnet.rooms.event_types import REVOCATION, Revoked, body_of
from linnet.sim.seeded_random import SeededEntropy


class Stolen(Bench):
    """Cid's phone is stolen and speaks; cid revokes it with another device, on what bob said."""

    def __init__(self, *, known_to_bob: bool) -> None:
        super().__init__("bob", "cid", "dan", "eve")
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
