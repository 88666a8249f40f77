"""What the study says of a pool."""

from __future__ import annotations

from linnet.lab.bins import NEVER, upper
from linnet.lab.report.published import read_published
from linnet.lab.studies.relays.metrics import Pool
from linnet.lab.studies.relays.report import figures, sections

FUNNEL = {1: (50, 900), 2: (40, 800), 3: (30, 700), 4: (20, 600), 5: (10, 500), 6: (5, 400)}


def pool() -> Pool:
    cells: dict[tuple[str, int, str, str], dict[int, int]] = {}
    for population in ("all", "selected"):
        for margin in range(1, 6):
            for mode in ("p2p", "p2p-thesis", "relays"):
                lost = 6 - margin if mode != "relays" else 1
                cells[population, margin, mode, "first_delivery"] = {NEVER: lost, 0: 50 - lost, 400: 50}
                cells[population, margin, mode, "return_reception"] = {
                    NEVER: 2 * lost,
                    0: 20,
                    300: 20 - 2 * lost,
                }
            cells[population, margin, "all", "events"] = {0: 100}
            cells[population, margin, "all", "bytes"] = {0: 30_000}
            cells[population, margin, "relays", "held_event_s"] = {0: 7_200}
            cells[population, margin, "relays", "held_byte_s"] = {0: 7_200_000_000}
    return Pool(cells)


def test_every_published_figure_has_its_own_beside_it() -> None:
    published = read_published("linnet.lab.studies.relays")
    found = {figure.id: figure for figure in figures(pool(), published, FUNNEL)}
    assert published.unused() == []
    assert found["funnel.selected"].measured == 5
    assert found["funnel.selected"].published == 103
    assert found["undelivered.p2p.margin1"].measured == 0.05
    assert found["undelivered.relays.most"].measured == 0.01
    assert found["within12s.relays.margin2"].published == 0.40
    assert found["empty.p2p-thesis.margin2.selected"].measured == 0.2


def test_the_page_has_both_populations_with_their_plots() -> None:
    parts = list(sections(pool(), FUNNEL, {("all", 1): (40, 3)}))
    assert [part.title for part in parts] == [
        "Which chats",
        "All chats",
        "Chats that pass the thesis's filters",
    ]
    assert [len(part.plots) for part in parts] == [0, 4, 4]
    by_margin = parts[1].grids[0].rows
    assert by_margin[0] == ("margin 1", "P2P", 100, 0.05, upper(400) / 1000, 40, 0.25, None)
    assert by_margin[2][-1] == 3
    assert parts[1].grids[1].rows[2] == ("event-hours held by each relay of a room", 2)
