"""Local networks in the node machine: commands, answers, and what a node without them says."""

from __future__ import annotations

from random import Random

from linnet.core.effects import AfterCommit, Announce, Meet, Reply, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import Heard, LocalNetwork, Met, NetworkIs
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.edge.announcement import CORE, make_announcement, network_id
from linnet.edge.commands import AllowOnNetwork, ExamineLan, LanStatus, NetworkStatus
from linnet.edge.config import PresenceConfig
from linnet.edge.notices import LanChanged, LanGone, LanPeer
from linnet.edge.presence import AnnounceDue, ExpireDue, MeetDue, RefusalsDue
from linnet.event.signing import verify_unit
from linnet.identity.keys import SigningKey
from linnet.machine.commands import Declined, Done
from linnet.machine.outbox import Effect, Outbox
from linnet.machine.part import Part, on_notice
from linnet.machine.router import Router
from linnet.overlay.gossip.privacy_budget import PrivacyBudget
from linnet.peer.interface import AnyCommand
from linnet.peer.local_networks import LanInput, LocalNetworks
from linnet.sim.seeded_random import SeededEntropy
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity
from linnet.trace.records import Record

TOPIC = TopicId(b"t" * 32)
HOME, CAFE = network_id([b"home"]), network_id([b"cafe"])
HERE = NetworkIs((LocalNetwork(HOME, 7, 4711, "home"),))
DONE = AfterCommit((Reply(1, Done()),))


class Listener(Part):
    """Hears what changes on local networks."""

    def __init__(self) -> None:
        self.heard: list[LanChanged] = []

    @on_notice(LanChanged)
    def handle_changes(self, notice: LanChanged, now: float) -> None:
        self.heard.append(notice)


class Device:
    """Local networks at a node, and who hears of them."""

    def __init__(self, config: PresenceConfig | None = None) -> None:
        ann, rng, entropy = known_identity("ann"), Random(1), SeededEntropy(1, "local")
        context = Context(
            ann.device, ann.card, MemoryStore(), DeliveryConfig(), rng, verify_unit, entropy=entropy
        )
        self.out = Outbox()
        self.budget = PrivacyBudget(context.store.cells)
        self.networks = LocalNetworks(config, context, self.out, self.budget.enter_announcement)
        self.listener = Listener()
        self.router = Router(self.out, (self.networks, self.listener))

    def handle(self, event: LanInput) -> list[Effect]:
        self.router.input(event, 0.0)
        return self.out.take()

    def ask(self, command: AnyCommand) -> list[Effect]:
        self.router.command(1, command, 0.0)
        return self.out.take()

    def fire(self, timer: Timer, now: float) -> list[Effect]:
        self.router.timer(timer, now)
        return self.out.take()


def test_a_node_that_leaves_local_networks_alone_says_so() -> None:
    device = Device()
    assert device.handle(HERE) == []
    assert device.handle(Heard(HOME, "10.0.0.1", b"x")) == []
    assert device.fire(AnnounceDue(HOME), 0.0) == []
    assert device.listener.heard == []
    assert device.ask(ExamineLan()) == [Reply(1, LanStatus((), is_enabled=False))]
    (reply,) = device.ask(AllowOnNetwork(TOPIC, HOME, True))
    assert isinstance(reply, Reply)
    assert isinstance(reply.result, Declined)
    assert reply.result.reason is Reason.UNSUPPORTED


def test_it_can_still_keep_a_topic_from_the_internet() -> None:
    device = Device()
    assert device.ask(AllowOnNetwork(TOPIC, CORE, False)) == [DONE]
    assert not device.networks.policy.is_allowed(TOPIC, CORE)
    assert device.ask(AllowOnNetwork(TOPIC, CORE, True)) == [DONE]
    assert device.networks.policy.is_allowed(TOPIC, CORE)


def test_a_switch_is_durable_before_it_is_answered() -> None:
    device = Device(PresenceConfig())
    assert device.handle(HERE) == []
    due = AnnounceDue(HOME)
    assert device.ask(AllowOnNetwork(TOPIC, HOME, True)) == [SetTimer(0.3, due), DONE]
    announced, _ = device.fire(due, 0.3)
    assert isinstance(announced, Announce)
    shown = NetworkStatus(HOME, "home", True, True, (TOPIC,), 0, ())
    assert device.ask(ExamineLan()) == [Reply(1, LanStatus((shown,)))]


def test_what_may_be_spoken_of_is_what_is_allowed_where_we_are() -> None:
    device = Device(PresenceConfig())
    device.ask(AllowOnNetwork(TOPIC, HOME, True))
    spoken = [device.networks.spoken]
    for event in (HERE, NetworkIs(())):
        device.handle(event)
        spoken.append(device.networks.spoken)
    assert spoken == [(), (TOPIC,), ()]
    assert Device().networks.spoken == ()


def test_all_that_changes_at_once_is_one_notice_and_a_switch_is_one_though_nobody_came() -> None:
    device = Device(PresenceConfig())
    device.handle(HERE)
    device.ask(AllowOnNetwork(TOPIC, HOME, True))
    assert device.listener.heard == [LanChanged(()), LanChanged(())]
    peers = [PeerId(bytes([number]) * 32) for number in (1, 2)]
    for number, peer in enumerate(peers):
        device.handle(Met(HOME, bytes([number]) * 32, peer))
    device.ask(AllowOnNetwork(TOPIC, HOME, False))
    assert device.listener.heard[2:] == [
        *(LanChanged((LanPeer(Contact(peer), HOME),)) for peer in peers),
        LanChanged(tuple(LanGone(peer, HOME) for peer in peers)),
    ]


def test_announcements_are_counted_by_network() -> None:
    device = Device(PresenceConfig())
    device.handle(NetworkIs((LocalNetwork(HOME, 7, 4711, "home"), LocalNetwork(CAFE, 7, 4712, "cafe"))))
    for network in (HOME, CAFE):
        device.ask(AllowOnNetwork(TOPIC, network, True))
    for network in (HOME, HOME, CAFE):
        device.fire(AnnounceDue(network), 1.0)
    device.ask(AllowOnNetwork(TOPIC, CAFE, False))
    device.fire(AnnounceDue(CAFE), 2.0)
    told = device.budget.report().announcements
    assert [(each.network, each.times) for each in told] == [(HOME, 2), (CAFE, 1)]


def test_who_is_heard_is_met_when_its_time_comes_and_gone_when_it_is_silent() -> None:
    device = Device(PresenceConfig())
    device.handle(HERE)
    device.ask(AllowOnNetwork(TOPIC, HOME, True))
    keys = [SigningKey(bytes([number]) * 32) for number in range(1, 20)]
    smallest = min(keys, key=lambda key: key.public)
    device.handle(Heard(HOME, "10.0.0.1", make_announcement(smallest, 99, b"nonce---")))
    (met,) = device.fire(MeetDue(HOME), 2.0)
    assert isinstance(met, Meet)
    peer = PeerId(b"p" * 32)
    device.handle(Met(HOME, smallest.public, peer))
    device.listener.heard.clear()
    device.fire(ExpireDue(HOME), 60.0)
    assert device.listener.heard == [LanChanged((LanGone(peer, HOME),))]


def test_what_is_refused_is_recorded_at_once_and_then_counted() -> None:
    device = Device(PresenceConfig())
    device.handle(HERE)
    device.ask(AllowOnNetwork(TOPIC, HOME, True))
    first, timer = device.handle(Heard(HOME, "10.0.0.1", b"junk"))
    assert isinstance(first, Record)
    assert timer == SetTimer(1.0, RefusalsDue())
    for _ in range(3):
        assert device.handle(Heard(HOME, "10.0.0.1", b"junk")) == []
    (more,) = device.fire(RefusalsDue(), 1.0)
    assert isinstance(more, Record)
    assert (more.events, more.reason) == (3, first.reason)
