"""How like others are to us: computed from what they show, and remembered until one of the two changes."""

from __future__ import annotations

from linnet.core.ids import PeerId
from linnet.overlay.trackerless.estimates import Shown, common_topics, cosine, read
from linnet.overlay.trackerless.filter import Interests
from linnet.overlay.trackerless.messages import Descriptor
from linnet.overlay.trackerless.plausible import is_credible

REMEMBERED = 4096
_EPOCHS = 2


class _Judged:
    """What was made of one descriptor."""

    __slots__ = ("cosine", "descriptor", "is_credible", "serial", "shown")

    def __init__(self, descriptor: Descriptor) -> None:
        self.descriptor = descriptor
        self.shown = read(descriptor)
        self.is_credible = is_credible(self.shown)
        self.cosine = 0.0
        self.serial = -1
        """Of which of our own interests the likeness is."""


class Likeness:
    """Compares filters with our own topics. A filter that is not credible shows nothing."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._own: dict[int, Interests] = {}
        self._serial = 0
        self._judged: dict[PeerId, _Judged] = {}

    @property
    def serial(self) -> int:
        """Which of our own interests comparisons are with: another number when these change."""
        return self._serial

    def become(self, own: Interests) -> None:
        """These are our topics. Those of the epoch before stay, for filters that are not renewed yet."""
        if self._own.get(own.epoch) == own:
            return
        self._own[own.epoch] = own
        while len(self._own) > _EPOCHS:
            del self._own[min(epoch for epoch in self._own if epoch != own.epoch)]
        self._serial += 1

    def shown(self, descriptor: Descriptor) -> Shown | None:
        """The filter of a descriptor, if there is one that is credible."""
        judged = self._judge(descriptor)
        return judged.shown if judged.is_credible else None

    def cosine(self, descriptor: Descriptor) -> float:
        """How alike another's topics and ours are, from 0 to 1; 0 if that cannot be said."""
        judged = self._judge(descriptor)
        if judged.serial != self._serial:
            own = self._comparable(judged)
            judged.cosine = 0.0 if own is None else cosine(own.bits, judged.shown)
            judged.serial = self._serial
        return judged.cosine

    def common(self, descriptor: Descriptor) -> float:
        """Topics that we and another seem to have in common; 0 if that cannot be said."""
        judged = self._judge(descriptor)
        own = self._comparable(judged)
        return 0.0 if own is None else common_topics(own.bits, own.topics, judged.shown)

    def own(self, descriptor: Descriptor) -> Interests | None:
        """What of ours a descriptor's filter can be compared with."""
        return self._comparable(self._judge(descriptor))

    def _judge(self, descriptor: Descriptor) -> _Judged:
        judged = self._judged.get(descriptor.peer)
        if judged is None or judged.descriptor is not descriptor:
            if judged is None and len(self._judged) >= self._remembered:
                del self._judged[next(iter(self._judged))]
            judged = self._judged[descriptor.peer] = _Judged(descriptor)
        return judged

    def _comparable(self, judged: _Judged) -> Interests | None:
        shown = judged.shown
        own = self._own.get(shown.epoch) if judged.is_credible else None
        return own if own is not None and (own.size, own.hashes) == (shown.size, shown.hashes) else None
