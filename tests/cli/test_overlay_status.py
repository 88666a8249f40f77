"""Two nodes without a tracker: what the command line shows of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.shell import Linnet
from tests.cli.village import LIMIT, up

from linnet.cli.overlay_status import facts, rows
from linnet.net.clock import Clock
from linnet.node.overlay_types import OverlayReply, RingView


def _until(look: Callable[[], bool]) -> None:
    clock = Clock()
    limit = clock.now() + LIMIT
    while not look():
        assert clock.now() < limit


def test_two_nodes_find_each_other_in_a_stream_and_say_so(tmp_path: Path) -> None:
    with (
        up(tmp_path / "ada", "--overlay", "ring", "--store", "tea") as ada,
        up(tmp_path / "bea", "--bootstrap", ada.address, "--store", "tea") as bea,
    ):
        own = {each: each.address.partition("@")[0] for each in (ada, bea)}
        _until(lambda: _neighbors(ada) == [own[bea]] and _neighbors(bea) == [own[ada]])
        said = ada.ok("overlay", "status")
        assert "known          1 node\n" in said
        (line,) = [each for each in said.splitlines() if each.startswith("tea ")]
        assert own[bea][:13] in line
        assert "overlay     ring, without trackers" in ada.ok("status")
        assert ada.json("status")["streams"][0]["overlay"] == "ring"
        checks = {check["name"]: check for check in ada.json("doctor")["checks"]}
        assert checks["ring"]["ok"]
        assert "trackers" not in checks
        ada.ok("publish", "tea", "hello")
        assert (
            bea.ok("subscribe", "tea", "--from", "beginning", "--count", "1", "--timeout", "20") == "hello\n"
        )


def test_one_that_knows_nobody_is_told_how_to_begin(tmp_path: Path) -> None:
    with up(tmp_path / "ada", "--overlay", "ring") as ada:
        assert "--bootstrap KEY@HOST:PORT" in ada.run("doctor").stdout
        assert "tracker" not in ada.ok("peers")
        assert "no tracker is known" in ada.fails(1, "stream", "overlay", "tea", "tracker")
        assert ada.ok("stream", "overlay", "tea", "ring") == "tea stays with overlay ring\n"
        assert ada.json("stream", "overlay", "tea", "default")["overlay"] == "ring"


def test_a_node_with_trackers_alone_has_none(running: Linnet) -> None:
    assert "linnet up --overlay ring" in running.fails(1, "overlay", "status")


def test_a_stranger_s_name_of_a_room_does_not_move_the_terminal() -> None:
    ring = RingView("lt1x", "a\x1b[2Jb", 3, ("s1",), ("p1", "p2"), ("n1",), 1)
    reply = OverlayReply(
        12, ("a",), ("b",), ("c",), 4, 2, 5, 2, (ring, RingView("lt1y", None, 0, (), (), (), 0))
    )
    assert rows(reply)[0] == (r"a\x1b[2Jb", 3, ["p2", "p1", "s1"], ["n1"], 1)
    assert rows(reply)[1][0] == "lt1y"
    assert ("intersections", "5, 2 of them with nothing in common") in facts(reply)


def _neighbors(shell: Linnet) -> list[str]:
    return [peer for ring in shell.json("overlay", "status")["rings"] for peer in ring["neighbors"]]
