"""One node's streams machinery without a network: a context with a store, an identity and links."""

from __future__ import annotations

from random import Random

from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.signing import verify_unit
from linnet.machine.outbox import Outbox
from linnet.peer.config import Identity
from linnet.sim.clock import START
from linnet.store.memory import MemoryStore
from linnet.streams.stream import Stream
from linnet.testing.identities import known_identity

NOW = START + 10.0


def context_of(
    name: str = "us", config: DeliveryConfig | None = None, store: MemoryStore | None = None
) -> Context:
    """What the streams of the node of this name share."""
    identity: Identity = known_identity(name)
    return Context(
        identity.device,
        identity.card,
        store or MemoryStore(),
        config or DeliveryConfig(),
        Random(1),
        verify_unit,
    )


class Staged(Stream):
    """A stream with an outbox of its own."""

    def __init__(self, name: str, context: Context) -> None:
        self.out = Outbox()
        super().__init__(name, context, self.out)
