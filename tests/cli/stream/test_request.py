from __future__ import annotations

from tests.cli.shell import Linnet
from tests.cli.stream.conftest import Diary


def test_it_is_one_line_and_a_new_one_each_time(diary: Diary) -> None:
    first = diary.bea.run("stream", "request", diary.stream)
    assert first.stdout.startswith("lr1")
    assert first.stdout.count("\n") == 1
    assert "linnet stream allow me/diary LINE" in first.stderr
    asked = diary.bea.json("stream", "request", diary.stream)
    assert asked["stream"] == diary.stream
    assert asked["request"] != first.stdout.strip()


def test_who_has_nothing_to_ask_is_told(diary: Diary, shell: Linnet) -> None:
    assert "reads it anyway" in diary.ada.fails(1, "stream", "request", "me/diary")
    assert "everyone reads it" in diary.bea.fails(1, "stream", "request", "weather")
    shell.ok("init")
    shell.fails(69, "stream", "request", diary.stream)
