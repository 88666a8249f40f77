"""The group of one encrypted room at one device, which follows its operations and seals and opens messages.

Messages are sealed when sent, opened when they come, and tried again when keys have come. The text of a
message, or the reason why it cannot be opened, is stored in the same commit as the state without its key.
Rooms that were founded to share history (`Newcomers.SHARED`) also keep the keys of old messages: a member
shows them to newcomers in an event, and each key opens the very event that its author has signed.

An operation is followed as it takes its place; one that depends on another waits for it. The resulting state
is stored in the same commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from linnet.core.errors import InvalidEvent, MalformedMessage, Refused, RemoteError
from linnet.core.ids import EventId, TopicId, WireEventId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.delivery.items import Unreadable
from linnet.event.event import Event, Spot, Tail, bound, bound_of
from linnet.groups import agreement, message_crypto
from linnet.groups.bodies import Add, Body, Create, Keys, decode_body
from linnet.groups.labels import Device, MemberId
from linnet.groups.message_crypto import read_clear
from linnet.groups.notes import (
    Desynced,
    EpochReady,
    Equivocation,
    Ignored,
    Joined,
    Lost,
    Note,
    RemovedSelf,
    Unreached,
    Waits,
)
from linnet.groups.state import GroupState
from linnet.machine.outbox import Outbox
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.encryption.group_state import HeldGroup, Text, Unread
from linnet.rooms.event_types import CONTROL_KINDS, GROUP, HISTORY, Newcomers
from linnet.rooms.room_store import RoomMemory
from linnet.trace.records import Kind, Record

HOPEFUL = frozenset({Reason.KEY_MISSING, Reason.UNKNOWN_MEMBER, Reason.WRONG_EPOCH})
"""The reasons for which a message may become readable later: its key may still come."""
UNREAD = 10_000
"""The most messages that are tried again when keys come; any beyond that stay unread."""


class SealedMessages:
    """Seals and opens the messages of one room."""

    def __init__(
        self, room: TopicId, holding: HeldGroup, memory: RoomMemory, entropy: Entropy, newcomers: Newcomers
    ) -> None:
        self._room = room
        self._holding = holding
        self._texts = holding.texts
        self._memory = memory
        self._entropy = entropy
        self._newcomers = newcomers
        self._waiting = UnreadMessages(memory, self._texts.unread)
        self.repaired: list[int] = []
        """The numbers of events that have become readable and of which subscribers must still be told."""

    def open_event(self, event: Event, position: int | None, now: float) -> None:
        """Open an event of the log, if it is sealed and was not opened before."""
        if not self.seals(event.kind, event.tail.key) or self._texts.text(event.id) is not None:
            return
        reason = self._open(event, position, now)
        if reason is not None:
            self._holding.record_refusal(event, reason, "cannot be read")
        if event.kind == HISTORY:
            self._learn_history(event)

    def seals(self, kind: str, key: str | None) -> bool:
        """Return whether events of this kind are sealed: not those that relays or newcomers must read."""
        return key is None and kind not in CONTROL_KINDS and kind != GROUP

    def seal(self, text: bytes, now: float) -> OutgoingMessage:
        """Prepare a message that is sealed once it is signed; raises `Refused` without keys."""
        state, envelope = message_crypto.envelope(self._holding.state(now), self._entropy)
        return OutgoingMessage(self._room, self._holding.ours, state, envelope, text)

    def sealed(self, message: OutgoingMessage, event: EventId) -> None:
        """Note that a message of ours was published: its key is used up."""
        self._holding.keep_keys(message.state)
        self._texts.keep_text(event, message.text, self._shown(message.envelope.key))

    def forget(self, event: Event) -> None:
        """Delete the text of a redacted message."""
        if self.seals(event.kind, event.tail.key):
            self._texts.forget_text(event.id)
            self._waiting.remove(event)

    def text(self, event: EventId) -> Text | Unread | None:
        """Return the text of a sealed event, or why it cannot be read; None if it was not opened yet."""
        return self._texts.text(event)

    def _text_of(self, event: Event) -> Text | Unread | None:
        """Return the text of an event; open a damaged one again if its key was kept."""
        text = self.text(event.id)
        if text is None or (isinstance(text, Unread) and text.reason is Reason.DAMAGED):
            key = self._texts.shared_key(event.id)
            if key is not None and self._open_with(event, key):
                return self.text(event.id)
        return text

    def readable(self, event: Event) -> bytes:
        """Return the readable body of an event; empty if it cannot be read."""
        shown = self.shown(event)
        return shown.body if isinstance(shown, Event) else b""

    def shown(self, event: Event) -> Event | Unreadable:
        """Return an event with its readable body, or with the reason why it cannot be read."""
        if not self.seals(event.kind, event.tail.key):
            return event
        match self._text_of(event):
            case Text(plaintext):
                return replace(event, tail=replace(event.tail, body=plaintext))
            case Unread(reason):
                return Unreadable(replace(event, tail=replace(event.tail, body=b"")), reason)
            case None:  # Every event is opened when it gets its place: the disk has lost the result.
                return Unreadable(replace(event, tail=replace(event.tail, body=b"")), Reason.DAMAGED)

    def _open(self, event: Event, position: int | None, now: float) -> Reason | None:
        """Open an event and store its text; else store, and return, the reason why it cannot be read."""
        device, clear = Device(event.author, event.device), event.tail.clear or b""
        offered = self._texts.take_offer(event.id)
        if offered is not None and self._open_with(event, offered):
            return None
        if not self._holding.is_member:
            self._keep_why(event, Reason.BEFORE_JOINING, position, may_pass=True)
            return Reason.BEFORE_JOINING
        try:
            state, opened = message_crypto.open_message(
                self._holding.state(now), device, clear, bound_of(event), event.body
            )
        except RemoteError as error:
            self._keep_why(event, error.reason, position, error.reason in HOPEFUL)
            return error.reason
        self._holding.keep_keys(state)
        self._keep_text(event, opened.plaintext, opened.key)
        return None

    def shareable(self, newest: int | None) -> list[tuple[EventId, bytes]]:
        """Return the keys to show to newcomers, oldest first; `Refused` if the room shares no history."""
        if self._newcomers is not Newcomers.SHARED:
            raise Refused(Reason.NOT_ALLOWED, "this room was founded to be read from one's joining on")
        events = (verified.events[0] for verified in self._memory.events())
        keys = [(event.id, self._texts.shared_key(event.id)) for event in events if event.kind != HISTORY]
        known = [(event, key) for event, key in keys if key is not None]
        return known if newest is None else known[max(0, len(known) - newest) :]

    def _learn_history(self, event: Event) -> None:
        """Open old messages with the keys that a member shows; keep the keys of messages still to come."""
        text = self._texts.text(event.id)
        if not isinstance(text, Text):
            return
        try:
            shown = history_of(text.plaintext).keys
        except InvalidEvent as error:
            self._holding.record_refusal(event, error.reason, error.detail)
            return
        for known, key in shown:
            old = self._memory.event(known)
            if old is None:
                self._texts.offer(known, key)
                continue
            unread = self._texts.text(known)
            if isinstance(unread, Unread) and self._open_with(old, key):
                self._repair(known, unread.position)
        self._holding.version += 1

    def _open_with(self, event: Event, key: bytes) -> bool:
        try:
            text = message_crypto.open_with(key, event.tail.clear or b"", bound_of(event), event.body)
        except RemoteError:
            return False  # A key that does not fit proves nothing; another member may show the right one.
        self._keep_text(event, text, key)
        return True

    def _shown(self, key: bytes) -> bytes | None:
        """Return a message's key if it may be shown to newcomers; else None, so that it is not kept."""
        return key if self._newcomers is Newcomers.SHARED else None

    def read_again(self, now: float) -> None:
        """Try all unread messages, now that we are in the group."""
        for event in self._waiting.all():
            self._read_late(event, now)

    def read_epoch(self, member: MemberId, epoch: int, now: float) -> None:
        """Read the messages that waited for an epoch's key, before the next operation is followed.

        Keys are kept for a few epochs only, so a device that catches up has to read as it goes.
        """
        for event in self._waiting.of_epoch(member, epoch):
            self._read_late(event, now)

    def _read_late(self, event: Event, now: float) -> None:
        before = self._texts.text(event.id)
        position = before.position if isinstance(before, Unread) else 0
        self._open(event, position, now)
        if isinstance(self._texts.text(event.id), Text):
            self._repair(event.id, position)

    def _repair(self, event: EventId, position: int) -> None:
        self._texts.repaired.add(event, position)
        self.repaired.append(self._texts.repaired.newest)

    def _keep_text(self, event: Event, text: bytes, key: bytes) -> None:
        self._texts.keep_text(event.id, text, self._shown(key))
        self._waiting.remove(event)

    def _keep_why(self, event: Event, reason: Reason, position: int | None, may_pass: bool) -> None:
        unread = self._texts.unread
        hope = may_pass and (event.id in unread or len(unread) < UNREAD)
        self._texts.keep_why(event.id, reason, position or 0, hope)
        if hope:
            self._waiting.add(event)
        else:
            self._waiting.remove(event)


class OutgoingMessage:
    """A message of our own, which is encrypted once its place in the chain is known."""

    def __init__(
        self, room: TopicId, ours: Device, state: GroupState, envelope: message_crypto.Envelope, text: bytes
    ) -> None:
        self._room = room
        self._ours = ours
        self.state = state
        """The group's state after the message, without the message's key."""
        self.envelope = envelope
        self.text = text

    def fill(self, seq: int, prev: EventId | None, tail: Tail) -> Tail:
        """Encrypt the body of a tail, bound to all its other fields."""
        open_tail = replace(tail, clear=self.envelope.clear, body=b"")
        fields = bound(Spot(self._room, self._ours.author, self._ours.device, seq, prev), open_tail)
        return replace(open_tail, body=self.envelope.seal(self.text, fields))


class UnreadMessages:
    """The unread messages by the epoch whose key they need; at most `UNREAD`."""

    def __init__(self, memory: RoomMemory, unread: Iterable[EventId]) -> None:
        self._memory = memory
        self._epochs: dict[tuple[MemberId, int], dict[EventId, int]] = {}
        for known in unread:
            event = memory.event(known)
            if event is not None:
                self.add(event)

    def add(self, event: Event) -> None:
        """Let a message wait for its epoch; skip one that names none."""
        try:
            member, epoch, index = read_clear(event.tail.clear or b"")
        except MalformedMessage:
            return
        self._epochs.setdefault((member, epoch), {})[event.id] = index

    def remove(self, event: Event) -> None:
        """Remove a message that was read or that never can be."""
        try:
            member, epoch, _ = read_clear(event.tail.clear or b"")
        except MalformedMessage:
            return
        waiting = self._epochs.get((member, epoch), {})
        waiting.pop(event.id, None)
        if not waiting:
            self._epochs.pop((member, epoch), None)

    def of_epoch(self, member: MemberId, epoch: int) -> list[Event]:
        """Return the messages of one epoch in their author's order: few skipped keys are kept."""
        waiting = self._epochs.get((member, epoch), {})
        events = (self._memory.event(known) for known in sorted(waiting, key=waiting.__getitem__))
        return [event for event in events if event is not None]

    def all(self) -> list[Event]:
        """Return all waiting messages, each epoch in order."""
        return [event for member, epoch in list(self._epochs) for event in self.of_epoch(member, epoch)]


KEYS = 2_048
"""The most keys in one event: 160 KiB of the 252 that a body may have."""
_KEY_BYTES = 44

MessageKey = Annotated[bytes, Meta(min_length=_KEY_BYTES, max_length=_KEY_BYTES)]


class History(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The body of an event that shows newcomers the keys of earlier messages."""

    keys: Annotated[tuple[tuple[WireEventId, MessageKey], ...], Meta(min_length=1, max_length=KEYS)]

    def __repr__(self) -> str:
        return f"History({len(self.keys)} keys)"


_decode = msgspec.msgpack.Decoder(History).decode
_encode = msgspec.msgpack.Encoder().encode


def history_bodies(keys: Iterable[tuple[EventId, bytes]]) -> Iterator[bytes]:
    """Divide keys into the bodies of as many events as are needed."""
    page: list[tuple[EventId, bytes]] = []
    for each in keys:
        page.append(each)
        if len(page) == KEYS:
            yield _encode(History(tuple(page)))
            page = []
    if page:
        yield _encode(History(tuple(page)))


def history_of(body: bytes) -> History:
    """Decode the body of a history event; raises `InvalidEvent` if it is malformed."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Without the cause: it could reveal parts of the secret body.
        raise InvalidEvent(Reason.MALFORMED, "the body of a history event") from None


STUCK = 1_024
"""The most operations that wait for others: a limit to forged ones whose dependencies never come."""


class RoomGroup(HeldGroup):
    """The group of one room at this device: follows its operations, and owns the sealed messages."""

    def __init__(
        self, context: Context, control: ControlDag, memory: RoomMemory, newcomers: Newcomers, out: Outbox
    ) -> None:
        super().__init__(context, control, memory, out)
        self.newcomers = newcomers
        self.messages = SealedMessages(control.room, self, memory, context.entropy, newcomers)

    def follow(self, event: Event, position: int | None, now: float) -> None:
        """Follow an event of the log if it is an operation of the group; open it if it is sealed."""
        if event.kind != GROUP:
            self.messages.open_event(event, position, now)
        elif Device(event.author, event.device) == self.ours:
            self._check_own(event, now)
        else:
            self._take(event, now)

    def follow_own(self, draft: agreement.Draft, op: EventId, now: float) -> None:
        """Follow an operation of our own that was published."""
        step = agreement.sent(draft, op)
        self._note_body(self.ours, op, draft.content)
        self._note_used(draft.content, step)
        self._take_step(step, now)

    def _check_own(self, event: Event, now: float) -> None:
        """Check that we followed an operation of ours when we made it; begin anew if we have forgotten it.

        Then the store is an old copy, and to go on with its keys would use some twice: we are added anew.
        """
        state = self.state(now)
        try:
            content = decode_body(event.body)
        except RemoteError as error:  # Somebody else has our device's key.
            self.record_refusal(event, error.reason, f"group: {error.detail}")
            return
        head = None if isinstance(content, Keys) else content.head
        if head is None or head.sender != state.me or head.cseq <= state.cseq:
            return
        self.forget(now)
        detail = "group: this store is older than what it has said"
        self.record_refusal(event, Reason.DESYNCED, detail)

    def _take(self, event: Event, now: float) -> None:
        device = Device(event.author, event.device)
        content: Body | None = None
        try:
            content = decode_body(event.body)
            self._note_body(device, event.id, content)
            step = self._receive(event, now)
        except RemoteError as error:
            self.keyring.keep_stuck(event.id, False)
            if content is not None and self._lets_us_in(content, now):
                # Others take our prekeys for used: we publish new ones, to be added with those.
                self.forget(now)
            self.record_refusal(event, error.reason, f"group: {error.detail}")
            return
        self._note_used(content, step)
        waits = self.is_member and any(isinstance(note, Waits) for note in step.notes)
        if waits and len(self.keyring.stuck) >= STUCK:
            detail = "group: too many operations wait for others"
            self.record_refusal(event, Reason.QUEUE_FULL, detail)
            return
        self.keyring.keep_stuck(event.id, waits)
        self._take_step(step, now)

    def _receive(self, event: Event, now: float) -> agreement.Step:
        device = Device(event.author, event.device)
        return agreement.receive(self.state(now), device, event.id, event.body, now)

    def _lets_us_in(self, content: Body, now: float) -> bool:
        """Return whether an operation was meant to add us, who are outside, with our present prekeys."""
        ours = (self.ours, self.state(now).prekeys.identity.public)
        return not self.is_member and ours in _let_in(content)

    def _note_used(self, content: Body, step: agreement.Step) -> None:
        """Note the prekeys that an operation uses up, if it counts: one that is ignored uses none.

        While we are outside no operation counts; once we have joined, all are processed again.
        """
        if not any(isinstance(note, Ignored | Waits | Equivocation) for note in step.notes):
            for _, identity in _let_in(content):
                self.keyring.use_identity(identity)

    def _note_body(self, device: Device, op: EventId, content: Body) -> None:
        """Note the prekeys that an operation publishes."""
        if isinstance(content, Keys):
            self.keyring.keep_bundle(device, op)
            self.version += 1

    def _take_step(self, step: agreement.Step, now: float) -> None:
        """Store the state after a step, and act on its notes."""
        self.keep(step.state)
        for note in step.notes:
            self._record_note(note)
            if isinstance(note, EpochReady):
                self.messages.read_epoch(note.member, note.epoch, now)
        if any(isinstance(note, Joined) for note in step.notes):
            for verified in self._memory.events():
                event = verified.events[0]
                if event.kind == GROUP:  # Our own too: they may be of an earlier membership.
                    self._take(event, now)
            self.messages.read_again(now)
        else:
            self._unstick(now)

    def _record_note(self, note: Note) -> None:
        match note:
            case Ignored(reason):
                self._record(Kind.REJECTED, reason, "group")
            case Desynced(detail) | Lost(_, detail):
                self._record(Kind.DROPPED, Reason.DESYNCED, detail[:100])
            case Equivocation():
                self._record(Kind.REJECTED, Reason.EQUIVOCATION, "group")
            case Unreached(_, reason):
                self._record(Kind.DROPPED, reason, "group: not told to a member")
            case Joined() | RemovedSelf():
                self._record(Kind.CONTROL, None, f"group {type(note).__name__.lower()}")
            case _:
                pass

    def _record(self, kind: Kind, reason: Reason | None, note: str) -> None:
        self._out.record(Record(kind, self._control.room, reason=reason, note=note))

    def _unstick(self, now: float) -> None:
        """Retry waiting operations; each success calls this again."""
        for stuck in list(self.keyring.stuck):
            event = self._memory.event(stuck)
            if event is None:
                self.keyring.keep_stuck(stuck, False)
            elif self._retry(event, now):
                return

    def _retry(self, event: Event, now: float) -> bool:
        """Retry an operation; return False if it still waits."""
        try:
            step = self._receive(event, now)
        except RemoteError as error:
            self.keyring.keep_stuck(event.id, False)
            self.record_refusal(event, error.reason, f"group: {error.detail}")
            return True
        if any(isinstance(note, Waits) for note in step.notes):
            self.keep_keys(step.state)  # The state notes what the operation waits for.
            return False
        self.keyring.keep_stuck(event.id, False)
        self._note_used(decode_body(event.body), step)
        self._take_step(step, now)
        return True


def _let_in(content: Body) -> tuple[tuple[Device, bytes], ...]:
    """Return the devices that an operation adds, with their identities."""
    if isinstance(content, Create):
        return content.members
    return ((content.device, content.identity),) if isinstance(content, Add) else ()
