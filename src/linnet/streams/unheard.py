"""What neighbours were told of chains and have not shown to have: a message may be lost on its way.

Whoever has an event says so in heads of its own, soon after. So the heads of a neighbour confirm ours, and
nothing else has to. What it does not show in time is told again, a few times and ever later: somebody whose
only neighbour we are hears of it from nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from linnet.core.ids import PeerId
from linnet.delivery.chain import ChainKey
from linnet.delivery.messages import ChainPlace

REPEATS = (2, 4, 8)
"""Rounds after which a neighbour is told again what it has not shown."""
LAST_ROUND = 16
"""Round in which it is told no more: it does not want to know, or rejects what it hears of."""


class _Told:
    """How far a neighbour was told that a chain goes, and for how many rounds it has not shown that."""

    __slots__ = ("last", "rounds")

    def __init__(self, last: int) -> None:
        self.last = last
        self.rounds = 0


class Unheard:
    """All neighbours of one stream that were told something and have not shown it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._told: dict[PeerId, dict[ChainKey, _Told]] = {}
        self._shown: dict[PeerId, dict[ChainKey, int]] = {}
        """What neighbours have shown before we told them: they will not show it a second time."""

    def __bool__(self) -> bool:
        return bool(self._told)

    def told(self, peer: PeerId, places: Iterable[ChainPlace]) -> None:
        """A neighbour was told this."""
        shown = self._shown.pop(peer, {})
        lacking = self._told.get(peer, {})
        for place in places:
            key = place.author + place.device
            if shown.get(key, -1) >= place.last:
                continue
            known = lacking.get(key)
            if known is None:
                lacking[key] = _Told(place.last)
            else:
                known.last = max(known.last, place.last)
        if lacking:
            self._told[peer] = lacking

    def shown(
        self, peer: PeerId, places: Iterable[ChainPlace], will_tell: Callable[[ChainPlace], bool]
    ) -> None:
        """A neighbour says how far it knows chains; of some of them it is yet to be told by us."""
        lacking = self._told.get(peer, {})
        early = self._shown.setdefault(peer, {})
        for place in places:
            key = place.author + place.device
            known = lacking.get(key)
            if known is not None and place.last >= known.last:
                del lacking[key]
            if len(early) < self._most and will_tell(place):
                early[key] = max(place.last, early.get(key, -1))
        if not lacking:
            self._told.pop(peer, None)
        if not early:
            del self._shown[peer]

    def forget(self, peer: PeerId) -> None:
        """A neighbour is gone: it will be told everything when it is back."""
        self._told.pop(peer, None)
        self._shown.pop(peer, None)

    def next_round(self) -> tuple[dict[PeerId, list[ChainKey]], dict[PeerId, int]]:
        """Time has passed: whom to tell of which chains again, and of how many each is told no more."""
        again: dict[PeerId, list[ChainKey]] = {}
        ended: dict[PeerId, int] = {}
        for peer, lacking in list(self._told.items()):
            for key, told in list(lacking.items()):
                told.rounds += 1
                if told.rounds in REPEATS:
                    again.setdefault(peer, []).append(key)
                elif told.rounds >= LAST_ROUND:
                    del lacking[key]
                    ended[peer] = ended.get(peer, 0) + 1
            if not lacking:
                del self._told[peer]
        return again, ended
