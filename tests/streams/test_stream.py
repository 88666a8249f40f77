"""One stream at one node, input by input."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from tests.delivery.voices import Voice, asked, items_of
from tests.streams.stage import NOW, Staged, context_of

from linnet.core.effects import (
    Blame,
    CancelTimer,
    HangUp,
    Hold,
    Release,
    Send,
    SetTimer,
)
from linnet.core.ids import AuthorId, Contact, DeviceId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery import chain as chain_module
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.flood import SpreadDue, unit_bytes
from linnet.delivery.gap_repair import GapDue
from linnet.delivery.items import Missed
from linnet.delivery.messages import ChainPlace, Data, Heads, Resend, Resent
from linnet.event.event import Verified
from linnet.streams.announcements import AnchorDue
from linnet.streams.commands import Subscribe
from linnet.streams.config import StorageRule
from linnet.trace.records import Kind, Record

A, B, S = PeerId(b"a" * 32), PeerId(b"b" * 32), PeerId(b"s" * 32)
STORAGE = Contact(S, ("tls://s:1",))


class Scene:
    """A stream with two neighbours and one subscription."""

    def __init__(self, config: DeliveryConfig | None = None, ordered: bool = True) -> None:
        self.context = context_of(config=config)
        self.stream = Staged("tea", self.context)
        self.ann = Voice(topic=self.stream.topic)
        self.context.links.update({A: None, B: None})
        self.stream.handle_neighbor_up(A, NOW)
        self.stream.handle_neighbor_up(B, NOW)
        self.stream.readers.add(Subscribe(1, "tea", ordered=ordered), None)

    def hear(self, unit: Verified, peer: PeerId = A, hops: int = 2) -> list[object]:
        data = Data(unit.unit, hops, 0, int(NOW * 1_000_000), self.ann.identity.card)
        return asked(self.stream.out, self.stream.handle_data, peer, data, NOW)

    def record(self, kind: Kind, unit: Verified, peer: PeerId | None, hops: int | None) -> Record:
        place = unit.unit
        size = unit_bytes(place)
        return Record(
            kind,
            self.stream.topic,
            None if kind is Kind.DUPLICATE else unit.head,
            place.device,
            place.seq,
            len(place.tails),
            peer,
            hops,
            size,
        )

    def gap_timer(self) -> GapDue:
        return GapDue(self.stream.topic, self.ann.key)


def of_type(effects: Sequence[object], kind: type) -> list[object]:
    return [effect for effect in effects if isinstance(effect, kind)]


def test_a_new_unit_is_passed_on_and_handed_over() -> None:
    scene = Scene()
    unit = scene.ann.say(b"x")
    effects = scene.hear(unit)
    assert effects[0] == scene.record(Kind.RECEIVED, unit, A, 2)
    (send,) = of_type(effects, Send)
    assert isinstance(send, Send)
    assert (send.peer, send.message.unit, send.message.hops) == (B, unit.unit, 3)
    assert items_of(effects) == list(unit.events)
    delivered = [e for e in effects if isinstance(e, Record) and e.kind is Kind.DELIVERED]
    assert [(record.event, record.hops) for record in delivered] == [(unit.head, 2)]
    assert scene.stream.received == 1


def test_a_duplicate_is_counted_and_goes_no_further() -> None:
    scene = Scene()
    unit = scene.ann.say(b"x", b"y")
    scene.hear(unit)
    assert scene.hear(unit, B, 5) == [scene.record(Kind.DUPLICATE, unit, B, 5)]
    assert scene.stream.duplicates == 2


def test_who_replays_beyond_all_measure_is_hung_up_on() -> None:
    scene = Scene(DeliveryConfig(replay_slack=3))
    unit = scene.ann.say()
    scene.hear(unit)
    effects = [scene.hear(unit, B) for _ in range(5)]
    hung = [HangUp(B, Reason.REPLAYING) in one for one in effects]
    assert hung == [False, False, False, False, True]


def test_a_forged_unit_is_rejected_and_blamed() -> None:
    scene = Scene()
    unit = scene.ann.say(b"x")
    forged = msgspec.structs.replace(unit.unit, sig=b"x" * 64)
    record, blame = asked(
        scene.stream.out, scene.stream.handle_data, A, Data(forged, 1, 0, 0, scene.ann.identity.card), NOW
    )
    assert isinstance(record, Record)
    assert (record.kind, record.reason, record.peer) == (Kind.REJECTED, Reason.BAD_SIGNATURE, A)
    assert blame == Blame(A, Reason.BAD_SIGNATURE)
    assert scene.stream.rejected == 1
    assert items_of(scene.hear(unit)) == list(unit.events), "the real one is not harmed"


def test_order_waits_for_a_gap_and_disorder_does_not() -> None:
    for ordered in (True, False):
        scene = Scene(ordered=ordered)
        units = scene.ann.units(3)
        assert items_of(scene.hear(units[0])) == list(units[0].events)
        effects = scene.hear(units[2])
        assert items_of(effects) == ([] if ordered else list(units[2].events))
        assert SetTimer(0.5, scene.gap_timer()) in effects
        assert len(of_type(effects, Send)) == 1, "it is passed on at once all the same"
        late = items_of(scene.hear(units[1]))
        expected = units[1:] if ordered else units[1:2]
        assert late == [event for unit in expected for event in unit.events]


def test_what_was_asked_for_is_taken_in_without_flooding() -> None:
    scene = Scene()
    units = scene.ann.units(3)
    scene.hear(units[0])
    scene.hear(units[2])
    scene.stream.set_storage((STORAGE,), NOW)
    scene.context.links[S] = None
    identity = scene.ann.identity
    fields = (scene.stream.topic, identity.author, identity.card.device, 1, 1)
    assert Send(S, Resend(*fields)) in asked(scene.stream.out, scene.stream.repair_gap, scene.ann.key, NOW)
    resent = Resent(*fields, (units[1].unit,), (identity.card,), True, None)
    effects = asked(scene.stream.out, scene.stream.handle_resent, S, resent, NOW)
    assert items_of(effects) == [*units[1].events, *units[2].events]
    assert of_type(effects, Send) == []
    assert CancelTimer(scene.gap_timer()) in effects
    assert scene.stream.gaps.filled == 1


def test_what_nobody_has_is_missed_with_a_record() -> None:
    scene = Scene(DeliveryConfig(gap_tries=1))
    units = scene.ann.units(3)
    scene.hear(units[0])
    scene.hear(units[2])
    scene.stream.repair_gap(scene.ann.key, NOW)
    effects = asked(scene.stream.out, scene.stream.repair_gap, scene.ann.key, NOW + 10)
    identity = scene.ann.identity
    topic, device = scene.stream.topic, identity.card.device
    missed = Missed(topic, identity.author, device, 1, 1, Reason.GAP_UNFILLED)
    dropped = Record(Kind.DROPPED, topic, None, device, 1, 1, reason=Reason.GAP_UNFILLED)
    assert items_of(effects) == [missed, *units[2].events]
    assert dropped in effects
    assert items_of(scene.hear(units[1])) == [], "too late: it was named as missed"


def test_word_of_events_that_nobody_has_is_recorded_and_forgotten() -> None:
    scene = Scene(DeliveryConfig(gap_tries=1))
    first, second = scene.ann.units(2)
    scene.hear(first)
    identity = scene.ann.identity
    place = ChainPlace(identity.author, identity.card.device, 0, 2**63 - 1, False)
    assert asked(
        scene.stream.out, scene.stream.handle_heads, B, Heads(scene.stream.topic, (place,)), NOW
    ) == [SetTimer(0.5, scene.gap_timer())]
    scene.stream.repair_gap(scene.ann.key, NOW)
    effects = asked(scene.stream.out, scene.stream.repair_gap, scene.ann.key, NOW + 10)
    assert items_of(effects) == []
    (record,) = [e for e in effects if isinstance(e, Record)]
    assert (record.kind, record.reason, record.note) == (Kind.DROPPED, Reason.GAP_UNFILLED, "hearsay")
    assert record.peer == B, "who said so is on record"
    assert Blame(B, Reason.GAP_UNFILLED) in effects
    assert items_of(scene.hear(second)) == list(second.events)


def test_a_full_window_names_the_hole_and_goes_on() -> None:
    scene = Scene(DeliveryConfig(window_ranges=2))
    units = scene.ann.units(8)
    shown = [item for number in (0, 2, 4, 6) for item in items_of(scene.hear(units[number]))]
    missed = [(item.first, item.last) for item in shown if isinstance(item, Missed)]
    assert missed == [(1, 1)]
    events = [item.seq for item in shown if not isinstance(item, Missed)]  # type: ignore[union-attr]
    assert events == [0, 2]


def test_too_many_that_wait_behind_a_gap_end_the_wait() -> None:
    scene = Scene(DeliveryConfig(gaps_open=2))
    units = scene.ann.units(6)
    scene.hear(units[0])
    shown = [item for number in (2, 3, 4) for item in items_of(scene.hear(units[number]))]
    assert isinstance(shown[0], Missed)
    assert shown[0].reason is Reason.QUEUE_FULL
    assert shown[1:] == [event for unit in units[2:5] for event in unit.events]


def test_a_subscriber_learns_once_from_storage_which_chains_there_are() -> None:
    scene = Scene()
    stream, purpose = scene.stream, f"anchor {scene.stream.topic.hex()[:16]}"
    effects = asked(stream.out, stream.set_storage, (STORAGE,), NOW)
    hold, timer = Hold(S, STORAGE.hints, purpose), SetTimer(5.0, AnchorDue(stream.topic))
    assert effects == [hold, timer]
    assert asked(stream.out, stream.change_anchor, NOW) == [
        CancelTimer(AnchorDue(stream.topic)),
        Release(S, purpose),
        hold,
        timer,
    ]
    scene.context.links[S] = None
    assert asked(stream.out, stream.handle_link_up, S, NOW) == [Send(S, Heads(stream.topic, (), 0))]
    assert asked(stream.out, stream.handle_heads, S, Heads(stream.topic, ()), NOW) == [
        CancelTimer(AnchorDue(stream.topic)),
        Release(S, purpose),
    ]
    assert stream.ingest.anchored
    assert asked(stream.out, stream.ask_anchor, NOW) == []


def test_heads_in_several_messages_anchor_with_the_last() -> None:
    scene = Scene()
    scene.stream.set_storage((STORAGE,), NOW)
    places = tuple(
        ChainPlace(n.to_bytes(32, "big"), b"d" * 8, 0, 3, True)  # type: ignore[arg-type]
        for n in range(513)
    )
    scene.stream.handle_heads(S, Heads(scene.stream.topic, places[:512]), NOW)
    assert not scene.stream.ingest.anchored
    scene.stream.handle_heads(S, Heads(scene.stream.topic, places[512:]), NOW)
    assert scene.stream.ingest.anchored
    assert all(chain.missing() == [] for chain in scene.stream.ingest.chains.values())


def test_leaving_lets_go_of_the_anchor_too() -> None:
    scene = Scene()
    scene.stream.set_storage((STORAGE,), NOW)
    assert Release(S, f"anchor {scene.stream.topic.hex()[:16]}") in asked(
        scene.stream.out, scene.stream.leave, NOW
    )


def test_a_unit_that_is_held_back_goes_to_those_who_did_not_send_it() -> None:
    scene = Scene(DeliveryConfig(suppress=0.1))
    c = PeerId(b"c" * 32)
    scene.stream.handle_neighbor_up(c, NOW)
    unit = scene.ann.say()
    effects = scene.hear(unit)
    assert SetTimer(0.1, SpreadDue(scene.stream.topic, unit.head)) in effects
    assert of_type(effects, Send) == []
    scene.hear(unit, B)
    sent = asked(scene.stream.out, scene.stream.suppression.spread_waiting, unit.head, NOW + 0.1)
    assert [effect.peer for effect in sent if isinstance(effect, Send)] == [c]
    assert asked(scene.stream.out, scene.stream.suppression.spread_waiting, unit.head, NOW + 0.2) == []


def test_a_storage_node_does_not_state_what_it_had_to_give_up() -> None:
    scene = Scene(DeliveryConfig(gap_tries=0))
    scene.stream.keep(StorageRule("tea"))
    units = scene.ann.units(6)
    for unit in (units[0], *units[3:]):
        scene.hear(unit)
    chain = scene.stream.ingest.chains[scene.ann.key]
    scene.stream.repair_gap(chain.key, NOW)
    assert chain.next == 6
    scene.context.keeping[B] = None
    stream = scene.stream
    effects = asked(
        stream.out, stream.keeper.add_watcher, B, stream.publisher.ledger, stream.ingest.chains, NOW
    )
    (kept,) = (each.message for one in effects for each in one.effects)
    assert [(place.first, place.last) for place in kept.chains] == [(3, 5)]


def test_what_a_device_says_itself_counts_however_many_have_claimed_more_before() -> None:
    scene = Scene(DeliveryConfig(gap_tries=1))
    identity = scene.ann.identity
    scene.hear(scene.ann.say())
    claims = [(PeerId(bytes([number]) * 32), 9) for number in range(40, 60)]
    for peer, last in (*claims, (PeerId(identity.card.device_key), 4)):
        scene.context.links[peer] = None
        place = ChainPlace(identity.author, identity.card.device, 0, last, False)
        scene.stream.handle_heads(peer, Heads(scene.stream.topic, (place,), 0, (0,)), NOW)
    scene.stream.repair_gap(scene.ann.key, NOW)
    effects = asked(scene.stream.out, scene.stream.repair_gap, scene.ann.key, NOW + 10)
    told = (scene.stream.topic, identity.author, identity.card.device)
    assert items_of(effects) == [Missed(*told, 1, 4, Reason.GAP_UNFILLED)]


def test_a_claim_that_was_told_is_told_again_when_twice_as_many_say_so() -> None:
    """Whoever claims something first must not keep readers from what most others say later."""
    scene = Scene(DeliveryConfig(gap_tries=1))
    identity, topic = scene.ann.identity, scene.stream.topic
    scene.hear(scene.ann.say())
    told: list[tuple[int, int]] = []
    for last, count in ((2, 1), (2, 1), (9, 1), (5, 2), (6, 3), (7, 4), (8, 7)):
        for number in range(count):
            peer = PeerId(bytes([40 + number]) * 32)
            scene.context.links[peer] = None
            place = ChainPlace(identity.author, identity.card.device, 0, last, False)
            scene.stream.handle_heads(peer, Heads(topic, (place,), 0, (0,)), NOW)
        scene.stream.repair_gap(scene.ann.key, NOW)
        effects = asked(scene.stream.out, scene.stream.repair_gap, scene.ann.key, NOW + 10)
        told += [(each.last, each.claimed_by) for each in items_of(effects) if isinstance(each, Missed)]
    assert told == [(2, 1), (5, 2), (7, 4)]


@pytest.mark.timeout(20)
def test_old_units_of_a_chain_that_is_held_do_not_keep_a_node_busy_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever sends the end of a chain first, and then what is older than our time, in great amounts."""
    monkeypatch.setattr(chain_module, "EARLY_BYTES", 100_000)
    scene = Scene()
    for name in ("ann", "ben"):
        scene.ann = Voice(name, scene.stream.topic)
        scene.stream.ingest.asked[B] = None
        units = [scene.ann.say(bytes(20_000)) for _ in range(10)]
        shown = [item for unit in reversed(units) for item in items_of(scene.hear(unit))]
        assert shown == list(units[-1].events)
    assert scene.stream.ingest._early.bytes == 0


def test_chains_that_are_begun_again_hold_nothing_of_before() -> None:
    scene = Scene()
    first, _, third = scene.ann.units(3)
    scene.hear(first)
    scene.hear(third)
    ingest = scene.stream.ingest
    assert ingest._early.bytes > 0
    assert ingest.begin_again([scene.ann.key]) == {scene.ann.key: 3}
    assert ingest._early.bytes == 0


def test_a_chain_that_made_room_for_another_ends_no_warning_for_good() -> None:
    """Its claims are forgotten with it: readers must hear of the next time that they are cut off."""
    scene = Scene(DeliveryConfig(max_chains=2, gap_tries=10))
    stream, topic = scene.stream, scene.stream.topic
    scene.context.links[B] = None
    stream.ingest.anchored = True

    def claim(number: int, now: float) -> None:
        place = ChainPlace(AuthorId(bytes([number]) * 32), DeviceId(bytes(8)), 0, 5, True)
        stream.handle_heads(B, Heads(topic, (place,), 0, None), now)

    claim(1, NOW)
    (first,) = stream.gaps.repairs
    stream.isolation.note_unfilled(first, 6, NOW)
    stream.isolation.note_unfilled(first, 6, NOW + 20.0)
    assert stream.isolation.is_cut_off
    claim(2, NOW + 21.0)
    claim(3, NOW + 22.0)
    assert first not in stream.ingest.chains
    scene.hear(scene.ann.say())
    assert not stream.isolation.is_cut_off
