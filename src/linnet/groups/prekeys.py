"""Prekeys: keys that a device publishes ahead, so that others can begin with it while it is away.

A bundle holds the device's identity key for the group, a signed prekey (`spk`) that all may use, and
one-time prekeys that one member each is meant to use. The event that carries a bundle signs it.
Nobody hands out the one-time keys, so two members may choose the same one: its owner keeps it for a
while after its first use (`grace`, a day), and never accepts it twice from the same member. A grace of
zero is the strict way: the key is gone with its first use, and a second user of it must be added again.

Keys that a peer may rightly still use are kept: the keys of a superseded bundle live until that bundle has
expired and operations sent on its last day have had the time to arrive (`IN_FLIGHT`). Every renewal brings
a fresh `spk`; unused one-time keys stay in the bundle while they are young.

A member's own seed brings a new prekey in-band, and the bundle after it has that key as its `spk` and none
but new one-time keys: so a peer that begins after the seed uses no key that a thief had before it. Once
all know the seed, older keys go (`retire`).
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Container
from typing import Final

from msgspec import Struct, structs

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups.labels import PREKEY_CHOICE, MemberId, fields, u32
from linnet.groups.primitives import KEY_BYTES, Hidden, KeyPair, check_public, key_pair

DAY = 86_400
LIFE: Final = 28 * DAY
"""Seconds for which a bundle may be used."""
GRACE: Final = DAY
"""Seconds for which a one-time prekey outlives its first use."""
IN_FLIGHT: Final = 30 * DAY
"""Seconds that an operation may be under way: relays keep it as long for absent devices."""
SKEW: Final = 3_600
"""Seconds before its making from which a bundle is good, since clocks differ."""
RENEWED: Final = 16
"""One-time prekeys of a member's bundle, or one for each member if there are more members.

Other members mostly have channels with it already: only newcomers, and members that missed its seed, need
one."""
MAX_ONE_TIME = 1_024
"""One-time prekeys of one bundle, ours or another's, at most."""
MAX_GENERATION = 2**31 - 1
"""One bit of the wire's prekey reference tells where the key came from."""
MAX_ONE_TIME_ID = 2**32 - 1

_RENEW_AFTER = 2 / 3
_HEAD = struct.Struct(">32sIQQ32sH")
_ONE_TIME = struct.Struct(">I32s")


class Bundle(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The keys by which others begin with a device, good from one second of Unix time to another."""

    identity: bytes
    gen: int
    not_before: int
    not_after: int
    spk: bytes
    opks: tuple[tuple[int, bytes], ...]


class Signed(Hidden, frozen=True):
    """The signed prekey of one bundle of ours."""

    gen: int
    keys: KeyPair
    not_after: int
    first: int = 0
    """The id of the first one-time prekey that may go along with it."""


class OneTime(Hidden, frozen=True):
    """A one-time prekey of ours; once used, with the time of its first use and the members that used it."""

    id: int
    secret: bytes
    made: int
    not_after: int
    used_at: int | None = None
    senders: tuple[MemberId, ...] = ()


class Prekeys(Hidden, frozen=True):
    """The secrets behind our bundles, and the newest bundle itself."""

    identity: KeyPair
    bundle: Bundle
    signed: tuple[Signed, ...]
    one_time: tuple[OneTime, ...]
    next_id: int
    life: int
    grace: int


def encode_bundle(bundle: Bundle) -> bytes:
    """Return a bundle as bytes of fixed order and width."""
    head = _HEAD.pack(
        bundle.identity, bundle.gen, bundle.not_before, bundle.not_after, bundle.spk, len(bundle.opks)
    )
    return head + b"".join(_ONE_TIME.pack(number, public) for number, public in bundle.opks)


def decode_bundle(data: bytes) -> Bundle:
    """Return a foreign bundle; `RemoteError` unless it is well formed and each key in it can be used."""
    if len(data) < _HEAD.size:
        raise MalformedMessage("a bundle of prekeys ends early")
    identity, gen, not_before, not_after, spk, count = _HEAD.unpack_from(data)
    if count > MAX_ONE_TIME or len(data) != _HEAD.size + count * _ONE_TIME.size:
        raise MalformedMessage("a bundle of prekeys has another length than it says")
    if not 0 < gen <= MAX_GENERATION or not_after <= not_before:
        raise MalformedMessage("a bundle of prekeys with an impossible number or dates")
    check_public(identity)
    check_public(spk)
    opks = tuple(_ONE_TIME.iter_unpack(data[_HEAD.size :]))
    last = 0
    for number, public in opks:
        if number <= last:
            raise MalformedMessage("one-time prekeys out of order")
        check_public(public)
        last = number
    return Bundle(identity, gen, not_before, not_after, spk, opks)


def check_bundle(bundle: Bundle, now: float) -> None:
    """Raise `Refused` with ``prekey_expired`` if a bundle's dates do not allow its use now."""
    if now > bundle.not_after:
        raise Refused(Reason.PREKEY_EXPIRED, f"the prekeys ended at {bundle.not_after}")
    if now < bundle.not_before:
        raise Refused(Reason.PREKEY_EXPIRED, f"the prekeys begin at {bundle.not_before}")


def choose(bundle: Bundle, mine: MemberId, spent: Container[int] = ()) -> tuple[int, bytes] | None:
    """Return the one-time prekey to begin with; None if there is none that we have not used.

    The search starts at a place that depends on our id, so that members spread over the bundle.
    """
    count = len(bundle.opks)
    if not count:
        return None
    digest = hashlib.sha256(fields(PREKEY_CHOICE, mine, u32(bundle.gen))).digest()
    first = int.from_bytes(digest, "big") % count
    for step in range(count):
        candidate = bundle.opks[(first + step) % count]
        if candidate[0] not in spent:
            return candidate
    return None


def make_prekeys(entropy: Entropy, now: float, count: int, life: int = LIFE, grace: int = GRACE) -> Prekeys:
    """Make our first keys for a group, with this many one-time prekeys."""
    identity = key_pair(entropy)
    nothing = Bundle(identity.public, 0, 0, 0, bytes(KEY_BYTES), ())
    return renew(Prekeys(identity, nothing, (), (), 1, life, grace), entropy, now, count)


def bundle_of(prekeys: Prekeys) -> Bundle:
    """Return the bundle to be published."""
    return prekeys.bundle


def renew(prekeys: Prekeys, entropy: Entropy, now: float, count: int, spk: KeyPair | None = None) -> Prekeys:
    """Make a new bundle: a fresh signed prekey, and one-time prekeys up to this count.

    If `spk` is given it is the signed prekey: the one that our newest seed brought in-band. Unused one-time
    prekeys stay in the bundle while they are young, unless they are older than the seed; all keys of older
    bundles are kept beside.
    """
    gen = prekeys.bundle.gen + 1
    if not 0 <= count <= MAX_ONE_TIME:
        raise Refused(Reason.TOO_MANY, f"a bundle has at most {MAX_ONE_TIME} one-time prekeys")
    if gen > MAX_GENERATION or prekeys.next_id + count > MAX_ONE_TIME_ID:
        raise Refused(Reason.TOO_MANY, "the numbers of prekeys are used up")
    start = int(now)
    not_after = start + prekeys.life
    first = 0 if spk is None else _first_with(prekeys, spk.secret).first
    signed = Signed(gen, key_pair(entropy) if spk is None else spk, not_after, first)
    published = dict(prekeys.bundle.opks)
    keep: list[OneTime] = []
    kept: list[tuple[int, bytes]] = []
    for key in prekeys.one_time:
        young = now < key.made + prekeys.life * _RENEW_AFTER and key.id >= first
        if key.used_at is None and young and key.id in published and len(kept) < count:
            kept.append((key.id, published[key.id]))
            key = structs.replace(key, not_after=not_after)
        keep.append(key)
    next_id = prekeys.next_id
    for _ in range(count - len(kept)):
        pair = key_pair(entropy)
        kept.append((next_id, pair.public))
        keep.append(OneTime(next_id, pair.secret, start, not_after))
        next_id += 1
    bundle = Bundle(
        prekeys.identity.public, gen, max(0, start - SKEW), not_after, signed.keys.public, tuple(kept)
    )
    return structs.replace(
        prekeys, bundle=bundle, signed=(*prekeys.signed, signed), one_time=tuple(keep), next_id=next_id
    )


def retire(prekeys: Prekeys, spk: bytes) -> Prekeys:
    """Drop all keys older than a seed of ours, once everybody knows its prekey, named here by its secret."""
    oldest = _first_with(prekeys, spk)
    signed = tuple(key for key in prekeys.signed if key.gen >= oldest.gen)
    one_time = tuple(key for key in prekeys.one_time if key.id >= oldest.first)
    return structs.replace(prekeys, signed=signed, one_time=one_time)


def _first_with(prekeys: Prekeys, secret: bytes) -> Signed:
    """Return the oldest signed prekey with this secret; if there is none, what the next bundle's would be."""
    for key in prekeys.signed:
        if hmac.compare_digest(key.keys.secret, secret):
            return key
    return Signed(prekeys.bundle.gen + 1, prekeys.identity, 0, prekeys.next_id)


def prune(prekeys: Prekeys, now: float) -> Prekeys:
    """Drop expired secrets; return the very same value if there are none."""
    signed = tuple(key for key in prekeys.signed if now <= key.not_after + IN_FLIGHT)
    one_time = tuple(key for key in prekeys.one_time if now <= _end(key, prekeys.grace))
    if len(signed) == len(prekeys.signed) and len(one_time) == len(prekeys.one_time):
        return prekeys
    return structs.replace(prekeys, signed=signed, one_time=one_time)


def due(prekeys: Prekeys, now: float, low: float = 0.25) -> bool:
    """Return whether to renew the bundle.

    That is late in its life, when few one-time keys are left, or when some of them are gone or soon gone;
    also before its life begins: it was made while our clock was ahead, and nobody takes it until then.

    Gone keys count since members still choose from the bundle that they know: a member that chooses a key
    which its owner has deleted is led astray.
    """
    bundle = prekeys.bundle
    if now < bundle.not_before or now >= bundle.not_after - prekeys.life * (1 - _RENEW_AFTER):
        return True
    live = {key.id: key for key in prekeys.one_time}
    left = 0
    for number, _ in bundle.opks:
        key = live.get(number)
        if key is None or (key.used_at is not None and now >= key.used_at + prekeys.grace / 2):
            return True
        left += key.used_at is None
    return left < low * len(bundle.opks)


def signed_prekey(prekeys: Prekeys, gen: int, now: float) -> KeyPair:
    """Return our signed prekey of this bundle, for a message that names it."""
    for key in prekeys.signed:
        if key.gen == gen:
            if now > key.not_after + IN_FLIGHT:
                break
            return key.keys
    if 0 < gen <= prekeys.bundle.gen:
        raise RemoteError(Reason.PREKEY_EXPIRED, f"it uses our prekeys number {gen}, which have ended")
    raise RemoteError(Reason.KEY_MISSING, f"it uses prekeys number {gen}, which we never had")


def one_time_prekey(prekeys: Prekeys, number: int, sender: MemberId, now: float) -> bytes:
    """Return the secret of our one-time prekey of this number, if this member may use it now."""
    for key in prekeys.one_time:
        if key.id == number:
            if sender in key.senders:
                raise RemoteError(Reason.KEY_SPENT, f"it uses our one-time prekey {number} again")
            if now > _end(key, prekeys.grace):
                break
            return key.secret
    if 0 < number < prekeys.next_id:
        raise RemoteError(Reason.KEY_SPENT, f"our one-time prekey {number} is deleted")
    raise RemoteError(Reason.KEY_MISSING, f"it uses a one-time prekey {number} that we never had")


def used(prekeys: Prekeys, number: int, sender: MemberId, now: float) -> Prekeys:
    """Note the use of a one-time prekey by an opened message: it is deleted at once, or after its grace."""
    keep = []
    for key in prekeys.one_time:
        if key.id == number:
            if prekeys.grace <= 0:
                continue
            first = int(now) if key.used_at is None else key.used_at
            key = structs.replace(key, used_at=first, senders=(*key.senders, sender))
        keep.append(key)
    return structs.replace(prekeys, one_time=tuple(keep))


def _end(key: OneTime, grace: int) -> int:
    """Return until when this key may be used: its grace, or its bundle's end, whichever is first."""
    expires = key.not_after + IN_FLIGHT
    return expires if key.used_at is None else min(key.used_at + grace, expires)
