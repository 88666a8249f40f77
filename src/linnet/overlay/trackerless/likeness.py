"""How like others are to us: computed from what they show, and remembered until one of the two changes."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.ids import PeerId
from linnet.overlay.trackerless.estimates import Shown, common_topics, cosine, evidence, read
from linnet.overlay.trackerless.filter import Interests
from linnet.overlay.trackerless.messages import Descriptor
from linnet.overlay.trackerless.plausible import is_credible

REMEMBERED = 4096
_EPOCHS = 2


class _Judged:
    """What was made of one descriptor."""

    __slots__ = ("cosine", "descriptor", "evidence", "is_credible", "noisy", "serial", "shown")

    def __init__(self, descriptor: Descriptor) -> None:
        self.descriptor = descriptor
        self.shown = read(descriptor)
        self.is_credible = is_credible(self.shown)
        self.noisy = self.shown.bits.bit_count()
        self.cosine = 0.0
        self.evidence: tuple[int, float] | None = None
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

    def evidence(self, descriptor: Descriptor) -> tuple[int, float]:
        """The bits that a filter shows, and how much each says for a topic; none if it is not credible."""
        judged = self._judge(descriptor)
        if judged.evidence is None:
            shown = judged.shown
            judged.evidence = (shown.bits, evidence(shown)) if judged.is_credible else (0, 0.0)
        return judged.evidence

    def cosine(self, descriptor: Descriptor) -> float:
        """How alike another's topics and ours are, from 0 to 1; 0 if that cannot be said."""
        judged = self._judge(descriptor)
        if judged.serial != self._serial:
            own = self._comparable(judged)
            judged.cosine = 0.0 if own is None else cosine(own.bits, judged.shown)
            judged.serial = self._serial
        return judged.cosine

    def between(self, descriptor: Descriptor, others: Iterable[Descriptor]) -> list[float]:
        """Bits that another and each of these seem to have in common (`two_sided`); 0 if that cannot be said.

        It is asked of a hundred in each round, and so written out.
        """
        one = self._judge(descriptor)
        epoch, size, hashes = one.shown.epoch, one.shown.size, one.shown.hashes
        bits, p, noisy = one.shown.bits, one.shown.flip, one.noisy
        found, known = [], self._judged
        for other in others:
            judged = known.get(other.peer)
            if judged is None or judged.descriptor is not other:
                judged = self._judge(other)
            shown = judged.shown
            if shown.epoch != epoch or shown.size != size or shown.hashes != hashes or not judged.is_credible:
                found.append(0.0)
                continue
            q = shown.flip
            both = (bits & shown.bits).bit_count()
            found.append((both - q * noisy - p * judged.noisy + size * p * q) / ((1 - 2 * p) * (1 - 2 * q)))
        return found if one.is_credible else [0.0] * len(found)

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
