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
from linnet.rooms.content import GROUP
from linnet.rooms.memory import RoomMemory
from linnet.rooms.secrecy.holding import Holding
from linnet.rooms.secrecy.opening import Opening
from linnet.trace.records import Kind, Record

STUCK = 1_024
"""Operations that wait for others; whoever makes up what they wait for costs us no more than that."""


class Following:
    """The operations of one room's group."""

    def __init__(self, room: TopicId, holding: Holding, memory: RoomMemory, opening: Opening) -> None:
        self._room = room
        self._holding = holding
        self._keyring = holding.keyring
        self._memory = memory
        self._opening = opening

    def sent(self, draft: agreement.Draft, op: EventId, now: float) -> list[Record]:
        """An operation of our own is out."""
        step = agreement.sent(draft, op)
        self._note_body(self._holding.ours, op, draft.content)
        self._note_used(draft.content, step)
        return self._stepped(step, now)

    def came(self, event: Event, now: float) -> list[Record]:
        """An operation has its place."""
        if Device(event.author, event.device) == self._holding.ours:
            return self._ours_came(event, now)
        return self._took(event, now)

    def _ours_came(self, event: Event, now: float) -> list[Record]:
        """An operation of ours, which was followed when it was made; or else we have forgotten making it.

        Then the store is an old copy, and to go on with its keys would use some twice: we are added anew.
        """
        state = self._holding.state(now)
        try:
            content = decode_body(event.body)
        except RemoteError as error:  # Somebody else has our device's key.
            return [self._holding.refusal(event, error.reason, f"group: {error.detail}")]
        head = None if isinstance(content, Keys) else content.head
        if head is None or head.sender != state.me or head.cseq <= state.cseq:
            return []
        self._holding.forget(now)
        detail = "group: this store is older than what it has said"
        return [self._holding.refusal(event, Reason.DESYNCED, detail)]

    def _took(self, event: Event, now: float) -> list[Record]:
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
            return [self._holding.refusal(event, error.reason, f"group: {error.detail}")]
        self._note_used(content, step)
        waits = self._holding.is_member and any(isinstance(note, Waits) for note in step.notes)
        if waits and len(self._keyring.stuck) >= STUCK:
            detail = "group: too many operations wait for others"
            return [self._holding.refusal(event, Reason.QUEUE_FULL, detail)]
        self._keyring.keep_stuck(event.id, waits)
        return self._stepped(step, now)

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

    def _stepped(self, step: agreement.Step, now: float) -> list[Record]:
        """Keep what a step has led to, and do what its notes ask for."""
        self._holding.keep(step.state)
        records: list[Record] = []
        for note in step.notes:
            records += self._heed(note)
            if isinstance(note, EpochReady):
                self._opening.read_epoch(note.member, note.epoch, now)
        if any(isinstance(note, Joined) for note in step.notes):
            for verified in self._memory.events():
                event = verified.events[0]
                if event.kind == GROUP:  # Our own too: of an earlier stay, if there was one.
                    records += self._took(event, now)
            self._opening.read_again(now)
        else:
            records += self._unstick(now)
        return records

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
        for stuck in list(self._keyring.stuck):
            event = self._memory.event(stuck)
            records = None if event is None else self._retry(event, now)
            if event is None:
                self._keyring.keep_stuck(stuck, False)
            elif records is not None:
                return records
        return []

    def _retry(self, event: Event, now: float) -> list[Record] | None:
        """Try an operation again; None if it still waits."""
        try:
            step = self._receive(event, now)
        except RemoteError as error:
            self._keyring.keep_stuck(event.id, False)
            return [self._holding.refusal(event, error.reason, f"group: {error.detail}")]
        if any(isinstance(note, Waits) for note in step.notes):
            self._holding.keep_keys(step.state)  # It says for what it waits.
            return None
        self._keyring.keep_stuck(event.id, False)
        self._note_used(decode_body(event.body), step)
        return self._stepped(step, now)


def _let_in(content: Body) -> tuple[tuple[Device, bytes], ...]:
    """The devices that an operation lets in, with their identities."""
    if isinstance(content, Create):
        return content.members
    return ((content.device, content.identity),) if isinstance(content, Add) else ()
