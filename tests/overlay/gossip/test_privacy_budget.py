"""The account of what was told: complete, kept over restarts, bounded, and without any topic in it."""

from __future__ import annotations

import math
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import StoreError
from linnet.core.ids import PeerId, TopicId
from linnet.overlay.gossip import privacy_budget
from linnet.overlay.gossip.privacy_budget import (
    PEERS,
    AnnouncementsTold,
    BudgetIs,
    Earlier,
    FilterTold,
    IntersectionsTold,
    PrivacyBudget,
    ProxyTold,
)
from linnet.store.memory import MemoryCells, MemoryStore


def peer(number: int) -> PeerId:
    return PeerId(sha256(b"p%d" % number).digest())


def topic(number: int) -> TopicId:
    return TopicId(sha256(b"t%d" % number).digest())


def cells() -> MemoryCells:
    return MemoryStore().cells


def test_nothing_is_told_at_first() -> None:
    told = PrivacyBudget(cells()).report()
    assert told == BudgetIs((), (), (), (), Earlier())
    assert (told.epsilon, told.surest, told.runs) == (0.0, 0.5, 0)


def test_releases_add_up_over_epochs_and_networks() -> None:
    budget = PrivacyBudget(cells())
    budget.enter_release(1, 3.0, 10.0)
    budget.enter_release(2, 3.0, 20.0)
    budget.enter_release(2, 1.5, 30.0, b"home")
    told = budget.report()
    assert told.filters == (
        FilterTold(1, b"", 1, 3000, 10.0),
        FilterTold(2, b"", 1, 3000, 20.0),
        FilterTold(2, b"home", 1, 1500, 30.0),
    )
    assert told.epsilon == 7.5
    assert told.surest == pytest.approx(math.exp(7.5) / (1 + math.exp(7.5)))


def test_a_second_release_in_an_epoch_shows_and_counts() -> None:
    budget = PrivacyBudget(cells())
    budget.enter_release(1, 3.0, 10.0)
    budget.enter_release(1, 3.0, 11.0)
    assert budget.report().filters == (FilterTold(1, b"", 2, 6000, 11.0),)


def test_answers_to_searches_count_as_one_more_release_of_the_epoch() -> None:
    store = cells()
    budget = PrivacyBudget(store)
    budget.enter_answers(1, 3.0, 10.0)
    assert budget.report().filters == (FilterTold(1, b"", 0, 0, 10.0, 3000),)
    budget.enter_release(1, 3.0, 11.0)
    budget.enter_answers(1, 3.0, 12.0)
    budget = PrivacyBudget(store)
    budget.enter_answers(1, 3.0, 13.0)
    assert budget.report().filters == (FilterTold(1, b"", 1, 3000, 11.0, 3000),)
    assert budget.report().epsilon == 6.0
    for epoch in range(2, privacy_budget.RELEASES + 2):
        budget.enter_answers(epoch, 3.0, float(epoch + 20))
    told = budget.report()
    assert (len(told.filters), told.earlier.releases, told.epsilon) == (
        *(privacy_budget.RELEASES, 1, 6.0 + 3.0 * privacy_budget.RELEASES),
    )


def test_intersections_are_counted_for_each_peer() -> None:
    budget = PrivacyBudget(cells())
    budget.enter_intersection(peer(1), 10, 3, 1.0)
    budget.enter_intersection(peer(2), 100, 0, 2.0, tested=64)
    budget.enter_intersection(peer(1), 17, 2, 3.0)
    told = budget.report()
    assert [one.peer for one in told.intersections] == [peer(2), peer(1)]
    assert told.intersections[0] == IntersectionsTold(peer(2), 1, 256, 64, 0, 2.0)
    assert told.intersections[1] == IntersectionsTold(peer(1), 2, 64, 512, 3, 3.0)
    assert told.runs == 3


def test_a_topic_at_a_proxy_counts_once() -> None:
    budget = PrivacyBudget(cells())
    for now, number in enumerate((1, 2, 1), 1):
        budget.enter_service(peer(1), topic(number), float(now))
    budget.enter_service(peer(2), topic(1), 3.0)
    assert budget.report().proxies == (ProxyTold(peer(1), 2, 2.0), ProxyTold(peer(2), 1, 3.0))


def test_announcements_are_counted_for_each_network() -> None:
    budget = PrivacyBudget(cells())
    for second in range(10):
        budget.enter_announcement(b"home", float(second))
    budget.enter_announcement(b"work", 20.0)
    assert budget.report().announcements == (
        AnnouncementsTold(b"home", 10, 9.0),
        AnnouncementsTold(b"work", 1, 20.0),
    )


def filled(store: MemoryCells) -> PrivacyBudget:
    budget = PrivacyBudget(store)
    for number in range(5):
        budget.enter_release(number, 3.0, number)
        budget.enter_intersection(peer(9 - number), 5, 1, number)
        budget.enter_announcement(b"net%d" % (9 - number), number)
        budget.enter_service(peer(number), topic(number), number)
    return budget


def test_it_is_kept_over_a_restart_with_its_order() -> None:
    store = cells()
    budget = filled(store)
    assert PrivacyBudget(store).report() == budget.report()
    budget.enter_service(peer(4), topic(4), 9.0)
    assert PrivacyBudget(store).report() == budget.report()


def test_announcements_are_written_once_in_a_while_and_at_the_end() -> None:
    store = cells()
    budget = PrivacyBudget(store)
    for second in range(0, 100, 5):
        budget.enter_announcement(b"home", float(second))
    assert PrivacyBudget(store).report().announcements == (AnnouncementsTold(b"home", 13, 60.0),)
    budget.flush()
    assert PrivacyBudget(store).report() == budget.report()


def test_what_is_oldest_is_added_to_what_was_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("RELEASES", "PEERS", "NETWORKS", "PROXIES"):
        monkeypatch.setattr(privacy_budget, limit, 3)
    store = cells()
    budget = filled(store)
    told = budget.report()
    assert [one.epoch for one in told.filters] == [2, 3, 4]
    assert [one.peer for one in told.intersections] == [peer(7), peer(6), peer(5)]
    assert told.earlier == Earlier(2, 6000, 2, 2, 2, 2, 2)
    assert (told.epsilon, told.runs) == (15.0, 5)
    assert PrivacyBudget(store).report() == told
    assert len(list(store.scan(privacy_budget.SPACE))) == 4 * 3 + 1


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4000)), max_size=40))
def test_folding_changes_no_sum(releases: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(privacy_budget, "RELEASES", 2)
        budget = PrivacyBudget(cells())
        for now, (epoch, milli) in enumerate(releases):
            budget.enter_release(epoch, milli / 1000, now)
        told = budget.report()
    assert told.epsilon == pytest.approx(sum(milli for _, milli in releases) / 1000)
    assert sum(one.times for one in told.filters) + told.earlier.releases == len(releases)
    assert len(told.filters) <= 2


def test_no_topic_is_written_down() -> None:
    store = cells()
    filled(store)
    written = b"".join(key + value for key, value in store.scan(privacy_budget.SPACE))
    for number in range(5):
        assert not any(topic(number)[at : at + 6] in written for at in range(27))


def test_what_it_returns_does_not_change_afterwards() -> None:
    budget = PrivacyBudget(cells())
    budget.enter_intersection(peer(1), 5, 1, 1.0)
    before = budget.report()
    budget.enter_intersection(peer(1), 5, 1, 2.0)
    assert before.runs == 1


def test_a_damaged_store_is_named() -> None:
    store = cells()
    store.put(privacy_budget.SPACE, b"i" + peer(1), b"\x00")
    with pytest.raises(StoreError):
        PrivacyBudget(store)


def test_devices_that_were_told_addresses_are_counted_and_bounded() -> None:
    cells = MemoryStore().cells
    budget = PrivacyBudget(cells)
    for number in range(PEERS):
        budget.enter_address(PeerId(number.to_bytes(32, "big")), True, float(number))
    assert (len(budget.report().addresses), budget.report().earlier.told) == (PEERS, 0)
    budget.enter_address(PeerId(PEERS.to_bytes(32, "big")), False, float(PEERS))
    told = PrivacyBudget(cells).report()
    assert (len(told.addresses), told.earlier.told) == (PEERS, 1)
    assert (told.addresses[-1].own, told.addresses[-1].others) == (0, 1)
