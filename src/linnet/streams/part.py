"""The part of a node that runs its streams: handles commands, overlay notices and messages from peers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import msgspec

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import Congested, Drained, LinkDown, LinkUp
from linnet.core.limits import BODY_BYTES
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.delivery.catch_up import EndsDue, HistoryDue
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.context import Context
from linnet.delivery.flood import SpreadDue
from linnet.delivery.gap_repair import GapDue, PaceDue
from linnet.delivery.items import missed_by_damage
from linnet.delivery.messages import (
    AskKept,
    AskNumber,
    Contradiction,
    Data,
    Fork,
    Heads,
    History,
    HistoryPage,
    Kept,
    Receipt,
    Resend,
    Resent,
    Revoked,
    Shown,
    Watch,
)
from linnet.edge.edge_client import EdgeClient
from linnet.edge.notices import Keep, LetGo, Reached, Trim
from linnet.event.signing import recall_unit
from linnet.machine.commands import Declined, Done, carry_out
from linnet.machine.outbox import Notice, Outbox
from linnet.machine.part import Part, on_command, on_input, on_message, on_notice, on_timer
from linnet.overlay.notices import JoinRefused, MembersKnown, NeighborDown, NeighborUp, StorageKnown
from linnet.overlay.part import Overlays
from linnet.overlay.tracker_choice import TrackerChoice
from linnet.streams.announcements import AnchorDue, AnswersDue, HeadsDue, UnheardDue
from linnet.streams.application import Application
from linnet.streams.commands import (
    AllowReader,
    AskToRead,
    CheckStorage,
    Declare,
    DisallowReader,
    ListReaders,
    Publish,
    Revoke,
    StreamStatus,
    Subscribe,
    SwitchOverlay,
)
from linnet.streams.config import StorageRule, StreamsConfig
from linnet.streams.inspection import InspectionDue
from linnet.streams.lazy_peers import LookDue, NewsDue
from linnet.streams.membership import LingerDue, Memberships, Serving, meet
from linnet.streams.messages import Follow, PolicyIs
from linnet.streams.publisher import ConfirmDue, StorageLookDue
from linnet.streams.receipts import AcknowledgeDue, EvictDue, ReceiptDue, RoomDue
from linnet.streams.repair import LogDamaged, Repair, RepairDue
from linnet.streams.sealed.reader import KeySearchDue
from linnet.streams.sealed.vault import PruneDue, Pruning, Vault
from linnet.streams.storage_checks import CheckDue, CheckOver
from linnet.streams.stream import Stream
from linnet.streams.subscribe import UNSUBSCRIBED
from linnet.trace.records import Kind, Record

KEEPING = "keeping"
"""The protocol of the signed statements of storage nodes."""
_UNSENT = "edge.unsent"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, int]).decode


T = TypeVar("T", bound=TopicTimer)
C = TypeVar("C", AskToRead, AllowReader, DisallowReader, ListReaders)


def _due(kind: type[T], act: Callable[[Stream, T, float], None]) -> Callable[[Streams, T, float], None]:
    """Return a timer handler that calls `act` with the timer's stream, if that is still open."""

    @on_timer(kind)
    def handle(streams: Streams, timer: T, now: float) -> None:
        stream = streams.own_topics.get(timer.topic)
        if stream is not None:
            act(stream, timer, now)

    return handle


class Streams(Part):
    """Runs all streams that this node publishes to, subscribes to or keeps."""

    def __init__(
        self,
        context: Context,
        out: Outbox,
        overlays: Overlays,
        registry: TrackerChoice,
        config: StreamsConfig,
    ) -> None:
        self._context = context
        self._out = out
        self._memberships = Memberships(context, out, overlays, registry, config)
        self._application = Application(context, out)
        self.own_topics: dict[TopicId, Stream] = self._memberships.by_topic
        self.own_subscriptions: dict[int, Stream] = {}
        self._waiting = Waiting(context.config.publish_queue, out)
        self._pruning = Pruning(context, self._opened_vault, out)
        self._unsent: Unsent | None = None
        self.repair = Repair(context, self._memberships, out)
        """Asks other nodes for the damaged units of our log."""

    @property
    def serving(self) -> Serving:
        """The streams as a proxy and its clients see them."""
        return Serving(self._context, self._memberships)

    def start(self, now: float) -> None:
        """Join the streams that this node keeps."""
        self._pruning.prune(now)
        for name in self._memberships.kept:
            self._open(name, now)
        if self._unsent is not None:
            for name, first in self._unsent.streams():
                stream = self._open(name, now)
                self._unsent.recall(stream, first)
                self._memberships.linger(stream, now)

    def take_part_through(self, client: EdgeClient) -> None:
        """Take part in streams only through proxies."""
        self._memberships.client = client
        self._unsent = Unsent(self._context, self._out)

    def stop(self, now: float) -> None:
        """Leave every stream, and decline the publishes that still wait."""
        self._waiting.close()
        for stream in self._memberships:
            self._act_at_once(partial(self._memberships.leave, stream, now), now)

    # Commands.

    @on_command(Publish)
    def handle_publish(self, request: int, command: Publish, now: float) -> None:
        """Publish in a stream; the command waits while the stream's links are slow."""
        largest = max(map(len, command.bodies), default=0)
        if largest > BODY_BYTES:
            detail = f"a body of {largest} bytes, at most {BODY_BYTES} are allowed"
            self._out.reply(request, Declined(Reason.TOO_LARGE, detail))
            return
        stream = self._open(command.stream, now)
        if stream.flood.stalled or stream.topic in self._waiting:  # Order is kept.
            self._waiting.add(stream.topic, request, command)
            return
        why = self._memberships.why_alone(stream)
        self._say(request, stream, lambda: self._application.publish(stream, request, command, now, why))
        self._memberships.linger(stream, now)

    @on_command(Declare)
    def handle_declare(self, request: int, command: Declare, now: float) -> None:
        """Set the policy of one of our streams, and join the stream as the policy says."""
        stream = self._open(command.stream, now)
        self._say(request, stream, lambda: self._application.declare(stream, request, command, now))
        self._pruning.prune_later()
        self._join(stream, now)
        self._memberships.linger(stream, now)

    def _say(self, request: int, stream: Stream, act: Callable[[], None]) -> None:
        """Append to our chain in a stream; decline what is forbidden, but leave the stream open."""
        first, before = stream.publisher.next, self._out.mark()
        try:
            act()
            if self._unsent is not None:
                self._unsent.note_published(stream, first)
        except RemoteError as error:
            self._out.forget_since(before)
            self._out.reply(request, Declined(error.reason, error.detail))

    @on_command(Subscribe)
    def handle_subscribe(self, request: int, command: Subscribe, now: float) -> None:
        """Begin a subscription."""
        if command.subscription in self.own_subscriptions:
            detail = f"there is a subscription {command.subscription} already"
            self._out.reply(request, Declined(Reason.IN_USE, detail))
            return
        stream = self._open(command.stream, now)
        self._application.subscribe(stream, request, command, now)
        stream.opening.look_for_keys(now)
        if command.subscription in stream.readers:
            self.own_subscriptions[command.subscription] = stream
        else:
            self._memberships.linger(stream, now)

    @on_command(Unsubscribe)
    def handle_unsubscribe(self, request: int, command: Unsubscribe, now: float) -> None:
        """End a subscription."""
        subscription = command.subscription
        stream = self.own_subscriptions.pop(subscription, None)
        if stream is None:
            self._out.reply(request, Declined(Reason.UNKNOWN, f"no subscription {subscription}"))
            return
        stream.readers.remove(subscription)
        if not stream.readers:
            self._out.record(Record(Kind.CONTROL, stream.topic, note=UNSUBSCRIBED))
            if not stream.stores:
                self._memberships.linger(stream, now)
        self._out.committed.reply(request, Done())

    @on_command(Consumed)
    def handle_consumed(self, request: int, command: Consumed, now: float) -> None:
        """Hand over waiting items: the application has consumed some items of a subscription."""
        stream = self.own_subscriptions.get(command.subscription)
        if stream is None:
            self._out.reply(request, Declined(Reason.UNKNOWN, f"no subscription {command.subscription}"))
            return
        stream.readers.handle_consumed(command.subscription, command.items)
        if stream.readers.confirming:
            stream.acknowledgements.acknowledge_soon()
        self._out.committed.reply(request, Done())

    @on_command(Revoke)
    def handle_revoke(self, request: int, command: Revoke, now: float) -> None:
        """Spread a person's statement that a device is no longer theirs."""
        self._context.cards.revoke(command.revocation)
        for stream in self._memberships:
            stream.sealed.note_revocation()
            stream.spread_revocation(command.revocation, None)
        self._out.committed.reply(request, Done())

    @on_command(CheckStorage)
    def handle_check_storage(self, request: int, command: CheckStorage, now: float) -> None:
        """Ask the storage nodes of a stream to show what they have confirmed."""
        stream = self._open(command.stream, now)
        stream.checks.check(request, now)
        self._memberships.linger(stream, now)

    @on_command(SwitchOverlay)
    def handle_switch_overlay(self, request: int, command: SwitchOverlay, now: float) -> None:
        """Switch a stream to another overlay."""
        before = self._out.mark()
        chosen = self._memberships.switch(command.stream, command.overlay, now)
        self._act_on_notices(before, now)
        self._out.committed.reply(request, chosen)

    @on_command(AskToRead)
    def handle_ask_to_read(self, request: int, command: AskToRead, now: float) -> None:
        """Make a request to read a sealed stream."""
        self._ask_sealed(request, command, self._application.ask_to_read, now)

    @on_command(AllowReader)
    def handle_allow_reader(self, request: int, command: AllowReader, now: float) -> None:
        """Let a device read a stream that this device seals."""
        self._ask_sealed(request, command, self._application.allow_reader, now)

    @on_command(DisallowReader)
    def handle_disallow_reader(self, request: int, command: DisallowReader, now: float) -> None:
        """Remove readers from a stream that this device seals."""
        self._ask_sealed(request, command, self._application.disallow_reader, now)

    @on_command(ListReaders)
    def handle_list_readers(self, request: int, command: ListReaders, now: float) -> None:
        """List the readers of a stream that this device seals."""
        self._ask_sealed(request, command, self._application.list_readers, now)

    def _ask_sealed(
        self, request: int, command: C, act: Callable[[Stream, int, C, float], None], now: float
    ) -> None:
        """Act on the readers of a stream; the stream stays open even if the command is refused."""
        stream = self._open(command.stream, now)
        before = self._out.mark()
        try:
            act(stream, request, command, now)
        except Refused as error:
            self._out.forget_since(before)
            self._out.reply(request, Declined(error.reason, error.detail))
        self._pruning.prune_later()
        self._memberships.linger(stream, now)

    # Messages.

    @on_message(Data)
    def handle_data(self, peer: PeerId, data: Data, now: float) -> None:
        """Pass a unit to its stream."""
        topic = data.unit.topic
        stream = self._memberships.get(topic)
        if stream is None:
            self._reject_stranger(topic, peer)
        else:
            stream.handle_data(peer, data, now)

    @on_message(Heads)
    def handle_heads(self, peer: PeerId, message: Heads, now: float) -> None:
        """Learn how far a peer knows the chains."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.handle_heads(peer, message, now)

    @on_message(Follow)
    def handle_follow(self, peer: PeerId, message: Follow, now: float) -> None:
        """Note what a member that is not a neighbour wants of us."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.push.handle_follow(peer, message, stream.keeps, now)

    @on_message(Fork)
    def handle_fork(self, peer: PeerId, message: Fork, now: float) -> None:
        """Take in a proof against a device that speaks in a stream."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.forks.handle_fork(peer, message)

    @on_message(Resend)
    def handle_resend(self, peer: PeerId, message: Resend, now: float) -> None:
        """Answer a peer's request for a range of a chain."""
        if (stream := self._find(message.topic, peer)) is not None:
            chain = stream.ingest.chains.get(message.author + message.device)
            resent = stream.archive.read_range(message, now, chain)
            self._answer(peer, stream.push.read_recent(message, resent, now))

    @on_message(Resent)
    def handle_resent(self, peer: PeerId, message: Resent, now: float) -> None:
        """Take in the units that a peer holds of a range."""
        if (stream := self._find(message.topic, peer)) is not None:
            self.repair.handle_resent(stream, message, now)
            stream.handle_resent(peer, message, now)

    @on_message(History)
    def handle_history(self, peer: PeerId, message: History, now: float) -> None:
        """Answer a request for history, from a peer or from our own subscription."""
        if (stream := self._find(message.topic, peer)) is None:
            return
        # We may read our own log in any case.
        is_ours = peer == self._context.peer
        page = stream.archive.read_history(message, stream.stores or is_ours)
        if is_ours:
            damaged = missed_by_damage(self._context.store.log.left_out)
            stream.readers.tell_damaged(message.request, damaged)
        self._answer(peer, page)

    @on_message(HistoryPage)
    def handle_page(self, peer: PeerId, message: HistoryPage, now: float) -> None:
        """Hand a page of history to its subscription."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.handle_page(peer, message, now)

    @on_message(Watch)
    def handle_watch(self, peer: PeerId, message: Watch, now: float) -> None:
        """Start or stop sending receipts to a publisher."""
        if (stream := self._find(message.topic, peer)) is None:
            return
        if not message.on:
            stream.keeper.remove_watcher(peer)
        elif stream.stores:
            stream.keeper.add_watcher(peer, stream.publisher.ledger, stream.ingest.chains, now)
        else:
            self._out.record(
                Record(Kind.REJECTED, stream.topic, peer=peer, reason=Reason.NOT_HELD, note="watch")
            )

    @on_message(Receipt)
    def handle_receipt(self, peer: PeerId, message: Receipt, now: float) -> None:
        """Learn from a receipt how far a receiver has the chains."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.handle_receipt(peer, message, now)

    @on_message(Kept)
    def handle_kept(self, peer: PeerId, message: Kept, now: float) -> None:
        """Take in the signed statement of a storage node."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.handle_kept(peer, message, now)

    @on_message(AskKept)
    def handle_ask_kept(self, peer: PeerId, message: AskKept, now: float) -> None:
        """State what we keep of a stream."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.keeper.state_all(peer, message, stream.stores, now)

    @on_message(AskNumber)
    def handle_ask_number(self, peer: PeerId, message: AskNumber, now: float) -> None:
        """Show an event that we keep, or sign why we do not."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.keeper.show(peer, message, now)

    @on_message(Shown)
    def handle_shown(self, peer: PeerId, message: Shown, now: float) -> None:
        """Judge what a storage node shows."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.handle_shown(peer, message, now)

    @on_message(Contradiction)
    def handle_contradiction(self, peer: PeerId, message: Contradiction, now: float) -> None:
        """Take in a proof against a storage node."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.handle_contradiction(peer, message, now)

    @on_message(Revoked)
    def handle_revoked(self, peer: PeerId, message: Revoked, now: float) -> None:
        """Take in a person's revocation of a device."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.handle_revoked(peer, message.revocation)

    @on_message(PolicyIs)
    def handle_policy(self, peer: PeerId, message: PolicyIs, now: float) -> None:
        """Take the owner's policy from a neighbour, and join the stream as the policy says."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.handle_policy(peer, message)
            self._join(stream, now)

    def _find(self, topic: TopicId, peer: PeerId) -> Stream | None:
        """Return the stream of a topic; if it is not open here, return None and blame the peer."""
        stream = self._memberships.get(topic)
        if stream is None:
            self._reject_stranger(topic, peer)
        return stream

    def _reject_stranger(self, topic: TopicId, peer: PeerId) -> None:
        # Some of these are messages that crossed; many come from a peer that ignores that we left.
        self._out.record(Record(Kind.REJECTED, topic, peer=peer, reason=Reason.NOT_JOINED))
        self._out.blame(peer, Reason.NOT_JOINED)

    def _answer(self, peer: PeerId, message: Resent | HistoryPage) -> None:
        """Send what was read from the log once it is durable: a chain shown and then lost would fork."""
        if peer == self._context.peer:
            self._out.send(peer, message)
        else:
            self._out.committed.send(peer, message)

    # Links.

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Tell all streams that a link is up; on the edge, they wait until the proxy says what it serves."""
        self._context.links[event.peer] = None
        if KEEPING in event.hello.protocols:
            self._context.keeping[event.peer] = None
        if self._memberships.client is None:
            for stream in self._memberships:
                stream.handle_link_up(event.peer, now)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Tell all streams that a link is down."""
        self._context.links.pop(event.peer, None)
        self._context.keeping.pop(event.peer, None)
        for stream in self._memberships:
            stream.handle_link_down(event.peer, now)

    @on_input(Congested)
    def handle_congestion(self, event: Congested, now: float) -> None:
        """Stop publishing to a peer whose queue is filling."""
        self._set_congestion(event.peer, True, now)

    @on_input(Drained)
    def handle_drain(self, event: Drained, now: float) -> None:
        """Publish what waited for the queue of a peer to drain."""
        self._set_congestion(event.peer, False, now)

    def _set_congestion(self, peer: PeerId, congested: bool, now: float) -> None:
        for stream in self._memberships:
            neighbor = stream.flood.neighbors.get(peer)
            if neighbor is not None:
                neighbor.congested = congested
            self._publish_waiting(stream, now)

    @on_notice(LogDamaged)
    def repair_log(self, notice: LogDamaged, now: float) -> None:
        """Ask for the units that were found damaged in the log while the last input was handled."""
        self.repair.note_damage(notice.damages)

    # Notices from overlays and the edge.

    @on_notice(NeighborUp)
    def handle_neighbor_up(self, notice: NeighborUp, now: float) -> None:
        """Greet a new neighbour in a stream."""
        if (stream := self._memberships.get(notice.topic)) is not None:
            stream.handle_neighbor_up(notice.peer, now)
            self._publish_waiting(stream, now)

    @on_notice(NeighborDown)
    def handle_neighbor_down(self, notice: NeighborDown, now: float) -> None:
        """Forget a neighbour in a stream."""
        if (stream := self._memberships.get(notice.topic)) is not None:
            stream.handle_neighbor_down(notice.peer, now)
            self._publish_waiting(stream, now)

    @on_notice(StorageKnown)
    def handle_storage_known(self, notice: StorageKnown, now: float) -> None:
        """Replace the known storage nodes of a stream."""
        if (stream := self._memberships.get(notice.topic)) is not None:
            stream.set_storage(notice.nodes, now)
            self._note_unreachable(stream)

    @on_notice(MembersKnown)
    def handle_members(self, notice: MembersKnown, now: float) -> None:
        """Draw lazy peers of a stream among its members."""
        if (stream := self._memberships.get(notice.topic)) is not None:
            stream.push.note_members(notice.contacts, stream.keeps, now)

    @on_notice(JoinRefused)
    def handle_join_refused(self, notice: JoinRefused, now: float) -> None:
        """Record that no tracker, or no proxy, accepts a stream."""
        self._out.record(Record(Kind.REJECTED, notice.topic, reason=notice.reason, note="join refused"))

    @on_notice(Reached)
    def meet_neighbor(self, notice: Reached, now: float) -> None:
        """Meet the proxy that serves a stream, or a client that we serve in it."""
        if (stream := self._memberships.get(notice.topic)) is not None:
            meet(stream, notice.peer, notice.same, now)
            self._publish_waiting(stream, now)

    @on_notice(Keep)
    def keep_stream(self, notice: Keep, now: float) -> None:
        """Keep a stream for clients."""
        rule = StorageRule(notice.stream, notice.retention, notice.quota)
        self._act_at_once(lambda: self._memberships.keep(rule, now), now)

    @on_notice(LetGo)
    def let_stream_go(self, notice: LetGo, now: float) -> None:
        """Stop keeping a stream for clients."""
        self._act_at_once(lambda: self._memberships.let_go(notice.stream, now), now)

    @on_notice(Trim)
    def trim_stream(self, notice: Trim, now: float) -> None:
        """Evict the oldest events of a stream of which clients store too much."""
        if (stream := self._memberships.get(notice.topic)) is not None:
            stream.keeper.trim(notice.most, now)

    def settle(self, nearby: Iterable[TopicId], withheld: Iterable[TopicId], now: float) -> None:
        """Set, on the edge, the streams that also use local networks, and those hidden from proxies."""
        self._act_at_once(lambda: self._memberships.settle(nearby, withheld, now), now)

    def _note_unreachable(self, stream: Stream) -> None:
        """Record once, until there are neighbours, that nobody can dial us and that we can dial nobody."""
        was_told, stream.is_unreachable = (
            stream.is_unreachable,
            self._memberships.why_alone(stream) is Reason.UNREACHABLE_INBOUND,
        )
        if stream.is_unreachable and not was_told:
            note = "no neighbour: this node cannot be dialled, and the tracker has nobody who can be"
            self._out.record(Record(Kind.CONTROL, stream.topic, reason=Reason.UNREACHABLE_INBOUND, note=note))

    # Timers. A timer of a stream that was left does nothing.

    repair_gap = _due(GapDue, lambda stream, timer, now: stream.repair_gap(timer.chain, now))
    repair_waiting_gaps = _due(PaceDue, lambda stream, _, now: stream.repair_waiting_gaps(now))
    ask_for_history = _due(
        HistoryDue, lambda stream, timer, _: stream.readers.end_waiting(timer.subscription)
    )
    end_comparing = _due(EndsDue, lambda stream, timer, _: stream.readers.end_comparing(timer.subscription))
    answer_publisher = _due(ConfirmDue, lambda stream, timer, _: stream.publisher.end_waiting(timer.request))
    push_missing = _due(StorageLookDue, lambda stream, _, now: stream.publisher.push_missing(now))
    check_storage = _due(CheckDue, lambda stream, _, now: stream.checks.check_by_itself(now))
    end_check = _due(CheckOver, lambda stream, _, now: stream.checks.end(now))
    send_receipts = _due(ReceiptDue, lambda stream, _, now: stream.keeper.send_receipts(now))
    take_again = _due(RoomDue, lambda stream, _, now: stream.take_again())
    evict = _due(EvictDue, lambda stream, _, now: stream.evict(now))
    acknowledge = _due(AcknowledgeDue, lambda stream, _, now: stream.acknowledge(now))
    tell_news = _due(HeadsDue, lambda stream, _, now: stream.announcements.tell_news(stream.keeps, now))
    repeat_heads = _due(
        UnheardDue, lambda stream, _, now: stream.announcements.repeat_heads(stream.keeps, now)
    )
    look_around = _due(LookDue, lambda stream, _, now: stream.push.look_around(stream.keeps, now))
    tell_lazy_peers = _due(NewsDue, lambda stream, _, now: stream.push.tell_news(stream.keeps, now))
    end_inspection = _due(InspectionDue, lambda stream, _, now: stream.inspection.end(now))
    release_held = _due(AnswersDue, lambda stream, _, now: stream.release_held(now))
    change_anchor = _due(AnchorDue, lambda stream, _, now: stream.change_anchor(now))
    ask_for_key = _due(KeySearchDue, lambda stream, _, now: stream.opening.ask_again(now))
    spread_waiting = _due(
        SpreadDue, lambda stream, timer, now: stream.suppression.spread_waiting(timer.head, now)
    )

    @on_timer(LingerDue)
    def leave_unused(self, timer: LingerDue, now: float) -> None:
        """Leave a stream that nobody uses, unless something in it waits for a proxy."""
        stream = self._memberships.get(timer.topic)
        if stream is None:
            return
        if self._unsent is not None and self._unsent.is_in(stream):
            self._memberships.linger(stream, now)
            return
        busy = stream.topic in self._waiting
        self._act_at_once(lambda: self._memberships.leave_unused(stream, busy, now), now)

    @on_timer(PruneDue)
    def prune_keys(self, timer: PruneDue, now: float) -> None:
        """Delete the expired keys of sealed streams."""
        self._pruning.prune(now)

    @on_timer(RepairDue)
    def ask_for_damaged(self, timer: RepairDue, now: float) -> None:
        """Ask other sources for the damaged units of our log."""
        self.repair.ask_again()

    # Status.

    def company(self) -> list[tuple[TopicId, tuple[PeerId, ...]]]:
        """Return the topic and the neighbours of each joined stream."""
        return [(stream.topic, tuple(stream.flood.neighbors)) for stream in self._memberships]

    def status(self) -> tuple[StreamStatus, ...]:
        """Describe the state of every stream."""
        return self._memberships.status()

    # The rest.

    def _open(self, name: str, now: float) -> Stream:
        """Return the stream of this name, and join it if it was not joined."""
        before = self._out.mark()
        stream = self._memberships.open(name, now)
        self._act_on_notices(before, now)
        if self._memberships.is_alone(stream):
            stream.note_alone()
        return stream

    def _join(self, stream: Stream, now: float) -> None:
        self._act_at_once(lambda: self._memberships.join(stream, now), now)

    def _act_at_once(self, act: Callable[[], None], now: float) -> None:
        """Join or leave a stream, and act at once on the notices that this causes."""
        before = self._out.mark()
        act()
        self._act_on_notices(before, now)

    def _act_on_notices(self, before: tuple[int, int], now: float) -> None:
        """Act at once on the notices of overlays and proxies since a mark: later steps build on them.

        A publish in a stream that was just joined must already reach the neighbours that joining gave it.
        """
        if not self._out.has_told_since(before):
            return
        for said in self._out.take_said(before):
            if isinstance(said, NeighborUp):
                self.handle_neighbor_up(said, now)
            elif isinstance(said, NeighborDown):
                self.handle_neighbor_down(said, now)
            elif isinstance(said, StorageKnown):
                self.handle_storage_known(said, now)
            elif isinstance(said, JoinRefused):
                self.handle_join_refused(said, now)
            elif isinstance(said, Notice):
                self._out.notify(said)
            else:
                self._out.add(said)

    def _opened_vault(self, topic: TopicId) -> Vault | None:
        stream = self._memberships.get(topic)
        return None if stream is None else stream.sealed.vault

    def _publish_waiting(self, stream: Stream, now: float) -> None:
        """Publish the waiting commands of a stream if its links are no longer slow."""
        if not stream.flood.stalled:
            for request, command in self._waiting.take(stream.topic):
                carry_out(self._out, request, partial(self.handle_publish, request, command, now))


class Waiting:
    """A bounded queue for each stream of publishes that wait for slow links."""

    def __init__(self, most: int, out: Outbox) -> None:
        self._most = most
        self._out = out
        self._waiting: dict[TopicId, list[tuple[int, Publish]]] = {}

    def __contains__(self, topic: TopicId) -> bool:
        return topic in self._waiting

    def add(self, topic: TopicId, request: int, command: Publish) -> None:
        """Queue a publish; decline it if the queue is full."""
        waiting = self._waiting.setdefault(topic, [])
        if len(waiting) >= self._most:
            detail = f"{len(waiting)} publishes wait for slow links already"
            self._out.reply(request, Declined(Reason.CONGESTED, detail))
            return
        waiting.append((request, command))

    def take(self, topic: TopicId) -> list[tuple[int, Publish]]:
        """Take the waiting publishes of a stream, in order."""
        return self._waiting.pop(topic, [])

    def close(self) -> None:
        """Decline all waiting publishes: the node stops."""
        waiting, self._waiting = self._waiting, {}
        declined = Declined(Reason.SHUTDOWN, "the node stops, and links were slow until the end")
        for queued in waiting.values():
            for request, _ in queued:
                self._out.reply(request, declined)


class Unsent:
    """The streams of this node that have events still waiting for a proxy."""

    def __init__(self, context: Context, out: Outbox) -> None:
        self._context = context
        self._out = out
        self._cells = context.store.cells

    def streams(self) -> list[tuple[str, int]]:
        """Return the name of every such stream, and the number of our first waiting event in it."""
        return [_decode(value) for _, value in self._cells.scan(_UNSENT)]

    def note_published(self, stream: Stream, first: int) -> None:
        """Note that our events from this number on must still be sent to a proxy."""
        if stream.publisher.next > first and self._cells.get(_UNSENT, stream.topic) is None:
            self._cells.put(_UNSENT, stream.topic, _encode((stream.name, first)))

    def is_in(self, stream: Stream) -> bool:
        """Return whether events wait in a stream; forget the stream once none do."""
        waits = stream.publisher.is_unconfirmed
        if not waits and self._cells.get(_UNSENT, stream.topic) is not None:
            self._cells.delete(_UNSENT, stream.topic)
        return waits

    def recall(self, stream: Stream, first: int) -> None:
        """Hold back again, after a restart, the events that no proxy has received."""
        author, device = self._context.author, self._context.device
        while first < stream.publisher.next:
            units = stream.archive.page(author, device, first, stream.publisher.next - 1)
            for unit in units:
                stream.publisher.hold_back(recall_unit(unit), self._out)
                first = (unit.seq or 0) + len(unit.tails)
            if not units:
                break  # evicted meanwhile, with a record
