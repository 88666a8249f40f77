"""Messages: encrypted under a key that is used once, padded so that lengths tell little.

Carriers see these fields of a message, which are bound to it with all other fields of its event::

    version u8 · member 16 · epoch u32 · index u32 · guard 4

The guard is random and goes into the nonce: should an old state ever be restored, the same key still meets
another nonce. All members hold the key, so only the event's signature proves the sender.
"""

from __future__ import annotations

import struct
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.limits import BODY_BYTES, KIB
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups import removal_cover
from linnet.groups.chains import MESSAGE_KEY_BYTES, message_key, take
from linnet.groups.labels import Device, MemberId, fields
from linnet.groups.primitives import KEY_BYTES, TAG_BYTES, Hidden, open_sealed, undecryptable
from linnet.groups.primitives import seal as seal_bytes
from linnet.groups.state import GroupState

VERSION: Final = 1
_CLEAR = struct.Struct(">B16sII4s")
CLEAR_BYTES: Final = _CLEAR.size
PLAINTEXT_BYTES: Final = BODY_BYTES - TAG_BYTES - 1
"""Bytes of the longest message."""
_SMALLEST, _PAGE = 64, 4 * KIB
_MOST_MESSAGES = 2**32 - 1


class Envelope(Struct):
    """The place of one message in our chain, and its key, which seals that message and no other."""

    clear: bytes
    key: bytes
    """The key, 32 bytes, and the nonce, 12."""
    used: bool = False

    def seal(self, plaintext: bytes, bound: bytes) -> bytes:
        """Return the message, padded and encrypted; only once. `bound` is everything else in the event."""
        if self.used:
            raise Refused(Reason.KEY_SPENT, "an envelope holds one message")
        padded = pad(plaintext)
        self.used = True
        return seal_bytes(
            self.key[:KEY_BYTES], _nonce(self.key, self.clear), padded, fields(self.clear, bound)
        )

    def __repr__(self) -> str:
        return f"Envelope({self.clear.hex()})"


class Opened(Hidden, frozen=True):
    """The text of a message, and its key: to be forgotten, or shown to newcomers where history is shared."""

    plaintext: bytes
    key: bytes


def envelope(state: GroupState, entropy: Entropy) -> tuple[GroupState, Envelope]:
    """Take the next place in our chain; the state after it no longer has the key.

    `Refused` while we are outside, while we owe acknowledgements, and while removed members might read.
    """
    if state.me is None:
        raise Refused(Reason.UNKNOWN_MEMBER, "this device is not in the group")
    if state.desynced:
        raise Refused(Reason.DESYNCED, state.desynced)
    if state.owed or state.sending is None:
        raise Refused(Reason.ACKS_OWED, f"{len(state.owed)} acknowledgements are to be sent first")
    if state.hardening.heal_before_sending and removal_cover.needs_heal(state.cover, state.history):
        raise Refused(Reason.NEEDS_HEAL, "removed members might read: a new seed has to come first")
    chain = state.sending
    if chain.index >= _MOST_MESSAGES:
        raise Refused(Reason.TOO_MANY, "the epoch has no more numbers: update first")
    key, after = message_key(state.group, state.me, chain.epoch, chain.index, chain.key)
    clear = _CLEAR.pack(VERSION, state.me, chain.epoch, chain.index, entropy(4))
    sending = replace(chain, index=chain.index + 1, key=after)
    return replace(state, sending=sending), Envelope(clear, key)


def open_message(
    state: GroupState, sender: Device, clear: bytes, bound: bytes, sealed: bytes
) -> tuple[GroupState, Opened]:
    """Open a member's message; return the state without its key, and the text. `RemoteError` if it fails.

    ``key_missing`` and ``unknown_member`` may pass as operations come; all other reasons are final.
    """
    member, epoch, index = read_clear(clear)
    chains = state.chains.get(member)
    known = state.history.member(member)
    if known is not None and known.device != sender:
        raise RemoteError(Reason.UNKNOWN_MEMBER, "the member is another device")
    if member == state.me or member in state.past:
        raise RemoteError(Reason.KEY_SPENT, "a message of our own is not kept for us")
    if known is None:
        raise RemoteError(Reason.UNKNOWN_MEMBER, "nobody in the group has that id")
    if epoch > state.clock.get(member, 0) or (chains is None and member in state.ratchets):
        raise RemoteError(Reason.KEY_MISSING, f"the operation that begins epoch {epoch} is not here")
    if chains is None:
        raise RemoteError(Reason.BEFORE_JOINING, "sent before its sender knew of us")
    after, key = take(chains, state.group, member, epoch, index)
    plaintext = open_with(key, clear, bound, sealed)
    return replace(state, chains={**state.chains, member: after}), Opened(plaintext, key)


def open_with(key: bytes, clear: bytes, bound: bytes, sealed: bytes) -> bytes:
    """Open a message by a key that somebody has shown us."""
    if len(key) != MESSAGE_KEY_BYTES or len(clear) != CLEAR_BYTES:
        raise undecryptable()
    padded = open_sealed(key[:KEY_BYTES], _nonce(key, clear), sealed, fields(clear, bound))
    return unpad(padded)


def read_clear(clear: bytes) -> tuple[MemberId, int, int]:
    """Return member, epoch and index of a message."""
    if len(clear) != CLEAR_BYTES:
        raise MalformedMessage(f"a sealed message has {CLEAR_BYTES} clear bytes, not {len(clear)}")
    version, member, epoch, index, _ = _CLEAR.unpack(clear)
    if version != VERSION:
        raise MalformedMessage(f"a sealed message of version {version}", Reason.UNSUPPORTED)
    return MemberId(member), epoch, index


def pad(plaintext: bytes) -> bytes:
    """Fill a text up to 64 bytes times a power of two, from 4 KiB on to whole pages."""
    size = len(plaintext) + 1
    if size > PLAINTEXT_BYTES + 1:
        raise Refused(Reason.TOO_LARGE, f"a message has at most {PLAINTEXT_BYTES} bytes")
    if size <= _PAGE:
        padded = max(_SMALLEST, 1 << (size - 1).bit_length())
    else:
        padded = min(-(-size // _PAGE) * _PAGE, PLAINTEXT_BYTES + 1)
    return plaintext + b"\x80" + bytes(padded - size)


def unpad(padded: bytes) -> bytes:
    """Return the text without its padding; `RemoteError` if it was not padded so."""
    stripped = padded.rstrip(b"\x00")
    if not stripped.endswith(b"\x80") or pad(stripped[:-1]) != padded:
        raise undecryptable()
    return stripped[:-1]


def _nonce(key: bytes, clear: bytes) -> bytes:
    """Return the nonce of a message: the derived one, its first four bytes mixed with the guard."""
    guard = int.from_bytes(clear[-4:], "big") << 64
    return (int.from_bytes(key[KEY_BYTES:], "big") ^ guard).to_bytes(12, "big")
