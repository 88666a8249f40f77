"""All streams of a node: the application's commands, the overlay's notices, the peers' messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from linnet.core.effects import AfterCommit, Blame, Reply, Send
from linnet.core.errors import BadText, Refused, RemoteError
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.inputs import LinkDown, LinkUp
from linnet.core.limits import BODY_BYTES
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery import catchup, gaps, suppression
from linnet.delivery.commands import Consumed, Declined, Done, Unsubscribe
from linnet.delivery.context import Context
from linnet.delivery.items import missed_by_damage
from linnet.delivery.messages import (
    Data,
    DeliveryMessage,
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
from linnet.edge.client import EdgeClient
from linnet.edge.notices import Reached
from linnet.event.signing import message_tail
from linnet.machine.outbox import Outbox
from linnet.overlay.config import Overlay
from linnet.overlay.notices import JoinRefused, NeighborDown, NeighborUp, StorageKnown
from linnet.overlay.overlays import Overlays
from linnet.overlay.registry import Registry
from linnet.streams import anchor, announcing, confirming, joined, keeper, pruning, publishing
from linnet.streams.commands import (
    Declare,
    Publish,
    Revoke,
    SealedCommand,
    StreamCommand,
    StreamStatus,
    Subscribe,
    SwitchOverlay,
)
from linnet.streams.effects import StreamEffect
from linnet.streams.joined import Joined, JoinedEffect
from linnet.streams.messages import PolicyIs
from linnet.streams.options import StorageRule, StreamOptions
from linnet.streams.pruning import Pruning
from linnet.streams.publish import declare, publish
from linnet.streams.repair import Repair
from linnet.streams.sealed import search
from linnet.streams.sealed.asking import ask_sealed
from linnet.streams.served import Serving, meet
from linnet.streams.status import status_of
from linnet.streams.stream import Stream
from linnet.streams.subscribe import UNSUBSCRIBED, subscribe
from linnet.streams.unsent import Unsent
from linnet.streams.waiting import Waiting
from linnet.trace.records import Kind, Record

OWNERS = (
    joined.OWNER,
    suppression.OWNER,
    gaps.OWNER,
    catchup.OWNER,
    publishing.OWNER,
    keeper.OWNER,
    confirming.OWNER,
    announcing.OWNER,
    anchor.OWNER,
    search.OWNER,
)
"""Owners of timers that come back here."""

_NOTICES = frozenset({NeighborUp, NeighborDown, StorageKnown, JoinRefused})


class Streams:
    """Every stream that this node publishes to, subscribes to or keeps."""

    def __init__(
        self,
        context: Context,
        overlays: Overlays,
        registry: Registry,
        options: dict[str, StreamOptions],
        rules: Iterable[StorageRule],
        overlay: Overlay = Overlay.TRACKER,
    ) -> None:
        self._context = context
        self._joined = Joined(context, overlays, registry, options, rules, overlay)
        self._by_subscription: dict[int, Stream] = {}
        self._waiting = Waiting(context.config.publish_queue)
        self._pruning = Pruning(context, self._joined)
        self._unsent: Unsent | None = None
        self.repair = Repair(context, self._joined)
        """What of our log is damaged."""
        self.serving = Serving(context, self._joined, self.heed)
        """What a proxy and its clients ask of streams."""

    def start(self, now: float) -> list[StreamEffect]:
        """Join the streams that this node keeps."""
        effects: list[StreamEffect] = [*self._pruning.look(now)]
        for name in self._joined.kept:
            effects += self._open(name, now)[1]
        unsent = self._unsent
        for name, first in () if unsent is None else unsent.streams():
            stream, opened = self._open(name, now)
            waiting = [] if unsent is None else unsent.recall(stream, first)
            effects += [*waiting, *opened, *self._joined.linger(stream, now)]
        return effects

    def through(self, client: EdgeClient, out: Outbox) -> None:
        """Take part in streams through proxies alone; the outbox is the client's."""
        self._joined.client, self._joined.out = client, out
        self._unsent = Unsent(self._context)

    def stop(self, now: float) -> list[StreamEffect]:
        """Leave every stream, and answer whoever waits to publish."""
        effects: list[StreamEffect] = [*self._waiting.close()]
        for stream in self._joined:
            effects += self.heed(self._joined.leave(stream, now), now)
        return effects

    # Commands.

    def ask(self, request: int, command: StreamCommand, now: float) -> list[StreamEffect]:
        """What the application wants; answered by one reply."""
        try:
            return self._ask(request, command, now)
        except BadText as error:
            return [Reply(request, Declined(Reason.MALFORMED, str(error)))]
        except (Refused, RemoteError) as error:
            return [Reply(request, Declined(error.reason, error.detail))]

    def _ask(self, request: int, command: StreamCommand, now: float) -> list[StreamEffect]:
        match command:
            case Publish():
                return self._publish(request, command, now)
            case Declare():
                return self._declare(request, command, now)
            case Subscribe():
                return self._subscribe(request, command, now)
            case Unsubscribe(subscription):
                return self._unsubscribe(request, subscription, now)
            case Consumed(subscription, items):
                return self._consumed(request, subscription, items)
            case Revoke(revocation):
                self._context.cards.revoke(revocation)
                told: list[StreamEffect] = []
                for stream in self._joined:
                    stream.sealed.note_revocation()
                    told += stream.announcing.revocation(revocation, None)
                return [*told, AfterCommit((Reply(request, Done()),))]
            case SwitchOverlay(name, overlay):
                chosen, switched = self._joined.switch(name, overlay, now)
                return [*self.heed(switched, now), AfterCommit((Reply(request, chosen),))]
            case _:
                return self._sealed(request, command, now)

    def _sealed(self, request: int, command: SealedCommand, now: float) -> list[StreamEffect]:
        stream, effects = self._open(command.stream, now)
        effects += ask_sealed(stream, self._context, request, command, now)
        return [*effects, *self._pruning.later(), *self._joined.linger(stream, now)]

    def _publish(self, request: int, command: Publish, now: float) -> list[StreamEffect]:
        largest = max(map(len, command.bodies), default=0)
        if largest > BODY_BYTES:
            detail = f"a body of {largest} bytes, at most {BODY_BYTES} are allowed"
            return [Reply(request, Declined(Reason.TOO_LARGE, detail))]
        stream, effects = self._open(command.stream, now)
        if stream.flood.stalled or stream.topic in self._waiting:  # Order is kept.
            return [*effects, *self._waiting.add(stream.topic, request, command)]
        tails = [message_tail(body, int(now * 1000)) for body in command.bodies]
        try:
            first = stream.publishing.next
            unsent = self._joined.why_alone(stream)
            effects += publish(stream, self._context, request, tails, command.confirm, now, unsent)
            if self._unsent is not None:
                self._unsent.published(stream, first)
        except RemoteError as error:
            effects.append(Reply(request, Declined(error.reason, error.detail)))
        return [*effects, *self._joined.linger(stream, now)]

    def _declare(self, request: int, command: Declare, now: float) -> list[StreamEffect]:
        stream, effects = self._open(command.stream, now)
        try:
            first = stream.publishing.next
            effects += declare(stream, self._context, request, command.policy, now, command.sealed)
            if self._unsent is not None:
                self._unsent.published(stream, first)
        except RemoteError as error:
            effects.append(Reply(request, Declined(error.reason, error.detail)))
        effects += [*self._pruning.later(), *self.heed(self._joined.join(stream, now), now)]
        return [*effects, *self._joined.linger(stream, now)]

    def _subscribe(self, request: int, command: Subscribe, now: float) -> list[StreamEffect]:
        if command.subscription in self._by_subscription:
            detail = f"there is a subscription {command.subscription} already"
            return [Reply(request, Declined(Reason.IN_USE, detail))]
        stream, effects = self._open(command.stream, now)
        effects += [*subscribe(stream, self._context, request, command, now), *stream.opening.look(now)]
        if command.subscription not in stream.readers:
            return [*effects, *self._joined.linger(stream, now)]
        self._by_subscription[command.subscription] = stream
        return effects

    def _unsubscribe(self, request: int, subscription: int, now: float) -> list[StreamEffect]:
        stream = self._by_subscription.pop(subscription, None)
        if stream is None:
            return [Reply(request, Declined(Reason.UNKNOWN, f"no subscription {subscription}"))]
        effects: list[StreamEffect] = [*stream.readers.remove(subscription)]
        if not stream.readers:
            effects.append(Record(Kind.CONTROL, stream.topic, note=UNSUBSCRIBED))
        if not stream.readers and not stream.stores:
            effects += self._joined.linger(stream, now)
        return [*effects, AfterCommit((Reply(request, Done()),))]

    def _consumed(self, request: int, subscription: int, items: int) -> list[StreamEffect]:
        stream = self._by_subscription.get(subscription)
        if stream is None:
            return [Reply(request, Declined(Reason.UNKNOWN, f"no subscription {subscription}"))]
        effects: list[StreamEffect] = [*stream.readers.handled(subscription, items)]
        if stream.readers.confirming:
            effects += stream.confirming.handled()
        return [*effects, AfterCommit((Reply(request, Done()),))]

    # Messages.

    def on_message(self, peer: PeerId, message: DeliveryMessage | PolicyIs, now: float) -> list[StreamEffect]:
        """What a peer sent about a topic."""
        if isinstance(message, Data):
            return self.on_data(peer, message, now)
        stream = self._joined.get(message.topic)
        if stream is None:
            return self._not_joined(message.topic, peer)
        return self._on_message(stream, peer, message, now)

    def on_data(self, peer: PeerId, data: Data, now: float) -> list[StreamEffect]:
        """A unit on its way through an overlay."""
        stream = self._joined.get(data.unit.topic)
        if stream is None:
            return self._not_joined(data.unit.topic, peer)
        return stream.on_data(peer, data, now)

    def _on_message(
        self,
        stream: Stream,
        peer: PeerId,
        message: Heads | Resend | Resent | History | HistoryPage | Watch | Receipt | Revoked | PolicyIs,
        now: float,
    ) -> list[StreamEffect]:
        match message:
            case Heads():
                return stream.on_heads(peer, message, now)
            case Resend():
                return self._answer(peer, stream.resend(peer, message, now))
            case Resent():
                return [*self.repair.on_resent(stream, message, now), *stream.on_resent(peer, message, now)]
            case History():
                # We may read our own log in any case.
                keeps = stream.stores or peer == self._context.peer
                answer = self._answer(peer, stream.archive.history(peer, message, keeps))
                return [*self._damaged_history(stream, peer, message), *answer]
            case HistoryPage():
                return stream.on_page(peer, message, now)
            case Watch(on=True) if not stream.stores:
                return [Record(Kind.REJECTED, stream.topic, peer=peer, reason=Reason.NOT_HELD, note="watch")]
            case Watch(on=True):
                return [*stream.keeper.watch(peer, stream.publishing.ledger, stream.intake.chains, now)]
            case Watch():
                stream.keeper.down(peer)
                return []
            case Receipt():
                return stream.on_receipt(peer, message, now)
            case Revoked():
                return stream.on_revoked(peer, message.revocation)
            case PolicyIs():
                return [*stream.on_policy(peer, message), *self.heed(self._joined.join(stream, now), now)]
            case _:
                assert_never(message)

    def _damaged_history(self, stream: Stream, peer: PeerId, asked: History) -> list[StreamEffect]:
        """Tell a subscription that reads our own log what of it is damaged."""
        if peer != self._context.peer:
            return []
        return [*stream.readers.told(asked.request, missed_by_damage(self._context.store.log.left_out))]

    def _answer(self, peer: PeerId, sends: Sequence[Send[Resent | HistoryPage]]) -> list[StreamEffect]:
        """What was read from the log, once it is durable: a chain that was shown and then lost forks."""
        return [*sends] if peer == self._context.peer else [AfterCommit(tuple(sends))]

    # The overlay and the links.

    def link_up(self, event: LinkUp, now: float) -> list[StreamEffect]:
        """A link is open. What a proxy serves us is known only when it says so."""
        self._context.links[event.peer] = None
        effects: list[StreamEffect] = []
        if self._joined.client is not None:
            return effects
        for stream in self._joined:
            effects += stream.link_up(event.peer, now)
        return effects

    def link_down(self, event: LinkDown) -> list[StreamEffect]:
        """A link is gone."""
        self._context.links.pop(event.peer, None)
        for stream in self._joined:
            stream.link_down(event.peer)
        return []

    def congested(self, peer: PeerId, congested: bool, now: float) -> list[StreamEffect]:
        """The outbox towards a peer is filling, or empty again."""
        effects: list[StreamEffect] = []
        for stream in self._joined:
            neighbor = stream.flood.neighbors.get(peer)
            if neighbor is not None:
                neighbor.congested = congested
            effects += self._publish_queued(stream, now)
        return effects

    def heed(self, effects: Iterable[JoinedEffect], now: float) -> list[StreamEffect]:
        """Take the overlay's notices out of what it asks for, and act on them."""
        out: list[StreamEffect] = []
        for effect in effects:
            # By type first: a pattern for each is slow to ask.
            if type(effect) not in _NOTICES:
                out.append(effect)  # type: ignore[arg-type] # just seen
                continue
            match effect:
                case NeighborUp(topic, peer):
                    if (stream := self._joined.get(topic)) is not None:
                        out += stream.neighbor_up(peer, now)
                        out += self._publish_queued(stream, now)
                case NeighborDown(topic, peer):
                    if (stream := self._joined.get(topic)) is not None:
                        stream.neighbor_down(peer)
                        out += self._publish_queued(stream, now)
                case StorageKnown(topic, nodes):
                    if (stream := self._joined.get(topic)) is not None:
                        out += [*stream.on_storage(nodes, now), *self._unreachable(stream)]
                case JoinRefused(topic, reason):
                    out.append(Record(Kind.REJECTED, topic, reason=reason, note="join refused"))
        return out

    def meet_neighbor(self, notice: Reached, now: float) -> list[StreamEffect]:
        """A proxy serves a stream, or a client is served in it."""
        stream = self._joined.get(notice.topic)
        if stream is None:
            return []
        return [*meet(stream, notice.peer, notice.same, now), *self._publish_queued(stream, now)]

    def _unreachable(self, stream: Stream) -> list[Record]:
        """Say once, until there are neighbours, that nobody can dial us and nobody is there whom we could."""
        was_told, stream.is_unreachable = (
            stream.is_unreachable,
            self._joined.why_alone(stream) is Reason.UNREACHABLE_INBOUND,
        )
        if was_told or not stream.is_unreachable:
            return []
        note = "no neighbour: this node cannot be dialled, and the tracker has nobody who can be"
        return [Record(Kind.CONTROL, stream.topic, reason=Reason.UNREACHABLE_INBOUND, note=note)]

    def fired(self, tick: Tick, now: float) -> list[StreamEffect]:
        """A timer of a stream has run out."""
        stream = self._joined.get(TopicId(tick.key[:32]))
        if stream is None:
            return [*self._pruning.look(now)] if tick.what == pruning.WHAT else []
        match tick.owner:
            case gaps.OWNER:
                return stream.gap_fired(tick.key[32:], now)
            case catchup.OWNER:
                return [*stream.readers.catchup_fired(int.from_bytes(tick.key[32:], "big"))]
            case publishing.OWNER:
                return [*stream.publishing.fired(tick, now)]
            case keeper.OWNER if tick.what == "evict":
                spare = not stream.stores and has_cursor(self._context.store.cells, stream.topic)
                return [*stream.keeper.evict(spare, now)]
            case keeper.OWNER:
                return [*stream.keeper.fired(now)]
            case confirming.OWNER:
                return [*stream.confirming.fired(stream.intake.chains, now)]
            case announcing.OWNER:
                return stream.announcing_fired(tick, now)
            case anchor.OWNER:
                return stream.anchor_fired(now)
            case search.OWNER:
                return [*stream.opening.fired(now)]
            case suppression.OWNER:
                return [*stream.suppression.fired(EventId(tick.key[32:]), now)]
            case _:
                return self._lingered(stream, now)

    def _lingered(self, stream: Stream, now: float) -> list[StreamEffect]:
        if self._unsent is not None and self._unsent.is_in(stream):
            return [*self._joined.linger(stream, now)]
        busy = stream.topic in self._waiting
        return self.heed(self._joined.lingered(stream, busy, now), now)

    def company(self) -> list[tuple[TopicId, tuple[PeerId, ...]]]:
        """Of each stream that is joined, our neighbours in it."""
        return [(stream.topic, tuple(stream.flood.neighbors)) for stream in self._joined]

    def status(self) -> tuple[StreamStatus, ...]:
        """How every stream stands."""
        return tuple(
            status_of(
                stream,
                self._context,
                self._joined.tracker(stream),
                self._joined.overlay(stream),
                self._joined.why_alone(stream),
            )
            for stream in self._joined
        )

    def _open(self, name: str, now: float) -> tuple[Stream, list[StreamEffect]]:
        """The stream of this name, joined if it was not."""
        stream, effects = self._joined.open(name, now)
        heeded = self.heed(effects, now)
        return stream, [*heeded, *stream.alone()] if self._joined.is_alone(stream) else heeded

    def _publish_queued(self, stream: Stream, now: float) -> list[StreamEffect]:
        if stream.flood.stalled:
            return []
        effects: list[StreamEffect] = []
        for request, command in self._waiting.take(stream.topic):
            effects += self.ask(request, command, now)
        return effects

    def _not_joined(self, topic: TopicId, peer: PeerId) -> list[StreamEffect]:
        """Some of this comes of crossing messages; much of it is a peer that does not care."""
        record = Record(Kind.REJECTED, topic, peer=peer, reason=Reason.NOT_JOINED)
        return [record, Blame(peer, Reason.NOT_JOINED)]
