"""The owner's side of a sealed stream: its readers, and the announcements that tell them the keys.

Pure functions on frozen values. An announcement takes its number in the owner's chain as an argument:
the next one names it, and so does every message. It is an event of kind ``group`` of that chain::

    version u8 · type u8 · epoch u32 · before u64 · identity 32 · readers u16
    for each reader: person 32 · device 8 · direct message

Type 16 begins an epoch and names all its readers; type 17 tells the present epoch to newly admitted ones.
`before` is the number of the previous announcement, so that a reader can go through them backwards; for the
first it is all ones. `identity` is the owner's key for two-party channels; the event's signature proves
that it is the owner's. A reader's direct message holds the epoch's key (`linnet.groups.two_party`).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import MalformedMessage, Refused
from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups.bodies import Reader, check_rising
from linnet.groups.labels import Device, MemberId, fields, u32
from linnet.groups.prekeys import Bundle, check_bundle
from linnet.groups.primitives import KEY_BYTES, Hidden, KeyPair, check_public, key_pair
from linnet.groups.two_party import EMPTY, Channel, PeerKeys, Reach, reach_by, send
from linnet.identity.cards import Card
from linnet.streams.sealed import stream_keys
from linnet.streams.sealed.access_request import Request
from linnet.streams.sealed.stream_keys import EPOCH_KEY_LABEL, PARTY_LABEL, EpochKey

KIND = "group"
"""The kind of the events that carry announcements."""
MOST_READERS = 1_024
"""Devices that the owner may let into one stream: that many direct messages fit one event."""

LAST_EPOCH = 2**32 - 1
_VERSION = 1
_HEAD = struct.Struct(">BBIQ32sH")
_NONE_BEFORE = 2**64 - 1
_PERSON_BYTES, _DEVICE_BYTES = 32, 8


class Sort(IntEnum):
    """The types of announcements. The numbers below are operations of rooms' groups."""

    EPOCH = 16
    ADMIT = 17


class Announcement(Struct, frozen=True):
    """An announcement of an epoch's key to each reader."""

    sort: Sort
    epoch: int
    before: int | None
    """The number of the event with the previous announcement."""
    identity: bytes
    messages: dict[Device, bytes]
    """A direct message for each reader."""


def encode_announcement(announcement: Announcement) -> bytes:
    """Encode the body of the event that carries an announcement."""
    messages = sorted(announcement.messages.items())
    before = _NONE_BEFORE if announcement.before is None else announcement.before
    head = _HEAD.pack(
        _VERSION, announcement.sort, announcement.epoch, before, announcement.identity, len(messages)
    )
    return head + b"".join(reader.author + reader.device + message for reader, message in messages)


def decode_announcement(body: bytes) -> Announcement:
    """Decode the announcement in an event of the owner's; raises `MalformedMessage` if it is not valid."""
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
    check_rising(tuple(order), "the readers of an announcement")
    return Announcement(Sort(sort), epoch, None if before == _NONE_BEFORE else before, identity, messages)


def context_of(topic: TopicId, owner: Device, reader: Device, epoch: int) -> bytes:
    """Return the context that binds an epoch's key message: it opens for this reader and this use only."""
    return fields(EPOCH_KEY_LABEL, topic, *owner, *reader, u32(epoch))


def party_of(topic: TopicId, device: Device) -> MemberId:
    """Return the id of a device in one stream by which prekeys note their user."""
    return MemberId(hashlib.sha256(fields(PARTY_LABEL, topic, *device)).digest()[:16])


class Admitted(Hidden, frozen=True):
    """A reader's device that the owner has let in."""

    card: Card
    channel: Channel
    since: int
    """The first epoch that it reads."""
    at: int
    """When it was let in, in Unix time."""


class Owning(Hidden, frozen=True):
    """The state that the owner's device keeps of a sealed stream."""

    device: DeviceId
    identity: KeyPair
    epoch: int = 0
    """The present epoch; 0: none has begun."""
    keys: stream_keys.Epochs = ()
    last: int | None = None
    """The number of the newest announcement."""
    readers: dict[bytes, Admitted] = {}  # noqa: RUF012 - msgspec gives each value its own
    """Readers, by person and device joined."""

    @property
    def present(self) -> EpochKey | None:
        """The key of the present epoch."""
        return stream_keys.find(self.keys, self.device, self.epoch)


class Place(NamedTuple):
    """The place of an announcement: the number of its event in the chain of the owner's device."""

    topic: TopicId
    owner: Device
    number: int


Step = tuple[Owning, bytes]
"""The new state, and the body of the announcement that must be published with it."""


def start(device: DeviceId, entropy: Entropy) -> Owning:
    """Begin to seal a stream, which has no readers yet."""
    return Owning(device, key_pair(entropy))


def device_of(reader: Admitted) -> Device:
    """Return the device of a reader."""
    return Device(reader.card.person, reader.card.device)


def is_due(owning: Owning, seconds: float, now: float) -> bool:
    """Return whether the next message needs a new epoch: there is none, or it has lasted long enough."""
    present = owning.present
    return present is None or not 0 <= now - present.came < seconds


def turn(
    owning: Owning, place: Place, entropy: Entropy, now: float, firsts: dict[Device, Reach] | None = None
) -> Step:
    """Begin a new epoch with a fresh key, announced to every reader."""
    if owning.epoch >= LAST_EPOCH:
        raise Refused(Reason.TOO_MANY, "the numbers of epochs are used up")
    epoch, key = owning.epoch + 1, entropy(KEY_BYTES)
    keys = stream_keys.begin(owning.keys, owning.device, epoch, key, now)
    begun = replace(owning, epoch=epoch, keys=keys)
    known = firsts or {}
    readers = {reader: known.get(reader) for reader in map(device_of, begun.readers.values())}
    return _announce(begun, Sort.EPOCH, place, readers, entropy)


def allow(
    owning: Owning, place: Place, request: Request, from_now: bool, entropy: Entropy, now: float
) -> Step:
    """Let a device in; announce to it the key of the present epoch, or begin a new one with it.

    A device that reads already starts anew with its new prekeys. Raises `Refused` if there are too many.
    """
    reader = request.reader
    if reader == place.owner:
        raise Refused(Reason.NOT_ALLOWED, "this device seals the stream and reads it anyway")
    if request.topic != place.topic:
        raise Refused(Reason.NOT_ALLOWED, "this request is for another stream")
    mine = reader.author + reader.device
    if mine not in owning.readers and len(owning.readers) >= MOST_READERS:
        raise Refused(Reason.GROUP_FULL, f"a stream has at most {MOST_READERS} readers")
    reach = _reach(place, request.bundle, now)
    from_now = from_now or not owning.epoch
    admitted = Admitted(request.card, EMPTY, owning.epoch + from_now, int(now))
    with_it = replace(owning, readers={**owning.readers, mine: admitted})
    if from_now:
        return turn(with_it, place, entropy, now, {reader: reach})
    return _announce(with_it, Sort.ADMIT, place, {reader: reach}, entropy)


def without(owning: Owning, is_out: Callable[[Device], bool]) -> tuple[Owning, tuple[Admitted, ...]]:
    """Remove some readers; return the rest, and the removed ones. They know the key: begin a new epoch."""
    out = tuple(reader for reader in owning.readers.values() if is_out(device_of(reader)))
    left = {key: reader for key, reader in owning.readers.items() if not is_out(device_of(reader))}
    return (replace(owning, readers=left), out) if out else (owning, ())


def _reach(place: Place, bundle: Bundle, now: float) -> Reach:
    check_bundle(bundle, now)
    return reach_by(EMPTY, PeerKeys(bundle.identity, bundle), party_of(place.topic, place.owner), now)


def _announce(
    owning: Owning, sort: Sort, place: Place, to: dict[Device, Reach | None], entropy: Entropy
) -> Step:
    """Announce the present key to readers; new ones are reached by the prekeys of their request."""
    present = owning.present
    if present is None:
        raise Refused(Reason.KEY_MISSING, "no epoch has begun")
    readers = dict(owning.readers)
    messages: dict[Device, bytes] = {}
    for reader, first in to.items():
        mine = reader.author + reader.device
        context = context_of(place.topic, place.owner, reader, owning.epoch)
        known = readers[mine]
        channel, messages[reader] = send(
            known.channel, first, owning.identity.secret, context, present.key, entropy
        )
        # Readers never answer, so the keys that would decrypt an answer need not be kept.
        silent = replace(channel, own=(), first=channel.first + len(channel.own))
        readers[mine] = replace(known, channel=silent)
    told = Announcement(sort, owning.epoch, owning.last, owning.identity.public, messages)
    return replace(owning, readers=readers, last=place.number), encode_announcement(told)
