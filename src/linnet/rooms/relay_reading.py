"""Reading one relay: page after page from the place that was reached there, then what comes later.

The place is the relay's own cursor, kept for each relay by itself. No clock of anyone takes part, and
what reaches one relay later than another is met at each in its own order, so neither skew nor a
change of relay loses anything (Schichtholz 2024, section 4.3, asks by time instead).

The cursor is stored once what lies before it was taken in, never earlier. A relay is asked with it once it is
durable: by it the relay knows that we have the operations on keys that lie before (docs/adr/0011). So it is
asked again now and then, even if what follows comes without a break.
"""

from __future__ import annotations

from collections import deque

import msgspec

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import RelayCursor, Resync, ResyncPage
from linnet.rooms.relay_notices import Behind, Forgot, Page
from linnet.trace.records import Kind, Record

CURSORS = "relay cursor"
"""The cells of cursors; the key is room and relay."""
_UNTAKEN = 64
"""Pages that may wait to be taken in; what a relay sends unasked beyond that is asked for later."""
_STANDING = 64
"""Pages in a row that may bring receipts and tombstones alone, which have no place in the order of events."""
_RESTARTS = 3
"""Times that reading may begin anew on one link: a relay whose epochs never agree is no use."""
_PERHAPS_BEHIND = (Reason.NOT_A_MEMBER, Reason.BANNED)
"""What a relay may say only because it lacks control events: it is told these, once, before it is left."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(RelayCursor).decode


class PageDue(Timer, frozen=True, gc=False):
    """A relay has not answered in time when it was asked for a page, or told what it may lack."""

    room: TopicId
    relay: PeerId


class LookDue(Timer, frozen=True, gc=False):
    """A relay was asked nothing for long: it is to be seen whether its last page was lost."""

    room: TopicId
    relay: PeerId


class Reading:
    """How far one relay of a room was read."""

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
        self._stored: RelayCursor | None = None if kept is None else _decode(kept)
        self._request = 0
        self._pages = 0
        self.has_lost = False
        """Whether the last page told that the relay has lost what it had."""
        self._reset()

    def _reset(self) -> None:
        self._cursor = self._stored
        """The end of what came without a gap, whether or not it is taken in by now."""
        self._waiting = False
        """Whether a request is unanswered."""
        self._quiet = False
        """Whether it was one that is not recorded."""
        self._more = False
        self._again = False
        """Whether something was missed on the way."""
        self._untaken: deque[tuple[int, RelayCursor | None, tuple[EventId, ...]]] = deque()
        """Number, cursor (if it moves) and control heads of each page that was handed over."""
        self._looks = False
        """Whether a timer runs, after which it is asked again."""
        self._restarts = 0
        self._standing = 0
        self._compared: tuple[tuple[EventId, ...], tuple[EventId, ...]] | None = None
        self.answered = False
        """Whether the relay has answered since the link is open."""
        self.refusal: Reason | None = None
        """Why it will not serve us, while it is told what it may lack."""

    @property
    def cursor(self) -> RelayCursor | None:
        """The durable cursor; None: never read."""
        return self._stored

    @property
    def is_asking(self) -> bool:
        """Whether the relay has still to answer, or to be told what it may lack."""
        return self._waiting or self.refusal is not None

    def begin(self) -> None:
        """Ask from where we are, now that the link is open."""
        self._reset()
        self._ask()

    def forget(self) -> None:
        """Read from the oldest when reading begins again: something that was read had no room here."""
        self._stored = None
        self._cells.delete(CURSORS, self._room + self._relay)

    def end(self) -> None:
        """Wait for nothing: the link is gone, or the relay is not used any more."""
        self._reset()
        self._out.cancel_timer(PageDue(self._room, self._relay))
        self._out.cancel_timer(LookDue(self._room, self._relay))

    def look(self) -> None:
        """Ask whether the last page was lost, after nothing was asked for long. Not worth a record."""
        self._looks = False
        if not (self._waiting or self._untaken):
            self._ask(recorded=False)

    def ask_again(self) -> None:
        """Ask once more a relay that refused: it may know more now."""
        if self.refusal is not None and not self._waiting:
            self._ask()

    def handle_page(self, page: ResyncPage) -> Reason | None:
        """Hand a page over to the room; why the relay is of no use, if so.

        A relay that is followed and will serve us no longer says so unasked.
        """
        self.has_lost = False
        is_ours = page.request == self._request and page.after is None
        if not is_ours or not (self._waiting or page.reason is not None):
            self._follow(page)
            return None
        self._waiting = False
        self._out.cancel_timer(PageDue(self._room, self._relay))
        if not self._quiet or page.units or page.reason is not None:
            self._record_response(page)
        if page.reason is not None:
            return self._handle_refusal(page, page.reason)
        self.answered, self.refusal = True, None
        asked, following = self._cursor, page.next
        if asked is not None and following is not None and following.epoch != asked.epoch:
            # What it has now begins before anything that the old cursor could mean.
            self._tell_loss()
            self._hand_over(page, None)
            return self._restart()
        moves = following is not None and (asked is None or following.position >= asked.position)
        self._standing = self._standing + 1 if following == asked else 0
        if page.more and (not moves or self._standing > _STANDING):
            self._hand_over(page, None)
            return Reason.PROTOCOL_ERROR
        self._more = page.more
        self._hand_over(page, following if moves else asked)
        return None

    def confirm_page(self, number: int, control: tuple[EventId, ...]) -> None:
        """Move on: the page that was handed over first is taken in, in this transaction; `control` are our
        heads now.

        Any other page is one of a link that is gone: it will come again.
        """
        if not self._untaken or self._untaken[0][0] != number:
            return
        _, cursor, heads = self._untaken.popleft()
        if cursor is not None and cursor != self._stored:
            self._stored = cursor
            self._cells.put(CURSORS, self._room + self._relay, _encode(cursor))
        if self._untaken or self._waiting:
            return
        if self._more or self._again:
            self._ask()
            return
        if not self._looks:
            self._looks = True
            self._out.set_timer(self._config.announce_period, LookDue(self._room, self._relay))
        if any(head not in heads for head in control) and self._compared != (heads, control):
            self._compared = (heads, control)
            self._out.notify(Behind(self._relay, heads))

    def _follow(self, page: ResyncPage) -> None:
        """Hand over a page that was not asked for; it moves the cursor if nothing is missing before it."""
        if page.reason is not None:
            self._record_response(page)  # An answer to a question that counts no longer.
            return
        cursor, following = self._cursor, page.next
        fits = (
            page.after is not None
            and page.after == cursor
            and following is not None
            and following.epoch == page.after.epoch
            and following.position >= page.after.position
            and not (self._waiting or self._more or self._again)
        )
        if len(self._untaken) >= _UNTAKEN:
            self._again = True
            dropped = len(page.units)
            self._record(Kind.DROPPED, dropped, "fetched again later", Reason.QUEUE_FULL)
            return
        self._record_response(page)
        self._hand_over(page, following if fits else None)
        if page.after is not None and not fits and not self._waiting:
            self._again = True

    def _hand_over(self, page: ResyncPage, cursor: RelayCursor | None) -> None:
        if cursor is not None:
            self._cursor = cursor
        self._pages += 1
        self._untaken.append((self._pages, cursor, page.control))
        said = (page.units, page.cards, page.receipts, page.tombstones)
        self._out.notify(Page(self._relay, self._pages, *said, page.more))

    def _handle_refusal(self, page: ResyncPage, reason: Reason) -> Reason | None:
        if reason is Reason.CURSOR_EXPIRED and self._cursor is not None:
            if page.oldest is None or page.oldest.epoch != self._cursor.epoch:
                self._tell_loss()
            return self._restart()
        if reason in _PERHAPS_BEHIND and self.refusal is None:
            self.refusal = reason
            self._out.set_timer(self._config.relay_timeout, PageDue(self._room, self._relay))
            self._out.notify(Behind(self._relay, page.control))
            return None
        return reason

    def _tell_loss(self) -> None:
        self.has_lost = True
        self._out.notify(Forgot(self._relay))

    def _restart(self) -> Reason | None:
        """Read from the oldest that it keeps: what it kept for us may be gone, the rest is not."""
        self._restarts += 1
        if self._restarts > _RESTARTS:
            return Reason.CURSOR_EXPIRED
        self._cursor = self._stored = None
        self._cells.delete(CURSORS, self._room + self._relay)
        if self._untaken:
            self._again = True
        else:
            self._ask()
        return None

    def _ask(self, recorded: bool = True) -> None:
        self._request += 1
        self._waiting, self._quiet, self._more, self._again = True, not recorded, False, False
        self._looks = False
        limit = self._config.page_events
        resync = Resync(self._room, self._request, self._cursor, limit, follow=True)
        if recorded:
            self._record(Kind.RESYNC, 0, "resync")
        self._out.committed.send(self._relay, resync)
        self._out.cancel_timer(LookDue(self._room, self._relay))
        self._out.set_timer(self._config.relay_timeout, PageDue(self._room, self._relay))

    def _record_response(self, page: ResyncPage) -> None:
        self._record(Kind.RESYNC, len(page.units), "resync-response", page.reason)

    def _record(self, kind: Kind, events: int, note: str, reason: Reason | None = None) -> None:
        self._out.record(Record(kind, self._room, events=events, peer=self._relay, reason=reason, note=note))
