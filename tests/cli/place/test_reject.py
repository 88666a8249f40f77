from __future__ import annotations

import subprocess

from tests.cli.place.parlour import Parlour
from tests.cli.village import LINNET


def test_who_is_turned_away_is_told_why(parlour: Parlour) -> None:
    address = parlour.hosted("bar", "--policy", "private")["address"]
    command = [*LINNET, "place", "enter", address, "--home", str(parlour.bea.home)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as entering:
        while not (waiting := parlour.ada.json("place", "guests", "bar")["waiting"]):
            pass
        assert "is no address" in parlour.ada.fails(
            2, "place", "reject", "bar", waiting[0], "--elsewhere", "x"
        )
        parlour.ada.ok("place", "reject", "bar", waiting[0], "--say", "members only")
        assert "turned us away: members only" in entering.communicate()[1]
    assert entering.returncode == 1
