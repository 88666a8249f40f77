"""What was tracked for a rendezvous that is gone is handed to the next, once, and to it alone."""

from __future__ import annotations

from tests.content.directories import Known
from tests.content.one_event import event

from linnet.content.attribute_keys import attribute_key, distance
from linnet.content.branch_ledger import Lately, Successions, WentBy
from linnet.content.config import ContentConfig
from linnet.content.messages import LOGGED, Log, Logged, Tracked
from linnet.content.rendezvous import Claims
from linnet.content.routes import Reach
from linnet.core.effects import Send
from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox

HEIR, LEADER, OURS = sorted(
    (PeerId(bytes([number]) * 32) for number in range(1, 4)),
    key=lambda peer: distance(peer, attribute_key("stock")),
)
PASSING = event()
WAY = (PASSING.id, "stock")
HANDED = [Log("stock", PASSING.unit, PASSING.card, 2), Logged((), (Tracked(*WAY),))]


class Node:
    """One that tracks events of a leader."""

    def __init__(self) -> None:
        config = ContentConfig()
        self.out = Outbox()
        self.reach, self.lately = Reach(config, self.out), Lately(config)
        self.claims = Claims(config, Known(), self.reach, self.out)
        self.successions = Successions(OURS, self.reach, self.claims, self.lately)
        for peer in (HEIR, LEADER):
            self.reach.handle_link_up(peer)
        self.tracks(WAY)

    def tracks(self, way: tuple[EventId, str]) -> None:
        self.lately.finished_elsewhere(WentBy(0.0, way, PASSING, 2, LEADER))

    def claimed(self, peer: PeerId, now: float = 1.0) -> list[object]:
        self.claims.handle_claim(peer, "stock")
        self.out.clear()
        self.successions.hand_over("stock", now)
        return [each.message for each in self.out.take() if isinstance(each, Send)]

    def gone(self, peer: PeerId) -> list[object]:
        self.reach.handle_link_down(peer, Reason.CRASHED)
        self.out.clear()
        self.successions.handle_link_down(peer, 1.0)
        return [each.message for each in self.out.take() if isinstance(each, Send)]


def test_the_next_is_handed_what_was_tracked_once() -> None:
    node = Node()
    assert node.gone(LEADER) == [], "nobody follows it yet"
    assert node.claimed(HEIR) == HANDED
    assert node.claimed(HEIR) == []
    node.successions.tidy()
    assert node.claimed(HEIR) == []


def test_while_the_one_before_is_there_it_hands_on_itself() -> None:
    node = Node()
    assert node.claimed(HEIR) == []
    assert node.gone(LEADER) == HANDED, "it is gone only now, or it is only noticed now"


def test_a_rendezvous_that_is_back_without_its_memory_is_handed_what_it_led() -> None:
    node = Node()
    assert node.claimed(LEADER) == HANDED
    assert node.gone(LEADER) == []
    node.reach.handle_link_up(LEADER)
    assert node.claimed(LEADER) == HANDED, "and once more, since it was gone once more"


def test_what_is_too_old_is_not_handed_on() -> None:
    node = Node()
    node.gone(LEADER)
    assert node.claimed(HEIR, now=30.0) == []


def test_the_end_of_many_is_told_in_parts() -> None:
    node = Node()
    for number in range(LOGGED):
        node.tracks((EventId(number.to_bytes(32, "big")), "stock"))
    node.gone(LEADER)
    ends = [len(each.finished) for each in node.claimed(HEIR) if isinstance(each, Logged)]
    assert ends == [LOGGED, 1]
