"""Members of a group by what they want: found by ranges and topics, each once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.content.predicates import attributes, predicates

from linnet.content.config import FastConfig
from linnet.content.fast.messages import Enrolment
from linnet.content.fast.publisher_groups import Group
from linnet.content.fast.signed_records import receipt
from linnet.content.predicate import Predicate, read_attributes, read_predicate
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason

ID = TopicId(bytes(32))
KEY = bytes(32)


def peer(number: int) -> PeerId:
    return PeerId(bytes([number]) * 32)


def enrol(group: Group, number: int, *wanted: str, region: str = "here", capacity: int = 0) -> None:
    contact = Contact(peer(number), ("tls://a:1",))
    enrolment = Enrolment(ID, contact, wanted, region, capacity, 10_000, bytes(64))
    group.enrol(enrolment, tuple(read_predicate(text) for text in wanted), KEY, 0.0)


def group_of(text: str, config: FastConfig | None = None) -> Group:
    return Group(ID, read_predicate(text), True, config or FastConfig())


def test_the_published_ranges_of_years() -> None:
    group = group_of("year[2010,2017]")
    for number, wanted in enumerate(("[2011,2011]", "[2010,2013]", "[2010,2015]", "[2010,2017]")):
        enrol(group, number, f"year{wanted}")
    counts = {
        year: len(group.matching(read_attributes(f"year={year}"))) for year in (2010, 2011, 2013, 2014, 2017)
    }
    assert counts == {2010: 3, 2011: 4, 2013: 3, 2014: 2, 2017: 1}
    assert group.remove(peer(1))
    assert not group.remove(peer(1))
    assert list(group.matching(read_attributes("year=2011"))) == [peer(0), peer(2), peer(3)]


def test_of_several_ranges_all_have_to_accept_also_if_one_finds_nobody() -> None:
    group = group_of("price[0,100]/size[0,100]")
    enrol(group, 1, "price[0,10]/size[0,10]")
    enrol(group, 2, "price[0,10]/size[50,60]")
    enrol(group, 3, "price[0,100]")
    assert sorted(group.matching(read_attributes("price=5/size=5"))) == [peer(1), peer(3)]
    assert sorted(group.matching(read_attributes("price=50/size=5"))) == [peer(3)]
    assert sorted(group.matching(read_attributes("price=5/size=55"))) == [peer(2), peer(3)]


def test_a_group_of_topics_looks_at_the_event() -> None:
    group = group_of("soccer")
    enrol(group, 1, "soccer/ajax")
    enrol(group, 2, "soccer")
    assert sorted(group.matching(read_attributes("soccer"))) == [peer(2)]
    assert sorted(group.matching(read_attributes("soccer/ajax"))) == [peer(1), peer(2)]


def test_a_member_with_several_predicates_is_found_once_and_may_change_them() -> None:
    group = group_of("stock")
    enrol(group, 1, "price[0,10]/stock", "apple/stock")
    event = read_attributes("stock/apple/price=5")
    assert group.matching(event) == {peer(1): None}
    enrol(group, 1, "pear/stock")
    assert group.matching(event) == {}
    assert len(group) == 1


members = st.lists(st.lists(predicates(), min_size=1, max_size=2), max_size=6)


@given(members, st.lists(st.integers(0, 5), max_size=3), attributes())
def test_found_are_exactly_those_that_a_scan_finds(
    members: list[list[Predicate]], leaving: list[int], event: Predicate
) -> None:
    group = group_of("anything")
    for number, wanted in enumerate(members):
        enrol(group, number, *(predicate.text for predicate in wanted))
    for number in leaving:
        group.remove(peer(number))
    expected = [
        peer(number)
        for number, wanted in enumerate(members)
        if number not in leaving and any(predicate.covers(event) for predicate in wanted)
    ]
    assert sorted(group.matching(read_attributes(event.text))) == expected


def test_members_are_bounded_and_expire_unless_they_renew() -> None:
    group = group_of("stock", FastConfig(members=2, refresh=10.0))
    enrol(group, 1, "stock")
    enrol(group, 2, "stock")
    with pytest.raises(RemoteError) as caught:
        enrol(group, 3, "stock")
    assert caught.value.reason is Reason.TOO_MANY
    enrol(group, 2, "stock")
    assert (group.expired(29.9), group.expired(30.0)) == ([], [peer(1), peer(2)])


def test_a_member_that_moves_to_another_region_is_served_there() -> None:
    group = group_of("stock")
    for number in range(6):
        enrol(group, number, "stock", capacity=10 if number == 0 else 0)
    ((errand, enrolments),) = group.errands()
    assert [each.member.peer for each in enrolments] == list(errand.added)
    group.agreed(errand.deputy)
    moving = errand.added[0]
    enrol(group, moving[0], "stock", region="there")
    assert group.matching(read_attributes("stock"))[moving] is None
    assert [each.gone for each, _ in group.errands()] == [(moving,)]


def test_receipts_are_of_members_and_strikes_are_counted_in_a_row() -> None:
    group = group_of("stock", FastConfig(strikes=2))
    enrol(group, 1, "stock")
    event = EventId(bytes(32))
    assert group.is_receipt(peer(1), event, receipt(KEY, event))
    assert not group.is_receipt(peer(2), event, receipt(KEY, event))
    assert not group.missed(peer(1))
    group.answered(peer(1))
    assert [group.missed(peer(1)), group.missed(peer(1)), group.missed(peer(9))] == [False, True, False]
