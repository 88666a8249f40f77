"""The publisher's side of a stream: its own chain, bursts, and who has confirmed what.

What is published is written before it is sent, since a sequence number that was sent and then
forgotten would fork the chain. Storage nodes confirm by receipts; what one of them lacks for
longer than a period is sent to it directly.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING

from msgspec.structs import replace

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.limits import BURST_BYTES, MIB
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.commands import Declined
from linnet.delivery.context import Context
from linnet.delivery.event_archive import Archive, known_heads
from linnet.delivery.flood import unit_bytes, unit_record
from linnet.delivery.messages import Data, Receipt, Watch
from linnet.delivery.receipts import Ledger
from linnet.event.event import MESSAGE, Tail, Verified
from linnet.event.signing import sign_unit
from linnet.identity.cards import check_dates
from linnet.machine.outbox import Outbox, Promises
from linnet.streams.commands import Fate, Policy, Published
from linnet.streams.sealed.owner import KIND as ANNOUNCEMENT
from linnet.streams.subscribe import shown
from linnet.trace.records import Kind, Record

if TYPE_CHECKING:
    from linnet.streams.stream import Stream


BACKLOG_BYTES = 8 * MIB
"""Bytes of what was published while nobody was there, held in memory for whoever comes first."""
NONE_PAUSE = 1.0
"""Seconds that a storage node may still appear after a tracker said that there is none."""
REST_MOST = 31
"""Looks that go by between two pushes to a storage node that confirms nothing, at most: about a minute."""
_TAIL_OVERHEAD = 96
"""Bytes of a tail beside its body, at most: what a burst is cut by."""


class ConfirmDue(Timer, frozen=True, gc=False):
    """Whoever published has waited long enough for storage nodes to confirm it."""

    topic: TopicId
    request: int


class StorageLookDue(Timer, frozen=True, gc=False):
    """It is to be looked what storage nodes lack of our chain in a stream."""

    topic: TopicId


class _Waiting:
    """A publish whose caller wants to hear from storage nodes."""

    __slots__ = ("confirm", "last", "outcome", "request")

    def __init__(self, request: int, outcome: Published, last: int, confirm: float) -> None:
        self.request = request
        self.confirm = confirm
        self.outcome = outcome
        self.last = last


class _Pushed:
    """What was sent to a storage node by itself, which has confirmed nothing since."""

    __slots__ = ("reached", "rest", "resting")

    def __init__(self, reached: int) -> None:
        self.reached = reached
        """What it had confirmed then."""
        self.rest = 0
        """Looks to let go by after the next push. Looks are counted, not seconds: clocks are put back."""
        self.resting = 0

    @property
    def is_second(self) -> bool:
        """Whether the last push was the second one."""
        return self.rest == 3  # 1 after the first


class Publisher:
    """Our own chain in one topic."""

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
        self._settled = -1
        self._has_none = False
        """Whether a tracker's last word was that nobody keeps the topic."""
        self._is_looking = False
        """Whether the next look at storage nodes is set: another publication does not put it off."""
        self.none_since: float | None = None
        """Since when it is known that nobody keeps the topic; None: somebody may."""
        self._backlog: deque[Verified] = deque()
        self._backlog_bytes = 0
        self.prev: EventId | None = None
        """The id of our last event."""
        self.next = 0
        self.ledger = Ledger()
        for head in known_heads(topic, context.store):
            if head.author == context.author and head.device == context.device:
                self.next, self.prev = head.last + 1, head.head

    def sign(self, tails: Sequence[Tail]) -> Iterator[Verified]:
        """The next events of our chain, in as few units as may be."""
        for part in _bursts(tails, self._context.config.burst_events):
            context = self._context
            verified = sign_unit(
                context.key, self._topic, context.author, context.device, self.next, self.prev, part
            )
            self.next += len(part)
            self.prev = verified.head
            yield verified

    def hold_back(self, verified: Verified, out: Outbox | Promises) -> None:
        """Nobody is there to send a unit to: keep the latest ones for whoever comes first.

        What is pushed out leaves a record. It is in the log and announced; whoever comes has to ask for it.
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
        """What was published while nobody was there."""
        backlog, self._backlog = list(self._backlog), deque()
        self._backlog_bytes = 0
        return backlog

    def await_storage(
        self, request: int, outcome: Published, confirm: float, now: float = inf
    ) -> Published | None:
        """Watch storage nodes; returns what the caller is told at once, or None if it waits for them."""
        self._watch_storage()
        if confirm <= 0:
            return outcome
        none_since = None if self._storage else self.none_since
        if none_since is not None and now >= none_since + NONE_PAUSE:
            # Whoever keeps the stream itself has confirmed by that.
            why = None if outcome.fates else Reason.NO_STORAGE
            return replace(outcome, unconfirmed=why)
        last = outcome.first + len(outcome.ids) - 1
        self._waiting[request] = _Waiting(request, outcome, last, confirm)
        patience = confirm if none_since is None else min(confirm, NONE_PAUSE)
        self._out.set_timer(patience, ConfirmDue(self._topic, request))
        return None

    def set_storage(self, nodes: Sequence[Contact]) -> None:
        """These nodes keep the topic."""
        had_none, self._has_none = self._has_none, not nodes
        self._storage = {
            contact.peer: contact.hints for contact in nodes if contact.peer != self._context.peer
        }
        for peer in [peer for peer in self._watched if peer not in self._storage]:
            # If it keeps the topic again it has to be asked for receipts again: nobody asks it meanwhile.
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
        """There is nobody who could confirm anything."""
        self.none_since = -inf
        if not self._storage:
            self._answer_all()

    def handle_link_up(self, peer: PeerId) -> None:
        """A link is open: ask a storage node for receipts."""
        self._pushed.pop(peer, None)
        if peer in self._watched:
            self._out.send(peer, Watch(self._topic, True))

    def watch_if_owed(self, peer: PeerId) -> None:
        """A link is open to a storage node that knows all we know: it is asked only if a receipt is owed."""
        if self.is_owed(peer):
            self.handle_link_up(peer)
        else:
            self._watched.pop(peer, None)

    def is_owed(self, peer: PeerId) -> bool:
        """Whether this storage node has not confirmed all that was published here."""
        return self.ledger.reached(peer, self._chain) < self.next - 1

    @property
    def is_unconfirmed(self) -> bool:
        """Whether something was published that no storage node has confirmed yet."""
        return self.next > 0 and all(map(self.is_owed, self._storage))

    def handle_receipt(self, receipt: Receipt) -> None:
        """Take a receipt in, which was checked; answer those who waited for it."""
        reached = self.ledger.reached(receipt.receiver, self._chain)
        if reached < 0:
            return
        self._out.record(
            Record(Kind.ACKED, self._topic, device=self._context.device, seq=reached, peer=receipt.receiver)
        )
        for waiting in list(self._waiting.values()):
            if all(self.ledger.reached(peer, self._chain) >= waiting.last for peer in self._storage):
                self._answer(waiting)

    def end_waiting(self, request: int) -> None:
        """Time is up for a caller: tell it what is known."""
        waiting = self._waiting.get(request)
        if waiting is not None:
            self._answer(waiting)

    def push_missing(self, now: float) -> None:
        """Send storage nodes what they lack for longer than a period."""
        self._is_looking = False
        for peer in self._storage:
            reached = self.ledger.reached(peer, self._chain)
            if peer in self._context.links and reached < self._settled and self._is_due(peer, reached):
                self._push(peer, reached + 1, self._settled, now)
                if self._pushed[peer].is_second:
                    # It may have it, and the receipt, or the wish for one, was lost. Once: answers are long.
                    self._out.send(peer, Watch(self._topic, True))
        lacking = any(self.ledger.reached(peer, self._chain) < self.next - 1 for peer in self._storage)
        self._settled = self.next - 1
        if lacking:
            self._look_later()

    def fates(self, last: int) -> tuple[Fate, ...]:
        """What is known of our event of this number at every receiver that is known."""
        receivers = {**dict.fromkeys(self._storage), **dict.fromkeys(self.ledger.receivers)}
        fates = []
        for peer in receivers:
            known = self.ledger.receivers.get(peer)
            arrived = known is not None and known.chains.get(self._chain, -1) >= last
            since = known.since.get(self._chain) if known is not None and arrived else None
            fates.append(Fate(peer, peer in self._storage, since))
        return tuple(fates)

    def leave(self) -> None:
        """Let go of the links to storage nodes, and answer whoever still waits."""
        self._answer_all()
        for peer in self._watched:
            self._out.release(peer, self._purpose)
        self._watched, self._pushed, self._is_looking = {}, {}, False
        self._out.cancel_timer(StorageLookDue(self._topic))

    def _watch_storage(self) -> None:
        """Be told what storage nodes have, from the first publication on."""
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
        """Whether a storage node is sent what it lacks at this look: ever more seldom if it takes nothing.

        It may refuse what we say for good, as after a revocation.
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
        late = Reason.TIMEOUT if None in keepers else None
        told = replace(outcome, fates=fates, unconfirmed=late if keepers else Reason.NO_STORAGE)
        self._out.cancel_timer(ConfirmDue(self._topic, waiting.request))
        self._out.reply(waiting.request, told)

    @property
    def _purpose(self) -> str:
        return f"receipts {self._topic.hex()[:16]}"


def _bursts(tails: Sequence[Tail], most: int) -> Iterator[Sequence[Tail]]:
    """Cut a sequence of tails at the limits of a burst."""
    start, room = 0, BURST_BYTES
    for index, tail in enumerate(tails):
        size = len(tail.body) + _TAIL_OVERHEAD
        if index > start and (size > room or index - start == most):
            yield tails[start:index]
            start, room = index, BURST_BYTES
        room -= size
    yield tails[start:]


def publish(
    stream: Stream,
    context: Context,
    out: Outbox,
    request: int,
    tails: Sequence[Tail],
    confirm: float,
    now: float,
    unsent: Reason | None = None,
) -> None:
    """Say these in a stream; `unsent` is why it has no neighbours.

    Raises `RemoteError` if our own card or the stream's owner forbids it.
    """
    if not tails:
        out.reply(request, Declined(Reason.MALFORMED, "nothing to publish"))
        return
    objection = stream.sealed.objection(tails)
    if objection is not None:
        out.reply(request, objection)
        return
    permit(stream, context, now)
    promises = Promises()
    ids: list[EventId] = []
    if tails[0].kind == MESSAGE and stream.sealed.is_due(now):
        announce(stream, context, stream.sealed.turn(stream.publisher.next, now), promises, now)
    first = stream.publisher.next
    for verified in stream.publisher.sign(stream.sealed.seal(tails, first, stream.publisher.prev)):
        ids += [event.id for event in verified.events]
        _add_own(stream, context, verified, promises, now)
    # The answer goes out after the commit: what this node keeps for others is kept by then.
    kept = (Fate(context.peer, True, now),) if stream.stores else ()
    outcome = Published(stream.topic, first, tuple(ids), len(stream.flood.neighbors), kept, unsent)
    answer = stream.publisher.await_storage(request, outcome, confirm, now)
    if answer is not None:
        promises.reply(request, answer)
    out.committed.extend(promises)


def declare(
    stream: Stream,
    context: Context,
    out: Outbox,
    request: int,
    policy: Policy,
    now: float,
    sealed: bool = False,
) -> None:
    """Set the policy of a stream that is ours. What is sealed stays so: nobody shall find it open one day."""
    if stream.governance.owner != context.author:
        detail = "only the owner of a stream sets its policy: its name begins with the owner's person id"
        out.reply(request, Declined(Reason.NOT_A_PUBLISHER, detail))
        return
    sealer = stream.governance.policy.sealer
    taken_over = sealer is not None and context.cards.revocation_of(context.author, sealer) is not None
    if sealer not in (None, context.device) and not taken_over:
        detail = "another device of yours seals this stream: decide about it there, or revoke that device"
        out.reply(request, Declined(Reason.NOT_ALLOWED, detail))
        return
    if (stream.sealed.is_ours or sealer is not None) and not sealed:
        detail = "this stream is sealed and stays so: declare it sealed again, or another one open"
        out.reply(request, Declined(Reason.NOT_ALLOWED, detail))
        return
    if sealed:
        if policy.publishers:
            detail = "in a sealed stream nobody can publish but the device that seals it: name no others"
            out.reply(request, Declined(Reason.UNSUPPORTED, detail))
            return
        permit(stream, context, now)
        stream.sealed.start(now)
        policy = replace(policy, publishers=(), sealer=context.device)
    tail = stream.governance.tail(policy, int(now * 1000))
    publish(stream, context, out, request, [tail], 0.0, now)


def announce(stream: Stream, context: Context, body: bytes, promises: Promises, now: float) -> None:
    """Tell readers a key: an event of our chain, in a unit of its own, so that it can be had by itself."""
    tail = Tail(None, None, None, None, ANNOUNCEMENT, None, int(now * 1000), None, body)
    for verified in stream.publisher.sign([tail]):
        _add_own(stream, context, verified, promises, now)


def _add_own(stream: Stream, context: Context, verified: Verified, promises: Promises, now: float) -> None:
    """Write a unit of ours; it is sent and delivered when that is durable."""
    chain, due, _ = stream.ingest.accept(verified, now)
    if not due:
        raise InvalidEvent(Reason.FORKED_CHAIN, "our own chain does not go on where it ended")
    stream.flood.distinct += 1
    position = stream.archive.keep(verified, now)
    record = unit_record(Kind.PUBLISHED, verified)
    # No application is handed what only nodes need: whoever asks where it was delivered must know.
    kind = verified.events[0].kind
    promises.record(record if shown(verified, stream.governance.owner) else replace(record, note=kind))
    if stream.flood.neighbors:
        promises.extend(stream.flood.spread(verified, context.card, (), 1, 0, now))
    else:
        stream.publisher.hold_back(verified, promises)
    stream.readers.hand_own(verified, position, promises)
    stream.governance.read(verified)
    stream.keeper.note_written(chain)
    stream.keeper.evict_later()
    stream.announcements.note_news(chain)


def permit(stream: Stream, context: Context, now: float) -> None:
    """Raise `RemoteError` unless we may publish here."""
    if stream.governance.owner != context.author:
        stream.governance.admit(context.author)
    check_dates(context.card, now)
    if context.cards.revocation_of(context.author, context.device) is not None:
        raise RemoteError(Reason.CARD_REVOKED, "this device was revoked by its person")
