"""Every message, timer and command of a node is heard by one part, or it is said what becomes of it."""

from __future__ import annotations

from random import Random

import pytest

from linnet.content.config import ContentConfig
from linnet.core.messages import TopicMessage
from linnet.core.timers import Timer
from linnet.event.signing import verify_unit
from linnet.identity.cards import check_card
from linnet.machine.commands import Command, SubscriptionCommand
from linnet.machine.router import table_of
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Examine, Start, Stop
from linnet.peer.messages import STANDARD
from linnet.peer.parts import Absent, Parts
from linnet.places.place_setup import PlaceTimer
from linnet.rooms.config import RelayConfig
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity

SHIPPED = tuple(
    f"linnet.{package}."
    for package in ("content", "delivery", "edge", "names", "overlay", "peer", "places", "rooms", "streams")
)
"""Packages whose timers and commands are a node's."""
LITTLE = PeerConfig()
EVERYTHING = PeerConfig(
    kademlia=KademliaConfig(),
    is_tracker=True,
    trackerless=TrackerlessConfig(),
    content=ContentConfig(),
    relay=RelayConfig(),
)


def parts(config: PeerConfig) -> Parts:
    return Parts(config, known_identity("us"), MemoryStore(), Random(1), verify_unit, check_card, None)


@pytest.mark.parametrize("config", [LITTLE, EVERYTHING], ids=["little", "everything"])
def test_every_message_has_a_hearer_or_is_of_a_part_that_is_absent(config: PeerConfig) -> None:
    made = parts(config)
    heard, absent = set(made.router.table.messages), set(Absent(made).messages)
    assert heard | absent == set(STANDARD.protocol_of)
    assert heard & absent == set()


def test_a_node_with_everything_lacks_nothing() -> None:
    absent = Absent(parts(EVERYTHING))
    assert (absent.messages, absent.commands) == ({}, {})


@pytest.mark.parametrize("config", [LITTLE, EVERYTHING], ids=["little", "everything"])
def test_every_command_has_a_hearer_or_a_reason_why_not(config: PeerConfig) -> None:
    made = parts(config)
    heard, absent = set(made.router.table.commands), set(Absent(made).commands)
    asked = {kind for kind in _below(Command) if kind.__module__.startswith(SHIPPED)}
    assert heard | absent == asked - {Start, Stop, Examine}  # the node's own
    assert heard & absent == set()


def test_every_timer_of_a_node_has_a_hearer() -> None:
    fired = set(parts(EVERYTHING).router.table.timers)
    set_here = {kind for kind in _below(Timer) if kind.__module__.startswith(SHIPPED)}
    set_here -= {PlaceTimer}  # a base
    assert set_here - fired == set()


def test_only_what_is_about_a_topic_or_a_subscription_has_several_hearers() -> None:
    table = table_of(tuple(map(type, parts(EVERYTHING).routed)))
    shared = {kind for kind, route in (table.messages | table.commands).items() if route.others}
    assert shared
    assert all(issubclass(kind, TopicMessage | SubscriptionCommand) for kind in shared)


def _below(kind: type) -> set[type]:
    """The types below a base, without further bases."""
    below: list[type] = kind.__subclasses__()
    return {each for each in below if not each.__subclasses__()}.union(*map(_below, below))
