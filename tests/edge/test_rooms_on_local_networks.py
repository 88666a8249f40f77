"""Rooms of devices behind proxies that share a local network: what they say there beside their relays."""

from __future__ import annotations

import pytest
from tests.conftest import SOAK
from tests.edge.shore import Shore

from linnet.edge.commands import AllowOnNetwork
from linnet.machine.commands import Done
from linnet.rooms.event_types import Newcomers

SEEDS = range(20 if SOAK else 1)


def at_home(shore: Shore, *names: str, allowed: tuple[str, ...]) -> bytes:
    """Put devices on one local network, and let those speak of the room there who may."""
    home = shore.network.lan("home", [shore.peer(name) for name in names])
    shore.run(0.1)
    for name in allowed:
        assert shore.ask(name, AllowOnNetwork(shore.room, home, True)) == Done()
    shore.run(60.0)
    return home


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("newcomers", [None, Newcomers.FROM_NOW])
def test_two_on_one_network_talk_directly_though_their_relay_is_gone(
    seed: int, newcomers: Newcomers | None
) -> None:
    shore = Shore("r0", "ann", "mia", "moe", seed=seed)
    shore.found("ann", "r0", "mia", "moe", newcomers=newcomers)
    shore.run(10.0)
    assert shore.met("mia") == shore.met("moe") == {"r0"}
    at_home(shore, "mia", "moe", allowed=("mia", "moe"))
    assert shore.met("mia") == {"r0", "moe"}
    shore.offline("r0")
    shore.say("mia", "one")
    shore.run(2.0)
    assert shore.heard("moe") == ["one"]
    shore.say("moe", "two")
    shore.run(2.0)
    assert shore.heard("mia") == ["one", "two"]
    assert shore.heard("ann") == []
    shore.online("r0")
    shore.run(120.0)
    assert sorted(shore.heard("ann")) == ["one", "two"]
    assert "mia" not in shore.met("ann")


def test_where_it_is_not_allowed_nothing_of_the_room_is_said() -> None:
    shore = Shore("r0", "ann", "mia", "moe")
    shore.found("ann", "r0", "mia", "moe")
    at_home(shore, "mia", "moe", allowed=("mia",))
    assert shore.met("mia") == shore.met("moe") == {"r0"}


def test_when_one_allows_it_no_longer_it_says_nothing_more_there() -> None:
    shore = Shore("r0", "ann", "mia", "moe")
    shore.found("ann", "r0", "mia", "moe")
    home = at_home(shore, "mia", "moe", allowed=("mia", "moe"))
    assert is_on_ring(shore, "mia")
    assert shore.ask("mia", AllowOnNetwork(shore.room, home, False)) == Done()
    shore.run(0.5)
    assert (is_on_ring(shore, "mia"), is_on_ring(shore, "moe")) == (False, True)
    shore.offline("r0")
    shore.say("mia", "one")
    shore.run(60.0)
    assert shore.heard("moe") == []
    # Allowed again, it is there again, and nothing was lost.
    assert shore.ask("mia", AllowOnNetwork(shore.room, home, True)) == Done()
    shore.run(900.0)
    assert shore.heard("moe") == ["one"]


def is_on_ring(shore: Shore, name: str) -> bool:
    room = shore.rooms(name)._registry.get(shore.room)
    return room is not None and room.neighbors._in_graph
