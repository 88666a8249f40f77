"""Logs of IRC."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.formats import FORMATS
from linnet.lab.sources.irc import inspect, pieces
from linnet.lab.sources.rows import Bad, Found, Said

IRSSI = """\
--- Log opened Wed Jan 31 23:00:00 2024
23:58 -!- ada [~a@host] has joined #tea
23:59 <@ada> hello

--- Day changed Thu Feb 01 2024
00:01 < bea> hi ada
nonsense
25:00 <bea> never
"""
MINUTE = 60_000
MIDNIGHT = 1_706_745_600_000


def everything(path: Path) -> list[Found]:
    found = inspect(pieces([path]), Choices())
    return [each for piece in found for each in FORMATS["irc"].read(piece, Choices())]


def test_days_in_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "#tea.log"
    path.write_text(IRSSI)
    found = everything(path)
    assert found == [
        Said(
            2,
            ("#tea",),
            MIDNIGHT - 2 * MINUTE,
            "ada",
            33,
            "notice",
            "min",
            "-!- ada [~a@host] has joined #tea",
        ),
        Said(3, ("#tea",), MIDNIGHT - MINUTE, "ada", 5, "text", "min", "hello"),
        Said(6, ("#tea",), MIDNIGHT + MINUTE, "bea", 6, "text", "min", "hi ada"),
        Bad(7, "it does not begin with a time", "nonsense"),
        Bad(8, "the time cannot be read", "<bea> never"),
    ]


def test_days_in_the_names_of_files_are_one_chat(tmp_path: Path) -> None:
    folder = tmp_path / "net" / "#tea"
    folder.mkdir(parents=True)
    (folder / "2024-01-31.log").write_bytes(b"[23:59:59] <ada> caf\xe9\n")
    (folder / "2024-02-01.log").write_text("[00:00:00] <ada> thé\n")
    said = [each for each in everything(tmp_path) if isinstance(each, Said)]
    assert [(each.chat, each.ts, each.text, each.granularity) for each in said] == [
        (("#tea",), MIDNIGHT - 1000, "café", "s"),
        (("#tea",), MIDNIGHT, "thé", "s"),
    ]


def test_channels_in_one_folder_stay_apart(tmp_path: Path) -> None:
    for name in ("#tea_20240131.log", "#tea_20240201.log", "#cake_20240131.log"):
        (tmp_path / name).write_text("[10:00:00] <ada> hi\n")
    assert [piece.chat for piece in pieces([tmp_path])] == ["#cake", "#tea", "#tea"]


def test_a_coarse_log_makes_the_source_coarse(tmp_path: Path) -> None:
    (tmp_path / "#tea_20240131.log").write_text("[10:00:00] <ada> hi\n")
    (tmp_path / "#tea_20240201.log").write_text("[10:00] <ada> hi\n")
    assert {piece.granularity for piece in inspect(pieces([tmp_path]), Choices())} == {"min"}


@pytest.mark.parametrize(
    ("text", "words"),
    [("hello\n", "no line begins with a time"), ("[10:00] <ada> hi\n", "put it into the name")],
)
def test_what_cannot_be_a_log_or_has_no_day_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "tea.log"
    path.write_text(text)
    with pytest.raises(LabError, match=words):
        everything(path)
