"""Records of names in the hash table over the network."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace
from tests.names.people import DAY, NOW, PLACE_C, Z, person, place, zone_of
from tests.overlay.kademlia.kademlia_world import KademliaWorld

from linnet.identity.keys import SigningKey
from linnet.names.address import read_address
from linnet.names.block_store import from_network, network_key, to_network
from linnet.names.commands import Resolved, Step, Via
from linnet.names.resolver import Answer, Walk
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.value_records import check_record, sign_record

ALICE = person("alice")
ZONE = zone_of("alice")
BLOCK = ZONE.publish("music", place(PLACE_C, Z), DAY, NOW).block
NEWER = ZONE.publish("music", place(PLACE_C, Z), DAY, NOW + 1).block
STORED = to_network(BLOCK, ALICE.device)


def test_a_block_comes_back_and_a_newer_one_is_the_same_owners() -> None:
    check_record(STORED, NOW)
    assert from_network([STORED], BLOCK.lookup) == ((BLOCK,), 0)
    newer = to_network(NEWER, ALICE.device)
    assert (newer.key, newer.owner) == (STORED.key, STORED.owner) == (network_key(BLOCK.lookup), BLOCK.owner)
    assert from_network([newer, STORED, newer], BLOCK.lookup) == ((NEWER, BLOCK), 0)


def test_what_is_no_block_or_anothers_is_left_out_and_counted() -> None:
    stranger = SigningKey.generate(Random(1).randbytes)
    stolen = sign_record(stranger, STORED.key, STORED.version, STORED.expires, STORED.body)
    rubbish = replace(STORED, body=b"\xc1")
    later = replace(STORED, version=STORED.version + 1)
    assert from_network([stolen, rubbish, later, STORED], BLOCK.lookup) == ((BLOCK,), 3)
    assert from_network([STORED], bytes(32)) == ((), 1)


def test_neither_zone_label_nor_place_is_seen_by_those_who_keep_it() -> None:
    seen = STORED.key + STORED.owner + STORED.body
    for hidden in (ALICE.author, ALICE.device.public, b"music", PLACE_C, Z.peer):
        assert bytes(hidden) not in seen


def test_a_name_is_found_through_the_network() -> None:
    world = KademliaWorld(1, KademliaConfig(k=4))
    hosts = world.grow(8)
    placed = world.place(hosts[0], to_network(BLOCK, ALICE.device))
    assert len(placed.kept) == 4
    walk = Walk(read_address("music.alice"), Step(Via.PETNAME, "alice", None, ALICE.author, None), depth=8)
    found = world.gather(hosts[7], network_key(walk.lookup))
    blocks, _ = from_network(found.records, walk.lookup)
    walk.handle_answer(Answer(blocks, None, found.answered > 0), world.now)
    assert isinstance(walk.outcome, Resolved)
    assert walk.outcome.place == PLACE_C
