"""The use of relays: which, what if they fail, and that nothing that one keeps is ever missed."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.driven import Driven
from tests.rooms.relay_voices import (
    OURS,
    PURPOSE,
    ROOM,
    SmallRelay,
    contact,
    cursor,
    event_id,
    page,
    parcel,
    relay_id,
    resync_record,
    tick,
    unit,
)

from linnet.core.effects import AfterCommit, CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.rooms.commands import RelayStatus
from linnet.rooms.config import RelayChoice, RoomsConfig
from linnet.rooms.messages import RelayInfo, RelayOutcome, RelaySend, RelayTaken, Resync, ResyncPage
from linnet.rooms.relay_client.relay_client import (
    LingerDue,
    RelayChoiceDue,
    RelayClient,
    RelayLinkDue,
    RelayNotice,
    RotationDue,
)
from linnet.rooms.relay_client.relay_session import (
    BatchDue,
    Behind,
    Forgot,
    GiveMissing,
    GiveUnsent,
    Kept,
    LookDue,
    NotKept,
    Page,
    PageDue,
)
from linnet.rooms.relay_client.roster import RelaySelection
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

CONFIG = RoomsConfig(relay_timeout=5.0, relay_retry=15.0, page_events=10)
SEED = 1
ORDER = RelaySelection(ROOM, RelayChoice.RANDOM, SEED).order([relay_id(number) for number in range(3)], 0, {})
A, B, C = ORDER
"""As this seed prefers them."""
ALL = [contact(relay) for relay in ORDER]


def fire(use: Driven, timer: Timer, now: float) -> list[Any]:
    effects: list[Any]
    match timer:
        case RotationDue():
            effects = use.rotate(now)
        case RelayChoiceDue():
            effects = use.choose(now)
        case LookDue(_, relay):
            effects = use.look(relay)
        case LingerDue(_, relay):
            effects = use.let_go(relay)
        case RelayLinkDue(_, relay):
            effects = use.handle_lasting_loss(relay, now)
        case PageDue(_, relay) | BatchDue(_, relay):
            effects = use.handle_silence(relay, now)
    return effects


class Scene:
    """A member, and whoever it has links to."""

    def __init__(self, config: RoomsConfig = CONFIG, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.links: dict[PeerId, None] = {}
        self.use = Driven(
            lambda out: RelayClient(ROOM, OURS, config, self.store.cells, SEED, self.links, out)
        )

    def link(self, peer: PeerId, now: float = 0.0) -> list[Any]:
        self.links[peer] = None
        effects: list[Any] = self.use.handle_link_up(peer, now)
        return effects

    def unlink(self, peer: PeerId, now: float = 0.0) -> list[Any]:
        del self.links[peer]
        effects: list[Any] = self.use.handle_link_down(peer, now)
        return effects

    def serve(self, peer: PeerId, request: int = 1, now: float = 0.0) -> list[Any]:
        """An empty page, taken in."""
        effects: list[Any] = self.use.handle_page(peer, page(request, (), cursor(0)), now)
        for effect in list(effects):
            if isinstance(effect, Page):
                effects += self.use.confirm_page(effect, ())
        return effects


def begun(relay: PeerId, request: int = 1) -> list[Any]:
    return [
        resync_record(relay, "resync"),
        AfterCommit((Send(relay, Resync(ROOM, request, None, 10, follow=True, signed=True)),)),
        CancelTimer(tick("look", relay)),
        SetTimer(5.0, tick("answer", relay)),
        GiveUnsent(relay, 10),
    ]


def ended(relay: PeerId) -> list[Any]:
    return [CancelTimer(tick(what, relay)) for what in ("answer", "look", "sent")]


def given_up(relay: PeerId) -> list[Any]:
    return [*ended(relay), CancelTimer(tick("link", relay)), Release(relay, PURPOSE)]


def hold(relay: PeerId) -> Hold:
    return Hold(relay, contact(relay).hints, PURPOSE)


def taken_up(relay: PeerId) -> list[Any]:
    chosen = Record(Kind.CONTROL, ROOM, peer=relay, note="relay chosen")
    return [chosen, hold(relay), SetTimer(5.0, tick("link", relay))]


def passed_over(relay: PeerId, reason: Reason) -> Record:
    return Record(Kind.CONTROL, ROOM, peer=relay, reason=reason, note="relay passed over")


def retry(seconds: float) -> SetTimer[Timer]:
    return SetTimer(seconds, tick("retry"))


def test_the_chosen_relay_is_held_and_read_once_its_link_is_open() -> None:
    scene = Scene()
    assert scene.use.set_relays(ALL, 0.0) == taken_up(A)
    assert scene.use.set_relays(list(reversed(ALL)), 0.0) == []
    assert scene.link(A) == [CancelTimer(tick("link", A)), *begun(A)]
    assert scene.link(B) == []
    assert (scene.use.chosen, scene.use.up) == ((A,), (A,))


def test_without_relays_or_with_none_wanted_nothing_happens() -> None:
    scene = Scene()
    assert scene.use.set_relays([contact(OURS)], 0.0) == []
    assert scene.use.send([parcel(1)]) == []
    none = Scene(RoomsConfig(relays_at_once=0))
    assert none.use.set_relays(ALL, 0.0) == []
    assert none.link(A) == []
    assert none.use.chosen == ()


def test_several_can_be_used_at_once_and_each_is_sent_what_is_said() -> None:
    scene = Scene(RoomsConfig(relays_at_once=2, page_events=10))
    assert scene.use.set_relays(ALL, 0.0) == [*taken_up(A), *taken_up(B)]
    scene.link(A)
    scene.link(B)
    sends = [effect.effects[0] for effect in scene.use.send([parcel(1)]) if isinstance(effect, AfterCommit)]
    sends = [each for each in sends if isinstance(each, Send)]
    batch = RelaySend(ROOM, 1, (unit(1),), (), signed=True)
    assert sends == [Send(A, batch), Send(B, batch)]


def test_who_cannot_be_dialled_is_passed_over_and_tried_again_later() -> None:
    scene = Scene()
    scene.use.set_relays(ALL, 0.0)
    refused = Reason.CONNECTION_REFUSED
    effects = scene.use.handle_dial_failed(A, refused, 1.0)
    assert effects == [*given_up(A), passed_over(A, refused), *taken_up(B), retry(15.0)]
    scene.link(B, 2.0)
    scene.serve(B, now=2.0)
    # The second time is not worth a record, and B is used all the while.
    assert fire(scene.use, tick("retry"), 16.0) == [hold(A), SetTimer(5.0, tick("link", A))]
    assert list(scene.use.chosen) == [B, A]
    assert scene.use.handle_dial_failed(A, refused, 17.0) == [*given_up(A), retry(15.0)]
    assert scene.use.handle_dial_failed(A, refused, 17.0) == []
    assert scene.use.chosen == (B,)


def retries(scene: Scene, relay: PeerId, reason: Reason, now: float) -> list[float]:
    """Let a relay refuse whenever it is asked; return the pauses before it was asked again."""
    pauses = []
    for _ in range(8):
        scene.use.handle_refusal(relay, reason, now)
        scene.unlink(relay, now)
        timers = [each.delay for each in scene.use.choose(now) if isinstance(each, SetTimer)]
        pauses.append(timers[0])
        now += timers[0]
        fire(scene.use, tick("retry"), now)
        scene.link(relay, now)
    return pauses


def test_a_relay_that_goes_on_refusing_is_asked_ever_less() -> None:
    scene = Scene()
    scene.use.set_relays([contact(A)], 0.0)
    scene.link(A)
    refused = Reason.CARD_REVOKED
    assert retries(scene, A, refused, 0.0) == [15.0, 30.0, 60.0, 120.0, 240.0, 240.0, 240.0, 240.0]
    scene.serve(A, request=9, now=2000.0)
    assert retries(scene, A, refused, 2000.0)[:2] == [15.0, 30.0]


@pytest.mark.parametrize(
    "reason",
    [Reason.UNKNOWN_ROOM, Reason.NOT_A_MEMBER, Reason.NOT_A_RELAY, Reason.BANNED, Reason.NOT_INVITED],
)
def test_a_relay_that_refused_by_the_state_is_asked_once_that_changes(reason: Reason) -> None:
    scene = Scene()
    scene.use.set_relays([contact(A)], 0.0)
    scene.link(A)
    scene.serve(A)
    scene.use.handle_refusal(A, reason, 0.0)
    assert scene.use.chosen == ()
    scene.use.set_relays([contact(A)], 1.0)
    assert scene.use.chosen == (A,)


def test_a_link_of_another_cause_brings_no_question_before_its_time() -> None:
    scene = Scene()
    scene.use.set_relays([contact(A)], 0.0)
    scene.link(A)
    scene.use.handle_refusal(A, Reason.CARD_REVOKED, 0.0)
    scene.unlink(A, 0.0)
    assert scene.link(A, 1.0) == [retry(14.0)]
    assert scene.use.chosen == ()


def test_a_refused_relay_is_asked_again_though_the_clock_was_put_back() -> None:
    scene = Scene()
    scene.use.set_relays([contact(A)], 1e9)
    scene.link(A, 1e9)
    scene.use.handle_refusal(A, Reason.CARD_REVOKED, 1e9)
    assert scene.use.chosen == ()
    scene.use.choose(1e6)
    assert scene.use.chosen == (A,)


def test_the_preferred_relay_is_returned_to_once_it_answers() -> None:
    scene = Scene()
    scene.use.set_relays(ALL, 0.0)
    scene.use.handle_dial_failed(A, Reason.UNREACHABLE, 0.0)
    scene.link(B)
    scene.serve(B)
    fire(scene.use, tick("retry"), 15.0)
    scene.link(A, 15.5)
    assert scene.use.up == (B, A)
    answered = scene.use.handle_page(A, page(1, (), cursor(0)), 16.0)
    assert answered[-len(given_up(B)) :] == given_up(B)
    assert scene.use.chosen == (A,)


def test_all_relays_down_leaves_none_and_whichever_answers_first_is_used() -> None:
    scene = Scene()
    scene.use.set_relays(ALL, 0.0)
    for relay, now in ((A, 0.0), (B, 1.0), (C, 2.0)):
        scene.use.handle_dial_failed(relay, Reason.UNREACHABLE, now)
    assert scene.use.chosen == ()
    assert scene.use.send([parcel(1)]) == []
    assert fire(scene.use, tick("retry"), 15.0) == [hold(A), SetTimer(5.0, tick("link", A)), retry(1.0)]
    scene.use.handle_dial_failed(A, Reason.UNREACHABLE, 15.5)
    # C opened a link to us by itself.
    effects = scene.link(C, 15.7)
    assert effects == [hold(C), *begun(C), retry(1.0 + 15.0 - 15.7)]
    assert scene.use.up == (C,)


def test_a_lost_link_is_waited_for_a_little_and_then_the_next_is_used() -> None:
    scene = Scene()
    scene.use.set_relays(ALL, 0.0)
    scene.link(A)
    scene.serve(A)
    assert scene.unlink(A, 1.0) == [*ended(A), SetTimer(5.0, tick("link", A))]
    asked = AfterCommit((Send(A, Resync(ROOM, 2, cursor(0), 10, follow=True, signed=True)),))
    assert scene.link(A, 2.0)[1:] == [resync_record(A, "resync"), asked, *begun(A)[2:]]
    assert fire(scene.use, tick("link", A), 6.0) == []
    scene.unlink(A, 7.0)
    effects = fire(scene.use, tick("link", A), 12.0)
    assert effects == [*given_up(A), passed_over(A, Reason.TIMEOUT), *taken_up(B), retry(15.0)]


def test_who_does_not_answer_in_time_is_passed_over() -> None:
    for what in ("answer", "sent"):
        scene = Scene()
        scene.use.set_relays(ALL, 0.0)
        scene.link(A)
        effects = fire(scene.use, tick(what, A), 5.0)
        assert effects == [*given_up(A), passed_over(A, Reason.TIMEOUT), *taken_up(B), retry(15.0)]
        assert fire(scene.use, tick(what, A), 6.0) == []


def test_who_refuses_is_passed_over_and_the_reason_is_kept_for_people() -> None:
    scene = Scene()
    scene.use.set_relays(ALL, 0.0)
    scene.link(A)
    effects = scene.use.handle_page(A, page(1, reason=Reason.UNKNOWN_ROOM), 1.0)
    assert passed_over(A, Reason.UNKNOWN_ROOM) in effects
    assert resync_record(A, "resync-response", 0, Reason.UNKNOWN_ROOM) in effects
    scene.link(B)
    scene.use.handle_refusal(B, Reason.BANNED, 2.0)
    assert scene.use.chosen == (C,)
    assert [status.failure for status in scene.use.status()] == [Reason.UNKNOWN_ROOM, Reason.BANNED, None]


def test_a_relay_that_does_not_know_us_is_sent_what_it_lacks_and_asked_again() -> None:
    scene = Scene()
    scene.use.set_relays(ALL, 0.0)
    scene.link(A)
    effects = scene.use.handle_page(A, page(1, reason=Reason.NOT_A_MEMBER), 1.0)
    assert effects[-1] == Behind(A, ())
    scene.use.send_to(A, [parcel(1)], 1.0)
    outcome = RelayOutcome(event_id(1), cursor(1), None, ())
    effects = scene.use.handle_taken(A, RelayTaken(ROOM, 1, (outcome,), None), 2.0)
    assert AfterCommit((Send(A, Resync(ROOM, 2, None, 10, follow=True, signed=True)),)) in effects
    scene.serve(A, 2, 2.0)
    assert scene.use.chosen == (A,)


def test_a_relay_that_lacks_nothing_and_refuses_is_passed_over() -> None:
    for told in (True, False):
        scene = Scene()
        scene.use.set_relays(ALL, 0.0)
        scene.link(A)
        scene.use.handle_page(A, page(1, reason=Reason.BANNED), 1.0)
        effects = scene.use.send_to(A, [], 1.0) if told else fire(scene.use, tick("answer", A), 6.0)
        assert passed_over(A, Reason.BANNED) in effects


def test_a_turn_ends_and_the_next_relay_is_used_once_it_answers() -> None:
    scene = Scene(RoomsConfig(relay_rotate=60.0, page_events=10))
    chooser = RelaySelection(ROOM, RelayChoice.RANDOM, SEED, 60.0)
    left = chooser.until_next_turn(0.0)
    assert left is not None
    effects = scene.use.set_relays(ALL, 0.0)
    assert effects[0] == SetTimer(left, tick("rotate"))
    first, second = (chooser.order(ORDER, chooser.turn(now), {})[0] for now in (0.0, left + 0.001))
    assert list(scene.use.chosen) == [first]
    scene.link(first)
    scene.serve(first)
    effects = fire(scene.use, tick("rotate"), left + 0.001)
    assert hold(second) in effects
    assert list(scene.use.chosen) == [first, second]
    scene.link(second, left)
    scene.serve(second, now=left + 0.1)
    assert scene.use.chosen == (second,)


def test_relays_come_and_go_with_the_state_of_the_room() -> None:
    scene = Scene()
    scene.use.set_relays([contact(B)], 0.0)
    assert scene.use.set_relays([], 1.0) == given_up(B)
    assert scene.use.status() == ()
    scene.use.set_relays([contact(B)], 2.0)
    moved = contact(C).hints
    assert scene.use.set_relays([type(contact(B))(B, moved)], 3.0) == [Hold(B, moved, PURPOSE)]
    assert scene.use.stop() == [
        *given_up(B),
        CancelTimer(tick("rotate")),
        CancelTimer(tick("retry")),
    ]


def test_after_the_end_no_relay_is_used_held_or_shown_whoever_connects_and_whatever_is_due() -> None:
    scene = Scene()
    scene.use.set_relays(ALL, 0.0)
    scene.link(A)
    scene.serve(A)
    scene.use.stop()
    assert scene.use.status() == ()
    assert scene.unlink(A, 1.0) == []
    assert [scene.link(relay, 2.0) for relay in (A, B)] == [[], []]
    for timer in (tick("rotate"), tick("retry")):
        assert not [each for each in fire(scene.use, timer, 60.0) if isinstance(each, Hold | Send)]
    assert (scene.use.chosen, scene.use.status()) == ((), ())


def test_the_nearest_is_used_and_figures_are_kept_for_status() -> None:
    scene = Scene(RoomsConfig(relay_choice=RelayChoice.NEAREST, page_events=10))
    scene.use.note_rtt(C, 0.01)
    scene.use.set_relays(ALL, 0.0)
    scene.use.note_rtt(C, 0.01)
    scene.use.note_info(C, RelayInfo(1, 2, 30, 40, 0, request=False))
    scene.use.note_info(C, RelayInfo(0, 0, 0, 0, 0, request=True))
    scene.use.choose(0.0)
    scene.link(C)
    assert scene.use.status()[2] == RelayStatus(C, contact(C).hints, True, True, 0.01, 0.75, None)


def test_a_page_of_a_relay_that_is_not_used_is_recorded_and_moves_nothing() -> None:
    scene = Scene()
    scene.use.set_relays(ALL, 0.0)
    foreign = Record(Kind.REJECTED, ROOM, peer=B, reason=Reason.NOT_RESPONSIBLE)
    assert scene.use.handle_page(B, page(1, (unit(1),), cursor(1)), 0.0) == [foreign]
    stale = Record(Kind.REJECTED, ROOM, peer=B, reason=Reason.STALE)
    assert scene.use.handle_taken(B, RelayTaken(ROOM, 1, (), None), 0.0) == [stale]
    assert scene.use.confirm_page(Page(B, 1, (), (), (), (), (), False), ()) == []


def test_a_relay_that_lost_everything_is_sent_again_what_it_had_acknowledged() -> None:
    scene = Scene()
    scene.use.set_relays([contact(A)], 0.0)
    scene.link(A)
    scene.serve(A)
    scene.unlink(A)
    scene.link(A)
    expired = page(2, reason=Reason.CURSOR_EXPIRED, oldest=cursor(0, epoch=1))
    effects = scene.use.handle_page(A, expired, 1.0)
    assert effects.index(Forgot(A)) < effects.index(GiveUnsent(A, 10))


def test_a_relay_that_learns_of_a_revocation_is_sent_again_what_it_refused() -> None:
    scene = Scene()
    scene.use.set_relays([contact(A)], 0.0)
    scene.link(A)
    scene.serve(A)
    scene.use.send_unsent(A, [parcel(1)], False)
    refused = RelayOutcome(event_id(1), None, Reason.SOFT_FAILED, ())
    scene.use.handle_taken(A, RelayTaken(ROOM, 1, (refused,), None), 1.0)
    assert scene.use.send([parcel(1)]) == []
    assert scene.use.note_silenced(A, 0) == [], "it knows of nothing new"
    assert scene.use.note_silenced(A, 4) == [GiveUnsent(A, 10)]
    again = scene.use.send_unsent(A, [parcel(1)], False)
    promised = [one for each in again if isinstance(each, AfterCommit) for one in each.effects]
    sent = [one.message for one in promised if isinstance(one, Send)]
    assert [each.units for each in sent if isinstance(each, RelaySend)] == [(unit(1),)]
    assert scene.use.note_silenced(A, 4) == [], "it was told already"
    assert scene.use.note_silenced(B, 4) == [], "it is no relay of ours"


def test_a_relay_whose_control_heads_are_not_known_here_is_sent_nothing_again() -> None:
    """As it is while we catch up: its heads are ahead of what we have read. It knows no less than before."""
    scene = Scene()
    scene.use.set_relays([contact(A)], 0.0)
    scene.link(A)
    scene.serve(A)
    assert scene.use.note_silenced(A, 4) == [GiveUnsent(A, 10)]
    assert scene.use.note_silenced(A, 0) == []
    assert scene.use.note_silenced(A, 4) == []
    assert scene.use.note_silenced(A, 12) == [GiveUnsent(A, 10)]


def test_what_a_relay_refused_before_it_learned_of_a_revocation_is_sent_again_if_it_says_so_later() -> None:
    """It answers a batch when all of it is decided; meanwhile its pages show that it has the revocation."""
    scene = Scene()
    scene.use.set_relays([contact(A)], 0.0)
    scene.link(A)
    scene.serve(A)
    scene.use.send_unsent(A, [parcel(1), parcel(2)], False)
    scene.use.note_silenced(A, 4)
    refused = RelayOutcome(event_id(1), None, Reason.SOFT_FAILED, ())
    kept = RelayOutcome(event_id(2), cursor(1), None, ())

    def units(effects: list[Any]) -> list[Any]:
        promised = [one for each in effects if isinstance(each, AfterCommit) for one in each.effects]
        sends = [one.message for one in promised if isinstance(one, Send)]
        return [each.units for each in sends if isinstance(each, RelaySend)]

    assert units(scene.use.handle_taken(A, RelayTaken(ROOM, 1, (refused, kept), None), 1.0)) == [(unit(1),)]
    assert units(scene.use.handle_taken(A, RelayTaken(ROOM, 2, (refused,), None), 1.0)) == []
    assert not scene.use.takes(A, event_id(1))


class Room:
    """A member that publishes and reads, over links that lose things, with relays that lose more."""

    def __init__(self, relays: int, config: RoomsConfig) -> None:
        self.config = config
        self.relays = {one.peer: one for one in map(SmallRelay, range(relays))}
        self.store = MemoryStore()
        self.now = 0.0
        self.own: dict[EventId, int] = {}
        self.acked: dict[EventId, dict[PeerId, None]] = {}
        self.taken_in: dict[int, None] = {}
        self.held: dict[PeerId, None] = {}
        self.timers: dict[Timer, float] = {}
        self.untaken: list[Page] = []
        self.inbox: deque[tuple[PeerId, ResyncPage | RelayTaken]] = deque()
        """What relays sent on links that are open."""
        self.slow = False
        self.loses = 0
        """1: what is sent is lost both ways; 2: only what relays send."""
        self.most = 3
        self.start()

    def start(self) -> None:
        """The process begins, with what is in the store."""
        self.store.rollback()
        self.links: dict[PeerId, None] = {}
        self.held, self.timers, self.untaken = {}, {}, []
        self.inbox.clear()
        for relay in self.relays.values():
            relay.follower = None
        cells, links = self.store.cells, self.links
        self.use = Driven(lambda out: RelayClient(ROOM, OURS, self.config, cells, SEED, links, out))
        self.perform(self.use.set_relays([contact(peer) for peer in self.relays], self.now))

    def publish(self, number: int) -> None:
        self.own[event_id(number)] = number
        self.perform(self.use.send([parcel(number)]))

    def lose_link(self, peer: PeerId, forgets: bool = False) -> None:
        """A link is gone, and perhaps what was handed over from it and not taken in."""
        if forgets:
            self.untaken = [one for one in self.untaken if one.relay != peer]
        if peer in self.links:
            del self.links[peer]
            self.relays[peer].follower = None
            self.inbox = deque(one for one in self.inbox if one[0] != peer)
            self.perform(self.use.handle_link_down(peer, self.now))

    def take_in(self, most: int = 1000) -> None:
        """Of what waited, so many pages are taken in, and durable."""
        for one in [self.untaken.pop(0) for _ in range(min(most, len(self.untaken)))]:
            self.taken_in |= {unit.seq: None for unit in one.units if unit.seq is not None}
            self.perform(self.use.confirm_page(one, ()))
            self.check()
            self.store.commit(lambda: None)

    def check(self) -> None:
        """What lies before a cursor was taken in: it never skips."""
        for relay in self.relays.values():
            kept = self.use.cursor(relay.peer)
            same = kept is not None and kept.epoch == cursor(0, relay.epoch).epoch
            position = kept.position if kept is not None and same else 0
            assert all(number in self.taken_in for number in relay.kept[:position])

    def perform(self, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case Hold(peer):
                    self.held[peer] = None
                case Release(peer):
                    self.held.pop(peer, None)
                case SetTimer(delay, timer):
                    self.timers[timer] = self.now + delay
                case CancelTimer(timer):
                    self.timers.pop(timer, None)
                case AfterCommit(promised):
                    self.perform_promised(promised)
                case _:
                    self.heed(effect)

    def perform_promised(self, promised: Iterable[Send[RelaySend] | Send[Resync] | Record]) -> None:
        for effect in promised:
            if not isinstance(effect, Send):
                continue
            if isinstance(effect.message, Resync):
                self.resync(effect.peer, effect.message)
            elif effect.peer in self.links and self.loses != 1:
                answer, pages = self.relays[effect.peer].send(effect.message)
                self.inbox.append((effect.peer, answer))
                self.inbox += [(effect.peer, one) for one in pages]

    def resync(self, peer: PeerId, asked: Resync) -> None:
        if peer in self.links and self.loses != 1:
            self.inbox.append((peer, self.relays[peer].resync(asked, self.most)))

    def receive(self) -> None:
        """What is on its way arrives."""
        while self.inbox:
            peer, message = self.inbox.popleft()
            if self.loses:
                continue
            if isinstance(message, ResyncPage):
                self.perform(self.use.handle_page(peer, message, self.now))
            else:
                self.perform(self.use.handle_taken(peer, message, self.now))

    def heed(self, notice: RelayNotice) -> None:
        match notice:
            case Page():
                self.untaken.append(notice)
                if not self.slow:
                    self.take_in()
            case GiveUnsent(peer, limit):
                due = [
                    number
                    for event, number in self.own.items()
                    if not self.acked.get(event) and self.use.takes(peer, event)
                ]
                given = [parcel(number) for number in due[:limit]]
                self.perform(self.use.send_unsent(peer, given, len(due) > limit))
            case Kept(peer, event):
                self.acked.setdefault(event, {})[peer] = None
            case Forgot(peer):
                for holders in self.acked.values():
                    holders.pop(peer, None)
            case GiveMissing() | NotKept() | Behind():
                raise AssertionError(notice)
            case _:
                pass

    def pass_time(self, seconds: float) -> None:
        """Timers run out, and links that are wanted open."""
        until = self.now + seconds
        while True:
            for peer in [peer for peer in self.held if peer not in self.links]:
                if not self.loses:
                    self.links[peer] = None
                    self.perform(self.use.handle_link_up(peer, self.now))
            self.receive()
            due = sorted(
                ((at, repr(timer), timer) for timer, at in self.timers.items()), key=itemgetter(0, 1)
            )
            if not due or due[0][0] > until:
                break
            self.now = max(self.now, due[0][0])
            del self.timers[due[0][2]]
            self.perform(fire(self.use, due[0][2], self.now))
        self.now = until

    def settle(self) -> None:
        """Everyone is well for a while, and every relay has had its turn."""
        self.receive()
        self.loses, self.slow = 0, False
        self.take_in()
        for _ in self.relays:
            self.pass_time(200.0)
            self.take_in()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(0, 0)),
        st.tuples(st.just("other"), st.integers(0, 2)),
        st.tuples(st.just("other, lost"), st.integers(0, 2)),
        st.tuples(st.just("others"), st.integers(0, 2)),
        st.tuples(st.just("lose link"), st.integers(0, 5)),
        st.tuples(st.just("relay restarts"), st.integers(0, 5)),
        st.tuples(st.just("pages"), st.integers(1, 4)),
        st.tuples(st.just("losing"), st.integers(0, 2)),
        st.tuples(st.just("slow"), st.integers(0, 1)),
        st.tuples(st.just("take in"), st.integers(1, 2)),
        st.tuples(st.just("look"), st.integers(0, 2)),
        st.tuples(st.just("crash"), st.integers(0, 0)),
        st.tuples(st.just("time"), st.integers(1, 40)),
    ),
    min_size=30,
    max_size=60,
)


@settings(max_examples=5000 if os.environ.get("LINNET_SOAK") else 150, deadline=None)
@given(STEPS, st.integers(1, 3), st.sampled_from([0.0, 100.0]))
def test_whatever_a_relay_keeps_is_handed_over_and_whatever_is_said_is_kept(
    steps: list[tuple[str, int]], relays: int, rotate: float
) -> None:
    """Over lost messages and links, small pages, crashes on both sides and turns.

    Every relay is read in the end, since turns let each be used; without turns those that were.
    """
    config = RoomsConfig(relay_rotate=rotate, page_events=4, relays_at_once=1)
    room = Room(relays, config)
    peers = list(room.relays)
    for count, (what, number) in enumerate(steps):
        peer = peers[number % relays]
        step(room, what, number, peer, 10 * count)
        room.pass_time(0.0)
        room.check()
    room.settle()
    used = peers if rotate else [peer for peer in peers if peer in room.use.up]
    assert used
    for peer in used:
        assert [number for number in room.relays[peer].kept if number not in room.taken_in] == []
    for event in room.own:
        assert room.acked.get(event), "no relay has acknowledged what was said"


def step(room: Room, what: str, number: int, peer: PeerId, fresh: int) -> None:
    actions: dict[str, Callable[[], None]] = {
        "publish": lambda: room.publish(fresh),
        "lose link": lambda: room.lose_link(peer, forgets=number >= 3),
        "take in": lambda: room.take_in(number),
        "crash": room.start,
        "time": lambda: room.pass_time(float(number)),
    }
    match what:
        case "other" | "other, lost" | "others":
            for extra in range(5 if what == "others" else 1):
                follows = room.relays[peer].take(fresh + extra)
                if follows is not None and what != "other, lost":
                    room.inbox.append((peer, follows))
        case "relay restarts":
            room.lose_link(peer)
            room.relays[peer].restart(loses=number >= 3)
        case "pages":
            room.most = number
        case "look":
            room.perform(fire(room.use, tick("look", peer), room.now))
        case "losing":
            room.loses = number
        case "slow":
            room.slow = bool(number)
        case _:
            actions[what]()


def test_an_event_that_reaches_one_relay_late_is_not_lost_by_changing_relays() -> None:
    """It is at one relay, and not yet at the one that we read; then we go, and come back to the first.

    Asked by time ("what came since I was here"), the first would leave it out.
    """
    room = Room(2, RoomsConfig(relay_rotate=100.0, page_events=4))
    for _ in range(2):
        room.pass_time(100.0)
    assert all(room.use.cursor(relay) is not None for relay in room.relays)
    (late,) = room.use.chosen
    early = next(relay for relay in room.relays if relay != late)
    room.relays[early].take(7)
    room.pass_time(10.0)
    assert 7 not in room.taken_in
    room.lose_link(late)
    room.now -= 1000.0 * 100.0  # and our clock is set, by whole turns
    room.now += 100.0
    room.start()
    assert room.use.chosen == (early,)
    room.pass_time(1.0)
    assert 7 in room.taken_in


def test_no_clock_takes_part_in_what_is_asked() -> None:
    scene = Scene()
    scene.use.set_relays(ALL, 1e9)
    scene.link(A, 1e9)
    scene.serve(A, now=1e9)
    scene.unlink(A, 2e9)
    asked = AfterCommit((Send(A, Resync(ROOM, 2, cursor(0), 10, follow=True, signed=True)),))
    assert asked in scene.link(A, 5.0)


def test_all_relays_are_read_from_their_oldest_when_something_was_let_go() -> None:
    scene = Scene()
    scene.use.set_relays(ALL, 0.0)
    first = scene.use.chosen[0]
    scene.link(first)
    scene.serve(first)
    assert scene.use.cursor(first) == cursor(0)
    assert scene.use.read_anew() == begun(first, 2)[:-1]
    assert scene.use.cursor(first) is None
    anew = RelayClient(ROOM, OURS, CONFIG, scene.store.cells, SEED, {}, Outbox())
    assert anew.cursor(first) is None


@pytest.mark.parametrize("reason", [Reason.BANNED, Reason.NOT_A_MEMBER])
def test_who_is_told_to_be_out_keeps_the_link_until_the_relay_could_show_why(reason: Reason) -> None:
    scene = Scene()
    scene.use.set_relays(ALL[:1], 0.0)
    scene.link(A)
    lingers = SetTimer(5.0, tick("linger", A))
    over = scene.use.handle_refusal(A, reason, 0.0)
    assert lingers in over
    assert not [effect for effect in over if isinstance(effect, Release)]
    assert scene.use.chosen == ()
    gone = [CancelTimer(tick("linger", A)), Release(A, PURPOSE)]
    assert fire(scene.use, tick("linger", A), 5.0) == gone
    assert fire(scene.use, tick("linger", A), 5.0) == []


def test_a_link_that_lingers_is_let_go_when_it_is_gone_or_the_relay_is_named_no_more() -> None:
    gone = [CancelTimer(tick("linger", A)), Release(A, PURPOSE)]
    for end in ("unlinked", "unnamed", "stopped"):
        scene = Scene()
        scene.use.set_relays(ALL[:1], 0.0)
        scene.link(A)
        scene.use.handle_refusal(A, Reason.BANNED, 0.0)
        match end:
            case "unlinked":
                assert scene.use.handle_link_down(A, 1.0) == gone
            case "unnamed":
                assert scene.use.set_relays((), 1.0)[:2] == gone
            case _:
                assert scene.use.stop()[:2] == gone
