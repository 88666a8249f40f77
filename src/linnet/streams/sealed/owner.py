"""The owner's side of a sealed stream: who reads, and the announcements that tell them the keys.

Pure functions on frozen values. An announcement takes its number in the owner's chain as an argument:
the next one names it, and so does every message. It is an event of kind ``group`` of that chain::

    version u8 · type u8 · epoch u32 · before u64 · identity 32 · readers u16
    for each reader: person 32 · device 8 · direct message

Type 16 begins an epoch and names all who read it; type 17 tells the present one to those let in since.
`before` is the number of the announcement before, so that they can be gone through backwards; for the
first it is all ones. `identity` is the owner's key for two-party channels, which the event's signature
makes the owner's. A reader's direct message holds the epoch's key (`linnet.groups.two_party`).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import MalformedMessage, Refused
from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups.ids import Device, MemberId
from linnet.groups.labels import fields, u32
from linnet.groups.prekeys import Bundle, check_bundle
from linnet.groups.primitives import KEY_BYTES, Hidden, KeyPair, check_public, key_pair
from linnet.groups.reading import Reader, rising
from linnet.groups.two_party import EMPTY, Channel, Reach, reach_by, send
from linnet.identity.cards import Card
from linnet.streams.sealed import stream_keys
from linnet.streams.sealed.access_request import Request
from linnet.streams.sealed.stream_keys import EPOCH_KEY_LABEL, PARTY_LABEL, EpochKey

KIND = "group"
"""The kind of the events that carry announcements."""
MOST_READERS = 1_024
"""Devices that one stream's owner may let in: so many direct messages fit one event."""

LAST_EPOCH = 2**32 - 1
_VERSION = 1
_HEAD = struct.Struct(">BBIQ32sH")
_NONE_BEFORE = 2**64 - 1
_PERSON_BYTES, _DEVICE_BYTES = 32, 8


class Sort(IntEnum):
    """What an announcement does. Operations of rooms' groups have the numbers below."""

    EPOCH = 16
    ADMIT = 17


class Announcement(Struct, frozen=True):
    """The key of an epoch, for each reader."""

    sort: Sort
    epoch: int
    before: int | None
    """Number of the event with the announcement before this one."""
    identity: bytes
    messages: dict[Device, bytes]
    """A direct message for each reader."""


def encode_announcement(announcement: Announcement) -> bytes:
    """The body of the event."""
    messages = sorted(announcement.messages.items())
    before = _NONE_BEFORE if announcement.before is None else announcement.before
    head = _HEAD.pack(
        _VERSION, announcement.sort, announcement.epoch, before, announcement.identity, len(messages)
    )
    return head + b"".join(reader.author + reader.device + message for reader, message in messages)


def decode_announcement(body: bytes) -> Announcement:
    """What an event of the owner's announces; `MalformedMessage` if that is nothing of ours."""
    reader = Reader(body)
    version, sort, epoch, before, identity, count = _HEAD.unpack(reader.take(_HEAD.size))
    if version != _VERSION:
        raise MalformedMessage(f"an announcement of version {version}", Reason.UNSUPPORTED)
    if sort not in (Sort.EPOCH, Sort.ADMIT):
        raise MalformedMessage(f"an announcement of type {sort}", Reason.UNSUPPORTED)
    if count > MOST_READERS or not epoch:
        raise MalformedMessage("an announcement to too many readers, or of no epoch", Reason.TOO_MANY)
    check_public(identity)
    messages: dict[Device, bytes] = {}
    order: list[bytes] = []
    for _ in range(count):
        author, device = reader.take(_PERSON_BYTES), reader.take(_DEVICE_BYTES)
        order.append(author + device)
        messages[Device(AuthorId(author), DeviceId(device))] = reader.direct(KEY_BYTES)
    reader.end()
    rising(tuple(order), "the readers of an announcement")
    return Announcement(Sort(sort), epoch, None if before == _NONE_BEFORE else before, identity, messages)


def context_of(topic: TopicId, owner: Device, reader: Device, epoch: int) -> bytes:
    """What the message with an epoch's key is bound to: it opens for nobody else, and for nothing else."""
    return fields(EPOCH_KEY_LABEL, topic, *owner, *reader, u32(epoch))


def party_of(topic: TopicId, device: Device) -> MemberId:
    """A device in one stream, as prekeys name who used them."""
    return MemberId(hashlib.sha256(fields(PARTY_LABEL, topic, *device)).digest()[:16])


class Admitted(Hidden, frozen=True):
    """A device that the owner has let in."""

    card: Card
    channel: Channel
    since: int
    """The epoch from which on it reads."""
    at: int
    """When it was let in, Unix time."""


class Owning(Hidden, frozen=True):
    """All that the owner's device keeps of a sealed stream."""

    device: DeviceId
    identity: KeyPair
    epoch: int = 0
    """The present one; 0: none has begun."""
    keys: stream_keys.Epochs = ()
    last: int | None = None
    """Number of the newest announcement."""
    readers: dict[bytes, Admitted] = {}  # noqa: RUF012 - msgspec gives each value its own
    """By person and device, one after the other."""

    @property
    def present(self) -> EpochKey | None:
        """The key of the present epoch."""
        return stream_keys.find(self.keys, self.device, self.epoch)


Step = tuple[Owning, bytes]
"""What is kept from now on, and the body of the announcement that must go out with it."""


def start(device: DeviceId, entropy: Entropy) -> Owning:
    """A stream that is sealed from now on, and has no readers yet."""
    return Owning(device, key_pair(entropy))


def device_of(reader: Admitted) -> Device:
    """The device of a reader."""
    return Device(reader.card.person, reader.card.device)


def is_due(owning: Owning, seconds: float, now: float) -> bool:
    """Whether the next message needs a new epoch before it: there is none, or it has lasted long enough."""
    present = owning.present
    return present is None or not 0 <= now - present.came < seconds


def turn(
    owning: Owning,
    topic: TopicId,
    owner: Device,
    number: int,
    entropy: Entropy,
    now: float,
    firsts: dict[Device, Reach] | None = None,
) -> Step:
    """A new epoch, with a key that nobody had before, told to every reader."""
    if owning.epoch >= LAST_EPOCH:
        raise Refused(Reason.TOO_MANY, "the numbers of epochs are used up")
    epoch, key = owning.epoch + 1, entropy(KEY_BYTES)
    keys = stream_keys.begin(owning.keys, owning.device, epoch, key, now)
    begun = replace(owning, epoch=epoch, keys=keys)
    readers = tuple(map(device_of, begun.readers.values()))
    return _announce(begun, Sort.EPOCH, topic, owner, number, readers, firsts or {}, entropy)


def allow(
    owning: Owning,
    topic: TopicId,
    owner: Device,
    request: Request,
    number: int,
    from_now: bool,
    entropy: Entropy,
    now: float,
) -> Step:
    """Let a device in: it is told the key of the present epoch, or of a new one that begins with it.

    A device that reads already begins anew with its new prekeys. `Refused` if there are too many.
    """
    reader = request.reader
    if reader == owner:
        raise Refused(Reason.NOT_ALLOWED, "this device seals the stream and reads it anyway")
    if request.topic != topic:
        raise Refused(Reason.NOT_ALLOWED, "this request is for another stream")
    mine = reader.author + reader.device
    if mine not in owning.readers and len(owning.readers) >= MOST_READERS:
        raise Refused(Reason.GROUP_FULL, f"a stream has at most {MOST_READERS} readers")
    reach = _reach(topic, owner, request.bundle, now)
    from_now = from_now or not owning.epoch
    admitted = Admitted(request.card, EMPTY, owning.epoch + from_now, int(now))
    with_it = replace(owning, readers={**owning.readers, mine: admitted})
    if from_now:
        return turn(with_it, topic, owner, number, entropy, now, {reader: reach})
    return _announce(with_it, Sort.ADMIT, topic, owner, number, (reader,), {reader: reach}, entropy)


def without(owning: Owning, is_out: Callable[[Device], bool]) -> tuple[Owning, tuple[Admitted, ...]]:
    """Without some readers, and who they were. A new epoch must follow: they have the key of this one."""
    out = tuple(reader for reader in owning.readers.values() if is_out(device_of(reader)))
    left = {key: reader for key, reader in owning.readers.items() if not is_out(device_of(reader))}
    return (replace(owning, readers=left), out) if out else (owning, ())


def _reach(topic: TopicId, owner: Device, bundle: Bundle, now: float) -> Reach:
    check_bundle(bundle, now)
    return reach_by(EMPTY, bundle.identity, bundle, None, party_of(topic, owner), now)


def _announce(
    owning: Owning,
    sort: Sort,
    topic: TopicId,
    owner: Device,
    number: int,
    to: Iterable[Device],
    firsts: dict[Device, Reach],
    entropy: Entropy,
) -> Step:
    present = owning.present
    if present is None:
        raise Refused(Reason.KEY_MISSING, "no epoch has begun")
    readers = dict(owning.readers)
    messages: dict[Device, bytes] = {}
    for reader in to:
        mine = reader.author + reader.device
        context = context_of(topic, owner, reader, owning.epoch)
        known = readers[mine]
        channel, messages[reader] = send(
            known.channel, firsts.get(reader), owning.identity.secret, context, present.key, entropy
        )
        # Readers never answer: what an answer would be encrypted to need not be kept.
        silent = replace(channel, own=(), first=channel.first + len(channel.own))
        readers[mine] = replace(known, channel=silent)
    told = Announcement(sort, owning.epoch, owning.last, owning.identity.public, messages)
    return replace(owning, readers=readers, last=number), encode_announcement(told)
