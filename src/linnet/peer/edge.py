"""The edge at a node: its proxies if it is a client, its clients if it is a proxy, and its sleep.

What the two machines ask of streams is done here, so that neither knows the other's side.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec.structs import replace

from linnet.core.effects import AfterCommit, Hold, Reply, Send
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.stores import Store
from linnet.core.timers import Tick
from linnet.delivery.commands import Declined, Done
from linnet.delivery.config import DeliveryConfig
from linnet.edge import client, proxy, sleeping
from linnet.edge.client import PURPOSE, EdgeClient
from linnet.edge.effects import ClientEffect, Keep, LetGo, ProxyEffect, Trim
from linnet.edge.hints import is_lan_hint
from linnet.edge.lan_keys import CORE
from linnet.edge.messages import Answer, EdgeMessage, Serve, Served, Taken, Unserve
from linnet.edge.notices import LanNotice, LanPeer
from linnet.edge.proxy import Proxy
from linnet.edge.proxy_commands import EdgeStatus, ExamineEdge, ProxyCommand, Sleep
from linnet.edge.sleeping import Sleeping
from linnet.peer.config import PeerConfig
from linnet.peer.links import Links, LinksEffect
from linnet.peer.local_networks import LocalNetworks
from linnet.rooms.commands import RoomCommand, SendToRoom
from linnet.streams.commands import Publish, StreamCommand
from linnet.streams.effects import StreamEffect
from linnet.streams.names import topic_of
from linnet.streams.options import StorageRule
from linnet.streams.streams import Streams
from linnet.trace.records import Kind, Record

OWNERS = (client.OWNER, proxy.OWNER, sleeping.OWNER)
"""Owners of timers that come back here."""

EdgePartEffect: TypeAlias = (
    StreamEffect | LinksEffect | Send[EdgeMessage] | AfterCommit[Send[EdgeMessage]] | Reply[EdgeStatus]
)
_MOST_REFUSED = 1024
"""Peers of which it is remembered that a link to them was refused; others are told of once more."""
_ALONE = "a node on the edge has links to its proxies and on local networks alone"
_NO_EDGE = "this node has no proxies: only a node on the edge sleeps, see [edge] in its configuration"


class Edge:
    """Both sides of the edge, as far as this node has them."""

    def __init__(self, config: PeerConfig, store: Store, streams: Streams, links: Links) -> None:
        self._streams = streams
        self._links = links
        self._client = EdgeClient(config.edge, streams.serving) if config.edge.proxies else None
        self._proxy = None if config.proxy is None else Proxy(config.proxy, store, streams.serving, topic_of)
        self._sleeping = Sleeping(config.edge)
        self._refused: dict[PeerId, None] = {}
        self.nearby: dict[PeerId, None] = {}
        """Peers on a local network, to whom a node on the edge may have links as well."""
        self._settled: tuple[tuple[TopicId, ...], tuple[TopicId, ...]] = ((), ())
        if self._client is not None:
            streams.through(self._client)
            links.reach = self._reach

    @property
    def is_edge(self) -> bool:
        """Whether this node has links to its proxies, and on local networks, and to nobody else."""
        return self._client is not None

    def start(self, now: float) -> list[EdgePartEffect]:
        """Turn to our proxies; go on serving our clients."""
        effects: list[EdgePartEffect] = []
        if self._client is not None:
            effects += self._do(self._client.start(now), now)
            effects += self._sleeping.start()
        return effects if self._proxy is None else [*effects, *self._do(self._proxy.start(now), now)]

    def stop(self, now: float) -> list[EdgePartEffect]:
        """The node stops; called before streams are left."""
        return [] if self._client is None else self._do(self._client.stop(), now)

    # What happens.

    def links(self, event: LinkUp | LinkDown | DialFailed, now: float) -> list[EdgePartEffect]:
        """Something became of a link."""
        client, proxy = self._client, self._proxy
        match event:
            case LinkUp(peer):
                is_fit = "edge" in event.hello.protocols
                return [] if client is None else self._do(client.link_up(peer, is_fit), now)
            case LinkDown(peer, reason):
                effects = [] if client is None else self._do(client.link_down(peer, reason), now)
                return effects if proxy is None else [*effects, *self._do(proxy.down(peer, now), now)]
            case DialFailed(peer, reason):
                return [] if client is None else self._do(client.dial_failed(peer, reason), now)

    def on_message(self, peer: PeerId, message: EdgeMessage, now: float) -> list[EdgePartEffect]:
        """What a client or a proxy says."""
        if isinstance(message, Served):
            if self._client is None:
                return [_rejected(peer, Reason.STALE, message)]
            return self._do(self._client.served(peer, message), now)
        if self._proxy is None:
            refused = _rejected(peer, Reason.NOT_RESPONSIBLE, message)
            if not isinstance(message, Serve):
                return [refused]
            answers = (Answer(Reason.NOT_RESPONSIBLE, False),) * len(message.streams)
            return [refused, Send(peer, Served(message.request, answers, 0, 0, 0))]
        match message:
            case Serve():
                return self._do(self._proxy.serve(peer, message, now), now)
            case Unserve():
                return self._do(self._proxy.unserve(peer, message, now), now)
            case Taken():
                return self._do(self._proxy.taken(peer, message), now)

    def fired(self, tick: Tick, now: float) -> list[EdgePartEffect]:
        """A timer has run out."""
        if tick.owner == proxy.OWNER:
            return [] if self._proxy is None else self._do(self._proxy.fired(tick, now), now)
        if self._client is None:
            return []
        if tick.owner == client.OWNER:
            # Asleep no proxy is missed; whether one is, is seen once we are awake.
            is_idle = self._sleeping.asleep and tick.what == "failover"
            return [] if is_idle else self._do(self._client.fired(tick), now)
        return self._sleep(False, now) if tick.what == "sleep" else self._wake(now)

    def ask(self, request: int, command: ProxyCommand, now: float) -> list[EdgePartEffect]:
        """What the application wants."""
        if isinstance(command, ExamineEdge):
            return [Reply(request, self.status())]
        if self._client is None:
            return [Reply(request, Declined(Reason.NOT_ALLOWED, _NO_EDGE))]
        acted = self._sleep(True, now) if isinstance(command, Sleep) else self._wake(now)
        return [*acted, Reply(request, Done())]

    def stir(self, command: StreamCommand | RoomCommand, now: float) -> list[EdgePartEffect]:
        """The application has something to send: in battery mode that ends sleep."""
        if not isinstance(command, Publish | SendToRoom) or not self._sleeping.stir():
            return []
        return self._wake(now)

    def is_foreign(self, peer: PeerId) -> bool:
        """Whether this node may have no link to a peer: on the edge, if it is no proxy and not nearby."""
        return self._client is not None and peer not in self._client.all and peer not in self.nearby

    @property
    def declined(self) -> Declined:
        """What whoever asks for such a link is told."""
        return Declined(Reason.NOT_ALLOWED, f"{_ALONE}: see [edge]")

    def objection(self, hold: Hold) -> list[Record] | None:
        """What becomes of a wish for a link on the edge: the client alone chooses among proxies.

        None if there is no objection. That a part waits for a proxy is nothing to tell of.
        """
        if self._client is None or hold.purpose == PURPOSE or hold.peer in self.nearby:
            return None
        if hold.peer in self._client.all or hold.peer in self._refused:
            return []
        self._refused[hold.peer] = None
        if len(self._refused) > _MOST_REFUSED:
            del self._refused[next(iter(self._refused))]
        note = f"{_ALONE}: {hold.purpose}"
        return [Record(Kind.REJECTED, peer=hold.peer, reason=Reason.NOT_ALLOWED, note=note)]

    def on_local(
        self, notices: Iterable[LanNotice], local: LocalNetworks, now: float
    ) -> list[EdgePartEffect]:
        """Who came to or left our local networks, and what may be spoken of there or with proxies by now."""
        if self._client is None:
            return []
        for notice in notices:
            peer = notice.contact.peer if isinstance(notice, LanPeer) else notice.peer
            if local.is_here(peer):
                self.nearby[peer] = None
                self._refused.pop(peer, None)
            else:
                self.nearby.pop(peer, None)
        wanted = (local.spoken, local.policy.denied(CORE))
        if wanted == self._settled:
            return []
        self._settled = wanted
        return [*self._streams.serving.settle(*wanted, now)]

    def is_ours(self, peer: PeerId) -> bool:
        """Whether a peer is one of our proxies: with them nothing is spoken of but what they serve."""
        return self._client is not None and peer in self._client.all

    def _reach(self, peer: PeerId, hints: tuple[str, ...]) -> tuple[str, ...]:
        """Proxies wherever they are; others on the local network alone, and while they are there."""
        if self.is_ours(peer):
            return hints
        return tuple(hint for hint in hints if peer in self.nearby and is_lan_hint(hint))

    def status(self) -> EdgeStatus:
        """How the edge stands."""
        proxies = () if self._client is None else self._client.status()
        clients = () if self._proxy is None else self._proxy.status()
        is_proxy = self._proxy is not None
        return EdgeStatus(self.is_edge, is_proxy, self._sleeping.asleep, proxies, clients)

    # The rest.

    def _sleep(self, told: bool, now: float) -> list[EdgePartEffect]:
        said = [] if self._client is None else self._do(self._client.tell_taken(), now)
        fell = Record(Kind.CONTROL, note="asleep")
        return [*said, fell, *self._links.sleep(), *self._sleeping.sleep(told)]

    def _wake(self, now: float) -> list[EdgePartEffect]:
        if not self._sleeping.asleep:
            return []
        looked = [] if self._client is None else self._do(self._client.woke(), now)
        return [Record(Kind.CONTROL, note="awake"), *self._links.wake(now), *self._sleeping.wake(), *looked]

    def _do(self, effects: Iterable[ClientEffect | ProxyEffect], now: float) -> list[EdgePartEffect]:
        """Do what is asked of streams; the rest is passed on."""
        out: list[EdgePartEffect] = []
        for effect in effects:
            match effect:
                case Keep(stream, retention, quota):
                    out += self._streams.serving.keep(StorageRule(stream, retention, quota), now)
                case LetGo(stream):
                    out += self._streams.serving.let_go(stream, now)
                case Trim(topic, most):
                    out += self._streams.serving.trim(topic, most, now)
                case _:
                    out += self._streams.heed((effect,), now)
        return out


def edge_delivery(config: PeerConfig) -> DeliveryConfig:
    """How events are delivered here: who is often away waits for what is missing until it can ask."""
    return replace(config.delivery, gap_waits=True) if config.edge.proxies else config.delivery


def only_links(config: PeerConfig) -> tuple[PeerId, ...] | None:
    """The peers to whom this node has links at all; None: to anyone."""
    proxies = tuple(contact.peer for contact in config.edge.proxies)
    return proxies or None


def _rejected(peer: PeerId, reason: Reason, message: EdgeMessage) -> Record:
    return Record(Kind.REJECTED, peer=peer, reason=reason, note=type(message).__name__)
