"""The order of causes in a group, derived from nothing but the messages that all carriers see.

Written from the definitions, and independent of `linnet.groups`: an operation comes after all that its sender
had done or acknowledged, and after all that came before these. The members follow from the operations in a
past: all that were created or added, less those that a removal covers. A removal covers its targets, and the
members that a covered member added by an addition that is not in the removal's past.

Pasts are integers with a bit for each operation, in the order in which they were overheard.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import Enum, auto

from msgspec import Struct

from linnet.core.ids import EventId
from linnet.groups.bodies import Acks, Add, Create, Item, Keys, Leave, Remove, Update, decode_body
from linnet.groups.labels import MEMBER, Device, MemberId, Purpose, fields
from linnet.groups.prekeys import Bundle
from linnet.sim.groups.world import Overheard


class Input(Enum):
    """The input of a member's ratchet in one step."""

    SHARE = auto()
    """The member's share of a seed."""
    WELCOME = auto()
    """A constant; the output is a newcomer's first share."""
    ADD = auto()
    """Another constant."""


class Turn(Struct, frozen=True):
    """One step of a member's ratchet."""

    takes: Input
    op: EventId
    """The operation of the share, or the addition."""
    epoch: int
    """The number of the member's own operation that the step belongs to."""


class Direct(Struct, frozen=True):
    """A message to one member within an operation."""

    op: EventId
    sender: MemberId
    recipient: MemberId
    cseq: int
    purpose: Purpose
    sealed: bytes
    about: EventId
    """The operation whose seed or share it brings, or the addition that it is for."""
    turns: int
    """The steps that its sender's ratchet had made, for a ratchet that it brings."""


class Stay(Struct, frozen=True):
    """A member: a device from one addition on."""

    device: Device
    identity: bytes
    added: int
    """The number of the operation that names it."""
    adder: MemberId | None


class Operation(Struct, frozen=True):
    """An operation in the order of causes."""

    id: EventId
    number: int
    sender: MemberId
    cseq: int
    past: int
    """All operations before it, and itself."""
    content: Create | Update | Remove | Add | Acks | Leave
    recipients: tuple[MemberId, ...] = ()
    """The recipients of its seed."""

    @property
    def is_seed(self) -> bool:
        """Whether it brings a seed."""
        return isinstance(self.content, Create | Update | Remove)


class Ledger:
    """All operations of a group, read once."""

    def __init__(self, group: bytes, heard: Sequence[Overheard]) -> None:
        self.group = group
        self.members: dict[MemberId, Stay] = {}
        self.operations: list[Operation] = []
        self.by_id: dict[EventId, Operation] = {}
        self.by_member: dict[MemberId, dict[int, Operation]] = {}
        self.turns: dict[MemberId, list[Turn]] = {}
        self.turned: dict[tuple[MemberId, int], int] = {}
        """The steps that a member's ratchet has made after its operation of a number."""
        self.directs: list[Direct] = []
        self.bundles: dict[tuple[bytes, int], Bundle] = {}
        self.incorporated: dict[MemberId, int] = {}
        """The operations whose seeds are in a member's ratchet."""
        self.incorporated_by: dict[EventId, int] = {}
        """The operations whose seeds are in the ratchet of an operation's sender, after it."""
        self.messages = [each for each in heard if each.clear]
        self.known_at: dict[EventId, int] = {}
        """The past of a message's sender when it spoke."""
        self._past: dict[MemberId, int] = {}
        self._covers: dict[tuple[EventId, MemberId], bool] = {}
        self._views: dict[int, tuple[MemberId, ...]] = {}
        for each in heard:
            if each.clear:
                self.known_at[each.id] = self._past[MemberId(each.clear[1:17])]
            else:
                self._take(each)

    # Members.

    def view(self, past: int) -> tuple[MemberId, ...]:
        """Return the members, by id, as seen from this past."""
        known = self._views.get(past)
        if known is None:
            removals = self.removals(past)
            known = self._views[past] = tuple(
                member
                for member in sorted(self.members)
                if past >> self.members[member].added & 1
                and not any(self.covers(removal, member) for removal in removals)
            )
        return known

    def covers(self, removal: Operation, member: MemberId) -> bool:
        """Return whether a removal takes a member out."""
        known = self._covers.get((removal.id, member))
        if known is None:
            stay, content = self.members[member], removal.content
            unseen = stay.adder is not None and not removal.past >> stay.added & 1
            known = isinstance(content, Remove) and (
                member in content.targets
                or (unseen and stay.adder is not None and self.covers(removal, stay.adder))
            )
            self._covers[removal.id, member] = known
        return known

    def removals(self, past: int) -> list[Operation]:
        """Return the removals in a past."""
        return [op for op in self.operations if past >> op.number & 1 and isinstance(op.content, Remove)]

    def stays(self, identity: bytes) -> list[MemberId]:
        """Return the members of this identity key: past, present and future."""
        return [member for member, stay in self.members.items() if stay.identity == identity]

    # Operations.

    def _take(self, heard: Overheard) -> None:
        content = decode_body(heard.body)
        if isinstance(content, Keys):
            self.bundles[content.bundle.identity, content.bundle.gen] = content.bundle
            return
        sender, number = content.head.sender, len(self.operations)
        if isinstance(content, Create):
            for device, identity in content.members:
                self._enter(device, identity, content.nonce, number, None)
        past = self._past[sender]
        if isinstance(content, Acks):
            for item in content.items:
                past |= self.by_id[item.op].past
        past |= 1 << number
        op = Operation(heard.id, number, sender, content.head.cseq, past, content)
        before, self._past[sender] = self._past[sender], past
        self.operations.append(op)
        self._act(op, before)
        self.turned[sender, op.cseq] = len(self.turns[sender])
        self.incorporated_by[op.id] = self.incorporated[sender]

    def _act(self, op: Operation, before: int) -> None:
        content, sender = op.content, op.sender
        if isinstance(content, Create | Update | Remove):
            recipients = tuple(member for member in self.view(op.past) if member != sender)
            if len(recipients) != len(content.directs):
                raise AssertionError(f"{len(content.directs)} direct messages to {len(recipients)} members")
            op = self._keep(op, recipients)
            for recipient, sealed in zip(recipients, content.directs, strict=True):
                self._direct(op, recipient, Purpose.SEED, sealed, op.id)
            self.turns[sender].append(Turn(Input.SHARE, op.id, op.cseq))
            self.incorporated[sender] |= 1 << op.number
            return
        self._keep(op)
        if isinstance(content, Add):
            newcomer = self._enter(content.device, content.identity, content.nonce, op.number, sender)
            self._direct(op, newcomer, Purpose.WELCOME, content.welcome, op.id)
            self.turns[sender].append(Turn(Input.WELCOME, op.id, op.cseq))
            self.turns[sender].append(Turn(Input.ADD, op.id, op.cseq))
            self._past[newcomer] = op.past
            self.incorporated[newcomer] = self.incorporated[sender]
        elif isinstance(content, Acks):
            for item in content.items:
                self._acknowledge(op, item, before)
                before |= self.by_id[item.op].past

    def _acknowledge(self, op: Operation, item: Item, before: int) -> None:
        sender, acked = op.sender, self.by_id[item.op]
        purpose = Purpose.RATCHET if item.is_add else Purpose.FORWARD
        for recipient, sealed in item.directs:
            self._direct(op, recipient, purpose, sealed, item.op)
        if item.is_add:
            self.turns[sender].append(Turn(Input.ADD, item.op, op.cseq))
        elif isinstance(acked.content, Add):
            self.turns[sender].append(Turn(Input.SHARE, item.op, op.cseq))
        elif sender in acked.recipients and acked.sender in self.view(before | acked.past):
            self.turns[sender].append(Turn(Input.SHARE, item.op, op.cseq))
            self.incorporated[sender] |= 1 << acked.number

    def _keep(self, op: Operation, recipients: tuple[MemberId, ...] = ()) -> Operation:
        kept = Operation(op.id, op.number, op.sender, op.cseq, op.past, op.content, recipients)
        self.operations[op.number] = self.by_id[op.id] = kept
        self.by_member.setdefault(op.sender, {})[op.cseq] = kept
        return kept

    def _enter(
        self, device: Device, identity: bytes, nonce: bytes, number: int, adder: MemberId | None
    ) -> MemberId:
        named = fields(MEMBER, self.group, device.author, device.device, identity, nonce)
        member = MemberId(hashlib.sha256(named).digest()[:16])
        self.members[member] = Stay(device, identity, number, adder)
        self.turns[member], self._past[member], self.incorporated[member] = [], 1 << number, 0
        return member

    def _direct(
        self, op: Operation, recipient: MemberId, purpose: Purpose, sealed: bytes, about: EventId
    ) -> None:
        turns = len(self.turns[op.sender])
        self.directs.append(Direct(op.id, op.sender, recipient, op.cseq, purpose, sealed, about, turns))
