"""A stream changes over from the tracker to the ring and back, by its command."""

from __future__ import annotations

from pathlib import Path

from tests.cli.shell import Linnet
from tests.cli.village import up


def test_a_stream_changes_over_and_back_and_remembers(tmp_path: Path) -> None:
    home = tmp_path / "ada"
    options = ("--tracker-role", "--store", "tea", "--overlay", "tracker")
    shell = Linnet(home)
    with up(home, *options) as ada:
        told = ada.fails(1, "stream", "overlay", "tea", "ring")
        assert "linnet up --overlay ring" in told
        assert "one of" in ada.fails(2, "stream", "overlay", "tea", "mesh")
    assert "start one with: linnet up" in shell.fails(69, "stream", "overlay", "tea", "ring")


def test_with_both_overlays_it_goes_both_ways(tmp_path: Path) -> None:
    with up(tmp_path / "ada", "--tracker-role", "--overlay", "ring", "--store", "tea") as ada:
        assert (
            ada.ok("stream", "overlay", "tea", "tracker") == "tea changes over from overlay ring to tracker\n"
        )
        assert ada.json("status")["streams"][0]["overlay"] == "tracker"
        back = ada.json("stream", "overlay", "tea", "ring")
        assert (back["before"], back["overlay"]) == ("tracker", "ring")
