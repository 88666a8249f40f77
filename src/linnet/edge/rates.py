"""How much one address, and all of them, may send: buckets that fill up again with time."""

from __future__ import annotations


class Bucket:
    """An allowance that fills up again with time, up to a bound."""

    __slots__ = ("_at", "_left", "_most", "_rate")

    def __init__(self, most: float, rate: float, now: float) -> None:
        self._most = most
        self._rate = rate
        self._left = most
        self._at = now

    def spend(self, now: float) -> bool:
        """Take one; whether there was one."""
        left = min(self._most, self._left + max(0.0, now - self._at) * self._rate)
        self._at = now
        self._left = left - 1.0 if left >= 1.0 else left
        return left >= 1.0


class SourceRates:
    """A bucket for each address, for so many addresses; those unheard of for longest are forgotten."""

    def __init__(self, most: float, rate: float, sources: int) -> None:
        self._most = most
        self._rate = rate
        self._sources = sources
        self._buckets: dict[str, Bucket] = {}

    def spend(self, source: str, now: float) -> bool:
        """Take one of this address; whether there was one."""
        bucket = self._buckets.pop(source, None)
        if bucket is None:
            bucket = Bucket(self._most, self._rate, now)
            if len(self._buckets) >= self._sources:
                del self._buckets[next(iter(self._buckets))]
        self._buckets[source] = bucket
        return bucket.spend(now)

    def __len__(self) -> int:
        return len(self._buckets)
