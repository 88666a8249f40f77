"""Whom a search goes on to: those likeliest to be of a topic, by what they show."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from random import Random

from linnet.core.ids import PeerId

Score = Callable[[PeerId], tuple[int, float]]
"""The bits that a peer shows, as a number, and how much each says for a topic (`estimates.evidence`)."""

_THEIRS = 0.3
"""Share of those who are alike that show a bit if it is of a topic of theirs; by noise it is a tenth."""


def ranked(
    peers: Sequence[PeerId], score: Score, bits: Sequence[int], alike: Collection[PeerId], rng: Random
) -> list[PeerId]:
    """The likeliest first; among equals by lot.

    Those who are alike have topics in common. So a bit that only few of them show is shown by noise, and
    no reason to stay among them; one that many show is of a topic of theirs.
    """
    shown = [score(peer) for peer in peers]
    near = [seen for peer, (seen, _) in zip(peers, shown, strict=True) if peer in alike]
    wanted = theirs = 0
    for bit in bits:
        wanted |= 1 << bit
        if near and sum([seen >> bit & 1 for seen in near]) >= _THEIRS * len(near):
            theirs |= 1 << bit
    lot = rng.random
    drawn = [
        ((seen & (theirs if peer in alike else wanted)).bit_count() * worth, lot(), peer)
        for peer, (seen, worth) in zip(peers, shown, strict=True)
    ]
    drawn.sort(reverse=True)
    return [peer for _, _, peer in drawn]
