from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.shell import Linnet

from linnet.cli.status import alone_text


def test_who_where_and_every_stream(running: Linnet) -> None:
    said = running.ok("status")
    assert f"address     {running.address}" in said
    assert "label       shared" in said
    assert "roles       tracker, storage" in said
    assert "\nkept " in said


def test_json_is_the_whole_status(running: Linnet) -> None:
    status = running.json("status")
    assert status["contact"] == running.address
    assert "kept" in [stream["stream"] for stream in status["streams"]]


def test_without_a_node_the_status_is_69(shell: Linnet) -> None:
    assert "start one with: linnet up" in shell.fails(69, "status")


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


def only_dials(shell: Linnet, tracker: str) -> None:
    """A home whose node listens nowhere."""
    shell.ok("init")
    (shell.home / "linnet.toml").write_text(f'[node]\nlisten = []\ntrackers = ["{tracker}"]\n')


def test_two_that_only_dial_are_told_by_publish_and_by_status(running: Linnet, tmp_path: Path) -> None:
    one, two = Linnet(tmp_path / "one"), Linnet(tmp_path / "two")
    for shell in (one, two):
        only_dials(shell, running.address)
    with one.up(), two.up():
        two.ok("publish", "apart", "is anybody there?")
        assert "two that only dial never meet" in one.ok("publish", "apart", "hello?")
        assert one.json("publish", "apart", "hello?")["unsent"] == "unreachable_inbound"
        for shell in (one, two):
            said = shell.ok("status")
            assert "apart has no neighbours: this node cannot be dialled" in said


def test_a_lone_node_prints_its_own_history_and_says_whose_it_is(tmp_path: Path) -> None:
    shell = Linnet(tmp_path / "home")
    shell.ok("init")
    with shell.up():
        assert "no tracker is known" in shell.ok("publish", "diary", "rain")
        result = shell.run("history", "diary")
        assert (result.exit_code, result.stdout) == (0, "rain\n")
        assert "only what this node keeps: no storage node is known" in result.stderr
