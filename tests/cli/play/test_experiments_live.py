"""The experiments on real nodes, which takes as long as their pauses say: all of them only if asked for."""

from __future__ import annotations

import os

import pytest
from tests.cli.shell import Linnet

from linnet.sim.rooms.experiments import names

SOAK = bool(os.environ.get("LINNET_SOAK"))
PLAYED = [name for name in names() if not name.startswith("fe2") or name in ("fe2-5-0", "fe2-5-1")]


@pytest.mark.skipif(not SOAK, reason="it takes as long as its pauses say, minutes in all")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", PLAYED)
def test_the_experiment_comes_out_as_published_on_real_nodes(shell: Linnet, name: str) -> None:
    found = shell.json("play", name, "--live")
    assert [each["what"] for each in found["expectations"] if not each["holds"]] == []
    assert found["expectations"]
    assert found["ok"] is True
