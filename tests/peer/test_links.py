"""Links: held and released, dialled again, alive or not, and peers that misbehave."""

from __future__ import annotations

from random import Random

from linnet.core.effects import Blame, Dial, HangUp, Hold, Release, Send, SetTimer
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.peer.config import LinkConfig
from linnet.peer.links import Links, LinksEffect
from linnet.peer.messages import Bye, Needed, Ping, Pong, Unsupported

OURS, ANN, BEN = PeerId(b"o" * 32), PeerId(b"a" * 32), PeerId(b"b" * 32)
HINTS = ("tls://ann:1",)
CONFIG = LinkConfig(max_links=2, control_rate=10.0, offences=2)
HELLO = Hello(1, 1, {}, roles=("storage",), agent="test", listens=("tls://told:1",))


def tick(what: str, peer: PeerId = ANN) -> Tick:
    return Tick("links", what, peer)


def up(peer: PeerId = ANN, dialed: bool = True) -> LinkUp:
    return LinkUp(peer, HELLO, dialed)


def fresh(config: LinkConfig = CONFIG) -> Links:
    return Links(OURS, config, Random(1))


def linked(*peers: PeerId, config: LinkConfig = CONFIG, held: bool = False) -> Links:
    links = fresh(config)
    for peer in peers:
        if held:
            links.hold(Hold(peer, HINTS, "x"))
        links.link_up(up(peer), 0.0)
    return links


PINGED: list[LinksEffect] = [Send(ANN, Ping(1)), SetTimer(5.0, tick("ping"))]
IDLE: LinksEffect = SetTimer(30.0, tick("idle"))


def test_the_first_hold_dials_and_further_ones_do_not() -> None:
    links = fresh()
    assert links.hold(Hold(ANN, HINTS, "tea")) == [Dial(ANN, HINTS)]
    assert links.hold(Hold(ANN, HINTS, "coffee")) == []
    assert links.link_up(up(), 0.0) == ([*PINGED, Send(ANN, Needed(True))], True)
    assert links.hold(Hold(ANN, HINTS, "water")) == []
    assert links.is_up(ANN)
    assert links.up == [ANN]


def test_a_peer_without_address_is_awaited() -> None:
    links = fresh()
    assert links.hold(Hold(ANN, (), "tea")) == []
    assert links.hold(Hold(ANN, HINTS, "coffee")) == [Dial(ANN, HINTS)]


def test_the_last_release_tells_the_other_end_and_closes_when_neither_needs_it() -> None:
    links = fresh()
    links.hold(Hold(ANN, HINTS, "tea"))
    links.hold(Hold(ANN, HINTS, "coffee"))
    links.link_up(up(), 0.0)
    links.on_message(ANN, Needed(True), 0.0)
    assert links.release(Release(ANN, "tea")) == []
    assert links.release(Release(ANN, "tea")) == []
    assert links.release(Release(ANN, "coffee")) == [Send(ANN, Needed(False))]
    assert links.fired(tick("idle"), 31.0) == [], "the other end needs it"
    assert links.on_message(ANN, Needed(False), 40.0) == [SetTimer(0.0, tick("idle"))]
    assert links.fired(tick("idle"), 40.0) == [HangUp(ANN, Reason.NOT_NEEDED)]


def test_a_link_that_nobody_needs_is_kept_for_a_while() -> None:
    links = fresh()
    assert links.link_up(up(dialed=False), 0.0) == ([*PINGED, IDLE], True)
    assert links.hold(Hold(ANN, (), "tea")) == [Send(ANN, Needed(True))]
    assert links.fired(tick("idle"), 30.0) == []
    assert links.release(Release(ANN, "tea")) == [Send(ANN, Needed(False)), IDLE]
    assert links.fired(tick("idle"), 60.0) == [HangUp(ANN, Reason.NOT_NEEDED)]


def test_releasing_what_was_never_up_forgets_it() -> None:
    links = fresh()
    links.hold(Hold(ANN, (), "tea"))
    assert links.release(Release(ANN, "tea")) == []
    assert links.status() == ()
    assert links.release(Release(BEN, "tea")) == []
    assert links.fired(tick("dial"), 1.0) == []


def test_a_lost_link_is_dialled_again_ever_later_while_it_is_held() -> None:
    links = linked(ANN, held=True)
    delays = []
    for _ in range(10):
        (timer,) = links.link_down(ANN, Reason.REMOTE_CLOSED, 1.0)
        assert isinstance(timer, SetTimer)
        assert timer.timer == tick("dial")
        delays.append(timer.delay)
        assert links.fired(tick("dial"), 2.0) == [Dial(ANN, HINTS)]
    middle = [0.25 * 2**n for n in range(7)] + [30.0] * 3
    assert all(0.5 * m <= delay <= 1.5 * m for m, delay in zip(middle, delays, strict=True))
    (timer,) = links.dial_failed(ANN, Reason.CONNECTION_REFUSED)
    links.link_up(up(), 3.0)
    (timer,) = links.link_down(ANN, Reason.REMOTE_CLOSED, 4.0)
    assert isinstance(timer, SetTimer)
    assert timer.delay <= 0.375, "a link that came up begins anew"


def test_a_lost_link_that_nobody_holds_is_forgotten() -> None:
    links = linked(ANN)
    assert links.link_down(ANN, Reason.REMOTE_CLOSED, 1.0) == []
    assert links.status() == ()
    assert links.link_down(ANN, Reason.REMOTE_CLOSED, 1.0) == []


def test_pings_measure_the_round_trip_and_go_on() -> None:
    links = linked(ANN)
    assert links.rtt(ANN) is None
    assert links.on_message(ANN, Pong(9), 0.05) == [], "not the answer to ours"
    assert links.on_message(ANN, Pong(1), 0.1) == [SetTimer(15.0, tick("ping"))]
    assert links.rtt(ANN) == 0.1
    assert links.on_message(ANN, Pong(1), 0.2) == [], "answered already"
    assert links.fired(tick("ping"), 15.1) == [Send(ANN, Ping(2)), SetTimer(5.0, tick("ping"))]
    assert links.rtt(BEN) is None


def test_a_peer_that_does_not_answer_is_gone() -> None:
    links = linked(ANN)
    assert links.fired(tick("ping"), 5.0) == [Send(ANN, Ping(2)), SetTimer(5.0, tick("ping"))]
    assert links.fired(tick("ping"), 10.0) == [Send(ANN, Ping(3)), SetTimer(5.0, tick("ping"))]
    assert links.fired(tick("ping"), 15.0) == [HangUp(ANN, Reason.PING_TIMEOUT)]


def test_an_answer_to_any_of_the_pings_will_do() -> None:
    links = linked(ANN)
    for number in range(5):
        links.fired(tick("ping"), 5.0 + number * 20)
        assert links.on_message(ANN, Pong(2 + 2 * number), 6.0 + number * 20) != []
        links.fired(tick("ping"), 20.0 + number * 20)
    assert links.is_up(ANN)


def test_pings_are_answered() -> None:
    links = linked(ANN)
    assert links.on_message(ANN, Ping(77), 0.0) == [Send(ANN, Pong(77))]
    assert links.on_message(BEN, Ping(77), 0.0) == []
    assert links.on_message(ANN, Bye(Reason.SHUTDOWN), 0.0) == []
    assert links.on_message(ANN, Unsupported(99), 0.0) == []


def test_there_is_a_most_of_links_but_not_for_those_that_we_hold() -> None:
    links = linked(ANN, BEN)
    third, fourth = PeerId(b"c" * 32), PeerId(b"d" * 32)
    assert links.link_up(up(third, False), 0.0) == ([HangUp(third, Reason.TOO_MANY_LINKS)], False)
    assert links.link_down(third, Reason.TOO_MANY_LINKS, 0.0) == []
    links.hold(Hold(fourth, HINTS, "tea"))
    assert links.link_up(up(fourth), 0.0)[1]


def test_too_many_control_messages_are_too_many_until_time_has_passed() -> None:
    links = linked(ANN)
    assert all(links.spend(ANN, 0.0) for _ in range(100))
    assert not links.spend(ANN, 0.0)
    assert sum(links.spend(ANN, 1.0) for _ in range(50)) == 9
    assert links.spend(BEN, 0.0), "who has no link, such as ourselves, is not counted"


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
    assert links.block(ANN, True) == [HangUp(ANN, Reason.BLOCKED)]
    links.link_down(ANN, Reason.BLOCKED, 1.0)
    assert links.fired(tick("dial"), 2.0) == []
    assert links.link_up(up(), 3.0) == ([HangUp(ANN, Reason.BLOCKED)], False)
    assert links.hold(Hold(ANN, HINTS, "more")) == []
    assert links.block(BEN, True) == []
    assert links.block(BEN, False) == []
    assert links.block(ANN, False) == [Dial(ANN, HINTS)], "it is held still"
    assert links.link_up(up(), 4.0)[1]
    assert links.block(ANN, False) == []


def test_status_tells_of_links_open_and_wanted() -> None:
    links = linked(ANN)
    links.on_message(ANN, Needed(True), 0.0)
    links.on_message(ANN, Pong(1), 0.25)
    links.hold(Hold(BEN, HINTS, "tea"))
    links.dial_failed(BEN, Reason.DIAL_TIMEOUT)
    one, other = links.status()
    assert (one.peer, one.up, one.dialed, one.needed, one.wanted) == (ANN, True, True, (), True)
    assert (one.rtt, one.since, one.agent, one.roles) == (0.25, 0.0, "test", ("storage",))
    assert (other.peer, other.up, other.needed, other.last_failure) == (
        BEN,
        False,
        ("tea",),
        Reason.DIAL_TIMEOUT,
    )


def test_where_a_peer_listens_is_remembered_from_its_greeting() -> None:
    links = linked(ANN)
    links.hold(Hold(ANN, (), "tea"))
    links.link_down(ANN, Reason.REMOTE_CLOSED, 1.0)
    assert links.fired(tick("dial"), 2.0) == [Dial(ANN, ("tls://told:1",))]


def test_asleep_every_link_is_closed_and_nobody_is_dialled_until_it_wakes() -> None:
    links = linked(ANN, BEN, held=True)
    assert links.sleep() == [HangUp(ANN, Reason.NOT_NEEDED), HangUp(BEN, Reason.NOT_NEEDED)]
    links.link_down(ANN, Reason.NOT_NEEDED, 1.0)
    links.link_down(BEN, Reason.NOT_NEEDED, 1.0)
    assert links.fired(tick("dial"), 2.0) == []
    assert links.hold(Hold(PeerId(b"c" * 32), HINTS, "x")) == []
    assert links.link_up(up(ANN), 3.0) == ([HangUp(ANN, Reason.NOT_NEEDED)], False)
    links.release(Release(BEN, "x"))
    assert links.wake() == [Dial(ANN, HINTS), Dial(PeerId(b"c" * 32), HINTS)]
    assert links.wake() == []
