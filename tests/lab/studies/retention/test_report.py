"""What is said, of pools made by hand."""

from __future__ import annotations

from pathlib import Path

from tests.lab.studies.retention.small_pools import SWEPT, pool_of

from linnet.lab.report.parts import Section
from linnet.lab.report.published import read_published
from linnet.lab.studies.relays.metrics import Pool
from linnet.lab.studies.retention.metrics import ALL, trade_of
from linnet.lab.studies.retention.parameters import RetentionParameters
from linnet.lab.studies.retention.recommending import recommend
from linnet.lab.studies.retention.report import figures, sections

PARAMETERS = RetentionParameters(chats=Path("chats"), retentions=(3_600_000,))
CLASSES = (ALL, "dyads-slow")


def told(pool: Pool, margins: tuple[int, ...]) -> list[Section]:
    trades = [trade_of(pool, name, margin, SWEPT) for margin in margins for name in CLASSES]
    advised = {(trade.population, trade.margin): recommend(trade, 0.99) for trade in trades}
    return list(sections(trades, advised, PARAMETERS, 7))


def test_every_published_figure_is_used_and_ids_are_unique() -> None:
    pool = pool_of(within=(10, 40, 80, 80), classes=CLASSES, margins=(1, 2, 3))
    trades = [trade_of(pool, name, margin, SWEPT) for margin in (1, 2, 3) for name in CLASSES]
    advised = {(trade.population, trade.margin): recommend(trade, 0.99) for trade in trades}
    published = read_published("linnet.lab.studies.retention")
    found = {each.id: each for each in figures(trades, advised, published)}
    assert published.unused() == []
    assert len(found) == len(list(figures(trades, advised, published))) == 1 + 7 * len(advised)
    assert found["recommended.all"].measured == found["recommended.dyads-slow.margin2"].measured == "30 d"
    assert found["held.dyads-slow.margin2"].measured == 0.5
    assert found["default.of-unlimited.all.margin1"].measured == 1.0


def test_recommendations_are_read_at_the_middle_margin_or_at_phones() -> None:
    pool = pool_of(classes=CLASSES, margins=(0, 1, 2, 3))
    pool.cells.update(
        {(name, 2, mode, what): bins for (name, m, mode, what), bins in pool_of(
            within=(80, 80, 80, 80), classes=CLASSES, margins=(2,)
        ).cells.items() for _ in (m,)}
    )  # fmt: skip
    by_margins, with_phones = told(pool, (1, 2, 3)), told(pool, (0, 1, 2, 3))
    assert [row[:3] for row in by_margins[0].grids[0].rows] == [
        ("all rooms", 2, "none"),
        ("2 members, slow", 2, "none"),
    ]
    assert [row[2] for row in with_phones[0].grids[0].rows] == ["unlimited", "unlimited"]
    assert "margin 2, the middle one" in by_margins[0].text[0]
    assert "phones" in with_phones[0].text[0]
    assert with_phones[0].grids[1].columns == ("class", "phones", "margin 1", "margin 2", "margin 3")
    assert with_phones[0].grids[1].rows[0] == ("all rooms", "unlimited", "unlimited", "none", "unlimited")


def test_our_default_is_compared() -> None:
    shorter = told(pool_of(within=(10, 80, 80, 80), classes=CLASSES), (3,))
    assert shorter[0].text[1].endswith("Less is enough for: all rooms; 2 members, slow.")
    longer = told(pool_of(classes=CLASSES), (3,))
    assert longer[0].text[1].endswith("More is needed for: all rooms; 2 members, slow.")
    same = told(pool_of(within=(10, 40, 80, 80), classes=CLASSES), (3,))
    assert same[0].text[1].endswith("for every class.")


def test_every_part_is_there_and_drawn() -> None:
    parts = told(pool_of(classes=CLASSES, margins=(1, 2, 3)), (1, 2, 3))
    assert [part.title for part in parts] == [
        "Recommended retention",
        "Which rooms",
        "How many relays",
        "All rooms, by presence",
        "Classes of rooms, margin 1",
        "Classes of rooms, margin 2",
        "Classes of rooms, margin 3",
    ]
    assert [len(part.plots) for part in parts] == [1, 0, 0, 1, 1, 1, 1]
    for part in parts:
        for grid in part.grids:
            assert {len(row) for row in grid.rows} == {len(grid.columns)}
        assert all(plot.svg.startswith("<svg") for plot in part.plots)


def test_where_nothing_is_held_nothing_is_drawn() -> None:
    parts = told(pool_of(event_s=(0, 0, 0, 0), classes=CLASSES), (3,))
    assert [len(part.plots) for part in parts] == [1, 0, 0, 0, 0]
