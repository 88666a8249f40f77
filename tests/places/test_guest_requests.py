"""Requests to a host who is away: refused by that, or heard when it is back."""

from __future__ import annotations

import pytest
from tests.places.sealed.scene import Node
from tests.places.sharing import entered_place

from linnet.core.effects import AfterCommit, Send
from linnet.core.inputs import Received
from linnet.core.reasons import Reason
from linnet.delivery.commands import Unsubscribe
from linnet.identity.keys import SigningKey
from linnet.machine.commands import Declined
from linnet.machine.outbox import Outbox
from linnet.places import guest_requests
from linnet.places.channel.packet import Modifier, render
from linnet.places.commands import Talked, TalkTo
from linnet.places.config import PlacesConfig
from linnet.places.deed import Policy, sign_deed
from linnet.places.guest_requests import GuestRequests
from linnet.places.messages import Heard
from linnet.places.multicast.sealed_requests import PATIENCE, TALK_PIECE, RequestSender
from linnet.places.place_setup import Parts
from linnet.sim.clock import START
from linnet.sim.places.world import HOST, WATCHER, PlacesWorld
from linnet.sim.seeded_random import SeededEntropy
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind, Record


def test_without_a_host_nobody_hears_a_request_and_that_is_said() -> None:
    world = entered_place(1, 14)
    world.crash(HOST)
    result = world.answered(world.ask("guest0", TalkTo(world.place, "_message", body=b"x", patience=5.0)))
    assert isinstance(result, Declined)
    assert result.reason is Reason.UNREACHABLE
    assert "away" in result.detail


def test_what_a_guest_says_before_a_crash_and_behind_it_are_two_requests() -> None:
    world = entered_place(1, 14)
    for text in (b"one", b"two"):
        world.obtain("guest0", TalkTo(world.place, "_message", body=text), Talked)
        world.network.run(world.network.elapsed + 1)
        world.crash("guest0")
        world.restart("guest0")
        world.network.run(world.network.elapsed + 10)
    assert [*world.asked.values()] == [b"one", b"two"]
    assert len(world.requests) == 2


def test_a_host_at_whose_device_nobody_listens_is_not_one_whose_application_has_too_much_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = entered_place(1, 14)
    talk = TalkTo(world.place, "_message", body=b"x", patience=5.0)
    with monkeypatch.context() as full:
        full.setattr(guest_requests, "MOST", 0)
        declined = world.obtain("guest0", talk, Declined)
    assert (declined.reason, declined.detail) == (
        Reason.QUEUE_FULL,
        "the host's device did not take it",
    )
    world.ask(HOST, Unsubscribe(WATCHER))
    world.network.run(world.network.elapsed + 1)
    declined = world.obtain("guest0", talk, Declined)
    assert declined.reason is Reason.NOT_HELD
    assert "nobody listens" in declined.detail
    assert world.requests == []
    world.watch(HOST)
    world.obtain("guest0", talk, Talked)


def test_a_request_to_a_host_who_is_away_is_refused_by_that_also_where_others_are_between() -> None:
    world = entered_place(4, 14, config=PlacesConfig(fanout=1, upstreams=1))
    world.network.run(world.network.elapsed + 5)
    world.crash(HOST)
    request = world.ask("guest3", TalkTo(world.place, "_message", body=b"x", patience=5.0))
    result = world.answered(request)
    assert isinstance(result, Declined)
    assert result.reason is Reason.UNREACHABLE
    patient = world.ask("guest3", TalkTo(world.place, "_message", body=b"y", patience=55.0))
    world.network.run(world.network.elapsed + 10)
    world.restart(HOST)
    assert isinstance(world.answered(patient), Talked), "who is patient is heard when the host is back"


@pytest.mark.parametrize("is_in", [True, False])
def test_the_host_hears_guests_and_nobody_else(is_in: bool) -> None:
    """A request that is made as a guest makes it, sent straight to the host's device."""
    world = PlacesWorld(1, seed=15)
    world.found()
    if is_in:
        world.enter("guest0")
    who, host = world.identities["guest0"], world.peer(HOST)
    talking = RequestSender(world.place, who.device, who.card, world.config, SeededEntropy(15, "talk"))
    (piece,) = talking.say(host, render((), "_message") + b"psst")[1]
    effects = world.network.machine(host).handle(Received(who.peer, piece), world.network.now)
    promised = [each for effect in effects if isinstance(effect, AfterCommit) for each in effect.effects]
    assert any(isinstance(each, Send) and isinstance(each.message, Heard) for each in promised) is is_in
    reasons = [effect.reason for effect in effects if isinstance(effect, Record)]
    assert (Reason.NOT_A_MEMBER in reasons) is not is_in


@pytest.mark.parametrize("operator", ["=", "+", "-"])
def test_a_request_that_would_change_state_is_refused_by_the_host_as_well(operator: str) -> None:
    """A guest that does not obey its own machine sends it straight to the host's device."""
    world = entered_place(1, 15)
    who, host = world.identities["guest0"], world.peer(HOST)
    talking = RequestSender(world.place, who.device, who.card, world.config, SeededEntropy(15, "talk"))
    modifiers = (Modifier(":", "_mood", b"good"), Modifier(operator, "_topic", b"mine"))
    (piece,) = talking.say(host, render(modifiers, "_message") + b"psst")[1]
    effects = world.network.machine(host).handle(Received(who.peer, piece), world.network.now)
    note = f"request: {operator}_topic in a request"
    assert effects == [
        Record(Kind.REJECTED, world.place, peer=who.peer, reason=Reason.NOT_ALLOWED, note=note)
    ]


def test_a_receipt_goes_back_the_way_of_its_request_once() -> None:
    host, ann = (known_identity(name) for name in ("host", "ann"))
    deed = sign_deed(SigningKey(b"p" * 32), 1, Policy.PUBLIC, host.author)
    config, out, between = PlacesConfig(), Outbox(), Node("ben")
    between.context.links[host.peer] = None
    requests = GuestRequests(Parts(deed, between.context, config, out))
    sender = RequestSender(deed.place, ann.device, ann.card, config, SeededEntropy(3, "talk"))
    number, (piece,) = sender.say(host.peer, b"_request\nplease")
    assert requests.handle_talk(ann.peer, piece, True, START) is None
    assert [each.peer for each in out.take() if isinstance(each, Send)] == [host.peer]
    heard = Heard(deed.place, ann.peer, number, None, bytes(64))
    for told in ([ann.peer], []):
        requests.handle_heard(host.peer, heard)
        effects = out.take()
        assert [each.peer for each in effects if isinstance(each, Send)] == told
        reasons = [each.reason for each in effects if isinstance(each, Record)]
        assert reasons == ([] if told else [Reason.UNREACHABLE])


def test_a_request_that_is_never_finished_leaves_room_for_others_after_a_while() -> None:
    host, ann, ben = (known_identity(name) for name in ("host", "ann", "ben"))
    deed = sign_deed(SigningKey(b"p" * 32), 1, Policy.PUBLIC, host.author)
    config, out = PlacesConfig(talks_open=1), Outbox()
    requests = GuestRequests(Parts(deed, Node("host").context, config, out))
    entropy = SeededEntropy(3, "talk")
    senders = (RequestSender(deed.place, who.device, who.card, config, entropy) for who in (ann, ben))
    (unfinished, *_), (whole,) = (
        sender.say(host.peer, b"_request\n" + bytes(size))[1]
        for sender, size in zip(senders, (TALK_PIECE, 4), strict=True)
    )
    assert requests.handle_talk(ann.peer, unfinished, True, START) is None
    assert requests.handle_talk(ben.peer, whole, True, START + PATIENCE - 1) is None
    assert requests.handle_talk(ben.peer, whole, True, START + PATIENCE) is not None
    reasons = [each.reason for each in out.take() if isinstance(each, Record)]
    assert reasons == [Reason.TOO_MANY, Reason.TIMEOUT]
