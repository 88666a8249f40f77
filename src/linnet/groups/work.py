"""A mutable copy of a state, thrown away if anything fails.

The functions of the agreement take a `Work` of the state that they were given and return a new state made of
it, so that the given one stays as it was whatever happens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from msgspec.structs import replace

from linnet.core.errors import Refused
from linnet.core.ids import EventId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups import membership, removal_cover, two_party
from linnet.groups.bodies import Head
from linnet.groups.chains import NO_TOTAL, MemberChains, SendingChain, end, prune, start
from linnet.groups.labels import (
    MEMBER,
    MEMBER_SECRET,
    RATCHET,
    STEP_SECRET,
    Device,
    MemberId,
    Purpose,
    fields,
)
from linnet.groups.membership import History
from linnet.groups.notes import EpochReady, Healed, Lost, Note, WeakFs
from linnet.groups.prekeys import Bundle, Prekeys, retire
from linnet.groups.prekeys import prune as prune_prekeys
from linnet.groups.primitives import KeyPair, expand, extract, hkdf
from linnet.groups.removal_cover import Cover
from linnet.groups.state import Act, GroupConfig, GroupState, Hardening, Op, Owed
from linnet.groups.two_party import Channel, Reach

Directory = Callable[[Device], Bundle | None]
"""Returns the newest bundle of a device, vouched for by the device's own signature."""
MayHold = Callable[[Device], bool]
"""Returns whether a device may be told keys: the room decides, and may allow fewer devices than the group."""


class Means(NamedTuple):
    """The means with which an operation of ours is made."""

    directory: Directory
    may_hold: MayHold
    entropy: Entropy
    now: float


UNUSED: Final = bytes(32)
"""The ratchet of a member before its first step: public, since its secrecy comes from the first input."""
REMEMBERED: Final = 1_024
"""Ids of forgotten members that are remembered, at most."""
_TEND_SECONDS: Final = 3_600.0
_FIELDS: Final = GroupState.__struct_fields__


def member_id(group: bytes, device: Device, identity: bytes, nonce: bytes) -> MemberId:
    """Return the id of one stay of a device: another one for every nonce."""
    named = fields(MEMBER, group, device.author, device.device, identity, nonce)
    return MemberId(hashlib.sha256(named).digest()[:16])


def member_secrets(
    seed: bytes, group: bytes, op: EventId, members: Iterable[MemberId]
) -> dict[MemberId, bytes]:
    """Return the share of a seed that each member's ratchet takes."""
    root = extract(MEMBER_SECRET, seed)
    return {member: expand(root, fields(group, op, member), 32) for member in members}


class Direct(NamedTuple):
    """A direct message to us, within the operation of its sender that has this number."""

    sender: MemberId
    cseq: int
    purpose: Purpose
    sealed: bytes


class Work:
    """The fields of a `GroupState`, free to be changed; see there for their meaning."""

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
        """Return the changed fields as a new state."""
        return GroupState(*(getattr(self, name) for name in _FIELDS))

    @property
    def self(self) -> MemberId:
        """Our id in the group; `Refused` if we have none."""
        if self.me is None:
            raise Refused(Reason.UNKNOWN_MEMBER, "this device is not in the group")
        return self.me

    def device(self, member: MemberId) -> Device:
        """Return the device of a known member."""
        return self.history.members[self.history.gap(member)].device

    # Ratchets and epochs.

    def step(self, member: MemberId, data: bytes) -> bytes | None:
        """Turn a member's ratchet and return its output, which begins an epoch; None if it is unknown."""
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
        """Stop following a member whose ratchet took something that we do not have."""
        if self.ratchets.pop(member, None) is not None:
            self.notes.append(Lost(member, detail))

    def epoch(self, member: MemberId, cseq: int, key: bytes | None, count: int, now: float) -> None:
        """Begin an epoch of a member with an operation of its, unless we do not know the output (`key`)."""
        if key is None:
            return
        if member == self.me:
            self.sending = SendingChain(cseq, 0, key, now)
            return
        self.chains[member] = start(self.chains.get(member), cseq, key, count, now)
        self.notes.append(EpochReady(member, cseq))

    # Direct messages.

    def seal_to(self, member: MemberId, purpose: Purpose, payload: bytes, means: Means) -> bytes:
        """Make a direct message within our current operation; `Refused` if there are no prekeys."""
        channel = self.channels.get(member, two_party.EMPTY)
        reach = None if two_party.begun(channel) else self._reach(member, channel, means)
        context = two_party.direct_context(self.group, self.self, member, self.cseq, purpose)
        identity = self.prekeys.identity.secret
        self.channels[member], sealed = two_party.send(
            channel, reach, identity, context, payload, means.entropy
        )
        if reach is not None and reach.weak:
            self.notes.append(WeakFs(self.device(member)))
        return sealed

    def _reach(self, member: MemberId, channel: Channel, means: Means) -> Reach:
        known = self.history.members[self.history.gap(member)]
        inband, bundle = self.peer_inband.get(member), means.directory(known.device)
        keys = two_party.PeerKeys(known.identity, bundle, inband)
        return two_party.reach_by(channel, keys, self.self, means.now, self.hardening.renews)

    def own_inband(self) -> KeyPair | None:
        """Return the prekey of our newest seed, if our prekeys have to be as new as that; None otherwise."""
        if self.me is None or self.me not in self.peer_inband or not self.hardening.renews:
            return None
        cseq, public = self.peer_inband[self.me]
        return KeyPair(self.inband[cseq], public)

    def open_from(self, direct: Direct, now: float) -> bytes:
        """Return the payload of a direct message to us; `RemoteError` if it does not open."""
        return self.open_by(self.history.members[self.history.gap(direct.sender)].identity, direct, now)

    def open_by(self, identity: bytes, direct: Direct, now: float) -> bytes:
        """Return the payload of a direct message from this identity key, or raise `RemoteError`."""
        member = direct.sender
        channel = self.channels.get(member, two_party.EMPTY)
        context = two_party.direct_context(self.group, member, self.self, direct.cseq, direct.purpose)
        came = two_party.Incoming(member, identity, context, direct.sealed)
        self.channels[member], self.prekeys, payload = two_party.receive(
            channel, self.prekeys, self.inband, came, now
        )
        return payload

    # Operations that await acknowledgements.

    def await_acks(
        self,
        op: EventId,
        head: Head,
        secrets: dict[MemberId, bytes],
        now: float,
        newcomer: MemberId | None = None,
    ) -> None:
        """Remember an operation until all have acknowledged it, with what their ratchets take then."""
        sender = head.sender
        others = [
            member.id
            for member in self.history.members
            if member.id != sender and not membership.covers(self.history, op, member.id)
        ]
        awaiting = {member: secrets.get(member) for member in others if member not in self.closed}
        # A removed member that did not know of the sender's removal may have acknowledged the operation.
        is_gone = not membership.sees(self.history, None, sender)
        late = tuple(member for member in others if member in self.closed) if is_gone else ()
        act = Act.SEED if newcomer is None else Act.ADD
        self.count += 1
        self.ops[op] = Op(sender, head.cseq, act, self.count, now, newcomer, awaiting, late)
        if len(self.ops) > self.config.pending:
            self._spend_oldest()
        self.settle(op)

    def _spend_oldest(self) -> None:
        """Forget the secrets of the oldest operation, since too many are pending.

        Members that have not acknowledged it can no longer be followed past it.
        """
        unspent = (op for op in self.ops if any(self.ops[op].awaiting.values()))
        old = min(unspent, key=lambda op: self.ops[op].order, default=None)
        if old is None:
            return
        awaiting = {member: None if x is None else b"" for member, x in self.ops[old].awaiting.items()}
        self.ops[old] = replace(self.ops[old], awaiting=awaiting)

    def acked(self, op: EventId, member: MemberId) -> bytes | None:
        """Note a member's acknowledgement of an operation; return what its ratchet takes, if we know that."""
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
        """Drop the keys of members whose removal all have now seen, after the history has changed."""
        if self.history.removals:
            for member in membership.closed(self.history):
                if member not in self.closed:
                    self._close(member, now)

    def compact(self, now: float) -> None:
        """Drop from the history what cannot matter any more."""
        self.history, self.cover = removal_cover.compact(self.history, self.cover, self._past_linger(now))

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
        """Drop all that has expired; does nothing if it ran within the last hour."""
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
