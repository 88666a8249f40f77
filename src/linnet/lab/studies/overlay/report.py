"""The sections of the report."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report.parts import Section
from linnet.lab.studies.overlay import bounds, drawings, tables
from linnet.lab.studies.overlay.view import View

_DRAWN = "Real data that was not found, and is drawn instead: {missing}. Give a folder with it by --data."


def sections(view: View) -> Iterator[Section]:
    """All parts of the page."""
    missing = (_DRAWN.format(missing=", ".join(view.missing)),) if view.missing else ()
    yield Section(
        title="Peer sampling under attack",
        text=(*missing, f"Latencies: {view.latency}."),
        plots=tuple(drawings.attacks(view)),
        grids=(tables.attacks(view),),
    )
    yield Section(
        title="Filters: what they find and what they tell",
        plots=tuple(drawings.filters(view, origin) for origin in view.origins),
        grids=tuple(tables.filters(view, origin) for origin in view.origins),
    )
    yield Section(title="Rings", plots=(drawings.hops(view),), grids=(tables.rings(view),))
    yield Section(title="Whole overlays", grids=(tables.living(view),))
    yield Section(title="Neighbours and subscriptions", plots=tuple(drawings.degrees(view)))
    yield Section(title="When something happens", grids=(tables.mending(view),))
    yield Section(title="Attacks and their bounds", grids=(bounds.grid(view.outcomes),))
    yield Section(title="Tracker or ring", grids=(tables.choosing(view),))
