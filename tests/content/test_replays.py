"""Who comes back is sent what went by, and what is heard of only after it came."""

from __future__ import annotations

from collections.abc import Callable

from tests.content.one_event import event

from linnet.content.branch_ledger import Count, WentBy
from linnet.content.config import ContentConfig
from linnet.content.delivery_path import DeliveryPath, Descent
from linnet.content.filter_backup import Copies
from linnet.content.filter_table import FilterTable
from linnet.content.messages import Notice
from linnet.content.passing import Passing
from linnet.content.predicate import read_predicate
from linnet.content.routes import Reach, RouteBook, Station
from linnet.core.effects import Send
from linnet.core.ids import PeerId
from linnet.machine.outbox import Effect, Outbox

OURS, ROUTE, OTHER, LEADER = (PeerId(bytes([number]) * 32) for number in range(1, 5))
STOCK = read_predicate("stock")
PASSING = event()


class Node:
    """The way down at one node, with two routes that want stocks."""

    def __init__(self) -> None:
        config, self.table = ContentConfig(), FilterTable()
        self.out = out = Outbox()
        reach = Reach(config, out)
        for route in (ROUTE, OTHER):
            reach.handle_link_up(route)
            self.table.add(route, "stock", STOCK)
        book, copies = RouteBook(config, reach, out), Copies(config)
        self.notices = DeliveryPath(
            Station(OURS, config, reach, self.table, book, out), copies, lambda *_: Count(1, 0)
        )

    def after(self, act: Callable[..., None], *inputs: object) -> list[Effect]:
        """What comes of an input."""
        act(*inputs)
        return self.out.take()


def tracked(passing: Passing = PASSING) -> WentBy:
    return WentBy(0.0, (passing.id, "stock"), passing, 1, LEADER)


def told(effects: list[object]) -> list[PeerId]:
    return [each.peer for each in effects if isinstance(each, Send) and isinstance(each.message, Notice)]


def test_who_comes_back_is_sent_what_went_down_here_or_was_tracked_here() -> None:
    node, pear = Node(), event("pear/stock")
    node.after(node.notices.send_down, "stock", PASSING, Descent(0), 0.0)
    assert node.after(node.notices.replay_tracked, tracked(pear), 0.0) == [], "nobody is back"
    assert told([*node.after(node.notices.replay, ROUTE, "stock", STOCK, 1.0)]) == [ROUTE, ROUTE]
    assert told([*node.after(node.notices.replay, OTHER, "stock", read_predicate("pear/stock"), 1.0)]) == [
        OTHER
    ]


def test_what_is_heard_of_later_goes_to_who_is_back_alone_and_once() -> None:
    node = Node()
    assert node.after(node.notices.replay, ROUTE, "stock", STOCK, 0.0) == []
    assert told([*node.after(node.notices.replay_tracked, tracked(), 1.0)]) == [ROUTE]
    assert node.after(node.notices.replay_tracked, tracked(), 1.0) == []
    assert node.after(node.notices.replay_tracked, tracked(event("stock/apple")), 31.0) == [], (
        "it came back too long ago"
    )


def test_what_went_down_here_is_not_sent_again_because_it_was_tracked_too() -> None:
    node = Node()
    node.after(node.notices.replay, ROUTE, "stock", STOCK, 0.0)
    assert told([*node.after(node.notices.send_down, "stock", PASSING, Descent(0), 0.0)]) == [ROUTE, OTHER]
    assert node.after(node.notices.replay_tracked, tracked(), 1.0) == []
