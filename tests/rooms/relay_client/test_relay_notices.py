"""What the use of relays tells a room, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.rooms.bench import Bench

from linnet.core.effects import Send
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.delivery.receipts import Fate
from linnet.event.signing import unit_head
from linnet.identity.cards import revoke
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Notice
from linnet.rooms.commands import ExamineLedger, LedgerIs, SendToRoom, SetLevel, SetMembership
from linnet.rooms.event_types import (
    JOIN_RULES,
    REVOCATION,
    JoinRule,
    JoinRules,
    Membership,
    Revoked,
    body_of,
)
from linnet.rooms.messages import RelayCursor, RelayOutcome, RelaySend, RelayTaken, Tombstone
from linnet.rooms.receipts import sign_room_receipt
from linnet.rooms.relay_client.relay_client import RelayNotice
from linnet.rooms.relay_client.relay_session import Forgot, Kept, NotKept, Page
from linnet.sim.seeded_random import SeededEntropy


class Scene:
    """A room with a relay that is used, over an open link."""

    def __init__(self) -> None:
        self.bench = bench = Bench()
        bench.join("bob")
        bench.join("rex")
        rex = self.rex = bench.who("rex")
        bench.name_relay("rex", "tls://rex:1")
        assert bench.room.relays.up == (rex.peer,)
        (self.ours,) = bench.say(SendToRoom(bench.id, (b"hello",)))
        bench.effects.clear()

    def handle(self, notice: RelayNotice) -> list[Any]:
        room, now = self.bench.room, self.bench.now
        return self.bench.brought_about(lambda: room._relay_notices.handle(notice, now))

    def kept(self, event: EventId) -> list[Any]:
        return self.handle(Kept(self.rex.peer, event, RelayCursor(bytes(8), 1), None))

    def fate(self) -> Fate:
        ledger = self.bench.ask(ExamineLedger(self.bench.id, self.ours))
        assert isinstance(ledger, LedgerIs)
        (bob,) = ledger.events[0].members
        return bob.fate


def test_what_a_relay_keeps_refuses_loses_or_lets_go_is_in_the_ledger() -> None:
    scene = Scene()
    rex, ours = scene.rex.peer, scene.ours
    assert scene.fate() is Fate.PENDING
    scene.handle(NotKept(rex, ours, Reason.QUOTA))
    assert scene.fate() is Fate.REFUSED
    scene.kept(ours)
    assert scene.fate() is Fate.AT_RELAY
    scene.handle(Page(rex, 1, (), (), (), (Tombstone(ours, Reason.RETENTION),), (), False))
    assert scene.fate() is Fate.EXPIRED
    scene.kept(ours)
    scene.handle(Forgot(rex))
    assert scene.fate() is Fate.EXPIRED


def test_a_page_of_a_relay_is_taken_in_with_the_receipts_that_others_gave_it() -> None:
    scene = Scene()
    bench, bob, rex = scene.bench, scene.bench.who("bob"), scene.rex.peer
    receipt = sign_room_receipt(bob.device, bob.card, bench.id, 3, (scene.ours,), off=False)
    scene.handle(Page(rex, 1, (), (), (receipt,), (), (), False))
    assert scene.fate() is Fate.DELIVERED
    message = bench.forge("bob")
    scene.handle(Page(rex, 2, (message.unit,), (bob.card,), (), (), (), False))
    assert bench.room.dag.shows(message.head)


def settled(bench: Bench, act: Callable[[], None]) -> list[Any]:
    """What a room asks for because of a call, and of what follows from it."""

    def act_and_settle() -> None:
        act()
        bench.room.settle(bench.now)

    return bench.brought_about(act_and_settle)


def put_back(bench: Bench, steps: list[Any]) -> None:
    for step in steps:
        if isinstance(step, Notice):
            bench.room.out.notify(step)
        else:
            bench.room.out.add(step)


def sent(scene: Scene, steps: list[Any]) -> list[EventId]:
    """Events that the relay is sent because of these, at once or when it has answered what it is sent now."""
    bench = scene.bench
    found: list[EventId] = []
    waiting = settled(bench, lambda: put_back(bench, steps))
    for _ in range(20):
        promised = [each for effect in waiting for each in getattr(effect, "effects", (effect,))]
        batches = [each.message for each in promised if isinstance(each, Send)]
        waiting = []
        for batch in batches:
            if not isinstance(batch, RelaySend):
                continue
            ids = [unit_head(unit) for unit in batch.units]
            found += ids
            outcomes = tuple(RelayOutcome(each, RelayCursor(bytes(8), 1), None, ()) for each in ids)
            taken = RelayTaken(bench.id, batch.request, outcomes, None)
            waiting += settled(
                bench, partial(bench.room.relays.handle_taken, scene.rex.peer, taken, bench.now)
            )
    return found


def test_a_relay_is_sent_again_what_it_refused_once_it_knows_the_revocation_that_undoes_the_reason() -> None:
    """At the relay, a stolen device of bob had taken our right to speak away before our message came."""
    scene = Scene()
    bench, rex = scene.bench, scene.rex.peer
    bench.say(SetLevel(bench.id, 100, person=bench.who("bob").author))
    heads, control = (
        bench.room.dag.refs(scene.ours),
        bench.room.control.heads,
    )  # Bob has not seen the message.
    rule = bench.forge("bob", JOIN_RULES, "", body_of(JoinRules(JoinRule.PUBLIC)), deps=heads)
    device = bench.who("bob").card.device
    body = body_of(Revoked(revoke(SigningKey.generate(SeededEntropy(1, "identity/bob")), device, 1)))
    word = bench.forge("bob", REVOCATION, device.hex(), body, deps=heads, control=control)
    bench.down("rex")
    (batch,) = bench.sent("rex", RelaySend, bench.up("rex"))
    assert scene.ours in map(unit_head, batch.units)
    outcomes = tuple(RelayOutcome(unit_head(unit), None, Reason.SOFT_FAILED, ()) for unit in batch.units)
    bench.hear("rex", RelayTaken(bench.id, batch.request, outcomes, None))
    bench.bring("bob", rule, word)
    assert bench.room.control.silenced, "nothing was silenced: this shows nothing"

    def pages(heads: tuple[EventId, ...]) -> list[EventId]:
        return sent(scene, scene.handle(Page(rex, 1, (), (), (), (), heads, False)))

    assert scene.ours not in pages((rule.head,))
    assert scene.ours in pages((rule.head, word.head))
    assert scene.ours not in pages((rule.head, word.head))


def test_a_relay_that_keeps_our_leave_lets_us_go() -> None:
    scene = Scene()
    bench = scene.bench
    (leave,) = bench.say(SetMembership(bench.id, bench.who("ann").author, Membership.LEAVE))
    assert bench.room.is_present
    scene.kept(scene.ours)
    assert bench.room.is_present
    scene.kept(leave)
    assert not bench.room.is_present


def batches(effects: list[Any]) -> list[RelaySend]:
    """Batches of events that a relay is sent, at once or after the commit."""
    promised = [each for effect in effects for each in getattr(effect, "effects", (effect,))]
    messages = [each.message for each in promised if isinstance(each, Send)]
    return [each for each in messages if isinstance(each, RelaySend)]


@pytest.mark.parametrize("is_here", [True, False])
def test_what_a_relay_lacks_to_judge_an_event_is_sent_first_if_it_is_here(is_here: bool) -> None:
    scene = Scene()
    bench, rex, relays = scene.bench, scene.rex.peer, scene.bench.room.relays
    missing = bench.room.control.heads[0] if is_here else EventId(b"n" * 32)
    begun = bench.brought_about(relays._relays[rex].sending.begin)
    (batch,) = batches(settled(bench, lambda: put_back(bench, begun)))
    outcomes = [RelayOutcome(unit_head(unit), RelayCursor(bytes(8), 1), None, ()) for unit in batch.units]
    last = outcomes[-1].event
    outcomes[-1] = RelayOutcome(last, None, Reason.MISSING_DEPENDENCY, (missing,))
    taken = RelayTaken(bench.id, batch.request, tuple(outcomes), None)
    (again,) = batches(settled(bench, lambda: relays.handle_taken(rex, taken, bench.now)))
    assert [unit_head(unit) for unit in again.units] == [*([missing] if is_here else []), last]
