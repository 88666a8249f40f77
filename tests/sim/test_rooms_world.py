from __future__ import annotations

import pytest

from linnet.core.ids import PeerId, TopicId
from linnet.rooms.commands import CreateRoom, ExamineState, SendToRoom
from linnet.rooms.config import RelayChoice
from linnet.rooms.content import Membership
from linnet.rooms.relay_choice import Chooser
from linnet.rooms.results import RoomMade, Sent, StateIs
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.named_nodes import SetupFailed
from linnet.sim.rooms_world import RoomsWorld, seed_for
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


def test_what_is_declined_is_told_with_its_reason() -> None:
    made = world(peers=2, relays=0)
    with pytest.raises(SetupFailed, match="peer0 was asked for SendToRoom: unknown_room"):
        made.obtain("peer0", SendToRoom(TopicId(bytes(32)), (b"x",)), Sent)
    made.offline("peer1")
    with pytest.raises(SetupFailed, match="peer1 was asked for CreateRoom: crashed"):
        made.obtain("peer1", CreateRoom(), RoomMade)
    with pytest.raises(SetupFailed, match="no answer within 3 s"):
        made.answered(999_999, limit=3.0)


def test_a_peer_can_be_led_to_any_relay() -> None:
    relays = [PeerId(bytes([n]) * 32) for n in range(4)]
    room = TopicId(b"r" * 32)
    for relay in relays:
        seed = seed_for(room, relay, relays)
        assert Chooser(room, RelayChoice.RANDOM, seed).order(relays, 0, {})[0] == relay
    with pytest.raises(ValueError, match="among the relays of its room"):
        seed_for(room, PeerId(bytes([9]) * 32), relays)
