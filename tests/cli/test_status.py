from __future__ import annotations

from tests.cli.shell import Linnet


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
