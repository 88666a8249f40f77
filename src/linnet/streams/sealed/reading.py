"""The reader's side of a sealed stream: its requests, and the keys that announcements brought.

Pure functions on frozen values. A channel needs its messages in order, so announcements are taken in one
after the other; each names the one before. Two sorts need none before them: one whose direct message is
the first of a channel, and one that begins an epoch without us.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from linnet.core.errors import RemoteError
from linnet.core.ids import DeviceId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups.ids import Device
from linnet.groups.prekeys import Prekeys, make_prekeys
from linnet.groups.primitives import KEY_BYTES, Hidden
from linnet.groups.two_party import EMPTY, Channel, receive
from linnet.streams.sealed import stream_keys
from linnet.streams.sealed.message_format import Clear
from linnet.streams.sealed.owner import Announcement, Sort, context_of, party_of

ACCESSES: Final = 2
"""Requests of ours that may be answered: the newest, and the one by which we read until then."""


class Access(Hidden, frozen=True):
    """One request of ours: its prekeys, and once it was answered the channel instead."""

    prekeys: Prekeys
    channel: Channel = EMPTY


class Reading(Hidden, frozen=True):
    """All that a device keeps of a sealed stream that it asked to read."""

    accesses: tuple[Access, ...]
    """Newest first."""
    sealer: DeviceId | None = None
    """The owner's device whose announcements we follow."""
    last: int | None = None
    """Number of the newest announcement that was taken in."""
    first: int | None = None
    """The epoch from which on we read; None: we were not let in yet."""
    barred: tuple[int, str] | None = None
    """An epoch from which on we have no key, and the reason."""
    keys: stream_keys.Epochs = ()


def ask(reading: Reading | None, entropy: Entropy, now: float) -> Reading:
    """A new request, with prekeys that nobody has seen; what we can read stays as it is until the answer."""
    access = Access(make_prekeys(entropy, now, 1, grace=0))
    if reading is None:
        return Reading((access,))
    # Of two requests the one that was answered is worth keeping, or else the newer one.
    kept = [known for known in reading.accesses if known.channel.received is not None] or reading.accesses
    return replace(reading, accesses=(access, *kept)[:ACCESSES])


def stands_alone(announcement: Announcement, me: Device) -> bool:
    """Whether an announcement can be taken in whatever came before it."""
    message = announcement.messages.get(me)
    return announcement.sort is Sort.EPOCH if message is None else message[0] == 0


def follows(reading: Reading, owner: DeviceId, announcement: Announcement) -> bool:
    """Whether it is the next one."""
    return owner == reading.sealer and announcement.before == reading.last


def take(
    reading: Reading,
    topic: TopicId,
    owner: Device,
    number: int,
    announcement: Announcement,
    me: Device,
    now: float,
) -> Reading:
    """What is known after an announcement of this number, which `follows` or `stands_alone`."""
    message = announcement.messages.get(me)
    known = owner.device == reading.sealer
    if message is None:
        if announcement.sort is not Sort.EPOCH:
            return replace(reading, last=number) if known else reading
        if not known and reading.sealer is not None:
            return reading
        barred = (announcement.epoch, Reason.NOT_A_MEMBER.value)
        return replace(reading, sealer=owner.device, last=number, barred=barred)
    context = context_of(topic, owner, me, announcement.epoch)
    party = party_of(topic, owner)
    for place, access in enumerate(reading.accesses):
        try:
            channel, prekeys, key = receive(
                access.channel, access.prekeys, {}, party, announcement.identity, context, message, now
            )
        except RemoteError:
            continue
        if len(key) != KEY_BYTES:
            continue
        opened = Access(_spent(prekeys), channel)
        newer = reading.accesses[:place]
        return _opened(reading, (*newer, opened), owner.device, number, announcement.epoch, key, now)
    if not known and reading.sealer is not None:
        return reading
    barred = (announcement.epoch, Reason.DESYNCED.value)
    return replace(reading, sealer=owner.device, last=number, barred=barred)


def why_not(reading: Reading | None, device: DeviceId, clear: Clear) -> Reason:
    """Why a message cannot be opened whose epoch's key is not here."""
    if reading is None:
        return Reason.NOT_A_MEMBER
    known = device == reading.sealer
    if known and reading.first is not None and clear.epoch < reading.first:
        return Reason.BEFORE_JOINING
    if not known or reading.last is None or clear.announced > reading.last:
        return Reason.KEY_MISSING
    if reading.barred is not None and clear.epoch >= reading.barred[0]:
        return Reason(reading.barred[1])
    return Reason.KEY_SPENT if reading.first is not None else Reason.NOT_A_MEMBER


def _opened(
    reading: Reading,
    accesses: tuple[Access, ...],
    device: DeviceId,
    number: int,
    epoch: int,
    key: bytes,
    now: float,
) -> Reading:
    """With the key that a message brought; older accesses are of no use any more."""
    stays = device == reading.sealer and reading.barred is None
    first = reading.first if stays and reading.first is not None else epoch
    return replace(
        reading,
        accesses=accesses,
        sealer=device,
        last=number,
        first=min(first, epoch),
        barred=None,
        keys=stream_keys.begin(reading.keys, device, epoch, key, now),
    )


def _spent(prekeys: Prekeys) -> Prekeys:
    """Without the secrets that a first message needs: there is no other to come."""
    return replace(prekeys, signed=(), one_time=())
