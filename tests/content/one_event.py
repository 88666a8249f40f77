"""What a machine by itself needs of its node, and an event that passes, signed by a node of its own."""

from __future__ import annotations

from random import Random

from linnet.content.application import TOPIC
from linnet.content.passing import EventSigner, Passing
from linnet.content.predicate import read_attributes
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.signing import verify_unit
from linnet.peer.config import Identity
from linnet.sim.clock import START
from linnet.sim.seeded_random import seeded_identity
from linnet.store.memory import MemoryStore


def lone_context(identity: Identity, seed: int | str = 1) -> Context:
    """The context of a node with an empty store."""
    return Context(identity.device, identity.card, MemoryStore(), DeliveryConfig(), Random(seed), verify_unit)


def event(attributes: str = "stock") -> Passing:
    """An event with these attributes."""
    signer = EventSigner(lone_context(seeded_identity(7, "n", START)))
    return signer.sign(TOPIC, read_attributes(attributes), b"x", START)
