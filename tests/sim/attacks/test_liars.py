"""Liars: whoever asks them hears of liars alone; otherwise they are as others are."""

from __future__ import annotations

from random import Random

from linnet.core.effects import Send
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import LinkUp, Received
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.messages import Alike, AskAlike, Pull, Pulled
from linnet.overlay.gossip.part import GossipOverlay
from linnet.overlay.notices import Adjacency
from linnet.sim.clock import START
from linnet.sim.light_network import HELLO, PartMachine
from linnet.sim.overlay.world import Conspiracy, Liar
from linnet.sim.seeded_random import SeededEntropy
from linnet.store.memory import MemoryStore

TOPIC = TopicId(b"t" * 32)


def _machine(name: str) -> tuple[GossipOverlay, PartMachine]:
    entropy = SeededEntropy(1, name)
    key = SigningKey.generate(entropy)
    config = TrackerlessConfig(answer=4, gossip=3)
    out = Outbox()
    cells, hints = MemoryStore().cells, (f"sim:{name}",)
    machine = GossipOverlay(key, config, cells, Random(1), entropy, out, Adjacency(out), hints)
    return machine, PartMachine(out, machine)


def test_liars_name_liars() -> None:
    conspiracy = Conspiracy(Random(1))
    liars = [Liar(*_machine(f"liar {number}"), conspiracy) for number in range(6)]
    own = [liar.machine.peers.own_profile(START).descriptor for liar in liars]
    for descriptor in own:
        conspiracy.join(descriptor)
    asker = _machine("asker")[0].peers.own_profile(START).descriptor
    (sent,) = liars[0].handle(Received(asker.peer, Pull(7, asker)), START)
    assert isinstance(sent, Send)
    assert (sent.peer, type(sent.message), sent.message.number) == (asker.peer, Pulled, 7)
    assert sent.message.nodes[0] == own[0]
    assert len({each.peer for each in sent.message.nodes}) == 4
    assert all(each in own for each in sent.message.nodes)
    (alike,) = liars[1].handle(Received(asker.peer, AskAlike(8, asker)), START)
    assert isinstance(alike.message, Alike)
    assert len(alike.message.nodes) == 3


def test_in_all_else_they_are_as_others() -> None:
    machine, driven = _machine("one")
    liar = Liar(machine, driven, Conspiracy(Random(1)))
    assert liar.neighbors(TOPIC) == ()
    peer = PeerId(b"p" * 32)
    driven.perform(lambda: machine.begin([Contact(peer, ("sim:2",))], START), START)
    (sent, _) = liar.handle(LinkUp(peer, HELLO, dialed=True, network=None), START)
    assert isinstance(sent.message, Pull)
