"""Following a room's group: operations as they take their place, those that wait, what each has led to."""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.groups import agreement
from linnet.groups.bodies import Add, Body, Create, Keys, decode_body
from linnet.groups.ids import Device
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
from linnet.machine.outbox import Outbox
from linnet.rooms.content import GROUP
from linnet.rooms.encryption.holding import Holding
from linnet.rooms.encryption.opening import Opening
from linnet.rooms.room_store import RoomMemory
from linnet.trace.records import Kind, Record

STUCK = 1_024
"""Operations that wait for others; whoever makes up what they wait for costs us no more than that."""


class Following:
    """The operations of one room's group."""

    def __init__(
        self, room: TopicId, holding: Holding, memory: RoomMemory, opening: Opening, out: Outbox
    ) -> None:
        self._room = room
        self._out = out
        self._holding = holding
        self._keyring = holding.keyring
        self._memory = memory
        self._opening = opening

    def follow_own(self, draft: agreement.Draft, op: EventId, now: float) -> None:
        """Follow an operation of our own that is out."""
        step = agreement.sent(draft, op)
        self._note_body(self._holding.ours, op, draft.content)
        self._note_used(draft.content, step)
        self._take_step(step, now)

    def follow(self, event: Event, now: float) -> None:
        """Follow an operation that has its place."""
        if Device(event.author, event.device) == self._holding.ours:
            self._check_own(event, now)
        else:
            self._take(event, now)

    def _check_own(self, event: Event, now: float) -> None:
        """See that an operation of ours was followed when it was made; or else we have forgotten making it.

        Then the store is an old copy, and to go on with its keys would use some twice: we are added anew.
        """
        state = self._holding.state(now)
        try:
            content = decode_body(event.body)
        except RemoteError as error:  # Somebody else has our device's key.
            self._holding.record_refusal(event, error.reason, f"group: {error.detail}")
            return
        head = None if isinstance(content, Keys) else content.head
        if head is None or head.sender != state.me or head.cseq <= state.cseq:
            return
        self._holding.forget(now)
        detail = "group: this store is older than what it has said"
        self._holding.record_refusal(event, Reason.DESYNCED, detail)

    def _take(self, event: Event, now: float) -> None:
        device = Device(event.author, event.device)
        content: Body | None = None
        try:
            content = decode_body(event.body)
            self._note_body(device, event.id, content)
            step = self._receive(event, now)
        except RemoteError as error:
            self._keyring.keep_stuck(event.id, False)
            if content is not None and self._lets_us_in(content, now):
                # Others take our prekeys for used: we tell new ones, to be added by those.
                self._holding.forget(now)
            self._holding.record_refusal(event, error.reason, f"group: {error.detail}")
            return
        self._note_used(content, step)
        waits = self._holding.is_member and any(isinstance(note, Waits) for note in step.notes)
        if waits and len(self._keyring.stuck) >= STUCK:
            detail = "group: too many operations wait for others"
            self._holding.record_refusal(event, Reason.QUEUE_FULL, detail)
            return
        self._keyring.keep_stuck(event.id, waits)
        self._take_step(step, now)

    def _receive(self, event: Event, now: float) -> agreement.Step:
        device, holding = Device(event.author, event.device), self._holding
        return agreement.receive(holding.state(now), device, event.id, event.body, holding.bundle, now)

    def _lets_us_in(self, content: Body, now: float) -> bool:
        """Whether an operation was to let us in, who are outside, by the prekeys that we have now."""
        ours = (self._holding.ours, self._holding.state(now).prekeys.identity.public)
        return not self._holding.is_member and ours in _let_in(content)

    def _note_used(self, content: Body, step: agreement.Step) -> None:
        """Which prekeys were used, by an operation that counts: one that does not uses up nobody's.

        While we are outside nothing counts; once we have joined all is given again.
        """
        if not any(isinstance(note, Ignored | Waits | Equivocation) for note in step.notes):
            for _, identity in _let_in(content):
                self._keyring.use_identity(identity)

    def _note_body(self, device: Device, op: EventId, content: Body) -> None:
        """What an operation tells apart from the agreement: prekeys."""
        if isinstance(content, Keys):
            self._keyring.keep_bundle(device, op)
            self._holding.version += 1

    def _take_step(self, step: agreement.Step, now: float) -> None:
        """Keep what a step has led to, and do what its notes ask for."""
        self._holding.keep(step.state)
        for note in step.notes:
            self._record_note(note)
            if isinstance(note, EpochReady):
                self._opening.read_epoch(note.member, note.epoch, now)
        if any(isinstance(note, Joined) for note in step.notes):
            for verified in self._memory.events():
                event = verified.events[0]
                if event.kind == GROUP:  # Our own too: of an earlier stay, if there was one.
                    self._take(event, now)
            self._opening.read_again(now)
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
        self._out.record(Record(kind, self._room, reason=reason, note=note))

    def _unstick(self, now: float) -> None:
        """Try what waits for others of the group; whatever goes on calls this again."""
        for stuck in list(self._keyring.stuck):
            event = self._memory.event(stuck)
            if event is None:
                self._keyring.keep_stuck(stuck, False)
            elif self._retry(event, now):
                return

    def _retry(self, event: Event, now: float) -> bool:
        """Try an operation again; False if it still waits."""
        try:
            step = self._receive(event, now)
        except RemoteError as error:
            self._keyring.keep_stuck(event.id, False)
            self._holding.record_refusal(event, error.reason, f"group: {error.detail}")
            return True
        if any(isinstance(note, Waits) for note in step.notes):
            self._holding.keep_keys(step.state)  # It says for what it waits.
            return False
        self._keyring.keep_stuck(event.id, False)
        self._note_used(decode_body(event.body), step)
        self._take_step(step, now)
        return True


def _let_in(content: Body) -> tuple[tuple[Device, bytes], ...]:
    """The devices that an operation lets in, with their identities."""
    if isinstance(content, Create):
        return content.members
    return ((content.device, content.identity),) if isinstance(content, Add) else ()
