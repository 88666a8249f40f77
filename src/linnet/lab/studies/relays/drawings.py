"""The plots of the study of relays."""

from __future__ import annotations

from linnet.lab.bins import ecdf, share_never
from linnet.lab.relays.outcomes import FIRST_DELIVERY, P2P, RELAYS, RETURN_RECEPTION
from linnet.lab.report import plots
from linnet.lab.report.parts import Plot
from linnet.lab.studies.relays.metrics import Pool

NAMES = {P2P: "P2P", RELAYS: "with relays"}
"""The baseline of the thesis has the curves of P2P and is not drawn twice."""

PEOPLE = {"all": "all chats", "selected": "chats that pass the thesis's filters"}


def margin_name(margin: int) -> str:
    """A presence by its number."""
    return f"margin {margin}" if margin else "phones"


def undelivered_plot(pool: Pool, population: str) -> Plot:
    """Events that nobody else got, for each margin."""
    return _shares(
        pool,
        population,
        FIRST_DELIVERY,
        "Events not delivered to anybody",
        "share of events sent",
        "Short margins leave senders alone; relays hold what nobody was there to take. What remains with "
        "relays was sent last: nobody else came back.",
    )


def empty_plot(pool: Pool, population: str) -> Plot:
    """Online periods in which nothing arrived."""
    return _shares(
        pool,
        population,
        RETURN_RECEPTION,
        "Online periods in which nothing arrives",
        "share of online periods",
        "Who comes back and finds nothing has come for nothing. With relays that happens only where "
        "nobody else said anything meanwhile.",
    )


def _shares(pool: Pool, population: str, measure: str, title: str, label: str, caption: str) -> Plot:
    groups = {
        margin_name(margin): {
            name: share_never(pool.bins(population, margin, mode, measure)) for mode, name in NAMES.items()
        }
        for margin in pool.margins()
    }
    svg = plots.bars(groups, title=f"{title}: {PEOPLE[population]}", y_label=label)
    return Plot(title=title, svg=svg, caption=caption)


def first_delivery_plot(pool: Pool, population: str) -> Plot:
    """How long until anybody else has an event."""
    return _distributions(
        pool,
        population,
        FIRST_DELIVERY,
        "Time until an event is delivered to anybody",
        "after it was sent",
        "Shares are of all events sent: a curve that ends below 100 % says how many were never delivered.",
    )


def reception_plot(pool: Pool, population: str) -> Plot:
    """How long until something arrives for who comes online."""
    return _distributions(
        pool,
        population,
        RETURN_RECEPTION,
        "Time until something arrives after coming online",
        "after the period began",
        "Shares are of all online periods: a curve that ends below 100 % says how many stayed empty.",
        missing="empty",
    )


def _distributions(
    pool: Pool, population: str, measure: str, title: str, label: str, caption: str, missing: str = "never"
) -> Plot:
    panels = {
        margin_name(margin): {
            name: ecdf(pool.bins(population, margin, mode, measure)) for mode, name in NAMES.items()
        }
        for margin in pool.margins()
    }
    svg = plots.ecdf_panels(panels, title=f"{title}: {PEOPLE[population]}", x_label=label, missing=missing)
    return Plot(title=title, svg=svg, caption=caption)
