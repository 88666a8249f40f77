"""What must not be readable, whoever stole what: a rule over the order of causes, without any key.

A message of a member S in its epoch c is safe against thefts if there is one operation d with a seed, before
c and taken in by S, such that of every theft from a member M one of these holds:

1. M had taken in c, and had opened (or sent) the message, or was added by an operation that is not before c;
2. M sent an operation with a seed after the theft, and that is d or before d;
3. M was neither sender nor recipient of d, nor added by an operation that is before c and not before d
   (unless d removes M: then S, who has seen that, told M nothing more).

S has taken in a seed if S sent it; if it was a recipient, and its sender was still in S's view; or if whoever
added S had. A theft is of all stays in the group that have the stolen identity key: also of the one to come,
if the device had not joined. One thing is weaker than it sounds, and the rule knows it: a one-time prekey
outlives its use for a while. As long as it is there, a thief opens what was told by it, and has at least
what a theft just before that would have brought: so it counts as two thefts.

Thefts count each for itself, also those of one device: no two of them together open a first message that
neither opens alone. For that every seed brings new one-time prekeys along: without (`renewed_one_time`) one
theft before a heal has the one-time prekey of a first message, one after it the in-band prekey, and both
together read what this rule calls safe; it was found by random runs that broke the rule.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from linnet.core.ids import EventId
from linnet.groups.ids import MemberId
from linnet.groups.state import GroupState, decode_state
from linnet.sim.overheard import Overheard, Theft
from linnet.testing.attacker import Attacker
from linnet.testing.ledger import Direct, Ledger, Operation

_CLEAR = struct.Struct(">B16sII4s")
_FIRST = struct.Struct(">B32sII")
_INBAND = 2**31


class Loss(Struct, frozen=True):
    """What a theft means for one member: what it had taken in, opened and sent by then."""

    member: MemberId
    done: frozenset[EventId]
    seeds_after: int
    """The operations with a seed that it sent later."""


class Judge:
    """Tells what is safe from certain thefts."""

    def __init__(self, ledger: Ledger, thefts: Iterable[Theft]) -> None:
        self.ledger = ledger
        self.losses = [loss for theft in thefts for loss in _losses(ledger, theft, decode_state(theft.state))]

    def safe(self) -> frozenset[EventId]:
        """The messages that nobody who has all that was stolen can read."""
        return frozenset(message.id for message in self.ledger.messages if self.is_safe(message))

    def is_safe(self, message: Overheard) -> bool:
        """Whether one message is."""
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
        """The first way: whoever was robbed had done with the message."""
        if began.id not in loss.done:
            return False
        return message.id in loss.done or not began.past >> self.ledger.members[loss.member].added & 1

    def _is_shut_out(self, loss: Loss, seed: Operation, began: Operation) -> bool:
        """The second and the third way: a seed that the thief cannot have."""
        if loss.seeds_after & seed.past:
            return True
        added = self.ledger.members[loss.member].added
        came_later = began.past >> added & 1 and not seed.past >> added & 1
        came_later = came_later and not self.ledger.covers(seed, loss.member)
        return loss.member != seed.sender and loss.member not in seed.recipients and not came_later


def removed_before(ledger: Ledger) -> dict[EventId, frozenset[MemberId]]:
    """For each message whom its sender knew to be removed when it spoke.

    Less whoever is there a second time by the same keys, added by two at once: that device is a member.
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
    """The attacker and its judge as one: a `Thief` for simulations."""

    def __init__(self, group: bytes, heard: Sequence[Overheard]) -> None:
        self.ledger = Ledger(group, heard)

    def reader(self) -> Attacker:
        """One who has stolen nothing yet."""
        return Attacker(self.ledger)

    def safe(self, thefts: Iterable[Theft]) -> frozenset[EventId]:
        """What must not be readable to whoever has these."""
        return Judge(self.ledger, thefts).safe()

    def removed(self) -> dict[EventId, frozenset[MemberId]]:
        """Whom each sender knew to be removed."""
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
    """Whether these prekeys still open a direct message."""
    if direct.sealed[0] != 0:
        return False
    _, _, reference, number = _FIRST.unpack_from(direct.sealed)
    return reference in prekeys and (not number or number in one_time)
