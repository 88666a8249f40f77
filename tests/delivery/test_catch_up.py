"""Catching up: pages, the seam between history and what comes, and every way in which it can fail."""

from __future__ import annotations

import pytest
from tests.delivery.voices import TOPIC, Voice, asked

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.catch_up import MOST_ASKED, CatchUp, HistoryDue
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import CaughtUp, Item, Missed
from linnet.delivery.messages import ChainPlace, History, HistoryPage, Kept
from linnet.event.event import Verified
from linnet.machine.outbox import Effect, Outbox

S1, S2, OWN = PeerId(b"1" * 32), PeerId(b"2" * 32), PeerId(b"0" * 32)
C1, C2 = Contact(S1, ("tls://s:1",)), Contact(S2, ("tls://s:2",))
CONFIG = DeliveryConfig(history_timeout=5.0, buffer_items=4)
TIMER = HistoryDue(TOPIC, 9)
PURPOSE = f"history {TOPIC.hex()[:16]} 9"
TIMEOUT: Effect = SetTimer(5.0, TIMER)
SOON: Effect = SetTimer(0.5, TIMER)
DONE: list[Effect] = [CancelTimer(TIMER), Release(S1, PURPOSE)]


class Scene:
    """A subscription that wants all of the history of Ann's chain."""

    def __init__(self, *linked: PeerId, since: float = 0.0) -> None:
        self.links = dict.fromkeys(linked)
        self.out = Outbox()
        self.catchup = CatchUp(9, TOPIC, since, CONFIG, self.links, self.out)
        self.ann = Voice()

    def page(
        self, *units: Verified, after: int, done: bool, room: bool = True
    ) -> tuple[list[Effect], list[Item]]:
        page = answer(units, after, done)
        assert self.catchup.is_answer(S1, page)
        return self.take(page, *units, room=room)

    def take(self, page: HistoryPage, *units: Verified, room: bool = True) -> tuple[list[Effect], list[Item]]:
        """What is asked for because of a page, and what is handed over."""
        self.out.clear()
        shown = self.catchup.take_page(page, units, room)
        return self.out.take(), shown

    def fire(self) -> tuple[list[Effect], list[Item]]:
        """What is asked for when time is up, and what is handed over."""
        self.out.clear()
        shown = self.catchup.handle_timeout()
        return self.out.take(), shown


def answer(
    units: tuple[Verified, ...],
    after: int,
    done: bool,
    *,
    request: int = 9,
    evicted: bool = False,
    reason: Reason | None = None,
) -> HistoryPage:
    raw = tuple(unit.unit for unit in units)
    return HistoryPage(TOPIC, request, raw, (), after, done, 2500, evicted, reason)


def ask(peer: PeerId, after: int | None = None, since_ms: int = 0) -> Effect:
    return Send(peer, History(TOPIC, 9, after, since_ms))


def items(*units: Verified) -> list[Item]:
    return [event for unit in units for event in unit.events]


CAUGHT_UP = CaughtUp(2.5, False, None)


def test_pages_are_asked_for_until_there_are_no_more() -> None:
    scene = Scene(S1)
    one, two = scene.ann.say(b"a", b"b"), scene.ann.say(b"c")
    assert asked(scene.out, scene.catchup.begin, [C1]) == [Hold(S1, C1.hints, PURPOSE), ask(S1), TIMEOUT]
    assert scene.page(one, after=7, done=False) == ([ask(S1, 7), TIMEOUT], items(one))
    assert scene.page(two, after=8, done=True) == (DONE, [*items(two), CAUGHT_UP])
    assert scene.catchup.over


def test_history_from_a_time_says_so() -> None:
    scene = Scene(S1, since=12.5)
    assert ask(S1, None, 12_500) in asked(scene.out, scene.catchup.begin, [C1])


def test_what_comes_live_meanwhile_follows_without_seam() -> None:
    scene = Scene(S1)
    units = scene.ann.units(4)
    scene.catchup.begin([C1])
    for unit in units[1:]:
        scene.catchup.hold_back(unit)
    effects, shown = scene.page(*units[:3], after=3, done=True)
    assert effects == DONE
    assert shown == [*items(*units), CAUGHT_UP]
    assert scene.catchup.reached == {scene.ann.key: 4}


def test_the_part_of_a_live_burst_that_history_had_is_left_out() -> None:
    scene = Scene(S1)
    twin = Voice()
    one, two = scene.ann.say(b"0"), scene.ann.say(b"1")
    burst = twin.say(b"0", b"1", b"2")
    scene.catchup.begin([C1])
    scene.catchup.hold_back(burst)
    assert scene.page(one, two, after=2, done=True) == (
        DONE,
        [*items(one, two), burst.events[2], CAUGHT_UP],
    )


def test_a_hole_at_the_seam_is_asked_for_again_then_named() -> None:
    scene = Scene(S1)
    units = scene.ann.units(4)
    scene.catchup.begin([C1])
    scene.catchup.hold_back(units[3])
    assert scene.page(units[0], after=1, done=True) == ([SOON], items(units[0]))
    for _ in range(4):
        assert scene.fire() == ([ask(S1, 1), TIMEOUT], [])
        assert scene.page(after=1, done=True) == ([SOON], [])
    scene.fire()
    author, device = scene.ann.identity.author, scene.ann.identity.card.device
    hole = Missed(TOPIC, author, device, 1, 2, Reason.NOT_HELD)
    assert scene.page(after=1, done=True) == (DONE, [hole, *items(units[3]), CAUGHT_UP])


def test_a_hole_at_the_seam_that_closes_is_no_hole() -> None:
    scene = Scene(S1)
    units = scene.ann.units(4)
    scene.catchup.begin([C1])
    scene.catchup.hold_back(units[3])
    scene.page(units[0], after=1, done=True)
    scene.fire()
    assert scene.page(units[1], units[2], after=3, done=True) == (
        DONE,
        [*items(*units[1:]), CAUGHT_UP],
    )


def test_live_events_out_of_order_are_not_lost_at_the_seam() -> None:
    """For a subscription that did not ask for order."""
    scene = Scene(S1)
    units = scene.ann.units(4)
    scene.catchup.begin([C1])
    for number in (3, 1, 2):
        scene.catchup.hold_back(units[number])
    assert scene.page(units[0], after=1, done=True) == (DONE, [*items(*units), CAUGHT_UP])


def test_too_much_that_waits_is_fetched_from_history_instead() -> None:
    scene = Scene(S1)
    units = scene.ann.units(7)
    scene.catchup.begin([C1])
    for unit in units[1:6]:
        scene.catchup.hold_back(unit)
    scene.catchup.hold_back(units[6])
    assert scene.page(units[0], after=1, done=True) == ([SOON], items(units[0]))
    assert scene.fire() == ([ask(S1, 1), TIMEOUT], [])
    assert scene.page(*units[1:6], after=6, done=True) == (DONE, [*items(*units[1:]), CAUGHT_UP])


def test_without_room_the_next_page_waits() -> None:
    scene = Scene(S1)
    one, two = scene.ann.units(2)
    scene.catchup.begin([C1])
    assert scene.page(one, after=1, done=False, room=False) == ([CancelTimer(TIMER)], items(one))
    assert asked(scene.out, scene.catchup.handle_link_up, S1) == [], "not before there is room"
    assert asked(scene.out, scene.catchup.resume) == [ask(S1, 1), TIMEOUT]
    assert asked(scene.out, scene.catchup.resume) == []
    assert scene.page(two, after=2, done=True) == (DONE, [*items(two), CAUGHT_UP])


def test_room_that_comes_while_the_link_is_down_waits_for_it_but_not_for_ever() -> None:
    scene = Scene(S1)
    one = scene.ann.say()
    scene.catchup.begin([C1])
    scene.page(one, after=1, done=False, room=False)
    del scene.links[S1]
    assert asked(scene.out, scene.catchup.resume) == [TIMEOUT]
    scene.links[S1] = None
    assert asked(scene.out, scene.catchup.handle_link_up, S1) == [ask(S1, 1), TIMEOUT]


def test_a_storage_node_that_is_not_linked_is_dialled_first() -> None:
    scene = Scene()
    assert asked(scene.out, scene.catchup.begin, [C1]) == [Hold(S1, C1.hints, PURPOSE), TIMEOUT]
    assert asked(scene.out, scene.catchup.handle_link_up, S2) == []
    scene.links[S1] = None
    assert asked(scene.out, scene.catchup.handle_link_up, S1) == [ask(S1), TIMEOUT]


def test_who_does_not_answer_is_passed_over_and_nothing_comes_twice() -> None:
    scene = Scene(S1, S2)
    one, two = scene.ann.units(2)
    scene.catchup.begin([C1, C2])
    scene.page(one, after=7, done=False)
    assert scene.fire() == (
        [Release(S1, PURPOSE), Hold(S2, C2.hints, PURPOSE), ask(S2), TIMEOUT],
        [],
    )
    page = answer((one, two), 2, True)
    assert not scene.catchup.is_answer(S1, page)
    assert scene.catchup.is_answer(S2, page)
    assert scene.take(page, one, two) == (
        [CancelTimer(TIMER), Release(S2, PURPOSE)],
        [*items(two), CAUGHT_UP],
    )


def test_when_nobody_answers_it_goes_live_and_says_why() -> None:
    scene = Scene(S1)
    unit = scene.ann.say()
    scene.catchup.begin([C1])
    scene.catchup.hold_back(unit)
    assert scene.fire() == (
        [Release(S1, PURPOSE), CancelTimer(TIMER)],
        [*items(unit), CaughtUp(None, False, Reason.TIMEOUT)],
    )
    assert scene.catchup.over


def test_storage_that_falls_silent_at_the_seam_does_not_hold_it_up_for_ever() -> None:
    scene = Scene(S1)
    units = scene.ann.units(3)
    scene.catchup.begin([C1])
    scene.catchup.hold_back(units[2])
    scene.page(units[0], after=1, done=True)
    assert scene.fire() == ([ask(S1, 1), TIMEOUT], [])
    effects, shown = scene.fire()
    assert effects == [Release(S1, PURPOSE), CancelTimer(TIMER)]
    assert shown[-1] == CaughtUp(2.5, False, Reason.TIMEOUT)
    assert scene.catchup.over


def test_without_storage_it_goes_live_after_a_while() -> None:
    scene = Scene()
    assert asked(scene.out, scene.catchup.begin, []) == [TIMEOUT]
    assert scene.fire() == ([CancelTimer(TIMER)], [CaughtUp(None, False, Reason.NO_STORAGE)])


def test_storage_that_comes_to_be_known_later_will_do() -> None:
    scene = Scene(S1)
    scene.catchup.begin([])
    assert asked(scene.out, scene.catchup.set_storage, [C1]) == [
        Hold(S1, C1.hints, PURPOSE),
        ask(S1),
        TIMEOUT,
    ]
    assert asked(scene.out, scene.catchup.set_storage, [C1, C2]) == []


def test_a_node_that_keeps_nothing_is_passed_over() -> None:
    scene = Scene(S1, S2)
    scene.catchup.begin([C1, C2])
    page = answer((), 0, True, reason=Reason.NOT_HELD)
    assert scene.take(page) == (
        [Release(S1, PURPOSE), Hold(S2, C2.hints, PURPOSE), ask(S2), TIMEOUT],
        [],
    )
    _, shown = scene.take(page)
    assert shown == [CaughtUp(2.5, False, Reason.NOT_HELD)]


def test_a_page_that_nobody_asked_for_is_not_wanted() -> None:
    scene = Scene(S1)
    scene.catchup.begin([C1])
    assert not scene.catchup.is_answer(S1, answer((), 0, True, request=8))
    assert not scene.catchup.is_answer(S2, answer((), 0, True))
    scene.page(after=0, done=True)
    assert not scene.catchup.is_answer(S1, answer((), 0, True))


def test_it_says_whether_older_ones_were_evicted() -> None:
    scene = Scene(S1)
    scene.catchup.begin([C1])
    assert scene.take(answer((), 0, True, evicted=True)) == (
        DONE,
        [CaughtUp(2.5, True, None)],
    )


@pytest.mark.parametrize("since", [0.0, 12.5])
def test_our_own_log_is_whole_only_in_what_we_said_ourselves(since: float) -> None:
    """Others may have said more since then than we were there to hear; storage nodes have it."""
    links, out = {S1: None, OWN: None}, Outbox()
    ann, ben = Voice(), Voice("ben")
    ours, (missed, heard) = ann.units(2), ben.units(2)
    catchup = CatchUp(9, TOPIC, since, CONFIG, links, out, own=OWN, own_chain=ann.key)
    assert ask(OWN, None, int(since * 1000)) in asked(out, catchup.begin, [C1])
    own = answer((ours[0], heard, ours[1]), 3, True)
    assert catchup.is_answer(OWN, own)
    assert catchup.take_page(own, [ours[0], heard, ours[1]], True) == items(*ours)
    assert ask(S1, None, int(since * 1000)) in out.take()
    stored = answer((ours[0], missed, heard), 3, True)
    assert catchup.take_page(stored, [ours[0], missed, heard], True) == [*items(missed, heard), CAUGHT_UP]
    assert catchup.reached == {ann.key: 2, ben.key: 2}


S3 = PeerId(b"3" * 32)
ENDS = f"ends {TOPIC.hex()[:16]} 9"


class Compared(Scene):
    """A subscription that compares storage nodes, all of which are linked and sign what they keep."""

    def __init__(self, *storage: PeerId) -> None:
        super().__init__(*storage, S3)
        keeping = dict.fromkeys((*storage, S3))
        self.catchup = CatchUp(9, TOPIC, 0.0, CONFIG, self.links, self.out, keeping=keeping)
        self.catchup.begin(Contact(peer) for peer in storage)

    def says(self, peer: PeerId, first: int, last: int) -> None:
        card = self.ann.identity.card
        place = ChainPlace(self.ann.identity.author, card.device, first, last, True)
        heads = (EventId(bytes(32)),)
        kept = Kept(TOPIC, peer, bytes(8), 1, 0, 9, 0, True, (place,), heads, None, bytes(64))
        self.catchup.take_kept(peer, kept)

    @property
    def held(self) -> list[PeerId]:
        return [each.peer for each in self.out.take() if isinstance(each, Hold) and each.purpose == ENDS]


def test_a_hole_that_another_storage_node_filled_is_no_hole_any_more() -> None:
    scene = Compared(S1, S2, S3)
    units = scene.ann.units(5)
    scene.says(S1, 0, 4)
    scene.says(S2, 0, 4)
    scene.says(S3, 0, 2)
    assert scene.take(answer((units[3], units[4]), 1, True), units[3], units[4])[1] == []
    assert scene.take(answer(tuple(units), 2, True), *units)[1] == [*items(*units)]
    assert scene.catchup.reached == {scene.ann.key: 5}


def test_storage_nodes_that_come_after_the_comparison_are_not_held_for_it() -> None:
    scene = Compared(S1, S2)
    units = scene.ann.units(5)
    scene.says(S1, 0, 2)
    scene.says(S2, 0, 2)
    scene.catchup.hold_back(units[4])
    scene.take(answer(tuple(units[:3]), 1, True), *units[:3])
    assert not scene.catchup.over, "history is asked once more, for what joins on"
    scene.out.clear()
    scene.catchup.set_storage(Contact(peer) for peer in (S1, S2, S3))
    assert scene.held == []


def test_of_ever_new_storage_nodes_a_subscription_asks_a_bounded_number() -> None:
    peers = [PeerId(number.to_bytes(32, "big")) for number in range(100)]
    scene = Scene()
    scene.catchup.begin(())
    for one, other in zip(peers[::2], peers[1::2], strict=True):
        scene.catchup.set_storage((Contact(one), Contact(other)))
    asked_of = [each.peer for each in scene.out.take() if isinstance(each, Hold) and each.purpose == ENDS]
    assert asked_of == peers[:MOST_ASKED]
