"""An attacker that overhears everything, steals states, and really decrypts what can be decrypted.

It shares no code with the members beyond the primitives, the labels and the parsers. It repeats until nothing
new follows: every known key is tried on every direct message to its holder; opened messages bring seeds,
shares, ratchets and further keys; shares turn ratchets; ratchets give the keys of messages. `Attacker.read`
returns the readable messages. With `thorough` it takes no hint from the protocol as to which key a direct
message is for, and tries all of them on all: slow, and finds the same.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId
from linnet.groups.labels import (
    INITIAL,
    MEMBER_SECRET,
    MESSAGE,
    RATCHET,
    STEP_ADD,
    STEP_SECRET,
    STEP_WELCOME,
    TWO_PARTY,
    MemberId,
    Purpose,
    fields,
    u32,
)
from linnet.groups.primitives import agree, hkdf, hpke_open, open_sealed, public_of
from linnet.groups.state import GroupState, decode_state
from linnet.sim.groups.ledger import Direct, Input, Ledger, Turn
from linnet.sim.groups.world import Overheard

_FIRST = struct.Struct(">B32sII")
_CLEAR = struct.Struct(">B16sII4s")
_INBAND = 2**31


class Attacker:
    """Everything that follows from overheard messages and stolen states."""

    def __init__(self, ledger: Ledger, thorough: bool = False) -> None:
        self.ledger = ledger
        self.thorough = thorough
        self.identities: dict[bytes, bytes] = {}
        """Secrets of identity keys, by their public halves."""
        self.prekeys: dict[tuple[bytes, int], bytes] = {}
        """Secrets of signed and in-band prekeys, by identity key and reference."""
        self.one_time: dict[tuple[bytes, int], bytes] = {}
        self.sent: dict[tuple[MemberId, MemberId], dict[bytes, None]] = {}
        """Keys that the first member made for the second, which open the first one's next message to it."""
        self.own: dict[tuple[MemberId, MemberId], dict[int, bytes]] = {}
        """Keys that the second member made for itself, by index, which open the first one's answers."""
        self.shares: dict[tuple[EventId, MemberId], bytes] = {}
        self.ratchets: dict[tuple[MemberId, int], dict[bytes, None]] = {
            (member, 0): {bytes(32): None} for member in ledger.members
        }
        """Ratchets of each member after so many steps; more than one where a victim followed it wrongly."""
        self.chains: dict[tuple[MemberId, int], dict[tuple[int, bytes], None]] = {}
        """Chain keys of each member and epoch, with the index from which each applies."""
        self.message_keys: dict[tuple[MemberId, int, int], bytes] = {}
        self.opened: dict[int, bytes] = {}
        """Contents of opened direct messages, by their place."""
        self.used: dict[int, bytes] = {}
        """The keys that opened direct messages, except for first messages."""
        self.found: dict[EventId, bytes] = {}
        self._tried: set[tuple[int, bytes]] = set()
        self._turned: set[tuple[MemberId, int, bytes]] = set()

    # What is stolen.

    def steal(self, data: bytes) -> None:
        """Take over the whole state of a device."""
        state = decode_state(data)
        identity = state.prekeys.identity.public
        self.identities[identity] = state.prekeys.identity.secret
        for signed in state.prekeys.signed:
            self.prekeys[identity, signed.gen] = signed.keys.secret
        for one_time in state.prekeys.one_time:
            self.one_time[identity, one_time.id] = one_time.secret
        for cseq, secret in state.inband.items():
            self.prekeys[identity, cseq | _INBAND] = secret
        if state.me is not None:
            self._take_channels(state, state.me)
            self._take_keys(state, state.me)

    def _take_channels(self, state: GroupState, me: MemberId) -> None:
        for peer, channel in state.channels.items():
            if channel.received is not None:
                self.sent.setdefault((peer, me), {})[channel.received] = None
            for place, secret in enumerate(channel.own):
                self.own.setdefault((peer, me), {})[channel.first + place] = secret

    def _take_keys(self, state: GroupState, me: MemberId) -> None:
        for op, known in state.ops.items():
            for member, share in known.awaiting.items():
                if share:
                    self.shares[op, member] = share
        for owed in state.owed:
            if owed.secret:
                self.shares[owed.op, me] = owed.secret
        for member, ratchet in state.ratchets.items():
            turned = self.ledger.turned.get((member, state.clock[member]), 0)
            self.ratchets.setdefault((member, turned), {})[ratchet] = None
        if state.sending is not None:
            self._chain(me, state.sending.epoch, state.sending.index, state.sending.key)
        for member, chains in state.chains.items():
            for chain in chains.chains:
                self._chain(member, chain.epoch, chain.index, chain.key)
                for index, key in chain.skipped.items():
                    self.message_keys[member, chain.epoch, index] = key

    def _chain(self, member: MemberId, epoch: int, index: int, key: bytes) -> None:
        self.chains.setdefault((member, epoch), {})[index, key] = None

    # What follows.

    def close(self) -> None:
        """Derive keys until nothing new follows."""
        moved = True
        while moved:
            moved = self._open_directs()
            for member in self.ledger.members:
                moved = self._turn(member) or moved

    def _open_directs(self) -> bool:
        found = False
        for place, direct in enumerate(self.ledger.directs):
            if place not in self.opened:
                inner = self._open(place, direct)
                if inner is not None:
                    self.opened[place] = inner[68:]
                    self.sent.setdefault((direct.sender, direct.recipient), {})[inner[:32]] = None
                    self._learn(direct, inner[68:])
                    found = True
        return found

    def _open(self, place: int, direct: Direct) -> bytes | None:
        ends = fields(self.ledger.group, direct.sender, direct.recipient, u32(direct.cseq))
        context = ends + fields(direct.purpose.value)
        if direct.sealed[0] == 0:
            return self._open_first(direct, context)
        head = direct.sealed[:1] if direct.sealed[0] == 1 else direct.sealed[:5]
        info = fields(TWO_PARTY, head, context)
        for secret in self._candidates(direct):
            if (place, secret) in self._tried:
                continue
            self._tried.add((place, secret))
            try:
                inner = hpke_open(secret, info, direct.sealed[len(head) :])
            except RemoteError:
                continue
            self.used[place] = secret
            return inner
        return None

    def _candidates(self, direct: Direct) -> list[bytes]:
        """Return the keys that may open a direct message that is not a first one."""
        if self.thorough:
            known = [*self.identities.values(), *self.prekeys.values(), *self.one_time.values()]
            known += (secret for keys in self.sent.values() for secret in keys)
            known += (secret for keys in self.own.values() for secret in keys.values())
            return known
        ends = (direct.sender, direct.recipient)
        if direct.sealed[0] == 1:
            return list(self.sent.get(ends, ()))
        secret = self.own.get(ends, {}).get(int.from_bytes(direct.sealed[1:5], "big"))
        return [] if secret is None else [secret]

    def _open_first(self, direct: Direct, context: bytes) -> bytes | None:
        """Open a first message, sealed to prekeys; all secrets that it names are needed."""
        _, ephemeral, reference, number = _FIRST.unpack_from(direct.sealed)
        identity = self.ledger.members[direct.recipient].identity
        sender = self.ledger.members[direct.sender].identity
        ours, prekey = self.identities.get(identity), self.prekeys.get((identity, reference))
        one_time = self.one_time.get((identity, number))
        if ours is None or prekey is None or (number and one_time is None):
            return None
        shared = agree(prekey, sender) + agree(ours, ephemeral) + agree(prekey, ephemeral)
        if number and one_time is not None:
            shared += agree(one_time, ephemeral)
        keys = (ephemeral, sender, identity, public_of(prekey))
        info = fields(INITIAL, context, *keys, u32(reference), u32(number))
        out = hkdf(bytes(32), b"\xff" * 32 + shared, info, 44)
        try:
            return open_sealed(out[:32], out[32:], direct.sealed[_FIRST.size :], context)
        except RemoteError:
            return None

    def _learn(self, direct: Direct, payload: bytes) -> None:
        match direct.purpose:
            case Purpose.SEED:
                self._learn_seed(direct.about, payload)
            case Purpose.FORWARD:
                self.shares.setdefault((direct.about, direct.sender), payload)
            case Purpose.RATCHET | Purpose.WELCOME:
                self.ratchets.setdefault((direct.sender, direct.turns), {})[payload[:32]] = None

    def _learn_seed(self, op: EventId, seed: bytes) -> None:
        known = self.ledger.by_id[op]
        for member in (known.sender, *known.recipients):
            info = fields(self.ledger.group, op, member)
            self.shares[op, member] = hkdf(MEMBER_SECRET, seed, info, 32)

    def _turn(self, member: MemberId) -> bool:
        """Turn a member's ratchet as far as possible from each known step."""
        moved = False
        for place, turn in enumerate(self.ledger.turns[member]):
            data = self._input(member, turn)
            for ratchet in () if data is None else self.ratchets.get((member, place), ()):
                if (member, place, ratchet) in self._turned:
                    continue
                self._turned.add((member, place, ratchet))
                out = hkdf(ratchet, data or b"", fields(RATCHET, self.ledger.group, member), 64)
                self.ratchets.setdefault((member, place + 1), {})[out[32:]] = None
                self._output(member, place, out[:32])
                moved = True
        return moved

    def _input(self, member: MemberId, turn: Turn) -> bytes | None:
        """Return the input of a ratchet step, if it is known."""
        if turn.takes is Input.SHARE:
            share = self.shares.get((turn.op, member))
            return None if share is None else STEP_SECRET + share
        return STEP_WELCOME if turn.takes is Input.WELCOME else STEP_ADD

    def _output(self, member: MemberId, place: int, output: bytes) -> None:
        turn = self.ledger.turns[member][place]
        if turn.takes is Input.WELCOME:
            for newcomer, stay in self.ledger.members.items():
                if self.ledger.operations[stay.added].id == turn.op:
                    self.shares.setdefault((turn.op, newcomer), output)
        elif place + 1 == self.ledger.turned[member, turn.epoch]:
            self._chain(member, turn.epoch, 0, output)

    # What can be read.

    def read(self) -> dict[EventId, bytes]:
        """Return all readable messages with their texts."""
        self.close()
        for message in self.ledger.messages:
            if message.id not in self.found:
                text = self._read(message)
                if text is not None:
                    self.found[message.id] = text
        return dict(self.found)

    def _read(self, message: Overheard) -> bytes | None:
        _, member, epoch, index, guard = _CLEAR.unpack(message.clear)
        for key in self.keys_of(MemberId(member), epoch, index):
            nonce = bytes(a ^ b for a, b in zip(key[32:36], guard, strict=True)) + key[36:]
            try:
                padded = open_sealed(key[:32], nonce, message.body, fields(message.clear, message.bound))
            except RemoteError:
                continue
            return padded.rstrip(b"\x00")[:-1]
        return None

    def keys_of(self, member: MemberId, epoch: int, index: int) -> list[bytes]:
        """Return key and nonce of a message, from each way that leads to it."""
        single = self.message_keys.get((member, epoch, index))
        found = [] if single is None else [single]
        for start, chain in self.chains.get((member, epoch), ()):
            key = chain
            for number in range(start, index + 1):
                info = fields(MESSAGE, self.ledger.group, member, u32(epoch), u32(number))
                out = hkdf(bytes(32), key, info, 76)
                key = out[44:]
                if number == index:
                    found.append(out[:44])
        return found


def attack(
    group: bytes, heard: Sequence[Overheard], states: Iterable[bytes], thorough: bool = False
) -> dict[EventId, bytes]:
    """Return the messages that an attacker with these states, who overheard everything, can read."""
    attacker = Attacker(Ledger(group, heard), thorough)
    for state in states:
        attacker.steal(state)
    return attacker.read()
