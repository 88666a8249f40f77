from __future__ import annotations

import json
import subprocess

from tests.cli.place.parlour import Parlour
from tests.cli.village import LINNET


def test_the_host_hears_what_a_guest_says_to_it_alone(parlour: Parlour) -> None:
    assert "not_held" in parlour.bea.fails(1, "place", "talk", "tea", "hello?")
    command = [*LINNET, "place", "watch", "tea", "--count", "1", "--method", "_request", "--json"]
    with subprocess.Popen([*command, "--home", str(parlour.ada.home)], stdout=subprocess.PIPE) as watching:
        while parlour.bea.run("place", "talk", "tea", "One sugar", "--var", "_sugar=1").exit_code:
            pass
        assert watching.stdout is not None
        heard = json.loads(watching.stdout.readline())
    assert (heard["nym"], heard["text"]) == (parlour.people["bea"], "One sugar")


def test_the_host_does_not_talk_to_itself(parlour: Parlour) -> None:
    assert "announce instead" in parlour.ada.fails(1, "place", "talk", "tea", "x")
