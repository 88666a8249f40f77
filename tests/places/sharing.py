"""A place that its host shares with co-hosts, and what everybody must have in the end."""

from __future__ import annotations

from linnet.peer.peer import Peer
from linnet.places.channel.packet import Modifier
from linnet.places.commands import Announce, Announced, ChangePlace, PlaceIs
from linnet.places.config import PlacesConfig
from linnet.places.deed import Policy
from linnet.places.place import Place
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.places.world import HOST, PlacesWorld

COHOST = "guest0"


def entered_place(
    guests: int,
    seed: int,
    policy: Policy = Policy.PUBLIC,
    links: LinkModel | None = None,
    config: PlacesConfig | None = None,
) -> PlacesWorld:
    """A place whose guests are all in."""
    made = PlacesWorld(guests, seed, links, config)
    made.welcomes = policy.admits
    made.found(policy)
    for name in made.guests:
        made.enter(name)
    return made


def announced(
    world: PlacesWorld, body: bytes, *modifiers: Modifier, by: str = HOST, method: str = "_message"
) -> int:
    """Something that is said to all; the number of the message."""
    return world.obtain(by, Announce(world.place, method, modifiers, body), Announced).message


def bodies(world: PlacesWorld, name: str, first: int = 0) -> list[bytes]:
    """What a node heard from a message on, without keep-alives and notices."""
    said = sorted(world.said.get(name, {}).items())
    return [body for message, body in said if message >= first and body]


def shared_place(
    guests: int,
    seed: int,
    cohosts: int = 1,
    loss: float = 0.0,
    entered: int | None = None,
    world: type[PlacesWorld] = PlacesWorld,
    policy: Policy = Policy.PUBLIC,
) -> PlacesWorld:
    """A place with guests, the first of whom are co-hosts; those past `entered` are still outside."""
    made = world(guests, seed, LinkModel(named_latency("aws"), loss=loss))
    made.welcomes = policy.admits
    made.found(policy)
    for name in made.guests[:entered]:
        made.enter(name)
    share(made, *made.guests[:cohosts])
    return made


def share(world: PlacesWorld, *names: str) -> None:
    """These are co-hosts from now on, and nobody else."""
    people = tuple(world.identities[name].author for name in names)
    world.obtain(HOST, ChangePlace(world.place, cohosts=people), PlaceIs)
    run(world, 5)


def run(world: PlacesWorld, seconds: float) -> None:
    world.network.run(world.network.elapsed + seconds)


def says(world: PlacesWorld, name: str, text: str) -> int:
    """Something with a change of state."""
    words = (Modifier("=", "_last", text.encode()),)
    return world.obtain(name, Announce(world.place, "_message", words, text.encode()), Announced).message


def place_at(world: PlacesWorld, name: str) -> Place:
    """The place as a node's machine has it."""
    machine = world.network.machine(world.peer(name))
    assert isinstance(machine, Peer)
    return machine.parts.places._places[world.place]


def heard(world: PlacesWorld, name: str) -> list[str]:
    """What a node's watcher holds in the end, in the order of the messages."""
    return [body.decode() for _, body in sorted(world.said.get(name, {}).items()) if body]


def everybody(world: PlacesWorld) -> tuple[str, ...]:
    return (HOST, *world.guests)


def assert_one_line(world: PlacesWorld, expected: list[str]) -> None:
    for name in everybody(world):
        assert heard(world, name) == expected, name
    statuses = world.statuses(everybody(world))
    if len({each.fragment for each in statuses}) > 1:  # a sign of life is on its way
        run(world, 1)
        statuses = world.statuses(everybody(world))
    assert len({(each.term, each.fragment, each.message) for each in statuses}) == 1
    assert len({each.state_hash for each in statuses}) == 1


def split(world: PlacesWorld, *names: str) -> None:
    """These on one side, everybody else on the other."""
    there = [world.identities[name].peer for name in names]
    here = [world.identities[name].peer for name in everybody(world) if name not in names]
    world.network.partition([here, there])
