"""What a stolen device did is revoked: in whatever order all of it comes, the same is shown in the end."""

from __future__ import annotations

import os
from random import Random

import pytest
from msgspec.structs import replace
from tests.rooms.bench import Bench

from linnet.core.ids import EventId
from linnet.event.event import Verified
from linnet.identity.cards import revoke
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, to_text
from linnet.rooms.commands import SetLevel
from linnet.rooms.event_types import (
    MEMBER,
    POWER,
    RELAY,
    REVOCATION,
    Member,
    Membership,
    Relay,
    Revoked,
    body_of,
    member_key,
)
from linnet.sim.seeded_random import SeededEntropy

SEEDS = 4000 if os.environ.get("LINNET_SOAK") else 100
STEP = 20

Heads = tuple[EventId, ...]


class Theft(Bench):
    """The thief of a device of cid takes rights away in one half of a room; others talk in the other half."""

    def __init__(self, luck: Random) -> None:
        super().__init__("bob", "cid", "dan", "eve", "mal")
        self.say(SetLevel(self.id, 100, person=self.who("cid").author))
        self.luck = luck
        self.deps, self.control = self.room.dag.heads, self.room.control.heads
        self.wrong: list[Verified] = []
        self.said: list[Verified] = []
        self.steal()
        self.word = self.talk()
        self.all = [*self.wrong, *self.said, self.word]
        luck.shuffle(self.all)

    def steal(self) -> None:
        """Bob loses rights to the thief, dan to whom the thief gave power."""
        power = self.room.control.view().power()
        bob, mal = self.who("bob").author, self.who("mal").author
        acts = [
            (MEMBER, member_key(bob), body_of(Member(Membership.BAN))),
            (POWER, "", body_of(replace(power, users={**power.users, bob: -1}))),
            (RELAY, to_text(Sort.DEVICE, self.link("bob")), body_of(Relay(True, bob))),
            (POWER, "", body_of(replace(power, users={**power.users, mal: 100}))),
        ]
        deps, control = self.deps, self.control
        for _ in range(self.luck.randint(1, 4)):
            kind, key, body = act = self.luck.choice(acts)
            made = self.forge("cid", kind, key, body, deps=deps, control=control)
            self.wrong.append(made)
            if act is acts[-1]:
                whom, ban = member_key(self.who("dan").author), body_of(Member(Membership.BAN))
                made = self.forge("mal", MEMBER, whom, ban, deps=(made.head,), control=(made.head,))
                self.wrong.append(made)
            control = self.perhaps(made, control)
            deps = self.perhaps(made, deps)

    def talk(self) -> Verified:
        """Others talk, and say that they are there; cid revokes the device."""
        deps, control = self.deps, self.control
        for _ in range(self.luck.randint(2, 7)):
            name = self.luck.choice(("bob", "bob", "dan", "eve"))
            if self.luck.random() < 0.7:
                made = self.forge(name, deps=deps, control=control)
            else:
                key, body = member_key(self.who(name).author), body_of(Member(Membership.JOIN))
                made = self.forge(name, MEMBER, key, body, deps=deps, control=control)
                control = self.perhaps(made, control)
            self.said.append(made)
            deps = self.perhaps(made, deps)
        device = self.who("cid").card.device
        word = Revoked(revoke(SigningKey.generate(SeededEntropy(1, "identity/cid")), device, 1))
        deps = self.luck.choice((self.deps, deps))
        control = self.luck.choice((self.control, control))
        return self.forge("cid", REVOCATION, device.hex(), body_of(word), deps=deps, control=control)

    def perhaps(self, made: Verified, heads: Heads) -> Heads:
        return (made.head,) if self.luck.random() < 0.7 else heads

    def come(self) -> None:
        """All of it comes by eve, and all once more; now and then the node starts again."""
        for each in self.all:
            self.bring("eve", each)
            if self.luck.random() < 0.1:
                self.restart()
                self.up("eve")
                self.greet("eve")
        self.bring("eve", *self.all)

    def seen(self) -> tuple[list[bool], Heads, dict[bytes, int]]:
        """What is shown of what others said, what ours will build on, and what counts against whom."""
        counts = self.room.intake.failure._counts
        shown = [self.room.dag.shows(each.head) for each in self.said]
        return shown, self.room.dag.heads, {author: count for author, count in counts.items() if count}


@pytest.mark.parametrize("first", range(0, SEEDS, STEP))
def test_all_that_others_said_is_shown_in_whatever_order_it_came(first: int) -> None:
    silenced = 0
    for seed in range(first, first + STEP):
        theft = Theft(Random(f"theft/{seed}"))
        theft.come()
        before = theft.seen()
        assert all(before[0]), seed
        theft.restart()
        assert theft.seen() == before, seed
        silenced += bool(theft.room.control.silenced)
    assert silenced > STEP // 2, "nothing was silenced: this shows nothing"
