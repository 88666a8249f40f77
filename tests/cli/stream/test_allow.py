from __future__ import annotations

from tests.cli.stream.conftest import Diary


def test_a_line_lets_one_device_in_once(diary: Diary) -> None:
    line = diary.bea.ok("stream", "request", diary.stream)
    told = diary.ada.json("stream", "allow", "me/diary", "-", given=line)
    assert [reader["label"] for reader in told["changed"]] == ["bea"]
    assert told["readers"] == told["changed"]
    assert "granted before" in diary.ada.fails(1, "stream", "allow", "me/diary", line)


def test_what_cannot_be_taken_is_told(diary: Diary) -> None:
    line = diary.bea.ok("stream", "request", diary.stream).strip()
    for given, words in (
        ("rain", "should begin with lr1"),
        (line[:-9], "cut short"),
        (line[:60] + ("a" if line[60] != "a" else "b") + line[61:], "checksum"),
    ):
        assert words in diary.ada.fails(1, "stream", "allow", "me/diary", given)
    other = diary.bea.ok("stream", "request", diary.stream.replace("/diary", "/other"))
    assert "another stream" in diary.ada.fails(1, "stream", "allow", "me/diary", other)
    assert "does not seal" in diary.ada.fails(1, "stream", "allow", "me/open", line)
