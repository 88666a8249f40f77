"""The log as others see it: pages, resends, evictions."""

from __future__ import annotations

from tests.delivery.voices import TOPIC, Voice

from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.core.stores import ChainHead
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import CardBook
from linnet.delivery.event_archive import Archive, known_heads
from linnet.delivery.messages import ChainPlace, History, HistoryPage, Resend, Resent
from linnet.event.event import Verified
from linnet.event.signing import encode_unit
from linnet.machine.outbox import Outbox
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record


class Scene:
    """An archive with what Ann said, one unit a second."""

    def __init__(self, units: int = 10, config: DeliveryConfig | None = None) -> None:
        self.store = MemoryStore()
        self.cards = CardBook(self.store.cells)
        self.out = Outbox()
        self.archive = Archive(TOPIC, self.store, self.cards, config or DeliveryConfig(), self.out)
        self.ann = Voice()
        self.cards.learn(self.ann.identity.card)
        self.units = self.ann.units(units)
        for number, unit in enumerate(self.units):
            assert self.archive.keep(unit, 100.0 + number) == number + 1

    def resend(self, first: int, last: int) -> Resent:
        author, device = self.ann.identity.author, self.ann.identity.card.device
        resent = self.archive.read_range(Resend(TOPIC, author, device, first, last))
        assert (resent.first, resent.last) == (first, last)
        return resent

    def page(self, after: int | None = None, since_ms: int = 0) -> HistoryPage:
        return self.archive.read_history(History(TOPIC, 7, after, since_ms))

    def head(self) -> ChainHead:
        (head,) = known_heads(TOPIC, self.store)
        return head


def said(*units: Verified) -> tuple[object, ...]:
    return tuple(unit.unit for unit in units)


def test_a_unit_is_kept_once_with_its_card() -> None:
    scene = Scene(1)
    assert scene.archive.keep(scene.units[0], 5.0) is None
    again = CardBook(scene.store.cells)
    assert again.find(scene.ann.identity.author, scene.ann.identity.card.device) == scene.ann.identity.card
    author, device = scene.ann.identity.author, scene.ann.identity.card.device
    assert scene.archive.places() == [ChainPlace(author, device, 0, 0, True)]
    assert scene.archive.page(author, device, 0, 9) == [scene.units[0].unit]


def test_exactly_the_range_is_resent() -> None:
    scene = Scene()
    card = scene.ann.identity.card
    author, device = scene.ann.identity.author, card.device
    expected = Resent(TOPIC, author, device, 3, 5, said(*scene.units[3:6]), (card,), True, None)  # type: ignore[arg-type]
    assert scene.archive.read_range(Resend(TOPIC, author, device, 3, 5)) == expected


def test_what_is_not_held_is_named() -> None:
    scene = Scene(3)
    answer = scene.resend(2, 5)
    assert answer.units == said(scene.units[2])
    assert answer.reason is Reason.NOT_HELD
    nothing = scene.resend(7, 9)
    assert (nothing.units, nothing.cards, nothing.reason) == ((), (), Reason.NOT_HELD)


def test_a_page_is_bounded_in_units_and_the_rest_is_to_be_asked_for() -> None:
    scene = Scene(10, DeliveryConfig(page_units=4))
    answer = scene.resend(1, 9)
    assert answer.units == said(*scene.units[1:5])
    assert (answer.done, answer.reason) == (True, None)


def test_a_page_is_bounded_in_bytes() -> None:
    """One answer must fit an outbox, however large the events are."""
    size = len(encode_unit(Voice().units(2)[1].unit))
    scene = Scene(10, DeliveryConfig(page_bytes=3 * size + 1))
    answer = scene.resend(0, 9)
    assert answer.units == said(*scene.units[:3])
    assert (answer.done, answer.reason) == (True, None)
    tiny = Scene(3, DeliveryConfig(page_bytes=1))
    assert tiny.resend(0, 2).units == said(tiny.units[0])


def test_history_comes_in_pages_until_done() -> None:
    scene = Scene(5, DeliveryConfig(page_units=2))
    pages = [scene.page()]
    while not pages[-1].done:
        pages.append(scene.page(after=pages[-1].after))
    assert [page.units for page in pages] == [
        said(*scene.units[:2]),
        said(*scene.units[2:4]),
        said(scene.units[4]),
    ]
    assert {page.request for page in pages} == {7}
    assert [page.cards for page in pages] == [(scene.ann.identity.card,)] * 3
    assert {(page.begins_ms, page.evicted, page.reason) for page in pages} == {(100_000, False, None)}


def test_history_from_a_time() -> None:
    scene = Scene(5)
    assert scene.page(since_ms=103_000).units == said(*scene.units[3:])
    assert scene.page(since_ms=999_000).units == ()


def test_history_of_nothing() -> None:
    page = Scene(0).page()
    assert (page.units, page.done, page.begins_ms, page.evicted) == ((), True, None, False)


def test_eviction_leaves_a_record_each_and_history_says_where_it_begins() -> None:
    scene = Scene(5)
    assert scene.archive.evict(7.0, None, 109.0) == 2
    assert scene.out.take() == [
        Record(
            Kind.EVICTED,
            TOPIC,
            unit.head,
            unit.unit.device,
            unit.unit.seq,
            1,
            bytes=len(encode_unit(unit.unit)),
            reason=Reason.RETENTION,
        )
        for unit in scene.units[:2]
    ]
    page = scene.page()
    assert page.units == said(*scene.units[2:])
    assert (page.begins_ms, page.evicted) == (102_000, True)
    assert scene.resend(0, 4).reason is Reason.RETENTION
    assert scene.archive.evict(7.0, None, 109.0) == 0
    assert scene.out.take() == []


def test_a_quota_evicts_the_oldest() -> None:
    scene = Scene(5)
    size = len(encode_unit(scene.units[1].unit))
    assert scene.archive.evict(None, 2 * size, 109.0) == 3
    records = [effect for effect in scene.out.take() if isinstance(effect, Record)]
    assert [(record.seq, record.reason) for record in records] == [(n, Reason.QUOTA) for n in range(3)]
    assert scene.store.log.kept(TOPIC).bytes <= 2 * size


def test_how_far_a_chain_went_outlives_its_events() -> None:
    """Our own chain would begin at 0 again after a restart, and fork."""
    scene = Scene(3)
    assert scene.head() == scene.store.log.heads(TOPIC)[0]
    scene.archive.evict(1.0, None, 1000.0)
    assert scene.store.log.heads(TOPIC) == []
    head = scene.head()
    assert (head.first, head.last, head.head) == (2, 2, scene.units[2].head)
    assert scene.archive.places() == []
    later = scene.ann.say()
    scene.archive.keep(later, 1001.0)
    assert (scene.head().last, scene.head().head) == (3, later.head)


def test_a_chain_that_was_passed_over_is_remembered_for_those_who_resume() -> None:
    scene = Scene(0)
    author, device = scene.ann.identity.author, scene.ann.identity.card.device
    scene.archive.pass_over(author, device, 7)
    assert known_heads(TOPIC, scene.store) == []
    assert known_heads(TOPIC, scene.store, passed=True) == [ChainHead(author, device, 7, 7, EventId(b""))]
    chain = scene.ann.chain()
    chain.restore(7, 7, EventId(b""))
    for _ in range(8):
        scene.ann.say()
    following = scene.ann.say()
    chain.accept(following, 8, 8)
    assert chain.in_order(following, 8, 8) == [following]
