"""A small report with something of everything, for the tests of pages and summaries."""

from __future__ import annotations

from linnet.lab.report import plots
from linnet.lab.report.parts import Check, Figure, Grid, Plot, Report, Section, StageCost

PLOT = Plot(
    title="First delivery & more",
    svg=plots.ecdf({"P2P": ([0, 50], [0.5, 0.75])}, title="First delivery", x_label="time"),
    caption="A quarter was never delivered.",
)


def sample(*, failing: bool = False) -> Report:
    return Report(
        study="sample",
        title="Delivery <with> & without relays",
        abstract=("What was asked.", "What was found."),
        parameters={"chats": 18, "mode": "p2p", "seed": None, "share": 0.25},
        figures=(
            Figure(
                id="undelivered.p2p",
                title="Undelivered",
                unit="%",
                measured=12.5,
                published=10.0,
                source="A 2024",
            ),
            Figure(
                id="rdp",
                title="RDP",
                unit="ratio",
                measured=4.2,
                published="about 4",
                source="B 2021",
                note="N.",
            ),
            Figure(id="own", title="Own", unit="ms", measured=1_234_567, note="N."),
        ),
        checks=(
            Check(id="order", says="Relays are never worse", ok=True, detail="18 chats compared"),
            Check(
                id="agree", says="Model and protocol agree", ok=not failing, detail="chat 7, event 3: 12 ms"
            ),
        ),
        sections=(
            Section(
                title="Delivery",
                text=("A paragraph.",),
                plots=(PLOT, PLOT),
                grids=(
                    Grid(
                        title="Per margin",
                        columns=("margin", "share"),
                        rows=((1, 0.5), (2, None)),
                        note="Few.",
                    ),
                ),
            ),
        ),
        stages=(StageCost(name="profiles", rows=1000, seconds=72.4, peak_bytes=3 << 29, reused=True),),
        quarantined={"no_time": 3, "bad_user": 1},
        sources=("A 2024: a thesis",),
    )
