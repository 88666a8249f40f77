"""What this node says of itself: its descriptor, and the filter in it that is frozen for an epoch.

A filter is made once in an epoch, a while after the first topic was joined, and is the same for everyone
and after a restart: of many releases the noise could be averaged away. Topics that are joined later are
found by searches and intersections, and show in the next epoch's filter.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from linnet.core.ids import TopicId
from linnet.core.luck import Entropy
from linnet.core.stores import Cells
from linnet.identity.keys import SigningKey
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.descriptor import sign_descriptor
from linnet.overlay.trackerless.filter import Interests, Release, interests, release
from linnet.overlay.trackerless.messages import Descriptor
from linnet.overlay.trackerless.tags import TopicKeys, epoch_of, tag_in

_SPACE = "trackerless"
_NOISE = b"noise"
_RELEASE = b"release"
_KEY_BYTES = 32

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Release).decode


class Shown(Struct, frozen=True, gc=False):
    """What there is to say of ourselves now."""

    descriptor: Descriptor
    interests: Interests
    """Our topics exactly: for our own comparisons alone."""
    released: bool
    """Whether a filter was released just now."""
    plain: Descriptor
    """The same without a filter, and as an older version: for local networks."""


class Own:
    """Our descriptor, made anew when it is half through its life or has something else to say."""

    def __init__(
        self,
        key: SigningKey,
        config: TrackerlessConfig,
        cells: Cells,
        entropy: Entropy,
        listens: tuple[str, ...],
    ) -> None:
        self._key = key
        self._config = config
        self._cells = cells
        self.listens = listens
        noise = cells.get(_SPACE, _NOISE)
        if noise is None:
            noise = entropy(_KEY_BYTES)
            cells.put(_SPACE, _NOISE, noise)
        self._noise = noise
        kept = cells.get(_SPACE, _RELEASE)
        self._release = None if kept is None else _decode(kept)
        self._descriptor: Descriptor | None = None
        self._plain: Descriptor | None = None
        self._interests: Interests | None = None
        self._topics: dict[TopicId, TopicKeys] = {}
        self._shown_since: float | None = None

    def epoch(self, now: float) -> int:
        """The epoch of this time."""
        return epoch_of(now, self._config.epoch_days)

    def topics(self, topics: Mapping[TopicId, TopicKeys], now: float) -> None:
        """These are our topics now."""
        self._topics = dict(topics)
        self._interests = None
        if self._topics and self._shown_since is None:
            self._shown_since = now

    def tags(self, epoch: int) -> dict[bytes, TopicId]:
        """The tags of our topics in an epoch."""
        return {tag_in(keys, epoch): topic for topic, keys in self._topics.items()}

    def shown(self, now: float) -> Shown:
        """What to say of ourselves."""
        epoch = self.epoch(now)
        released = self._refresh(epoch, now)
        if self._interests is None or self._interests.epoch != epoch:
            self._interests = interests(self._topics.values(), epoch, self._config)
        descriptor = self._sign(epoch, now)
        return Shown(descriptor, self._interests, released, self._plain_of(descriptor))

    def _plain_of(self, whole: Descriptor) -> Descriptor:
        if not whole.filter:
            return whole
        if self._plain is None or self._plain.version != whole.version - 1:
            self._plain = sign_descriptor(
                self._key,
                whole.version - 1,
                whole.epoch,
                b"",
                whole.epsilon_milli,
                whole.hashes,
                whole.hints,
                whole.expires,
            )
        return self._plain

    def _refresh(self, epoch: int, now: float) -> bool:
        """Release this epoch's filter once it is time; whether that was now."""
        if self._release is not None and self._release.epoch == epoch:
            return False
        if self._shown_since is None or now < self._shown_since + self._config.release_delay:
            return False
        self._release = release(self.tags(epoch), epoch, self._noise, self._config)
        self._cells.put(_SPACE, _RELEASE, _encode(self._release))
        return True

    def _sign(self, epoch: int, now: float) -> Descriptor:
        config, old = self._config, self._descriptor
        made = self._release
        bits = b"" if made is None or made.epoch != epoch else made.filter
        if (
            old is not None
            and (old.epoch, old.filter, old.hints) == (epoch, bits, self.listens)
            and old.expires - now > config.descriptor_life / 2
        ):
            return old
        version = int(now * 1000)
        if old is not None:
            version = max(version, old.version + 2)  # One below it is that of the plain form.
        self._descriptor = sign_descriptor(
            self._key,
            version,
            epoch,
            bits,
            round(config.epsilon * 1000),
            config.filter_hashes,
            self.listens[:8],
            int(now + config.descriptor_life),
        )
        return self._descriptor
