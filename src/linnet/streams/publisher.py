"""The publisher's side of a stream: our own chain, its bursts, and the confirmations of receivers.

Events are written before they are sent, since a sequence number that was sent and then forgotten would fork
the chain. Storage nodes confirm by receipts; what one of them lacks for longer than a period is sent to it
directly.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.limits import BURST_BYTES, MIB
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.delivery.context import Context
from linnet.delivery.event_archive import Archive, known_heads
from linnet.delivery.flood import unit_bytes, unit_record
from linnet.delivery.messages import Data, Kept, Watch
from linnet.delivery.receipts import Confirmation, Ledger, ReceiverFate, is_of_storage, signer_of
from linnet.delivery.storage_statements import place_of
from linnet.event.event import Spot, Tail, Verified
from linnet.event.signing import recall_unit, sign_unit
from linnet.machine.outbox import Outbox, Promises
from linnet.streams.commands import Published
from linnet.trace.records import Kind, Record

BACKLOG_BYTES = 8 * MIB
"""Bytes of events, published while there was no neighbour, that are held in memory for the first to come."""
NONE_PAUSE = 1.0
"""Seconds in which a storage node may still appear after a tracker said that there is none."""
REST_MOST = 31
"""The most looks skipped between two pushes to a storage node that confirms nothing: about a minute."""
_HEADS = 1024
"""Units of ours whose last id is remembered, so that receipts are compared without reading the log."""
_TAIL_OVERHEAD = 96
"""The most bytes of a tail beside its body; used to cut bursts."""


class ConfirmDue(TopicTimer, frozen=True, gc=False):
    """The time is up in which storage nodes could confirm a publish."""

    request: int


class StorageLookDue(TopicTimer, frozen=True, gc=False):
    """Time to look what storage nodes lack of our chain in a stream."""


class _Waiting(Struct, eq=False):
    """A publish whose caller waits for storage nodes to confirm it."""

    request: int
    outcome: Published
    last: int
    confirm: float


class _Pushed(Struct, eq=False):
    """State of pushing to a storage node that has confirmed nothing since the last push."""

    reached: int
    """The last number that it had confirmed at that time."""
    rest: int = 0
    """Looks to skip after the next push. Counts looks, not seconds, since clocks are set back."""
    resting: int = 0

    @property
    def is_second(self) -> bool:
        """Whether the last push was the second one."""
        return self.rest == 3  # 1 after the first


class Publisher:
    """Our own chain in one topic, and the storage nodes that confirm it."""

    def __init__(self, topic: TopicId, context: Context, archive: Archive, out: Outbox) -> None:
        self._topic = topic
        self._context = context
        self._archive = archive
        self._out = out
        self._chain = context.author + context.device
        self._storage: dict[PeerId, tuple[str, ...]] = {}
        self._watched: dict[PeerId, None] = {}
        self._pushed: dict[PeerId, _Pushed] = {}
        self._waiting: dict[int, _Waiting] = {}
        self._refusals: dict[PeerId, Reason] = {}
        """Why storage nodes take none of our newer events, by their latest word."""
        self._settled = -1
        self._has_none = False
        """Whether the last word of a tracker was that nobody keeps the topic."""
        self._is_looking = False
        """Whether the next look at storage nodes is set; another publish does not postpone it."""
        self.none_since: float | None = None
        """When we learnt that nobody keeps the topic; None: somebody may."""
        self._backlog: deque[Verified] = deque()
        self._backlog_bytes = 0
        self.are_named = False
        """Whether the storage nodes are named by the stream's owner or our configuration."""
        self.prev: EventId | None = None
        """The id of our last event."""
        self.next = 0
        self._heads: dict[int, EventId] = {}
        self.ledger = Ledger(self._chain)
        for head in known_heads(topic, context.store):
            if head.author == context.author and head.device == context.device:
                self.next, self.prev = head.last + 1, head.head

    def sign(self, tails: Sequence[Tail]) -> Iterator[Verified]:
        """Sign the next events of our chain, in as few units as possible."""
        for part in _bursts(tails, self._context.config.burst_events):
            context = self._context
            verified = sign_unit(
                context.key, Spot(self._topic, context.author, context.device, self.next, self.prev), part
            )
            self.next += len(part)
            self.prev = verified.head
            self._heads[self.next - 1] = verified.head
            if len(self._heads) > _HEADS:
                del self._heads[next(iter(self._heads))]
            yield verified

    def id_at(self, number: int) -> EventId | None:
        """Return the id of our event of this number; None if we do not keep it any more."""
        found = self._heads.get(number)
        if found is not None:
            return found
        units = self._archive.page(self._context.author, self._context.device, number, number)
        if not units:
            return None
        return recall_unit(units[0]).events[number - (units[0].seq or 0)].id

    def hold_back(self, verified: Verified, out: Outbox | Promises) -> None:
        """Keep a unit for the first neighbour to come, since there is none to send it to.

        A unit that is pushed out is recorded. It stays in the log and is announced, so neighbours can ask for
        it.
        """
        config = self._context.config
        self._backlog.append(verified)
        self._backlog_bytes += unit_bytes(verified.unit)
        while len(self._backlog) > config.publish_queue or self._backlog_bytes > BACKLOG_BYTES:
            oldest = self._backlog.popleft()
            self._backlog_bytes -= unit_bytes(oldest.unit)
            record = unit_record(Kind.DROPPED, oldest)
            out.record(replace(record, reason=Reason.QUEUE_FULL, note="not sent; it can be asked for"))

    def take_backlog(self) -> list[Verified]:
        """Take the units that were published while there was no neighbour."""
        backlog, self._backlog = list(self._backlog), deque()
        self._backlog_bytes = 0
        return backlog

    def await_storage(
        self, request: int, outcome: Published, confirm: float, now: float = inf
    ) -> Published | None:
        """Watch storage nodes; return the answer if it is known at once, or None if the caller must wait."""
        self._watch_storage()
        if confirm <= 0:
            return outcome
        none_since = None if self._storage else self.none_since
        if none_since is not None and now >= none_since + NONE_PAUSE:
            # If we keep the stream ourselves, that confirms it.
            why = None if outcome.fates else Reason.NO_STORAGE
            return replace(outcome, unconfirmed=why)
        last = outcome.first + len(outcome.ids) - 1
        self._waiting[request] = _Waiting(request, outcome, last, confirm)
        patience = confirm if none_since is None else min(confirm, NONE_PAUSE)
        self._out.set_timer(patience, ConfirmDue(self._topic, request))
        return None

    def set_storage(self, nodes: Sequence[Contact]) -> None:
        """Replace the known storage nodes of the topic."""
        had_none, self._has_none = self._has_none, not nodes
        self._storage = {
            contact.peer: contact.hints for contact in nodes if contact.peer != self._context.peer
        }
        self._refusals = {peer: why for peer, why in self._refusals.items() if peer in self._storage}
        for peer in [peer for peer in self._watched if peer not in self._storage]:
            # If it keeps the topic again, it must be asked anew: meanwhile nobody asks it for receipts.
            del self._watched[peer]
            self._pushed.pop(peer, None)
            self._out.release(peer, self._purpose)
        if self.next:
            self._watch_storage()
        if self._storage and not had_none:
            return
        for waiting in self._waiting.values():
            patience = waiting.confirm if self._storage else min(waiting.confirm, NONE_PAUSE)
            self._out.set_timer(patience, ConfirmDue(self._topic, waiting.request))

    def note_alone(self) -> None:
        """Answer all waiting publishes: there is no node that could confirm them."""
        self.none_since = -inf
        if not self._storage:
            self._answer_all()

    def handle_link_up(self, peer: PeerId) -> None:
        """Ask a storage node for receipts, now that its link is open."""
        self._pushed.pop(peer, None)
        if peer in self._watched:
            self._out.send(peer, Watch(self._topic, True))

    def watch_if_owed(self, peer: PeerId) -> None:
        """Ask a storage node that knows all that we know for receipts, but only if it owes one."""
        if self.is_owed(peer):
            self.handle_link_up(peer)
        else:
            self._watched.pop(peer, None)

    def is_owed(self, peer: PeerId) -> bool:
        """Return whether this storage node has not confirmed all that was published here."""
        return self.ledger.find_last(peer, self._chain) < self.next - 1

    @property
    def is_unconfirmed(self) -> bool:
        """Whether something was published that no storage node has confirmed yet."""
        return self.next > 0 and all(map(self.is_owed, self._storage))

    def handle_receipt(self, receipt: Confirmation) -> None:
        """Take in a checked receipt, and answer the publishes that waited for it."""
        receiver = signer_of(receipt)
        if isinstance(receipt, Kept) and receiver in self._storage:
            self._note_refusal(receiver, receipt)
        reached = self.ledger.find_last(receiver, self._chain)
        if reached < 0:
            return
        self._out.record(
            Record(Kind.ACKED, self._topic, device=self._context.device, seq=reached, peer=receiver)
        )
        for waiting in list(self._waiting.values()):
            if all(self.ledger.find_last(peer, self._chain) >= waiting.last for peer in self._storage):
                self._answer(waiting)

    def _note_refusal(self, peer: PeerId, kept: Kept) -> None:
        """Note whether a storage node takes our newer events, if a statement is about that."""
        if not kept.chains or place_of(kept, self._chain) is not None:
            if kept.refuses is None:
                self._refusals.pop(peer, None)
            else:
                self._refusals[peer] = kept.refuses

    def end_waiting(self, request: int) -> None:
        """Answer a publish whose time is up with what is known."""
        waiting = self._waiting.get(request)
        if waiting is not None:
            self._answer(waiting)

    def push_missing(self, now: float) -> None:
        """Send storage nodes the events that they have lacked for longer than a period."""
        self._is_looking = False
        for peer in self._storage:
            reached = self.ledger.find_last(peer, self._chain)
            if peer in self._context.links and reached < self._settled and self._is_due(peer, reached):
                self._push(peer, reached + 1, self._settled, now)
                if self._pushed[peer].is_second:
                    # It may have them, and its receipt or our wish for one was lost. Only once: answers are
                    # long.
                    self._out.send(peer, Watch(self._topic, True))
        lacking = any(self.ledger.find_last(peer, self._chain) < self.next - 1 for peer in self._storage)
        self._settled = self.next - 1
        if lacking:
            self._look_later()

    def fates(self, last: int) -> tuple[ReceiverFate, ...]:
        """Return what is known of our event of this number at every known receiver."""
        receivers = {**dict.fromkeys(self._storage), **dict.fromkeys(self.ledger.receivers)}
        fates = []
        for peer in receivers:
            known = self.ledger.receivers.get(peer)
            arrived = known is not None and known.chains.get(self._chain, -1) >= last
            since = known.since.get(self._chain) if known is not None and arrived else None
            fates.append(ReceiverFate(peer, peer in self._storage, since, self._is_volunteer(peer)))
        return tuple(fates)

    def _is_volunteer(self, peer: PeerId) -> bool:
        if peer in self._storage:
            return not self.are_named
        latest = self.ledger.latest.get(peer)
        return latest is not None and is_of_storage(latest)

    def leave(self) -> None:
        """Release the links to storage nodes, and answer all waiting publishes."""
        self._answer_all()
        for peer in self._watched:
            self._out.release(peer, self._purpose)
        self._watched, self._pushed, self._is_looking = {}, {}, False
        self._out.cancel_timer(StorageLookDue(self._topic))

    def _watch_storage(self) -> None:
        """Ask storage nodes for receipts, from the first publish on."""
        for peer, hints in self._storage.items():
            if peer not in self._watched:
                self._watched[peer] = None
                self._out.hold(peer, hints, self._purpose)
                if peer in self._context.links:
                    self._out.send(peer, Watch(self._topic, True))
        if self._storage:
            self._look_later()

    def _look_later(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            self._out.set_timer(self._context.config.receipt_period, StorageLookDue(self._topic))

    def _is_due(self, peer: PeerId, reached: int) -> bool:
        """Return whether to push to a storage node at this look: ever more seldom if it confirms nothing.

        It may refuse our events for good, for example after a revocation.
        """
        pushed = self._pushed.get(peer)
        if pushed is None or pushed.reached != reached:
            pushed = self._pushed[peer] = _Pushed(reached)
        if pushed.resting:
            pushed.resting -= 1
            return False
        pushed.resting = pushed.rest
        pushed.rest = min(2 * pushed.rest + 1, REST_MOST)
        return True

    def _push(self, peer: PeerId, first: int, last: int, now: float) -> None:
        context = self._context
        units = self._archive.page(context.author, context.device, first, last)
        sent_us = int(now * 1_000_000)
        for unit in units:
            self._out.send(peer, Data(unit, 1, 0, sent_us, context.card))
        self._out.record(
            Record(Kind.RESYNC, self._topic, device=context.device, seq=first, peer=peer, note="pushed")
        )

    def _answer_all(self) -> None:
        for waiting in list(self._waiting.values()):
            self._answer(waiting)

    def _answer(self, waiting: _Waiting) -> None:
        del self._waiting[waiting.request]
        outcome = waiting.outcome
        fates = outcome.fates + self.fates(waiting.last)
        keepers = [fate.delivered_at for fate in fates if fate.storage]
        lacking = [fate.receiver for fate in fates if fate.storage and fate.delivered_at is None]
        late = Reason.TIMEOUT if lacking else None
        late = next((self._refusals[peer] for peer in lacking if peer in self._refusals), late)
        told = replace(outcome, fates=fates, unconfirmed=late if keepers else Reason.NO_STORAGE)
        self._out.cancel_timer(ConfirmDue(self._topic, waiting.request))
        self._out.reply(waiting.request, told)

    @property
    def _purpose(self) -> str:
        return f"receipts {self._topic.hex()[:16]}"


def _bursts(tails: Sequence[Tail], most: int) -> Iterator[Sequence[Tail]]:
    """Cut a sequence of tails into bursts."""
    start, room = 0, BURST_BYTES
    for index, tail in enumerate(tails):
        size = len(tail.body) + _TAIL_OVERHEAD
        if index > start and (size > room or index - start == most):
            yield tails[start:index]
            start, room = index, BURST_BYTES
        room -= size
    yield tails[start:]
