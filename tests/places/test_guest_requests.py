"""Requests to a host who is away: refused by that, or heard when it is back."""

from __future__ import annotations

import pytest

from linnet.core.effects import AfterCommit, Send
from linnet.core.inputs import Received
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.places.channel.packet import render
from linnet.places.commands import Talked, TalkTo
from linnet.places.config import PlacesConfig
from linnet.places.messages import Heard
from linnet.places.multicast.sealed_requests import RequestSender
from linnet.sim.luck import SeededEntropy
from linnet.sim.places_world import HOST, PlacesWorld
from linnet.trace.records import Record


def test_without_a_host_nobody_hears_a_request_and_that_is_said() -> None:
    world = PlacesWorld(1, seed=14)
    world.found()
    world.enter("guest0")
    world.crash(HOST)
    result = world.answered(world.ask("guest0", TalkTo(world.place, "_message", body=b"x", patience=5.0)))
    assert isinstance(result, Declined)
    assert result.reason is Reason.UNREACHABLE
    assert "away" in result.detail


def test_a_request_to_a_host_who_is_away_is_refused_by_that_also_where_others_are_between() -> None:
    world = PlacesWorld(4, seed=14, config=PlacesConfig(fanout=1, upstreams=1))
    world.found()
    for name in world.guests:
        world.enter(name)
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
