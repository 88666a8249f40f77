"""Rooms at a mobile: its relays among its proxies carry everything, and nobody else has a link to it."""

from __future__ import annotations

import pytest
from tests.edge.shore import Shore

from linnet.core.reasons import Reason
from linnet.edge.commands import Sleep, Wake
from linnet.rooms.commands import AddRelay, JoinRoom
from linnet.rooms.event_types import Newcomers
from linnet.rooms.relay_client.relay_client import NO_PROXY
from linnet.trace.records import Kind


def test_messages_go_both_ways_through_the_proxy_and_the_mobile_meets_nobody_else() -> None:
    shore = Shore("r0", "ann", "bob", "mia")
    shore.found("ann", "r0", "bob", "mia")
    shore.say("ann", "hello")
    shore.say("mia", "from afar")
    shore.say("bob", "welcome")
    shore.run(5.0)
    for name in ("ann", "bob", "mia"):
        assert sorted(shore.heard(name)) == ["from afar", "hello", "welcome"]
    assert shore.met("mia") == {"r0"}
    assert "mia" not in shore.met("ann") | shore.met("bob")


@pytest.mark.parametrize("seed", range(3))
def test_an_encrypted_room_through_a_proxy_with_sleep_and_loss(seed: int) -> None:
    shore = Shore("r0", "ann", "bob", "mia", seed=seed, loss=0.02)
    shore.found("ann", "r0", "bob", "mia", newcomers=Newcomers.FROM_NOW)
    shore.run(10.0)
    shore.ask("mia", Sleep())
    shore.say("ann", "while you slept")
    shore.run(60.0)
    assert "while you slept" not in shore.heard("mia")
    shore.ask("mia", Wake())
    shore.run(20.0)
    shore.say("mia", "awake")
    shore.run(20.0)
    for name in ("ann", "bob", "mia"):
        assert sorted(shore.heard(name)) == ["awake", "while you slept"]
    assert shore.met("mia") == {"r0"}


def test_a_room_without_a_relay_among_the_proxies_is_out_of_reach_and_that_is_said() -> None:
    shore = Shore("r0", "x0", "ann", "mia")
    shore.found("ann", "x0")
    made = shore.ticket("ann")
    refused = shore.declined("mia", JoinRoom(shore.room, made.ticket, made.contacts))
    assert refused.reason is Reason.NO_ADDRESS
    assert "proxies alone" in refused.detail
    shore.found("mia")
    refused = shore.declined("mia", AddRelay(shore.room, shore.contact("x0")))
    assert refused.reason is Reason.NOT_ALLOWED
    assert [record.note for record in shore.records("mia", Kind.CONTROL) if record.reason] == [NO_PROXY]
    assert shore.met("mia") == {"r0"}


def test_a_mobile_founds_a_room_with_its_proxy_as_the_relay() -> None:
    shore = Shore("r0", "ann", "mia")
    shore.found("mia", "r0", "ann")
    shore.say("mia", "hello")
    shore.say("ann", "hi")
    shore.run(5.0)
    assert sorted(shore.heard("mia")) == sorted(shore.heard("ann")) == ["hello", "hi"]
    assert shore.met("mia") == {"r0"}


def test_two_proxies_that_are_relays_either_may_go() -> None:
    shore = Shore("r0", "r1", "ann", "mia")
    shore.found("ann", "r0", "r1", "mia")
    shore.say("ann", "one")
    shore.run(3.0)
    shore.offline("r0")
    shore.say("ann", "two")
    shore.run(30.0)
    shore.say("mia", "three")
    shore.run(20.0)
    assert sorted(shore.heard("mia")) == sorted(shore.heard("ann")) == ["one", "three", "two"]
    assert shore.met("mia") == {"r0", "r1"}
