"""Publisher at one node: written first; sent, delivered and answered when that is durable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from tests.delivery.voices import Voice, asked
from tests.streams.stage import NOW, Staged, context_of
from tests.streams.village import Village

from linnet.core.effects import AfterCommit, Deliver, Reply, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import DeviceId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.event.signing import decode_unit, recall_unit
from linnet.identity.cards import revoke
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, to_text
from linnet.machine.commands import Declined
from linnet.sim.seeded_random import SeededEntropy
from linnet.store.memory import MemoryStore
from linnet.streams.announcements import HeadsDue
from linnet.streams.application import Application
from linnet.streams.commands import Declare, Policy, Publish, Published, Subscribe
from linnet.streams.receipts import EvictDue
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind, Record

A = PeerId(b"a" * 32)


class Scene:
    def __init__(self, name: str = "tea") -> None:
        self.store = MemoryStore()
        self.context = context_of("us", store=self.store)
        self.stream = Staged(name, self.context)
        self.application = Application(self.context, self.stream.out)

    def publish(self, *bodies: bytes, now: float = NOW) -> list[object]:
        return asked(self.stream.out, self.application.publish, self.stream, 7, Publish("tea", bodies), now)

    def declare(self, policy: Policy, sealed: bool = False) -> list[Any]:
        command = Declare("tea", policy, sealed)
        return asked(self.stream.out, self.application.declare, self.stream, 7, command, NOW)

    def promises(self, effects: list[object]) -> tuple[object, ...]:
        (after,) = [effect for effect in effects if isinstance(effect, AfterCommit)]
        return tuple(after.effects)


def test_everything_that_others_see_waits_for_the_commit() -> None:
    scene = Scene()
    scene.stream.handle_neighbor_up(A, NOW)
    scene.stream.readers.add(Subscribe(1, "tea"), None)
    effects = scene.publish(b"a", b"b")
    ((_, entry),) = scene.store.log.read(scene.stream.topic, 0, 10)
    unit = recall_unit(decode_unit(entry.raw))
    assert effects[:-1] == [
        SetTimer(10.0, EvictDue(scene.stream.topic)),
        SetTimer(5.0, HeadsDue(scene.stream.topic)),
    ]
    published, send, sent, deliver, delivered, reply = scene.promises(effects)
    assert isinstance(published, Record)
    assert (published.kind, published.events) == (Kind.PUBLISHED, 2)
    assert isinstance(send, Send)
    assert (send.peer, send.message.unit, send.message.hops) == (A, unit.unit, 1)
    assert isinstance(send.message, Data)
    assert isinstance(sent, Record)
    assert deliver == Deliver(1, unit.events)
    assert isinstance(delivered, Record)
    ids = tuple(event.id for event in unit.events)
    assert reply == Reply(7, Published(scene.stream.topic, 0, ids, 1, ()))


def test_what_is_published_alone_goes_out_when_somebody_comes() -> None:
    scene = Scene()
    scene.publish(b"a")
    effects = asked(scene.stream.out, scene.stream.handle_neighbor_up, A, NOW + 1)
    assert [e.message.hops for e in effects if isinstance(e, Send) and isinstance(e.message, Data)] == [1]


def test_nothing_is_nothing() -> None:
    (reply,) = Scene().publish()
    assert isinstance(reply, Reply)
    assert isinstance(reply.result, Declined)


def test_an_expired_card_signs_nothing() -> None:
    scene = Scene()
    with pytest.raises(RemoteError) as error:
        scene.publish(b"a", now=NOW + 10**9)
    assert error.value.reason is Reason.CARD_EXPIRED
    assert scene.store.log.end() == 0


def test_only_publishers_publish_and_only_owners_declare() -> None:
    theirs = Scene(to_text(Sort.PERSON, known_identity("ann").author) + "/news")
    with pytest.raises(RemoteError) as error:
        theirs.publish(b"a")
    assert error.value.reason is Reason.NOT_A_PUBLISHER
    (reply,) = theirs.declare(Policy())
    assert isinstance(reply, Reply)
    assert isinstance(reply.result, Declined)
    ours = Scene(to_text(Sort.PERSON, known_identity("us").author) + "/news")
    declared = ours.declare(Policy(degree=6))
    assert ours.stream.governance.policy.degree == 6
    (promises,) = [effect.effects for effect in declared if isinstance(effect, AfterCommit)]
    notes = [each.note for each in promises if isinstance(each, Record) and each.kind is Kind.PUBLISHED]
    assert notes == ["policy"], "nobody will be handed it"
    ours.publish(b"a")


def test_what_another_device_of_ours_seals_is_its_own_until_that_is_revoked() -> None:
    scene = Scene(to_text(Sort.PERSON, known_identity("us").author) + "/news")
    other = DeviceId(b"o" * 8)
    tail = scene.stream.governance.tail(Policy(publishers=(), sealer=other), 1)
    scene.stream.governance.read(Voice("us", scene.stream.topic).sign([tail]))
    assert isinstance(result(scene.publish(b"a")), Declined)
    for sealed in (True, False):
        declined = result(scene.declare(Policy(), sealed))
        assert isinstance(declined, Declined)
        assert declined.reason is Reason.NOT_ALLOWED
    person = SigningKey.generate(SeededEntropy(0, "identity/us"))
    scene.context.cards.revoke(revoke(person, other, int(NOW)))
    assert isinstance(result(scene.declare(Policy(), sealed=True)), Published)
    assert scene.stream.governance.policy.sealer == scene.context.device


def test_a_key_is_announced_before_the_first_message_and_counts_as_none() -> None:
    scene = Scene(to_text(Sort.PERSON, known_identity("us").author) + "/news")
    scene.declare(Policy(), sealed=True)
    published = result(scene.publish(b"a", b"b"))
    assert isinstance(published, Published)
    assert (published.first, len(published.ids)) == (2, 2)
    units = [decode_unit(entry.raw) for _, entry in scene.store.log.read(scene.stream.topic, 0, 10)]
    kinds = [[event.kind for event in recall_unit(unit).events] for unit in units]
    assert kinds == [["policy"], ["group"], ["message", "message"]]
    again = result(scene.publish(b"c"))
    assert isinstance(again, Published)
    assert again.first == 4
    tomorrow = result(scene.publish(b"d", now=NOW + scene.context.config.epoch_seconds))
    assert isinstance(tomorrow, Published)
    assert tomorrow.first == 6


def result(effects: Iterable[object]) -> object:
    """What the caller is answered."""
    for effect in effects:
        for each in effect.effects if isinstance(effect, AfterCommit) else (effect,):
            if isinstance(each, Reply):
                return each.result
    return None


def test_a_node_that_keeps_the_stream_itself_says_so() -> None:
    village = Village(trackers=0, storage=0, peers=0, alone=1)
    outcome = village.publish("x0", b"x")
    assert isinstance(outcome, Published)
    assert [(fate.receiver, fate.storage) for fate in outcome.fates] == [(village.peer("x0"), True)]
    assert outcome.fates[0].delivered_at is not None
