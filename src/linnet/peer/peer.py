"""The node machine: every protocol of a node, composed. The drivers drive this class, unchanged.

Inputs are routed down to the parts, effects are gathered from them. What a part says to the node
itself, such as `Hold` or `Blame`, is heeded here; what it says to this same node as if to another,
is looped back, so that a node may be its own tracker and storage.
"""

from __future__ import annotations

from random import Random
from typing import assert_never, get_args

from linnet.content.budgets import OF_EVENTS
from linnet.content.commands import ContentCommand
from linnet.content.fast.commands import FastCommand
from linnet.content.fast.messages import Convey, Conveyed
from linnet.core.effects import AfterCommit, HangUp, Hold, Release, Reply
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import (
    Asked,
    Congested,
    DialFailed,
    Drained,
    Heard,
    LinkDown,
    LinkUp,
    Met,
    NetworkIs,
    NotMet,
    Probed,
    Received,
    TimerFired,
)
from linnet.core.limits import FRAME_BYTES
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.stores import Store
from linnet.core.timers import Tick
from linnet.delivery.commands import Consumed, Declined, Done, Unsubscribe
from linnet.delivery.messages import Data
from linnet.edge.commands import LanCommand
from linnet.edge.presence import OWNER as PRESENCE_OWNER
from linnet.edge.proxy_commands import ProxyCommand
from linnet.event.signing import Verifier, verify_unit
from linnet.identity.cards import CardCheck, check_card
from linnet.names.commands import NamesCommand
from linnet.overlay.kademlia.kademlia import PROTOCOL as KADEMLIA
from linnet.overlay.messages import OverlayMessage
from linnet.overlay.trackerless.commands import TrackerlessCommand
from linnet.overlay.trackerless.messages import TrackerlessMessage
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.content import PROTOCOLS as CONTENT
from linnet.peer.content import Search
from linnet.peer.interface import (
    Block,
    Command,
    Connect,
    Disconnect,
    Effect,
    Examine,
    Input,
    Start,
    Stop,
)
from linnet.peer.messages import PROTOCOLS, LinkMessage, Message, Pong
from linnet.peer.neighborhood import Neighborhood
from linnet.peer.outgoing import Asking, Outgoing
from linnet.peer.parts import Parts
from linnet.peer.routes import message_routes, timer_routes
from linnet.peer.status import node_status
from linnet.peer.whereabouts import OWNER as WHEREABOUTS_OWNER
from linnet.peer.whereabouts import PROTOCOL as WHEREABOUTS
from linnet.peer.whereabouts import Located
from linnet.places.commands import PlaceCommand
from linnet.places.messages import Replay, Replayed
from linnet.rooms.commands import AskRelay, RoomCommand
from linnet.streams.commands import StreamCommand
from linnet.trace.records import Kind, Record

_BLOCKED = "blocked"

_MEASURED_ELSEWHERE = frozenset({Data, Replay, Replayed, Convey, Conveyed}) | OF_EVENTS
"""Messages that are not counted as control: there are as many as there is to be told, and who asks for more
than it may, or answers what nobody asked, is blamed by the part that sees it."""


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
        entropy: Entropy | None = None,
        search: Search | None = None,
    ) -> None:
        self._config = config
        self._ours = identity.peer
        self._store = store
        self._parts = parts = Parts(config, identity, store, rng, verifier, card_check, entropy, search)
        self._links = parts.links
        self._links.blocked.update((PeerId(key), None) for key, _ in store.cells.scan(_BLOCKED))
        self._account = parts.account
        self._streams = parts.streams
        self._clocks = parts.clocks
        self._rooms = parts.rooms
        self._places = parts.places
        self._network = parts.network
        self.content = parts.content
        """Content at this node, for whoever looks into it."""
        self._edge = parts.edge
        self._started_at = 0.0
        self._hello = Hello(
            WIRE_VERSION,
            WIRE_VERSION,
            self._spoken(),
            self.roles,
            FRAME_BYTES,
            config.listens,
            config.agent,
        )
        around = self._around = Neighborhood(parts)
        self._outgoing = Outgoing(self._ours, self._hello, self._links, self._edge)
        self._by_message = message_routes(parts) | {
            **dict.fromkeys(get_args(LinkMessage), self._on_link_message),
            **dict.fromkeys(get_args(OverlayMessage), around.on_tracker_message),
            **dict.fromkeys(get_args(TrackerlessMessage), around.on_trackerless),
            Data: self._on_data,
            Located: self._on_located,
        }
        self._by_owner = timer_routes(parts) | {
            "tracker": around.tracker_fired,
            PRESENCE_OWNER: around.local_fired,
            WHEREABOUTS_OWNER: parts.whereabouts.fired,
        }

    @property
    def hello(self) -> Hello:
        """What to say first on each link."""
        return self._hello

    def _spoken(self) -> dict[str, int]:
        """Protocols of this node: those that it does."""
        absent = [] if self._network.is_on else [KADEMLIA]
        absent += () if self.content.is_on else CONTENT
        return {name: version for name, version in PROTOCOLS.items() if name not in absent}

    @property
    def roles(self) -> tuple[str, ...]:
        """What this node offers."""
        offered = {
            "tracker": self._parts.tracker is not None,
            "storage": bool(self._config.storage),
            "relay": self._config.relay is not None,
            "proxy": self._config.proxy is not None,
        }
        return tuple(role for role, is_offered in offered.items() if is_offered)

    def handle(self, event: Input, now: float) -> list[Effect]:
        """Apply one input; the caller performs the effects, in order."""
        kind = type(event)
        if kind is Received:
            if type(event.message) is Data and event.peer != self._ours:  # type: ignore[union-attr]
                # By far the most frequent input, and nearly all that it brings about is for the driver.
                asked: list[Asking] = self._on_data(event.peer, event.message, now)  # type: ignore[union-attr]
                if self._outgoing.is_plain(asked):
                    return asked  # type: ignore[return-value] # just seen
                return self._outgoing.heed(asked, now)
            asked = self._received(event.peer, event.message, now)  # type: ignore[union-attr]
        elif kind is TimerFired:
            asked = self._fired(event.timer, now)  # type: ignore[union-attr]
        else:
            asked = self._apply(event, now)
        if self._edge.is_edge:
            self._account.served(asked, now)
        outgoing = self._outgoing
        effects = outgoing.heed(asked, now) if asked else []
        damaged = self._streams.repair.look(now)
        if damaged:
            effects += outgoing.heed([*damaged], now)
        while outgoing.looped:
            effects += outgoing.heed(self._apply(outgoing.looped.popleft(), now), now)
        return effects

    def _on_data(self, peer: PeerId, data: Data, now: float) -> list[Asking]:
        self._clocks.heard(peer, data.sent_us, now)
        if self._rooms.holds(data.unit.topic):
            return [*self._rooms.on_data(peer, data, now)]
        if self._places.holds(data.unit.topic):
            return [*self._places.on_data(peer, data, now)]
        return self._streams.on_data(peer, data, now)  # type: ignore[return-value] # a list of less

    def _apply(self, event: Input, now: float) -> list[Asking]:
        match event:
            case Received(peer, message):
                return self._received(peer, message, now)
            case TimerFired(tick):
                return self._fired(tick, now)
            case LinkUp():
                return self._link_up(event, now)
            case LinkDown(peer, reason):
                self._outgoing.link_down(peer)
                self._parts.whereabouts.link_down(peer)
                self._clocks.gone(peer)
                mended = self._links.link_down(peer, reason, now)
                down: list[Asking] = [*self._streams.link_down(event), *self._rooms.link_down(event, now)]
                down += [*self._places.link_gone(event, now), *self._network.link_gone(event, now)]
                return [*self._around.links(event, now), *down, *self._edge.links(event, now), *mended]
            case DialFailed(peer, reason):
                failed: list[Asking] = [*self._rooms.dial_failed(event, now)]
                failed += [*self._places.link_gone(event, now), *self._network.link_gone(event, now)]
                failed += self._links.dial_failed(peer, reason, now)
                return [*self._around.links(event, now), *self._edge.links(event, now), *failed]
            case Probed():
                return self._around.probed(event, now)
            case Congested(peer):
                return [*self._streams.congested(peer, True, now)]
            case Drained(peer):
                return [*self._streams.congested(peer, False, now)]
            case NetworkIs() | Heard() | Met() | NotMet():
                return self._around.on_network(event, now)
            case Asked(request, command):
                return self._asked(request, command, now)
            case _:
                assert_never(event)

    def _received(self, peer: PeerId, message: Message, now: float) -> list[Asking]:
        kind = type(message)
        if kind not in _MEASURED_ELSEWHERE and not self._links.spend(peer, now):
            return self._too_much(peer)
        return [*self._by_message[kind](peer, message, now)]

    def _on_link_message(self, peer: PeerId, message: LinkMessage, now: float) -> list[Asking]:
        effects = self._links.on_message(peer, message, now)
        if isinstance(message, Pong) and (rtt := self._links.rtt(peer)) is not None:
            self._rooms.rtt(peer, rtt)
            return [*effects, *self._around.rtt(peer, rtt, now)]
        return effects  # type: ignore[return-value] # a list of less

    def _on_located(self, peer: PeerId, message: Located, now: float) -> list[Asking]:
        """Somebody tells where devices are: whoever needs them tries them there at once."""
        # Each costs a signature: a message of many counts as many.
        if not all(self._links.spend(peer, now) for _ in message.records[1:]):
            return self._too_much(peer)
        told, learned = self._parts.whereabouts.on_message(peer, message, now)
        effects: list[Asking] = [*told]
        for each in learned:
            effects += self._rooms.located(each.topic, each.contact, now)
            effects += self._links.seek(each.contact.peer, now)
        return effects

    def _too_much(self, peer: PeerId) -> list[Asking]:
        record = Record(Kind.REJECTED, peer=peer, reason=Reason.FLOODING, note="more messages than allowed")
        return [record, HangUp(peer, Reason.FLOODING)]

    def _link_up(self, event: LinkUp, now: float) -> list[Asking]:
        if event.peer == self._ours:
            return self._around.links(event, now)
        effects, stays = self._links.link_up(event, now)
        if not stays:
            return [*effects]
        self._outgoing.link_up(event.peer, event.hello.protocols)
        up: list[Asking] = [*self._streams.link_up(event, now), *self._rooms.link_up(event, now)]
        up += self._parts.whereabouts.link_up(event.peer, WHEREABOUTS in event.hello.protocols)
        up += [*self._places.link_up(event, now), *self._network.link_up(event, now)]
        return [*effects, *up, *self._around.links(event, now), *self._edge.links(event, now)]

    def _fired(self, tick: Tick, now: float) -> list[Asking]:
        told = self._by_owner.get(tick.owner)
        if told is not None:
            return [*told(tick, now)]
        return self._around.overlay_fired(tick, now)

    def _asked(self, request: int, command: Command, now: float) -> list[Asking]:
        match command:
            case Start():
                self._started_at = now
                online = Record(Kind.ONLINE)
                started = self._around.start(self._config.bootstrap, now)
                started += [*self._edge.start(now), *self._streams.start(now), *self._rooms.start(now)]
                started += [*self._places.start(now), *self._network.start(now)]
                started += self._parts.whereabouts.start(now)
                return [online, *started, Reply(request, Done())]
            case Stop():
                hangups = [HangUp(peer, Reason.SHUTDOWN) for peer in self._links.up]
                self._around.stop(now)
                self._account.stop()
                stopped: list[Asking] = [*self._edge.stop(now), *self._streams.stop(now)]
                stopped += [*self._rooms.stop(now), *self._places.stop(now)]
                return [*stopped, *hangups, Record(Kind.OFFLINE), Reply(request, Done())]
            case Connect(contact) if self._edge.is_foreign(contact.peer):
                return [Reply(request, self._edge.declined)]
            case Connect(contact):
                self._links.hasten(contact.peer)
                return [Hold(contact.peer, contact.hints, "asked"), Reply(request, Done())]
            case Disconnect(peer):
                return [Release(peer, "asked"), Reply(request, Done())]
            case Block(peer, blocked):
                return self._block(request, peer, blocked, now)
            case Examine():
                return [Reply(request, node_status(self._parts, self._config, self.roles, self._started_at))]
            case _:
                return self._asked_parts(request, command, now)

    def _asked_parts(
        self,
        request: int,
        command: StreamCommand
        | RoomCommand
        | LanCommand
        | ProxyCommand
        | TrackerlessCommand
        | PlaceCommand
        | NamesCommand
        | ContentCommand
        | FastCommand,
        now: float,
    ) -> list[Asking]:
        match command:
            case AskRelay(peer) if peer in self._links.blocked:
                return [Reply(request, Declined(Reason.BLOCKED, "this device is blocked here"))]
            case Unsubscribe() | Consumed():
                return self._reader_says(request, command, now)
            case _ if isinstance(command, LanCommand):
                return self._around.ask_local(request, command, now)
            case _ if isinstance(command, ProxyCommand):
                return [*self._edge.ask(request, command, now)]
            case _ if isinstance(command, TrackerlessCommand):
                return [*self._account.ask(request, command, now)]
            case _ if isinstance(command, PlaceCommand):
                return [*self._places.ask(request, command, now)]
            case _ if isinstance(command, NamesCommand | ContentCommand | FastCommand):
                return [*self._network.ask(request, command, now)]
            case _ if isinstance(command, RoomCommand):
                return [*self._edge.stir(command, now), *self._rooms.ask(request, command, now)]
            case _:
                return [*self._edge.stir(command, now), *self._streams.ask(request, command, now)]

    def _reader_says(self, request: int, command: Unsubscribe | Consumed, now: float) -> list[Asking]:
        """A subscription of any sort was handled so far, or ends."""
        number = command.subscription
        if self.content.reads(number):
            return [*self._network.reader_says(request, command, now)]
        for part in (self._rooms, self._places):
            if part.reads(number) and isinstance(command, Unsubscribe):
                return [*part.unsubscribe(request, command)]
            if part.reads(number) and isinstance(command, Consumed):
                return [*part.consumed(request, command)]
        return [*self._edge.stir(command, now), *self._streams.ask(request, command, now)]

    def _block(self, request: int, peer: PeerId, blocked: bool, now: float) -> list[Asking]:
        if blocked:
            self._store.cells.put(_BLOCKED, peer, b"1")
        else:
            self._store.cells.delete(_BLOCKED, peer)
        return [*self._links.block(peer, blocked, now), AfterCommit((Reply(request, Done()),))]
