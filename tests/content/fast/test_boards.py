"""Boards: where they are; what stands on them, for how long, and how much."""

from __future__ import annotations

import pytest
from tests.content.directories import Known

from linnet.content.attribute_keys import Located, attribute_key, distance
from linnet.content.config import FastConfig
from linnet.content.fast.advertisements import Boards, closest, is_near
from linnet.content.fast.messages import POSTINGS, Posting
from linnet.content.fast.signed_records import group_id
from linnet.content.predicate import read_predicate
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.testing.identities import known_identity

CARD = known_identity("us").card
WANTED = read_predicate("stock")
KEY = attribute_key("stock")
PEERS = sorted(
    (PeerId(bytes([number]) * 32) for number in range(1, 12)), key=lambda peer: distance(peer, KEY)
)


def posting(publisher: int, text: str = "stock", issued: int = 1, *, opened: bool = True) -> Posting:
    contact = Contact(PeerId(publisher.to_bytes(32)))
    return Posting(contact, CARD, text, opened, issued, 100, bytes(64))


def put(boards: Boards, each: Posting, attribute: str = "stock") -> Reason | None:
    try:
        boards.put(attribute, each, read_predicate(each.predicate))
    except RemoteError as error:
        return error.reason
    return None


def test_the_same_group_stands_once_and_the_later_word_counts() -> None:
    boards = Boards(FastConfig())
    assert put(boards, posting(1)) is None
    assert put(boards, posting(1, issued=2)) is None
    assert put(boards, posting(1, issued=1)) is Reason.STALE
    assert boards.page("stock", WANTED, b"", 0.0) == ((posting(1, issued=2),), False)
    assert len(boards) == 1


def test_a_group_that_was_closed_does_not_come_back_by_an_earlier_word() -> None:
    boards = Boards(FastConfig())
    put(boards, posting(1, issued=1))
    put(boards, posting(1, issued=5, opened=False))
    assert put(boards, posting(1, issued=1)) is Reason.STALE
    assert boards.page("stock", WANTED, b"", 0.0) == ((), False)
    assert put(boards, posting(1, issued=6)) is None
    assert len(boards.page("stock", WANTED, b"", 0.0)[0]) == 1


def test_what_is_over_is_neither_shown_nor_kept() -> None:
    boards = Boards(FastConfig())
    put(boards, posting(1))
    assert boards.page("stock", WANTED, b"", 100.0) == ((), False)
    assert (boards.expire(99.0), boards.expire(100.0), len(boards)) == (0, 1, 0)


def test_only_groups_that_carry_all_that_is_wanted_are_shown() -> None:
    boards = Boards(FastConfig())
    put(boards, posting(1, "price[0,10]/stock"))
    for text, count in (("price[0,10]/stock", 1), ("price[2,3]", 1), ("price[5,11]/stock", 0), ("gold", 0)):
        assert len(boards.page("stock", read_predicate(text), b"", 0.0)[0]) == count
    assert boards.page("price", WANTED, b"", 0.0) == ((), False), "another board"


def test_pages_follow_each_other_and_none_is_left_out() -> None:
    boards = Boards(FastConfig())
    for number in range(POSTINGS + 3):
        put(boards, posting(number))
    first, more = boards.page("stock", WANTED, b"", 0.0)
    last = group_id(first[-1].publisher.peer, "stock")
    rest, end = boards.page("stock", WANTED, last, 0.0)
    assert (len(first), more, len(rest), end) == (POSTINGS, True, 3, False)
    assert len({each.publisher.peer for each in (*first, *rest)}) == POSTINGS + 3


@pytest.mark.parametrize(
    "config", [FastConfig(postings=2), FastConfig(board=2), FastConfig(of_one=2)], ids=["all", "one", "owner"]
)
def test_boards_are_bounded_and_what_stands_may_be_renewed(config: FastConfig) -> None:
    boards = Boards(config)
    texts = ("stock", "apple/stock", "pear/stock")
    assert [put(boards, posting(1, text)) for text in texts] == [None, None, Reason.TOO_MANY]
    assert put(boards, posting(1, issued=2)) is None


def test_a_group_without_the_attribute_of_the_board_is_refused() -> None:
    assert put(Boards(FastConfig()), posting(1, "gold")) is Reason.MALFORMED


def test_this_node_is_among_the_closest_where_it_belongs() -> None:
    found = Located(KEY, tuple(Contact(peer) for peer in (PEERS[2], PEERS[0])))
    assert [each.peer for each in closest(PEERS[1], found)] == PEERS[:3]
    assert [each.peer for each in closest(PEERS[1], Located(KEY, ()))] == [PEERS[1]]


def test_a_node_is_near_if_it_knows_of_few_that_are_closer() -> None:
    assert is_near(PEERS[7], "stock", Known(*PEERS[:7]))
    assert not is_near(PEERS[8], "stock", Known(*PEERS[:8]))
    assert is_near(PEERS[0], "stock", Known(*PEERS[1:]))
