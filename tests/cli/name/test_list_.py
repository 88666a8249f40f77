from __future__ import annotations

from pathlib import Path

from tests.cli.name.neighbours import TECH, Neighbours
from tests.cli.village import up


def test_labels_are_listed_with_who_keeps_them(neighbours: Neighbours) -> None:
    carol = neighbours.carol
    neighbours.publish(carol, "listed", "--place", TECH, "--zone", neighbours.person["bob"])
    lines = carol.ok("name", "list").splitlines()
    assert lines[0] == f"your zone is {neighbours.person['carol']}"
    [row] = [line.split() for line in lines if line.startswith("listed")]
    assert row[1:7] == [TECH, "and", "the", "zone", "of", neighbours.person["bob"]]
    assert row[-4:] == ["yes", "no", "1", "0"]


def test_a_zone_that_says_nothing(tmp_path: Path) -> None:
    with up(tmp_path / "quiet") as quiet:
        assert "linnet name publish LABEL --place PLACE" in quiet.ok("name", "list")
