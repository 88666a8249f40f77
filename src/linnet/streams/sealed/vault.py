"""Where the secrets of a sealed stream are kept: cells, written along with the event that they belong to.

Keys whose time has come are deleted, also those of streams that are not open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from linnet.core.errors import StoreError
from linnet.core.ids import TopicId
from linnet.core.stores import Cells
from linnet.core.timers import Timer
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.groups import prekeys
from linnet.machine.outbox import Outbox
from linnet.streams.sealed import stream_keys
from linnet.streams.sealed.owner import Owning
from linnet.streams.sealed.reader import Access, Reading
from linnet.streams.sealed.stream_keys import Epochs

OWNING, READING, GRANTED = "sealed owning", "sealed reading", "sealed granted"
"""The cells: by topic, what an owner's device keeps and what a reader's does; requests that were granted."""
PERIOD = 3_600.0
"""Seconds between looks for keys that are to be deleted."""

T = TypeVar("T")
_encode = msgspec.msgpack.Encoder().encode
_decode_owning = msgspec.msgpack.Decoder(Owning)
_decode_reading = msgspec.msgpack.Decoder(Reading)


class Vault:
    """The secrets of one stream at this node. `StoreError` if what the store holds is none."""

    def __init__(self, topic: TopicId, cells: Cells, config: DeliveryConfig) -> None:
        self._topic = topic
        self._cells = cells
        self._config = config
        self.owning: Owning | None = _read(_decode_owning, cells.get(OWNING, topic))
        self.reading: Reading | None = _read(_decode_reading, cells.get(READING, topic))

    def keep_owning(self, owning: Owning, now: float) -> None:
        """Write what the owner's device keeps from now on, without keys whose time has come."""
        kept = replace(owning, keys=self._pruned(owning.keys, now))
        if kept != self.owning:
            self.owning = kept
            self._cells.put(OWNING, self._topic, _encode(kept))

    def keep_reading(self, reading: Reading, now: float) -> None:
        """Write what the reader's device keeps from now on, without keys whose time has come."""
        accesses = tuple(Access(prekeys.prune(one.prekeys, now), one.channel) for one in reading.accesses)
        kept = replace(reading, keys=self._pruned(reading.keys, now), accesses=accesses)
        if kept != self.reading:
            self.reading = kept
            self._cells.put(READING, self._topic, _encode(kept))

    def prune(self, now: float) -> None:
        """Delete the keys whose time has come."""
        if self.owning is not None:
            self.keep_owning(self.owning, now)
        if self.reading is not None:
            self.keep_reading(self.reading, now)

    def note_granted(self, identity: bytes) -> None:
        """A request with this key was granted."""
        self._cells.put(GRANTED, self._topic + identity, b"")

    def was_granted(self, identity: bytes) -> bool:
        """Whether a request with this key was granted before: its one-time prekey is spent."""
        return self._cells.get(GRANTED, self._topic + identity) is not None

    def _pruned(self, keys: Epochs, now: float) -> Epochs:
        return stream_keys.prune(keys, self._config.epoch_keys, self._config.epoch_key_seconds, now)


def sealed_topics(cells: Cells) -> tuple[TopicId, ...]:
    """The streams of which this node keeps secrets."""
    found = {key: None for space in (OWNING, READING) for key, _ in cells.scan(space)}
    return tuple(map(TopicId, found))


def prune_all(
    cells: Cells, config: DeliveryConfig, opened: Callable[[TopicId], Vault | None], now: float
) -> bool:
    """Delete the keys of all streams whose time has come; whether there is any such stream."""
    topics = sealed_topics(cells)
    for topic in topics:
        (opened(topic) or Vault(topic, cells, config)).prune(now)
    return bool(topics)


def _read(decoder: msgspec.msgpack.Decoder[T], kept: bytes | None) -> T | None:
    try:
        return None if kept is None else decoder.decode(kept)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # The message alone: what could not be read is a secret.
        raise StoreError(f"the keys of a sealed stream cannot be read: {type(error).__name__}") from None


class PruneDue(Timer, frozen=True, gc=False):
    """Keys of sealed streams whose time has come are to be deleted."""


class Pruning:
    """Looks for keys to delete, as long as there are sealed streams."""

    def __init__(self, context: Context, opened: Callable[[TopicId], Vault | None], out: Outbox) -> None:
        """`opened` gives the vault of a stream that is open."""
        self._context = context
        self._opened = opened
        self._out = out
        self._is_set = False

    def prune_later(self) -> None:
        """Look in a while, if there is anything to look at and nothing was set before."""
        if not self._is_set and sealed_topics(self._context.store.cells):
            self._is_set = True
            self._out.set_timer(PERIOD, PruneDue())

    def prune(self, now: float) -> None:
        """Delete what is due now."""
        self._is_set = False
        prune_all(self._context.store.cells, self._context.config, self._opened, now)
        self.prune_later()
