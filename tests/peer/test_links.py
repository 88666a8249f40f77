"""Links: held and released, dialled again, alive or not, and peers that misbehave."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from random import Random

import pytest
from tests.delivery.voices import asked

from linnet.core.effects import AfterCommit, Blame, Dial, HangUp, Hold, Release, Send, SetTimer
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import LinkUp
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Timer
from linnet.machine.outbox import Effect, Outbox
from linnet.machine.part import Part, on_notice
from linnet.machine.router import Router
from linnet.peer.backoff import REMEMBERED, Backoff
from linnet.peer.config import LinkConfig
from linnet.peer.links import IdleDue, Links, PingDue, RedialDue, RoundTripMeasured
from linnet.peer.messages import Bye, Needed, Ping, Pong, Unsupported
from linnet.store.memory import MemoryStore

OURS, ANN, BEN = PeerId(b"o" * 32), PeerId(b"a" * 32), PeerId(b"b" * 32)
HINTS = ("tls://ann:1",)
CONFIG = LinkConfig(max_links=2, control_rate=10.0, offences=2)
HELLO = Hello(1, 1, {}, roles=("storage",), agent="test", listens=("tls://told:1",))


class Ears(Part):
    """Hears how far peers are."""

    def __init__(self) -> None:
        self.told: list[tuple[PeerId, float]] = []

    @on_notice(RoundTripMeasured)
    def note(self, notice: RoundTripMeasured, now: float) -> None:
        self.told.append((notice.peer, notice.seconds))


class Driven:
    """Links with their outbox: each call returns what it asked for."""

    def __init__(self, config: LinkConfig, rng: Random, cells: Cells | None = None) -> None:
        self.out = Outbox()
        self.links = Links(OURS, config, rng, self.out, cells or MemoryStore().cells)
        self.ears = Ears()
        self._router = Router(self.out, (self.links, self.ears))

    def __getattr__(self, name: str) -> Callable[..., list[Effect]]:
        return partial(asked, self.out, getattr(self.links, name))

    def link_up(self, event: LinkUp, now: float) -> tuple[list[Effect], bool]:
        stays = self.links.link_up(event, now)
        return self.out.take(), stays

    def hear(self, peer: PeerId, message: Message, now: float) -> list[Effect]:
        return asked(self.out, self._router.message, peer, message, now)

    def fire(self, timer: Timer, now: float) -> list[Effect]:
        return asked(self.out, self._router.timer, timer, now)


def kept(hints: tuple[str, ...] = HINTS, peer: PeerId = ANN) -> Effect:
    """A dial that is made when it is durable that it was."""
    return AfterCommit((Dial(peer, hints, False),))


def up(peer: PeerId = ANN, dialed: bool = True) -> LinkUp:
    return LinkUp(peer, HELLO, dialed, None)


def fresh(config: LinkConfig = CONFIG) -> Driven:
    return Driven(config, Random(1))


def linked(*peers: PeerId, config: LinkConfig = CONFIG, held: bool = False) -> Driven:
    links = fresh(config)
    for peer in peers:
        if held:
            links.hold(Hold(peer, HINTS, "x"), 0.0)
        links.link_up(up(peer), 0.0)
    return links


PINGED: list[Effect] = [Send(ANN, Ping(1)), SetTimer(5.0, PingDue(ANN))]
IDLE: Effect = SetTimer(30.0, IdleDue(ANN))


def test_the_first_hold_dials_and_further_ones_do_not() -> None:
    links = fresh()
    assert links.hold(Hold(ANN, HINTS, "tea"), 0.0) == [kept()]
    assert links.hold(Hold(ANN, HINTS, "coffee"), 0.0) == []
    assert links.link_up(up(), 0.0) == ([*PINGED, Send(ANN, Needed(True))], True)
    assert links.hold(Hold(ANN, HINTS, "water"), 0.0) == []
    assert links.links.is_up(ANN)
    assert links.links.up == [ANN]


def test_a_peer_without_address_is_awaited() -> None:
    links = fresh()
    assert links.hold(Hold(ANN, (), "tea"), 0.0) == []
    assert links.hold(Hold(ANN, HINTS, "coffee"), 0.0) == [kept()]


def test_the_last_release_tells_the_other_end_and_closes_when_neither_needs_it() -> None:
    links = fresh()
    links.hold(Hold(ANN, HINTS, "tea"), 0.0)
    links.hold(Hold(ANN, HINTS, "coffee"), 0.0)
    links.link_up(up(), 0.0)
    links.hear(ANN, Needed(True), 0.0)
    assert links.release(Release(ANN, "tea")) == []
    assert links.release(Release(ANN, "tea")) == []
    assert links.release(Release(ANN, "coffee")) == [Send(ANN, Needed(False))]
    assert links.fire(IdleDue(ANN), 31.0) == [], "the other end needs it"
    assert links.hear(ANN, Needed(False), 40.0) == [SetTimer(0.0, IdleDue(ANN))]
    assert links.fire(IdleDue(ANN), 40.0) == [HangUp(ANN, Reason.NOT_NEEDED)]


def test_a_link_that_nobody_needs_is_kept_for_a_while() -> None:
    links = fresh()
    assert links.link_up(up(dialed=False), 0.0) == ([*PINGED, IDLE], True)
    assert links.hold(Hold(ANN, (), "tea"), 0.0) == [Send(ANN, Needed(True))]
    assert links.fire(IdleDue(ANN), 30.0) == []
    assert links.release(Release(ANN, "tea")) == [Send(ANN, Needed(False)), IDLE]
    assert links.fire(IdleDue(ANN), 60.0) == [HangUp(ANN, Reason.NOT_NEEDED)]


def test_releasing_what_was_never_up_forgets_it() -> None:
    links = fresh()
    links.hold(Hold(ANN, (), "tea"), 0.0)
    assert links.release(Release(ANN, "tea")) == []
    assert links.links.status() == ()
    assert links.release(Release(BEN, "tea")) == []
    assert links.fire(RedialDue(ANN), 1.0) == []


def test_a_lost_link_is_dialled_again_ever_later_while_it_is_held() -> None:
    links = linked(ANN, held=True)
    delays = []
    now = 1.0
    for _ in range(10):
        (timer,) = links.link_down(ANN, Reason.REMOTE_CLOSED, now)
        assert isinstance(timer, SetTimer)
        assert timer.timer == RedialDue(ANN)
        delays.append(timer.delay)
        now += timer.delay
        assert links.fire(RedialDue(ANN), now) == [kept()]
    middle = [0.25 * 2**n for n in range(7)] + [30.0] * 3
    assert all(0.5 * m <= delay <= 1.5 * m for m, delay in zip(middle, delays, strict=True))
    (timer,) = links.dial_failed(ANN, Reason.CONNECTION_REFUSED, now)
    links.link_up(up(), now + 1.0)
    (timer,) = links.link_down(ANN, Reason.REMOTE_CLOSED, now + 2.0)
    assert isinstance(timer, SetTimer)
    assert timer.delay <= 0.375, "after a link that lasted it begins anew"


def test_a_lost_link_that_nobody_holds_is_forgotten() -> None:
    links = linked(ANN)
    assert links.link_down(ANN, Reason.REMOTE_CLOSED, 1.0) == []
    assert links.links.status() == ()
    assert links.link_down(ANN, Reason.REMOTE_CLOSED, 1.0) == []


def test_pings_measure_the_round_trip_and_go_on() -> None:
    links = linked(ANN)
    assert links.links.rtt(ANN) is None
    assert links.hear(ANN, Pong(9), 0.05) == [], "not the answer to ours"
    assert links.hear(ANN, Pong(1), 0.1) == [SetTimer(15.0, PingDue(ANN))]
    assert links.links.rtt(ANN) == 0.1
    assert links.ears.told == [(ANN, 0.1)]
    assert links.hear(ANN, Pong(1), 0.2) == [], "answered already"
    assert links.fire(PingDue(ANN), 15.1) == [Send(ANN, Ping(2)), SetTimer(5.0, PingDue(ANN))]
    assert links.links.rtt(BEN) is None


def test_an_answer_to_a_ping_tells_how_far_the_clocks_are_apart() -> None:
    links = linked(ANN)
    links.hear(ANN, Pong(1, 3_600_100_000), 0.2)
    assert links.links.clocks.ahead() == (3600.0,), "it was sent half a round trip ago"
    links.fire(PingDue(ANN), 15.2)
    links.hear(ANN, Pong(2), 15.3)
    assert links.links.clocks.ahead() == (3600.0,), "a node of 0.1.0 does not say"
    links.link_down(ANN, Reason.REMOTE_CLOSED, 16.0)
    assert links.links.clocks.ahead() == ()


def test_a_peer_that_does_not_answer_is_gone() -> None:
    links = linked(ANN)
    assert links.fire(PingDue(ANN), 5.0) == [Send(ANN, Ping(2)), SetTimer(5.0, PingDue(ANN))]
    assert links.fire(PingDue(ANN), 10.0) == [Send(ANN, Ping(3)), SetTimer(5.0, PingDue(ANN))]
    assert links.fire(PingDue(ANN), 15.0) == [HangUp(ANN, Reason.PING_TIMEOUT)]


def test_an_answer_to_any_of_the_pings_will_do() -> None:
    links = linked(ANN)
    for number in range(5):
        links.fire(PingDue(ANN), 5.0 + number * 20)
        assert links.hear(ANN, Pong(2 + 2 * number), 6.0 + number * 20) != []
        links.fire(PingDue(ANN), 20.0 + number * 20)
    assert links.links.is_up(ANN)


def test_pings_are_answered() -> None:
    links = linked(ANN)
    assert links.hear(ANN, Ping(77), 1.5) == [Send(ANN, Pong(77, 1_500_000))]
    assert links.hear(ANN, Ping(77), -1.5) == [Send(ANN, Pong(77, 0))], "a clock before 1970"
    assert links.hear(BEN, Ping(77), 0.0) == []
    assert links.hear(ANN, Bye(Reason.SHUTDOWN), 0.0) == []
    assert links.hear(ANN, Unsupported(99), 0.0) == []


def test_there_is_a_most_of_links_but_not_for_those_that_we_hold() -> None:
    links = linked(ANN, BEN)
    third, fourth = PeerId(b"c" * 32), PeerId(b"d" * 32)
    assert links.link_up(up(third, False), 0.0) == ([HangUp(third, Reason.TOO_MANY_LINKS)], False)
    assert links.link_down(third, Reason.TOO_MANY_LINKS, 0.0) == []
    links.hold(Hold(fourth, HINTS, "tea"), 0.0)
    assert links.link_up(up(fourth), 0.0)[1]


def test_too_many_control_messages_are_too_many_until_time_has_passed() -> None:
    links = linked(ANN)
    assert all(links.links.spend(ANN, 0.0) for _ in range(100))
    assert not links.links.spend(ANN, 0.0)
    assert sum(links.links.spend(ANN, 1.0) for _ in range(50)) == 9
    assert links.links.spend(BEN, 0.0), "who has no link, such as ourselves, is not counted"


def test_a_clock_that_is_put_back_makes_nobody_a_flooder_or_a_forger() -> None:
    links = linked(ANN)
    assert sum(links.links.spend(ANN, -3600.0) for _ in range(200)) == 100
    assert sum(links.links.spend(ANN, -3599.0) for _ in range(200)) == 0, (
        "what was too much has to be made up for"
    )
    others = linked(BEN)
    forged = Blame(BEN, Reason.BAD_SIGNATURE)
    assert others.blame(forged, 0.0) == []
    assert others.blame(forged, -3600.0) == []
    assert others.blame(forged, -3600.0) == [HangUp(BEN, Reason.FORGING)]


def test_offences_are_forgiven_with_time_and_too_many_are_not() -> None:
    links = linked(ANN)
    forged = Blame(ANN, Reason.BAD_SIGNATURE)
    assert [links.blame(forged, 0.0) for _ in range(2)] == [[], []]
    assert links.blame(forged, 61.0) == []
    assert links.blame(forged, 61.0) == []
    assert links.blame(forged, 61.0) == [HangUp(ANN, Reason.FORGING)]
    assert links.blame(Blame(BEN, Reason.BAD_SIGNATURE), 0.0) == []


def test_what_may_be_a_misunderstanding_counts_as_a_message() -> None:
    links = linked(ANN)
    stale = Blame(ANN, Reason.NOT_JOINED)
    assert all(links.blame(stale, 0.0) == [] for _ in range(100))
    assert links.blame(stale, 0.0) == [HangUp(ANN, Reason.FLOODING)]


def test_who_was_cut_off_is_left_alone_for_a_while() -> None:
    for reason in (Reason.FLOODING, Reason.FORGING, Reason.REPLAYING):
        links = linked(ANN, held=True)
        (timer,) = links.link_down(ANN, reason, 100.0)
        assert isinstance(timer, SetTimer)
        assert timer.delay >= 15.0
        assert links.link_up(up(dialed=False), 101.0) == ([HangUp(ANN, reason)], False)
        links.link_down(ANN, reason, 101.1)
        assert links.link_up(up(dialed=False), 116.0)[1], "its knocking does not prolong it"


def test_a_blocked_peer_gets_no_link_and_no_dial() -> None:
    links = linked(ANN, held=True)
    assert links.block(ANN, True, 4.0) == [HangUp(ANN, Reason.BLOCKED)]
    links.link_down(ANN, Reason.BLOCKED, 1.0)
    assert links.fire(RedialDue(ANN), 2.0) == []
    assert links.link_up(up(), 3.0) == ([HangUp(ANN, Reason.BLOCKED)], False)
    assert links.hold(Hold(ANN, HINTS, "more"), 0.0) == []
    assert links.block(BEN, True, 4.0) == []
    assert links.block(BEN, False, 4.0) == []
    assert links.block(ANN, False, 4.0) == [kept()], "it is held still"
    assert links.link_up(up(), 4.0)[1]
    assert links.block(ANN, False, 4.0) == []


def test_status_tells_of_links_open_and_wanted() -> None:
    links = linked(ANN)
    links.hear(ANN, Needed(True), 0.0)
    links.hear(ANN, Pong(1), 0.25)
    links.hold(Hold(BEN, HINTS, "tea"), 0.0)
    links.dial_failed(BEN, Reason.DIAL_TIMEOUT, 2.0)
    one, other = links.links.status()
    assert (one.peer, one.up, one.dialed, one.needed, one.wanted) == (ANN, True, True, (), True)
    assert (one.rtt, one.since, one.agent, one.roles) == (0.25, 0.0, "test", ("storage",))
    assert (other.peer, other.up, other.needed) == (BEN, False, ("tea",))
    assert (other.last_failure, other.failing_since) == (Reason.DIAL_TIMEOUT, 2.0)
    assert one.failing_since is None


def test_where_a_peer_listens_is_remembered_from_its_greeting() -> None:
    links = linked(ANN)
    links.hold(Hold(ANN, (), "tea"), 0.0)
    links.link_down(ANN, Reason.REMOTE_CLOSED, 1.0)
    assert links.fire(RedialDue(ANN), 2.0) == [kept(("tls://told:1",))]


def test_asleep_every_link_is_closed_and_nobody_is_dialled_until_it_wakes() -> None:
    links = linked(ANN, BEN, held=True)
    assert links.sleep() == [HangUp(ANN, Reason.NOT_NEEDED), HangUp(BEN, Reason.NOT_NEEDED)]
    links.link_down(ANN, Reason.NOT_NEEDED, 1.0)
    links.link_down(BEN, Reason.NOT_NEEDED, 1.0)
    assert links.fire(RedialDue(ANN), 2.0) == []
    assert links.hold(Hold(PeerId(b"c" * 32), HINTS, "x"), 0.0) == []
    assert links.link_up(up(ANN), 3.0) == ([HangUp(ANN, Reason.NOT_NEEDED)], False)
    links.release(Release(BEN, "x"))
    assert links.wake(3.0) == [kept(), kept(peer=PeerId(b"c" * 32))]
    assert links.wake(3.0) == []


def dials_of(links: Driven, effects: list[Effect], until: float, react: bool) -> list[float]:
    """When a peer that never answers is dialled; with `react`, a part lets go and wants it again at once."""
    dials: list[float] = []
    timers: dict[Timer, float] = {}
    now = 0.0
    while now < until:
        pending = [*effects]
        effects = []
        for effect in pending:
            if isinstance(effect, AfterCommit):
                dials.append(now)
                effects += links.dial_failed(ANN, Reason.CONNECTION_REFUSED, now)
                if react:
                    effects += links.release(Release(ANN, "place"))
                    effects += links.hold(Hold(ANN, HINTS, "place"), now)
            elif isinstance(effect, SetTimer):
                timers[effect.timer] = now + effect.delay
        if effects:
            assert len(dials) < 1000, "a storm"
            continue
        timer = min(timers, key=lambda each: timers[each])
        now = timers.pop(timer)
        effects = links.fire(timer, now)
    return dials


def most_a_minute(dials: list[float]) -> int:
    return max(sum(at <= each < at + 60.0 for each in dials) for at in dials)


@pytest.mark.parametrize("react", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_peer_that_does_not_answer_is_dialled_ten_times_a_minute_at_most(react: bool, seed: int) -> None:
    links = Driven(CONFIG, Random(seed))
    dials = dials_of(links, links.hold(Hold(ANN, HINTS, "place"), 0.0), 600.0, react)
    assert 5 <= most_a_minute(dials) <= 10
    assert max(after - before for before, after in pairwise(dials)) <= 60.0, "it is found when it is back"
    assert len(dials) <= 50


def test_parts_that_let_go_and_want_it_again_in_every_way_get_no_more_dials() -> None:
    links = fresh()
    dials: list[float] = []
    for step in range(6000):
        now = step * 0.1
        hints = ("tls://ann:1",) if step % 3 else ("tls://ann:2",)
        effects = links.hold(Hold(ANN, hints, f"part {step % 5}"), now)
        effects += links.fire(RedialDue(ANN), now)
        for _ in [each for each in effects if isinstance(each, AfterCommit)]:
            dials.append(now)
            links.dial_failed(ANN, Reason.CONNECTION_REFUSED, now)
        links.release(Release(ANN, f"part {step % 5}"))
    assert 5 <= most_a_minute(dials) <= 10


def test_a_peer_with_ever_new_addresses_gets_no_more_dials() -> None:
    links = fresh()
    dials: list[float] = []
    for step in range(1800):
        now = step * 0.1
        effects = links.hold(Hold(ANN, (f"tls://ann:{1 + step}",), "place"), now)
        effects += links.fire(RedialDue(ANN), now)
        for _ in [each for each in effects if isinstance(each, AfterCommit)]:
            dials.append(now)
            links.dial_failed(ANN, Reason.CONNECTION_REFUSED, now)
    assert 5 <= most_a_minute(dials) <= 10


@pytest.mark.parametrize("let_go", [False, True])
@pytest.mark.parametrize("reason", [Reason.REMOTE_CLOSED, Reason.NOT_NEEDED])
def test_a_link_that_closes_at_once_is_no_answer(reason: Reason, let_go: bool) -> None:
    """Nor is one that the other end does not need and we do."""
    links = fresh()
    dials = []
    for step in range(600):
        now = step * 0.1
        effects = links.hold(Hold(ANN, HINTS, "place"), now) + links.fire(RedialDue(ANN), now)
        if kept() in effects:
            dials.append(now)
            links.link_up(up(), now)
            links.link_down(ANN, reason, now + 0.05)
        if let_go:
            links.release(Release(ANN, "place"))
    assert 5 <= len(dials) <= 10


def test_links_for_one_question_each_that_both_ends_let_go_are_no_failures() -> None:
    """Else who asks a peer often, one question at a time, could not dial it soon, and took it for dead."""
    links = fresh()
    for step in range(20):
        now = float(step)
        assert kept() in links.hold(Hold(ANN, HINTS, "gossip Pull"), now)
        links.link_up(up(), now)
        links.release(Release(ANN, "gossip Pull"))
        links.link_down(ANN, Reason.NOT_NEEDED, now + 0.05)
    assert links.links.status() == ()


def test_a_new_address_and_the_user_are_heeded_at_once() -> None:
    links = fresh()
    links.hold(Hold(ANN, HINTS, "tea"), 0.0)
    for now in (0.0, 1.0, 3.0, 10.0, 20.0):
        links.dial_failed(ANN, Reason.CONNECTION_REFUSED, now)
        links.fire(RedialDue(ANN), now + 45.0)
    links.dial_failed(ANN, Reason.CONNECTION_REFUSED, 70.0)
    (waiting,) = links.hold(Hold(ANN, HINTS, "coffee"), 71.0)
    assert isinstance(waiting, SetTimer)
    moved = ("tls://ann:2",)
    assert links.hold(Hold(ANN, moved, "coffee"), 71.0) == [kept(moved)]
    (waiting,) = links.dial_failed(ANN, Reason.CONNECTION_REFUSED, 71.0)
    assert isinstance(waiting, SetTimer)
    links.links.hasten(ANN)
    assert links.hold(Hold(ANN, HINTS, "asked"), 71.0) == [AfterCommit((Dial(ANN, HINTS, is_ours=True),))]


def test_a_process_that_is_started_over_and_over_dials_no_more() -> None:
    cells = MemoryStore().cells
    dials = []
    for step in range(200):
        now = 1_790_000_000.0 + step
        links = Driven(CONFIG, Random(step), cells)
        if links.hold(Hold(ANN, HINTS, "tea"), now) == [kept()]:
            dials.append(now)
    assert most_a_minute(dials) == 10
    assert dials[-1] - dials[0] > 120.0


def test_every_dial_waits_for_the_commit_that_keeps_it_also_the_first() -> None:
    store = MemoryStore()
    links, now = Driven(CONFIG, Random(1), store.cells), 1_790_000_000.0
    assert links.hold(Hold(ANN, HINTS, "tea"), now) == [kept()]
    (pause,) = links.dial_failed(ANN, Reason.CONNECTION_REFUSED, now)
    assert isinstance(pause, SetTimer)
    assert links.fire(RedialDue(ANN), now + pause.delay) == [kept()]
    store.rollback()  # Neither commit came to its end, so nobody was dialled.
    assert Driven(CONFIG, Random(1), store.cells).hold(Hold(ANN, HINTS, "tea"), now) == [kept()]


def test_the_pause_goes_on_growing_over_a_restart_after_one_try_at_once() -> None:
    cells = MemoryStore().cells
    links, now = Driven(CONFIG, Random(1), cells), 1_790_000_000.0
    links.hold(Hold(ANN, HINTS, "tea"), now)
    for _ in range(7):
        (pause,) = links.dial_failed(ANN, Reason.CONNECTION_REFUSED, now)
        assert isinstance(pause, SetTimer)
        now += pause.delay
        links.fire(RedialDue(ANN), now)
    again = Driven(CONFIG, Random(1), cells)
    later = now + 60.0
    assert again.hold(Hold(ANN, HINTS, "tea"), later) == [kept()], "perhaps it is back"
    (pause,) = again.dial_failed(ANN, Reason.CONNECTION_REFUSED, later)
    assert isinstance(pause, SetTimer)
    assert pause.delay >= 15.0, "half of the longest, at least"
    (status,) = again.links.status()
    assert status.failing_since == 1_790_000_000.0
    moved = ("tls://ann:2",)
    assert again.hold(Hold(ANN, moved, "tea"), later) == [kept(moved)], "a new address is tried"


def test_what_is_kept_of_dials_and_cannot_be_read_keeps_nobody_from_starting() -> None:
    cells = MemoryStore().cells
    cells.put("dialed", ANN, b"\xff damaged")
    links = Driven(CONFIG, Random(1), cells)
    assert links.hold(Hold(ANN, HINTS, "tea"), 1_790_000_000.0) == [kept()]


def test_a_clock_that_was_ahead_keeps_nobody_from_being_dialled() -> None:
    cells = MemoryStore().cells
    ahead = 1_900_000_000.0
    for step in range(10):
        Driven(CONFIG, Random(1), cells).hold(Hold(ANN, HINTS, "tea"), ahead + step)
    links = Driven(CONFIG, Random(1), cells)
    assert links.hold(Hold(ANN, HINTS, "tea"), 1_790_000_000.0) == [kept()]


def test_failures_of_so_many_peers_are_remembered_and_not_of_more() -> None:
    cells = MemoryStore().cells
    backoff = Backoff(CONFIG, Random(1), cells)
    first, second = PeerId(bytes(32)), PeerId((1).to_bytes(32, "big"))
    for number in range(REMEMBERED):
        backoff.dialed(PeerId(number.to_bytes(32, "big")), HINTS, 1.0)
    assert backoff.is_tried(first)
    backoff.dialed(PeerId(REMEMBERED.to_bytes(32, "big")), HINTS, 1.0)
    assert (backoff.is_tried(first), backoff.is_tried(second)) == (False, True)
    assert len(list(cells.scan("dialed"))) == REMEMBERED
