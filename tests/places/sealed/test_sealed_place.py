"""A sealed place from end to end: guests read, and nobody else does, whatever is lost or crashes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.places.sharing import announced, bodies, entered_place

from linnet.groups.labels import Device
from linnet.identity.cards import CARD_DAYS, issue_card
from linnet.identity.keys import SigningKey
from linnet.peer.config import Identity
from linnet.places.channel.fragment_store import Fragments, Row
from linnet.places.channel.packet import Modifier
from linnet.places.commands import (
    Announce,
    Announced,
    AnnounceMore,
    ChangePlace,
    Eject,
    Entered,
    EnterPlace,
    LeavePlace,
    Look,
    ObjectsAre,
    PlaceIs,
    Talked,
)
from linnet.places.deed import Policy
from linnet.places.multicast.fragmentation import Flag
from linnet.places.sealed.epoch_keys import Ring, read_prefix
from linnet.places.sealed.key_boxes import find_box
from linnet.sim.clock import START
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.places.world import HOST, PlacesWorld
from linnet.sim.seeded_random import SeededEntropy

SEALING = [Policy.PRIVATE, Policy.CLOSED]


def opened(guests: int, seed: int, policy: Policy = Policy.PRIVATE, loss: float = 0.0) -> PlacesWorld:
    world = PlacesWorld(guests, seed, LinkModel(named_latency("aws"), loss=loss))
    world.welcomes = True
    world.found(policy)
    return world


def rows(world: PlacesWorld, name: str = HOST) -> Iterator[tuple[Row, bytes]]:
    """What a node holds, with the bodies as they came."""
    store = world.stores[name]
    fragments = Fragments(world.place, store.log, store.cells)
    for number in range(fragments.standing.fragment + 1):
        row = fragments.get(number)
        verified = None if row is None else fragments.verified(row)
        if row is not None and verified is not None:
            yield row, verified.events[0].body


def readable(world: PlacesWorld, name: str) -> list[int]:
    """The messages that a node's keys would open, if it were handed everything that was ever carried."""
    ring = Ring(world.place, world.stores[name].cells)
    found = []
    for row, body in rows(world):
        if row.flags & Flag.SEALED:
            prefix = read_prefix(body)
            found += [row.message] if ring.find(prefix.epoch, prefix.step) is not None else []
    return found


def boxes_for(world: PlacesWorld, name: str) -> list[int]:
    """The messages of keys that have a box for a node's device."""
    identity = world.identities[name]
    device = Device(identity.author, identity.card.device)
    keys = [(row.message, body) for row, body in rows(world) if row.flags & Flag.KEYS]
    return [message for message, body in keys if find_box(body, device) is not None]


@pytest.mark.parametrize("policy", SEALING)
def test_guests_read_and_what_is_carried_is_ciphertext(policy: Policy) -> None:
    world = entered_place(3, 1, policy)
    first = announced(world, b"the plain words", Modifier("=", "_topic", b"the plain topic"))
    large = world.obtain(HOST, Announce(world.place, "_file", body=b"a" * 150_000, more=True), Announced)
    world.obtain(HOST, AnnounceMore(world.place, large.message, b"b" * 10, False), Announced)
    world.network.run(world.network.elapsed + 5)
    for name in world.guests:
        assert bodies(world, name, first) == [b"the plain words", b"a" * 150_000 + b"b" * 10]
        objects = world.obtain(name, Look(world.place, "_topic"), ObjectsAre).objects
        assert objects == (("_topic", b"the plain topic"),)
    assert len({world.status(name).state_hash for name in (HOST, *world.guests)}) == 1
    for name in (HOST, *world.guests):
        carried = [body for _, body in rows(world, name)]
        assert not any(b"plain" in body or b"_message" in body or b"aaaa" in body for body in carried)
    assert all(row.flags & (Flag.SEALED | Flag.KEYS) for row, _ in rows(world))
    said = {row.fragment: body for row, body in rows(world)}
    for name in world.guests:
        assert all(said[row.fragment] == body for row, body in rows(world, name)), "as it was said"


def test_public_places_are_not_sealed() -> None:
    world = opened(1, 2, Policy.PUBLIC)
    world.enter("guest0")
    announced(world, b"the plain words")
    assert any(b"the plain words" in body for _, body in rows(world))
    assert not any(row.flags & (Flag.SEALED | Flag.KEYS) for row, _ in rows(world))


@pytest.mark.parametrize("policy", SEALING)
def test_who_is_ejected_cannot_read_what_follows_with_all_that_it_has_and_all_that_is_carried(
    policy: Policy,
) -> None:
    world = entered_place(3, 3, policy)
    announced(world, b"one")
    world.network.run(world.network.elapsed + 3)
    notice = world.obtain(HOST, Eject(world.place, world.identities["guest1"].author), Announced).message
    after = announced(world, b"two")
    world.network.run(world.network.elapsed + 40)
    assert world.said["guest0"][after] == b"two"
    assert max(readable(world, "guest1")) == notice
    assert max(boxes_for(world, "guest1")) < notice
    assert max(readable(world, "guest0")) > after
    again = announced(world, b"three")
    world.network.run(world.network.elapsed + 5)
    assert world.said["guest2"][again] == b"three"


def test_who_leaves_for_good_cannot_read_what_follows_and_a_new_entry_opens_from_there_on() -> None:
    world = entered_place(2, 4, Policy.PRIVATE)
    world.network.run(world.network.elapsed + 3)
    world.obtain("guest1", LeavePlace(world.place, for_good=True), Talked)
    between = announced(world, b"between")
    world.network.run(world.network.elapsed + 30)
    world.enter("guest1")
    after = announced(world, b"after")
    world.network.run(world.network.elapsed + 10)
    found = readable(world, "guest1")
    assert between not in found
    assert after in found
    assert world.said["guest1"][after] == b"after"


def test_a_newcomer_of_a_private_place_has_no_key_to_what_was_before() -> None:
    world = opened(2, 5)
    world.enter("guest0")
    before = announced(world, b"before", Modifier("=", "_topic", b"tea"))
    world.enter("guest1")
    after = announced(world, b"after")
    world.network.run(world.network.elapsed + 5)
    assert min(readable(world, "guest1")) > before
    assert world.said["guest1"][after] == b"after"
    objects = world.obtain("guest1", Look(world.place, ""), ObjectsAre).objects
    assert objects == (("_topic", b"tea"),), "the state of now is for every guest"


def test_a_newcomer_of_a_closed_place_reads_all_history_over_all_epochs() -> None:
    world = opened(3, 6, Policy.CLOSED)
    first = announced(world, b"first")
    world.enter("guest0")
    world.enter("guest1")
    announced(world, b"second")
    world.obtain(HOST, Eject(world.place, world.identities["guest0"].author), Announced)
    announced(world, b"third")
    world.network.run(world.network.elapsed + 3)
    world.enter("guest2")
    world.network.run(world.network.elapsed + 20)
    world.watch("guest2")
    world.network.run(world.network.elapsed + 5)
    assert bodies(world, "guest2", first) == [b"first", b"second", b"third"]


def test_host_and_guests_crash_and_go_on_in_their_epoch() -> None:
    world = entered_place(3, 7, Policy.PRIVATE)
    first = announced(world, b"one")
    world.network.run(world.network.elapsed + 3)
    world.crash("guest1")
    announced(world, b"two")
    world.obtain(HOST, Eject(world.place, world.identities["guest2"].author), Announced)
    announced(world, b"three")
    world.crash(HOST)
    world.restart("guest1")
    world.network.run(world.network.elapsed + 10)
    world.restart(HOST)
    world.network.run(world.network.elapsed + 60)
    announced(world, b"four")
    world.network.run(world.network.elapsed + 60)
    for name in ("guest0", "guest1"):
        assert bodies(world, name, first) == [b"one", b"two", b"three", b"four"], name
    prefixes = [read_prefix(body) for row, body in rows(world) if row.flags & Flag.SEALED]
    assert len({each.epoch for each in prefixes}) == 2, "one for each generation"
    assert len({each.guard for each in prefixes}) == len(prefixes)


def test_a_cohost_begins_its_own_epoch_and_whoever_is_away_reads_it_later() -> None:
    world = opened(4, 8)
    world.enter("guest0")
    cohost = world.identities["guest0"].author
    world.obtain(HOST, ChangePlace(world.place, cohosts=(cohost,)), PlaceIs)
    contacts = (world.contact(HOST), world.contact("guest0"))
    for name in world.guests[1:]:
        world.obtain(name, EnterPlace(world.place, contacts), Entered)
        world.watch(name)
    first = announced(world, b"by the host")
    world.network.run(world.network.elapsed + 5)
    world.obtain(HOST, Eject(world.place, world.identities["guest3"].author), Announced)
    world.network.run(world.network.elapsed + 5)
    world.crash("guest2")
    world.crash(HOST)
    world.network.run(world.network.elapsed + 5)
    said = announced(world, b"by the co-host", by="guest0")
    world.network.run(world.network.elapsed + 5)
    world.restart("guest2")
    world.network.run(world.network.elapsed + 60)
    for name in ("guest0", "guest1", "guest2"):
        assert bodies(world, name, first) == [b"by the host", b"by the co-host"], name
    (epochs,) = {
        read_prefix(body).epoch
        for row, body in rows(world, "guest0")
        if row.flags & Flag.SEALED and row.message >= said
    }
    assert Ring(world.place, world.stores["guest3"].cells).find(epochs, 0) is None
    assert Ring(world.place, world.stores[HOST].cells).find(epochs, 0) is None, "it was away"


class TwoDevices(PlacesWorld):
    """A world in which guest1 is another device of the person whose device guest0 is."""

    def identity(self, name: str) -> Identity:
        if name != "guest1":
            return super().identity(name)
        person = SigningKey.generate(SeededEntropy(self.seed, "identity/guest0"))
        device = SigningKey.generate(SeededEntropy(self.seed, "identity/guest1"))
        first = int(START)
        return Identity(
            device, issue_card(person, device.public, first, first + CARD_DAYS * 86_400, "second")
        )


def test_another_device_of_a_guest_is_told_the_keys_of_all_that_is_open_to_the_guest() -> None:
    world = TwoDevices(2, 9)
    world.welcomes = True
    world.found(Policy.PRIVATE)
    hidden = announced(world, b"hidden")
    world.enter("guest0")
    first = announced(world, b"one")
    world.network.run(world.network.elapsed + 3)
    world.obtain("guest1", EnterPlace(world.place, (world.contact(HOST),)), Entered)
    world.watch("guest1")
    announced(world, b"two")
    world.network.run(world.network.elapsed + 20)
    world.watch("guest1")
    world.network.run(world.network.elapsed + 5)
    assert len(world.knocked) == 1, "its person is a guest already"
    assert bodies(world, "guest1", first) == [b"one", b"two"]
    assert hidden not in readable(world, "guest1")
    world.obtain(HOST, Eject(world.place, world.identities["guest0"].author), Announced)
    after = announced(world, b"three")
    assert after not in readable(world, "guest0") + readable(world, "guest1")


@pytest.mark.parametrize("seed", range(3))
def test_keys_that_are_lost_on_the_way_are_asked_for(seed: int) -> None:
    world = entered_place(5, seed, Policy.PRIVATE, links=LinkModel(named_latency("aws"), loss=0.08))
    first = announced(world, b"0")
    for number in range(1, 6):
        victim = world.identities["guest4"].author
        if number == 3:
            world.obtain(HOST, Eject(world.place, victim), Announced)
        announced(world, str(number).encode())
    world.network.run(world.network.elapsed + 120)
    for name in world.guests[:4]:
        assert bodies(world, name, first) == [b"%d" % number for number in range(6)], name
    assert b"3" not in world.said.get("guest4", {}).values()


@pytest.mark.parametrize("moment", range(12))
def test_a_host_that_crashes_at_any_moment_of_an_entry_and_an_ejection_goes_on(moment: int) -> None:
    world = opened(4, 20)
    for name in world.guests[:3]:
        world.enter(name)
    first = announced(world, b"one")
    world.network.run(world.network.elapsed + 2)
    world.ask("guest3", EnterPlace(world.place, (world.contact(HOST),), patience=300.0))
    world.ask(HOST, Eject(world.place, world.identities["guest2"].author))
    world.ask(HOST, Announce(world.place, "_message", (), b"two"))
    world.network.run(world.network.elapsed + 0.06 * moment)
    world.crash(HOST)
    world.network.run(world.network.elapsed + 3)
    world.restart(HOST)
    world.network.run(world.network.elapsed + 30)
    world.ask(HOST, Eject(world.place, world.identities["guest2"].author))
    world.network.run(world.network.elapsed + 1)
    last = announced(world, b"three")
    world.network.run(world.network.elapsed + 120)
    expected = [b"one", b"two", b"three"] if b"two" in world.said[HOST].values() else [b"one", b"three"]
    for name in (HOST, "guest0", "guest1"):
        assert bodies(world, name, first) == expected, name
    world.watch("guest3")
    world.network.run(world.network.elapsed + 5)
    assert world.said["guest3"][last] == b"three"
    assert last not in readable(world, "guest2")
    prefixes = [read_prefix(body) for row, body in rows(world) if row.flags & Flag.SEALED]
    assert len({(each.epoch, each.step, each.guard) for each in prefixes}) == len(prefixes)
