"""The session of a member with one relay of a room: it reads pages there, and uploads batches.

It reads page after page from a durable cursor, then new events as they come. The cursor is the relay's own,
kept for each relay separately. No clock is involved, and each relay delivers events in its own order of
arrival, so neither clock skew nor a change of relay loses anything (Schichtholz 2024, section 4.3, asks by
time instead). The cursor is stored once the events before it were taken in, never earlier. It is sent once it
is durable, since it tells the relay that we have all operations on keys before it (docs/adr/0011). So the
relay is asked again now and then, even if new events come without a break.

It uploads one batch at a time, until the relay says which events it has kept. Nothing of this has to survive
a restart: our own events are in the log, and the room is asked again for events that no relay has
acknowledged (`GiveUnsent`) whenever a link opens or the queue has emptied. A batch is sent once its events
are durable: if others saw an event that we lost in a crash, our chain would fork.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec
from msgspec import Struct, field

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.limits import MIB
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.event.event import Event, Unverified
from linnet.identity.cards import Card
from linnet.machine.outbox import Notice, Outbox
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import (
    RelayCursor,
    RelayOutcome,
    RelaySend,
    RelayTaken,
    Resync,
    ResyncPage,
    RoomReceipt,
    RoomTimer,
    Tombstone,
)
from linnet.trace.records import Kind, Record

CURSORS = "relay cursor"
"""The cells of cursors; the key is room and relay."""
_UNTAKEN = 64
"""The most pages that wait to be taken in; pushed pages beyond that are requested later."""
_STANDING = 64
"""The most pages in a row with only receipts and tombstones, which do not move the cursor."""
_RESTARTS = 3
"""How often reading may begin anew on one link: a relay whose epochs never agree is of no use."""
_PERHAPS_BEHIND = (Reason.NOT_A_MEMBER, Reason.BANNED)
"""Refusals that missing control events may cause: these are sent once before the relay is given up."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(RelayCursor).decode


class Page(Notice, frozen=True, gc=False):
    """A page of stored events: the room verifies and takes them in, then calls `RelayClient.confirm_page`."""

    relay: PeerId
    number: int
    """A number that distinguishes the pages of one relay."""
    units: tuple[Unverified, ...]
    cards: tuple[Card, ...]
    receipts: tuple[RoomReceipt, ...]
    tombstones: tuple[Tombstone, ...]
    control: tuple[EventId, ...]
    """The heads of the relay's control DAG."""
    more: bool
    """Whether the relay has more events that we have not seen."""
    named: tuple[EventId, ...] = ()
    """The events that the relay's signed statement says are within the page."""


class Behind(Notice, frozen=True, gc=False):
    """A relay's control DAG differs from ours: answer with `RelayClient.send_to` and events beyond its heads.

    Heads that we do not know only show that the relay knows more than we do. No heads: it refused us without
    naming its heads; our own membership is enough, since it asks for the events that it misses.
    """

    relay: PeerId
    heads: tuple[EventId, ...]


class Forgot(Notice, frozen=True, gc=False):
    """A relay has lost its store: nothing counts as kept there any more."""

    relay: PeerId


class PageDue(RoomTimer, frozen=True, gc=False):
    """Timer: a relay has not answered in time a request for a page, or events that it may lack."""

    relay: PeerId


class LookDue(RoomTimer, frozen=True, gc=False):
    """Timer: a relay was not asked for a long time, and its last page may have been lost."""

    relay: PeerId


class _ReadingLink(Struct):
    """The state of reading one relay over one link."""

    cursor: RelayCursor | None
    """The end of the pages that came without a gap, whether or not the room has taken them in."""
    waiting: bool = False
    """Whether a request is unanswered."""
    quiet: bool = False
    """Whether the last request was one that is not recorded."""
    more: bool = False
    again: bool = False
    """Whether a page was missed, so that the relay must be asked again."""
    untaken: deque[tuple[int, RelayCursor | None, tuple[EventId, ...]]] = field(default_factory=deque)
    """The number, cursor (if it moves) and control heads of each page that the room has not taken in yet."""
    looks: bool = False
    """Whether a timer runs after which the relay is asked again."""
    quiet_from: RelayCursor | None = None
    """The position past which the relay has shown nothing. We ask from there, so that one signed statement
    covers all of it."""
    restarts: int = 0
    standing: int = 0
    compared: tuple[tuple[EventId, ...], tuple[EventId, ...]] | None = None
    answered: bool = False
    """Whether the relay has answered since the link opened."""
    refusal: Reason | None = None
    """Why the relay refuses us, while we send it control events that it may lack."""


class RelayReading:
    """Reads one relay of a room, page by page, from its cursor on."""

    def __init__(
        self,
        room: TopicId,
        relay: PeerId,
        config: RoomsConfig,
        cells: Cells,
        out: Outbox,
    ) -> None:
        self._out = out
        self._room = room
        self._relay = relay
        self._config = config
        self._cells = cells
        kept = cells.get(CURSORS, room + relay)
        self.cursor: RelayCursor | None = None if kept is None else _decode(kept)
        """The durable cursor; None if the relay was never read."""
        self._request = 0
        self._pages = 0
        self.has_lost = False
        """Whether the last page showed that the relay has lost its store."""
        self._link = _ReadingLink(self.cursor)

    @property
    def answered(self) -> bool:
        """Whether the relay has answered since the link opened."""
        return self._link.answered

    @property
    def refusal(self) -> Reason | None:
        """The reason why the relay refuses us, while we send it control events that it may lack."""
        return self._link.refusal

    @property
    def is_asking(self) -> bool:
        """Whether the relay's answer is due, or control events that it may lack are still to be sent."""
        return self._link.waiting or self._link.refusal is not None

    def begin(self) -> None:
        """Ask for the page after our cursor, now that the link is open."""
        self._link = _ReadingLink(self.cursor)
        self._ask()

    def forget(self) -> None:
        """Read from the oldest event the next time: an event from the relay was dropped here."""
        self.cursor = None
        self._cells.delete(CURSORS, self._room + self._relay)

    def end(self) -> None:
        """Cancel all timers: the link is gone, or the relay is no longer used."""
        self._link = _ReadingLink(self.cursor)
        self._out.cancel_timer(PageDue(self._room, self._relay))
        self._out.cancel_timer(LookDue(self._room, self._relay))

    def look(self) -> None:
        """Ask, after a long pause, whether the last page was lost; the request is not recorded."""
        self._link.looks = False
        if not (self._link.waiting or self._link.untaken):
            self._ask(recorded=False)

    def ask_soon(self) -> None:
        """Ask once more when the pages so far are taken in: the last answer was older than it could be."""
        self._link.again = True

    def ask_again(self) -> None:
        """Ask once more a relay that refused: it may know more now."""
        if self._link.refusal is not None and not self._link.waiting:
            self._ask()

    def handle_page(self, page: ResyncPage) -> Reason | None:
        """Hand a page over to the room; return why the relay is of no use, if so.

        A relay that we follow and that stops serving us says so without a request.
        """
        self.has_lost = False
        is_ours = page.request == self._request and page.after is None
        if not is_ours or not (self._link.waiting or page.reason is not None):
            self._follow(page)
            return None
        self._link.waiting = False
        self._out.cancel_timer(PageDue(self._room, self._relay))
        if not self._link.quiet or page.units or page.reason is not None:
            self._record_response(page)
        if page.reason is not None:
            return self._handle_refusal(page, page.reason)
        self._link.answered, self._link.refusal = True, None
        asked, following = self._link.cursor, page.next
        if asked is not None and following is not None and following.epoch != asked.epoch:
            # The relay's new store begins before any position that the old cursor could mean.
            self._tell_loss()
            self._hand_over(page, None)
            return self._restart()
        moves = following is not None and (asked is None or following.position >= asked.position)
        self._link.standing = self._link.standing + 1 if following == asked else 0
        if page.more and (not moves or self._link.standing > _STANDING):
            self._hand_over(page, None)
            return Reason.PROTOCOL_ERROR
        self._link.more = page.more
        self._hand_over(page, following if moves else asked)
        return None

    def confirm_page(self, number: int, control: tuple[EventId, ...]) -> None:
        """Go on: the room has taken in the oldest page, in this transaction; `control` are our heads now.

        A page with any other number came over an earlier link: it will come again.
        """
        if not self._link.untaken or self._link.untaken[0][0] != number:
            return
        _, cursor, heads = self._link.untaken.popleft()
        if cursor is not None and cursor != self.cursor:
            self.cursor = cursor
            self._cells.put(CURSORS, self._room + self._relay, _encode(cursor))
        if self._link.untaken or self._link.waiting:
            return
        if self._link.more or self._link.again:
            self._ask()
            return
        if not self._link.looks:
            self._link.looks = True
            self._out.set_timer(self._config.announce_period, LookDue(self._room, self._relay))
        if any(head not in heads for head in control) and self._link.compared != (heads, control):
            self._link.compared = (heads, control)
            self._out.notify(Behind(self._relay, heads))

    def _follow(self, page: ResyncPage) -> None:
        """Hand over a pushed page; it moves the cursor if no page is missing before it."""
        if page.reason is not None:
            self._record_response(page)  # An answer to an outdated request.
            return
        cursor, following = self._link.cursor, page.next
        fits = (
            page.after is not None
            and page.after == cursor
            and following is not None
            and following.epoch == page.after.epoch
            and following.position >= page.after.position
            and not (self._link.waiting or self._link.more or self._link.again)
        )
        if len(self._link.untaken) >= _UNTAKEN:
            self._link.again = True
            dropped = len(page.units)
            self._record(Kind.DROPPED, dropped, "fetched again later", Reason.QUEUE_FULL)
            return
        self._record_response(page)
        self._hand_over(page, following if fits else None)
        if page.after is not None and not fits and not self._link.waiting:
            self._link.again = True

    def _hand_over(self, page: ResyncPage, cursor: RelayCursor | None) -> None:
        if cursor is not None:
            self._link.cursor = cursor
        self._pages += 1
        self._link.untaken.append((self._pages, cursor, page.control))
        said = (page.units, page.cards, page.receipts, page.tombstones)
        named = () if page.said is None else tuple(each.event for each in page.said.held)
        self._note_quiet(page, named)
        self._out.notify(Page(self._relay, self._pages, *said, page.control, page.more, named))

    def _note_quiet(self, page: ResyncPage, named: tuple[EventId, ...]) -> None:
        """Note from where on the relay has shown nothing: its next statement should reach from there."""
        if page.said is None or page.said.reach is None or page.units or named or page.next is None:
            self._link.quiet_from = None
        elif self._link.quiet_from is None:
            self._link.quiet_from = RelayCursor(page.next.epoch, page.said.reach.after)

    def _handle_refusal(self, page: ResyncPage, reason: Reason) -> Reason | None:
        if reason is Reason.CURSOR_EXPIRED and self._link.cursor is not None:
            if page.oldest is None or page.oldest.epoch != self._link.cursor.epoch:
                self._tell_loss()
            return self._restart()
        if reason in _PERHAPS_BEHIND and self._link.refusal is None:
            self._link.refusal = reason
            self._out.set_timer(self._config.relay_timeout, PageDue(self._room, self._relay))
            self._out.notify(Behind(self._relay, page.control))
            return None
        return reason

    def _tell_loss(self) -> None:
        self.has_lost = True
        self._out.notify(Forgot(self._relay))

    def _restart(self) -> Reason | None:
        """Read from the oldest stored event, since the cursor is no longer valid."""
        self._link.restarts += 1
        if self._link.restarts > _RESTARTS:
            return Reason.CURSOR_EXPIRED
        self._link.cursor = self.cursor = self._link.quiet_from = None
        self._cells.delete(CURSORS, self._room + self._relay)
        if self._link.untaken:
            self._link.again = True
        else:
            self._ask()
        return None

    def _ask(self, recorded: bool = True) -> None:
        self._request += 1
        self._link.waiting, self._link.quiet, self._link.more, self._link.again = (
            True,
            not recorded,
            False,
            False,
        )
        self._link.looks = False
        limit = self._config.page_events
        cursor = self._link.cursor
        if self._link.quiet_from is not None and cursor is not None:
            cursor = self._link.quiet_from
        resync = Resync(self._room, self._request, cursor, limit, follow=True, signed=True)
        if recorded:
            self._record(Kind.RESYNC, 0, "resync")
        self._out.committed.send(self._relay, resync)
        self._out.cancel_timer(LookDue(self._room, self._relay))
        self._out.set_timer(self._config.relay_timeout, PageDue(self._room, self._relay))

    def _record_response(self, page: ResyncPage) -> None:
        self._record(Kind.RESYNC, len(page.units), "resync-response", page.reason)

    def _record(self, kind: Kind, events: int, note: str, reason: Reason | None = None) -> None:
        self._out.record(Record(kind, self._room, events=events, peer=self._relay, reason=reason, note=note))


QUEUE_EVENTS = 1024
"""The most events that wait for one relay; further ones stay in the log."""
QUEUE_BYTES = 4 * MIB
"""The most bytes of the events that wait for one relay."""
TRIES = 4
"""How often an event is sent to a relay that lacks control events for it or omits it from its answer."""


class Parcel(Struct, frozen=True, gc=False):
    """An event to upload to relays, with the card that is needed to verify it."""

    event: Event
    unit: Unverified
    card: Card | None

    @property
    def bytes(self) -> int:
        """The bytes of the event, without the few of its framing."""
        return sum(map(len, self.unit.tails))


class GiveUnsent(Notice, frozen=True, gc=False):
    """Answer with `RelayClient.send_unsent`: the oldest of our events that no relay is known to
    keep, unless everyone has them."""

    relay: PeerId
    limit: int


class GiveMissing(Notice, frozen=True, gc=False):
    """Answer with `RelayClient.send_missing`: control events that a relay lacks to judge an event."""

    relay: PeerId
    event: EventId
    missing: tuple[EventId, ...]


class Kept(Notice, frozen=True, gc=False):
    """A relay keeps an event, durably."""

    relay: PeerId
    event: EventId
    cursor: RelayCursor
    reason: Reason | None
    """A further remark: ``soft_failed`` or ``duplicate``."""


class NotKept(Notice, frozen=True, gc=False):
    """A relay does not keep an event; it is not sent there again."""

    relay: PeerId
    event: EventId
    reason: Reason


class BatchDue(RoomTimer, frozen=True, gc=False):
    """Timer: a relay has not answered a batch in time."""

    relay: PeerId


class _UploadLink(Struct):
    """The state of the uploads to one relay over one link."""

    is_open: bool = False
    waiting: dict[EventId, Parcel] = {}
    bytes: int = 0
    """The bytes of the waiting events."""
    sent: dict[EventId, Parcel] = {}
    """Events that were sent and are not answered."""
    doubtful: dict[EventId, None] = {}
    """Those of them that the relay may have refused before it judged otherwise."""
    parked: dict[EventId, Parcel] = {}
    """Events that wait for control events that the relay lacks."""
    tries: dict[EventId, int] = {}
    is_short: bool = False
    """Whether the room has more events to send that are not queued."""


class RelayUpload:
    """Uploads events to one relay of a room, one batch after the other."""

    def __init__(self, room: TopicId, relay: PeerId, config: RoomsConfig, out: Outbox) -> None:
        self._out = out
        self._room = room
        self._relay = relay
        self._config = config
        self._request = 0
        self._not_kept: dict[EventId, None] = {}
        """Refused events, which are not sent again; the oldest is forgotten first."""
        self._link = _UploadLink()

    @property
    def is_idle(self) -> bool:
        """Whether no event waits or is unanswered."""
        return not (self._link.waiting or self._link.sent or self._link.parked)

    def takes(self, event: EventId) -> bool:
        """Return whether the relay has not refused this event."""
        return event not in self._not_kept

    def begin(self) -> None:
        """Ask the room for all events that were not acknowledged, now that the link is open."""
        self._link = _UploadLink(is_open=True)
        self._ask_for_more()

    def end(self) -> None:
        """Forget the queue: the link is gone, or the relay is not used any more."""
        self._link = _UploadLink()
        self._out.cancel_timer(BatchDue(self._room, self._relay))

    def send_again(self) -> None:
        """Send all events again, also refused ones: the relay has lost its store, or judges otherwise now."""
        self._not_kept = {}
        self._link.doubtful = dict.fromkeys(self._link.sent)
        if self._link.is_open:
            self._ask_for_more()

    def put(self, parcels: Iterable[Parcel]) -> None:
        """Queue events. Without a link nothing is queued: the room is asked for them once there is one."""
        if self._link.is_open:
            for parcel in parcels:
                self._add(parcel)
        self._flush()

    def send_unsent(self, parcels: Iterable[Parcel], more: bool) -> None:
        """Queue events that no relay has acknowledged; `more` says whether there are more of them."""
        if not self._link.is_open:
            return
        given = list(parcels)
        for parcel in given:
            self._add(parcel)
        # If none of these is queued, another request would bring the same events.
        self._link.is_short |= more and any(self._holds(parcel.event.id) for parcel in given)
        self._flush()

    def send_missing(self, event: EventId, parcels: Iterable[Parcel]) -> None:
        """Send events that the relay lacks, then the event that needs them."""
        parked = self._link.parked.get(event)
        if parked is None:
            return
        first = {parcel.event.id: parcel for parcel in parcels if parcel.event.id not in self._link.sent}
        first[event] = parked
        for key in first:
            self._link.parked.pop(key, None)
            self._not_kept.pop(key, None)
        self._link.waiting = first | {
            key: parcel for key, parcel in self._link.waiting.items() if key not in first
        }
        self._link.bytes = sum(parcel.bytes for parcel in self._link.waiting.values())
        self._flush()

    def handle_answer(self, taken: RelayTaken) -> Reason | None:
        """Note the events of a batch that a relay has kept; return why the relay is of no use, if so."""
        if taken.request != self._request or not self._link.sent:
            self._out.record(Record(Kind.REJECTED, self._room, peer=self._relay, reason=Reason.STALE))
            return None
        self._out.cancel_timer(BatchDue(self._room, self._relay))
        if taken.reason is not None:
            return taken.reason
        sent, self._link.sent = self._link.sent, {}
        for outcome in taken.outcomes:
            parcel = sent.pop(outcome.event, None)
            if parcel is not None:
                self._handle_outcome(parcel, outcome)
        for event, parcel in sent.items():
            # The relay omitted this event from its answer: perhaps it answers the next time.
            self._send_once_more(event, parcel, Reason.UNKNOWN)
        self._link.doubtful = {}
        self._flush()
        if self.is_idle and self._link.is_short:
            self._ask_for_more()
        return None

    def _handle_outcome(self, parcel: Parcel, outcome: RelayOutcome) -> None:
        event = outcome.event
        if outcome.cursor is not None:
            self._link.tries.pop(event, None)
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
            if event in self._link.doubtful:
                self._add(parcel, forced=True)
            else:
                self._give_up(event, outcome.reason or Reason.UNKNOWN)
            return
        tries = self._link.tries[event] = self._link.tries.get(event, 0) + 1
        if tries >= TRIES:
            self._give_up(event, Reason.MISSING_DEPENDENCY)
            return
        self._link.parked[event] = parcel
        self._out.notify(GiveMissing(self._relay, event, outcome.missing))

    def _send_once_more(self, event: EventId, parcel: Parcel, reason: Reason) -> None:
        tries = self._link.tries[event] = self._link.tries.get(event, 0) + 1
        if tries >= TRIES:
            self._give_up(event, reason)
        else:
            self._add(parcel, forced=True)

    def _give_up(self, event: EventId, reason: Reason) -> None:
        self._link.tries.pop(event, None)
        self._not_kept[event] = None
        if len(self._not_kept) > self._config.rejected:
            del self._not_kept[next(iter(self._not_kept))]
        self._out.record(
            Record(Kind.REJECTED, self._room, event, peer=self._relay, reason=reason, note="relay")
        )
        self._out.notify(NotKept(self._relay, event, reason))

    def _add(self, parcel: Parcel, forced: bool = False) -> None:
        """Queue an event, unless it is queued or was refused. Past the limit it is requested later."""
        event = parcel.event.id
        if self._holds(event) or event in self._not_kept:
            return
        full = len(self._link.waiting) >= QUEUE_EVENTS or self._link.bytes + parcel.bytes > QUEUE_BYTES
        if full and not forced:
            self._link.is_short = True
            return
        self._link.waiting[event] = parcel
        self._link.bytes += parcel.bytes

    def _holds(self, event: EventId) -> bool:
        return event in self._link.waiting or event in self._link.sent or event in self._link.parked

    def _flush(self) -> None:
        if self._link.sent or not self._link.waiting:
            return
        size = 0
        for event, parcel in self._link.waiting.items():
            if self._link.sent and (
                len(self._link.sent) >= self._config.page_events
                or size + parcel.bytes > self._config.page_bytes
            ):
                break
            size += parcel.bytes
            self._link.sent[event] = parcel
        for event in self._link.sent:
            del self._link.waiting[event]
        self._link.bytes -= size
        self._request += 1
        batch = list(self._link.sent.values())
        units = tuple(parcel.unit for parcel in batch)
        promised = self._out.committed
        promised.send(self._relay, RelaySend(self._room, self._request, units, _cards(batch), signed=True))
        for parcel in batch:
            promised.record(self._sent_record(parcel))
        self._out.set_timer(self._config.relay_timeout, BatchDue(self._room, self._relay))

    def _sent_record(self, parcel: Parcel) -> Record:
        event = parcel.event
        size = parcel.bytes
        place = (event.device, event.seq)
        return Record(Kind.SENT, self._room, event.id, *place, peer=self._relay, bytes=size, note=event.kind)

    def _ask_for_more(self) -> None:
        self._link.is_short = False
        self._out.notify(GiveUnsent(self._relay, self._config.page_events))


def _cards(batch: list[Parcel]) -> tuple[Card, ...]:
    """Return the card of each device; every batch has them, since the relay may have lost its own."""
    cards = {parcel.card.device_key: parcel.card for parcel in batch if parcel.card is not None}
    return tuple(cards.values())
