"""The node machine: every protocol of a node, composed. The drivers drive this class, unchanged.

Inputs are routed down to the parts, effects are gathered from them. What a part says to the node
itself, such as `Hold` or `Blame`, is heeded here; what it says to this same node as if to another,
is looped back, so that a node may be its own tracker and storage.
"""

from __future__ import annotations

from random import Random
from typing import assert_never

from linnet.content.budgets import OF_EVENTS
from linnet.content.commands import ContentCommand
from linnet.content.fast.commands import FastCommand
from linnet.content.fast.messages import Convey, Conveyed
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import Contact, PeerId
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
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.stores import Store
from linnet.core.timers import Tick, Timer
from linnet.delivery.commands import Consumed, Declined, Done, Unsubscribe
from linnet.delivery.messages import Data
from linnet.edge.commands import LanCommand
from linnet.edge.proxy_commands import ProxyCommand
from linnet.event.signing import Verifier, verify_unit
from linnet.identity.cards import CardCheck, check_card
from linnet.machine.router import Router
from linnet.names.commands import NamesCommand
from linnet.overlay.kademlia.kademlia import PROTOCOL as KADEMLIA
from linnet.overlay.trackerless.commands import TrackerlessCommand
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
from linnet.peer.messages import PROTOCOLS, Pong
from linnet.peer.neighborhood import Neighborhood
from linnet.peer.outgoing import Asking, Outgoing
from linnet.peer.parts import Parts
from linnet.peer.routes import message_routes, timer_routes
from linnet.peer.status import node_status
from linnet.peer.whereabouts import Located
from linnet.places.commands import PlaceCommand
from linnet.places.messages import Replay, Replayed
from linnet.rooms.commands import AskRelay, RoomCommand
from linnet.streams.commands import StreamCommand
from linnet.trace.records import Kind, Record

_BLOCKED = "blocked"
_BLOCKED_HERE = "this device is blocked here"
_OURSELVES = "this is the device of this node itself; name another's, as its linnet up prints"

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
        self._clocks = parts.links.clocks
        self._rooms = parts.rooms
        self._places = parts.places
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
        self._out = parts.out
        self._router = Router(self._out, (*parts.routed, around))
        self._outgoing = Outgoing(self._ours, self._hello, self._links, self._edge, self._out)
        self._by_message = message_routes(parts) | {
            Data: self._on_data,
        }
        self._by_owner = timer_routes(parts)

    @property
    def hello(self) -> Hello:
        """What to say first on each link."""
        return self._hello

    def _spoken(self) -> dict[str, int]:
        """Protocols of this node: those that it does."""
        absent = [KADEMLIA] if self._parts.kademlia is None else []
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
        """Apply one input; the caller performs the effects, in order. An input that fails has no effect."""
        try:
            return self._handle(event, now)
        except BaseException:
            self._out.clear()
            raise

    def _handle(self, event: Input, now: float) -> list[Effect]:
        kind = type(event)
        if kind is Received:
            if type(event.message) is Data and event.peer != self._ours:  # type: ignore[union-attr]
                # By far the most frequent input, and nearly all that it brings about is for the driver.
                data: list[Asking] = self._on_data(event.peer, event.message, now)  # type: ignore[union-attr]
                if self._outgoing.is_plain(data):
                    return data  # type: ignore[return-value] # just seen
                return self._outgoing.heed(data, now)
            self._receive(event.peer, event.message, now)  # type: ignore[union-attr]
        elif kind is TimerFired:
            self._fire(event.timer, now)  # type: ignore[union-attr]
        else:
            self._apply(event, now)
        self._router.pass_on_notices(now)  # of parts that were called by hand
        out, outgoing = self._out, self._outgoing
        asked: list[Asking] = out.take()  # type: ignore[assignment] # a list of less
        if self._edge.is_edge:
            self._account.served(asked, now)
        effects = outgoing.heed(asked, now) if asked else []
        damaged = self._streams.repair.look(now)
        if damaged:
            effects += outgoing.heed([*damaged], now)
        while outgoing.looped:
            self._apply(outgoing.looped.popleft(), now)
            self._router.pass_on_notices(now)
            effects += outgoing.heed(out.take(), now)
        return effects

    def _on_data(self, peer: PeerId, data: Data, now: float) -> list[Asking]:
        self._clocks.heard(peer, data.sent_us, now)
        if self._rooms.holds(data.unit.topic):
            return self._out.collect(lambda: self._rooms.handle_data(peer, data, now))
        if self._places.holds(data.unit.topic):
            return [*self._places.on_data(peer, data, now)]
        return self._streams.on_data(peer, data, now)  # type: ignore[return-value] # a list of less

    def _apply(self, event: Input, now: float) -> None:
        extend = self._out.extend
        match event:
            case Received(peer, message):
                self._receive(peer, message, now)
            case TimerFired(timer):
                self._fire(timer, now)
            case LinkUp():
                self._link_up(event, now)
            case LinkDown(peer, reason):
                self._outgoing.link_down(peer)
                self._links.link_down(peer, reason, now)
                below: list[object] = [*self._streams.link_down(event)]
                below += self._places.link_gone(event, now)
                self._router.link(event, now)
                extend(below)
            case DialFailed(peer, reason):
                failed: list[object] = [*self._places.link_gone(event, now)]
                self._router.link(event, now)
                mended = self._out.collect(lambda: self._links.dial_failed(peer, reason, now))
                extend(failed)
                extend(mended)
            case Probed():
                if self._parts.tracker is not None:
                    self._parts.tracker.handle_probe(event, now)
            case Congested(peer):
                extend(self._streams.congested(peer, True, now))
            case Drained(peer):
                extend(self._streams.congested(peer, False, now))
            case NetworkIs() | Heard() | Met() | NotMet():
                self._parts.local.handle(event, now)
            case Asked(request, command):
                self._ask(request, command, now)
            case _:
                assert_never(event)

    def _receive(self, peer: PeerId, message: Message, now: float) -> None:
        kind = type(message)
        if kind not in _MEASURED_ELSEWHERE and not self._charge(peer, message, now):
            note = "more messages than allowed"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.FLOODING, note=note))
            self._out.hang_up(peer, Reason.FLOODING)
        elif (hear := self._by_message.get(kind)) is not None:
            self._out.extend(hear(peer, message, now))
        else:
            self._router.message(peer, message, now)
            if isinstance(message, Pong) and (rtt := self._links.rtt(peer)) is not None:
                self._rooms.note_rtt(peer, rtt)
                self._parts.member.note_rtt(peer, rtt)

    def _charge(self, peer: PeerId, message: Message, now: float) -> bool:
        """Count a message of a peer; whether it is within what a peer may send."""
        if not isinstance(message, Located):
            return self._links.spend(peer, now)
        # Each address costs a signature: a message of many counts as many.
        return all(self._links.spend(peer, now) for _ in message.records or (None,))

    def _link_up(self, event: LinkUp, now: float) -> None:
        extend = self._out.extend
        if event.peer == self._ours:
            self._parts.overlays.handle_own_link(event, now)
            return
        if not self._links.link_up(event, now):
            return
        self._outgoing.link_up(event.peer, event.hello.protocols)
        extend(self._streams.link_up(event, now))
        extend(self._places.link_up(event, now))
        self._router.link(event, now)

    def _fire(self, timer: Timer, now: float) -> None:
        if not isinstance(timer, Tick):
            self._router.timer(timer, now)
        else:
            self._out.extend(self._by_owner[timer.owner](timer, now))

    def _ask(self, request: int, command: Command, now: float) -> None:
        out = self._out
        match command:
            case Start():
                self._start(now)
                out.reply(request, Done())
            case Stop():
                self._stop(now)
                out.reply(request, Done())
            case Connect(contact) if self._edge.is_foreign(contact.peer):
                out.reply(request, self._edge.declined)
            case Connect(contact) if contact.peer in self._links.blocked:
                out.reply(request, Declined(Reason.BLOCKED, _BLOCKED_HERE))
            case Connect(Contact(peer=peer)) | Block(peer, True) if peer == self._ours:
                # It would be answered by nothing: what a node says to itself never comes to a link.
                out.reply(request, Declined(Reason.MALFORMED, _OURSELVES))
            case Connect(contact):
                self._links.hasten(contact.peer)
                out.hold(contact.peer, contact.hints, "asked")
                out.reply(request, Done())
            case Disconnect(peer):
                out.release(peer, "asked")
                out.reply(request, Done())
            case Block(peer, blocked):
                self._block(request, peer, blocked, now)
            case Examine():
                out.reply(request, node_status(self._parts, self._config, self.roles, self._started_at))
            case _ if isinstance(command, NamesCommand | TrackerlessCommand | LanCommand | ProxyCommand):
                self._router.command(request, command, now)
            case _ if isinstance(command, RoomCommand):
                self._ask_rooms(request, command, now)
            case _:
                out.extend(self._ask_part(request, command, now))

    def _start(self, now: float) -> None:
        self._started_at = now
        extend = self._out.extend
        self._out.record(Record(Kind.ONLINE))
        self._parts.overlays.begin(self._config.bootstrap, now)
        self._around.start(now)
        self._edge.start(now)
        self._router.pass_on_notices(now)  # streams are kept for clients before others are joined
        extend(self._streams.start(now))
        self._rooms.start(now)
        extend(self._places.start(now))
        if self._parts.kademlia is not None:
            self._parts.kademlia.start(now)
        self._parts.names.start(now)
        self.content.start(now)
        self._router.pass_on_notices(now)
        self._parts.whereabouts.start(now)

    def _stop(self, now: float) -> None:
        up = self._links.up
        extend = self._out.extend
        self._parts.overlays.stop(now)
        self._account.stop(now)
        self._edge.stop(now)
        extend(self._streams.stop(now))
        self._rooms.stop(now)
        extend(self._places.stop(now))
        for peer in up:
            self._out.hang_up(peer, Reason.SHUTDOWN)
        self._out.record(Record(Kind.OFFLINE))

    def _ask_rooms(self, request: int, command: RoomCommand, now: float) -> None:
        if isinstance(command, AskRelay) and command.peer in self._links.blocked:
            self._out.reply(request, Declined(Reason.BLOCKED, _BLOCKED_HERE))
            return
        self._wake_for(command, now)
        self._router.command(request, command, now)

    def _ask_part(
        self,
        request: int,
        command: StreamCommand | PlaceCommand | ContentCommand | FastCommand,
        now: float,
    ) -> list[Asking]:
        match command:
            case Unsubscribe() | Consumed():
                return self._reader_says(request, command, now)
            case _ if isinstance(command, PlaceCommand):
                return [*self._places.ask(request, command, now)]
            case _ if isinstance(command, ContentCommand | FastCommand):
                return [*self.content.ask(request, command, now)]
            case _:
                self._wake_for(command, now)
                return [*self._streams.ask(request, command, now)]

    def _reader_says(self, request: int, command: Unsubscribe | Consumed, now: float) -> list[Asking]:
        """A subscription of any sort was handled so far, or ends."""
        number = command.subscription
        if self.content.reads(number):
            return [*self.content.reader_says(request, command, now)]
        if self._rooms.reads(number) and isinstance(command, Unsubscribe):
            self._rooms.handle_unsubscribe(request, command, now)
            return []
        if self._rooms.reads(number) and isinstance(command, Consumed):
            self._rooms.handle_consumed(request, command, now)
            return []
        if self._places.reads(number) and isinstance(command, Unsubscribe):
            return [*self._places.unsubscribe(request, command)]
        if self._places.reads(number) and isinstance(command, Consumed):
            return [*self._places.consumed(request, command)]
        return [*self._streams.ask(request, command, now)]

    def _wake_for(self, command: StreamCommand | RoomCommand, now: float) -> None:
        """A node that sleeps to spare its battery wakes up for what it is to send."""
        self._edge.wake_for(command, now)
        self._router.pass_on_notices(now)

    def _block(self, request: int, peer: PeerId, blocked: bool, now: float) -> None:
        if blocked:
            self._store.cells.put(_BLOCKED, peer, b"1")
        else:
            self._store.cells.delete(_BLOCKED, peer)
        self._links.block(peer, blocked, now)
        self._out.committed.reply(request, Done())
