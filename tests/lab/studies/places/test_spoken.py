"""Random logs: the same for the same seed, and damaged in every way that is promised."""

from __future__ import annotations

from collections import Counter

from linnet.core.errors import RemoteError
from linnet.event.signing import encode_unit, verify_unit
from linnet.lab.studies.places.spoken import LIES, log_of
from linnet.lab.studies.places.voice import card_of
from linnet.places.multicast.fragmentation import PIECE_BYTES, Head, head_of

PLACES = range(60)


def heads(place: int) -> tuple[list[Head], int]:
    """Heads of the fragments that can be believed, and how many cannot."""
    found, forged = [], 0
    for unit in log_of(3, place).units:
        try:
            found.append(head_of(verify_unit(unit, card_of(3)).events[0]))
        except RemoteError:
            forged += 1
    return found, forged


def test_equal_seeds_give_equal_logs() -> None:
    once, again, other = log_of(3, 5), log_of(3, 5), log_of(4, 5)
    assert [*map(encode_unit, once.units)] == [*map(encode_unit, again.units)]
    assert once.units != other.units


def test_logs_have_everything_that_goes_wrong() -> None:
    seen: Counter[str] = Counter()
    for place in PLACES:
        log = log_of(3, place)
        found, forged = heads(place)
        numbers = [head.fragment for head in found]
        seen["lost"] += log.lost > 0
        seen["forged"] += forged
        seen["copies"] += len(numbers) - len(set(numbers))
        seen["shuffled"] += numbers != sorted(numbers)
        seen["in pieces"] += sum(head.offset > 0 for head in found)
        seen["large"] += sum(head.offset == PIECE_BYTES for head in found)
        seen["guests"] += sum(head.change is not None for head in found)
        seen.update(log.lies)
    assert min(seen[name] for name in ("lost", "forged", "copies", "shuffled", "in pieces", "large")) > 0
    assert min(seen[name] for name in ("guests", *LIES)) > 0
