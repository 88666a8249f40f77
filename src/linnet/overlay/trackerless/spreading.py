"""Whom an event is passed to: the neighbours on the ring, and some members at random.

The rule of RingCast (Voulgaris, van Steen 2007; Setty et al. 2012), for a fan-out F:

    published here              to the successor, the predecessor, and F - 2 others
    first from the successor    to the predecessor, and F - 1 others
    first from the predecessor  to the successor, and F - 1 others
    first from anyone else      to both, and F - 2 others

So an event goes once around the ring, in both directions from wherever a shortcut put it down: all members
get it while the ring is whole, and each sends F copies. Where the nearest on a side is not up, the spare is
next; where that is not up either, there is a gap, and one more at random stands in for it. Nothing is ever
sent back because of a gap.

Somebody who wants to keep events from a member may take the places on both its sides and pass nothing on.
A neighbour that is honest brings an event first now and then. So behind one that never does, the next is
sent events as well, beyond the fan-out: those who stand around such a liar do so on both sides of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

from linnet.core.ids import PeerId
from linnet.overlay.trackerless.ring import Ring


def targets(
    ring: Ring, sources: Collection[PeerId], up: Sequence[PeerId], fanout: int, rng: Random
) -> tuple[PeerId, ...]:
    """Whom of those that are up an event goes to. `sources` have it already; none: it is our own."""
    ahead, back = ring.successor(up), ring.predecessor(up)
    chosen: list[PeerId] = []
    if ahead is not None and ahead not in sources:
        chosen.append(ahead)
    if back is not None and back != ahead and back not in sources:
        chosen.append(back)
    count = fanout - len(chosen)
    if sources:
        ring.heard(sources, (ahead, back))
        chosen += _behind_quiet(ring, sources, up, ahead, back)
    if count <= 0:
        return tuple(chosen)
    others = [peer for peer in up if peer not in chosen and peer not in sources]
    if len(others) > count:
        # Spares are no shortcuts: an event that only goes to those nearby takes many steps.
        near = ring.neighbors
        far = [peer for peer in others if peer not in near]
        if len(far) >= count:
            others = rng.sample(far, count)
        else:
            spare = [peer for peer in others if peer in near]
            others = far + rng.sample(spare, count - len(far))
    return (*chosen, *others)


def _behind_quiet(
    ring: Ring, sources: Collection[PeerId], up: Sequence[PeerId], ahead: PeerId | None, back: PeerId | None
) -> list[PeerId]:
    """Who stands behind a neighbour from whom nothing comes, and has the event from nobody yet."""
    found: list[PeerId] = []
    for peer, next_one in ((ahead, ring.successor), (back, ring.predecessor)):
        if peer is None or not ring.is_quiet(peer):
            continue
        behind = next_one([other for other in up if other != peer])
        if behind is not None and behind not in (ahead, back) and behind not in sources:
            found.append(behind)
    return found


def gaps(ring: Ring, up: Collection[PeerId]) -> tuple[PeerId, ...]:
    """Whom to ask at once because nobody who was met is up on a side: the first there that is up."""
    if not len(ring):
        return ()
    asked: dict[PeerId, None] = {}
    for ahead, there in ((True, ring.successor(up)), (False, ring.predecessor(up))):
        if there is None and (beyond := ring.beyond(up, ahead)) is not None:
            asked[beyond] = None
    return tuple(asked)
