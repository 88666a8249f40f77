"""The node machine: every protocol of a node, composed. The drivers drive this class, unchanged.

Inputs are routed down to the parts, effects are gathered from them. What a part says to the node
itself, such as `Hold` or `Blame`, is heeded here; what it says to this same node as if to another,
is looped back, so that a node may be its own tracker and storage.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from random import Random
from typing import assert_never, cast, get_args

from linnet.core.effects import AfterCommit, Blame, HangUp, Hold, Release, Reply, Send
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import (
    Asked,
    Congested,
    DialFailed,
    Drained,
    LinkDown,
    LinkUp,
    Probed,
    Received,
    TimerFired,
)
from linnet.core.limits import FRAME_BYTES
from linnet.core.reasons import Reason
from linnet.core.stores import Store
from linnet.core.timers import Tick
from linnet.delivery.commands import Done
from linnet.delivery.context import Context
from linnet.delivery.messages import Data, DeliveryMessage
from linnet.event.signing import Verifier, verify_unit
from linnet.identity.cards import CardCheck, check_card
from linnet.overlay.effects import TrackerEffect
from linnet.overlay.member import Member
from linnet.overlay.messages import OverlayMessage
from linnet.overlay.registry import Registry
from linnet.overlay.tracked import Graph
from linnet.overlay.tracker import Tracker
from linnet.peer import links
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import (
    Block,
    Command,
    Connect,
    Disconnect,
    Effect,
    Examine,
    Input,
    NodeStatus,
    Start,
    Stop,
)
from linnet.peer.links import Links, LinksEffect
from linnet.peer.messages import PROTOCOL_OF, PROTOCOLS, LinkMessage, Message, Pong
from linnet.streams.effects import StreamEffect
from linnet.streams.messages import StreamMessage
from linnet.streams.streams import OWNERS as STREAM_OWNERS
from linnet.streams.streams import Streams
from linnet.trace.records import Kind, Record

_BLOCKED = "blocked"
_LINK_MESSAGES = frozenset(get_args(LinkMessage))
_OVERLAY_MESSAGES = frozenset(get_args(OverlayMessage))

_FOR_THE_NODE = frozenset({Hold, Release, Blame})

Asking = StreamEffect | TrackerEffect | LinksEffect | Reply[NodeStatus]
"""What the parts return, before the node machine has heeded what is meant for itself."""


class Peer:
    """One node of the network: peer, tracker and storage, as its configuration says."""

    def __init__(
        self,
        config: PeerConfig,
        identity: Identity,
        store: Store,
        rng: Random,
        verifier: Verifier = verify_unit,
        card_check: CardCheck = check_card,
    ) -> None:
        self._config = config
        self._ours = identity.peer
        self._store = store
        self._context = Context(
            identity.device, identity.card, store, config.delivery, rng, verifier, card_check
        )
        self._links = Links(self._ours, config.links, rng)
        self._links.blocked.update((PeerId(key), None) for key, _ in store.cells.scan(_BLOCKED))
        self._member = Member(config.member, config.listens)
        self._tracker = Tracker(config.tracker, rng) if config.is_tracker else None
        self._streams = Streams(
            self._context, self._member, Registry(config.trackers), config.streams, config.storage
        )
        self._started_at = 0.0
        self._looped: deque[Input] = deque()
        self._lacking: dict[PeerId, tuple[str, ...]] = {}
        """Peers of which we know that they do not speak all of our protocols, and which they lack."""

    @property
    def hello(self) -> Hello:
        """What to say first on each link."""
        return Hello(
            WIRE_VERSION,
            WIRE_VERSION,
            PROTOCOLS,
            self.roles,
            FRAME_BYTES,
            self._config.listens,
            self._config.agent,
        )

    @property
    def roles(self) -> tuple[str, ...]:
        """What this node offers."""
        tracker = ("tracker",) if self._tracker is not None else ()
        return (*tracker, "storage") if self._config.storage else tracker

    def handle(self, event: Input, now: float) -> list[Effect]:
        """Apply one input; the caller performs the effects, in order."""
        if type(event) is Received and type(event.message) is Data and event.peer != self._ours:
            # By far the most frequent input, and nearly all that it brings about is for the driver.
            asked = self._streams.on_data(event.peer, event.message, now)
            if not self._lacking and _FOR_THE_NODE.isdisjoint(map(type, asked)):
                return asked  # type: ignore[return-value] # just seen
            return self._heed(asked, now)
        effects = self._heed(self._apply(event, now), now)
        while self._looped:
            effects += self._heed(self._apply(self._looped.popleft(), now), now)
        return effects

    def _apply(self, event: Input, now: float) -> list[Asking]:
        match event:
            case Received(peer, message):
                return self._received(peer, message, now)
            case TimerFired(tick):
                return self._fired(tick, now)
            case LinkUp():
                return self._link_up(event, now)
            case LinkDown(peer, reason):
                self._lacking.pop(peer, None)
                mended = self._links.link_down(peer, reason, now)
                return [*self._overlay(event, now), *self._streams.link_down(event), *mended]
            case DialFailed(peer, reason):
                return [*self._overlay(event, now), *self._links.dial_failed(peer, reason)]
            case Probed():
                return [] if self._tracker is None else [*self._tracker.handle(event, now)]
            case Congested(peer):
                return [*self._streams.congested(peer, True, now)]
            case Drained(peer):
                return [*self._streams.congested(peer, False, now)]
            case Asked(request, command):
                return self._asked(request, command, now)
            case _:
                assert_never(event)

    def _received(self, peer: PeerId, message: Message, now: float) -> list[Asking]:
        # By type and not by isinstance: a union of twenty classes is slow to ask.
        kind = type(message)
        if kind is not Data and not self._links.spend(peer, now):
            return self._too_much(peer)
        if kind in _LINK_MESSAGES:
            return self._on_link_message(peer, cast("LinkMessage", message), now)
        if kind in _OVERLAY_MESSAGES:
            return self._overlay(Received(peer, cast("OverlayMessage", message)), now)
        return [*self._streams.on_message(peer, cast("DeliveryMessage | StreamMessage", message), now)]

    def _on_link_message(self, peer: PeerId, message: LinkMessage, now: float) -> list[Asking]:
        effects: list[Asking] = [*self._links.on_message(peer, message, now)]
        if isinstance(message, Pong) and (rtt := self._links.rtt(peer)) is not None:
            effects += self._streams.heed(self._member.rtt(peer, rtt), now)
        return effects

    def _too_much(self, peer: PeerId) -> list[Asking]:
        record = Record(Kind.REJECTED, peer=peer, reason=Reason.FLOODING, note="more messages than allowed")
        return [record, HangUp(peer, Reason.FLOODING)]

    def _link_up(self, event: LinkUp, now: float) -> list[Asking]:
        if event.peer == self._ours:
            return self._overlay(event, now)
        effects, stays = self._links.link_up(event, now)
        if not stays:
            return [*effects]
        lacking = tuple(name for name in PROTOCOLS if name not in event.hello.protocols)
        if lacking:
            self._lacking[event.peer] = lacking
        return [*effects, *self._streams.link_up(event, now), *self._overlay(event, now)]

    def _overlay(
        self, event: LinkUp | LinkDown | DialFailed | Received[OverlayMessage], now: float
    ) -> list[Asking]:
        """Both sides of the tracker overlay hear of links and its messages; each takes its own."""
        effects: list[Asking] = [*self._streams.heed(self._member.handle(event, now), now)]
        if self._tracker is not None:
            effects += self._tracker.handle(event, now)
        return effects

    def _fired(self, tick: Tick, now: float) -> list[Asking]:
        if tick.owner in STREAM_OWNERS:
            return [*self._streams.fired(tick, now)]
        if tick.owner == links.OWNER:
            return [*self._links.fired(tick, now)]
        if tick.owner == "tracker":
            return [] if self._tracker is None else [*self._tracker.handle(TimerFired(tick), now)]
        return [*self._streams.heed(self._member.handle(TimerFired(tick), now), now)]

    def _asked(self, request: int, command: Command, now: float) -> list[Asking]:
        match command:
            case Start():
                self._started_at = now
                online = Record(Kind.ONLINE)
                return [online, *self._streams.start(now), Reply(request, Done())]
            case Stop():
                hangups = [HangUp(peer, Reason.SHUTDOWN) for peer in self._links.up]
                return [*self._streams.stop(now), *hangups, Record(Kind.OFFLINE), Reply(request, Done())]
            case Connect(contact):
                return [Hold(contact.peer, contact.hints, "asked"), Reply(request, Done())]
            case Disconnect(peer):
                return [Release(peer, "asked"), Reply(request, Done())]
            case Block(peer, blocked):
                return self._block(request, peer, blocked)
            case Examine():
                return [Reply(request, self._status())]
            case _:
                return [*self._streams.ask(request, command, now)]

    def _block(self, request: int, peer: PeerId, blocked: bool) -> list[Asking]:
        if blocked:
            self._store.cells.put(_BLOCKED, peer, b"1")
        else:
            self._store.cells.delete(_BLOCKED, peer)
        return [*self._links.block(peer, blocked), AfterCommit((Reply(request, Done()),))]

    def _heed(self, asked: Iterable[Asking], now: float) -> list[Effect]:
        """Act on what is meant for the node machine, loop back what is meant for this node."""
        effects: list[Effect] = []
        ours = self._ours
        for effect in asked:
            if isinstance(effect, Send):
                if effect.peer == ours:
                    self._looped.append(Received(ours, effect.message))
                elif self._lacking:
                    effects.append(self._spoken(effect))
                else:
                    effects.append(effect)
            elif isinstance(effect, Hold):
                if effect.peer == ours:
                    self._looped.append(LinkUp(ours, self.hello, True))
                else:
                    effects += self._links.hold(effect)
            elif isinstance(effect, Release):
                effects += self._links.release(effect)
            elif isinstance(effect, Blame):
                effects += self._links.blame(effect, now)
            elif isinstance(effect, AfterCommit) and self._lacking:
                promises = (self._spoken(it) if isinstance(it, Send) else it for it in effect.effects)
                effects.append(AfterCommit(tuple(promises)))
            else:
                effects.append(effect)
        return effects

    def _spoken(self, send: Send[Message]) -> Send[Message] | Record:
        """The message, or a record of it if the peer does not speak its protocol."""
        if PROTOCOL_OF[type(send.message)] not in self._lacking.get(send.peer, ()):
            return send
        note = f"{type(send.message).__name__}: the peer does not speak this protocol"
        return Record(Kind.DROPPED, peer=send.peer, reason=Reason.UNSUPPORTED, note=note)

    def _status(self) -> NodeStatus:
        tracked: tuple[Graph, ...] = ()
        if self._tracker is not None:
            graphs = map(self._tracker.graph, self._tracker.topics)
            tracked = tuple(graph for graph in graphs if graph is not None)
        return NodeStatus(
            self._ours,
            self._context.author,
            self._started_at,
            self.roles,
            self._config.listens,
            self._member.reachable,
            self._member.reachable_reason,
            tuple(self._links.blocked),
            self._links.status(),
            self._streams.status(),
            tracked,
        )
