from __future__ import annotations

import pytest

from linnet.core.ids import PeerId, TopicId
from linnet.rooms.commands import ExamineState, SendToRoom, Sent, StateIs
from linnet.rooms.config import RelayChoice
from linnet.rooms.event_types import Membership
from linnet.rooms.relay_client.roster import RelaySelection
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.rooms.world import RoomsWorld, seed_for
from linnet.trace.columns import ColumnTrace


def world(peers: int = 3, relays: int = 1, seed: int = 1) -> RoomsWorld:
    made = RoomsWorld(seed, peers, relays, LinkModel(constant_latency(20)), ColumnTrace())
    made.set_up()
    return made


def test_all_are_in_the_room_and_relays_are_named() -> None:
    made = world(peers=4, relays=2)
    for name in made.peers:
        state = made.obtain(name, ExamineState(made.room), StateIs)
        joined = {one.person for one in state.members if one.membership is Membership.JOIN and not one.relay}
        assert joined == {made.identities[each].author for each in made.peers}
        assert {one.person for one in state.members if one.relay} == {
            made.identities[each].author for each in made.relays
        }


def test_who_was_away_is_handed_what_was_said_and_nothing_twice() -> None:
    made = world()
    made.offline("peer2")
    made.offline("peer2")
    sent = made.obtain("peer0", SendToRoom(made.room, (b"hello",)), Sent)
    made.network.run(made.network.elapsed + 5)
    assert not made.is_online("peer2")
    assert sent.ids[0] in made.seen["peer1"]
    assert sent.ids[0] not in made.seen.get("peer2", {})
    made.online("peer2")
    made.online("peer2")
    made.network.run(made.network.elapsed + 5)
    assert sent.ids[0] in made.seen["peer2"]
    assert made.repeated == 0
    assert made.away == pytest.approx(5.0, abs=0.1)


def test_a_peer_can_be_led_to_any_relay() -> None:
    relays = [PeerId(bytes([n]) * 32) for n in range(4)]
    room = TopicId(b"r" * 32)
    for relay in relays:
        seed = seed_for(room, relay, relays)
        assert RelaySelection(room, RelayChoice.RANDOM, seed).order(relays, 0, {})[0] == relay
    with pytest.raises(ValueError, match="among the relays of its room"):
        seed_for(room, PeerId(bytes([9]) * 32), relays)
