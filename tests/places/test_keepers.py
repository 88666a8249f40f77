"""Keepers: guests hear a host who is never online when they are, and keepers read nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.places.sharing import announced, bodies

from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.peer.config import PeerConfig
from linnet.places.channel.fragment_store import Fragments
from linnet.places.channel.packet import Modifier
from linnet.places.commands import (
    Announce,
    Announced,
    ChangePlace,
    Eject,
    EnterPlace,
    GuestsAre,
    ListGuests,
    ListPlaces,
    Look,
    ObjectsAre,
    PlaceIs,
    PlacesAre,
)
from linnet.places.deed import Policy
from linnet.places.sealed.epoch_keys import Ring
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.places.world import HINTS, HOST, PlacesWorld
from linnet.store.memory import MemoryStore
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind

KEEPER = "guest0"
OPEN = RelayConfig(policy=RelayPolicy.OPEN)


class KeptWorld(PlacesWorld):
    """A place whose deed names the first of the nodes as its keeper."""

    def __init__(
        self,
        guests: int,
        seed: int,
        relay: RelayConfig | None = OPEN,
        trace: ColumnTrace | None = None,
        loss: float = 0.0,
    ) -> None:
        self.relay = relay
        super().__init__(guests + 1, seed, LinkModel(named_latency("aws"), loss=loss), trace=trace)
        self.welcomes = True

    def configured(self, name: str) -> PeerConfig:
        relay = self.relay if name == KEEPER else None
        return PeerConfig(listens=HINTS, places=self.config, relay=relay)

    def kept(self, policy: Policy = Policy.PRIVATE) -> None:
        """Found it, and name the keeper."""
        self.found(policy)
        self.obtain(HOST, ChangePlace(self.place, keepers=(self.contact(KEEPER),)), PlaceIs)
        self.network.run(self.network.elapsed + 5)

    def places(self, name: str) -> tuple[PlaceIs, ...]:
        return self.obtain(name, ListPlaces(), PlacesAre).places

    def run(self, seconds: float) -> None:
        self.network.run(self.network.elapsed + seconds)


def everything(store: MemoryStore, world: PlacesWorld) -> Iterator[bytes]:
    """All bytes that a node has written down."""
    yield from (entry.raw for _, entry in store.log.read(world.place, 0, 1_000_000))
    for space in vars(store.cells)["_spaces"]:
        for key, value in store.cells.scan(space):
            yield key + value


def test_a_guest_gets_everything_with_the_host_off() -> None:
    world = KeptWorld(2, seed=1)
    world.kept()
    for name in ("guest1", "guest2"):
        world.enter(name)
    first = announced(world, b"one", Modifier("=", "_topic", b"tea"))
    world.run(5)
    world.crash("guest1")
    world.crash("guest2")
    announced(world, b"two", Modifier("=", "_topic", b"coffee"))
    world.run(5)
    world.crash(HOST)
    world.restart("guest1")
    world.run(60)
    assert bodies(world, "guest1", first) == [b"one", b"two"]
    assert world.obtain("guest1", Look(world.place, ""), ObjectsAre).objects == (("_topic", b"coffee"),)
    assert world.status("guest1").upstreams == (world.identities[KEEPER].peer,)
    (status,) = world.places(KEEPER)
    assert status.role == "keeper"
    assert status.variables == 0, "it has no state"
    assert world.identities["guest1"].peer in status.downstreams


def test_what_a_keeper_writes_down_holds_no_word_and_no_key() -> None:
    world = KeptWorld(2, seed=2)
    world.kept()
    for name in ("guest1", "guest2"):
        world.enter(name)
    announced(world, b"the plain words", Modifier("=", "_topic", b"the plain topic"))
    world.obtain(HOST, Eject(world.place, world.identities["guest2"].author), Announced)
    announced(world, b"more plain words")
    world.run(10)
    keys = [each.key for each in Ring(world.place, world.stores[HOST].cells).all()]
    assert len(keys) == 2
    host = list(everything(world.stores[HOST], world))
    assert all(any(key in each for each in host) for key in keys), "the host's store has them"
    kept = list(everything(world.stores[KEEPER], world))
    assert len(kept) > 20
    assert not any(b"plain" in each or b"_topic" in each for each in kept)
    assert not any(key in each for key in keys for each in kept)
    assert not world.stores[KEEPER].cells.get("place prekeys", world.place)


def test_who_was_ejected_gets_nothing_from_a_keeper() -> None:
    world = KeptWorld(2, seed=3)
    world.kept()
    for name in ("guest1", "guest2"):
        world.enter(name)
    first = announced(world, b"one")
    world.run(5)
    world.crash("guest2")
    world.obtain(HOST, Eject(world.place, world.identities["guest2"].author), Announced)
    announced(world, b"two")
    world.run(5)
    world.crash(HOST)
    world.crash("guest1")
    world.restart("guest2")
    world.run(60)
    assert bodies(world, "guest2", first) == [b"one"]
    (status,) = world.places(KEEPER)
    assert status.downstreams == ()


def test_a_keeper_that_is_named_late_gets_all_that_was_said_and_serves_on_after_a_restart() -> None:
    world = KeptWorld(1, seed=4)
    world.found(Policy.CLOSED)
    first = announced(world, b"one")
    world.enter("guest1")
    world.run(2)
    world.crash("guest1")
    announced(world, b"two")
    world.obtain(HOST, ChangePlace(world.place, keepers=(world.contact(KEEPER),)), PlaceIs)
    world.run(20)
    (status,) = world.places(KEEPER)
    assert (status.fragment, status.missing) == (world.status(HOST).fragment, 0)
    world.crash(HOST)
    world.crash(KEEPER)
    world.restart(KEEPER)
    world.restart("guest1")
    world.run(2)
    world.ask("guest1", EnterPlace(world.place, (world.contact(KEEPER),)))
    world.run(60)
    assert bodies(world, "guest1", first) == [b"one", b"two"]


def test_a_keeper_says_no_to_people_whom_it_does_not_know() -> None:
    trace = ColumnTrace()
    world = KeptWorld(1, seed=5, relay=RelayConfig(policy=RelayPolicy.ALLOW), trace=trace)
    world.kept()
    announced(world, b"one")
    world.run(5)
    assert world.places(KEEPER) == ()
    host = world.identities[HOST].peer
    said = [row.note for row in trace.rows() if row.node == host and row.reason == Reason.NOT_ALLOWED]
    assert said == ["a keeper says no: not_allowed"]


def test_a_node_that_is_no_relay_keeps_nothing() -> None:
    world = KeptWorld(1, seed=6, relay=None)
    world.kept()
    announced(world, b"one")
    world.run(5)
    assert world.places(KEEPER) == ()


def test_a_keeper_lets_the_oldest_go_past_its_bytes_and_says_so() -> None:
    trace = ColumnTrace()
    relay = RelayConfig(policy=RelayPolicy.OPEN, room_bytes=20_000)
    world = KeptWorld(1, seed=7, relay=relay, trace=trace)
    world.kept()
    for number in range(12):
        announced(world, bytes(4_000), Modifier("=", "_count", b"%d" % number))
    world.run(5)
    assert world.stores[KEEPER].log.kept(world.place).bytes <= 20_000
    gone = [row for row in trace.rows() if row.kind == Kind.EVICTED]
    assert len(gone) >= 7
    assert {row.reason for row in gone} == {Reason.QUOTA}


def test_a_keeper_that_the_deed_names_no_more_keeps_nothing() -> None:
    world = KeptWorld(1, seed=8)
    world.kept()
    announced(world, b"one")
    world.run(5)
    assert world.stores[KEEPER].log.kept(world.place).units > 0
    world.obtain(HOST, ChangePlace(world.place, keepers=()), PlaceIs)
    announced(world, b"two")
    world.run(5)
    assert world.places(KEEPER) == ()
    assert world.stores[KEEPER].log.kept(world.place).units == 0


def test_public_places_are_kept_too() -> None:
    world = KeptWorld(1, seed=9)
    world.kept(Policy.PUBLIC)
    world.enter("guest1")
    world.run(3)
    world.crash("guest1")
    said = announced(world, b"while you were away")
    world.run(5)
    world.crash(HOST)
    world.restart("guest1")
    world.run(60)
    assert world.said["guest1"][said] == b"while you were away"


def test_what_is_older_than_a_keeper_keeps_goes_with_a_record() -> None:
    trace = ColumnTrace()
    world = KeptWorld(1, seed=10, relay=RelayConfig(policy=RelayPolicy.OPEN, max_lifetime=600.0), trace=trace)
    world.kept()
    old = [announced(world, b"old") for _ in range(3)]
    world.run(3_700)
    gone = [row for row in trace.rows() if row.kind == Kind.EVICTED]
    assert {row.reason for row in gone} == {Reason.RETENTION}
    store = world.stores[KEEPER]
    held = Fragments(world.place, store.log, store.cells)
    assert [held.get_at(message, 0) for message in old] == [None, None, None]
    newest = world.status(HOST).message
    assert held.get_at(newest, 0) is not None


@pytest.mark.parametrize("seed", range(4))
def test_with_loss_too_host_and_guests_who_take_turns_hear_everything(seed: int) -> None:
    world = KeptWorld(3, seed=seed, loss=0.05)
    world.kept()
    guests = ("guest1", "guest2", "guest3")
    for name in guests:
        world.enter(name)
    first = announced(world, b"round 0")
    world.run(30)
    for name in guests:
        world.crash(name)
    for number in range(1, 4):
        announced(world, b"round %d" % number)
        world.run(40)
        if number == 2:
            world.obtain(HOST, Eject(world.place, world.identities["guest3"].author), Announced)
        world.crash(HOST)
        for name in guests:
            world.restart(name)
            world.run(90)
            world.crash(name)
        world.restart(HOST)
        world.run(40)
    for name in guests[:2]:
        assert bodies(world, name, first) == [b"round %d" % number for number in range(4)], name
    assert b"round 3" not in bodies(world, "guest3", first)
    assert b"round 1" in bodies(world, "guest3", first)


COHOST, GUEST, OTHER = "guest1", "guest2", "guest3"


def shared_and_kept(policy: Policy, seed: int, trace: ColumnTrace | None = None) -> KeptWorld:
    """A place with a co-host, and a keeper that allows the host alone."""
    world = KeptWorld(3, seed, RelayConfig(policy=RelayPolicy.ALLOW), trace=trace)
    world.found(policy)
    allow(world, HOST)
    people = (world.identities[COHOST].author,)
    world.obtain(HOST, ChangePlace(world.place, None, people, (world.contact(KEEPER),)), PlaceIs)
    for name in (COHOST, GUEST, OTHER):
        world.enter(name)
    world.run(5)
    return world


def allow(world: KeptWorld, name: str) -> None:
    """The keeper allows this one alone, from its next start on, which is now."""
    world.relay = RelayConfig(policy=RelayPolicy.ALLOW, allow=(world.identities[name].author,))
    world.crash(KEEPER)
    world.run(1)
    world.restart(KEEPER)
    world.run(1)


def says(world: KeptWorld, name: str, body: bytes) -> None:
    world.obtain(name, Announce(world.place, "_message", (), body), Announced)
    world.run(5)


@pytest.mark.parametrize("policy", [Policy.PUBLIC, Policy.CLOSED])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_the_co_host_says_is_kept_and_given_to_a_guest_who_comes_back(policy: Policy, seed: int) -> None:
    trace = ColumnTrace()
    world = shared_and_kept(policy, seed, trace)
    says(world, HOST, b"one")
    world.crash(GUEST)
    world.crash(HOST)
    says(world, COHOST, b"two")
    world.run(60)
    assert world.places(KEEPER)[0].term == world.status(COHOST).term == 2
    world.crash(COHOST)
    world.crash(OTHER)
    world.restart(GUEST)
    world.run(60)
    assert bodies(world, GUEST)[-2:] == [b"one", b"two"]
    world.restart(OTHER)
    world.restart(COHOST)
    world.restart(HOST)
    world.run(120)
    says(world, HOST, b"three")
    assert bodies(world, GUEST)[-3:] == [b"one", b"two", b"three"]
    stale = [row for row in trace.rows() if row.note is not None and "it knows term" in row.note]
    assert len(stale) < 10, "nobody goes in circles"


def test_a_keeper_that_missed_a_term_learns_it_from_a_guest_and_lets_it_in() -> None:
    trace = ColumnTrace()
    world = shared_and_kept(Policy.PUBLIC, 3, trace)
    says(world, HOST, b"one")
    world.crash(KEEPER)
    world.crash(HOST)
    says(world, COHOST, b"two")
    world.crash(COHOST)
    world.crash(GUEST)
    world.restart(KEEPER)
    world.run(120)
    assert world.peer(KEEPER) in world.status(OTHER).upstreams
    (kept,) = world.places(KEEPER)
    assert (kept.term, kept.missing) == (2, 0)
    stale = [row for row in trace.rows() if row.note is not None and "it knows term" in row.note]
    assert len(stale) < 10
    world.crash(OTHER)
    world.restart(GUEST)
    world.run(60)
    assert bodies(world, GUEST)[-2:] == [b"one", b"two"]


@pytest.mark.parametrize("policy", [Policy.PUBLIC, Policy.ANONYMOUS])
def test_a_keeper_is_no_guest(policy: Policy) -> None:
    world = shared_and_kept(policy, 4)
    for number in range(4):
        says(world, HOST if number % 2 else COHOST, b"%d" % number)
    world.crash(KEEPER)
    says(world, COHOST, b"five")
    world.restart(KEEPER)
    world.run(120)
    (kept,) = world.places(KEEPER)
    assert kept.role == "keeper"
    assert kept.fragment == world.status(COHOST).fragment
    guests = world.obtain(COHOST, ListGuests(world.place), GuestsAre)
    assert world.identities[KEEPER].author not in [each.nym for each in guests.guests]


@pytest.mark.parametrize("policy", [Policy.PUBLIC, Policy.ANONYMOUS])
def test_who_is_named_as_a_keeper_and_knocks_is_not_let_in(policy: Policy) -> None:
    """It allows nobody, so it keeps nothing, and its own application asks to come in instead."""
    world = KeptWorld(1, 6, RelayConfig(policy=RelayPolicy.ALLOW))
    world.found(policy)
    world.obtain(HOST, ChangePlace(world.place, None, (), (world.contact(KEEPER),)), PlaceIs)
    says(world, HOST, b"one")
    entry = EnterPlace(world.place, (world.contact(HOST),))
    assert world.obtain(KEEPER, entry, Declined).reason is Reason.NOT_ALLOWED
    guests = world.obtain(HOST, ListGuests(world.place), GuestsAre)
    assert world.identities[KEEPER].author not in [each.nym for each in guests.guests]


def test_somebody_whom_the_relay_does_not_allow_cannot_use_the_name_of_one_whom_it_does() -> None:
    trace = ColumnTrace()
    world = KeptWorld(2, 5, RelayConfig(policy=RelayPolicy.ALLOW), trace=trace)
    # The host is not allowed; that the deed names somebody as co-host who is makes no difference.
    world.found(Policy.PUBLIC)
    allow(world, GUEST)
    people = (world.identities[GUEST].author,)
    world.obtain(HOST, ChangePlace(world.place, None, people, (world.contact(KEEPER),)), PlaceIs)
    says(world, HOST, b"one")
    assert world.places(KEEPER) == ()
    said = [
        row.note for row in trace.rows() if row.node == world.peer(HOST) and row.reason == Reason.NOT_ALLOWED
    ]
    assert said == ["a keeper says no: not_allowed"]
