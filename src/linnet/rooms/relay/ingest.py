"""The intake of events at a relay, which finds each event known, refused, waiting, or kept.

The checks, in this order: Was it seen before? May its source send it? Is it signed? Are its control heads
known? Does the state at them allow it? Does the current state allow it? Is there room? A message has to pass
all of them. A control event that fails only against the current state is kept and passed on, a few of each
author a day.

An event names the control events that its author knew. Without them nobody can judge whether it is allowed,
so it waits while they are fetched (`control_fetch`), for a bounded time, among a bounded number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from linnet.core.effects import AfterCommit, Send
from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import AuthorId, EventId, PeerId, TopicId
from linnet.core.limits import MIB
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.event.event import Event, Unverified, Verified
from linnet.event.signing import encode_unit, recall_unit
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox, Promise
from linnet.rooms.auth.event_auth import Refusal
from linnet.rooms.event_types import CONTROL_KINDS, CREATE, GROUP
from linnet.rooms.messages import RelayCursor, RelayOutcome, RelayTaken
from linnet.rooms.relay.access_control import Caller, why_not_joiner, why_not_member, why_not_sender
from linnet.rooms.relay.admission import RelaySetting
from linnet.rooms.relay.control_fetch import ControlFetch
from linnet.rooms.relay.event_cache import GroupRetention
from linnet.trace.records import Kind, Record

CardsByDevice = dict[bytes, Card]
_STRANGER = 8
"""The most events that wait of a peer that is no member as far as we know."""
_WAITERS = 16
"""The most requests that wait for the same event."""

NO_EVENT = EventId(bytes(32))
"""Stands for the id of a unit that is no event."""
_FORGERIES = frozenset({Reason.BAD_SIGNATURE, Reason.MALFORMED})
_SOFT_FAILED = "relay.soft"
_DAY = 86_400


class Ingest:
    """Checks and stores the events that reach one room."""

    def __init__(self, setting: RelaySetting, fetch: ControlFetch, groups: GroupRetention) -> None:
        self._setting = setting
        self._out = setting.out
        self._dag = groups.dag
        self._cache = groups.cache
        self._fetch = fetch
        self._groups = groups
        self._pending = PendingEvents(setting.config.park_events)
        self._allowance = Allowance(self._dag.room, setting.context.store.cells, setting.config.soft_failed)
        self.soft_failed = 0
        """The number of control events since the start that were kept although they failed softly."""
        self.rejected = 0
        """The number of events since the start that the room's rules refused."""

    @property
    def waiting(self) -> int:
        """The number of events that wait for control events."""
        return len(self._pending)

    def take_unit(
        self, unit: Unverified, cards: CardsByDevice, origin: Origin, turn: Turn, now: float
    ) -> None:
        """Judge an arriving event, and keep it, let it wait, or refuse it."""
        try:
            event = recall_unit(unit).events[0]
        except (InvalidEvent, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._record_received(unit, None, origin)
            turn.refuse_event([origin], None, Reason.MALFORMED)
            return
        self._record_received(unit, event, origin)
        if self._is_known(event, origin, turn):
            return
        missing = self._dag.missing(event.tail.control or ())
        reason = _malformed(unit, event, self._dag.room)
        if reason is None and not missing:
            reason = self._why_barred(event, origin)
        elif reason is None and not self._is_patient(event, origin):
            reason = Reason.MISSING_DEPENDENCY
        if reason is not None:
            turn.refuse_event([origin], event, reason, missing)
            return
        try:
            verified, card = self._verify(unit, cards)
        except RemoteError as error:
            turn.refuse_event([origin], event, error.reason)
            return
        self._judge(verified, card, [origin], turn, now)
        self._judge_ready(turn, now)

    def give_up(self, events: list[EventId], turn: Turn) -> None:
        """Refuse the events that wait for control events that cannot be had."""
        for pending in self._pending.give_up(events):
            missing = tuple(pending.missing)
            turn.refuse_event(pending.origins, pending.event, Reason.MISSING_DEPENDENCY, missing)

    def stop(self, turn: Turn, reason: Reason) -> None:
        """Refuse all waiting events, for a reason: the room is not served any more."""
        for pending in self._pending.give_up(self._fetch.sought):
            turn.refuse_event(pending.origins, pending.event, reason)
        self._allowance.forget()

    def _record_received(self, unit: Unverified, event: Event | None, origin: Origin) -> None:
        self._out.record(
            Record(
                Kind.RECEIVED,
                self._dag.room,
                None if event is None else event.id,
                unit.device,
                unit.seq,
                peer=origin.caller.peer,
                bytes=sum(map(len, unit.tails)),
                note=None if event is None else event.kind,
            )
        )

    def _is_known(self, event: Event, origin: Origin, turn: Turn) -> bool:
        """Return whether an event was seen before, and answer it if so, without trusting the new copy."""
        position = self._cache.position(event.id)
        gone = self._cache.tombstones.reason(event.id) if position is None else None
        if position is not None or gone is not None:
            self._out.record(
                Record(
                    Kind.DUPLICATE, self._dag.room, event.id, event.device, event.seq, peer=origin.caller.peer
                )
            )
            cursor = None if position is None else RelayCursor(self._setting.epoch, position)
            turn.tell_outcome([origin], event.id, cursor, gone or Reason.DUPLICATE)
            return True
        pending = self._pending.get(event.id)
        if pending is None:
            return False
        if origin.request is not None and len(pending.origins) < _WAITERS and origin.caller.linked:
            pending.origins.append(origin)
        else:
            missing = tuple(pending.missing)[:32]
            turn.tell_outcome([origin], event.id, None, Reason.MISSING_DEPENDENCY, missing)
        return True

    def _is_patient(self, event: Event, origin: Origin) -> bool:
        """Return whether to process an event further that we cannot judge yet.

        A stranger may be a member by a control event that we lack, which shows once it has come. But checking
        signatures is work, of which strangers get little.
        """
        if self._why_barred(event, origin) is None:
            return True
        return self._pending.count_of(origin.caller.peer) < _STRANGER

    def _why_barred(self, event: Event, origin: Origin) -> Reason | None:
        if origin.relay or origin.request is None:
            return None
        return why_not_sender(self._dag.view(), origin.caller, event)

    def _verify(self, unit: Unverified, cards: CardsByDevice) -> tuple[Verified, Card]:
        """Check a unit by the card of its device. A new card is stored once an event of it is kept.

        Expiry stops new links, never earlier events: the dates of the card are not checked here.
        """
        card = self._setting.context.cards.find(unit.author, unit.device)
        if card is None:
            card = cards.get(unit.author + unit.device)
            if card is None:
                raise InvalidEvent(Reason.UNKNOWN_DEVICE, "no card came with the device's first event")
            self._setting.context.card_check(card)
        return self._setting.context.verify(unit, card), card

    def _judge(self, verified: Verified, card: Card, origins: list[Origin], turn: Turn, now: float) -> None:
        event = verified.events[0]
        missing = self._dag.missing(event.tail.control or ())
        if missing:
            self._let_wait(PendingEvent(verified, card, origins[0], missing), turn, now)
            return
        control = event.kind in CONTROL_KINDS
        refusal = self._dag.judge(event)
        if refusal is not None:
            self._reject_event(event, origins, refusal, turn, needed=event.id in self._fetch.sought)
        elif origins[0].request is None and not control:
            # An event names it as a control head, and it is no control event: no event may build on it.
            wrong = Refusal(Reason.NOT_ALLOWED, f"{event.kind}: is no control event")
            self._reject_event(event, origins, wrong, turn, needed=True)
        elif (reason := self._late_ticket(event, origins, now)) is not None:
            turn.refuse_event(origins, event, reason)
        elif control:
            self._take_control(verified, card, origins, turn, now)
        else:
            self._take_other(verified, card, origins, turn, now)

    def _let_wait(self, pending: PendingEvent, turn: Turn, now: float) -> None:
        caller, missing = pending.origins[0].caller, tuple(pending.missing)
        if not caller.linked:
            turn.refuse_event(pending.origins, pending.event, Reason.MISSING_DEPENDENCY, missing)
        elif self._pending.add(pending):
            member = pending.origins[0].relay or why_not_member(self._dag.view(), caller) is None
            self._fetch.seek_events(missing, caller.peer, now, member)
        else:
            turn.refuse_event(pending.origins, pending.event, Reason.QUEUE_FULL, missing)

    def _reject_event(
        self, event: Event, origins: list[Origin], refusal: Refusal, turn: Turn, needed: bool
    ) -> None:
        self.rejected += 1
        turn.refuse_event(origins, event, refusal.reason)
        if event.kind in CONTROL_KINDS or needed:
            self._dag.reject(event.id, refusal)
            self._settle(event.id)

    def _late_ticket(self, event: Event, origins: list[Origin], now: float) -> Reason | None:
        """Return why a join is refused, or None: only the joiner itself sends it, with an expired ticket."""
        reasons = [None if origin.relay else why_not_joiner(event, origin.caller, now) for origin in origins]
        return reasons[0] if None not in reasons else None

    def _take_control(
        self, verified: Verified, card: Card, origins: list[Origin], turn: Turn, now: float
    ) -> None:
        event = verified.events[0]
        excess = self._dag.excess(event, self._setting.rooms.max_control)
        if excess is Reason.QUOTA or (excess is not None and not self._is_needed(event)):
            turn.refuse_event(origins, event, excess, note="control")
            return
        doubt = self._dag.doubt(event)
        if doubt is not None:
            if not self._is_needed(event) and not self._allowance.spend(event.author, now):
                turn.refuse_event(origins, event, Reason.TOO_MANY, note="soft_failed")
                return
            self.soft_failed += 1
            self._record_soft_failure(event, origins)
        self._setting.context.cards.learn(card)
        self._dag.add(event)
        from_peer = not any(origin.relay for origin in origins)
        position = self._cache.keep_control(verified, from_peer, now)
        turn.changed = True
        reason = None if doubt is None else Reason.SOFT_FAILED
        self._note_kept(verified, position, origins, from_peer, reason, turn)
        self._settle(event.id)

    def _take_other(
        self, verified: Verified, card: Card, origins: list[Origin], turn: Turn, now: float
    ) -> None:
        event = verified.events[0]
        doubt = self._dag.doubt(event)
        if doubt is not None:
            turn.refuse_event(origins, event, doubt.reason, note=f"{event.kind}: {Reason.SOFT_FAILED}")
            return
        if not self._make_room(event, len(encode_unit(verified.unit))):
            turn.refuse_event(origins, event, Reason.QUOTA)
            return
        self._setting.context.cards.learn(card)
        from_peer = not any(origin.relay for origin in origins)
        position = self._cache.keep(verified, from_peer, now)
        if event.kind == GROUP:
            self._groups.note_kept(event, position)
        self._note_kept(verified, position, origins, from_peer, None, turn)

    def _make_room(self, event: Event, size: int) -> bool:
        """Remove old events until a new one may be stored; return False if it may not."""
        if event.kind == GROUP:
            return self._groups.make_room(event.author, size)
        if self._cache.usage.share_of(event.author).bytes + size > self._setting.config.sender_bytes:
            return False
        return self._cache.make_room(size, self._setting.config.room_bytes)

    def _note_kept(
        self,
        verified: Verified,
        position: int,
        origins: list[Origin],
        from_peer: bool,
        reason: Reason | None,
        turn: Turn,
    ) -> None:
        event, source = verified.events[0], origins[0].caller.peer
        turn.promise_record(
            Record(
                Kind.STORED, self._dag.room, event.id, event.device, event.seq, peer=source, note=event.kind
            )
        )
        turn.tell_outcome(origins, event.id, RelayCursor(self._setting.epoch, position), reason)
        turn.fresh.append(Fresh(position, event.id, verified.unit, source))
        turn.forwards = turn.forwards or from_peer

    def _record_soft_failure(self, event: Event, origins: list[Origin]) -> None:
        peer, place = origins[0].caller.peer, (event.id, event.device, event.seq)
        reason, note = Reason.SOFT_FAILED, event.kind
        self._out.record(Record(Kind.REJECTED, self._dag.room, *place, peer=peer, reason=reason, note=note))

    def _is_needed(self, event: Event) -> bool:
        """Return whether an event of another author, who is a member now, waits for this one to be judged.

        The author counts as another if the device of this event was revoked: the person's own later events
        may build on what the stolen device sent before anybody knew.
        """
        view = self._dag.view()
        is_stolen = view.is_revoked(event.author, event.device)
        return any(
            (is_stolen or waiting.author != event.author) and view.is_member(waiting.author, waiting.device)
            for waiting in self._pending.waiting_for(event.id)
        )

    def _settle(self, event: EventId) -> None:
        self._fetch.note_found(event)
        self._pending.settle(event)

    def _judge_ready(self, turn: Turn, now: float) -> None:
        while self._pending.ready:
            pending = self._pending.ready.popleft()
            barred = [
                reason for origin in pending.origins if (reason := self._why_barred(pending.event, origin))
            ]
            if len(barred) == len(pending.origins):
                turn.refuse_event(pending.origins, pending.event, barred[0])
            else:
                self._judge(pending.verified, pending.card, pending.origins, turn, now)


def _malformed(unit: Unverified, event: Event, room: TopicId) -> Reason | None:
    """Return why a unit is malformed or of another room, from its form alone; None if it is not."""
    if event.topic != room:
        return Reason.UNKNOWN_ROOM
    if len(unit.tails) != 1 or event.seq is None or not event.tail.control or event.kind == CREATE:
        return Reason.MALFORMED
    return None


class _Open(Struct):
    waiting: int
    signed: bool = False
    """Whether a signed statement is wanted with the answer."""
    outcomes: list[RelayOutcome] = []


class Answers:
    """The unanswered requests of one room. Each is answered once the fate of all its events is known.

    Each of them has a waiting event, so their number is bounded.
    """

    def __init__(self, room: TopicId) -> None:
        self._room = room
        self._open: dict[tuple[Caller, int], _Open] = {}

    def open_request(
        self, caller: Caller, request: int, events: int, signed: bool = False
    ) -> RelayTaken | None:
        """Note a request with a number of events; return the answer at once if there are none."""
        if not events:
            return RelayTaken(self._room, request, (), None)
        self._open[caller, request] = _Open(events, signed)
        return None

    def wants_statement(self, caller: Caller, request: int) -> bool:
        """Return whether the answer to a request is to be signed."""
        found = self._open.get((caller, request))
        return found is not None and found.signed

    def settle_event(self, origin: Origin, outcome: RelayOutcome) -> RelayTaken | None:
        """Note the outcome of one event; return the request's answer if it was the last."""
        if origin.request is None:
            return None
        key = (origin.caller, origin.request)
        found = self._open.get(key)
        if found is None:
            return None
        found.outcomes.append(outcome)
        found.waiting -= 1
        if found.waiting:
            return None
        del self._open[key]
        return RelayTaken(self._room, origin.request, tuple(found.outcomes), None)

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget the requests of a peer whose link is gone: it will send unanswered events again."""
        for key in [key for key in self._open if key[0].peer == peer]:
            del self._open[key]


class Fresh(NamedTuple):
    """An event that was just stored."""

    position: int
    event: EventId
    unit: Unverified
    source: PeerId
    """The peer that sent it, and need not be told."""


def _as_is(taken: RelayTaken) -> RelayTaken:
    return taken


class Turn:
    """The promises and answers of one input. All promises wait for one commit, after all other effects."""

    def __init__(
        self, room: TopicId, answers: Answers, out: Outbox, sign: Callable[[RelayTaken], RelayTaken] = _as_is
    ) -> None:
        """`sign` adds the relay's signed statement to an answer."""
        self._room = room
        self._answers = answers
        self._out = out
        self._sign = sign
        self._promises: list[Promise] = []
        """Effects that promise that an event is kept, to follow the commit."""
        self.replies: list[RelayTaken] = []
        """The answers for callers without a link."""
        self.fresh: list[Fresh] = []
        self.forwards = False
        """Whether an event came that must be forwarded to the other relays."""
        self.changed = False
        """Whether a control event came, so that the state may have changed."""

    def promise_send(self, peer: PeerId, message: Message) -> None:
        """Send a message after the commit."""
        self._promises.append(Send(peer, message))

    def promise_record(self, record: Record) -> None:
        """Write a record to the trace after the commit."""
        self._promises.append(record)

    def tell_outcome(
        self,
        origins: list[Origin],
        event: EventId,
        cursor: RelayCursor | None,
        reason: Reason | None,
        missing: tuple[EventId, ...] = (),
    ) -> None:
        """Tell the outcome of an event to all callers that wait for it."""
        outcome = RelayOutcome(event, cursor, reason, missing)
        for origin in origins:
            signed = origin.request is not None and self._answers.wants_statement(
                origin.caller, origin.request
            )
            taken = self._answers.settle_event(origin, outcome)
            if taken is not None and signed and origin.caller.linked:
                taken = self._sign(taken)
            self.give_answer(origin.caller, taken)

    def give_answer(self, caller: Caller, taken: RelayTaken | None) -> None:
        """Give an answer, unless it is None: over the link after the commit, else as one of `replies`."""
        if taken is None:
            return
        if caller.linked:
            self.promise_send(caller.peer, taken)
        else:
            self.replies.append(taken)

    def refuse_event(
        self,
        origins: list[Origin],
        event: Event | None,
        reason: Reason,
        missing: tuple[EventId, ...] = (),
        note: str | None = None,
    ) -> None:
        """Record that an event is refused, blame the source of a forged one, and tell why."""
        source = origins[0].caller.peer
        record = Record(Kind.REJECTED, self._room, peer=source, reason=reason, note=note)
        if event is not None:
            record = replace(
                record, event=event.id, device=event.device, seq=event.seq, note=note or event.kind
            )
        self._out.record(record)
        if reason in _FORGERIES:
            self._out.blame(source, reason)
        self.tell_outcome(origins, NO_EVENT if event is None else event.id, None, reason, missing[:32])

    def finish(self) -> None:
        """Put all promises into the outbox, behind one commit."""
        if self._promises:
            self._out.add(AfterCommit(tuple(self._promises)))
            self._promises = []


class Allowance:
    """Limits the control events of one author a day that fail only against the current state.

    Control DAGs have to converge, so such events are kept and passed on. But a banned person can make valid
    events on old branches for ever; a few a day are more than honest clocks and partitions need. The counts
    of a room are kept over restarts.
    """

    def __init__(self, room: TopicId, cells: Cells, most: int) -> None:
        self._room = room
        self._cells = cells
        self._most = most

    def spend(self, author: AuthorId, now: float) -> bool:
        """Count one more event of an author; return whether it is allowed."""
        today = int(now // _DAY)
        day, count = self._read(author)
        count = count if day == today else 0
        if count >= self._most:
            return False
        value = today.to_bytes(4, "big") + (count + 1).to_bytes(4, "big")
        self._cells.put(_SOFT_FAILED, self._room + author, value)
        return True

    def forget(self) -> None:
        """Forget the counts of a room that is not served any more."""
        for key, _ in list(self._cells.scan(_SOFT_FAILED)):
            if key.startswith(self._room):
                self._cells.delete(_SOFT_FAILED, key)

    def _read(self, author: AuthorId) -> tuple[int, int]:
        kept = self._cells.get(_SOFT_FAILED, self._room + author)
        return (0, 0) if kept is None else (int.from_bytes(kept[:4], "big"), int.from_bytes(kept[4:], "big"))


BYTES = 16 * MIB
"""The most bytes of the waiting events of one room."""
SHARE = 4
"""One peer may fill at most the waiting places divided by this, so that it cannot shut out the others."""


class Origin(NamedTuple):
    """The source of an event, and the request that waits for its outcome."""

    caller: Caller
    relay: bool
    """Whether the link shows that it came from a relay of the room: then it is not forwarded."""
    request: int | None
    """The request to answer; None if we fetched the event."""


class PendingEvent:
    """An event that waits for control events."""

    __slots__ = ("card", "missing", "origins", "size", "verified")

    def __init__(self, verified: Verified, card: Card, origin: Origin, missing: Iterable[EventId]) -> None:
        self.verified = verified
        self.card = card
        """The card of the device that signed it."""
        self.origins = [origin]
        """The origins that wait for its outcome; the first one brought it."""
        self.missing = dict.fromkeys(missing)
        self.size = sum(map(len, verified.unit.tails))

    @property
    def event(self) -> Event:
        """The event."""
        return self.verified.events[0]


class PendingEvents:
    """The waiting events of one room."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._events: dict[EventId, PendingEvent] = {}
        self._waiting: dict[EventId, dict[EventId, None]] = {}
        """The waiting events by the control event that they lack."""
        self._bytes = 0
        self._per_peer: dict[PeerId, int] = {}
        self.ready: deque[PendingEvent] = deque()
        """The events that wait no more, and must be judged."""

    def __len__(self) -> int:
        return len(self._events)

    def count_of(self, peer: PeerId) -> int:
        """Return the number of waiting events that this peer brought."""
        return self._per_peer.get(peer, 0)

    def add(self, pending: PendingEvent) -> bool:
        """Let an event wait; return False if there is no room for it."""
        peer = pending.origins[0].caller.peer
        if (
            len(self._events) >= self._most
            or self._bytes + pending.size > BYTES
            or SHARE * self.count_of(peer) >= self._most
        ):
            return False
        self._events[pending.event.id] = pending
        self._bytes += pending.size
        self._per_peer[peer] = self.count_of(peer) + 1
        for each in pending.missing:
            self._waiting.setdefault(each, {})[pending.event.id] = None
        return True

    def get(self, event: EventId) -> PendingEvent | None:
        """Return the pending event; None if it does not wait."""
        return self._events.get(event)

    def waiting_for(self, event: EventId) -> list[Event]:
        """Return the events that wait for this one."""
        return [self._events[each].event for each in self._waiting.get(event, ())]

    def settle(self, event: EventId) -> None:
        """Note that a control event is known or refused; events that need no other become ready."""
        for each in self._waiting.pop(event, ()):
            pending = self._events[each]
            del pending.missing[event]
            if not pending.missing:
                self.ready.append(self._remove(each))

    def give_up(self, events: Iterable[EventId]) -> list[PendingEvent]:
        """Remove and return the events that wait for control events which cannot be had."""
        needing = dict.fromkeys(each for event in events for each in self._waiting.get(event, ()))
        return [self._remove(each) for each in needing]

    def _remove(self, event: EventId) -> PendingEvent:
        pending = self._events.pop(event)
        self._bytes -= pending.size
        peer = pending.origins[0].caller.peer
        self._per_peer[peer] -= 1
        if not self._per_peer[peer]:
            del self._per_peer[peer]
        for each in pending.missing:
            waiting = self._waiting.get(each)
            if waiting is not None:
                waiting.pop(event, None)
                if not waiting:
                    del self._waiting[each]
        return pending
