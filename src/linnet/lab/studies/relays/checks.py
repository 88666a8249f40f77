"""What must hold, whatever chats are given."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.bins import NEVER, share_never
from linnet.lab.relays.outcomes import EVERY_MODE, FIRST_DELIVERY, P2P, RELAYS, RETURN_RECEPTION
from linnet.lab.report.parts import Check
from linnet.lab.studies.relays.metrics import Pool

_EACH = {
    "relays.reach": (
        "undelivered_though_online",
        "with relays, no event is undelivered if another member is online at or after its sending",
    ),
    "relays.never-later": (
        "later_than_p2p",
        "for every event, the first delivery with relays is not later than without",
    ),
}
_AT_MOST = {
    "relays.undelivered": (
        FIRST_DELIVERY,
        "with relays the share of undelivered events is not larger",
    ),
    "relays.empty": (
        RETURN_RECEPTION,
        "with relays the share of empty online periods is not larger",
    ),
}


def checks(pool: Pool) -> Iterator[Check]:
    """Over every population and margin."""
    for id, (measure, says) in _EACH.items():
        counts = {
            (population, margin): pool.total(population, margin, RELAYS, measure)
            for population in pool.populations()
            for margin in pool.margins()
        }
        events = sum(pool.total(population, margin, EVERY_MODE, "events") for population, margin in counts)
        broken = [
            f"{count} at margin {margin} of {where}" for (where, margin), count in counts.items() if count
        ]
        yield Check(
            id=id, says=says, ok=not broken, detail="; ".join(broken) or f"{events:,} events looked at"
        )
    for id, (measure, says) in _AT_MOST.items():
        yield _at_most(pool, id, measure, says)
    yield _counted(pool)


def _at_most(pool: Pool, id: str, measure: str, says: str) -> Check:
    broken = [
        f"margin {margin} of {population}: {relays:.6f} > {p2p:.6f}"
        for population in pool.populations()
        for margin in pool.margins()
        if (relays := share_never(pool.bins(population, margin, RELAYS, measure)))
        > (p2p := share_never(pool.bins(population, margin, P2P, measure)))
    ]
    return Check(id=id, says=says, ok=not broken, detail="; ".join(broken) or "at every margin")


def _counted(pool: Pool) -> Check:
    """No event and no period is in fewer or more bins than one."""
    broken = [
        f"{mode} at margin {margin} of {population}: {measure}"
        for (population, margin, mode, measure), bins in pool.cells.items()
        if measure in (FIRST_DELIVERY, RETURN_RECEPTION)
        and sum(bins.values())
        != pool.total(population, margin, EVERY_MODE, "events" if measure == FIRST_DELIVERY else "periods")
    ]
    most = max((bins.get(NEVER, 0) for bins in pool.cells.values()), default=0)
    says = "every event and every online period is counted once, what never came included"
    return Check(
        id="relays.counted",
        says=says,
        ok=not broken,
        detail=broken[0] if broken else f"up to {most:,} never came",
    )
