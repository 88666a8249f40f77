from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import LINNET
from tests.cli.shell import Linnet

from linnet.cli.alone import alone_text


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("no_address", "name one with: linnet up --tracker"),
        ("unreachable_inbound", "set listen in linnet.toml on one of them, or run a node that listens"),
        ("something_new", "something_new"),
    ],
)
def test_it_says_what_is_wrong_and_what_to_do(reason: str, words: str) -> None:
    text = alone_text(reason)
    assert text is not None
    assert words in text


def test_where_nothing_is_wrong_nothing_is_said() -> None:
    assert alone_text(None) is None


def up(home: Path, *words: str) -> subprocess.Popen[str]:
    """A node of its own process; it says that it is up."""
    command = [*LINNET, "up", "--home", str(home), "--json", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def only_dials(shell: Linnet, tracker: str) -> None:
    """A home whose node listens nowhere."""
    shell.ok("init")
    (shell.home / "linnet.toml").write_text(f'[node]\nlisten = []\ntrackers = ["{tracker}"]\n')


def test_two_that_only_dial_are_told_by_publish_and_by_status(running: Linnet, tmp_path: Path) -> None:
    one, two = Linnet(tmp_path / "one"), Linnet(tmp_path / "two")
    for shell in (one, two):
        only_dials(shell, running.address)
    with up(one.home) as first, up(two.home) as second:
        try:
            two.ok("publish", "apart", "is anybody there?")
            assert "two that only dial never meet" in one.ok("publish", "apart", "hello?")
            assert one.json("publish", "apart", "hello?")["unsent"] == "unreachable_inbound"
            for shell in (one, two):
                said = shell.ok("status")
                assert "apart has no neighbours: this node cannot be dialled" in said
        finally:
            first.terminate()
            second.terminate()


def test_a_lone_node_prints_its_own_history_and_says_whose_it_is(tmp_path: Path) -> None:
    shell = Linnet(tmp_path / "home")
    shell.ok("init")
    with up(shell.home) as process:
        try:
            assert "no tracker is known" in shell.ok("publish", "diary", "rain")
            result = shell.run("history", "diary")
            assert (result.exit_code, result.stdout) == (0, "rain\n")
            assert "only what this node keeps: no storage node is known" in result.stderr
        finally:
            process.terminate()
