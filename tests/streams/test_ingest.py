"""What comes in: duplicates, checks, the beginning of chains, and what others say there is."""

from __future__ import annotations

import msgspec
import pytest
from tests.delivery.voices import TOPIC, Voice
from tests.streams.stage import NOW, context_of

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import AuthorId, DeviceId
from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.event_archive import Archive
from linnet.delivery.messages import ChainPlace
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.store.memory import MemoryStore
from linnet.streams.ingest import Governance, Ingest


def ingest_of(
    store: MemoryStore | None = None, owner: AuthorId | None = None, config: DeliveryConfig | None = None
) -> Ingest:
    context = context_of(store=store, config=config)
    return Ingest(TOPIC, context, Governance(TOPIC, owner, context.store.cells))


def why_not(ingest: Ingest, unit: Unverified, card: Card | None, now: float | None = NOW) -> Reason | None:
    try:
        ingest.check(unit, card, now)
    except RemoteError as error:
        return error.reason
    return None


def place(voice: Voice, first: int, last: int, held: bool = False) -> ChainPlace:
    return ChainPlace(voice.identity.author, voice.identity.card.device, first, last, held)


def test_a_unit_is_checked_by_the_card_that_came_with_it_or_before() -> None:
    ann, ingest = Voice(), ingest_of()
    one, two = ann.units(2)
    assert why_not(ingest, one.unit, None) is Reason.UNKNOWN_DEVICE
    assert ingest.check(one.unit, ann.identity.card, NOW) == (one, ann.identity.card)
    assert ingest.check(two.unit, None, NOW)[0] == two


def test_what_is_wrong_is_named() -> None:
    ann, ingest = Voice(), ingest_of()
    card, unit = ann.identity.card, ann.say().unit
    forged = msgspec.structs.replace(unit, sig=b"x" * 64)
    elsewhere = Voice(topic=b"e" * 32).say().unit  # type: ignore[arg-type]
    assert why_not(ingest, forged, card) is Reason.BAD_SIGNATURE
    assert why_not(ingest, elsewhere, card) is Reason.MALFORMED
    assert why_not(ingest, msgspec.structs.replace(unit, seq=None), card) is Reason.MALFORMED
    assert why_not(ingest, unit, card, NOW + 10**9) is Reason.CARD_EXPIRED
    assert why_not(ingest, unit, card, None) is None
    assert why_not(ingest_of(owner=Voice("ben").identity.author), unit, card) is Reason.NOT_A_PUBLISHER


def test_a_page_gives_what_is_good_and_what_was_wrong() -> None:
    ann, ingest = Voice(), ingest_of()
    one, two = ann.units(2)
    forged = msgspec.structs.replace(two.unit, sig=b"x" * 64)
    bad_card = msgspec.structs.replace(ann.identity.card, label="other")
    good, errors = ingest.check_all((one.unit, forged), (ann.identity.card, bad_card), None)
    assert good == [one]
    assert [error.reason for error in errors] == [Reason.BAD_SIGNATURE, Reason.BAD_SIGNATURE]


def test_duplicates_are_told_by_their_numbers_per_chain() -> None:
    ann, ben, ingest = Voice("ann"), Voice("ben"), ingest_of()
    unit = ann.say(b"a", b"b")
    assert not ingest.is_duplicate(unit.unit)
    ingest.accept(unit, NOW)
    assert ingest.is_duplicate(unit.unit)
    assert not ingest.is_duplicate(ann.say().unit)
    assert not ingest.is_duplicate(ben.say().unit)
    twin = msgspec.structs.replace(unit.unit, device=ben.identity.card.device)
    assert not ingest.is_duplicate(twin), "another device of the same author"
    assert not ingest.is_duplicate(msgspec.structs.replace(unit.unit, author=ben.identity.author))
    assert not ingest_of().is_duplicate(unit.unit), "in another stream nothing was seen"


def test_a_chain_begins_where_we_came_in_unless_all_is_due() -> None:
    for prepare, base in (("", 3), ("anchored", 0), ("wants_all", 0)):
        ann, ingest = Voice(), ingest_of()
        if prepare:
            setattr(ingest, prepare, True)
        ann.units(3)
        chain, due, _ = ingest.accept(ann.say(), NOW)
        assert chain.base == base
        assert bool(due) == (base == 3)


def test_word_of_a_chain_says_what_is_missing() -> None:
    ann, ingest = Voice(), ingest_of()
    chain, due = ingest.note_place(place(ann, 0, 5), storage=False)
    assert chain is not None
    assert (chain.base, chain.missing(), due) == (6, [], []), "what was before our time is not due"
    chain, _ = ingest.note_place(place(ann, 0, 8), storage=False)
    assert chain is not None
    assert chain.missing() == [(6, 8)]
    assert ingest.note_place(place(ann, 0, 7), storage=False) == (None, [])


def test_where_all_is_due_it_begins_where_storage_does() -> None:
    ann, ingest = Voice(), ingest_of()
    ingest.wants_all = True
    chain, _ = ingest.note_place(place(ann, 2, 5, held=True), storage=True)
    assert chain is not None
    assert chain.missing() == [(2, 5)]
    other, _ = ingest.note_place(place(Voice("ben"), 2, 5), storage=False)
    assert other is not None
    assert other.missing() == [(0, 5)]


def test_storage_that_begins_later_moves_the_beginning_if_nothing_was_seen_before() -> None:
    ann, ingest = Voice(), ingest_of()
    ingest.wants_all = True
    units = ann.units(5)
    ingest.accept(units[4], NOW)
    chain, due = ingest.note_place(place(ann, 4, 4, held=True), storage=True)
    assert chain is not None
    assert due == [units[4]]
    ben = Voice("ben")
    ingest.accept(ben.say(), NOW)
    chain, due = ingest.note_place(place(ben, 3, 4, held=True), storage=True)
    assert chain is not None
    assert (chain.missing(), due) == ([(1, 4)], [])


def test_announced_chains_make_room_for_real_ones_and_real_ones_do_not() -> None:
    ingest = ingest_of(config=DeliveryConfig(max_chains=2))
    for number in range(5):
        invented = ChainPlace(AuthorId(bytes([number]) * 32), DeviceId(b"d" * 8), 0, 3, False)
        ingest.note_place(invented, storage=False)
    assert len(ingest.chains) == 2
    ann, ben, eve = Voice("ann"), Voice("ben"), Voice("eve")
    ingest.accept(ann.say(), NOW)
    ingest.accept(ben.say(), NOW)
    assert list(ingest.chains) == [ann.key, ben.key]
    with pytest.raises(InvalidEvent) as error:
        ingest.accept(eve.say(), NOW)
    assert error.value.reason is Reason.TOO_MANY
    with pytest.raises(InvalidEvent):
        ingest.note_place(place(eve, 0, 1), storage=True)


def test_restoring_goes_on_from_the_log_and_asks_again_for_what_it_lacks() -> None:
    store = MemoryStore()
    ingest = ingest_of(store)
    context = context_of(store=store)
    archive = Archive(TOPIC, store, context.cards, context.config, Outbox())
    ann, ben = Voice("ann"), Voice("ben")
    units = ann.units(3)
    context.cards.learn(ann.identity.card)
    archive.keep(units[0], NOW)
    for unit in (*units, *ben.units(2)):
        ingest.accept(unit, NOW)
    assert ingest.restore() == {ann.key: 3, ben.key: 2}
    assert ingest.chains[ann.key].missing() == [(1, 2)]
    assert ingest.chains[ben.key].missing() == [(0, 1)]


def test_our_own_chain_is_there_from_the_start() -> None:
    store = MemoryStore()
    context = context_of(store=store)
    us = Voice("us")
    archive = Archive(TOPIC, store, context.cards, context.config, Outbox())
    archive.keep(us.say(b"a", b"b"), NOW)
    ingest = ingest_of(store)
    ingest.restore_own()
    assert ingest.chains[us.key].next == 2
