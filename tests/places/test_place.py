"""A place from end to end: a host, guests, the shipped machines on a simulated network."""

from __future__ import annotations

import pytest
from tests.places.malice import AnySend, MaliciousWorld, Twist
from tests.places.sharing import announced, bodies, entered_place

from linnet.core.effects import AfterCommit, Reply, Send
from linnet.core.ids import PeerId
from linnet.core.inputs import Asked
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.machine.commands import Declined, Done
from linnet.peer.config import LinkConfig, PeerConfig
from linnet.places.channel.packet import Modifier
from linnet.places.channel.state_order import StateOrder
from linnet.places.commands import (
    Admit,
    Announce,
    Announced,
    AnnounceMore,
    ChangePlace,
    Eject,
    Entered,
    EnterPlace,
    GuestsAre,
    LeavePlace,
    ListGuests,
    Look,
    ObjectsAre,
    PlaceIs,
    Reject,
    Talked,
    TalkTo,
    Turned,
    WatchPlace,
)
from linnet.places.config import PlacesConfig
from linnet.places.deed import Policy
from linnet.places.items import Lost
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.places.world import HINTS, HOST, PlacesWorld
from linnet.trace.columns import ColumnTrace


def test_a_host_announces_and_every_guest_hears_it_and_sees_the_state() -> None:
    world = entered_place(3, 1)
    first = announced(world, b"hello", Modifier("=", "_topic", b"tea"))
    announced(world, b"again")
    world.network.run(world.network.elapsed + 5)
    for name in (HOST, *world.guests):
        assert bodies(world, name, first) == [b"hello", b"again"], name
        objects = world.obtain(name, Look(world.place, "_topic"), ObjectsAre).objects
        assert objects == (("_topic", b"tea"),)
    statuses = [world.status(name) for name in (HOST, *world.guests)]
    assert len({each.state_hash for each in statuses}) == 1
    assert [each.role for each in statuses] == ["host", "guest", "guest", "guest"]
    assert all(each.missing == 0 for each in statuses)


def test_what_is_announced_is_sent_and_answered_when_it_is_durable_and_not_before() -> None:
    world = entered_place(1, 21)
    host = world.network.machine(world.peer(HOST))
    asked = Asked(1, Announce(world.place, "_message", body=b"hello"))
    effects = host.handle(asked, world.network.now)
    promised = [each for effect in effects if isinstance(effect, AfterCommit) for each in effect.effects]
    sent = [each.message for each in promised if isinstance(each, Send)]
    assert [type(each) for each in sent] == [Data]
    assert [type(each.result) for each in promised if isinstance(each, Reply)] == [Announced]
    assert not [each for each in effects if isinstance(each, Send | Reply)]


def test_who_speaks_is_told_of_an_operation_that_would_change_nothing() -> None:
    world = entered_place(1, 6)
    nonsense = Announce(world.place, "_message", (Modifier("+", "_topic", b"time"),), b"hello")
    declined = world.obtain(HOST, nonsense, Declined)
    assert (declined.reason, declined.detail) == (
        Reason.UNSUPPORTED,
        "+_topic: + on a variable of this type",
    )


def test_an_operation_that_changes_nothing_is_on_record_and_the_rest_of_the_message_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(StateOrder, "check", lambda *_: None)  # A host of an older version does not check.
    trace = ColumnTrace()
    world = PlacesWorld(1, seed=6, trace=trace)
    world.found(Policy.PUBLIC)
    world.enter("guest0")
    given = (Modifier("=", "_topic", b"tea"), Modifier("+", "_topic", b"time"), Modifier("=", "_note", b"x"))
    message = announced(world, b"hello", *given)
    world.network.run(world.network.elapsed + 5)
    objects = world.obtain("guest0", Look(world.place, ""), ObjectsAre).objects
    assert objects == (("_note", b"x"), ("_topic", b"tea"))
    reader = world.identities["guest0"].peer
    rows = [each for each in trace.rows() if each.node == reader and each.reason == Reason.UNSUPPORTED]
    notes = [each.note for each in rows]
    assert notes == [f"message {message}: +_topic: + on a variable of this type"]


def test_an_object_is_found_by_the_whole_name_that_fits_best() -> None:
    world = entered_place(1, 6)
    announced(world, b"x", Modifier("=", "_topic", b"tea"), Modifier("=", "_topic_today", b"cake"))
    world.network.run(world.network.elapsed + 5)
    for name in (HOST, "guest0"):
        for asked, found in (
            ("_topic_today_noon", (("_topic_today", b"cake"),)),
            ("_topic_today", (("_topic_today", b"cake"),)),
            ("_topic_tomorrow", (("_topic", b"tea"),)),
            ("_note", ()),
        ):
            assert world.obtain(name, Look(world.place, asked, at=True), ObjectsAre).objects == found


def test_whoever_comes_later_has_the_state_and_not_the_history_of_a_public_place() -> None:
    world = PlacesWorld(2, seed=2)
    world.found(Policy.PUBLIC)
    world.enter("guest0")
    before = announced(world, b"before", Modifier("=", "_topic", b"tea"), Modifier("=", "_note", b"x"))
    world.enter("guest1")
    after = announced(world, b"after")
    world.network.run(world.network.elapsed + 5)
    assert bodies(world, "guest0", before)[0] == b"before"
    assert b"before" not in bodies(world, "guest1", 0)
    assert bodies(world, "guest1", after) == [b"after"]
    objects = world.obtain("guest1", Look(world.place, ""), ObjectsAre).objects
    assert objects == (("_note", b"x"), ("_topic", b"tea"))
    world.lost.clear()
    world.ask("guest1", WatchPlace(7, world.place, since=before, until=before))
    world.network.run(world.network.elapsed + 5)
    assert world.lost["guest1"] == [Lost(world.place, before, before, Reason.NOT_ALLOWED)]


def test_whoever_comes_later_has_all_history_of_a_closed_place() -> None:
    world = PlacesWorld(1, seed=3)
    world.found(Policy.CLOSED)
    before = announced(world, b"before", Modifier("=", "_topic", b"tea"))
    request = world.ask("guest0", EnterPlace(world.place, (world.contact(HOST),), text=b"let me in"))
    world.network.run(world.network.elapsed + 2)
    (knocked,) = world.knocked
    assert knocked.text == b"let me in"
    assert knocked.nym == world.identities["guest0"].author
    assert request not in world.network.answers, "the host decides"
    world.obtain(HOST, Admit(world.place, knocked.nym), Announced)
    assert isinstance(world.answered(request), Entered)
    world.network.run(world.network.elapsed + 5)
    world.watch("guest0")
    world.network.run(world.network.elapsed + 5)
    assert bodies(world, "guest0", before)[0] == b"before"


def test_who_is_rejected_hears_why() -> None:
    world = PlacesWorld(1, seed=4)
    world.found(Policy.PRIVATE)
    request = world.ask("guest0", EnterPlace(world.place, (world.contact(HOST),)))
    world.network.run(world.network.elapsed + 2)
    (knocked,) = world.knocked
    redirect = (Modifier(":", "_place", b"lt1elsewhere"),)
    world.obtain(HOST, Reject(world.place, knocked.nym, modifiers=redirect, body=b"not today"), Done)
    turned = world.answered(request)
    assert isinstance(turned, Turned)
    assert (turned.method, turned.modifiers, turned.text) == ("_failure_place_enter", redirect, b"not today")


def test_who_is_ejected_gets_the_notice_and_nothing_after_it() -> None:
    world = entered_place(3, 5)
    first = announced(world, b"one")
    nym = world.identities["guest1"].author
    world.network.run(world.network.elapsed + 3)
    notice = world.obtain(HOST, Eject(world.place, nym), Announced).message
    announced(world, b"two")
    world.network.run(world.network.elapsed + 60)
    assert bodies(world, "guest0", first) == [b"one", b"two"]
    assert bodies(world, "guest1", first) == [b"one"]
    assert max(world.said["guest1"]) == notice
    declined = world.obtain("guest1", LeavePlace(world.place, for_good=True), Declined)
    assert declined.reason is Reason.NOT_A_MEMBER
    assert world.status("guest0").generation == 1
    guests = world.obtain(HOST, ListGuests(world.place), GuestsAre).guests
    assert [each.nym for each in guests] == sorted(
        world.identities[name].author for name in ("guest0", "guest2")
    )
    world.crash(HOST)
    again = world.answered(world.ask("guest1", EnterPlace(world.place, (world.contact("guest0"),))), 90)
    assert isinstance(again, Declined), "only the host lets somebody in again"


def test_a_large_body_streams_and_small_messages_go_in_between() -> None:
    world = entered_place(2, 6)
    large = world.obtain(HOST, Announce(world.place, "_file", body=b"a" * 300_000, more=True), Announced)
    small = announced(world, b"in between")
    world.obtain(HOST, AnnounceMore(world.place, large.message, b"b" * 200_000, False), Announced)
    world.network.run(world.network.elapsed + 5)
    for name in world.guests:
        assert world.said[name][small] == b"in between"
        assert world.said[name][large.message] == b"a" * 300_000 + b"b" * 200_000


def test_more_guests_than_the_host_sends_to_hear_through_others() -> None:
    world = entered_place(12, 7, config=PlacesConfig(fanout=3))
    first = announced(world, b"hello")
    world.network.run(world.network.elapsed + 10)
    assert all(bodies(world, name, first) == [b"hello"] for name in world.guests)
    assert len(world.status(HOST).downstreams) == 3


@pytest.mark.parametrize("seed", range(4))
def test_what_is_lost_on_the_way_is_asked_for(seed: int) -> None:
    world = entered_place(
        6, seed, links=LinkModel(named_latency("aws"), loss=0.05), config=PlacesConfig(fanout=3)
    )
    first = announced(world, b"0", Modifier("=", "_count", b"0"))
    for number in range(1, 20):
        announced(world, str(number).encode(), Modifier("=", "_count", str(number).encode()))
    world.network.run(world.network.elapsed + 120)
    # What changes no state is missed by its number alone.
    for number in range(20, 60):
        announced(world, str(number).encode())
    world.network.run(world.network.elapsed + 120)
    expected = [str(number).encode() for number in range(60)]
    for name in world.guests:
        heard = bodies(world, name, first)
        assert heard == expected, name
    hashes = {world.status(name).state_hash for name in (HOST, *world.guests)}
    assert len(hashes) == 1


def test_after_a_crash_of_host_and_guest_everything_goes_on() -> None:
    world = entered_place(3, 8)
    first = announced(world, b"one", Modifier("=", "_topic", b"tea"))
    world.network.run(world.network.elapsed + 3)
    world.crash("guest1")
    announced(world, b"two", Modifier("=", "_topic", b"coffee"))
    world.network.run(world.network.elapsed + 3)
    world.crash(HOST)
    world.restart("guest1")
    world.network.run(world.network.elapsed + 10)
    world.restart(HOST)
    world.network.run(world.network.elapsed + 60)
    announced(world, b"three")
    world.network.run(world.network.elapsed + 60)
    for name in world.guests:
        heard = bodies(world, name, first)
        assert heard == [b"one", b"two", b"three"], name
    assert world.status("guest1").term == 1, "the host goes on in its term"


def test_a_body_that_is_under_way_when_a_guest_crashes_comes_whole_and_only_once() -> None:
    world = entered_place(2, 8)
    whole = bytes(range(250)) * 16_000
    opened = world.obtain(HOST, Announce(world.place, "_file", body=whole[:2_000_000], more=True), Announced)
    world.network.run(world.network.elapsed + 3)
    world.crash("guest1")
    world.obtain(HOST, AnnounceMore(world.place, opened.message, whole[2_000_000:3_000_000], True), Announced)
    world.network.run(world.network.elapsed + 3)
    world.restart("guest1")
    world.obtain(HOST, AnnounceMore(world.place, opened.message, whole[3_000_000:], False), Announced)
    world.network.run(world.network.elapsed + 30)
    for name in world.guests:
        assert world.said[name][opened.message] == whole
    assert world.status("guest1").missing == 0


def test_who_crashes_with_gaps_knows_them_and_asks_for_nothing_that_it_has() -> None:
    config = PlacesConfig(gap_delay=60.0, keepalive=600.0)
    world = PlacesWorld(1, 5, LinkModel(named_latency("aws"), loss=0.3), config)
    world.found()
    # It is in at once, and told so when the state is there: with these delays that takes long.
    world.ask("guest0", EnterPlace(world.place, (world.contact(HOST),), patience=600.0))
    world.watch("guest0")
    while not world.status(HOST).guests:
        world.network.run(world.network.elapsed + 1)
    for number in range(40):
        announced(world, str(number).encode())
    world.network.run(world.network.elapsed + 5)
    before = world.status("guest0").missing
    world.crash("guest0")
    world.network.run(world.network.elapsed + 5)
    world.restart("guest0")
    assert world.status("guest0").missing == before > 0
    world.network.run(world.network.elapsed + 300)
    assert world.status("guest0").missing == 0
    assert bodies(world, "guest0", 0) == [str(number).encode() for number in range(40)]


class Strict(PlacesWorld):
    """Nodes that hang up on whoever sends more than a little control."""

    def configured(self, name: str) -> PeerConfig:
        return PeerConfig(listens=HINTS, places=self.config, links=LinkConfig(control_rate=15.0))


def test_whoever_has_much_to_catch_up_with_does_not_count_as_flooding() -> None:
    world = Strict(1, seed=3)
    world.found()
    world.enter("guest0")
    world.network.run(world.network.elapsed + 5)
    world.crash("guest0")
    for number in range(400):
        announced(world, str(number).encode())
    world.restart("guest0")
    world.network.run(world.network.elapsed + 10)
    assert bodies(world, "guest0", 0) == [str(number).encode() for number in range(400)]


def test_who_disconnects_comes_in_again_unasked() -> None:
    world = PlacesWorld(1, seed=9)
    world.found(Policy.PRIVATE)
    request = world.ask("guest0", EnterPlace(world.place, (world.contact(HOST),)))
    world.network.run(world.network.elapsed + 2)
    world.obtain(HOST, Admit(world.place, world.knocked[0].nym), Announced)
    assert isinstance(world.answered(request), Entered)
    world.obtain("guest0", LeavePlace(world.place, for_good=False), Done)
    missed = announced(world, b"missed")
    world.obtain("guest0", EnterPlace(world.place, (world.contact(HOST),)), Entered)
    world.watch("guest0")
    world.network.run(world.network.elapsed + 10)
    assert len(world.knocked) == 1
    assert world.said["guest0"][missed] == b"missed"


def test_a_guest_may_not_speak() -> None:
    world = entered_place(1, 10)
    declined = world.obtain("guest0", Announce(world.place, "_message", body=b"x"), Declined)
    assert declined.reason is Reason.NOT_A_PUBLISHER


def test_a_guest_talks_to_the_host_through_others_who_cannot_read_it() -> None:
    world = entered_place(5, 11, config=PlacesConfig(fanout=1, upstreams=1))
    world.network.run(world.network.elapsed + 5)
    assert world.status("guest4").upstreams == (world.identities["guest3"].peer,), "a chain"
    mood = Modifier(":", "_mood", b"good")
    world.obtain("guest4", TalkTo(world.place, "_message", (mood,), b"psst"), Talked)
    (said,) = world.requests
    assert (said.nym, said.method) == (world.identities["guest4"].author, "_message")
    assert list(world.asked.values()) == [b"psst"]
    assert b"psst" not in world.said["guest2"].values()


def test_a_request_that_would_change_state_is_declined() -> None:
    world = entered_place(1, 12)
    talk = TalkTo(world.place, "_message", (Modifier("=", "_topic", b"mine"),), b"x")
    result = world.answered(world.ask("guest0", talk))
    assert isinstance(result, Declined)


def test_who_leaves_for_good_is_told_to_all_and_hears_no_more() -> None:
    world = entered_place(2, 13)
    first = announced(world, b"one")
    world.network.run(world.network.elapsed + 3)
    world.obtain("guest1", LeavePlace(world.place, for_good=True), Talked)
    announced(world, b"two")
    world.network.run(world.network.elapsed + 30)
    assert bodies(world, "guest0", first) == [b"one", b"two"]
    assert bodies(world, "guest1", first) == [b"one"]
    assert world.status("guest1").role == "outside"


def test_a_newcomer_is_told_all_membership_however_many_pages_it_takes() -> None:
    world = entered_place(70, 15)
    first = announced(world, b"hello")
    world.network.run(world.network.elapsed + 10)
    assert world.status("guest69").guests == 70
    assert bodies(world, "guest69", first) == [b"hello"]


def test_a_cohost_speaks_while_the_host_is_away() -> None:
    world = entered_place(3, 16)
    cohost = world.identities["guest0"].author
    world.obtain(HOST, ChangePlace(world.place, cohosts=(cohost,)), PlaceIs)
    first = announced(world, b"by the host", Modifier("=", "_topic", b"tea"))
    world.network.run(world.network.elapsed + 5)
    world.crash(HOST)
    world.network.run(world.network.elapsed + 5)
    assert world.status("guest0").role == "cohost"
    words = Announce(world.place, "_message", (Modifier("=", "_topic", b"coffee"),), b"by the co-host")
    world.obtain("guest0", words, Announced)
    world.network.run(world.network.elapsed + 5)
    world.crash("guest0")
    world.restart("guest0")
    world.network.run(world.network.elapsed + 60)
    for name in world.guests:
        assert bodies(world, name, first) == [b"by the host", b"by the co-host"], name
    statuses = [world.status(name) for name in world.guests]
    assert [each.term for each in statuses] == [2, 2, 2]
    assert len({each.state_hash for each in statuses}) == 1


def test_a_host_that_restarts_and_says_nothing_still_gives_signs_of_life() -> None:
    world = entered_place(1, 17)
    world.network.run(world.network.elapsed + 3)
    world.crash(HOST)
    world.restart(HOST)
    before = world.status(HOST).message
    world.network.run(world.network.elapsed + 100)
    assert world.status(HOST).message > before
    assert world.status("guest0").message == world.status(HOST).message


class Losing(Twist):
    """Loses every fragment for as long as it is told to."""

    loses = False

    def sends(self, send: AnySend) -> list[AnySend]:
        return [] if self.loses and isinstance(send.message, Data) else [send]


def test_a_lost_last_fragment_is_found_by_the_next_sign_of_life() -> None:
    losing = Losing()
    world = MaliciousWorld(2, 18, {HOST: losing})
    world.found()
    for name in world.guests:
        world.enter(name)
    announced(world, b"heard")
    world.network.run(world.network.elapsed + 3)
    losing.loses = True
    lost = announced(world, b"lost")
    losing.loses = False
    silence = world.config.keepalive
    world.network.run(world.network.elapsed + silence - 5)
    assert all(lost not in world.said[name] for name in world.guests), "nobody can know of it yet"
    world.network.run(world.network.elapsed + 15)
    assert [world.said[name].get(lost) for name in world.guests] == [b"lost", b"lost"]
    assert [world.status(name).missing for name in world.guests] == [0, 0]


class Overhearing(Twist):
    """Writes down the fragments that a node sends, with the peers."""

    def __init__(self) -> None:
        self.sent: list[tuple[PeerId, Data]] = []

    def sends(self, send: AnySend) -> list[AnySend]:
        if isinstance(send.message, Data):
            self.sent.append((send.peer, send.message))
        return [send]


def test_the_card_of_who_speaks_goes_over_each_link_once() -> None:
    overhearing = Overhearing()
    world = MaliciousWorld(2, 20, {HOST: overhearing})
    world.found()
    for name in world.guests:
        world.enter(name)
    for number in range(4):
        announced(world, str(number).encode())
    world.network.run(world.network.elapsed + 5)
    for name in world.guests:
        cards = [data.card for peer, data in overhearing.sent if peer == world.peer(name)]
        assert cards[0] == world.identities[HOST].card
        assert len(cards) >= 4
        assert not any(cards[1:])
    overhearing.sent.clear()
    world.crash("guest0")
    world.network.run(world.network.elapsed + 5)
    world.restart("guest0")
    world.network.run(world.network.elapsed + 10)
    announced(world, b"again")
    world.network.run(world.network.elapsed + 5)
    cards = [data.card for peer, data in overhearing.sent if peer == world.peer("guest0")]
    assert cards[0] == world.identities[HOST].card, "over another link it goes anew"
