"""What a storage node tells publishers."""

from __future__ import annotations

from tests.delivery.voices import TOPIC, Voice, asked, take
from tests.streams.stage import NOW, context_of

from linnet.core.effects import AfterCommit, Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.delivery.event_archive import EVICT_UNITS, Archive
from linnet.delivery.messages import ChainPlace, Kept, Receipt
from linnet.delivery.receipts import Ledger, sign_receipt
from linnet.delivery.storage_statements import check_kept
from linnet.machine.outbox import Outbox
from linnet.streams.receipts import EvictDue, Keeper, ReceiptDue
from linnet.trace.records import Kind, Record

ANN = PeerId(b"a" * 32)
RECEIPT, EVICT = ReceiptDue(TOPIC), EvictDue(TOPIC)


class Scene:
    def __init__(self) -> None:
        self.context = context_of()
        self.out = Outbox()
        cards, config = self.context.cards, self.context.config
        self.archive = Archive(TOPIC, self.context.store, cards, config, self.out)
        self.keeper = Keeper(TOPIC, self.context, self.archive, self.out)
        self.voice = Voice()
        self.chain = self.voice.chain()
        self.ledger = Ledger()

    def grow(self) -> None:
        take(self.chain, self.voice.say())

    def place(self, last: int, first: int = 0) -> ChainPlace:
        identity = self.voice.identity
        return ChainPlace(identity.author, identity.card.device, first, last, True)

    def receipt(self, *places: ChainPlace) -> Receipt:
        return sign_receipt(self.context.key, TOPIC, True, NOW, places)


def test_a_watcher_is_told_at_once_what_is_kept() -> None:
    scene = Scene()
    scene.grow()
    chains = {scene.chain.key: scene.chain}
    told = asked(scene.out, scene.keeper.add_watcher, ANN, scene.ledger, chains, NOW)
    assert told == [AfterCommit((Send(ANN, scene.receipt(scene.place(0))),))]


def test_where_nothing_is_kept_nothing_is_said() -> None:
    scene = Scene()
    assert (
        asked(scene.out, scene.keeper.add_watcher, ANN, scene.ledger, {scene.chain.key: scene.chain}, NOW)
        == []
    )
    later = scene.voice.chain(base=5)
    assert asked(scene.out, scene.keeper.add_watcher, ANN, scene.ledger, {later.key: later}, NOW) == [], (
        "4 is not kept"
    )


def test_what_a_receipt_claims_begins_where_the_chain_does() -> None:
    scene = Scene()
    later = scene.voice.chain(base=1)
    scene.voice.say()
    take(later, scene.voice.say())
    told = asked(scene.out, scene.keeper.add_watcher, ANN, scene.ledger, {later.key: later}, NOW)
    assert told == [AfterCommit((Send(ANN, scene.receipt(scene.place(1, first=1))),))]


def test_changes_are_told_together_after_a_delay_and_only_to_watchers() -> None:
    scene = Scene()
    scene.grow()
    assert asked(scene.out, scene.keeper.note_written, scene.chain) == []
    scene.keeper.add_watcher(ANN, scene.ledger, {}, NOW)
    scene.grow()
    assert asked(scene.out, scene.keeper.note_written, scene.chain) == [SetTimer(0.2, RECEIPT)]
    scene.grow()
    assert asked(scene.out, scene.keeper.note_written, scene.chain) == []
    expected = AfterCommit((Send(ANN, scene.receipt(scene.place(2))),))
    assert asked(scene.out, scene.keeper.send_receipts, NOW) == [expected]
    scene.keeper.remove_watcher(ANN)
    assert asked(scene.out, scene.keeper.note_written, scene.chain) == []


def test_receivers_words_are_passed_on_but_not_back() -> None:
    scene = Scene()
    ben = PeerId(b"b" * 32)
    receiver = context_of("receiver")
    word = sign_receipt(receiver.key, TOPIC, False, NOW, (scene.place(0),))
    scene.keeper.add_watcher(ANN, scene.ledger, {}, NOW)
    scene.keeper.add_watcher(ben, scene.ledger, {}, NOW)
    assert asked(scene.out, scene.keeper.pass_on_receipt, word, ben) == [Send(ANN, word)]
    scene.ledger.learn(word, NOW)
    assert asked(scene.out, scene.keeper.add_watcher, ANN, scene.ledger, {}, NOW) == [Send(ANN, word)]


def test_looking_for_evictions_goes_on_while_something_is_held() -> None:
    scene = Scene()
    scene.context.cards.learn(scene.voice.identity.card)
    scene.keeper.retention, scene.keeper.quota = 5.0, None
    assert asked(scene.out, scene.keeper.evict, False, NOW) == [], "nothing is held"
    scene.archive.keep(scene.voice.say(), NOW)
    again = SetTimer(10.0, EVICT)
    assert asked(scene.out, scene.keeper.evict_later) == [again]
    assert asked(scene.out, scene.keeper.evict_later) == []
    assert asked(scene.out, scene.keeper.evict, False, NOW + 4) == [again]
    assert asked(scene.out, scene.keeper.evict, True, NOW + 6) == [again], "somebody may come back for it"
    (record,) = asked(scene.out, scene.keeper.evict, False, NOW + 6)
    assert isinstance(record, Record)
    assert (record.kind, record.reason) == (Kind.EVICTED, Reason.RETENTION)
    assert asked(scene.out, scene.keeper.evict_later) == [again]


def test_a_quota_holds_however_much_is_written() -> None:
    scene = Scene()
    scene.context.cards.learn(scene.voice.identity.card)
    scene.keeper.retention, scene.keeper.quota = None, 1000
    for unit in scene.voice.units(EVICT_UNITS + 10):
        scene.archive.keep(unit, NOW)
    effects = asked(scene.out, scene.keeper.evict, False, NOW)
    assert effects[-1] == SetTimer(0.0, EVICT), "one look may not remove all: the next follows at once"
    assert len(effects) == EVICT_UNITS + 1
    assert asked(scene.out, scene.keeper.evict, False, NOW)[-1] == SetTimer(10.0, EVICT)
    assert scene.context.store.log.kept(TOPIC).bytes <= 1000


def test_without_a_bound_nobody_looks() -> None:
    scene = Scene()
    scene.keeper.retention, scene.keeper.quota = None, None
    assert asked(scene.out, scene.keeper.evict_later) == []


def test_a_part_that_was_given_up_is_not_stated_also_after_a_restart() -> None:
    scene = Scene()
    scene.context.cards.learn(scene.voice.identity.card)
    units = scene.voice.units(6)
    for unit in (*units[:2], *units[4:]):
        scene.archive.keep(unit, NOW)
        take(scene.chain, unit)
    scene.chain.forgo(2, 3)
    scene.keeper.note_hole(scene.chain.key, 4)

    def stated(keeper: Keeper) -> list[ChainPlace]:
        scene.context.keeping[ANN] = None
        effects = asked(scene.out, keeper.add_watcher, ANN, scene.ledger, {scene.chain.key: scene.chain}, NOW)
        kept = [each.message for one in effects for each in one.effects]
        assert all(isinstance(each, Kept) for each in kept)
        return [place for each in kept for place in each.chains]

    assert stated(scene.keeper) == [scene.place(5, first=4)]
    again = Keeper(TOPIC, scene.context, scene.archive, scene.out)
    assert stated(again) == [scene.place(5, first=4)]


def test_who_understands_statements_gets_them_in_place_of_receipts() -> None:
    scene = Scene()
    scene.context.cards.learn(scene.voice.identity.card)
    unit = scene.voice.say()
    scene.archive.keep(unit, NOW)
    take(scene.chain, unit)
    ben = PeerId(b"b" * 32)
    scene.context.keeping[ben] = None
    scene.keeper.add_watcher(ANN, scene.ledger, {}, NOW)
    scene.keeper.add_watcher(ben, scene.ledger, {}, NOW)
    asked(scene.out, scene.keeper.note_written, scene.chain)
    sent = [each for one in asked(scene.out, scene.keeper.send_receipts, NOW) for each in one.effects]
    assert [each.peer for each in sent] == [ANN, ben]
    receipt, kept = (each.message for each in sent)
    assert receipt == scene.receipt(scene.place(0))
    check_kept(kept)
    assert (kept.chains, kept.heads, kept.position) == ((scene.place(0),), (unit.head,), 1)
