"""Catching up with another member: what is asked for, when it ends, and what is left to another."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from tests.driven import Driven
from tests.rooms.chronicle import Chronicle, person

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.causal_graph import Dag
from linnet.delivery.messages import Beyond, Bound, Further, Range, Reconcile
from linnet.delivery.set_reconciliation import END, SortedIds
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.config import RoomsConfig
from linnet.rooms.guests import Guest
from linnet.rooms.head_sync import HeadSync, SyncDue
from linnet.rooms.messages import AskControl
from linnet.trace.records import Kind, Record

PATIENCE = 5.0


def event_id(name: str | int) -> EventId:
    return EventId(sha256(str(name).encode()).digest())


class Side:
    """What one of two has, and how it catches up."""

    def __init__(self, name: str = "us", other: str = "bob") -> None:
        self.chronicle = Chronicle("us")
        self.room = self.chronicle.room
        self.peer, self.other = person(name).peer, person(other).peer
        self.control = ControlDag(self.chronicle.create)
        self.dag, self.ids = Dag(), SortedIds()
        config = RoomsConfig(sync_timeout=PATIENCE)
        self.sync = Driven(
            lambda out: HeadSync(self.room, self.peer, config, self.control, self.dag, self.ids, out)
        )
        self.tick = SyncDue(self.room, self.other)
        self.root = EventId(self.room)
        self.know(self.root)

    def know(self, event: EventId, *refs: EventId, shown: bool = True) -> EventId:
        height = 1 if refs else 0
        self.dag.add(event, height, refs, shown)
        self.ids.add(height, event)
        return event

    def guest(
        self, *heads: EventId, events: int = 1, control: tuple[EventId, ...] = (), relay: bool = False
    ) -> Guest:
        guest = Guest(person("bob").card, relay)
        guest.heads, guest.events, guest.control = heads, events, control
        return guest

    def begin(self, guest: Guest) -> int:
        """The number of the first question of a walk."""
        asked = self.sync.compare(self.other, guest)[0]
        assert isinstance(asked, Send)
        assert isinstance(asked.message, Beyond)
        return asked.message.request

    def walked(self, request: int, guest: Guest, *unknown: EventId, more: bool = False) -> list[Any]:
        effects: list[Any] = self.sync.handle_further(
            self.other, self.page(request, *unknown, more=more), guest
        )
        return effects

    def reconcile(
        self, peer: PeerId, message: Reconcile, guest: Guest
    ) -> tuple[list[Any], tuple[EventId, ...]]:
        lacking = self.sync.handle_reconcile(peer, message, guest)
        return self.sync.out.take(), lacking

    def page(self, request: int, *unknown: EventId, more: bool = False) -> Further:
        return Further(self.room, request, (), (), more, unknown)

    def timer(self) -> SetTimer[SyncDue]:
        return SetTimer(PATIENCE, self.tick)


def test_of_who_has_nothing_that_we_lack_nothing_is_asked() -> None:
    us = Side()
    assert us.sync.compare(us.other, us.guest(us.root)) == []
    us.dag.settle(event_id("refused here"), 1)
    assert us.sync.compare(us.other, us.guest(event_id("refused here"))) == []
    assert not us.sync._sessions


def test_what_lies_beyond_our_heads_is_asked_for_in_bounded_time() -> None:
    us = Side()
    top = us.know(event_id("top"), us.root)
    effects = us.sync.compare(us.other, us.guest(event_id("theirs")))
    asked = effects[0]
    assert isinstance(asked, Send)
    assert isinstance(asked.message, Beyond)
    assert effects == [Send(us.other, Beyond(us.room, asked.message.request, (top,))), us.timer()]
    assert us.sync._sessions
    assert us.sync.awaits(us.other, asked.message.request)
    assert not us.sync.awaits(us.other, asked.message.request + 1)
    assert not us.sync.awaits(us.peer, asked.message.request)


def test_a_walk_goes_on_as_long_as_pages_bring_something() -> None:
    us = Side()
    guest = us.guest(event_id("theirs"), events=9)
    request = us.begin(guest)
    top = us.know(event_id("one more"), us.root)
    asked, timer = us.walked(request, guest, more=True)
    assert isinstance(asked, Send)
    assert isinstance(asked.message, Beyond)
    assert asked.message.heads == (top,)
    assert timer == us.timer()
    # the next one claims that there is more, and brings nothing
    assert us.walked(asked.message.request, guest, more=True) == [CancelTimer(us.tick)]
    assert not us.sync._sessions


def test_a_page_that_nobody_asked_for_moves_nothing() -> None:
    us = Side()
    guest = us.guest(event_id("theirs"))
    assert us.walked(1, guest, more=True) == []
    request = us.begin(guest)
    assert us.walked(request + 1, guest) == []
    assert us.sync.awaits(us.other, request)


def test_heads_that_are_told_meanwhile_are_compared_afterwards() -> None:
    us = Side()
    request = us.begin(us.guest(event_id("theirs")))
    later = us.guest(event_id("theirs"), event_id("later"))
    assert us.sync.compare(us.other, later) == []  # one session at a time with each
    us.know(event_id("theirs"), us.root)
    cancelled, asked, timer = us.walked(request, later)
    assert cancelled == CancelTimer(us.tick)
    assert isinstance(asked, Send)
    assert isinstance(asked.message, Beyond)
    assert timer == us.timer()
    assert us.walked(asked.message.request, later) == [CancelTimer(us.tick)]  # and not for ever
    assert not us.sync._sessions


def test_a_relay_is_asked_for_control_events_and_for_nothing_else() -> None:
    us = Side()
    relay = us.guest(event_id("theirs"), control=(event_id("control"),), relay=True)
    (asked,) = us.sync.compare(us.other, relay)
    assert isinstance(asked, Send)
    assert isinstance(asked.message, AskControl)
    assert asked.message.heads == us.control.heads
    assert asked.message.card is None
    assert not us.sync._sessions


def test_control_events_that_were_refused_here_are_not_asked_for() -> None:
    us = Side()
    us.control.reject(event_id("refused"))
    assert us.sync.compare(us.other, us.guest(control=(event_id("refused"), *us.control.heads))) == []


def test_heads_are_told_in_bounded_number_shown_ones_first() -> None:
    us = Side()
    for number in range(300):
        us.know(event_id(f"hidden {number}"), us.root, shown=False)
    shown = us.know(event_id("shown"), us.root)
    assert us.sync.heads[0] == shown
    assert len(us.sync.heads) == len(set(us.sync.heads)) == 256


def test_a_session_that_makes_no_progress_is_given_up() -> None:
    us = Side()
    guest = us.guest(event_id("theirs"))
    request = us.begin(guest)
    assert us.sync.handle_timeout(us.other) == [
        Record(Kind.DROPPED, us.room, peer=us.other, reason=Reason.TIMEOUT, note="synchronisation")
    ]
    assert not us.sync._sessions
    assert us.sync.handle_timeout(us.other) == []
    assert us.walked(request, guest) == []
    us.begin(guest)  # the next greeting begins another


def test_a_session_ends_with_its_link_and_with_the_room() -> None:
    us = Side()
    us.begin(us.guest(event_id("theirs")))
    assert us.sync.handle_link_down(us.other) == [CancelTimer(us.tick)]
    assert us.sync.handle_link_down(us.other) == []
    us.begin(us.guest(event_id("theirs")))
    assert us.sync.stop() == [CancelTimer(us.tick)]
    assert not us.sync._sessions


def apart(one: Side, other: Side, both: int = 400, each: int = 3) -> tuple[set[EventId], set[EventId]]:
    """Two who have much in common, and a little each that the other lacks."""
    for number in range(both):
        for side in (one, other):
            side.know(event_id(f"both {number}"), side.root)
    ours = {one.know(event_id(f"ours {number}"), one.root) for number in range(each)}
    theirs = {other.know(event_id(f"theirs {number}"), other.root) for number in range(each)}
    return ours, theirs


def reconcile(us: Side, head: str = "theirs 0") -> Reconcile:
    """The walk of one of two who have gone on apart, up to where it becomes a reconciliation."""
    guest = us.guest(event_id(head), events=403)
    request = us.begin(guest)
    # the other lacks all of our heads, so a walk would bring everything once more
    message, timer = us.walked(request, guest, *us.sync.heads, more=True)
    assert isinstance(message, Send)
    assert isinstance(message.message, Reconcile)
    assert timer == us.timer()
    return message.message


def test_two_who_have_gone_on_apart_find_what_either_lacks() -> None:
    us, bob = Side(), Side("bob", "us")
    ours, theirs = apart(us, bob)
    found: dict[Side, set[EventId]] = {us: set(), bob: set()}
    message: Reconcile | None = reconcile(us)
    turn, waiting = bob, us
    for _ in range(20):
        if message is None:
            break
        effects, lacking = turn.reconcile(turn.other, message, turn.guest())
        found[turn] |= set(lacking)
        sends = [each.message for each in effects if isinstance(each, Send)]
        message = sends[0] if sends and isinstance(sends[0], Reconcile) else None
        if turn is us and us.sync._sessions:
            assert us.timer() in effects  # progress pushes its end on
        turn, waiting = waiting, turn
    assert message is None
    assert found == {us: theirs, bob: ours}
    assert not us.sync._sessions
    assert not bob.sync._sessions


def test_an_answer_to_a_session_that_is_over_begins_none() -> None:
    us, bob = Side(), Side("bob", "us")
    apart(us, bob)
    effects, _ = bob.reconcile(bob.other, reconcile(us), bob.guest())
    (answer,) = (each.message for each in effects if isinstance(each, Send))
    assert isinstance(answer, Reconcile)
    us.sync.handle_timeout(us.other)
    assert us.reconcile(us.other, answer, us.guest()) == (
        [Record(Kind.REJECTED, us.room, peer=us.other, reason=Reason.STALE, note="reconciliation")],
        (),
    )


def test_both_may_begin_a_reconciliation_at_the_same_time() -> None:
    us, bob = Side(), Side("bob", "us")
    apart(us, bob)
    mine, yours = reconcile(us), reconcile(bob, "ours 0")
    assert mine.session % 2 != yours.session % 2
    for side, message in ((us, yours), (bob, mine)):
        effects, _ = side.reconcile(side.other, message, side.guest())
        (answer,) = (each.message for each in effects if isinstance(each, Send))
        assert isinstance(answer, Reconcile)
        assert answer.session == message.session
        assert side.sync._sessions  # its own goes on


def test_who_breaks_the_rules_of_reconciliation_ends_it() -> None:
    us, bob = Side(), Side("bob", "us")
    apart(us, bob)
    begun = reconcile(us)
    backwards = Range(Bound(5, us.root), None, (), True), Range(Bound(4, us.root), None, (), True)
    effects, lacking = us.reconcile(us.other, Reconcile(us.room, begun.session, backwards), us.guest())
    assert effects == [
        Record(Kind.REJECTED, us.room, peer=us.other, reason=Reason.MALFORMED, note="reconciliation"),
        CancelTimer(us.tick),
    ]
    assert lacking == ()
    assert not us.sync._sessions


def test_what_waits_for_nobody_here_is_not_fetched() -> None:
    """What the other lists and we have refused is not asked for again."""
    us = Side()
    us.dag.settle(event_id("refused"), 1)
    theirs = 2 * 7 + (us.other > us.peer)
    listed = (event_id("refused"), event_id("news"))
    message = Reconcile(us.room, theirs, (Range(Bound(*END), None, listed, False),))
    _, lacking = us.reconcile(us.other, message, us.guest())
    assert lacking == (event_id("news"),)
