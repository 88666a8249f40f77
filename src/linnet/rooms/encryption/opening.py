"""Messages of an encrypted room: sealed as they go out, opened as they come, and again when keys have come.

What a message says is kept when it is opened, in the same commit as the state that has forgotten its key;
so is why it cannot be.
"""

from __future__ import annotations

from msgspec.structs import replace

from linnet.core.errors import InvalidEvent, Refused, RemoteError
from linnet.core.ids import EventId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.delivery.items import Unreadable
from linnet.event.binding import bound_of
from linnet.event.event import Event
from linnet.groups import sealing
from linnet.groups.ids import Device, MemberId
from linnet.rooms.content import CONTROL_KINDS, GROUP, HISTORY, Newcomers
from linnet.rooms.encryption.history import history_of
from linnet.rooms.encryption.holding import Holding
from linnet.rooms.encryption.keyring import Text, Unread
from linnet.rooms.encryption.outgoing import Sealed
from linnet.rooms.encryption.waiting import Waiting
from linnet.rooms.room_store import RoomMemory

HOPEFUL = frozenset({Reason.KEY_MISSING, Reason.UNKNOWN_MEMBER, Reason.WRONG_EPOCH})
"""Why a message cannot be read now and may be later: its key is on its way."""
UNREAD = 10_000
"""Messages that are tried again when keys come; what is beyond that stays unread."""


class Opening:
    """What is said in one room, sealed and open."""

    def __init__(
        self, room: TopicId, holding: Holding, memory: RoomMemory, entropy: Entropy, newcomers: Newcomers
    ) -> None:
        self._room = room
        self._holding = holding
        self._keyring = holding.keyring
        self._memory = memory
        self._entropy = entropy
        self._newcomers = newcomers
        self._waiting = Waiting(memory, self._keyring.unread)
        self.repaired: list[int] = []
        """Numbers of events that could not be read when they came, and can now; readers are to be told."""

    def open_event(self, event: Event, position: int | None, now: float) -> None:
        """Open an event that has its place, if it is sealed and was not opened before."""
        if not self.seals(event.kind, event.tail.key) or self._keyring.text(event.id) is not None:
            return
        reason = self._open(event, position, now)
        if reason is not None:
            self._holding.record_refusal(event, reason, "cannot be read")
        if event.kind == HISTORY:
            self._learn_history(event)

    def seals(self, kind: str, key: str | None) -> bool:
        """Whether events of this kind are sealed: all but what carriers and newcomers must understand."""
        return key is None and kind not in CONTROL_KINDS and kind != GROUP

    def seal(self, text: bytes, now: float) -> Sealed:
        """A message to be sealed; `Refused` while the group does not allow it."""
        state, envelope = sealing.envelope(self._holding.state(now), self._entropy)
        return Sealed(self._room, self._holding.ours, state, envelope, text)

    def sealed(self, message: Sealed, event: EventId) -> None:
        """A message of ours is out."""
        self._holding.keep_keys(message.state)
        self._keyring.keep_text(event, message.text, self._shown(message.envelope.key))

    def forget(self, event: Event) -> None:
        """A message was taken back: nothing of what it said stays here."""
        if self.seals(event.kind, event.tail.key):
            self._keyring.forget_text(event.id)
            self._waiting.remove(event)

    def text(self, event: EventId) -> Text | Unread | None:
        """What a sealed event says, or why it cannot be read; None if it was not looked at yet."""
        return self._keyring.text(event)

    def readable(self, event: Event) -> bytes:
        """What an event says, as far as it can be read here; nothing of one that cannot be."""
        shown = self.shown(event)
        return shown.body if isinstance(shown, Event) else b""

    def shown(self, event: Event) -> Event | Unreadable:
        """An event as people are to see it: what it says, or that it cannot be read, and why."""
        if not self.seals(event.kind, event.tail.key):
            return event
        match self.text(event.id):
            case Text(plaintext):
                return replace(event, tail=replace(event.tail, body=plaintext))
            case Unread(reason):
                return Unreadable(replace(event, tail=replace(event.tail, body=b"")), reason)
            case None:
                return Unreadable(replace(event, tail=replace(event.tail, body=b"")), Reason.BEFORE_JOINING)

    def _open(self, event: Event, position: int | None, now: float) -> Reason | None:
        """Keep what an event says; or keep, and return, why it cannot be read."""
        device, clear = Device(event.author, event.device), event.tail.clear or b""
        offered = self._keyring.take_offer(event.id)
        if offered is not None and self._open_with(event, offered):
            return None
        if not self._holding.is_member:
            self._keep_why(event, Reason.BEFORE_JOINING, position, may_pass=True)
            return Reason.BEFORE_JOINING
        try:
            state, opened = sealing.open_message(
                self._holding.state(now), device, clear, bound_of(event), event.body, now
            )
        except RemoteError as error:
            self._keep_why(event, error.reason, position, error.reason in HOPEFUL)
            return error.reason
        self._holding.keep_keys(state)
        self._keep_text(event, opened.plaintext, opened.key)
        return None

    def shareable(self, newest: int | None) -> list[tuple[EventId, bytes]]:
        """Keys of old messages to be shown to newcomers, oldest first; `Refused` where that is not done."""
        if self._newcomers is not Newcomers.SHARED:
            raise Refused(Reason.NOT_ALLOWED, "this room was founded to be read from one's joining on")
        events = (verified.events[0] for verified in self._memory.events())
        keys = [(event.id, self._keyring.shared_key(event.id)) for event in events if event.kind != HISTORY]
        known = [(event, key) for event, key in keys if key is not None]
        return known if newest is None else known[max(0, len(known) - newest) :]

    def _learn_history(self, event: Event) -> None:
        """Open what a member shows of what was said before, and keep keys of what is still to come."""
        text = self._keyring.text(event.id)
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
                self._keyring.offer(known, key)
                continue
            unread = self._keyring.text(known)
            if isinstance(unread, Unread) and self._open_with(old, key):
                self._repair(known, unread.position)
        self._holding.version += 1

    def _open_with(self, event: Event, key: bytes) -> bool:
        try:
            text = sealing.open_with(key, event.tail.clear or b"", bound_of(event), event.body)
        except RemoteError:
            return False  # A key that does not fit shows nothing; another member may have the right one.
        self._keep_text(event, text, key)
        return True

    def _shown(self, key: bytes) -> bytes | None:
        """A message's key, where it may be shown to newcomers: else it is forgotten at once."""
        return key if self._newcomers is Newcomers.SHARED else None

    def read_again(self, now: float) -> None:
        """We are in the group: try whatever could not be read."""
        for event in self._waiting.all():
            self._read_late(event, now)

    def read_epoch(self, member: MemberId, epoch: int, now: float) -> None:
        """The key of an epoch is here: read what waited for it, before the next operation is followed.

        Keys are kept for a few epochs only, so whoever catches up reads as it goes.
        """
        for event in self._waiting.of_epoch(member, epoch):
            self._read_late(event, now)

    def _read_late(self, event: Event, now: float) -> None:
        before = self._keyring.text(event.id)
        position = before.position if isinstance(before, Unread) else 0
        self._open(event, position, now)
        if isinstance(self._keyring.text(event.id), Text):
            self._repair(event.id, position)

    def _repair(self, event: EventId, position: int) -> None:
        self._keyring.repair(event, position)
        self.repaired.append(next(reversed(self._keyring.repaired)))

    def _keep_text(self, event: Event, text: bytes, key: bytes) -> None:
        self._keyring.keep_text(event.id, text, self._shown(key))
        self._waiting.remove(event)

    def _keep_why(self, event: Event, reason: Reason, position: int | None, may_pass: bool) -> None:
        unread = self._keyring.unread
        hope = may_pass and (event.id in unread or len(unread) < UNREAD)
        self._keyring.keep_why(event.id, reason, position or 0, hope)
        if hope:
            self._waiting.add(event)
        else:
            self._waiting.remove(event)
