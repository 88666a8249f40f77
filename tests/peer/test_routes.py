"""Where messages and timers go: none is without a place, and no two parts share an owner of timers."""

from __future__ import annotations

from collections import Counter
from random import Random

from linnet.delivery.messages import Data
from linnet.edge.commands import LanCommand
from linnet.edge.proxy_commands import ProxyCommand
from linnet.event.signing import verify_unit
from linnet.identity.cards import check_card
from linnet.machine.router import table_of
from linnet.names.commands import NamesCommand
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.trackerless.commands import TrackerlessCommand
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.peer.config import PeerConfig
from linnet.peer.content import OWNERS as CONTENT_OWNERS
from linnet.peer.messages import WireMessage
from linnet.peer.parts import Parts
from linnet.peer.routes import message_routes, timer_routes
from linnet.places.places import OWNERS as PLACE_OWNERS
from linnet.rooms.commands import RoomCommand
from linnet.rooms.relay.relay import OWNERS as RELAY_OWNERS
from linnet.store.memory import MemoryStore
from linnet.streams import repair
from linnet.streams.streams import OWNERS as STREAM_OWNERS
from linnet.testing.identities import known_identity
from linnet.testing.strategies import members


def parts(config: PeerConfig) -> Parts:
    return Parts(config, known_identity("us"), MemoryStore(), Random(1), verify_unit, check_card, None)


def test_every_message_has_a_place_and_those_of_several_parts_are_the_nodes() -> None:
    by_the_node = {Data}
    everything = PeerConfig(kademlia=KademliaConfig(), is_tracker=True, trackerless=TrackerlessConfig())
    for config in (PeerConfig(), everything):
        made = parts(config)
        by_hand = set(message_routes(made)) - by_the_node
        by_marks = set(table_of(tuple(map(type, made.routed))).messages)
        assert set(members(WireMessage)) - by_the_node == by_hand | by_marks
        assert by_hand & by_marks == set()


def test_every_command_of_a_converted_part_has_a_handler() -> None:
    of_edge = {*members(LanCommand), *members(ProxyCommand)}
    marked = set(table_of(tuple(map(type, parts(PeerConfig()).routed))).commands)
    of_rooms = set(members(RoomCommand))
    assert marked == {*members(NamesCommand), *members(TrackerlessCommand), *of_edge, *of_rooms}


def test_an_owner_of_timers_is_of_one_part() -> None:
    owners = [*STREAM_OWNERS, *RELAY_OWNERS, *PLACE_OWNERS, *CONTENT_OWNERS]
    owners += [repair.OWNER]
    assert [owner for owner, times in Counter(owners).items() if times > 1] == []
    assert set(timer_routes(parts(PeerConfig()))) == set(owners)
