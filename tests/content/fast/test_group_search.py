"""Searches: several boards are asked, none is believed, and one that is gone does no harm."""

from __future__ import annotations

from msgspec import structs
from tests.content.audience import Audience
from tests.content.fast_node import HINTS, FastNode, complaints, replies, sent
from tests.content.one_event import lone_context

from linnet.content.attribute_keys import Locate, attribute_key, distance
from linnet.content.config import FastConfig
from linnet.content.fast.commands import GroupsFound, JoinGroups, SearchGroups
from linnet.content.fast.fast_delivery import IdleDue
from linnet.content.fast.messages import POSTINGS, Browse, Browsed, Enrol, Enrolled, Posting
from linnet.content.fast.signed_records import group_id, make_posting
from linnet.core.ids import Contact
from linnet.core.reasons import Reason
from linnet.sim.clock import START
from linnet.testing.identities import known_identity
from linnet.testing.lone_part import Said

KEY = attribute_key("stock")
NAMES = sorted("abcdef", key=lambda name: distance(known_identity(name).peer, KEY))
"""Nodes, the closest to the board first."""


def posting(publisher: str, text: str = "stock", issued: int = 0, *, opened: bool = True) -> Posting:
    now = int(START)
    return make_posting(
        lone_context(known_identity(publisher)), HINTS, text, opened, 1000 * now + issued, now + 1000
    )


class Searcher(FastNode):
    """A node that is far from the board; three nodes have it."""

    def __init__(self) -> None:
        super().__init__("far")
        assert distance(self.peer, KEY) > distance(known_identity(NAMES[2]).peer, KEY), "another name, then"
        for name in NAMES:
            self.up(name)
        assert self.ask(SearchGroups("stock")) == [Locate(KEY)]
        contacts = tuple(Contact(known_identity(name).peer, HINTS) for name in NAMES)
        effects = self.find(KEY, *contacts)
        self.asked = {name: each.number for name in NAMES for each in sent(effects, name, Browse)}

    def says(self, name: str, *postings: Posting, more: bool = False) -> list[object]:
        """A board answers; what the application then hears."""
        return replies(self.hear(name, Browsed(self.asked[name], postings, more, None)))


def publishers(found: list[object]) -> list[bytes]:
    (groups,) = found
    assert isinstance(groups, GroupsFound)
    return sorted(each.publisher.peer for each in groups.groups)


def test_the_three_closest_are_asked_and_what_any_of_them_has_is_found() -> None:
    node = Searcher()
    assert list(node.asked) == NAMES[:3]
    assert node.says(NAMES[0]) == [], "one that hides everything"
    assert node.says(NAMES[1], posting("p")) == []
    found = node.says(NAMES[2], posting("p"), posting("q"))
    assert publishers(found) == sorted(known_identity(name).peer for name in "pq")


def test_one_that_is_gone_is_replaced_by_the_next_closest() -> None:
    node = Searcher()
    broken = node.down(NAMES[1])
    (asked,) = sent(broken, NAMES[3], Browse)
    node.asked[NAMES[3]] = asked.number
    for name in (NAMES[0], NAMES[2]):
        assert node.says(name) == []
    (found,) = node.says(NAMES[3], posting("p"))
    assert isinstance(found, GroupsFound)
    assert (len(found.groups), found.unanswered) == (1, 1)


def test_advertisements_that_nobody_signed_or_that_do_not_fit_are_left_out_and_the_board_is_named() -> None:
    node = Searcher()
    forged = structs.replace(posting("p"), predicate="apple/stock")
    unfit = posting("p", "gold")
    effects = node.hear(NAMES[0], Browsed(node.asked[NAMES[0]], (forged, unfit), False, None))
    board = known_identity(NAMES[0]).peer
    assert complaints(effects) == [(board, Reason.BAD_SIGNATURE), (board, Reason.MALFORMED)]
    node.says(NAMES[1])
    assert publishers(node.says(NAMES[2])) == []


def test_of_two_words_the_later_counts() -> None:
    node = Searcher()
    node.says(NAMES[0], posting("p", issued=1))
    node.says(NAMES[1], posting("p", issued=3, opened=False))
    assert publishers(node.says(NAMES[2], posting("p", issued=2))) == []


def test_boards_are_read_page_by_page() -> None:
    node = Searcher()
    names = [f"p{number}" for number in range(POSTINGS)]
    page = sorted((posting(name) for name in names), key=lambda each: group_id(each.publisher.peer, "stock"))
    effects = node.hear(NAMES[0], Browsed(node.asked[NAMES[0]], tuple(page), True, None))
    (more,) = sent(effects, NAMES[0], Browse)
    assert more.after == group_id(page[-1].publisher.peer, "stock")
    node.asked[NAMES[0]] = more.number
    node.says(NAMES[1])
    node.says(NAMES[2])
    assert len(publishers(node.says(NAMES[0], posting("last")))) == POSTINGS + 1


def test_a_board_that_says_why_not_counts_as_unanswered() -> None:
    node = Searcher()
    for place, name in enumerate(NAMES):
        if name not in node.asked:
            continue
        effects = node.hear(name, Browsed(node.asked[name], (), False, Reason.CONGESTED))
        for other in NAMES[3:]:
            for asked in sent(effects, other, Browse):
                node.asked[other] = asked.number
        found = replies(effects)
        assert (found == []) is (place < 5)
    assert found == [GroupsFound((), 6)]


def test_in_a_network_a_group_is_found_though_two_of_three_boards_crashed() -> None:
    world = Audience(30, listed=True, config=FastConfig(capacity=10))
    world.run(5.0)
    assert world.standing.boards == 3
    keepers = [name for name in world.names if world.status(name).postings]
    keepers = [name for name in keepers if name != world.publisher][:2]
    for name in keepers:
        world.crash(name)
    reader = next(name for name in world.names[1:] if name not in keepers)
    found = world.asked(reader, SearchGroups("stock"), 70.0)
    assert isinstance(found, GroupsFound)
    assert len(found.groups) == 1


def test_a_subscription_without_a_group_is_searched_for_again_and_one_with_a_group_is_not() -> None:
    node = FastNode("far")
    for name in NAMES:
        node.up(name)
    contacts = tuple(Contact(known_identity(name).peer, HINTS) for name in NAMES)

    def search(number: int, text: str, *found: Posting) -> Said:
        key = attribute_key(text)
        assert node.ask(JoinGroups(number, text)) == [Locate(key)]
        effects = node.find(key, *contacts)
        told: Said = []
        for name in NAMES:
            for browse in sent(effects, name, Browse):
                told += node.hear(name, Browsed(browse.number, found, False, None))
        return told

    (enrol,) = sent(search(1, "stock", posting("p")), "p", Enrol) or sent(node.up("p"), "p", Enrol)
    node.hear("p", Enrolled(enrol.number, None))
    search(2, "gold")
    assert [each for each in node.fire(IdleDue()) if isinstance(each, Locate)] == [
        Locate(attribute_key("gold"))
    ]
    assert not [each for each in node.fire(IdleDue()) if isinstance(each, Locate)], "that search goes on"
