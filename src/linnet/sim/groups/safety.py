"""The rule for which messages must stay unreadable after thefts, by the order of causes and without keys.

A message of a member S in its epoch c is safe against thefts if there is one operation d with a seed, before
c and taken in by S, such that of every theft from a member M one of these holds:

1. M had taken in c, and had opened (or sent) the message, or was added by an operation that is not before c;
2. M sent an operation with a seed after the theft, and that is d or before d;
3. M was neither sender nor recipient of d, nor added by an operation that is before c and not before d
   (unless d removes M: then S, who has seen that, told M nothing more).

S has taken in a seed if S sent it; if S was a recipient, and its sender was still in S's view; or if the
member that added S had taken it in. A theft applies to all stays in the group with the stolen identity key,
also to a later one, if the device had not joined. One guarantee is weaker than it sounds, and the rule
accounts for it: a one-time prekey outlives its use for a while. As long as it exists, a thief can open what
was sealed to it, and has at least what a theft just before that would have brought: so it counts as two
thefts.

Each theft counts by itself, also two of one device: no two of them together open a first message that
neither opens alone. To ensure that, every seed brings new one-time prekeys along: without
(`renewed_one_time`) one theft before a heal has the one-time prekey of a first message, one after it the
in-band prekey, and both together read messages that this rule calls safe; random runs that broke the rule
showed it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from linnet.core.ids import EventId
from linnet.groups.labels import MemberId
from linnet.groups.state import GroupState, decode_state
from linnet.sim.attacks.group_attacker import Attacker
from linnet.sim.groups.ledger import Direct, Ledger, Operation
from linnet.sim.groups.world import Overheard, Theft

_CLEAR = struct.Struct(">B16sII4s")
_FIRST = struct.Struct(">B32sII")
_INBAND = 2**31


class Loss(Struct, frozen=True):
    """The effect of a theft on one member: the events that it had taken in, opened and sent by then."""

    member: MemberId
    done: frozenset[EventId]
    seeds_after: int
    """The operations with a seed that the member sent later."""


class Judge:
    """Decides which messages are safe from certain thefts."""

    def __init__(self, ledger: Ledger, thefts: Iterable[Theft]) -> None:
        self.ledger = ledger
        self.losses = [loss for theft in thefts for loss in _losses(ledger, theft, decode_state(theft.state))]

    def safe(self) -> frozenset[EventId]:
        """Return the messages that no thief with all stolen states can read."""
        return frozenset(message.id for message in self.ledger.messages if self.is_safe(message))

    def is_safe(self, message: Overheard) -> bool:
        """Return whether one message is safe."""
        _, sender, epoch, _, _ = _CLEAR.unpack(message.clear)
        began = self.ledger.by_member[MemberId(sender)][epoch]
        taken = self.ledger.incorporated_by[began.id]
        exposing = [loss for loss in self.losses if not self._is_past(loss, message, began)]
        return any(
            all(self._is_shut_out(loss, seed, began) for loss in exposing)
            for seed in self.ledger.operations
            if taken >> seed.number & 1
        )

    def _is_past(self, loss: Loss, message: Overheard, began: Operation) -> bool:
        """Return whether the robbed member was done with the message: the first condition."""
        if began.id not in loss.done:
            return False
        return message.id in loss.done or not began.past >> self.ledger.members[loss.member].added & 1

    def _is_shut_out(self, loss: Loss, seed: Operation, began: Operation) -> bool:
        """Return whether a seed is out of the thief's reach: the second and the third condition."""
        if loss.seeds_after & seed.past:
            return True
        added = self.ledger.members[loss.member].added
        came_later = began.past >> added & 1 and not seed.past >> added & 1
        came_later = came_later and not self.ledger.covers(seed, loss.member)
        return loss.member != seed.sender and loss.member not in seed.recipients and not came_later


def removed_before(ledger: Ledger) -> dict[EventId, frozenset[MemberId]]:
    """Return for each message the members that its sender knew to be removed when it spoke.

    Members that are there a second time by the same keys, added by two at once, are left out: that device is
    a member.
    """
    found: dict[EventId, frozenset[MemberId]] = {}
    for message in ledger.messages:
        past = ledger.known_at[message.id]
        removals = ledger.removals(past)
        gone = frozenset(
            member
            for member, stay in ledger.members.items()
            if past >> stay.added & 1 and any(ledger.covers(removal, member) for removal in removals)
        )
        present = {stay.identity for member, stay in ledger.members.items() if member not in gone}
        found[message.id] = frozenset(
            member for member in gone if ledger.members[member].identity not in present
        )
    return found


class Burglar:
    """An attacker that has heard all of a run, and steals, together with its judge."""

    def __init__(self, group: bytes, heard: Sequence[Overheard]) -> None:
        self.ledger = Ledger(group, heard)

    def reader(self) -> Attacker:
        """Return an attacker that has stolen nothing yet."""
        return Attacker(self.ledger)

    def safe(self, thefts: Iterable[Theft]) -> frozenset[EventId]:
        """Return the messages that must not be readable with these thefts."""
        return Judge(self.ledger, thefts).safe()

    def removed(self) -> dict[EventId, frozenset[MemberId]]:
        """Return for each message the members that its sender knew to be removed."""
        return removed_before(self.ledger)


def _losses(ledger: Ledger, theft: Theft, state: GroupState) -> Iterator[Loss]:
    identity = state.prekeys.identity.public
    prekeys = {signed.gen for signed in state.prekeys.signed} | {cseq | _INBAND for cseq in state.inband}
    one_time = {key.id for key in state.prekeys.one_time}
    places = {op: place for place, op in enumerate(theft.log)}
    for member in ledger.stays(identity):
        if member in state.past:
            continue
        yield _loss(ledger, member, theft.log)
        for direct in ledger.directs:
            if direct.recipient == member and direct.op in places and _opens(direct, prekeys, one_time):
                yield _loss(ledger, member, theft.log[: places[direct.op]])


def _loss(ledger: Ledger, member: MemberId, log: tuple[EventId, ...]) -> Loss:
    done = frozenset(log)
    later = sum(
        1 << op.number for op in ledger.by_member.get(member, {}).values() if op.is_seed and op.id not in done
    )
    return Loss(member, done, later)


def _opens(direct: Direct, prekeys: set[int], one_time: set[int]) -> bool:
    """Return whether these prekeys still open a direct message."""
    if direct.sealed[0] != 0:
        return False
    _, _, reference, number = _FIRST.unpack_from(direct.sealed)
    return reference in prekeys and (not number or number in one_time)
