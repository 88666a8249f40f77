"""Sending to one relay: what it is to keep, in batches, until it says what became of each.

Nothing here has to survive: our own events are in the log, and what no relay has acknowledged is asked
for again (`GiveUnsent`) whenever a link opens or what did not fit has gone. A batch leaves once what
was written is durable: an event that others saw and a crash took from us would fork our chain.
"""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.limits import MIB
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import RelayOutcome, RelaySend, RelayTaken
from linnet.rooms.relay_notices import GiveMissing, GiveUnsent, Kept, NotKept, Parcel
from linnet.trace.records import Kind, Record

QUEUE_EVENTS = 1024
"""Events that wait for one relay; the others are in the log."""
QUEUE_BYTES = 4 * MIB
"""Bytes of them."""
TRIES = 4
"""Times that an event is sent to a relay that misses something or does not say what became of it."""


class BatchDue(Timer, frozen=True, gc=False):
    """A relay has not said in time what became of a batch."""

    room: TopicId
    relay: PeerId


class Sending:
    """What one relay of a room is to be sent."""

    def __init__(self, room: TopicId, relay: PeerId, config: RoomsConfig, out: Outbox) -> None:
        self._out = out
        self._room = room
        self._relay = relay
        self._config = config
        self._request = 0
        self._not_kept: dict[EventId, None] = {}
        """What it refused: not sent again, the oldest forgotten first."""
        self._reset()

    def _reset(self) -> None:
        self._open = False
        self._queue: dict[EventId, Parcel] = {}
        self._bytes = 0
        self._sent: dict[EventId, Parcel] = {}
        """What was sent and is not answered."""
        self._parked: dict[EventId, Parcel] = {}
        """What waits for control events that the relay lacks."""
        self._tries: dict[EventId, int] = {}
        self._is_short = False
        """Whether there is more to send that is not here."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, and nothing is unanswered."""
        return not (self._queue or self._sent or self._parked)

    def takes(self, event: EventId) -> bool:
        """Whether the relay has not refused this event."""
        return event not in self._not_kept

    def begin(self) -> None:
        """Send anew whatever was not acknowledged, now that the link is open."""
        self._reset()
        self._open = True
        self._ask_for_more()

    def end(self) -> None:
        """Send nothing: the link is gone, or the relay is not used any more."""
        self._reset()
        self._out.cancel_timer(BatchDue(self._room, self._relay))

    def handle_loss(self) -> None:
        """Send all anew to a relay that has lost what it had; what it refused may be another matter now."""
        self._not_kept = {}
        if self._open:
            self._ask_for_more()

    def put(self, parcels: Iterable[Parcel]) -> None:
        """Send these, after what waits already. Without a link they are asked for once there is one."""
        if self._open:
            for parcel in parcels:
                self._add(parcel)
        self._flush()

    def send_unsent(self, parcels: Iterable[Parcel], more: bool) -> None:
        """Send these, which no relay has acknowledged; `more` says whether there are more of them."""
        if not self._open:
            return
        given = list(parcels)
        for parcel in given:
            self._add(parcel)
        # If none of these is on its way, the answer to another question would be the same.
        self._is_short |= more and any(self._holds(parcel.event.id) for parcel in given)
        self._flush()

    def send_missing(self, event: EventId, parcels: Iterable[Parcel]) -> None:
        """Send these first, which the relay lacks, then the event again; none if there are none to send."""
        parked = self._parked.get(event)
        if parked is None:
            return
        first = {parcel.event.id: parcel for parcel in parcels if parcel.event.id not in self._sent}
        first[event] = parked
        for key in first:
            self._parked.pop(key, None)
            self._not_kept.pop(key, None)
        self._queue = first | {key: parcel for key, parcel in self._queue.items() if key not in first}
        self._bytes = sum(parcel.bytes for parcel in self._queue.values())
        self._flush()

    def handle_answer(self, taken: RelayTaken) -> Reason | None:
        """Note what became of a batch; why the relay is of no use, if so."""
        if taken.request != self._request or not self._sent:
            self._out.record(Record(Kind.REJECTED, self._room, peer=self._relay, reason=Reason.STALE))
            return None
        self._out.cancel_timer(BatchDue(self._room, self._relay))
        if taken.reason is not None:
            return taken.reason
        sent, self._sent = self._sent, {}
        for outcome in taken.outcomes:
            parcel = sent.pop(outcome.event, None)
            if parcel is not None:
                self._handle_outcome(parcel, outcome)
        for event, parcel in sent.items():
            # It does not say: perhaps next time.
            self._send_once_more(event, parcel, Reason.UNKNOWN)
        self._flush()
        if self.is_idle and self._is_short:
            self._ask_for_more()
        return None

    def _handle_outcome(self, parcel: Parcel, outcome: RelayOutcome) -> None:
        event = outcome.event
        if outcome.cursor is not None:
            self._tries.pop(event, None)
            kept = Record(
                Kind.ACKED,
                self._room,
                event,
                parcel.event.device,
                parcel.event.seq,
                peer=self._relay,
                note=parcel.event.kind,
            )
            self._out.record(kept)
            self._out.notify(Kept(self._relay, event, outcome.cursor, outcome.reason))
            return
        if not outcome.missing:
            self._give_up(event, outcome.reason or Reason.UNKNOWN)
            return
        tries = self._tries[event] = self._tries.get(event, 0) + 1
        if tries >= TRIES:
            self._give_up(event, Reason.MISSING_DEPENDENCY)
            return
        self._parked[event] = parcel
        self._out.notify(GiveMissing(self._relay, event, outcome.missing))

    def _send_once_more(self, event: EventId, parcel: Parcel, reason: Reason) -> None:
        tries = self._tries[event] = self._tries.get(event, 0) + 1
        if tries >= TRIES:
            self._give_up(event, reason)
        else:
            self._add(parcel, forced=True)

    def _give_up(self, event: EventId, reason: Reason) -> None:
        self._tries.pop(event, None)
        self._not_kept[event] = None
        if len(self._not_kept) > self._config.rejected:
            del self._not_kept[next(iter(self._not_kept))]
        self._out.record(
            Record(Kind.REJECTED, self._room, event, peer=self._relay, reason=reason, note="relay")
        )
        self._out.notify(NotKept(self._relay, event, reason))

    def _add(self, parcel: Parcel, forced: bool = False) -> None:
        """Queue an event, unless it is here or was refused. Past the limit it is asked for later."""
        event = parcel.event.id
        if self._holds(event) or event in self._not_kept:
            return
        full = len(self._queue) >= QUEUE_EVENTS or self._bytes + parcel.bytes > QUEUE_BYTES
        if full and not forced:
            self._is_short = True
            return
        self._queue[event] = parcel
        self._bytes += parcel.bytes

    def _holds(self, event: EventId) -> bool:
        return event in self._queue or event in self._sent or event in self._parked

    def _flush(self) -> None:
        if self._sent or not self._queue:
            return
        size = 0
        for event, parcel in self._queue.items():
            if self._sent and (
                len(self._sent) >= self._config.page_events or size + parcel.bytes > self._config.page_bytes
            ):
                break
            size += parcel.bytes
            self._sent[event] = parcel
        for event in self._sent:
            del self._queue[event]
        self._bytes -= size
        self._request += 1
        batch = list(self._sent.values())
        units = tuple(parcel.unit for parcel in batch)
        promised = self._out.committed
        promised.send(self._relay, RelaySend(self._room, self._request, units, _cards(batch)))
        for parcel in batch:
            promised.record(self._sent_record(parcel))
        self._out.set_timer(self._config.relay_timeout, BatchDue(self._room, self._relay))

    def _sent_record(self, parcel: Parcel) -> Record:
        event = parcel.event
        size = parcel.bytes
        place = (event.device, event.seq)
        return Record(Kind.SENT, self._room, event.id, *place, peer=self._relay, bytes=size, note=event.kind)

    def _ask_for_more(self) -> None:
        self._is_short = False
        self._out.notify(GiveUnsent(self._relay, self._config.page_events))


def _cards(batch: list[Parcel]) -> tuple[Card, ...]:
    """The card of each device once; with every batch, since what the relay has learned it may have lost."""
    cards = {parcel.card.device_key: parcel.card for parcel in batch if parcel.card is not None}
    return tuple(cards.values())
