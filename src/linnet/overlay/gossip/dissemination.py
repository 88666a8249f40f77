"""The peers to which an event is passed: the neighbours on the ring, and some random members.

The rule of RingCast (Voulgaris, van Steen 2007; Setty et al. 2012), for a fan-out F:

    published here              to the successor, the predecessor, and F - 2 others
    first from the successor    to the predecessor, and F - 1 others
    first from the predecessor  to the successor, and F - 1 others
    first from anyone else      to both, and F - 2 others

So an event goes once around the ring, in both directions from wherever a shortcut took it: all members get it
while the ring is whole, and each sends F copies. If the nearest member on a side is not up, the spare takes
its place; if the spare is not up either, there is a gap, and one more random member stands in for it. An
event is never sent back because of a gap.

An attacker that wants to keep events from a member may take the places on both sides of it and pass nothing
on. An honest neighbour brings an event first now and then. So if a neighbour never does, the member behind it
is sent events as well, beyond the fan-out: the members around such an attacker do so on both sides of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

from linnet.core.ids import PeerId
from linnet.overlay.gossip.ring import Ring


def choose_targets(
    ring: Ring, sources: Collection[PeerId], up: Sequence[PeerId], fanout: int, rng: Random
) -> tuple[PeerId, ...]:
    """Return the peers that are up and get an event. `sources` have it already; none: it is our own."""
    ahead, back = ring.find_successor(up), ring.find_predecessor(up)
    chosen: list[PeerId] = []
    if ahead is not None and ahead not in sources:
        chosen.append(ahead)
    if back is not None and back != ahead and back not in sources:
        chosen.append(back)
    count = fanout - len(chosen)
    if sources:
        ring.note_sources(sources, (ahead, back))
        chosen += _behind_quiet(ring, sources, up, ahead, back)
    if count <= 0:
        return tuple(chosen)
    others = [peer for peer in up if peer not in chosen and peer not in sources]
    if len(others) > count:
        # Spares are no shortcuts: an event that only goes to nearby members takes many steps.
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
    """Return the members behind silent neighbours that the event has not come from."""
    found: list[PeerId] = []
    for peer, next_one in ((ahead, ring.find_successor), (back, ring.find_predecessor)):
        if peer is None or not ring.is_quiet(peer):
            continue
        behind = next_one([other for other in up if other != peer])
        if behind is not None and behind not in (ahead, back) and behind not in sources:
            found.append(behind)
    return found


def find_gaps(ring: Ring, up: Collection[PeerId]) -> tuple[PeerId, ...]:
    """Return the peers to ask about gaps: on a side where no met member is up, the first one that is up."""
    if not len(ring):
        return ()
    asked: dict[PeerId, None] = {}
    for ahead, there in ((True, ring.find_successor(up)), (False, ring.find_predecessor(up))):
        if there is None and (beyond := ring.find_beyond(up, ahead)) is not None:
            asked[beyond] = None
    return tuple(asked)
