from __future__ import annotations

import subprocess

from tests.cli.place.parlour import Parlour
from tests.cli.village import LINNET


def test_who_knocks_is_let_in(parlour: Parlour) -> None:
    address = parlour.hosted("club", "--policy", "closed")["address"]
    command = [*LINNET, "place", "enter", address, "--say", "it is me", "--home", str(parlour.bea.home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as entering:
        while not (waiting := parlour.ada.json("place", "guests", "club")["waiting"]):
            pass
        assert waiting == [parlour.people["bea"]]
        assert "is nobody" in parlour.ada.fails(2, "place", "admit", "club", "lp1zzzz")
        assert parlour.ada.ok("place", "admit", "club", waiting[0][:12]) == f"admitted {waiting[0]}\n"
        assert entering.communicate()[0].startswith("entered club lt1")
    assert entering.returncode == 0
