"""All streams of a node: the application's commands, the overlay's notices, the peers' messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import Congested, Drained, LinkDown, LinkUp
from linnet.core.limits import BODY_BYTES
from linnet.core.reasons import Reason
from linnet.delivery.catch_up import HistoryDue
from linnet.delivery.commands import Consumed, Declined, Done, Unsubscribe
from linnet.delivery.context import Context
from linnet.delivery.gap_repair import GapDue
from linnet.delivery.items import missed_by_damage
from linnet.delivery.messages import (
    Data,
    Heads,
    History,
    HistoryPage,
    Receipt,
    Resend,
    Resent,
    Revoked,
    Watch,
)
from linnet.delivery.subscription import has_cursor
from linnet.delivery.suppression import SpreadDue
from linnet.edge.client import EdgeClient
from linnet.edge.notices import Keep, LetGo, Reached, Trim
from linnet.event.signing import message_tail, recall_unit
from linnet.machine.commands import carry_out
from linnet.machine.outbox import Notice, Outbox
from linnet.machine.part import Part, on_command, on_input, on_message, on_notice, on_timer
from linnet.overlay.config import Overlay
from linnet.overlay.notices import JoinRefused, NeighborDown, NeighborUp, StorageKnown
from linnet.overlay.overlays import Overlays
from linnet.overlay.registry import Registry
from linnet.streams.acknowledge import AcknowledgeDue
from linnet.streams.announcements import AnchorDue, AnswersDue, HeadsDue, UnheardDue
from linnet.streams.commands import (
    AllowReader,
    AskToRead,
    Declare,
    DisallowReader,
    ListReaders,
    Publish,
    Revoke,
    StreamStatus,
    Subscribe,
    SwitchOverlay,
)
from linnet.streams.edge_service import Serving, meet
from linnet.streams.membership import LingerDue, Memberships
from linnet.streams.messages import PolicyIs
from linnet.streams.options import StorageRule, StreamOptions
from linnet.streams.publisher import ConfirmDue, StorageLookDue, declare, publish
from linnet.streams.repair import Repair, RepairDue
from linnet.streams.sealed.announcement_search import KeySearchDue
from linnet.streams.sealed.readership import allow_reader, ask_to_read, disallow_reader, readers_of
from linnet.streams.sealed.vault import PruneDue, Pruning, Vault
from linnet.streams.status import status_of
from linnet.streams.storage import EvictDue, ReceiptDue
from linnet.streams.stream import Stream
from linnet.streams.subscribe import UNSUBSCRIBED, subscribe
from linnet.trace.records import Kind, Record

_UNSENT = "edge.unsent"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, int]).decode


class Streams(Part):
    """Every stream that this node publishes to, subscribes to or keeps."""

    def __init__(
        self,
        context: Context,
        out: Outbox,
        overlays: Overlays,
        registry: Registry,
        options: dict[str, StreamOptions],
        rules: Iterable[StorageRule],
        overlay: Overlay = Overlay.TRACKER,
    ) -> None:
        self._context = context
        self._out = out
        self._memberships = Memberships(context, out, overlays, registry, options, rules, overlay)
        self._by_subscription: dict[int, Stream] = {}
        self._waiting = Waiting(context.config.publish_queue, out)
        self._pruning = Pruning(context, self._opened_vault, out)
        self._unsent: Unsent | None = None
        self.repair = Repair(context, self._memberships, out)
        """What of our log is damaged."""
        self.serving = Serving(context, self._memberships)
        """What a proxy and its clients know of streams."""

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
        """Take part in streams through proxies alone."""
        self._memberships.client = client
        self._unsent = Unsent(self._context, self._out)

    def stop(self, now: float) -> None:
        """Leave every stream, and answer whoever waits to publish."""
        self._waiting.close()
        for stream in self._memberships:
            self._act_at_once(partial(self._memberships.leave, stream, now), now)

    # Commands.

    @on_command(Publish)
    def handle_publish(self, request: int, command: Publish, now: float) -> None:
        """Publish in a stream; while its links are slow, what is to be published waits."""
        largest = max(map(len, command.bodies), default=0)
        if largest > BODY_BYTES:
            detail = f"a body of {largest} bytes, at most {BODY_BYTES} are allowed"
            self._out.reply(request, Declined(Reason.TOO_LARGE, detail))
            return
        stream = self._open(command.stream, now)
        if stream.flood.stalled or stream.topic in self._waiting:  # Order is kept.
            self._waiting.add(stream.topic, request, command)
            return
        tails = [message_tail(body, int(now * 1000)) for body in command.bodies]
        why = self._memberships.why_alone(stream)
        context, out = self._context, self._out
        self._say(
            request, stream, lambda: publish(stream, context, out, request, tails, command.confirm, now, why)
        )
        self._memberships.linger(stream, now)

    @on_command(Declare)
    def handle_declare(self, request: int, command: Declare, now: float) -> None:
        """Set the policy of a stream of ours, and join it as that says."""
        stream = self._open(command.stream, now)
        policy, context, out = command.policy, self._context, self._out
        self._say(
            request, stream, lambda: declare(stream, context, out, request, policy, now, command.sealed)
        )
        self._pruning.prune_later()
        self._join(stream, now)
        self._memberships.linger(stream, now)

    def _say(self, request: int, stream: Stream, act: Callable[[], None]) -> None:
        """Add to our chain in a stream; what is forbidden is declined, though the stream stays open."""
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
        if command.subscription in self._by_subscription:
            detail = f"there is a subscription {command.subscription} already"
            self._out.reply(request, Declined(Reason.IN_USE, detail))
            return
        stream = self._open(command.stream, now)
        subscribe(stream, self._context, self._out, request, command, now)
        stream.opening.look_for_keys(now)
        if command.subscription in stream.readers:
            self._by_subscription[command.subscription] = stream
        else:
            self._memberships.linger(stream, now)

    def reads(self, subscription: int) -> bool:
        """Whether a subscription is one of a stream."""
        return subscription in self._by_subscription

    @on_command(Unsubscribe)
    def handle_unsubscribe(self, request: int, command: Unsubscribe, now: float) -> None:
        """End a subscription."""
        subscription = command.subscription
        stream = self._by_subscription.pop(subscription, None)
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
        """The application is done with some items of a subscription: hand over what waits."""
        stream = self._by_subscription.get(command.subscription)
        if stream is None:
            self._out.reply(request, Declined(Reason.UNKNOWN, f"no subscription {command.subscription}"))
            return
        stream.readers.handle_consumed(command.subscription, command.items)
        if stream.readers.confirming:
            stream.acknowledgements.acknowledge_soon()
        self._out.committed.reply(request, Done())

    @on_command(Revoke)
    def handle_revoke(self, request: int, command: Revoke, now: float) -> None:
        """Spread a person's word that a device is theirs no longer."""
        self._context.cards.revoke(command.revocation)
        for stream in self._memberships:
            stream.sealed.note_revocation()
            stream.announcements.send_revocation(command.revocation, None)
        self._out.committed.reply(request, Done())

    @on_command(SwitchOverlay)
    def handle_switch_overlay(self, request: int, command: SwitchOverlay, now: float) -> None:
        """Give a stream another overlay."""
        before = self._out.mark()
        chosen = self._memberships.switch(command.stream, command.overlay, now)
        self._act_on_notices(before, now)
        self._out.committed.reply(request, chosen)

    @on_command(AskToRead)
    def handle_ask_to_read(self, request: int, command: AskToRead, now: float) -> None:
        """Make a request to read a sealed stream."""
        self._ask_sealed(
            request, command.stream, lambda stream: ask_to_read(stream, self._out, request, now), now
        )

    @on_command(AllowReader)
    def handle_allow_reader(self, request: int, command: AllowReader, now: float) -> None:
        """Let a device read a stream that this device seals."""
        context, out = self._context, self._out
        self._ask_sealed(
            request,
            command.stream,
            lambda stream: allow_reader(stream, context, out, request, command, now),
            now,
        )

    @on_command(DisallowReader)
    def handle_disallow_reader(self, request: int, command: DisallowReader, now: float) -> None:
        """Put readers out of a stream that this device seals."""
        context, out = self._context, self._out
        self._ask_sealed(
            request,
            command.stream,
            lambda stream: disallow_reader(stream, context, out, request, command, now),
            now,
        )

    @on_command(ListReaders)
    def handle_list_readers(self, request: int, command: ListReaders, now: float) -> None:
        """Say who may read a stream that this device seals."""
        self._ask_sealed(
            request, command.stream, lambda stream: self._out.reply(request, readers_of(stream, ())), now
        )

    def _ask_sealed(self, request: int, name: str, act: Callable[[Stream], None], now: float) -> None:
        """Do something about the readers of a stream, which stays open also if that is refused."""
        stream = self._open(name, now)
        before = self._out.mark()
        try:
            act(stream)
        except Refused as error:
            self._out.forget_since(before)
            self._out.reply(request, Declined(error.reason, error.detail))
        self._pruning.prune_later()
        self._memberships.linger(stream, now)

    # Messages.

    def holds(self, topic: TopicId) -> bool:
        """Whether a topic is that of a stream that is open here."""
        return self._memberships.get(topic) is not None

    @on_message(Data)
    def handle_data(self, peer: PeerId, data: Data, now: float) -> None:
        """A unit on its way through an overlay."""
        topic = data.unit.topic
        stream = self._memberships.get(topic)
        if stream is None:
            self._reject_stranger(topic, peer)
        else:
            stream.handle_data(peer, data, now)

    @on_message(Heads)
    def handle_heads(self, peer: PeerId, message: Heads, now: float) -> None:
        """A peer says how far it knows chains."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.handle_heads(peer, message, now)

    @on_message(Resend)
    def handle_resend(self, peer: PeerId, message: Resend, now: float) -> None:
        """A peer asks for a range of a chain."""
        if (stream := self._find(message.topic, peer)) is not None:
            chain = stream.ingest.chains.get(message.author + message.device)
            self._answer(peer, stream.archive.read_range(message, now, chain))

    @on_message(Resent)
    def handle_resent(self, peer: PeerId, message: Resent, now: float) -> None:
        """A peer sends what it holds of a range."""
        if (stream := self._find(message.topic, peer)) is not None:
            self.repair.handle_resent(stream, message, now)
            stream.handle_resent(peer, message, now)

    @on_message(History)
    def handle_history(self, peer: PeerId, message: History, now: float) -> None:
        """A peer, or a subscription of ours, asks for history."""
        if (stream := self._find(message.topic, peer)) is None:
            return
        # We may read our own log in any case.
        is_ours = peer == self._context.peer
        page = stream.archive.read_history(message, stream.stores or is_ours)
        if is_ours:
            damaged = missed_by_damage(self._context.store.log.left_out)
            stream.readers.tell_one(message.request, damaged)
        self._answer(peer, page)

    @on_message(HistoryPage)
    def handle_page(self, peer: PeerId, message: HistoryPage, now: float) -> None:
        """A page of history comes for a subscription."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.handle_page(peer, message, now)

    @on_message(Watch)
    def handle_watch(self, peer: PeerId, message: Watch, now: float) -> None:
        """A publisher wants receipts, or none any more."""
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
        """A receiver says how far it has chains."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.handle_receipt(peer, message, now)

    @on_message(Revoked)
    def handle_revoked(self, peer: PeerId, message: Revoked, now: float) -> None:
        """A device was revoked by its person."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.handle_revoked(peer, message.revocation)

    @on_message(PolicyIs)
    def handle_policy(self, peer: PeerId, message: PolicyIs, now: float) -> None:
        """A neighbour shows the owner's policy: the stream is joined as that says."""
        if (stream := self._find(message.topic, peer)) is not None:
            stream.handle_policy(peer, message)
            self._join(stream, now)

    def _find(self, topic: TopicId, peer: PeerId) -> Stream | None:
        """The stream that a peer speaks of; if it is not open here, the peer is blamed."""
        stream = self._memberships.get(topic)
        if stream is None:
            self._reject_stranger(topic, peer)
        return stream

    def _reject_stranger(self, topic: TopicId, peer: PeerId) -> None:
        # Some of this comes of crossing messages; much of it is a peer that does not care.
        self._out.record(Record(Kind.REJECTED, topic, peer=peer, reason=Reason.NOT_JOINED))
        self._out.blame(peer, Reason.NOT_JOINED)

    def _answer(self, peer: PeerId, message: Resent | HistoryPage) -> None:
        """Send what was read from the log once it is durable: a chain that was shown and then lost forks."""
        if peer == self._context.peer:
            self._out.send(peer, message)
        else:
            self._out.committed.send(peer, message)

    # Links.

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """A link is open. What a proxy serves us is known only when it says so."""
        self._context.links[event.peer] = None
        if self._memberships.client is None:
            for stream in self._memberships:
                stream.handle_link_up(event.peer, now)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """A link is gone."""
        self._context.links.pop(event.peer, None)
        for stream in self._memberships:
            stream.handle_link_down(event.peer)

    @on_input(Congested)
    def handle_congestion(self, event: Congested, now: float) -> None:
        """The queue towards a peer is filling."""
        self._set_congestion(event.peer, True, now)

    @on_input(Drained)
    def handle_drain(self, event: Drained, now: float) -> None:
        """The queue towards a peer is empty again."""
        self._set_congestion(event.peer, False, now)

    def _set_congestion(self, peer: PeerId, congested: bool, now: float) -> None:
        for stream in self._memberships:
            neighbor = stream.flood.neighbors.get(peer)
            if neighbor is not None:
                neighbor.congested = congested
            self._publish_waiting(stream, now)

    def close_input(self, now: float) -> None:
        """Ask for what was found damaged in the log while the input was handled."""
        self.repair.note_damage()

    # What overlays and the edge tell.

    @on_notice(NeighborUp)
    def handle_neighbor_up(self, notice: NeighborUp, now: float) -> None:
        """A stream has a new neighbour."""
        if (stream := self._memberships.get(notice.topic)) is not None:
            stream.handle_neighbor_up(notice.peer, now)
            self._publish_waiting(stream, now)

    @on_notice(NeighborDown)
    def handle_neighbor_down(self, notice: NeighborDown, now: float) -> None:
        """A stream has lost a neighbour."""
        if (stream := self._memberships.get(notice.topic)) is not None:
            stream.handle_neighbor_down(notice.peer)
            self._publish_waiting(stream, now)

    @on_notice(StorageKnown)
    def handle_storage_known(self, notice: StorageKnown, now: float) -> None:
        """A stream has other storage nodes."""
        if (stream := self._memberships.get(notice.topic)) is not None:
            stream.set_storage(notice.nodes, now)
            self._note_unreachable(stream)

    @on_notice(JoinRefused)
    def handle_join_refused(self, notice: JoinRefused, now: float) -> None:
        """A stream is taken by no tracker, or by no proxy."""
        self._out.record(Record(Kind.REJECTED, notice.topic, reason=notice.reason, note="join refused"))

    @on_notice(Reached)
    def meet_neighbor(self, notice: Reached, now: float) -> None:
        """A proxy serves a stream, or a client is served in it."""
        if (stream := self._memberships.get(notice.topic)) is not None:
            meet(stream, notice.peer, notice.same, now)
            self._publish_waiting(stream, now)

    @on_notice(Keep)
    def keep_stream(self, notice: Keep, now: float) -> None:
        """A stream is to be kept for clients."""
        rule = StorageRule(notice.stream, notice.retention, notice.quota)
        self._act_at_once(lambda: self._memberships.keep(rule, now), now)

    @on_notice(LetGo)
    def let_stream_go(self, notice: LetGo, now: float) -> None:
        """A stream is kept for clients no longer."""
        self._act_at_once(lambda: self._memberships.let_go(notice.stream, now), now)

    @on_notice(Trim)
    def trim_stream(self, notice: Trim, now: float) -> None:
        """Clients have too much of a stream: remove the oldest of it."""
        if (stream := self._memberships.get(notice.topic)) is not None:
            stream.archive.evict(None, notice.most, now)

    def settle(self, nearby: Iterable[TopicId], withheld: Iterable[TopicId], now: float) -> None:
        """On the edge: which streams are spoken of on local networks too, and which not with proxies."""
        self._act_at_once(lambda: self._memberships.settle(nearby, withheld, now), now)

    def _note_unreachable(self, stream: Stream) -> None:
        """Say once, until there are neighbours, that nobody can dial us and nobody is there whom we could."""
        was_told, stream.is_unreachable = (
            stream.is_unreachable,
            self._memberships.why_alone(stream) is Reason.UNREACHABLE_INBOUND,
        )
        if stream.is_unreachable and not was_told:
            note = "no neighbour: this node cannot be dialled, and the tracker has nobody who can be"
            self._out.record(Record(Kind.CONTROL, stream.topic, reason=Reason.UNREACHABLE_INBOUND, note=note))

    # Time.

    @on_timer(GapDue)
    def repair_gap(self, timer: GapDue, now: float) -> None:
        """Ask for what a chain lacks."""
        if (stream := self._memberships.get(timer.topic)) is not None:
            stream.repair_gap(timer.chain, now)

    @on_timer(HistoryDue)
    def ask_for_history(self, timer: HistoryDue, now: float) -> None:
        """Ask for history again, or somebody else."""
        if (stream := self._memberships.get(timer.topic)) is not None:
            stream.readers.end_waiting(timer.subscription)

    @on_timer(ConfirmDue)
    def answer_publisher(self, timer: ConfirmDue, now: float) -> None:
        """Tell whoever published what storage nodes confirmed so far."""
        if (stream := self._memberships.get(timer.topic)) is not None:
            stream.publisher.end_waiting(timer.request)

    @on_timer(StorageLookDue)
    def push_missing(self, timer: StorageLookDue, now: float) -> None:
        """Send storage nodes what they lack of our chain."""
        if (stream := self._memberships.get(timer.topic)) is not None:
            stream.publisher.push_missing(now)

    @on_timer(ReceiptDue)
    def send_receipts(self, timer: ReceiptDue, now: float) -> None:
        """Tell publishers how far their chains were written."""
        if (stream := self._memberships.get(timer.topic)) is not None:
            stream.keeper.send_receipts(now)

    @on_timer(EvictDue)
    def evict(self, timer: EvictDue, now: float) -> None:
        """Remove what is too old or too much."""
        if (stream := self._memberships.get(timer.topic)) is not None:
            spare = not stream.stores and has_cursor(self._context.store.cells, stream.topic)
            stream.keeper.evict(spare, now)

    @on_timer(AcknowledgeDue)
    def acknowledge(self, timer: AcknowledgeDue, now: float) -> None:
        """Tell a storage node how far this device has received a stream."""
        if (stream := self._memberships.get(timer.topic)) is not None:
            stream.acknowledgements.acknowledge(stream.ingest.chains, now)

    @on_timer(HeadsDue)
    def tell_news(self, timer: HeadsDue, now: float) -> None:
        """Tell neighbours how far the chains go."""
        if (stream := self._memberships.get(timer.topic)) is not None:
            stream.announcements.tell_news(stream.keeps, now)

    @on_timer(UnheardDue)
    def repeat_heads(self, timer: UnheardDue, now: float) -> None:
        """Tell neighbours again what they have not shown."""
        if (stream := self._memberships.get(timer.topic)) is not None:
            stream.announcements.repeat_heads(stream.keeps, now)

    @on_timer(AnswersDue)
    def release_held(self, timer: AnswersDue, now: float) -> None:
        """Wait no longer for those who were asked what is due."""
        if (stream := self._memberships.get(timer.topic)) is not None:
            stream.release_held(now)

    @on_timer(AnchorDue)
    def change_anchor(self, timer: AnchorDue, now: float) -> None:
        """Ask another storage node which chains there are."""
        if (stream := self._memberships.get(timer.topic)) is not None:
            stream.change_anchor(now)

    @on_timer(KeySearchDue)
    def ask_for_key(self, timer: KeySearchDue, now: float) -> None:
        """Ask the next for the announcement of a key."""
        if (stream := self._memberships.get(timer.topic)) is not None:
            stream.opening.ask_again(now)

    @on_timer(SpreadDue)
    def spread_waiting(self, timer: SpreadDue, now: float) -> None:
        """Pass a unit on that waited."""
        if (stream := self._memberships.get(timer.topic)) is not None:
            stream.suppression.spread_waiting(timer.head, now)

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
        """Delete keys of sealed streams whose time has come."""
        self._pruning.prune(now)

    @on_timer(RepairDue)
    def ask_for_damaged(self, timer: RepairDue, now: float) -> None:
        """Ask somebody else for what is damaged in our log."""
        self.repair.ask_again()

    # How things stand.

    def company(self) -> list[tuple[TopicId, tuple[PeerId, ...]]]:
        """Of each stream that is joined, our neighbours in it."""
        return [(stream.topic, tuple(stream.flood.neighbors)) for stream in self._memberships]

    def status(self) -> tuple[StreamStatus, ...]:
        """How every stream stands."""
        return tuple(
            status_of(
                stream,
                self._context,
                self._memberships.tracker(stream),
                self._memberships.overlay(stream),
                self._memberships.why_alone(stream),
            )
            for stream in self._memberships
        )

    # The rest.

    def _open(self, name: str, now: float) -> Stream:
        """The stream of this name, joined if it was not."""
        before = self._out.mark()
        stream = self._memberships.open(name, now)
        self._act_on_notices(before, now)
        if self._memberships.is_alone(stream):
            stream.note_alone()
        return stream

    def _join(self, stream: Stream, now: float) -> None:
        self._act_at_once(lambda: self._memberships.join(stream, now), now)

    def _act_at_once(self, act: Callable[[], None], now: float) -> None:
        """Join or leave a stream, and act on what is told meanwhile."""
        before = self._out.mark()
        act()
        self._act_on_notices(before, now)

    def _act_on_notices(self, before: tuple[int, int], now: float) -> None:
        """Act at once on what an overlay or a proxy has told since then: what comes next builds on it.

        Whoever publishes in a stream that it has just joined sends to the neighbours that it has by that.
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
        """Publish what waited until the links of a stream are not slow any more."""
        if not stream.flood.stalled:
            for request, command in self._waiting.take(stream.topic):
                carry_out(self._out, request, partial(self.handle_publish, request, command, now))


class Waiting:
    """What the application wants to publish, by stream, in order; bounded for each."""

    def __init__(self, most: int, out: Outbox) -> None:
        self._most = most
        self._out = out
        self._waiting: dict[TopicId, list[tuple[int, Publish]]] = {}

    def __contains__(self, topic: TopicId) -> bool:
        return topic in self._waiting

    def add(self, topic: TopicId, request: int, command: Publish) -> None:
        """Let one wait; more than allowed are declined."""
        waiting = self._waiting.setdefault(topic, [])
        if len(waiting) >= self._most:
            detail = f"{len(waiting)} publishes wait for slow links already"
            self._out.reply(request, Declined(Reason.CONGESTED, detail))
            return
        waiting.append((request, command))

    def take(self, topic: TopicId) -> list[tuple[int, Publish]]:
        """Those of a stream, in order: its links are not slow any more."""
        return self._waiting.pop(topic, [])

    def close(self) -> None:
        """The node stops: whoever waits is answered."""
        waiting, self._waiting = self._waiting, {}
        declined = Declined(Reason.SHUTDOWN, "the node stops, and links were slow until the end")
        for queued in waiting.values():
            for request, _ in queued:
                self._out.reply(request, declined)


class Unsent:
    """The streams of one node in which something waits for a proxy."""

    def __init__(self, context: Context, out: Outbox) -> None:
        self._context = context
        self._out = out
        self._cells = context.store.cells

    def streams(self) -> list[tuple[str, int]]:
        """Every such stream, and the number of our first event in it that waits."""
        return [_decode(value) for _, value in self._cells.scan(_UNSENT)]

    def note_published(self, stream: Stream, first: int) -> None:
        """From this event on a proxy has still to be told."""
        if stream.publisher.next > first and self._cells.get(_UNSENT, stream.topic) is None:
            self._cells.put(_UNSENT, stream.topic, _encode((stream.name, first)))

    def is_in(self, stream: Stream) -> bool:
        """Whether something waits in a stream; it is forgotten once nothing does."""
        waits = stream.publisher.is_unconfirmed
        if not waits and self._cells.get(_UNSENT, stream.topic) is not None:
            self._cells.delete(_UNSENT, stream.topic)
        return waits

    def recall(self, stream: Stream, first: int) -> None:
        """After a restart: let it wait again for whoever comes first."""
        author, device = self._context.author, self._context.device
        while first < stream.publisher.next:
            units = stream.archive.page(author, device, first, stream.publisher.next - 1)
            for unit in units:
                stream.publisher.hold_back(recall_unit(unit), self._out)
                first = (unit.seq or 0) + len(unit.tails)
            if not units:
                break  # evicted meanwhile, with a record
