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

from linnet.core.effects import AfterCommit, CancelTimer, Send, SetTimer
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Tick
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import RelayCursor, Resync, ResyncPage
from linnet.rooms.relay_notices import OWNER, Behind, Forgot, Page, RelayUseEffect
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


class Reading:
    """How far one relay of a room was read."""

    def __init__(self, room: TopicId, relay: PeerId, config: RoomsConfig, cells: Cells) -> None:
        self._room = room
        self._relay = relay
        self._config = config
        self._cells = cells
        kept = cells.get(CURSORS, room + relay)
        self._stored: RelayCursor | None = None if kept is None else _decode(kept)
        self._request = 0
        self._pages = 0
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

    def begin(self) -> list[RelayUseEffect]:
        """The link is open: ask from where we are."""
        self._reset()
        return self._ask()

    def forget(self) -> None:
        """Read from the oldest when reading begins again: something that was read had no room here."""
        self._stored = None
        self._cells.delete(CURSORS, self._room + self._relay)

    def end(self) -> list[RelayUseEffect]:
        """The link is gone, or the relay is not used any more."""
        self._reset()
        return [CancelTimer(self._tick("answer")), CancelTimer(self._tick("look"))]

    def look(self) -> list[RelayUseEffect]:
        """Nothing was asked for long: ask whether the last page was lost. Not worth a record."""
        self._looks = False
        if self._waiting or self._untaken:
            return []
        return self._ask(recorded=False)

    def again(self) -> list[RelayUseEffect]:
        """The relay may know more than when it refused: ask once more."""
        return [] if self.refusal is None or self._waiting else self._ask()

    def page(self, page: ResyncPage) -> tuple[list[RelayUseEffect], Reason | None]:
        """A page came; the second is why the relay is of no use, if so.

        Who is followed and will serve us no longer says so unasked.
        """
        is_ours = page.request == self._request and page.after is None
        if not is_ours or not (self._waiting or page.reason is not None):
            return self._followed(page), None
        self._waiting = False
        effects: list[RelayUseEffect] = [CancelTimer(self._tick("answer"))]
        if not self._quiet or page.units or page.reason is not None:
            effects.append(self._response(page))
        if page.reason is not None:
            return self._refused(page, effects)
        self.answered, self.refusal = True, None
        asked, following = self._cursor, page.next
        if asked is not None and following is not None and following.epoch != asked.epoch:
            # What it has now begins before anything that the old cursor could mean.
            effects += [Forgot(self._relay), *self._hand_over(page, None)]
            return self._restart(effects)
        moves = following is not None and (asked is None or following.position >= asked.position)
        self._standing = self._standing + 1 if following == asked else 0
        if page.more and (not moves or self._standing > _STANDING):
            return [*effects, *self._hand_over(page, None)], Reason.PROTOCOL_ERROR
        self._more = page.more
        return [*effects, *self._hand_over(page, following if moves else asked)], None

    def taken(self, number: int, control: tuple[EventId, ...]) -> list[RelayUseEffect]:
        """The page that was handed over first is taken in, in this transaction; `control` are our heads now.

        Any other page is one of a link that is gone: it will come again.
        """
        if not self._untaken or self._untaken[0][0] != number:
            return []
        _, cursor, heads = self._untaken.popleft()
        if cursor is not None and cursor != self._stored:
            self._stored = cursor
            self._cells.put(CURSORS, self._room + self._relay, _encode(cursor))
        if self._untaken or self._waiting:
            return []
        if self._more or self._again:
            return self._ask()
        effects: list[RelayUseEffect] = []
        if not self._looks:
            self._looks = True
            effects.append(SetTimer(self._config.announce_period, self._tick("look")))
        if any(head not in heads for head in control) and self._compared != (heads, control):
            self._compared = (heads, control)
            effects.append(Behind(self._relay, heads))
        return effects

    def _followed(self, page: ResyncPage) -> list[RelayUseEffect]:
        """A page that was not asked for: it moves the cursor if nothing is missing before it."""
        if page.reason is not None:
            return [self._response(page)]  # An answer to a question that counts no longer.
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
            return [self._record(Kind.DROPPED, dropped, "fetched again later", Reason.QUEUE_FULL)]
        effects = self._hand_over(page, following if fits else None)
        if page.after is not None and not fits and not self._waiting:
            self._again = True
        return [self._response(page), *effects]

    def _hand_over(self, page: ResyncPage, cursor: RelayCursor | None) -> list[RelayUseEffect]:
        if cursor is not None:
            self._cursor = cursor
        self._pages += 1
        self._untaken.append((self._pages, cursor, page.control))
        said = (page.units, page.cards, page.receipts, page.tombstones)
        return [Page(self._relay, self._pages, *said, page.more)]

    def _refused(
        self, page: ResyncPage, effects: list[RelayUseEffect]
    ) -> tuple[list[RelayUseEffect], Reason | None]:
        if page.reason is Reason.CURSOR_EXPIRED and self._cursor is not None:
            if page.oldest is None or page.oldest.epoch != self._cursor.epoch:
                effects.append(Forgot(self._relay))
            return self._restart(effects)
        if page.reason in _PERHAPS_BEHIND and self.refusal is None:
            self.refusal = page.reason
            wait = SetTimer(self._config.relay_timeout, self._tick("answer"))
            return [*effects, wait, Behind(self._relay, page.control)], None
        return effects, page.reason

    def _restart(self, effects: list[RelayUseEffect]) -> tuple[list[RelayUseEffect], Reason | None]:
        """Read from the oldest that it keeps: what it kept for us may be gone, the rest is not."""
        self._restarts += 1
        if self._restarts > _RESTARTS:
            return effects, Reason.CURSOR_EXPIRED
        self._cursor = self._stored = None
        self._cells.delete(CURSORS, self._room + self._relay)
        if self._untaken:
            self._again = True
            return effects, None
        return [*effects, *self._ask()], None

    def _ask(self, recorded: bool = True) -> list[RelayUseEffect]:
        self._request += 1
        self._waiting, self._quiet, self._more, self._again = True, not recorded, False, False
        self._looks = False
        limit = self._config.page_events
        resync = Resync(self._room, self._request, self._cursor, limit, follow=True)
        asked: list[RelayUseEffect] = [self._record(Kind.RESYNC, 0, "resync")] if recorded else []
        wait = SetTimer(self._config.relay_timeout, self._tick("answer"))
        sent = AfterCommit((Send(self._relay, resync),))
        return [*asked, sent, CancelTimer(self._tick("look")), wait]

    def _response(self, page: ResyncPage) -> Record:
        return self._record(Kind.RESYNC, len(page.units), "resync-response", page.reason)

    def _record(self, kind: Kind, events: int, note: str, reason: Reason | None = None) -> Record:
        return Record(kind, self._room, events=events, peer=self._relay, reason=reason, note=note)

    def _tick(self, what: str) -> Tick:
        return Tick(OWNER, what, self._room + self._relay)
