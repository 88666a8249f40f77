"""Floods against one node: whole machines that ship, and what they hold and write down in the worst case.

Nothing is slowed down by a network here: everything comes at once, from as many peers as are said.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from msgspec import Struct

from linnet.core.effects import HangUp
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import LinkUp, Received
from linnet.core.limits import FRAME_BYTES
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.overlay.adjacency import Adjacency
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.messages import Beside, Descriptor, Pull, Seek
from linnet.overlay.trackerless.seeking import Seeking
from linnet.overlay.trackerless.tags import epoch_of, hint, proof, topic_keys
from linnet.overlay.trackerless.trackerless import Trackerless
from linnet.peer.config import PeerConfig
from linnet.peer.peer import Peer
from linnet.sim.clock import START
from linnet.sim.ideal_group import IDEAL
from linnet.sim.identities import seeded_identity
from linnet.sim.luck import SeededEntropy, named_luck
from linnet.sim.part_machine import PartMachine
from linnet.store.memory import MemoryStore
from linnet.trace.records import Record

_TOPIC = TopicId(b"f" * 32)
_HELLO = Hello(WIRE_VERSION, WIRE_VERSION, {}, (), FRAME_BYTES)
_DAY = 86_400


class LinkFlood(Struct, frozen=True):
    """One peer that sends searches as fast as it can, until it is cut off."""

    taken: int
    """Messages that were looked at before."""
    records: int
    """Rows that were written about it."""
    reason: Reason | None
    """Why it was cut off; None: it was not."""


class CrowdFlood(Struct, frozen=True):
    """What a node holds after very many peers have asked it for everything, all at once."""

    acquaintances: int
    sample: int
    walkers: int
    """Searches of others that are remembered."""
    neighbors: int
    """Of one topic, whose members all want it as theirs."""
    refused: int
    """Messages that were refused, each with a record that says why."""
    unnamed: int
    """Records of refusals without a reason, or that name nobody."""


def flood_of_one(messages: int = 20_000, seed: int = 1) -> LinkFlood:
    """A peer with one link, and a node with all its limits."""
    config = TrackerlessConfig()
    ours = seeded_identity(seed, "victim", START)
    node = Peer(
        PeerConfig(trackerless=config),
        ours,
        MemoryStore(),
        named_luck(seed, "victim"),
        entropy=SeededEntropy(seed, "victim"),
    )
    attacker = PeerId(named_luck(seed, "attacker").randbytes(32))
    node.handle(LinkUp(attacker, node.hello, False), START)
    records = 0
    for number in range(messages):
        for effect in node.handle(Received(attacker, _walker(number, START)), START):
            records += isinstance(effect, Record)
            if isinstance(effect, HangUp):
                return LinkFlood(number, records, effect.reason)
    return LinkFlood(messages, records, None)


def flood_of_many(peers: int = 3000, seed: int = 1) -> CrowdFlood:
    """So many peers, each of which introduces itself, sends searches, and wants to be a neighbour, twice."""
    config = TrackerlessConfig()
    luck = named_luck(seed, "crowd")
    out = Outbox()
    machine = Trackerless(
        seeded_identity(seed, "victim", START).device,
        config,
        MemoryStore().cells,
        luck,
        SeededEntropy(seed, "victim"),
        out,
        Adjacency(out),
        ("sim:victim",),
        IDEAL,
        _unchecked,
    )
    driven = PartMachine(out, machine)
    machine.begin((), START)
    machine.join(_TOPIC, False, START)
    out.clear()
    crowd = [PeerId(luck.randbytes(32)) for _ in range(peers)]
    records: list[Record] = []
    for peer in crowd:
        records += _records(driven.handle(LinkUp(peer, _HELLO, False), START))
        records += _records(driven.handle(Received(peer, Pull(1, _descriptor(peer, luck))), START))
        records += _records(driven.handle(Received(peer, _beside(machine.gossip.ours, peer)), START))
    # Whom the node wants itself it chooses with its next round; then all try once more.
    records += _records(driven.perform(lambda: machine.topics.round(START), START))
    for peer in crowd:
        records += _records(driven.handle(Received(peer, _beside(machine.gossip.ours, peer)), START))
    walkers, dropped = _walkers(crowd, config, seed)
    refused = [record for record in (*records, *dropped) if record.reason is not None]
    status = machine.status(START)
    return CrowdFlood(
        acquaintances=status.acquaintances,
        sample=len(status.sample),
        walkers=walkers,
        neighbors=len(machine.neighbors(_TOPIC)),
        refused=len(refused),
        unnamed=sum(record.peer is None for record in refused),
    )


def _walkers(crowd: list[PeerId], config: TrackerlessConfig, seed: int) -> tuple[int, list[Record]]:
    """Everyone sends a few searches; how many are remembered, and what is recorded of the rest."""
    luck = named_luck(seed, "walkers")
    seeking = Seeking(config, luck, SeededEntropy(seed, "walkers"), luck.randbytes(32))
    own = _descriptor(PeerId(luck.randbytes(32)), luck)
    records: list[Record] = []
    most = 0
    for number, peer in enumerate(crowd * 2):
        hop = seeking.step(peer, _walker(number, START), own, crowd[:2], lambda _: (0, 0.0), START)
        records += hop.records
        most = max(most, len(seeking))
    return most, records


def _walker(number: int, now: float) -> Seek:
    return Seek(number.to_bytes(16, "big"), (1, 2, 3, 4), epoch_of(now), bytes([9]) * 32, 8, False)


def _descriptor(peer: PeerId, luck: Random) -> Descriptor:
    return Descriptor(peer, 1, epoch_of(START), b"", 0, 1, (), int(START) + _DAY, luck.randbytes(64))


def _beside(ours: PeerId, peer: PeerId) -> Beside:
    keys, epoch = topic_keys(_TOPIC, None), epoch_of(START)
    return Beside(hint(keys, peer, ours), epoch, proof(keys, peer, epoch), True)


def _records(effects: Iterable[object]) -> list[Record]:
    return [effect for effect in effects if isinstance(effect, Record)]


def _unchecked(descriptor: Descriptor, now: float) -> None:
    """Invented keys sign as well as others; to check them all takes time and finds nothing."""
