"""Channels between two members, with forward secrecy and healing in every single message.

The idea is that of Jost, Maurer and Mularczyk (2019), as Weidner et al. (2021) use it: each message is
encrypted to a public key that is used this once. It carries a new public key of its sender, for the
answer, and a new secret key for its receiver, to which the sender's next message will be encrypted if
no answer comes before. The first message of a channel goes to prekeys, by a key agreement like X3DH.

A channel needs its messages in the order in which each side sent them, nothing more: messages that
cross, even two first ones, are fine. A message names the key that it is for::

    kind 0   0 · ephemeral 32 · prekey reference u32 · one-time prekey u32 · ciphertext
    kind 1   1 · encapsulated 32 · ciphertext                    to the key that came with the last message
    kind 2   2 · index u32 · encapsulated 32 · ciphertext        to the receiver's own key of this index

and holds, encrypted: secret 32 · public 32 · index u32 · payload. The prekey reference is the number of
the bundle, or with its top bit set the number of the operation that brought the prekey in-band.
The caller gives the context that a message is bound to; `direct_context` makes it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct, structs

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups.labels import INITIAL, TWO_PARTY, MemberId, Purpose, fields, u32
from linnet.groups.prekeys import (
    MAX_ONE_TIME,
    Bundle,
    Prekeys,
    check_bundle,
    choose,
    one_time_prekey,
    signed_prekey,
    used,
)
from linnet.groups.primitives import (
    HPKE_OVERHEAD,
    KEY_BYTES,
    NONCE_BYTES,
    TAG_BYTES,
    Hidden,
    KeyPair,
    agree,
    check_public,
    hkdf,
    hpke_open,
    hpke_seal,
    key_pair,
    open_sealed,
    public_of,
    seal,
    undecryptable,
)

MAX_OWN_KEYS = 2**16
"""Keys of ours that wait for an answer, at most: the peer was silent for as many messages."""
REMEMBERED = 32
"""First messages without a one-time prekey that a channel remembers, to refuse their copies."""

_BY_PREKEY, _BY_SENT, _BY_OWN = 0, 1, 2
_INBAND = 2**31
_MAX_INDEX = 2**32 - 1
_INITIAL = struct.Struct(">B32sII")
_OWN = struct.Struct(">BI")
_INNER = struct.Struct(">32s32sI")
_OVERHEAD: Final = {
    _BY_PREKEY: _INITIAL.size + _INNER.size + TAG_BYTES,
    _BY_SENT: 1 + HPKE_OVERHEAD + _INNER.size,
    _BY_OWN: _OWN.size + HPKE_OVERHEAD + _INNER.size,
}


class Channel(Hidden, frozen=True):
    """One member's end of a channel with one other."""

    own: tuple[bytes, ...] = ()
    """Secrets of keys of ours that the peer may still use, of consecutive indices."""
    first: int = 1
    """The index of the first of these keys, or of the next one if there are none."""
    received: bytes | None = None
    """The newest secret that the peer made for us."""
    peer: bytes | None = None
    """The public key for our next message; None: the next message is a first one."""
    peer_index: int = 0
    """The peer's index of that key; 0: we made it for the peer."""
    spent: tuple[int, ...] = ()
    """One-time prekeys of the peer that we have used: it accepts none of them from us again."""
    opened: tuple[bytes, ...] = ()
    """Ephemeral keys of the latest first messages that came without a one-time prekey."""


EMPTY: Final = Channel()


class Reach(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The keys to begin a channel with a peer, and the origin of its prekey."""

    identity: bytes
    spk: bytes
    spk_ref: int
    """0: the bundle `gen`; else the number of the peer's operation that carried it."""
    gen: int
    opk: tuple[int, bytes] | None

    @property
    def weak(self) -> bool:
        """Whether there is no one-time prekey: then the first message can be opened while the `spk` lives."""
        return self.opk is None


def direct_context(group: bytes, sender: MemberId, recipient: MemberId, cseq: int, purpose: Purpose) -> bytes:
    """Return the context that a direct message is bound to: its group, members, operation and purpose."""
    return fields(group, sender, recipient, u32(cseq), purpose.value)


def direct_length(sealed: bytes, payload: int = 32) -> int:
    """Return the length of the direct message that begins here, by its first byte and its payload."""
    overhead = _OVERHEAD.get(sealed[0]) if sealed else None
    if overhead is None:
        raise MalformedMessage("a direct message of no known kind")
    return overhead + payload


class PeerKeys(NamedTuple):
    """The known keys of a member: its newest bundle, and its newest in-band prekey."""

    identity: bytes
    bundle: Bundle | None
    inband: tuple[int, bytes] | None = None
    """The number of the operation that brought the prekey, and the prekey."""


class Incoming(NamedTuple):
    """A direct message that was received, its sender, and the context that it has to be bound to."""

    sender: MemberId
    identity: bytes
    """The sender's identity key by its membership, never one that the message might bring."""
    context: bytes
    sealed: bytes


def reach_by(channel: Channel, keys: PeerKeys, mine: MemberId, now: float, renewed: bool = True) -> Reach:
    """Return the keys to begin a channel with a member.

    The in-band prekey heals, a one-time prekey of the bundle gives forward secrecy: with both, a first
    message has both. They go together only if the bundle is of that operation or newer, which its `spk`
    tells: a one-time prekey from before may have been stolen before, and may be gone by now. With `renewed`
    off any will do. A bundle that has ended, or is of another identity, is not used; `Refused` if nothing
    remains.
    """
    identity, bundle, inband = keys
    if bundle is None or bundle.identity != identity:
        if inband is None:
            raise Refused(Reason.MISSING_PREKEYS, "there are no prekeys to begin with")
        return Reach(identity, inband[1], inband[0], 0, None)
    try:
        check_bundle(bundle, now)
    except Refused:
        if inband is None:
            raise
        return Reach(identity, inband[1], inband[0], bundle.gen, None)
    ref, spk = inband if inband is not None else (0, bundle.spk)
    is_other = renewed and spk != bundle.spk
    return Reach(identity, spk, ref, bundle.gen, None if is_other else choose(bundle, mine, channel.spent))


def begun(channel: Channel) -> bool:
    """Return whether the next message can be sent without a `Reach`."""
    return channel.peer is not None


def restart(channel: Channel) -> Channel:
    """Forget the peer's key, so that our next message is a first one; messages under way still open.

    For when the peer renewed its keys in an operation that was not addressed to us: a thief of its old state
    may know the keys of it that we know.
    """
    return structs.replace(channel, peer=None, peer_index=0)


def send(
    channel: Channel,
    reach: Reach | None,
    our_identity_secret: bytes,
    context: bytes,
    payload: bytes,
    entropy: Entropy,
) -> tuple[Channel, bytes]:
    """Make a direct message; return the channel after it, and the message. `Refused` if it cannot be sent."""
    index = channel.first + len(channel.own)
    if len(channel.own) >= MAX_OWN_KEYS or index > _MAX_INDEX:
        raise Refused(Reason.TOO_MANY, "the peer has not answered for too many messages")
    mine = key_pair(entropy)
    theirs = key_pair(entropy)
    inner = _INNER.pack(theirs.secret, mine.public, index) + payload
    spent = channel.spent
    if channel.peer is None:
        if reach is None:
            raise Refused(Reason.MISSING_PREKEYS, "there are no prekeys to begin with")
        sealed = _seal_first(reach, our_identity_secret, context, inner, entropy)
        if reach.opk is not None:
            spent = (*spent, reach.opk[0])[-MAX_ONE_TIME:]
    else:
        head = _OWN.pack(_BY_OWN, channel.peer_index) if channel.peer_index else bytes((_BY_SENT,))
        sealed = head + hpke_seal(channel.peer, fields(TWO_PARTY, head, context), inner, entropy)
    after = structs.replace(
        channel, own=(*channel.own, mine.secret), peer=theirs.public, peer_index=0, spent=spent
    )
    return after, sealed


def receive(
    channel: Channel,
    prekeys: Prekeys,
    inband: Mapping[int, bytes],
    message: Incoming,
    now: float,
) -> tuple[Channel, Prekeys, bytes]:
    """Open a direct message; return channel and prekeys after it, and its payload, or raise `RemoteError`.

    `inband` holds the secrets of our in-band prekeys by the number of their operation.
    """
    if message.sealed[:1] == bytes((_BY_PREKEY,)):
        inner, prekeys, opened = _open_first(channel, prekeys, inband, message, now)
        after, payload = _taken(structs.replace(channel, opened=opened), inner, 0)
        return after, prekeys, payload
    inner, spent = _open(channel, message.context, message.sealed)
    after, payload = _taken(channel, inner, spent)
    return after, prekeys, payload


def _open(channel: Channel, context: bytes, sealed: bytes) -> tuple[bytes, int]:
    """Open a later message; return its content, and how many of our own keys it makes useless."""
    if sealed[:1] == bytes((_BY_SENT,)) and channel.received is not None:
        head, secret, spent = sealed[:1], channel.received, 0
    elif sealed[:1] == bytes((_BY_OWN,)) and len(sealed) >= _OWN.size:
        head = sealed[: _OWN.size]
        spent = _OWN.unpack(head)[1] - channel.first + 1
        if not 0 < spent <= len(channel.own):
            raise undecryptable()
        secret = channel.own[spent - 1]
    else:
        raise undecryptable()
    return hpke_open(secret, fields(TWO_PARTY, head, context), sealed[len(head) :]), spent


def _taken(channel: Channel, inner: bytes, spent: int) -> tuple[Channel, bytes]:
    """Return the channel with the keys that a message brought, without the used ones; and its payload."""
    if len(inner) < _INNER.size:
        raise undecryptable()
    secret, public, index = _INNER.unpack_from(inner)
    try:
        check_public(public)
    except RemoteError:
        raise undecryptable() from None
    if index == 0:
        raise undecryptable()
    after = structs.replace(
        channel,
        own=channel.own[spent:],
        first=channel.first + spent,
        received=secret,
        peer=public,
        peer_index=index,
    )
    return after, inner[_INNER.size :]


def _first_key(
    shared: bytes, context: bytes, keys: tuple[bytes, bytes, bytes, bytes], refs: bytes
) -> tuple[bytes, bytes]:
    """Return key and nonce of a first message. `keys`: ephemeral, both identities, receiver's prekey."""
    info = fields(INITIAL, context, *keys, refs[:4], refs[4:])
    out = hkdf(bytes(KEY_BYTES), b"\xff" * KEY_BYTES + shared, info, KEY_BYTES + NONCE_BYTES)
    return out[:KEY_BYTES], out[KEY_BYTES:]


def _seal_first(reach: Reach, our_secret: bytes, context: bytes, inner: bytes, entropy: Entropy) -> bytes:
    ref = reach.spk_ref or reach.gen
    if not 0 < ref < _INBAND:
        raise Refused(Reason.TOO_MANY, "the numbers of prekeys are used up")
    ref |= _INBAND if reach.spk_ref else 0
    ephemeral = key_pair(entropy)
    shared = agree(our_secret, reach.spk) + agree(ephemeral.secret, reach.identity)
    shared += agree(ephemeral.secret, reach.spk)
    if reach.opk is not None:
        shared += agree(ephemeral.secret, reach.opk[1])
    head = _INITIAL.pack(_BY_PREKEY, ephemeral.public, ref, reach.opk[0] if reach.opk else 0)
    keys = (ephemeral.public, public_of(our_secret), reach.identity, reach.spk)
    key, nonce = _first_key(shared, context, keys, head[-8:])
    return head + seal(key, nonce, inner, context)


def _open_first(
    channel: Channel,
    prekeys: Prekeys,
    inband: Mapping[int, bytes],
    message: Incoming,
    now: float,
) -> tuple[bytes, Prekeys, tuple[bytes, ...]]:
    """Open a first message; return its content, our prekeys after it, and the remembered first messages."""
    sender, sender_identity, context, sealed = message
    if len(sealed) < _INITIAL.size:
        raise undecryptable()
    _, ephemeral, ref, number = _INITIAL.unpack_from(sealed)
    spk = _signed(prekeys, inband, ref, now)
    if number:
        one_time = one_time_prekey(prekeys, number, sender, now)
    elif ephemeral in channel.opened:
        raise RemoteError(Reason.KEY_SPENT, "the first message of a channel came again")
    try:
        shared = agree(spk.secret, sender_identity) + agree(prekeys.identity.secret, ephemeral)
        shared += agree(spk.secret, ephemeral)
        if number:
            shared += agree(one_time, ephemeral)
    except RemoteError:
        raise undecryptable() from None
    keys = (ephemeral, sender_identity, prekeys.identity.public, spk.public)
    key, nonce = _first_key(shared, context, keys, sealed[_INITIAL.size - 8 : _INITIAL.size])
    inner = open_sealed(key, nonce, sealed[_INITIAL.size :], context)
    if number:
        return inner, used(prekeys, number, sender, now), channel.opened
    return inner, prekeys, (*channel.opened, ephemeral)[-REMEMBERED:]


def _signed(prekeys: Prekeys, inband: Mapping[int, bytes], ref: int, now: float) -> KeyPair:
    """Return our prekey that a first message refers to."""
    if not ref & _INBAND:
        return signed_prekey(prekeys, ref, now)
    secret = inband.get(ref ^ _INBAND)
    if secret is None:
        raise RemoteError(Reason.KEY_MISSING, "it uses an in-band prekey that is retired or never was")
    return KeyPair(secret, public_of(secret))
