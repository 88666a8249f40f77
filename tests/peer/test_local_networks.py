"""Local networks in the node machine: commands, answers, and what a node without them says."""

from __future__ import annotations

from random import Random

from linnet.core.effects import AfterCommit, Announce, Reply, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import Heard, LocalNetwork, NetworkIs
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.commands import Declined, Done
from linnet.edge.commands import AllowOnNetwork, ExamineLan, LanStatus, NetworkStatus
from linnet.edge.config import PresenceConfig
from linnet.edge.lan_keys import CORE, network_id
from linnet.edge.notices import LanGone, LanPeer
from linnet.peer.config import PeerConfig
from linnet.peer.local_networks import LocalNetworks, parted
from linnet.sim.luck import SeededEntropy
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity

TOPIC = TopicId(b"t" * 32)
HOME = network_id([b"home"])
HERE = NetworkIs((LocalNetwork(HOME, 7, 4711, "home"),))
DONE = AfterCommit((Reply(1, Done()),))


def local(config: PeerConfig) -> LocalNetworks:
    cells, entropy = MemoryStore().cells, SeededEntropy(1, "local")
    return LocalNetworks(config, known_identity("ann"), cells, Random(1), entropy)


def test_a_node_that_leaves_local_networks_alone_says_so() -> None:
    networks = local(PeerConfig())
    assert networks.handle(HERE, 0.0) == []
    assert networks.handle(Heard(HOME, "10.0.0.1", b"x"), 0.0) == []
    assert networks.fired(Tick("presence", "announce", HOME), 0.0) == []
    assert networks.ask(1, ExamineLan(), 0.0) == ([], [Reply(1, LanStatus((), is_enabled=False))])
    _, [reply] = networks.ask(1, AllowOnNetwork(TOPIC, HOME, True), 0.0)
    assert isinstance(reply, Reply)
    assert isinstance(reply.result, Declined)
    assert reply.result.reason is Reason.UNSUPPORTED


def test_it_can_still_keep_a_topic_from_the_internet() -> None:
    networks = local(PeerConfig())
    assert networks.ask(1, AllowOnNetwork(TOPIC, CORE, False), 0.0) == ([], [DONE])
    assert not networks.policy.is_allowed(TOPIC, CORE)
    assert networks.ask(1, AllowOnNetwork(TOPIC, CORE, True), 0.0) == ([], [DONE])
    assert networks.policy.is_allowed(TOPIC, CORE)


def test_a_switch_is_durable_before_it_is_answered() -> None:
    networks = local(PeerConfig(lan=PresenceConfig()))
    assert networks.handle(HERE, 0.0) == []
    tick = Tick("presence", "announce", HOME)
    assert networks.ask(1, AllowOnNetwork(TOPIC, HOME, True), 0.0) == ([SetTimer(0.3, tick)], [DONE])
    announced, _ = networks.fired(tick, 0.3)
    assert isinstance(announced, Announce)
    _, [reply] = networks.ask(1, ExamineLan(), 0.0)
    shown = NetworkStatus(HOME, "home", True, True, (TOPIC,), 0, ())
    assert reply == Reply(1, LanStatus((shown,)))


def test_what_may_be_spoken_of_is_what_is_allowed_where_we_are() -> None:
    networks = local(PeerConfig(lan=PresenceConfig()))
    networks.ask(1, AllowOnNetwork(TOPIC, HOME, True), 0.0)
    spoken = [networks.spoken]
    for event in (HERE, NetworkIs(())):
        networks.handle(event, 0.0)
        spoken.append(networks.spoken)
    assert spoken == [(), (TOPIC,), ()]
    assert local(PeerConfig()).spoken == ()


def test_notices_are_told_apart_from_what_is_for_the_driver() -> None:
    peer = PeerId(b"p" * 32)
    announced, here, gone = Announce(HOME, b"x"), LanPeer(Contact(peer), HOME), LanGone(peer, HOME)
    assert parted([announced, here, gone]) == ([announced], [here, gone])
