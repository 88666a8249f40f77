"""The keys of one encrypted room at one device: what is sealed, what is opened, who should hold keys.

The room's resolved state says who *should* hold keys, the group who *does*; `guarding` makes the second
follow the first. Every change of the group's state is written in the same commit as the event that
caused it (docs/adr/0014-encrypted-groups.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from linnet.core.errors import InvalidEvent, Refused, RemoteError
from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.delivery.items import Unreadable
from linnet.event.binding import bound_of
from linnet.event.event import Event
from linnet.groups import agreement, sealing
from linnet.groups.bodies import Add, Body, Create, Keys, decode_body
from linnet.groups.ids import Device, MemberId
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
from linnet.groups.prekeys import Bundle
from linnet.groups.state import GroupState, decode_parts, encode_parts
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.content import CONTROL_KINDS, GROUP, HISTORY, Membership, Newcomers
from linnet.rooms.memory import RoomMemory
from linnet.rooms.secrecy.history import history_of
from linnet.rooms.secrecy.keyring import Keyring, Text, Unread
from linnet.rooms.secrecy.outgoing import Sealed
from linnet.trace.records import Kind, Record

HOPEFUL = frozenset({Reason.KEY_MISSING, Reason.UNKNOWN_MEMBER, Reason.WRONG_EPOCH})
"""Why a message cannot be read now and may be later: its key is on its way."""
STUCK = 1_024
"""Operations that wait for others; whoever makes up what they wait for costs us no more than that."""
UNREAD = 10_000
"""Messages that are tried again when keys come; what is beyond that stays unread."""


class Secrecy:
    """The group of one room, as this device has it."""

    def __init__(
        self, room: TopicId, context: Context, control: ControlDag, memory: RoomMemory, newcomers: Newcomers
    ) -> None:
        self._room = room
        self._context = context
        self._control = control
        self._memory = memory
        self.newcomers = newcomers
        self.ours = Device(context.author, context.device)
        self.keyring = Keyring(room, context.store.cells)
        parts = self.keyring.parts
        self._state: GroupState | None = decode_parts(parts) if parts else None
        self._bundles: dict[EventId, Bundle] = {}
        self.repaired: list[int] = []
        """Numbers of events that could not be read when they came, and can now; readers are to be told."""
        self.version = 0
        """Grows whenever something has changed that others may have to act upon."""

    # Who should hold keys, and who does.

    def may_hold(self, device: Device) -> bool:
        """Whether the room's state has this device among its members."""
        view = self._control.view()
        joined = view.membership(device.author) is Membership.JOIN
        return joined and not view.is_relay_person(device.author) and not view.is_revoked(*device)

    def bundle(self, device: Device) -> Bundle | None:
        """The prekeys that a device told last (`linnet.groups.agreement.Directory`)."""
        event = self.keyring.bundles.get(device)
        if event is None:
            return None
        if event not in self._bundles:
            known = self._memory.event(event)
            body = None if known is None else decode_body(known.body)
            if not isinstance(body, Keys):
                return None
            self._bundles[event] = body.bundle
        return self._bundles[event]

    @property
    def known_state(self) -> GroupState | None:
        """The state as it is, for those who only look; None before its first use."""
        return self._state

    @property
    def is_member(self) -> bool:
        """Whether this device is in the group."""
        return self._state is not None and agreement.is_member(self._state)

    @property
    def can_speak(self) -> bool:
        """Whether others can follow what this device seals."""
        return self._state is not None and self.is_member and not agreement.is_desynced(self._state)

    def members(self) -> dict[MemberId, Device]:
        """Who holds keys, as far as this device knows; nobody, if it is not in the group."""
        return agreement.members(self._state) if self._state is not None and self.is_member else {}

    def surplus(self) -> list[MemberId]:
        """Members that hold keys and should not: gone from the room, revoked, or about to come anew."""
        return [member for member, device in self.members().items() if self._is_surplus(member, device)]

    def _is_surplus(self, member: MemberId, device: Device) -> bool:
        if self._state is None or member == self._state.me:
            return False
        if device == self.ours or not self.may_hold(device) or member in self._state.leaving:
            return True  # A second time in the group ourselves: added by two who did not know of each other.
        told, known = self.bundle(device), self._state.history.member(member)
        return told is not None and known is not None and told.identity != known.identity

    def missing(self) -> list[Device]:
        """Devices that should hold keys and do not, and have told prekeys to reach them by."""
        held = set(self.members().values())
        return [
            device
            for device in self.keyring.bundles
            if device not in held and device != self.ours and self.may_hold(device) and self._is_fresh(device)
        ]

    def _is_fresh(self, device: Device) -> bool:
        told = self.bundle(device)
        return told is not None and not self.keyring.is_used(told.identity)

    # The state of the group.

    def state(self, now: float) -> GroupState:
        """The state, from the first use on."""
        if self._state is None:
            self._keep(agreement.begin(self._room, self.ours, self._context.entropy, now))
        assert self._state is not None  # noqa: S101 # just set
        return self._state

    def _keep(self, state: GroupState) -> None:
        """A state that others may have to act upon."""
        self._keep_keys(state)
        self.version += 1

    def _keep_keys(self, state: GroupState) -> None:
        """A state that differs in the keys of messages alone."""
        self._state = state
        self.keyring.keep_state(encode_parts(state))

    def forget(self, now: float) -> None:
        """We are of the room no longer: all keys are gone, and who lets us in again does so by new ones."""
        self._keep(agreement.begin(self._room, self.ours, self._context.entropy, now))

    def sent(self, draft: agreement.Draft, op: EventId, now: float) -> list[Record]:
        """An operation of our own is out."""
        step = agreement.sent(draft, op)
        self._note_body(self.ours, op, draft.content)
        self._note_used(draft.content, step)
        return self._stepped(step, now)

    def placed(self, event: Event, position: int | None, now: float) -> list[Record]:
        """An event has its place: follow it if it is of the group, open it if it is sealed."""
        if event.kind == GROUP:
            if Device(event.author, event.device) == self.ours:
                return self._ours_came(event, now)
            return self._took(event, now)
        if self.seals(event.kind, event.tail.key) and self.keyring.text(event.id) is None:
            records = self._open(event, position, now)
            return [*records, *self._learn_history(event)] if event.kind == HISTORY else records
        return []

    def _ours_came(self, event: Event, now: float) -> list[Record]:
        """An operation of ours, which was followed when it was made; or else we have forgotten making it.

        Then the store is an old copy, and to go on with its keys would use some twice: we are added anew.
        """
        state = self.state(now)
        try:
            content = decode_body(event.body)
        except RemoteError as error:  # Somebody else has our device's key.
            return [self._record(event, error.reason, f"group: {error.detail}")]
        head = None if isinstance(content, Keys) else content.head
        if head is None or head.sender != state.me or head.cseq <= state.cseq:
            return []
        self.forget(now)
        return [self._record(event, Reason.DESYNCED, "group: this store is older than what it has said")]

    def _took(self, event: Event, now: float) -> list[Record]:
        device = Device(event.author, event.device)
        content: Body | None = None
        try:
            content = decode_body(event.body)
            self._note_body(device, event.id, content)
            step = agreement.receive(self.state(now), device, event.id, event.body, self.bundle, now)
        except RemoteError as error:
            self.keyring.keep_stuck(event.id, False)
            if content is not None and self._lets_us_in(content, now):
                self.forget(now)  # Others take our prekeys for used: we tell new ones, to be added by those.
            return [self._record(event, error.reason, f"group: {error.detail}")]
        self._note_used(content, step)
        waits = self.is_member and any(isinstance(note, Waits) for note in step.notes)
        if waits and len(self.keyring.stuck) >= STUCK:
            return [self._record(event, Reason.QUEUE_FULL, "group: too many operations wait for others")]
        self.keyring.keep_stuck(event.id, waits)
        return self._stepped(step, now)

    def _lets_us_in(self, content: Body, now: float) -> bool:
        """Whether an operation was to let us in, who are outside, by the prekeys that we have now."""
        ours = (self.ours, self.state(now).prekeys.identity.public)
        return not self.is_member and ours in _let_in(content)

    def _note_used(self, content: Body, step: agreement.Step) -> None:
        """Which prekeys were used, by an operation that counts: one that does not uses up nobody's.

        While we are outside nothing counts; once we have joined all is given again.
        """
        if not any(isinstance(note, Ignored | Waits | Equivocation) for note in step.notes):
            for _, identity in _let_in(content):
                self.keyring.use_identity(identity)

    def _note_body(self, device: Device, op: EventId, content: Body) -> None:
        """What an operation tells apart from the agreement: prekeys."""
        if isinstance(content, Keys):
            self.keyring.keep_bundle(device, op)
            self.version += 1

    def _stepped(self, step: agreement.Step, now: float) -> list[Record]:
        """Keep what a step has led to, and do what its notes ask for."""
        self._keep(step.state)
        records: list[Record] = []
        again = False
        for note in step.notes:
            records += self._heed(note)
            again = again or isinstance(note, Joined | EpochReady)
        if any(isinstance(note, Joined) for note in step.notes):
            for verified in self._memory.events():
                event = verified.events[0]
                if event.kind == GROUP:  # Our own too: of an earlier stay, if there was one.
                    records += self._took(event, now)
        else:
            records += self._unstick(now)
        return [*records, *self._read_again(now)] if again else records

    def _heed(self, note: Note) -> list[Record]:
        match note:
            case Ignored(reason):
                return [Record(Kind.REJECTED, self._room, reason=reason, note="group")]
            case Desynced(detail) | Lost(_, detail):
                return [Record(Kind.DROPPED, self._room, reason=Reason.DESYNCED, note=detail[:100])]
            case Equivocation():
                return [Record(Kind.REJECTED, self._room, reason=Reason.EQUIVOCATION, note="group")]
            case Unreached(_, reason):
                return [Record(Kind.DROPPED, self._room, reason=reason, note="group: not told to a member")]
            case Joined() | RemovedSelf():
                return [Record(Kind.CONTROL, self._room, note=f"group {type(note).__name__.lower()}")]
            case _:
                return []

    def _unstick(self, now: float) -> list[Record]:
        """Try what waits for others of the group; whatever goes on calls this again."""
        for stuck in list(self.keyring.stuck):
            event = self._memory.event(stuck)
            records = None if event is None else self._retry(event, now)
            if event is None:
                self.keyring.keep_stuck(stuck, False)
            elif records is not None:
                return records
        return []

    def _retry(self, event: Event, now: float) -> list[Record] | None:
        """Try an operation again; None if it still waits."""
        device = Device(event.author, event.device)
        try:
            step = agreement.receive(self.state(now), device, event.id, event.body, self.bundle, now)
        except RemoteError as error:
            self.keyring.keep_stuck(event.id, False)
            return [self._record(event, error.reason, f"group: {error.detail}")]
        if any(isinstance(note, Waits) for note in step.notes):
            self._keep_keys(step.state)  # It says for what it waits.
            return None
        self.keyring.keep_stuck(event.id, False)
        self._note_used(decode_body(event.body), step)
        return self._stepped(step, now)

    # Messages.

    def seals(self, kind: str, key: str | None) -> bool:
        """Whether events of this kind are sealed: all but what carriers and newcomers must understand."""
        return key is None and kind not in CONTROL_KINDS and kind != GROUP

    def seal(self, text: bytes, now: float) -> Sealed:
        """A message to be sealed; `Refused` while the group does not allow it."""
        state, envelope = sealing.envelope(self.state(now), self._context.entropy)
        return Sealed(self._room, self.ours, state, envelope, text)

    def sealed(self, message: Sealed, event: EventId) -> None:
        """A message of ours is out."""
        self._keep_keys(message.state)
        self.keyring.keep_text(event, message.text, self._shown(message.envelope.key))

    def text(self, event: EventId) -> Text | Unread | None:
        """What a sealed event says, or why it cannot be read; None if it was not looked at yet."""
        return self.keyring.text(event)

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

    def _open(self, event: Event, position: int | None, now: float) -> list[Record]:
        device, clear = Device(event.author, event.device), event.tail.clear or b""
        offered = self.keyring.take_offer(event.id)
        if offered is not None and self._open_with(event, offered):
            return []
        place, hope = position or 0, len(self.keyring.unread) < UNREAD
        if not self.is_member:
            self.keyring.keep_why(event.id, Reason.BEFORE_JOINING, place, hope)
            return [self._record(event, Reason.BEFORE_JOINING, "cannot be read")]
        try:
            state, opened = sealing.open_message(
                self.state(now), device, clear, bound_of(event), event.body, now
            )
        except RemoteError as error:
            self.keyring.keep_why(event.id, error.reason, place, hope and error.reason in HOPEFUL)
            return [self._record(event, error.reason, "cannot be read")]
        self._keep_keys(state)
        self.keyring.keep_text(event.id, opened.plaintext, self._shown(opened.key))
        return []

    def shareable(self, newest: int | None) -> list[tuple[EventId, bytes]]:
        """Keys of old messages to be shown to newcomers, oldest first; `Refused` where that is not done."""
        if self.newcomers is not Newcomers.SHARED:
            raise Refused(Reason.NOT_ALLOWED, "this room was founded to be read from one's joining on")
        events = (verified.events[0] for verified in self._memory.events())
        keys = [(event.id, self.keyring.shared_key(event.id)) for event in events if event.kind != HISTORY]
        known = [(event, key) for event, key in keys if key is not None]
        return known if newest is None else known[max(0, len(known) - newest) :]

    def _learn_history(self, event: Event) -> list[Record]:
        """A member shows what was said before: open what is here, and keep keys of what is still to come."""
        text = self.keyring.text(event.id)
        if not isinstance(text, Text):
            return []
        try:
            shown = history_of(text.plaintext).keys
        except InvalidEvent as error:
            return [self._record(event, error.reason, error.detail)]
        for known, key in shown:
            old = self._memory.event(known)
            if old is None:
                self.keyring.offer(known, key)
                continue
            unread = self.keyring.text(known)
            if isinstance(unread, Unread) and self._open_with(old, key):
                self._repair(known, unread.position)
        self.version += 1
        return []

    def _open_with(self, event: Event, key: bytes) -> bool:
        try:
            text = sealing.open_with(key, event.tail.clear or b"", bound_of(event), event.body)
        except RemoteError:
            return False  # A key that does not fit shows nothing; another member may have the right one.
        self.keyring.keep_text(event.id, text, self._shown(key))
        return True

    def _shown(self, key: bytes) -> bytes | None:
        """A message's key, where it may be shown to newcomers: else it is forgotten at once."""
        return key if self.newcomers is Newcomers.SHARED else None

    def _read_again(self, now: float) -> list[Record]:
        """Keys have come: try what could not be read."""
        for event in self._hopes():
            before = self.keyring.text(event.id)
            position = before.position if isinstance(before, Unread) else 0
            self._open(event, position, now)
            if isinstance(self.keyring.text(event.id), Text):
                self._repair(event.id, position)
        return []

    def _repair(self, event: EventId, position: int) -> None:
        self.keyring.repair(event, position)
        self.repaired.append(next(reversed(self.keyring.repaired)))

    def _hopes(self) -> Iterator[Event]:
        for unread in list(self.keyring.unread):
            event = self._memory.event(unread)
            if event is not None:
                yield event

    def _record(self, event: Event, reason: Reason, note: str) -> Record:
        return Record(
            Kind.REJECTED, self._room, event.id, event.device, event.seq, reason=reason, note=note[:100]
        )


def _let_in(content: Body) -> tuple[tuple[Device, bytes], ...]:
    """The devices that an operation lets in, with their identities."""
    if isinstance(content, Create):
        return content.members
    return ((content.device, content.identity),) if isinstance(content, Add) else ()
