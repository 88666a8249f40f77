"""The demo end to end, at a small size: real processes, real links, real kills."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.shell import Linnet

from linnet.cli.demo.command import display
from linnet.cli.demo.story import Plan

DEMO = [sys.executable, "-m", "linnet.cli", "demo", "--peers", "3", "--messages", "60"]


def test_every_message_arrives_although_two_processes_are_killed(tmp_path: Path) -> None:
    kept = tmp_path / "run"
    done = subprocess.run(
        [*DEMO, "--keep", str(kept), "--json"], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["ok"], found["missing"], found["published"]) == (True, 0, 60)
    assert [peer["delivered"] for peer in found["peers"]] == [60, 60, 60]
    assert found["resumed"]
    assert found["seconds_away"] > 0
    assert found["takeover_seconds"] > 0
    assert all(peer["p50_ms"] > 0 for peer in found["peers"])
    homes = sorted(path.name for path in kept.iterdir())
    assert homes == ["peer-1", "peer-2", "peer-3", "storage", "tracker-a", "tracker-b"]
    # The event loop itself may complain of a connection whose other end was killed; we never do.
    said = [path.read_text() for path in kept.glob("*/stderr.txt")]
    assert [text for text in said if "linnet/" in text] == []


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        DEMO, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=_hear_ctrl_c
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "everyone is linked" in line:
                break
        children = _children(process.pid)
        assert len(children) == 6
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert "Traceback" not in process.stderr.read()
    assert list(tmp_path.iterdir()) == []
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def test_wrong_input_is_told_in_a_line(shell: Linnet, tmp_path: Path) -> None:
    assert "not there yet" in shell.fails(2, "demo", "--keep", str(tmp_path))
    shell.fails(2, "demo", "--peers", "2")


def _hear_ctrl_c() -> None:
    # Whoever runs the tests in the background has SIGINT ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _children(parent: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


PLAN = Plan(3, 60, 1)


def test_where_nobody_watches_it_tells_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with display(PLAN, quiet=False) as (tell, progress):
        tell("something happened")
        progress(30, 90)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r" +\d+\.\d s  something happened\n", err)


def test_for_programs_it_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with display(PLAN, quiet=True) as (tell, progress):
        tell("something happened")
        progress(30, 90)
    assert capsys.readouterr() == ("", "")
