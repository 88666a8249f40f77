"""Descriptors: statements of nodes about themselves, signed, good for a day at most, passed on by any
node."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct, msgpack
from msgspec.structs import astuple, replace

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.identity.keys import SIGNATURE_BYTES, SigningKey, verify
from linnet.overlay.gossip.config import DAY, TrackerlessConfig
from linnet.overlay.gossip.messages import FILTER_BYTES, Descriptor
from linnet.overlay.gossip.profile_filter import (
    Interests,
    Release,
    is_plausible,
    make_interests,
    make_release,
)
from linnet.overlay.gossip.topic_tags import TopicKeys, epoch_of, tag_in

SignatureCheck = Callable[[Descriptor], None]
"""`check_signature`, or in a simulation the same with its results remembered."""

DescriptorCheck = Callable[[Descriptor, float], None]
"""Raises `RemoteError` unless a descriptor is good at this time: `check_descriptor`, or a stricter check."""

LEEWAY = 300.0
"""Seconds by which the clocks of two nodes may differ."""

PEER_BYTES = 32
HINTS = 8

_TAG = b"linnet/overlay/descriptor/1"
_field_encoder = msgpack.Encoder()


def sign_descriptor(
    key: SigningKey,
    version: int,
    epoch: int,
    filter: bytes,
    epsilon_milli: int,
    hashes: int,
    hints: tuple[str, ...],
    expires: int,
) -> Descriptor:
    """Make and sign the descriptor of the holder of this key."""
    peer = PeerId(key.public)
    unsigned = Descriptor(peer, version, epoch, filter, epsilon_milli, hashes, hints, expires, b"")
    return replace(unsigned, sig=key.sign(_signed_bytes(unsigned)))


def _signed_bytes(descriptor: Descriptor) -> bytes:
    """Return the bytes that the signature covers: all fields but the signature."""
    return _TAG + _field_encoder.encode(astuple(descriptor)[:-1])


def check_signature(descriptor: Descriptor) -> None:
    """Raise `RemoteError` unless the node that the descriptor describes signed it."""
    verify(descriptor.peer, _signed_bytes(descriptor), descriptor.sig)


def check_descriptor(
    descriptor: Descriptor, now: float, verify: SignatureCheck = check_signature, life: float = DAY
) -> None:
    """Raise `RemoteError` unless the descriptor is signed, not expired, and expires within the allowed time.

    A later expiry is refused because nothing else would end the spreading of a node that is gone.
    """
    if (
        len(descriptor.peer) != PEER_BYTES
        or len(descriptor.sig) != SIGNATURE_BYTES
        or len(descriptor.filter) > FILTER_BYTES
        or len(descriptor.hints) > HINTS
    ):
        raise RemoteError(Reason.MALFORMED, "a part of the descriptor has a wrong length")
    if descriptor.expires < now:
        raise RemoteError(Reason.STALE, f"the descriptor ended at {descriptor.expires}")
    if descriptor.expires > now + life + LEEWAY:
        raise RemoteError(Reason.FUTURE_TIME, f"the descriptor ends only at {descriptor.expires}")
    verify(descriptor)


def believing(check: DescriptorCheck = check_descriptor) -> DescriptorCheck:
    """Return a check of descriptors that requires a plausible filter as well."""

    def check_all(descriptor: Descriptor, now: float) -> None:
        check(descriptor, now)
        if not is_plausible(descriptor):
            raise RemoteError(Reason.IMPLAUSIBLE_FILTER, "no honest node shows such a filter")

    return check_all


_SPACE = "trackerless"
_NOISE = b"noise"
_RELEASE = b"release"
_KEY_BYTES = 32

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Release).decode


class OwnProfile(Struct, frozen=True, gc=False):
    """Our own descriptor and interests at one moment."""

    descriptor: Descriptor
    interests: Interests
    """Our exact topics: for our own comparisons alone."""
    released: bool
    """Whether a filter was released just now."""
    plain: Descriptor
    """The descriptor without a filter, and with an older version: for local networks."""


class OwnDescriptor:
    """Makes our descriptor: anew when half of its life is over, or when its contents change."""

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
        self._profile: OwnProfile | None = None
        self._interests: Interests | None = None
        self._topics: dict[TopicId, TopicKeys] = {}
        self._shown_since: float | None = None

    def epoch_at(self, now: float) -> int:
        """Return the epoch of this time."""
        return epoch_of(now, self._config.epoch_days)

    def set_topics(self, topics: Mapping[TopicId, TopicKeys], now: float) -> None:
        """Replace our topics."""
        self._topics = dict(topics)
        self._interests = None
        if self._topics and self._shown_since is None:
            self._shown_since = now

    def tags_in(self, epoch: int) -> dict[bytes, TopicId]:
        """Return the tags of our topics in an epoch."""
        return {tag_in(keys, epoch): topic for topic, keys in self._topics.items()}

    def make_profile(self, now: float) -> OwnProfile:
        """Return our current descriptor and interests."""
        epoch = self.epoch_at(now)
        released = self._release_filter(epoch, now)
        if self._interests is None or self._interests.epoch != epoch:
            self._interests = make_interests(self._topics.values(), epoch, self._config)
        before = self._profile
        descriptor = self._sign(None if before is None else before.descriptor, epoch, now)
        if before is not None and before.descriptor is descriptor:
            plain = before.plain
        else:
            plain = self._without_filter(descriptor)
        self._profile = OwnProfile(descriptor, self._interests, released, plain)
        return self._profile

    def _without_filter(self, whole: Descriptor) -> Descriptor:
        if not whole.filter:
            return whole
        return sign_descriptor(
            self._key,
            whole.version - 1,
            whole.epoch,
            b"",
            whole.epsilon_milli,
            whole.hashes,
            whole.hints,
            whole.expires,
        )

    def _release_filter(self, epoch: int, now: float) -> bool:
        """Release this epoch's filter once it is time; return whether that was now."""
        if self._release is not None and self._release.epoch == epoch:
            return False
        if self._shown_since is None or now < self._shown_since + self._config.release_delay:
            return False
        self._release = make_release(self.tags_in(epoch), epoch, self._noise, self._config)
        self._cells.put(_SPACE, _RELEASE, _encode(self._release))
        return True

    def _sign(self, old: Descriptor | None, epoch: int, now: float) -> Descriptor:
        """Return the old descriptor while its contents are current and it is young, else a new one."""
        config, made = self._config, self._release
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
        return sign_descriptor(
            self._key,
            version,
            epoch,
            bits,
            round(config.epsilon * 1000),
            config.filter_hashes,
            self.listens[:8],
            int(now + config.descriptor_life),
        )
