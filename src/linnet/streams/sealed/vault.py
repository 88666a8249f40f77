"""Stores the secrets of a sealed stream in cells, written together with the event that they belong to.

Expired keys are deleted, also those of streams that are not open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from linnet.core.errors import StoreError
from linnet.core.ids import DeviceId, TopicId
from linnet.core.stores import Cells
from linnet.core.timers import Timer
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.groups import prekeys
from linnet.groups.prekeys import Prekeys
from linnet.groups.primitives import Hidden
from linnet.groups.two_party import EMPTY, Channel
from linnet.machine.outbox import Outbox
from linnet.streams.sealed import stream_keys
from linnet.streams.sealed.owner import Owning
from linnet.streams.sealed.stream_keys import Epochs

OWNING, READING, GRANTED = "sealed owning", "sealed reading", "sealed granted"
"""Spaces of cells, by topic: the state of an owner's device, that of a reader's, and the granted requests."""
PERIOD = 3_600.0
"""Seconds between checks for expired keys."""


class Access(Hidden, frozen=True):
    """One request of ours: its prekeys, and the channel once it is answered."""

    prekeys: Prekeys
    channel: Channel = EMPTY


class Reading(Hidden, frozen=True):
    """The state of a device that asked to read a sealed stream."""

    accesses: tuple[Access, ...]
    """Requests, newest first."""
    sealer: DeviceId | None = None
    """The owner's device whose announcements we follow."""
    last: int | None = None
    """The number of the newest announcement that was taken in."""
    first: int | None = None
    """The first epoch that we can read; None: we were not let in yet."""
    barred: tuple[int, str] | None = None
    """The epoch from which on we have no key, and the reason."""
    keys: stream_keys.Epochs = ()


T = TypeVar("T")
_encode = msgspec.msgpack.Encoder().encode
_decode_owning = msgspec.msgpack.Decoder(Owning)
_decode_reading = msgspec.msgpack.Decoder(Reading)


class Vault:
    """The secrets of one stream at this node. Raises `StoreError` if the stored ones are invalid."""

    def __init__(self, topic: TopicId, cells: Cells, config: DeliveryConfig) -> None:
        self._topic = topic
        self._cells = cells
        self._config = config
        self.owning: Owning | None = _read(_decode_owning, cells.get(OWNING, topic))
        self.reading: Reading | None = _read(_decode_reading, cells.get(READING, topic))

    def keep_owning(self, owning: Owning, now: float) -> None:
        """Write the new state of the owner's device, without expired keys."""
        kept = replace(owning, keys=self._pruned(owning.keys, now))
        if kept != self.owning:
            self.owning = kept
            self._cells.put(OWNING, self._topic, _encode(kept))

    def keep_reading(self, reading: Reading, now: float) -> None:
        """Write the new state of the reader's device, without expired keys."""
        accesses = tuple(Access(prekeys.prune(one.prekeys, now), one.channel) for one in reading.accesses)
        kept = replace(reading, keys=self._pruned(reading.keys, now), accesses=accesses)
        if kept != self.reading:
            self.reading = kept
            self._cells.put(READING, self._topic, _encode(kept))

    def prune(self, now: float) -> None:
        """Delete expired keys."""
        if self.owning is not None:
            self.keep_owning(self.owning, now)
        if self.reading is not None:
            self.keep_reading(self.reading, now)

    def note_granted(self, identity: bytes) -> None:
        """Note that a request with this key was granted."""
        self._cells.put(GRANTED, self._topic + identity, b"")

    def was_granted(self, identity: bytes) -> bool:
        """Return whether a request with this key was granted before: its one-time prekey is spent."""
        return self._cells.get(GRANTED, self._topic + identity) is not None

    def _pruned(self, keys: Epochs, now: float) -> Epochs:
        return stream_keys.prune(keys, self._config.epoch_keys, self._config.epoch_key_seconds, now)


def sealed_topics(cells: Cells) -> tuple[TopicId, ...]:
    """Return the streams for which this node stores secrets."""
    found = {key: None for space in (OWNING, READING) for key, _ in cells.scan(space)}
    return tuple(map(TopicId, found))


def prune_all(
    cells: Cells, config: DeliveryConfig, opened: Callable[[TopicId], Vault | None], now: float
) -> bool:
    """Delete the expired keys of all streams; return whether there is any sealed stream."""
    topics = sealed_topics(cells)
    for topic in topics:
        (opened(topic) or Vault(topic, cells, config)).prune(now)
    return bool(topics)


def _read(decoder: msgspec.msgpack.Decoder[T], kept: bytes | None) -> T | None:
    try:
        return None if kept is None else decoder.decode(kept)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # Name the error only: its message could show the secret.
        raise StoreError(f"the keys of a sealed stream cannot be read: {type(error).__name__}") from None


class PruneDue(Timer, frozen=True, gc=False):
    """Time to delete expired keys of sealed streams."""


class Pruning:
    """Deletes expired keys periodically, while there are sealed streams."""

    def __init__(self, context: Context, opened: Callable[[TopicId], Vault | None], out: Outbox) -> None:
        """`opened` returns the vault of a stream that is open."""
        self._context = context
        self._opened = opened
        self._out = out
        self._is_set = False

    def prune_later(self) -> None:
        """Set the timer for the next check, if there is a sealed stream and the timer is not set."""
        if not self._is_set and sealed_topics(self._context.store.cells):
            self._is_set = True
            self._out.set_timer(PERIOD, PruneDue())

    def prune(self, now: float) -> None:
        """Delete expired keys now."""
        self._is_set = False
        prune_all(self._context.store.cells, self._context.config, self._opened, now)
        self.prune_later()
