"""The table and the checks, of outcomes that are made up."""

from __future__ import annotations

from linnet.lab.report.published import read_published
from linnet.lab.studies.attacks.metrics import Outcome
from linnet.lab.studies.attacks.report import COLUMNS, attacks_grid, checks, figures, sections, troubles_grid
from linnet.lab.studies.attacks.run import TROUBLE
from linnet.sim.attacks.catalogue import ATTACKS


def outcome(
    way: str,
    attack: str,
    share: float,
    *,
    joins: str = "",
    least: float = 1.0,
    without: float = 1.0,
    unnoticed: int = 0,
    blamed: int = 0,
) -> Outcome:
    ppm = round(1_000_000 * share)
    return Outcome(
        way,
        attack,
        joins,
        ppm,
        10,
        least,
        0.0,
        least,
        without,
        1500,
        3,
        2e6,
        3_000_000,
        unnoticed,
        2e3,
        4e3,
        blamed,
    )


EVERY = [
    outcome(each.way, each.name, share, joins=each.order, without=float(each.name != "fork"))
    for each in reversed(ATTACKS)
    for share in each.shares
]
PUBLISHED = read_published("linnet.lab.studies.attacks")


def broken(outcomes: list[Outcome]) -> list[str]:
    return [check.id for check in checks(outcomes) if not check.ok]


def test_each_share_has_a_row_in_the_order_of_the_catalogue() -> None:
    grid = attacks_grid(EVERY, PUBLISHED)
    assert grid.columns == COLUMNS
    assert len(grid.rows) == len(EVERY) == sum(len(each.shares) for each in ATTACKS)
    names = [str(row[0]).split("`")[1] for row in grid.rows]
    assert list(dict.fromkeys(names)) == list(dict.fromkeys(each.name for each in ATTACKS))
    first = grid.rows[0]
    assert str(first[0]) == "`silent`: neighbours forward nothing, joined last"
    assert first[1:] == (
        "50 %",
        100.0,
        "100 (100 to 100)",
        100.0,
        0.0,
        "3 of 10",
        2.0,
        2,
        4,
        "immune to all considered attacks",
    )
    assert next(row for row in grid.rows if "`fork`" in str(row[0]))[2] is None


def test_figures_have_names_of_their_own_and_use_what_is_published() -> None:
    found = list(figures(EVERY, PUBLISHED))
    assert len({figure.id for figure in found}) == len(found) == 2 * len(EVERY)
    silent = next(figure for figure in found if figure.id == "arrived.silent.before.50")
    assert silent.published == "immune to all considered attacks"
    assert "Vyzovitis" in silent.source
    assert PUBLISHED.unused() == []


def test_all_is_well_if_all_arrives() -> None:
    assert broken(EVERY) == []
    assert len({check.id for check in checks(EVERY)}) == len(list(checks(EVERY)))
    assert [section.title for section in sections(EVERY, PUBLISHED)] == ["Attacks"]


def test_a_broken_bound_is_found_and_what_is_not_promised_is_none() -> None:
    assert broken([outcome("streams", "empty-storage", 0.9, least=0.99)]) == ["holds.empty-storage.90"]
    assert broken([outcome("places", "keepers", 0.5, least=0.99)]) == ["holds.keepers.50"]
    assert broken([outcome("places", "keepers", 0.75, least=0.0)]) == []
    assert broken([outcome("streams", "silent", 0.9, joins="after", least=0.0)]) == []


def test_losses_without_an_attack_and_losses_of_content_that_nobody_noticed_are_found() -> None:
    assert broken([outcome("streams", "isolate", 1.0, without=0.99)]) == ["calm.isolate.100"]
    assert broken([outcome("content", "nodes", 0.1, least=0.9, unnoticed=1)]) == ["told.nodes.10"]
    assert broken([outcome("content", "nodes", 0.1, least=0.9)]) == []


def test_nobody_may_be_blamed_where_nobody_attacks() -> None:
    troubled = [outcome(TROUBLE, "slow", 0.2, blamed=1), outcome(TROUBLE, "lossy", 0.2)]
    assert broken(troubled) == ["blamed.slow"]
    assert troubles_grid(troubled).rows == (("lossy", "20 %", 10, 100.0, 0), ("slow", "20 %", 10, 100.0, 1))
    assert [section.title for section in sections([*EVERY, *troubled], PUBLISHED)] == [
        "Attacks",
        "Honest nodes in trouble",
    ]
