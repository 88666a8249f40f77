"""Where messages and timers go: none is without a place, and no two parts share an owner of timers."""

from __future__ import annotations

from collections import Counter
from random import Random

from linnet.delivery.messages import Data
from linnet.event.signing import verify_unit
from linnet.identity.cards import check_card
from linnet.overlay.messages import OverlayMessage
from linnet.overlay.trackerless.messages import TrackerlessMessage
from linnet.peer import links
from linnet.peer.config import PeerConfig
from linnet.peer.edge import OWNERS as EDGE_OWNERS
from linnet.peer.messages import LinkMessage, Message
from linnet.peer.network import OWNERS as NETWORK_OWNERS
from linnet.peer.parts import Parts
from linnet.peer.routes import message_routes, timer_routes
from linnet.peer.whereabouts import Located
from linnet.places.places import OWNERS as PLACE_OWNERS
from linnet.rooms.rooms import OWNERS as ROOM_OWNERS
from linnet.store.memory import MemoryStore
from linnet.streams import repair
from linnet.streams.streams import OWNERS as STREAM_OWNERS
from linnet.testing.identities import known_identity
from linnet.testing.strategies import members


def parts() -> Parts:
    return Parts(PeerConfig(), known_identity("us"), MemoryStore(), Random(1), verify_unit, check_card, None)


def test_every_message_has_a_place_and_those_of_several_parts_are_the_nodes() -> None:
    by_the_node = {
        Data,
        Located,
        *members(LinkMessage),
        *members(OverlayMessage),
        *members(TrackerlessMessage),
    }
    assert set(members(Message)) - by_the_node == set(message_routes(parts())) - by_the_node


def test_an_owner_of_timers_is_of_one_part() -> None:
    owners = [*STREAM_OWNERS, *ROOM_OWNERS, *PLACE_OWNERS, *NETWORK_OWNERS, *EDGE_OWNERS]
    owners += [links.OWNER, repair.OWNER]
    assert [owner for owner, times in Counter(owners).items() if times > 1] == []
    assert set(timer_routes(parts())) == set(owners)
