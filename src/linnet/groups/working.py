"""A state that is being worked on: written to freely, and thrown away if anything fails.

The functions of the agreement take a `Work` of the state that they were given and return a new state made of
it, so that the given one stays as it was whatever happens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from linnet.core.errors import Refused
from linnet.core.ids import EventId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups import healing, membership, two_party
from linnet.groups.chains import NO_TOTAL, MemberChains, SendingChain, end, prune, start
from linnet.groups.healing import Cover
from linnet.groups.history import History
from linnet.groups.ids import Device, MemberId
from linnet.groups.labels import MEMBER, MEMBER_SECRET, RATCHET, STEP_SECRET, Purpose, fields
from linnet.groups.notes import EpochReady, Healed, Lost, Note, WeakFs
from linnet.groups.prekeys import Bundle, Prekeys, retire
from linnet.groups.prekeys import prune as prune_prekeys
from linnet.groups.primitives import KeyPair, expand, extract, hkdf
from linnet.groups.state import Act, GroupConfig, GroupState, Hardening, Op, Owed
from linnet.groups.two_party import Channel, Reach

Directory = Callable[[Device], Bundle | None]
"""The newest bundle of a device, as its own signature vouches for it."""
MayHold = Callable[[Device], bool]
"""Whether a device may be told keys: the room's word, which may be narrower than the group's."""

UNUSED: Final = bytes(32)
"""The ratchet of a member before its first step: public, since its secrecy comes from the first input."""
REMEMBERED: Final = 1_024
"""Forgotten members whose ids are known again."""
_TEND_SECONDS: Final = 3_600.0
_FIELDS: Final = GroupState.__struct_fields__


def member_id(group: bytes, device: Device, identity: bytes, nonce: bytes) -> MemberId:
    """The id of one stay of a device: another with every nonce."""
    named = fields(MEMBER, group, device.author, device.device, identity, nonce)
    return MemberId(hashlib.sha256(named).digest()[:16])


def member_secrets(
    seed: bytes, group: bytes, op: EventId, members: Iterable[MemberId]
) -> dict[MemberId, bytes]:
    """What each member's ratchet takes of a seed."""
    root = extract(MEMBER_SECRET, seed)
    return {member: expand(root, fields(group, op, member), 32) for member in members}


class Work:
    """The fields of a `GroupState`, to be changed; see there for what they mean."""

    group: bytes
    ours: Device
    config: GroupConfig
    hardening: Hardening
    prekeys: Prekeys
    published: int
    stale: bool
    me: MemberId | None
    past: tuple[MemberId, ...]
    desynced: str
    cseq: int
    count: int
    sending: SendingChain | None
    healed: float
    owed: tuple[Owed, ...]
    ops: dict[EventId, Op]
    clock: dict[MemberId, int]
    last: dict[MemberId, EventId]
    ratchets: dict[MemberId, bytes]
    channels: dict[MemberId, Channel]
    inband: dict[int, bytes]
    peer_inband: dict[MemberId, tuple[int, bytes]]
    wanted: tuple[EventId, ...]
    closed: dict[MemberId, float]
    forgotten: tuple[MemberId, ...]
    leaving: tuple[MemberId, ...]
    tended: float
    history: History
    cover: Cover
    chains: dict[MemberId, MemberChains]

    def __init__(self, state: GroupState) -> None:
        for name in _FIELDS:
            value = getattr(state, name)
            setattr(self, name, dict(value) if type(value) is dict else value)
        self.notes: list[Note] = []

    def state(self) -> GroupState:
        """What has become of it."""
        return GroupState(*(getattr(self, name) for name in _FIELDS))

    @property
    def self(self) -> MemberId:
        """Our id in the group; `Refused` if we have none."""
        if self.me is None:
            raise Refused(Reason.UNKNOWN_MEMBER, "this device is not in the group")
        return self.me

    def device(self, member: MemberId) -> Device:
        """The device of a member that is known."""
        return self.history.members[self.history.gap(member)].device

    # Ratchets and epochs.

    def step(self, member: MemberId, data: bytes) -> bytes | None:
        """Turn a member's ratchet, if we can follow it: its output, which begins an epoch."""
        ratchet = self.ratchets.get(member)
        if ratchet is None:
            return None
        out = hkdf(ratchet, data, fields(RATCHET, self.group, member), 64)
        self.ratchets[member] = out[32:]
        return out[:32]

    def mix(self, member: MemberId, secret: bytes) -> bytes | None:
        """Turn a member's ratchet with its share of a seed."""
        return self.step(member, STEP_SECRET + secret)

    def lose(self, member: MemberId, detail: str) -> None:
        """A member's ratchet took something that we do not have."""
        if self.ratchets.pop(member, None) is not None:
            self.notes.append(Lost(member, detail))

    def epoch(self, member: MemberId, cseq: int, key: bytes | None, count: int, now: float) -> None:
        """An epoch of a member begins with this operation of its, if it had an output for us."""
        if key is None:
            return
        if member == self.me:
            self.sending = SendingChain(cseq, 0, key, now)
            return
        self.chains[member] = start(self.chains.get(member), cseq, key, count, now)
        self.notes.append(EpochReady(member, cseq))

    # Direct messages.

    def seal_to(
        self,
        member: MemberId,
        purpose: Purpose,
        payload: bytes,
        directory: Directory,
        entropy: Entropy,
        now: float,
    ) -> bytes:
        """A direct message within our operation of the current number. `Refused` if there are no prekeys."""
        channel = self.channels.get(member, two_party.EMPTY)
        reach = None if two_party.begun(channel) else self._reach(member, channel, directory, now)
        context = two_party.direct_context(self.group, self.self, member, self.cseq, purpose)
        identity = self.prekeys.identity.secret
        self.channels[member], sealed = two_party.send(channel, reach, identity, context, payload, entropy)
        if reach is not None and reach.weak:
            self.notes.append(WeakFs(self.device(member)))
        return sealed

    def _reach(self, member: MemberId, channel: Channel, directory: Directory, now: float) -> Reach:
        known = self.history.members[self.history.gap(member)]
        inband, bundle = self.peer_inband.get(member), directory(known.device)
        renews = self.hardening.renews
        return two_party.reach_by(channel, known.identity, bundle, inband, self.self, now, renews)

    def own_inband(self) -> KeyPair | None:
        """The prekey of our newest seed, if our prekeys have to be as new as that."""
        if self.me is None or self.me not in self.peer_inband or not self.hardening.renews:
            return None
        cseq, public = self.peer_inband[self.me]
        return KeyPair(self.inband[cseq], public)

    def open_from(self, member: MemberId, purpose: Purpose, sealed: bytes, cseq: int, now: float) -> bytes:
        """What a direct message to us says. `RemoteError` if it does not open."""
        identity = self.history.members[self.history.gap(member)].identity
        return self.open_by(identity, member, purpose, sealed, cseq, now)

    def open_by(
        self, identity: bytes, member: MemberId, purpose: Purpose, sealed: bytes, cseq: int, now: float
    ) -> bytes:
        """The same, of a member with this identity key."""
        channel = self.channels.get(member, two_party.EMPTY)
        context = two_party.direct_context(self.group, member, self.self, cseq, purpose)
        self.channels[member], self.prekeys, payload = two_party.receive(
            channel, self.prekeys, self.inband, member, identity, context, sealed, now
        )
        return payload

    # Operations that await acknowledgements.

    def await_acks(
        self,
        op: EventId,
        sender: MemberId,
        cseq: int,
        secrets: dict[MemberId, bytes],
        now: float,
        newcomer: MemberId | None = None,
    ) -> None:
        """Remember an operation until all have acknowledged it, and what their ratchets take then."""
        others = [
            member.id
            for member in self.history.members
            if member.id != sender and not membership.covers(self.history, op, member.id)
        ]
        awaiting = {member: secrets.get(member) for member in others if member not in self.closed}
        # Who knew nothing of the removal of each may have acknowledged what the other did.
        is_gone = not membership.sees(self.history, None, sender)
        late = tuple(member for member in others if member in self.closed) if is_gone else ()
        act = Act.SEED if newcomer is None else Act.ADD
        self.count += 1
        self.ops[op] = Op(sender, cseq, act, self.count, now, newcomer, awaiting, late)
        if len(self.ops) > self.config.pending:
            self._spend_oldest()
        self.settle(op)

    def _spend_oldest(self) -> None:
        """Too much is pending: whoever has not acknowledged the oldest cannot be followed past it."""
        unspent = (op for op in self.ops if any(self.ops[op].awaiting.values()))
        old = min(unspent, key=lambda op: self.ops[op].order, default=None)
        if old is None:
            return
        awaiting = {member: None if x is None else b"" for member, x in self.ops[old].awaiting.items()}
        self.ops[old] = replace(self.ops[old], awaiting=awaiting)

    def acked(self, op: EventId, member: MemberId) -> bytes | None:
        """A member has acknowledged an operation: what its ratchet takes, as far as we know."""
        known = self.ops[op]
        awaiting = dict(known.awaiting)
        secret = awaiting.pop(member, None)
        late = tuple(each for each in known.late if each != member) if known.late else ()
        self.ops[op] = replace(known, awaiting=awaiting, late=late)
        self.history = membership.ack(self.history, member, op)
        return secret

    def settle(self, op: EventId) -> None:
        """Forget an operation that all have acknowledged, and our prekeys that are older than it."""
        known = self.ops.get(op)
        if known is None or known.awaiting:
            return
        if known.late:
            self.ops[op] = replace(known, done=True)
        else:
            del self.ops[op]
        if membership.is_membership_op(self.history, op):
            self.compact(known.since)
        if known.sender == self.me and known.act is Act.SEED and not known.done:
            self.inband = {cseq: key for cseq, key in self.inband.items() if cseq >= known.cseq}
            if self.hardening.renews and known.cseq in self.inband:
                self.prekeys = retire(self.prekeys, self.inband[known.cseq])
            self.notes.append(Healed(op))

    # Forgetting.

    def close(self, now: float) -> None:
        """After the history has changed: the keys of members whose removal all have seen go at once."""
        if self.history.removals:
            for member in membership.closed(self.history):
                if member not in self.closed:
                    self._close(member, now)

    def compact(self, now: float) -> None:
        """Forget what of the history cannot matter any more."""
        self.history, self.cover = healing.compact(self.history, self.cover, self._past_linger(now))

    def _close(self, member: MemberId, now: float) -> None:
        self.closed[member] = now
        for mapping in (self.ratchets, self.channels, self.peer_inband):
            mapping.pop(member, None)
        if member in self.chains:
            chains = self.chains[member]
            ended = tuple(end(chain, NO_TOTAL, now) for chain in chains.chains)
            self.chains[member] = MemberChains(chains.first, ended)
        for op, known in list(self.ops.items()):
            awaiting = {each: x for each, x in known.awaiting.items() if each != member}
            late = (*known.late, member) if member in known.awaiting else known.late
            if known.sender == member:  # Nobody takes a seed of one whose removal it has seen.
                awaiting = dict.fromkeys(awaiting)
            if awaiting != known.awaiting:
                self.ops[op] = replace(known, awaiting=awaiting, late=late)
                self.settle(op)

    def _past_linger(self, now: float) -> tuple[MemberId, ...]:
        end = now - 2 * self.config.linger
        return tuple(member for member, since in sorted(self.closed.items()) if since < end)

    def tend(self, now: float) -> None:
        """From time to time: what has outlived its time goes."""
        if now < self.tended + _TEND_SECONDS:
            return
        self.tended = now
        self.prekeys = prune_prekeys(self.prekeys, now)
        self.chains = {member: prune(chains, now) for member, chains in self.chains.items()}
        if self.me is None:
            return
        self.close(now)
        self.compact(now)
        for member in self._past_linger(now):
            if self.history.member(member) is None:
                self._forget(member)

    def _forget(self, member: MemberId) -> None:
        for mapping in (self.closed, self.clock, self.last, self.chains):
            mapping.pop(member, None)
        for op, known in list(self.ops.items()):
            if member in known.late:
                self.ops[op] = replace(known, late=tuple(each for each in known.late if each != member))
                self.settle(op)
        self.leaving = tuple(each for each in self.leaving if each != member)
        self.forgotten = (*self.forgotten, member)[-REMEMBERED:]
