"""The publisher's side: its chain, bursts, confirmations, and what storage lacks."""

from __future__ import annotations

from math import inf
from typing import Any

from msgspec.structs import replace
from tests.delivery.voices import TOPIC, asked
from tests.streams.stage import NOW, context_of

from linnet.core.effects import CancelTimer, Hold, Release, Reply, Send, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.limits import BODY_BYTES, BURST_BYTES, BURST_EVENTS
from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.event_archive import Archive
from linnet.delivery.messages import ChainPlace, Data, Receipt, Watch
from linnet.delivery.receipts import ReceiverFate, sign_receipt
from linnet.delivery.storage_statements import sign_kept
from linnet.event.event import Verified
from linnet.event.signing import message_tail
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Published
from linnet.streams.publisher import BACKLOG_BYTES, REST_MOST, ConfirmDue, Publisher, StorageLookDue
from linnet.trace.records import Kind, Record

KEY = SigningKey(b"s" * 32)
STORAGE = Contact(PeerId(KEY.public), ("tls://s:1",))
LOOK = StorageLookDue(TOPIC)
PURPOSE = f"receipts {TOPIC.hex()[:16]}"


class Scene:
    def __init__(self, store: MemoryStore | None = None, config: DeliveryConfig | None = None) -> None:
        self.context = context_of(store=store, config=config)
        self.out = Outbox()
        cards, kept = self.context.cards, self.context.config
        self.archive = Archive(TOPIC, self.context.store, cards, kept, self.out)
        self.publisher = Publisher(TOPIC, self.context, self.archive, self.out)

    def say(self, *bodies: bytes) -> list[Verified]:
        units = list(self.publisher.sign([message_tail(body, 0) for body in bodies]))
        for unit in units:
            self.archive.keep(unit, NOW)
        return units

    def outcome(self, units: list[Verified], fates: tuple[ReceiverFate, ...] = ()) -> Published:
        events = [event for unit in units for event in unit.events]
        return Published(TOPIC, events[0].seq or 0, tuple(event.id for event in events), 4, fates)

    def receipt(self, last: int, key: SigningKey = KEY, at: float = NOW) -> Receipt:
        place = ChainPlace(self.context.author, self.context.device, 0, last, True)
        return sign_receipt(key, TOPIC, True, at, (place,))

    def confirmed(self, last: int, now: float = NOW, key: SigningKey = KEY) -> list[Any]:
        receipt = self.receipt(last, key, now)
        assert self.publisher.ledger.learn(receipt, now)
        return asked(self.out, self.publisher.handle_receipt, receipt)

    def published(self, request: int, outcome: Published, confirm: float, now: float = inf) -> list[Any]:
        """What is asked for when something was published, with the answer if there is one at once."""
        self.out.clear()
        answer = self.publisher.await_storage(request, outcome, confirm, now)
        told = [] if answer is None else [Reply(request, answer)]
        return [*self.out.take(), *told]

    def end_waiting(self, request: int) -> list[Any]:
        return asked(self.out, self.publisher.end_waiting, request)

    def look(self, now: float) -> list[Any]:
        return asked(self.out, self.publisher.push_missing, now)

    def hold_back(self, unit: Verified) -> list[Any]:
        return asked(self.out, self.publisher.hold_back, unit, self.out)

    def acked(self, seq: int) -> Record:
        return Record(Kind.ACKED, TOPIC, device=self.context.device, seq=seq, peer=STORAGE.peer)


def test_a_chain_goes_on_from_unit_to_unit_and_after_a_restart() -> None:
    store = MemoryStore()
    first = Scene(store)
    one, two = first.say(b"a"), first.say(b"b", b"c")
    again = Scene(store)
    (three,) = again.say(b"d")
    assert [unit.unit.seq for unit in (*one, *two, three)] == [0, 1, 3]
    assert three.unit.prev == two[0].head
    assert two[0].unit.prev == one[0].head


def test_a_burst_is_cut_at_256_events() -> None:
    units = Scene().say(*[b"x"] * 600)
    assert [len(unit.events) for unit in units] == [BURST_EVENTS, BURST_EVENTS, 88]
    assert [unit.unit.seq for unit in units] == [0, 256, 512]


def test_a_burst_is_cut_at_256_kib() -> None:
    units = Scene().say(*[b"x" * 100_000] * 5, b"y" * BODY_BYTES, b"z")
    assert [len(unit.events) for unit in units] == [2, 2, 1, 2], "the last one fits beside the largest body"
    assert all(sum(map(len, unit.unit.tails)) <= BURST_BYTES for unit in units)


def test_without_wanting_confirmation_the_answer_comes_at_once() -> None:
    scene = Scene()
    outcome = scene.outcome(scene.say(b"a"))
    assert scene.published(7, outcome, 0.0) == [Reply(7, outcome)]


def test_storage_is_watched_from_the_first_publication_on() -> None:
    scene = Scene()
    assert asked(scene.out, scene.publisher.set_storage, (STORAGE,)) == []
    outcome = scene.outcome(scene.say(b"a"))
    assert scene.published(7, outcome, 0.0) == [
        Hold(STORAGE.peer, STORAGE.hints, PURPOSE),
        SetTimer(2.0, LOOK),
        Reply(7, outcome),
    ]
    assert asked(scene.out, scene.publisher.handle_link_up, STORAGE.peer) == [
        Send(STORAGE.peer, Watch(TOPIC, True))
    ]
    assert asked(scene.out, scene.publisher.handle_link_up, PeerId(b"o" * 32)) == []
    assert asked(scene.out, scene.publisher.leave) == [Release(STORAGE.peer, PURPOSE), CancelTimer(LOOK)]


def test_a_publish_waits_for_every_storage_node_to_confirm() -> None:
    scene = Scene()
    other = SigningKey(b"o" * 32)
    scene.publisher.set_storage((STORAGE, Contact(PeerId(other.public))))
    outcome = scene.outcome(scene.say(b"a", b"b"))
    assert SetTimer(5.0, ConfirmDue(TOPIC, 7)) in scene.published(7, outcome, 5.0)
    assert scene.confirmed(0) == [scene.acked(0)]
    assert scene.confirmed(1, NOW + 1) == [scene.acked(1)]
    effects = scene.confirmed(1, NOW + 2, other)
    fates = (
        ReceiverFate(STORAGE.peer, True, NOW + 1, volunteer=True),
        ReceiverFate(PeerId(other.public), True, NOW + 2, volunteer=True),
    )
    told = Published(outcome.topic, outcome.first, outcome.ids, outcome.neighbors, fates)
    assert effects[1:] == [CancelTimer(ConfirmDue(TOPIC, 7)), Reply(7, told)]


def test_when_time_is_up_the_answer_says_what_is_known() -> None:
    scene = Scene()
    scene.publisher.set_storage((STORAGE,))
    outcome = scene.outcome(scene.say(b"a"))
    scene.published(7, outcome, 5.0)
    told = scene.outcome(scene.say(b"b"), (ReceiverFate(STORAGE.peer, True, None, volunteer=True),))
    told = replace(outcome, fates=told.fates, unconfirmed=Reason.TIMEOUT)
    assert scene.end_waiting(7) == [CancelTimer(ConfirmDue(TOPIC, 7)), Reply(7, told)]
    assert scene.end_waiting(7) == []


def test_once_the_tracker_has_said_that_nobody_keeps_it_nothing_is_waited_for() -> None:
    scene = Scene()
    outcome = scene.outcome(scene.say(b"a"))
    assert scene.published(7, outcome, 5.0) == [SetTimer(5.0, ConfirmDue(TOPIC, 7))]
    told = replace(outcome, unconfirmed=Reason.NO_STORAGE)
    assert asked(scene.out, scene.publisher.set_storage, ()) == [SetTimer(1.0, ConfirmDue(TOPIC, 7))], (
        "one may be about to come"
    )
    assert scene.end_waiting(7) == [CancelTimer(ConfirmDue(TOPIC, 7)), Reply(7, told)]
    scene.published(6, outcome, 5.0, NOW)
    assert SetTimer(5.0, ConfirmDue(TOPIC, 6)) in asked(scene.out, scene.publisher.set_storage, (STORAGE,)), (
        "it came: there is time"
    )
    scene.publisher.set_storage(())
    scene.end_waiting(6)
    scene.publisher.none_since = NOW
    assert scene.published(6, outcome, 5.0, NOW + 0.5) == [SetTimer(1.0, ConfirmDue(TOPIC, 6))]
    assert scene.published(8, outcome, 5.0) == [Reply(8, told)]
    assert scene.published(9, outcome, 0.0) == [Reply(9, outcome)], "nobody was to confirm it"


def test_leaving_answers_whoever_waits() -> None:
    scene = Scene()
    outcome = scene.outcome(scene.say(b"a"))
    scene.published(7, outcome, 5.0)
    assert asked(scene.out, scene.publisher.leave) == [
        CancelTimer(ConfirmDue(TOPIC, 7)),
        Reply(7, replace(outcome, unconfirmed=Reason.NO_STORAGE)),
        CancelTimer(LOOK),
    ]


def test_what_a_storage_node_lacks_for_a_whole_period_is_pushed_to_it() -> None:
    scene = Scene()
    scene.publisher.set_storage((STORAGE,))
    scene.context.links[STORAGE.peer] = None
    units = [scene.say(b"%d" % number)[0] for number in range(3)]
    again = SetTimer(2.0, LOOK)
    scene.confirmed(0)
    assert scene.look(NOW) == [again], "it may still be on its way"
    scene.say(b"new")
    sent_us = int(NOW * 1_000_000)
    pushed = Record(Kind.RESYNC, TOPIC, device=scene.context.device, seq=1, peer=STORAGE.peer, note="pushed")
    assert scene.look(NOW) == [
        *(Send(STORAGE.peer, Data(unit.unit, 1, 0, sent_us, scene.context.card)) for unit in units[1:]),
        pushed,
        again,
    ]
    scene.confirmed(3, NOW + 1)
    assert scene.look(NOW) == [], "nothing is lacking"


def test_who_publishes_all_the_time_does_not_put_off_the_look_at_storage() -> None:
    scene = Scene()
    scene.context.links[STORAGE.peer] = None
    scene.publisher.set_storage((STORAGE,))
    looks: list[Any] = []
    for number in range(5):
        outcome = scene.outcome(scene.say(b"%d" % number))
        looks += scene.published(number, outcome, 0.0)
    assert looks.count(SetTimer(2.0, LOOK)) == 1
    assert SetTimer(2.0, LOOK) in scene.look(NOW), "it is set again while something lacks"


def test_a_storage_node_that_confirms_nothing_is_sent_it_ever_more_seldom() -> None:
    scene = Scene()
    scene.publisher.set_storage((STORAGE,))
    scene.context.links[STORAGE.peer] = None
    scene.say(b"refused")
    scene.look(NOW)
    looks = [scene.look(NOW - number) for number in range(200)]
    pushed = [at for at, effects in enumerate(looks) if any(isinstance(each, Send) for each in effects)]
    assert pushed == [0, 1, 3, 7, 15, 31, 63, *range(95, 200, REST_MOST + 1)], "whatever the clock says"
    watches = [at for at, effects in enumerate(looks) if Send(STORAGE.peer, Watch(TOPIC, True)) in effects]
    assert watches == [1], "the receipt may have been lost"
    scene.publisher.handle_link_up(STORAGE.peer)
    assert any(isinstance(each, Send) for each in scene.look(NOW)), "it came anew"


def test_a_storage_node_that_takes_some_is_sent_the_rest_at_once() -> None:
    scene = Scene()
    scene.publisher.set_storage((STORAGE,))
    scene.context.links[STORAGE.peer] = None
    scene.say(b"0")
    scene.say(b"1")
    for _ in range(20):
        scene.look(NOW)
    scene.confirmed(0)
    assert any(isinstance(each, Send) for each in scene.look(NOW))


def test_a_storage_node_that_was_gone_is_asked_for_receipts_again() -> None:
    """Seed 18 of streams: a tracker that restarted knew of none for a while, and no receipt came again."""
    scene = Scene()
    scene.publisher.set_storage((STORAGE,))
    scene.context.links[STORAGE.peer] = None
    outcome = scene.outcome(scene.say(b"x"))
    scene.published(1, outcome, 0.0)
    assert Release(STORAGE.peer, PURPOSE) in asked(scene.out, scene.publisher.set_storage, ())
    assert asked(scene.out, scene.publisher.set_storage, (STORAGE,))[:2] == [
        Hold(STORAGE.peer, STORAGE.hints, PURPOSE),
        Send(STORAGE.peer, Watch(TOPIC, True)),
    ]


def test_a_push_is_bounded() -> None:
    scene = Scene(config=DeliveryConfig(page_units=2))
    scene.publisher.set_storage((STORAGE,))
    scene.context.links[STORAGE.peer] = None
    for _ in range(5):
        scene.say(b"x")
    scene.look(NOW)
    pushed = [effect for effect in scene.look(NOW) if isinstance(effect, Send)]
    assert len(pushed) == 2


def test_a_receipt_that_does_not_know_our_chain_says_nothing() -> None:
    scene = Scene()
    receipt = sign_receipt(KEY, TOPIC, True, NOW, ())
    scene.publisher.ledger.learn(receipt, NOW)
    assert asked(scene.out, scene.publisher.handle_receipt, receipt) == []


def test_what_is_published_alone_is_kept_for_whoever_comes() -> None:
    scene = Scene(config=DeliveryConfig(publish_queue=2))
    units = [scene.say(b"%d" % number)[0] for number in range(3)]
    said = [scene.hold_back(unit) for unit in units]
    assert said[:2] == [[], []]
    (record,) = said[2]
    assert (record.kind, record.event, record.reason) == (Kind.DROPPED, units[0].head, Reason.QUEUE_FULL)
    assert scene.publisher.take_backlog() == units[1:]
    assert scene.publisher.take_backlog() == []


def test_what_waits_for_company_is_bounded_in_bytes() -> None:
    scene = Scene()
    body = b"x" * 200_000
    units = [scene.say(body)[0] for _ in range(50)]
    dropped = [record for unit in units for record in scene.hold_back(unit)]
    kept = scene.publisher.take_backlog()
    assert kept == units[len(dropped) :]
    assert BACKLOG_BYTES - 250_000 < sum(len(unit.events[0].body) for unit in kept) <= BACKLOG_BYTES


def test_why_a_storage_node_refuses_is_forgotten_with_it() -> None:
    scene = Scene()
    for number in range(20):
        key = SigningKey(bytes([number]) * 32)
        scene.publisher.set_storage((Contact(PeerId(key.public)),))
        kept = sign_kept(key, TOPIC, bytes(8), 1, NOW, (), (), refuses=Reason.QUOTA)
        assert scene.publisher.ledger.learn(kept, NOW, counts=True)
        scene.publisher.handle_receipt(kept)
    assert list(scene.publisher._refusals) == [PeerId(key.public)]
