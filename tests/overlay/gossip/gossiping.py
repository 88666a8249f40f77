"""A node among its peers, and what others say of themselves."""

from __future__ import annotations

from random import Random

from linnet.core.ids import PeerId
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.overlay.gossip.config import DAY, TrackerlessConfig
from linnet.overlay.gossip.descriptor import check_descriptor, sign_descriptor
from linnet.overlay.gossip.messages import Descriptor
from linnet.overlay.gossip.peer_gossip import PeerGossip
from linnet.overlay.gossip.topic_tags import epoch_of
from linnet.sim.seeded_random import SeededEntropy
from linnet.store.memory import MemoryStore

NOW = 1_800_000_000.0
EPOCH = epoch_of(NOW)
US, *OTHERS = (SigningKey(bytes([number]) * 32) for number in range(1, 12))
AT = ("tls://h:1",)


def described(
    key: SigningKey, bits: bytes = b"", version: int = int(NOW * 1000), epsilon_milli: int = 3000
) -> Descriptor:
    """What the holder of a key says of itself, with this filter."""
    return sign_descriptor(key, version, EPOCH, bits, epsilon_milli, 1, AT, int(NOW + DAY))


def peer_gossip(
    config: TrackerlessConfig | None = None,
    store: MemoryStore | None = None,
    links: dict[PeerId, None] | None = None,
    entropy: SeededEntropy | None = None,
) -> PeerGossip:
    """The peers of a node."""
    return PeerGossip(
        US,
        config or TrackerlessConfig(),
        (store or MemoryStore()).cells,
        Random(1),
        entropy or SeededEntropy(1, "us"),
        AT,
        {} if links is None else links,
        check_descriptor,
        Outbox(),
    )
