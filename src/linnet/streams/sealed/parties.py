"""What a direct message from the owner of a stream to a reader is bound to."""

from __future__ import annotations

import hashlib

from linnet.core.ids import TopicId
from linnet.groups.ids import Device, MemberId
from linnet.groups.labels import fields, u32
from linnet.streams.sealed.stream_keys import EPOCH_KEY_LABEL, PARTY_LABEL


def context_of(topic: TopicId, owner: Device, reader: Device, epoch: int) -> bytes:
    """What the message with an epoch's key is bound to: it opens for nobody else, and for nothing else."""
    return fields(EPOCH_KEY_LABEL, topic, *owner, *reader, u32(epoch))


def party_of(topic: TopicId, device: Device) -> MemberId:
    """A device in one stream, as prekeys name who used them."""
    return MemberId(hashlib.sha256(fields(PARTY_LABEL, topic, *device)).digest()[:16])
