"""People with zones, for the tests of names."""

from __future__ import annotations

from random import Random

from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.names.config import NamesConfig
from linnet.names.records import DelegationRecord, PlaceRecord
from linnet.names.zone import Zone
from linnet.peer.config import Identity
from linnet.sim.clock import START
from linnet.sim.seeded_random import seeded_identity
from linnet.store.memory import MemoryStore

NOW = START
DAY = 86_400
CONFIG = NamesConfig()
X, Y, Z = (Contact(PeerId(bytes([n]) * 32), (f"tls://peer{n}.example:7700",)) for n in (1, 2, 3))
PLACE_A, PLACE_B, PLACE_C = (TopicId(letter * 32) for letter in (b"A", b"B", b"C"))


def person(name: str) -> Identity:
    return seeded_identity(0, name, NOW)


def zone_of(name: str, store: MemoryStore | None = None, seed: int = 1) -> Zone:
    who = person(name)
    cells = (store or MemoryStore()).cells
    return Zone(who.device, who.card, cells, Random(f"{name}/{seed}").randbytes, CONFIG.own)


def place(topic: TopicId, *contacts: Contact) -> tuple[PlaceRecord]:
    return (PlaceRecord(topic, contacts),)


def delegation(zone: AuthorId) -> tuple[DelegationRecord]:
    return (DelegationRecord(zone),)
