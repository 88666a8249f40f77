"""A peer that does not answer, and whatever part of a node wants it: how often it is dialled."""

from __future__ import annotations

import pytest

from linnet.content.commands import PublishContent, SubscribeContent
from linnet.content.config import ContentConfig
from linnet.machine.commands import Done
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Connect
from linnet.places.commands import Announce, Announced, Entered, EnterPlace, HostPlace, PlaceIs
from linnet.places.deed import Policy
from linnet.rooms.commands import (
    AddRelay,
    CreateRoom,
    JoinRoom,
    MakeTicket,
    RoomMade,
    SendToRoom,
    Sent,
    TicketMade,
)
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.rooms.event_types import JoinRule
from linnet.streams.commands import Publish, Subscribe
from linnet.streams.config import StorageRule

from .moving import Moving

MINUTES = 10


def world(way: str, seed: int) -> tuple[Moving, tuple[str, ...]]:
    """Bob, and those whom he needs for one way to subscribe."""
    moving = Moving(seed)
    if way == "room":
        moving.add("relay", PeerConfig(relay=RelayConfig(policy=RelayPolicy.OPEN)))
        moving.add("ann", PeerConfig())
        moving.add("bob", PeerConfig())
        room = moving.get("ann", CreateRoom("tea", rule=JoinRule.PUBLIC), RoomMade).room
        moving.get("ann", AddRelay(room, moving.contact("relay")), Sent)
        expires = int((moving.network.now + 3600) * 1000)
        made = moving.get("ann", MakeTicket(room, expires), TicketMade)
        moving.get("bob", JoinRoom(room, made.ticket, made.contacts), RoomMade)
        moving.run(5.0)
        moving.network.at(moving.network.elapsed + 30, lambda: say(moving, SendToRoom(room, (b"x",))))
        return moving, ("ann", "relay")
    if way == "place":
        moving.add("ann", PeerConfig())
        moving.add("bob", PeerConfig())
        place = moving.get("ann", HostPlace(policy=Policy.PUBLIC), PlaceIs).deed.place
        moving.get("ann", Announce(place, "_notice_place_open"), Announced)
        moving.get("bob", EnterPlace(place, (moving.contact("ann"),)), Entered)
        moving.run(5.0)
        return moving, ("ann",)
    if way == "stream":
        moving.add("ann", PeerConfig(is_tracker=True, storage=(StorageRule("weather", 3600.0, None),)))
        trackers = (moving.contact("ann"),)
        moving.add("bob", PeerConfig(trackers=trackers))
        moving.network.ask(moving.peer("bob"), Subscribe(1, "weather", 0.0, "lasting"))
        moving.run(5.0)
        moving.network.at(moving.network.elapsed + 30, lambda: say(moving, Publish("weather", (b"x",))))
        return moving, ("ann",)
    names = ("ann", "cal", "dot")
    for name in (*names, "bob"):
        first = () if name == "ann" else (moving.contact("ann"),)
        table = PeerConfig(kademlia=KademliaConfig(), kademlia_bootstrap=first, content=ContentConfig())
        moving.add(name, table)
        moving.run(2.0)
    moving.run(30.0)
    moving.network.ask(moving.peer("bob"), SubscribeContent(1, "price > 3"))
    moving.run(10.0)
    for number in range(60):
        # Each a lookup of another key in the hash table.
        publish = PublishContent(f"kind{number} = {number}", b"x")
        moving.network.at(moving.network.elapsed + 10 * number, lambda command=publish: say(moving, command))  # type: ignore[misc]
    return moving, names


def say(moving: Moving, command: object) -> None:
    moving.network.ask(moving.peer("bob"), command)  # type: ignore[arg-type]


def begin(moving: Moving, way: str) -> None:
    """Bob starts again, and his application asks for what it wants."""
    moving.start("bob")
    if way == "stream":
        say(moving, Subscribe(1, "weather", 0.0, "lasting"))


def most_a_minute(dials: list[float]) -> int:
    return max((sum(at <= each < at + 60.0 for each in dials) for at in dials), default=0)


WAYS = ("room", "place", "stream", "content")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_the_dead_are_dialled_ten_times_a_minute_at_most(way: str, seed: int) -> None:
    moving, dead = world(way, seed)
    moving.stop(*dead)
    died = moving.network.now
    moving.run(MINUTES * 60)
    for name in dead:
        assert most_a_minute(moving.dials("bob", name, died)) <= 10, name
    assert any(moving.dials("bob", name, died) for name in dead), "nobody was tried: this shows nothing"


@pytest.mark.parametrize("way", WAYS)
def test_neither_does_a_process_that_is_started_over_and_over(way: str) -> None:
    moving, dead = world(way, 1)
    moving.stop(*dead)
    died = moving.network.now
    for _ in range(60):
        moving.run(2.0)
        moving.stop("bob")
        moving.start("bob")
    moving.run(30.0)
    for name in dead:
        assert most_a_minute(moving.dials("bob", name, died)) <= 10, name
    assert any(moving.dials("bob", name, died) for name in dead), "nobody was tried: this shows nothing"


@pytest.mark.parametrize("way", WAYS)
def test_nor_one_whose_disk_is_full_since_it_cannot_keep_that_it_dialled(way: str) -> None:
    moving, dead = world(way, 1)
    moving.stop(*dead, "bob")
    died = moving.network.now
    moving.disks["bob"].is_full = True
    for _ in range(24):
        begin(moving, way)
        moving.run(5.0)
        moving.stop("bob")
    for name in dead:
        assert most_a_minute(moving.dials("bob", name, died)) <= 10, name
    moving.disks["bob"].is_full = False
    free = moving.network.now
    begin(moving, way)
    moving.run(60.0)
    assert any(moving.dials("bob", name, free) for name in dead), "nobody was tried: this shows nothing"


@pytest.mark.parametrize("way", ["room", "place", "stream"])  # A hash table keeps no links.
@pytest.mark.parametrize("away", [3.0, 100.0, 600.0])
def test_who_is_back_has_a_link_within_a_minute(way: str, away: float) -> None:
    moving, dead = world(way, 1)
    moving.stop(*dead)
    moving.run(away)
    moving.start(dead[0])
    moving.run(60.0)
    assert dead[0] in moving.linked("bob")


def test_whoever_is_asked_for_by_hand_is_dialled_at_once() -> None:
    moving, (ann, *_) = world("place", 1)
    moving.stop(ann)
    moving.run(300.0)
    moving.start(ann, port=2)
    moving.get("bob", Connect(moving.contact(ann)), Done)
    moving.run(0.2)
    assert moving.linked("bob") == {ann}


def test_who_does_not_answer_is_told_with_since_when_also_while_no_part_wants_it() -> None:
    moving, (dead,) = world("place", 3)
    moving.stop(dead)
    lost = moving.network.now
    for _ in range(60):
        moving.run(1.0)
        status = moving.status("bob")
        wanted = [(each.peer, each.failing_since) for each in status.peers if not each.up]
        silent = [*wanted, *((each.peer, each.since) for each in status.unanswered)]
        ((peer, since),) = silent
        assert peer == moving.peer(dead)
        assert since is not None
        assert 0.0 <= since - lost < 5.0
